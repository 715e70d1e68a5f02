//! A device that is lost during a run: the stream continues on another device or on the CPU, and returns to the device.
//! Only frames that were on the device are lost. Each lost frame is counted, and no wrong frame is written.
//!
//! Runs on any adapter. The tests destroy a device to simulate its loss.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use vramp::gpu::{BufferError, Device, LendError, OpenError};
use vramp::plan::catalog::{Entry, Family, Work};
use vramp::plan::{Graph, OnLoss, Plan, RunOptions, Space};
use vramp::runtime::engine::{Engine, EngineParts};
use vramp::runtime::observe::GoesOn;
use vramp::runtime::{
    Call, DeviceError, Flow, FrameHandler, HandlerError, Registry, Report, RunError, RunEvent, RunOutcome, Setup,
    StartContext, Trouble, Worker,
};
use vramp::{Pipeline, machine};

use crate::shared::{KEEPS, pass};

const ON_DEVICE: Entry = Entry { family: Family::Control, spaces: &[Space::Gpu], work: Work::NONE, ..Entry::CONTROL };
static THERE: Entry =
    Entry { name: "there", about: "runs on the device only", example: "pattern ! there ! null", ..ON_DEVICE };
static FULL: Entry =
    Entry { name: "full", about: "finds no memory at frame 40", example: "pattern ! full ! null", ..ON_DEVICE };

/// Bytes of the frames that reached a sink, by the sink's name and the frame's number.
type Kept = BTreeMap<(String, u64), Vec<u8>>;

struct By<F>(F, bool);

impl<F: FnMut(&mut Call<'_>) -> Result<Flow, HandlerError> + Send> FrameHandler for By<F> {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        (self.0)(call)
    }

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        self.1
    }
}

struct Bench {
    registry: Registry,
    kept: Arc<Mutex<Kept>>,
    events: Arc<Mutex<Vec<RunEvent>>>,
}

