//! Mixes two rows of chroma with one or two pairs of weights, for planes of u and v and for interleaved u and v.
//!
//! The results are distances from the middle. Rows shorter than a vector are left to the caller.

#![cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "functions that are compiled for a level can only be called in `unsafe` blocks")
)]
#![cfg_attr(
    not(target_arch = "x86_64"),
    expect(unused_variables, reason = "other architectures have no level above the baseline")
)]

use super::Level;

/// The weights of the first and of the second row. Their sum is at most 128.
pub(crate) type RowWeights = [u8; 2];

/// Computes `weights[0] * (rows[0] - 128) + weights[1] * (rows[1] - 128)` with the first weights and, if `both`, with
/// the second weights. Returns false if the row is too short.
pub(crate) fn mix_plane(
    level: Level,
    rows: [&[u8]; 2],
    weights: [RowWeights; 2],
    into: [&mut [i16]; 2],
    both: bool,
) -> bool {
    match level.0 {
        super::LevelKind::Baseline => false,
        // SAFETY: a level exists only if `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx2 | super::LevelKind::Avx512 => unsafe { x86::avx2::mix_plane(rows, weights, into, both) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx512Bytes => unsafe { x86::avx512::mix_plane(rows, weights, into, both) },
    }
}

/// Like [`mix_plane`], for interleaved u and v. Weights and results are first those of u, then those of v.
pub(crate) fn mix_pairs(
    level: Level,
    rows: [&[u8]; 2],
    weights: [[RowWeights; 2]; 2],
    into: [[&mut [i16]; 2]; 2],
    both: bool,
) -> bool {
    match level.0 {
        super::LevelKind::Baseline => false,
        // SAFETY: a level exists only if `detect` has found all of its instructions.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx2 | super::LevelKind::Avx512 => unsafe { x86::avx2::mix_pairs(rows, weights, into, both) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        super::LevelKind::Avx512Bytes => unsafe { x86::avx512::mix_pairs(rows, weights, into, both) },
    }
}

/// Turns unsigned bytes into signed distances from 128, two at a time.
#[cfg(target_arch = "x86_64")]
const MIDDLES: i16 = i16::from_le_bytes([0x80; 2]);

#[cfg(target_arch = "x86_64")]
mod x86 {
    super::super::wide::both_widths! { v;
        use crate::simd::halves::MIDDLES;
        use crate::simd::halves::RowWeights;

        fn mix_plane(rows: [&[u8]; 2], weights: [RowWeights; 2], into: [&mut [i16]; 2], both: bool) -> bool {
            let ([near, far], [own, next]) = (rows, into);
            let count = near.len().min(far.len()).min(own.len()).min(next.len());
            let Some(last) = count.checked_sub(v::BYTES / 2) else { return false };
            let (one, other) = (v::all_16(i16::from_le_bytes(weights[0])), v::all_16(i16::from_le_bytes(weights[1])));
            let mut at = 0;
            loop {
                let near = near[at..].first_chunk().expect("half a vector fits");
                let pairs = v::paired(near, far[at..].first_chunk().expect("as long"));
                let pairs = v::xor(pairs, v::all_16(MIDDLES));
                v::store_signed_16(own[at..].first_chunk_mut().expect("as long"), v::madd_8(one, pairs));
                if both {
                    v::store_signed_16(next[at..].first_chunk_mut().expect("as long"), v::madd_8(other, pairs));
                }
                if at == last {
                    return true;
                }
                // The last vector ends with the row, so some elements are computed twice.
                at = (at + v::BYTES / 2).min(last);
            }
        }

        fn mix_pairs(rows: [&[u8]; 2], weights: [[RowWeights; 2]; 2], into: [[&mut [i16]; 2]; 2], both: bool) -> bool {
            let ([near, far], [[u, w], [next_u, next_w]]) = (rows, into);
            let count = (near.len().min(far.len()) / 2).min(u.len()).min(w.len()).min(next_u.len()).min(next_w.len());
            let Some(last) = count.checked_sub(v::BYTES / 2) else { return false };
            let [[one_u, one_w], [other_u, other_w]] = weights;
            let (one_u, one_w) = (v::all_16(i16::from_le_bytes(one_u)), v::all_16(i16::from_le_bytes(one_w)));
            let (other_u, other_w) = (v::all_16(i16::from_le_bytes(other_u)), v::all_16(i16::from_le_bytes(other_w)));
            let mut at = 0;
            loop {
                let near = v::load(near[2 * at..].first_chunk().expect("a vector fits"));
                let far = v::load(far[2 * at..].first_chunk().expect("as long"));
                let [of_u, of_w] = v::turned(near, far);
                let (of_u, of_w) = (v::xor(of_u, v::all_16(MIDDLES)), v::xor(of_w, v::all_16(MIDDLES)));
                v::store_signed_16(u[at..].first_chunk_mut().expect("as long"), v::madd_8(one_u, of_u));
                v::store_signed_16(w[at..].first_chunk_mut().expect("as long"), v::madd_8(one_w, of_w));
                if both {
                    v::store_signed_16(next_u[at..].first_chunk_mut().expect("as long"), v::madd_8(other_u, of_u));
                    v::store_signed_16(next_w[at..].first_chunk_mut().expect("as long"), v::madd_8(other_w, of_w));
                }
                if at == last {
                    return true;
                }
                at = (at + v::BYTES / 2).min(last);
            }
        }
    }
}
