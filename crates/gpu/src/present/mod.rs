//! Presenting: draws pictures that are in buffers of a device onto a texture or a window, without a copy to the host.
//!
//! A [`Presenter`] draws onto any texture of the device; a [`WindowSurface`] is the surface of a window. Only
//! presenting can turn a picture upside down ([`Blit::flip`]): stored pictures always begin with their top row.
//!
//! Invariants: a picture that is drawn at its own size reaches an 8-bit target unchanged, to the bit. Drawing submits on
//! its own and counts as a present, not as a submit of a recording. The memory of a picture is not lent again before the
//! device has drawn the picture.

mod blit;
mod surface;

pub(crate) use surface::display;
pub use surface::{Shown, SurfaceError, WindowSurface, use_display};

use std::sync::Arc;

use vramp_plan::{DType, Size};

use crate::buffer::Buffer;
use crate::calls::{Kernels, Refusal};
use crate::device::Device;
use crate::health::Lost;

pub(crate) use blit::Blits;
use blit::{BlitKind, PARAMS_BYTES};

/// A texture of the device that a picture is drawn onto: your own, or the current texture of a surface.
pub type RenderTarget = wgpu::Texture;

/// A picture in a buffer: rows of pixels without gaps, the top row first.
#[derive(Debug, Clone, Copy)]
pub struct Pixels<'a> {
    pub buffer: &'a Buffer,
    pub size: Size,
    /// 1 (grey), 3 (RGB) or 4 (RGBA).
    pub channels: u32,
    /// `U8` for values from 0 to 255, `F16` or `F32` for values from 0 to 1.
    pub dtype: DType,
    /// The element of the buffer at which the picture begins.
    pub first: u32,
}

impl<'a> Pixels<'a> {
    /// A frame of the format rgba8.
    pub fn rgba8(buffer: &'a Buffer, size: Size) -> Pixels<'a> {
        Pixels { buffer, size, channels: 4, dtype: DType::U8, first: 0 }
    }

    /// Elements of the buffer up to the end of the picture.
    fn elements(&self) -> u64 {
        u64::from(self.first) + u64::from(self.size.width) * u64::from(self.size.height) * u64::from(self.channels)
    }
}

/// A part of a target, in pixels from its top left corner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    pub x: u32,
    pub y: u32,
    pub size: Size,
}

/// How a picture is drawn. The default fills the whole target. A picture of another size is scaled with linear
/// interpolation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Blit {
    /// The part of the target that the picture fills. Defaults to the whole target.
    pub into: Option<Region>,
    /// Draws the picture upside down: the source 0, 0, W, H becomes 0, H, W, 0 of the target, as graphics libraries
    /// expect it whose first row is at the bottom.
    pub flip: bool,
    /// Draws the picture over the target with the picture's alpha, instead of replacing the target.
    pub over: bool,
}

impl Blit {
    /// Fills the target and turns the picture upside down.
    pub const FLIPPED: Blit = Blit { into: None, flip: true, over: false };
}

/// A picture and how it is drawn.
#[derive(Debug, Clone, Copy)]
pub struct Layer<'a> {
    pub picture: Pixels<'a>,
    pub how: Blit,
}

/// What a target shows outside of the layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// What the target showed before.
    Kept,
    Black,
}

/// Why a picture was not drawn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PresentError {
    #[error("a picture of {has} cannot be shown; expected 1, 3 or 4 channels of u8, f16 or f32")]
    Kind { has: String },
    #[error("a picture of {size} with {channels} channels takes {needs_bytes} bytes, but its memory has {has_bytes}")]
    TooSmall { size: Size, channels: u32, needs_bytes: u64, has_bytes: u64 },
    #[error("the region {width}x{height} at {x},{y} is not inside the target of {target}")]
    Outside { x: u32, y: u32, width: u32, height: u32, target: Size },
    #[error("the target {has}; create it with RENDER_ATTACHMENT, one sample and a colour format that can be drawn to")]
    Target { has: String },
    #[error("the picture is in the memory of another device; show it with a presenter of that device")]
    OtherDevice,
    #[error("the device is out of memory; close other programs that use the device")]
    OutOfMemory,
    #[error("the driver refused: {problem}")]
    Refused { problem: String },
    #[error(transparent)]
    Lost(#[from] Lost),
}

impl From<Refusal> for PresentError {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::OutOfMemory => Self::OutOfMemory,
            Refusal::Refused(problem) => Self::Refused { problem },
        }
    }
}

/// Compiles what windows need for frames of the format rgba8, before the first frame.
pub fn prepare_windows(device: &Device) -> Result<(), PresentError> {
    let blits = device.blits()?;
    for target in [wgpu::TextureFormat::Bgra8Unorm, wgpu::TextureFormat::Rgba8Unorm] {
        // A frame of the window's size, a scaled frame, and the overlay.
        for (over, scaled) in [(false, false), (false, true), (true, false)] {
            blits.prepare(device.calls(), BlitKind { dtype: DType::U8, channels: 4, target, over, scaled })?;
        }
    }
    Ok(())
}

