//! `bars`: eight vertical bars, white to black.
//!
//! Column x belongs to bar 8x div w. If the frame is narrower than eight pixels, some bars are missing.

use vramp_plan::Size;

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};

pub static BARS: Head =
    Head { name: "bars", wgsl: include_str!("bars.wgsl"), source: false, row, samples: Some(samples), ..Head::PLAIN };

/// White, yellow, cyan, green, magenta, red, blue, black.
const COLORS: [Pixel; 8] = [
    [255, 255, 255, 255],
    [255, 255, 0, 255],
    [0, 255, 255, 255],
    [0, 255, 0, 255],
    [255, 0, 255, 255],
    [255, 0, 0, 255],
    [0, 0, 255, 255],
    [0, 0, 0, 255],
];

/// The parameter words: none.
pub fn pack() -> [u32; 0] {
    []
}

fn row(_: &HeadArgs<'_>, _: &mut SourceRows<'_>, _: &mut BandState, _: u32, pixels: &mut [Pixel]) {
    let width = pixels.len();
    // Bar i begins at the first x with 8x >= i w.
    let edge = |i: usize| (i * width).div_ceil(8);
    for (i, color) in COLORS.iter().enumerate() {
        pixels[edge(i)..edge(i + 1)].fill(*color);
    }
}

fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    [size, chance.size()].map(|size| KernelSample::new(size, &pack())).to_vec()
}
