//! Conversions of rows: half floats (f16) to floats and back, and floats to 32-bit integers. Compilers do not vectorise
//! these conversions. Conversions to narrower integers are not in this file; they clamp the floats first, and compilers
//! vectorise them.
//!
//! Invariant: the results equal those of `as` and `half` on every machine. Halves round to nearest even. Integers
//! truncate and saturate; NaN becomes 0.

use half::f16;
use vramp_kernels::vectorised;

/// Lanes of the widest vectors.
#[cfg(target_arch = "x86_64")]
const LANES: usize = 16;

/// Converts halves to floats, which is exact.
pub(crate) fn floats_of_halves(from: &[f16], to: &mut [f32]) {
    assert_eq!(from.len(), to.len(), "as many floats as halves");
    #[cfg(target_arch = "x86_64")]
    if let pulp::Arch::V4(set) = pulp::Arch::new() {
        return wide(
            from,
            to,
            |half| widened(half.to_bits()),
            |from, to| {
                pulp::x86::V4::vectorize(set, || {
                    for (from, to) in from.iter().zip(to) {
                        let halves = pulp::cast(from.map(f16::to_bits));
                        *to = pulp::cast(set.avx512f._mm512_cvtph_ps(halves));
                    }
                });
            },
        );
    }
    vectorised!(for (from, to) in from.iter().zip(to.iter_mut()) {
        *to = widened(from.to_bits());
    });
}

pub(crate) fn halves_of_floats(from: &[f32], to: &mut [f16]) {
    assert_eq!(from.len(), to.len(), "as many halves as floats");
    #[cfg(target_arch = "x86_64")]
    if let pulp::Arch::V4(set) = pulp::Arch::new() {
        use std::arch::x86_64::{_MM_FROUND_NO_EXC, _MM_FROUND_TO_NEAREST_INT};
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        return wide(
            from,
            to,
            |float| f16::from_bits(narrowed(float)),
            |from, to| {
                pulp::x86::V4::vectorize(set, || {
                    for (from, to) in from.iter().zip(to) {
                        let halves: [u16; LANES] =
                            pulp::cast(set.avx512f._mm512_cvtps_ph::<NEAREST>(pulp::cast(*from)));
                        *to = halves.map(f16::from_bits);
                    }
                });
            },
        );
    }
    vectorised!(for (from, to) in from.iter().zip(to.iter_mut()) {
        *to = f16::from_bits(narrowed(*from));
    });
}

/// Converts floats to signed integers. A word of `from` holds the bits of a float, and a word of `to` those of an
/// integer.
pub(crate) fn signed_of_floats(from: &[u32], to: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if let pulp::Arch::V4(set) = pulp::Arch::new() {
        use std::arch::x86_64::{_CMP_GE_OQ, _CMP_ORD_Q};
        let avx = set.avx512f;
        return wide(from, to, signed_of_float, |from, to| {
            pulp::x86::V4::vectorize(set, || {
                for (from, to) in from.iter().zip(to) {
                    // The instruction turns values that do not fit, and NaN, into the minimum. So large values are
                    // replaced by the maximum, and NaN by 0.
                    let floats = pulp::cast(*from);
                    let large = avx._mm512_cmp_ps_mask::<_CMP_GE_OQ>(floats, avx._mm512_set1_ps(2_147_483_648.0));
                    let number = avx._mm512_cmp_ps_mask::<_CMP_ORD_Q>(floats, floats);
                    let whole = avx._mm512_cvttps_epi32(floats);
                    let whole = avx._mm512_mask_mov_epi32(whole, large, avx._mm512_set1_epi32(i32::MAX));
                    *to = pulp::cast(avx._mm512_maskz_mov_epi32(number, whole));
                }
            });
        });
    }
    from.iter().zip(to).for_each(|(from, to)| *to = signed_of_float(*from));
}

/// Converts floats to unsigned integers. A word of `from` holds the bits of a float.
pub(crate) fn unsigned_of_floats(from: &[u32], to: &mut [u32]) {
    #[cfg(target_arch = "x86_64")]
    if let pulp::Arch::V4(set) = pulp::Arch::new() {
        let avx = set.avx512f;
        return wide(from, to, unsigned_of_float, |from, to| {
            pulp::x86::V4::vectorize(set, || {
                for (from, to) in from.iter().zip(to) {
                    // `max` returns the second operand for NaN, and values that do not fit become the maximum.
                    let floats = avx._mm512_max_ps(pulp::cast(*from), avx._mm512_set1_ps(0.0));
                    *to = pulp::cast(avx._mm512_cvttps_epu32(floats));
                }
            });
        });
    }
    from.iter().zip(to).for_each(|(from, to)| *to = unsigned_of_float(*from));
}

