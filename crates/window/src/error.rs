//! Why there is no window.

use vramp_gpu::{LendError, OpenError, PlayError, PresentError, RecordError, SurfaceError};
use vramp_plan::Size;

/// Why a window cannot be opened, or cannot show a frame.
#[derive(Debug, thiserror::Error)]
pub enum WindowError {
    #[error(
        "there is no display: {problem}; use `terminal` to show frames in a terminal, or write them with `png` or `video`"
    )]
    NoDisplay { problem: String },
    #[error("the window system refused a window: {problem}; use `terminal` to show frames in a terminal")]
    NotOpened { problem: String },
    #[error("the connection to the window system ended: {problem}")]
    Ended { problem: String },
    #[error("the event loop did not answer within {seconds} s; is the main thread busy outside of `window::main`?")]
    NoAnswer { seconds: u64 },
    #[error("frames on the host need a device to reach the screen: {0}; use `terminal` to show frames in a terminal")]
    NoDevice(OpenError),
    #[error(
        "frames of {size} take {needs_bytes} bytes, and this device shows at most {most_bytes}; put a `resize` before the \
         window"
    )]
    TooLarge { size: Size, needs_bytes: u64, most_bytes: u64 },
    #[error("the window was closed")]
    Closed,
    #[error(transparent)]
    Surface(#[from] SurfaceError),
    #[error("memory for showing frames: {problem}")]
    NoMemory { problem: String },
    #[error(transparent)]
    Play(#[from] PlayError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("the picture did not arrive from the device: {problem}")]
    NotRead { problem: String },
    #[error("`{path}` cannot be written: {problem}")]
    NotSaved { path: String, problem: String },
}

impl WindowError {
    /// Whether the device is lost. The run then continues elsewhere, and so does the window.
    pub(crate) fn is_loss(&self) -> bool {
        matches!(
            self,
            WindowError::Surface(SurfaceError::Present(PresentError::Lost(_))) | WindowError::Play(PlayError::Lost(_))
        )
    }
}

impl<E: std::error::Error> From<LendError<E>> for WindowError {
    fn from(error: LendError<E>) -> WindowError {
        WindowError::NoMemory { problem: error.to_string() }
    }
}
