//! A virtual screen with a window manager, and what a person does there: looks, types, resizes, closes.
//!
//! Each test has a screen of its own (Xvfb, openbox). Missing programs fail the tests; `cargo xtask test` installs them.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::program::{Run, command};

/// Only a hang waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const SCREEN: (u32, u32) = (1280, 1024);

pub(crate) struct Desktop {
    display: String,
    server: Child,
    manager: Child,
}

impl Desktop {
    pub(crate) fn start() -> Desktop {
        let mut server = Command::new("Xvfb")
            // A server that is reset when its last client leaves does not answer for a while.
            .args(["-displayfd", "1", "-screen", "0", "1280x1024x24", "-nolisten", "tcp", "-noreset"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("Xvfb is installed (package xvfb)");
        let mut number = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
        let display = format!(":{}", number.trim());
        let manager = Command::new("openbox")
            .env("DISPLAY", &display)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("openbox is installed");
        let desktop = Desktop { display, server, manager };
        // Windows that open before the manager is there are not decorated, and get no focus.
        eventually("the window manager starts", || {
            desktop.tool("xprop", &["-root", "_NET_SUPPORTING_WM_CHECK"]).filter(|answer| answer.contains("window id"))
        });
        desktop
    }

    /// Starts the program on this screen.
    pub(crate) fn vramp(&self, folder: &Path, args: &[&str]) -> Child {
        let mut command = command(args);
        command.current_dir(folder);
        self.shows(&mut command).spawn().unwrap()
    }

    /// Lets a command use this screen.
    pub(crate) fn shows<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.env("DISPLAY", &self.display)
    }

    /// The window with this title, when it is there.
    pub(crate) fn window(&self, title: &str) -> Window<'_> {
        let id = eventually(&format!("a window `{title}`"), || self.find(title));
        Window { desktop: self, id }
    }

    pub(crate) fn find(&self, title: &str) -> Option<String> {
        let found = self.tool("xdotool", &["search", "--onlyvisible", "--name", &format!("^{title}$")])?;
        found.lines().next().map(str::to_owned)
    }

    /// What a tool prints; `None` if it fails, for example because the window is gone.
    fn tool(&self, program: &str, args: &[&str]) -> Option<String> {
        let output = Command::new(program).args(args).env("DISPLAY", &self.display).stdin(Stdio::null()).output();
        let output = output.unwrap_or_else(|error| panic!("{program} is installed: {error}"));
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

impl Drop for Desktop {
    fn drop(&mut self) {
        for child in [&mut self.manager, &mut self.server] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

pub(crate) struct Window<'a> {
    desktop: &'a Desktop,
    id: String,
}

/// The pixels of a window, as red, green and blue.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Shot {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) pixels: Vec<[u8; 3]>,
}

impl Shot {
    pub(crate) fn at(&self, x: u32, y: u32) -> [u8; 3] {
        self.pixels[(y * self.width + x) as usize]
    }

    /// The pixels of a PNG file.
    pub(crate) fn of_png(path: &Path) -> Shot {
        let file = BufReader::new(std::fs::File::open(path).unwrap());
        let mut reader = png::Decoder::new(file).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let png::OutputInfo { width, height, .. } = reader.next_frame(&mut bytes).unwrap();
        let channels = bytes.len() / (width * height) as usize;
        let pixels = bytes.chunks(channels).map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
        Shot { width, height, pixels }
    }
}

impl std::fmt::Debug for Shot {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}, first pixel {:?}", self.width, self.height, self.pixels.first())
    }
}

