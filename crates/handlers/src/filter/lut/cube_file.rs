//! The parser for `.cube` files: colour tables as text.
//!
//! An entry is a line of three numbers. In a cube, red changes fastest from entry to entry. If a file has curves and a
//! cube, the curves come first, in the file and in the lookup; such curves are called shapers.
//!
//! A file is read line by line, and a line has at most [`MOST_LINE_BYTES`] bytes. Memory grows with the entries that
//! have been read, not with the announced number of entries. Every error names a line.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use vramp_files::open_regular;
use vramp_kernels::pixel::cube::{MOST_ALONG, MOST_VALUE};

/// The content of a file: curves, a cube, or both.
#[derive(Debug, PartialEq)]
pub(super) struct CubeFile {
    pub(super) curves: Option<Curves>,
    pub(super) cube: Option<Cube>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Curves {
    domain: [Domain; 3],
    entries: Vec<[f32; 3]>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Cube {
    pub(super) domain: [Domain; 3],
    pub(super) along: u32,
    pub(super) entries: Vec<[f32; 3]>,
}

/// The input values of the first and the last entry along an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Domain {
    min: f64,
    max: f64,
}

impl Domain {
    const FULL: [Domain; 3] = [Domain { min: 0.0, max: 1.0 }; 3];

    /// The position of a value: 0 is the first entry, and 1 the last entry.
    pub(super) fn place(self, v: f64) -> f64 {
        ((v - self.min) / (self.max - self.min)).clamp(0.0, 1.0)
    }
}

impl Curves {
    /// The value of a channel's curve.
    pub(super) fn at(&self, channel: usize, v: f64) -> f64 {
        let last = self.entries.len() - 1;
        let at = self.domain[channel].place(v) * last as f64;
        let below = (at.floor() as usize).min(last - 1);
        let [one, other] = [below, below + 1].map(|i| f64::from(self.entries[i][channel]));
        one + (other - one) * (at - below as f64)
    }
}

#[derive(Debug, thiserror::Error)]
pub(super) enum CubeError {
    #[error("`{path}` cannot be read: {error}; check the path")]
    Unreadable { path: String, error: std::io::Error },
    #[error("`{path}` is not a file; give a .cube file")]
    NoFile { path: String },
    #[error("`{path}`, line {line}: {problem}")]
    Wrong { path: String, line: u64, problem: Problem },
}

/// An error in a line, or at the end of a file.
#[derive(Debug, thiserror::Error, PartialEq)]
pub(super) enum Problem {
    #[error("longer than {MOST_LINE_BYTES} bytes; this is not a .cube file")]
    LongLine,
    #[error("not text; this is not a .cube file")]
    NoText,
    #[error(
        "`{0}` is not a keyword of a .cube file; use TITLE, DOMAIN_MIN, DOMAIN_MAX, LUT_1D_SIZE, LUT_3D_SIZE, \
             LUT_1D_INPUT_RANGE or LUT_3D_INPUT_RANGE"
    )]
    NoKeyword(String),
    #[error("{keyword} comes after the first entry; keywords must come first")]
    Late { keyword: &'static str },
    #[error("{keyword} is given twice")]
    Twice { keyword: &'static str },
    #[error("{keyword} takes a whole number from 2 to {most}, not `{text}`")]
    Size { keyword: &'static str, most: u32, text: String },
    #[error("{what} takes {wanted} numbers, not `{text}`")]
    Numbers { what: &'static str, wanted: usize, text: String },
    #[error("{value} is out of range: a number in an entry must be from -{MOST_VALUE} to {MOST_VALUE}")]
    TooFar { value: f64 },
    #[error("the domain begins at {min} and ends at {max}; the end must be greater than the beginning")]
    Domain { min: f64, max: f64 },
    #[error("an entry comes before LUT_1D_SIZE or LUT_3D_SIZE")]
    NoSize,
    #[error("the file ends here without LUT_1D_SIZE or LUT_3D_SIZE; this is not a .cube file")]
    Nothing,
    #[error("the file ends here with {found} entries, but its sizes require {wanted}")]
    TooFew { found: u64, wanted: u64 },
    #[error("this is one entry more than the {wanted} that the sizes require")]
    TooMany { wanted: u64 },
}

/// Maximum length of a line, which holds an entry, a keyword, a title or a comment.
const MOST_LINE_BYTES: u64 = 4096;
const MOST_IN_CURVE: u32 = 65_536;

const TITLE: &str = "TITLE";
const SIZES: [(&str, u32); 2] = [("LUT_1D_SIZE", MOST_IN_CURVE), ("LUT_3D_SIZE", MOST_ALONG)];
const RANGES: [&str; 2] = ["LUT_1D_INPUT_RANGE", "LUT_3D_INPUT_RANGE"];
const DOMAINS: [&str; 2] = ["DOMAIN_MIN", "DOMAIN_MAX"];

impl CubeFile {
    pub(super) fn read(path: &str) -> Result<CubeFile, CubeError> {
        let unreadable = |error| CubeError::Unreadable { path: path.to_owned(), error };
        // A device is refused, because reading a device may never end.
        if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(CubeError::NoFile { path: path.to_owned() });
        }
        let mut text = BufReader::new(open_regular(Path::new(path)).map_err(unreadable)?);
        let (mut reading, mut line, mut number) = (CubeReader::default(), Vec::new(), 0);
        let wrong = |line, problem| CubeError::Wrong { path: path.to_owned(), line, problem };
        loop {
            line.clear();
            let read = (&mut text).take(MOST_LINE_BYTES + 1).read_until(b'\n', &mut line).map_err(unreadable)?;
            if read == 0 {
                return reading.end().map_err(|problem| wrong(number, problem));
            }
            number += 1;
            reading.line(&line).map_err(|problem| wrong(number, problem))?;
        }
    }
}

/// What has been read so far.
#[derive(Debug, Default)]
struct CubeReader {
    /// Sizes of the curves and of the cube.
    sizes: [Option<u32>; 2],
    ranges: [Option<Domain>; 2],
    /// Minimum and maximum.
    domain: [Option<[f64; 3]>; 2],
    titled: bool,
    curves: Vec<[f32; 3]>,
    cube: Vec<[f32; 3]>,
}

impl CubeReader {
    fn line(&mut self, line: &[u8]) -> Result<(), Problem> {
        if line.len() as u64 > MOST_LINE_BYTES {
            return Err(Problem::LongLine);
        }
        let text = std::str::from_utf8(line).ok().filter(|text| !text.contains('\0')).ok_or(Problem::NoText)?;
        // Some editors write a byte order mark before the first line.
        let text = text.trim_start_matches('\u{feff}').trim();
        let (word, rest) = text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim()));
        match word.chars().next() {
            None | Some('#') => Ok(()),
            Some(first) if first.is_ascii_digit() || "+-.".contains(first) => self.entry(text),
            // `nan` and `inf` are numbers too, so the line is an entry, though an invalid entry.
            _ if word.parse::<f64>().is_ok() => self.entry(text),
            _ => self.keyword(word, rest),
        }
    }

    fn keyword(&mut self, word: &str, rest: &str) -> Result<(), Problem> {
        let begun = !self.curves.is_empty() || !self.cube.is_empty();
        let found = |known: &[&'static str]| known.iter().position(|known| *known == word);
        let once = |there: bool, keyword: &'static str| match (begun, there) {
            (true, _) => Err(Problem::Late { keyword }),
            (_, true) => Err(Problem::Twice { keyword }),
            _ => Ok(()),
        };
        if let Some(i) = found(&SIZES.map(|(keyword, _)| keyword)) {
            let (keyword, most) = SIZES[i];
            once(self.sizes[i].is_some(), keyword)?;
            let size = rest.parse().ok().filter(|size| (2..=most).contains(size));
            self.sizes[i] = Some(size.ok_or_else(|| Problem::Size { keyword, most, text: shortened(rest) })?);
        } else if let Some(i) = found(&RANGES) {
            once(self.ranges[i].is_some(), RANGES[i])?;
            let [min, max] = numbers(RANGES[i], rest)?;
            self.ranges[i] = Some(domain(min, max)?);
        } else if let Some(i) = found(&DOMAINS) {
            once(self.domain[i].is_some(), DOMAINS[i])?;
            self.domain[i] = Some(numbers(DOMAINS[i], rest)?);
            if let [Some(min), Some(max)] = self.domain {
                min.into_iter().zip(max).try_for_each(|(min, max)| domain(min, max).map(drop))?;
            }
        } else if word == TITLE {
            once(self.titled, TITLE)?;
            self.titled = true;
        } else {
            return Err(Problem::NoKeyword(shortened(word)));
        }
        Ok(())
    }

    fn entry(&mut self, text: &str) -> Result<(), Problem> {
        let [curves, cube] = self.wanted();
        if curves + cube == 0 {
            return Err(Problem::NoSize);
        }
        let entry = numbers::<3>("an entry", text)?;
        if let Some(value) = entry.into_iter().find(|v| v.abs() > MOST_VALUE) {
            return Err(Problem::TooFar { value });
        }
        let entry = entry.map(|v| v as f32);
        if (self.curves.len() as u64) < curves {
            self.curves.push(entry);
        } else if (self.cube.len() as u64) < cube {
            self.cube.push(entry);
        } else {
            return Err(Problem::TooMany { wanted: curves + cube });
        }
        Ok(())
    }

    /// Number of entries that the sizes require: for the curves, and for the cube.
    fn wanted(&self) -> [u64; 2] {
        let [curves, cube] = self.sizes.map(|size| u64::from(size.unwrap_or(0)));
        [curves, cube * cube * cube]
    }

    fn end(self) -> Result<CubeFile, Problem> {
        let wanted = self.wanted().iter().sum();
        let found = (self.curves.len() + self.cube.len()) as u64;
        if wanted == 0 {
            return Err(Problem::Nothing);
        }
        if found < wanted {
            return Err(Problem::TooFew { found, wanted });
        }
        let mut given = Domain::FULL;
        let [min, max] = [(0, 0.0), (1, 1.0)].map(|(i, usual)| self.domain[i].unwrap_or([usual; 3]));
        for (given, (min, max)) in given.iter_mut().zip(min.into_iter().zip(max)) {
            *given = domain(min, max)?;
        }
        // The domain applies to the input of the curves, or of the cube if there are no curves.
        let [of_curves, of_cube] = match self.sizes[0] {
            Some(_) => [given, Domain::FULL],
            None => [Domain::FULL, given],
        };
        let [curve_range, cube_range] = self.ranges.map(|range| range.map(|range| [range; 3]));
        let curves = self.sizes[0].map(|_| Curves { domain: curve_range.unwrap_or(of_curves), entries: self.curves });
        let domain = cube_range.unwrap_or(of_cube);
        let cube = self.sizes[1].map(|along| Cube { domain, along, entries: self.cube });
        Ok(CubeFile { curves, cube })
    }
}

