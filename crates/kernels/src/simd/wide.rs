//! One set of names for vectors of 256 and 512 bits, so that a loop is written once for both widths.
//!
//! Only this module accesses memory through pointers. Its loads and stores access exactly the bytes of an array. Each
//! function is one instruction or a fixed sequence of instructions. `unpack` and `pack` work within 16-byte lanes and
//! are inverse to each other. The number in a name is the width of the elements in bits.

#![expect(unsafe_code, reason = "the intrinsics that read and write memory take pointers")]

use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};

/// Declares a loop for both widths, as `avx2::name` and `avx512::name`; `$v` is the module with the vector functions.
macro_rules! both_widths {
    ($v:ident; $($body:tt)*) => {
        pub(super) mod avx2 {
            use crate::simd::wide::avx2 as $v;
            crate::simd::wide::featured!("avx2"; $($body)*);
        }
        pub(super) mod avx512 {
            use crate::simd::wide::avx512 as $v;
            crate::simd::wide::featured!("avx512f,avx512bw,avx512vnni"; $($body)*);
        }
    };
}

macro_rules! featured {
    ($features:literal; $(use $used:path;)* $($(#[$meta:meta])* fn $name:ident $(<$($life:lifetime),*>)? ($($args:tt)*) $(-> $ret:ty)? $body:block)*) => {
        $(use $used;)*
        $($(#[$meta])*
        #[target_feature(enable = $features)]
        pub(in crate::simd) fn $name $(<$($life),*>)? ($($args)*) $(-> $ret)? $body)*
    };
}

pub(super) use {both_widths, featured};

#[inline]
#[target_feature(enable = "avx2")]
fn sixteen(from: &[u8; 16]) -> __m128i {
    // SAFETY: the array is as long as the vector, and this load requires no alignment.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_sixteen(to: &mut [u16], at: usize, v: __m128i) {
    let to = to[at..].first_chunk_mut::<8>().expect("rows are padded");
    // SAFETY: the array is as long as the vector, and this store requires no alignment.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), v) }
}

pub(super) mod avx2 {
    use std::arch::x86_64::{
        __m128i, _mm256_blend_epi32, _mm256_broadcastsi128_si256, _mm256_castsi128_si256, _mm256_castsi256_si128,
        _mm256_extracti128_si256, _mm256_inserti128_si256, _mm256_loadu_si256, _mm256_permute4x64_epi64,
        _mm256_permutevar8x32_epi32, _mm256_shuffle_epi32, _mm256_storeu_si256,
    };
    pub(in crate::simd) use std::arch::x86_64::{
        __m256i as Vector, _mm256_add_epi16 as add_16, _mm256_add_epi32 as add_32, _mm256_and_si256 as and,
        _mm256_madd_epi16 as madd_16, _mm256_maddubs_epi16 as madd_8, _mm256_mulhi_epi16 as mul_high_16,
        _mm256_mulhrs_epi16 as mul_round_16, _mm256_packs_epi32 as pack_32, _mm256_packus_epi16 as pack_16,
        _mm256_set1_epi16 as all_16, _mm256_set1_epi32 as all_32, _mm256_setzero_si256 as zero,
        _mm256_shuffle_epi8 as shuffle_8, _mm256_slli_epi16 as shift_left_16, _mm256_slli_epi64 as shift_left_64,
        _mm256_sra_epi16 as shift_by_16, _mm256_sra_epi32 as shift_by_32, _mm256_srai_epi16 as shift_16,
        _mm256_srai_epi32 as shift_32, _mm256_srli_epi16 as shift_unsigned_16, _mm256_srli_epi32 as shift_unsigned_32,
        _mm256_srli_epi64 as shift_right_64, _mm256_sub_epi16 as sub_16, _mm256_sub_epi32 as sub_32,
        _mm256_unpackhi_epi8 as unpack_high_8, _mm256_unpackhi_epi16 as unpack_high_16,
        _mm256_unpackhi_epi32 as unpack_high_32, _mm256_unpacklo_epi8 as unpack_low_8,
        _mm256_unpacklo_epi16 as unpack_low_16, _mm256_unpacklo_epi32 as unpack_low_32, _mm256_xor_si256 as xor,
    };

    use super::{sixteen, store_sixteen};

    pub(in crate::simd) const BYTES: usize = 32;

    // The source of each group of four bytes, for `permute_32`.
    pub(in crate::simd) const APART: [u32; BYTES / 4] = super::apart();
    pub(in crate::simd) const TOGETHER: [u32; BYTES / 4] = super::together();
    pub(in crate::simd) const HALVES: [u32; BYTES / 4] = super::halves();
    pub(in crate::simd) const THIRDS: [u32; BYTES / 4] = super::thirds();
    pub(in crate::simd) const FOURTHS: [u32; BYTES / 4] = super::fourths();

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn load(from: &[u8; BYTES]) -> Vector {
        // SAFETY: the array is as long as the vector, and this load requires no alignment.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn load_16(from: &[u16; BYTES / 2]) -> Vector {
        // SAFETY: as above.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn load_32(from: &[u32; BYTES / 4]) -> Vector {
        // SAFETY: as above.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn load_64(from: &[u64; BYTES / 8]) -> Vector {
        // SAFETY: as above.
        unsafe { _mm256_loadu_si256(from.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn store(to: &mut [u8; BYTES], v: Vector) {
        // SAFETY: the array is as long as the vector, and this store requires no alignment.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), v) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn store_16(to: &mut [u16; BYTES / 2], v: Vector) {
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), v) }
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn repeat(sixteen: __m128i) -> Vector {
        _mm256_broadcastsi128_si256(sixteen)
    }

    /// In each 16-byte lane, repeats the first of the four 32-bit elements.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn first_of_two(v: Vector) -> Vector {
        _mm256_shuffle_epi32::<0b00_00_00_00>(v)
    }

    /// In each 16-byte lane, repeats the third of the four 32-bit elements.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn second_of_two(v: Vector) -> Vector {
        _mm256_shuffle_epi32::<0b10_10_10_10>(v)
    }

    /// The 32-bit elements at these indices.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn choose_32(from: Vector, places: Vector) -> Vector {
        _mm256_permutevar8x32_epi32(from, places)
    }

    /// Orders the result of packing two vectors: all elements of the first vector, then all elements of the second.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn in_turns(v: Vector) -> Vector {
        _mm256_permute4x64_epi64::<0b11_01_10_00>(v)
    }

    /// Adds the products of two pairs of 16 bits to sums of 32 bits.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn dot(sums: Vector, a: Vector, b: Vector) -> Vector {
        add_32(sums, madd_16(a, b))
    }

    /// Permutes groups of four bytes across the whole vector.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn permute_32(v: Vector, from: &[u32; BYTES / 4]) -> Vector {
        // SAFETY: the array is as long as the vector, and this load requires no alignment.
        _mm256_permutevar8x32_epi32(v, unsafe { _mm256_loadu_si256(from.as_ptr().cast()) })
    }

    /// The even elements of the first vector, and the odd elements of the second.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn by_turns_32(even: Vector, odd: Vector) -> Vector {
        _mm256_blend_epi32(even, odd, 0xAA)
    }

    /// Vectors that hold 16 bytes of each of four rows.
    pub(in crate::simd) const FOUR_ROWS: usize = 2;

    /// Sixteen bytes of each of four rows.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn four_rows(rows: [&[u8; 16]; 4]) -> [Vector; FOUR_ROWS] {
        let (a, b) = (_mm256_castsi128_si256(sixteen(rows[0])), _mm256_castsi128_si256(sixteen(rows[2])));
        [_mm256_inserti128_si256::<1>(a, sixteen(rows[1])), _mm256_inserti128_si256::<1>(b, sixteen(rows[3]))]
    }

    /// Stores sixteen bytes into each of four rows.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn store_four_rows(rows: &mut [&mut [u16]; 4], at: usize, [a, b]: [Vector; FOUR_ROWS]) {
        store_sixteen(rows[0], at, _mm256_castsi256_si128(a));
        store_sixteen(rows[1], at, _mm256_extracti128_si256::<1>(a));
        store_sixteen(rows[2], at, _mm256_castsi256_si128(b));
        store_sixteen(rows[3], at, _mm256_extracti128_si256::<1>(b));
    }
}

