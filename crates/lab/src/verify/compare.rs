//! Compares two streams of frames that should be equal.
//!
//! Invariants: the first difference is reported, with the number of frames that differ. Padding between rows and planes
//! is ignored.

use std::fmt;

use half::f16;
use vramp_plan::{DType, Format, Size};
use vramp_runtime::{FrameContent, NoteValue, Picture};

use crate::harness::Caught;

/// The first difference between two streams.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The number of the first frame that differs.
    pub frame: u64,
    pub found: Mismatch,
    /// How many frames differ, including missing and surplus frames.
    pub frames: usize,
}

/// How a frame or a stream differs from what was expected.
#[derive(Debug, Clone, PartialEq)]
pub enum Mismatch {
    Pixels {
        /// Column of the first pixel that differs.
        x: u32,
        y: u32,
        expected: [u8; 4],
        found: [u8; 4],
        /// How many pixels of the frame differ.
        count: u64,
        /// The largest difference of a channel, in levels.
        most: u8,
    },
    /// Bytes differ, in a format other than rgba8.
    Bytes {
        plane: usize,
        row: u64,
        /// The offset in the row.
        at: u64,
        expected: u8,
        found: u8,
        /// How many bytes of the frame differ.
        count: u64,
        /// The largest difference, in levels.
        most: u8,
    },
    /// A value of a tensor or of data differs.
    Values {
        /// The position of the first value that differs.
        at: usize,
        expected: f64,
        found: f64,
        /// How many values of the frame differ.
        count: u64,
    },
    /// What the frames carry differs: the format and the size, or the element type and the shape.
    Shape { expected: FrameContent, found: FrameContent },
    /// The notes of the frames differ.
    Notes { expected: Vec<(String, NoteValue)>, found: Vec<(String, NoteValue)> },
    /// The frame number or the time in nanoseconds differs.
    Place { expected: (u64, i64), found: (u64, i64) },
    /// The streams have different numbers of frames.
    Count { expected: usize, found: usize },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |pixel: &[u8; 4]| format!("{} {} {} {}", pixel[0], pixel[1], pixel[2], pixel[3]);
        write!(f, "frame {}, ", self.frame)?;
        match &self.found {
            Mismatch::Pixels { x, y, expected, found, count, most } => {
                write!(f, "pixel {x},{y} is {} instead of {}; ", show(found), show(expected))?;
                write!(f, "{count} {} by up to {most}", if *count == 1 { "pixel differs" } else { "pixels differ" })?;
            }
            Mismatch::Bytes { plane, row, at, expected, found, count, most } => {
                write!(f, "plane {plane}, row {row}, byte {at} is {found} instead of {expected}; ")?;
                write!(f, "{count} {} by up to {most}", if *count == 1 { "byte differs" } else { "bytes differ" })?;
            }
            Mismatch::Shape { expected, found } => {
                write!(f, "{found} instead of {expected}")?;
            }
            Mismatch::Values { at, expected, found, count } => {
                write!(f, "value {at} is {found} instead of {expected}; ")?;
                write!(f, "{count} {}", if *count == 1 { "value differs" } else { "values differ" })?;
            }
            Mismatch::Notes { expected, found } => {
                write!(f, "the notes are {found:?} instead of {expected:?}")?;
            }
            Mismatch::Place { expected, found } => {
                write!(
                    f,
                    "number {} at {} ns instead of number {} at {} ns",
                    found.0, found.1, expected.0, expected.1
                )?;
            }
            Mismatch::Count { expected, found } => write!(f, "the stream has {found} frames instead of {expected}")?,
        }
        if self.frames > 1 { write!(f, "; {} frames differ", self.frames) } else { Ok(()) }
    }
}

/// The first difference between the streams. Differences of at most `levels` levels do not count.
pub(super) fn compare(expected: &[Caught], found: &[Caught], levels: u8) -> Option<Difference> {
    let mut first = None;
    let mut frames = 0;
    for (expected, found) in expected.iter().zip(found) {
        if let Some(different) = differ(expected, found, levels) {
            frames += 1;
            first.get_or_insert((expected.number, different));
        }
    }
    if expected.len() != found.len() {
        let shorter = expected.len().min(found.len());
        let number = expected.get(shorter).or(found.get(shorter)).map_or(0, |frame| frame.number);
        frames += expected.len().abs_diff(found.len());
        first.get_or_insert((number, Mismatch::Count { expected: expected.len(), found: found.len() }));
    }
    first.map(|(frame, found)| Difference { frame, found, frames })
}

fn differ(expected: &Caught, found: &Caught, levels: u8) -> Option<Mismatch> {
    let place = |frame: &Caught| (frame.number, frame.pts_ns);
    if place(expected) != place(found) {
        return Some(Mismatch::Place { expected: place(expected), found: place(found) });
    }
    let same_shape = match (&expected.content, &found.content) {
        (FrameContent::Video(one), FrameContent::Video(two)) => (one.format, one.size) == (two.format, two.size),
        (one, two) => one == two,
    };
    if !same_shape {
        return Some(Mismatch::Shape { expected: expected.content, found: found.content });
    }
    if expected.notes != found.notes {
        return Some(Mismatch::Notes { expected: expected.notes.clone(), found: found.notes.clone() });
    }
    if expected.bytes == found.bytes {
        return None;
    }
    match &expected.content {
        FrameContent::Video(picture) if picture.format == Format::Rgba8 => {
            pixels(expected, found, picture.size, levels)
        }
        FrameContent::Video(picture) => bytes(expected, found, picture, levels),
        FrameContent::Tensor(shape) => values(expected, found, shape.dtype()),
        FrameContent::Data { .. } => values(expected, found, DType::F32),
    }
}

