//! `flip`: mirrored left-right, top-bottom or both.
//!
//! Owns which axes.
//! Does not change size.

use crate::head::{Head, HeadArgs, Kept, SourceRows};
use crate::picture::Pixel;
use crate::simd::turn::Reversed;

/// Mirrored.
pub static FLIP: Head = Head {
    name: "flip",
    wgsl: include_str!("flip.wgsl"),
    words: 2,
    source: true,
    small: false,
    first: None,
    rows_at_once: 1,
    row,
};

/// The parameter words: whether left and right, and top and bottom, change places.
pub fn pack(left_right: bool, top_bottom: bool) -> [u32; 2] {
    [u32::from(left_right), u32::from(top_bottom)]
}

fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, _: &mut Kept, y: u32, pixels: &mut [Pixel]) {
    let y = if args.frame.words[1] != 0 { args.source.height - 1 - y } else { y };
    if args.frame.words[0] != 0 {
        args.frame.level.run(Reversed { from: source.row(i64::from(y)), to: pixels });
    } else {
        source.copy(y, pixels);
    }
}
