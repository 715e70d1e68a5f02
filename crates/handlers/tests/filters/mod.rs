//! Filters, made from text, run on the CPU and compared with formulas in doubles.
//!
//! Images are random in all four channels, of one pixel, with odd sides, and of several sizes in one stream. Filters
//! that promise exact results must match to the bit, others within one level.

mod company;
mod darkroom;
mod places;
mod points;
mod resize;
mod tables;
mod windows;
