//! The orientation tag of image files, and the rotation of pixels.
//!
//! The probe and the decoders both use [`read`], so that the planned size is always the size of the decoded frame. The
//! rules are those of `OpenCV`'s `imread`, as tests of version 5.0.0 with files of each kind showed:
//!
//! - JPEG: among the APP1 segments before the scan, the first with an orientation in its Exif data.
//! - PNG: the first `eXIf` chunk, before or after the pixels. A chunk with a wrong CRC does not count.
//! - WebP: the first `EXIF` chunk, if the header announces such a chunk. The chunk has no prefix `Exif\0\0`, unlike
//!   the segment of a JPEG.
//! - TIFF: the tag of the first directory, if the value of the tag is one integer of any width. `imdecode` applies all
//!   eight orientations, even with the flag to ignore orientations; `imread` 5.0.0 fails with an internal error on
//!   orientations 5 to 8.
//! - In Exif the value is always read as 16 bits, whatever type the entry has. BMP and GIF have no orientation.
//!
//! A value outside 1 to 8, or broken data, means no rotation. Whether the file can be decoded is left to the decoder.
//!
//! Invariants: nothing is allocated; for every file, the numbers of segments, entries and bytes that are read are
//! bounded.

use std::io::{Read, Seek};

use image::metadata::Orientation;

/// Maximum number of segments or chunks. PNG encoders use chunks of 8 KiB or more, so this is enough for 512 MiB.
const MOST_SEGMENTS: usize = 1 << 16;
/// Maximum number of directory entries. Cameras write about twenty entries.
const MOST_ENTRIES: u64 = 1 << 12;
/// The longest `eXIf` chunk whose CRC is computed. Most Exif data comes from JPEG files, where the limit is 64 KiB.
const MOST_EXIF_BYTES: u64 = 1 << 20;
/// Maximum number of stray bytes skipped between the segments of a JPEG.
const MOST_STRAY_BYTES: usize = 1 << 16;

const EXIF_PREFIX: [u8; 6] = *b"Exif\0\0";
const ORIENTATION_TAG: u64 = 0x112;

/// The orientation of an image file. The position of the reader afterwards is undefined.
pub(crate) fn read(from: &mut (impl Read + Seek)) -> Orientation {
    let found = from.rewind().ok().and_then(|()| find(&mut ForwardBytes { from, at: 0 }));
    found.and_then(|value| Orientation::from_exif(u8::try_from(value).ok()?)).unwrap_or(Orientation::NoTransforms)
}

/// The width and height of an image after rotation.
pub(crate) fn turned((width, height): (u32, u32), orientation: Orientation) -> (u32, u32) {
    use Orientation::{Rotate90, Rotate90FlipH, Rotate270, Rotate270FlipH};
    match orientation {
        Rotate90 | Rotate90FlipH | Rotate270 | Rotate270FlipH => (height, width),
        _ => (width, height),
    }
}

/// Writes each pixel of a stored image of this width to its place in the rotated image.
pub(crate) fn turn<S, P>(orientation: Orientation, width: usize, stored: &[S], into: &mut [P], made: impl Fn(&S) -> P) {
    use Orientation::{
        FlipHorizontal, FlipVertical, NoTransforms, Rotate90, Rotate90FlipH, Rotate180, Rotate270, Rotate270FlipH,
    };
    // Pixels are copied in squares of this side, so that rows stay in the cache while they become columns.
    const TILE: usize = 32;
    if orientation == NoTransforms {
        into.iter_mut().zip(stored).for_each(|(pixel, stored)| *pixel = made(stored));
        return;
    }
    let height = stored.len().checked_div(width).unwrap_or(0);
    let place = |x: usize, y: usize| match orientation {
        NoTransforms => y * width + x,
        FlipHorizontal => y * width + (width - 1 - x),
        Rotate180 => (height - 1 - y) * width + (width - 1 - x),
        FlipVertical => (height - 1 - y) * width + x,
        Rotate90FlipH => x * height + y,
        Rotate90 => x * height + (height - 1 - y),
        Rotate270FlipH => (width - 1 - x) * height + (height - 1 - y),
        Rotate270 => (width - 1 - x) * height + y,
    };
    for top in (0..height).step_by(TILE) {
        for left in (0..width).step_by(TILE) {
            for y in top..height.min(top + TILE) {
                for x in left..width.min(left + TILE) {
                    into[place(x, y)] = made(&stored[y * width + x]);
                }
            }
        }
    }
}

