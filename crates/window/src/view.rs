//! One open window: what it shows, on which device, and what its keys do.
//!
//! Invariants: the window holds at most one frame besides the frame in its slot, and none after it was closed. If the
//! device is lost, the window forgets everything on that device and waits for a frame from elsewhere.

use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use vramp_gpu::{Blit, Buffer, Device, Layer, Pixels, Shown, WindowSurface};
use vramp_pipeline::panel::{SettingsPanel, StepDirection};
use vramp_plan::{Format, Size};
use vramp_runtime::Frame;
use winit::window::{Fullscreen, Window};

use crate::error::WindowError;
use crate::keys::KeyAction;
use crate::layout::fitted;
use crate::overlay::SettingsOverlay;
use crate::picture_file;
use crate::screen::WantedWindow;
use crate::slot::Slot;
use crate::transfers::WindowTransfers;

/// A window system may ask for no drawing while a window is hidden. A frame that waits for longer is taken without being
/// shown, so that a hidden window does not hold up the run.
const HIDDEN: Duration = Duration::from_millis(250);

/// The refresh interval of a screen that does not report one: 60 Hz.
const REFRESH: Duration = Duration::from_nanos(16_666_667);

pub(crate) struct View {
    // Before the window, which must outlive it.
    surface: Option<WindowSurface>,
    transfers: Option<WindowTransfers>,
    window: Arc<Window>,
    title: String,
    slot: Arc<Slot>,
    current: Option<Frame>,
    /// The current frame on the device, if the frame is on the host.
    uploaded: Option<Buffer>,
    overlay: SettingsOverlay,
    /// The time of the last drawing of a new frame, and that frame's stream time.
    drawn: Option<(Instant, i64)>,
    /// The shortest time between two refreshes of the screen.
    refresh: Duration,
    /// When the frame that waits is to be drawn.
    due: Option<Instant>,
    /// Whether the window system has not asked for a drawing for a while. Frames are then taken at once.
    is_hidden: bool,
    /// Threads that write pictures. The window waits for them when it closes.
    saving: Vec<JoinHandle<()>>,
}

impl Drop for View {
    fn drop(&mut self) {
        for saving in self.saving.drain(..) {
            // A thread that has panicked has nothing to finish.
            let _ = saving.join();
        }
    }
}

impl View {
    /// The view of a new window. `host_device` presents frames that are on the host.
    pub(crate) fn new(window: Window, wanted: WantedWindow, host_device: &mut HostDevice) -> Result<View, WindowError> {
        let size = wanted.size;
        let mut view = View {
            surface: None,
            transfers: None,
            window: Arc::new(window),
            title: wanted.title,
            slot: wanted.slot,
            current: None,
            uploaded: None,
            overlay: SettingsOverlay::default(),
            drawn: None,
            refresh: REFRESH,
            due: None,
            is_hidden: false,
            saving: Vec::new(),
        };
        view.follow_monitor();
        let device = match view.slot.device() {
            Some(device) => device,
            None => host_device.open()?,
        };
        let needs_bytes = Format::Rgba8.frame_bytes(size);
        let most_bytes = device.limits().buffer_bytes.min(device.limits().binding_bytes);
        if needs_bytes > most_bytes {
            return Err(WindowError::TooLarge { size, needs_bytes, most_bytes });
        }
        view.move_to(&device)?;
        Ok(view)
    }

    pub(crate) fn window(&self) -> &Window {
        &self.window
    }

    pub(crate) fn slot(&self) -> &Slot {
        &self.slot
    }

    pub(crate) fn has_overlay(&self) -> bool {
        self.overlay.is_shown
    }

    /// The window may be on another monitor now.
    pub(crate) fn follow_monitor(&mut self) {
        let rate = self.window.current_monitor().and_then(|monitor| monitor.refresh_rate_millihertz());
        // Some virtual screens report rates of 0 or below any real screen.
        self.refresh = rate.filter(|rate| *rate >= 10_000).map_or(REFRESH, |rate| Duration::from_secs(1000) / rate);
    }

    /// A frame has come. It is drawn at once, or when the screen can show it: a run that is faster than real time has no
    /// use for more drawings than the screen has refreshes.
    pub(crate) fn expect_drawing(&mut self) {
        let Some(pts_ns) = self.slot.waiting_pts_ns() else { return };
        let now = Instant::now();
        let due = self.drawn.map_or(now, |(at, drawn_ns)| {
            let apart = Duration::from_nanos(u64::try_from(pts_ns.saturating_sub(drawn_ns)).unwrap_or(0));
            // A little less than a period, so that a frame after a late frame is on time again.
            at + apart.min(self.refresh) * 3 / 4
        });
        self.due = Some(due);
        if due <= now || self.is_hidden {
            self.window.request_redraw();
        }
        if self.is_hidden {
            self.accept();
        }
    }

