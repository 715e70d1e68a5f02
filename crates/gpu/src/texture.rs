//! Textures: memory in rows of texels, as users' own draws and kernels take it.
//!
//! Owns the making and the end of textures, the formats that tensors have a form for, and the copies between buffers and
//! textures. Textures that somebody else made are taken in and left alone.
//! Does not lay values out in texels: whoever fills a texture does.
//!
//! Always: a texture made here frees its memory with its last handle, and is counted until then; sizes are given as
//! width, then height.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::Buffer;
use crate::calls::{Calls, Refusal};
use crate::health::Lost;

/// Rows of texels in a buffer lie multiples of this apart, where several are one copy.
const PITCH_BYTES: u64 = wgpu::COPY_BYTES_PER_ROW_ALIGNMENT as u64;

/// What one texel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TexelFormat {
    /// Four f32.
    Rgba32Float,
    /// Four f16.
    Rgba16Float,
    /// Four i32, exact also above 2^24.
    Rgba32Sint,
    /// Four u32.
    Rgba32Uint,
    /// Four bytes that shaders see as 0 to 1.
    Rgba8Unorm,
    /// Four bytes that shaders see as 0 to 255.
    Rgba8Uint,
    /// Four bytes that shaders see as -128 to 127.
    Rgba8Sint,
    /// Four bytes from blue on, as screens have them.
    Bgra8Unorm,
    /// One byte.
    R8Unorm,
    /// One f32.
    R32Float,
}

impl TexelFormat {
    /// Every format.
    pub const ALL: [Self; 10] = [
        Self::Rgba32Float,
        Self::Rgba16Float,
        Self::Rgba32Sint,
        Self::Rgba32Uint,
        Self::Rgba8Unorm,
        Self::Rgba8Uint,
        Self::Rgba8Sint,
        Self::Bgra8Unorm,
        Self::R8Unorm,
        Self::R32Float,
    ];

    /// Bytes of one texel.
    pub const fn bytes(self) -> u32 {
        match self {
            Self::Rgba32Float | Self::Rgba32Sint | Self::Rgba32Uint => 16,
            Self::Rgba16Float => 8,
            Self::Rgba8Unorm | Self::Rgba8Uint | Self::Rgba8Sint | Self::Bgra8Unorm | Self::R32Float => 4,
            Self::R8Unorm => 1,
        }
    }

    /// Its channels, in memory order.
    pub const fn channels(self) -> &'static str {
        match self {
            Self::Bgra8Unorm => "bgra",
            Self::R8Unorm | Self::R32Float => "r",
            _ => "rgba",
        }
    }

    const fn raw(self) -> wgpu::TextureFormat {
        match self {
            Self::Rgba32Float => wgpu::TextureFormat::Rgba32Float,
            Self::Rgba16Float => wgpu::TextureFormat::Rgba16Float,
            Self::Rgba32Sint => wgpu::TextureFormat::Rgba32Sint,
            Self::Rgba32Uint => wgpu::TextureFormat::Rgba32Uint,
            Self::Rgba8Unorm => wgpu::TextureFormat::Rgba8Unorm,
            Self::Rgba8Uint => wgpu::TextureFormat::Rgba8Uint,
            Self::Rgba8Sint => wgpu::TextureFormat::Rgba8Sint,
            Self::Bgra8Unorm => wgpu::TextureFormat::Bgra8Unorm,
            Self::R8Unorm => wgpu::TextureFormat::R8Unorm,
            Self::R32Float => wgpu::TextureFormat::R32Float,
        }
    }
}

impl fmt::Display for TexelFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", format!("{self:?}").to_lowercase())
    }
}

