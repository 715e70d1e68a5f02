//! Small files with one number or a few words.
//!
//! Owns how they are read and what is said when they cannot be.
//! Does not know what they mean.
//!
//! Always: a reason names the file.

use std::fs;
use std::io::Read as _;
use std::path::Path;

/// Such files are tiny; what is longer is something else.
const MOST_BYTES: u64 = 1 << 20;

/// The text of a file.
pub(super) fn text(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes));
    read.map_err(|error| format!("{}: {}", path.display(), reason(&error)))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A number, decimal or as 0x... .
pub(super) fn number(path: &Path) -> Result<u64, String> {
    let text = text(path)?;
    let word = text.trim();
    let parsed = match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => word.parse(),
    };
    parsed.map_err(|_| {
        let start: String = word.chars().take(20).collect();
        format!("{}: `{}` is no number", path.display(), start.escape_default())
    })
}

/// The system's words without its number.
fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "it is not there".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