    /// When [`View::look_at_clock`] should be called.
    pub(crate) fn next_look(&self) -> Option<Instant> {
        let due = self.due?;
        Some(if Instant::now() < due { due } else { due + HIDDEN })
    }

    /// Draws a frame that is due, and takes a frame that the window system has not asked to draw for a while.
    pub(crate) fn look_at_clock(&mut self) {
        let now = Instant::now();
        match self.due {
            Some(due) if now >= due + HIDDEN => {
                self.is_hidden = true;
                self.accept();
            }
            Some(due) if now >= due => self.window.request_redraw(),
            _ => {}
        }
    }

    /// Takes the frame that waits. Returns whether there was one.
    fn accept(&mut self) -> bool {
        self.due = None;
        let Some(frame) = self.slot.take() else { return false };
        self.drawn = Some((Instant::now(), frame.meta().pts_ns));
        (self.current, self.uploaded) = (Some(frame), None);
        true
    }

    /// Draws the last frame, if it still waits.
    pub(crate) fn finish(&mut self, host_device: &mut HostDevice) {
        if self.due.is_some() {
            self.draw(host_device, None);
        }
    }

    pub(crate) fn resize(&mut self, size: Size) {
        if let Some(surface) = &mut self.surface {
            surface.resize(size);
        }
        self.window.request_redraw();
    }

    /// Draws the newest frame, and the overlay over it. A failure ends the run; a lost device does not.
    pub(crate) fn draw(&mut self, host_device: &mut HostDevice, panel: Option<&mut SettingsPanel>) {
        self.is_hidden = false;
        let is_new = self.accept();
        match self.try_draw(host_device, panel) {
            Ok(Shown::Yes) if is_new => self.slot.count_shown(),
            Ok(_) => {}
            Err(error) if error.is_loss() => {
                self.leave_device();
                host_device.forget_lost();
            }
            Err(error) => self.slot.fail(error),
        }
    }

    fn try_draw(
        &mut self,
        host_device: &mut HostDevice,
        panel: Option<&mut SettingsPanel>,
    ) -> Result<Shown, WindowError> {
        let Some(is_on_device) = self.current.as_ref().map(|frame| frame.buffer().is_some()) else {
            return Ok(Shown::NotVisible);
        };
        let device = if is_on_device { self.slot.device() } else { Some(host_device.open()?) };
        let is_there =
            |device: &Device| self.current.as_ref().and_then(Frame::buffer).is_none_or(|buffer| device.owns(buffer));
        let Some(device) = device.filter(is_there) else {
            // The frame was on a device that is lost.
            self.leave_device();
            return Ok(Shown::NotVisible);
        };
        if !self.surface.as_ref().is_some_and(|surface| surface.device().is_same(&device)) {
            self.move_to(&device)?;
        }
        let scale = self.window.scale_factor();
        let size = self.surface.as_ref().map_or(Size { width: 0, height: 0 }, WindowSurface::size);
        if size.width == 0 || size.height == 0 {
            return Ok(Shown::NotVisible);
        }
        if self.overlay.is_shown {
            let transfers = transfers(&mut self.transfers, &device)?;
            self.overlay.paint(panel, transfers, size, scale)?;
        }
        let Some(frame) = &self.current else { return Ok(Shown::NotVisible) };
        if !is_on_device && self.uploaded.is_none() {
            self.uploaded = Some(transfers(&mut self.transfers, &device)?.upload(frame)?);
        }
        let Some(buffer) = frame.buffer().or(self.uploaded.as_ref()) else { return Ok(Shown::NotVisible) };
        let picture = Pixels::rgba8(buffer, frame.size());
        let how = Blit { into: Some(fitted(frame.size(), size)), ..Blit::default() };
        let mut layers = vec![Layer { picture, how }];
        layers.extend(self.overlay.layer(size, scale));
        let Some(surface) = &mut self.surface else { return Ok(Shown::NotVisible) };
        Ok(surface.show(&layers, || self.window.pre_present_notify())?)
    }

    /// Shows frames of this device from now on.
    fn move_to(&mut self, device: &Device) -> Result<(), WindowError> {
        // A window has one surface at a time.
        self.release_device();
        let size = self.window.inner_size();
        let size = Size { width: size.width, height: size.height };
        self.surface = Some(WindowSurface::new(device, Arc::clone(&self.window), size)?);
        Ok(())
    }

