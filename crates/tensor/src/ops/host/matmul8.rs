//! Matrix products of i8: exact sums in i32, rounded to f32. The caller applies the scales.
//!
//! Both matrices are copied into panels of words; a word holds two neighbours along k as i16. One instruction
//! (`pmaddwd`) then multiplies 32 numbers by 32 others and adds neighbouring products; an instruction for f32
//! multiplies 16.
//!
//! Invariants: sums are exact, because at most [`MOST_K`] products are summed. The bits are the same on every machine,
//! because integer sums do not depend on the order.

use vramp_kernels::vectorised;

use crate::ops::host::matmul::MatmulSize;
use crate::ops::host::spread::spread;

/// Maximum number of products of -128 by -128 whose sum fits in an i32.
pub(crate) const MOST_K: usize = (i32::MAX / (128 * 128)) as usize;

/// Writes the products of i8 to `out`, which has batch x m x n values.
pub(crate) fn matmul_i8(size: MatmulSize, a: &[i8], b: &[i8], out: &mut [f32], threads: usize) {
    size.check(a.len(), b.len(), out.len());
    let MatmulSize { batch, m, n, k, .. } = size;
    assert!(k <= MOST_K, "sums of {k} products of i8 may exceed an i32; the limit is {MOST_K}");
    let work = batch.saturating_mul(m).saturating_mul(n).saturating_mul(k);
    // The rows of all products are distributed over the threads, so that a single product uses all threads too. Each
    // thread packs the second matrix for itself.
    spread(out, n, work / 32, threads, |first, out| {
        let mut row = first;
        let mut out = out;
        while !out.is_empty() {
            let (at, within) = (row / m, row % m);
            let rows = (m - within).min(out.len() / n);
            let (these, others) = out.split_at_mut(rows * n);
            let a = &a[at * size.a_batch_stride + within * size.a.0..];
            let b = &b[at * size.b_batch_stride..];
            product(&MatmulSize { batch: 1, m: rows, ..size }, a, b, these);
            out = others;
            row += rows;
        }
    });
}

/// The number of products along k that are summed before sums are stored. Panels of this depth stay in the L2 cache,
/// and a product of 1024^3 takes 15.1 ms. Panels of depth 256 stay in L1, but sums are stored more often, and the same
/// product takes 19.5 ms.
const DEPTH: usize = 1024;
/// The number of rows of the first matrix whose panels stay in the L2 cache together.
const ROWS: usize = 96;

/// Sums of one tile: a panel of the first matrix (pairs x `M` rows) by a panel of the second (pairs x `N` columns).
trait Tile<const M: usize, const N: usize>: Copy {
    fn sums(self, a: &[[u32; M]], b: &[[u32; N]]) -> [[i32; N]; M];
}

fn product(size: &MatmulSize, a: &[i8], b: &[i8], out: &mut [f32]) {
    match pulp::Arch::new() {
        #[cfg(target_arch = "x86_64")]
        pulp::Arch::V4(set) => match x86::Vnni::try_new() {
            Some(set) => product_with::<12, 32, _>(x86::FusedTile(set), size, a, b, out),
            None => product_with::<12, 32, _>(x86::WideTile(set), size, a, b, out),
        },
        #[cfg(target_arch = "x86_64")]
        pulp::Arch::V3(set) => product_with::<6, 16, _>(x86::HalfTile(set), size, a, b, out),
        _ => product_with::<4, 8, _>(PlainTile, size, a, b, out),
    }
}