/// Parses exactly N finite numbers.
fn numbers<const N: usize>(what: &'static str, text: &str) -> Result<[f64; N], Problem> {
    let wrong = || Problem::Numbers { what, wanted: N, text: shortened(text) };
    let mut words = text.split_whitespace();
    let mut found = [0.0; N];
    for found in &mut found {
        *found = words.next().and_then(|word| word.parse().ok()).filter(|v: &f64| v.is_finite()).ok_or_else(wrong)?;
    }
    // A comment may follow the numbers.
    words.next().is_none_or(|word| word.starts_with('#')).then_some(found).ok_or_else(wrong)
}

fn domain(min: f64, max: f64) -> Result<Domain, Problem> {
    if min < max { Ok(Domain { min, max }) } else { Err(Problem::Domain { min, max }) }
}

/// The beginning of a text, for messages.
fn shortened(text: &str) -> String {
    // The text is escaped, because the content of a file must not control the terminal.
    text.chars().take(60).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CubeFile, (u64, Problem)> {
        let (mut reading, mut number) = (CubeReader::default(), 0);
        for line in text.as_bytes().split_inclusive(|byte| *byte == b'\n') {
            number += 1;
            reading.line(line).map_err(|problem| (number, problem))?;
        }
        reading.end().map_err(|problem| (number, problem))
    }

    const TWO: &str = "0 0 0\n1 0 0\n0 1 0\n1 1 0\n0 0 1\n1 0 1\n0 1 1\n1 1 1\n";

    #[test]
    fn a_cube_has_its_entries_in_the_order_of_the_file() {
        let text = format!("\u{feff}# made by hand\r\nTITLE \"two\"\r\n\r\nLUT_3D_SIZE 2\n{TWO}\n# the end");
        let file = read(&text).unwrap();
        let cube = file.cube.unwrap();
        assert_eq!((file.curves, cube.along, cube.domain), (None, 2, Domain::FULL));
        let entries = cube.entries.iter().map(|entry| entry.map(|v| v as u8));
        let counted = (0..8).map(|i: u8| [i & 1, i >> 1 & 1, i >> 2]);
        assert!(entries.eq(counted));
    }

    #[test]
    fn curves_are_straight_between_entries_and_flat_outside_their_domain() {
        let file =
            read("LUT_1D_SIZE 3\nDOMAIN_MIN 0 0 -1\nDOMAIN_MAX 1 2 1\n0 0 0\n.5 1e0 -1 # middle\n+1 2. 3").unwrap();
        let curves = file.curves.unwrap();
        let red = [(0.25, 0.25), (0.75, 0.75), (7.0, 1.0), (-7.0, 0.0)].map(|(v, is)| (0, v, is));
        let others = [(1, 1.0, 1.0), (1, 0.5, 0.5), (2, 0.0, -1.0), (2, 0.5, 1.0)];
        for (channel, v, is) in red.into_iter().chain(others) {
            assert!((curves.at(channel, v) - is).abs() < 1e-12, "{v} of channel {channel}");
        }
    }

    #[test]
    fn curves_in_front_of_a_cube_come_first_and_take_the_domain() {
        let text = format!("LUT_3D_SIZE 2\nLUT_1D_SIZE 2\nDOMAIN_MAX 2 2 2\n0 0 0\n1 1 1\n{TWO}");
        let file = read(&text).unwrap();
        assert_eq!(file.cube.unwrap().domain, Domain::FULL);
        assert!((file.curves.unwrap().at(0, 1.0) - 0.5).abs() < 1e-12);
        let text = format!(
            "LUT_1D_SIZE 2\nLUT_1D_INPUT_RANGE 0 4\nLUT_3D_SIZE 2\nLUT_3D_INPUT_RANGE -1 3\n0 0 0\n1 1 1\n{TWO}"
        );
        let file = read(&text).unwrap();
        assert_eq!(file.cube.unwrap().domain, [Domain { min: -1.0, max: 3.0 }; 3]);
        assert!((file.curves.unwrap().at(0, 1.0) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn errors_name_their_line() {
        let cases: &[(&str, u64, &str)] = &[
            ("", 0, "without LUT_1D_SIZE or LUT_3D_SIZE"),
            ("# only a comment\n\n", 2, "without LUT_1D_SIZE or LUT_3D_SIZE"),
            ("TITLE \"x\"\n0 0 0\n", 2, "before LUT_1D_SIZE or LUT_3D_SIZE"),
            ("LUT_3D_SIZE 257\n", 1, "from 2 to 256, not `257`"),
            ("LUT_3D_SIZE 1\n", 1, "from 2 to 256"),
            ("LUT_3D_SIZE 99999999999999999999\n", 1, "from 2 to 256"),
            ("LUT_3D_SIZE\n", 1, "from 2 to 256"),
            ("LUT_1D_SIZE 65537\n", 1, "from 2 to 65536"),
            ("LUT_1D_SIZE 2.5\n", 1, "not `2.5`"),
            ("LUT_1D_SIZE 2\nLUT_1D_SIZE 2\n", 2, "LUT_1D_SIZE is given twice"),
            ("LUT_1D_SIZE 2\n0 0 0\nTITLE x\n", 3, "TITLE comes after the first entry"),
            ("LUT_1D_SIZE 2\n0 0 0\n", 2, "ends here with 1 entries, but its sizes require 2"),
            ("LUT_1D_SIZE 2\n0 0 0\n1 1 1\n2 2 2\n", 4, "one entry more than the 2"),
            ("LUT_3D_SIZE 256\n0 0 0\n", 2, "require 16777216"),
            ("LUT_1D_SIZE 2\n0 nan 0\n", 2, "an entry takes 3 numbers, not `0 nan 0`"),
            ("LUT_1D_SIZE 2\nnan 0 0\n", 2, "an entry takes 3 numbers"),
            ("LUT_1D_SIZE 2\n0 inf 0\n", 2, "an entry takes 3 numbers"),
            ("LUT_1D_SIZE 2\n0 0\n", 2, "an entry takes 3 numbers"),
            ("LUT_1D_SIZE 2\n0 0 0 0\n", 2, "an entry takes 3 numbers"),
            ("LUT_1D_SIZE 2\n0 0,5 0\n", 2, "an entry takes 3 numbers"),
            ("LUT_1D_SIZE 2\n0 1e9 0\n", 2, "1000000000 is out of range"),
            ("DOMAIN_MIN 0 0\n", 1, "DOMAIN_MIN takes 3 numbers"),
            ("DOMAIN_MIN 0 1 0\nDOMAIN_MAX 1 1 1\n", 2, "begins at 1"),
            ("LUT_3D_INPUT_RANGE 1 0\n", 1, "the domain begins at 1 and ends at 0"),
            ("LUT_IN_VIDEO_RANGE\n", 1, "`LUT_IN_VIDEO_RANGE` is not a keyword"),
            ("LUT_1D_SIZE 2\n\0\0\n", 2, "not text"),
        ];
        for (text, line, problem) in cases {
            let (at, found) = read(text).expect_err(text);
            assert_eq!(at, *line, "{text}");
            assert!(found.to_string().contains(problem), "{text}: {found}");
        }
        assert_eq!(read(&"9".repeat(5000)), Err((1, Problem::LongLine)));
        let mut reading = CubeReader::default();
        assert_eq!(reading.line(b"\xff\xd8\xff\xe0"), Err(Problem::NoText));
    }

    /// Any bytes give a table or an error.
    #[test]
    fn no_text_is_a_panic() {
        let words = [
            "LUT_1D_SIZE 2\n",
            "LUT_3D_SIZE 2\n",
            "0 0.5 -1\n",
            "0 0 0\n",
            "1 1 1\n",
            "1e-300 2 3",
            "\n",
            "DOMAIN_MIN",
            "LUT_1D_SIZE",
            "7",
            "#",
            "\u{feff}",
            "nan",
        ];
        let mut state = 7_u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let mut whole = 0;
        for _ in 0..20_000 {
            let text: Vec<&str> = (0..next(14)).map(|_| words[next(words.len())]).collect();
            if let Ok(file) = read(&text.join(" ")) {
                whole += 1;
                assert!(super::super::State::of(&file).is_some());
            }
        }
        assert!(whole > 0);
    }
}
