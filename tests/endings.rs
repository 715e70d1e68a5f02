//! Joins end at the right frame, and members of a fusion group handle errors by the rules. Random graphs have sources
//! with different lengths and rates, joins with every `until`, delays and thinning, and members that fail, panic or
//! filter under every `on-error`.
//!
//! A model of the documented rules computes from the graph which frames arrive. Every graph then runs fused and
//! unfused, on one thread and on several, on the CPU or on the GPU. The frames of each sink and the error that ended
//! the run must agree with the model, and the counters and reported failures of all runs must be the same.
//!
//! `VRAMP_SEED=17` runs only seed 17.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vramp::Pipeline;
use vramp::gpu::Device;
use vramp::plan::catalog::{Entry, Fallback, Liveness, Setting, ValueType};
use vramp::plan::{GraphSpec, HandlerSpec, OnError, RunOptions, Space};
use vramp::runtime::{Call, Flow, FrameHandler, HandlerError, Registry, RunError, RunEvent, Setup, Worker};

use crate::random::chance::Chance;
use crate::random::trouble::{self, does_stumble, lock, quietly};
use crate::shared::KEEPS;

// ---- handlers

const fn setting(name: &'static str, value: ValueType, default: &'static str) -> Setting {
    Setting { name, value, fallback: Fallback::Is(default), liveness: Liveness::Fixed, about: "for the test" }
}

const WHOLE: ValueType = ValueType::Int { min: 0, max: 1000 };

static LAGS: Entry = Entry {
    name: "lags",
    about: "is slow now and then",
    example: "pattern ! lags ! null",
    settings: &[setting("each", WHOLE, "3")],
    spaces: &[Space::Cpu],
    // The handler has its own lane, so that other handlers run ahead of it.
    blocking: true,
    ..Entry::CONTROL
};

/// Passes frames through, some of them late, so that later handlers wait.
struct Lags(u64);

impl FrameHandler for Lags {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let frame = call.take(0).ok_or_else(|| HandlerError::failed("no lead frame"))?;
        if frame.meta().number.is_multiple_of(self.0) {
            std::thread::sleep(Duration::from_micros(300));
        }
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

struct Keeps(String, Arc<Mutex<Kept>>);

/// Number, time and bytes of each frame, by sink.
type Kept = BTreeMap<String, Vec<(u64, i64, Vec<u8>)>>;

impl FrameHandler for Keeps {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let frame = call.take(0).ok_or_else(|| HandlerError::failed("no lead frame"))?;
        let seen = (frame.meta().number, frame.meta().pts_ns, frame.bytes().to_vec());
        lock(&self.1).entry(self.0.clone()).or_default().push(seen);
        Ok(Flow::Produced)
    }
}

fn registry(kept: &Arc<Mutex<Kept>>) -> Registry {
    let mut registry = vramp::registry();
    trouble::add_to(&mut registry, &Arc::default());
    let lags =
        |setup: &Setup<'_>| Ok(Worker::frames(Lags(setup.settings.int("each").unwrap_or(1).unsigned_abs().max(1))));
    registry.add(&LAGS, lags).expect("a good entry");
    let kept = Arc::clone(kept);
    let keeps = move |setup: &Setup<'_>| Ok(Worker::frames(Keeps(setup.name.to_owned(), Arc::clone(&kept))));
    registry.add(&KEEPS, keeps).expect("a good entry");
    registry
}

// ---- graphs and the model of their results

/// A position in a stream; `frame` is false if its frame was dropped.
#[derive(Debug, Clone, Copy)]
struct Place {
    number: u64,
    pts_ns: i64,
    frame: bool,
}

/// The positions of an output.
#[derive(Debug, Clone, Default)]
struct Stream {
    places: Vec<Place>,
    end_ns: Option<i64>,
}

impl Stream {
    fn frames(&self) -> Vec<(u64, i64)> {
        self.places.iter().filter(|place| place.frame).map(|place| (place.number, place.pts_ns)).collect()
    }
}

