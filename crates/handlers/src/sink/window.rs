//! `window`: shows frames in a window. Frames on the device are presented without a download.
//!
//! Only the entry is here. crates/window has the handler, because windows need an event loop on the main thread.

use vramp_plan::Space;
use vramp_plan::catalog::{Entry, Frames, Setting};
use vramp_runtime::{HandlerError, Setup, Worker};

pub static ENTRY: Entry = Entry {
    name: "window",
    about: "shows frames in a window",
    example: "pattern ! window title=ball",
    settings: &[
        Setting::text("title", "window title").default("vramp"),
        Setting::bool("fullscreen", "cover the whole screen").default("false"),
    ],
    spaces: &[Space::Gpu, Space::Cpu],
    presents: true,
    // One on the screen, one that waits to be drawn, and one that the device has not finished.
    holds: Frames::Fixed(3),
    ..Entry::SINK
};

#[derive(Debug, thiserror::Error)]
#[error(
    "a window needs an event loop on the main thread, and this run has none; run a program's pipeline inside \
     `vramp::window::main`, start `vramp run` with the window in its pipeline, or use `terminal`"
)]
struct NoEventLoop;

/// The maker of registries without an event loop.
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Err(HandlerError::failed(NoEventLoop))
}
