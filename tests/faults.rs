//! Faults stay local: handlers fail, panic, die or hang, streams change their size, and runs are stopped. In all cases
//! every frame is accounted for, and nothing waits forever.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use vramp::Pipeline;
use vramp::plan::catalog::{Entry, Family, Work};
use vramp::plan::{RunOptions, Space};
use vramp::runtime::{
    Call, Flow, FrameHandler, HandlerError, Registry, Report, Reporter, RunError, RunEvent, RunOutcome, Setup,
    StartContext, Worker,
};

use crate::shared::pass;

const OWN: Entry = Entry { family: Family::Control, spaces: &[Space::Cpu], work: Work::NONE, ..Entry::CONTROL };
static FLAKY: Entry =
    Entry { name: "flaky", about: "fails on every third frame", example: "pattern ! flaky ! null", ..OWN };
static ONCE: Entry =
    Entry { name: "once", about: "fails at first, never twice", example: "pattern ! once ! null", ..OWN };
static PANICS: Entry = Entry { name: "panics", about: "panics on frame 5", example: "pattern ! panics ! null", ..OWN };
static HANGS: Entry = Entry { name: "hangs", about: "does not come back", example: "pattern ! hangs ! null", ..OWN };
static TOILS: Entry = Entry { name: "toils", about: "takes long", example: "pattern ! toils", ..Entry::SINK };
static EDITS: Entry = Entry { name: "edits", about: "sets the first byte", example: "pattern ! edits ! null", ..OWN };
static CATCHES: Entry = Entry {
    name: "catches",
    about: "keeps the first pixels",
    example: "pattern ! catches",
    blocking: false,
    ..Entry::SINK
};

type Caught = Arc<Mutex<Vec<(String, u64, [u8; 4])>>>;

/// A handler made of a function.
struct By<F>(F);

impl<F: FnMut(&mut Call<'_>) -> Result<Flow, HandlerError> + Send> FrameHandler for By<F> {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        (self.0)(call)
    }
}

/// A sink whose call takes longer than a stopped run waits, and that tells that it makes progress.
#[derive(Default)]
struct Toils(Option<Reporter>);

impl FrameHandler for Toils {
    fn start(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.0 = Some(context.reporter());
        Ok(())
    }

    fn process(&mut self, _: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let reporter = self.0.as_ref().expect("it was started");
        reporter.note("a long call begins");
        reporter.count_problems(3);
        for _ in 0..25 {
            std::thread::sleep(Duration::from_millis(100));
            reporter.progress();
        }
        Ok(Flow::Produced)
    }
}

struct Bench {
    registry: Registry,
    caught: Caught,
    hanging: Arc<AtomicBool>,
}

fn bench() -> Bench {
    let mut registry = vramp::registry();
    let add = |registry: &mut Registry, entry, make: fn(&Setup<'_>) -> Result<Worker, HandlerError>| {
        registry.add(entry, make).expect("a good entry");
    };
    add(&mut registry, &FLAKY, |_| {
        Ok(Worker::frames(By(|call: &mut Call<'_>| match call.now().number % 3 {
            2 => Err(HandlerError::failed("no luck")),
            _ => pass(call),
        })))
    });
    add(&mut registry, &ONCE, |_| {
        let mut failed = None;
        Ok(Worker::frames(By(move |call: &mut Call<'_>| {
            if failed.replace(call.now().number) == Some(call.now().number) {
                return pass(call);
            }
            // The first try takes the frame, which must be available again for the second try.
            drop(call.take(0));
            Err(HandlerError::failed("at first"))
        })))
    });
    add(&mut registry, &PANICS, |_| {
        Ok(Worker::frames(By(|call: &mut Call<'_>| {
            assert!(call.now().number != 5, "five is too much");
            pass(call)
        })))
    });
    add(&mut registry, &EDITS, |_| {
        Ok(Worker::frames(By(|call: &mut Call<'_>| {
            let mut frame = call.take(0).expect("a lead frame");
            frame.edit(call.pool())?[0] = 77;
            call.send(0, frame);
            Ok(Flow::Produced)
        })))
    });
    add(&mut registry, &TOILS, |_| Ok(Worker::frames(Toils::default())));
    let hanging = Arc::new(AtomicBool::new(true));
    let hangs = Arc::clone(&hanging);
    let make = move |_: &Setup<'_>| {
        let hangs = Arc::clone(&hangs);
        Ok(Worker::frames(By(move |call: &mut Call<'_>| {
            while hangs.load(Ordering::Relaxed) {
                std::thread::park_timeout(Duration::from_millis(5));
            }
            pass(call)
        })))
    };
    registry.add(&HANGS, make).expect("a good entry");
    let caught = Caught::default();
    let keeps = Arc::clone(&caught);
    let make = move |setup: &Setup<'_>| {
        let (keeps, name) = (Arc::clone(&keeps), setup.name.to_owned());
        Ok(Worker::frames(By(move |call: &mut Call<'_>| {
            let frame = call.take(0).expect("a lead frame");
            let pixel = frame.bytes().first_chunk().copied().unwrap_or_default();
            keeps.lock().unwrap_or_else(PoisonError::into_inner).push((name.clone(), frame.meta().number, pixel));
            Ok(Flow::Produced)
        })))
    };
    registry.add(&CATCHES, make).expect("a good entry");
    Bench { registry, caught, hanging }
}

