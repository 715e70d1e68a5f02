//! A copy of a frame that has left a pipeline.
//!
//! Invariant: a copy holds no memory of the pipeline's pools.

use vramp_handlers::app::{AppInput, LentFrame, PushError};
use vramp_plan::Format;
use vramp_runtime::{Frame, FrameContent, Meta, NoteValue, Notes, Picture};

/// A frame that reached an output, with a copy of its bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Caught {
    /// The frame's number, counted by its source.
    pub number: u64,
    pub pts_ns: i64,
    pub content: FrameContent,
    pub notes: Vec<(String, NoteValue)>,
    /// For a picture, rows and planes are laid out as in [`Format::planes`].
    pub bytes: Vec<u8>,
}

impl Caught {
    /// Red, green, blue and alpha of a pixel. `None` outside the frame or if the format is not rgba8.
    pub fn pixel(&self, x: u32, y: u32) -> Option<[u8; 4]> {
        let Picture { format: Format::Rgba8, size, .. } = *self.picture()? else { return None };
        if x >= size.width || y >= size.height {
            return None;
        }
        let at = u64::from(y) * u64::from(size.width) + u64::from(x);
        self.pixels().get(usize::try_from(at).ok()?).copied()
    }

    /// The description of a picture; `None` for tensors and data.
    pub fn picture(&self) -> Option<&Picture> {
        match &self.content {
            FrameContent::Video(picture) => Some(picture),
            _ => None,
        }
    }

    /// The elements of a tensor or the values of data, as f32.
    pub fn values(&self) -> Vec<f32> {
        self.bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect()
    }

    /// All pixels of an rgba8 frame, row by row.
    pub fn pixels(&self) -> &[[u8; 4]] {
        self.bytes.as_chunks::<4>().0
    }

    pub(crate) fn of(frame: &Frame) -> Caught {
        let Meta { pts_ns, number, content, .. } = *frame.meta();
        let notes = frame.notes().map(Notes::to_vec).unwrap_or_default();
        Caught { number, pts_ns, content, notes, bytes: frame.bytes().to_vec() }
    }

    /// A copy of this frame in memory of the pipeline of an `app` source, to be sent there.
    pub(crate) fn lent(&self, input: &AppInput) -> Result<LentFrame, PushError> {
        let mut frame = match self.picture() {
            Some(picture) => input.lend_sized(picture.size)?.yuv(picture.yuv),
            None => input.lend()?,
        };
        frame.bytes_mut().copy_from_slice(&self.bytes);
        for (key, value) in &self.notes {
            let note = value.as_note().map_err(|error| PushError::Note { input: input.name().into(), error })?;
            input.note(&mut frame, key, note)?;
        }
        Ok(frame)
    }
}
