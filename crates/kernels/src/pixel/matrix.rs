//! `matrix`: a colour matrix in fixed point. Each channel is a weighted sum of all four channels, plus a constant.
//!
//! Factors have 12 fraction bits, so rounding them changes a sum by less than an eighth of a level. [`pack`] refuses
//! matrices whose sums could overflow 32 bits. `color` computes the matrices.

use vramp_plan::Size;

use crate::function::{PixelFn, RowArgs};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::{self, Loop};

use super::color::{self, ColorMatrix};

pub static MATRIX: PixelFn = PixelFn {
    name: "matrix",
    wgsl: include_str!("matrix.wgsl"),
    words: 20,
    row,
    samples: Some(samples),
    ..PixelFn::PLAIN
};

/// A factor of one in fixed point.
pub const ONE: f64 = 4096.0;

/// The parameter words of a matrix. Returns `None` if a sum could overflow 32 bits, or if a factor is not a number.
pub fn pack(m: &ColorMatrix) -> Option<[u32; 20]> {
    // Upper bound of what packing adds to a sum: half a level, so that the shift rounds; the rounding errors of four
    // factors, at most 255 / 2 each; and the rounding error of the constant, less than 1.
    const ROUNDING: f64 = ONE / 2.0 + 4.0 * 255.0 / 2.0 + 1.0;
    // The shader multiplies factors of 24 bits.
    const LARGEST: f64 = 8_388_607.0 / ONE;
    let mut words = [0; 20];
    for (row, five) in m.chunks_exact(5).enumerate() {
        let most = five.iter().map(|f| f.abs() * 255.0 * ONE).sum::<f64>() + ROUNDING;
        if most.is_nan() || most >= f64::from(i32::MAX) || five[..4].iter().any(|f| f.abs() > LARGEST) {
            return None;
        }
        for (at, factor) in five.iter().enumerate() {
            let fixed = if at == 4 { factor * 255.0 * ONE + ONE / 2.0 } else { factor * ONE };
            words[5 * row + at] = (fixed.round() as i32).cast_unsigned();
        }
    }
    Some(words)
}

fn row(args: &RowArgs<'_>, pixels: &mut [Pixel]) {
    let m: [i32; 20] = std::array::from_fn(|i| args.frame.int(i));
    let pixels = match simd::matrix::Pairs::of(&m) {
        Some(pairs) => simd::matrix::sum(args.frame.level, pixels, &pairs),
        None => pixels,
    };
    let alpha_only = [0, 0, 0, ONE as i32, ONE as i32 / 2];
    if [m[3], m[8], m[13]] == [0; 3] && m[15..] == alpha_only && fits_floats(&m) {
        args.frame.level.run(Colors { pixels, m: &m });
    } else {
        args.frame.level.run(FullMatrix { pixels, m: &m });
    }
}

// The two loops below work on packed pixels, one channel at a time, in 32-bit lanes. Compilers vectorise such loops
// well.

/// From this number to twice this number, consecutive 32-bit floats are consecutive integers.
const UNITS: f32 = 8_388_608.0;

/// Whether `sum + UNITS` is exact in a 32-bit float for every sum that the matrix can give.
fn fits_floats(m: &[i32; 20]) -> bool {
    m.chunks_exact(5).take(3).all(|row| {
        let (factors, constant) = (row[..4].iter().map(|f| i64::from(f.abs())).sum::<i64>(), i64::from(row[4].abs()));
        255 * factors + constant < UNITS as i64
    })
}

/// For matrices that compute red, green and blue from each other and keep alpha, as saturation and hue do. The loop
/// uses floats because every generation of vector instructions can multiply and clamp them. The floats hold the integer
/// sums exactly ([`fits_floats`]). Without SSE4.1, 1920x1080 takes 2.4 ms with this loop instead of 4.4 ms.
struct Colors<'a> {
    pixels: &'a mut [Pixel],
    m: &'a [i32; 20],
}

