//! Every kernel has samples, they match its declaration, and the same seed draws them again.

use vramp_kernels::sample::{Chance, KernelSample};
use vramp_kernels::{PixelFn, head, pixel};
use vramp_plan::Size;

const SIZES: [(u32, u32); 6] = [(1, 1), (1, 7), (9, 1), (17, 13), (64, 48), (300, 2)];

/// The first sample that does not match this number of words and this kind of small data.
fn problem(samples: &[KernelSample], words: usize, small: bool) -> Option<String> {
    let wrong = |sample: &KernelSample| {
        let fits = sample.words.len() == words && (small || sample.small.is_empty());
        (!fits || sample.size.pixels() == 0).then(|| format!("{words} words, small data: {small}; {sample:?}"))
    };
    if samples.is_empty() { Some("no samples".to_owned()) } else { samples.iter().find_map(wrong) }
}

#[test]
fn every_kernel_has_samples_that_fit_it_and_are_drawn_again_from_the_same_seed() {
    for (size, seed) in SIZES.into_iter().zip(1..) {
        let (size, chance) = (Size { width: size.0, height: size.1 }, || Chance::new(seed));
        for function in pixel::ALL {
            let samples = function.drawn(&mut chance(), size);
            assert_eq!(problem(&samples, function.words, function.small), None, "{} at {size}", function.name);
            assert!(samples.iter().all(|sample| sample.size == size), "{} keeps the size", function.name);
            assert_eq!(samples, function.drawn(&mut chance(), size), "{}", function.name);
        }
        for head in head::ALL {
            let samples = head.drawn(&mut chance(), size);
            assert_eq!(problem(&samples, head.words, head.small), None, "{} at {size}", head.name);
            assert_eq!(samples, head.drawn(&mut chance(), size), "{}", head.name);
            assert!(head.source || samples[0].size == size, "{} makes the size that is asked for", head.name);
        }
    }
}

#[test]
#[should_panic(expected = "the kernel forgotten has no samples")]
fn a_kernel_without_samples_is_named() {
    let forgotten = PixelFn { name: "forgotten", ..PixelFn::PLAIN };
    forgotten.drawn(&mut Chance::new(1), Size { width: 1, height: 1 });
}

#[test]
fn samples_that_do_not_fit_are_found() {
    let sample = KernelSample::new(Size { width: 1, height: 1 }, &[1]);
    assert_eq!(problem(std::slice::from_ref(&sample), 1, false), None);
    assert!(problem(std::slice::from_ref(&sample), 2, false).is_some());
    assert!(problem(&[sample.small(vec![1])], 1, false).is_some());
    assert!(problem(&[], 1, false).is_some());
}
