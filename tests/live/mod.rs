//! Settings that change during a run: a change takes effect between two frames, in all handlers with the same frame. No
//! frame is lost, every picture is that of a fresh run with the same settings, and a refused change changes nothing.
//!
//! The tests on the GPU run on any adapter; Mesa's software driver is enough.

mod every_setting;
mod own_handlers;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use vramp::gpu::Device;
use vramp::plan::{RunOptions, Space};
use vramp::runtime::{Call, Flow, FrameHandler, HandlerError, Registry, Report, RunEvent, Setup, Worker};
use vramp::{Controls, Pipeline, PipelineBuilder, Step, registry};

use crate::shared::{KEEPS, device};

use every_setting::Shelf;

/// Bytes of the frames that reached a sink, by the sink's name and the frame's number.
type Kept = Arc<Mutex<BTreeMap<(String, u64), Vec<u8>>>>;
type Events = Arc<Mutex<Vec<RunEvent>>>;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

struct By<F>(F);

impl<F: FnMut(&mut Call<'_>) -> Result<Flow, HandlerError> + Send> FrameHandler for By<F> {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        (self.0)(call)
    }
}

/// The built-in kinds, and the sink `keeps`, which keeps its frames.
fn keeping(kept: &Kept) -> Registry {
    let (mut kinds, kept) = (registry(), Arc::clone(kept));
    let make = move |setup: &Setup<'_>| {
        let (kept, name) = (Arc::clone(&kept), setup.name.to_owned());
        Ok(Worker::frames(By(move |call: &mut Call<'_>| {
            let frame = call.take(0).expect("a lead frame");
            let twice = lock(&kept).insert((name.clone(), frame.meta().number), frame.bytes().to_vec());
            assert!(twice.is_none(), "a frame came twice");
            Ok(Flow::Produced)
        })))
    };
    kinds.add(&KEEPS, make).expect("a good entry");
    kinds
}

/// A pipeline that is stepped, and what came of it.
struct Run {
    pipeline: Pipeline,
    kept: Kept,
    events: Events,
}

impl Run {
    fn of(builder: PipelineBuilder, options: RunOptions, kinds: impl FnOnce(Registry) -> Registry) -> Run {
        let (kept, events) = (Kept::default(), Events::default());
        let heard = Arc::clone(&events);
        let builder = builder
            .registry(&kinds(keeping(&kept)))
            .options(options)
            .listener(Arc::new(move |event| lock(&heard).push(event.clone())));
        Run { pipeline: builder.build().unwrap_or_else(|error| panic!("{error}")), kept, events }
    }

    fn text(text: &str, options: RunOptions) -> Run {
        Run::of(Pipeline::parse(text), options, |kinds| kinds)
    }

    fn controls(&self) -> Controls {
        self.pipeline.controls()
    }

    /// Takes one step. Returns whether more are possible.
    fn step(&mut self) -> bool {
        match self.pipeline.step().unwrap_or_else(|error| panic!("{error}")) {
            Step::Moved => true,
            Step::Wait(time) => {
                std::thread::sleep(time);
                true
            }
            Step::Stuck => {
                self.pipeline.wait_for_device();
                true
            }
            Step::Over => false,
        }
    }

    /// Steps until this many frames have reached the sinks.
    fn step_to(&mut self, frames: usize) {
        while lock(&self.kept).len() < frames && self.step() {}
    }

    fn finish(&mut self) -> Report {
        self.pipeline.stopper().finish();
        while self.step() {}
        self.pipeline.finish().unwrap_or_else(|error| panic!("{error}"))
    }

    fn came(&self) -> usize {
        lock(&self.kept).len()
    }

    /// The events of changes: handler, settings, first frame.
    fn changes(&self) -> Vec<(String, String, u64)> {
        let change = |event: &RunEvent| match event {
            RunEvent::Changed { handler, settings, frame } => {
                let settings: Vec<_> = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
                Some((handler.clone(), settings.join(" "), *frame))
            }
            _ => None,
        };
        lock(&self.events).iter().filter_map(change).collect()
    }

    fn picture(&self, sink: &str, number: u64) -> Vec<u8> {
        lock(&self.kept).get(&(sink.to_owned(), number)).cloned().unwrap_or_else(|| panic!("{sink} has no {number}"))
    }
}

fn on(side: Space) -> RunOptions {
    RunOptions::new().only(side).nominal_time().threads(2)
}

/// The frames of a fresh run.
fn fresh(builder: PipelineBuilder, options: RunOptions, frames: u64) -> Run {
    let mut run = Run::of(builder, RunOptions { frames: Some(frames), ..options }, |kinds| kinds);
    while run.step() {}
    run.pipeline.finish().unwrap_or_else(|error| panic!("{error}"));
    run
}

