//! `solid`: one colour everywhere.
//!
//! Owns the colour.
//! Does not read anything.
//!
//! Always: every pixel is the same.

use crate::head::{Head, HeadArgs, Kept, SourceRows};
use crate::picture::Pixel;

/// One colour. Parameters: the colour.
pub static SOLID: Head = Head {
    name: "solid",
    wgsl: include_str!("solid.wgsl"),
    words: 1,
    source: false,
    small: false,
    first: None,
    rows_at_once: 1,
    row,
};

/// The parameter words of a colour.
pub fn pack(color: Pixel) -> [u32; 1] {
    [u32::from_le_bytes(color)]
}

fn row(args: &HeadArgs<'_>, _: &mut SourceRows<'_>, _: &mut Kept, _: u32, pixels: &mut [Pixel]) {
    pixels.fill(args.frame.words[0].to_le_bytes());
}