    /// Waits for a frame from elsewhere, because the device is lost.
    fn leave_device(&mut self) {
        self.release_device();
        self.current = None;
    }

    /// Drops everything on the current device but the current frame.
    fn release_device(&mut self) {
        self.surface = None;
        self.transfers = None;
        self.uploaded = None;
        self.overlay.leave_device();
    }

    // ---- keys

    pub(crate) fn perform(&mut self, action: KeyAction, panel: Option<&mut SettingsPanel>) {
        match action {
            KeyAction::Pause => self.slot.pause(!self.slot.is_paused()),
            KeyAction::Step => self.slot.step(),
            KeyAction::Save => self.save(),
            KeyAction::Fullscreen => self.set_fullscreen(self.window.fullscreen().is_none()),
            KeyAction::Back if self.overlay.is_shown => self.overlay.is_shown = false,
            KeyAction::Back => self.set_fullscreen(false),
            KeyAction::Overlay => self.overlay.is_shown = !self.overlay.is_shown,
            KeyAction::PreviousSetting => self.overlay.choose(panel, StepDirection::Up),
            KeyAction::NextSetting => self.overlay.choose(panel, StepDirection::Down),
            KeyAction::Lower | KeyAction::Raise => {
                let direction = if action == KeyAction::Raise { StepDirection::Up } else { StepDirection::Down };
                if let Some(panel) = panel {
                    self.overlay.change(panel, direction);
                }
            }
        }
        let paused = if self.slot.is_paused() { " (paused)" } else { "" };
        self.window.set_title(&format!("{}{paused}", self.title));
        self.window.request_redraw();
    }

    fn set_fullscreen(&self, is_fullscreen: bool) {
        self.window.set_fullscreen(is_fullscreen.then_some(Fullscreen::Borderless(None)));
    }

    /// Saves the current frame in the working directory, on a thread of its own, because encoding takes longer than a
    /// frame.
    fn save(&mut self) {
        let Some(reporter) = self.slot.reporter() else { return };
        let (number, size, pixels) = match self.pixels() {
            Ok(Some(pixels)) => pixels,
            Ok(None) => return,
            Err(error) => return reporter.warn(error.to_string()),
        };
        let saving = std::thread::Builder::new().name("saving a picture".to_owned());
        let spawned = saving.spawn({
            let reporter = reporter.clone();
            move || match picture_file::save(Path::new(""), number, size, &pixels) {
                Ok(path) => reporter.note(format!("saved frame {number} as `{}`", path.display())),
                Err(error) => reporter.warn(error.to_string()),
            }
        });
        match spawned {
            Ok(saving) => {
                self.saving.retain(|saving| !saving.is_finished());
                self.saving.push(saving);
            }
            Err(error) => {
                reporter.warn(format!("the frame is not saved, because there is no thread for it: {error}"));
            }
        }
    }

    /// Number, size and bytes of the current frame. A frame on the device is downloaded.
    fn pixels(&mut self) -> Result<Option<(u64, Size, Vec<u8>)>, WindowError> {
        let Some(frame) = &self.current else { return Ok(None) };
        let bytes = match (frame.buffer(), &self.surface) {
            (None, _) => frame.bytes().to_vec(),
            (Some(buffer), Some(surface)) => transfers(&mut self.transfers, surface.device())?.read(buffer)?,
            (Some(_), None) => return Ok(None),
        };
        Ok(Some((frame.meta().number, frame.size(), bytes)))
    }
}

/// The transfers on this device, made at their first use.
fn transfers<'a>(
    known: &'a mut Option<WindowTransfers>,
    device: &Device,
) -> Result<&'a mut WindowTransfers, WindowError> {
    if known.as_ref().is_some_and(|transfers| !transfers.device().is_same(device)) {
        *known = None;
    }
    match known {
        Some(transfers) => Ok(transfers),
        None => Ok(known.insert(WindowTransfers::on(device)?)),
    }
}

/// The device that presents frames which are on the host. All windows share it.
#[derive(Default)]
pub(crate) struct HostDevice(Option<Device>);

impl HostDevice {
    fn open(&mut self) -> Result<Device, WindowError> {
        if let Some(device) = &self.0 {
            return Ok(device.clone());
        }
        let device = Device::choose().open().map_err(WindowError::NoDevice)?;
        Ok(self.0.insert(device).clone())
    }

    fn forget_lost(&mut self) {
        self.0.take_if(|device| device.check().is_err());
    }
}
