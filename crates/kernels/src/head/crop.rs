//! `crop`: a rectangle of the source.
//!
//! Owns where the rectangle begins.
//! Does not look beyond the source: whoever packs the words has made sure that the rectangle lies within it.
//!
//! Always: pixels are copied as they are; functions in front are applied inside the rectangle only.

use vramp_plan::Size;

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};

/// A rectangle, as large as what is made.
pub static CROP: Head = Head {
    name: "crop",
    wgsl: include_str!("crop.wgsl"),
    words: 2,
    rows_at_once: 4,
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// The parameter words: its left and its top edge.
pub fn pack(x: u32, y: u32) -> [u32; 2] {
    [x, y]
}

fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, _: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let [left, top] = [args.frame.words[0], args.frame.words[1]];
    for (y, to) in (top + y..).zip(pixels.chunks_exact_mut(args.frame.size.width as usize)) {
        source.copy_part(y, left, to);
    }
}

/// A corner, and a rectangle in the middle.
fn samples(chance: &mut Chance, source: Size) -> Vec<KernelSample> {
    let drawn = [false, true].map(|to_the_corner| {
        let (x, y) = (chance.below(source.width), chance.below(source.height));
        let rest = Size { width: source.width - x, height: source.height - y };
        let part = Size { width: 1 + chance.below(rest.width), height: 1 + chance.below(rest.height) };
        KernelSample::new(if to_the_corner { rest } else { part }, &pack(x, y))
    });
    drawn.to_vec()
}
