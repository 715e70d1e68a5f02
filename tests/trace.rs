//! Timelines and times: every call is a span, spans of a track do not overlap, and spans of the device are inside their
//! submission. If frames are late, the slow handler is named, in whichever lane it runs.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use vramp::Pipeline;
use vramp::gpu::{Device, StampPlaces};
use vramp::plan::catalog::{Entry, Fallback, Family, Liveness, Output, RateRule, Setting, SizeRule, ValueType, Work};
use vramp::plan::{Format, Graph, RunOptions, Size, Space};
use vramp::runtime::observe::{SpanKind, TraceSpan};
use vramp::runtime::{
    Call, Flow, FrameHandler, HandlerError, Registry, Report, RunEvent, Setup, Stepped, Trace, Worker,
};

const fn setting(name: &'static str, value: ValueType, usual: &'static str) -> Setting {
    Setting { name, value, fallback: Fallback::Is(usual), liveness: Liveness::Fixed, about: "for tests" }
}

/// By how many milliseconds each call of the handler moves the clock.
const FAR: Setting = setting("ms", ValueType::Int { min: 0, max: 1000 }, "0");
const MS: &[Setting] = &[FAR];
const OWN: Entry =
    Entry { family: Family::Control, spaces: &[Space::Cpu], work: Work::NONE, settings: MS, ..Entry::CONTROL };
static TAKES: Entry = Entry { name: "takes", about: "takes its time", example: "pattern ! takes ! null", ..OWN };
static TAKES_ALONE: Entry = Entry {
    name: "takes_alone",
    about: "takes its time in a lane of its own",
    example: "pattern ! takes_alone ! null",
    blocking: true,
    ..OWN
};
static MAKES: Entry = Entry {
    name: "makes",
    about: "a source that takes its time",
    example: "makes ! null",
    outputs: &[Output { size: SizeRule::Setting("size"), rate: RateRule::Setting("fps"), ..Output::VIDEO }],
    settings: &[FAR, setting("size", ValueType::Size, "8x8"), setting("fps", ValueType::Rate, "60")],
    ..Entry::SOURCE
};
static KEEPS: Entry = Entry {
    name: "keeps",
    about: "a sink that takes its time",
    example: "pattern ! keeps",
    settings: MS,
    ..Entry::SINK
};

