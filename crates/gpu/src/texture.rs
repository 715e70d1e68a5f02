//! Textures for users' own draws and kernels, and copies between textures and buffers.
//!
//! Textures are created here or adopted from the user. The layout of values within texels is up to the caller that
//! fills a texture.
//!
//! Invariants: the memory of a texture created here is freed when the last handle is dropped, and the texture is
//! counted until then. An adopted texture is never destroyed here. Sizes are width, then height.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::buffer::Buffer;
use crate::calls::{Calls, Refusal};
use crate::health::Lost;

/// A single copy can copy several rows only if the row pitch in the buffer is a multiple of this many bytes.
const PITCH_BYTES: u64 = wgpu::COPY_BYTES_PER_ROW_ALIGNMENT as u64;

/// The texel formats that tensors can be copied to and from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TexelFormat {
    Rgba32Float,
    Rgba16Float,
    /// Exact above 2^24, unlike `Rgba32Float`.
    Rgba32Sint,
    Rgba32Uint,
    /// Shaders see the bytes as 0 to 1.
    Rgba8Unorm,
    /// Shaders see the bytes as 0 to 255.
    Rgba8Uint,
    /// Shaders see the bytes as -128 to 127.
    Rgba8Sint,
    /// The usual order of displays.
    Bgra8Unorm,
    R8Unorm,
    R32Float,
}

impl TexelFormat {
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

    /// Channels in memory order.
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

/// Why a texture cannot be created or adopted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TextureError {
    #[error("a texture of {width} x {height} texels is not possible; this device allows 1 x 1 to {most} x {most}")]
    Size { width: u32, height: u32, most: u32 },
    /// An adopted texture has the wrong format, dimension or usage.
    #[error("the given texture is {has}; expected {wants}")]
    Kind { has: String, wants: String },
    #[error("the device is out of memory for a texture of {bytes} bytes; drop other textures, or lower the budget")]
    OutOfMemory { bytes: u64 },
    #[error("the driver refused a texture: {problem}")]
    Refused { problem: String },
    #[error(transparent)]
    Lost(#[from] Lost),
}

/// Textures that were created on a device and have not been dropped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TexturesHeld {
    pub count: u64,
    /// Total size of the texels of these textures.
    pub bytes: u64,
}

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
    /// The device's counter of textures; none for adopted textures.
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
        // Not every format can be a storage texture or a render target, so only the usages that the format supports are
        // kept.
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
            return Err(kind(has, "D2 with 1 layer and 1 sample".to_owned()));
        }
        if !raw.usage().contains(wgpu::TextureUsages::COPY_SRC) {
            return Err(kind(format!("for {:?}", raw.usage()), "a texture with COPY_SRC".to_owned()));
        }
        Ok(Self { inner: Arc::new(TextureInner { device, raw: raw.clone(), format, counted: None }) })
    }

    pub fn format(&self) -> TexelFormat {
        self.inner.format
    }

    pub fn width(&self) -> u32 {
        self.inner.raw.width()
    }

    pub fn height(&self) -> u32 {
        self.inner.raw.height()
    }

    pub fn row_bytes(&self) -> u64 {
        u64::from(self.width()) * u64::from(self.format().bytes())
    }

    /// The smallest row pitch in a buffer with which a single copy can copy all rows.
    pub fn pitch_bytes(&self) -> u32 {
        u32::try_from(self.row_bytes().next_multiple_of(PITCH_BYTES)).unwrap_or(u32::MAX)
    }

    /// wgpu's own texture, for a user's own GPU code. Work that uses the texture must be submitted before the last
    /// handle is dropped.
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

    /// Splits rows into copies: one copy of all rows if the pitch is aligned, otherwise one copy per row.
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
        // A single row needs no pitch.
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
