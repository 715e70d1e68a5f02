//! What happens to the two streams when nobody, or a stubborn somebody, is at their other end.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

mod program;

use std::fs::OpenOptions;
use std::process::Stdio;

use program::{command, ends_with, finish};

const COMMANDS: [&[&str]; 6] = [
    &["plan", "pattern ! blur ! null"],
    &["inspect"],
    &["fmt", "pattern ! null"],
    &["completions", "bash"],
    &["devices"],
    &["run", "pattern size=16x16 frames=2 ! null", "--cpu", "--json"],
];

#[test]
fn a_reader_that_has_gone_ends_the_program_quietly() {
    for args in COMMANDS {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = command(args);
        command.stdout(writer);
        let run = ends_with(0, finish(command));
        assert!(!run.err.contains("panick") && !run.err.contains("error"), "{}", run.err);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error() {
    for args in COMMANDS {
        let mut command = command(args);
        command.stdout(OpenOptions::new().write(true).open("/dev/full").unwrap());
        let run = ends_with(1, finish(command));
        assert!(run.err.contains("error: standard output: "), "{}", run.err);
    }
}

#[test]
fn a_closed_standard_error_does_not_matter() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut wrong = command(&["plan", "pattern ! blru"]);
    wrong.stderr(writer.try_clone().unwrap());
    ends_with(2, finish(wrong));
    let mut right = command(&["plan", "pattern ! null", "--json", "-v"]);
    right.stderr(Stdio::from(writer));
    ends_with(0, finish(right));
}
