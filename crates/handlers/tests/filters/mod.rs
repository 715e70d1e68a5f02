//! Filters, made from text and run on the host, against formulas written out once more in doubles.
//!
//! Pictures are random in all four channels, of one pixel, of odd sides and of several sizes in one stream. A formula
//! is met to the bit where that is promised, and otherwise within one level.

mod company;
mod darkroom;
mod places;
mod points;
mod resize;
mod tables;
mod windows;
