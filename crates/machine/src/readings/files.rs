//! Small files with one number or a few words. Every error names its file.

use std::fs;
use std::io::Read as _;
use std::path::Path;

/// Maximum number of bytes that are read of a file. The rest of a longer file is ignored.
const MAX_BYTES: u64 = 1 << 20;

pub(super) fn text(path: &Path) -> Result<String, String> {
    let mut bytes = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
    read.map_err(|error| format!("{}: {}", path.display(), reason(&error)))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A decimal number, or a hexadecimal number after `0x`.
pub(super) fn number(path: &Path) -> Result<u64, String> {
    let text = text(path)?;
    let word = text.trim();
    let parsed = match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => word.parse(),
    };
    parsed.map_err(|_| {
        let start: String = word.chars().take(20).collect();
        format!("{}: `{}` is not a number", path.display(), start.escape_default())
    })
}

/// The system's message without its error number.
fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
