//! Reference images: a line per case in `data/*/cases.txt`, and a file of pixels for each.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::path::PathBuf;
use std::str::FromStr;

use vramp_kernels::Pixel;
use vramp_plan::Size;

/// A line of the form `FILE SIZE KERNEL WORD...`, and the pixels of its file.
pub struct GoldenCase {
    pub line: String,
    pub size: Size,
    pub kernel: String,
    /// The words after the kernel.
    pub words: Vec<String>,
    /// The words of the form `NAME=VALUE`.
    pub settings: BTreeMap<String, String>,
    pub expected: Vec<Pixel>,
}

/// The lines of a file in a folder of `data`.
pub fn lines(folder: &str, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(path(folder).join(file)).expect("the file is checked in");
    text.lines().map(str::to_owned).collect()
}

fn path(folder: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(folder)
}

impl GoldenCase {
    /// All cases of a folder in `data`.
    pub fn all(folder: &str) -> Vec<GoldenCase> {
        let read = |line: &String| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let bytes = std::fs::read(path(folder).join(&words[0])).expect("the file is checked in");
            let settings = words[3..].iter().filter_map(|word| word.split_once('='));
            let (expected, []) = bytes.as_chunks::<4>() else { panic!("{line}: not whole pixels") };
            GoldenCase {
                line: line.clone(),
                size: words[1].parse().expect("the second word is a size"),
                kernel: words[2].clone(),
                settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).collect(),
                words: words[3..].to_vec(),
                expected: expected.to_vec(),
            }
        };
        lines(folder, "cases.txt").iter().map(read).collect()
    }

    pub fn get<T: FromStr<Err: Debug>>(&self, name: &str) -> T {
        self.settings[name].parse().expect("settings are written by the reference")
    }

    pub fn numbers<T: FromStr<Err: Debug>>(&self, name: &str) -> Vec<T> {
        self.settings[name].split(',').map(|number| number.parse().expect("a number")).collect()
    }

    /// Asserts that every channel of every pixel differs by at most `off` levels.
    #[track_caller]
    pub fn assert_near(&self, made: &[Pixel], off: u8, context: impl Display) {
        assert_eq!(made.len(), self.expected.len(), "{}, {context}", self.line);
        for (i, (made, expected)) in made.iter().zip(&self.expected).enumerate() {
            let near = made.iter().zip(expected).all(|(a, b)| a.abs_diff(*b) <= off);
            let (x, y) = (i as u32 % self.size.width, i as u32 / self.size.width);
            assert!(near, "{}: {made:?} instead of {expected:?} at {x}, {y}, {context}", self.line);
        }
    }
}
