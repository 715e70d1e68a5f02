//! `boxblur` and `median` equal their definitions and `OpenCV` at every vector level and in any bands.
//! `data/box/README.md` describes the reference images.

use crate::golden::GoldenCase;
use crate::heads_made::{Made, source};
use proptest::prelude::{ProptestConfig, Strategy, prop_assert, prop_assert_eq, prop_oneof, proptest};
use vramp_kernels::head::load_here::LOAD;
use vramp_kernels::head::{boxblur, median3, median5};
use vramp_kernels::pixel::table;
use vramp_kernels::{Level, Pixel};
use vramp_plan::Size;

fn mean(size: Size, side: u32) -> Made {
    Made::of(&boxblur::BOXBLUR, size).words(&boxblur::pack(side, size).expect("an odd side"))
}

fn median(size: Size, side: u32) -> Made {
    if side == 3 {
        Made::of(&median3::MEDIAN3, size).words(&median3::pack())
    } else {
        Made::of(&median5::MEDIAN5, size).words(&median5::pack())
    }
}

/// Compares every case of a handler and returns their number.
fn compare(handler: &str, made: fn(Size, u32) -> Made) -> usize {
    let mut cases = GoldenCase::all("box");
    cases.retain(|case| case.kernel == handler);
    for case in &cases {
        let made = made(case.size, case.get("size")).source(case.size, source(case.size)).whole();
        case.assert_near(&made, 0, "");
    }
    cases.len()
}

#[test]
fn boxblur_equals_the_exact_mean_to_the_bit() {
    assert!(compare("boxblur", mean) > 80);
}

#[test]
fn median_equals_opencv_to_the_bit() {
    assert_eq!(compare("median", median), 20);
}

/// Applies `level` to the square around every pixel, channel by channel, with repeated borders.
fn by_definition(pixels: &[Pixel], size: Size, side: u32, level: impl Fn(&mut [u8]) -> u8) -> Vec<Pixel> {
    let (w, h, reach) = (i64::from(size.width), i64::from(size.height), i64::from(side / 2));
    let places = (0..h).flat_map(|y| (0..w).map(move |x| (x, y)));
    let made = places.map(|(x, y)| {
        let around = (-reach..=reach).flat_map(|v| (-reach..=reach).map(move |u| (x + u, y + v)));
        let square: Vec<Pixel> =
            around.map(|(x, y)| pixels[(y.clamp(0, h - 1) * w + x.clamp(0, w - 1)) as usize]).collect();
        std::array::from_fn(|channel| level(&mut square.iter().map(|pixel| pixel[channel]).collect::<Vec<_>>()))
    });
    made.collect()
}

fn mean_of(square: &mut [u8]) -> u8 {
    let (sum, count) = (square.iter().map(|v| u32::from(*v)).sum::<u32>(), square.len() as u32);
    ((2 * sum + count) / (2 * count)) as u8
}

fn median_of(square: &mut [u8]) -> u8 {
    square.sort_unstable();
    square[square.len() / 2]
}

/// Small sizes, and some that are wide enough for whole chunks.
fn size() -> impl Strategy<Value = Size> {
    prop_oneof![3 => (1..40u32, 1..40u32), 1 => (125..180u32, 1..8u32)]
        .prop_map(|(width, height)| Size { width, height })
}

/// Sides for every way of computing means, and both medians.
fn any_of(size: Size) -> impl Iterator<Item = Made> {
    let means = [1, 3, 5, 7, 9, 13, 15, 17, 63, 127, 129, 257, 259, 511, 1023];
    means.into_iter().map(move |side| mean(size, side)).chain([3, 5].map(|side| median(size, side)))
}

proptest! {
    #[test]
    fn means_and_medians_equal_their_definitions(size in size(), half in 0..10u32) {
        let pixels = source(size);
        let made = mean(size, 2 * half + 1).source(size, pixels.clone()).whole();
        prop_assert_eq!(made, by_definition(&pixels, size, 2 * half + 1, mean_of));
        for side in [3, 5] {
            let made = median(size, side).source(size, pixels.clone()).whole();
            prop_assert_eq!(made, by_definition(&pixels, size, side, median_of));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn every_level_gives_the_same_bytes_in_any_bands(
        width in 1..600u32, height in 1..12u32, heights in proptest::collection::vec(1..9u32, 1..5),
    ) {
        let size = Size { width, height };
        for made in any_of(size) {
            let made = made.source(size, source(size));
            let plain = made.clone().at(Level::BASELINE).whole();
            for level in Level::available() {
                prop_assert_eq!(&made.clone().at(level).bands(&heights), &plain, "{}: {:?}", level, made);
            }
        }
    }

    #[test]
    fn functions_before_the_head_equal_the_source_changed_first(
        size in size(), level in 0..=255u8, heights in proptest::collection::vec(1..9u32, 1..5),
    ) {
        let curve = table::pack(&std::array::from_fn(|v| (v as u8).wrapping_mul(5) ^ level));
        let changed = Made::of(&LOAD, size).source(size, source(size)).before_head(&table::TABLE, &curve).whole();
        for made in any_of(size) {
            let at_once = made.clone().source(size, source(size)).before_head(&table::TABLE, &curve).bands(&heights);
            prop_assert!(at_once == made.clone().source(size, changed.clone()).whole(), "{:?}", made);
        }
    }
}

#[test]
fn white_stays_white_and_black_black() {
    let size = Size { width: 37, height: 5 };
    for level in [0, 255] {
        let flat = vec![[level; 4]; size.pixels() as usize];
        for made in any_of(size) {
            assert_eq!(made.source(size, flat.clone()).whole(), flat);
        }
    }
}