/// The aspect that a graph tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    /// Which frames arrive. Sources have different lengths and rates.
    Ends,
    /// The counters and reports of handlers, and which frames arrive. All sources are alike, and members fail and skip
    /// frames.
    Counts,
    /// Which member's failure stops the run. All sources are alike.
    Stops,
}

struct Drawn {
    spec: GraphSpec,
    about: About,
    /// Number and time of each frame, by sink.
    expected: BTreeMap<String, Vec<(u64, i64)>>,
    /// The handler and frame of the failure that stops the run.
    error: Option<(String, u64)>,
}

fn draw(seed: u64) -> Drawn {
    let chance = &mut Chance::of(seed);
    let about = chance.pick(&[About::Ends, About::Ends, About::Counts, About::Stops]);
    let mut spec = GraphSpec::new();
    let mut streams: Vec<Stream> = Vec::new();
    let mut handlers = Vec::new();
    let (usual, rate) = (chance.between(1, 12).unsigned_abs(), chance.pick(&[30_u64, 25, 60]));
    for _ in 0..chance.pick(&[1, 2, 2, 3]) {
        let alike = about != About::Ends;
        let frames = if alike { usual } else { chance.between(1, 15).unsigned_abs() };
        let rate = if alike { rate } else { chance.pick(&[60, 30, 30, 25]) };
        let kind = chance.pick(&["ball", "bars", "noise", "gradient"]);
        let source = HandlerSpec::new("pattern").set("size", "8x8").set("kind", kind).set("label", "false");
        handlers.push(spec.add(source.set("frames", frames).set("fps", rate)));
        let place = |n: u64| Place { number: n, pts_ns: (n * 1_000_000_000 / rate).cast_signed(), frame: true };
        let places: Vec<Place> = (0..frames).map(place).collect();
        streams.push(Stream { end_ns: places.last().map(|place| place.pts_ns), places });
    }
    let mut read = vec![false; streams.len()];
    let mut error = None;
    let mut stops = about == About::Stops;
    for _ in 0..chance.between(1, 8) {
        let open: Vec<usize> = (0..streams.len()).filter(|at| !read[*at]).collect();
        let known = streams.len();
        let from = |chance: &mut Chance| {
            if open.is_empty() || chance.once_in(5) { chance.below(known) } else { chance.pick(&open) }
        };
        let lead = from(chance);
        let kind = chance.pick(&[
            "stumbles",
            "stumbles",
            "mix",
            "mix",
            "mix",
            "compositor",
            "invert",
            "blur",
            "delay",
            "every",
            "lags",
        ]);
        let mut handler = HandlerSpec::new(kind);
        let mut inputs = Vec::new();
        let made = match kind {
            "mix" | "compositor" => {
                let ports: &[&str] = if kind == "mix" { &["a", "b"] } else { &["in0", "in1", "in2"] };
                inputs = ports.iter().map(|port| (*port, from(chance))).collect();
                inputs[0].1 = lead;
                let leads = if chance.once_in(4) { chance.below(ports.len()) } else { 0 };
                handler = if leads > 0 { handler.set("lead", ports[leads]) } else { handler };
                let mut end_ns = streams[inputs[leads].1].end_ns;
                if chance.once_in(2) {
                    handler = handler.set("until", "shortest");
                    end_ns = inputs.iter().map(|(_, from)| streams[*from].end_ns).min().unwrap_or(end_ns);
                }
                let lasts = |place: &&Place| Some(place.pts_ns) <= end_ns;
                let places = streams[inputs[leads].1].places.iter().filter(lasts).copied().collect();
                if kind == "mix" {
                    handler = handler.set("amount", "0.5");
                }
                Stream { places, end_ns }
            }
            "stumbles" => {
                let (each, from) = (chance.between(1, 5).unsigned_abs(), chance.between(0, 5).unsigned_abs());
                let how = chance.pick(&["fails", "panics", "filters", "fails-once"]);
                let on_error = if stops && how != "filters" && how != "fails-once" {
                    stops = false;
                    OnError::Stop
                } else if how == "fails-once" {
                    OnError::Retry
                } else {
                    chance.pick(&[OnError::Skip, OnError::Skip, OnError::Retry])
                };
                handler = handler.set("each", each).set("from", from).set("how", how).on_error(on_error);
                let mut made = streams[lead].clone();
                let hit = |place: &&mut Place| place.frame && does_stumble(each, from, place.number);
                for place in made.places.iter_mut().filter(hit) {
                    place.frame = how == "fails-once";
                    if on_error == OnError::Stop && error.is_none() {
                        error = Some((spec.handlers().len(), place.number));
                    }
                }
                made
            }
            "delay" => {
                let held = chance.below(4);
                handler = handler.set("frames", held);
                // With `keep-times`, frames arrive late, but all of them arrive, with their own times.
                let held = if chance.once_in(3) {
                    handler = handler.set("keep-times", true);
                    0
                } else {
                    held
                };
                let before = &streams[lead].places;
                let shifted = before.iter().zip(before.iter().skip(held));
                let places = shifted.map(|(old, now)| Place { frame: old.frame && now.frame, ..*now }).collect();
                Stream { places, end_ns: streams[lead].end_ns }
            }
            "lags" => {
                handler = handler.set("each", 1 + chance.below(4));
                streams[lead].clone()
            }
            "every" => {
                let n = 1 + chance.below(3);
                handler = handler.set("n", n);
                Stream { places: streams[lead].places.iter().step_by(n).copied().collect(), ..streams[lead] }
            }
            _ => streams[lead].clone(),
        };
        let at = spec.add(handler);
        if inputs.is_empty() {
            inputs.push(("video", lead));
        }
        for (port, from) in inputs {
            spec.connect(handlers[from], at.port(port));
            read[from] = true;
        }
        handlers.push(at);
        streams.push(made);
        read.push(false);
    }
    let mut expected = BTreeMap::new();
    for at in (0..streams.len()).filter(|at| !read[*at]) {
        let name = format!("sink{at}");
        let sink = spec.add(HandlerSpec::new("keeps").named(&name));
        spec.connect(handlers[at], sink);
        expected.insert(name, streams[at].frames());
    }
    let names = spec.names();
    let error = error.map(|(at, frame)| (names[at].clone(), frame));
    Drawn { spec, about, expected, error }
}

