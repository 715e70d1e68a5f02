//! What the pools need: every frame that waits or is held is counted once, in the space where it is.

#[expect(dead_code, reason = "each test file uses a part of it")]
mod support;

use support::{chain, check, delayed, diamond};
use vramp_plan::{GraphSpec, HandlerSpec, Memory, NoPlan, Planner, Policy, Profile, Space};

/// Bytes of the test sources' frame.
const FRAME: u64 = 64 * 48 * 4;

fn memory(spec: &GraphSpec, only: Space) -> Memory {
    let profile = Profile::shipped("discrete").expect("it ships");
    Planner::new(&check(spec), &profile).only(only).decide().unwrap_or_else(|e| panic!("{e}")).memory
}

#[test]
fn a_fused_chain_needs_one_frame_and_a_broken_one_two() {
    assert_eq!(memory(&chain(&["src", "point", "point", "sink"]), Space::Gpu).gpu_bytes, FRAME);
    assert_eq!(memory(&chain(&["src", "point", "opaque", "sink"]), Space::Gpu).gpu_bytes, 2 * FRAME);
    assert_eq!(memory(&chain(&["src", "point", "opaque", "sink"]), Space::Cpu).cpu_bytes, 2 * FRAME);
}

#[test]
fn long_chains_reuse_frames_that_nobody_reads_any_more() {
    let two = memory(&chain(&["src", "opaque", "sink"]), Space::Gpu);
    let many = memory(&chain(&["src", "opaque", "opaque", "opaque", "opaque", "sink"]), Space::Gpu);
    assert_eq!(two, many);
}

#[test]
fn scratch_between_the_passes_of_a_kernel_is_counted() {
    let plain = memory(&chain(&["src", "opaque", "sink"]), Space::Gpu).gpu_bytes;
    assert_eq!(memory(&chain(&["src", "stencil", "sink"]), Space::Gpu).gpu_bytes, plain + 2 * FRAME);
}

#[test]
fn passing_a_frame_on_costs_nothing_in_either_space() {
    for only in Space::RANKED {
        let direct = memory(&chain(&["src", "opaque", "sink"]), only);
        assert_eq!(memory(&chain(&["src", "pass", "opaque", "sink"]), only), direct);
        assert_eq!(memory(&chain(&["src", "pass", "pass", "opaque", "pass", "sink"]), only), direct);
    }
}

#[test]
fn frames_that_a_delay_holds_are_counted_and_too_many_are_refused() {
    let delayed = |frames: u32, size: &str| delayed(HandlerSpec::new("src").set("size", size), frames);
    for only in Space::RANKED {
        let Memory { gpu_bytes, cpu_bytes } = memory(&delayed(100, "64x48"), only);
        assert_eq!(gpu_bytes + cpu_bytes, 102 * FRAME);
    }
    let profile = Profile::shipped("discrete").unwrap();
    let error = Planner::new(&check(&delayed(1000, "7680x4320")), &profile).decide().unwrap_err();
    let NoPlan::Memory { space, needed, most, .. } = error else { panic!("{error}") };
    assert!(needed >= 1000 * 7680 * 4320 * 4 && most <= needed, "{space} {needed} {most}");
}

#[test]
fn a_deep_link_beside_a_delay_holds_the_same_frames() {
    let spec = diamond(HandlerSpec::new("src"), 50);
    // 53 wait at most (held and then on the usual link), one is written, one is read, and the join makes one.
    assert_eq!(memory(&spec, Space::Cpu).cpu_bytes, (53 + 2 + 1) * FRAME);
}

#[test]
fn explicit_transfers_need_what_automatic_ones_need() {
    let explicit = memory(&chain(&["src-cpu", "upload", "opaque", "download", "sink-cpu"]), Space::Gpu);
    assert_eq!(memory(&chain(&["src-cpu", "opaque", "sink-cpu"]), Space::Gpu), explicit);
}

#[test]
fn a_shared_upload_is_one_frame_on_the_device() {
    let mut spec = chain(&["src-cpu", "opaque", "sink-gpu"]);
    for _ in 0..3 {
        let (other, sink) = (spec.add(HandlerSpec::new("opaque")), spec.add(HandlerSpec::new("sink-gpu")));
        spec.connect(vramp_plan::HandlerId(0), other);
        spec.connect(other, sink);
    }
    // Four kernels read it in turn; each writes one frame that is gone when its sink has seen it.
    let gpu = memory(&spec, Space::Gpu).gpu_bytes;
    assert!((2 * FRAME..=5 * FRAME).contains(&gpu), "{gpu}");
}

#[test]
fn deeper_links_need_more() {
    let deep = |depth: u32| {
        let mut spec = chain(&["src", "point"]);
        let sink = spec.add(HandlerSpec::new("sink"));
        spec.connect(vramp_plan::HandlerId(1), sink).policy(Policy::Queue).depth(depth);
        memory(&spec, Space::Cpu).cpu_bytes
    };
    assert_eq!(deep(9) - deep(4), 5 * FRAME);
}

#[test]
fn frames_picked_here_and_there_are_not_shared_with_the_newest() {
    let mut spec = GraphSpec::new();
    let source = spec.add(HandlerSpec::new("src"));
    let delay = spec.add(HandlerSpec::new("delay").set("frames", 100));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(source, delay);
    spec.connect(delay, sink);
    let alone = memory(&spec, Space::Cpu).cpu_bytes;
    let every = spec.add(HandlerSpec::new("every").set("n", 30));
    let held = spec.add(HandlerSpec::new("delay").set("frames", 50));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(source, every);
    spec.connect(every, held);
    spec.connect(held, sink);
    assert!(memory(&spec, Space::Cpu).cpu_bytes >= alone + 50 * FRAME);
}

#[test]
fn consumers_nobody_waits_for_may_each_look_at_another_frame() {
    let lossy = |sinks: usize| {
        let mut spec = GraphSpec::new();
        let source = spec.add(HandlerSpec::new("src"));
        for _ in 0..sinks {
            let sink = spec.add(HandlerSpec::new("sink-cpu"));
            spec.connect(source, sink).policy(Policy::Latest);
        }
        memory(&spec, Space::Cpu).cpu_bytes
    };
    assert_eq!(lossy(4) - lossy(1), 3 * FRAME);
}

#[test]
fn a_batch_never_needs_less_for_holding_more() {
    let profile = Profile::shipped("discrete").unwrap();
    let bytes = |kinds: &[&str], batch: u32| {
        let plan = Planner::new(&check(&chain(kinds)), &profile).only(Space::Gpu).batch(batch).decide().unwrap();
        plan.memory.gpu_bytes + plan.memory.cpu_bytes
    };
    for batch in [1, 2, 16] {
        assert!(bytes(&["src", "delay", "stencil", "sink"], batch) > bytes(&["src", "stencil", "sink"], batch));
        assert!(bytes(&["src-cpu", "point", "sink-cpu"], 2 * batch) > bytes(&["src-cpu", "point", "sink-cpu"], batch));
    }
}

#[test]
fn what_does_not_fit_the_device_is_planned_on_the_host_with_a_warning() {
    let spec = delayed(HandlerSpec::new("src").set("size", "3840x2160"), 200);
    let profile = Profile::shipped("discrete").unwrap();
    let plan = Planner::new(&check(&spec), &profile).decide().unwrap();
    assert!(plan.handlers.iter().all(|h| h.space == Space::Cpu));
    assert!(plan.warnings.iter().any(|w| w.contains("bytes of gpu memory and there are 6000000000: this one fits")));
    assert!(Planner::new(&check(&spec), &profile).only(Space::Gpu).decide().is_err());
}