impl Window<'_> {
    pub(crate) fn key(&self, key: &str) {
        self.focus();
        self.desktop.tool("xdotool", &["key", "--clearmodifiers", key]).expect("keys can be typed");
    }

    /// Makes the window manager give the window the focus, unless the window has it.
    ///
    /// Setting the focus without the window manager makes it move the focus meanwhile, and keys are lost.
    fn focus(&self) {
        let is_named =
            |question: &str| self.desktop.tool("xdotool", &[question]).is_some_and(|answer| answer.trim() == self.id);
        eventually("the focus", || {
            let has_it = is_named("getactivewindow") && is_named("getwindowfocus");
            if !has_it {
                self.desktop.tool("xdotool", &["windowactivate", &self.id]);
            }
            has_it.then_some(())
        });
    }

    pub(crate) fn title(&self) -> String {
        self.desktop.tool("xdotool", &["getwindowname", &self.id]).unwrap_or_default().trim().to_owned()
    }

    pub(crate) fn wait_for_title(&self, title: &str) {
        eventually(title, || (self.title() == title).then_some(()));
    }

    pub(crate) fn size(&self) -> (u32, u32) {
        let text = self.desktop.tool("xdotool", &["getwindowgeometry", "--shell", &self.id]).unwrap_or_default();
        let value = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)).and_then(|value| value.parse().ok()).unwrap_or(0)
        };
        (value("WIDTH="), value("HEIGHT="))
    }

    pub(crate) fn wait_for_size(&self, size: (u32, u32)) {
        eventually(&format!("{size:?}"), || (self.size() == size).then_some(()));
    }

    pub(crate) fn resize(&self, width: u32, height: u32) {
        self.desktop
            .tool("xdotool", &["windowsize", &self.id, &width.to_string(), &height.to_string()])
            .expect("the window is there");
        self.wait_for_size((width, height));
    }

    /// What the close button does: the window manager asks the program to close the window.
    pub(crate) fn close(&self) {
        self.desktop.tool("wmctrl", &["-i", "-c", &self.id]).expect("the window is there");
    }

    pub(crate) fn is_open(&self) -> bool {
        self.desktop.tool("xdotool", &["getwindowname", &self.id]).is_some()
    }

    /// The pixels of the window.
    pub(crate) fn shot(&self) -> Shot {
        let output = Command::new("xwd")
            .args(["-silent", "-id", &self.id])
            .env("DISPLAY", &self.desktop.display)
            .output()
            .expect("xwd is installed (package x11-apps)");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        shot_of(&output.stdout)
    }

    /// A picture that fulfils a condition, when there is one.
    pub(crate) fn wait_for(&self, what: &str, is_so: impl Fn(&Shot) -> bool) -> Shot {
        eventually(what, || Some(self.shot()).filter(|shot| is_so(shot)))
    }
}

/// Reads a dump of X: a header of 32-bit numbers, a colour table, then rows of 32-bit pixels, blue first.
fn shot_of(dump: &[u8]) -> Shot {
    let number = |at: usize| u32::from_be_bytes(dump[4 * at..4 * at + 4].try_into().unwrap());
    let (header, width, height) = (number(0), number(4), number(5));
    assert_eq!((number(11), number(7)), (32, 0), "32 bits a pixel, low byte first");
    let (row_bytes, colours) = (number(12) as usize, number(19) as usize);
    let rows = dump[header as usize + 12 * colours..].chunks(row_bytes).take(height as usize);
    let pixels = rows.flat_map(|row| row[..4 * width as usize].chunks(4).map(|p| [p[2], p[1], p[0]])).collect();
    Shot { width, height, pixels }
}

/// Asks again until there is an answer.
#[track_caller]
pub(crate) fn eventually<R>(what: &str, mut ask: impl FnMut() -> Option<R>) -> R {
    let begun = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: not within {} s", PATIENCE.as_secs());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Waits for the end of the program, and returns what it printed. A program that does not end is killed.
#[track_caller]
pub(crate) fn ended(child: Child) -> Run {
    let id = child.id();
    let (sender, receiver) = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || {
        let output = child.wait_with_output().unwrap();
        // A program that was killed is not waited for here.
        let _ = sender.send(());
        output
    });
    let has_ended = receiver.recv_timeout(PATIENCE).is_ok();
    if !has_ended {
        Command::new("kill").args(["-9", &id.to_string()]).status().unwrap();
    }
    let output = waiter.join().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    let run = Run { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) };
    assert!(has_ended, "the program did not end within {} s\n{}", PATIENCE.as_secs(), run.err);
    run
}