// ---- runs

/// The results of a run.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    kept: Kept,
    /// Calls, errors, emitted and filtered frames, by handler.
    counts: Vec<(String, [u64; 4])>,
    reported: Vec<(String, u64)>,
    error: Option<(String, u64)>,
}

fn run(drawn: &Drawn, fused: bool, threads: u32, device: Option<&Device>) -> Seen {
    let kept = Arc::default();
    let registry = registry(&kept);
    let graph = registry.check(&drawn.spec).unwrap_or_else(|error| panic!("{error}"));
    let reported = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&reported);
    let listener = Arc::new(move |event: &RunEvent| {
        if let RunEvent::Failed { handler, frame, .. } = event {
            lock(&heard).push((handler.clone(), *frame));
        }
    });
    let options = RunOptions::new().nominal_time().fusion(fused).threads(threads);
    let builder = Pipeline::from_graph(graph).registry(&registry).listener(listener);
    let pipeline = match device {
        None => builder.options(options.only(Space::Cpu)).build(),
        Some(device) => builder.options(options.only(Space::Gpu)).device(device).build(),
    };
    let outcome = pipeline.and_then(|mut pipeline| pipeline.outcome()).unwrap_or_else(|error| panic!("{error}"));
    let report = &outcome.report;
    assert_eq!(report.memory.leaked, 0, "{:?}", report.memory.leaks);
    let handler =
        |h: &vramp::runtime::observe::HandlerTime| (h.name.clone(), [h.calls, h.errors, h.emitted, h.filtered]);
    let mut counts: Vec<_> = report.handlers.iter().map(handler).collect();
    counts.sort();
    let error = outcome.error.map(|error| match error {
        RunError::Failed(failure) => (failure.handler, failure.frame),
        other @ RunError::Unresponsive { .. } => panic!("{other}"),
    });
    let mut reported = std::mem::take(&mut *lock(&reported));
    reported.sort();
    let kept = std::mem::take(&mut *lock(&kept));
    Seen { kept, counts, reported, error }
}

