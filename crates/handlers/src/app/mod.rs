//! The ends of a pipeline that a program holds: [`AppInput`] pushes frames into an `app` source, [`AppOutput`] pulls
//! frames from an `app` sink.
//!
//! The handlers ([`source`](crate::source::app), [`sink`](crate::sink::app)) run in their lanes like any other handler
//! and never block. Between a handler and the program is a hand-over of a few frames. A frame is never copied, except
//! by [`AppInput::push`], which copies the caller's bytes into memory of the pipeline's pool.
//!
//! A thread that steps the pipeline itself cannot wait for the pipeline. On such a thread every method returns at once,
//! with `WouldBlock` if there is no room or no frame.

mod hand_over;
mod input;
mod output;
mod sync;

pub use input::{AppInput, InputCounts, LentFrame, PushError, Wait};
pub use output::{AppOutput, Frames, OutputCounts, PullError, PulledFrame};

pub(crate) use input::{InputEnd, Taken};
pub(crate) use output::OutputEnd;

use std::time::Duration;

use vramp_runtime::{Driven, Waker};

use sync::Until;

/// How long a thread waits for a pipeline that has not started.
const START: Duration = Duration::from_secs(2);

/// Interval at which a waiting thread looks whether the pipeline has started.
const LOOK: Duration = Duration::from_millis(1);

/// Whether a wait of this length shows that the pipeline was not started. After a shorter wait, the pipeline's threads
/// may be about to start.
fn outlasts_start(wait: Wait) -> bool {
    match wait {
        Wait::Forever => true,
        Wait::For(time) => time >= START,
        Wait::Never => false,
    }
}

/// The end of a wait of this thread; `None` if this thread steps the pipeline and so must not wait. Waits for a pipeline
/// that has not started, but no longer than [`START`].
fn until(wait: Wait, waker: &Waker) -> Option<Until> {
    let time = match wait {
        Wait::Forever => None,
        Wait::For(time) => Some(time),
        Wait::Never => return None,
    };
    let whole = Until::after(time);
    if waker.driven() == Driven::NotYet {
        let start = Until::after(Some(START));
        while waker.driven() == Driven::NotYet && !whole.is_past() {
            if start.is_past() {
                return Some(start);
            }
            std::thread::sleep(LOOK);
        }
    }
    (waker.driven() != Driven::ByThisThread).then_some(whole)
}
