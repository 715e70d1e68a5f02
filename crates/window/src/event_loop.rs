//! The event loop on the main thread: opens windows, passes on their events, and closes them.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::{Duration, Instant};

use vramp_pipeline::Controls;
use vramp_pipeline::panel::SettingsPanel;
use vramp_plan::Size;
use vramp_runtime::Stopper;
use winit::application::ApplicationHandler;
use winit::dpi::PhysicalSize;
use winit::event::{StartCause, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow, EventLoop};
use winit::keyboard::ModifiersState;
use winit::platform::run_on_demand::EventLoopExtRunOnDemand as _;
use winit::window::{Fullscreen, Window, WindowId};

use crate::error::WindowError;
use crate::keys::action;
use crate::layout::opened;
use crate::screen::{LoopCommand, Screen, WantedWindow, check_display};
use crate::view::{HostDevice, View};

/// How often an overlay is drawn if no frame comes: settings change on other threads.
const OVERLAY: Duration = Duration::from_millis(100);

thread_local! {
    /// A process has one event loop, which is kept for the next call of [`main`].
    static EVENT_LOOP: RefCell<Option<EventLoop<LoopCommand>>> = const { RefCell::new(None) };
}

/// Runs `work` on a thread of its own, and the event loop of its windows on this thread, until `work` returns.
///
/// Call this on the main thread; some systems allow windows only there.
///
/// # Panics
///
/// If called on another thread, or inside of `work`. A panic of `work` continues here.
pub fn main<R: Send>(work: impl FnOnce(Screen) -> R + Send) -> Result<R, WindowError> {
    check_display()?;
    let kept = EVENT_LOOP.with_borrow_mut(Option::take);
    let mut event_loop = match kept {
        Some(kept) => kept,
        None => EventLoop::with_user_event()
            .build()
            .map_err(|error| WindowError::NoDisplay { problem: without_place(&error.to_string()) })?,
    };
    vramp_gpu::use_display(event_loop.owned_display_handle());
    let screen = Screen::new(event_loop.create_proxy());
    let mut windows = OpenWindows::default();
    let worked = std::thread::scope(|scope| {
        let worker = std::thread::Builder::new().name("work beside windows".to_owned()).spawn_scoped(scope, || {
            // Also after a panic: the event loop would never end.
            let _end = EndLoop(&screen);
            work(screen.clone())
        });
        let worker = worker.map_err(|error| WindowError::NotOpened { problem: error.to_string() })?;
        // If the loop panics, the work must not wait for its windows for ever.
        let looped = catch_unwind(AssertUnwindSafe(|| event_loop.run_app_on_demand(&mut windows)));
        screen.end();
        match &looped {
            Ok(Ok(())) => {}
            Ok(Err(error)) => windows.fail(&error.to_string()),
            Err(_) => windows.fail("the event loop panicked"),
        }
        let worked = worker.join().unwrap_or_else(|panic| resume_unwind(panic));
        looped.map_or_else(|panic| resume_unwind(panic), |_| Ok(worked))
    });
    drop(windows);
    EVENT_LOOP.with_borrow_mut(|kept| *kept = Some(event_loop));
    worked
}

/// The words of an error of winit without the place in winit's code.
fn without_place(words: &str) -> String {
    let after_place = words.split_once(".rs:").and_then(|(_, rest)| rest.split_once(": "));
    after_place.map_or(words, |(_, words)| words).to_owned()
}

struct EndLoop<'a>(&'a Screen);

impl Drop for EndLoop<'_> {
    fn drop(&mut self) {
        // An event loop that has ended need not end.
        let _ = self.0.send(LoopCommand::Exit);
    }
}

/// All windows of the program.
#[derive(Default)]
struct OpenWindows {
    views: BTreeMap<u64, View>,
    host_device: HostDevice,
    run: Option<AttachedRun>,
    /// Windows that were wanted before the window system was ready.
    waiting: Vec<LoopCommand>,
    is_ready: bool,
    modifiers: ModifiersState,
}

/// The run that windows belong to.
struct AttachedRun {
    stopper: Stopper,
    controls: Controls,
    /// Made when the settings are first shown.
    panel: Option<SettingsPanel>,
}

impl AttachedRun {
    fn panel(&mut self) -> Option<&mut SettingsPanel> {
        if self.panel.is_none() {
            // Without a thread for changes, the overlay shows only the keys.
            self.panel = SettingsPanel::of(self.controls.clone()).ok().map(SettingsPanel::without_editing);
        }
        self.panel.as_mut()
    }
}

