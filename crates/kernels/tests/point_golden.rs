//! Colour tables, keys, crops, rotations and affine maps equal their formulas and `OpenCV`. `data/point/README.md`
//! describes the reference images.

use crate::golden::GoldenCase;
use crate::heads_made::{Made, source};
use vramp_kernels::head::load_here::LOAD;
use vramp_kernels::head::{crop, rotate, warp};
use vramp_kernels::pixel::{chromakey, cube};
use vramp_kernels::{FrameParams, KernelFrame, Picture, Pixel, PixelFn, Recipe, RowScratch};
use vramp_plan::Size;

/// The kernel's result, and its tolerance in levels.
fn made(case: &GoldenCase) -> (Vec<Pixel>, u8) {
    let size = case.size;
    match case.kernel.as_str() {
        "crop" => {
            let from = case.get("from");
            let words = crop::pack(case.get("x"), case.get("y"));
            (Made::of(&crop::CROP, size).source(from, source(from)).words(&words).whole(), 0)
        }
        "rotate" => {
            let from = case.get("from");
            let words = rotate::pack(case.get::<u32>("degrees") / 90);
            (Made::of(&rotate::ROTATE, size).source(from, source(from)).words(&words).whole(), 0)
        }
        "warp" => {
            let m = warp::Map::try_from(case.numbers("m")).expect("six numbers");
            let back = warp::inverse(&m).expect("it can be turned round");
            let made = Made::of(&warp::WARP, size).source(size, source(size)).words(&warp::pack());
            (made.small(warp::small(&back, size, size)).whole(), 1)
        }
        "chromakey" => {
            let key = <[u8; 3]>::try_from(case.numbers("key")).expect("three levels");
            let smooth = case.get("smooth");
            let words = chromakey::pack(key, case.get("similarity"), smooth);
            (function(&chromakey::CHROMAKEY, &words, &[], size), u8::from(smooth > 0.0))
        }
        "cube" => {
            let along = case.get("along");
            let (min, max): (f64, f64) = (case.get("min"), case.get("max"));
            let places = [std::array::from_fn(|v| (v as f64 / 255.0 - min) / (max - min)); 3];
            let entries = entries(along, case.get("low"), case.get("high"));
            let packed = cube::pack(along, &entries, &places).expect("it is whole");
            (function(&cube::CUBE, &packed.words, &packed.small, size), 1)
        }
        other => panic!("no kernel is called {other}"),
    }
}

/// The entries of a cube, as `reference/point.py` computes them.
fn entries(along: u32, low: f64, high: f64) -> Vec<[f32; 3]> {
    let pcg = |v: u32| {
        let s = v.wrapping_mul(747_796_405).wrapping_add(2_891_336_453);
        let t = ((s >> ((s >> 28) + 4)) ^ s).wrapping_mul(277_803_737);
        (t >> 22) ^ t
    };
    let value = |i: u32| (low + (high - low) * (f64::from(pcg(i) >> 8) / 16_777_216.0)) as f32;
    (0..along.pow(3)).map(|i| std::array::from_fn(|c| value(3 * i + c as u32 + 77 * along))).collect()
}

fn function(function: &'static PixelFn, words: &[u32], small: &[u32], size: Size) -> Vec<Pixel> {
    let recipe = Recipe::of(&LOAD).then(function);
    let layout = recipe.layout();
    let mut params = FrameParams::new();
    params.begin(&layout, size, size, 0);
    params.set(layout.after[0], words, small);
    let source = source(size);
    let picture = Picture::new(size, &source);
    let frame = KernelFrame { size, source: picture, extra_inputs: &[], small: params.small(), words: params.words() };
    let mut made = vec![[0; 4]; source.len()];
    recipe.program().band(&frame, 0, &mut made, &mut RowScratch::default());
    made
}

/// Compares all images of a kernel and returns the share of channels that differ.
fn compare(kernel: &str) -> f64 {
    let mut cases = GoldenCase::all("point");
    cases.retain(|case| case.kernel == kernel);
    assert!(cases.len() >= 5, "too few cases of {kernel}");
    let (mut off, mut all) = (0, 0);
    for case in cases {
        let (made, most) = made(&case);
        case.assert_near(&made, most, "");
        let channels = made.as_flattened().iter().zip(case.expected.as_flattened());
        off += channels.filter(|(a, b)| a != b).count();
        all += 4 * made.len();
    }
    off as f64 / all as f64
}

#[test]
fn a_crop_is_the_rectangle_and_a_rotation_is_opencvs() {
    assert!(compare("crop") == 0.0);
    assert!(compare("rotate") == 0.0);
}

#[test]
fn a_warp_is_within_a_level_of_double_precision_and_of_opencv_and_mostly_equal() {
    let off = compare("warp");
    assert!(off < 0.02, "{off}");
}

#[test]
fn a_chroma_key_is_its_formula_and_within_a_level_at_a_soft_edge() {
    let off = compare("chromakey");
    assert!(off < 0.001, "{off}");
}

#[test]
fn a_cube_is_within_a_level_of_tetrahedral_interpolation_and_mostly_equal() {
    let off = compare("cube");
    assert!(off < 0.05, "{off}");
}