fn product_with<const M: usize, const N: usize, T: Tile<M, N>>(
    tile: T,
    size: &MatmulSize,
    a: &[i8],
    b: &[i8],
    out: &mut [f32],
) {
    let MatmulSize { m, n, k, .. } = *size;
    let columns = n.div_ceil(N);
    // Used only if k is so long that the product takes several rounds.
    let mut sums = vec![0_i32; if k > DEPTH { m * n } else { 0 }];
    let mut b_panels = vec![[0_u32; N]; columns * DEPTH.min(k).div_ceil(2)];
    let mut a_panels = vec![[0_u32; M]; ROWS.min(m).div_ceil(M) * DEPTH.min(k).div_ceil(2)];
    for depth in (0..k).step_by(DEPTH) {
        let deep = DEPTH.min(k - depth);
        let pairs = deep.div_ceil(2);
        for (column, panel) in b_panels.chunks_mut(pairs).take(columns).enumerate() {
            let from = &b[depth * size.b.0 + column * N * size.b.1..];
            pack(from, (size.b.1, size.b.0), N.min(n - column * N), deep, panel);
        }
        for top in (0..m).step_by(ROWS) {
            let high = ROWS.min(m - top);
            for (row, panel) in a_panels.chunks_mut(pairs).take(high.div_ceil(M)).enumerate() {
                let from = &a[(top + row * M) * size.a.0 + depth * size.a.1..];
                pack(from, size.a, M.min(high - row * M), deep, panel);
            }
            for (column, b_panel) in b_panels.chunks(pairs).take(columns).enumerate() {
                let wide = N.min(n - column * N);
                for (row, a_panel) in a_panels.chunks(pairs).take(high.div_ceil(M)).enumerate() {
                    let mut found = tile.sums(a_panel, b_panel);
                    let start = (top + row * M) * n + column * N;
                    let found = &mut found[..M.min(high - row * M)];
                    if k > DEPTH {
                        vectorised!(keep(found, depth == 0, &mut sums[start..], n, wide));
                    }
                    if depth + deep == k {
                        vectorised!(store(found, &mut out[start..], n, wide));
                    }
                }
            }
        }
    }
    if k == 0 {
        out.fill(0.0);
    }
}

/// Adds the sums of earlier rounds to the sums of this round, and keeps the results for later rounds.
#[inline(always)]
fn keep<const N: usize>(found: &mut [[i32; N]], first: bool, sums: &mut [i32], apart: usize, columns: usize) {
    for (found, sums) in found.iter_mut().zip(sums.chunks_mut(apart)) {
        for (found, sum) in found.iter_mut().zip(&mut sums[..columns]) {
            *found += if first { 0 } else { *sum };
            *sum = *found;
        }
    }
}

/// Stores sums as floats.
#[inline(always)]
fn store<const N: usize>(found: &[[i32; N]], out: &mut [f32], apart: usize, columns: usize) {
    for (found, out) in found.iter().zip(out.chunks_mut(apart)) {
        for (out, sum) in out[..columns].iter_mut().zip(found) {
            *out = *sum as f32;
        }
    }
}

/// Copies `lines` lines of `deep` numbers into a panel of pairs, padded with 0. `strides` are the distance from line to
/// line, and from number to number along a line.
fn pack<const L: usize>(from: &[i8], strides: (usize, usize), lines: usize, deep: usize, panel: &mut [[u32; L]]) {
    vectorised!(pack_lines(from, strides, lines, deep, panel));
}

