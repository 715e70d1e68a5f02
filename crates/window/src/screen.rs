//! The handle on the event loop, for sinks and for the program's own work.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use vramp_handlers::sink::window::ENTRY;
use vramp_pipeline::{Controls, Pipeline};
use vramp_plan::Size;
use vramp_runtime::{Kind, Registry, Stopper, foreign};
use winit::event_loop::EventLoopProxy;

use crate::error::WindowError;
use crate::sink;
use crate::slot::Slot;

/// How long a sink waits for the event loop to open or to close its window.
const ANSWER: Duration = Duration::from_secs(10);

/// Opens windows. Clones use the same event loop.
#[derive(Clone)]
pub struct Screen {
    shared: Arc<ScreenShared>,
}

struct ScreenShared {
    proxy: Mutex<EventLoopProxy<LoopCommand>>,
    last_id: AtomicU64,
    /// Whether the event loop has ended, so that no command is answered.
    has_ended: AtomicBool,
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Screen").finish_non_exhaustive()
    }
}

/// What the event loop is asked to do.
pub(crate) enum LoopCommand {
    Open {
        id: u64,
        wanted: WantedWindow,
        answer: mpsc::Sender<Result<(), WindowError>>,
    },
    /// A frame waits in the slot of this window.
    Draw(u64),
    /// The answer comes when the window holds no frame any more.
    Close {
        id: u64,
        answer: mpsc::Sender<()>,
    },
    /// Closing a window ends this run, and its settings are shown and changed.
    Attach {
        stopper: Stopper,
        controls: Controls,
    },
    Exit,
}

/// A window that a sink wants.
pub(crate) struct WantedWindow {
    pub(crate) title: String,
    pub(crate) is_fullscreen: bool,
    /// The size of the first frame, in pixels of the screen.
    pub(crate) size: Size,
    pub(crate) slot: Arc<Slot>,
}

impl Screen {
    pub(crate) fn new(proxy: EventLoopProxy<LoopCommand>) -> Screen {
        let shared =
            ScreenShared { proxy: Mutex::new(proxy), last_id: AtomicU64::new(0), has_ended: AtomicBool::new(false) };
        Screen { shared: Arc::new(shared) }
    }

    /// The registry with a `window` that opens its windows here.
    #[must_use]
    pub fn register(&self, registry: &Registry) -> Registry {
        let screen = self.clone();
        registry.replaced(&Kind::new(&ENTRY, move |setup| sink::make(&screen, setup)))
    }

    /// Connects windows with a pipeline: closing a window ends its run as if the sources had ended, and the key `h`
    /// lists its settings. Without this, closing a window ends the run with an error.
    pub fn attach(&self, pipeline: &Pipeline) {
        // Without an event loop there is no window that could be closed.
        let _ = self.send(LoopCommand::Attach { stopper: pipeline.stopper(), controls: pipeline.controls() });
    }

    /// Opens a window, and returns its number.
    pub(crate) fn open(&self, wanted: WantedWindow) -> Result<u64, WindowError> {
        let id = self.shared.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let (answer, answered) = mpsc::channel();
        self.send(LoopCommand::Open { id, wanted, answer })?;
        let opened = answered.recv_timeout(ANSWER);
        opened.unwrap_or(Err(WindowError::NoAnswer { seconds: ANSWER.as_secs() })).map(|()| id)
    }

    /// Closes a window, and waits until its frames are returned.
    pub(crate) fn close(&self, id: u64) {
        let (answer, answered) = mpsc::channel();
        if self.send(LoopCommand::Close { id, answer }).is_ok() {
            // A window of an event loop that has ended is closed.
            let _ = answered.recv_timeout(ANSWER);
        }
    }

    /// The event loop has ended.
    pub(crate) fn end(&self) {
        self.shared.has_ended.store(true, Ordering::Release);
    }

    pub(crate) fn send(&self, command: LoopCommand) -> Result<(), WindowError> {
        let ended = || WindowError::Ended { problem: "its event loop has ended".to_owned() };
        if self.shared.has_ended.load(Ordering::Acquire) {
            return Err(ended());
        }
        let proxy = self.shared.proxy.lock().unwrap_or_else(PoisonError::into_inner);
        // winit queues events in a channel that allocates for every 31st.
        foreign(|| proxy.send_event(command)).map_err(|_| ended())
    }
}

/// Fails if this machine has no display, without opening anything. The display may still refuse windows.
pub fn check_display() -> Result<(), WindowError> {
    #[cfg(all(unix, not(target_os = "macos")))]
    {
        let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if !["WAYLAND_DISPLAY", "WAYLAND_SOCKET", "DISPLAY"].into_iter().any(is_set) {
            let problem = "neither WAYLAND_DISPLAY nor DISPLAY is set".to_owned();
            return Err(WindowError::NoDisplay { problem });
        }
        // A variable may outlive its display, as in tmux or after `sudo`.
        if !is_set("WAYLAND_DISPLAY")
            && !is_set("WAYLAND_SOCKET")
            && let Ok(display) = std::env::var("DISPLAY")
            && !is_x_server_there(&display)
        {
            return Err(WindowError::NoDisplay { problem: format!("no X server answers at DISPLAY={display}") });
        }
    }
    Ok(())
}

/// Whether the X server of this machine with this name takes connections. True for a server elsewhere, which is not asked.
#[cfg(all(unix, not(target_os = "macos")))]
fn is_x_server_there(display: &str) -> bool {
    let Some(number) = display.strip_prefix(':').or_else(|| display.strip_prefix("unix:")) else { return true };
    let number = number.split('.').next().unwrap_or_default();
    let path = format!("/tmp/.X11-unix/X{number}");
    let connects = std::os::unix::net::UnixStream::connect(&path).is_ok();
    #[cfg(target_os = "linux")]
    let connects = connects || {
        use std::os::linux::net::SocketAddrExt as _;
        let address = std::os::unix::net::SocketAddr::from_abstract_name(path.as_bytes());
        address.is_ok_and(|address| std::os::unix::net::UnixStream::connect_addr(&address).is_ok())
    };
    connects
}

#[cfg(all(test, unix, not(target_os = "macos")))]
mod tests {
    use super::*;

    #[test]
    fn a_display_without_a_server_is_noticed_and_a_distant_one_is_not_asked() {
        assert!(!is_x_server_there(":7654") && !is_x_server_there(":7654.0") && !is_x_server_there("unix:7654"));
        assert!(is_x_server_there("elsewhere:10.0"));
    }
}
