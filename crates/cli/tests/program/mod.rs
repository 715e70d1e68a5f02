//! Starts the real program and captures its output.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// The program with these arguments, empty standard input, and an environment without colour.
pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vramp"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    command.env("XDG_CACHE_HOME", cache());
    // Tests open no windows on the screen of a developer.
    command.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    command
}

/// A cache path at which nothing can be stored, since it is a file, so that tests do not share lists of adapters.
/// Drivers store their own files beside it.
pub(crate) fn cache() -> PathBuf {
    let cache = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("cache");
    std::fs::create_dir_all(&cache).unwrap();
    std::fs::write(cache.join("vramp"), "").unwrap();
    cache
}

pub(crate) fn vramp(args: &[&str]) -> Run {
    finish(command(args))
}

pub(crate) fn vramp_in(dir: &std::path::Path, args: &[&str]) -> Run {
    let mut command = command(args);
    command.current_dir(dir);
    finish(command)
}

pub(crate) fn vramp_fed(args: &[&str], input: &[u8]) -> Run {
    let mut command = command(args);
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    // A program that refuses its input may close it early.
    let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    said(output)
}

/// Like [`vramp_fed`], returning standard output as bytes.
pub(crate) fn vramp_piped(args: &[&str], input: &[u8]) -> (i32, Vec<u8>, String) {
    let mut command = command(args);
    command.stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeder = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    feeder.join().unwrap();
    (output.status.code().unwrap(), output.stdout, String::from_utf8(output.stderr).unwrap())
}

#[track_caller]
pub(crate) fn json(run: &Run) -> serde_json::Value {
    let line = run.out.lines().last().expect("something was printed");
    serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

pub(crate) fn finish(mut command: Command) -> Run {
    said(command.output().unwrap())
}

fn said(output: std::process::Output) -> Run {
    Run {
        code: output.status.code().expect("the program ended by itself"),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

pub(crate) fn dir(test: &str) -> PathBuf {
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&dir);
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

pub(crate) fn file(dir: &std::path::Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = dir.join(name);
    std::fs::write(&path, content).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Asserts the exit code; on failure shows the output.
#[track_caller]
pub(crate) fn ends_with(code: i32, run: Run) -> Run {
    assert_eq!(run.code, code, "\n--- out:\n{}\n--- err:\n{}", run.out, run.err);
    run
}
