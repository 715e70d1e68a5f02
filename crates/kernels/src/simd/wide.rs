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
            crate::simd::wide::featured!("avx512f,avx512bw,avx512vbmi,avx512vnni"; $($body)*);
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
        __m128i, _mm_unpackhi_epi8, _mm_unpacklo_epi8, _mm256_blend_epi32, _mm256_blendv_epi8,
        _mm256_broadcastsi128_si256, _mm256_castsi128_si256, _mm256_castsi256_si128, _mm256_extracti128_si256,
        _mm256_inserti128_si256, _mm256_loadu_si256, _mm256_permute2x128_si256, _mm256_permute4x64_epi64,
        _mm256_permutevar8x32_epi32, _mm256_set_m128i, _mm256_shuffle_epi32, _mm256_storeu_si256,
    };
    pub(in crate::simd) use std::arch::x86_64::{
        __m256i as Vector, _mm256_add_epi16 as add_16, _mm256_add_epi32 as add_32, _mm256_and_si256 as and,
        _mm256_madd_epi16 as madd_16, _mm256_maddubs_epi16 as madd_8, _mm256_mulhi_epi16 as mul_high_16,
        _mm256_mulhrs_epi16 as mul_round_16, _mm256_mullo_epi16 as mul_low_16, _mm256_packs_epi32 as pack_32,
        _mm256_packus_epi16 as pack_16, _mm256_set1_epi16 as all_16, _mm256_set1_epi32 as all_32,
        _mm256_setzero_si256 as zero, _mm256_shuffle_epi8 as shuffle_8, _mm256_slli_epi16 as shift_left_16,
        _mm256_slli_epi64 as shift_left_64, _mm256_sra_epi16 as shift_by_16, _mm256_sra_epi32 as shift_by_32,
        _mm256_srai_epi16 as shift_16, _mm256_srai_epi32 as shift_32, _mm256_srli_epi16 as shift_unsigned_16,
        _mm256_srli_epi32 as shift_unsigned_32, _mm256_srli_epi64 as shift_right_64, _mm256_sub_epi16 as sub_16,
        _mm256_sub_epi32 as sub_32, _mm256_unpackhi_epi8 as unpack_high_8, _mm256_unpackhi_epi16 as unpack_high_16,
        _mm256_unpackhi_epi32 as unpack_high_32, _mm256_unpacklo_epi8 as unpack_low_8,
        _mm256_unpacklo_epi16 as unpack_low_16, _mm256_unpacklo_epi32 as unpack_low_32, _mm256_xor_si256 as xor,
    };

    use super::{sixteen, store_sixteen};

    pub(in crate::simd) const BYTES: usize = 32;

    // The source of each group of four bytes, for `permute_32`.
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
    pub(in crate::simd) fn load_signed_16(from: &[i16; BYTES / 2]) -> Vector {
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
    pub(in crate::simd) fn store_signed_16(to: &mut [i16; BYTES / 2], v: Vector) {
        // SAFETY: as above.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), v) }
    }

    /// Pairs of a byte of the first array and a byte of the second.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn paired(first: &[u8; BYTES / 2], second: &[u8; BYTES / 2]) -> Vector {
        let (first, second) = (sixteen(first), sixteen(second));
        _mm256_set_m128i(_mm_unpackhi_epi8(first, second), _mm_unpacklo_epi8(first, second))
    }

    /// Pairs of an even byte of both vectors, and pairs of an odd byte of both vectors.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn turned(first: Vector, second: Vector) -> [Vector; 2] {
        let odd = all_16(-256);
        [
            _mm256_blendv_epi8(first, shift_left_16(second, 8), odd),
            _mm256_blendv_epi8(shift_unsigned_16(first, 8), second, odd),
        ]
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

    /// Clamps red, green and blue of even and of odd pixels to bytes, and joins them to opaque pixels in their order.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(in crate::simd) fn opaque(even: [Vector; 3], odd: [Vector; 3]) -> [Vector; 4] {
        let (r, g, b) = (pack_16(even[0], odd[0]), pack_16(even[1], odd[1]), pack_16(even[2], odd[2]));
        let alpha = all_16(-1);
        let (even_rg, odd_rg) = (unpack_low_8(r, g), unpack_high_8(r, g));
        let (even_ba, odd_ba) = (unpack_low_8(b, alpha), unpack_high_8(b, alpha));
        let (low, low_odd) = (unpack_low_16(even_rg, even_ba), unpack_low_16(odd_rg, odd_ba));
        let (high, high_odd) = (unpack_high_16(even_rg, even_ba), unpack_high_16(odd_rg, odd_ba));
        let (first, second) = (unpack_low_32(low, low_odd), unpack_high_32(low, low_odd));
        let (third, fourth) = (unpack_low_32(high, high_odd), unpack_high_32(high, high_odd));
        [
            _mm256_permute2x128_si256::<0x20>(first, second),
            _mm256_permute2x128_si256::<0x20>(third, fourth),
            _mm256_permute2x128_si256::<0x31>(first, second),
            _mm256_permute2x128_si256::<0x31>(third, fourth),
        ]
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
        __m128i, _mm256_loadu_si256, _mm512_broadcast_i32x4, _mm512_castsi128_si512, _mm512_castsi256_si512,
        _mm512_castsi512_si128, _mm512_extracti32x4_epi32, _mm512_inserti32x4, _mm512_loadu_si512,
        _mm512_mask_blend_epi32, _mm512_permutex2var_epi8, _mm512_permutexvar_epi32, _mm512_permutexvar_epi64,
        _mm512_setr_epi64, _mm512_shuffle_epi32, _mm512_storeu_si512,
    };
    pub(in crate::simd) use std::arch::x86_64::{
        __m512i as Vector, _mm512_add_epi16 as add_16, _mm512_add_epi32 as add_32, _mm512_and_si512 as and,
        _mm512_dpwssd_epi32 as dot, _mm512_madd_epi16 as madd_16, _mm512_maddubs_epi16 as madd_8,
        _mm512_mulhi_epi16 as mul_high_16, _mm512_mulhrs_epi16 as mul_round_16, _mm512_mullo_epi16 as mul_low_16,
        _mm512_packs_epi32 as pack_32, _mm512_packus_epi16 as pack_16, _mm512_set1_epi16 as all_16,
        _mm512_set1_epi32 as all_32, _mm512_setzero_si512 as zero, _mm512_shuffle_epi8 as shuffle_8,
        _mm512_slli_epi16 as shift_left_16, _mm512_slli_epi64 as shift_left_64, _mm512_sra_epi16 as shift_by_16,
        _mm512_sra_epi32 as shift_by_32, _mm512_srai_epi16 as shift_16, _mm512_srai_epi32 as shift_32,
        _mm512_srli_epi32 as shift_unsigned_32, _mm512_srli_epi64 as shift_right_64, _mm512_sub_epi16 as sub_16,
        _mm512_sub_epi32 as sub_32, _mm512_unpackhi_epi8 as unpack_high_8, _mm512_unpackhi_epi16 as unpack_high_16,
        _mm512_unpacklo_epi8 as unpack_low_8, _mm512_unpacklo_epi16 as unpack_low_16, _mm512_xor_si512 as xor,
    };

    use super::{sixteen, store_sixteen};

    pub(in crate::simd) const BYTES: usize = 64;

    // The source of each group of four bytes, for `permute_32`.
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
    pub(in crate::simd) fn load_signed_16(from: &[i16; BYTES / 2]) -> Vector {
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
    pub(in crate::simd) fn store_signed_16(to: &mut [i16; BYTES / 2], v: Vector) {
        // SAFETY: as above.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), v) }
    }

    /// Pairs of a byte of the first array and a byte of the second.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vbmi")]
    pub(in crate::simd) fn paired(first: &[u8; BYTES / 2], second: &[u8; BYTES / 2]) -> Vector {
        // SAFETY: the arrays are as long as the vectors, and these loads require no alignment.
        let first = unsafe { _mm256_loadu_si256(first.as_ptr().cast()) };
        // SAFETY: as above.
        let second = unsafe { _mm256_loadu_si256(second.as_ptr().cast()) };
        _mm512_permutex2var_epi8(_mm512_castsi256_si512(first), load(&PAIRS), _mm512_castsi256_si512(second))
    }

    /// Pairs of an even byte of both vectors, and pairs of an odd byte of both vectors.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vbmi")]
    pub(in crate::simd) fn turned(first: Vector, second: Vector) -> [Vector; 2] {
        [
            _mm512_permutex2var_epi8(first, load(&TURNS[0]), second),
            _mm512_permutex2var_epi8(first, load(&TURNS[1]), second),
        ]
    }

    const PAIRS: [u8; BYTES] = {
        let mut order = [0; BYTES];
        let mut at = 0;
        while at < BYTES {
            order[at] = (at / 2 + at % 2 * BYTES) as u8;
            at += 1;
        }
        order
    };

    const TURNS: [[u8; BYTES]; 2] = {
        let mut orders = [[0; BYTES]; 2];
        let mut at = 0;
        while at < BYTES {
            orders[0][at] = (at / 2 * 2 + at % 2 * BYTES) as u8;
            orders[1][at] = (at / 2 * 2 + 1 + at % 2 * BYTES) as u8;
            at += 1;
        }
        orders
    };

    /// Clamps red, green and blue of even and of odd pixels to bytes, and joins them to opaque pixels in their order.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(in crate::simd) fn opaque(even: [Vector; 3], odd: [Vector; 3]) -> [Vector; 4] {
        let (r, g, b) = (pack_16(even[0], odd[0]), pack_16(even[1], odd[1]), pack_16(even[2], odd[2]));
        let alpha = all_16(-1);
        let (first, last) = (load(&PIXEL_PAIRS[0]), load(&PIXEL_PAIRS[1]));
        let (rg, last_rg) = (_mm512_permutex2var_epi8(r, first, g), _mm512_permutex2var_epi8(r, last, g));
        let (ba, last_ba) = (_mm512_permutex2var_epi8(b, first, alpha), _mm512_permutex2var_epi8(b, last, alpha));
        [
            unpack_low_16(rg, ba),
            unpack_high_16(rg, ba),
            unpack_low_16(last_rg, last_ba),
            unpack_high_16(last_rg, last_ba),
        ]
    }

    /// Where two channels of the first and of the last 32 pixels are in the packed vectors of both channels, in the
    /// order that `unpack` needs: each 16-byte lane has four of the first 16 pixels, then four of the other 16.
    const PIXEL_PAIRS: [[u8; BYTES]; 2] = {
        let mut orders = [[0; BYTES]; 2];
        let mut at = 0;
        while at < BYTES {
            let (lane, word) = (at % 32 / 8, at % 8);
            let from = packed(at / 32 * 32 + word / 4 * 16 + lane * 4 + word % 4);
            orders[at / 32][at % 32 * 2] = from;
            orders[at / 32][at % 32 * 2 + 1] = BYTES as u8 + from;
            at += 1;
        }
        orders
    };

    /// Where a pixel is after even and odd pixels are packed: each 16-byte lane has its even pixels first.
    const fn packed(pixel: usize) -> u8 {
        (pixel / 16 * 16 + pixel % 2 * 8 + pixel % 16 / 2) as u8
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
    /// Restores the order of four vectors after two `pack` steps.
    together: |at, lanes| at % lanes * 4 + at / lanes;
    /// The first eight bytes of each lane, then the last eight bytes of each lane.
    halves: |at, lanes| (at % (2 * lanes)) / 2 * 4 + at / (2 * lanes) * 2 + at % 2;
    /// The first three groups of each lane, concatenated.
    thirds: |at, lanes| if at < 3 * lanes { at / 3 * 4 + at % 3 } else { 3 };
    /// Puts three groups into each lane.
    fourths: |at, _lanes| if at % 4 < 3 { at / 4 * 3 + at % 4 } else { 0 };
}
