//! `threshold`: white if the grey value exceeds a level, otherwise black; alpha is kept.
//!
//! The CPU converts the level to an integer, so the WGSL and its CPU twin give the same result. `gray` defines the grey
//! value.

use vramp_plan::Size;

use crate::function::{PixelFn, RowArgs};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::{self, Loop};

use super::gray::gray;

/// Parameter: the greatest grey value that becomes black.
pub static THRESHOLD: PixelFn = PixelFn {
    name: "threshold",
    wgsl: include_str!("threshold.wgsl"),
    words: 1,
    row,
    samples: Some(samples),
    ..PixelFn::PLAIN
};

/// The parameter word of a level, where 1 is full brightness. An integer exceeds `255 level` exactly if it exceeds the
/// integer part of `255 level`.
pub fn pack(level: f64) -> [u32; 1] {
    [((255.0 * level).floor().clamp(-1.0, 255.0) as i32).cast_unsigned()]
}

fn row(args: &RowArgs<'_>, pixels: &mut [Pixel]) {
    let (level, black) = (args.frame.level, args.frame.int(0));
    level.run(Threshold { pixels: simd::gray::black_or_white(level, pixels, black), black });
}

struct Threshold<'a> {
    pixels: &'a mut [Pixel],
    black: i32,
}

impl Loop for Threshold<'_> {
    #[inline(always)]
    fn run(self) {
        for pixel in self.pixels {
            let word = u32::from_le_bytes(*pixel);
            let color = if gray(word).cast_signed() > self.black { 0x00ff_ffff } else { 0 };
            *pixel = (color | (word & 0xff00_0000)).to_le_bytes();
        }
    }
}

fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    vec![KernelSample::new(size, &pack(chance.part()))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_between_two_whole_numbers_counts_as_the_lower_one() {
        assert_eq!([pack(0.5), pack(0.2), pack(1.0), pack(9.0)], [[127], [51], [255], [255]]);
        assert_eq!(pack(-0.001), [u32::MAX]);
    }
}
