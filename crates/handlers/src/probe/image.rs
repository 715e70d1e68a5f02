//! The size of an image from its header, after the rotation by the orientation tag.
//!
//! Of the files that match a pattern, only the file that the source `image` reads first is probed; the other files may
//! have other sizes.

use std::io::{BufRead, BufReader, Seek};
use std::path::{Path, PathBuf};

use imagesize::ImageError;
use vramp_plan::Size;
use vramp_plan::catalog::{ProbeError, Probed};

use super::{open, refuse, shown, unreadable};
use crate::files::{ListError, matching};
use crate::orientation;

pub(super) fn probe(pattern: &str) -> Result<Probed, ProbeError> {
    let path = first(pattern)?;
    let reader = BufReader::new(open(&path)?);
    Ok(Probed { size: Some(size(&path, reader)?), ..Probed::default() })
}

fn first(pattern: &str) -> Result<PathBuf, ProbeError> {
    let found = matching(pattern).map_err(|error| match error {
        ListError::Pattern { problem, at } => refuse(
            format!("`{pattern}` is not a valid pattern: {problem} at character {at}"),
            "write * for any part of a name, ? for one character, and [a-f] for one of several characters",
        ),
        ListError::Unreadable { path, error } => unreadable(&path, &error),
    })?;
    found.into_iter().next().ok_or_else(|| {
        refuse(
            format!("no file matches `{pattern}`"),
            "check the pattern, and put it in quotes so that the shell does not expand it",
        )
    })
}