/// At most this many bind groups are kept; a pipeline rotates among fewer buffers.
const MOST_GROUPS: usize = 32;

/// Draws pictures onto textures of one device. Pipelines and bind groups are kept for the next picture.
///
/// ```no_run
/// # use vramp_gpu::{Blit, Device, Pixels, Presenter, wgpu};
/// # fn show(device: &Device, buffer: &vramp_gpu::Buffer, texture: &wgpu::Texture) -> Result<(), Box<dyn std::error::Error>> {
/// let mut presenter = Presenter::on(device)?;
/// let picture = Pixels::rgba8(buffer, vramp_plan::Size { width: 320, height: 240 });
/// presenter.present(&picture, texture, Blit::FLIPPED)?;
/// # Ok(())
/// # }
/// ```
pub struct Presenter {
    device: Device,
    blits: Arc<Blits>,
    /// The parameters of all layers. Replaced when they change, which is seldom: at a resize.
    params: Option<(Vec<u8>, wgpu::Buffer)>,
    /// By the number of the picture's buffer and the elements that are visible. Empty after a change of parameters.
    groups: Vec<((u64, u64), wgpu::BindGroup)>,
}

impl std::fmt::Debug for Presenter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Presenter").field("device", &self.device).finish_non_exhaustive()
    }
}

impl Presenter {
    pub fn on(device: &Device) -> Result<Presenter, PresentError> {
        device.check()?;
        let blits = device.blits()?;
        Ok(Presenter { device: device.clone(), blits, params: None, groups: Vec::new() })
    }

    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Draws a picture and submits the drawing. The target must be a texture of this device, or the current texture of
    /// a surface. Outside of `how.into`, the target is kept.
    pub fn present(&mut self, picture: &Pixels<'_>, target: &RenderTarget, how: Blit) -> Result<(), PresentError> {
        self.draw(&[Layer { picture: *picture, how }], Background::Kept, target)
    }

