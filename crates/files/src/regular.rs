//! Files that are read whole before anything runs: shaders, tables, fonts, images, caches.
//!
//! The path must lead to a regular file. A pipe would make the reader wait for a writer, and a device may never end, so
//! pipes and devices are refused before a byte is read. Sources that accept pipes do not use this module.
//!
//! Invariants: opening never waits, even if a pipe replaces the file between the check and the opening; reading stops
//! at a limit.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

/// Opens a regular file for reading. If the path leads to anything else, the result is an error of the kind
/// [`io::ErrorKind::InvalidInput`].
pub fn open_regular(path: &Path) -> io::Result<File> {
    check(&fs::metadata(path)?)?;
    let mut options = File::options();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        // The flag has no effect on a regular file. If a pipe has just replaced the file, the flag keeps the opening
        // from waiting.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.read(true).open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file of text. A file that is longer than `most_bytes` is an error of the kind
/// [`io::ErrorKind::FileTooLarge`]. Text that is not UTF-8 is an error of the kind [`io::ErrorKind::InvalidData`].
pub fn read_regular_text(path: &Path, most_bytes: u64) -> io::Result<String> {
    let mut text = String::new();
    open_regular(path)?.take(most_bytes.saturating_add(1)).read_to_string(&mut text)?;
    if text.len() as u64 > most_bytes {
        let problem = format!("it has more than {most_bytes} bytes");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
    }
    Ok(text)
}

fn check(found: &fs::Metadata) -> io::Result<()> {
    let what = match () {
        () if found.is_file() => return Ok(()),
        () if found.is_dir() => "it is a directory, expected a file",
        () => "it is a pipe or a device, expected a file",
    };
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn place(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("vramp-regular-{}-{name}", std::process::id()))
    }

    #[test]
    fn pipes_devices_and_directories_are_refused_without_waiting() {
        let pipe = place("pipe");
        let mode = rustix::fs::Mode::RUSR.union(rustix::fs::Mode::WUSR);
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        for path in [pipe.as_path(), Path::new("/dev/zero"), Path::new("/dev/null"), Path::new("/")] {
            let error = read_regular_text(path, 100).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{}: {error}", path.display());
            assert!(error.to_string().ends_with("expected a file"), "{error}");
        }
        std::fs::remove_file(&pipe).unwrap();
    }

    #[test]
    fn reading_stops_at_the_bound() {
        let path = place("text");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_regular_text(&path, 5).unwrap(), "12345");
        assert_eq!(read_regular_text(&path, 4).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        std::fs::write(&path, b"\xff").unwrap();
        assert_eq!(read_regular_text(&path, 4).unwrap_err().kind(), io::ErrorKind::InvalidData);
        std::fs::remove_file(&path).unwrap();
    }
}
