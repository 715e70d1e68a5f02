//! Sources of a pipeline: text, files and standard input.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::program::{dir, ends_with, file, vramp, vramp_fed, vramp_in};

const TEXT: &str = "pattern size=640x480 ! invert ! null";

fn toml() -> String {
    ends_with(0, vramp(&["fmt", TEXT])).out
}

#[test]
fn text_files_and_standard_input_give_the_same_plan() {
    let dir = dir("text_files_and_standard_input");
    let direct = ends_with(0, vramp(&["plan", TEXT])).out;
    let commented = format!("# a comment\n{TEXT}\n");
    for (name, content) in [("p.vramp", commented.as_str()), ("p.txt", TEXT), ("p.toml", &toml()), ("plain", TEXT)] {
        let path = file(&dir, name, content);
        assert_eq!(ends_with(0, vramp(&["plan", &path])).out, direct, "{name}");
        assert_eq!(ends_with(0, vramp_fed(&["plan", "-"], content.as_bytes())).out, direct, "{name} on stdin");
    }
}

#[test]
fn an_existing_file_wins_over_text_and_a_directory_does_not() {
    let dir = dir("an_existing_file_wins");
    file(&dir, "pattern", TEXT);
    std::fs::create_dir(dir.join("null")).unwrap();
    ends_with(0, vramp_in(&dir, &["plan", "pattern"]));
    let run = ends_with(2, vramp_in(&dir, &["plan", "null"]));
    assert!(!run.err.contains("directory"), "{}", run.err);
    let run = ends_with(2, vramp_in(&dir, &["plan", "./null"]));
    assert!(run.err.contains("./null is a directory"), "{}", run.err);
}

#[test]
fn a_missing_file_is_named() {
    for name in ["missing.toml", "no/such/file", "missing.vramp", "my missing.toml", "missing.txt"] {
        let run = ends_with(2, vramp(&["plan", name]));
        assert_eq!(run.err, format!("error: {name}: no such file\n"));
    }
}

#[test]
fn text_that_is_not_utf8_is_refused_with_its_place() {
    let dir = dir("text_that_is_not_utf8");
    let bytes = b"# one line\npattern \xff! null\n";
    for run in [
        vramp(&["plan", &file(&dir, "bad.vramp", bytes)]),
        vramp(&["plan", &file(&dir, "bad.toml", bytes)]),
        vramp_fed(&["fmt", "-"], bytes),
    ] {
        let run = ends_with(2, run);
        assert!(run.err.contains("offset 19, in line 2"), "{}", run.err);
    }
}

#[test]
fn a_file_over_eight_mebibytes_is_refused_with_the_numbers() {
    let dir = dir("a_file_over_eight_mebibytes");
    let long = format!("{TEXT} #{}", " ".repeat(8 << 20));
    let run = ends_with(2, vramp(&["plan", &file(&dir, "long.vramp", &long)]));
    assert!(run.err.contains(&long.len().to_string()) && run.err.contains("8388608"), "{}", run.err);
    let run = ends_with(2, vramp_fed(&["plan", "-"], long.as_bytes()));
    assert!(run.err.contains("8388608"), "{}", run.err);
    let whole = &long[..8 << 20];
    ends_with(0, vramp(&["plan", &file(&dir, "whole.vramp", whole)]));
}

#[test]
fn mistakes_in_a_file_are_shown_with_its_name_and_line() {
    let dir = dir("mistakes_in_a_file");
    let path = file(&dir, "p.vramp", "pattern\n! blru\n! null\n");
    let run = ends_with(2, vramp(&["plan", &path]));
    assert!(run.err.contains("p.vramp:2:3"), "{}", run.err);
    let path = file(&dir, "p.toml", toml().replace("invert", "invret"));
    let run = ends_with(2, vramp(&["plan", &path]));
    assert!(run.err.contains("p.toml:") && run.err.contains("did you mean `invert`?"), "{}", run.err);
}

#[test]
fn an_empty_pipeline_is_a_mistake() {
    for run in [vramp(&["plan", ""]), vramp_fed(&["plan", "-"], b""), vramp_fed(&["fmt", "-"], b"# nothing\n")] {
        let run = ends_with(2, run);
        assert!(run.err.starts_with("error"), "{}", run.err);
    }
}

#[test]
fn ten_thousand_handlers_in_a_file_are_planned_and_printed() {
    let dir = dir("ten_thousand_handlers");
    let mut text = String::from("pattern size=64x64");
    for i in 0..9_998 {
        let _ = write!(text, "\n ! {}", if i % 7 == 0 { "blur" } else { "invert" });
    }
    text.push_str(" ! null\n");
    let path = file(&dir, "long.vramp", &text);
    let start = Instant::now();
    let run = ends_with(0, vramp(&["plan", &path, "--format", "text"]));
    assert!(run.out.contains("invert8568"), "the last invert is shown");
    // Tens of milliseconds in an optimised build; this bound only catches quadratic behaviour.
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn what_only_turns_out_to_be_wrong_later_is_shown_in_its_place_too() {
    for (pipeline, code, words, caret) in [
        ("image path=no.png ! null", 1, "error: image0: `no.png` cannot be read", "           ^^^^^^ from here"),
        (
            "pattern frames=1 ! lut path=no.cube ! null",
            1,
            "error: lut0: `no.cube` cannot be read",
            "                            ^^^^^^^ from here",
        ),
        (
            "pattern size=20x20 ! crop size=40x40 ! null",
            3,
            "error: crop0: 40x40 at 0,0 does not lie within the input, which is 20x20",
            "                     ^^^^ from here",
        ),
    ] {
        let run = ends_with(code, vramp(&["run", pipeline, "--cpu"]));
        assert!(run.err.starts_with(words) && run.err.contains(pipeline), "{}", run.err);
        assert!(run.err.contains(caret), "{}", run.err);
    }
    // A handler whose name happens to be a word of the message is not blamed.
    let run = ends_with(3, vramp(&["run", "pattern name=no frames=1 ! null", "--gpu", "--device", "nosuch"]));
    assert!(!run.err.contains("from here"), "{}", run.err);
    let run = ends_with(3, vramp(&["plan", "pattern size=20x20 ! crop size=40x40 ! null"]));
    assert!(run.err.contains("^^^^ from here"), "{}", run.err);
}
