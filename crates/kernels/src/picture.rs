//! Pixels and borrowed views of images in host memory.
//!
//! A picture in rgba8 has exactly width times height pixels, with rows from the top. A picture in any other format has
//! the bytes of a frame instead of pixels. The memory is owned by pools in other crates.

use vramp_plan::{Format, Size};

/// Red, green, blue, alpha.
pub type Pixel = [u8; 4];

/// A borrowed image.
#[derive(Debug, Clone, Copy)]
pub struct Picture<'a> {
    pub size: Size,
    /// The pixels, row by row; empty if the format is not rgba8.
    pub pixels: &'a [Pixel],
    stored: Option<(Format, &'a [u8])>,
}

impl<'a> Picture<'a> {
    /// Views pixels as an image. Returns `None` if their number does not match the size.
    pub fn new(size: Size, pixels: &'a [Pixel]) -> Option<Picture<'a>> {
        (pixels.len() as u64 == size.pixels()).then_some(Picture { size, pixels, stored: None })
    }

    /// Views the bytes of a frame as an image. Returns `None` if there are too few bytes for this format and size.
    pub fn stored(format: Format, size: Size, bytes: &'a [u8]) -> Option<Picture<'a>> {
        if format == Format::Rgba8 {
            return Picture::new(size, bytes.as_chunks::<4>().0);
        }
        let enough = bytes.len() as u64 >= format.frame_bytes(size);
        enough.then_some(Picture { size, pixels: &[], stored: Some((format, bytes)) })
    }

    /// The format and the bytes, if the format is not rgba8.
    pub(crate) fn bytes(&self) -> Option<(Format, &'a [u8])> {
        self.stored
    }

    /// One row of an rgba8 image.
    pub fn row(&self, y: u32) -> &'a [Pixel] {
        let width = self.size.width as usize;
        &self.pixels[y as usize * width..][..width]
    }
}
