//! Forked processes: threads and devices exist only in the parent, so that a child must not use them.
//!
//! A process that forks before it has used vramp, such as a server that forks workers, is not affected.

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use crate::errors::raise;

/// Whether this process has started threads or opened a device.
static USED: AtomicBool = AtomicBool::new(false);
/// Whether this process was forked from a process that had.
static IS_CHILD: AtomicBool = AtomicBool::new(false);

pub(crate) fn is_child() -> bool {
    IS_CHILD.load(Ordering::Relaxed)
}

/// Called in the child after a fork.
pub(crate) fn after_fork_in_child() {
    if USED.load(Ordering::Relaxed) {
        IS_CHILD.store(true, Ordering::Relaxed);
    }
}

/// Fails in a child whose parent had used vramp.
pub(crate) fn check(py: Python<'_>) -> PyResult<()> {
    if is_child() {
        return Err(raise(
            py,
            "ForkError",
            "this process was forked after vramp had started threads, which exist only in the parent; start workers \
             with the method `spawn` (multiprocessing.set_start_method(\"spawn\")), or fork before the first use",
        ));
    }
    USED.store(true, Ordering::Relaxed);
    Ok(())
}