pub(super) mod avx512 {
    use std::arch::x86_64::{
        __m128i, _mm512_broadcast_i32x4, _mm512_castsi128_si512, _mm512_castsi512_si128, _mm512_extracti32x4_epi32,
        _mm512_inserti32x4, _mm512_loadu_si512, _mm512_mask_blend_epi32, _mm512_permutexvar_epi32,
        _mm512_permutexvar_epi64, _mm512_setr_epi64, _mm512_shuffle_epi32, _mm512_storeu_si512,
    };
    pub(in crate::simd) use std::arch::x86_64::{
        __m512i as Vector, _mm512_add_epi16 as add_16, _mm512_add_epi32 as add_32, _mm512_and_si512 as and,
        _mm512_dpwssd_epi32 as dot, _mm512_madd_epi16 as madd_16, _mm512_maddubs_epi16 as madd_8,
        _mm512_mulhi_epi16 as mul_high_16, _mm512_mulhrs_epi16 as mul_round_16, _mm512_packs_epi32 as pack_32,
        _mm512_packus_epi16 as pack_16, _mm512_set1_epi16 as all_16, _mm512_set1_epi32 as all_32,
        _mm512_setzero_si512 as zero, _mm512_shuffle_epi8 as shuffle_8, _mm512_slli_epi16 as shift_left_16,
        _mm512_slli_epi64 as shift_left_64, _mm512_sra_epi16 as shift_by_16, _mm512_sra_epi32 as shift_by_32,
        _mm512_srai_epi16 as shift_16, _mm512_srai_epi32 as shift_32, _mm512_srli_epi16 as shift_unsigned_16,
        _mm512_srli_epi32 as shift_unsigned_32, _mm512_srli_epi64 as shift_right_64, _mm512_sub_epi16 as sub_16,
        _mm512_sub_epi32 as sub_32, _mm512_unpackhi_epi8 as unpack_high_8, _mm512_unpackhi_epi16 as unpack_high_16,
        _mm512_unpackhi_epi32 as unpack_high_32, _mm512_unpacklo_epi8 as unpack_low_8,
        _mm512_unpacklo_epi16 as unpack_low_16, _mm512_unpacklo_epi32 as unpack_low_32, _mm512_xor_si512 as xor,
    };

