//! What travels over a link once everything is decided: a frame, a tensor or plain data.
//!
//! Owns the descriptions and their sizes in bytes.
//! Does not say what a port could carry instead: that is a capability set.
//!
//! Always: a description is complete; nothing in it is left open but an unknown rate.

use std::fmt;

use super::{Format, Rate, Size};

/// A video frame, described.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameDesc {
    /// How its pixels are stored.
    pub format: Format,
    /// Its width and height.
    pub size: Size,
    /// How many a second; none where the source cannot say.
    pub rate: Option<Rate>,
}

/// The element type of a tensor.
///
/// Elements lie in memory without gaps. On the device the last word of a tensor is padded with zeros.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DType {
    /// 32-bit float.
    F32,
    /// 16-bit float, two to a device word. Computed as f32 and rounded to nearest even after every op.
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
    /// Every element type, best first.
    pub const ALL: [DType; 6] = [DType::F32, DType::F16, DType::I32, DType::U32, DType::U8, DType::I8];

    /// The word used in text: the name of the Rust type.
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

    /// Elements in one device word, which has 4 bytes.
    pub const fn per_word(self) -> usize {
        4 / self.bytes()
    }

    /// Whether elements have fractions.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F16)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A tensor, described.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TensorDesc {
    /// Type of its elements.
    pub dtype: DType,
    /// Its extent along each axis, outermost first.
    pub dims: Vec<u32>,
    /// How many a second; none where that is not known.
    pub rate: Option<Rate>,
}

/// What a link carries.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Content {
    /// Pictures.
    Video(FrameDesc),
    /// Named arrays of numbers.
    Tensor(TensorDesc),
    /// Small host-side values: detections, text, events. Never in need of a transfer.
    Data {
        /// How many a second; none where that is not known.
        rate: Option<Rate>,
    },
}

impl Content {
    /// Bytes of one item, padding included; 0 for data.
    pub fn bytes(&self) -> u64 {
        match self {
            Content::Video(frame) => frame.format.frame_bytes(frame.size),
            Content::Tensor(tensor) => tensor
                .dims
                .iter()
                .fold(tensor.dtype.bytes() as u64, |bytes, d| bytes.saturating_mul(u64::from(*d)))
                .checked_next_multiple_of(4)
                .unwrap_or(u64::MAX),
            Content::Data { .. } => 0,
        }
    }

    /// Items per second, where known.
    pub fn rate(&self) -> Option<Rate> {
        match self {
            Content::Video(frame) => frame.rate,
            Content::Tensor(tensor) => tensor.rate,
            Content::Data { rate } => *rate,
        }
    }

    /// The frame, if this is one.
    pub fn frame(&self) -> Option<&FrameDesc> {
        match self {
            Content::Video(frame) => Some(frame),
            _ => None,
        }
    }

    /// How many elements one item has to be gone through: pixels of a frame, elements of a tensor.
    pub fn elements(&self) -> u64 {
        match self {
            Content::Video(frame) => frame.size.pixels(),
            Content::Tensor(tensor) => tensor.dims.iter().fold(1, |n, d| n.saturating_mul(u64::from(*d))),
            Content::Data { .. } => 0,
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Content::Video(frame) => write!(f, "{} {}", frame.format, frame.size),
            Content::Tensor(tensor) => write!(f, "{} {:?}", tensor.dtype, tensor.dims),
            Content::Data { .. } => f.write_str("data"),
        }
    }
}
