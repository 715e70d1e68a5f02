//! Memory: pools need as much as was planned, budgets are kept, and a handler that waits for memory gets it or reports
//! why not.
//!
//! Most tests run on any adapter. Random graphs run on wgpu's no-op backend, on which memory is real and nothing is
//! computed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use vramp::gpu::{Backend, Device, SIZE_CLASS_BYTES};
use vramp::plan::catalog::{Entry, Fallback, Liveness, Output, RateRule, Setting, SizeRule, ValueType};
use vramp::plan::{Format, Graph, GraphSpec, HandlerSpec, Plan, Policy, Profile, RunOptions, Size, Space, write_text};
use vramp::runtime::engine::{Engine, EngineParts};
use vramp::runtime::{
    Call, Flow, Frame, FrameHandler, HandlerError, Registry, Report, RunError, RunOutcome, Stepped, Worker,
};
use vramp::{Pipeline, registry};

use crate::random::chance::Chance;
use crate::shared::{CHANGING, Changing, SIZE};

const FPS: Setting = Setting {
    name: "fps",
    value: ValueType::Rate,
    fallback: Fallback::Is("30"),
    liveness: Liveness::Fixed,
    about: "frames a second",
};

static FEED: Entry = Entry {
    name: "feed",
    about: "frames from a lane of their own",
    example: "feed ! null",
    outputs: &[Output { size: SizeRule::Setting("size"), rate: RateRule::Setting("fps"), ..Output::VIDEO }],
    settings: &[SIZE, FPS],
    ..Entry::SOURCE
};

static KEEP: Entry = Entry {
    name: "keep",
    about: "keeps every frame that it sees",
    example: "pattern ! keep",
    spaces: &[Space::Cpu, Space::Gpu],
    ..Entry::SINK
};

/// Makes frames of one size.
struct Feed {
    size: Size,
}

impl FrameHandler for Feed {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let frame = call.lend(Format::Rgba8, self.size)?;
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

struct Keep(Arc<Mutex<Vec<Frame>>>);

impl FrameHandler for Keep {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        if let (Some(frame), Ok(mut kept)) = (call.take(0), self.0.lock()) {
            kept.push(frame);
        }
        Ok(Flow::Produced)
    }
}

/// The built-in kinds and the kinds above. `keep` stores its frames in `kept`.
fn all_kinds(kept: &Arc<Mutex<Vec<Frame>>>) -> Registry {
    const fn size(width: u32, height: u32) -> Size {
        Size { width, height }
    }
    static SIZES: [Size; 7] =
        [size(64, 64), size(31, 90), size(8, 8), size(100, 33), size(50, 50), size(64, 63), size(7, 300)];
    let (mut registry, kept) = (registry(), Arc::clone(kept));
    registry.add(&CHANGING, move |_| Ok(Worker::frames(Changing { sizes: &SIZES, every: 5 }))).expect("a good entry");
    registry.add(&KEEP, move |_| Ok(Worker::frames(Keep(Arc::clone(&kept))))).expect("a good entry");
    let feed = |setup: &vramp::runtime::Setup<'_>| {
        let size = setup.outputs[0].as_ref().and_then(|content| content.frame()).expect("it makes frames").size;
        Ok(Worker::frames(Feed { size }))
    };
    registry.add(&FEED, feed).expect("a good entry");
    registry
}

