//! `crop`: a rectangle of the source.
//!
//! Owns where the rectangle begins.
//! Does not look beyond the source: whoever packs the words has made sure that the rectangle lies within it.
//!
//! Always: pixels are copied as they are; functions in front are applied inside the rectangle only.

use crate::head::{Head, HeadArgs, Kept, SourceRows};
use crate::picture::Pixel;

/// A rectangle, as large as what is made.
pub static CROP: Head = Head {
    name: "crop",
    wgsl: include_str!("crop.wgsl"),
    words: 2,
    source: true,
    small: false,
    first: None,
    rows_at_once: 4,
    row,
};

/// The parameter words: its left and its top edge.
pub fn pack(x: u32, y: u32) -> [u32; 2] {
    [x, y]
}

fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, _: &mut Kept, y: u32, pixels: &mut [Pixel]) {
    let [left, top] = [args.frame.words[0], args.frame.words[1]];
    for (y, to) in (top + y..).zip(pixels.chunks_exact_mut(args.frame.size.width as usize)) {
        source.copy_part(y, left, to);
    }
}