impl OpenWindows {
    fn open(&mut self, target: &ActiveEventLoop, id: u64, wanted: WantedWindow) -> Result<(), WindowError> {
        let screen = target.primary_monitor().or_else(|| target.available_monitors().next()).map(|monitor| {
            let PhysicalSize { width, height } = monitor.size();
            Size { width, height }
        });
        let Size { width, height } = opened(wanted.size, screen);
        let attributes = Window::default_attributes()
            .with_title(&wanted.title)
            .with_inner_size(PhysicalSize::new(width, height))
            .with_fullscreen(wanted.is_fullscreen.then_some(Fullscreen::Borderless(None)));
        let not_opened =
            |error: winit::error::OsError| WindowError::NotOpened { problem: without_place(&error.to_string()) };
        let window = target.create_window(attributes).map_err(not_opened)?;
        self.views.insert(id, View::new(window, wanted, &mut self.host_device)?);
        Ok(())
    }

    fn view_of(&self, window: WindowId) -> Option<u64> {
        self.views.iter().find(|(_, view)| view.window().id() == window).map(|(id, _)| *id)
    }

    /// The user has closed a window.
    fn closed(&mut self, id: u64) {
        let Some(view) = self.views.remove(&id) else { return };
        match &self.run {
            Some(run) => {
                // Frames in flight still arrive, in files too. No window holds them up.
                view.slot().close();
                self.views.values().for_each(|other| other.slot().close());
                run.stopper.finish();
            }
            None => view.slot().fail(WindowError::Closed),
        }
    }

    /// The window system has ended the event loop.
    fn fail(&mut self, problem: &str) {
        for view in self.views.values() {
            view.slot().fail(WindowError::Ended { problem: problem.to_owned() });
        }
        self.views.clear();
    }
}

impl ApplicationHandler<LoopCommand> for OpenWindows {
    fn resumed(&mut self, target: &ActiveEventLoop) {
        self.is_ready = true;
        for command in std::mem::take(&mut self.waiting) {
            self.user_event(target, command);
        }
    }

    fn user_event(&mut self, target: &ActiveEventLoop, command: LoopCommand) {
        match command {
            command @ LoopCommand::Open { .. } if !self.is_ready => self.waiting.push(command),
            LoopCommand::Open { id, wanted, answer } => {
                // A sink that no longer waits has reported why.
                let _ = answer.send(self.open(target, id, wanted));
            }
            LoopCommand::Draw(id) => {
                if let Some(view) = self.views.get_mut(&id) {
                    view.expect_drawing();
                }
            }
            LoopCommand::Close { id, answer } => {
                if let Some(mut view) = self.views.remove(&id) {
                    view.finish(&mut self.host_device);
                }
                let _ = answer.send(());
            }
            LoopCommand::Attach { stopper, controls } => {
                self.run = Some(AttachedRun { stopper, controls, panel: None });
            }
            LoopCommand::Exit => target.exit(),
        }
    }

    fn window_event(&mut self, _: &ActiveEventLoop, window: WindowId, event: WindowEvent) {
        let Some(id) = self.view_of(window) else { return };
        let OpenWindows { views, host_device, run, modifiers, .. } = self;
        let Some(view) = views.get_mut(&id) else { return };
        match event {
            WindowEvent::CloseRequested | WindowEvent::Destroyed => self.closed(id),
            WindowEvent::Moved(_) => view.follow_monitor(),
            WindowEvent::Resized(PhysicalSize { width, height }) => view.resize(Size { width, height }),
            // The window keeps its size in pixels, which is that of the frames.
            WindowEvent::ScaleFactorChanged { mut inner_size_writer, .. } => {
                // The writer is gone only if the event is handled later.
                let _ = inner_size_writer.request_inner_size(view.window().inner_size());
            }
            WindowEvent::ModifiersChanged(now) => *modifiers = now.state(),
            // Ctrl+S and the like belong to the window system.
            WindowEvent::KeyboardInput { .. } if !(*modifiers - ModifiersState::SHIFT).is_empty() => {}
            WindowEvent::KeyboardInput { event, is_synthetic: false, .. } => {
                if let Some(action) = action(&event, view.has_overlay()) {
                    view.perform(action, run.as_mut().and_then(AttachedRun::panel));
                }
            }
            WindowEvent::RedrawRequested => {
                let panel = if view.has_overlay() { run.as_mut().and_then(AttachedRun::panel) } else { None };
                view.draw(host_device, panel);
            }
            _ => {}
        }
    }

    fn new_events(&mut self, _: &ActiveEventLoop, cause: StartCause) {
        if let StartCause::ResumeTimeReached { .. } = cause {
            for view in self.views.values_mut() {
                view.look_at_clock();
                if view.has_overlay() {
                    view.window().request_redraw();
                }
            }
        }
    }

    fn about_to_wait(&mut self, target: &ActiveEventLoop) {
        let overlay = self.views.values().any(View::has_overlay).then(|| Instant::now() + OVERLAY);
        let next = self.views.values().filter_map(View::next_look).chain(overlay).min();
        target.set_control_flow(next.map_or(ControlFlow::Wait, ControlFlow::WaitUntil));
    }
}
