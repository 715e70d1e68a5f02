//! Pixels and pictures in host memory.
//!
//! Owns the pixel's layout and borrowed views of pictures.
//! Does not own memory: frames are lent by pools elsewhere.
//!
//! Always: a picture has exactly width times height pixels, rows from the top.

use vramp_plan::Size;

/// Red, green, blue, alpha.
pub type Pixel = [u8; 4];

/// A picture that is looked at.
#[derive(Debug, Clone, Copy)]
pub struct Picture<'a> {
    /// Its size.
    pub size: Size,
    /// Its pixels, row by row.
    pub pixels: &'a [Pixel],
}

impl<'a> Picture<'a> {
    /// A view of pixels as a picture; none where their number does not fit the size.
    pub fn new(size: Size, pixels: &'a [Pixel]) -> Option<Picture<'a>> {
        (pixels.len() as u64 == size.pixels()).then_some(Picture { size, pixels })
    }

    /// One row.
    pub fn row(&self, y: u32) -> &'a [Pixel] {
        let width = self.size.width as usize;
        &self.pixels[y as usize * width..][..width]
    }
}
