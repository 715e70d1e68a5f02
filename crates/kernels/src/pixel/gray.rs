//! `gray`: replaces red, green and blue by their weighted mean; alpha is kept. Weights have fifteen fraction bits.

use vramp_plan::Size;

use crate::function::{PixelFn, RowArgs};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::{self, Loop};

pub static GRAY: PixelFn =
    PixelFn { name: "gray", wgsl: include_str!("gray.wgsl"), row, samples: Some(samples), ..PixelFn::PLAIN };

/// The grey value of a packed pixel. Every factor fits 16 bits, because vectors multiply 16-bit numbers fastest.
#[inline(always)]
pub(crate) fn gray(pixel: u32) -> u32 {
    (9798 * (pixel & 255) + 19235 * ((pixel >> 8) & 255) + 3735 * ((pixel >> 16) & 255) + 16384) >> 15
}

fn row(args: &RowArgs<'_>, pixels: &mut [Pixel]) {
    let level = args.frame.level;
    level.run(GrayPixels(simd::gray::gray(level, pixels)));
}

struct GrayPixels<'a>(&'a mut [Pixel]);

impl Loop for GrayPixels<'_> {
    #[inline(always)]
    fn run(self) {
        for pixel in self.0 {
            let word = u32::from_le_bytes(*pixel);
            let v = gray(word);
            *pixel = (v | (v << 8) | (v << 16) | (word & 0xff00_0000)).to_le_bytes();
        }
    }
}

fn samples(_: &mut Chance, size: Size) -> Vec<KernelSample> {
    vec![KernelSample::new(size, &[])]
}