/// Why there is no such texture.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextureError {
    /// A side is too long, or has no length.
    #[error("a texture of {width} x {height} texels; this device has them from 1 x 1 to {most} x {most}")]
    Size {
        /// Texels along x.
        width: u32,
        /// Texels along y.
        height: u32,
        /// What is allowed along each.
        most: u32,
    },
    /// Somebody's texture is of a kind that is not taken.
    #[error("a texture that is {has} was given; expected {wants}")]
    Kind {
        /// What it is.
        has: String,
        /// What it would have to be.
        wants: String,
    },
    /// The device has no memory left.
    #[error("the device is out of memory for a texture of {bytes} bytes; drop others, or lower the budget")]
    OutOfMemory {
        /// What it would take.
        bytes: u64,
    },
    /// The driver refused.
    #[error("the driver refused a texture: {problem}")]
    Refused {
        /// What it says.
        problem: String,
    },
    /// The device is gone.
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// The textures made on a device that somebody holds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TexturesHeld {
    /// How many.
    pub count: u64,
    /// Bytes of their texels.
    pub bytes: u64,
}

/// Counts what is held.
#[derive(Debug, Default)]
pub(crate) struct TextureTally {
    count: AtomicU64,
    bytes: AtomicU64,
}

impl TextureTally {
    pub(crate) fn held(&self) -> TexturesHeld {
        TexturesHeld { count: self.count.load(Ordering::Relaxed), bytes: self.bytes.load(Ordering::Relaxed) }
    }
}

/// A texture on a device. Clones are the same texture.
#[derive(Debug, Clone)]
pub struct Texture {
    inner: Arc<TextureInner>,
}

#[derive(Debug)]
struct TextureInner {
    device: u64,
    raw: wgpu::Texture,
    format: TexelFormat,
    /// Where it is counted; none where it is somebody else's.
    counted: Option<Arc<TextureTally>>,
}

impl Texture {
    pub(crate) fn make(
        calls: &Calls,
        device: u64,
        most: u32,
        format: TexelFormat,
        [width, height]: [u32; 2],
    ) -> Result<Self, TextureError> {
        if !(1..=most).contains(&width) || !(1..=most).contains(&height) {
            return Err(TextureError::Size { width, height, most });
        }
        calls.health.check()?;
        let wanted = wgpu::TextureUsages::COPY_SRC
            | wgpu::TextureUsages::COPY_DST
            | wgpu::TextureUsages::TEXTURE_BINDING
            | wgpu::TextureUsages::STORAGE_BINDING
            | wgpu::TextureUsages::RENDER_ATTACHMENT;
        // Not every format can be stored to or drawn on; what it can, it may be used for.
        let allowed = format.raw().guaranteed_format_features(calls.device().features()).allowed_usages;
        let bytes = u64::from(width) * u64::from(height) * u64::from(format.bytes());
        let made = calls.create_texture(&wgpu::TextureDescriptor {
            label: Some("vramp texture"),
            size: wgpu::Extent3d { width, height, depth_or_array_layers: 1 },
            mip_level_count: 1,
            sample_count: 1,
            dimension: wgpu::TextureDimension::D2,
            format: format.raw(),
            usage: wanted & allowed,
            view_formats: &[],
        });
        calls.health.check()?;
        let raw = made.map_err(|refusal| match refusal {
            Refusal::OutOfMemory => TextureError::OutOfMemory { bytes },
            Refusal::Refused(problem) => TextureError::Refused { problem },
        })?;
        let counted = Arc::clone(&calls.textures);
        counted.count.fetch_add(1, Ordering::Relaxed);
        counted.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(Self { inner: Arc::new(TextureInner { device, raw, format, counted: Some(counted) }) })
    }

    pub(crate) fn adopt(device: u64, raw: &wgpu::Texture) -> Result<Self, TextureError> {
        let kind = |has: String, wants: String| TextureError::Kind { has, wants };
        let Some(format) = TexelFormat::ALL.into_iter().find(|format| format.raw() == raw.format()) else {
            let names: Vec<String> = TexelFormat::ALL.iter().map(ToString::to_string).collect();
            return Err(kind(format!("{:?}", raw.format()).to_lowercase(), format!("one of {}", names.join(", "))));
        };
        let (layers, samples) = (raw.depth_or_array_layers(), raw.sample_count());
        if raw.dimension() != wgpu::TextureDimension::D2 || layers != 1 || samples != 1 {
            let has = format!("{:?} with {layers} layers and {samples} samples", raw.dimension());
            return Err(kind(has, "a D2 with one of each".to_owned()));
        }
        if !raw.usage().contains(wgpu::TextureUsages::COPY_SRC) {
            return Err(kind(format!("for {:?}", raw.usage()), "one that also has COPY_SRC".to_owned()));
        }
        Ok(Self { inner: Arc::new(TextureInner { device, raw: raw.clone(), format, counted: None }) })
    }

