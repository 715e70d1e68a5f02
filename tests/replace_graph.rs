//! The graph of a running pipeline is replaced between two frames: no frame is lost, numbers continue, and handlers that
//! are in both graphs keep their state.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use vramp::plan::Graph;
use vramp::plan::catalog::{Output, SizeRule};
use vramp::prelude::*;
use vramp::runtime::{Registry, RunEvent, RunProgress};
use vramp::{Applied, ApplyError};

/// The numbers and sums of the frames that a `note` sink has received, over its whole life.
type Notes = Arc<Mutex<Vec<(u64, i64, u8)>>>;

static NOTE: Entry = Entry { name: "note", about: "keeps what it receives", example: "pattern ! note", ..Entry::SINK };
static TALLY: Entry = Entry {
    name: "tally",
    about: "writes the number of its call into the first byte",
    example: "pattern ! tally ! null",
    spaces: &[Space::Cpu],
    kernel: KernelRule::None,
    ..Entry::FILTER
};

struct Note(Notes);

impl FrameHandler for Note {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.input(0) else { return Ok(Flow::Filtered) };
        let meta = frame.meta();
        self.0.lock().unwrap().push((meta.number, meta.pts_ns, frame.bytes()[0]));
        Ok(Flow::Produced)
    }
}

/// Counts its calls: the state that must survive.
#[derive(Default)]
struct Tally {
    calls: u8,
    started: bool,
}