#[test]
fn settings_of_two_sides_change_with_the_same_frame() {
    let text = "pattern kind=disc size=64x48 ! blur sigma=1 ! contrast amount=1 ! keeps";
    let pins = [("pattern0", Space::Gpu), ("blur0", Space::Gpu), ("contrast0", Space::Cpu)];
    let options = || {
        let pins = pins.map(|(name, space)| (name.to_owned(), space)).into();
        RunOptions { pins, pace: vramp::plan::Rate::new(200, 1), ..RunOptions::new().nominal_time().threads(2) }
    };
    let run = Run::of(Pipeline::parse(text).device(device()), options(), |kinds| kinds);
    let Run { mut pipeline, kept, events } = run;
    let (controls, stopper) = (pipeline.controls(), pipeline.stopper());
    let wanted = [("1", "1"), ("2.5", "1.5"), ("0.7", "0.3"), ("4", "2")];
    let mut firsts = vec![0];
    let report = std::thread::scope(|scope| {
        let running = scope.spawn(move || pipeline.run().map_err(|error| error.to_string()));
        // Nothing here may panic before the run is told to end: the scope waits for the run.
        for (sigma, amount) in &wanted[1..] {
            let came = lock(&kept).len();
            while lock(&kept).len() < came + 3 && !running.is_finished() {
                std::thread::yield_now();
            }
            let change = controls.set_all([("blur0.sigma", *sigma), ("contrast0.amount", *amount)]);
            firsts.extend(change.ok().and_then(|change| change.frame(Duration::from_secs(60))));
        }
        stopper.finish();
        running.join().expect("it does not panic").expect("it does not fail")
    });
    assert!(firsts.len() == wanted.len() && firsts.is_sorted_by(|one, next| one < next), "{firsts:?}");
    let run = Run { pipeline: Pipeline::parse("pattern frames=1 ! null").build().expect("it plans"), kept, events };
    let by_handler = |name: &str| -> Vec<u64> {
        run.changes().into_iter().filter(|(handler, ..)| handler == name).map(|(.., frame)| frame).collect()
    };
    assert_eq!((by_handler("blur0"), by_handler("contrast0")), (firsts[1..].to_vec(), firsts[1..].to_vec()));
    assert_eq!((report.changes, report.swaps, report.dropped.sum()), (6, 0, 0));
    for (at, (sigma, amount)) in wanted.iter().enumerate() {
        let to = firsts.get(at + 1).copied().unwrap_or(report.frames_out);
        let text = format!("pattern kind=disc size=64x48 ! blur sigma={sigma} ! contrast amount={amount} ! keeps");
        let truth = fresh(Pipeline::parse(text).device(device()), on(Space::Cpu), to);
        for number in firsts[at]..to {
            assert!(run.picture("keeps0", number) == truth.picture("keeps0", number), "frame {number}");
        }
    }
}

#[test]
fn a_change_before_the_first_frame_holds_from_frame_0() {
    let mut run = Run::text("pattern kind=disc size=64x48 frames=3 ! blur ! keeps", on(Space::Cpu));
    let change = run.pipeline.set("blur0.sigma", 4).expect("a good value");
    assert_eq!(change.frame(Duration::ZERO), None);
    let report = run.finish();
    assert_eq!((change.frame(Duration::ZERO), report.changes), (None, 0), "no frame came");
    let mut run = Run::text("pattern kind=disc size=64x48 frames=3 ! blur ! keeps", on(Space::Cpu));
    let change = run.pipeline.set("blur0.sigma", 4).expect("a good value");
    run.step_to(3);
    assert_eq!(change.frame(Duration::ZERO), Some(0));
    let truth = fresh(Pipeline::parse("pattern kind=disc size=64x48 ! blur sigma=4 ! keeps"), on(Space::Cpu), 3);
    (0..3).for_each(|number| assert!(run.picture("keeps0", number) == truth.picture("keeps0", number)));
}

#[test]
fn frames_in_flight_keep_their_settings() {
    let mut run = Run::text("pattern kind=solid color=808080 size=8x8 ! delay 5 ! brightness ! keeps", on(Space::Cpu));
    run.step_to(4);
    let before = run.came() as u64;
    let change =
        run.controls().set_all([("pattern0.color", "ff0000"), ("brightness0.amount", "0.1")]).expect("good values");
    run.step_to(20);
    let frame = change.frame(Duration::ZERO).expect("it took effect");
    assert!(frame >= before);
    let frames: Vec<(String, u64)> = run.changes().into_iter().map(|(handler, _, frame)| (handler, frame)).collect();
    assert_eq!(frames, [("pattern0".to_owned(), frame), ("brightness0".to_owned(), frame)]);
    // The delay gives an old picture the number of a new frame, and with it the settings of that frame.
    let pixel = |number: u64| run.picture("keeps0", number)[..3].to_vec();
    assert_eq!(pixel(frame - 1), [128, 128, 128]);
    assert_eq!(pixel(frame), [154, 154, 154]);
    assert_eq!(pixel(frame + 5), [255, 26, 26]);
}

