//! Handlers start and stop once, and lanes work at the same time. Slow frames are reported, and so is the progress of
//! every second. The frames of a batch share a submit, two runs share nothing, sources without consumers end, and files
//! are not overwritten or cut silently.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex, PoisonError};
use std::time::{Duration, Instant};

use vramp::Pipeline;
use vramp::plan::catalog::{Entry, Family, Work};
use vramp::plan::{RunOptions, Space};
use vramp::runtime::{
    Call, Flow, FrameHandler, HandlerError, PartialFile, Registry, Report, RunEvent, RunOutcome, Setup, StartContext,
    Stopper, Worker,
};

const OWN: Entry = Entry { family: Family::Control, spaces: &[Space::Cpu], work: Work::NONE, ..Entry::CONTROL };
static COUNTED: Entry = Entry { name: "counted", about: "counts its life", example: "pattern ! counted ! null", ..OWN };
static MEETS: Entry =
    Entry { name: "meets", about: "waits for another", example: "pattern ! meets ! null", blocking: true, ..OWN };
static SLEEPS: Entry = Entry { name: "sleeps", about: "takes its time", example: "pattern ! sleeps ! null", ..OWN };
static ALLOCATES: Entry =
    Entry { name: "allocates", about: "allocates once a frame", example: "pattern ! allocates ! null", ..OWN };

/// A handler made of a function, with counts of its starts and stops.
struct Life<F> {
    process: F,
    starts: Arc<AtomicU64>,
    stops: Arc<AtomicU64>,
}

impl<F: FnMut(&mut Call<'_>) + Send> FrameHandler for Life<F> {
    fn start(&mut self, _: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.starts.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        assert_eq!(self.starts.load(Ordering::Relaxed), 1, "it is started before its first frame");
        (self.process)(call);
        let frame = call.take(0).ok_or_else(|| HandlerError::failed("no lead frame"))?;
        call.send(0, frame);
        Ok(Flow::Produced)
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        self.stops.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

#[derive(Default)]
struct Bench {
    starts: Arc<AtomicU64>,
    stops: Arc<AtomicU64>,
}

fn for_long(options: RunOptions, longest: Option<Duration>) -> RunOptions {
    RunOptions { longest_ms: longest.map(|time| time.as_millis() as u64), ..options }
}

impl Bench {
    fn registry(&self) -> Registry {
        let mut registry = vramp::registry();
        let both = || (Arc::clone(&self.starts), Arc::clone(&self.stops));
        let (starts, stops) = both();
        let counted = move |_: &Setup<'_>| {
            let (starts, stops) = (Arc::clone(&starts), Arc::clone(&stops));
            Ok(Worker::frames(Life { process: |_: &mut Call<'_>| {}, starts, stops }))
        };
        registry.add(&COUNTED, counted).expect("a good entry");
        // Two handlers pass the barrier only together, so they must run at the same time.
        let barrier = Arc::new(Barrier::new(2));
        let meets = move |_: &Setup<'_>| {
            let barrier = Arc::clone(&barrier);
            let process = move |_: &mut Call<'_>| {
                barrier.wait();
            };
            Ok(Worker::frames(Life { process, starts: Arc::default(), stops: Arc::default() }))
        };
        registry.add(&MEETS, meets).expect("a good entry");
        let sleeps = |_: &Setup<'_>| {
            let process = |_: &mut Call<'_>| std::thread::sleep(Duration::from_millis(30));
            Ok(Worker::frames(Life { process, starts: Arc::default(), stops: Arc::default() }))
        };
        registry.add(&SLEEPS, sleeps).expect("a good entry");
        let allocates = |_: &Setup<'_>| {
            let process = |call: &mut Call<'_>| drop(std::hint::black_box(Box::new(call.now().number)));
            Ok(Worker::frames(Life { process, starts: Arc::default(), stops: Arc::default() }))
        };
        registry.add(&ALLOCATES, allocates).expect("a good entry");
        registry
    }

    fn run(
        &self,
        text: &str,
        longest: Option<Duration>,
        with: impl FnOnce(RunOptions) -> RunOptions,
    ) -> (RunOutcome, Vec<RunEvent>) {
        let registry = self.registry();
        let spec = vramp::read(text, registry.catalog()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let graph = registry.check(&spec).unwrap_or_else(|error| panic!("{error}"));
        let events = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&events);
        let builder = Pipeline::from_graph(graph)
            .registry(&registry)
            .options(for_long(with(RunOptions::new()), longest))
            .listener(Arc::new(move |event| {
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
            }));
        let mut pipeline = builder.build().unwrap_or_else(|error| panic!("{text}: {error}"));
        let outcome = pipeline.outcome().unwrap_or_else(|error| panic!("{error}"));
        let events = events.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (outcome, events)
    }

    fn on_cpu(&self, text: &str) -> Report {
        let (outcome, _) = self.run(text, None, |options| options.only(Space::Cpu));
        outcome.into_result().unwrap_or_else(|error| panic!("{text}: {error}"))
    }
}

