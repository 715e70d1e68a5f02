//! Sums over squares give what the formulas give: `data/squares/README.md` says where those pictures come from.

use std::path::PathBuf;

use crate::heads_made::{Made, source};
use vramp_kernels::head::{convolve, edges};
use vramp_kernels::{Level, Pixel};
use vramp_plan::Size;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/squares")
}

/// The cases of a head: line, size, how many levels it may be off, what makes it, and what must come out.
fn compare(head: &str, made: impl Fn(&dyn Fn(&str) -> String, Size) -> Made) -> usize {
    let text = std::fs::read_to_string(folder().join("cases.txt")).expect("the file is checked in");
    let mut count = 0;
    for line in text.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if words[2] != head {
            continue;
        }
        let bytes = std::fs::read(folder().join(words[0])).expect("the file is checked in");
        let size: Size = words[1].parse().expect("the second word is a size");
        let get = |name: &str| {
            let mut settings = words[3..].iter().filter_map(|word| word.split_once('='));
            settings.find(|(key, _)| *key == name).map(|(_, value)| value.to_owned()).expect("the reference wrote it")
        };
        let off: u8 = get("off").parse().expect("levels");
        let made = made(&get, size).source(size, source(size));
        for level in Level::available() {
            let made = made.clone().at(level).whole();
            for (i, (made, expected)) in made.iter().zip(bytes.as_chunks::<4>().0).enumerate() {
                let near =
                    |made: &Pixel, expected: &Pixel| made.iter().zip(expected).all(|(a, b)| a.abs_diff(*b) <= off);
                let (x, y) = (i as u32 % size.width, i as u32 / size.width);
                assert!(near(made, expected), "{line}: {made:?} instead of {expected:?} at {x}, {y}, {level}");
                assert_eq!(made[3], expected[3], "{line}: alpha is kept");
            }
            assert_eq!(made.len(), bytes.len() / 4, "{line}");
        }
        count += 1;
    }
    count
}

#[test]
fn convolve_equals_its_formula_within_a_level_and_to_the_bit_where_weights_are_binary_fractions() {
    let count = compare("convolve", |get, size| {
        let number = |text: &str| text.parse::<f64>().expect("the reference writes numbers");
        let divisor = number(&get("divisor"));
        let weights: Vec<f64> = get("kernel").split(',').map(|weight| number(weight) / divisor).collect();
        let fixed = convolve::fixed(&weights, number(&get("bias"))).expect("they are not too large");
        Made::of(&convolve::CONVOLVE, size).words(&convolve::pack(&fixed)).small(convolve::small(&fixed))
    });
    assert_eq!(count, 64);
}

#[test]
fn edges_equal_their_formula_to_the_bit() {
    assert_eq!(compare("edges", |_, size| Made::of(&edges::EDGES, size)), 10);
}
