//! CPU time of this process.
//!
//! Owns the question to the system.
//! Does not subtract: whoever measures does.
//!
//! Always: it never goes back.

use std::time::Duration;

/// What all threads of this process have computed so far, those that have ended too; none where the system does not
/// tell it.
pub fn cpu_time() -> Option<Duration> {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
    }
    #[cfg(not(unix))]
    None
}