impl Loop for Colors<'_> {
    #[inline(always)]
    fn run(self) {
        let m = self.m.map(|v| v as f32);
        let constant = [m[4] + UNITS, m[9] + UNITS, m[14] + UNITS];
        for pixel in self.pixels {
            let word = u32::from_le_bytes(*pixel);
            let [r, g, b] = [word, word >> 8, word >> 16].map(|v| (v & 255).cast_signed() as f32);
            let sum = |i: usize| {
                let sum = m[5 * i] * r + m[5 * i + 1] * g + m[5 * i + 2] * b + constant[i];
                // Above UNITS, the lower bits of the float are the integer.
                (sum.clamp(UNITS, UNITS + (256.0 * ONE as f32 - 1.0)).to_bits() >> 12) & 255
            };
            *pixel = (sum(0) | (sum(1) << 8) | (sum(2) << 16) | (word & 0xff00_0000)).to_le_bytes();
        }
    }
}

/// For matrices that compute every channel from all four.
struct FullMatrix<'a> {
    pixels: &'a mut [Pixel],
    m: &'a [i32; 20],
}

impl Loop for FullMatrix<'_> {
    #[inline(always)]
    fn run(self) {
        let m = self.m;
        for pixel in self.pixels {
            let word = u32::from_le_bytes(*pixel);
            let c = [word, word >> 8, word >> 16, word >> 24].map(|v| (v & 255).cast_signed());
            let sum = |k: usize| level(m[k] * c[0] + m[k + 1] * c[1] + m[k + 2] * c[2] + m[k + 3] * c[3] + m[k + 4]);
            *pixel = (sum(0) | (sum(5) << 8) | (sum(10) << 16) | (sum(15) << 24)).to_le_bytes();
        }
    }
}

#[inline(always)]
fn level(sum: i32) -> u32 {
    (sum >> 12).clamp(0, 255).cast_unsigned()
}

/// A hue rotation, and random matrices. Some of the random factors exceed 16 bits in fixed point.
fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    let turned = color::hue(f64::from(chance.below(360)));
    let [near, far] = [2.0, 40.0].map(|most| turned.map(|factor| factor + chance.between(-most, most)));
    let drawn = [color::saturation(chance.between(-1.0, 2.0)), turned, near, far];
    drawn.iter().map(|m| KernelSample::new(size, &pack(m).expect("sums of small factors fit"))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::color::{IDENTITY, hue, saturation};
    use super::*;

    /// Checks the corners of the colour cube, where sums are greatest and least.
    fn sums_fit(words: &[u32; 20]) -> bool {
        let int = |i: usize| i64::from(words[i].cast_signed());
        (0..4).all(|row| {
            let of = |sign: i64| (0..4).map(|i| (sign * int(5 * row + i)).max(0) * 255).sum::<i64>();
            i32::try_from(of(1) + int(5 * row + 4)).is_ok() && i32::try_from(int(5 * row + 4) - of(-1)).is_ok()
        })
    }

    #[test]
    fn what_is_accepted_cannot_overflow_and_what_could_is_refused() {
        for factor in [1.0, -3.5, 411.1, 411.205, -411.205, 411.206, -411.206, 1e300, f64::INFINITY, f64::NAN] {
            let packed = pack(&[factor; 20]);
            assert_eq!(packed.is_some(), factor.abs() <= 411.2054, "{factor}");
            assert!(packed.is_none_or(|words| sums_fit(&words)), "{factor}");
        }
        for (factor, is_accepted) in [(2047.9, true), (-2047.9, true), (2048.1, false), (-2048.1, false)] {
            let mut one = [0.0; 20];
            one[7] = factor;
            assert_eq!(pack(&one).is_some(), is_accepted, "{factor}");
        }
    }

    #[test]
    fn the_loop_for_colours_equals_the_one_for_all_channels() {
        let mut one: Vec<Pixel> = (0..5000_u32).map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
        let mut other = one.clone();
        for m in [IDENTITY, saturation(0.7), saturation(-2.0), hue(100.0)] {
            let m = pack(&m).unwrap().map(u32::cast_signed);
            assert!(fits_floats(&m));
            Colors { pixels: &mut one, m: &m }.run();
            FullMatrix { pixels: &mut other, m: &m }.run();
            assert_eq!(one, other);
        }
    }
}