/// Converts whole vectors with `vectors`, and each remaining value with `one`.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn wide<F: Copy, T>(
    from: &[F],
    to: &mut [T],
    one: impl Fn(F) -> T,
    vectors: impl FnOnce(&[[F; LANES]], &mut [[T; LANES]]),
) {
    assert_eq!(from.len(), to.len(), "as many results as values");
    let (rows, rest) = from.as_chunks::<LANES>();
    let (into, last) = to.as_chunks_mut::<LANES>();
    vectors(rows, into);
    rest.iter().zip(last).for_each(|(from, to)| *to = one(*from));
}

fn signed_of_float(bits: u32) -> u32 {
    (f32::from_bits(bits) as i32).cast_unsigned()
}

fn unsigned_of_float(bits: u32) -> u32 {
    f32::from_bits(bits) as u32
}

/// The bits of the nearest half, by integer arithmetic, so that loops that call this function vectorise on any machine.
#[inline(always)]
fn narrowed(value: f32) -> u16 {
    let bits = value.to_bits();
    let size = bits & 0x7fff_ffff;
    let normal = (size.wrapping_add(0xfff + ((size >> 13) & 1)).wrapping_sub(0x3800_0000)) >> 13;
    // The last bit of a float near 0.5 has the weight of the smallest subnormal half, so the addition rounds to a
    // multiple of that weight.
    let tiny = (value.abs() + 0.5).to_bits().wrapping_sub(0x3f00_0000);
    let half = if size < 0x3880_0000 { tiny } else { normal };
    let half = if size >= 0x477f_f000 { 0x7c00 } else { half };
    let half = if size > 0x7f80_0000 { 0x7e00 | (size >> 13) & 0x3ff } else { half };
    (((bits >> 16) & 0x8000) | half) as u16
}

#[inline(always)]
fn widened(half: u16) -> f32 {
    let size = u32::from(half & 0x7fff);
    let normal = (size << 13).wrapping_add(0x3800_0000);
    let tiny = (size as f32 * (1.0 / 16_777_216.0)).to_bits();
    let bits = if size < 0x400 { tiny } else { normal };
    let bits = if size >= 0x7c00 { size << 13 | 0x7f80_0000 } else { bits };
    let quiet = if size > 0x7c00 { 0x40_0000 } else { 0 };
    f32::from_bits(u32::from(half & 0x8000) << 16 | bits | quiet)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn every_half() -> Vec<f16> {
        (0..=u16::MAX).map(f16::from_bits).collect()
    }

    /// Every half as a float, the midpoints between neighbouring halves, the floats next to all of these, and large
    /// floats.
    fn floats() -> Vec<f32> {
        let mut floats: Vec<f32> = every_half().iter().map(|half| half.to_f32()).collect();
        let between: Vec<f32> = floats.windows(2).map(|pair| f32::midpoint(pair[0], pair[1])).collect();
        floats.extend(between);
        let bits: Vec<u32> = floats.iter().map(|float| float.to_bits()).collect();
        floats.extend(bits.iter().flat_map(|bits| [bits.wrapping_sub(1), bits.wrapping_add(1)]).map(f32::from_bits));
        let large = [65519.9, 65520.0, 2.147_483_6e9, 2.147_483_7e9, 4.294_967e9, 4.294_967_3e9, 3e38, f32::INFINITY];
        floats.extend(large.into_iter().flat_map(|float| [float, -float]));
        floats
    }

    #[test]
    fn halves_are_floats_and_back_as_half_has_it() {
        let halves = every_half();
        let mut wide = vec![0.0; halves.len()];
        floats_of_halves(&halves, &mut wide);
        for (half, wide) in halves.iter().zip(&wide) {
            assert_eq!(wide.to_bits(), half.to_f32().to_bits(), "{:x}", half.to_bits());
            assert_eq!(widened(half.to_bits()).to_bits(), wide.to_bits(), "{:x}, plainly", half.to_bits());
        }
        let floats = floats();
        let mut narrow = vec![f16::ZERO; floats.len()];
        halves_of_floats(&floats, &mut narrow);
        for (float, narrow) in floats.iter().zip(&narrow) {
            assert_eq!(narrow.to_bits(), f16::from_f32(*float).to_bits(), "{float:e}");
            assert_eq!(narrowed(*float), narrow.to_bits(), "{float:e}, plainly");
        }
    }

    #[test]
    fn floats_are_whole_numbers_as_rust_has_it() {
        let floats: Vec<u32> = floats().iter().map(|float| float.to_bits()).collect();
        let (mut signed, mut unsigned) = (vec![9; floats.len()], vec![9; floats.len()]);
        signed_of_floats(&floats, &mut signed);
        unsigned_of_floats(&floats, &mut unsigned);
        for (at, bits) in floats.iter().enumerate() {
            let float = f32::from_bits(*bits);
            assert_eq!(signed[at].cast_signed(), float as i32, "{float:e}");
            assert_eq!(unsigned[at], float as u32, "{float:e}");
        }
    }
}
