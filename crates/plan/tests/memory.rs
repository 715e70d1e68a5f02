//! Planned memory: every frame that waits or is held is counted once, in the space that stores it.

use crate::support::{chain, check, delayed, diamond};
use vramp_plan::{GraphSpec, HandlerSpec, NoPlan, Plan, PlannedMemory, Policy, Profile, RunOptions, Space};

const FRAME: u64 = 64 * 48 * 4;

/// Default number of submissions in flight.
const IN_FLIGHT: u64 = 2;

fn memory(spec: &GraphSpec, only: Space) -> PlannedMemory {
    let profile = Profile::shipped("discrete").expect("it ships");
    Plan::decide(&check(spec), &profile, &RunOptions::new().only(only)).unwrap_or_else(|e| panic!("{e}")).memory
}

#[test]
fn a_fused_chain_needs_one_frame_and_a_broken_one_two_for_each_submission_in_flight() {
    assert_eq!(memory(&chain(&["src", "point", "point", "sink"]), Space::Gpu).gpu_bytes, IN_FLIGHT * FRAME);
    assert_eq!(memory(&chain(&["src", "point", "opaque", "sink"]), Space::Gpu).gpu_bytes, IN_FLIGHT * 2 * FRAME);
    assert_eq!(memory(&chain(&["src", "point", "opaque", "sink"]), Space::Cpu).cpu_bytes, 2 * FRAME);
}

#[test]
fn long_chains_reuse_frames_on_the_host_and_keep_them_until_a_submission_has_finished() {
    let (two, many) = (&["src", "opaque", "sink"][..], &["src", "opaque", "opaque", "opaque", "opaque", "sink"][..]);
    assert_eq!(memory(&chain(two), Space::Cpu), memory(&chain(many), Space::Cpu));
    assert_eq!(memory(&chain(many), Space::Gpu).gpu_bytes, IN_FLIGHT * 5 * FRAME);
}

#[test]
fn pointwise_kernels_on_the_host_write_over_what_they_read() {
    let plain = memory(&chain(&["src", "sink"]), Space::Cpu).cpu_bytes;
    let profile = Profile::shipped("discrete").expect("it ships");
    let graph = check(&chain(&["src", "point", "point", "sink"]));
    let unfused = Plan::decide(&graph, &profile, &RunOptions::new().only(Space::Cpu).fusion(false)).unwrap();
    assert_eq!(unfused.memory.cpu_bytes, plain);
}

#[test]
fn the_hosts_frames_are_listed_by_size_and_are_all_there_are() {
    let PlannedMemory { cpu_bytes, host_frames, .. } = memory(&diamond(HandlerSpec::new("src"), 50), Space::Cpu);
    assert_eq!(host_frames.iter().map(|frames| frames.bytes * frames.count).sum::<u64>(), cpu_bytes);
    assert!(host_frames.iter().all(|frames| frames.bytes == FRAME), "{host_frames:?}");
}

#[test]
fn a_budget_replaces_the_figure_of_the_profile_and_a_tight_one_says_that_frames_wait() {
    let profile = Profile::shipped("discrete").expect("it ships");
    let graph = check(&chain(&["src", "point", "opaque", "sink"]));
    let limited = |bytes: u64| RunOptions::new().only(Space::Gpu).memory_bytes(Space::Gpu, bytes);
    let plan = |bytes: u64| Plan::decide(&graph, &profile, &limited(bytes));
    assert!(plan(4 * FRAME).unwrap().warnings.is_empty());
    let tight = plan(3 * FRAME).unwrap();
    let words = format!("needs {} bytes of gpu memory, but the budget is {}: frames will wait", 4 * FRAME, 3 * FRAME);
    assert!(tight.warnings.iter().any(|warning| warning.contains(&words)), "{:?}", tight.warnings);
    assert_eq!(tight.memory.gpu_bytes, 4 * FRAME);
    // Two frames are always alive at once, however long the run waits.
    let error = plan(FRAME).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with(&format!("the plan needs {} bytes of gpu memory, but the budget allows {FRAME};", 2 * FRAME)),
        "{error}"
    );
    // If the other space has room, using it is better than waiting.
    let graph = check(&delayed(HandlerSpec::new("src").set("size", "3840x2160"), 9));
    let free = Plan::decide(&graph, &profile, &RunOptions::new().memory_bytes(Space::Gpu, FRAME)).unwrap();
    assert!(free.handlers.iter().all(|handler| handler.space == Space::Cpu));
    assert!(
        free.warnings.iter().any(|warning| warning.ends_with("a more expensive plan that fits was chosen")),
        "{:?}",
        free.warnings
    );
}

#[test]
fn scratch_between_the_passes_of_a_kernel_is_counted() {
    let plain = memory(&chain(&["src", "opaque", "sink"]), Space::Gpu).gpu_bytes;
    assert_eq!(memory(&chain(&["src", "stencil", "sink"]), Space::Gpu).gpu_bytes, plain + IN_FLIGHT * 2 * FRAME);
}

