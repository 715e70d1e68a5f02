//! `terminal`: shows frames in the terminal as coloured half blocks.
//!
//! Standard output must be a terminal. The handler hides the cursor while it runs. Frames are shown at their times,
//! except with `--fps`, which paces the sources. Frames that come between two drawings are not drawn, except for the last
//! frame of the stream. The image fits the terminal and keeps
//! its proportions. The cursor is shown again at the end, also after a failure; [`restore`] shows the cursor for a
//! program that ends without stopping its handlers.

mod blocks;
mod shrunk;

use std::fs::File;
use std::io::{self, IsTerminal, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use vramp_plan::Size;
use vramp_plan::catalog::Entry;
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, StartContext, Worker};

use crate::Unhurried;
use blocks::{Blocks, Colours};
use shrunk::Shrunk;

pub static ENTRY: Entry = Entry {
    name: "terminal",
    about: "shows frames in the terminal, two pixels per character",
    example: "pattern size=160x90 ! terminal",
    presents: true,
    ..Entry::SINK
};

/// Minimum time between two drawings. With half blocks, more than twenty drawings per second look no smoother.
const PERIOD: Duration = Duration::from_millis(50);

/// The pause after a slow drawing is this many times as long as the drawing, so that drawing takes at most a fifth of
/// the time.
const PAUSES: u32 = 4;

/// The assumed window of a terminal that does not report its size.
const USUAL: Size = Size { width: 80, height: 24 };

/// Whether a handler has hidden the cursor and has not shown the cursor again.
static HIDDEN: AtomicBool = AtomicBool::new(false);

/// Shows the cursor again if a handler has hidden it. Programs that end without stopping their handlers call
/// this function.
pub fn restore() {
    if HIDDEN.swap(false, Ordering::Relaxed)
        && let Ok(mut out) = standard_output()
    {
        // A failure is ignored, because there is no place to report it.
        let _ = out.write_all(b"\x1b[?2026l\x1b[0m\x1b[?25h");
    }
}

#[derive(Debug, thiserror::Error)]
enum TerminalError {
    #[error("standard output is not a terminal; write frames into a pipe with `y4m path=-`, or into files with `png`")]
    NoTerminal,
    #[error("the terminal can show only lines of text (TERM=dumb); use another terminal, or write files with `png`")]
    Dumb,
    #[error("frame {frame} cannot be written to the terminal: {error}")]
    Gone { frame: u64, error: io::Error },
    #[error("standard output cannot be written: {0}")]
    Closed(io::Error),
}

struct Terminal {
    settings: Settings,
    state: State,
}

struct Settings {
    colours: Colours,
}

#[derive(Default)]
struct State {
    out: Option<File>,
    /// The size of the terminal in characters, when last checked.
    window: Option<Size>,
    picture: Shrunk,
    blocks: Blocks,
    /// When the next drawing is due; `None` before the first drawing.
    due: Option<Instant>,
    /// The number of the last frame, if that frame was not drawn.
    waits: Option<u64>,
}

impl FrameHandler for Terminal {
    fn start(&mut self, _: &mut StartContext<'_>) -> Result<(), HandlerError> {
        if !io::stdout().is_terminal() {
            return Err(HandlerError::failed(TerminalError::NoTerminal));
        }
        if std::env::var_os("TERM").is_some_and(|term| term == "dumb") {
            return Err(HandlerError::failed(TerminalError::Dumb));
        }
        #[cfg(windows)]
        anstyle_query::windows::enable_ansi_colors();
        let out = standard_output().map_err(|error| HandlerError::failed(TerminalError::Closed(error)))?;
        self.state = State { out: Some(out), ..State::default() };
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.input(0) else { return Ok(Flow::Filtered) };
        let (state, number, began) = (&mut self.state, call.now().number, Instant::now());
        let is_due = state.due.is_none_or(|due| began >= due);
        if is_due || state.window.is_none() {
            state.window = Some(window());
        }
        state.picture.take(&frame.bytes(), frame.meta().picture().size, state.window.unwrap_or(USUAL));
        state.waits = (!is_due).then_some(number);
        if is_due {
            self.draw(number)?;
            let took = began.elapsed();
            self.state.due = Some(began + took + PERIOD.saturating_sub(took).max(took * PAUSES));
        }
        Ok(Flow::Produced)
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        let drawn = self.state.waits.take().map_or(Ok(()), |number| self.draw(number));
        self.state.out = None;
        restore();
        drawn
    }
}

impl Terminal {
    fn draw(&mut self, frame: u64) -> Result<(), HandlerError> {
        let State { out: Some(out), window, picture, blocks, .. } = &mut self.state else { return Ok(()) };
        HIDDEN.store(true, Ordering::Relaxed);
        let text = blocks.paint(picture, window.unwrap_or(USUAL), self.settings.colours);
        Unhurried(&*out).write_all(text).map_err(|error| HandlerError::failed(TerminalError::Gone { frame, error }))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.state.out.is_some() {
            restore();
        }
    }
}

/// Standard output without the lock and the line buffer of the standard library: [`restore`] must not wait for a
/// drawing that is stuck.
fn standard_output() -> io::Result<File> {
    #[cfg(unix)]
    return Ok(std::os::fd::AsFd::as_fd(&io::stdout()).try_clone_to_owned()?.into());
    #[cfg(windows)]
    return Ok(std::os::windows::io::AsHandle::as_handle(&io::stdout()).try_clone_to_owned()?.into());
    #[cfg(not(any(unix, windows)))]
    return Err(io::ErrorKind::Unsupported.into());
}

/// The current size of the terminal in characters.
fn window() -> Size {
    let found = terminal_size::terminal_size();
    found.map_or(USUAL, |(width, height)| Size { width: width.0.into(), height: height.0.into() })
}

#[expect(clippy::unnecessary_wraps, reason = "all makers share this signature")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    let colours = Colours::of(|name| std::env::var(name).ok());
    Ok(Worker::frames(Terminal { settings: Settings { colours }, state: State::default() }))
}
