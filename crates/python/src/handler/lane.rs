//! The interpreter on the threads of lanes.
//!
//! A thread that calls Python needs a thread state. Making one for every call takes 10 us; so the first call on a thread
//! makes one and keeps it until the thread ends, and later calls only take the GIL.
//!
//! Invariants: the GIL is held only during a call. After [`end_for_interpreter`], no call begins.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use pyo3::ffi;
use pyo3::prelude::*;

/// The interpreter is about to end.
static ENDING: AtomicBool = AtomicBool::new(false);
/// Calls into Python from threads of lanes.
static CALLS: AtomicUsize = AtomicUsize::new(0);

/// A thread state that stays with its thread.
struct KeptState {
    before: ffi::PyGILState_STATE,
    state: *mut ffi::PyThreadState,
}

impl KeptState {
    /// Makes a thread state for a thread that has none.
    #[expect(unsafe_code, reason = "only the C API makes thread states")]
    fn make() -> Option<KeptState> {
        // SAFETY: asks only whether this thread has a state.
        if unsafe { !ffi::PyGILState_GetThisThreadState().is_null() } {
            return None;
        }
        // SAFETY: the interpreter runs, because `ENDING` is not set and the module is loaded. The state is released in
        // `drop` on the same thread.
        unsafe {
            let before = ffi::PyGILState_Ensure();
            Some(KeptState { before, state: ffi::PyEval_SaveThread() })
        }
    }
}

impl Drop for KeptState {
    #[expect(unsafe_code, reason = "only the C API releases thread states")]
    fn drop(&mut self) {
        CALLS.fetch_add(1, Ordering::AcqRel);
        let _counted = Counted;
        if ENDING.load(Ordering::Acquire) || crate::fork::is_child() {
            // The interpreter frees all thread states itself.
            return;
        }
        // SAFETY: the state was made on this thread, and is not attached now.
        unsafe {
            ffi::PyEval_RestoreThread(self.state);
            ffi::PyGILState_Release(self.before);
        }
    }
}

thread_local! {
    static KEPT: RefCell<Option<KeptState>> = const { RefCell::new(None) };
}

/// Counts a call, also if it panics.
struct Counted;

impl Drop for Counted {
    fn drop(&mut self) {
        CALLS.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Runs work with the interpreter; `None` if the interpreter is ending.
pub(crate) fn attached<R>(work: impl FnOnce(Python<'_>) -> R) -> Option<R> {
    CALLS.fetch_add(1, Ordering::AcqRel);
    let counted = Counted;
    if ENDING.load(Ordering::Acquire) {
        return None;
    }
    KEPT.with(|kept| {
        let mut kept = kept.borrow_mut();
        if kept.is_none() {
            *kept = KeptState::make();
        }
    });
    let result = Python::try_attach(work);
    drop(counted);
    result
}

/// Whether the calling thread runs the interpreter that the process started with. Lanes belong to that one.
#[expect(unsafe_code, reason = "only the C API tells interpreters apart")]
pub(crate) fn is_main_interpreter(_: Python<'_>) -> bool {
    // SAFETY: the caller is attached to an interpreter.
    unsafe { ffi::PyInterpreterState_GetID(ffi::PyInterpreterState_Get()) == 0 }
}

/// From now on, no lane calls Python.
pub(crate) fn end_for_interpreter() {
    ENDING.store(true, Ordering::Release);
}

/// Waits until no lane is inside Python. Returns false if one still is after this time.
pub(crate) fn wait_for_calls(longest: Duration) -> bool {
    let begun = Instant::now();
    while CALLS.load(Ordering::Acquire) > 0 {
        if begun.elapsed() >= longest {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    true
}
