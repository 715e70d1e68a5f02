//! The handler `window`: hands frames to the event loop, one at a time.
//!
//! The handler never waits. While a frame waits to be drawn, or while the window is paused, the node takes no frame, and
//! the link's policy decides about the frames that come meanwhile. A frame on the device is handed over when the device
//! has finished it.

use std::collections::VecDeque;
use std::sync::Arc;

use vramp_plan::{Content, Size, Space};
use vramp_runtime::{Call, Flow, Frame, FrameHandler, HandlerError, Reporter, Setup, StartContext, Waker, Worker};

use crate::error::WindowError;
use crate::screen::{LoopCommand, Screen, WantedWindow};
use crate::slot::Slot;

/// The size of a window if the size of the frames is not known.
const USUAL: Size = Size { width: 640, height: 480 };

struct WindowSink {
    screen: Screen,
    settings: Settings,
    state: State,
}

struct Settings {
    title: String,
    is_fullscreen: bool,
}

#[derive(Default)]
struct State {
    slot: Arc<Slot>,
    id: Option<u64>,
    /// Frames that the device has not finished.
    unfinished: VecDeque<Frame>,
    reporter: Option<Reporter>,
}

impl FrameHandler for WindowSink {
    fn keep_waker(&mut self, waker: &Waker) -> bool {
        self.state.slot.keep_waker(waker);
        true
    }

    fn start(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        let Settings { title, is_fullscreen } = &self.settings;
        let size = match context.inputs().first() {
            Some(Some(Content::Video(frame))) => frame.size,
            _ => USUAL,
        };
        let State { slot, reporter, id, .. } = &mut self.state;
        slot.begin(context.device().cloned(), context.reporter());
        *reporter = Some(context.reporter());
        let wanted = WantedWindow { title: title.clone(), is_fullscreen: *is_fullscreen, size, slot: Arc::clone(slot) };
        *id = Some(self.screen.open(wanted).map_err(HandlerError::failed)?);
        Ok(())
    }

    fn is_ready(&mut self) -> bool {
        self.state.slot.has_room(self.state.unfinished.len())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        match self.state.slot.take_failure() {
            Some(WindowError::Closed) => return Err(HandlerError::hopeless(WindowError::Closed)),
            Some(failure) => return Err(HandlerError::failed(failure)),
            None => {}
        }
        let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
        self.state.slot.take_step();
        match frame.space() {
            Space::Gpu => self.state.unfinished.push_back(frame),
            Space::Cpu => self.show(frame),
        }
        Ok(Flow::Produced)
    }

    fn finished(&mut self) {
        if let Some(frame) = self.state.unfinished.pop_front() {
            self.show(frame);
        }
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        let state = &mut self.state;
        state.unfinished.clear();
        if let Some(id) = state.id.take() {
            self.screen.close(id);
            if let Some(reporter) = &state.reporter {
                reporter.note(state.slot.words());
            }
        }
        Ok(())
    }

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        self.move_to(None);
        true
    }

    fn enter_device(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.move_to(context.device().cloned());
        Ok(())
    }
}

impl WindowSink {
    fn show(&self, frame: Frame) {
        if let Some(id) = self.state.id
            && self.state.slot.put(frame)
        {
            self.wake_loop(id);
        }
    }

    /// Follows the frames to another device, or to the host.
    fn move_to(&mut self, device: Option<vramp_gpu::Device>) {
        self.state.unfinished.clear();
        self.state.slot.move_to(device);
        if let Some(id) = self.state.id {
            self.wake_loop(id);
        }
    }

    fn wake_loop(&self, id: u64) {
        if let Err(failure) = self.screen.send(LoopCommand::Draw(id)) {
            self.state.slot.fail(failure);
        }
    }
}

impl Drop for WindowSink {
    fn drop(&mut self) {
        if let Some(id) = self.state.id.take() {
            self.screen.close(id);
        }
    }
}

pub(crate) fn make(screen: &Screen, setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    if let Some(device) = &setup.device {
        vramp_gpu::prepare_windows(device).map_err(HandlerError::failed)?;
    }
    let settings = Settings { title: setup.text("title")?.to_owned(), is_fullscreen: setup.flag("fullscreen")? };
    Ok(Worker::frames(WindowSink { screen: screen.clone(), settings, state: State::default() }))
}
