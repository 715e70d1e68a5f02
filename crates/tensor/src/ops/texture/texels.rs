//! The value type of each texel format, and the choice of channels.
//!
//! Invariant: a choice has one to four channels, each at most once.

use vramp_gpu::TexelFormat;

use crate::ops::dtype::DType;
use crate::ops::error::TensorError;

/// Channels of a texture, in the order in which they become values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Channels(pub(super) String);

impl Channels {
    /// Parses letters of `rgba`, each at most once, such as `rgb`, `bgr` or `a`.
    pub fn read(letters: &str) -> Result<Channels, TensorError> {
        let letters = letters.to_ascii_lowercase();
        let is_known = |(at, letter): (usize, char)| "rgba".contains(letter) && !letters[..at].contains(letter);
        if letters.is_empty() || !letters.char_indices().all(is_known) {
            let problem = format!("channels `{letters}`; expected letters of `rgba`, each at most once, as in `bgr`");
            return Err(TensorError::Setting { op: super::OP, problem });
        }
        Ok(Channels(letters))
    }

    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// The default texel format for values of a type. Shaders see u8 values as floats from 0 to 1.
pub fn texels_of(dtype: DType) -> TexelFormat {
    match dtype {
        DType::F32 => TexelFormat::Rgba32Float,
        DType::F16 => TexelFormat::Rgba16Float,
        DType::I32 => TexelFormat::Rgba32Sint,
        DType::U32 => TexelFormat::Rgba32Uint,
        DType::U8 => TexelFormat::Rgba8Unorm,
        DType::I8 => TexelFormat::Rgba8Sint,
    }
}

/// The value type of a texel format.
pub fn values_of(format: TexelFormat) -> DType {
    match format {
        TexelFormat::Rgba32Float | TexelFormat::R32Float => DType::F32,
        TexelFormat::Rgba16Float => DType::F16,
        TexelFormat::Rgba32Sint => DType::I32,
        TexelFormat::Rgba32Uint => DType::U32,
        TexelFormat::Rgba8Unorm | TexelFormat::Rgba8Uint | TexelFormat::Bgra8Unorm | TexelFormat::R8Unorm => DType::U8,
        TexelFormat::Rgba8Sint => DType::I8,
    }
}
