//! `vramp run` as users and programs call it: results, streams and exit codes.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::program::{self, command, dir, ends_with, file, json, vramp, vramp_fed, vramp_in, vramp_piped};
use serde_json::Value;

const SMALL: &str = "pattern size=64x48 frames=40 ! blur ! null";
const DEMO: &str = "pattern kind=ball size=64x48 frames=60 ! markers ! waveform ! fps ! ";

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[track_caller]
fn has(value: &Value, wanted: &[&str]) {
    for key in wanted {
        assert!(value.get(key).is_some(), "{key} is missing in {value}");
    }
}

const COUNTERS: [&str; 14] = [
    "uploads",
    "downloads",
    "transfer_bytes",
    "dispatches",
    "passes",
    "submits",
    "bind_groups",
    "gpu_allocs",
    "heap_allocs",
    "foreign_allocs",
    "frame_copies",
    "compiles_after_first_frame",
    "replans",
    "max_in_flight",
];

#[test]
fn json_has_the_keys_of_the_manual_on_both_sides() {
    for (side, backend) in [("--cpu", "cpu"), ("--gpu", "vulkan")] {
        let run = ends_with(0, vramp(&["run", SMALL, side, "--json"]));
        assert_eq!(run.out.lines().count(), 1, "nothing else on standard output");
        let report = json(&run);
        assert_eq!(report["backend"], backend);
        assert!(report["device"].is_string());
        for key in ["frames", "frames_in", "frames_out", "filtered", "failed", "in_flight"] {
            assert!(report[key].is_u64(), "{key} in {report}");
        }
        for key in ["seconds", "fps"] {
            assert!(report[key].as_f64().unwrap() > 0.0, "{key}");
        }
        has(&report["frame_ms"], &["p50", "p99", "max"]);
        has(&report["latency_ms"], &["p50", "p99"]);
        assert!(report["frame_ms"]["p50"].is_f64());
        for key in COUNTERS {
            assert!(report["counters"][key].is_u64(), "counters.{key}");
            assert!(report["steady"][key].is_number(), "steady.{key}");
        }
        assert_eq!(keys(&report["dropped"]).len(), 5);
        has(&report["dropped"], &["link_full", "late", "error", "device_lost", "stopped"]);
        has(&report["memory"], &["pool_bytes", "pool_peak_bytes", "live_bytes", "leaked", "leaks"]);
        has(&report["memory"], &["hits", "misses", "trimmed", "waits", "ring_bytes", "cpu_budget_bytes"]);
        has(&report["groups"][0], &["id", "handlers", "p50_us"]);
        has(&report["placement"], &["gpu_handlers", "cpu_handlers", "gpu_frames", "cpu_frames", "device_losses"]);
        has(&report["units"][0], &["name", "handlers", "space", "calls", "mean_us", "share"]);
        let handlers = report["handlers"].as_array().unwrap();
        assert_eq!(handlers.iter().map(|h| h["name"].as_str().unwrap()).collect::<Vec<_>>().len(), 3);
        has(&handlers[0], &["name", "calls", "errors", "p50_us"]);
        has(&report["links"][0], &["from", "to", "sent", "taken", "dropped", "queued", "repeats"]);
        assert_eq!(report["frames"], 40);
        assert_eq!(report["memory"]["leaked"], 0);
        let dispatches = report["counters"]["dispatches"].as_u64().unwrap();
        assert_eq!(dispatches > 0, side == "--gpu", "{dispatches} dispatches with {side}");
    }
}

#[track_caller]
fn is_conserved(report: &Value) {
    let count = |value: &Value| value.as_u64().unwrap();
    let dropped: u64 = report["dropped"].as_object().unwrap().values().map(count).sum();
    let gone = ["frames_out", "filtered", "failed", "in_flight"].iter().map(|key| count(&report[key])).sum::<u64>();
    assert_eq!(count(&report["frames_in"]), gone + dropped, "{report}");
    for link in report["links"].as_array().unwrap() {
        let sum: u64 = ["taken", "dropped", "queued"].iter().map(|key| count(&link[key])).sum();
        assert_eq!(count(&link["sent"]), sum, "{link}");
    }
}

