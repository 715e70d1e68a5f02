//! Probing that depends on the process: its PATH and its standard input.
//!
//! Neither can be changed safely inside a running test, so each case starts this test program again with both set, runs
//! one test in it, and reads its output.
#![cfg(unix)]

use std::io::Write;
use std::process::{Command, Stdio};

use vramp_handlers::registry;
use vramp_handlers::source;
use vramp_plan::Format;
use vramp_plan::catalog::{Entry, SettingValues, SourceProbe, Value};

/// Set for the child process: the kind of source and its path.
const QUESTION: &str = "VRAMP_TEST_PROBE";
const FAKE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data");
const WITHOUT_TOOLS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src");

fn look(entry: &Entry, path: &str) -> String {
    let mut settings = SettingValues::default();
    settings.set("path", Value::Text(path.to_owned()));
    match registry().probe(entry, &settings) {
        Ok(found) => format!(
            "format {:?}, size {:?}, rate {:?}",
            found.format.map(Format::name),
            found.size.map(|s| s.to_string()),
            found.rate.map(|r| r.to_string())
        ),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn a_missing_source_is_an_error_whatever_the_process_has() {
    let Ok(question) = std::env::var(QUESTION) else {
        assert!(look(&source::video::ENTRY, "no-such-clip.mp4").starts_with("error: "));
        return;
    };
    let answer = match question.split_once(' ').expect("a kind and a path") {
        ("video", path) => look(&source::video::ENTRY, path),
        (_, path) => {
            // Twice: a plan may be made again, and standard input can be read only once.
            let first = look(&source::y4m::ENTRY, path);
            assert_eq!(look(&source::y4m::ENTRY, path), first);
            first
        }
    };
    println!("answer: {answer}");
}

/// The findings of a child process with this PATH and this standard input.
fn answer_to(question: &str, path: &str, input: &str) -> String {
    let mut child = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", "probe_process::a_missing_source_is_an_error_whatever_the_process_has", "--nocapture"])
        .env(QUESTION, question)
        .env("PATH", path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program starts again");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("the input is taken");
    let output = child.wait_with_output().expect("it ends");
    let text = String::from_utf8(output.stdout).expect("text");
    let answer = text.lines().find_map(|line| line.split_once("answer: ")).unwrap_or_else(|| panic!("{text}"));
    answer.1.to_owned()
}

#[test]
fn ffprobe_is_found_on_the_path_and_started() {
    assert_eq!(
        answer_to("video good.mp4", FAKE, ""),
        "format Some(\"i420\"), size Some(\"640x360\"), rate Some(\"30000/1001\")"
    );
}

#[test]
fn a_path_with_a_leading_dash_reaches_ffprobe_as_a_path() {
    assert!(answer_to("video -good.mp4", FAKE, "").contains("640x360"));
}

#[test]
fn what_ffprobe_complains_is_passed_on() {
    let answer = answer_to("video gone.mp4", FAKE, "");
    assert!(
        answer.starts_with("error: ffprobe could not read `gone.mp4`: file:gone.mp4: No such file or directory; "),
        "{answer}"
    );
}

#[test]
fn without_ffprobe_the_way_out_is_to_install_ffmpeg() {
    let answer = answer_to("video good.mp4", WITHOUT_TOOLS, "");
    assert!(answer.starts_with("error: ffprobe cannot be started"), "{answer}");
    assert!(answer.contains("install ffmpeg"), "{answer}");
}

#[test]
fn standard_input_is_read_once_and_remembered() {
    let answer = answer_to("y4m -", "", "YUV4MPEG2 W64 H48 F30:1 Cmono\nFRAME\nand so on");
    assert_eq!(answer, "format Some(\"gray8\"), size Some(\"64x48\"), rate Some(\"30\")");
}

#[test]
fn an_empty_standard_input_is_an_error_that_names_it() {
    let answer = answer_to("y4m -", "", "");
    assert!(answer.starts_with("error: standard input, byte 0: found ``, expected `YUV4MPEG2`"), "{answer}");
}