impl Bench {
    fn run(&self, text: &str) -> (RunOutcome, Vec<RunEvent>) {
        self.run_with(text, |options| options, |_| {})
    }

    fn run_with(
        &self,
        text: &str,
        with: impl FnOnce(RunOptions) -> RunOptions,
        meanwhile: impl FnOnce(vramp::runtime::Stopper),
    ) -> (RunOutcome, Vec<RunEvent>) {
        let spec = vramp::read(text, self.registry.catalog()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        let graph = self.registry.check(&spec).unwrap_or_else(|error| panic!("{error}"));
        let events = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&events);
        let builder = Pipeline::from_graph(graph)
            .registry(&self.registry)
            .options(with(RunOptions::new().only(Space::Cpu).threads(2)))
            .listener(Arc::new(move |event| {
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
            }));
        let mut pipeline = builder.build().unwrap_or_else(|error| panic!("{text}: {error}"));
        meanwhile(pipeline.stopper());
        let outcome = pipeline.outcome().unwrap_or_else(|error| panic!("{error}"));
        for link in &outcome.report.links {
            assert_eq!(link.sent, link.taken + link.dropped + link.queued, "{text}: {link:?}");
        }
        let events = events.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (outcome, events)
    }
}

fn is_conserved(report: &Report) -> bool {
    report.frames_in == report.frames_out + report.filtered + report.failed + report.dropped.sum() + report.in_flight
}

#[test]
fn a_failing_handler_is_skipped_reported_once_and_costs_only_its_frames() {
    let (outcome, events) = bench().run("pattern size=8x8 frames=30 ! flaky on-error=skip ! null");
    let report = outcome.into_result().expect("skipping is not a failure");
    assert_eq!((report.frames_in, report.frames_out, report.failed), (30, 20, 10));
    assert!(is_conserved(&report));
    let failures: Vec<_> = events.iter().filter(|event| matches!(event, RunEvent::Failed { .. })).collect();
    assert!(
        matches!(failures[..], [RunEvent::Failed { handler, frame: 2, error, .. }] if handler == "flaky0" && error == "no luck"),
        "{failures:?}"
    );
}

#[test]
fn a_failing_handler_stops_the_run_with_its_name_and_frame() {
    let (outcome, _) = bench().run("pattern size=8x8 ! flaky ! null");
    assert!(is_conserved(&outcome.report), "{:?}", outcome.report);
    assert_eq!(outcome.report.memory.leaked, 0);
    let Some(RunError::Failed(failure)) = outcome.error else { panic!("it failed") };
    assert_eq!(failure.to_string(), "flaky0, frame 2: no luck");
}

#[test]
fn a_handler_that_is_tried_again_gets_its_frame_again() {
    let (outcome, events) = bench().run("pattern size=8x8 frames=20 ! once on-error=retry ! null");
    let report = outcome.into_result().expect("every second try works");
    assert_eq!((report.frames_out, report.failed), (20, 0));
    assert!(events.iter().all(|event| !matches!(event, RunEvent::Failed { .. })));
}

#[test]
fn a_source_that_cannot_begin_ends_the_run_with_its_error() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("gone-{}.raw", std::process::id()));
    std::fs::write(&path, [0; 64]).expect("a file can be written");
    // The source has its own lane, and the lanes after it wait for that lane.
    let text = format!("raw path={} size=4x4 format=gray8 !{{queue}} null", path.display());
    let (done, over) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let gone = |_| std::fs::remove_file(&path).expect("it was there when the run was prepared");
        done.send(bench().run_with(&text, |options| options, gone).0.error)
    });
    let error = over.recv_timeout(Duration::from_secs(20)).expect("it ends");
    let Some(RunError::Failed(failure)) = error else { panic!("{error:?}") };
    assert!(failure.to_string().starts_with("raw0"), "{failure}");
}

