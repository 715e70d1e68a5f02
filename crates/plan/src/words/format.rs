//! Pixel formats and their layout in memory.
//!
//! Invariants: a plane starts at a multiple of 256 bytes and a row takes a multiple of 4 bytes, in every memory space.
//! Handlers convert pixels between formats.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use super::Size;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Four interleaved bytes per pixel: red, green, blue, straight alpha. All processing uses this format.
    Rgba8,
    /// Three interleaved bytes per pixel.
    Rgb8,
    /// Planar 4:4:4.
    I444,
    /// Planar 4:2:2.
    I422,
    /// Planar 4:2:0.
    I420,
    /// Luma plane and one interleaved 4:2:0 chroma plane.
    Nv12,
    /// Luma only.
    Gray8,
}

impl Format {
    /// Best first: this order breaks ties.
    pub const RANKED: [Format; 7] =
        [Format::Rgba8, Format::Rgb8, Format::I444, Format::I422, Format::I420, Format::Nv12, Format::Gray8];

    /// The word used in text, TOML and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Rgba8 => "rgba8",
            Format::Rgb8 => "rgb8",
            Format::I444 => "i444",
            Format::I422 => "i422",
            Format::I420 => "i420",
            Format::Nv12 => "nv12",
            Format::Gray8 => "gray8",
        }
    }

    /// Bytes of one frame including padding.
    pub fn frame_bytes(self, size: Size) -> u64 {
        self.planes(size).last().map_or(0, |plane| plane.start + plane.stride * plane.rows)
    }

    /// The planes of a frame in order.
    pub fn planes(self, size: Size) -> impl Iterator<Item = Plane> {
        let (w, h) = (u64::from(size.width), u64::from(size.height));
        let (half_w, half_h) = (w.div_ceil(2), h.div_ceil(2));
        let none = (0, 0);
        let planes = match self {
            Format::Rgba8 => [(4 * w, h), none, none],
            Format::Rgb8 => [(3 * w, h), none, none],
            Format::I444 => [(w, h), (w, h), (w, h)],
            Format::I422 => [(w, h), (half_w, h), (half_w, h)],
            Format::I420 => [(w, h), (half_w, half_h), (half_w, half_h)],
            Format::Nv12 => [(w, h), (2 * half_w, half_h), none],
            Format::Gray8 => [(w, h), none, none],
        };
        let mut end = 0u64;
        planes.into_iter().filter(move |plane| *plane != none).map(move |(row_bytes, rows)| {
            let plane =
                Plane { start: end.next_multiple_of(256), row_bytes, stride: row_bytes.next_multiple_of(4), rows };
            end = plane.start + plane.stride * rows;
            plane
        })
    }
}

/// The position of one plane in a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plane {
    /// Offset of the first byte in the frame.
    pub start: u64,
    /// Bytes of a row without padding.
    pub row_bytes: u64,
    /// Bytes from one row to the next.
    pub stride: u64,
    pub rows: u64,
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format `{0}`; expected rgba8, rgb8, i444, i422, i420, nv12 or gray8")]
pub struct UnknownFormat(pub String);

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Format::RANKED.into_iter().find(|f| f.name() == word).ok_or_else(|| UnknownFormat(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(format: Format, w: u32, h: u32) -> u64 {
        format.frame_bytes(Size::new(w, h).unwrap())
    }

    #[test]
    fn a_full_hd_rgba_frame_takes_eight_megabytes() {
        assert_eq!(bytes(Format::Rgba8, 1920, 1080), 8_294_400);
    }

    #[test]
    fn rows_are_padded_to_four_bytes_and_planes_start_at_256() {
        assert_eq!(bytes(Format::Gray8, 5, 2), 16);
        assert_eq!(bytes(Format::Rgb8, 1, 3), 12);
        // Luma takes 3 rows of 8 bytes. The chroma planes take 2 rows of 4 bytes each and start at 256 and 512.
        assert_eq!(bytes(Format::I420, 5, 3), 520);
        assert_eq!(bytes(Format::Nv12, 5, 3), 256 + 8 * 2);
    }

    #[test]
    fn planes_lie_one_after_another_and_end_with_the_frame() {
        let planes: Vec<Plane> = Format::I420.planes(Size::new(5, 3).unwrap()).collect();
        let plane = |start, row_bytes, stride, rows| Plane { start, row_bytes, stride, rows };
        assert_eq!(planes, [plane(0, 5, 8, 3), plane(256, 3, 4, 2), plane(512, 3, 4, 2)]);
        for format in Format::RANKED {
            let size = Size::new(7, 5).unwrap();
            let end = format.planes(size).map(|plane| plane.start + plane.stride * plane.rows).max();
            assert_eq!(end, Some(format.frame_bytes(size)), "{format}");
        }
    }

    #[test]
    fn every_format_reads_back_its_own_name() {
        for format in Format::RANKED {
            assert_eq!(format.name().parse(), Ok(format));
        }
        assert!("yuyv".parse::<Format>().is_err());
    }
}
