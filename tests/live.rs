//! Settings that change during a run: a change takes effect between two frames, in all handlers with the same frame. No
//! frame is lost, every picture is that of a fresh run with the same settings, and a refused change changes nothing.
//!
//! The tests on the GPU run on any adapter; Mesa's software driver is enough.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use vramp::gpu::Device;
use vramp::plan::catalog::{Entry, Family, Liveness, Setting};
use vramp::plan::{GraphSpec, HandlerSpec, RunOptions, Space};
use vramp::runtime::{
    Call, Flow, FrameHandler, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Registry, Report, RunEvent,
    Setup, Worker,
};
use vramp::{Controls, Pipeline, PipelineBuilder, Step, registry};

use crate::random::chance::Chance;
use crate::random::files::Files;
use crate::random::settings;
use crate::shared::{ADD_RED, KEEPS, device, pass};

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

// ---- every setting

/// A handler with its settings, in the smallest graph around it.
#[derive(Clone)]
struct Case {
    entry: &'static Entry,
    settings: BTreeMap<String, String>,
}

impl Case {
    fn spec(&self) -> GraphSpec {
        let mut spec = GraphSpec::new();
        let given = |handler: HandlerSpec| self.settings.iter().fold(handler, |spec, (key, text)| spec.set(key, text));
        let tested = given(HandlerSpec::new(self.entry.name).named("tested"));
        let disc = |kind: &str| HandlerSpec::new("pattern").set("kind", kind).set("size", "64x48");
        let sink = HandlerSpec::new("keeps");
        if self.entry.inputs.is_empty() {
            let (tested, sink) = (spec.add(tested), spec.add(sink));
            spec.connect(tested, sink);
            return spec;
        }
        let (source, tested, sink) = (spec.add(disc("disc")), spec.add(tested), spec.add(sink));
        spec.connect(source, tested);
        spec.connect(tested, sink);
        if let Some(second) = self.entry.inputs.get(1) {
            let bars = spec.add(disc("bars"));
            spec.connect(bars, tested.input(second.name));
        }
        spec
    }

    fn builder(&self, device: Option<&Device>) -> PipelineBuilder {
        let builder = Pipeline::from_spec(self.spec());
        device.into_iter().fold(builder, PipelineBuilder::device)
    }
}

/// Changeable settings of all built-in kinds, of one liveness.
fn changeable(liveness: Liveness) -> Vec<(&'static Entry, Vec<&'static Setting>)> {
    let kinds = registry();
    let all: Vec<&'static Entry> = kinds.catalog().entries().collect();
    all.into_iter()
        .filter(|entry| kinds.runs(entry))
        .map(|entry| (entry, entry.settings.iter().filter(|own| own.liveness == liveness).collect::<Vec<_>>()))
        .filter(|(_, settings)| !settings.is_empty())
        .collect()
}

const FONT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/handlers/assets/DejaVuSans.ttf");

/// Files that handlers read, of several kinds of content.
struct Shelf {
    files: Files,
    folder: std::path::PathBuf,
}

impl Drop for Shelf {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Shelf {
    fn new() -> Shelf {
        static MADE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let made = MADE.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("vramp-live-{}-{made}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder for files");
        Shelf { files: Files::new(), folder }
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.folder.join(name);
        std::fs::write(&path, text).expect("there is room for a few lines");
        path.display().to_string()
    }

    fn value(&self, entry: &Entry, setting: &Setting, chance: &mut Chance) -> String {
        match (entry.name, setting.name) {
            ("lut", "path") => match chance.below(3) {
                0 => self.file("one.cube", "LUT_1D_SIZE 2\n0 0 0\n0.5 0.5 0.5\n"),
                1 => self.file("three.cube", "LUT_1D_SIZE 2\n0 0.1 0\n0.5 1 0.25\n"),
                _ => self.files.read_by("lut", chance),
            },
            ("wgsl", "path") => match chance.below(3) {
                0 => self.file("invert.wgsl", "fn pixel(c: vec4f) -> vec4f { return vec4f(1 - c.rgb, c.a); }"),
                1 => self.file("swap.wgsl", "fn pixel(c: vec4f) -> vec4f { return c.brga; }"),
                _ => self.files.read_by("wgsl", chance),
            },
            ("wgsl", "code") => {
                format!("fn pixel(c: vec4f) -> vec4f {{ return vec4f(c.rgb * 0.{}, c.a); }}", chance.between(1, 9))
            }
            ("text", "font") => FONT.to_owned(),
            _ => settings::value(entry, setting, &self.files, chance),
        }
    }