#[test]
fn several_changes_are_made_all_or_not_at_all() {
    let mut run = Run::text("pattern kind=disc size=64x48 ! blur ! crop size=20x20 ! keeps", on(Space::Cpu));
    run.step_to(2);
    let controls = run.controls();
    let before = controls.settings();
    for bad in
        [("pattern0.size", "9x9"), ("crop0.x", "50"), ("blur0.sigma", "x"), ("blur1.sigma", "1"), ("crop0.z", "1")]
    {
        let error = controls.set_all([("blur0.size", "5"), ("crop0.y", "3"), bad]);
        assert!(error.is_err(), "{bad:?}");
        assert_eq!(controls.settings(), before, "{bad:?}");
    }
    run.step_to(6);
    let report = run.finish();
    assert_eq!((report.changes, run.changes().len()), (0, 0));
}

#[test]
fn every_refusal_says_why() {
    let shelf = Shelf::new();
    let shader = shelf.file(
        "own.wgsl",
        "struct Settings { by: f32, // = 0.25\n}\nfn pixel(c: vec4f, s: Settings) -> vec4f { return c * s.by; }",
    );
    let text = format!(
        "pattern size=64x48 ! blur ! crop size=20x20 ! resize scale=2 ! convolve kernel=1,1,1,1,1,1,1,1,1 ! wgsl {shader} ! \
         waveform ! every 2 ! keeps"
    );
    let run = Run::of(Pipeline::parse(text).device(device()), RunOptions::new().nominal_time(), |kinds| kinds);
    let controls = run.controls();
    for (name, value, words) in [
        ("sigma", "1", "`sigma` does not name a setting; expected HANDLER.SETTING, such as pattern0.kind"),
        (".", "1", "`.` does not name a setting; expected HANDLER.SETTING, such as pattern0.kind"),
        ("blur.sigma", "1", "there is no handler `blur`; did you mean `blur0`?"),
        (
            "grain0.amount",
            "1",
            "there is no handler `grain0`; expected one of pattern0, blur0, crop0, resize0, convolve0, wgsl0, waveform0, \
             every0, keeps0",
        ),
        ("blur0.sigm", "1", "blur0 has no setting `sigm`; did you mean `sigma`?"),
        ("blur0.radius", "1", "blur0 has no setting `radius`; expected one of sigma, size"),
        ("keeps0.path", "x", "keeps0 has no setting `path`; it has no settings"),
        ("wgsl0.bye", "1", "wgsl0 has no setting `bye`; did you mean `by`?"),
        ("blur0.sigma", "-1", "blur0: `-1` is not a valid sigma; expected a number from 0.01 to 100"),
        (
            "blur0.size",
            "4",
            "blur0: `4` is not a valid size; expected an odd whole number from 1 to 1023, or 0 for automatic",
        ),
        (
            "resize0.filter",
            "area2",
            "resize0: `area2` is not a valid filter; expected one of nearest, bilinear, area, lanczos; did you mean `area`?",
        ),
        ("wgsl0.by", "much", "wgsl0: `much` is not a valid by; expected a number without limits"),
        (
            "pattern0.size",
            "9x9",
            "pattern0.size is read when the pipeline starts and cannot change while it runs; these can: kind, color, seed, \
             label",
        ),
        (
            "every0.n",
            "3",
            "every0.n is read when the pipeline starts and cannot change while it runs; no setting of every0 can",
        ),
        (
            "blur0.on-error",
            "retry",
            "blur0.on-error is read when the pipeline starts and cannot change while it runs; these can: sigma, size",
        ),
        (
            "convolve0.divisor",
            "0",
            "convolve0: the divisor must not be 0; leave out `divisor` to divide by the sum of the weights",
        ),
        ("wgsl0.path", "missing.wgsl", "wgsl0: `missing.wgsl` cannot be read"),
        ("wgsl0.code", "fn pixel(", "wgsl0: code:1:"),
        ("crop0.x", "50", "crop0: 20x20 at 50,0"),
    ] {
        let error = controls.set(name, value).expect_err(name).to_string();
        assert!(error.starts_with(words), "{name}={value}\n{error}\n{words}");
    }
    let twice = controls.set_all([("blur0.sigma", "1"), ("blur0.sigma", "2")]).expect_err("given twice");
    assert_eq!(twice.to_string(), "blur0.sigma is given twice; give it once");
    let both = controls.set_all([("wgsl0.path", shader.as_str()), ("wgsl0.code", "x")]).expect_err("alternatives");
    assert_eq!(both.to_string(), "wgsl0: path and code are alternatives; set one of them");
    let unset = controls.get("convolve0.divisor").expect_err("it has no value");
    assert_eq!(unset.to_string(), "convolve0.divisor has no value");
    let long = controls.set(&format!("blur0.{}", "x".repeat(5000)), "1").expect_err("there is no such setting");
    assert!(long.to_string().len() < 300, "{long}");
}