    use super::{sixteen, store_sixteen};

    pub(in crate::simd) const BYTES: usize = 64;

    // The source of each group of four bytes, for `permute_32`.
    pub(in crate::simd) const APART: [u32; BYTES / 4] = super::apart();
    pub(in crate::simd) const TOGETHER: [u32; BYTES / 4] = super::together();
    pub(in crate::simd) const HALVES: [u32; BYTES / 4] = super::halves();
    pub(in crate::simd) const THIRDS: [u32; BYTES / 4] = super::thirds();
    pub(in crate::simd) const FOURTHS: [u32; BYTES / 4] = super::fourths();

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn load(from: &[u8; BYTES]) -> Vector {
        // SAFETY: the array is as long as the vector, and this load requires no alignment.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn load_16(from: &[u16; BYTES / 2]) -> Vector {
        // SAFETY: as above.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn load_32(from: &[u32; BYTES / 4]) -> Vector {
        // SAFETY: as above.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn load_64(from: &[u64; BYTES / 8]) -> Vector {
        // SAFETY: as above.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn store(to: &mut [u8; BYTES], v: Vector) {
        // SAFETY: the array is as long as the vector, and this store requires no alignment.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), v) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn store_16(to: &mut [u16; BYTES / 2], v: Vector) {
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), v) }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn repeat(sixteen: __m128i) -> Vector {
        _mm512_broadcast_i32x4(sixteen)
    }

    /// Vectors that hold 16 bytes of each of four rows.
    pub(in crate::simd) const FOUR_ROWS: usize = 1;

    /// Sixteen bytes of each of four rows.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn four_rows(rows: [&[u8; 16]; 4]) -> [Vector; FOUR_ROWS] {
        let v = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(sixteen(rows[0])), sixteen(rows[1]));
        [_mm512_inserti32x4::<3>(_mm512_inserti32x4::<2>(v, sixteen(rows[2])), sixteen(rows[3]))]
    }

    /// Stores sixteen bytes into each of four rows.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn store_four_rows(rows: &mut [&mut [u16]; 4], at: usize, [v]: [Vector; FOUR_ROWS]) {
        store_sixteen(rows[0], at, _mm512_castsi512_si128(v));
        store_sixteen(rows[1], at, _mm512_extracti32x4_epi32::<1>(v));
        store_sixteen(rows[2], at, _mm512_extracti32x4_epi32::<2>(v));
        store_sixteen(rows[3], at, _mm512_extracti32x4_epi32::<3>(v));
    }

    /// In each 16-byte lane, repeats the first of the four 32-bit elements.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn first_of_two(v: Vector) -> Vector {
        _mm512_shuffle_epi32::<0b00_00_00_00>(v)
    }

    /// In each 16-byte lane, repeats the third of the four 32-bit elements.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn second_of_two(v: Vector) -> Vector {
        _mm512_shuffle_epi32::<0b10_10_10_10>(v)
    }

    /// The 32-bit elements at these indices.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn choose_32(from: Vector, places: Vector) -> Vector {
        _mm512_permutexvar_epi32(places, from)
    }

    /// Orders the result of packing two vectors: all elements of the first vector, then all elements of the second.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn in_turns(v: Vector) -> Vector {
        _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), v)
    }

    /// Permutes groups of four bytes across the whole vector.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn permute_32(v: Vector, from: &[u32; BYTES / 4]) -> Vector {
        // SAFETY: the array is as long as the vector, and this load requires no alignment.
        _mm512_permutexvar_epi32(unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }, v)
    }

    /// The even elements of the first vector, and the odd elements of the second.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn by_turns_32(even: Vector, odd: Vector) -> Vector {
        _mm512_mask_blend_epi32(0xAAAA, even, odd)
    }
}