    /// A handler of this kind with the settings that it needs.
    fn case(&self, entry: &'static Entry, chance: &mut Chance) -> Case {
        let mut settings = BTreeMap::new();
        for setting in entry.settings {
            if setting.fallback == vramp::plan::catalog::Fallback::Required {
                settings.insert(setting.name.to_owned(), self.value(entry, setting, chance));
            }
        }
        for group in entry.one_of {
            let setting = entry.setting(group[0]).expect("a group names settings");
            settings.insert(setting.name.to_owned(), self.value(entry, setting, chance));
        }
        match entry.name {
            "pattern" => settings.insert("size".to_owned(), "40x30".to_owned()),
            "crop" => settings.insert("size".to_owned(), "9x7".to_owned()),
            "resize" => settings.insert("size".to_owned(), "50x60".to_owned()),
            _ => None,
        };
        Case { entry, settings }
    }
}

/// Number of changes over all tests of every setting.
fn wanted_changes() -> usize {
    if std::env::var_os("VRAMP_LONG").is_some() { 1000 } else { 200 }
}

/// Changes settings of one liveness in running pipelines, in turn, and compares every picture.
fn change_every_setting(side: Space, liveness: Liveness, count: usize, seed: u64) {
    let shelf = Shelf::new();
    // A device of its own, because compilations are counted.
    let device = (side == Space::Gpu).then(|| Device::choose().open().expect("an adapter"));
    let mut chance = Chance::of(seed);
    let kinds = changeable(liveness);
    let kinds: Vec<_> = kinds.into_iter().filter(|(entry, _)| entry.offers(side)).collect();
    let settings: usize = kinds.iter().map(|(_, settings)| settings.len()).sum();
    for (entry, own) in &kinds {
        let turns = (own.len() * count).div_ceil(settings).max(own.len());
        change_kind((&shelf, device.as_ref()), (side, liveness), entry, own, turns, &mut chance);
    }
}

fn change_kind(
    (shelf, device): (&Shelf, Option<&Device>),
    (side, liveness): (Space, Liveness),
    entry: &'static Entry,
    settings: &[&'static Setting],
    turns: usize,
    chance: &mut Chance,
) {
    let mut case = shelf.case(entry, chance);
    let mut run = Run::of(case.builder(device), on(side), |kinds| kinds);
    let controls = run.controls();
    let mut made = vec![(0, case.clone())];
    // Some values are refused, because they do not fit the other settings or the frame.
    let (mut turn, mut tries) = (0, 0);
    while turn < turns {
        tries += 1;
        assert!(tries < 60 * turns, "{}: nearly every value is refused", entry.name);
        run.step_to(run.came() + 1 + chance.below(2));
        let setting = settings[turn % settings.len()];
        let text = shelf.value(entry, setting, chance);
        let mut next = case.clone();
        for group in entry.one_of.iter().filter(|group| group.contains(&setting.name)) {
            next.settings.retain(|key, _| !group.contains(&key.as_str()));
        }
        next.settings.insert(setting.name.to_owned(), text.clone());
        let name = format!("tested.{}", setting.name);
        match controls.set(&name, &text) {
            Ok(change) => {
                while change.frame(Duration::ZERO).is_none() {
                    assert!(run.step(), "{name}={text} never took effect");
                }
                let frame = change.frame(Duration::ZERO).expect("it was applied");
                let read = setting.value.read(&text).expect("it was accepted").to_string();
                let expected = ("tested".to_owned(), format!("{}={read}", setting.name), frame);
                assert_eq!(run.changes().last(), Some(&expected));
                assert_eq!(controls.get(&name).expect("it has a value"), read);
                made.push((frame, next.clone()));
                (case, turn) = (next, turn + 1);
            }
            Err(error) => {
                let fails =
                    next.builder(device).registry(&keeping(&Kept::default())).options(on(side)).build().is_err();
                assert!(fails, "{} {name}={text} was refused, but a fresh run has it: {error}", entry.name);
            }
        }
    }
    let report = run.finish();
    assert_eq!(report.changes as usize, made.len() - 1, "{}", entry.name);
    if liveness == Liveness::Live {
        let compiles = report.counters.compiles_after_first_frame;
        assert_eq!((report.swaps, compiles), (0, 0), "{}: live settings change no kernel", entry.name);
    }
    let frames = run.came() as u64;
    assert_eq!((report.frames_out, report.dropped.sum(), report.failed), (frames, 0, 0), "{}", entry.name);
    assert!(lock(&run.kept).keys().map(|(_, number)| *number).eq(0..frames), "{}: no frame is lost", entry.name);
    for (at, (from, case)) in made.iter().enumerate() {
        let to = made.get(at + 1).map_or(frames, |(next, _)| *next);
        let truth = fresh(case.builder(device), on(side), to);
        for number in *from..to {
            let same = run.picture("keeps0", number) == truth.picture("keeps0", number);
            assert!(same, "{} {:?}, frame {number} on the {side}", entry.name, case.settings);
        }
    }
}

#[test]
fn every_live_setting_changes_on_the_cpu_without_another_kernel() {
    change_every_setting(Space::Cpu, Liveness::Live, wanted_changes() * 3 / 10, 1);
}

#[test]
fn every_live_setting_changes_on_the_gpu_without_another_kernel() {
    change_every_setting(Space::Gpu, Liveness::Live, wanted_changes() * 3 / 10, 2);
}

#[test]
fn every_rebuild_setting_changes_on_the_cpu() {
    change_every_setting(Space::Cpu, Liveness::Rebuild, wanted_changes() / 5, 3);
}

#[test]
fn every_rebuild_setting_changes_on_the_gpu() {
    change_every_setting(Space::Gpu, Liveness::Rebuild, wanted_changes() / 5, 4);
}

// ---- one frame for all

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

// ---- kernels

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

// ---- devices that are lost

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

// ---- handlers of other programs

const BY: Setting = Setting::int("by", 0..=99, "what to add; 99 is refused late").default("1").live();
static ADDS: Entry = Entry {
    name: "adds",
    family: Family::Filter,
    about: "adds to red and counts its frames in green",
    example: "pattern ! adds ! null",
    settings: &[BY],
    spaces: &[Space::Cpu],
    kernel: vramp::plan::catalog::KernelRule::None,
    ..Entry::FILTER
};
static STUBBORN: Entry =
    Entry { name: "stubborn", about: "declares more than it does", example: "pattern ! stubborn ! null", ..ADDS };
static COUNTS: Entry = Entry {
    name: "counts",
    about: "adds the number of its frames, times a factor",
    example: "pattern ! counts ! null",
    settings: &[BY],
    ..Entry::FILTER
};

/// A frame handler with a live setting and a state.
struct Adds {
    by: u8,
    frames: u8,
}

impl FrameHandler for Adds {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let mut frame = call.take(0).ok_or_else(|| HandlerError::failed("no lead frame"))?;
        let pool = call.pool().clone();
        let mut bytes = frame.edit(&pool)?;
        (bytes[0], bytes[1]) = (bytes[0].wrapping_add(self.by), self.frames);
        drop(bytes);
        self.frames += 1;
        call.send(0, frame);
        Ok(Flow::Produced)
    }

    fn change(&mut self, setup: &Setup<'_>) -> Result<(), HandlerError> {
        let by = setup.int("by")?;
        if by == 99 {
            return Err(HandlerError::failed("99 is too much today"));
        }
        self.by = by;
        Ok(())
    }
}

/// A pixel handler that hands its count over to its successor.
struct Counts {
    by: u32,
    frames: u32,
}

impl PixelHandler for Counts {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&ADD_RED)]
    }

    fn hand_over(&mut self) -> Option<Box<dyn std::any::Any + Send>> {
        Some(Box::new(self.frames))
    }

    fn take_over(&mut self, state: Box<dyn std::any::Any + Send>) {
        self.frames = *state.downcast().expect("the count of the predecessor");
    }

    fn frame(&mut self, _: &PixelInfo, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        self.frames += 1;
        give.part(&[self.by * self.frames], &[]);
        Ok(Flow::Produced)
    }
}

