//! Mixes of two rows of values by an amount with fourteen fraction bits.
//!
//! The result is `a + (((b - a) t + 8192) >> 14)` for t in 0..=16384. The loop uses an instruction that multiplies and
//! rounds, which compilers do not generate by themselves. The caller mixes the values that are left over.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "functions that are compiled for a level can only be called in `unsafe` blocks")
)]
#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_variables, reason = "other architectures have no level above the baseline")
)]

use super::Level;

/// Mixes whole vectors of values into `a`, from the left, and returns the rest of both rows.
pub(crate) fn mix<'a, 'b>(level: Level, a: &'a mut [u8], b: &'b [u8], t: i32) -> (&'a mut [u8], &'b [u8]) {
    // The instruction computes `(x y + 2^14) >> 15`. For x = a - b and y = -2t, which fit 16 bits, this equals
    // `((b - a) t + 8192) >> 14`.
    let twice = (-2 * t.clamp(0, 1 << 14)) as i16;
    match level.0 {
        super::LevelKind::Baseline => (a, b),
        // SAFETY: a level exists only if `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx2 | super::LevelKind::Avx512 => unsafe { x86::avx2::mix(a, b, twice) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx512Bytes => unsafe { x86::avx512::mix(a, b, twice) },
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    super::super::wide::both_widths! { v;
        fn mix<'a, 'b>(a: &'a mut [u8], b: &'b [u8], twice: i16) -> (&'a mut [u8], &'b [u8]) {
            let (zero, twice) = (v::zero(), v::all_16(twice));
            let ((groups, rest), (others, other_rest)) = (a.as_chunks_mut(), b.as_chunks());
            for (to, other) in groups.iter_mut().zip(others) {
                let (a, b) = (v::load(to), v::load(other));
                let (low, high) = (v::unpack_low_8(a, zero), v::unpack_high_8(a, zero));
                let low_apart = v::sub_16(low, v::unpack_low_8(b, zero));
                let high_apart = v::sub_16(high, v::unpack_high_8(b, zero));
                let low = v::add_16(low, v::mul_round_16(low_apart, twice));
                let high = v::add_16(high, v::mul_round_16(high_apart, twice));
                v::store(to, v::pack_16(low, high));
            }
            (rest, other_rest)
        }
    }
}
