//! Pixel functions against references that share no code with them: formulas in double precision, and `OpenCV`.
//!
//! `tests/data/pixels/README.md` describes the reference images.

use vramp_kernels::head::load_here::LOAD;
use vramp_kernels::pixel::color;
use vramp_kernels::pixel::glyphs::{self, GLYPHS, Glyph};
use vramp_kernels::pixel::gray::GRAY;
use vramp_kernels::pixel::matrix::{self, MATRIX};
use vramp_kernels::pixel::mix::{self, MIX, Mode};
use vramp_kernels::pixel::overlay::{self, OVERLAY};
use vramp_kernels::pixel::table::{self, LookupTable, TABLE, table_of};
use vramp_kernels::pixel::threshold::{self, THRESHOLD};
use vramp_kernels::{FrameParams, KernelFrame, Picture, Pixel, PixelFn, Recipe, RowScratch};
use vramp_plan::Size;

const PICTURES: [(u32, u32); 7] = [(1, 1), (1, 1), (1, 7), (1, 7), (17, 13), (17, 13), (64, 48)];

fn file(name: &str) -> Vec<u8> {
    let path = format!("{}/tests/data/pixels/{name}.rgba", env!("CARGO_MANIFEST_DIR"));
    std::fs::read(&path).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// The images of a file, with their sizes.
fn pictures(name: &str) -> Vec<(Size, Vec<Pixel>)> {
    let bytes = file(name);
    let mut pixels = bytes.as_chunks::<4>().0;
    let mut found = Vec::new();
    for (width, height) in PICTURES {
        let Some((picture, rest)) = pixels.split_at_checked((width * height) as usize) else { break };
        found.push((Size { width, height }, picture.to_vec()));
        pixels = rest;
    }
    assert!(pixels.is_empty() && found.len() >= 6, "{name} does not hold whole pictures");
    found
}

/// A function with its words and small data.
type Step = (&'static PixelFn, Vec<u32>, Vec<u32>);

fn run(steps: &[Step], size: Size, a: &[Pixel], b: &[Pixel]) -> Vec<Pixel> {
    let recipe = steps.iter().fold(Recipe::of(&LOAD), |recipe, (function, ..)| recipe.then(function));
    let layout = recipe.layout();
    let mut params = FrameParams::new();
    params.begin(&layout, size, size, 0);
    for (part, (_, words, small)) in layout.after.iter().zip(steps) {
        params.set(*part, words, small);
    }
    let side = Picture::new(size, b).expect("both have one size");
    let frame = KernelFrame {
        size,
        source: Picture::new(size, a),
        extra_inputs: &[side],
        small: params.small(),
        words: params.words(),
    };
    let mut out = vec![[0; 4]; a.len()];
    recipe.program().band(&frame, 0, &mut out, &mut RowScratch::default());
    out
}

/// Compares a function with its reference: no channel differs by more than `most` levels, and at most `share` of them
/// differ at all.
#[track_caller]
fn check(name: &str, most: u8, share: f64, steps: impl Fn(Size) -> Vec<Step>) {
    let (mut off, mut all) = (0, 0);
    for ((size, wanted), ((_, a), (_, b))) in pictures(name).iter().zip(pictures("a").iter().zip(&pictures("b"))) {
        let got = run(&steps(*size), *size, a, b);
        for (at, (got, wanted)) in got.as_flattened().iter().zip(wanted.as_flattened()).enumerate() {
            let apart = got.abs_diff(*wanted);
            assert!(apart <= most, "{name}, {size}, channel {at}: {got}, reference {wanted}");
            off += u32::from(apart > 0);
            all += 1;
        }
    }
    assert!(f64::from(off) <= share * f64::from(all), "{name}: {off} of {all} channels are off");
}

fn table(table: &LookupTable) -> Vec<Step> {
    vec![(&TABLE, table::pack(table).to_vec(), vec![])]
}

fn matrix(m: &color::ColorMatrix) -> Vec<Step> {
    vec![(&MATRIX, matrix::pack(m).expect("the factors are small").to_vec(), vec![])]
}

fn mixed(mode: Mode, amount: f64) -> Vec<Step> {
    vec![(&MIX, mix::pack(mode, amount).to_vec(), vec![])]
}

#[test]
fn tables_equal_their_formulas() {
    check("brightness_up", 0, 0.0, |_| table(&color::brightness(0.2)));
    check("brightness_down", 0, 0.0, |_| table(&color::brightness(-0.35)));
    check("contrast_pivot", 0, 0.0, |_| table(&color::contrast(1.7, 0.5)));
    check("contrast_negative", 0, 0.0, |_| table(&color::contrast(-1.0, 0.5)));
    check("gamma_bright", 0, 0.0, |_| table(&color::gamma(2.2)));
    check("gamma_dark", 0, 0.0, |_| table(&color::gamma(0.45)));
    check("invert", 0, 0.0, |_| table(&color::invert()));
}

#[test]
fn contrast_and_brightness_are_within_a_level_of_opencv() {
    check("contrast_brightness_opencv", 1, 1.0, |_| {
        table(&table::fold(&color::contrast(1.2, 0.0), &color::brightness(0.039_215_7)))
    });
}

#[test]
fn matrices_are_within_a_level_of_their_formulas_and_nearly_always_equal() {
    // With twelve fraction bits a factor is off by at most 1/8192, so a sum of four by at most an eighth of a level.
    check("saturation_less", 1, 0.05, |_| matrix(&color::saturation(0.7)));
    check("saturation_none", 1, 0.05, |_| matrix(&color::saturation(0.0)));
    check("saturation_more", 1, 0.05, |_| matrix(&color::saturation(2.5)));
    check("hue_37", 1, 0.05, |_| matrix(&color::hue(37.0)));
    check("hue_180", 1, 0.05, |_| matrix(&color::hue(180.0)));
    check("colormatrix", 1, 0.05, |_| matrix(&COLORMATRIX));
}

const COLORMATRIX: color::ColorMatrix =
    [0.5, 0.4, -0.3, 0.1, 0.05, -1.25, 2.0, 0.2, 0.0, -0.1, 0.1, 0.2, 0.3, 0.4, 0.0, 0.3, -0.2, 0.1, 0.7, 0.02];

#[test]
fn a_colormatrix_is_within_a_level_of_opencv() {
    check("colormatrix_opencv", 1, 1.0, |_| matrix(&COLORMATRIX));
}

#[test]
fn gray_equals_opencv_and_threshold_its_comparison() {
    check("gray_opencv", 0, 0.0, |_| vec![(&GRAY, vec![], vec![])]);
    for (name, level) in [("threshold_half", 0.5), ("threshold_fifth", 0.2)] {
        check(name, 0, 0.0, |_| vec![(&THRESHOLD, threshold::pack(level).to_vec(), vec![])]);
    }
}

/// 0.3 of every tenth difference is half a level, and neither twin represents 0.3 exactly.
const TIES: f64 = 0.12;

#[test]
fn mixing_is_within_a_level_of_its_formulas_and_of_opencv() {
    check("mix", 1, TIES, |_| mixed(Mode::Mix, 0.3));
    check("mix_opencv", 1, 1.0, |_| mixed(Mode::Mix, 0.3));
    check("over", 1, 0.02, |_| mixed(Mode::Over, 0.6));
    check("over_full", 1, 0.02, |_| mixed(Mode::Over, 1.0));
    check("add", 1, TIES, |_| mixed(Mode::Add, 0.3));
    check("multiply", 1, TIES, |_| mixed(Mode::Multiply, 0.3));
    check("screen", 1, TIES, |_| mixed(Mode::Screen, 0.3));
    check("difference", 1, TIES, |_| mixed(Mode::Difference, 0.3));
    check("difference_full", 0, 0.0, |_| mixed(Mode::Difference, 1.0));
}

#[test]
fn an_overlay_is_within_a_level_of_its_formula_wherever_it_lies() {
    let logo: Vec<u32> = overlay::small(file("logo").as_chunks().0).collect();
    let size = Size { width: 5, height: 4 };
    check("overlay", 1, 0.02, |_| vec![(&OVERLAY, overlay::pack(2, 1, size, 0.7).to_vec(), logo.clone())]);
    check("overlay_far_edges", 1, 0.02, |frame| {
        let (left, top) = (overlay::resolve(-3, 5, frame.width), overlay::resolve(-1, 4, frame.height));
        vec![(&OVERLAY, overlay::pack(left, top, size, 1.0).to_vec(), logo.clone())]
    });
}

#[test]
fn glyphs_are_within_a_level_of_their_formula() {
    let large = |x, y| Glyph { x, y, width: 4, height: 5, at: 0 };
    let little = |x, y| Glyph { x, y, width: 3, height: 3, at: 20 };
    let lines = [vec![large(-1, 0), little(2, 1), large(3, 2)], vec![large(11, 9), little(15, 8)]];
    check("glyphs", 1, 0.02, |frame| {
        let mut small = Vec::new();
        let words = glyphs::pack([250, 120, 10, 200], &file("atlas"), &lines, frame, &mut small).unwrap();
        vec![(&GLYPHS, words.to_vec(), small)]
    });
}

#[test]
fn the_chain_of_five_is_within_a_level_of_rounding_after_every_step() {
    check("chain5", 1, TIES, |_| {
        let (contrast, brightness) = (color::contrast(1.2, 0.0), color::brightness(0.039_215_7));
        let mut steps = table(&table::fold(&table::fold(&contrast, &brightness), &color::gamma(2.2)));
        steps.extend(matrix(&color::saturation(0.7)));
        steps.extend(table(&color::invert()));
        steps.extend(mixed(Mode::Mix, 0.3));
        steps
    });
}

#[test]
fn a_wrong_function_would_be_noticed() {
    let wrong = table_of(|v| v + 255.0 * 0.2 + 1.0);
    let noticed = std::panic::catch_unwind(|| check("brightness_up", 0, 0.0, |_| table(&wrong)));
    assert!(noticed.is_err());
}