#[test]
fn a_panic_is_an_error_of_the_handler_that_panicked() {
    // Other tests may run in this process, and their panics must be printed.
    std::panic::set_hook(Box::new(|panic| {
        if panic.payload().downcast_ref::<&str>() != Some(&"five is too much") {
            eprintln!("{panic}");
        }
    }));
    let (outcome, _) = bench().run("pattern size=8x8 frames=20 ! panics on-error=skip ! null");
    let report = outcome.into_result().expect("skipping is not a failure");
    assert_eq!((report.frames_out, report.failed), (19, 1));
    let (outcome, _) = bench().run("pattern size=8x8 frames=20 ! panics ! null");
    let _ = std::panic::take_hook();
    assert!(is_conserved(&outcome.report));
    let error = outcome.error.expect("it panicked").to_string();
    assert_eq!(error, "panics0, frame 5: it panicked: five is too much");
}

#[test]
fn other_branches_continue_if_one_fails() {
    let bench = bench();
    let text =
        "pattern size=8x8 frames=30 name=p ! flaky on-error=skip ! catches name=a ; p. ! invert ! catches name=b";
    let report = bench.run(text).0.into_result().expect("skipping is not a failure");
    assert_eq!((report.frames_out, report.failed), (50, 10));
    let caught = bench.caught.lock().unwrap_or_else(PoisonError::into_inner);
    let of = |name: &'static str| caught.iter().filter(move |(sink, ..)| sink == name).map(|(_, number, _)| *number);
    assert!(of("b").eq(0..30));
    assert!(of("a").eq((0..30).filter(|number| number % 3 != 2)));
}

#[test]
fn an_editor_on_one_branch_does_not_touch_the_other() {
    let bench = bench();
    let text =
        "pattern kind=solid color=102030 size=8x8 frames=40 name=p ! edits ! catches name=a ; p. ! catches name=b";
    let report = bench.run(text).0.into_result().expect("nothing fails");
    let caught = bench.caught.lock().unwrap_or_else(PoisonError::into_inner);
    assert_eq!(caught.len(), 80);
    for (sink, number, pixel) in caught.iter() {
        let wanted = if sink == "a" { [77, 0x20, 0x30, 255] } else { [0x10, 0x20, 0x30, 255] };
        assert_eq!(*pixel, wanted, "{sink} frame {number}");
    }
    assert!(report.counters.frame_copies <= 40, "{:?}", report.counters);

    // As the only consumer of the source, `edits` always edits in place.
    let report =
        bench.run("pattern kind=solid size=8x8 frames=40 ! edits ! null").0.into_result().expect("nothing fails");
    assert_eq!(report.counters.frame_copies, 0);
}

#[test]
fn a_run_that_is_stopped_returns_at_once_and_accounts_for_every_frame() {
    for text in [
        "pattern size=8x8 ! delay frames=7 ! null",
        "pattern size=64x48 fps=5 ! blur ! null",
        "pattern size=8x8 name=p ! invert ! mix name=m ! null ; p. ! delay frames=3 ! m.b",
    ] {
        let stopped_at = Arc::new(Mutex::new(None));
        let at = Arc::clone(&stopped_at);
        let pace = "5".parse().expect("a rate");
        let paced = text.contains("fps=5");
        let bench = bench();
        let with = move |options: RunOptions| if paced { options.pace(pace) } else { options };
        let (outcome, _) = bench.run_with(text, with, |stopper| {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(150));
                *at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
                stopper.stop();
            });
        });
        let asked = stopped_at.lock().unwrap_or_else(PoisonError::into_inner).expect("it ran until it was stopped");
        assert!(asked.elapsed() < Duration::from_millis(100), "{text}: took {:?}", asked.elapsed());
        assert!(outcome.stopped && outcome.error.is_none(), "{:?}", outcome.error);
        assert_eq!(outcome.report.memory.leaked, 0, "{text}");
        if !text.contains("mix") {
            assert!(is_conserved(&outcome.report), "{text}: {:?}", outcome.report);
        }
    }
}

#[test]
fn a_handler_that_does_not_come_back_is_named_and_left_behind() {
    let bench = bench();
    let begun = Instant::now();
    let text = "pattern size=8x8 frames=100 name=p ! hangs ! null ; p. !{latest} null";
    let (outcome, events) = bench.run_with(
        text,
        |options| options,
        |stopper| {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                stopper.stop();
            });
        },
    );
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    let named = |event: &RunEvent| matches!(event, RunEvent::Unresponsive { handler, .. } if handler == "hangs0");
    assert!(events.iter().any(named), "{events:?}");
    assert!(matches!(outcome.error, Some(RunError::Unresponsive { handlers, .. }) if handlers == ["hangs0"]));
    bench.hanging.store(false, Ordering::Relaxed);
}