/// Describes how a run differs from the model or from another run. `None` if it does not.
fn wrong(drawn: &Drawn, seen: &Seen, other: &Seen) -> Option<String> {
    if seen.error != drawn.error {
        return Some(format!("it ended with {:?} instead of {:?}", seen.error, drawn.error));
    }
    if drawn.about == About::Stops && drawn.error.is_some() {
        // How many frames arrive before a stop depends on the timing of threads.
        return None;
    }
    for (sink, expected) in &drawn.expected {
        let frames = seen.kept.get(sink).map(|frames| frames.iter().map(|(number, pts, _)| (*number, *pts)).collect());
        let frames: Vec<_> = frames.unwrap_or_default();
        if frames != *expected {
            return Some(format!("{sink} got\n{frames:?} instead of\n{expected:?}"));
        }
    }
    if seen.kept != other.kept {
        return Some("pixels differ".to_owned());
    }
    if drawn.about != About::Ends && (&seen.counts, &seen.reported) != (&other.counts, &other.reported) {
        let (a, b) = ((&seen.counts, &seen.reported), (&other.counts, &other.reported));
        return Some(format!("counted and reported are\n{a:?} and\n{b:?}"));
    }
    None
}

fn seeds(from: u64, usual: u64, long: u64) -> std::ops::Range<u64> {
    match std::env::var("VRAMP_SEED").map(|seed| seed.parse()) {
        Ok(Ok(seed)) => seed..seed + 1,
        _ if std::env::var_os("VRAMP_LONG").is_some() => from..from + long,
        _ => from..from + usual,
    }
}

#[test]
fn random_graphs_end_by_the_rule_and_fused_members_keep_their_policies() {
    quietly();
    let (mut stopped, mut failed) = (0, 0);
    for seed in seeds(0, 2000, 50_000) {
        let drawn = draw(seed);
        let fused = run(&drawn, true, 1 + (seed % 3) as u32, None);
        let unfused = run(&drawn, false, 1 + ((seed + 1) % 3) as u32, None);
        let wrong = wrong(&drawn, &fused, &unfused)
            .map(|why| format!("fused: {why}"))
            .or_else(|| wrong(&drawn, &unfused, &fused).map(|why| format!("unfused: {why}")));
        if let Some(why) = wrong {
            panic!("seed {seed}, {:?}: {why}\n{}", drawn.about, vramp::plan::write_text(&drawn.spec));
        }
        stopped += u32::from(fused.error.is_some());
        failed += u32::from(!fused.reported.is_empty());
    }
    assert!(std::env::var_os("VRAMP_SEED").is_some() || (stopped > 50 && failed > 200), "{stopped} {failed}");
}

#[test]
fn random_graphs_end_by_the_rule_on_the_device_too() {
    quietly();
    let device = Device::choose().open().expect("an adapter; Mesa's software driver is one package away");
    for seed in seeds(100_000, 200, 1000) {
        let drawn = draw(seed);
        let host = run(&drawn, true, 2, None);
        for fused in [true, false] {
            let there = run(&drawn, fused, 2, Some(&device));
            if let Some(why) = wrong(&drawn, &there, &host) {
                let text = vramp::plan::write_text(&drawn.spec);
                panic!("seed {seed}, {:?}, fused {fused}: {why}\n{text}", drawn.about);
            }
        }
    }
}

