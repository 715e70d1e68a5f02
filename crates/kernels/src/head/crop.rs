//! `crop`: a rectangle of the source. The rectangle has the size of the output.
//!
//! The caller of [`pack`] makes sure that the rectangle is within the source. Functions before the head are applied
//! only inside the rectangle, or, on the CPU, to whole source rows if the source's format is not rgba8.

use vramp_plan::Size;

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};

pub static CROP: Head = Head {
    name: "crop",
    wgsl: include_str!("crop.wgsl"),
    words: 2,
    rows_at_once: 4,
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// The parameter words: the rectangle's left and top edge.
pub fn pack(x: u32, y: u32) -> [u32; 2] {
    [x, y]
}

fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, _: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let [left, top] = [args.frame.words[0], args.frame.words[1]];
    for (y, to) in (top + y..).zip(pixels.chunks_exact_mut(args.frame.size.width as usize)) {
        source.copy_part(y, left, to);
    }
}

/// A random rectangle, and a rectangle that extends to the lower right corner of the source.
fn samples(chance: &mut Chance, source: Size) -> Vec<KernelSample> {
    let drawn = [false, true].map(|to_the_corner| {
        let (x, y) = (chance.below(source.width), chance.below(source.height));
        let rest = Size { width: source.width - x, height: source.height - y };
        let part = Size { width: 1 + chance.below(rest.width), height: 1 + chance.below(rest.height) };
        KernelSample::new(if to_the_corner { rest } else { part }, &pack(x, y))
    });
    drawn.to_vec()
}