#[inline(always)]
fn pack_lines<const L: usize>(from: &[i8], strides: (usize, usize), lines: usize, deep: usize, panel: &mut [[u32; L]]) {
    let pair =
        |one: i8, two: i8| u32::from(i16::from(one).cast_unsigned()) | u32::from(i16::from(two).cast_unsigned()) << 16;
    if lines == L && strides.0 == 1 {
        // Neighbouring lines are adjacent in memory, so two positions along k are two contiguous runs, which are
        // interleaved.
        for (at, words) in panel.iter_mut().enumerate() {
            let one: &[i8; L] = from[2 * at * strides.1..].first_chunk().expect("the panel is whole, as checked above");
            let nothing = [0; L];
            let two: &[i8; L] = if 2 * at + 1 < deep {
                from[(2 * at + 1) * strides.1..].first_chunk().expect("the panel is whole, as checked above")
            } else {
                &nothing
            };
            for line in 0..L {
                words[line] = pair(one[line], two[line]);
            }
        }
        return;
    }
    for words in panel.iter_mut() {
        words[lines..].fill(0);
    }
    for line in 0..lines {
        let from = &from[line * strides.0..];
        if strides.1 == 1 {
            let (pairs, rest) = from[..deep].as_chunks::<2>();
            for (words, [one, two]) in panel.iter_mut().zip(pairs) {
                words[line] = pair(*one, *two);
            }
            if let ([last], Some(words)) = (rest, panel.last_mut()) {
                words[line] = pair(*last, 0);
            }
            continue;
        }
        for (at, words) in panel.iter_mut().enumerate() {
            let two = if 2 * at + 1 < deep { from[(2 * at + 1) * strides.1] } else { 0 };
            words[line] = pair(from[2 * at * strides.1], two);
        }
    }
}

/// For machines without vector instructions for pairs.
#[derive(Clone, Copy)]
struct PlainTile;

impl<const M: usize, const N: usize> Tile<M, N> for PlainTile {
    fn sums(self, a: &[[u32; M]], b: &[[u32; N]]) -> [[i32; N]; M] {
        let halves = |word: u32| (i32::from(word as i16), i32::from((word >> 16) as i16));
        let mut sums = [[0; N]; M];
        for (a, b) in a.iter().zip(b) {
            for row in 0..M {
                let (one, two) = halves(a[row]);
                for column in 0..N {
                    let (first, second) = halves(b[column]);
                    sums[row][column] += one * first + two * second;
                }
            }
        }
        sums
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m256i, __m512i};

    use pulp::x86::{V3, V4};
    use pulp::{NullaryFnOnce, cast};

    use super::Tile;

    pulp::simd_type! {
        /// 512-bit vectors with a multiply-accumulate instruction.
        pub(super) struct Vnni {
            avx512f: "avx512f",
            avx512bw: "avx512bw",
            avx512vnni: "avx512vnni",
        }
    }

    /// 512-bit vectors with multiply and accumulate in one instruction (16-bit `vpdpwssd`). Safe code can use this
    /// instruction because the compiler selects it on its own. The compiler does not select the 8-bit instruction,
    /// which is twice as fast.
    #[derive(Clone, Copy)]
    pub(super) struct FusedTile(pub Vnni);

    /// 512-bit vectors.
    #[derive(Clone, Copy)]
    pub(super) struct WideTile(pub V4);

    /// 256-bit vectors.
    #[derive(Clone, Copy)]
    pub(super) struct HalfTile(pub V3);

    struct TileSums<'a, S, const M: usize, const N: usize>(S, &'a [[u32; M]], &'a [[u32; N]]);

