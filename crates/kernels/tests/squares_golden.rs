//! Convolutions and edges equal their formulas. `data/squares/README.md` describes the reference images.

use crate::golden::GoldenCase;
use crate::heads_made::{Made, source};
use vramp_kernels::head::{convolve, edges};
use vramp_kernels::{Level, Pixel};

/// Compares every case of a head and returns their number.
fn compare(head: &str, made: impl Fn(&GoldenCase) -> Made) -> usize {
    let mut cases = GoldenCase::all("squares");
    cases.retain(|case| case.kernel == head);
    for case in &cases {
        let made = made(case).source(case.size, source(case.size));
        for level in Level::available() {
            let made = made.clone().at(level).whole();
            case.assert_near(&made, case.get("off"), level);
            let alpha = |pixels: &[Pixel]| pixels.iter().map(|pixel| pixel[3]).collect::<Vec<_>>();
            assert_eq!(alpha(&made), alpha(&case.expected), "{}: alpha is kept", case.line);
        }
    }
    cases.len()
}

#[test]
fn convolve_equals_its_formula_within_a_level_and_to_the_bit_where_weights_are_binary_fractions() {
    let count = compare("convolve", |case| {
        let divisor: f64 = case.get("divisor");
        let weights: Vec<f64> = case.numbers::<f64>("kernel").iter().map(|weight| weight / divisor).collect();
        let fixed = convolve::fixed(&weights, case.get("bias")).expect("they are not too large");
        Made::of(&convolve::CONVOLVE, case.size).words(&convolve::pack(&fixed)).small(convolve::small(&fixed))
    });
    assert_eq!(count, 64);
}

#[test]
fn edges_equal_their_formula_to_the_bit() {
    assert_eq!(compare("edges", |case| Made::of(&edges::EDGES, case.size)), 10);
}