/// Compares the values of tensors and data. Floats may differ by a small part of their value, because both sides round
/// after each operation.
fn values(expected: &Caught, found: &Caught, dtype: DType) -> Option<Mismatch> {
    const SMALL: f64 = 1e-4;
    let (wanted, had) = (numbers(&expected.bytes, dtype), numbers(&found.bytes, dtype));
    let is_float = matches!(dtype, DType::F32 | DType::F16);
    let differ = |(_, (a, b)): &(usize, (&f64, &f64))| {
        let apart = if is_float { SMALL * a.abs().max(1.0) } else { 0.0 };
        // Two values that are not numbers are equal, and so are two that are infinite.
        !((*a - *b).abs() <= apart || a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan())
    };
    let different = || wanted.iter().zip(&had).enumerate().filter(differ);
    let (at, (expected, found)) = different().next()?;
    Some(Mismatch::Values { at, expected: *expected, found: *found, count: different().count() as u64 })
}

fn numbers(bytes: &[u8], dtype: DType) -> Vec<f64> {
    let four = || bytes.as_chunks::<4>().0.iter();
    match dtype {
        DType::F32 => four().map(|four| f64::from(f32::from_le_bytes(*four))).collect(),
        DType::I32 => four().map(|four| f64::from(i32::from_le_bytes(*four))).collect(),
        DType::U32 => four().map(|four| f64::from(u32::from_le_bytes(*four))).collect(),
        DType::F16 => bytes.as_chunks::<2>().0.iter().map(|two| f16::from_le_bytes(*two).to_f64()).collect(),
        DType::U8 => bytes.iter().map(|byte| f64::from(*byte)).collect(),
        DType::I8 => bytes.iter().map(|byte| f64::from(byte.cast_signed())).collect(),
    }
}

fn pixels(expected: &Caught, found: &Caught, size: Size, levels: u8) -> Option<Mismatch> {
    let apart = |(a, b): &([u8; 4], [u8; 4])| a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap_or(0);
    let both = expected.pixels().iter().copied().zip(found.pixels().iter().copied());
    let different = || both.clone().enumerate().filter(|(_, both)| apart(both) > levels);
    let (at, (expected_here, found_here)) = different().next()?;
    let width = size.width as usize;
    Some(Mismatch::Pixels {
        x: (at % width) as u32,
        y: (at / width) as u32,
        expected: expected_here,
        found: found_here,
        count: different().count() as u64,
        most: both.map(|both| apart(&both)).max().unwrap_or(0),
    })
}

fn bytes(expected: &Caught, found: &Caught, picture: &Picture, levels: u8) -> Option<Mismatch> {
    let (mut first, mut count, mut most) = (None, 0, 0);
    for (plane, place) in picture.format.planes(picture.size).enumerate() {
        for row in 0..place.rows {
            for at in 0..place.row_bytes {
                let byte = (place.start + row * place.stride + at) as usize;
                let (a, b) = (expected.bytes[byte], found.bytes[byte]);
                most = most.max(a.abs_diff(b));
                if a.abs_diff(b) > levels {
                    count += 1;
                    first.get_or_insert((plane, row, at, a, b));
                }
            }
        }
    }
    first.map(|(plane, row, at, expected, found)| Mismatch::Bytes { plane, row, at, expected, found, count, most })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramp_runtime::Meta;

    fn frame(number: u64, format: Format, bytes: &[u8]) -> Caught {
        let size = Size { width: 3, height: 1 };
        let content = Meta::new(format, size).content;
        Caught { number, pts_ns: 0, content, notes: Vec::new(), bytes: bytes.to_vec() }
    }

    fn one(expected: &Caught, found: &Caught, levels: u8) -> Option<Difference> {
        compare(std::slice::from_ref(expected), std::slice::from_ref(found), levels)
    }

    #[test]
    fn the_first_pixel_that_differs_is_told_with_how_many_more_do() {
        let expected = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
        let mut other = expected;
        (other[5], other[8]) = (7, 4);
        let (a, b) = (frame(4, Format::Rgba8, &expected), frame(4, Format::Rgba8, &other));
        let told = one(&a, &b, 0).expect("they differ").to_string();
        assert_eq!(told, "frame 4, pixel 1,0 is 5 7 7 8 instead of 5 6 7 8; 2 pixels differ by up to 5");
        let told = one(&a, &b, 1).expect("one of them by 5").to_string();
        assert_eq!(told, "frame 4, pixel 2,0 is 4 10 11 12 instead of 9 10 11 12; 1 pixel differs by up to 5");
        assert_eq!(one(&a, &b, 5), None);
    }

    #[test]
    fn padding_is_not_looked_at() {
        let (a, b) = (frame(0, Format::Gray8, &[1, 2, 3, 0]), frame(0, Format::Gray8, &[1, 2, 3, 99]));
        assert_eq!(one(&a, &b, 0), None);
        let told = one(&a, &frame(0, Format::Gray8, &[1, 2, 4, 0]), 0).expect("it differs").to_string();
        assert_eq!(told, "frame 0, plane 0, row 0, byte 2 is 4 instead of 3; 1 byte differs by up to 1");
    }

    #[test]
    fn missing_frames_and_other_numbers_are_differences_too() {
        let gray = |number| frame(number, Format::Gray8, &[0; 4]);
        let told = compare(&[gray(0), gray(1), gray(2)], &[gray(0)], 0).expect("two are missing").to_string();
        assert_eq!(told, "frame 1, the stream has 1 frames instead of 3; 2 frames differ");
        let told = compare(&[gray(0)], &[gray(5)], 0).expect("another number").to_string();
        assert_eq!(told, "frame 0, number 5 at 0 ns instead of number 0 at 0 ns");
    }
}
