//! `solid`: one colour everywhere.

use vramp_plan::Size;

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};

/// Parameters: the colour.
pub static SOLID: Head = Head {
    name: "solid",
    wgsl: include_str!("solid.wgsl"),
    words: 1,
    source: false,
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// The parameter words of a colour.
pub fn pack(color: Pixel) -> [u32; 1] {
    [u32::from_le_bytes(color)]
}

fn row(args: &HeadArgs<'_>, _: &mut SourceRows<'_>, _: &mut BandState, _: u32, pixels: &mut [Pixel]) {
    pixels.fill(args.frame.words[0].to_le_bytes());
}

fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    [size, chance.size()].map(|size| KernelSample::new(size, &pack(chance.color()))).to_vec()
}