#[test]
fn every_frame_is_accounted_for() {
    for pipeline in [
        SMALL,
        "pattern size=16x16 frames=30 ! every n=4 ! null",
        "pattern size=16x16 frames=30 ! delay frames=5 ! null",
        "pattern size=16x16 frames=300 !{latest} blur ! null",
    ] {
        for side in ["--cpu", "--gpu"] {
            is_conserved(&json(&ends_with(0, vramp(&["run", pipeline, side, "--json"]))));
        }
    }
}

#[test]
fn frames_and_seconds_end_a_run() {
    let report = json(&ends_with(0, vramp(&["run", "pattern size=16x16 ! null", "--cpu", "--frames", "7", "--json"])));
    assert_eq!((&report["frames"], &report["frames_in"]), (&Value::from(7), &Value::from(7)));
    let start = Instant::now();
    let args = ["run", "pattern size=16x16 ! null", "--cpu", "--seconds", "0.3", "--fps", "20", "--json"];
    let report = json(&ends_with(0, vramp(&args)));
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    let frames = report["frames"].as_u64().unwrap();
    assert!((3..=8).contains(&frames), "{frames} frames in 0.3 s at 20 fps");
    is_conserved(&report);
}

#[test]
fn a_run_prints_the_plan_and_a_summary_and_quiet_is_quiet() {
    let run = ends_with(0, vramp(&["run", SMALL, "--cpu"]));
    assert_eq!(run.out, "");
    assert!(run.err.starts_with("plan: 3 handlers on the cpu"), "{}", run.err);
    assert!(run.err.contains("40 frames in ") && run.err.contains("none dropped"), "{}", run.err);
    assert!(!run.err.contains('\x1b') && !run.err.contains('\r'), "a pipe gets no live line");
    let run = ends_with(0, vramp(&["run", SMALL, "--gpu", "-q"]));
    assert_eq!((run.out.as_str(), run.err.as_str()), ("", ""), "nothing at all, not even from drivers");
    let run = ends_with(0, vramp(&["run", SMALL, "--cpu", "-v"]));
    assert!(run.err.contains("Negotiated: cpu (no transfer)") && run.err.contains("lanes "), "{}", run.err);
    let paced = ["run", "pattern size=16x16 ! null", "--seconds", "1.5", "--cpu", "--fps", "30", "-v"];
    let run = ends_with(0, vramp(&paced));
    let progress: Vec<&str> = run.err.lines().filter(|line| line.starts_with("   1 s  ")).collect();
    assert_eq!(progress.len(), 1, "{}", run.err);
    assert!(progress[0].contains(" fps  cpu pool: ") && progress[0].ends_with(" misses/s"), "{progress:?}");
}

#[test]
fn a_failing_handler_ends_with_one_and_still_reports() {
    let dir = dir("a_failing_handler");
    let out = dir.join("one.png").to_str().unwrap().to_owned();
    let pipeline = format!("pattern size=16x16 frames=5 ! png path={out}");
    let run = ends_with(1, vramp(&["run", &pipeline, "--cpu", "--json"]));
    assert!(run.err.contains("error: png0, frame 1: "), "{}", run.err);
    assert_eq!(json(&run)["failed"], 1);
    assert!(std::path::Path::new(&out).exists(), "the first picture is whole");
    let skipping = format!("pattern size=16x16 frames=5 ! png path={out} on-error=skip");
    let run = ends_with(0, vramp(&["run", &skipping, "--cpu", "--json"]));
    assert_eq!(run.err.matches("warning: png0 failed on frame 1").count(), 1, "reported once: {}", run.err);
    assert_eq!(json(&run)["failed"], 4);
}

