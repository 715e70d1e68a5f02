//! `noise`: every pixel is a hash of its position, the frame number and a seed; alpha is 255.
//!
//! There is no generator state, so any pixel of any frame can be computed alone. Numbers have 32 bits and wrap around,
//! so frame numbers count modulo 2^32.

use vramp_plan::Size;

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::Loop;

/// Parameters: the hash of the frame number and the seed.
pub static NOISE: Head = Head {
    name: "noise",
    wgsl: include_str!("noise.wgsl"),
    words: 1,
    source: false,
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// The parameter words of frame number `n`.
pub fn pack(n: u64, seed: u32) -> [u32; 1] {
    [pcg((n as u32).wrapping_add(pcg(seed)))]
}

#[inline(always)]
fn pcg(v: u32) -> u32 {
    let s = v.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
    let t = ((s >> ((s >> 28) + 4)) ^ s).wrapping_mul(277_803_737);
    (t >> 22) ^ t
}

fn row(args: &HeadArgs<'_>, _: &mut SourceRows<'_>, _: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let first = y.wrapping_mul(args.frame.size.width).wrapping_add(args.frame.words[0]);
    args.frame.level.run(Noise { pixels, first });
}

struct Noise<'a> {
    pixels: &'a mut [Pixel],
    first: u32,
}

impl Loop for Noise<'_> {
    #[inline(always)]
    fn run(self) {
        for (x, pixel) in (0u32..).zip(self.pixels) {
            *pixel = (pcg(self.first.wrapping_add(x)) | 0xff00_0000).to_le_bytes();
        }
    }
}

fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    [size, chance.size()]
        .map(|size| KernelSample::new(size, &pack(u64::from(chance.bits()) << chance.below(33), chance.bits())))
        .to_vec()
}
