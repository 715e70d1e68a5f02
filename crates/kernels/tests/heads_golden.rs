//! Heads equal their formulas and other libraries. `data/heads/README.md` describes the reference images.

use crate::golden::{GoldenCase, lines};
use crate::heads_made::{Made, source};
use vramp_kernels::Pixel;
use vramp_kernels::head::{ball, bars, bilinear, blur, checker, disc, gradient, nearest, noise, solid};
use vramp_plan::{Rate, Size};

/// The head's result, and its tolerance in levels.
fn made(case: &GoldenCase) -> (Vec<Pixel>, u8) {
    let size = case.size;
    match case.kernel.as_str() {
        "solid" => {
            let mut levels = case.settings["color"].split(',').filter_map(|level| level.parse().ok());
            let color = std::array::from_fn(|_| levels.next().expect("a colour has four levels"));
            (Made::of(&solid::SOLID, size).words(&solid::pack(color)).whole(), 0)
        }
        "bars" => (Made::of(&bars::BARS, size).words(&bars::pack()).whole(), 0),
        "checker" => (Made::of(&checker::CHECKER, size).words(&checker::pack()).whole(), 0),
        "gradient" => (Made::of(&gradient::GRADIENT, size).words(&gradient::pack(case.get("n"))).whole(), 0),
        "noise" => {
            let words = noise::pack(case.get("n"), case.get("seed"));
            (Made::of(&noise::NOISE, size).words(&words).whole(), 0)
        }
        "ball" => {
            let words = ball::pack(size, case.get::<Rate>("fps"), case.get("n"));
            (Made::of(&ball::BALL, size).words(&words).whole(), 0)
        }
        "disc" => {
            let words = disc::pack(size, case.get::<Rate>("fps"), case.get("n"));
            (Made::of(&disc::DISC, size).words(&words).whole(), 0)
        }
        "blur" => {
            let weights = blur::weights(case.get("sigma"), case.get("size")).expect("OpenCV took it too");
            let made = Made::of(&blur::BLUR, size).source(size, source(size));
            (made.words(&blur::pack(&weights)).small(blur::small(&weights)).whole(), 0)
        }
        "bilinear" => {
            let from = case.get("from");
            let made = Made::of(&bilinear::BILINEAR, size).source(from, source(from));
            (made.words(&bilinear::pack()).small(bilinear::small(from, size)).whole(), 1)
        }
        "nearest" => {
            let from = case.get("from");
            let made = Made::of(&nearest::NEAREST, size).source(from, source(from));
            (made.words(&nearest::pack()).small(nearest::small(from, size)).whole(), 0)
        }
        other => panic!("no head is called {other}"),
    }
}
fn compare(heads: &[&str]) {
    let cases = GoldenCase::all("heads");
    for head in heads {
        assert!(cases.iter().filter(|case| case.kernel == *head).count() >= 4, "too few cases of {head}");
    }
    for case in cases.iter().filter(|case| heads.contains(&case.kernel.as_str())) {
        let (made, off) = made(case);
        case.assert_near(&made, off, "");
    }
}

#[test]
fn patterns_equal_their_formulas() {
    compare(&["solid", "bars", "checker", "gradient", "noise", "ball", "disc"]);
}

#[test]
fn blur_equals_opencv_to_the_bit() {
    compare(&["blur"]);
}

#[test]
fn bilinear_equals_opencv_within_one_level() {
    compare(&["bilinear"]);
}

#[test]
fn nearest_equals_its_formula() {
    compare(&["nearest"]);
}

#[test]
fn the_ball_is_where_the_formulas_say_in_every_size_rate_and_frame() {
    let lines = lines("heads", "ball.txt");
    assert_eq!(lines.len(), 6 * 5 * 15);
    for line in lines {
        let n: Vec<u64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
        let word = |i: usize| u32::try_from(n[i]).unwrap();
        let (size, rate) = (Size::new(word(0), word(1)).unwrap(), Rate::new(word(2), word(3)).unwrap());
        assert_eq!(ball::centre(size, rate, n[4]), [word(5), word(6)], "{line}");
        assert_eq!(ball::background(rate, n[4])[..3], [n[7], n[8], n[9]].map(|v| v as u8), "{line}");
        assert_eq!(ball::color(rate, n[4])[..3], [n[10], n[11], n[12]].map(|v| v as u8), "{line}");
    }
}

#[test]
fn the_weights_of_a_blur_are_opencvs() {
    let lines = lines("heads", "weights.txt");
    assert!(lines.len() > 30);
    for line in lines {
        let mut words = line.split(' ');
        let (sigma, size) = (words.next().unwrap().parse().unwrap(), words.next().unwrap().parse().unwrap());
        let expected: Vec<u32> = words.map(|w| w.parse().unwrap()).collect();
        assert_eq!(blur::weights(sigma, size).unwrap(), expected, "sigma {sigma}, size {size}");
    }
}

#[test]
fn a_blur_has_an_odd_size_and_a_sigma_above_zero() {
    let sizes = [(0.8, 7), (2.0, 13), (5.0, 31), (0.01, 1), (100.0, 601)];
    assert!(sizes.iter().all(|(sigma, size)| blur::size_of(*sigma) == *size));
    for (sigma, size) in [(2.0, 4), (2.0, 1025), (0.0, 3), (-1.0, 3), (f64::NAN, 3), (f64::INFINITY, 0), (300.0, 0)] {
        assert_eq!(blur::weights(sigma, size), None, "sigma {sigma}, size {size}");
    }
}
