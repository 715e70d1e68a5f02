//! What threads meet in: the standard library's, under names that a model checker can stand in for.
//!
//! Owns the choice. `tests/wake_signal_model.rs` compiles the same `signal.rs` against loom's.
//! Does not add anything to what it names.

pub(crate) use std::sync::atomic::{AtomicU8, AtomicU32};
pub(crate) use std::sync::{Arc, Mutex};
pub(crate) use std::thread::{Thread, current, yield_now};

use std::time::{Duration, Instant};

/// Times that a waiter lets others run before it sleeps, at most. Whoever rings is often about to: falling asleep and
/// being woken takes two switches of the kernel. Streaming over a link of depth 64, 0.46 us a frame without and 0.10
/// with.
pub(crate) const YIELDS: u32 = 20;

/// Sleeps while `asleep` says so, at most this long, until somebody unparks this thread.
#[cfg(not(target_arch = "wasm32"))]
pub(crate) fn sleep_while(most: Duration, asleep: impl Fn() -> bool) {
    let until = Instant::now() + most;
    let mut left = most;
    while asleep() && !left.is_zero() {
        std::thread::park_timeout(left);
        left = until.saturating_duration_since(Instant::now());
    }
}
