//! Properties of heads for any size and setting: bands join without a seam, and functions before the head see the
//! source.

use crate::heads_made::{Made, source};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};
use vramp_kernels::head::load_here::LOAD;
use vramp_kernels::head::{self, Head, bilinear, blur, nearest, warp};
use vramp_kernels::pixel::{markers, table};
use vramp_kernels::sample::Chance;
use vramp_kernels::{Level, Pixel};
use vramp_plan::Size;

fn size() -> impl Strategy<Value = Size> {
    (1..40u32, 1..40u32).prop_map(|(width, height)| Size { width, height })
}

/// A sample of a random head, with or without a source, for a source of this size.
fn drawn(reads: bool, source: impl Strategy<Value = Size>) -> impl Strategy<Value = (Made, Size)> {
    let heads: Vec<&Head> = head::ALL.iter().copied().filter(|head| head.source == reads).collect();
    (0..heads.len(), source, any::<u64>()).prop_map(move |(at, source, seed)| {
        let mut chance = Chance::new(seed);
        let mut drawn = heads[at].drawn(&mut chance, source);
        let sample = drawn.swap_remove(chance.below(drawn.len() as u32) as usize);
        (Made::sampled(heads[at], source, sample), source)
    })
}

/// Heads without a source.
fn generators() -> impl Strategy<Value = Made> {
    let sides = (1..150u32, 1..150u32).prop_map(|(width, height)| Size { width, height });
    drawn(false, sides).prop_map(|(made, _)| made)
}

/// Heads with a source, and its size.
fn readers() -> impl Strategy<Value = (Made, Size)> {
    drawn(true, size())
}

/// Heads with a source whose rows have several vectors.
fn wide_readers() -> impl Strategy<Value = (Made, Size)> {
    drawn(true, (1..150u32, 1..12u32).prop_map(|(width, height)| Size { width, height }))
}

fn heights() -> impl Strategy<Value = Vec<u32>> {
    proptest::collection::vec(1..12u32, 1..6)
}

/// A blur by the definition: every tap of the square, in 64 bits.
fn blur_by_definition(pixels: &[Pixel], size: Size, weights: &[u32]) -> Vec<Pixel> {
    let reach = i64::from(weights.len() as u32 / 2);
    let at = |x: i64, y: i64| {
        let x = x.clamp(0, i64::from(size.width) - 1);
        let y = y.clamp(0, i64::from(size.height) - 1);
        pixels[(y * i64::from(size.width) + x) as usize]
    };
    let places = (0..i64::from(size.height)).flat_map(|y| (0..i64::from(size.width)).map(move |x| (x, y)));
    let blurred = places.map(|(x, y)| {
        let mut sum = [0u64; 4];
        for (v, down) in (-reach..).zip(weights) {
            for (u, along) in (-reach..).zip(weights) {
                let pixel = at(x + u, y + v);
                for channel in 0..4 {
                    sum[channel] += u64::from(down * along) * u64::from(pixel[channel]);
                }
            }
        }
        sum.map(|s| ((s + 32768) >> 16) as u8)
    });
    blurred.collect()
}

/// A bilinear resize in double precision, unrounded.
fn bilinear_in_doubles(pixels: &[Pixel], from: Size, to: Size) -> Vec<[f64; 4]> {
    let axis = |at: u32, from: u32, to: u32| {
        let place = ((f64::from(at) + 0.5) * f64::from(from) / f64::from(to) - 0.5).clamp(0.0, f64::from(from - 1));
        let first = place.floor() as u32;
        (first, (first + 1).min(from - 1), place - place.floor())
    };
    let mut made = Vec::new();
    for y in 0..to.height {
        for x in 0..to.width {
            let (x0, x1, u) = axis(x, from.width, to.width);
            let (y0, y1, v) = axis(y, from.height, to.height);
            let at = |x: u32, y: u32, channel: usize| f64::from(pixels[(y * from.width + x) as usize][channel]);
            made.push(std::array::from_fn(|c| {
                let (top, bottom) =
                    (at(x0, y0, c) * (1.0 - u) + at(x1, y0, c) * u, at(x0, y1, c) * (1.0 - u) + at(x1, y1, c) * u);
                top * (1.0 - v) + bottom * v
            }));
        }
    }
    made
}