#[test]
fn a_handler_is_started_once_before_its_first_frame_and_stopped_once_after_its_last() {
    let bench = Bench::default();
    bench.on_cpu("pattern size=8x8 frames=9 ! counted ! null");
    assert_eq!((bench.starts.load(Ordering::Relaxed), bench.stops.load(Ordering::Relaxed)), (1, 1));
}

#[test]
fn handlers_in_lanes_of_their_own_work_at_the_same_time() {
    let report = Bench::default().on_cpu("pattern size=8x8 frames=5 name=p ! meets ! null ; p. ! meets ! null");
    assert_eq!(report.frames_out, 10);
}

#[test]
fn a_source_ends_when_all_its_consumers_have_ended() {
    for text in [
        "pattern size=8x8 frames=5 ! mix name=m ! null ; pattern size=8x8 kind=bars ! m.b",
        "pattern size=8x8 ! mix name=m until=shortest ! null ; pattern size=8x8 kind=bars frames=5 ! invert ! m.b",
        "pattern size=8x8 frames=3 ! mix name=m ! null ; pattern size=8x8 ! invert ! every n=2 ! delay frames=2 ! m.b",
    ] {
        let begun = Instant::now();
        let report = Bench::default().on_cpu(text);
        let on_device = Bench::default().run(text, None, |options| options.only(Space::Gpu)).0;
        let on_device = on_device.into_result().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert!(begun.elapsed() < Duration::from_secs(20), "{text}");
        assert!(report.frames <= 6 && on_device.frames <= 6, "{text}: {report:?}");
    }
}

#[test]
fn whole_frames_that_a_source_sent_before_it_failed_arrive() {
    let path = std::env::temp_dir().join(format!("vramp-running-{}.raw", std::process::id()));
    // Five frames of 8x8, and a part of a sixth frame.
    std::fs::write(&path, vec![7; 5 * 256 + 100]).expect("a file in the temporary folder");
    let text = format!("raw path={} size=8x8 ! blur ! delay frames=2 keep-times=true ! null", path.display());
    for _ in 0..5 {
        let (outcome, _) = Bench::default().run(&text, None, |options| options.only(Space::Cpu));
        let error = outcome.error.expect("the sixth frame is cut").to_string();
        assert!(error.contains("raw0") && outcome.report.frames_out == 5, "{error}: {:?}", outcome.report);
    }
    std::fs::remove_file(&path).expect("it was just written");
}

#[test]
fn a_delay_tells_how_far_its_input_went_before_it_ends() {
    for every in ["every n=10 ! delay frames=1", "delay frames=2 ! every n=10", "every n=100 ! delay frames=1"] {
        let text = format!(
            "pattern name=c size=8x8 frames=30; c. ! {every} ! mix name=m lead=b until=shortest ! null; c. ! m.b"
        );
        assert_eq!(Bench::default().on_cpu(&text).frames, 30, "{every}");
    }
}

#[test]
fn several_frames_share_a_submit_if_requested() {
    let bench = Bench::default();
    let text = "pattern size=16x16 frames=64 ! blur ! null";
    let (outcome, _) = bench.run(text, None, |options| options.only(Space::Gpu).batch(4));
    let report = outcome.into_result().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((report.frames, report.counters.submits, report.counters.dispatches), (64, 16, 192));
}

#[test]
fn frames_that_come_too_late_are_reported_with_their_time() {
    let pace = "60".parse().expect("a rate");
    let bench = Bench::default();
    let text = "pattern size=8x8 frames=5 ! sleeps ! null";
    let (_, events) = bench.run(text, None, |options| options.only(Space::Cpu).pace(pace));
    let slow = |event: &RunEvent| {
        matches!(event, RunEvent::Slow { handler, took, budget, .. }
            if handler == "sleeps0" && *took >= Duration::from_millis(30) && budget.as_millis() == 16)
    };
    assert!(events.iter().any(slow), "{events:?}");
    let quick = bench.run("pattern size=8x8 frames=5 ! null", None, |options| options.only(Space::Cpu)).1;
    assert!(
        quick.iter().all(|event| !matches!(event, RunEvent::Slow { .. })),
        "without a pace nothing is late: {quick:?}"
    );
}

