//! `--trace FILE`: a timeline that is complete however the run ends, or a refusal before it starts.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::collections::BTreeMap;
use std::path::Path;

use crate::program::{command, dir, ends_with, file, json, vramp, vramp_in};
use serde_json::Value;

/// The events of a file. Asserts that each is valid and that the spans of a thread do not overlap.
#[track_caller]
fn events(path: &Path) -> Vec<Value> {
    let page: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let events = page["traceEvents"].as_array().unwrap().clone();
    let mut ends: BTreeMap<(u64, u64), f64> = BTreeMap::new();
    for event in events.iter().filter(|event| event["ph"] == "X") {
        let thread = (event["pid"].as_u64().unwrap(), event["tid"].as_u64().unwrap());
        let (begin, took) = (event["ts"].as_f64().unwrap(), event["dur"].as_f64().unwrap());
        let end = ends.entry(thread).or_default();
        // Times are in microseconds with three decimals: sums are rounded.
        assert!(took >= 0.0 && begin + 0.002 >= *end, "{event} begins before {end}");
        *end = begin + took;
    }
    events
}

fn spans(events: &[Value], cat: &str, handler: &str) -> Vec<u64> {
    let own = events.iter().filter(|event| event["ph"] == "X" && event["cat"] == cat);
    let own = own.filter(|event| event["name"].as_str().unwrap().split('+').any(|name| name == handler));
    own.map(|event| event["args"]["frame"].as_u64().unwrap()).collect()
}

fn left_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        dir.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_run_draws_every_call_and_the_report_says_how_it_was_timed() {
    let dir = dir("a_run_draws_every_call");
    for (side, timing) in [("--cpu", "cpu"), ("--gpu", "timestamps")] {
        let text = "pattern size=64x48 frames=30 ! blur ! invert ! null";
        let run = ends_with(0, vramp_in(&dir, &["run", text, side, "--json", "--trace", "run.json"]));
        let report = json(&run);
        assert!(report["timing"] == timing || report["timing"] == "fenced" && side == "--gpu", "{report}");
        assert_eq!(report["gpu_ms"]["p50"].is_f64(), side == "--gpu", "{report}");
        let events = events(&dir.join("run.json"));
        for handler in ["pattern0", "blur0", "invert0", "null0"] {
            assert_eq!(spans(&events, "lane", handler), (0..30).collect::<Vec<_>>(), "{side}: {handler}");
        }
        let mut on_device = spans(&events, "device", "blur0");
        on_device.dedup();
        let expected: Vec<u64> = if report["timing"] == "timestamps" { (0..30).collect() } else { Vec::new() };
        assert!(on_device == expected || report["timing"] == "fenced", "{on_device:?}");
        assert_eq!(left_in(&dir), ["run.json"]);
    }
}

#[test]
fn a_run_that_fails_leaves_a_whole_timeline() {
    let dir = dir("a_run_that_fails_leaves");
    let raw = file(&dir, "cut.raw", vec![7; 5 * 256 + 100]);
    let text = format!("raw path={raw} size=8x8 ! blur ! null");
    let run = ends_with(1, vramp_in(&dir, &["run", &text, "--cpu", "--trace", "run.json"]));
    assert!(run.err.contains("raw0"), "{}", run.err);
    assert_eq!(spans(&events(&dir.join("run.json")), "lane", "null0"), [0, 1, 2, 3, 4]);
    assert_eq!(left_in(&dir), ["cut.raw", "run.json"]);
}

#[test]
#[cfg(unix)]
fn ctrl_c_leaves_a_whole_timeline() {
    let dir = dir("ctrl_c_leaves_a_whole");
    let path = dir.join("run.json");
    let args = ["run", "pattern size=64x48 ! blur ! null", "--cpu", "--trace", path.to_str().unwrap()];
    let mut child = command(&args).spawn().unwrap();
    // The temporary file exists before anything runs; a second of progress shows that frames flow.
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut err = String::new();
    while !err.contains("fps") {
        assert!(std::io::BufRead::read_line(&mut lines, &mut err).unwrap() > 0, "it ended too early: {err}");
    }
    assert!(std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    std::io::Read::read_to_string(&mut lines, &mut err).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{err}");
    let drawn = spans(&events(&path), "lane", "null0");
    assert!(!drawn.is_empty() && drawn.is_sorted());
    assert_eq!(left_in(&dir), ["run.json"]);
}

#[test]
fn a_file_that_cannot_be_written_is_refused_before_anything_runs() {
    let dir = dir("a_file_that_cannot_be_written");
    let a_file = file(&dir, "a_file", "");
    for path in ["missing/run.json", ".", "-", &format!("{a_file}/run.json")] {
        let text = "pattern size=8x8 frames=2 ! png path=out-%d.png";
        let run = ends_with(2, vramp_in(&dir, &["run", text, "--cpu", "--trace", path]));
        assert!(run.err.contains("--trace"), "{path}: {}", run.err);
        ends_with(2, vramp_in(&dir, &["demo", "--cpu", "--trace", path]));
        assert_eq!(left_in(&dir), ["a_file"], "{path}");
    }
    let run = ends_with(2, vramp(&["run", "pattern frames=1 ! null", "--cpu", "--verify", "--trace", "x.json"]));
    assert!(run.err.contains("--verify"), "{}", run.err);
    let run = ends_with(3, vramp_in(&dir, &["run", "pattern ! upload ! null", "--cpu", "--trace", "run.json"]));
    assert_eq!(left_in(&dir), ["a_file"], "nothing is left of what never ran: {}", run.err);
}

#[cfg(unix)]
#[test]
fn a_link_and_a_pipe_are_written_to_and_stay_what_they_are() {
    let dir = dir("a_link_and_a_pipe");
    let (link, real) = (dir.join("link.json"), dir.join("real.json"));
    std::fs::write(&real, "old").unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let text = "pattern size=8x8 frames=2 ! null";
    ends_with(0, vramp(&["run", text, "--cpu", "--trace", link.to_str().unwrap()]));
    assert!(link.is_symlink() && real.is_file());
    assert!(!events(&real).is_empty());
    // A trace written to a pipe arrives at its reader.
    let run = ends_with(0, vramp(&["run", text, "--cpu", "--trace", "/dev/stdout"]));
    let drawn: Value = serde_json::from_str(&run.out).unwrap();
    assert!(drawn["traceEvents"].is_array() || drawn.is_array(), "{}", run.out);
}

#[test]
fn the_demo_draws_each_of_its_runs() {
    let dir = dir("the_demo_draws");
    ends_with(0, vramp_in(&dir, &["demo", "--cpu", "--seconds", "0.1", "-q", "--trace", "demo.json"]));
    let events = events(&dir.join("demo.json"));
    let runs: Vec<&str> = events
        .iter()
        .filter(|event| event["name"] == "process_name")
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(runs, ["640x480 on the cpu", "1920x1080 on the cpu"]);
    assert_eq!(left_in(&dir), ["demo.json", "vramp-demo.png"]);
}

#[test]
fn the_handler_that_makes_frames_late_is_named_with_its_time() {
    let text = "pattern size=320x240 frames=100 ! blur sigma=30 ! null";
    let run = ends_with(0, vramp(&["run", text, "--gpu", "--fps", "2000"]));
    assert!(run.err.contains("blur0 takes ") && run.err.contains(" ms of a 0.5 ms frame; frame "), "{}", run.err);
}