#[test]
fn a_run_that_has_ended_refuses_changes() {
    let mut run = Run::text("pattern size=8x8 frames=2 ! blur ! keeps", on(Space::Cpu));
    while run.step() {}
    run.pipeline.finish().expect("it finishes");
    let error = run.controls().set("blur0.sigma", 3.0).expect_err("it has ended");
    assert_eq!(error.to_string(), "the run has ended");
}

#[test]
fn another_kernel_is_compiled_once_and_swapped() {
    let own = Device::choose().open().expect("an adapter");
    let text = "pattern kind=noise size=64x48 ! median ! keeps";
    let mut run = Run::of(Pipeline::parse(text).device(&own), on(Space::Gpu), |kinds| kinds);
    run.step_to(3);
    let controls = run.controls();
    for size in ["5", "5", "3", "5"] {
        let change = controls.set("median0.size", size).expect("a good value");
        while change.frame(Duration::ZERO).is_none() && run.step() {}
    }
    let report = run.finish();
    assert_eq!((report.changes, report.swaps), (4, 3), "the second change changes nothing");
    assert_eq!(report.counters.compiles_after_first_frame, 1, "the device keeps what it has compiled");
}

#[test]
fn settings_that_a_shader_declares_are_live_and_another_shader_is_swapped_in() {
    let shelf = Shelf::new();
    let one = shelf.file("one.wgsl", "struct Settings { by: f32, // = 0.5\n}\nfn pixel(c: vec4f, s: Settings) -> vec4f { return vec4f(c.rgb * s.by, 1); }");
    let two = shelf.file("two.wgsl", "struct Settings { by: f32, // = 0.25\nadd: f32 }\nfn pixel(c: vec4f, s: Settings) -> vec4f { return vec4f(c.rgb * s.by + s.add, 1); }");
    let text = format!("pattern kind=solid color=ffffff size=8x8 ! wgsl {one} ! keeps");
    let mut run = Run::of(Pipeline::parse(text).device(device()), on(Space::Gpu), |kinds| kinds);
    run.step_to(2);
    let controls = run.controls();
    let mut red = |changes: &[(&str, &str)]| {
        let change = controls.set_all(changes.iter().copied()).unwrap_or_else(|error| panic!("{error}"));
        while change.frame(Duration::ZERO).is_none() && run.step() {}
        let frame = change.frame(Duration::ZERO).expect("it took effect");
        run.step_to(frame as usize + 1);
        run.picture("keeps0", frame)[0]
    };
    assert_eq!(red(&[("wgsl0.path", &two)]), 64, "the default of the new shader");
    assert_eq!(red(&[("wgsl0.add", "0.5")]), 191);
    assert_eq!(red(&[("wgsl0.by", "0"), ("wgsl0.path", &two)]), 128, "a given value stays");
    let code =
        "struct Settings { by: f32, add: f32 }\nfn pixel(c: vec4f, s: Settings) -> vec4f { return 0.1 * c + s.by; }";
    assert_eq!(red(&[("wgsl0.code", code)]), 26);
    let gone = controls.set("wgsl0.code", "fn pixel(c: vec4f) -> vec4f { return c; }").expect_err("add has a value");
    let words = "wgsl0: the shader no longer declares the setting `add`, which has the value 0.5";
    assert!(gone.to_string().starts_with(words), "{gone}");
    let report = run.finish();
    assert_eq!((report.changes, report.swaps), (4, 2));
}

