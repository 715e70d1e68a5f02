//! `resample` equals `OpenCV` and its formulas. `data/resample/README.md` describes the reference images.

use crate::golden::GoldenCase;
use crate::heads_made::{Made, source};
use vramp_kernels::head::resample::{self, axis::ResampleFilter};
use vramp_kernels::{Level, Pixel};
use vramp_plan::Size;

fn made(filter: ResampleFilter, from: Size, size: Size) -> Made {
    let (words, small) = resample::pack(filter, from, size);
    Made::of(&resample::RESAMPLE, size).source(from, source(from)).words(&words).small(small)
}

fn compare(name: &str, filter: ResampleFilter) {
    let mut cases = GoldenCase::all("resample");
    cases.retain(|case| case.kernel == name);
    assert!(cases.len() >= 20, "too few cases of {name}");
    for case in cases {
        for level in Level::available() {
            let made = made(filter, case.get("from"), case.size).at(level).whole();
            case.assert_near(&made, 1, level);
        }
    }
}

#[test]
fn areas_equal_opencvs_within_one_level() {
    compare("area", ResampleFilter::Area);
}

#[test]
fn lanczos_equals_its_formula_within_one_level() {
    compare("lanczos", ResampleFilter::Lanczos);
}

#[test]
fn the_same_size_is_the_same_picture() {
    for filter in [ResampleFilter::Area, ResampleFilter::Lanczos] {
        for size in [Size { width: 1, height: 1 }, Size { width: 37, height: 23 }] {
            assert_eq!(made(filter, size, size).whole(), source(size));
        }
    }
}

#[test]
fn an_area_of_whole_pixels_is_their_mean_to_the_bit() {
    for (factor, size) in
        [(2, Size { width: 70, height: 9 }), (3, Size { width: 33, height: 5 }), (2, Size { width: 1, height: 1 })]
    {
        let from = Size { width: factor * size.width, height: factor * size.height };
        let pixels = source(from);
        let made = made(ResampleFilter::Area, from, size).whole();
        for (at, made) in (0..).zip(&made) {
            let (x, y) = (at % size.width * factor, at / size.width * factor);
            let covered = (y..y + factor).flat_map(|y| (x..x + factor).map(move |x| (x, y)));
            let sum = covered.fold([0; 4], |sum: [u32; 4], (x, y)| {
                let pixel = pixels[(y * from.width + x) as usize];
                std::array::from_fn(|c| sum[c] + u32::from(pixel[c]))
            });
            let count = factor * factor;
            let off = u8::from(factor != 2);
            let near =
                made.iter().zip(sum).all(|(made, sum)| made.abs_diff(((2 * sum + count) / (2 * count)) as u8) <= off);
            assert!(near, "{factor}: {made:?} at {x}, {y}");
        }
    }
}

#[test]
fn a_huge_picture_becomes_a_pixel_and_a_pixel_becomes_huge_without_overflowing() {
    let levels = [[0; 4], [255; 4], [0, 255, 128, 3]];
    let (one, long) = (Size { width: 1, height: 1 }, 65_536);
    for filter in [ResampleFilter::Area, ResampleFilter::Lanczos] {
        for huge in
            [Size { width: long, height: 2 }, Size { width: 2, height: long }, Size { width: 4000, height: 300 }]
        {
            for level in levels {
                for (from, to) in [(huge, one), (one, huge)] {
                    let (words, small) = resample::pack(filter, from, to);
                    let made = Made::of(&resample::RESAMPLE, to).words(&words).small(small);
                    let made = made.source(from, vec![level; from.pixels() as usize]).whole();
                    assert!(made.iter().all(|pixel| *pixel == level), "{filter:?} {from} {to} {level:?}");
                }
            }
        }
    }
}

#[test]
fn thousands_of_taps_are_within_a_level_of_double_precision() {
    let from = Size { width: 5000, height: 3 };
    let pixels: Vec<Pixel> =
        (0..from.width * from.height).map(|i| (i.wrapping_mul(2_654_435_761) >> 5).to_le_bytes()).collect();
    for to in [Size { width: 1, height: 1 }, Size { width: 3, height: 2 }] {
        let (words, small) = resample::pack(ResampleFilter::Area, from, to);
        let made = Made::of(&resample::RESAMPLE, to).words(&words).small(small).source(from, pixels.clone());
        for (at, pixel) in (0..).zip(made.whole()) {
            let (x, y) = (f64::from(at % to.width), f64::from(at / to.width));
            let scale = |from: u32, to: u32| f64::from(from) / f64::from(to);
            let (along, down) = (scale(from.width, to.width), scale(from.height, to.height));
            let covered = |at: f64, scale: f64, pixel: u32| {
                let pixel = f64::from(pixel);
                (((at + 1.0) * scale).min(pixel + 1.0) - (at * scale).max(pixel)).max(0.0) / scale
            };
            for (c, made) in pixel.iter().enumerate() {
                let mut sum = 0.0;
                for (i, pixel) in (0..).zip(&pixels) {
                    sum += covered(x, along, i % from.width) * covered(y, down, i / from.width) * f64::from(pixel[c]);
                }
                assert!((f64::from(*made) - sum).abs() < 1.0, "{to}: {made} instead of {sum}");
            }
        }
    }
}