/// The raw value of the orientation tag.
fn find(from: &mut ForwardBytes<'_, impl Read + Seek>) -> Option<u64> {
    match from.read(0)? {
        [0xFF, 0xD8, _, _] => in_jpeg(from),
        [0x89, b'P', b'N', b'G'] => in_png(from),
        [b'R', b'I', b'F', b'F'] => in_webp(from),
        [b'I', b'I', _, _] | [b'M', b'M', _, _] => in_directory(from, TagOwner::Tiff, 0, u64::MAX),
        _ => None,
    }
}

fn in_jpeg(from: &mut ForwardBytes<'_, impl Read + Seek>) -> Option<u64> {
    let (mut at, mut stray) = (2, 0);
    for _ in 0..MOST_SEGMENTS {
        // The byte 0xFF may be repeated. If 0 follows a 0xFF, that 0xFF does not begin a segment.
        let mut before = 0;
        let marker = loop {
            let [byte] = from.read(at)?;
            at += 1;
            if before == 0xFF && byte != 0xFF && byte != 0 {
                break byte;
            }
            before = byte;
            stray += 1;
            // The 0xFF at the start of each segment is counted too.
            if stray > MOST_STRAY_BYTES + MOST_SEGMENTS {
                return None;
            }
        };
        match marker {
            // Markers without a length.
            0x01 | 0xD0..=0xD8 => continue,
            // Start of scan, and end of image.
            0xD9 | 0xDA => return None,
            _ => {}
        }
        let length = u64::from(u16::from_be_bytes(from.read(at)?));
        let (start, end) = (at + 2, at + length);
        if marker == 0xE1 && end >= start + EXIF_PREFIX.len() as u64 && from.read(start)? == EXIF_PREFIX {
            let found = in_directory(from, TagOwner::Exif, start + EXIF_PREFIX.len() as u64, end);
            if found.is_some() {
                return found;
            }
        }
        at = end.max(start);
    }
    None
}

fn in_png(from: &mut ForwardBytes<'_, impl Read + Seek>) -> Option<u64> {
    let mut at = 8;
    for _ in 0..MOST_SEGMENTS {
        let length = u64::from(u32::from_be_bytes(from.read(at)?));
        let (kind, start) = (from.read::<4>(at + 4)?, at + 8);
        match &kind {
            b"IEND" => return None,
            b"eXIf" if length <= MOST_EXIF_BYTES && crc(from, at + 4, start + length)? => {
                return in_directory(from, TagOwner::Exif, start, start + length);
            }
            _ => at = start + length + 4,
        }
    }
    None
}

fn in_webp(from: &mut ForwardBytes<'_, impl Read + Seek>) -> Option<u64> {
    const HAS_EXIF: u8 = 0x08;
    let end = 8 + u64::from(u32::from_le_bytes(from.read(4)?));
    if from.read(8)? != *b"WEBPVP8X" || from.read::<1>(20)?[0] & HAS_EXIF == 0 {
        return None;
    }
    let mut at = 12;
    for _ in 0..MOST_SEGMENTS {
        let kind = from.read::<4>(at)?;
        let (length, start) = (u64::from(u32::from_le_bytes(from.read(at + 4)?)), at + 8);
        if kind == *b"EXIF" {
            return in_directory(from, TagOwner::Exif, start, end.min(start + length));
        }
        at = start + length.next_multiple_of(2);
        if at >= end {
            return None;
        }
    }
    None
}

/// The format that a tag directory belongs to.
#[derive(Clone, Copy, PartialEq)]
enum TagOwner {
    Exif,
    Tiff,
}