/// Declares functions that return an order of `N` groups of four bytes.
macro_rules! orders {
    ($($(#[$meta:meta])* $name:ident: |$at:ident, $lanes:ident| $from:expr;)*) => {
        $($(#[$meta])*
        const fn $name<const N: usize>() -> [u32; N] {
            let $lanes = N / 4;
            let mut order = [0; N];
            let mut $at = 0;
            while $at < N {
                order[$at] = ($from) as u32;
                $at += 1;
            }
            order
        })*
    };
}

orders! {
    /// Distributes groups over the 16-byte lanes, so that pixels are in their original order after `unpack`.
    apart: |at, lanes| at % 4 * lanes + at / 4;
    /// Restores the order of four vectors after two `pack` steps.
    together: |at, lanes| at % lanes * 4 + at / lanes;
    /// The first eight bytes of each lane, then the last eight bytes of each lane.
    halves: |at, lanes| (at % (2 * lanes)) / 2 * 4 + at / (2 * lanes) * 2 + at % 2;
    /// The first three groups of each lane, concatenated.
    thirds: |at, lanes| if at < 3 * lanes { at / 3 * 4 + at % 3 } else { 3 };
    /// Puts three groups into each lane.
    fourths: |at, _lanes| if at % 4 < 3 { at / 4 * 3 + at % 4 } else { 0 };
}
