//! Child processes that end when vramp ends.
//!
//! A child is started from a thread that lives as long as vramp, in a process group of its own: a Ctrl-C in the terminal
//! reaches vramp only, which then ends its children in order. On Linux the kernel ends a child when vramp dies, even by
//! SIGKILL ([`death`]); that signal follows the thread that started the child, hence the lasting thread. Elsewhere a
//! child of a dead vramp finds its pipe closed and ends.
//!
//! Invariant: a dropped [`Process`] has ended and is reaped, and so are the processes that it started.

mod death;
mod log;
mod spawner;

pub(crate) use log::Log;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Interval at which the end of a process is checked.
const LOOK: Duration = Duration::from_millis(2);
/// How long the last words of a process that has ended may take to arrive.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A running child process.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    log: Log,
}

/// A process could not be started.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be started: {error}", program.display())]
pub struct NotStarted {
    pub program: PathBuf,
    pub error: io::Error,
}

impl Process {
    /// Starts a program. Its error output is read by [`Log`].
    pub(crate) fn start(
        program: &Path,
        arguments: Vec<OsString>,
        stdin: Stdio,
        stdout: Stdio,
    ) -> Result<Process, NotStarted> {
        let mut command = Command::new(program);
        command.args(arguments).stdin(stdin).stdout(stdout).stderr(Stdio::piped());
        death::with_parent(&mut command);
        let mut child = spawner::spawn(command).map_err(|error| NotStarted { program: program.to_owned(), error })?;
        let log = child.stderr.take().map(Log::follow).unwrap_or_default();
        Ok(Process { child, log })
    }

    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The standard output, if it is a pipe that was not taken before.
    pub(crate) fn take_stdout(&mut self) -> Option<std::process::ChildStdout> {
        self.child.stdout.take()
    }

    /// The exit status, if the process has ended.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Waits for the end of the process; `None` if `limit` passes first.
    pub(crate) fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(status) = self.ended() {
                self.log.wait(LAST_WORDS);
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(LOOK);
        }
    }

    /// The processor time that the process has used, in ticks of the system; `None` if the system does not tell. A
    /// process whose time grows makes progress.
    pub(crate) fn processor_ticks(&self) -> Option<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.id())).ok()?;
        // The name of the program, in parentheses, may contain spaces.
        let fields = stat.rsplit_once(')')?.1;
        let mut times = fields.split_whitespace().skip(11).map_while(|field| field.parse::<u64>().ok());
        Some(times.next()? + times.next()?)
    }

    /// Ends the process and the processes that it started, at once.
    pub(crate) fn kill(&mut self) {
        death::kill_group(&self.child);
        // Fails only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended().is_none() {
            self.kill();
        }
    }
}

/// The exit status of a process in words.
pub(crate) fn ending(status: ExitStatus) -> String {
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return format!("was ended by signal {signal}");
    }
    match status.code() {
        Some(code) => format!("ended with exit code {code}"),
        None => "ended without an exit code".to_owned(),
    }
}