/// The value of the orientation tag in the first directory of a TIFF that occupies this range of the file. Exif data
/// has the same layout as a TIFF.
fn in_directory(from: &mut ForwardBytes<'_, impl Read + Seek>, holder: TagOwner, start: u64, end: u64) -> Option<u64> {
    let order = match from.read(start)? {
        [b'I', b'I'] => ByteOrder::LowFirst,
        [b'M', b'M'] => ByteOrder::HighFirst,
        _ => return None,
    };
    // A BigTIFF has offsets and counts of eight bytes.
    let big = match order.number(from.read::<2>(start + 2)?) {
        42 => false,
        43 if holder == TagOwner::Tiff => true,
        _ => return None,
    };
    let offset = if big { order.number(from.read::<8>(start + 8)?) } else { order.number(from.read::<4>(start + 4)?) };
    let mut at = start.checked_add(offset)?;
    let entries = if big { order.number(from.read::<8>(at)?) } else { order.number(from.read::<2>(at)?) };
    at = at.checked_add(if big { 8 } else { 2 })?;
    for _ in 0..entries.min(MOST_ENTRIES) {
        let next = at.checked_add(if big { 20 } else { 12 })?;
        if next > end {
            return None;
        }
        if order.number(from.read::<2>(at)?) == ORIENTATION_TAG {
            let kind = order.number(from.read::<2>(at + 2)?);
            let count = if big { order.number(from.read::<8>(at + 4)?) } else { order.number(from.read::<4>(at + 4)?) };
            let value = if big { at + 12 } else { at + 8 };
            return match (holder, kind, count) {
                (TagOwner::Exif, ..) | (TagOwner::Tiff, 3, 1) => Some(order.number(from.read::<2>(value)?)),
                (TagOwner::Tiff, 1, 1) => Some(order.number(from.read::<1>(value)?)),
                (TagOwner::Tiff, 4, 1) => Some(order.number(from.read::<4>(value)?)),
                _ => None,
            };
        }
        at = next;
    }
    None
}

#[derive(Clone, Copy)]
enum ByteOrder {
    LowFirst,
    HighFirst,
}

impl ByteOrder {
    fn number<const N: usize>(self, bytes: [u8; N]) -> u64 {
        let add = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        match self {
            ByteOrder::LowFirst => bytes.iter().rev().fold(0, add),
            ByteOrder::HighFirst => bytes.iter().fold(0, add),
        }
    }
}

/// Whether the bytes of a PNG from `start` to `end` match the CRC that follows them.
fn crc(from: &mut ForwardBytes<'_, impl Read + Seek>, start: u64, end: u64) -> Option<bool> {
    const POLYNOMIAL: u32 = 0xEDB8_8320;
    const TABLE: [u32; 16] = {
        let mut table = [0; 16];
        let mut nibble = 0;
        while nibble < 16 {
            let (mut rest, mut bit) = (nibble as u32, 0);
            while bit < 4 {
                rest = if rest & 1 == 1 { rest >> 1 ^ POLYNOMIAL } else { rest >> 1 };
                bit += 1;
            }
            table[nibble] = rest;
            nibble += 1;
        }
        table
    };
    let mut sum = u32::MAX;
    for at in start..end {
        sum ^= u32::from(from.read::<1>(at)?[0]);
        sum = sum >> 4 ^ TABLE[(sum & 15) as usize];
        sum = sum >> 4 ^ TABLE[(sum & 15) as usize];
    }
    Some(!sum == u32::from_be_bytes(from.read(end)?))
}

/// A file that is read mostly forwards; a short skip does not discard the reader's buffer.
struct ForwardBytes<'a, R> {
    from: &'a mut R,
    at: u64,
}