    macro_rules! tile {
        ($set:ident, $vector:ty, $lanes:literal, $m:literal, $n:literal,
         $isa:ident.$madd:ident, $isa2:ident.$add:ident, $isa3:ident.$splat:ident) => {
            impl Tile<$m, $n> for $set {
                #[inline(always)]
                fn sums(self, a: &[[u32; $m]], b: &[[u32; $n]]) -> [[i32; $n]; $m] {
                    self.0.vectorize(TileSums(self, a, b))
                }
            }

            impl NullaryFnOnce for TileSums<'_, $set, $m, $n> {
                type Output = [[i32; $n]; $m];

                #[inline(always)]
                fn call(self) -> [[i32; $n]; $m] {
                    let TileSums($set(set), a, b) = self;
                    let zero: $vector = cast([0_u32; $lanes]);
                    let mut sums = [[zero; 2]; $m];
                    for (a, b) in a.iter().zip(b) {
                        let b: [$vector; 2] = cast(*b);
                        for row in 0..$m {
                            let a = set.$isa3.$splat(a[row].cast_signed());
                            sums[row][0] = set.$isa2.$add(sums[row][0], set.$isa.$madd(a, b[0]));
                            sums[row][1] = set.$isa2.$add(sums[row][1], set.$isa.$madd(a, b[1]));
                        }
                    }
                    cast(sums)
                }
            }
        };
    }

    tile!(
        FusedTile,
        __m512i,
        16,
        12,
        32,
        avx512bw._mm512_madd_epi16,
        avx512f._mm512_add_epi32,
        avx512f._mm512_set1_epi32
    );
    tile!(
        WideTile,
        __m512i,
        16,
        12,
        32,
        avx512bw._mm512_madd_epi16,
        avx512f._mm512_add_epi32,
        avx512f._mm512_set1_epi32
    );
    tile!(HalfTile, __m256i, 8, 6, 16, avx2._mm256_madd_epi16, avx2._mm256_add_epi32, avx._mm256_set1_epi32);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::host::matmul::tests::plainly;

    fn values(count: usize, seed: usize) -> Vec<i8> {
        (0..count).map(|at| (((at * 7919 + seed) % 256) as u8).cast_signed()).collect()
    }

    #[test]
    fn sums_are_exact_for_every_transpose_size_and_number_of_threads() {
        for (batch, m, n, k) in [
            (1, 1, 1, 1),
            (3, 5, 7, 3),
            (1, 13, 33, 300),
            (2, 100, 64, 17),
            (1, 12, 32, 256),
            (1, 97, 31, 513),
            (1, 14, 35, 2100),
            (1, 300, 70, 150),
        ] {
            for transposed in 0..4 {
                let size = MatmulSize {
                    batch,
                    m,
                    n,
                    k,
                    a_batch_stride: m * k,
                    b_batch_stride: k * n,
                    a: if transposed & 1 == 0 { (k, 1) } else { (1, m) },
                    b: if transposed & 2 == 0 { (n, 1) } else { (1, k) },
                };
                let (a, b) = (values(batch * m * k, 1), values(batch * k * n, 2));
                let sums = plainly(size, &a, &b);
                for threads in [1, 3] {
                    let mut out = vec![0.0; sums.len()];
                    matmul_i8(size, &a, &b, &mut out, threads);
                    let want: Vec<f32> = sums.iter().map(|sum| *sum as f32).collect();
                    assert_eq!(out, want, "{size:?}");
                }
            }
        }
    }

    #[test]
    fn every_tile_sums_alike() {
        let size = MatmulSize {
            batch: 1,
            m: 20,
            n: 40,
            k: 301,
            a_batch_stride: 0,
            b_batch_stride: 0,
            a: (301, 1),
            b: (40, 1),
        };
        let (a, b) = (values(20 * 301, 5), values(301 * 40, 6));
        let (mut chosen, mut plain) = (vec![0.0; 800], vec![1.0; 800]);
        product(&size, &a, &b, &mut chosen);
        product_with::<4, 8, _>(PlainTile, &size, &a, &b, &mut plain);
        assert_eq!(chosen, plain);
        #[cfg(target_arch = "x86_64")]
        if let Some(set) = pulp::x86::V3::try_new() {
            product_with::<6, 16, _>(x86::HalfTile(set), &size, &a, &b, &mut plain);
            assert_eq!(chosen, plain);
        }
    }

    #[test]
    fn the_longest_sums_of_the_largest_products_fit() {
        let size =
            MatmulSize { batch: 1, m: 1, n: 1, k: MOST_K, a_batch_stride: 0, b_batch_stride: 0, a: (0, 0), b: (0, 0) };
        let mut out = [0.0];
        matmul_i8(size, &[-128], &[-128], &mut out, 1);
        assert_eq!(out[0], (MOST_K as f64 * 16384.0) as f32);
        let nothing = MatmulSize { k: 0, ..size };
        matmul_i8(nothing, &[], &[], &mut out, 1);
        assert_eq!(out, [0.0]);
    }
}
