//! What makes a child process end with vramp: a process group, and on Linux the signal that the kernel sends when the
//! parent dies.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "code that runs in the child before its program starts"))]

use std::process::{Child, Command};

/// Puts the process into a group of its own, and lets it die with this process.
pub(super) fn with_parent(command: &mut Command) {
    #[cfg(unix)]
    {
        use std::os::unix::process::CommandExt;
        command.process_group(0);
        #[cfg(target_os = "linux")]
        {
            let parent = rustix::process::getpid();
            // SAFETY: between fork and exec only calls that take no lock and allocate nothing are allowed. These are two
            // system calls and a comparison; an error is a number, without an allocation.
            unsafe {
                command.pre_exec(move || {
                    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
                    // The parent may have died before the call above.
                    if rustix::process::getppid() == Some(parent) {
                        Ok(())
                    } else {
                        Err(rustix::io::Errno::SRCH.into())
                    }
                });
            }
        }
    }
    #[cfg(not(unix))]
    let _ = command;
}

/// Ends every process of the child's group.
pub(super) fn kill_group(child: &Child) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        // Fails only if the group has ended already.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    #[cfg(not(unix))]
    let _ = child;
}