    /// Draws several pictures, the first one at the bottom, in one submit.
    pub fn draw(
        &mut self,
        layers: &[Layer<'_>],
        background: Background,
        target: &RenderTarget,
    ) -> Result<(), PresentError> {
        self.device.check()?;
        check_target(target)?;
        let target_size = Size { width: target.width(), height: target.height() };
        let alignment = PARAMS_BYTES.next_multiple_of(u64::from(self.device.limits().params_alignment).max(1));
        let mut params = vec![0; layers.len().max(1) * alignment as usize];
        let mut steps = Vec::with_capacity(layers.len());
        for (layer, block) in layers.iter().zip(params.chunks_mut(alignment as usize)) {
            let region = self.check_layer(layer, target_size)?;
            write_params(block, layer, region);
            let Pixels { dtype, channels, size, .. } = layer.picture;
            let (target, over, scaled) = (target.format(), layer.how.over, size != region.size);
            let kind = BlitKind { dtype, channels, target, over, scaled };
            steps.push((region, self.blits.prepare(self.device.calls(), kind)?));
        }
        self.keep_params(params)?;
        let groups: Vec<wgpu::BindGroup> =
            layers.iter().map(|layer| self.group(&layer.picture)).collect::<Result<_, _>>()?;
        let calls = self.device.calls();
        let number = calls.scoped(|| {
            let view = target.create_view(&wgpu::TextureViewDescriptor::default());
            let mut encoder = calls.encoder();
            let load = match background {
                Background::Kept => wgpu::LoadOp::Load,
                Background::Black => wgpu::LoadOp::Clear(wgpu::Color::BLACK),
            };
            let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
                label: Some("vramp present"),
                color_attachments: &[Some(wgpu::RenderPassColorAttachment {
                    view: &view,
                    depth_slice: None,
                    resolve_target: None,
                    ops: wgpu::Operations { load, store: wgpu::StoreOp::Store },
                })],
                ..wgpu::RenderPassDescriptor::default()
            });
            for (at, ((region, pipeline), group)) in steps.iter().zip(&groups).enumerate() {
                let (x, y, Size { width, height }) = (region.x, region.y, region.size);
                pass.set_viewport(x as f32, y as f32, width as f32, height as f32, 0.0, 1.0);
                pass.set_scissor_rect(x, y, width, height);
                pass.set_pipeline(pipeline);
                pass.set_bind_group(0, group, &[(at as u64 * alignment) as u32]);
                pass.draw(0..3, 0..1);
            }
            drop(pass);
            calls.submit_present(encoder, Kernels([Some("the presented picture".into()), None, None, None]))
        })?;
        for layer in layers {
            layer.picture.buffer.retire(number);
        }
        Ok(())
    }

    /// Checks a layer, and returns the region that it fills.
    fn check_layer(&self, layer: &Layer<'_>, target: Size) -> Result<Region, PresentError> {
        let Pixels { buffer, size, channels, dtype, .. } = layer.picture;
        let is_shown = matches!(dtype, DType::U8 | DType::F16 | DType::F32) && matches!(channels, 1 | 3 | 4);
        if !is_shown {
            return Err(PresentError::Kind { has: format!("{channels} channels of {dtype}") });
        }
        if !self.device.owns(buffer) {
            return Err(PresentError::OtherDevice);
        }
        let (needs_bytes, has_bytes) = (layer.picture.elements() * dtype.bytes() as u64, buffer.bytes());
        if needs_bytes > has_bytes || size.width == 0 || size.height == 0 {
            return Err(PresentError::TooSmall { size, channels, needs_bytes, has_bytes });
        }
        let region = layer.how.into.unwrap_or(Region { x: 0, y: 0, size: target });
        let Region { x, y, size: Size { width, height } } = region;
        let is_inside = |start: u32, length: u32, whole: u32| {
            length > 0 && start.checked_add(length).is_some_and(|end| end <= whole)
        };
        if !is_inside(x, width, target.width) || !is_inside(y, height, target.height) {
            return Err(PresentError::Outside { x, y, width, height, target });
        }
        Ok(region)
    }

    /// Makes these the current parameters.
    fn keep_params(&mut self, params: Vec<u8>) -> Result<(), PresentError> {
        if self.params.as_ref().is_some_and(|(known, _)| *known == params) {
            return Ok(());
        }
        let calls = self.device.calls();
        let buffer = calls.create_buffer("vramp present", params.len() as u64, wgpu::BufferUsages::UNIFORM, true)?;
        let mapped = buffer.get_mapped_range_mut(..);
        let mut mapped = mapped.map_err(|problem| PresentError::Refused { problem: problem.to_string() })?;
        mapped.slice(..).copy_from_slice(&params);
        drop(mapped);
        buffer.unmap();
        self.groups.clear();
        self.params = Some((params, buffer));
        Ok(())
    }

    fn group(&mut self, picture: &Pixels<'_>) -> Result<wgpu::BindGroup, PresentError> {
        let bytes = (picture.elements() * picture.dtype.bytes() as u64).next_multiple_of(4);
        let key = (picture.buffer.tag().id, bytes);
        if let Some((_, group)) = self.groups.iter().find(|(known, _)| *known == key) {
            return Ok(group.clone());
        }
        if self.groups.len() >= MOST_GROUPS {
            self.groups.remove(0);
        }
        let (_, params) = self.params.as_ref().expect("`draw` has set the parameters");
        let part = |buffer, bytes| {
            wgpu::BindingResource::Buffer(wgpu::BufferBinding {
                buffer,
                offset: 0,
                size: std::num::NonZero::new(bytes),
            })
        };
        let entries = [
            wgpu::BindGroupEntry { binding: 0, resource: part(picture.buffer.raw(), bytes) },
            wgpu::BindGroupEntry { binding: 1, resource: part(params, PARAMS_BYTES) },
        ];
        let calls = self.device.calls();
        let group = calls.create_bind_group(self.blits.layout(), &entries)?;
        self.groups.push((key, group.clone()));
        Ok(group)
    }
}

fn check_target(target: &RenderTarget) -> Result<(), PresentError> {
    let format = target.format();
    let has = if !target.usage().contains(wgpu::TextureUsages::RENDER_ATTACHMENT) {
        "cannot be drawn to".to_owned()
    } else if target.sample_count() != 1 {
        format!("has {} samples", target.sample_count())
    } else if target.dimension() != wgpu::TextureDimension::D2 {
        "is not two-dimensional".to_owned()
    } else if format.is_depth_stencil_format()
        || !matches!(format.sample_type(None, None), Some(wgpu::TextureSampleType::Float { .. }))
    {
        format!("has the format {format:?}")
    } else {
        return Ok(());
    };
    Err(PresentError::Target { has })
}

/// Writes the parameters of a layer in the layout of the shader.
fn write_params(block: &mut [u8], layer: &Layer<'_>, region: Region) {
    let Pixels { size, first, .. } = layer.picture;
    let (top, down) = if layer.how.flip { (size.height - 1, -1_i32) } else { (0, 1) };
    let step = |picture: u32, target: u32| (picture as f32 / target as f32).to_bits();
    let words = [
        size.width,
        size.height,
        first,
        top,
        (region.x as f32).to_bits(),
        (region.y as f32).to_bits(),
        step(size.width, region.size.width),
        step(size.height, region.size.height),
        down.cast_unsigned(),
    ];
    for (place, word) in block.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
}
