//! The work of a handler on one frame, by class, and what a neural network needs beside it.

use crate::words::Size;

use super::SettingValues;

/// The class of a handler's work. A profile has one rate for each class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A per-pixel function: a table, a small matrix, a blend.
    Pixel,
    /// Drawing a few pixels: text, lines, boxes. Unit: one touched pixel.
    Draw,
    /// Multiply-adds of a stencil. Unit: one tap of one pixel.
    Tap,
    /// One filtered sample at a computed position.
    Sample,
    /// One compare-exchange of a sorting network on one pixel.
    Sort,
    /// One pixel of a whole-frame sum.
    Reduce,
    /// One pixel encoded into or decoded from a compressed format.
    Codec,
    /// One pixel moved unchanged through a pipe, file or window.
    Move,
    /// One multiplication with an addition of a neural network.
    Network,
}

impl Class {
    /// In a fixed order.
    pub const ALL: [Class; 9] = [
        Class::Pixel,
        Class::Draw,
        Class::Tap,
        Class::Sample,
        Class::Sort,
        Class::Reduce,
        Class::Codec,
        Class::Move,
        Class::Network,
    ];

    /// The word used in profiles and text.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Pixel => "pixel",
            Class::Draw => "draw",
            Class::Tap => "tap",
            Class::Sample => "sample",
            Class::Sort => "sort",
            Class::Reduce => "reduce",
            Class::Codec => "codec",
            Class::Move => "move",
            Class::Network => "network",
        }
    }
}

/// The work of a handler on one frame.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    pub class: Class,
    pub units: Units,
}

impl Work {
    /// No work that is worth counting.
    pub const NONE: Work = Work { class: Class::Pixel, units: Units::PerPixel(0.0) };
}

/// Units of work on one frame.
#[derive(Debug, Clone, Copy)]
pub enum Units {
    /// This many units per pixel of the output, or of the lead input for sinks. If the output is a tensor or data, per
    /// element of the output or of the lead input, whichever has more.
    PerPixel(f64),
    /// This many units per pixel, depending on settings.
    PerPixelBy(fn(&SettingValues) -> f64),
    /// This many units per frame, depending on settings and the sizes of the lead input and the output. Used for
    /// handlers that touch only a part of a frame, or read more than they write. Without an input, the function gets
    /// the output's size twice; without an output, it gets the input's size twice.
    PerFrameBy(fn(&SettingValues, Size, Size) -> f64),
}

/// What a neural network needs for one frame, beside the frame and the multiplications that [`Work`] counts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NetworkNeeds {
    /// Bytes that its steps read and write.
    pub moved_bytes: f64,
    /// Kernels of its steps.
    pub kernels: f64,
    /// Bytes of intermediate values, which the handler holds during the whole run.
    pub held_bytes: u64,
    /// Bytes of weights. Handlers in one space with the same file share them.
    pub weight_bytes: u64,
    /// The file of the weights.
    pub weights: String,
}

/// Computes the needs of a network from the settings and the size of the lead input. Zero if they are unknown.
pub type NetworkNeedsBy = fn(&SettingValues, Size) -> NetworkNeeds;