#[test]
fn a_member_that_no_longer_fits_into_the_fused_kernel_gets_a_stage_of_its_own() {
    let text = |kind: &str, amount: &str, mode: &str| {
        format!(
            "pattern kind=disc size=64x48 ! invert ! waveform kind={kind} ! brightness amount={amount} ! mix mode={mode} \
             name=m ! keeps; pattern kind=bars size=64x48 ! m.b"
        )
    };
    let steps = [
        ("luma", "0", "mix", "waveform0.kind", "luma"),
        ("luma", "0.25", "mix", "brightness0.amount", "0.25"),
        ("luma", "0.25", "difference", "m.mode", "difference"),
        ("sine", "0.25", "difference", "waveform0.kind", "sine"),
        ("luma", "0.25", "difference", "waveform0.kind", "luma"),
    ];
    for side in [Space::Cpu, Space::Gpu] {
        let start = text("sine", "0", "mix");
        let mut run = Run::of(Pipeline::parse(start.as_str()).device(device()), on(side), |kinds| kinds);
        let controls = run.controls();
        let mut made = vec![(0, start)];
        for (kind, amount, mode, name, value) in steps {
            run.step_to(run.came() + 2);
            let change = controls.set(name, value).unwrap_or_else(|error| panic!("{name}={value}: {error}"));
            while change.frame(Duration::ZERO).is_none() {
                assert!(run.step(), "{name}={value} never took effect");
            }
            made.push((change.frame(Duration::ZERO).expect("it was applied"), text(kind, amount, mode)));
        }
        run.step_to(run.came() + 2);
        let report = run.finish();
        assert_eq!((report.changes, report.swaps, report.failed), (5, 3, 0), "{side}");
        for (at, (from, text)) in made.iter().enumerate() {
            let to = made.get(at + 1).map_or(run.came() as u64, |(next, _)| *next);
            let truth = fresh(Pipeline::parse(text.as_str()).device(device()), on(side), to);
            for number in *from..to {
                assert!(run.picture("keeps0", number) == truth.picture("keeps0", number), "{side}, {text}, {number}");
            }
        }
    }
}

/// Compares the pictures that came from this frame on with those of a fresh run.
fn equal_from(first: u64, run: &Run, text: &str) {
    let kept = lock(&run.kept).clone();
    let last = kept.keys().map(|(_, number)| *number).max().expect("frames came");
    assert!(last > first + 3, "{first} to {last}");
    let truth = fresh(Pipeline::parse(text), on(Space::Cpu), last + 1);
    for ((_, number), picture) in kept.iter().filter(|((_, number), _)| *number >= first) {
        assert!(*picture == truth.picture("keeps0", *number), "frame {number}");
    }
}

/// Changes a live and a rebuild setting, loses the device at this frame, and compares every picture that arrived.
fn lose(at: u64, with: impl FnOnce(RunOptions) -> RunOptions) {
    let text = "pattern kind=noise size=64x48 ! median ! brightness ! keeps";
    let options = with(RunOptions { lose_device_at: vec![at], ..on(Space::Gpu) });
    let mut run = Run::text(text, options);
    run.step_to(3);
    let changes = [("median0.size", "5"), ("brightness0.amount", "0.25")];
    let change = run.controls().set_all(changes).expect("good values");
    let until = run.came() + 20;
    run.step_to(until);
    let first = change.frame(Duration::ZERO).expect("it took effect");
    let report = run.finish();
    assert_eq!(report.recoveries.len(), 1, "the device was lost");
    let text = "pattern kind=noise size=64x48 ! median size=5 ! brightness amount=0.25 ! keeps";
    equal_from(first, &run, text);
}

#[test]
fn changed_settings_stay_when_the_run_continues_on_the_cpu() {
    lose(12, |options| RunOptions { on_loss: vramp::plan::OnLoss::Cpu, ..options });
}

#[test]
fn changed_settings_stay_on_another_device() {
    lose(12, |options| options);
}

#[test]
fn a_device_that_is_lost_before_the_first_changed_frame_takes_no_change_with_it() {
    let (cpu, reopen) = (vramp::plan::OnLoss::Cpu, vramp::plan::OnLoss::Reopen);
    for (on_loss, already) in [(cpu, false), (reopen, false), (cpu, true), (reopen, true)] {
        let text = "pattern kind=noise size=64x48 ! median ! keeps";
        let mut run = Run::text(text, RunOptions { on_loss, ..on(Space::Gpu) });
        run.step_to(3);
        let device = run.pipeline.device().expect("it runs on a device").clone();
        if already {
            device.destroy();
        }
        let change = run.controls().set("median0.size", "5").expect("a good value");
        device.destroy();
        let until = run.came() + 10;
        run.step_to(until);
        let first = change.frame(Duration::ZERO).expect("it took effect");
        let report = run.finish();
        assert_eq!(report.recoveries.len(), 1, "the device was lost");
        equal_from(first, &run, "pattern kind=noise size=64x48 ! median 5 ! keeps");
    }
}