#[test]
fn a_join_ends_the_same_however_slow_its_inputs_are() {
    // The second source ends while its fusion group waits for the third source.
    let text = |slow: &str| {
        format!(
            "pattern size=8x8 fps=60 frames=100 ! mix name=x until=shortest ! keeps name=k\n\
             pattern size=8x8 kind=bars fps=30 frames=3 ! mix name=m ! x.b\n\
             pattern size=8x8 kind=noise fps=25 frames=9{slow} ! m.b"
        )
    };
    for slow in ["", " ! lags each=1"] {
        let kept = Arc::default();
        let registry = registry(&kept);
        let spec = vramp::read(&text(slow), registry.catalog()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let drawn = Drawn { spec, about: About::Ends, expected: BTreeMap::new(), error: None };
        for fused in [true, false] {
            let frames: Vec<_> = (0..5).map(|_| run(&drawn, fused, 2, None).kept["k"].len()).collect();
            assert_eq!(frames, [5; 5], "fused {fused}{slow}");
        }
    }
}

#[test]
fn one_member_s_until_does_not_end_its_group() {
    for join in ["mix", "compositor"] {
        for mirrored in [false, true] {
            let (a, b) = if mirrored { ("", " until=shortest") } else { (" until=shortest", "") };
            let port = if join == "mix" { "b" } else { "in1" };
            let (long, short) = if mirrored { ("b", "a") } else { ("a", "b") };
            let text = format!(
                "pattern size=8x8 frames=11 ! {join} name=a{a} ! {join} name=b{b} ! keeps name=k\n\
                 pattern kind=bars size=8x8 frames=11 ! {long}.{port}; pattern kind=noise size=8x8 frames=3 ! {short}.{port}"
            );
            let kept = Arc::default();
            let registry = registry(&kept);
            let spec = vramp::read(&text, registry.catalog()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
            let drawn = Drawn { spec, about: About::Ends, expected: BTreeMap::new(), error: None };
            let frames = |fused| run(&drawn, fused, 2, None).kept["k"].len();
            assert_eq!((frames(true), frames(false)), (11, 11), "{text}");
        }
    }
}

#[test]
fn a_member_that_gets_pictures_of_two_sizes_is_the_one_that_is_blamed_and_skipped() {
    let kept = Arc::default();
    let registry = registry(&kept);
    let folder = std::env::temp_dir().join(format!("vramp-endings-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for (at, side) in [8_u32, 8, 6, 8].into_iter().enumerate() {
        let file = std::fs::File::create(folder.join(format!("{at}.png"))).expect("a file");
        let mut encoder = png::Encoder::new(file, side, side);
        encoder.set_color(png::ColorType::Rgba);
        let mut writer = encoder.write_header().expect("a header");
        writer.write_image_data(&vec![200; (side * side * 4) as usize]).expect("pixels");
    }
    for (policy, error, frames) in [("skip", None, 3), ("stop", Some(("mix0".to_owned(), 2)), 2)] {
        let text = format!(
            "image path=\"{}/*.png\" ! invert ! mix on-error={policy} ! keeps name=k; pattern size=8x8 ! mix0.b",
            folder.display()
        );
        let spec = vramp::read(&text, registry.catalog()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let drawn = Drawn { spec, about: About::Ends, expected: BTreeMap::new(), error: None };
        for fused in [true, false] {
            let seen = run(&drawn, fused, 1, None);
            assert_eq!(seen.error, error, "fused {fused}: {text}");
            assert!(policy == "stop" || seen.kept["k"].len() == frames, "{:?}", seen.kept["k"].len());
            let reported = if policy == "skip" { vec![("mix0".to_owned(), 2)] } else { Vec::new() };
            assert_eq!(seen.reported, reported, "fused {fused}");
        }
    }
    std::fs::remove_dir_all(&folder).expect("it was made here");
}
