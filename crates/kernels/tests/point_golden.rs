//! Colour tables, keys, cuts, turns and maps of the plane give what their formulas and `OpenCV` give:
//! `data/point/README.md` says where those pictures come from.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::heads_made::{Made, source};
use vramp_kernels::head::load_here::LOAD;
use vramp_kernels::head::{crop, rotate, warp};
use vramp_kernels::pixel::{chromakey, cube};
use vramp_kernels::{FrameParams, KernelFrame, Picture, Pixel, PixelFn, Recipe, RowScratch};
use vramp_plan::Size;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/point")
}

struct Case {
    line: String,
    kernel: String,
    size: Size,
    settings: BTreeMap<String, String>,
    expected: Vec<Pixel>,
}

impl Case {
    fn read(line: &str) -> Case {
        let words: Vec<&str> = line.split(' ').collect();
        let bytes = std::fs::read(folder().join(words[0])).expect("the file is checked in");
        let settings = words[3..].iter().filter_map(|word| word.split_once('='));
        Case {
            line: line.to_owned(),
            kernel: words[2].to_owned(),
            size: words[1].parse().expect("the second word is a size"),
            settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
            expected: bytes.as_chunks::<4>().0.to_vec(),
        }
    }

    fn get<T: std::str::FromStr<Err: std::fmt::Debug>>(&self, name: &str) -> T {
        self.settings[name].parse().expect("settings are written by the reference")
    }

    fn numbers<T: std::str::FromStr<Err: std::fmt::Debug>>(&self, name: &str) -> Vec<T> {
        self.settings[name].split(',').map(|number| number.parse().expect("a number")).collect()
    }

    /// What the kernel makes, and how many levels it may be off.
    fn made(&self) -> (Vec<Pixel>, u8) {
        let size = self.size;
        match self.kernel.as_str() {
            "crop" => {
                let from = self.get("from");
                let words = crop::pack(self.get("x"), self.get("y"));
                (Made::of(&crop::CROP, size).source(from, source(from)).words(&words).whole(), 0)
            }
            "rotate" => {
                let from = self.get("from");
                let words = rotate::pack(self.get::<u32>("degrees") / 90);
                (Made::of(&rotate::ROTATE, size).source(from, source(from)).words(&words).whole(), 0)
            }
            "warp" => {
                let m = warp::Map::try_from(self.numbers("m")).expect("six numbers");
                let back = warp::inverse(&m).expect("it can be turned round");
                let made = Made::of(&warp::WARP, size).source(size, source(size)).words(&warp::pack());
                (made.small(warp::small(&back, size, size)).whole(), 1)
            }
            "chromakey" => {
                let key = <[u8; 3]>::try_from(self.numbers("key")).expect("three levels");
                let smooth = self.get("smooth");
                let words = chromakey::pack(key, self.get("similarity"), smooth);
                (function(&chromakey::CHROMAKEY, &words, &[], size), u8::from(smooth > 0.0))
            }
            "cube" => {
                let along = self.get("along");
                let (min, max): (f64, f64) = (self.get("min"), self.get("max"));
                let places = [std::array::from_fn(|v| (v as f64 / 255.0 - min) / (max - min)); 3];
                let entries = entries(along, self.get("low"), self.get("high"));
                let packed = cube::pack(along, &entries, &places).expect("it is whole");
                (function(&cube::CUBE, &packed.words, &packed.small, size), 1)
            }
            other => panic!("no kernel is called {other}"),
        }
    }
}

/// The entries of a cube, as `reference/point.py` makes them.
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
    let frame = KernelFrame { size, source: picture, sides: &[], small: params.small(), words: params.words() };
    let mut made = vec![[0; 4]; source.len()];
    recipe.program().band(&frame, 0, &mut made, &mut RowScratch::default());
    made
}

/// Compares all pictures of a kernel, and hands back which part of all channels is off at all.
fn compare(kernel: &str) -> f64 {
    let text = std::fs::read_to_string(folder().join("cases.txt")).expect("the file is checked in");
    let cases: Vec<Case> = text.lines().map(Case::read).filter(|case| case.kernel == kernel).collect();
    assert!(cases.len() >= 5, "too few cases of {kernel}");
    let (mut off, mut all) = (0, 0);
    for case in cases {
        let (made, most) = case.made();
        assert_eq!(made.len(), case.expected.len(), "{}", case.line);
        for (i, (made, expected)) in made.iter().zip(&case.expected).enumerate() {
            let (x, y) = (i as u32 % case.size.width, i as u32 / case.size.width);
            for (a, b) in made.iter().zip(expected) {
                assert!(a.abs_diff(*b) <= most, "{}: {made:?} instead of {expected:?} at {x}, {y}", case.line);
                off += u32::from(a != b);
                all += 1;
            }
        }
    }
    f64::from(off) / f64::from(all)
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
