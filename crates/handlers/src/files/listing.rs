//! The files that a pattern such as `shots/*.png` matches, in natural order: `a2` comes before `a10`.

use std::cmp::Ordering;
use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) enum ListError {
    Pattern {
        problem: &'static str,
        at: usize,
    },
    /// A directory could not be read.
    Unreadable {
        path: PathBuf,
        error: io::Error,
    },
}

/// The files that match a path or pattern, in natural order; empty if nothing matches. If a file with exactly this name
/// exists, that file is the only match, even if the name looks like a pattern. A path that does not look like a pattern
/// is returned as it is.
pub(crate) fn matching(pattern: &str) -> Result<Vec<PathBuf>, ListError> {
    if Path::new(pattern).exists() || !pattern.contains(['*', '?', '[']) {
        return Ok(vec![PathBuf::from(pattern)]);
    }
    let paths = glob::glob(pattern).map_err(|error| ListError::Pattern { problem: error.msg, at: error.pos })?;
    let mut found = Vec::new();
    for path in paths {
        let path =
            path.map_err(|error| ListError::Unreadable { path: error.path().to_owned(), error: error.into() })?;
        if path.is_file() {
            found.push(path);
        }
    }
    found.sort_by(|a, b| natural(a, b));
    Ok(found)
}

/// Compares paths directory by directory. Runs of digits are compared as numbers, and everything else as text. Paths
/// that differ only in leading zeros are compared as text.
fn natural(a: &Path, b: &Path) -> Ordering {
    let (mut ours, mut theirs) = (a.components(), b.components());
    loop {
        let order = match (ours.next(), theirs.next()) {
            (Some(ours), Some(theirs)) => by_numbers(ours.as_os_str(), theirs.as_os_str()),
            (None, None) => return a.cmp(b),
            (ours, theirs) => ours.is_some().cmp(&theirs.is_some()),
        };
        if order.is_ne() {
            return order;
        }
    }
}

fn by_numbers(a: &OsStr, b: &OsStr) -> Ordering {
    let (mut a, mut b) = (a.as_encoded_bytes(), b.as_encoded_bytes());
    loop {
        let (Some(first), Some(second)) = (a.first(), b.first()) else { return a.len().cmp(&b.len()) };
        let order = if first.is_ascii_digit() && second.is_ascii_digit() {
            // The numbers are compared by length and then as text, since a run of digits may exceed any integer type.
            let (ours, theirs) = (take_number(&mut a), take_number(&mut b));
            ours.len().cmp(&theirs.len()).then_with(|| ours.cmp(theirs))
        } else {
            let order = first.cmp(second);
            (a, b) = (&a[1..], &b[1..]);
            order
        };
        if order.is_ne() {
            return order;
        }
    }
}

/// Removes the digits at the beginning, and returns these digits without leading zeros.
fn take_number<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    *text = rest;
    let zeros = digits.iter().take_while(|digit| **digit == b'0').count();
    &digits[zeros..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn numbers_in_names_count_as_numbers() {
        let long = format!("a{}.png", "9".repeat(100));
        let longer = format!("a1{}.png", "0".repeat(100));
        // Names that differ only in leading zeros are sorted as text.
        let sorted: Vec<PathBuf> = [
            "a-1.png",
            "a.png",
            "a0.png",
            "a1.png",
            "a1b2.png",
            "a1b10.png",
            "a01c.png",
            "a002.png",
            "a2.png",
            "a010.png",
            "a10.png",
            &long,
            &longer,
            "b1.png",
            "d2/a9.png",
            "d10/a1.png",
        ]
        .map(PathBuf::from)
        .to_vec();
        let mut again: Vec<PathBuf> = sorted.iter().rev().cloned().collect();
        again.sort_by(|a, b| natural(a, b));
        assert_eq!(again, sorted);
    }

    proptest! {
        #[test]
        fn the_order_is_total(a in "[a01-]{0,4}", b in "[a01-]{0,4}", c in "[a01-]{0,4}") {
            let [a, b, c] = [Path::new(&a), Path::new(&b), Path::new(&c)];
            prop_assert_eq!(natural(a, b), natural(b, a).reverse());
            prop_assert_eq!(natural(a, b).is_eq(), a == b);
            if natural(a, b).is_le() && natural(b, c).is_le() {
                prop_assert!(natural(a, c).is_le());
            }
        }
    }
}
