//! Vectors of two widths under one set of names, so that a loop is written once for both.
//!
//! Owns the names, vectors from memory and back, and the only pointers of this crate.
//! Does not compute anything but what an instruction does.
//!
//! Always: as many bytes are touched as the array has. `unpack` and `pack` work within 16 bytes each, and undo each
//! other. Numbers in names are the bits of what is computed with.

#![expect(unsafe_code, reason = "the intrinsics that read and write memory take pointers")]

use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_storeu_si128};

/// Declares a loop for both widths, as `avx2::name` and `avx512::name`: `$v` is the module with the names.
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
    // SAFETY: the array is as long as the vector, and this load asks for no alignment.
    unsafe { _mm_loadu_si128(from.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store_sixteen(to: &mut [u16], at: usize, v: __m128i) {
    let to = to[at..].first_chunk_mut::<8>().expect("rows are filled up");
    // SAFETY: the array is as long as the vector, and this store asks for no alignment.
    unsafe { _mm_storeu_si128(to.as_mut_ptr().cast(), v) }
}

pub(super) mod avx2 {
    use std::arch::x86_64::{
        __m128i, _mm256_add_epi32, _mm256_broadcastsi128_si256, _mm256_castsi128_si256, _mm256_castsi256_si128,
        _mm256_extracti128_si256, _mm256_inserti128_si256, _mm256_loadu_si256, _mm256_permute4x64_epi64,
        _mm256_storeu_si256,
    };
    pub(in crate::simd) use std::arch::x86_64::{
        __m256i as Vector, _mm256_add_epi16 as add_16, _mm256_and_si256 as and, _mm256_madd_epi16 as madd_16,
        _mm256_maddubs_epi16 as madd_8, _mm256_mulhrs_epi16 as mul_round_16, _mm256_packs_epi32 as pack_32,
        _mm256_packus_epi16 as pack_16, _mm256_set1_epi16 as all_16, _mm256_set1_epi32 as all_32,
        _mm256_setzero_si256 as zero, _mm256_shuffle_epi8 as shuffle_8, _mm256_srai_epi32 as shift_32,
        _mm256_srli_epi32 as shift_unsigned_32, _mm256_sub_epi16 as sub_16, _mm256_unpackhi_epi8 as unpack_high_8,
        _mm256_unpackhi_epi16 as unpack_high_16, _mm256_unpacklo_epi8 as unpack_low_8,
        _mm256_unpacklo_epi16 as unpack_low_16, _mm256_xor_si256 as xor,
    };

    use super::{sixteen, store_sixteen};

    /// The bytes of a vector.
    pub(in crate::simd) const BYTES: usize = 32;

    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn load(from: &[u8; BYTES]) -> Vector {
        // SAFETY: the array is as long as the vector, and this load asks for no alignment.
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
    pub(in crate::simd) fn store(to: &mut [u8; BYTES], v: Vector) {
        // SAFETY: the array is as long as the vector, and this store asks for no alignment.
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

    /// Sums of 32 bits, and the products of two pairs of 16 bits more.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn dot(sums: Vector, a: Vector, b: Vector) -> Vector {
        _mm256_add_epi32(sums, madd_16(a, b))
    }

    /// Vectors that four rows of 16 bytes take.
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

    /// What was packed from two vectors, with all of the first in front.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn one_behind_the_other(packed: Vector) -> Vector {
        _mm256_permute4x64_epi64::<0b11_01_10_00>(packed)
    }
}

pub(super) mod avx512 {
    use std::arch::x86_64::{
        __m128i, _mm512_broadcast_i32x4, _mm512_castsi128_si512, _mm512_castsi512_si128, _mm512_extracti32x4_epi32,
        _mm512_inserti32x4, _mm512_loadu_si512, _mm512_permutexvar_epi64, _mm512_setr_epi64, _mm512_storeu_si512,
    };
    pub(in crate::simd) use std::arch::x86_64::{
        __m512i as Vector, _mm512_add_epi16 as add_16, _mm512_and_si512 as and, _mm512_dpwssd_epi32 as dot,
        _mm512_maddubs_epi16 as madd_8, _mm512_mulhrs_epi16 as mul_round_16, _mm512_packs_epi32 as pack_32,
        _mm512_packus_epi16 as pack_16, _mm512_set1_epi16 as all_16, _mm512_set1_epi32 as all_32,
        _mm512_setzero_si512 as zero, _mm512_shuffle_epi8 as shuffle_8, _mm512_srai_epi32 as shift_32,
        _mm512_srli_epi32 as shift_unsigned_32, _mm512_sub_epi16 as sub_16, _mm512_unpackhi_epi8 as unpack_high_8,
        _mm512_unpackhi_epi16 as unpack_high_16, _mm512_unpacklo_epi8 as unpack_low_8,
        _mm512_unpacklo_epi16 as unpack_low_16, _mm512_xor_si512 as xor,
    };

    use super::{sixteen, store_sixteen};

    /// The bytes of a vector.
    pub(in crate::simd) const BYTES: usize = 64;

    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn load(from: &[u8; BYTES]) -> Vector {
        // SAFETY: the array is as long as the vector, and this load asks for no alignment.
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
    pub(in crate::simd) fn store(to: &mut [u8; BYTES], v: Vector) {
        // SAFETY: the array is as long as the vector, and this store asks for no alignment.
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

    /// Vectors that four rows of 16 bytes take.
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

    /// What was packed from two vectors, with all of the first in front.
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(in crate::simd) fn one_behind_the_other(packed: Vector) -> Vector {
        _mm512_permutexvar_epi64(_mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7), packed)
    }
}
