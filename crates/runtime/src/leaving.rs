//! Ends a program in which a device still computes.
//!
//! Usual endings run the exit handlers of graphics drivers, which free what a kernel that never ends still uses. Mesa's
//! software driver was seen to crash there, so that a run that had reported its error ended with SIGSEGV.
#![cfg_attr(
    target_os = "linux",
    expect(unsafe_code, reason = "leaving without exit handlers is a call into the C library")
)]

use std::io::Write;

/// Ends the program with this exit code, without exit handlers. Standard output is flushed.
pub fn leave_at_once(code: u8) -> ! {
    // A reader that is gone needs no output.
    let _ = std::io::stdout().flush();
    #[cfg(target_os = "linux")]
    // SAFETY: `_exit` has no preconditions: it ends the process without running anything of it.
    unsafe {
        libc::_exit(code.into())
    }
    #[cfg(not(target_os = "linux"))]
    std::process::exit(code.into())
}
