//! A copy of a frame that has left a pipeline.
//!
//! Invariant: a copy holds no memory of the pipeline's pools.

use vramp_handlers::app::{AppInput, LentFrame, PushError};
use vramp_plan::{Format, Size};
use vramp_runtime::{Frame, Meta, Yuv};

/// A frame that reached an output, with a copy of its bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Caught {
    /// The frame's number, counted by its source.
    pub number: u64,
    pub pts_ns: i64,
    pub format: Format,
    pub size: Size,
    /// How luma and chroma are to be read, if the format has luma and chroma.
    pub yuv: Yuv,
    /// Rows and planes are laid out as in [`Format::planes`].
    pub bytes: Vec<u8>,
}

impl Caught {
    /// Red, green, blue and alpha of a pixel. `None` outside the frame or if the format is not rgba8.
    pub fn pixel(&self, x: u32, y: u32) -> Option<[u8; 4]> {
        if self.format != Format::Rgba8 || x >= self.size.width || y >= self.size.height {
            return None;
        }
        let at = u64::from(y) * u64::from(self.size.width) + u64::from(x);
        self.pixels().get(usize::try_from(at).ok()?).copied()
    }

    /// All pixels of an rgba8 frame, row by row.
    pub fn pixels(&self) -> &[[u8; 4]] {
        self.bytes.as_chunks::<4>().0
    }

    pub(crate) fn of(frame: &Frame) -> Caught {
        let Meta { pts_ns, number, format, size, yuv, .. } = *frame.meta();
        Caught { number, pts_ns, format, size, yuv, bytes: frame.bytes().to_vec() }
    }

    /// A copy of this frame in memory of the pipeline of an `app` source, to be sent there.
    pub(crate) fn lent(&self, input: &AppInput) -> Result<LentFrame, PushError> {
        let mut frame = input.lend_sized(self.size)?.yuv(self.yuv);
        frame.bytes_mut().copy_from_slice(&self.bytes);
        Ok(frame)
    }
}
