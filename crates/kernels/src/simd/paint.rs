//! Computes many pixels at once from luma and chroma, in 16-bit numbers, with even and odd pixels in separate vectors.
//!
//! Every pixel equals the result of `YuvToRgb::pixel`. The caller computes the pixels that are left over, and rows
//! shorter than a vector.
//!
//! The loops pass no closures to other functions. Such calls would not be inlined, because the callee is compiled for
//! the baseline: with closures, a frame in i420 took 4.8 instead of 0.7 ms.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "functions that are compiled for a level can only be called in `unsafe` blocks")
)]
#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_variables, dead_code, reason = "other architectures have no level above the baseline")
)]

use crate::picture::Pixel;
use crate::stored::way::YuvToRgb;

use super::Level;

/// The chroma of a row, as u and v.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ChromaRow<'a> {
    /// Neutral everywhere.
    None,
    /// As wide as luma.
    Full([&'a [u8]; 2]),
    /// Half as wide as luma, with one more element at each end, and sited between an even and an odd pixel. Values are
    /// distances from the middle in 1/64 of a level.
    Halves([&'a [i16]; 2]),
    /// Like `Halves`, but sited on even pixels, in 1/128 of a level.
    Firsts([&'a [i16]; 2]),
}

/// The loops multiply luma by this number and by [`luma_factor`], instead of by 128 and by the factor of the matrix.
/// One instruction selects every second luma value and multiplies it, but only by a number below 128.
const LUMA_STEP: i16 = 96;

/// 4/3 of the factor of luma, because [`LUMA_STEP`] is 3/4 of 128.
fn luma_factor(up: &YuvToRgb) -> i16 {
    ((4 * i32::from(up.luma) + 2) / 3) as i16
}

/// Computes whole vectors of pixels, from the left. Returns the number of pixels that were computed: none, all, or all
/// but the last.
pub(crate) fn paint(level: Level, up: &YuvToRgb, luma: &[u8], chroma: ChromaRow<'_>, into: &mut [Pixel]) -> usize {
    match level.0 {
        super::LevelKind::Baseline => 0,
        // SAFETY: a level exists only if `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx2 | super::LevelKind::Avx512 => unsafe { x86::avx2::paint(up, luma, chroma, into) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx512Bytes => unsafe { x86::avx512::paint(up, luma, chroma, into) },
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    super::super::wide::both_widths! { v;
        use std::hint::black_box;
        use crate::picture::Pixel;
        use crate::simd::paint::ChromaRow;
        use crate::simd::paint::LUMA_STEP;
        use crate::simd::paint::luma_factor;
        use crate::stored::way::YuvToRgb;

        fn paint(up: &YuvToRgb, luma: &[u8], chroma: ChromaRow<'_>, into: &mut [Pixel]) -> usize {
            // The last vector starts at the last even pixel from which it fits, so some pixels are computed twice.
            let Some(last) = luma.len().checked_sub(v::BYTES) else { return 0 };
            let last = last & !1;
            let factors = factors(up);
            // One loop for each kind of chroma, because a `match` within the loop is not moved out of it.
            match chroma {
                ChromaRow::None => {
                    let mut at = 0;
                    while at <= last {
                        block(luma, [[v::zero(); 2]; 2], &factors, into, at);
                        at = after(at, last);
                    }
                }
                ChromaRow::Full([u, w]) => {
                    let mut at = 0;
                    while at <= last {
                        block(luma, [full(u, at), full(w, at)], &factors, into, at);
                        at = after(at, last);
                    }
                }
                ChromaRow::Halves([u, w]) => {
                    // A constant would become two additions, which take 1.5 cycles more per 64 pixels.
                    let three = v::all_16(black_box(3));
                    let mut at = 0;
                    while at <= last {
                        block(luma, [halves(u, at / 2, three), halves(w, at / 2, three)], &factors, into, at);
                        at = after(at, last);
                    }
                }
                ChromaRow::Firsts([u, w]) => {
                    let mut at = 0;
                    while at <= last {
                        block(luma, [firsts(u, at / 2), firsts(w, at / 2)], &factors, into, at);
                        at = after(at, last);
                    }
                }
            }
            last + v::BYTES
        }

        /// Where the next vector starts. After the last vector, this is beyond `last`.
        #[inline]
        fn after(at: usize, last: usize) -> usize {
            if at == last { last + 1 } else { (at + v::BYTES).min(last) }
        }

        /// Black, then the factors of luma, of v for red, of u and v for green, and of u for blue.
        #[inline]
        fn factors(up: &YuvToRgb) -> [v::Vector; 6] {
            [
                v::all_16(LUMA_STEP * up.black),
                v::all_16(luma_factor(up)),
                v::all_16(up.red_v),
                v::all_16(up.green_u),
                v::all_16(up.green_v),
                v::all_16(up.blue_u),
            ]
        }

        #[inline]
        fn block(luma: &[u8], [u, w]: [[v::Vector; 2]; 2], factors: &[v::Vector; 6], into: &mut [Pixel], at: usize) {
            let y = v::load(luma[at..].first_chunk().expect("a vector fits"));
            let even = colours(v::madd_8(y, v::all_16(LUMA_STEP)), u[0], w[0], factors);
            let odd = colours(v::madd_8(y, v::all_16(LUMA_STEP << 8)), u[1], w[1], factors);
            let pixels = into[at..].first_chunk_mut::<{ v::BYTES }>().expect("a pixel for each luma");
            for (to, v) in pixels.as_flattened_mut().as_chunks_mut().0.iter_mut().zip(v::opaque(even, odd)) {
                v::store(to, v);
            }
        }

        /// Chroma of even and of odd pixels, as distances from the middle, scaled to 16 bits.
        #[inline]
        fn full(plane: &[u8], at: usize) -> [v::Vector; 2] {
            let c = v::load(plane[at..].first_chunk().expect("as wide as luma"));
            let middle = v::all_16(i16::MIN);
            let upper = v::all_16(-256);
            [v::xor(v::shift_left_16(c, 8), middle), v::xor(v::and(c, upper), middle)]
        }

        #[inline]
        fn halves(plane: &[i16], at: usize, three: v::Vector) -> [v::Vector; 2] {
            let own = plane[at..].first_chunk::<{ v::BYTES / 2 + 2 }>().expect("half as wide, and two more");
            let three = v::mul_low_16(v::load_signed_16(own[1..].first_chunk().expect("one fewer")), three);
            let even = v::add_16(three, v::load_signed_16(own.first_chunk().expect("two fewer")));
            let odd = v::add_16(three, v::load_signed_16(own[2..].first_chunk().expect("two fewer")));
            [even, odd]
        }

        #[inline]
        fn firsts(plane: &[i16], at: usize) -> [v::Vector; 2] {
            let own = plane[at..].first_chunk::<{ v::BYTES / 2 + 2 }>().expect("half as wide, and two more");
            let here = v::load_signed_16(own[1..].first_chunk().expect("one fewer"));
            let both = v::add_16(here, v::load_signed_16(own[2..].first_chunk().expect("two fewer")));
            [v::add_16(here, here), both]
        }

        /// Red, green and blue before clamping.
        #[inline]
        fn colours(y: v::Vector, u: v::Vector, w: v::Vector, f: &[v::Vector; 6]) -> [v::Vector; 3] {
            let y = v::mul_high_16(v::sub_16(y, f[0]), f[1]);
            let y = v::add_16(y, v::all_16(17));
            let red = v::add_16(y, v::mul_high_16(w, f[2]));
            let green = v::add_16(v::add_16(y, v::mul_high_16(u, f[3])), v::mul_high_16(w, f[4]));
            let blue = v::add_16(y, v::mul_high_16(u, f[5]));
            [v::shift_16(red, 5), v::shift_16(green, 5), v::shift_16(blue, 5)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored::Way;

    #[test]
    fn luma_in_smaller_steps_with_a_greater_factor_is_the_same() {
        for up in Way::ALL.map(Way::up) {
            for y in 0..=255 {
                let times = |step: i16, factor: i16| (i32::from(step * (y - up.black)) * i32::from(factor)) >> 16;
                assert_eq!(times(LUMA_STEP, luma_factor(up)), times(128, up.luma), "{y} {up:?}");
            }
        }
    }
}