fn graph(text: &str, registry: &Registry) -> Graph {
    let spec = vramp::read(text, registry.catalog()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    registry.check(&spec).unwrap_or_else(|error| panic!("{error}"))
}

fn run(text: &str, options: RunOptions, trace: Option<&Trace>, device: Option<&Device>) -> Report {
    let mut builder = Pipeline::parse(text).options(options);
    if let Some(device) = device {
        builder = builder.device(device);
    }
    if let Some(trace) = trace {
        builder = builder.trace(trace);
    }
    let outcome = builder.build().unwrap_or_else(|error| panic!("{text}: {error}")).outcome().expect("threads");
    outcome.into_result().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn frames(spans: &[(String, TraceSpan)]) -> BTreeMap<&str, Vec<u64>> {
    let mut found: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for (name, span) in spans {
        if let SpanKind::Frame { frame, .. } = span.act {
            found.entry(name).or_default().push(frame);
        }
    }
    found
}

/// Checks what holds for the trace of every run that reached its end.
#[track_caller]
fn check(trace: &Trace, report: &Report) {
    for track in trace.tracks() {
        let own: Vec<&TraceSpan> = track
            .spans
            .iter()
            .map(|(_, span)| span)
            .filter(|span| matches!(span.act, SpanKind::Frame { .. }))
            .collect();
        assert!(own.iter().all(|span| span.begin_ns <= span.end_ns), "{}", track.name);
        let apart = own.is_sorted_by(|one, next| one.end_ns <= next.begin_ns);
        assert!(apart, "spans of {} overlap: {own:?}", track.name);
        let found = frames(&track.spans);
        for handler in report.handlers.iter().filter(|_| !track.device) {
            let of_node = found.iter().find(|(name, _)| name.split('+').any(|part| part == handler.name));
            if let Some((_, numbers)) = of_node {
                assert_eq!(numbers.len() as u64, handler.calls, "{}", handler.name);
                assert!(numbers.is_sorted(), "{}: {numbers:?}", handler.name);
            }
        }
    }
    let drawn: usize =
        trace.tracks().iter().filter(|track| !track.device).map(|track| frames(&track.spans).len()).sum();
    assert!(drawn > 0, "something was drawn");
}

const CPU: &str = "pattern size=32x24 frames=50 ! blur ! invert ! delay frames=2 keep-times=true ! null";

#[test]
fn every_call_of_every_node_is_a_span_with_its_frame() {
    let trace = Trace::default();
    let report = run(CPU, RunOptions::new().only(Space::Cpu), Some(&trace), None);
    check(&trace, &report);
    let tracks = trace.tracks();
    let all: Vec<(String, TraceSpan)> = tracks.iter().flat_map(|track| track.spans.clone()).collect();
    let found = frames(&all);
    let expected: Vec<u64> = (0..50).collect();
    for name in ["pattern0", "null0"] {
        assert!(
            found.iter().any(|(node, numbers)| node.split('+').any(|n| n == name) && *numbers == expected),
            "{name}"
        );
    }
    assert_eq!(report.timing, "cpu");
    assert_eq!((report.gpu_ms.p50, report.gpu_busy), (None, None), "what was not measured is not 0");
}

#[test]
fn the_oldest_spans_make_way_and_a_traced_run_allocates_nothing_once_it_is_steady() {
    let trace = Trace::keeping(10);
    let text = "pattern size=32x24 frames=400 ! markers ! fps ! null";
    for space in [Space::Cpu, Space::Gpu] {
        let report = run(text, RunOptions::new().only(space).threads(1), Some(&trace), None);
        assert_eq!(report.steady.heap_allocs, Some(0.0), "{space}: {report:?}");
        assert_eq!((report.steady.gpu_allocs, report.steady.bind_groups), (0.0, 0.0), "{space}");
    }
    for track in trace.tracks() {
        assert_eq!(track.spans.len(), 10, "{}", track.name);
        assert!(track.lost >= 390, "{}: {}", track.name, track.lost);
    }
}

#[test]
fn spans_of_the_device_lie_inside_their_submission_and_name_every_kernel_of_every_frame() {
    let text = "pattern size=32x24 frames=40 ! blur ! invert ! null";
    for places in [StampPlaces::Acts, StampPlaces::Passes, StampPlaces::Nowhere] {
        let device = Device::choose().stamps(places).open().unwrap_or_else(|error| panic!("needs an adapter: {error}"));
        let trace = Trace::default();
        let report = run(text, RunOptions::new().only(Space::Gpu).fusion(false), Some(&trace), Some(&device));
        check(&trace, &report);
        let stamped = device.stamps() != StampPlaces::Nowhere;
        assert_eq!(stamped, places != StampPlaces::Nowhere && device.adapter().has_timestamps);
        assert_eq!(report.timing, if stamped { "timestamps" } else { "fenced" });
        assert!(report.gpu_ms.p50.is_some_and(|ms| ms > 0.0) && report.gpu_ms.p99 >= report.gpu_ms.p50, "{report:?}");
        assert!(report.gpu_busy.is_some_and(|share| share > 0.0 && share <= 1.0), "{report:?}");
        let tracks = trace.tracks();
        let on_device: Vec<_> = tracks.iter().filter(|track| track.device).collect();
        let [track] = on_device[..] else { panic!("one device: {tracks:?}") };
        let submissions: Vec<&TraceSpan> = track
            .spans
            .iter()
            .map(|(_, span)| span)
            .filter(|span| matches!(span.act, SpanKind::Submission { .. }))
            .collect();
        assert_eq!(submissions.len(), 40, "{places:?}");
        for (name, span) in track.spans.iter().filter(|(_, span)| matches!(span.act, SpanKind::Frame { .. })) {
            let inside = |outer: &&TraceSpan| outer.begin_ns <= span.begin_ns && span.end_ns <= outer.end_ns;
            assert!(submissions.iter().any(inside), "{places:?}: {name} {span:?}");
        }
        let found = frames(&track.spans);
        if stamped {
            for kernel in ["pattern0", "blur0", "invert0"] {
                let mut numbers = found[kernel].clone();
                numbers.dedup();
                assert_eq!(numbers, (0..40).collect::<Vec<_>>(), "{places:?}: {kernel}");
            }
        }
        let known = report.groups.iter().filter(|group| group.p50_us.is_some()).count();
        assert_eq!(known, if stamped { 3 } else { 0 }, "{places:?}: three kernels share a submission: {report:?}");
    }
}

#[test]
fn an_ordinary_run_times_kernels_by_sample_and_keeps_one_pass() {
    let text = "pattern size=32x24 frames=64 ! blur ! null";
    for places in [StampPlaces::Acts, StampPlaces::Passes, StampPlaces::Nowhere] {
        let device = Device::choose().stamps(places).open().unwrap_or_else(|error| panic!("needs an adapter: {error}"));
        let report = run(text, RunOptions::new().only(Space::Gpu), None, Some(&device));
        assert_eq!((report.counters.passes, report.counters.submits), (64, 64), "{places:?}");
        assert!(report.gpu_ms.p50.is_some(), "{places:?}: {report:?}");
        let known = report.handlers.iter().filter(|handler| handler.p50_us.is_some()).count();
        // Two kernels share a pass: only timestamps inside the pass tell them apart.
        assert_eq!(known, if device.stamps() == StampPlaces::Acts { 3 } else { 1 }, "{places:?}: {report:?}");
    }
}

#[test]
fn a_trace_is_json_that_a_viewer_opens_with_counters_drops_and_arrows() {
    let trace = Trace::default();
    let text = "pattern size=32x24 frames=200 name=p ! blur ! null; p. !{queue depth=1} takes_alone ! null";
    let registry = Clock::default().registry();
    let graph = graph(text, &registry);
    let mut pipeline = Pipeline::from_graph(graph)
        .registry(&registry)
        .options(RunOptions::new().only(Space::Cpu))
        .trace(&trace)
        .build();
    let report = pipeline.as_mut().expect("a plan").outcome().expect("threads").into_result().expect("nothing fails");
    check(&trace, &report);
    let mut bytes = Vec::new();
    Trace::write(&[("vramp", &trace)], &mut bytes).expect("memory takes everything");
    let page: Value = serde_json::from_slice(&bytes).expect("it is JSON");
    let events = page["traceEvents"].as_array().expect("a list");
    let of = |ph: &str| events.iter().filter(|event| event["ph"] == ph).count() as u64;
    let calls: u64 = trace.tracks().iter().map(|track| track.spans.len() as u64).sum();
    assert_eq!(of("X"), calls);
    assert_eq!(of("s"), of("f"), "an arrow that begins ends");
    assert!(of("s") == 200 && of("C") > 0, "{} arrows, {} counters", of("s"), of("C"));
    let dropped: u64 =
        events.iter().filter(|event| event["cat"] == "drop").filter_map(|event| event["args"]["frames"].as_u64()).sum();
    assert!(dropped <= report.dropped.sum(), "{dropped} of {}", report.dropped.sum());
    for event in events.iter().filter(|event| event["ph"] == "X") {
        assert!(event["args"]["frame"].is_u64() && event["dur"].as_f64().is_some_and(|us| us >= 0.0), "{event}");
    }
}

#[test]
fn a_full_disk_is_an_error_not_a_short_file() {
    struct Full(usize);
    impl io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let trace = Trace::default();
    run(CPU, RunOptions::new().only(Space::Cpu), Some(&trace), None);
    let error = Trace::write(&[("vramp", &trace)], &mut Full(500)).expect_err("there is no room");
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

/// A clock that only handlers and tests move.
#[derive(Clone, Default)]
struct Clock {
    now_ns: Arc<AtomicU64>,
}

impl Clock {
    fn move_by(&self, time: Duration) {
        self.now_ns.fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }

    /// The built-in kinds, and kinds that move this clock with every call.
    fn registry(&self) -> Registry {
        let mut registry = vramp::registry();
        for entry in [&TAKES, &TAKES_ALONE, &MAKES, &KEEPS] {
            let clock = self.clone();
            let make = move |setup: &Setup<'_>| {
                let each = Duration::from_millis(setup.settings.int("ms").unwrap_or(0).unsigned_abs());
                let size = setup.outputs.iter().flatten().find_map(|content| content.frame()).map(|frame| frame.size);
                let size = size.filter(|_| setup.inputs.is_empty());
                Ok(Worker::frames(Takes { clock: clock.clone(), each, size, sends: !setup.outputs.is_empty() }))
            };
            registry.add(entry, make).expect("a good entry");
        }
        registry
    }

    /// Steps a pipeline, paced at 60 frames a second, to its end. Each step moves the clock by `idle`. Returns the
    /// handlers that were blamed for late frames, each with its time and the allowed time in milliseconds.
    fn blamed(&self, text: &str, space: Space, idle: Duration) -> Vec<(String, u128, u128)> {
        let (registry, heard) = (self.registry(), Arc::new(Mutex::new(Vec::new())));
        let (graph, blamed) = (graph(text, &registry), Arc::clone(&heard));
        let listener = move |event: &RunEvent| {
            if let RunEvent::Slow { handler, own, budget, .. } = event {
                let entry = (handler.clone(), own.as_millis(), budget.as_millis());
                blamed.lock().unwrap_or_else(PoisonError::into_inner).push(entry);
            }
        };
        let builder = Pipeline::from_graph(graph)
            .registry(&registry)
            .options(RunOptions::new().only(space).pace("60".parse().expect("a rate")).threads(1).frames(120));
        let builder = builder.trace(&Trace::keeping(100)).listener(Arc::new(listener));
        let pipeline = builder.build().unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut pipeline = pipeline.into_engine().expect("it has not run");
        pipeline.start().unwrap_or_else(|failure| panic!("{text}: {failure}"));
        loop {
            self.move_by(idle);
            match pipeline.step(&|| self.now()) {
                Stepped::Over => break,
                Stepped::Failed(failure) => panic!("{text}: {failure}"),
                Stepped::Wait(time) => self.move_by(time),
                Stepped::Stuck => {
                    pipeline.wait_for_device(Duration::from_secs(10));
                }
                Stepped::Moved => {}
            }
        }
        pipeline.finish(self.now());
        heard.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

struct Takes {
    clock: Clock,
    each: Duration,
    /// The size of the frames, if the handler is a source.
    size: Option<Size>,
    sends: bool,
}

impl FrameHandler for Takes {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        self.clock.move_by(self.each);
        let frame = match self.size {
            Some(size) => Some(call.lend(Format::Rgba8, size)?),
            None => call.take(0),
        };
        let Some(frame) = frame else { return Ok(Flow::Filtered) };
        if self.sends {
            call.send(0, frame);
        }
        Ok(Flow::Produced)
    }
}

/// Asserts that only this handler was blamed, with this time.
#[track_caller]
fn names(text: &str, handler: &str, own_ms: u128) {
    let blamed = Clock::default().blamed(text, Space::Cpu, Duration::ZERO);
    assert!(!blamed.is_empty(), "{text}: no handler was blamed");
    for (name, own, budget) in &blamed {
        assert_eq!((name.as_str(), *own, *budget), (handler, own_ms, 16), "{text}: {blamed:?}");
    }
}

#[test]
fn a_slow_handler_is_named_in_whichever_lane_it_runs() {
    names("makes ms=40 ! takes ms=3 ! blur ! keeps ms=2", "makes0", 40);
    names("pattern size=8x8 frames=30 ! takes ms=3 ! takes_alone ms=40 ! takes ms=5 ! keeps ms=9", "takes_alone0", 40);
    names("pattern size=8x8 frames=30 ! takes ms=31 ! takes_alone ms=9 ! keeps ms=2", "takes0", 31);
    names("pattern size=8x8 frames=30 ! takes_alone ms=7 ! blur ! keeps ms=33", "keeps0", 33);
}

#[test]
fn a_branch_that_holds_its_source_back_is_named_for_the_others_too() {
    let text = "pattern size=8x8 frames=30 name=p ! takes_alone name=quick ms=1 ! keeps ms=1; \
                p. ! takes_alone name=slow ms=40 ! keeps ms=1";
    names(text, "slow", 40);
}

#[test]
fn a_slow_handler_is_named_once_a_second() {
    let clock = Clock::default();
    let text = "pattern size=8x8 frames=100 ! takes ms=50 ! null";
    let blamed = clock.blamed(text, Space::Cpu, Duration::ZERO);
    // 100 frames of 50 ms take five seconds, and a handler is blamed once per second.
    assert!((4..=6).contains(&blamed.len()), "{} times in {:?}", blamed.len(), clock.now());
}

#[test]
fn a_slow_kernel_is_named_by_the_time_that_the_device_takes() {
    let clock = Clock::default();
    let text = "pattern size=64x48 frames=20 ! blur sigma=20 ! null";
    let blamed = clock.blamed(text, Space::Gpu, Duration::from_millis(15));
    assert!(!blamed.is_empty() && blamed.iter().all(|(name, ..)| name == "blur0"), "{blamed:?}");
}

#[test]
fn frames_that_are_fewer_on_purpose_are_not_late() {
    for text in ["pattern size=8x8 frames=90 ! every n=9 ! null", "pattern size=8x8 frames=90 ! takes ms=9 ! null"] {
        assert_eq!(Clock::default().blamed(text, Space::Cpu, Duration::ZERO), [], "{text}");
    }
}