    /// What one texel is.
    pub fn format(&self) -> TexelFormat {
        self.inner.format
    }

    /// Texels along x.
    pub fn width(&self) -> u32 {
        self.inner.raw.width()
    }

    /// Texels along y.
    pub fn height(&self) -> u32 {
        self.inner.raw.height()
    }

    /// Bytes of one row.
    pub fn row_bytes(&self) -> u64 {
        u64::from(self.width()) * u64::from(self.format().bytes())
    }

    /// How far apart its rows lie in a buffer at least, so that all of them are one copy.
    pub fn pitch_bytes(&self) -> u32 {
        u32::try_from(self.row_bytes().next_multiple_of(PITCH_BYTES)).unwrap_or(u32::MAX)
    }

    /// wgpu's own texture, for a user's own GPU code, which must be submitted before the last handle is dropped.
    pub fn raw(&self) -> &wgpu::Texture {
        &self.inner.raw
    }

    pub(crate) fn is_of(&self, device: u64) -> bool {
        self.inner.device == device
    }

    pub(crate) fn encode_filling(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        rows: &Range<u32>,
        from: &Buffer,
        at: u64,
        pitch_bytes: u32,
    ) {
        self.runs(rows, from, at, pitch_bytes, |buffer, texture, size| {
            encoder.copy_buffer_to_texture(buffer, texture, size);
        });
    }

    pub(crate) fn encode_reading(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        rows: &Range<u32>,
        to: &Buffer,
        at: u64,
        pitch_bytes: u32,
    ) {
        self.runs(rows, to, at, pitch_bytes, |buffer, texture, size| {
            encoder.copy_texture_to_buffer(texture, buffer, size);
        });
    }

    /// Goes through rows in runs that are one copy each: all of them, where they lie as devices want it, or one by one.
    fn runs(
        &self,
        rows: &Range<u32>,
        buffer: &Buffer,
        at: u64,
        pitch_bytes: u32,
        mut copy: impl FnMut(wgpu::TexelCopyBufferInfo<'_>, wgpu::TexelCopyTextureInfo<'_>, wgpu::Extent3d),
    ) {
        let together = u64::from(pitch_bytes).is_multiple_of(PITCH_BYTES);
        let height = if together { rows.len() as u32 } else { 1 };
        // A single row is apart from nothing.
        let bytes_per_row = (height > 1).then_some(pitch_bytes);
        for y in rows.clone().step_by(height as usize) {
            let offset = at + u64::from(y - rows.start) * u64::from(pitch_bytes);
            let layout = wgpu::TexelCopyBufferLayout { offset, bytes_per_row, rows_per_image: None };
            let origin = wgpu::Origin3d { x: 0, y, z: 0 };
            copy(
                wgpu::TexelCopyBufferInfo { buffer: buffer.raw(), layout },
                wgpu::TexelCopyTextureInfo { origin, ..self.raw().as_image_copy() },
                wgpu::Extent3d { width: self.width(), height, depth_or_array_layers: 1 },
            );
        }
    }
}

impl fmt::Display for Texture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a texture of {} x {} {}", self.width(), self.height(), self.format())
    }
}

impl Drop for TextureInner {
    fn drop(&mut self) {
        let Some(counted) = &self.counted else { return };
        let texels = u64::from(self.raw.width()) * u64::from(self.raw.height());
        counted.count.fetch_sub(1, Ordering::Relaxed);
        counted.bytes.fetch_sub(texels * u64::from(self.format.bytes()), Ordering::Relaxed);
        self.raw.destroy();
    }
}