impl<R: Read + Seek> ForwardBytes<'_, R> {
    /// N bytes at a position; `None` beyond the end.
    fn read<const N: usize>(&mut self, at: u64) -> Option<[u8; N]> {
        if at != self.at {
            let step = i64::try_from(at).ok()?.checked_sub(i64::try_from(self.at).ok()?)?;
            self.from.seek_relative(step).ok()?;
            self.at = at;
        }
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes).ok()?;
        self.at += N as u64;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Cursor, SeekFrom};

    use proptest::prelude::*;

    use super::*;

    fn exif(value: u16) -> Vec<u8> {
        [b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0", &value.to_le_bytes()[..], &[0; 6]].concat()
    }

    fn jpeg(segments: &[Vec<u8>]) -> Vec<u8> {
        let mut file = vec![0xFF, 0xD8];
        for segment in segments {
            file.extend([0xFF, 0xE1]);
            file.extend((segment.len() as u16 + 2).to_be_bytes());
            file.extend(segment);
        }
        file.extend(b"\xFF\xDA\0\x02");
        file
    }

    fn app1(exif: &[u8]) -> Vec<u8> {
        [&EXIF_PREFIX, exif].concat()
    }

    fn png(chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        for (kind, data) in chunks {
            file.extend((data.len() as u32).to_be_bytes());
            file.extend(*kind);
            file.extend(data);
            let mut sum = crc32(&[&kind[..], data].concat());
            file.append(&mut sum);
        }
        file
    }

    /// The bitwise algorithm of the PNG specification.
    fn crc32(bytes: &[u8]) -> Vec<u8> {
        let sum = bytes.iter().fold(u32::MAX, |sum, byte| {
            (0..8).fold(sum ^ u32::from(*byte), |sum, _| sum >> 1 ^ if sum & 1 == 1 { 0xEDB8_8320 } else { 0 })
        });
        (!sum).to_be_bytes().to_vec()
    }

    fn webp(flags: u8, chunks: &[(&[u8; 4], Vec<u8>)]) -> Vec<u8> {
        let mut body = b"WEBPVP8X\x0a\0\0\0".to_vec();
        body.extend([flags, 0, 0, 0, 2, 0, 0, 1, 0, 0]);
        for (kind, data) in chunks {
            body.extend(*kind);
            body.extend((data.len() as u32).to_le_bytes());
            body.extend(data);
            body.resize(body.len().next_multiple_of(2), 0);
        }
        [b"RIFF", &(body.len() as u32).to_le_bytes()[..], &body].concat()
    }

    fn tiff(kind: u16, count: u32, value: u32) -> Vec<u8> {
        let entry = [&[1, 18][..], &kind.to_be_bytes(), &count.to_be_bytes()].concat();
        let value = match kind {
            1 => [value as u8, 0, 0, 0],
            3 => [(value >> 8) as u8, value as u8, 0, 0],
            _ => value.to_be_bytes(),
        };
        [&b"MM\0*\0\0\0\x08\0\x01"[..], &entry, &value, &[0; 4]].concat()
    }

    fn value(file: &[u8]) -> u8 {
        read(&mut Cursor::new(file)).to_exif()
    }

    /// Each case has the result of `OpenCV` 5.0.0.
    #[test]
    fn the_rules_are_those_of_opencv() {
        let no_tag = b"II*\0\x08\0\0\0\0\0\0\0\0\0".to_vec();
        let xmp = b"http://ns.adobe.com/xap/1.0/\0<x/>".to_vec();
        let big_long = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x04\0\0\0\x01\0\0\0\x06\0\0\0\0";
        let big_tiff = [
            &b"II+\0\x08\0\0\0\x10\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x12\x01\x03\0\x01\0\0\0\0\0\0\0"[..],
            b"\x06\0\0\0\0\0\0\0",
        ];
        let mut wrong_crc = png(&[(b"eXIf", exif(6)), (b"IEND", vec![])]);
        wrong_crc[8 + 8 + exif(6).len()] ^= 1;
        let cases = [
            ("JPEG", jpeg(&[app1(&exif(6))]), 6),
            ("JPEG, another APP1 first", jpeg(&[xmp, app1(&exif(6))]), 6),
            ("JPEG, two", jpeg(&[app1(&exif(6)), app1(&exif(3))]), 6),
            ("JPEG, the first broken", jpeg(&[app1(b"garbage!garbage"), app1(&exif(3))]), 3),
            ("JPEG, the first without the tag", jpeg(&[app1(&no_tag), app1(&exif(3))]), 3),
            ("JPEG, the first out of range", jpeg(&[app1(&exif(9)), app1(&exif(3))]), 1),
            ("JPEG, 32 bits with the high byte first", jpeg(&[app1(big_long)]), 1),
            ("JPEG, another prefix", jpeg(&[[b"Exif\0x", &exif(6)[..]].concat()]), 1),
            ("PNG", png(&[(b"IDAT", vec![7; 9]), (b"eXIf", exif(6))]), 6),
            ("PNG, two", png(&[(b"eXIf", exif(6)), (b"eXIf", exif(3))]), 6),
            ("PNG, with a prefix", png(&[(b"eXIf", app1(&exif(6)))]), 1),
            ("PNG, wrong CRC", wrong_crc, 1),
            ("WebP", webp(8, &[(b"VP8L", vec![7; 9]), (b"EXIF", exif(6))]), 6),
            ("WebP, two", webp(8, &[(b"EXIF", exif(6)), (b"EXIF", exif(3))]), 6),
            ("WebP, not announced", webp(0, &[(b"EXIF", exif(6))]), 1),
            ("WebP, with a prefix", webp(8, &[(b"EXIF", app1(&exif(6)))]), 1),
            ("TIFF", tiff(3, 1, 6), 6),
            ("TIFF, 32 bits", tiff(4, 1, 6), 6),
            ("TIFF, 8 bits", tiff(1, 1, 6), 6),
            ("TIFF, two values", tiff(3, 2, 6), 1),
            ("BigTIFF", big_tiff.concat(), 6),
        ];
        for (name, file, expected) in cases {
            assert_eq!(value(&file), expected, "{name}");
        }
    }

    #[test]
    fn values_outside_1_to_8_turn_nothing() {
        for wrong in [0, 9, 255, 256, 262, u16::MAX] {
            let files = [
                jpeg(&[app1(&exif(wrong))]),
                png(&[(b"eXIf", exif(wrong))]),
                webp(8, &[(b"EXIF", exif(wrong))]),
                tiff(3, 1, wrong.into()),
            ];
            assert_eq!(files.map(|file| value(&file)), [1; 4], "{wrong}");
        }
        assert_eq!(value(&tiff(4, 1, 0x0001_0006)), 1);
    }

    /// Counts the bytes read.
    struct Metered<'a>(Cursor<&'a [u8]>, u64);

    impl Read for Metered<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let read = self.0.read(into)?;
            self.1 += read as u64;
            Ok(read)
        }
    }

    impl Seek for Metered<'_> {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.0.seek(to)
        }
    }

    #[test]
    fn what_is_read_is_bounded_whatever_the_file_claims() {
        let filled = |head: &[u8], byte: u8, length: usize| [head, &vec![byte; length]].concat();
        let entries = filled(b"II*\0\x08\0\0\0\xFF\xFF", 0, 12 * 0xFFFF);
        let cases = [
            ("TIFF of empty entries", entries.clone()),
            ("BigTIFF of 2^64 entries", filled(b"II+\0\x08\0\0\0\x10\0\0\0\0\0\0\0", 0xFF, 8 << 20)),
            ("PNG of a huge eXIf", png(&[(b"eXIf", filled(&entries, 0, 4 << 20))])),
            ("PNG of empty chunks", filled(b"\x89PNG\r\n\x1a\n", 0, 12 << 20)),
            ("JPEG of stray bytes", filled(&[0xFF, 0xD8], 7, 4 << 20)),
            ("JPEG of fill bytes", filled(&[0xFF, 0xD8], 0xFF, 4 << 20)),
            ("JPEG of empty segments", [&[0xFF, 0xD8][..], &b"\xFF\xE1\0\x02".repeat(1 << 20)].concat()),
            ("JPEG of lengths of zero", [&[0xFF, 0xD8][..], &b"\xFF\xE1\0\0".repeat(1 << 20)].concat()),
            ("WebP of empty chunks", webp(8, &vec![(b"ALPH", vec![]); 1 << 18])),
        ];
        for (name, file) in cases {
            let mut from = Metered(Cursor::new(&file), 0);
            assert_eq!(read(&mut from).to_exif(), 1, "{name}");
            assert!(from.1 <= 1 << 20, "{name}: {} of {} bytes", from.1, file.len());
        }
    }

    fn any_file() -> impl Strategy<Value = Vec<u8>> {
        let exif = exif(6);
        proptest::sample::select(vec![
            jpeg(&[app1(&exif)]),
            png(&[(b"eXIf", exif.clone()), (b"IEND", vec![])]),
            webp(8, &[(b"EXIF", exif)]),
            tiff(3, 1, 6),
        ])
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut file in any_file(), hits in proptest::collection::vec(any::<(u16, u8)>(), 0..8)) {
            for (at, byte) in hits {
                let at = usize::from(at) % file.len();
                file[at] = byte;
            }
            for length in 0..=file.len() {
                prop_assert!((1..=8).contains(&value(&file[..length])));
            }
        }

        #[test]
        fn turning_keeps_every_pixel_and_four_quarters_are_none(width in 1..80usize, height in 1..80usize) {
            let stored: Vec<usize> = (0..width * height).collect();
            for value in 1..=8 {
                let orientation = Orientation::from_exif(value).unwrap();
                let mut made = vec![usize::MAX; stored.len()];
                turn(orientation, width, &stored, &mut made, |pixel| *pixel);
                made.sort_unstable();
                prop_assert_eq!(&made, &stored, "{}", value);
            }
            let (mut picture, mut sides) = (stored.clone(), (width as u32, height as u32));
            for _ in 0..4 {
                let mut made = stored.clone();
                turn(Orientation::Rotate90, sides.0 as usize, &picture, &mut made, |pixel| *pixel);
                (picture, sides) = (made, turned(sides, Orientation::Rotate90));
            }
            prop_assert_eq!(picture, stored);
        }
    }
}
