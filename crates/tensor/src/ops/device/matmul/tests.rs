//! Products of every kind against f64.

use half::f16;

use super::super::trial::{MOST, bytes_of, noise, run_f32};
use super::*;

fn bits_of(values: &[f32], dtype: DType) -> Vec<u8> {
    match dtype {
        DType::F16 => bytemuck::pod_collect_to_vec(&values.iter().map(|v| f16::from_f32(*v)).collect::<Vec<_>>()),
        DType::I8 => bytemuck::pod_collect_to_vec(&values.iter().map(|v| (v * 127.0) as i8).collect::<Vec<_>>()),
        _ => bytes_of(values).to_vec(),
    }
}

/// The value of `v` after a conversion to `dtype`.
fn stored(v: f32, dtype: DType) -> f64 {
    match dtype {
        DType::F16 => f16::from_f32(v).to_f64(),
        DType::I8 => f64::from((v * 127.0) as i8),
        _ => f64::from(v),
    }
}

/// The strides of a matrix, or of its transpose, that has no padding and begins `offset` values after the start of its
/// buffer.
fn strides(rows: usize, columns: usize, transposed: bool, is_b: bool, offset: usize, product: usize) -> Strides {
    let (row, column) = if transposed { (1, rows) } else { (columns, 1) };
    if is_b {
        Strides { offset, side: column, k: row, product }
    } else {
        Strides { offset, side: row, k: column, product }
    }
}

struct Case {
    m: usize,
    n: usize,
    k: usize,
    transposed: [bool; 2],
    dtypes: [DType; 2],
    offset: usize,
}

/// Checks that the results of a tile equal those of f64 within the documented tolerance.
fn check(case: &Case, tile: Tile) {
    let Case { m, n, k, transposed, dtypes, offset } = *case;
    let (products, gap) = (2, offset);
    let a_values = noise(gap + products * m * k, 5);
    // All products use the same b.
    let b_values = noise(gap + k * n, 6);
    let a = strides(m, k, transposed[0], false, gap, m * k);
    let b = strides(k, n, transposed[1], true, gap, 0);
    let (along_a, along_b) = (a.along(m, k), b.along(n, k));
    let sizes = Sizes { m, n, k, products, a, b, whole: false };
    let exact = dtypes == [DType::I8; 2];
    let product = Product {
        a: Operand { dtype: dtypes[0], along: along_a },
        b: Operand { dtype: dtypes[1], along: along_b },
        wide: n.is_multiple_of(4) && tile.n.is_multiple_of(4),
        tile,
        finish: Hook::pass(),
    };
    assert_eq!(sizes.parts(), 1);
    let inputs = [bits_of(&a_values, dtypes[0]), bits_of(&b_values, dtypes[1])];
    let (shader, launch) = (product.shader(), product.launch(&sizes, MOST));
    let got = run_f32(&shader, &launch, &[&inputs[0], &inputs[1]], products * m * n);
    for (at, got) in got.into_iter().enumerate() {
        let (which, i, j) = (at / (m * n), at / n % m, at % n);
        let (mut sum, mut magnitudes) = (0.0_f64, 0.0_f64);
        for kk in 0..k {
            let one = stored(a_values[a.offset + which * a.product + i * a.side + kk * a.k], dtypes[0]);
            let two = stored(b_values[b.offset + j * b.side + kk * b.k], dtypes[1]);
            sum += one * two;
            magnitudes += (one * two).abs();
        }
        let wanted = sum;
        let tolerance = if exact { 0.0 } else { magnitudes * (k + 1) as f64 / 16_777_216.0 };
        let off = (f64::from(got) - wanted).abs();
        assert!(off <= tolerance, "{tile:?} {m}x{n}x{k} {along_a:?} {along_b:?} {dtypes:?} at {at}: {got} {wanted}");
    }
}

#[test]
fn every_tile_gives_the_product_whatever_the_sizes_and_transposes() {
    for tile in Tile::CANDIDATES {
        for transposed in [[false, false], [true, false], [false, true], [true, true]] {
            for (m, n, k, offset) in [(20, 36, 24, 4), (7, 70, 18, 3), (1, 1, 1, 0)] {
                check(&Case { m, n, k, transposed, dtypes: [DType::F32; 2], offset }, tile);
            }
        }
    }
    // Contiguous along n and m, but not along k, whose length is not a multiple of 4.
    for tile in [Tile::CANDIDATES[1], Tile::CANDIDATES[5]] {
        check(&Case { m: 20, n: 36, k: 23, transposed: [true, false], dtypes: [DType::F32; 2], offset: 0 }, tile);
    }
}