impl FrameHandler for Tally {
    fn start(&mut self, _: &mut StartContext<'_>) -> Result<(), HandlerError> {
        assert!(!std::mem::replace(&mut self.started, true), "a handler is started once");
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(mut frame) = call.take(0) else { return Ok(Flow::Filtered) };
        frame.edit(call.pool())?[0] = self.calls;
        self.calls = self.calls.wrapping_add(1);
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

fn registry(notes: &Notes) -> Registry {
    let mut registry = vramp::registry();
    let notes = Arc::clone(notes);
    registry.add(&NOTE, move |_| Ok(Note(Arc::clone(&notes)))).unwrap();
    registry.add(&TALLY, |_| Ok(Tally::default())).unwrap();
    registry
}

fn checked(text: &str, registry: &Registry) -> Graph {
    Pipeline::parse(text).registry(registry).check().expect(text)
}

fn spawned(text: &str, registry: &Registry, space: Space) -> Running {
    let options = RunOptions::new().only(space).threads(2);
    Pipeline::parse(text).registry(registry).options(options).build().expect(text).spawn().expect(text)
}

/// Waits until this many frames have arrived.
fn wait_for(notes: &Notes, frames: usize) {
    let begun = Instant::now();
    while notes.lock().unwrap().len() < frames {
        assert!(begun.elapsed() < Duration::from_secs(60), "the run does not go on");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn replaced_under_way(space: Space) {
    let notes = Notes::default();
    let registry = registry(&notes);
    let graphs = [
        "pattern size=32x24 frames=20000 ! brightness 0.1 ! tally ! note",
        "pattern size=32x24 frames=20000 ! tally ! blur sigma=2 ! note; pattern0. ! null",
        "pattern size=32x24 frames=20000 ! invert ! tally ! every 1 ! note",
        "pattern size=32x24 frames=20000 ! tally ! note",
    ];
    let running = spawned(graphs[0], &registry, space);
    let mut requests = Vec::new();
    let read = |requests: &mut Vec<[u64; 4]>| {
        let RunProgress { cpu_pool, gpu_pool, .. } = running.progress();
        requests.push([cpu_pool.hits, cpu_pool.misses, gpu_pool.hits, gpu_pool.misses]);
    };
    for (at, text) in graphs.iter().enumerate().skip(1) {
        wait_for(&notes, 100 * at);
        read(&mut requests);
        let applied = running.controls().apply(&checked(text, &registry)).expect(text);
        assert!(matches!(applied, Applied::Replaced), "{text}: {applied:?}");
        read(&mut requests);
    }
    let report = running.wait().unwrap();
    read(&mut requests);
    assert!((0..4).all(|count| requests.is_sorted_by_key(|counts| counts[count])), "no count restarts: {requests:?}");
    let last = requests[requests.len() - 1];
    assert!(last[0] + last[1] >= 3000, "the tally takes host memory for every frame: {last:?}");
    if let Some(device) = running.watch().device() {
        let pool = device.pool().statistics();
        assert_eq!((last[2], last[3]), (pool.hits, pool.misses), "no request on the device is missed or counted twice");
    }
    let notes = notes.lock().unwrap();
    let numbers: Vec<u64> = notes.iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (0..20000).collect::<Vec<_>>(), "no frame is lost, doubled or renumbered");
    assert!(notes.is_sorted_by_key(|(_, pts_ns, _)| *pts_ns), "times go on");
    assert_eq!((report.frames_in, report.counters.replans, report.memory.leaked), (20000, 3, 0));
    let calls = |from: usize| notes[from].2;
    assert_eq!(calls(19_999), (19_999 % 256) as u8, "the tally is the same handler from the first frame to the last");
}

#[test]
fn no_frame_is_lost_when_graphs_change_on_the_cpu() {
    replaced_under_way(Space::Cpu);
}

#[test]
fn no_frame_is_lost_when_graphs_change_on_the_device() {
    replaced_under_way(Space::Gpu);
}

#[test]
fn edits_of_settings_are_set_and_other_edits_replace_the_graph() {
    let notes = Notes::default();
    let registry = registry(&notes);
    let running = spawned("pattern size=32x24 ! brightness 0.1 ! tally ! note", &registry, Space::Cpu);
    let controls = running.controls();
    let apply = |text: &str| controls.apply(&checked(text, &registry));
    wait_for(&notes, 5);
    assert!(matches!(apply("pattern size=32x24 ! brightness 0.1 ! tally ! note"), Ok(Applied::Nothing)));
    assert!(matches!(apply("pattern size=32x24 ! brightness 0.3 ! tally ! note"), Ok(Applied::Set(_))));
    assert_eq!(controls.get("brightness0.amount").unwrap(), "0.3");
    assert!(matches!(apply("pattern size=64x24 ! brightness 0.3 ! tally ! note"), Ok(Applied::Replaced)));
    assert_eq!(controls.get("pattern0.size").unwrap(), "64x24", "the same controls reach the new graph");
    controls.set("brightness0.amount", 0.5).unwrap();
    let arrived = notes.lock().unwrap().len();
    wait_for(&notes, arrived + 20);
    running.stop();
    let report = running.wait().unwrap();
    assert!(report.frames_in >= arrived as u64 + 20, "the stopper reaches the new graph: {report:?}");
}

#[test]
fn a_graph_that_cannot_be_built_disturbs_nothing() {
    let notes = Notes::default();
    let registry = registry(&notes);
    let running = spawned("pattern size=32x24 frames=2000 ! tally ! note", &registry, Space::Cpu);
    wait_for(&notes, 10);
    for text in ["pattern size=32x24 ! wgsl code=\"fn pixel(c: vec4f) -> vec4f { return c; }\" ! note", "pattern ! app"]
    {
        let refused = running.controls().apply(&checked(text, &registry)).unwrap_err();
        assert!(matches!(refused, ApplyError::Graph(_) | ApplyError::HasEnds { .. }), "{text}: {refused}");
    }
    assert_eq!(running.wait().unwrap().frames_in, 2000);
    let numbers: Vec<u64> = notes.lock().unwrap().iter().map(|(number, ..)| *number).collect();
    assert_eq!(numbers, (0..2000).collect::<Vec<_>>());
}

#[test]
fn a_handler_that_leaves_the_graph_is_stopped_and_its_file_is_whole() {
    let folder = std::env::temp_dir().join(format!("vramp-replace-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("a.y4m");
    let notes = Notes::default();
    let registry = registry(&notes);
    let with_file = format!("pattern size=32x24 ! tally ! note; tally0. ! y4m path={}", path.display());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&heard);
    let pipeline = Pipeline::parse(&with_file)
        .registry(&registry)
        .options(RunOptions::new().only(Space::Cpu))
        .listener(Arc::new(move |event: &RunEvent| events.lock().unwrap().push(event.clone())));
    let running = pipeline.build().unwrap().spawn().unwrap();
    wait_for(&notes, 20);
    assert!(!path.exists(), "a file gets its name when it is whole");
    running.controls().apply(&checked("pattern size=32x24 ! tally ! note", &registry)).unwrap();
    assert!(path.exists());
    let frames = heard.lock().unwrap().iter().find_map(|event| match event {
        RunEvent::GraphReplaced { handlers: 3, kept: 2, frames } => Some(*frames),
        _ => None,
    });
    let arrived = notes.lock().unwrap().len();
    wait_for(&notes, arrived + 5);
    running.finish();
    running.wait().unwrap();
    let source = format!("y4m path={} ! null", path.display());
    let report = Pipeline::parse(source).build().unwrap().run().unwrap();
    assert_eq!(Some(report.frames_in), frames, "the file has every frame up to the change");
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_replacement_hides_nothing_from_the_report() {
    let notes = Notes::default();
    let registry = registry(&notes);
    let running = spawned("pattern size=32x24 frames=400 ! blur ! tally ! note", &registry, Space::Gpu);
    wait_for(&notes, 50);
    let applied = running.controls().apply(&checked("pattern size=32x24 frames=400 ! blur ! note", &registry)).unwrap();
    assert!(matches!(applied, Applied::Replaced));
    let report = running.wait().unwrap();
    assert_eq!((report.frames_in, report.frames_out), (400, 400));
    assert!(report.placement.cpu_handlers == 1 && report.placement.cpu_frames >= 50, "{:?}", report.placement);
    assert_eq!(report.between_on_cpu().collect::<Vec<_>>(), ["tally0"], "handlers of the first graph count");
}

#[test]
fn handlers_that_do_not_fit_the_new_graph_are_made_anew_and_edits_that_cannot_start_are_refused() {
    let folder = std::env::temp_dir().join(format!("vramp-replace-start-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (path, other) = (folder.join("a.y4m"), folder.join("b.y4m"));
    let notes = Notes::default();
    let registry = registry(&notes);
    let text = |middle: &str, name: &str, path: &std::path::Path| {
        format!("pattern size=32x24 fps=20 ! tally ! note; tally0. {middle}! y4m name={name} path={}", path.display())
    };
    let running = spawned(&text("", "file", &path), &registry, Space::Cpu);
    wait_for(&notes, 20);
    let apply = |text: &str| running.controls().apply(&checked(text, &registry));
    let refused = apply(&text("", "file", &folder.join("missing/x.y4m"))).unwrap_err().to_string();
    assert!(refused.contains("missing"), "{refused}");
    let refused = apply(&text("! resize size=16x16 ", "file", &path)).unwrap_err().to_string();
    assert!(refused.contains("which this run has written"), "{refused}");
    assert!(matches!(apply(&text("! resize size=16x16 ", "file", &other)), Ok(Applied::Replaced)));
    let arrived = notes.lock().unwrap().len();
    wait_for(&notes, arrived + 20);
    let renamed = "pattern size=32x24 fps=40 name=second ! tally ! note".to_owned();
    assert!(matches!(apply(&renamed), Ok(Applied::Replaced)));
    let arrived = notes.lock().unwrap().len();
    wait_for(&notes, arrived + 20);
    running.finish();
    running.wait().unwrap();
    let notes = notes.lock().unwrap();
    assert!(notes.iter().enumerate().all(|(at, note)| note.0 == at as u64), "numbers go on after another source");
    let steps: Vec<i64> = notes.windows(2).map(|pair| (pair[1].1 - pair[0].1) / 1_000_000).collect();
    assert!(steps.iter().all(|ms| [25, 50].contains(ms)) && steps.is_sorted_by(|a, b| a >= b), "{steps:?}");
    assert!(path.exists() && other.exists());
    std::fs::remove_dir_all(folder).unwrap();
}

/// Runs `delay` through three graphs, and then `other` in its place, if given. Returns each frame's number, and how many
/// frames older its picture is.
fn delayed(side: Space, delay: &str, other: &str) -> (Vec<(u64, u8)>, Report) {
    let notes = Notes::default();
    let registry = registry(&notes);
    let text = |middle: &str, more: &str| format!("pattern size=32x24 ! tally {middle}! note{more}");
    let delays = format!("! brightness 0 ! {delay} ");
    let running = spawned(&text(&delays, ""), &registry, side);
    let graphs = [text(&delays, "; tally0. ! null"), text(&delays, ""), text(other, "")];
    for graph in &graphs[..if other.is_empty() { 2 } else { 3 }] {
        let arrived = notes.lock().unwrap().len();
        wait_for(&notes, arrived + 20);
        let applied = running.controls().apply(&checked(graph, &registry)).unwrap();
        assert!(matches!(applied, Applied::Replaced), "{applied:?}");
    }
    let arrived = notes.lock().unwrap().len();
    wait_for(&notes, arrived + 20);
    running.finish();
    let report = running.wait().unwrap();
    let age = |number: u64, tally: u8| (number as u8).wrapping_sub(tally);
    let rows = notes.lock().unwrap().iter().map(|(number, _, tally)| (*number, age(*number, *tally))).collect();
    (rows, report)
}

#[test]
fn frames_that_a_delay_holds_continue_with_the_new_graph() {
    for side in [Space::Cpu, Space::Gpu] {
        let (rows, report) = delayed(side, "delay 3", "");
        let sent = report.frames_in;
        assert_eq!(rows, (3..sent).map(|number| (number, 3)).collect::<Vec<_>>(), "{side}");
        assert_eq!((report.filtered, report.in_flight, report.memory.leaked), (3, 0, 0), "{side}");
        let delay = report.handlers.iter().find(|row| row.name == "delay0").unwrap();
        assert_eq!((delay.calls, delay.emitted, delay.filtered, delay.held), (sent, sent - 3, 3, 0), "{side}");
        let (rows, report) = delayed(side, "delay 3 keep-times=true", "");
        assert_eq!(rows, (0..report.frames_in).map(|number| (number, 0)).collect::<Vec<_>>(), "{side}");
        assert_eq!((report.filtered, report.in_flight), (0, 0), "{side}");
    }
}

#[test]
fn frames_of_a_delay_that_leaves_the_graph_are_counted() {
    let (rows, report) = delayed(Space::Cpu, "delay 3", "! invert ");
    assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), (3..report.frames_in).collect::<Vec<_>>());
    assert_eq!((report.filtered, report.in_flight), (3, 0));
    let delay = report.handlers.iter().find(|row| row.name == "delay0").unwrap();
    assert_eq!((delay.calls, delay.filtered, delay.held), (delay.emitted + 3, 3, 0));
}

static GATE: Entry = Entry { name: "gate", about: "waits for the test", example: "pattern ! gate", ..Entry::SINK };
static HERALD: Entry =
    Entry { name: "herald", about: "tells that it starts", example: "pattern ! herald", ..Entry::SINK };

/// Takes a frame when the test lets it.
struct GateSink(Arc<Mutex<Receiver<()>>>);

impl FrameHandler for GateSink {
    fn process(&mut self, _: &mut Call<'_>) -> Result<Flow, HandlerError> {
        // The test drops the sender to open the gate for good.
        let _ = self.0.lock().unwrap().recv();
        Ok(Flow::Produced)
    }
}

struct Herald(Sender<()>);

impl FrameHandler for Herald {
    fn start(&mut self, _: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.0.send(()).map_err(|_| HandlerError::failed("the test has ended"))
    }

    fn process(&mut self, _: &mut Call<'_>) -> Result<Flow, HandlerError> {
        Ok(Flow::Produced)
    }
}

#[test]
fn a_value_that_is_set_while_a_graph_is_put_in_place_is_set_in_it() {
    let (open, gate) = channel::<()>();
    let (started, starts) = channel::<()>();
    let gate = Arc::new(Mutex::new(gate));
    let mut registry = vramp::registry();
    registry.add(&GATE, move |_| Ok(GateSink(Arc::clone(&gate)))).unwrap();
    registry.add(&HERALD, move |_| Ok(Herald(started.clone()))).unwrap();
    let running = spawned("pattern size=32x24 ! brightness 0.1 ! contrast 1.5 ! gate", &registry, Space::Cpu);
    let controls = running.controls();
    let graph = checked("pattern size=32x24 ! brightness 0.2 ! contrast 1.5 ! herald", &registry);
    let applied = std::thread::scope(|scope| {
        let applying = scope.spawn(|| controls.apply(&graph).unwrap());
        // The new graph is complete, and the old one cannot end before the gate opens.
        starts.recv_timeout(Duration::from_secs(60)).unwrap();
        let setting = scope.spawn(|| controls.set("brightness0.amount", 0.7).unwrap());
        drop(open);
        setting.join().unwrap();
        applying.join().unwrap()
    });
    assert!(matches!(applied, Applied::Replaced), "{applied:?}");
    assert_eq!(controls.get("brightness0.amount").unwrap(), "0.7", "what was set last holds");
    assert_eq!(controls.get("contrast0.amount").unwrap(), "1.5");
    running.stop();
    running.wait().unwrap();
}

/// Runs `text` to its end and returns the hash of each frame that its `note` sinks received.
fn pictures(registry: &Registry, notes: &Notes, text: &str, edits: &[&str], side: Space) -> Vec<(u64, i64, u8)> {
    notes.lock().unwrap().clear();
    // Slow enough for the edits to come while it runs.
    let options = RunOptions::new().only(side).threads(2).pace(Rate::new(2000, 1).unwrap());
    let pipeline = Pipeline::parse(text).registry(registry).options(options).build().expect(text);
    let running = pipeline.spawn().expect(text);
    for edit in edits {
        let arrived = notes.lock().unwrap().len();
        wait_for(notes, arrived + 30);
        let applied = running.controls().apply(&checked(edit, registry)).expect(edit);
        assert!(matches!(applied, Applied::Replaced), "{applied:?}");
    }
    let report = running.wait().unwrap();
    assert_eq!(report.memory.leaked, 0, "{edits:?}");
    let mut rows = notes.lock().unwrap().clone();
    rows.sort_unstable();
    rows
}

#[test]
fn joins_have_the_same_pictures_with_and_without_an_edit() {
    let notes = Notes::default();
    let registry = registry(&notes);
    let graphs = [
        // A still picture beside a stream.
        "pattern kind=gradient size=32x24 frames=600 name=a ! mix name=m ! {}note; pattern kind=bars size=32x24 frames=1 ! m.b",
        // A slower picture of the same stream, and of another source.
        "pattern kind=noise size=32x24 frames=600 name=a ! mix name=m ! {}note; a. ! every 7 ! m.b",
        "pattern kind=gradient size=32x24 fps=50 frames=600 ! mix name=m ! {}note; pattern kind=noise size=32x24 fps=5 ! m.b",
        // A picture that comes later.
        "pattern kind=noise size=32x24 frames=600 name=a ! mix name=m ! {}note; a. ! delay 4 keep-times=true ! m.b",
        "pattern kind=noise size=32x24 frames=600 name=a ! mix name=m ! {}note; a. ! delay 4 ! m.b",
        "pattern kind=noise size=32x24 frames=600 name=a ! mix until=shortest name=m ! {}note; pattern kind=noise seed=3 \
         size=32x24 frames=500 fps=30 ! m.b",
    ];
    for graph in graphs {
        let texts = ["", "identity ! ", "brightness 0 ! "].map(|middle| graph.replace("{}", middle));
        let plain = pictures(&registry, &notes, &texts[0], &[], Space::Cpu);
        assert!(plain.len() >= 500, "{graph}");
        for side in [Space::Cpu, Space::Gpu] {
            let edited = pictures(&registry, &notes, &texts[0], &[&texts[1], &texts[2], &texts[0]], side);
            let first = plain.iter().zip(&edited).position(|(one, two)| one != two);
            assert!(
                plain == edited,
                "{graph} on the {side}: differs at {first:?}, {} and {}",
                plain.len(),
                edited.len()
            );
        }
    }
}

#[test]
fn a_run_that_finishes_while_its_graph_is_replaced_delivers_every_frame() {
    let texts = ["! delay 5 keep-times=true ! note", "! delay 5 keep-times=true ! identity ! note"];
    for round in 0..20_u64 {
        let notes = Notes::default();
        let registry = registry(&notes);
        let running = spawned(&format!("pattern size=64x48 {}", texts[0]), &registry, Space::Cpu);
        wait_for(&notes, 20);
        let graph = checked(&format!("pattern size=64x48 {}", texts[1]), &registry);
        let controls = running.controls();
        let report = std::thread::scope(|scope| {
            let applying = scope.spawn(move || controls.apply(&graph));
            std::thread::sleep(Duration::from_micros(400 * round));
            running.finish();
            let report = running.wait().unwrap();
            let applied = applying.join().unwrap();
            assert!(matches!(applied, Ok(_) | Err(ApplyError::Ending | ApplyError::NotRunning)), "{applied:?}");
            report
        });
        assert_eq!((report.frames_out, report.in_flight, report.filtered), (report.frames_in, 0, 0), "round {round}");
        let numbers: Vec<u64> = notes.lock().unwrap().iter().map(|(number, ..)| *number).collect();
        assert_eq!(numbers, (0..report.frames_in).collect::<Vec<_>>());
    }
}

#[test]
fn a_file_that_the_run_has_written_is_not_written_again_under_any_name() {
    let folder = std::env::temp_dir().join(format!("vramp-replace-again-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let notes = Notes::default();
    let registry = registry(&notes);
    let text = |middle: &str, path: &str| {
        let path = folder.join(path);
        format!("pattern size=32x24 ! tally ! note; tally0. {middle}! y4m name=file path={}", path.display())
    };
    let running = spawned(&text("", "k.y4m"), &registry, Space::Cpu);
    let apply = |text: &str| {
        let arrived = notes.lock().unwrap().len();
        wait_for(&notes, arrived + 10);
        running.controls().apply(&checked(text, &registry))
    };
    assert!(matches!(apply(&text("", "l.y4m")), Ok(Applied::Replaced)));
    let first = std::fs::metadata(folder.join("k.y4m")).unwrap().len();
    for path in ["k.y4m", "./k.y4m", "../k.y4m"] {
        let path = if path.starts_with("..") {
            format!("../{}/k.y4m", folder.file_name().unwrap().display())
        } else {
            path.to_owned()
        };
        let refused = apply(&text("! blur ", &path)).unwrap_err();
        assert!(matches!(refused, ApplyError::Overwrites { .. }), "{path}: {refused}");
    }
    running.finish();
    running.wait().unwrap();
    assert_eq!(std::fs::metadata(folder.join("k.y4m")).unwrap().len(), first);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn values_that_were_set_stay_unless_the_edit_changes_them() {
    let notes = Notes::default();
    let registry = registry(&notes);
    let running = spawned("pattern size=32x24 ! blur sigma=2 ! brightness 0.1 ! note", &registry, Space::Cpu);
    let controls = running.controls();
    wait_for(&notes, 5);
    controls.set_all([("blur0.sigma", "3"), ("brightness0.amount", "0.4")]).unwrap();
    let apply = |text: &str| controls.apply(&checked(text, &registry)).unwrap();
    let values = || (controls.get("blur0.sigma").unwrap(), controls.get("brightness0.amount").unwrap());
    assert!(matches!(apply("pattern size=32x24 ! blur sigma=2 ! brightness 0.2 ! note"), Applied::Set(_)));
    assert_eq!(values(), ("3".into(), "0.2".into()), "the edit has changed the brightness alone");
    assert!(matches!(apply("pattern size=32x24 ! blur sigma=2 ! invert ! brightness 0.2 ! note"), Applied::Replaced));
    assert_eq!(values(), ("3".into(), "0.2".into()));
    assert!(matches!(apply("pattern size=32x24 ! blur sigma=4 ! invert ! brightness 0.2 ! note"), Applied::Set(_)));
    assert_eq!(values(), ("4".into(), "0.2".into()));
    running.stop();
    running.wait().unwrap();
}

static STUCK: Entry = Entry {
    name: "stuck",
    about: "a source that waits",
    example: "stuck ! null",
    outputs: &[Output { size: SizeRule::Setting("size"), ..Output::VIDEO }],
    settings: &[Setting::size("size", "size of its frames").default("32x24")],
    ..Entry::SOURCE
};

/// Sends a frame whenever the test lets it.
struct StuckSource(Arc<Mutex<Receiver<()>>>);

impl FrameHandler for StuckSource {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        while self.0.lock().unwrap().recv_timeout(Duration::from_millis(10)) == Err(RecvTimeoutError::Timeout) {
            if call.is_ending() {
                return Ok(Flow::Ended);
            }
        }
        let frame = call.lend(Format::Rgba8, Size { width: 32, height: 24 })?;
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

#[test]
fn a_source_that_waits_for_its_input_does_not_stop_the_others() {
    let (send, receive) = channel::<()>();
    let receive = Arc::new(Mutex::new(receive));
    let notes = Notes::default();
    let mut registry = registry(&notes);
    registry.add(&STUCK, move |_| Ok(StuckSource(Arc::clone(&receive)))).unwrap();
    let running = spawned("pattern size=32x24 ! note; stuck ! null", &registry, Space::Cpu);
    wait_for(&notes, 10);
    let edit = checked("pattern size=32x24 ! invert ! note; stuck ! null", &registry);
    let refused = running.controls().apply(&edit).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "stuck0 waits for its input, so the graph cannot be replaced now; save again when frames come"
    );
    let arrived = notes.lock().unwrap().len();
    wait_for(&notes, arrived + 10);
    std::thread::scope(|scope| {
        let applying = scope.spawn(|| running.controls().apply(&edit).unwrap());
        while !applying.is_finished() {
            send.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(matches!(applying.join().unwrap(), Applied::Replaced));
    });
    drop(send);
    running.finish();
    running.wait().unwrap();
}

#[test]
fn a_run_can_be_stopped_while_its_graph_is_replaced() {
    let graphs = ["pattern size=32x24 ! tally ! note", "pattern size=32x24 ! invert ! tally ! note"];
    for round in 0..12_u64 {
        let notes = Notes::default();
        let registry = registry(&notes);
        let running = spawned(graphs[0], &registry, Space::Cpu);
        let graphs = graphs.map(|text| checked(text, &registry));
        wait_for(&notes, 5);
        std::thread::scope(|scope| {
            let controls = running.controls();
            let graphs = &graphs;
            let applying = scope.spawn(move || {
                let mut count = 0;
                loop {
                    match controls.apply(&graphs[(count + 1) % 2]) {
                        Ok(_) => count += 1,
                        Err(ApplyError::NotRunning | ApplyError::Ending) => return,
                        Err(other) => panic!("{other}"),
                    }
                }
            });
            std::thread::sleep(Duration::from_millis(3 * round + 1));
            if round % 2 == 0 {
                running.stop();
            } else {
                running.finish();
            }
            let report = running.wait().unwrap();
            assert_eq!(report.memory.leaked, 0);
            applying.join().unwrap();
        });
        let numbers: Vec<u64> = notes.lock().unwrap().iter().map(|(number, ..)| *number).collect();
        assert_eq!(numbers, (0..numbers.len() as u64).collect::<Vec<_>>(), "no frame before the stop is lost");
    }
}

#[test]
fn a_device_that_is_lost_while_graphs_are_replaced_loses_only_its_frames() {
    let notes = Notes::default();
    let registry = registry(&notes);
    let text = |middle: &str| format!("pattern size=32x24 frames=1500 ! blur {middle}! note");
    let options = RunOptions::new().only(Space::Gpu).lose_device_at(&[20, 60]);
    let pipeline = Pipeline::parse(text("")).registry(&registry).options(options).build().unwrap();
    let running = pipeline.spawn().unwrap();
    let graphs = ["! invert ", ""].map(|middle| checked(&text(middle), &registry));
    let mut count = 0;
    wait_for(&notes, 5);
    loop {
        match running.controls().apply(&graphs[count % 2]) {
            Ok(_) => count += 1,
            // The device was lost while kernels were compiled for it.
            Err(ApplyError::Graph(_)) => {}
            Err(ApplyError::NotRunning | ApplyError::Ending) => break,
            Err(other) => panic!("{other}"),
        }
    }
    let report = running.wait().unwrap();
    assert!(count > 1 && report.counters.replans >= count as u64, "{count} graphs");
    assert!(report.recoveries.len() > 2, "{:?}", report.recoveries);
    let notes = notes.lock().unwrap();
    assert!(notes.windows(2).all(|pair| pair[0].0 < pair[1].0), "numbers grow");
    assert_eq!(notes.len() as u64 + report.dropped.device_lost, 1500, "{:?}", report.recoveries);
}