fn read(text: &str, registry: &Registry) -> Graph {
    let spec = vramp::read(text, registry.catalog()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    registry.check(&spec).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Runs a pipeline on its own device.
fn run(text: &str, with: impl FnOnce(RunOptions) -> RunOptions) -> RunOutcome {
    let registry = all_kinds(&Arc::default());
    let graph = read(text, &registry);
    let mut pipeline = Pipeline::from_graph(graph)
        .registry(&registry)
        .options(with(RunOptions::new()))
        .build()
        .unwrap_or_else(|error| panic!("{text}: {error}"));
    pipeline.outcome().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn ended(text: &str, outcome: RunOutcome) -> Report {
    outcome.into_result().unwrap_or_else(|error| panic!("{text}: {error}"))
}

const PIPELINES: &[&str] = &[
    "pattern size=64x48 ! null",
    "pattern size=64x48 ! blur ! contrast 1.2 ! null",
    "pattern size=64x48 ! blur ! blur ! flip axis=h ! null",
    "pattern size=64x48 ! resize size=32x24 ! blur ! null",
    "pattern size=320x240 ! resize size=512x16 filter=area ! null",
    "pattern size=320x240 ! invert ! resize size=24x300 filter=area ! contrast 1.2 ! null",
    "pattern size=320x240 ! resize scale=1.5 filter=lanczos ! null",
    "feed size=64x48 ! waveform kind=luma ! null",
    "pattern size=64x48 ! blur ! waveform kind=luma ! invert ! null",
    "pattern size=64x48 ! delay frames=7 ! invert ! null",
    "pattern size=64x48 ! every n=3 ! blur ! null",
    "pattern size=64x48 name=p ! blur ! mix name=m ! null; p. ! flip axis=h ! m.b",
    "pattern size=64x48 name=p ! blur ! mix name=m ! null; p. ! delay frames=5 ! m.b",
    "pattern size=64x48 ! mix name=m ! null; pattern kind=ball size=64x48 ! m.b",
    "pattern size=64x48 ! compositor name=c ! null; pattern size=32x24 ! c.in1; pattern size=100x9 ! blur ! c.in5",
    "feed size=64x48 name=p ! blur ! compositor size=90x20 name=c ! invert ! null; p. ! c.in1; p. ! delay 3 ! c.in2",
    "pattern size=64x48 !{queue depth=4} blur !{lossless depth=2} null",
    "pattern size=64x48 name=p !{latest} blur ! null; p. !{lossless depth=5} invert ! null",
    "feed size=64x48 ! blur ! null",
    "feed size=64x48 ! convert i420 ! convert rgba8 ! blur ! null",
    "feed size=64x48 name=p ! blur ! mix name=m ! null; p. ! delay frames=4 ! m.b",
    "pattern size=64x48 ! blur ! convert rgb8 ! convert rgba8 ! invert ! null",
    "changing size=64x64 ! blur ! null",
    // Pipelines with small buffers, such as tables, weights and letters.
    "pattern size=1x1 ! resize size=65536x1 filter=area ! resize size=1x1 filter=lanczos ! null",
    "pattern size=1x1 ! resize size=3000x1 ! resize size=1x1 filter=nearest ! null",
    "pattern size=200x150 ! text \"{fps} {frame} {time} {size}\\nand more\" size=12 ! fps ! waveform ! null",
    "pattern size=64x48 ! warp 1,0,0,0,1,0 ! convolve 0,0,0,0,1,0,0,0,0 ! sharpen ! null",
];

#[test]
fn many_small_sources_are_planned_for() {
    let one = |seed: usize| format!("pattern size=1x1 seed={seed} ! null");
    let text = (0..64).map(one).collect::<Vec<_>>().join("; ");
    let memory = ended(&text, run(&text, |options| options.only(Space::Gpu).frames(5))).memory;
    let ratio = memory.gpu_peak_bytes as f64 / memory.gpu_planned_bytes as f64;
    assert!((0.25..=1.25).contains(&ratio), "{memory:?}");
}

#[test]
fn pools_need_what_was_planned() {
    let frames = if std::env::var_os("VRAMP_LONG").is_some() { 200 } else { 60 };
    for text in PIPELINES {
        for (space, in_flight, batch) in
            [(Space::Cpu, 2, 1), (Space::Gpu, 1, 1), (Space::Gpu, 2, 1), (Space::Gpu, 3, 1), (Space::Gpu, 2, 4)]
        {
            let outcome = run(text, |options| options.only(space).in_flight(in_flight).batch(batch).frames(frames));
            let memory = ended(text, outcome).memory;
            let what = format!("{text} on the {space}, {in_flight} in flight, batches of {batch}: {memory:?}");
            let held = |peak: u64, planned: u64, least: f64| match planned {
                0 => peak == 0,
                _ => (least..=1.25).contains(&(peak as f64 / planned as f64)),
            };
            // Host memory is allocated before the first frame. How much is lent at once depends on the lanes' speeds.
            assert!(held(memory.cpu_peak_bytes, memory.cpu_planned_bytes, 0.9), "{what}");
            assert!(held(memory.cpu_lent_peak_bytes, memory.cpu_planned_bytes, 0.25), "{what}");
            assert!(held(memory.gpu_peak_bytes, memory.gpu_planned_bytes, 0.25), "{what}");
            assert_eq!((memory.live_bytes, memory.leaked, memory.waits), (0, 0, 0), "{what}");
            assert!((memory.hits > memory.misses || text.starts_with("changing")) && memory.leaks.is_empty(), "{what}");
        }
    }
}

#[test]
fn sizes_that_are_no_longer_used_make_room() {
    for space in [Space::Cpu, Space::Gpu] {
        let memory = ended("changing", run("changing ! blur ! null", |options| options.only(space).frames(400))).memory;
        assert!(memory.trimmed > 10, "{space}: {memory:?}");
    }
}

/// A device on which memory is real and nothing is computed, with a pool of this many bytes.
fn noop(budget_bytes: u64) -> Device {
    Device::choose().backend(Backend::Noop).budget_bytes(budget_bytes).open().expect("it is always there")
}

/// Bytes of a frame of the random graphs.
const FRAME: u64 = 16 * 16 * 4;

const FRAMES: u64 = 40;

fn random_graph(random: &mut Chance) -> GraphSpec {
    let mut spec = GraphSpec::new();
    let (mut made, mut used) = (Vec::new(), Vec::new());
    for _ in 0..=random.below(2) {
        made.push(spec.add(HandlerSpec::new(random.pick(&["pattern", "feed", "feed"])).set("size", "16x16")));
        used.push(false);
    }
    for _ in 0..=random.below(7) {
        let kind = random.pick(&["invert", "blur", "flip", "delay", "every", "mix", "mix", "convert", "delay"]);
        let mut handler = HandlerSpec::new(kind);
        match kind {
            "delay" => handler = handler.set("frames", 1 + random.below(6)),
            "every" => handler = handler.set("n", 1 + random.below(4)),
            "convert" => handler = handler.set("format", random.pick(&["rgba8", "i420", "rgb8"])),
            _ => {}
        }
        let at = spec.add(handler);
        for port in if kind == "mix" { &["a", "b"][..] } else { &["video"] } {
            let from = random.below(made.len());
            used[from] = true;
            let link = spec.connect(made[from], at.port(*port));
            match random.below(10) {
                // In a diamond, a depth that is too small would be refused.
                0..4 if kind != "mix" => _ = link.policy(Policy::Lossless).depth(1 + random.below(4) as u32),
                _ => {}
            }
        }
        made.push(at);
        used.push(false);
    }
    for (from, _) in made.iter().zip(&used).filter(|(_, used)| !**used) {
        let sink = spec.add(HandlerSpec::new("null"));
        let link = spec.connect(*from, sink);
        match random.below(4) {
            0 => _ = link.policy(Policy::Latest).depth(1 + random.below(4) as u32),
            1 => _ = link.policy(Policy::Queue).depth(1 + random.below(4) as u32),
            _ => {}
        }
    }
    spec
}

/// The bytes of small buffers, which plans do not include. Here there is at most one block per kernel.
fn small_data(plan: &Plan) -> u64 {
    plan.groups.iter().filter(|group| group.space == Space::Gpu).count() as u64 * SIZE_CLASS_BYTES
}

/// A random pipeline with budgets, and its plan.
struct Trial {
    what: String,
    pipeline: Engine,
    plan: Plan,
    /// Bytes of host memory and of GPU memory.
    budgets: (u64, u64),
}

fn trial(seed: u64) -> Option<Trial> {
    let mut random = Chance::of(seed);
    let spec = random_graph(&mut random);
    let registry = all_kinds(&Arc::default());
    let graph = registry.check(&spec).unwrap_or_else(|error| panic!("{error}"));
    let profile = Profile::shipped(random.pick(&["discrete", "integrated"])).expect("it ships");
    let (in_flight, batch) = (1 + random.below(3), random.pick(&[1, 1, 1, 3]));
    let options = RunOptions::new().in_flight(in_flight as u32).batch(batch as u32);
    let options = match random.below(3) {
        0 => options.only(Space::Cpu),
        1 => options.only(Space::Gpu),
        _ => {
            let names: Vec<String> = graph.handlers().iter().map(|handler| handler.name.clone()).collect();
            let both = |name: &&String| ["invert", "blur", "flip", "mix"].iter().any(|kind| name.starts_with(kind));
            names.iter().filter(both).fold(options, |options, name| options.place(name, random.pick(&Space::RANKED)))
        }
    };
    // A depth that is too small for a diamond is refused. Refusals are not tested here.
    let plan = Plan::decide(&graph, &profile, &options).ok()?;
    let mut budget = |planned: u64| match random.below(4) {
        0 => planned,
        1 => planned + FRAME * random.below(3) as u64,
        2 => planned * random.below(100) as u64 / 100,
        _ => FRAME * random.below(8) as u64,
    };
    let budgets = (budget(plan.memory.cpu_bytes), budget(plan.memory.gpu_bytes + small_data(&plan)));
    let what = format!(
        "seed {seed}, budgets {budgets:?}, in flight {in_flight}, batch {batch}\n{}\n{}",
        write_text(&spec),
        plan.to_text(false)
    );
    let options = options.memory_bytes(Space::Cpu, budgets.0).threads(2).frames(FRAMES);
    let parts = EngineParts::new(&plan, &graph, &registry, &options);
    let pipeline = Engine::build(EngineParts { device: Some(noop(budgets.1)), ..parts });
    let pipeline = pipeline.unwrap_or_else(|error| panic!("{what}: {error}"));
    Some(Trial { what, pipeline, plan, budgets })
}

/// Checks that every frame is accounted for and all memory is returned, and that a run with as much memory as planned
/// ends without an error.
fn check(what: &str, plan: &Plan, budgets: (u64, u64), report: &Report, failed: Option<&HandlerError>) -> bool {
    for link in &report.links {
        assert_eq!(link.sent, link.taken + link.dropped + link.queued, "{what}: {link:?}");
    }
    let memory = &report.memory;
    assert_eq!((memory.live_bytes, memory.leaked), (0, 0), "{what}: {memory:?}");
    assert!(memory.cpu_peak_bytes <= budgets.0 && memory.gpu_peak_bytes <= budgets.1, "{what}: {memory:?}");
    let enough = budgets.0 >= plan.memory.cpu_bytes && budgets.1 >= plan.memory.gpu_bytes + small_data(plan);
    match failed {
        None => assert_eq!(report.failed, 0, "{what}: {report:?}"),
        Some(HandlerError::OutOfMemory(error)) => {
            assert!(!enough, "{what}: it has what was planned: {error}");
            assert!(error.needed_bytes > error.available_bytes, "{what}: {error}");
            let held: u64 = error.holders.iter().map(|holder| holder.bytes).sum();
            assert!(held + error.available_bytes <= error.budget_bytes, "{what}: {error}");
        }
        Some(error) => panic!("{what}: {error}"),
    }
    failed.is_some()
}

#[test]
fn stepped_every_budget_ends_in_all_frames_or_in_words() {
    let (mut ran, mut failed, mut waited) = (0, 0, 0);
    for seed in 0..300 {
        let Some(Trial { what, mut pipeline, plan, budgets }) = trial(seed) else { continue };
        pipeline.start().unwrap_or_else(|failure| panic!("{what}: {failure}"));
        let (mut idle, mut error) = (0, None);
        loop {
            match pipeline.step(&|| Duration::ZERO) {
                Stepped::Moved => idle = 0,
                Stepped::Over => break,
                Stepped::Failed(failure) => {
                    error = Some(failure.error);
                    break;
                }
                Stepped::Stuck | Stepped::Wait(_) => {
                    idle = if pipeline.wait_for_device(Duration::from_secs(5)) { 0 } else { idle + 1 };
                    assert!(idle < 3, "{what}: nothing moves and nothing has ended");
                }
            }
        }
        let (report, _) = pipeline.finish(Duration::ZERO);
        ran += 1;
        failed += usize::from(check(&what, &plan, budgets, &report, error.as_ref()));
        waited += usize::from(report.memory.waits > 0 && error.is_none());
    }
    assert!(
        ran > 200 && failed > 20 && waited > 20,
        "{ran} ran, {failed} failed, {waited} waited and came to their end"
    );
}

#[test]
fn on_threads_every_budget_ends_in_all_frames_or_in_words() {
    let (mut ran, mut failed, mut waited) = (0, 0, 0);
    for seed in 1000..1080 {
        let Some(Trial { what, pipeline, plan, budgets }) = trial(seed) else { continue };
        let (send, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || drop(send.send(pipeline.run(None))));
        let outcome = ended.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("{what}: it hangs"));
        let RunOutcome { report, error, .. } = outcome.unwrap_or_else(|error| panic!("{what}: {error}"));
        let error = error.map(|error| match error {
            RunError::Failed(failure) => failure.error,
            error @ RunError::Unresponsive { .. } => panic!("{what}: {error}"),
        });
        ran += 1;
        failed += usize::from(check(&what, &plan, budgets, &report, error.as_ref()));
        waited += usize::from(report.memory.waits > 0 && error.is_none());
    }
    assert!(ran > 50 && failed > 5 && waited > 5, "{ran} ran, {failed} failed, {waited} waited and came to their end");
}

/// Runs on a device that computes nothing, with pools of these sizes.
fn run_within(text: &str, space: Space, cpu_bytes: u64, gpu_bytes: u64) -> (Plan, RunOutcome) {
    let registry = all_kinds(&Arc::default());
    let graph = read(text, &registry);
    let profile = Profile::shipped("discrete").expect("it ships");
    let plan = Plan::decide(&graph, &profile, &RunOptions::new().only(space)).unwrap_or_else(|error| panic!("{error}"));
    let options = RunOptions::new().memory_bytes(Space::Cpu, cpu_bytes).frames(FRAMES);
    let parts = EngineParts::new(&plan, &graph, &registry, &options);
    let pipeline = Engine::build(EngineParts { device: Some(noop(gpu_bytes)), ..parts });
    let pipeline = pipeline.unwrap_or_else(|error| panic!("{error}"));
    let outcome = pipeline.run(None);
    (plan, outcome.unwrap_or_else(|error| panic!("{error}")))
}

#[test]
fn three_frames_of_memory_are_enough_for_links_of_depth_three() {
    let text = "feed size=16x16 !{lossless depth=3} convert rgb8 !{lossless depth=3} convert rgba8 !{lossless depth=3} \
                null";
    let (plan, outcome) = run_within(text, Space::Cpu, 3 * FRAME, 0);
    assert!(plan.memory.cpu_bytes > 9 * FRAME, "{:?}", plan.memory);
    let report = ended(text, outcome);
    assert_eq!((report.frames_in, report.frames_out), (FRAMES, FRAMES));
    assert!(report.memory.waits > 0 && report.memory.cpu_peak_bytes <= 3 * FRAME, "{:?}", report.memory);

    let text = "feed size=16x16 !{lossless depth=3} flip axis=h ! null";
    let (plan, outcome) = run_within(text, Space::Gpu, 3 * FRAME, 3 * FRAME);
    assert!(plan.memory.gpu_bytes == 4 * FRAME && plan.memory.cpu_bytes == 4 * FRAME, "{:?}", plan.memory);
    let report = ended(text, outcome);
    assert_eq!((report.frames_out, report.memory.gpu_peak_bytes <= 3 * FRAME), (FRAMES, true));
}

#[test]
fn what_can_never_fit_names_the_handler_that_needs_it_and_those_that_hold_the_rest() {
    let text = "feed size=16x16 ! delay frames=9 ! null";
    let (_, outcome) = run_within(text, Space::Cpu, 4 * FRAME, 0);
    let Some(RunError::Failed(failure)) = &outcome.error else { panic!("{:?}", outcome.error) };
    assert_eq!(
        failure.to_string(),
        "feed0, frame 4: 1024 bytes of cpu memory are needed, 0 of 4096 are available, and no holder of the rest \
         can move: feed0 holds 4096 bytes in 4 frames since frame 0; raise --memory, or reduce frame sizes, link \
         depths, delays or --in-flight"
    );
    assert_eq!((outcome.report.frames_in, outcome.report.memory.leaked), (4, 0));
    let (_, outcome) = run_within("feed size=16x16 ! flip ! blur ! null", Space::Gpu, 1 << 20, 3 * FRAME);
    let words = outcome.error.expect("a blur alone needs four").to_string();
    assert!(words.contains("bytes of gpu memory are needed") && words.contains(" holds "), "{words}");
}

#[test]
fn what_is_available_and_what_is_held_come_to_the_budget() {
    // A frame of 65536 pixels, the intermediate buffer of its kernel, and its weights.
    let text = "feed size=16x16 ! resize size=65536x1 filter=area ! null";
    let mut reported = 0;
    for budget in (0..60).map(|at| 4096 + at * 32_768) {
        let registry = all_kinds(&Arc::default());
        let graph = read(text, &registry);
        // Planned without the budget, as if there were more memory.
        let builder =
            Pipeline::from_graph(graph).registry(&registry).options(RunOptions::new().only(Space::Gpu).frames(3));
        let builder = builder.profile(Profile::shipped("discrete").expect("it ships")).device(&noop(budget));
        let mut pipeline = builder.build().unwrap_or_else(|error| panic!("{error}"));
        let outcome = pipeline.outcome().unwrap_or_else(|error| panic!("{error}"));
        let Some(RunError::Failed(failure)) = &outcome.error else { continue };
        let HandlerError::OutOfMemory(short) = &failure.error else { panic!("{failure}") };
        let held: u64 = short.holders.iter().map(|holder| holder.bytes).sum();
        assert_eq!(short.available_bytes + held, short.budget_bytes, "{failure}");
        assert!(short.needed_bytes > short.available_bytes, "{failure}");
        reported += 1;
    }
    assert!(reported > 10, "{reported}");
}

#[test]
fn a_handler_that_keeps_frames_is_named_with_what_it_keeps() {
    for (space, text) in
        [(Space::Cpu, "pattern size=16x16 ! keep name=hoard"), (Space::Gpu, "pattern size=16x16 ! keep name=hoard")]
    {
        let kept = Arc::default();
        let registry = all_kinds(&kept);
        let graph = read(text, &registry);
        let builder = Pipeline::from_graph(graph).registry(&registry).options(RunOptions::new().only(space).frames(3));
        let builder = builder.profile(Profile::shipped("discrete").expect("it ships")).device(&noop(1 << 20));
        let mut pipeline = builder.build().unwrap_or_else(|error| panic!("{error}"));
        let report = ended(text, pipeline.outcome().unwrap_or_else(|error| panic!("{error}")));
        assert_eq!((report.memory.leaked, report.memory.leaks.len()), (3, 3), "{:?}", report.memory);
        for (leak, frame) in report.memory.leaks.iter().zip(0..) {
            assert_eq!((leak.space, leak.owner.as_str(), leak.last.as_str()), (space.name(), "pattern0", "hoard"));
            assert_eq!((leak.bytes, leak.since_frame), (FRAME, frame), "{leak:?}");
        }
        assert_eq!(report.memory.live_bytes, 3 * FRAME);
    }
}
