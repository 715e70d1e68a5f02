//! The content of a link: a frame, a tensor or plain data, with its size in bytes.
//!
//! Of a link's content, only the rate may be unknown. [`Caps`](super::Caps) describe what a port could carry.

use std::fmt;

use super::{Format, Rate, Size};

/// Format, size and rate of a video frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameDesc {
    pub format: Format,
    pub size: Size,
    /// Frames per second; `None` if the source does not know.
    pub rate: Option<Rate>,
}

/// The element type of a tensor.
///
/// Elements are stored without gaps. On the device the last word of a tensor is padded with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DType {
    /// 32-bit float.
    F32,
    /// 16-bit float, two to a device word. Computed as f32 and rounded to nearest even after every operation.
    F16,
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned byte, four to a device word. The type of pixels.
    U8,
    /// Signed byte, four to a device word. The type of quantised values.
    I8,
}

impl DType {
    /// In the order of preference.
    pub const ALL: [DType; 6] = [DType::F32, DType::F16, DType::I32, DType::U32, DType::U8, DType::I8];

    /// The name of the Rust type, as used in text.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::U8 => "u8",
            DType::I8 => "i8",
        }
    }

    /// Bytes of one element.
    pub const fn bytes(self) -> usize {
        match self {
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 => 2,
            DType::U8 | DType::I8 => 1,
        }
    }

    /// Elements in one device word of 4 bytes.
    pub const fn per_word(self) -> usize {
        4 / self.bytes()
    }

    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F16)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The maximum number of axes of a tensor.
pub const MAX_RANK: usize = 8;

/// Element type, shape and rate of a tensor.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TensorDesc {
    pub dtype: DType,
    /// The extent along each axis, outermost first.
    pub dims: Vec<u32>,
    /// Tensors per second; `None` if unknown.
    pub rate: Option<Rate>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Content {
    Video(FrameDesc),
    /// Arrays of numbers.
    Tensor(TensorDesc),
    /// A few values for the host: detections, classes, key-values. A handler on the device writes them there, and a
    /// download brings them to the host; every consumer reads them on the host.
    Data {
        /// The room for the values of one frame.
        bytes: u32,
        /// Data values per second; `None` if unknown.
        rate: Option<Rate>,
    },
    /// Sound. Ports can declare it and are compared, but nothing carries samples.
    Audio {
        /// Blocks per second; `None` if unknown.
        rate: Option<Rate>,
    },
}

impl Content {
    /// Bytes of one frame, tensor or block of data, including padding; 0 for audio.
    pub fn bytes(&self) -> u64 {
        match self {
            Content::Video(frame) => frame.format.frame_bytes(frame.size),
            Content::Tensor(tensor) => tensor
                .dims
                .iter()
                .fold(tensor.dtype.bytes() as u64, |bytes, d| bytes.saturating_mul(u64::from(*d)))
                .checked_next_multiple_of(4)
                .unwrap_or(u64::MAX),
            Content::Data { bytes, .. } => u64::from(*bytes).next_multiple_of(4),
            Content::Audio { .. } => 0,
        }
    }

    /// True for values that every consumer reads on the host.
    pub fn is_data(&self) -> bool {
        matches!(self, Content::Data { .. })
    }

    /// Frames, tensors or data values per second; `None` if unknown.
    pub fn rate(&self) -> Option<Rate> {
        match self {
            Content::Video(frame) => frame.rate,
            Content::Tensor(tensor) => tensor.rate,
            Content::Data { rate, .. } | Content::Audio { rate } => *rate,
        }
    }

    /// The frame if this is video.
    pub fn frame(&self) -> Option<&FrameDesc> {
        match self {
            Content::Video(frame) => Some(frame),
            _ => None,
        }
    }

    /// The pixels of one frame or the elements of one tensor; 0 for data and audio.
    pub fn elements(&self) -> u64 {
        match self {
            Content::Video(frame) => frame.size.pixels(),
            Content::Tensor(tensor) => tensor.dims.iter().fold(1, |n, d| n.saturating_mul(u64::from(*d))),
            Content::Data { .. } | Content::Audio { .. } => 0,
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Video(frame) => write!(f, "{} {}", frame.format, frame.size),
            Content::Tensor(tensor) => write!(f, "{} {:?}", tensor.dtype, tensor.dims),
            Content::Data { .. } => f.write_str("data"),
            Content::Audio { .. } => f.write_str("audio"),
        }
    }
}
