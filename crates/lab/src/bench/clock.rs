//! CPU time of this process.

use std::time::Duration;

/// The CPU time of all threads of this process so far, including threads that have ended. `None` if the system does not
/// report CPU time.
pub fn cpu_time() -> Option<Duration> {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        Some(Duration::new(u64::try_from(time.tv_sec).ok()?, u32::try_from(time.tv_nsec).ok()?))
    }
    #[cfg(not(unix))]
    None
}
