//! Properties of convolutions, for any size and any weights.

use crate::heads_made::{Made, source};
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use vramp_kernels::head::load_here::LOAD;
use vramp_kernels::head::{convolve, edges};
use vramp_kernels::pixel::{markers, table};
use vramp_kernels::{Level, Pixel};
use vramp_plan::Size;

/// Single pixels, odd sides, and rows of several vectors.
fn size() -> impl Strategy<Value = Size> {
    prop_oneof![(1..24u32, 1..24u32), (1..90u32, 1..6u32)].prop_map(|(width, height)| Size { width, height })
}

fn heights() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(1..12u32, 1..6)
}

/// 9, 25 or 49 weights and a bias, small and near the maximum, many of them 0.
fn weights() -> impl Strategy<Value = (Vec<f64>, f64)> {
    let weight = || prop_oneof![1 => Just(0.0), 3 => -1.0..1.0f64];
    let square = (0..3usize).prop_flat_map(move |i| {
        let side = [3, 5, 7][i];
        proptest::collection::vec(weight(), side * side)
    });
    let scale = prop_oneof![Just(0.1), Just(1.0), Just(3.0), Just(40.0), Just(f64::INFINITY)];
    let bias = prop_oneof![Just(0.0), -400.0..400.0f64, -65_536.0..65_536.0f64];
    (square, scale, bias).prop_map(|(weights, scale, bias)| {
        let sum: f64 = weights.iter().map(|weight| weight.abs()).sum();
        let scale = f64::min(scale, 0.999 * convolve::most(bias) / sum.max(1e-9));
        (weights.iter().map(|weight| weight * scale).collect(), bias)
    })
}

/// Weights that are binary fractions, so that only the result is rounded.
fn whole_weights() -> impl Strategy<Value = (Vec<f64>, f64)> {
    let weight = |most: i32| prop_oneof![1 => Just(0), 2 => -most..=most];
    let square = (0..3usize, prop_oneof![Just(1), Just(5), Just(30)])
        .prop_flat_map(move |(i, most)| proptest::collection::vec(weight(most), [9, 25, 49][i]));
    (square, 0..6u32, -3000..3000i32).prop_map(|(weights, bits, bias)| {
        let of = f64::from(1 << bits);
        (weights.iter().map(|weight| f64::from(*weight) / of).collect(), f64::from(bias) / of)
    })
}

fn made(size: Size, fixed: &convolve::FixedWeights) -> Made {
    Made::of(&convolve::CONVOLVE, size).words(&convolve::pack(fixed)).small(convolve::small(fixed))
}

/// The sums in double precision, unrounded.
fn by_definition(pixels: &[Pixel], size: Size, weights: &[f64], bias: f64) -> Vec<[f64; 3]> {
    let reach = i64::from(weights.len().isqrt() as u32 / 2);
    let at = |x: i64, y: i64| {
        let (x, y) = (x.clamp(0, i64::from(size.width) - 1), y.clamp(0, i64::from(size.height) - 1));
        pixels[(y * i64::from(size.width) + x) as usize]
    };
    let offsets: Vec<_> = (-reach..=reach).flat_map(|y| (-reach..=reach).map(move |x| (x, y))).collect();
    let places = (0..i64::from(size.height)).flat_map(|y| (0..i64::from(size.width)).map(move |x| (x, y)));
    let sum = |x: i64, y: i64, channel: usize| {
        let value = |(right, down): &(i64, i64)| f64::from(at(x + right, y + down)[channel]);
        offsets.iter().zip(weights).map(|(offset, weight)| weight * value(offset)).sum::<f64>() + bias
    };
    places.map(|(x, y)| [0, 1, 2].map(|channel| sum(x, y, channel))).collect()
}