#[test]
fn a_handler_that_makes_progress_is_waited_for() {
    let bench = bench();
    let (outcome, events) = bench.run_with(
        "pattern size=8x8 frames=100 ! toils",
        |options| options,
        |stopper| {
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(300));
                stopper.stop();
            });
        },
    );
    assert!(outcome.stopped && outcome.error.is_none(), "{:?}", outcome.error);
    let toils = outcome.report.handlers.iter().find(|handler| handler.name == "toils0").expect("it is in the report");
    assert_eq!((toils.calls, toils.problems), (1, 3));
    let told = RunEvent::Told { handler: "toils0".into(), words: "a long call begins".into(), is_warning: false };
    assert!(events.contains(&told), "{events:?}");
}

#[test]
fn the_shortest_input_ends_a_mix_that_asks_for_it() {
    let text = |until: &str| {
        format!("pattern size=8x8 frames=50 ! mix until={until} name=m ! null ; pattern size=8x8 frames=20 ! m.b")
    };
    let led = bench().run(&text("lead")).0.into_result().expect("nothing fails");
    assert_eq!((led.frames, led.links.iter().map(|link| link.repeats).sum::<u64>()), (50, 30));
    let short = bench().run(&text("shortest")).0.into_result().expect("nothing fails");
    assert!((20..=24).contains(&short.frames), "{}", short.frames);
}

/// A folder that is deleted on drop.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Folder {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("vramp-faults-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).expect("a folder in the temporary folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_folder_of_pictures_of_many_sizes_just_works() {
    let folder = Folder::new();
    let path = folder.0.display();
    for (at, size) in ["40x30", "40x30", "7x90", "1x1", "64x48"].iter().enumerate() {
        let text = format!("pattern kind=gradient size={size} frames=1 ! png path={path}/in-{at}.png");
        bench().run(&text).0.into_result().expect("pictures to read");
    }
    let text = format!(
        "image path={path}/in-*.png name=i ! blur ! invert ! resize scale=0.5 ! png path={path}/out-%d.png ; i. ! null"
    );
    for space in [Space::Cpu, Space::Gpu] {
        let (outcome, events) = bench().run_with(&text, move |options| options.only(space), |_| {});
        let report = outcome.into_result().expect("sizes may change");
        assert_eq!((report.frames_in, report.frames_out, report.counters.replans), (5, 10, 3), "{space}");
        assert_eq!(events.iter().filter(|event| matches!(event, RunEvent::Replanned { .. })).count(), 3);
        assert_eq!(report.memory.leaked, 0, "{space}");
        let sizes: Vec<String> = (0..5)
            .map(|at| {
                let bytes = std::fs::read(folder.0.join(format!("out-{at}.png"))).expect("it was written");
                let side = |from: usize| u32::from_be_bytes(bytes[from..from + 4].try_into().expect("4 bytes"));
                format!("{}x{}", side(16), side(20))
            })
            .collect();
        assert_eq!(sizes, ["20x15", "20x15", "4x45", "1x1", "32x24"], "{space}");
    }
}

#[test]
fn a_size_that_the_graph_cannot_take_ends_the_run_in_words() {
    let folder = Folder::new();
    let path = folder.0.display();
    for (at, size) in ["16x16", "20x16"].iter().enumerate() {
        let text = format!("pattern kind=gradient size={size} frames=1 ! png path={path}/in-{at}.png");
        bench().run(&text).0.into_result().expect("pictures to read");
    }
    let text = format!("image path={path}/in-*.png ! mix name=m ! null ; pattern size=16x16 frames=2 ! m.b");
    let (outcome, _) = bench().run(&text);
    let error = outcome.error.expect("16x16 and 20x16 cannot be mixed").to_string();
    assert!(error.starts_with("m, frame 1") && error.contains("resize size=20x16"), "{error}");
    assert_eq!(outcome.report.memory.leaked, 0);

    // If both inputs change their size at the same frame, nothing is wrong.
    let text = format!("image path={path}/in-*.png ! mix name=m ! null ; image path={path}/in-*.png ! invert ! m.b");
    let report = bench().run(&text).0.into_result().expect("both change at the same frame");
    assert_eq!((report.frames, report.counters.replans), (2, 2));
}