#[test]
fn what_is_kept_for_another_size_is_as_wide_as_the_new_one_and_as_high_as_the_old_one() {
    let sized = |kind: &str, size: &str| {
        let mut spec = chain(&["src"]);
        let other = spec.add(HandlerSpec::new(kind).set("size", size));
        let sink = spec.add(HandlerSpec::new("sink"));
        spec.connect(vramp_plan::HandlerId(0), other);
        spec.connect(other, sink);
        memory(&spec, Space::Gpu).gpu_bytes
    };
    for (size, width) in [("16x480", 16), ("640x3", 640)] {
        // The input has 48 rows; a pixel has four bytes, an element of the intermediate eight.
        assert_eq!(sized("resample", size) - sized("shrink", size), IN_FLIGHT * width * 48 * 8, "{size}");
    }
    let plain = memory(&chain(&["src", "opaque", "sink"]), Space::Gpu).gpu_bytes;
    assert_eq!(memory(&chain(&["src", "reduce", "sink"]), Space::Gpu).gpu_bytes, plain + IN_FLIGHT * 64 * 8);
}

#[test]
fn a_reduction_is_written_over_what_it_reads_on_the_host() {
    let alone = memory(&chain(&["src", "sink"]), Space::Cpu).cpu_bytes;
    assert_eq!(memory(&chain(&["src", "reduce", "sink"]), Space::Cpu).cpu_bytes, alone);
    assert_eq!(memory(&chain(&["src", "opaque", "sink"]), Space::Cpu).cpu_bytes, alone + FRAME);
}

#[test]
fn what_does_not_fit_one_binding_between_two_passes_stays_on_the_host() {
    let profile = Profile::shipped("discrete").unwrap();
    let most = profile.gpu.as_ref().unwrap().limits.binding_bytes.whole();
    let height = u32::try_from(most / (4 * 16_384)).unwrap();
    let spec = |kind: &str| {
        let mut spec = GraphSpec::new();
        let source = spec.add(HandlerSpec::new("src").set("size", format!("16384x{height}").as_str()));
        let (filter, sink) = (spec.add(HandlerSpec::new(kind)), spec.add(HandlerSpec::new("sink")));
        spec.connect(source, filter);
        spec.connect(filter, sink);
        check(&spec)
    };
    assert!(Plan::decide(&spec("opaque"), &profile, &RunOptions::new().place("opaque0", Space::Gpu)).is_ok());
    let error = Plan::decide(&spec("stencil"), &profile, &RunOptions::new().place("stencil0", Space::Gpu)).unwrap_err();
    let kept = 16_384 * u64::from(height) * 8;
    let words = format!("its intermediate of {kept} bytes exceeds the limit of {most} bytes for one binding");
    assert!(error.to_string().contains(&words), "{error}");
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
        let PlannedMemory { gpu_bytes, cpu_bytes, .. } = memory(&delayed(100, "64x48"), only);
        // On the host one more frame is written; on the device submissions in flight use some.
        assert_eq!(gpu_bytes + cpu_bytes, if only == Space::Gpu { 100 + IN_FLIGHT } else { 101 } * FRAME);
    }
    let profile = Profile::shipped("discrete").unwrap();
    let error = Plan::decide(&check(&delayed(1000, "7680x4320")), &profile, &RunOptions::new()).unwrap_err();
    let NoPlan::Memory { space, needed, most, .. } = error else { panic!("{error}") };
    assert!(needed >= 1000 * 7680 * 4320 * 4 && most <= needed, "{space} {needed} {most}");
}

#[test]
fn a_deep_link_beside_a_delay_holds_the_same_frames() {
    let spec = diamond(HandlerSpec::new("src"), 50);
    // At most 53 wait (held, then on the default link), one is written, one is read, and the join makes one.
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
    // Four kernels read it one after another: three wait, and their output is free once its sink has read it.
    assert_eq!(memory(&spec, Space::Gpu).gpu_bytes, (3 + IN_FLIGHT + IN_FLIGHT) * FRAME);
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
fn consumers_that_no_producer_waits_for_may_each_hold_another_frame() {
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
        let plan =
            Plan::decide(&check(&chain(kinds)), &profile, &RunOptions::new().only(Space::Gpu).batch(batch)).unwrap();
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
    let plan = Plan::decide(&check(&spec), &profile, &RunOptions::new()).unwrap();
    assert!(plan.handlers.iter().all(|h| h.space == Space::Cpu));
    assert!(
        plan.warnings.iter().any(|w| w.contains("gpu memory, but 6000000000 are available; a more expensive plan"))
    );
    assert!(Plan::decide(&check(&spec), &profile, &RunOptions::new().only(Space::Gpu)).is_err());
}