#[test]
fn products_of_half_floats_and_of_bytes_are_summed_exactly_enough() {
    for tile in [Tile::CANDIDATES[0], Tile::CANDIDATES[4]] {
        for dtypes in [[DType::F16; 2], [DType::I8; 2], [DType::F32, DType::F16], [DType::F32, DType::I8]] {
            for transposed in [[false, false], [true, false], [false, true], [true, true]] {
                for (m, n, k, offset) in [(12, 20, 28, 4), (5, 9, 13, 1)] {
                    check(&Case { m, n, k, transposed, dtypes, offset }, tile);
                }
            }
        }
    }
}

#[test]
fn single_rows_and_columns_have_tiles_of_their_own() {
    for (m, n, k, offset) in [(1, 36, 24, 0), (36, 1, 24, 0), (1, 9, 7, 1), (9, 1, 7, 1), (1, 1, 8, 0), (3, 3, 3, 0)] {
        for transposed in [[false, false], [true, true]] {
            check(&Case { m, n, k, transposed, dtypes: [DType::F32; 2], offset }, Tile::usual(m, n, true));
        }
    }
}

fn sizes(m: usize, n: usize, k: usize) -> Sizes {
    let left = Strides { offset: 0, side: k, k: 1, product: 0 };
    let right = Strides { offset: 0, side: 1, k: n, product: 0 };
    Sizes { m, n, k, products: 1, a: left, b: right, whole: false }
}

fn plain(dtype: DType, along: [Along; 2], tile: Tile) -> Product {
    Product {
        a: Operand { dtype, along: along[0] },
        b: Operand { dtype, along: along[1] },
        wide: true,
        tile,
        finish: Hook::pass(),
    }
}

#[test]
fn a_hook_is_applied_to_each_result() {
    let (m, n, k) = (5, 8, 4);
    let finish = Hook {
        wgsl: "fn finish(v: f32, row: u32, col: u32, at: u32) -> f32 {
    return v + bitcast<f32>(p.hook[0].y) * f32(100u * row + 10u * col + at) + bitcast<f32>(side0[0]);
}"
        .into(),
        inputs: 1,
        vectors: 1,
    };
    let mut product = plain(DType::I8, [Along::K, Along::Side], Tile::CANDIDATES[0]);
    product = Product { finish, ..product };
    let sizes = sizes(m, n, k);
    let launch = product.launch(&sizes, MOST).with_hook(&[0, 2.0_f32.to_bits()]);
    let (ones, twos) = (vec![1_u8; m * k], vec![2_u8; k * n]);
    let inputs = [&ones[..], &twos, bytes_of(&[1000.3_f32])];
    let got = run_f32(&product.shader(), &launch, &inputs, m * n);
    for (at, got) in got.iter().enumerate() {
        let (row, col) = (at / n, at % n);
        let wanted = 8.0 + 2.0 * (100 * row + 10 * col + at) as f32 + 1000.3;
        assert!((got - wanted).abs() <= 1e-3, "at {at}: {got} {wanted}");
    }
}

#[test]
fn a_long_k_is_cut_into_parts_of_which_none_goes_through_too_many_rounds() {
    let k = 300_001;
    let sizes = sizes(1, 1, k);
    let parts = sizes.parts();
    assert!(parts >= 3, "{parts}");
    let product = Product { wide: false, ..plain(DType::F32, [Along::Any, Along::Any], Tile::CANDIDATES[0]) };
    let ones = vec![1.0_f32; k];
    let inputs = [bytes_of(&ones), bytes_of(&ones)];
    let got = run_f32(&product.shader(), &product.launch(&sizes, MOST), &inputs, parts);
    assert_eq!(got.iter().map(|v| *v as usize).sum::<usize>(), k);
}

#[test]
fn more_tiles_than_one_dimension_takes_are_folded() {
    let (m, n, k) = (70, 64, 4);
    let sizes = sizes(m, n, k);
    let product = plain(DType::F32, [Along::K, Along::Side], Tile::CANDIDATES[0]);
    let launch = product.launch(&sizes, 3);
    assert_eq!(launch.grid, [3, 2, 1], "five rows of tiles");
    let ones = vec![1.0_f32; m * n];
    let got = run_f32(&product.shader(), &launch, &[bytes_of(&ones), bytes_of(&ones)], m * n);
    assert_eq!(got, vec![4.0; m * n]);
}

#[test]
fn a_product_of_i8_is_one_sum_as_long_as_one_invocation_may_go_through_it() {
    let parts = |k: usize| Sizes { whole: true, ..sizes(1, 1, k) }.parts();
    assert_eq!((parts(1), parts(MOST_K)), (1, 1));
    assert!((MOST_K + 1..140_000).step_by(1009).all(|k| k.div_ceil(parts(k)) <= MOST_K));
}