#[test]
fn files_that_cannot_be_read_or_written_end_with_one() {
    let dir = dir("files_that_cannot_be");
    let header = "YUV4MPEG2 W16 H16 F30:1 Ip A1:1 C420jpeg\n";
    let whole = format!("{header}FRAME\n{}", "x".repeat(16 * 16 * 3 / 2));
    file(&dir, "empty.y4m", "");
    file(&dir, "whole.y4m", &whole);
    file(&dir, "short.y4m", format!("{whole}FRAME\nxxx"));
    file(&dir, "wrong.y4m", "RIFF");
    for (pipeline, word) in [
        ("y4m path=missing.y4m ! null", "missing.y4m"),
        ("y4m path=empty.y4m ! null", "empty.y4m"),
        ("y4m path=wrong.y4m ! null", "wrong.y4m"),
        ("y4m path=short.y4m ! null", "short.y4m"),
        ("image path=missing.png ! null", "missing.png"),
        ("pattern size=16x16 frames=2 ! y4m path=no/such/out.y4m", "no/such"),
        ("pattern size=16x16 frames=2 ! png path=no/such/%d.png", "no/such"),
        ("pattern size=16x16 frames=2 ! raw path=.", "directory"),
    ] {
        let run = ends_with(1, vramp_in(&dir, &["run", pipeline, "--cpu"]));
        assert!(run.err.contains("error: ") && run.err.contains(word), "{pipeline}: {}", run.err);
        assert!(!run.err.contains("panick"), "{}", run.err);
    }
    ends_with(0, vramp_in(&dir, &["run", "y4m path=whole.y4m ! null", "--cpu"]));
}

#[test]
fn a_wrong_command_line_or_text_ends_with_two() {
    for args in [
        &["run"][..],
        &["run", "pattern ! blru ! null"],
        &["run", SMALL, "--cpu", "--gpu"],
        &["run", SMALL, "--cpu", "--backend", "vulkan"],
        &["run", SMALL, "--frames", "0"],
        &["run", SMALL, "--seconds", "-1"],
        &["run", SMALL, "--budget", "uploads"],
        &["run", SMALL, "--budget", "speed=1"],
        &["run", SMALL, "--place", "unknown=cpu"],
        &["run", "pattern frames=1 ! y4m path=-", "--json"],
        &["run", "pattern name=a frames=1 ! y4m path=-; a. ! raw path=-"],
    ] {
        let run = ends_with(2, vramp(args));
        assert_eq!(run.out, "", "{args:?}");
        assert!(run.err.contains("error"), "{args:?}: {}", run.err);
    }
    let run = ends_with(2, vramp(&["run", "pattern frames=1 ! y4m path=-", "--json"]));
    assert!(run.err.contains("y4m0 writes frames to standard output"), "{}", run.err);
    let run = ends_with(2, vramp_fed(&["run", "-"], b"y4m path=- ! null"));
    assert!(run.err.contains("standard input"), "{}", run.err);
}

#[test]
fn what_cannot_be_planned_here_ends_with_three() {
    let none = |args: &[&str]| {
        let mut command = command(args);
        command.env("VK_DRIVER_FILES", "/none.json").env("__EGL_VENDOR_LIBRARY_FILENAMES", "/none.json");
        program::finish(command)
    };
    let run = ends_with(3, none(&["run", SMALL, "--gpu"]));
    assert!(run.err.contains("install a driver"), "{}", run.err);
    let run = ends_with(0, none(&["run", SMALL, "--json"]));
    assert_eq!(json(&run)["backend"], "cpu", "without a device everything runs on the cpu");
    for args in [
        &["run", "pattern ! upload ! blur ! null", "--cpu"][..],
        &["run", "pattern ! window"],
        &["run", "pattern size=16x16 frames=1 ! png path=x.png", "--place", "png0=gpu"],
        &["run", "pattern name=a ! blur ! null", "--strict", "--place", "a=cpu", "--place", "blur0=gpu"],
        &["run", SMALL, "--device", "no such card"],
        &["run", SMALL, "--device", "99"],
        &["run", SMALL, "--backend", "metal"],
    ] {
        let run = ends_with(3, vramp(args));
        assert!(run.out.is_empty() && run.err.contains("error: "), "{args:?}: {}", run.err);
    }
}

