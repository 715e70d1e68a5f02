//! Pixels and pictures in host memory.
//!
//! Owns the pixel's layout and borrowed views of pictures.
//! Does not own memory: frames are lent by pools elsewhere.
//!
//! Always: a picture has exactly width times height pixels, rows from the top; or, where it is stored in another format,
//! the bytes of a frame of that.

use vramp_plan::{Format, Size};

/// Red, green, blue, alpha.
pub type Pixel = [u8; 4];

/// A picture that is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Picture<'a> {
    /// Its size.
    pub size: Size,
    /// Its pixels, row by row; none where it is stored in another format.
    pub pixels: &'a [Pixel],
    stored: Option<(Format, &'a [u8])>,
}

impl<'a> Picture<'a> {
    /// A view of pixels as a picture; none where their number does not fit the size.
    pub fn new(size: Size, pixels: &'a [Pixel]) -> Option<Picture<'a>> {
        (pixels.len() as u64 == size.pixels()).then_some(Picture { size, pixels, stored: None })
    }

    /// A view of a frame's bytes as a picture; none where they are too few for a frame of that format and size.
    pub fn stored(format: Format, size: Size, bytes: &'a [u8]) -> Option<Picture<'a>> {
        if format == Format::Rgba8 {
            return Picture::new(size, bytes.as_chunks::<4>().0);
        }
        let enough = bytes.len() as u64 >= format.frame_bytes(size);
        enough.then_some(Picture { size, pixels: &[], stored: Some((format, bytes)) })
    }

    /// Its format and bytes, where it is not stored as pixels.
    pub(crate) fn bytes(&self) -> Option<(Format, &'a [u8])> {
        self.stored
    }

    /// One row of what is stored as pixels.
    pub fn row(&self, y: u32) -> &'a [Pixel] {
        let width = self.size.width as usize;
        &self.pixels[y as usize * width..][..width]
    }
}