proptest! {
    #[test]
    fn every_level_gives_the_same_bytes(
        pattern in generators(), (mut made, _) in wide_readers(), heights in heights(), with_table in any::<bool>(),
    ) {
        if with_table {
            made = made.before_head(&table::TABLE, &table::pack(&std::array::from_fn(|v| (v as u8).wrapping_mul(29))));
        }
        for made in [pattern, made] {
            let plain = made.clone().at(Level::BASELINE).whole();
            for level in Level::available() {
                prop_assert_eq!(&made.clone().at(level).bands(&heights), &plain, "{}", level);
            }
        }
    }

    #[test]
    fn a_pattern_in_bands_equals_the_whole(made in generators(), heights in heights()) {
        prop_assert_eq!(made.bands(&heights), made.whole());
    }

    #[test]
    fn a_gather_or_stencil_in_bands_equals_the_whole((made, _) in readers(), heights in heights()) {
        prop_assert_eq!(made.bands(&heights), made.whole());
        let before = made.before_head(&markers::MARKERS, &markers::pack(7, 99));
        prop_assert_eq!(before.bands(&heights), before.whole());
    }

    #[test]
    fn functions_before_the_head_equal_the_source_changed_first((made, from) in readers(), level in 0..=255u8) {
        let curve = table::pack(&std::array::from_fn(|v| (v as u8).wrapping_mul(5) ^ level));
        for (function, words) in [(&table::TABLE, &curve[..]), (&markers::MARKERS, &markers::pack(9, level)[..])] {
            let changed = Made::of(&LOAD, from).source(from, source(from)).before_head(function, words).whole();
            prop_assert!(changed != source(from) || from.pixels() < 20);
            let at_once = made.clone().before_head(function, words).whole();
            prop_assert_eq!(at_once, made.clone().source(from, changed).whole());
        }
    }

    #[test]
    fn a_blur_equals_its_definition(size in size(), sigma in 0.05..9.0f64, half in 0..9u32) {
        let weights = blur::weights(sigma, 2 * half + 1).unwrap();
        let made = Made::of(&blur::BLUR, size).words(&blur::pack(&weights)).small(blur::small(&weights));
        let expected = blur_by_definition(&source(size), size, &weights);
        prop_assert_eq!(made.source(size, source(size)).whole(), expected);
    }

    #[test]
    fn the_weights_of_a_blur_come_to_256_and_are_mirrored(sigma in 0.01..100.0f64, half in 0..512u32) {
        let weights = blur::weights(sigma, 2 * half + 1).unwrap();
        prop_assert_eq!(weights.len() as u32, 2 * half + 1);
        prop_assert_eq!(weights.iter().sum::<u32>(), 256);
        prop_assert!(weights.iter().eq(weights.iter().rev()));
        prop_assert!(blur::small(&weights).len() <= 128);
    }

    #[test]
    fn bilinear_is_within_a_level_of_double_precision(from in size(), to in size()) {
        let made = Made::of(&bilinear::BILINEAR, to).words(&bilinear::pack()).small(bilinear::small(from, to));
        let made = made.source(from, source(from)).whole();
        for (made, expected) in made.iter().zip(bilinear_in_doubles(&source(from), from, to)) {
            for (made, expected) in made.iter().zip(expected) {
                // Half a level from rounding, and the effect of 12 fraction bits in two positions.
                prop_assert!((f64::from(*made) - expected).abs() < 0.5 + 2.0 * 255.0 / 8192.0 + 1e-9);
            }
        }
    }
}

/// Maps that move the image far away, or leave little of it.
#[test]
fn maps_that_lead_far_out_of_the_picture_leave_nothing_and_break_nothing() {
    let size = Size { width: 37, height: 29 };
    let far = [1e-300, 1e-9, 1e-3, 1.0, 1e3, 1e9, 1e15, 1e300];
    for (one, other) in far.iter().flat_map(|one| far.iter().map(move |other| (*one, *other))) {
        for m in [[one, 0.0, other, 0.0, one, -other], [one, other, 0.0, -other, one, other]] {
            let Some(back) = warp::inverse(&m) else { continue };
            let made = Made::of(&warp::WARP, size).small(warp::small(&back, size, size));
            assert_eq!(made.source(size, source(size)).whole().len() as u64, size.pixels());
        }
    }
    // An image that is moved by more than its size is gone.
    for away in [37.0, 1e3, 1e6, 1e15, 1e300] {
        for m in [[1.0, 0.0, away, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0, 1.0, -away]] {
            let back = warp::inverse(&m).expect("a shift has a way back");
            let made = Made::of(&warp::WARP, size).small(warp::small(&back, size, size)).source(size, source(size));
            assert!(made.whole().iter().all(|pixel| *pixel == [0; 4]), "{m:?}");
        }
    }
    for flat in [[0.0; 6], [1.0, 2.0, 0.0, 2.0, 4.0, 0.0], [f64::NAN, 0.0, 0.0, 0.0, 1.0, 0.0]] {
        assert_eq!(warp::inverse(&flat), None);
    }
}

#[test]
fn the_largest_pictures_are_mapped_from_their_last_column_and_row() {
    let long = Size::new(65_536, 2).unwrap();
    let pixels: Vec<Pixel> = (0..long.pixels() as u32).map(|i| (i.wrapping_mul(77) | 1 << 24).to_le_bytes()).collect();
    let back = warp::inverse(&[-1.0, 0.0, 65_535.0, 0.0, -1.0, 1.0]).unwrap();
    let made = Made::of(&warp::WARP, long).small(warp::small(&back, long, long)).source(long, pixels.clone()).whole();
    assert!(made.iter().eq(pixels.iter().rev()));
}

#[test]
fn white_stays_white_and_black_black_under_every_weight() {
    let size = Size { width: 37, height: 5 };
    for level in [0, 255] {
        for (sigma, taps) in [(0.01, 1), (0.5, 3), (2.0, 13), (100.0, 1023)] {
            let weights = blur::weights(sigma, taps).unwrap();
            let made = Made::of(&blur::BLUR, size).words(&blur::pack(&weights)).small(blur::small(&weights));
            let flat = vec![[level; 4]; size.pixels() as usize];
            assert_eq!(made.source(size, flat.clone()).whole(), flat);
        }
    }
}

#[test]
fn the_longest_sides_are_resized_from_within_the_source() {
    let (long, one) = (Size::new(65_536, 1).unwrap(), Size::new(1, 65_536).unwrap());
    for (from, to) in [(long, one), (one, long), (long, long)] {
        let (columns, rows) = (to.width as usize, from.height);
        let places = nearest::small(from, to);
        assert!(places[..columns].iter().all(|x| *x < from.width) && places[columns..].iter().all(|y| *y < rows));
        let places = bilinear::small(from, to);
        let last = |side: u32| (side - 1) << bilinear::FRACTION_BITS;
        assert!(places[..columns].iter().all(|x| *x <= last(from.width)));
        assert!(places[columns..].iter().all(|y| *y <= last(rows)));
    }
}