fn bench() -> Bench {
    let mut registry = vramp::registry();
    let kept = Arc::new(Mutex::new(Kept::new()));
    let keeps = Arc::clone(&kept);
    let make = move |setup: &Setup<'_>| {
        let (keeps, name) = (Arc::clone(&keeps), setup.name.to_owned());
        Ok(Worker::frames(By(
            move |call: &mut Call<'_>| {
                let frame = call.take(0).expect("a lead frame");
                let key = (name.clone(), frame.meta().number);
                let twice = lock(&keeps).insert(key, frame.bytes().to_vec());
                assert!(twice.is_none(), "a frame came twice");
                Ok(Flow::Produced)
            },
            true,
        )))
    };
    registry.add(&KEEPS, make).expect("a good entry");
    registry.add(&THERE, |_: &Setup<'_>| Ok(Worker::frames(By(pass, false)))).expect("a good entry");
    let full = |_: &Setup<'_>| {
        let full = |call: &mut Call<'_>| match call.now().number {
            40 => {
                let problem = BufferError::OutOfMemory;
                let error = LendError::NotMade { owner: "full".into(), needed_bytes: 1, problem };
                Err(HandlerError::Device(DeviceError::Lend(error)))
            }
            _ => pass(call),
        };
        Ok(Worker::frames(By(full, true)))
    };
    registry.add(&FULL, full).expect("a good entry");
    Bench { registry, kept, events: Arc::default() }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Bench {
    fn graph(&self, text: &str) -> Graph {
        let spec = vramp::read(text, self.registry.catalog()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        self.registry.check(&spec).unwrap_or_else(|error| panic!("{error}"))
    }

    fn run(&self, text: &str, with: impl FnOnce(RunOptions) -> RunOptions) -> RunOutcome {
        let graph = self.graph(text);
        let heard = Arc::clone(&self.events);
        let builder = Pipeline::from_graph(graph)
            .registry(&self.registry)
            .options(with(RunOptions::new().nominal_time().threads(2)))
            .listener(Arc::new(move |event| {
                lock(&heard).push(event.clone());
            }));
        let mut pipeline = builder.build().unwrap_or_else(|error| panic!("{text}: {error}"));
        let outcome = pipeline.outcome().unwrap_or_else(|error| panic!("{error}"));
        check(text, &outcome.report);
        outcome
    }

    fn kept(&self) -> Kept {
        lock(&self.kept).clone()
    }

    fn losses(&self) -> Vec<(GoesOn, u64)> {
        let events = lock(&self.events);
        let loss = |event: &RunEvent| match event {
            RunEvent::DeviceLost { on, lost, .. } => Some((*on, *lost)),
            _ => None,
        };
        events.iter().filter_map(loss).collect()
    }
}

/// Checks what holds for every run.
fn check(text: &str, report: &Report) {
    for link in &report.links {
        assert_eq!(link.sent, link.taken + link.dropped + link.queued, "{text}: {link:?}");
    }
    for handler in &report.handlers {
        let there = handler.emitted + handler.filtered + handler.errors + handler.lost + handler.held;
        assert_eq!(handler.calls, there, "{text}: {handler:?}");
    }
}

fn is_conserved(report: &Report) -> bool {
    report.frames_in == report.frames_out + report.filtered + report.failed + report.dropped.sum() + report.in_flight
}

/// The frames that the CPU makes without a loss.
fn truth(text: &str) -> Kept {
    let bench = bench();
    bench.run(text, |options| options.only(Space::Cpu)).into_result().unwrap_or_else(|error| panic!("{text}: {error}"));
    bench.kept()
}

/// Asserts that every frame that arrived is correct; returns how many are missing.
fn is_right(text: &str, kept: &Kept, truth: &Kept) -> usize {
    for ((sink, number), bytes) in kept {
        let right = truth.get(&(sink.clone(), *number));
        assert!(right == Some(bytes), "{text}: frame {number} at {sink} is wrong");
    }
    truth.len() - kept.len()
}

const DELAYED: &str =
    "pattern kind=noise size=32x24 frames=1000 label=false ! blur sigma=1 ! delay 5 keep-times=true ! keeps";

/// Two frames in flight, and five frames that `delay` holds.
const MOST_LOST: u64 = 2 + 5;

#[test]
fn a_device_that_is_lost_twice_is_opened_again_and_costs_only_what_was_on_it() {
    let bench = bench();
    let outcome = bench.run(DELAYED, |options| options.only(Space::Gpu).lose_device_at(&[300, 700]));
    let report = outcome.into_result().unwrap_or_else(|error| panic!("{error}"));
    let missing = is_right(DELAYED, &bench.kept(), &truth(DELAYED)) as u64;
    assert_eq!((report.frames_in, report.frames_out), (1000, 1000 - missing));
    assert_eq!(report.dropped.device_lost, missing);
    assert!(is_conserved(&report), "{report:?}");
    let losses = bench.losses();
    assert_eq!(losses.len(), 2);
    for (on, lost) in losses {
        assert_eq!(on, GoesOn::Device);
        assert!((1..=MOST_LOST).contains(&lost), "{lost} frames were lost at once");
    }
    assert_eq!(report.recoveries.iter().map(|loss| loss.lost).sum::<u64>(), missing);
    assert!(report.counters.compiles_after_first_frame > 0, "kernels were compiled for each device");
    assert_eq!(report.memory.leaked, 0);
}

#[test]
fn the_cpu_goes_on_from_the_next_frame() {
    let bench = bench();
    let outcome = bench.run(DELAYED, |options| options.only(Space::Gpu).on_loss(OnLoss::Cpu).lose_device_at(&[500]));
    let report = outcome.into_result().unwrap_or_else(|error| panic!("{error}"));
    let missing = is_right(DELAYED, &bench.kept(), &truth(DELAYED)) as u64;
    assert!((1..=MOST_LOST).contains(&missing), "{missing} frames were lost");
    assert_eq!((report.frames_out, report.dropped.device_lost), (1000 - missing, missing));
    assert!(is_conserved(&report), "{report:?}");
    assert_eq!(bench.losses(), [(GoesOn::Cpu, missing)]);
    assert!(report.counters.dispatches <= 3 * 501, "nothing was asked of a device after it was lost");
    let placement = report.placement;
    assert_eq!((placement.gpu_handlers, placement.device_losses), (0, 1), "every handler left the device");
    assert!(placement.gpu_frames >= 500 && placement.cpu_frames >= 490, "{placement:?}");
    assert!(placement.moved_frames >= placement.cpu_frames, "no handler was planned on the CPU: {placement:?}");
    let left = report.check_gpu().expect_err("frames were computed on the CPU").to_string();
    assert!(left.contains("computed on the CPU, by ") && left.contains("delay0"), "{left}");
    assert_eq!(report.memory.leaked, 0);
}

#[test]
fn several_pictures_in_one_go_on_where_they_were() {
    let text = "pattern kind=noise size=32x24 frames=600 label=false name=p ! blur sigma=1 ! compositor name=c ! invert ! keeps; \
                p. ! c.in1; pattern kind=gradient size=9x50 frames=600 ! delay 3 ! c.in6";
    let truth = truth(text);
    assert_eq!(truth.len(), 600);
    for rule in [OnLoss::Reopen, OnLoss::Cpu] {
        let bench = bench();
        let outcome = bench.run(text, |options| options.only(Space::Gpu).on_loss(rule).lose_device_at(&[300]));
        let report = outcome.into_result().unwrap_or_else(|error| panic!("{error}"));
        let missing = is_right(text, &bench.kept(), &truth) as u64;
        assert!((1..=MOST_LOST).contains(&missing), "{missing} frames were lost");
        assert_eq!((report.frames_out, report.memory.leaked), (600 - missing, 0));
        assert_eq!(bench.losses().len(), 1);
    }
}

#[test]
fn a_file_that_goes_through_a_device_that_is_lost_has_only_right_frames() {
    let folder = std::env::temp_dir().join(format!("vramp-recovery-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let path = |name: &str| folder.join(name).display().to_string();
    let bench = bench();
    let made = format!("pattern kind=noise size=32x24 frames=1000 label=false ! y4m path={}", path("in.y4m"));
    bench.run(&made, |options| options.only(Space::Cpu)).into_result().expect("a file to begin with");
    let through = |out: &str| {
        format!("y4m path={} ! blur sigma=1 ! delay 5 keep-times=true ! y4m path={}", path("in.y4m"), path(out))
    };
    bench.run(&through("right.y4m"), |options| options.only(Space::Cpu)).into_result().expect("the right frames");
    let right = frames(&path("right.y4m"));
    for (rule, losses) in [(OnLoss::Reopen, &[300, 700][..]), (OnLoss::Cpu, &[500])] {
        let outcome =
            bench.run(&through("out.y4m"), |options| options.only(Space::Gpu).on_loss(rule).lose_device_at(losses));
        let report = outcome.into_result().unwrap_or_else(|error| panic!("{error}"));
        let (out, mut at) = (frames(&path("out.y4m")), right.iter());
        assert!(out.iter().all(|frame| at.any(|right| right == frame)), "every written frame is a right one, in order");
        assert_eq!((right.len(), out.len() as u64), (1000, 1000 - report.dropped.device_lost));
        assert_eq!(report.recoveries.len(), losses.len());
        let most = MOST_LOST * losses.len() as u64;
        assert!((1..=most).contains(&report.dropped.device_lost), "{}", report.dropped.device_lost);
    }
    std::fs::remove_dir_all(&folder).expect("the folder goes");
}

/// The frames of a y4m file, 32x24 in 4:2:0.
fn frames(path: &str) -> Vec<Vec<u8>> {
    let bytes = std::fs::read(path).expect("a file");
    let end = bytes.iter().position(|byte| *byte == b'\n').expect("a header") + 1;
    let frame = "FRAME\n".len() + 32 * 24 * 3 / 2;
    assert_eq!((bytes.len() - end) % frame, 0, "only whole frames");
    bytes[end..].chunks(frame).map(<[u8]>::to_vec).collect()
}

#[test]
fn a_device_that_cannot_be_opened_at_once_is_used_again_once_it_can() {
    let bench = bench();
    let text = "pattern kind=noise size=32x24 label=false ! blur sigma=1 ! keeps";
    let graph = bench.graph(text);
    let adapter = machine::list_adapters().into_iter().next().expect("an adapter");
    let plan = Plan::decide(&graph, &machine::figures_of(Some(&adapter)), &RunOptions::new().only(Space::Gpu))
        .expect("a plan");
    let attempts = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&attempts);
    let reopen = move || {
        if counted.fetch_add(1, Ordering::Relaxed) < 2 {
            return Err(OpenError::NoAdapter { backends: "nothing".to_owned() });
        }
        Device::choose().open()
    };
    let back_at = Arc::new(AtomicU64::new(u64::MAX));
    let (heard, kept) = (Arc::clone(&back_at), Arc::clone(&bench.kept));
    let options = RunOptions::new().nominal_time().away_ms(1).lose_device_at(&[100]);
    let pipeline = Engine::build(EngineParts {
        device: Some(Device::choose().open().expect("a device")),
        reopen: Some(Arc::new(reopen)),
        listener: Some(Arc::new(move |event| {
            if let RunEvent::DeviceBack { .. } = event {
                heard.store(lock(&kept).len() as u64, Ordering::Relaxed);
            }
        })),
        ..EngineParts::new(&plan, &graph, &bench.registry, &options)
    });
    let pipeline = pipeline.expect("a pipeline");
    let (stopper, watch) = (pipeline.stopper(), pipeline.watch());
    let (seen, kept) = (Arc::clone(&back_at), Arc::clone(&bench.kept));
    let ends = std::thread::spawn(move || {
        // The run continues until fifty more frames have come from the reopened device.
        while (lock(&kept).len() as u64) < seen.load(Ordering::Relaxed).saturating_add(50) {
            std::thread::yield_now();
        }
        stopper.finish();
    });
    let outcome = pipeline.run(None).expect("threads");
    ends.join().expect("it was stopped");
    check(text, &outcome.report);
    let report = outcome.into_result().unwrap_or_else(|error| panic!("{error}"));
    assert!(watch.device().is_some(), "it ends on a device");
    let [loss] = &report.recoveries[..] else { panic!("{:?}", report.recoveries) };
    assert_eq!((loss.on, loss.back), (GoesOn::Cpu, true));
    assert!(report.check_gpu().is_err(), "a device that comes back does not undo its loss");
    assert!(attempts.load(Ordering::Relaxed) >= 3);
    let all = format!("pattern kind=noise size=32x24 label=false frames={} ! blur sigma=1 ! keeps", report.frames_in);
    let missing = is_right(text, &bench.kept(), &truth(&all)) as u64;
    assert_eq!(missing, report.dropped.device_lost);
    assert!(missing <= 2, "{missing}");
    assert!(report.counters.dispatches > 3 * 103, "the device that is back was used");
}

#[test]
fn a_handler_without_a_twin_ends_the_run_with_a_typed_error() {
    let text = "pattern size=16x12 frames=200 label=false ! blur ! there ! keeps";
    let outcome = bench().run(text, |options| options.only(Space::Gpu).on_loss(OnLoss::Cpu).lose_device_at(&[50]));
    assert!(is_conserved(&outcome.report), "{:?}", outcome.report);
    let Some(RunError::Failed(failure)) = outcome.error else { panic!("it cannot go on") };
    assert_eq!(failure.handler, "there0");
    assert!(matches!(&failure.error, HandlerError::NoTwin { trouble: Trouble::Lost { .. } }), "{failure}");
    assert_eq!(
        failure.to_string(),
        "there0, frame 50: it runs on the GPU only, and the device was lost (it was destroyed)"
    );
    // If the device can be opened again, the run continues.
    let report = bench().run(text, |options| options.only(Space::Gpu).lose_device_at(&[50])).into_result();
    assert_eq!(report.expect("it was opened again").frames_in, 200);
}

#[test]
fn a_run_that_is_to_stop_at_a_loss_does_and_counts_what_was_on_the_device() {
    let outcome = bench().run(DELAYED, |options| options.only(Space::Gpu).on_loss(OnLoss::Stop).lose_device_at(&[300]));
    assert!(is_conserved(&outcome.report), "{:?}", outcome.report);
    let Some(RunError::Failed(failure)) = outcome.error else { panic!("it stops") };
    assert!(matches!(&failure.error, HandlerError::Device(_)), "{failure}");
    assert!(outcome.report.dropped.device_lost + outcome.report.in_flight > 0);
}

#[test]
fn a_device_without_memory_leaves_its_work_to_the_cpu() {
    let text = "pattern kind=noise size=16x12 frames=100 label=false ! blur ! full ! invert ! keeps";
    let plain = "pattern kind=noise size=16x12 frames=100 label=false ! blur ! invert ! keeps";
    let bench = bench();
    let report = bench.run(text, |options| options.only(Space::Gpu)).into_result().expect("the CPU continues");
    let missing = is_right(text, &bench.kept(), &truth(plain)) as u64;
    assert_eq!((missing, report.failed), (report.dropped.device_lost, 0));
    assert!((1..=3).contains(&missing), "{missing}");
    assert_eq!(bench.losses(), [(GoesOn::Cpu, missing)]);
    assert_eq!(report.recoveries[0].reason, "the device has no memory left");
}

#[test]
fn a_device_that_is_lost_again_and_again_is_left_alone() {
    let text = "pattern kind=noise size=16x12 frames=300 label=false ! blur ! keeps";
    let bench = bench();
    let report = bench.run(text, |options| options.only(Space::Gpu).lose_device_at(&[10, 20, 30, 40, 50, 60]));
    let report = report.into_result().expect("the CPU continues");
    let missing = is_right(text, &bench.kept(), &truth(text)) as u64;
    assert_eq!(missing, report.dropped.device_lost);
    let on: Vec<GoesOn> = bench.losses().iter().map(|(on, _)| *on).collect();
    assert_eq!(on, [GoesOn::Device, GoesOn::Device, GoesOn::Device, GoesOn::Cpu]);
}

#[test]
fn a_picture_that_went_with_the_device_and_comes_no_more_ends_the_run_in_words() {
    let text = "pattern kind=noise size=16x12 frames=200 label=false ! mix name=m ! keeps; \
                pattern kind=checker size=16x12 frames=1 label=false ! invert name=side ! blur ! m.b";
    let outcome = bench().run(text, |options| options.only(Space::Gpu).lose_device_at(&[100]));
    let Some(RunError::Failed(failure)) = outcome.error else { panic!("frames without it would be wrong") };
    assert!(matches!(failure.error, HandlerError::SideLost { .. }), "{failure}");
}

#[test]
fn frames_that_wait_for_memory_when_the_device_is_lost_are_right_or_lost() {
    let a = "pattern kind=noise size=16x12 frames=120 label=false seed=1";
    let b = "pattern kind=noise size=16x12 frames=120 label=false seed=2";
    for text in [
        format!("{a} ! blur ! delay 2 ! invert ! keeps"),
        format!("{a} ! blur ! mix name=m ! keeps; {b} ! invert ! blur ! m.b"),
    ] {
        let truth = truth(&text);
        let graph = bench().graph(&text);
        let planned = Pipeline::from_graph(graph.clone())
            .registry(&bench().registry)
            .options(RunOptions::new().only(Space::Gpu))
            .plan()
            .expect("a plan")
            .memory
            .gpu_bytes;
        for (rule, part) in [(OnLoss::Reopen, 10), (OnLoss::Reopen, 7), (OnLoss::Cpu, 7)] {
            let bench = bench();
            let most = planned * part / 10;
            let outcome = bench.run(&text, |options| {
                options
                    .only(Space::Gpu)
                    .on_loss(rule)
                    .memory_bytes(Space::Gpu, most + 4096)
                    .lose_device_at(&[30, 31, 70])
            });
            is_right(&text, &bench.kept(), &truth);
            if let Some(error) = &outcome.error {
                assert!(error.to_string().contains("bytes of gpu memory are needed"), "{text}: {error}");
            }
            assert_eq!(outcome.report.memory.leaked, 0, "{text}");
        }
    }
}

#[test]
fn an_input_that_has_lost_nothing_costs_no_frame() {
    // The first frame of the side input is late. Until then, frames of the lead pass alone.
    let text = "pattern kind=noise size=16x12 frames=60 label=false name=a ! mix name=m ! keeps; \
                a. ! delay 40 ! invert ! m.b";
    let bench = bench();
    let report = bench.run(text, |options| options.only(Space::Gpu).lose_device_at(&[10])).into_result();
    let report = report.expect("it was opened again");
    is_right(text, &bench.kept(), &truth(text));
    assert!(report.dropped.device_lost > 0);
}

#[test]
fn a_lost_picture_after_a_delay_is_not_replaced_by_an_older_one() {
    let text = "pattern kind=noise size=16x12 frames=60 label=false name=a ! mix name=m mode=difference amount=1 ! keeps; \
                a. ! blur ! delay 3 ! m.b";
    let truth = truth(text);
    for losses in [&[20, 40][..], &[7], &[31, 33, 50]] {
        let bench = bench();
        let outcome = bench.run(text, |options| {
            let placed = [("a", Space::Cpu), ("blur0", Space::Gpu), ("delay0", Space::Cpu), ("m", Space::Cpu)];
            let options = placed.into_iter().fold(options, |options, (name, space)| options.place(name, space));
            options.fusion(false).lose_device_at(losses)
        });
        let report = outcome.into_result().unwrap_or_else(|error| panic!("{error}"));
        is_right(text, &bench.kept(), &truth);
        assert_eq!(report.recoveries.len(), losses.len());
    }
}

#[test]
fn whatever_the_graph_and_whenever_the_loss_no_wrong_frame_arrives() {
    let noise = |frames: u32, name: &str, seed: u32| {
        format!("pattern kind=noise size=16x12 frames={frames} label=false seed={seed} name={name}")
    };
    let (a, b) = (noise(120, "a", 1), noise(120, "b", 2));
    let graphs = [
        format!("{a} ! blur sigma=1 ! invert ! keeps"),
        format!("{a} ! delay 4 ! blur ! keeps"),
        format!("{a} ! blur ! delay 4 ! null"),
        format!("{a} ! every 3 ! blur ! delay 2 ! keeps"),
        format!("{a} ! blur ! keeps name=k; a. ! invert ! flip axis=h ! keeps name=l"),
        format!("{a} ! blur ! mix name=m ! keeps; a. ! invert ! m.b"),
        format!("{a} ! delay 3 ! mix name=m ! keeps; a. ! blur ! m.b"),
        format!("{a} ! mix name=m mode=difference amount=1 ! keeps; a. ! blur ! delay 3 ! m.b"),
        format!("{a} ! mix name=m ! blur ! keeps; {b} ! blur ! m.b"),
        format!("{a} ! mix name=m ! keeps; {b} ! every 4 ! blur ! m.b"),
        format!("{a} ! mix name=m mode=difference ! keeps; {b} ! convert rgb8 ! convert rgba8 ! m.b"),
        format!("{a} ! blur ! download ! invert ! upload ! blur sigma=2 ! keeps"),
        format!("{a} ! blur ! upload ! keeps"),
        format!("{a} ! blur !{{lossless depth=3}} delay 2 !{{lossless depth=2}} invert ! keeps"),
    ];
    let mut seed = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = |below: u64| {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed % below
    };
    for text in &graphs {
        // Explicit transfers cannot be planned for the CPU alone.
        let plain = text.replace(" ! download", "").replace(" ! upload", "");
        let truth = truth(&plain);
        for rule in [OnLoss::Reopen, OnLoss::Cpu] {
            let mut at: Vec<u64> = (0..=random(3)).map(|_| random(110)).collect();
            at.sort_unstable();
            let bench = bench();
            let in_flight = 1 + random(3) as u32;
            let outcome = bench
                .run(text, |options| options.only(Space::Gpu).on_loss(rule).in_flight(in_flight).lose_device_at(&at));
            let report = outcome.into_result().unwrap_or_else(|error| panic!("{text}, lost at {at:?}: {error}"));
            let missing = is_right(&format!("{text}, lost at {at:?}, {rule:?}"), &bench.kept(), &truth) as u64;
            // A frame that is lost before a fork is missing on both branches.
            assert!(missing <= 2 * report.dropped.device_lost, "{text}: {missing} of {}", report.dropped.device_lost);
            // The lost frames were in flight, held by a delay, or waiting in a link. A thinned side input loses frames
            // until its next frame.
            let most = report.recoveries.len() as u64 * 2 * (u64::from(in_flight) + 16);
            assert!(report.dropped.device_lost <= most, "{text}, lost at {at:?}: {}", report.dropped.device_lost);
            assert!(!report.recoveries.is_empty(), "{text}: lost at {at:?}");
            assert_eq!((report.failed, report.memory.leaked), (0, 0), "{text}");
            let reported: u64 = report.recoveries.iter().map(|loss| loss.lost).sum();
            assert!(reported <= report.dropped.device_lost, "{text}: {reported} of {}", report.dropped.device_lost);
        }
    }
}
