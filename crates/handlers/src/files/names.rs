//! Names of numbered files: a path with a placeholder for the frame number.
//!
//! The module computes the file name of a frame, and decides whether a path can give a certain name and whether two
//! paths can give the same name. The module does not access the disk.

use std::fmt::Write as _;
use std::ops::RangeInclusive;

/// Digits of the largest frame number.
const MOST_DIGITS: usize = 20;

/// A path with at most one number in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NumberedPath {
    before: String,
    /// Minimum number of digits, at least 1; `None` if the path has no number.
    digits: Option<usize>,
    after: String,
}

impl NumberedPath {
    /// Reads `%d` and `%04d` as the number, `%%` as a percent sign, and any other percent sign as itself.
    pub(crate) fn read(path: &str) -> Result<NumberedPath, String> {
        let mut names = NumberedPath::only("");
        let mut rest = path;
        while let Some((text, behind)) = rest.split_once('%') {
            names.tail().push_str(text);
            let digits = behind.len() - behind.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            if behind[digits..].starts_with('d') {
                if names.digits.is_some() {
                    return Err(format!("`{path}` has two placeholders for the frame number; remove one of them"));
                }
                let width = behind[..digits].parse().unwrap_or(1usize);
                if width > MOST_DIGITS {
                    return Err(format!("`{path}`: a frame number cannot have {width} digits; write %04d"));
                }
                names.digits = Some(width.max(1));
                rest = &behind[digits + 1..];
            } else {
                names.tail().push('%');
                rest = behind.strip_prefix('%').unwrap_or(behind);
            }
        }
        names.tail().push_str(rest);
        if names.digits.is_some() && names.after.contains('/') {
            return Err(format!(
                "`{path}` has the frame number in a directory name; put the number into the file name"
            ));
        }
        Ok(names)
    }

    /// A path that gives only this name, taken literally.
    pub(crate) fn only(name: &str) -> NumberedPath {
        NumberedPath { before: name.to_owned(), digits: None, after: String::new() }
    }

    fn tail(&mut self) -> &mut String {
        if self.digits.is_some() { &mut self.after } else { &mut self.before }
    }

    pub(crate) fn is_numbered(&self) -> bool {
        self.digits.is_some()
    }

    /// The directory as written, and the names within it.
    pub(crate) fn in_folder(&self) -> (&str, NumberedPath) {
        let cut = self.before.rfind(std::path::is_separator).map_or(0, |at| at + 1);
        let names =
            NumberedPath { before: self.before[cut..].to_owned(), digits: self.digits, after: self.after.clone() };
        (&self.before[..cut], names)
    }

    /// Writes the name of a frame to `into`.
    pub(crate) fn name(&self, frame: u64, into: &mut String) {
        into.clear();
        into.push_str(&self.before);
        if let Some(digits) = self.digits {
            write!(into, "{frame:0digits$}").expect("writing to a String cannot fail");
        }
        into.push_str(&self.after);
    }

    /// Whether some frame has this name.
    pub(crate) fn give(&self, name: &str) -> bool {
        let between = name.strip_prefix(&self.before).and_then(|rest| rest.strip_suffix(&self.after));
        between.is_some_and(|between| match self.digits {
            None => between.is_empty(),
            Some(digits) => is_number(between.as_bytes(), digits),
        })
    }

    /// A name that each of the two paths gives to some frame, not necessarily to the same frame. `None` if there is no
    /// such name.
    pub(crate) fn common(&self, other: &NumberedPath) -> Option<String> {
        self.lengths().find_map(|ours| {
            let whole = self.before.len() + ours + self.after.len();
            let theirs = whole.checked_sub(other.before.len() + other.after.len())?;
            other.lengths().contains(&theirs).then(|| self.unified(ours, other, theirs))?
        })
    }

    /// Possible lengths of the number in bytes.
    fn lengths(&self) -> RangeInclusive<usize> {
        self.digits.map_or(0..=0, |digits| digits..=MOST_DIGITS)
    }

    /// The smallest name that both paths give with numbers of these lengths.
    fn unified(&self, ours: usize, other: &NumberedPath, theirs: usize) -> Option<String> {
        let leads = |names: &NumberedPath, length: usize, at: usize| {
            at == names.before.len() && names.digits.is_some_and(|digits| length > digits)
        };
        let mut name = Vec::new();
        for (at, bytes) in self.template(ours).zip(other.template(theirs)).enumerate() {
            name.push(match bytes {
                (Some(a), Some(b)) if a == b => a,
                (Some(fixed), None) | (None, Some(fixed)) if fixed.is_ascii_digit() => fixed,
                // A number that is longer than its minimum width does not begin with 0.
                (None, None) if leads(self, ours, at) || leads(other, theirs, at) => b'1',
                (None, None) => b'0',
                _ => return None,
            });
        }
        let name = String::from_utf8(name).ok()?;
        (self.give(&name) && other.give(&name)).then_some(name)
    }

    /// The bytes of a name whose number has this length; `None` stands for a digit of the number.
    fn template(&self, length: usize) -> impl Iterator<Item = Option<u8>> {
        let number = std::iter::repeat_n(None, length);
        self.before.bytes().map(Some).chain(number).chain(self.after.bytes().map(Some))
    }
}