#[test]
fn the_unit_that_takes_longest_comes_first_with_its_share() {
    let report = Bench::default().on_cpu("pattern size=8x8 frames=5 ! invert ! sleeps ! null");
    let first = &report.units[0];
    assert_eq!((first.name.as_str(), first.calls, first.space), ("sleeps0", 5, Space::Cpu), "{:?}", report.units);
    assert!(first.mean_us >= 30_000.0 && first.share > 0.5, "{first:?}");
    let fused = report.units.iter().find(|unit| unit.name == "pattern0+invert0").expect("fused handlers are one unit");
    assert_eq!(fused.handlers, ["pattern0", "invert0"]);
    assert!((report.units.iter().map(|unit| unit.share).sum::<f64>() - 1.0).abs() < 1e-9);
}

#[test]
fn every_second_is_reported_with_what_came_through() {
    let pace = "50".parse().expect("a rate");
    let longest = Some(Duration::from_millis(2300));
    let bench = Bench::default();
    let (outcome, events) =
        bench.run("pattern size=8x8 ! null", longest, |options| options.only(Space::Cpu).pace(pace));
    let seconds: Vec<_> =
        events.iter().filter_map(|e| if let RunEvent::Second(p) = e { Some(*p) } else { None }).collect();
    assert_eq!(seconds.len(), 2, "{events:?}");
    assert!(seconds[1].frames_out > seconds[0].frames_out && !outcome.stopped);
    let (first, second) = (&seconds[0].cpu_pool, &seconds[1].cpu_pool);
    let rate =
        (second.hits - first.hits) as f64 / (seconds[1].elapsed.as_secs_f64() - seconds[0].elapsed.as_secs_f64());
    assert!((20.0..=60.0).contains(&rate), "one frame's memory for each of 50 frames a second: {second:?}");
    assert!((second.hits_per_second - rate).abs() <= 1e-6 * rate, "the rate is that of the last second: {second:?}");
    assert!(second.misses == first.misses && second.misses_per_second == 0.0, "memory is reused: {second:?}");
    assert!(outcome.report.frames_in == outcome.report.frames_out, "what was on its way arrived");
}

#[test]
fn allocations_per_frame_are_those_of_one_frame_however_many_sinks_there_are() {
    let text = "pattern size=8x8 frames=400 name=p ! allocates ! null ; p. ! null ; p. ! null";
    let steady = Bench::default().on_cpu(text).steady;
    let each = steady.heap_allocs.expect("they are counted here");
    assert!((0.9..=1.1).contains(&each) && steady.frames <= 200, "{steady:?}");
}

#[test]
fn two_runs_at_once_share_neither_pools_nor_counts() {
    let run = |frames: u64, space: Space| {
        let bench = Bench::default();
        let text = format!("pattern size=32x32 frames={frames} ! blur ! null");
        bench.run(&text, None, |options| options.only(space)).0.into_result().expect("nothing fails")
    };
    let other = std::thread::spawn(move || run(150, Space::Gpu));
    let (one, other) = (run(60, Space::Gpu), other.join().expect("it does not panic"));
    assert_eq!((one.counters.submits, other.counters.submits), (60, 150));
    assert_eq!((one.memory.leaked, other.memory.leaked), (0, 0));
}

#[test]
fn a_run_on_the_cpu_opens_no_device() {
    let registry = vramp::registry();
    let spec = vramp::read("pattern size=8x8 frames=1 ! blur ! null", registry.catalog()).expect("a pipeline");
    let graph = registry.check(&spec).expect("a graph");
    let pipeline = Pipeline::from_graph(graph.clone())
        .registry(&registry)
        .options(RunOptions::new().only(Space::Cpu))
        .build()
        .expect("it needs nothing");
    assert!(pipeline.device().is_none());
}

