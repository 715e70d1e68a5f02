//! `over`: one colour composited over another, with straight alpha.
//!
//! This module is not a pixel function but arithmetic that `overlay`, `glyphs` and `mix` share. `over.wgsl` is
//! prepended to the WGSL of these functions.
//!
//! Opacity is rounded to 1/4080, which gives sixteen steps per level of alpha. All further results are exact fractions
//! that are rounded once, half up. For an opacity s, a colour ct over a pixel with colour cb and alpha b gives the
//! alpha o = s + b (1 - s) and the colour (ct s + cb b (1 - s)) / o, or 0 if o is 0. No number exceeds 31 bits.

use crate::picture::Pixel;

/// Full opacity.
const FULL: i32 = 4080;

/// A factor of opacity in fixed point with 15 fraction bits, clamped to 0..=1.
pub(super) fn amount(factor: f64) -> u32 {
    (factor.clamp(0.0, 1.0) * 32768.0).round() as u32
}

/// The opacity in 1/4080: an 8-bit alpha times an [`amount`].
#[inline(always)]
pub(super) fn opacity(alpha: u8, amount: i32) -> i32 {
    (i32::from(alpha) * amount + 1024) >> 11
}

/// Composites the colour `top`, with opacity `s`, over a pixel.
#[inline(always)]
pub(super) fn over(below: Pixel, top: Pixel, s: i32) -> Pixel {
    let [alpha, opaque] = [i32::from(below[3]), 255];
    let each = |blend: &dyn Fn(i32, i32) -> i32, alpha: i32| {
        let [r, g, b] = std::array::from_fn(|i| blend(i32::from(top[i]), i32::from(below[i])) as u8);
        [r, g, b, alpha as u8]
    };
    if alpha == opaque {
        // An opaque pixel is the common case. It needs no division by a variable, because 255 cancels in the fraction.
        return each(&|top, below| (top * s + below * (FULL - s) + FULL / 2) / FULL, opaque);
    }
    let rest = alpha * (FULL - s);
    let whole = 255 * s + rest;
    let n = whole.max(1);
    each(&|top, below| (2 * (top * (255 * s) + below * rest) + n) / (2 * n), (whole + FULL / 2) / FULL)
}

/// [`over`] for a row: the opacity is the alpha of `top` times `amount`.
#[inline(always)]
pub(super) fn over_row(below: &mut [Pixel], top: &[Pixel], amount: i32) {
    for (below, top) in below.chunks_mut(CHUNK).zip(top.chunks(CHUNK)) {
        if is_opaque(below) {
            over_opaque(below, top, amount);
        } else {
            over_any(below, top, amount);
        }
    }
}

/// Composites one colour over a row, with the coverage of each pixel in place of the colour's alpha. Pixels without
/// coverage keep their value, even if they are transparent.
#[inline(always)]
pub(super) fn over_covered(below: &mut [Pixel], color: Pixel, cover: &[u8], amount: i32) {
    let mut top = [[0; 4]; CHUNK];
    for (below, cover) in below.chunks_mut(CHUNK).zip(cover.chunks(CHUNK)) {
        if cover.iter().fold(0, |any, cover| any | cover) == 0 {
            continue;
        }
        if is_opaque(below) {
            top.iter_mut().zip(cover).for_each(|(top, cover)| *top = [color[0], color[1], color[2], *cover]);
            over_opaque(below, &top, amount);
        } else {
            for (below, cover) in below.iter_mut().zip(cover).filter(|(_, cover)| **cover > 0) {
                *below = over(*below, color, opacity(*cover, amount));
            }
        }
    }
}

#[inline(always)]
fn is_opaque(pixels: &[Pixel]) -> bool {
    pixels.iter().fold(u32::MAX, |all, p| all & u32::from_le_bytes(*p)) >> 24 == 255
}

/// Number of pixels that are tested together. If all of them are opaque, the loop without divisions is chosen.
const CHUNK: usize = 64;

/// From this number on, consecutive 32-bit floats are consecutive integers.
const UNITS: f32 = 8_388_608.0;

