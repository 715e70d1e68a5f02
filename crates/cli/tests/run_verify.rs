//! `vramp run --verify` as users and programs call it: comparisons, messages and refusals; nothing is written.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::path::Path;

use crate::program::{self, Run, command, dir, ends_with, json, vramp, vramp_fed, vramp_in};
use serde_json::Value;

const CHAIN: &str = "pattern kind=noise size=32x24 ! blur ! invert ! gamma 2 ! null";

fn without_adapters(args: &[&str]) -> Run {
    let mut command = command(args);
    command.env("VK_DRIVER_FILES", "/none.json").env("__EGL_VENDOR_LIBRARY_FILENAMES", "/none.json");
    program::finish(command)
}

fn verify(words: &[&str]) -> Run {
    vramp(&[&["run", "--verify"], words].concat())
}

/// The number of comparisons of a kind; asserts that all are equal.
#[track_caller]
fn equal(report: &Value, what: &str) -> usize {
    assert_eq!(report["verified"], true, "{report}");
    let checks = report["checks"].as_array().unwrap().iter().filter(|check| check["what"] == what);
    checks.inspect(|check| assert_eq!(check["result"], "equal", "{check}")).count()
}

#[test]
fn fused_and_unfused_and_both_sides_are_compared() {
    let run = ends_with(0, verify(&[CHAIN, "--json", "-q"]));
    assert_eq!((run.out.lines().count(), run.err.as_str()), (1, ""));
    let report = json(&run);
    assert_eq!(report["backend"], "vulkan");
    // A source and three filters, and one sink.
    assert_eq!(["fused-on-cpu", "gpu-and-cpu", "fused-on-gpu"].map(|what| equal(&report, what)), [1, 4, 1]);
    let fused = &report["checks"][0];
    assert_eq!((&fused["port"], &fused["frames"]), (&Value::from("null0.video"), &Value::from(8)));
    assert!(fused["made_by"].as_array().unwrap().len() > 1, "nothing was fused: {report}");
    let report = json(&ends_with(0, verify(&[CHAIN, "--gpu", "--frames", "3", "--json", "-q"])));
    assert_eq!(report["checks"][0]["frames"], 3);
}

#[test]
fn a_summary_has_a_line_for_each_kind_and_everything_with_v() {
    let run = ends_with(0, verify(&[CHAIN]));
    assert_eq!(run.out, "");
    let lines: Vec<&str> = run.err.lines().collect();
    assert!(lines[0].starts_with("device: "), "{}", run.err);
    assert_eq!(
        lines[1..],
        [
            "fused and unfused on the cpu: 1 output equal in up to 8 frames",
            "gpu and cpu: 4 outputs equal in up to 8 frames",
            "fused on the gpu and unfused on the cpu: 1 output equal in up to 8 frames",
            "verified: 6 comparisons, no difference",
        ]
    );
    let run = ends_with(0, verify(&[CHAIN, "-v"]));
    for handler in ["pattern0", "blur0", "invert0", "gamma0"] {
        assert!(run.err.contains(&format!("{handler}, gpu and cpu: 8 frames are equal")), "{}", run.err);
    }
    let run = ends_with(0, verify(&[CHAIN, "-q"]));
    assert_eq!((run.out.as_str(), run.err.as_str()), ("", ""));
    let own = "pattern size=32x24 ! wgsl code=\"fn pixel(c: vec4f) -> vec4f { return c; }\" ! contrast 3 ! null";
    let run = ends_with(0, verify(&[own]));
    assert!(
        run.err.contains("not compared: wgsl0 may be a level off"),
        "skipped comparisons are reported: {}",
        run.err
    );
}

#[test]
fn without_a_device_only_fused_and_unfused_are_compared_with_a_note() {
    for (run, why) in [
        (
            verify(&[CHAIN, "--cpu", "--json"]),
            "no device (--cpu opens none): only fused and unfused results on the CPU are compared",
        ),
        (without_adapters(&["run", CHAIN, "--verify", "--json"]), "install a driver"),
    ] {
        let run = ends_with(0, run);
        assert!(
            run.err.contains(why) && run.err.contains("only fused and unfused results on the CPU are compared"),
            "{}",
            run.err
        );
        let report = json(&run);
        assert_eq!(report["backend"], "cpu");
        assert_eq!(report["checks"].as_array().unwrap().len(), equal(&report, "fused-on-cpu"));
    }
}

