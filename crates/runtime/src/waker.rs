//! [`Waker`]: wakes a handler's lane from any thread, and knows whether a thread may wait for that lane.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;

use crate::link::wake_signal::WakeSignal;

/// Wakes the lane of a handler from any thread, after the answer of
/// [`FrameHandler::is_ready`](crate::FrameHandler::is_ready) has changed.
#[derive(Debug, Clone)]
pub struct Waker {
    signal: WakeSignal,
    driver: Driver,
}

/// What runs the lanes of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Driven {
    /// The engine has not started.
    NotYet,
    /// The calling thread steps the engine, so that it would wait for itself.
    ByThisThread,
    ByOtherThreads,
}

/// What runs the lanes of one engine. Clones share the answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct Driver(Arc<DriverState>);

#[derive(Debug, Default)]
struct DriverState {
    /// Whether the lanes have threads of their own: the usual case, without a lock.
    threads: AtomicBool,
    /// The thread that steps the engine.
    stepped_by: Mutex<Option<ThreadId>>,
}

impl Driver {
    /// The calling thread steps the engine.
    pub(crate) fn step_here(&self) {
        *self.0.stepped_by.lock().unwrap_or_else(PoisonError::into_inner) = Some(std::thread::current().id());
    }

    /// The lanes have threads of their own.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn run_on_threads(&self) {
        self.0.threads.store(true, Ordering::Release);
    }
}

impl Waker {
    pub(crate) fn new(signal: &WakeSignal, driver: &Driver) -> Waker {
        Waker { signal: signal.clone(), driver: driver.clone() }
    }

    pub fn wake(&self) {
        self.signal.notify();
    }

    /// What runs the handler's lane. A thread must not wait for a lane that the thread itself steps.
    pub fn driven(&self) -> Driven {
        let DriverState { threads, stepped_by } = &*self.driver.0;
        if threads.load(Ordering::Acquire) {
            return Driven::ByOtherThreads;
        }
        match *stepped_by.lock().unwrap_or_else(PoisonError::into_inner) {
            None => Driven::NotYet,
            Some(thread) if thread == std::thread::current().id() => Driven::ByThisThread,
            Some(_) => Driven::ByOtherThreads,
        }
    }
}
