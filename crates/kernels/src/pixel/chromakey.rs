//! `chromakey`: reduces the alpha of pixels whose colour is near a key colour. Red, green and blue are kept.
//!
//! Chroma is counted in 1/31250 of a level, in which all weights are integers. A squared distance has 47 bits, and is
//! exact. A distance is the integer nearest to the root of the squared distance. With a hard edge, only squared
//! distances are compared. The alpha of a soft edge is within one level of the exact formula if the edge is at least
//! 1/20000 wide, which is a 78th of a level.

use vramp_plan::Size;

use crate::function::{PixelFn, RowArgs};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::Loop;

/// Parameters: the key's chroma along both axes; the greatest squared distance at which pixels become transparent,
/// given as the integer nearest to its root and the remainder; the distance at which the soft edge starts; the edge's
/// width (0 for a hard edge); a shift and a factor that map the width to 2^31.
pub static CHROMAKEY: PixelFn = PixelFn {
    name: "chromakey",
    wgsl: include_str!("chromakey.wgsl"),
    words: 8,
    row,
    samples: Some(samples),
    ..PixelFn::PLAIN
};

/// The weights of red, green and blue in 1/31250, first for the blue chroma, then for the red chroma.
const WEIGHTS: [[i32; 3]; 2] = [[-5273, -10_352, 15_625], [15_625, -13_084, -2541]];
/// A distance of 1 in these units.
const UNIT: f64 = 31_250.0 * 255.0;
/// Bits of a distance before it is multiplied by the factor.
const DISTANCE_BITS: u32 = 16;
/// Full alpha.
const FULL: u32 = 1 << 16;

/// The parameter words. Colours up to a distance of `similarity` from `key` become transparent; colours `smooth`
/// farther away keep their alpha.
pub fn pack(key: [u8; 3], similarity: f64, smooth: f64) -> [u32; 8] {
    let chroma = WEIGHTS.map(|weights| weights.iter().zip(key).map(|(weight, v)| weight * i32::from(v)).sum::<i32>());
    let gone = (similarity * UNIT).powi(2).floor();
    let root = gone.sqrt().round();
    let over = gone - root * root;
    let (start, width) = ((similarity * UNIT).round(), (smooth * UNIT).round());
    let width = if smooth > 0.0 { width.max(1.0) as u32 } else { 0 };
    let shift = (u32::BITS - width.leading_zeros()).saturating_sub(DISTANCE_BITS);
    let factor = (1_u32 << 31).div_ceil((width >> shift).max(1));
    let signed = |v: i32| v.cast_unsigned();
    let [root, over, start] = [root, over, start].map(|v| signed(v as i32));
    [signed(chroma[0]), signed(chroma[1]), root, over, start, width, shift, factor]
}

/// Number of pixels that are tested together.
const AT_ONCE: usize = 32;

fn row(args: &RowArgs<'_>, pixels: &mut [Pixel]) {
    let key = &args.frame;
    let chroma = [key.int(0) as f32, key.int(1) as f32];
    let root = f64::from(key.int(2));
    let gone = root * root + f64::from(key.int(3));
    let soft = Soft { start: key.int(4), width: key.int(5), shift: key.words[6], factor: key.words[7] };
    key.level.run(KeyedPixels { pixels, chroma, gone, soft });
}

/// A soft edge.
#[derive(Clone, Copy)]
struct Soft {
    start: i32,
    width: i32,
    shift: u32,
    factor: u32,
}

struct KeyedPixels<'a> {
    pixels: &'a mut [Pixel],
    chroma: [f32; 2],
    gone: f64,
    soft: Soft,
}

/// Adding this number to a double rounds the double to an integer, which is then in the lower bits.
const UNITS: f64 = 4_503_599_627_370_496.0;

impl Loop for KeyedPixels<'_> {
    /// Most pixels are far from the key, so roots are computed only for groups that contain a pixel on the soft edge or
    /// nearer to the key.
    #[inline(always)]
    fn run(self) {
        let KeyedPixels { pixels, chroma, gone, soft } = self;
        let end = f64::from(soft.start) + f64::from(soft.width) + 1.0;
        let kept = if soft.width == 0 { gone } else { end * end };
        let is_kept = |square: &f64| *square > kept;
        let mut squares = [0.0; AT_ONCE];
        for pixels in pixels.chunks_mut(AT_ONCE) {
            for (pixel, square) in pixels.iter().zip(&mut squares) {
                *square = distance_squared(u32::from_le_bytes(*pixel), chroma);
            }
            let squares = &squares[..pixels.len()];
            if squares.iter().fold(true, |all, square| all & is_kept(square)) {
                continue;
            }
            if soft.width == 0 {
                for (pixel, square) in pixels.iter_mut().zip(squares) {
                    let mask = if *square > gone { u32::MAX } else { 0x00ff_ffff };
                    *pixel = (u32::from_le_bytes(*pixel) & mask).to_le_bytes();
                }
            } else {
                for (pixel, square) in pixels.iter_mut().zip(squares) {
                    let word = u32::from_le_bytes(*pixel);
                    // The root is never halfway between two integers, because its square is an integer.
                    let root = ((square.sqrt() + UNITS).to_bits() as u32).cast_signed();
                    let beyond = (root - soft.start).clamp(0, soft.width).cast_unsigned();
                    let kept = (((beyond >> soft.shift) * soft.factor) >> 15).min(FULL);
                    let alpha = ((word >> 24) * kept + FULL / 2) >> 16;
                    *pixel = ((word & 0x00ff_ffff) | (alpha << 24)).to_le_bytes();
                }
            }
        }
    }
}

/// The squared distance between the chroma of a pixel and the key's chroma. A 32-bit float holds every weighted sum of
/// levels exactly, and a double holds every square exactly.
#[inline(always)]
fn distance_squared(word: u32, chroma: [f32; 2]) -> f64 {
    let levels = [word, word >> 8, word >> 16].map(|v| (v & 255).cast_signed() as f32);
    let along = |axis: usize| {
        let [red, green, blue] = WEIGHTS[axis].map(|weight| weight as f32);
        f64::from(red * levels[0] + green * levels[1] + blue * levels[2] - chroma[axis])
    };
    let (x, y) = (along(0), along(1));
    x * x + y * y
}

/// A hard edge, a very narrow soft edge, and wider soft edges.
fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    let smooths = [0.0, 0.000_1, 0.2, 1.5, chance.part()];
    let keyed = smooths.map(|smooth| {
        let [r, g, b, _] = chance.color();
        KernelSample::new(size, &pack([r, g, b], chance.between(0.0, 0.7), smooth))
    });
    keyed.to_vec()
}
