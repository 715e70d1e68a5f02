//! A real terminal with the program in it: keys go in, and what a screen would show comes out.

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

/// How long anything is waited for: a machine that runs other tests too is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// The program in a terminal.
pub(crate) struct Terminal {
    pty: Arc<Pty>,
    child: Child,
    seen: Arc<(Mutex<Seen>, Condvar)>,
}

/// What came out of it.
struct Seen {
    parser: vt100::Parser,
    bytes: Vec<u8>,
    ended: bool,
}

impl Terminal {
    /// Starts the program in a terminal of so many columns and lines.
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
            // The system says that it is over by an error, once nobody has the other end any more.
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

    /// Presses keys.
    pub(crate) fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Makes the window another size.
    pub(crate) fn resize(&self, columns: u16, lines: u16) {
        let mut seen = self.seen.0.lock().unwrap();
        seen.parser.screen_mut().set_size(NonZero::new(lines).unwrap(), NonZero::new(columns).unwrap());
        drop(seen);
        self.pty.resize(Size::new(lines, columns)).unwrap();
    }

    /// Waits until the screen is so, and gives what `is_so` found.
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

    /// Waits until a text is shown.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        self.wait(text, |screen| screen.contents().contains(text).then_some(()));
    }

    /// The number in front of a word, once it is shown.
    #[track_caller]
    pub(crate) fn number_before(&self, word: &str) -> u64 {
        self.wait(word, |screen| number_before(&screen.contents(), word))
    }

    /// Sends a signal to the program.
    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(std::process::Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Whether the terminal shows what is typed and passes on whole lines, as it does before and after programs.
    pub(crate) fn is_cooked(&self) -> bool {
        let modes = tcgetattr(self.pty.as_fd()).unwrap().local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Waits for the end.
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

/// A test that fails leaves nobody running behind it.
impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
    }
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    /// What the screen shows then.
    pub(crate) text: String,
    /// Everything that came out.
    pub(crate) bytes: String,
    /// Whether the terminal is what it was: echo, lines, its own screen and its cursor.
    pub(crate) restored: bool,
}

/// The number in front of a word, such as 12 in `12 out`.
pub(crate) fn number_before(text: &str, word: &str) -> Option<u64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let at = words.iter().position(|found| *found == word)?;
    words[at.checked_sub(1)?].parse().ok()
}
