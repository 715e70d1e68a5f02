//! A pseudo-terminal with the program in it: tests press keys and read the screen.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::os::fd::AsFd as _;
use std::process::Child;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, Pty, open};
use rustix::termios::{LocalModes, tcgetattr};

use super::program::cache;

/// Maximum time of any wait: a machine that also runs other tests is slow.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Terminal {
    pty: Arc<Pty>,
    child: Child,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

/// The output so far.
struct Seen {
    parser: vt100::Parser,
    bytes: Vec<u8>,
    ended: bool,
}

impl Terminal {
    pub(crate) fn start(columns: u16, lines: u16, args: &[&str], variables: &[(&str, &str)]) -> Terminal {
        let (pty, other_end) = open().unwrap();
        pty.resize(Size::new(lines, columns)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_vramp")).args(args).env("TERM", "xterm-256color");
        for name in ["NO_COLOR", "CLICOLOR_FORCE", "COLORTERM", "TERM_PROGRAM"] {
            command = command.env_remove(name);
        }
        command = command.env("XDG_CACHE_HOME", cache()).envs(variables.iter().copied());
        let child = command.spawn(other_end).unwrap();
        let parser = vt100::Parser::new(NonZero::new(lines).unwrap(), NonZero::new(columns).unwrap(), 1000);
        let seen = Arc::new((Mutex::new(Seen { parser, bytes: Vec::new(), ended: false }), Condvar::new()));
        let pty = Arc::new(pty);
        let (from, into) = (Arc::clone(&pty), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // The read fails once the other end is closed; that is the end of the output.
            while let Ok(count @ 1..) = (&*from).read(&mut buffer) {
                let mut seen = into.0.lock().unwrap();
                seen.parser.process(&buffer[..count]);
                seen.bytes.extend(&buffer[..count]);
                into.1.notify_all();
            }
            into.0.lock().unwrap().ended = true;
            into.1.notify_all();
        });
        Terminal { pty, child, seen }
    }

    pub(crate) fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    pub(crate) fn resize(&self, columns: u16, lines: u16) {
        let mut seen = self.seen.0.lock().unwrap();
        seen.parser.screen_mut().set_size(NonZero::new(lines).unwrap(), NonZero::new(columns).unwrap());
        drop(seen);
        self.pty.resize(Size::new(lines, columns)).unwrap();
    }

    /// Waits until `is_so` returns a value for the screen.
    #[track_caller]
    pub(crate) fn wait<T>(&self, what: &str, is_so: impl Fn(&vt100::Screen) -> Option<T>) -> T {
        let begun = Instant::now();
        let mut seen = self.seen.0.lock().unwrap();
        loop {
            if let Some(found) = is_so(seen.parser.screen()) {
                return found;
            }
            let shown = || seen.parser.screen().contents();
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}; shown is\n{}", shown());
            assert!(!seen.ended, "it ended before {what}; shown is\n{}", shown());
            seen = self.seen.1.wait_timeout(seen, Duration::from_millis(100)).unwrap().0;
        }
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait(text, |screen| screen.contents().contains(text).then_some(()));
    }

    /// The number before a word, once it is on the screen.
    #[track_caller]
    pub(crate) fn number_before(&self, word: &str) -> u64 {
        self.wait(word, |screen| number_before(&screen.contents(), word))
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(std::process::Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Whether the terminal echoes and buffers lines, as it does before and after full-screen programs.
    pub(crate) fn is_cooked(&self) -> bool {
        let modes = tcgetattr(self.pty.as_fd()).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits for the program to end.
    #[track_caller]
    pub(crate) fn end(mut self) -> Ended {
        let begun = Instant::now();
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code().expect("it ended by itself");
            }
            let shown = || self.seen.0.lock().unwrap().parser.screen().contents();
            if begun.elapsed() > PATIENCE {
                self.child.kill().unwrap();
                panic!("it does not end; shown is\n{}", shown());
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        let cooked = self.is_cooked();
        let mut seen = self.seen.0.lock().unwrap();
        while !seen.ended {
            assert!(begun.elapsed() < PATIENCE, "its output does not end");
            seen = self.seen.1.wait_timeout(seen, Duration::from_millis(100)).unwrap().0;
        }
        let screen = seen.parser.screen();
        Ended {
            code,
            text: screen.contents(),
            bytes: String::from_utf8_lossy(&seen.bytes).into_owned(),
            restored: cooked && !screen.alternate_screen() && !screen.hide_cursor(),
        }
    }
}

/// Ends the program if a test fails.
impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    /// The screen after the end.
    pub(crate) text: String,
    /// All output.
    pub(crate) bytes: String,
    /// Whether the terminal is restored: echo, line mode, main screen and cursor.
    pub(crate) restored: bool,
}

/// The number before a word, such as 12 in `12 out`.
pub(crate) fn number_before(text: &str, word: &str) -> Option<u64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|found| *found == word)?;
    words[at.checked_sub(1)?].parse().ok()
}