/// The size in an image header. The sides are swapped if the source `image` rotates the image by a quarter turn.
fn size(path: &Path, mut reader: impl BufRead + Seek) -> Result<Size, ProbeError> {
    let name = path.display();
    let head = reader.fill_buf().map_err(|error| unreadable(path, &error))?;
    let head = head[..head.len().min(12)].to_vec();
    let Some(kind) = kind(&head) else {
        return Err(refuse(
            format!("`{name}` starts with {}, expected a PNG, JPEG, WebP, BMP, TIFF or GIF at byte 0", shown(&head)),
            "convert the file to one of these formats, or read the file with `video`",
        ));
    };
    let broken = |problem: String| refuse(problem, "check that the file is complete, for example with an image viewer");
    let found = imagesize::reader_size(&mut reader).map_err(|error| {
        let at = reader.stream_position().unwrap_or_default();
        match error {
            ImageError::IoError(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => broken(format!(
                "`{name}` ends at byte {at} in the middle of the {kind} header, before the size of the image"
            )),
            ImageError::IoError(error) => broken(format!("`{name}`: {kind} header at byte {at}: {error}")),
            _ => broken(format!("`{name}`: the {kind} header at byte {at} has no size")),
        }
    })?;
    // A BMP whose rows are stored from top to bottom has a negative height.
    let height = match (kind, u32::try_from(found.height)) {
        ("BMP", Ok(height)) => height.cast_signed().unsigned_abs() as usize,
        _ => found.height,
    };
    let sides = u32::try_from(found.width).ok().zip(u32::try_from(height).ok());
    let stored = sides.and_then(|(width, height)| Size::new(width, height)).ok_or_else(|| {
        broken(format!(
            "`{name}`: the size in the {kind} header is {}x{height}, expected sides from 1 to {}",
            found.width,
            Size::MAX_SIDE
        ))
    })?;
    let (width, height) = orientation::turned((stored.width, stored.height), orientation::read(&mut reader));
    Ok(Size { width, height })
}

/// The format of a file that starts with these bytes; `None` if the format cannot be decoded. `imagesize` knows more
/// formats.
fn kind(head: &[u8]) -> Option<&'static str> {
    match head {
        [0x89, b'P', b'N', b'G', ..] => Some("PNG"),
        [0xFF, 0xD8, 0xFF, ..] => Some("JPEG"),
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P'] => Some("WebP"),
        [b'B', b'M', ..] => Some("BMP"),
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => Some("TIFF"),
        [b'G', b'I', b'F', b'8', ..] => Some("GIF"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;

    fn look(bytes: &[u8]) -> Result<Size, String> {
        size(Path::new("picture"), Cursor::new(bytes)).map_err(|error| error.to_string())
    }

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes
    }

    fn bmp(width: i32, height: i32) -> Vec<u8> {
        let mut bytes = b"BM".to_vec();
        bytes.extend([0; 12]);
        bytes.extend(40u32.to_le_bytes());
        bytes.extend(width.to_le_bytes());
        bytes.extend(height.to_le_bytes());
        bytes
    }

    /// The start of an image of 3x2 pixels in each format, by its specification.
    fn threes_by_twos() -> [(&'static str, Vec<u8>); 9] {
        let jpeg = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xc0\0\x0b\x08\0\x02\0\x03";
        let gif = b"GIF89a\x03\0\x02\0\0\0\0";
        let lossy = b"RIFF\x24\0\0\0WEBPVP8 \x18\0\0\0\x30\x01\0\x9d\x01\x2a\x03\0\x02\0";
        // 14 bits of width - 1, then 14 bits of height - 1.
        let lossless = b"RIFF\x24\0\0\0WEBPVP8L\x18\0\0\0\x2f\x02\x40\0\0";
        let extended = b"RIFF\x24\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x02\0\0\x01\0\0";
        let little = b"II\x2a\0\x08\0\0\0\x02\0\0\x01\x03\0\x01\0\0\0\x03\0\0\0\x01\x01\x03\0\x01\0\0\0\x02\0\0\0";
        let big = b"MM\0\x2a\0\0\0\x08\0\x02\x01\0\0\x04\0\0\0\x01\0\0\0\x03\x01\x01\0\x04\0\0\0\x01\0\0\0\x02";
        [
            ("png", png(3, 2)),
            ("jpeg", jpeg.to_vec()),
            ("gif", gif.to_vec()),
            ("bmp", bmp(3, 2)),
            ("webp lossy", lossy.to_vec()),
            ("webp lossless", lossless.to_vec()),
            ("webp extended", extended.to_vec()),
            ("tiff, low byte first", little.to_vec()),
            ("tiff, high byte first", big.to_vec()),
        ]
    }

    #[test]
    fn every_supported_format_gives_its_size() {
        for (name, bytes) in threes_by_twos() {
            assert_eq!(look(&bytes), Ok(Size { width: 3, height: 2 }), "{name}");
        }
    }

    #[test]
    fn a_bmp_stored_from_the_top_has_the_same_size() {
        assert_eq!(look(&bmp(3, -2)), Ok(Size { width: 3, height: 2 }));
        assert!(look(&bmp(3, i32::MIN)).unwrap_err().contains("2147483648"));
    }

    #[test]
    fn a_header_that_stops_early_is_an_error_that_says_where() {
        for (name, bytes) in threes_by_twos() {
            let error = look(&bytes[..bytes.len() - 4]).unwrap_err();
            assert!(error.starts_with("`picture`") && error.contains("byte"), "{name}: {error}");
        }
        assert!(look(b"").unwrap_err().contains("expected a PNG, JPEG, WebP, BMP, TIFF or GIF at byte 0"));
    }

    #[test]
    fn sizes_that_no_frame_can_have_are_refused_with_their_numbers() {
        assert!(look(&png(0, 2)).unwrap_err().contains("is 0x2"));
        assert!(look(&png(65_537, 1)).unwrap_err().contains("is 65537x1"));
        assert!(look(&png(u32::MAX, u32::MAX)).unwrap_err().contains("4294967295"));
        assert_eq!(look(&png(65_536, 1)), Ok(Size { width: 65_536, height: 1 }));
    }

    #[test]
    fn formats_that_could_not_be_decoded_are_refused_though_their_size_could_be_read() {
        for bytes in [&b"P6\n3 2\n255\n............"[..], b"qoif\0\0\0\x03\0\0\0\x02\x04\0", b"8BPS\0\x01........."] {
            assert!(look(bytes).unwrap_err().contains("expected a PNG"), "{}", bytes.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn no_bytes_behind_a_known_beginning_make_it_panic(
            which in 0..9usize,
            keep in 0..48usize,
            tail in proptest::collection::vec(any::<u8>(), 0..200),
        ) {
            let mut bytes = threes_by_twos()[which].1.clone();
            bytes.truncate(keep);
            bytes.extend(tail);
            if let Ok(size) = look(&bytes) {
                prop_assert_eq!(Size::new(size.width, size.height), Some(size));
            }
        }
    }
}