#[test]
fn an_adapter_can_be_named_in_every_way() {
    for wish in [&["--backend", "vulkan"][..], &["--device", "0"], &["--device", "LLVMPIPE"]] {
        let args = [&["run", SMALL, "--gpu", "--json"], wish].concat();
        assert_eq!(json(&ends_with(0, vramp(&args)))["backend"], "vulkan", "{wish:?}");
    }
}

#[test]
fn a_budget_that_is_kept_is_silent_and_a_broken_one_is_named() {
    let tight = "uploads=0,downloads=0,dispatches=1,passes=1,submits=1,allocs=0,bind_groups=0,drops=0";
    let demo = |sink: &str| format!("{DEMO}{sink}");
    let run = ends_with(0, vramp(&["run", &demo("null"), "--gpu", "--budget", tight]));
    assert!(!run.err.contains("budget"), "{}", run.err);
    ends_with(0, vramp(&["run", &demo("null"), "--cpu", "--budget", "allocs=0,transfers=0,foreign_allocs=0"]));
    let dir = dir("a_budget_that_is_kept");
    let png = demo("png path=out-%02d.png");
    ends_with(0, vramp_in(&dir, &["run", &png, "--gpu", "--budget", "downloads=1,uploads=0,submits=1"]));
    let run = ends_with(4, vramp_in(&dir, &["run", &png, "--gpu", "--budget", "transfers=0", "--budget", "submits=1"]));
    assert!(run.err.contains("error: budget exceeded: transfers 1 per frame, at most 0 allowed (over "), "{}", run.err);
    assert!(!run.err.contains("submits"), "{}", run.err);
    let run = ends_with(4, vramp(&["run", &demo("null"), "--gpu", "--budget", "submits=0.5", "--json"]));
    assert_eq!(json(&run)["frames"], 60, "the report is still printed");
}

#[test]
fn a_run_without_a_steady_state_is_judged_as_a_whole() {
    let one = ["run", "pattern size=16x16 frames=1 ! null", "--cpu", "--budget"];
    let run = ends_with(0, vramp(&[&one[..], &["uploads=0"]].concat()));
    assert!(run.err.contains("too few for a steady state"), "{}", run.err);
}

#[test]
fn frames_go_through_pipes_unchanged() {
    let (width, height, frames) = (32, 16, 5);
    let mut input = format!("YUV4MPEG2 W{width} H{height} F30:1 Ip A1:1 C420jpeg XCOLORRANGE=LIMITED\n").into_bytes();
    for frame in 0..frames {
        input.extend(b"FRAME\n");
        input.extend((0..width * height * 3 / 2).map(|at| (at * 7 + frame * 31) as u8));
    }
    let (code, out, err) = vramp_piped(&["run", "y4m path=- ! y4m path=-", "--cpu"], &input);
    assert_eq!(code, 0, "{err}");
    let body = |bytes: &[u8]| bytes[bytes.iter().position(|b| *b == b'\n').unwrap()..].to_vec();
    assert_eq!(body(&out), body(&input), "only the frames, and they are the same");
    let (code, out, err) = vramp_piped(&["run", "y4m path=- ! blur ! y4m path=-", "--cpu"], &input);
    assert_eq!(code, 0, "{err}");
    assert!(out.starts_with(b"YUV4MPEG2 W32 H16 "), "{:?}", String::from_utf8_lossy(&out[..40]));
    let (a, b) = (body(&out), body(&input));
    assert_eq!(a.len(), b.len());
    assert_ne!(a, b, "it was blurred");
    let again = vramp_piped(&["run", "y4m path=- ! blur ! y4m path=-", "--gpu", "-q"], &input);
    assert_eq!(again, (0, out, String::new()), "the gpu writes the same bytes");
}

