//! `gray`: the weighted mean of red, green and blue into all three.
//!
//! Owns the weights, in fifteen fraction bits, and the row loop.
//! Does not touch alpha.

use crate::function::{PixelFn, RowArgs, everywhere};
use crate::picture::Pixel;
use crate::simd::Loop;

/// Gray.
pub static GRAY: PixelFn = PixelFn {
    name: "gray",
    wgsl: include_str!("gray.wgsl"),
    words: 0,
    side: false,
    small: false,
    row,
    spans: everywhere,
};

/// The gray value of a packed pixel. In 32-bit lanes, since every factor fits 16 bits and vectors multiply those best.
#[inline(always)]
pub(crate) fn gray(pixel: u32) -> u32 {
    (9798 * (pixel & 255) + 19235 * ((pixel >> 8) & 255) + 3735 * ((pixel >> 16) & 255) + 16384) >> 15
}

fn row(args: &RowArgs<'_>, pixels: &mut [Pixel]) {
    args.frame.level.run(Gray(pixels));
}

struct Gray<'a>(&'a mut [Pixel]);

impl Loop for Gray<'_> {
    #[inline(always)]
    fn run(self) {
        for pixel in self.0 {
            let word = u32::from_le_bytes(*pixel);
            let v = gray(word);
            *pixel = (v | (v << 8) | (v << 16) | (word & 0xff00_0000)).to_le_bytes();
        }
    }
}
