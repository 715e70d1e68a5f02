//! `checker`: alternating white and black squares of 32 pixels.
//!
//! The top left square is white. The squares at the right and bottom border are cut off.

use vramp_plan::Size;

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};

pub static CHECKER: Head = Head {
    name: "checker",
    wgsl: include_str!("checker.wgsl"),
    source: false,
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

const SIDE: usize = 32;
const COLORS: [Pixel; 2] = [[255, 255, 255, 255], [0, 0, 0, 255]];

/// The parameter words: none.
pub fn pack() -> [u32; 0] {
    []
}

fn row(_: &HeadArgs<'_>, _: &mut SourceRows<'_>, _: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    for (i, square) in pixels.chunks_mut(SIDE).enumerate() {
        square.fill(COLORS[(i + y as usize / SIDE) % 2]);
    }
}

fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    [size, chance.size()].map(|size| KernelSample::new(size, &pack())).to_vec()
}
