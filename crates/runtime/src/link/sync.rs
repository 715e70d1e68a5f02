//! The standard library's synchronisation types, named so that a model checker can replace them.
//!
//! `tests/wake_signal_model.rs` compiles the same `wake_signal.rs` against loom's types.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicU8, AtomicU32};
pub(crate) use std::sync::{Arc, Mutex};
pub(crate) use std::thread::{Thread, current, yield_now};

use std::time::{Duration, Instant};

/// Maximum number of yields before a waiter sleeps. The other thread is often about to notify, and sleeping and waking
/// would take two context switches. Streaming over a link of depth 64 takes 0.46 us a frame without yields and 0.10 us
/// with them.
pub(crate) const YIELDS: u32 = 20;

/// How often a waiter looks before it yields, if waits have recently been short. About 2 us: a frame that a program pushes
/// in answer to the last frame comes within that time, and a system call would take as long.
pub(crate) const SPINS: u32 = 48;

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