#[test]
fn a_graph_that_would_spoil_a_file_is_refused_before_anything_is_opened() {
    let registry = vramp::registry();
    for (text, words) in [
        ("pattern name=p ! raw path=o.raw; p. ! y4m path=./o.raw", "raw0 and y4m0 would both write to"),
        ("pattern name=p ! png path=k%d.png; p. ! raw path=k12.png", "png0 and raw0 would both write to `k12.png`"),
        ("pattern name=p ! y4m path=-; p. ! raw path=-", "y4m0 and raw0 would both write to standard output"),
        ("pattern ! lut path=Cargo.toml ! raw path=src/../Cargo.toml", "raw0 would overwrite `Cargo.toml`"),
    ] {
        let spec = vramp::read(text, registry.catalog()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let graph = registry.check(&spec).unwrap_or_else(|error| panic!("{error}"));
        let Err(vramp::Error::Files(clash)) =
            Pipeline::from_graph(graph.clone()).registry(&registry).options(RunOptions::new().only(Space::Cpu)).build()
        else {
            panic!("{text} is refused for its files");
        };
        assert!(clash.to_string().contains(words) && clash.at.is_some(), "{clash}");
    }
    assert!(!std::path::Path::new("o.raw").exists());
}

/// A handler that records how it is stopped.
struct Ends(Arc<Mutex<Vec<&'static str>>>);

impl FrameHandler for Ends {
    fn process(&mut self, _: &mut Call<'_>) -> Result<Flow, HandlerError> {
        Ok(Flow::Produced)
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push("whole");
        Ok(())
    }

    fn stop_early(&mut self) -> Result<Option<PartialFile>, HandlerError> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push("early");
        Ok(Some(PartialFile { path: "a.partial".to_owned(), instead_of: "a".to_owned() }))
    }
}

static ENDS: Entry = Entry { name: "ends", about: "knows its end", example: "pattern ! ends", ..Entry::SINK };

#[test]
fn a_sink_is_stopped_early_exactly_if_its_stream_was_cut() {
    let stop_soon = |how: fn(&Stopper)| {
        move |stopper: Stopper| {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(100));
                how(&stopper);
            });
        }
    };
    let nothing = |_: Stopper| {};
    let endless = "pattern size=8x8 ! ends";
    let fails = "pattern size=8x8 frames=5 ! fails ! ends";
    let (short, long) = ("pattern size=8x8 frames=5 ! ends", Some(Duration::from_millis(100)));
    check(short, None, &nothing, &["whole"]);
    check(endless, long, &nothing, &["whole"]);
    check(endless, None, &stop_soon(Stopper::stop), &["early"]);
    check(endless, None, &stop_soon(Stopper::end), &["whole"]);
    check(endless, None, &stop_soon(Stopper::finish), &["whole"]);
    check(fails, None, &nothing, &["early"]);
    // One stream has ended before the other stream is cut.
    let two = format!("{short}; {endless}");
    check(&two, None, &stop_soon(Stopper::stop), &["early", "whole"]);
}

#[track_caller]
fn check(text: &str, longest: Option<Duration>, meanwhile: &dyn Fn(Stopper), expected: &[&str]) {
    let mut registry = vramp::registry();
    let ends = Arc::new(Mutex::new(Vec::new()));
    let given = Arc::clone(&ends);
    registry.add(&ENDS, move |_| Ok(Worker::frames(Ends(Arc::clone(&given))))).expect("a good entry");
    let fails = |_: &Setup<'_>| {
        let process = |call: &mut Call<'_>| assert!(call.now().number < 3, "on purpose");
        Ok(Worker::frames(Life { process, starts: Arc::new(AtomicU64::new(0)), stops: Arc::default() }))
    };
    registry.add(&FAILS, fails).expect("a good entry");
    let spec = vramp::read(text, registry.catalog()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let graph = registry.check(&spec).unwrap_or_else(|error| panic!("{error}"));
    let mut pipeline = Pipeline::from_graph(graph.clone())
        .registry(&registry)
        .options(for_long(RunOptions::new().only(Space::Cpu), longest))
        .build()
        .unwrap_or_else(|error| panic!("{error}"));
    meanwhile(pipeline.stopper());
    let outcome = pipeline.outcome().unwrap_or_else(|error| panic!("{error}"));
    let mut ends = ends.lock().unwrap_or_else(PoisonError::into_inner).clone();
    ends.sort_unstable();
    assert_eq!(ends, expected, "{text}");
    let partial: Vec<&str> = outcome.report.partial_files.iter().map(|file| file.handler.as_str()).collect();
    assert_eq!(partial.len(), expected.iter().filter(|end| **end == "early").count(), "{partial:?}");
}

static FAILS: Entry = Entry { name: "fails", about: "fails at frame 3", example: "pattern ! fails ! null", ..OWN };
