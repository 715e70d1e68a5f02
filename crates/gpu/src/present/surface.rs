//! The surface of a window: what a presenter draws onto, and how the drawing reaches the screen.

use std::sync::{Mutex, PoisonError};

use vramp_plan::Size;

use crate::device::Device;
use crate::health::Lost;

use super::{Background, Layer, PresentError, Presenter};

/// Why a window cannot show pictures of a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SurfaceError {
    #[error("the driver cannot draw into this window: {problem}")]
    NotMade { problem: String },
    #[error("{adapter} cannot draw into this window; choose another adapter (`vramp devices`)")]
    Unsupported { adapter: String },
    #[error(transparent)]
    Present(#[from] PresentError),
}

impl From<Lost> for SurfaceError {
    fn from(lost: Lost) -> Self {
        Self::Present(lost.into())
    }
}

/// How long the end of the last drawing is waited for before a surface is freed.
#[cfg(not(target_arch = "wasm32"))]
const SETTLE: std::time::Duration = std::time::Duration::from_secs(2);

/// What became of a drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Yes,
    /// The window is hidden or has no area, or the system had no image to draw onto in time.
    NotVisible,
}

/// The display that windows are on, as wgpu takes it.
pub(crate) type Display = Box<dyn Fn() -> Box<dyn wgpu::wgt::WgpuHasDisplayHandle> + Send>;

static DISPLAY: Mutex<Option<Display>> = Mutex::new(None);

/// Names the display on which windows will be opened. OpenGL needs it before a device is opened; other backends do not
/// need it.
pub fn use_display<D: wgpu::wgt::WgpuHasDisplayHandle + Clone>(display: D) {
    let mut known = DISPLAY.lock().unwrap_or_else(PoisonError::into_inner);
    *known = Some(Box::new(move || Box::new(display.clone())));
}

/// The display that [`use_display`] has named.
pub(crate) fn display() -> Option<Box<dyn wgpu::wgt::WgpuHasDisplayHandle>> {
    DISPLAY.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|display| display())
}

/// A window's surface on one device.
pub struct WindowSurface {
    surface: wgpu::Surface<'static>,
    presenter: Presenter,
    config: wgpu::SurfaceConfiguration,
    /// Whether the surface must be configured before the next drawing.
    is_outdated: bool,
}

impl std::fmt::Debug for WindowSurface {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WindowSurface").field("presenter", &self.presenter).finish_non_exhaustive()
    }
}

impl Drop for WindowSurface {
    fn drop(&mut self) {
        // wgpu panics if it frees a surface while a drawing onto the surface has not ended.
        #[cfg(not(target_arch = "wasm32"))]
        self.presenter.device().calls().settle(SETTLE);
    }
}

impl WindowSurface {
    /// The surface of a window on this device. A window has at most one surface: drop the old surface before another
    /// one is made for the same window.
    pub fn new(device: &Device, window: impl wgpu::WindowHandle + 'static, size: Size) -> Result<Self, SurfaceError> {
        device.check()?;
        let (instance, adapter) = device.origin();
        let surface = instance
            .create_surface(wgpu::SurfaceTarget::Window(Box::new(window)))
            .map_err(|problem| SurfaceError::NotMade { problem: problem.to_string() })?;
        let unsupported = || SurfaceError::Unsupported { adapter: device.adapter().to_string() };
        let can = surface.get_capabilities(adapter);
        let config = surface.get_default_config(adapter, 1, 1).ok_or_else(unsupported)?;
        // Pixels are stored as screens show them. A format that encodes light would need a conversion and back.
        let format = can.formats.iter().copied().find(|format| !format.is_srgb() && is_bytes(*format));
        let format = format.or_else(|| can.formats.first().copied()).ok_or_else(unsupported)?;
        // The newest picture is shown at the next refresh, and a late picture never waits for the picture before it.
        let newest_first = [wgpu::PresentMode::Mailbox, wgpu::PresentMode::Fifo];
        let present_mode = newest_first.into_iter().find(|mode| can.present_modes.contains(mode));
        let opaque = wgpu::CompositeAlphaMode::Opaque;
        let config = wgpu::SurfaceConfiguration {
            format,
            present_mode: present_mode.unwrap_or(config.present_mode),
            alpha_mode: if can.alpha_modes.contains(&opaque) { opaque } else { config.alpha_mode },
            ..config
        };
        let mut made = Self { surface, presenter: Presenter::on(device)?, config, is_outdated: true };
        made.resize(size);
        Ok(made)
    }

    pub fn device(&self) -> &Device {
        self.presenter.device()
    }

    /// Follows the size of the window.
    pub fn resize(&mut self, size: Size) {
        let most = self.device().limits().texture_side;
        let size = Size { width: size.width.min(most), height: size.height.min(most) };
        if size != self.size() {
            (self.config.width, self.config.height, self.is_outdated) = (size.width, size.height, true);
        }
    }

    /// The size in pixels. 0 while the window is minimised.
    pub fn size(&self) -> Size {
        Size { width: self.config.width, height: self.config.height }
    }

    /// Draws the layers and shows the result at the next refresh of the screen. `before_showing` is called when the
    /// drawing is submitted, because some window systems want to be told.
    pub fn show(&mut self, layers: &[Layer<'_>], before_showing: impl FnOnce()) -> Result<Shown, SurfaceError> {
        let Size { width, height } = self.size();
        if width == 0 || height == 0 {
            return Ok(Shown::NotVisible);
        }
        for _ in 0..2 {
            if self.is_outdated {
                self.configure()?;
            }
            let (texture, is_suboptimal) = match self.surface.get_current_texture() {
                wgpu::CurrentSurfaceTexture::Success(texture) => (texture, false),
                wgpu::CurrentSurfaceTexture::Suboptimal(texture) => (texture, true),
                wgpu::CurrentSurfaceTexture::Timeout | wgpu::CurrentSurfaceTexture::Occluded => {
                    return Ok(Shown::NotVisible);
                }
                wgpu::CurrentSurfaceTexture::Outdated | wgpu::CurrentSurfaceTexture::Lost => {
                    self.is_outdated = true;
                    continue;
                }
                wgpu::CurrentSurfaceTexture::Validation => {
                    self.device().check()?;
                    return Err(SurfaceError::NotMade { problem: "the surface is not valid".to_owned() });
                }
            };
            self.presenter.draw(layers, Background::Black, &texture.texture)?;
            before_showing();
            let calls = self.presenter.device().calls();
            calls.between_submits(|| calls.queue().present(texture));
            self.is_outdated = is_suboptimal;
            return Ok(Shown::Yes);
        }
        Ok(Shown::NotVisible)
    }

    fn configure(&mut self) -> Result<(), SurfaceError> {
        self.device().check()?;
        let calls = self.presenter.device().calls();
        // Configuring waits for the device, which fails if another thread submits meanwhile.
        let configured =
            calls.between_submits(|| calls.scoped(|| self.surface.configure(calls.device(), &self.config)));
        configured.map_err(PresentError::from)?;
        self.is_outdated = false;
        Ok(())
    }
}

fn is_bytes(format: wgpu::TextureFormat) -> bool {
    matches!(format, wgpu::TextureFormat::Rgba8Unorm | wgpu::TextureFormat::Bgra8Unorm)
}