fn files(dir: &Path) -> usize {
    std::fs::read_dir(dir).unwrap().count()
}

#[test]
fn no_sink_writes_anything() {
    let dir = dir("no_sink_writes_anything");
    let pipeline = "pattern size=32x24 name=p ! blur ! png path=out-%02d.png; p. ! y4m path=out.y4m; p. ! raw path=-";
    let run = ends_with(0, vramp_in(&dir, &["run", pipeline, "--verify"]));
    assert_eq!(run.out, "", "nor to standard output");
    assert!(run.err.contains("fused and unfused on the cpu: 3 outputs equal"), "{}", run.err);
    assert_eq!(files(&dir), 0);
    ends_with(0, vramp_in(&dir, &["run", "pattern size=32x24 frames=2 ! y4m path=in.y4m", "--cpu"]));
    let before = std::fs::read(dir.join("in.y4m")).unwrap();
    ends_with(0, vramp_in(&dir, &["run", "y4m path=in.y4m ! invert ! y4m path=in.y4m", "--verify", "--frames", "5"]));
    assert_eq!((files(&dir), std::fs::read(dir.join("in.y4m")).unwrap()), (1, before), "what was there is as it was");
}

#[test]
fn frames_are_read_from_standard_input_once() {
    let mut input = b"YUV4MPEG2 W16 H8 F30:1 Ip A1:1 C420jpeg\n".to_vec();
    for frame in 0..3 {
        input.extend(b"FRAME\n");
        input.extend((0..16 * 8 * 3 / 2).map(|at| (at * 7 + frame * 31) as u8));
    }
    let run = ends_with(0, vramp_fed(&["run", "y4m path=- ! blur ! invert ! null", "--verify", "--json"], &input));
    assert_eq!(json(&run)["checks"][0]["frames"], 3);
    let run = ends_with(1, vramp_fed(&["run", "y4m path=- ! null", "--verify", "--cpu"], &input[..40]));
    assert!(run.err.contains("error: y4m0: it ended before its first frame"), "{}", run.err);
}

#[test]
fn what_a_run_refuses_is_refused_with_the_same_words() {
    let (png, both) = ("pattern size=16x16 ! png path=x.png", "pattern name=a ! blur ! null");
    for (code, words) in [
        (2, &["pattern frames=1 ! y4m path=-", "--json"][..]),
        (2, &["pattern name=a frames=1 ! y4m path=-; a. ! raw path=-"]),
        (2, &["pattern ! blru ! null"]),
        (2, &[CHAIN, "--frames", "0"]),
        (2, &[CHAIN, "--place", "unknown=cpu"]),
        (3, &["pattern ! upload ! blur ! null", "--cpu"]),
        (3, &[png, "--place", "png0=gpu"]),
        (3, &[both, "--strict", "--place", "a=cpu", "--place", "blur0=gpu"]),
        (3, &[CHAIN, "--device", "no such card"]),
        (3, &[CHAIN, "--backend", "metal"]),
        (1, &["y4m path=missing.y4m ! null"]),
    ] {
        let refused = ends_with(code, verify(words));
        assert_eq!(refused.out, "", "{words:?}");
        let ran = ends_with(code, vramp(&[&["run"], words].concat()));
        let errors = |run: &Run| run.err.split_once("error").map(|(_, words)| words.to_owned());
        assert!(errors(&refused).is_some(), "{words:?}: {}", refused.err);
        assert_eq!(errors(&refused), errors(&ran), "{words:?}");
    }
    let run = ends_with(3, without_adapters(&["run", CHAIN, "--verify", "--gpu"]));
    assert!(run.out.is_empty() && run.err.contains("install a driver"), "{}", run.err);
}

#[test]
fn options_without_effect_on_a_verification_are_warned_about() {
    let run = ends_with(0, verify(&[CHAIN, "--cpu", "--seconds", "1", "--budget", "uploads=0"]));
    assert!(run.err.contains("warning: --seconds has no effect on a verification"), "{}", run.err);
    assert!(run.err.contains("warning: --budget has no effect on a verification"), "{}", run.err);
}

#[test]
fn commands_that_compare_nothing_refuse_it() {
    for command in [&["plan", CHAIN, "--verify"][..], &["demo", "--verify"]] {
        let run = ends_with(2, vramp(command));
        assert!(run.out.is_empty() && run.err.contains("use `vramp run PIPELINE --verify`"), "{}", run.err);
    }
}