/// Uses 32-bit floats, because every generation of vector instructions can multiply them. Every number is an integer
/// below 2^24, which a float holds exactly. After 2^23 is added, the lower bits of the float are the integer.
#[inline(always)]
fn over_opaque(below: &mut [Pixel], top: &[Pixel], amount: i32) {
    let amount = amount as f32;
    for (below, top) in below.iter_mut().zip(top) {
        let (under, over) = (u32::from_le_bytes(*below), u32::from_le_bytes(*top));
        let float = |word: u32, shift: u32| ((word >> shift) & 255).cast_signed() as f32;
        let s = ((float(over, 24) * amount + (UNITS + 1024.0)).to_bits() >> 11) & 0xfff;
        let s = s.cast_signed() as f32;
        let rest = FULL as f32 - s;
        let blend = |shift: u32| {
            let sum = float(over, shift) * s + float(under, shift) * rest + (UNITS + 2040.0);
            in_255ths((sum.to_bits() >> 4) & 0xffff)
        };
        *below = (blend(0) | (blend(8) << 8) | (blend(16) << 16) | 0xff00_0000).to_le_bytes();
    }
}

/// Vectors have no integer division. A quotient of 32-bit floats, rounded to the nearest integer, is either the
/// quotient of the integer division or one too great. It is one too great if the remainder is negative.
#[inline(always)]
fn over_any(below: &mut [Pixel], top: &[Pixel], amount: i32) {
    for (below, top) in below.iter_mut().zip(top) {
        let (under, over) = (u32::from_le_bytes(*below), u32::from_le_bytes(*top));
        let level = |word: u32, shift: u32| ((word >> shift) & 255).cast_signed();
        let s = (level(over, 24) * amount + 1024) >> 11;
        let rest = level(under, 24) * (FULL - s);
        let whole = 255 * s + rest;
        let n = whole.max(1);
        let per = 1.0 / (2 * n) as f32;
        let blend = |shift: u32| {
            let sum = 2 * (level(over, shift) * (255 * s) + level(under, shift) * rest) + n;
            let guess = ((sum as f32 * per + UNITS).to_bits() & 0x1ff).cast_signed();
            (guess + ((sum - guess * 2 * n) >> 31)).cast_unsigned()
        };
        let alpha = in_255ths((whole + FULL / 2).cast_unsigned() >> 4);
        *below = (blend(0) | (blend(8) << 8) | (blend(16) << 16) | (alpha << 24)).to_le_bytes();
    }
}

/// v / 255 for 16-bit v. Callers compute x / 4080 as (x / 16) / 255.
#[inline(always)]
fn in_255ths(v: u32) -> u32 {
    (v + 1 + (v >> 8)) >> 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loops_over_rows_equal_one_pixel_at_a_time() {
        let mut state = 1_u32;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            state.to_le_bytes()
        };
        for opaque in [true, false] {
            for factor in [0.0, 0.31, 0.5, 1.0] {
                let amount = amount(factor).cast_signed();
                let mut below: Vec<Pixel> = (0..5000).map(|_| next()).collect();
                below.iter_mut().filter(|_| opaque).for_each(|p| p[3] = 255);
                let mut top: Vec<Pixel> = (0..5000).map(|_| next()).collect();
                top.iter_mut().step_by(7).for_each(|p| p[3] = 0);
                below.iter_mut().skip(1).step_by(5).filter(|_| !opaque).for_each(|p| p[3] = 0);
                let one = |(b, t): (&Pixel, &Pixel)| over(*b, *t, opacity(t[3], amount));
                let wanted: Vec<Pixel> = below.iter().zip(&top).map(one).collect();
                over_row(&mut below, &top, amount);
                assert_eq!(below, wanted);
            }
        }
    }

    #[test]
    fn opaque_pixels_cover_and_invisible_ones_on_invisible_ones_are_zero() {
        assert_eq!(over([1, 2, 3, 0], [9, 8, 7, 255], FULL), [9, 8, 7, 255]);
        assert_eq!(over([1, 2, 3, 4], [9, 8, 7, 255], 0), [1, 2, 3, 4]);
        assert_eq!(over([1, 2, 3, 0], [9, 8, 7, 255], 0), [0, 0, 0, 0]);
        assert_eq!(opacity(255, amount(1.0).cast_signed()), FULL);
        assert_eq!(opacity(255, amount(0.5).cast_signed()), FULL / 2);
    }
}