proptest! {
    #[test]
    fn every_level_gives_the_same_bytes_in_any_bands(
        size in size(), (weights, bias) in prop_oneof![weights(), whole_weights()], heights in heights(),
        with_table in any::<bool>(),
    ) {
        let fixed = convolve::fixed(&weights, bias).unwrap();
        for mut made in [made(size, &fixed), Made::of(&edges::EDGES, size)] {
            made = made.source(size, source(size));
            if with_table {
                made = made.before_head(&table::TABLE, &table::pack(&std::array::from_fn(|v| (v as u8).wrapping_mul(29))));
            }
            let plain = made.clone().at(Level::BASELINE).whole();
            for level in Level::available() {
                prop_assert_eq!(&made.clone().at(level).bands(&heights), &plain, "{}", level);
            }
        }
    }

    #[test]
    fn functions_before_the_head_equal_the_source_changed_first(
        size in size(), (weights, bias) in weights(), level in any::<u8>(),
    ) {
        let curve = table::pack(&std::array::from_fn(|v| (v as u8).wrapping_mul(5) ^ level));
        let fixed = convolve::fixed(&weights, bias).unwrap();
        for (function, words) in [(&table::TABLE, &curve[..]), (&markers::MARKERS, &markers::pack(9, level)[..])] {
            let changed = Made::of(&LOAD, size).source(size, source(size)).before_head(function, words).whole();
            for made in [made(size, &fixed), Made::of(&edges::EDGES, size)] {
                let at_once = made.clone().source(size, source(size)).before_head(function, words).whole();
                prop_assert_eq!(at_once, made.source(size, changed.clone()).whole());
            }
        }
    }

    #[test]
    fn any_weights_are_within_a_level_of_double_precision(size in size(), (weights, bias) in weights()) {
        let fixed = convolve::fixed(&weights, bias).unwrap();
        prop_assert!((12..=20).contains(&fixed.bits()) || weights.iter().all(|weight| *weight == 0.0));
        let made = made(size, &fixed).source(size, source(size)).whole();
        // Half a level from rounding the result, and the error of rounding the weights (see `rounded`).
        let most = 0.5 + (255.0 * (weights.len() as f64 / 4.0 + 0.5) + 0.5) / f64::from(1 << fixed.bits()) + 1e-6;
        prop_assert!(most < 1.5);
        for ((made, here), exact) in made.iter().zip(source(size)).zip(by_definition(&source(size), size, &weights, bias)) {
            for (made, exact) in made.iter().zip(exact) {
                prop_assert!((f64::from(*made) - exact.clamp(0.0, 255.0)).abs() <= most, "{} {}", made, exact);
            }
            prop_assert_eq!(made[3], here[3]);
        }
    }

    #[test]
    fn binary_fractions_are_exact(size in size(), (weights, bias) in whole_weights()) {
        let fixed = convolve::fixed(&weights, bias).unwrap();
        let made = made(size, &fixed).source(size, source(size)).whole();
        for (made, exact) in made.iter().zip(by_definition(&source(size), size, &weights, bias)) {
            prop_assert_eq!(made[..3].to_vec(), exact.map(|v| (v + 0.5).floor().clamp(0.0, 255.0) as u8));
        }
    }

    #[test]
    fn weights_that_come_to_one_leave_flat_pictures_as_they_are((weights, _) in weights(), v in any::<u8>()) {
        let sum: f64 = weights.iter().sum();
        let without_signs: f64 = weights.iter().map(|weight| weight.abs()).sum();
        let weights: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
        if without_signs / sum.abs() < 1000.0 {
            let size = Size { width: 21, height: 3 };
            let flat = vec![[v, 255 - v, 255, v]; 63];
            let fixed = convolve::fixed(&weights, 0.0).unwrap();
            prop_assert_eq!(made(size, &fixed).source(size, flat.clone()).whole(), flat);
        }
    }

    #[test]
    fn weights_are_refused_exactly_if_they_add_up_to_more_than_the_limit(
        (weights, bias) in weights(), part in 0.5..1.5f64,
    ) {
        let sum: f64 = weights.iter().map(|weight| weight.abs()).sum();
        if sum > 1e-6 && (part - 1.0).abs() > 1e-9 {
            let scale = part * convolve::most(bias) / sum;
            let weights: Vec<f64> = weights.iter().map(|weight| weight * scale).collect();
            prop_assert_eq!(convolve::fixed(&weights, bias).is_some(), part < 1.0);
        }
    }
}

/// The longest sums and the maximum number of weight parts, on white.
#[test]
fn sums_at_the_end_of_what_fits_do_not_wrap() {
    let size = Size { width: 30, height: 8 };
    let white = vec![[255; 4]; size.pixels() as usize];
    for count in [9_usize, 25, 49] {
        // Slightly more than twelve bits, so that weights are as long as possible.
        let weight = 0.999_99 * convolve::most(0.0) / count as f64;
        for sign in [1.0, -1.0] {
            let fixed = convolve::fixed(&vec![sign * weight; count], 0.0).expect("they just fit");
            let expected = if sign > 0.0 { 255 } else { 0 };
            for level in Level::available() {
                let made = made(size, &fixed).source(size, white.clone()).at(level).whole();
                assert!(
                    made.iter().all(|pixel| *pixel == [expected, expected, expected, 255]),
                    "{count} {sign} {level}"
                );
            }
        }
    }
}

#[test]
fn taps_without_weight_are_left_out_and_whole_numbers_have_no_fraction() {
    let taps = |weights: &[f64]| {
        let fixed = convolve::fixed(weights, 0.0).expect("small weights");
        (convolve::pack(&fixed)[0], convolve::small(&fixed).len(), fixed.bits())
    };
    assert_eq!(taps(&[0.0; 49]), (0, 0, 0));
    assert_eq!(taps(&[0.0, -1.0, 0.0, -1.0, 5.0, -1.0, 0.0, -1.0, 0.0]), (4, 8, 0));
    assert_eq!(taps(&[0.25; 9]), (8, 16, 2));
    // 1/9 is 29127.1 of 2^18, and would not fit 16 bits with more.
    assert_eq!(taps(&[1.0 / 9.0; 9]), (8, 16, 18));
    // Weights that round to 0 with any number of fraction bits.
    assert_eq!(taps(&[1e-9, 0.0, 0.0, 0.0, 1.7, 0.0, 0.0, 0.0, 1e-9]).0, 0);
    for weights in [&[1.0; 8][..], &[1.0; 16], &[], &[f64::NAN; 9], &[f64::INFINITY; 9]] {
        assert_eq!(convolve::fixed(weights, 0.0), None, "{weights:?}");
    }
    assert_eq!(convolve::fixed(&[1.0; 9], f64::NAN), None);
}

/// Every weight ends in half of its last bit: rounded one by one, all would move in the same direction.
#[test]
fn rounding_of_weights_does_not_add_up() {
    let size = Size { width: 20, height: 8 };
    let last = 1.0 / 8192.0;
    let mut weights: Vec<f64> = (0..49).map(|i| if i % 2 == 0 { 24.0 + last } else { last - 24.0 }).collect();
    weights[24] = 0.0;
    let fixed = convolve::fixed(&weights, 100.0).expect("they fit");
    assert_eq!(fixed.bits(), 12);
    let flat = vec![[255, 0, 128, 9]; size.pixels() as usize];
    // 48 halves of a last bit, times the level, plus a hundred.
    let [white, black, gray] = [255.0, 0.0, 128.0].map(|v: f64| (100.0 + 48.0 * last * v + 0.5).floor() as u8);
    let made = made(size, &fixed).source(size, flat).whole();
    assert!(made.iter().all(|pixel| *pixel == [white, black, gray, 9]), "{:?}", made[0]);
}
