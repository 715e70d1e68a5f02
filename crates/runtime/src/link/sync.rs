//! The standard library's synchronisation types, named so that a model checker can replace them.
//!
//! `tests/wake_signal_model.rs` compiles the same `wake_signal.rs` against loom's types.

pub(crate) use std::sync::atomic::AtomicU8;
pub(crate) use std::sync::{Arc, Mutex};
pub(crate) use std::thread::{Thread, current};

pub(crate) use super::patience::Patience;

use std::time::{Duration, Instant};

/// Sleeps while `asleep` returns true, but no longer than `most`. Calls `asleep` again whenever this thread is
/// unparked.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn sleep_while(most: Duration, asleep: impl Fn() -> bool) {
    let until = Instant::now() + most;
    let mut left = most;
    while asleep() && !left.is_zero() {
        std::thread::park_timeout(left);
        left = until.saturating_duration_since(Instant::now());
    }
}
