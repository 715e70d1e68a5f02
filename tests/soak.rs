//! Long runs: memory does not grow, no memory stays lent, and every frame is accounted for while sizes change.
//!
//! `cargo xtask long` runs a million frames on the CPU and a hundred thousand on the GPU; `cargo test` runs fewer.

use std::process::Command;

use vramp::Pipeline;
use vramp::plan::{RunOptions, Size, Space};
use vramp::registry;
use vramp::runtime::{Registry, Report, Worker};

use crate::shared::{CHANGING, Changing};

const SIZES: [Size; 4] = [
    Size { width: 64, height: 64 },
    Size { width: 31, height: 90 },
    Size { width: 1, height: 1 },
    Size { width: 100, height: 33 },
];

fn all_kinds(every: u64) -> Registry {
    let mut registry = registry();
    registry.add(&CHANGING, move |_| Ok(Worker::frames(Changing { sizes: &SIZES, every }))).expect("a good entry");
    registry
}

fn run(text: &str, every: u64, frames: u64, space: Space) -> Report {
    let registry = all_kinds(every);
    let spec = vramp::read(text, registry.catalog()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let graph = registry.check(&spec).unwrap_or_else(|error| panic!("{error}"));
    let builder =
        Pipeline::from_graph(graph.clone()).registry(&registry).options(RunOptions::new().only(space).frames(frames));
    let outcome = builder.build().unwrap_or_else(|error| panic!("{error}")).outcome();
    outcome.unwrap_or_else(|error| panic!("{error}")).into_result().unwrap_or_else(|error| panic!("{error}"))
}

/// The number of frames: `usual`, or `long` with `VRAMP_LONG`.
fn frames(usual: u64, long: u64) -> u64 {
    if std::env::var_os("VRAMP_LONG").is_some() { long } else { usual }
}

/// Whether this process runs only this test. If not, runs the test in a second process, because it measures the memory
/// of a whole process, and other tests may run in this process.
fn is_alone(test: &str) -> bool {
    const ALONE: &str = "VRAMP_TEST_SOAKS_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut again = Command::new(std::env::current_exe().expect("this program has a path"));
    let again = again.args(["--exact", &format!("soak::{test}"), "--nocapture"]).env(ALONE, "1").output();
    let again = again.expect("this program starts again");
    let says = String::from_utf8_lossy(&again.stdout) + String::from_utf8_lossy(&again.stderr);
    assert!(again.status.success() && says.contains("1 passed"), "{says}");
    false
}

/// Resident memory of this process.
fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = text.split_whitespace().nth(1).and_then(|n| n.parse().ok()).unwrap_or(0);
    pages * 4096
}

fn check(report: &Report, frames: u64) {
    assert_eq!((report.frames_in, report.frames_out), (frames, frames), "{report:?}");
    assert_eq!((report.memory.live_bytes, report.memory.leaked), (0, 0), "{:?}", report.memory);
    assert_eq!((report.failed, report.dropped.sum(), report.in_flight), (0, 0, 0));
    let most = 4 * 16 * SIZES.iter().map(|size| size.pixels() * 4).sum::<u64>();
    assert!(report.memory.pool_peak_bytes < most, "{:?}", report.memory);
}

#[test]
fn many_frames_of_changing_sizes_on_the_host_leave_nothing_behind() {
    if !is_alone("many_frames_of_changing_sizes_on_the_host_leave_nothing_behind") {
        return;
    }
    let frames = frames(100_000, 1_000_000);
    let text = "changing ! contrast 1.2 ! delay frames=3 keep-times=true ! invert ! null";
    run(text, 100, 5_000, Space::Cpu);
    let before = resident_bytes();
    let report = run(text, 1_000, frames, Space::Cpu);
    check(&report, frames);
    assert_eq!(report.counters.replans, (frames - 1) / 1_000);
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 16 << 20, "grew by {grown} bytes over {frames} frames");
}

#[test]
fn many_frames_of_changing_sizes_on_the_device_leave_nothing_behind() {
    if !is_alone("many_frames_of_changing_sizes_on_the_device_leave_nothing_behind") {
        return;
    }
    let frames = frames(4_000, 100_000);
    let text = "changing ! contrast 1.2 ! delay frames=3 keep-times=true ! invert ! null";
    run(text, 100, 1_000, Space::Gpu);
    let before = resident_bytes();
    let report = run(text, 1_000.min(frames / 4), frames, Space::Gpu);
    check(&report, frames);
    assert!(report.backend != "cpu" && report.counters.dispatches >= frames, "{report:?}");
    assert_eq!(report.counters.uploads, frames);
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "grew by {grown} bytes over {frames} frames");
}
