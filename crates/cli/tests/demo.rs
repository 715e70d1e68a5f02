//! `vramp demo`: a frame, a plan and a table, on any machine.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use crate::program::{command, dir, ends_with, finish, json, vramp_in};

#[test]
fn it_writes_a_picture_and_ends_with_the_plan_and_a_table() {
    let dir = dir("it_writes_a_picture");
    let run = ends_with(0, vramp_in(&dir, &["demo", "--seconds", "0.2"]));
    let picture = std::fs::read(dir.join("vramp-demo.png")).unwrap();
    assert!(picture.starts_with(b"\x89PNG") && picture.len() > 1000);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1, "nothing else is left");
    assert!(run.out.contains("pattern0 + markers0 + waveform0 + fps0"), "{}", run.out);
    let cells: Vec<Vec<&str>> = run.out.lines().map(|line| line.split_whitespace().collect()).collect();
    for (size, side) in [("640x480", "cpu"), ("640x480", "gpu"), ("1920x1080", "cpu"), ("1920x1080", "gpu")] {
        assert!(cells.iter().any(|row| row.len() == 11 && row[..2] == [size, side]), "{size} {side}:\n{}", run.out);
    }
    assert!(run.err.contains("640x480 on the CPU") && !run.err.contains("XDG"), "{}", run.err);
}

#[test]
fn without_a_driver_it_says_so_and_runs_on_the_cpu() {
    let dir = dir("without_a_driver");
    let mut command = command(&["demo", "--seconds", "0.1", "--output", "50%.png"]);
    command.env("VK_DRIVER_FILES", "/none.json").env("__EGL_VENDOR_LIBRARY_FILENAMES", "/none.json");
    let run = ends_with(
        0,
        finish({
            command.current_dir(&dir);
            command
        }),
    );
    assert!(run.err.contains("no graphics adapter") && run.err.contains("install"), "{}", run.err);
    assert!(!run.out.contains("gpu  "), "{}", run.out);
    assert!(dir.join("50%.png").exists());
}

#[test]
fn its_options_are_those_of_a_run() {
    let dir = dir("its_options");
    let demo = |more: &[&str]| vramp_in(&dir, &[&["demo", "--seconds", "0.1"], more].concat());
    let all = json(&ends_with(0, demo(&["--cpu", "--json", "-q"])));
    let places: Vec<&str> = all["runs"].as_array().unwrap().iter().map(|r| r["where"].as_str().unwrap()).collect();
    assert_eq!(places, ["cpu", "cpu"]);
    assert!(all["runs"][0]["report"]["frames"].as_u64().unwrap() > 0);
    ends_with(0, demo(&["--cpu", "--budget", "dispatches=0,drops=0", "-q"]));
    let run = ends_with(4, demo(&["--gpu", "--budget", "dispatches=0"]));
    assert!(run.err.contains("budget exceeded: dispatches 1 per frame"), "{}", run.err);
    ends_with(1, demo(&["--cpu", "--output", "no/such/place.png"]));
    ends_with(2, demo(&["--output", "."]));
    ends_with(3, demo(&["--device", "no such card"]));
}

#[test]
fn with_a_model_it_writes_a_picture_of_what_the_network_found_and_ends_by_itself_where_nothing_can_be_shown() {
    let dir = dir("with_a_model");
    // The folder of temporary files looks like a pattern, and has a quote in its name.
    let name = if cfg!(windows) { "with_a_model [x]" } else { "with_a_model [x]* \"?" };
    let temporary = crate::program::dir(name);
    let mut demo = command(&["demo", "--model", "--seconds", "0.5", "--cpu", "--output", "50%.png"]);
    demo.current_dir(&dir).env("TMPDIR", &temporary);
    let run = ends_with(0, finish(demo));
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "its files are removed");
    assert!(run.out.contains(" frames, ") && run.out.contains("the network took "), "{}", run.out);
    assert!(run.err.contains("50%.png shows a person"), "{}", run.err);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1, "nothing else is left");
    ends_with(0, vramp_in(&dir, &["run", "image path=50%.png ! raw path=both.rgba", "-q", "--cpu"]));
    let both = std::fs::read(dir.join("both.rgba")).unwrap();
    assert_eq!(both.len(), 768 * 384 * 4);
    let red = |x: usize, y: usize| both[(y * 768 + x) * 4];
    assert!(red(384 + 4, 4) < 20 && red(384 + 170, 100) > 235, "the mask: a corner, and the face");
    let report = json(&ends_with(0, vramp_in(&dir, &["demo", "--model", "--seconds", "0.3", "--json", "-q"])));
    assert!(report["frames"].as_u64().unwrap() > 0, "{report}");
    ends_with(2, vramp_in(&dir, &["demo", "--model", "--trace", "x.json"]));
    ends_with(1, vramp_in(&dir, &["demo", "--model", "--output", "no/such/place.png"]));
}
