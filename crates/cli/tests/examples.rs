//! The example that `vramp inspect` shows for a handler runs as it is, on the CPU and on the device.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::path::{Path, PathBuf};

use crate::program::{self, dir, ends_with, vramp_in};
use vramp::plan::Space;
use vramp::plan::catalog::Entry;

/// A directory with the files that examples name.
fn with_files(name: &str) -> PathBuf {
    let dir = dir(name);
    std::fs::create_dir_all(dir.join("photos")).unwrap();
    for pipeline in [
        "pattern kind=disc size=48x32 frames=1 label=false ! png path=logo.png",
        "pattern kind=bars size=64x48 frames=1 ! png path=photo.png",
        "pattern kind=disc size=64x48 frames=1 ! png path=me.png",
        "pattern kind=gradient size=64x48 frames=2 ! jpeg path=photos/%02d.jpg",
        "pattern size=64x48 frames=3 ! y4m path=clip.y4m",
        "pattern size=640x480 frames=2 ! raw path=clip.rgba",
        "pattern size=64x48 fps=2 frames=24 ! video path=clip.mp4 preset=ultrafast",
    ] {
        ends_with(0, vramp_in(&dir, &["run", pipeline, "--cpu", "-q"]));
    }
    std::fs::write(dir.join("selfie.onnx"), vramp::model::shipped::SELFIE).unwrap();
    let corner = |i: u32| format!("{} {} {}\n", i & 1, (i >> 1) & 1, i >> 2);
    let cube: String = (0..8).map(corner).collect();
    std::fs::write(dir.join("film.cube"), format!("LUT_3D_SIZE 2\n{cube}")).unwrap();
    dir
}

/// Whether the example runs here: that of `terminal` needs a terminal and is in `top.rs`, that of `window` needs a display
/// and is in `window.rs`, those of `app` need a program, and that of `camera` needs a camera.
fn runs(entry: &Entry) -> bool {
    vramp::registry().runs(entry) && !["terminal", "window", "app", "camera"].contains(&entry.name)
}

fn run(dir: &Path, entry: &Entry, side: &str) {
    let run = vramp_in(dir, &["run", entry.example, side, "--frames", "2", "--json", "-q"]);
    assert_eq!(run.code, 0, "{}: {}\n{}", entry.name, entry.example, run.err);
    let report = program::json(&run);
    assert!(report["frames_in"].as_u64() >= Some(1), "{}: {report}", entry.name);
    assert_eq!(report["memory"]["leaked"], 0, "{}: {report}", entry.name);
}

#[test]
fn every_example_runs_on_the_cpu() {
    let dir = with_files("every_example_runs_on_the_cpu");
    let registry = vramp::registry();
    let catalog = registry.catalog();
    let on_cpu = catalog.entries().filter(|entry| runs(entry) && entry.offers(Space::Cpu) && entry.transfer.is_none());
    let ran = on_cpu.map(|entry| run(&dir, entry, "--cpu")).count();
    assert!(ran > 40, "only {ran}");
}

#[test]
fn every_example_runs_on_the_device() {
    let dir = with_files("every_example_runs_on_the_device");
    let registry = vramp::registry();
    let catalog = registry.catalog();
    let ran = catalog.entries().filter(|entry| runs(entry)).map(|entry| run(&dir, entry, "--gpu")).count();
    assert!(ran > 40, "only {ran}");
}