fn with_own(mut kinds: Registry) -> Registry {
    kinds.add(&ADDS, |setup: &Setup<'_>| Ok(Adds { by: setup.int("by")?, frames: 0 })).expect("a good entry");
    kinds.add(&STUBBORN, |_: &Setup<'_>| Ok(By(pass))).expect("a good entry");
    kinds.add(&COUNTS, |setup: &Setup<'_>| Ok(Counts { by: setup.int("by")?, frames: 0 })).expect("a good entry");
    kinds
}

#[test]
fn a_frame_handler_changes_in_place_and_keeps_its_state() {
    let builder = Pipeline::parse("pattern kind=solid color=000000 size=8x8 ! adds ! keeps");
    let mut run = Run::of(builder, on(Space::Cpu), with_own);
    run.step_to(3);
    let change = run.controls().set("adds0.by", 7).expect("a good value");
    run.step_to(8);
    let first = change.frame(Duration::ZERO).expect("it took effect");
    assert_eq!(run.changes(), [("adds0".to_owned(), "by=7".to_owned(), first)]);
    for number in 0..8 {
        let red = if number < first { 1 } else { 7 };
        assert_eq!(run.picture("keeps0", number)[..2], [red, number as u8], "frame {number}");
    }
}

#[test]
fn a_change_that_a_frame_handler_refuses_is_reported_and_the_handler_continues() {
    for (handler, value, words) in [
        ("adds", 99, "99 is too much today"),
        ("stubborn", 7, "its entry declares a setting that can change, but it does not implement `change`"),
    ] {
        let builder = Pipeline::parse(format!("pattern kind=solid size=8x8 ! {handler} ! keeps"));
        let mut run = Run::of(builder, on(Space::Cpu), with_own);
        run.step_to(2);
        let change = run.controls().set(&format!("{handler}0.by"), value).expect("a valid value");
        run.step_to(6);
        assert_eq!((change.frame(Duration::ZERO), change.problem().as_deref()), (None, Some(words)));
        let told = |event: &RunEvent| matches!(event, RunEvent::NotChanged { problem, .. } if problem == words);
        assert_eq!(lock(&run.events).iter().filter(|event| told(event)).count(), 1);
        assert_eq!(run.finish().changes, 0);
    }
}

#[test]
fn a_pixel_handler_hands_its_state_to_its_successor() {
    for side in [Space::Cpu, Space::Gpu] {
        let builder = Pipeline::parse("pattern kind=solid color=000000 size=8x8 ! counts ! keeps").device(device());
        let mut run = Run::of(builder, on(side), with_own);
        run.step_to(3);
        let change = run.controls().set("counts0.by", 3).expect("a good value");
        run.step_to(8);
        let first = change.frame(Duration::ZERO).expect("it took effect");
        for number in 0..8 {
            let by = if number < first { 1 } else { 3 };
            assert_eq!(u64::from(run.picture("keeps0", number)[0]), by * (number + 1), "frame {number} on the {side}");
        }
        run.finish();
    }
}

#[test]
fn after_a_change_frames_allocate_nothing() {
    for side in [Space::Cpu, Space::Gpu] {
        let builder = Pipeline::parse("pattern kind=disc size=64x48 ! blur ! gamma ! null").device(device());
        let mut run = Run::of(builder, RunOptions { frames: Some(600), ..on(side) }, |kinds| kinds);
        let change = run.controls().set_all([("blur0.sigma", 3.0), ("gamma0.value", 1.5)]).expect("good values");
        while run.step() {}
        assert_eq!(change.frame(Duration::ZERO), Some(0));
        let report = run.pipeline.finish().expect("it finishes");
        let steady = report.steady;
        assert_eq!((steady.heap_allocs, steady.gpu_allocs, steady.bind_groups), (Some(0.0), 0.0, 0.0), "{side}");
    }
}

// ---- files that are followed

/// Waits until an event that `is_it` accepts has come this often.
fn wait_for(events: &Events, count: usize, is_it: impl Fn(&RunEvent) -> bool) -> bool {
    let begun = std::time::Instant::now();
    while lock(events).iter().filter(|event| is_it(event)).count() < count {
        if begun.elapsed() > Duration::from_secs(60) {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

#[test]
fn a_followed_file_takes_effect_when_it_is_saved_and_a_wrong_one_is_reported_once() {
    let shelf = Shelf::new();
    let picture = |width: u32| {
        let pattern = shelf.files.pictures((width, 5), 1);
        std::fs::read(pattern.replace('*', "0")).expect("it was written")
    };
    let (half, third) = (
        "LUT_1D_SIZE 2\n0 0 0\n0.5 0.5 0.5\n",
        "LUT_3D_SIZE 2\n0 0 0\n1 0 0\n0 1 0\n1 1 0\n0 0 1\n1 0 1\n0 1 1\n0.3 0.2 0.1\n",
    );
    let cases = [
        ("lut", "film.cube", half.as_bytes().to_vec(), third.as_bytes().to_vec()),
        ("overlay", "logo.png", picture(9), picture(40)),
    ];
    for (kind, name, first, second) in cases {
        let path = shelf.folder.join(name);
        // Saved by renaming, as editors do.
        let save = |bytes: &[u8]| {
            let new = shelf.folder.join("new");
            std::fs::write(&new, bytes).and_then(|()| std::fs::rename(&new, &path)).expect("there is room");
        };
        save(&first);
        let text = format!("pattern kind=solid color=ffffff size=48x8 ! {kind} {} name=made ! keeps", path.display());
        let options = RunOptions { pace: vramp::plan::Rate::new(100, 1), ..on(Space::Cpu) }.watch(true);
        let Run { mut pipeline, kept, events } = Run::text(&text, options);
        let stopper = pipeline.stopper();
        let reloaded = |event: &RunEvent| matches!(event, RunEvent::Reloaded { handler } if handler == "made");
        let refused = |event: &RunEvent| matches!(event, RunEvent::NotReloaded { handler, .. } if handler == "made");
        let saw = std::thread::scope(|scope| {
            let running = scope.spawn(move || pipeline.run().map_err(|error| error.to_string()));
            save(&second);
            let mut saw = vec![wait_for(&events, 1, reloaded)];
            save(b"garbage");
            saw.push(wait_for(&events, 1, refused));
            save(&first);
            saw.push(wait_for(&events, 2, reloaded));
            stopper.finish();
            running.join().expect("it does not panic").expect("it does not fail");
            saw
        });
        assert_eq!(saw, [true; 3], "{kind}");
        assert_eq!(lock(&events).iter().filter(|event| refused(event)).count(), 1, "{kind}");
        let (kept, number) = (lock(&kept).clone(), |event: &RunEvent| match event {
            RunEvent::Changed { frame, .. } => Some(*frame),
            _ => None,
        });
        let changed: Vec<u64> = lock(&events).iter().filter_map(number).collect();
        let [second_from, first_again] = changed[..] else { panic!("{kind}: {changed:?}") };
        let at = |number: u64| &kept[&("keeps0".to_owned(), number)];
        assert!(at(second_from) == at(first_again - 1) && at(second_from) != at(first_again), "{kind}");
        assert!(second_from == 0 || at(0) == at(first_again), "{kind}");
    }
}
