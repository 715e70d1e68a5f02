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
    /// Half as wide as luma, with one more element at each end. Values are multiplied by four.
    Halves([&'a [u16]; 2]),
    /// Like `Halves`, but sited on even pixels instead of between an even and an odd pixel.
    Firsts([&'a [u16]; 2]),
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
        use crate::picture::Pixel;
        use crate::simd::paint::ChromaRow;
        use crate::stored::way::YuvToRgb;

        fn paint(up: &YuvToRgb, luma: &[u8], chroma: ChromaRow<'_>, into: &mut [Pixel]) -> usize {
            // The last vector starts at the last even pixel from which it fits, so some pixels are computed twice.
            let Some(last) = luma.len().checked_sub(v::BYTES) else { return 0 };
            let last = last & !1;
            let factors = [up.luma, up.red_v, up.green_u, up.green_v, up.blue_u].map(|factor| v::all_16(factor));
            let black = v::all_16(up.black);
            let mut at = 0;
            loop {
                let y = v::permute_32(v::load(luma[at..].first_chunk().expect("a vector fits")), &v::APART);
                let [u, w] = match chroma {
                    ChromaRow::None => [[v::zero(); 2]; 2],
                    ChromaRow::Full([u, w]) => [full(u, at), full(w, at)],
                    ChromaRow::Halves([u, w]) => [halves(u, at / 2), halves(w, at / 2)],
                    ChromaRow::Firsts([u, w]) => [firsts(u, at / 2), firsts(w, at / 2)],
                };
                let even = colours(v::and(y, v::all_16(255)), u[0], w[0], black, &factors);
                let odd = colours(v::shift_unsigned_16(y, 8), u[1], w[1], black, &factors);
                let pixels = into[at..].first_chunk_mut::<{ v::BYTES }>().expect("a pixel for each luma");
                together(even, odd, pixels);
                if at == last {
                    return last + v::BYTES;
                }
                at = (at + v::BYTES).min(last);
            }
        }

        /// Chroma of even and of odd pixels, as distances from the middle, scaled to 16 bits.
        #[inline]
        fn full(plane: &[u8], at: usize) -> [v::Vector; 2] {
            let c = v::permute_32(v::load(plane[at..].first_chunk().expect("as wide as luma")), &v::APART);
            let middle = v::all_16(i16::MIN);
            let upper = v::all_16(-256);
            [v::xor(v::shift_left_16(c, 8), middle), v::xor(v::and(c, upper), middle)]
        }

        #[inline]
        fn halves(plane: &[u16], at: usize) -> [v::Vector; 2] {
            let own = plane[at..].first_chunk::<{ v::BYTES / 2 + 2 }>().expect("half as wide, and two more");
            let here = v::load_16(own[1..].first_chunk().expect("one fewer"));
            let three = v::add_16(v::add_16(here, here), here);
            let even = v::add_16(three, v::load_16(own.first_chunk().expect("two fewer")));
            let odd = v::add_16(three, v::load_16(own[2..].first_chunk().expect("two fewer")));
            let middle = v::all_16(i16::MIN);
            let (even, odd) = (v::xor(v::shift_left_16(even, 4), middle), v::xor(v::shift_left_16(odd, 4), middle));
            [v::permute_32(even, &v::APART), v::permute_32(odd, &v::APART)]
        }

        #[inline]
        fn firsts(plane: &[u16], at: usize) -> [v::Vector; 2] {
            let own = plane[at..].first_chunk::<{ v::BYTES / 2 + 2 }>().expect("half as wide, and two more");
            let here = v::load_16(own[1..].first_chunk().expect("one fewer"));
            let both = v::add_16(here, v::load_16(own[2..].first_chunk().expect("two fewer")));
            let middle = v::all_16(i16::MIN);
            let (even, odd) = (v::xor(v::shift_left_16(here, 6), middle), v::xor(v::shift_left_16(both, 5), middle));
            [v::permute_32(even, &v::APART), v::permute_32(odd, &v::APART)]
        }

        /// Red, green and blue before clamping.
        #[inline]
        fn colours(y: v::Vector, u: v::Vector, w: v::Vector, black: v::Vector, f: &[v::Vector; 5]) -> [v::Vector; 3] {
            let y = v::mul_high_16(v::shift_left_16(v::sub_16(y, black), 7), f[0]);
            let y = v::add_16(y, v::all_16(17));
            let red = v::add_16(y, v::mul_high_16(w, f[1]));
            let green = v::add_16(v::add_16(y, v::mul_high_16(u, f[2])), v::mul_high_16(w, f[3]));
            let blue = v::add_16(y, v::mul_high_16(u, f[4]));
            [v::shift_16(red, 5), v::shift_16(green, 5), v::shift_16(blue, 5)]
        }

        #[inline]
        fn together(even: [v::Vector; 3], odd: [v::Vector; 3], pixels: &mut [Pixel; v::BYTES]) {
            let (r, g) = (v::pack_16(even[0], odd[0]), v::pack_16(even[1], odd[1]));
            let b = v::pack_16(even[2], odd[2]);
            let alpha = v::all_16(-1);
            let (even_rg, odd_rg) = (v::unpack_low_8(r, g), v::unpack_high_8(r, g));
            let (even_ba, odd_ba) = (v::unpack_low_8(b, alpha), v::unpack_high_8(b, alpha));
            let (low, low_odd) = (v::unpack_low_16(even_rg, even_ba), v::unpack_low_16(odd_rg, odd_ba));
            let (high, high_odd) = (v::unpack_high_16(even_rg, even_ba), v::unpack_high_16(odd_rg, odd_ba));
            let four = [
                v::unpack_low_32(low, low_odd),
                v::unpack_high_32(low, low_odd),
                v::unpack_low_32(high, high_odd),
                v::unpack_high_32(high, high_odd),
            ];
            for (to, v) in pixels.as_flattened_mut().as_chunks_mut().0.iter_mut().zip(four) {
                v::store(to, v);
            }
        }
    }
}