#[test]
fn a_reader_that_stops_reading_frames_ends_with_one_and_words() {
    let mut command = command(&["run", "pattern size=320x240 ! raw path=-", "--cpu"]);
    let mut child = command.spawn().unwrap();
    let mut head = [0; 64];
    child.stdout.take().unwrap().read_exact(&mut head).unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    assert!(
        err.contains("error: raw0") && err.contains("the reader has closed the stream") && !err.contains("panick"),
        "{err}"
    );
}

/// Runs an endless pipeline, and sends it a signal once its sink has started.
#[cfg(unix)]
fn interrupted(args: &[&str], begun: &dyn Fn() -> bool, signal: &str) -> (i32, Duration, String, String) {
    let mut child = command(args).stdin(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    while !begun() {
        assert!(start.elapsed() < Duration::from_secs(20), "it did not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(200));
    let requested = Instant::now();
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
    let status = child.wait().unwrap();
    let took = requested.elapsed();
    let read = |from: &mut dyn std::io::Read| {
        let mut text = String::new();
        from.read_to_string(&mut text).unwrap();
        text
    };
    let out = read(&mut child.stdout.take().unwrap());
    let err = read(&mut child.stderr.take().unwrap());
    (status.code().expect("it ended by itself"), took, out, err)
}

#[test]
#[cfg(unix)]
fn ctrl_c_finishes_files_and_ends_with_130() {
    let dir = dir("ctrl_c_finishes_files");
    for (signal, side) in [("-INT", "--cpu"), ("-TERM", "--gpu")] {
        let out = dir.join(format!("out{signal}.y4m")).to_str().unwrap().to_owned();
        let pipeline = format!("pattern size=64x48 ! y4m path={out}");
        let begun = || std::fs::read_dir(&dir).unwrap().flatten().any(|e| e.path().to_string_lossy().contains(".part"));
        let (code, took, printed, err) = interrupted(&["run", &pipeline, side, "--json"], &begun, signal);
        assert_eq!(code, 130, "{err}");
        assert!(took < Duration::from_secs(1), "{took:?}");
        let report: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
        is_conserved(&report);
        let bytes = std::fs::read(&out).unwrap();
        let head = 1 + bytes.iter().position(|b| *b == b'\n').unwrap();
        let frame = 6 + 64 * 48 * 3 / 2;
        assert_eq!((bytes.len() - head) % frame, 0, "whole frames only");
        assert_eq!(((bytes.len() - head) / frame) as u64, report["frames_out"].as_u64().unwrap());
        let again = format!("y4m path={out} ! null");
        assert_eq!(json(&ends_with(0, vramp(&["run", &again, "--cpu", "--json"])))["frames"], report["frames_out"]);
    }
}

#[test]
#[cfg(unix)]
fn a_source_that_waits_for_input_does_not_keep_a_run_from_ending() {
    let y4m = b"YUV4MPEG2 W4 H4 F30:1 Cmono\nFRAME\n0123456789abcdefFRAME\n0123";
    for (pipeline, fed, ends) in [
        ("raw path=- size=4x4 format=gray8 ! null", &b"0123456789abcdef0123"[..], Some("--seconds=0.5")),
        ("y4m path=- ! null", y4m, Some("--seconds=0.5")),
        ("raw path=- size=4x4 format=gray8 ! null", b"0123456789abcdef0123", None),
        ("y4m path=- ! null", y4m, None),
    ] {
        let (reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(fed).unwrap();
        let args = ["run", pipeline, "--cpu", "--json"].into_iter().chain(ends).collect::<Vec<_>>();
        let child = command(&args).stdin(reader).spawn().unwrap();
        if ends.is_none() {
            // The run waits as soon as it has consumed all input.
            let begun = Instant::now();
            while rustix::io::ioctl_fionread(&writer).unwrap() > 0 {
                assert!(begun.elapsed() < Duration::from_secs(20), "it did not begin");
                std::thread::sleep(Duration::from_millis(10));
            }
            std::thread::sleep(Duration::from_millis(200));
            assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        }
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(if ends.is_some() { 0 } else { 130 }), "{err}");
        assert!(!err.contains("is abandoned"), "{err}");
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        is_conserved(&report);
        assert_eq!((&report["frames_out"], &report["memory"]["leaked"]), (&1.into(), &0.into()), "{report}");
        drop(writer);
    }
}

#[test]
fn memory_is_printed_before_and_after_and_a_budget_makes_frames_wait_or_ends_in_numbers() {
    let text = "pattern size=64x48 frames=30 ! blur !{lossless depth=3} invert ! null";
    let run = ends_with(0, vramp(&["run", text, "--cpu"]));
    assert!(run.err.contains("memory: ") && run.err.contains(" on the cpu for frames"), "{}", run.err);
    assert!(run.err.contains("memory: peak ") && run.err.contains(" on the cpu (planned "), "{}", run.err);

    let run = ends_with(0, vramp(&["run", text, "--cpu", "--json", "--memory", "40Ki"]));
    assert!(run.err.contains("frames will wait for memory"), "{}", run.err);
    let report = json(&run);
    assert_eq!((&report["frames_out"], &report["memory"]["cpu_budget_bytes"]), (&30.into(), &40_960.into()));
    assert!(report["memory"]["cpu_peak_bytes"].as_u64().unwrap() <= 40_960, "{report}");

    let run = ends_with(3, vramp(&["plan", text, "--cpu", "--memory", "cpu=9Ki"]));
    assert!(run.err.contains("of cpu memory, but the budget allows 9216"), "{}", run.err);
    let run = ends_with(2, vramp(&["run", text, "--memory", "much"]));
    assert!(run.err.contains("is not a unit of memory"), "{}", run.err);
}

#[test]
fn what_a_filter_cannot_keep_of_a_header_is_a_note_and_nothing_fails() {
    let from = dir("notes").join("from.y4m");
    let header = "YUV4MPEG2 W4 H4 F25:1 It A4:3 C444 Xhello\nFRAME\n";
    std::fs::write(&from, [header.as_bytes(), &[128; 48]].concat()).unwrap();
    let to = from.with_file_name("to.y4m");
    let text = format!("y4m path={} ! blur ! convert i444 ! y4m path={}", from.display(), to.display());
    let noted = "note: blur0 does not keep fields separate: interlacing is dropped";
    let run = ends_with(0, vramp(&["run", &text, "--cpu"]));
    assert!(run.err.lines().any(|line| line.starts_with(noted)), "{}", run.err);
    let written = std::fs::read(&to).unwrap();
    assert!(written.starts_with(b"YUV4MPEG2 W4 H4 F25:1 I? A4:3 C444 Xhello\nFRAME\n"), "{}", written.escape_ascii());
    let run = ends_with(0, vramp(&["run", &text, "--cpu", "-q"]));
    assert!(!run.err.contains("note:"), "{}", run.err);
    let run = ends_with(0, vramp(&["plan", &text, "--cpu"]));
    assert!(run.err.contains(noted) && !run.out.contains("note:"), "{}{}", run.out, run.err);
    let plan = json(&ends_with(0, vramp(&["plan", &text, "--cpu", "--json"])));
    assert_eq!(plan["notes"].as_array().unwrap().len(), 1, "{plan}");
}

#[test]
fn frames_of_a_program_are_refused_with_the_name_of_the_library_and_planned_all_the_same() {
    for (text, end) in [("app 64x48 ! null", "Pipeline::input"), ("pattern ! app", "Pipeline::output")] {
        for args in [&["run", text][..], &["run", text, "--cpu", "--frames", "1"], &["run", text, "--verify"]] {
            let run = ends_with(2, vramp(args));
            assert!(run.err.contains("app0") && run.err.contains(end), "{args:?}: {}", run.err);
            assert!(run.err.contains("crate `vramp`"), "{args:?}: {}", run.err);
        }
        let plan = ends_with(0, vramp(&["plan", text, "--cpu"]));
        assert!(plan.out.contains("app0"), "{}", plan.out);
    }
}
