//! In both spaces, the counters of a run match the plan, and in the steady state nothing is allocated, bound or
//! compiled.
//!
//! Runs on any adapter and fails without one; Mesa's software driver is enough.

use vramp::plan::{RunOptions, Space};
use vramp::runtime::Report;

fn run(text: &str, with: impl FnOnce(RunOptions) -> RunOptions) -> Report {
    let (_, report) = crate::ran::run(text, with);
    check(text, &report);
    report
}

fn on_cpu(text: &str) -> Report {
    run(text, |options| options.only(Space::Cpu).threads(2))
}

fn on_device(text: &str) -> Report {
    let report = run(text, |options| options.only(Space::Gpu));
    assert!(report.backend != "cpu" && report.counters.dispatches > 0, "{text}: it ran on {}", report.backend);
    report
}

/// Checks what holds for every run that reaches its end.
fn check(text: &str, report: &Report) {
    for link in &report.links {
        assert_eq!(link.sent, link.taken + link.dropped + link.queued, "{text}: {link:?}");
    }
    assert_eq!((report.memory.live_bytes, report.memory.leaked), (0, 0), "{text}: {:?}", report.memory);
    assert_eq!(report.in_flight, 0, "{text}");
}

fn conserved(report: &Report) -> bool {
    report.frames_in == report.frames_out + report.filtered + report.failed + report.dropped.sum() + report.in_flight
}

const DEMO: &str = "pattern kind=ball size=64x48 frames=400 ! markers ! waveform ! fps !";

#[test]
fn the_demo_on_the_cpu_allocates_nothing_once_it_is_steady() {
    let report = on_cpu(&format!("{DEMO} null"));
    assert_eq!((report.frames_in, report.frames_out), (400, 400));
    assert!(conserved(&report));
    let steady = &report.steady;
    assert_eq!((steady.heap_allocs, steady.foreign_allocs), (Some(0.0), Some(0.0)), "{report:?}");
    assert_eq!(report.counters.frame_copies, 0);
}

#[test]
fn the_demo_on_the_device_is_one_dispatch_one_pass_and_one_submit_a_frame() {
    let report = on_device(&format!("{DEMO} null"));
    assert!(conserved(&report), "{report:?}");
    let steady = &report.steady;
    assert_eq!((steady.uploads, steady.downloads, steady.transfer_bytes), (0.0, 0.0, 0.0));
    assert_eq!((steady.dispatches, steady.passes, steady.submits), (1.0, 1.0, 1.0));
    assert_eq!(
        (steady.gpu_allocs, steady.bind_groups, steady.compiles_after_first_frame),
        (0.0, 0.0, 0.0),
        "{report:?}"
    );
    assert_eq!(steady.heap_allocs, Some(0.0), "{report:?}");
    assert_eq!(report.counters.compiles_after_first_frame, 0);
    assert!(report.counters.max_in_flight <= 2);
}

#[test]
fn several_pictures_in_one_are_one_dispatch_more_and_nothing_is_made_anew() {
    let source = |at: usize| format!("pattern kind=gradient size={}x48 frames=400 ! all.in{at}", 60 + at);
    let sources: Vec<String> = (0..4).map(source).collect();
    let text = format!("{}; compositor size=64x48 name=all ! invert ! hue 40 ! null", sources.join("; "));
    let report = on_device(&text);
    assert_eq!((report.frames_in, report.frames_out), (1600, 400));
    let steady = &report.steady;
    assert_eq!((steady.dispatches, steady.submits, steady.uploads, steady.downloads), (5.0, 1.0, 0.0, 0.0));
    assert_eq!((steady.gpu_allocs, steady.bind_groups, steady.heap_allocs), (0.0, 0.0, Some(0.0)), "{report:?}");
    let report = on_cpu(&text);
    assert_eq!((report.frames_in, report.frames_out), (1600, 400));
    assert_eq!(report.steady.heap_allocs, Some(0.0), "{report:?}");
}

#[test]
fn a_transfer_down_is_one_download_a_frame() {
    let folder = std::env::temp_dir().join(format!("vramp-transfer-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for pictures");
    let text = format!("{DEMO} every n=40 ! png path={}/f-%04d.png", folder.display());
    let report = on_device(&text);
    assert_eq!(report.frames_out, 10);
    let text = format!(
        "pattern kind=ball size=64x48 frames=60 ! markers ! waveform ! fps ! png path={}/g-%04d.png",
        folder.display()
    );
    let report = on_device(&text);
    let steady = &report.steady;
    assert_eq!((steady.uploads, steady.downloads), (0.0, 1.0));
    assert_eq!((steady.dispatches, steady.passes, steady.submits), (1.0, 1.0, 1.0));
    assert_eq!((steady.gpu_allocs, steady.bind_groups), (0.0, 0.0), "{report:?}");
    assert_eq!(steady.heap_allocs, Some(0.0), "{report:?}");
    std::fs::remove_dir_all(&folder).expect("it was just made");
}

#[test]
fn two_transfers_of_one_output_are_one() {
    let down = on_device("pattern size=64x48 frames=100 name=p ! download ! null; p. ! download ! identity ! null");
    assert_eq!((down.frames_out, down.counters.downloads), (200, 100));
    let up = "pattern size=64x48 frames=100 ! convert rgb8 ! convert rgba8 name=p ! upload ! blur ! null; \
              p. ! upload ! invert ! null; p. ! flip ! null";
    let up = run(up, |options| {
        let on_cpu = ["pattern0", "convert0", "p"];
        on_cpu.iter().fold(options.only(Space::Gpu), |options, name| options.place(*name, Space::Cpu))
    });
    assert_eq!((up.frames_out, up.counters.uploads), (300, 100));
}

#[test]
fn down_and_up_again_are_exactly_the_planned_transfers_and_segments() {
    let text = "pattern kind=gradient size=64x48 frames=1000 ! blur ! convert rgba8 ! invert ! null";
    let report = run(text, |options| {
        let options = options.place("pattern0", Space::Gpu).place("blur0", Space::Gpu).place("invert0", Space::Gpu);
        options.place("convert0", Space::Cpu)
    });
    let steady = &report.steady;
    assert_eq!((steady.uploads, steady.downloads), (1.0, 1.0), "{report:?}");
    assert_eq!((steady.submits, steady.passes, steady.dispatches), (2.0, 2.0, 4.0));
    assert_eq!((steady.gpu_allocs, steady.bind_groups, steady.heap_allocs), (0.0, 0.0, Some(0.0)), "{report:?}");
    assert!(conserved(&report));
}

#[test]
fn a_required_device_computes_every_frame_between_the_ends() {
    let text = "pattern size=64x48 frames=60 ! blur ! every 2 ! invert ! null";
    let report = run(text, |options| options.require_gpu().place("pattern0", Space::Cpu));
    assert_eq!(report.check_gpu(), Ok(()));
    let vramp::runtime::observe::Placement { gpu_handlers, cpu_handlers, cpu_frames, .. } = report.placement;
    assert_eq!((gpu_handlers, cpu_handlers, cpu_frames), (3, 0, 0), "{:?}", report.placement);
    let source = report.handlers.iter().find(|handler| handler.name == "pattern0").expect("it ran");
    assert_eq!((source.space, source.calls, source.cpu_calls), (Space::Cpu, 60, 60));
    let on_cpu = on_cpu(text).check_gpu().expect_err("everything ran on the CPU").to_string();
    assert_eq!(on_cpu, "60 of 60 frames were computed on the CPU, by blur0, every0, invert0");
}