/// Whether this text is a frame number, printed with this minimum width.
fn is_number(text: &[u8], digits: usize) -> bool {
    let plain = text.iter().all(u8::is_ascii_digit);
    let padded = text.len() == digits || text.len() > digits && text.first() != Some(&b'0');
    plain && padded && std::str::from_utf8(text).is_ok_and(|text| text.parse::<u64>().is_ok())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn names(path: &str) -> NumberedPath {
        NumberedPath::read(path).unwrap()
    }

    fn name(path: &str, frame: u64) -> String {
        let mut name = String::new();
        names(path).name(frame, &mut name);
        name
    }

    #[test]
    fn the_number_stands_where_the_pattern_says() {
        assert_eq!(name("out-%04d.png", 7), "out-0007.png");
        assert_eq!(name("a/%d", 12345), "a/12345");
        assert_eq!(name("%02dx.png", 123), "123x.png");
        assert_eq!(name("100%.png", 3), "100%.png");
        assert_eq!(name("100%%d.png", 3), "100%d.png");
        assert_eq!(name("5%x-%3d.png", 3), "5%x-003.png");
        assert_eq!(name("%0d.png", 3), "3.png");
    }

    #[test]
    fn two_numbers_or_one_in_a_directory_are_refused() {
        assert!(NumberedPath::read("%d-%d.png").unwrap_err().contains("two placeholders"));
        assert!(NumberedPath::read("%04d/a.png").unwrap_err().contains("directory"));
        assert!(NumberedPath::read("%999999999999999999999d.png").is_ok_and(|names| names.digits == Some(1)));
        assert!(NumberedPath::read("%21d.png").unwrap_err().contains("21 digits"));
    }

    #[test]
    fn a_name_is_given_if_it_is_printed_exactly_so() {
        for (path, given, others) in [
            ("k%d.png", vec!["k0.png", "k7.png", "k18446744073709551615.png"], vec!["k07.png", "k.png", "kx.png"]),
            ("k%03d.png", vec!["k007.png", "k1000.png"], vec!["k7.png", "k0007.png", "K007.png"]),
            ("k%d.png", vec![], vec!["k18446744073709551616.png", "k-1.png", "k+1.png", "k1.png.png"]),
            ("k%%d.png", vec!["k%d.png"], vec!["k1.png"]),
        ] {
            let names = names(path);
            for (name, is_given) in given.iter().map(|name| (name, true)).chain(others.iter().map(|name| (name, false)))
            {
                assert_eq!(names.give(name), is_given, "{path} {name}");
            }
        }
    }

    #[test]
    fn two_patterns_meet_where_some_number_of_each_is_printed_alike() {
        for (one, other, meet) in [
            ("k%d.png", "k%01d.png", Some("k0.png")),
            ("k%02d.png", "k%d.png", Some("k10.png")),
            ("k%d.png", "k7.png", Some("k7.png")),
            ("k%03d.png", "k7.png", None),
            ("k%d.png", "j%d.png", None),
            ("k%d.png", "k%d.jpg", None),
            ("k1%d.png", "k%d.png", Some("k10.png")),
            ("k0%d.png", "k%d.png", None),
            ("k%d-1.png", "k1-%d.png", Some("k1-1.png")),
            ("k%d5.png", "k1%d.png", Some("k15.png")),
            ("k%020d.png", "k%d.png", Some("k10000000000000000000.png")),
            ("k%020d.png", "k%019d.png", Some("k10000000000000000000.png")),
            ("k2%019d.png", "k%d.png", None),
            ("k1%019d.png", "k%d.png", Some("k10000000000000000000.png")),
            ("a.png", "a.png", Some("a.png")),
            ("a.png", "b.png", None),
        ] {
            assert_eq!(names(one).common(&names(other)).as_deref(), meet, "{one} {other}");
            assert_eq!(names(other).common(&names(one)).as_deref(), meet, "{other} {one}");
        }
    }

    proptest! {
        #[test]
        fn a_common_name_is_found_exactly_if_numbers_print_one(
            one in "[01a]{0,2}%0?[1-3]?d[01a]{0,2}",
            other in "[01a]{0,2}(%0?[1-3]?d)?[01a]{0,2}",
        ) {
            let given = |path: &str| -> BTreeSet<String> { (0..2500).map(|frame| name(path, frame)).collect() };
            let (ours, theirs) = (given(&one), given(&other));
            // Names of up to three characters have numbers below 1000, so all of them are among the names of the first
            // 2500 frames.
            let short = |all: &BTreeSet<String>| all.iter().filter(|name| name.len() <= 3).cloned().collect();
            let (ours_short, theirs_short): (BTreeSet<String>, BTreeSet<String>) = (short(&ours), short(&theirs));
            match names(&one).common(&names(&other)) {
                Some(name) => prop_assert!(names(&one).give(&name) && names(&other).give(&name), "{name}"),
                None => prop_assert!(ours.is_disjoint(&theirs), "{one} {other}"),
            }
            if !ours_short.is_disjoint(&theirs_short) {
                prop_assert!(names(&one).common(&names(&other)).is_some());
            }
        }

        #[test]
        fn what_is_printed_is_given(path in "[01a]{0,2}%0?[0-9]?d[01a]{0,2}", frame: u64) {
            prop_assert!(names(&path).give(&name(&path, frame)));
        }
    }
}
