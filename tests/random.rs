//! Random pipelines of every handler that runs, over pictures, tensors and data, with joins, notes and failing handlers.
//! Fused and unfused, on the CPU and on the GPU, they make the same frames, lose no frame, and leave no memory in use.
//!
//! A failure is shown with its seed and with the smallest graph that still fails. `VRAMP_SEED=17` runs only seed 17.
//! `cargo xtask long` runs more pipelines.

pub(crate) mod chance;
mod checks;
mod drawing;
pub(crate) mod files;
pub(crate) mod kinds;
pub(crate) mod settings;
mod sketch;
pub(crate) mod trouble;
mod twin;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use vramp::gpu::{Device, LimitSet};
use vramp::kernels::PixelFn;
use vramp::plan::Space;
use vramp::plan::catalog::{Entry, Family, Input, KernelRule, Output, TensorRule};
use vramp::runtime::{
    Call, Flow, FrameHandler, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Registry, Worker,
};

use crate::shared::{ADD_RED, pass};
use checks::{Judge, Verdict};
use drawing::Drawing;
use files::Files;
use sketch::Sketch;
use trouble::Kept;

/// The maximum number of handlers in a graph on the GPU, where every handler is also compiled and run alone.
const MOST_ON_DEVICE: usize = 5;
const MOST_ON_CPU: usize = 8;

/// The first seed and the number of graphs on each side. Under `VRAMP_LONG` there are [`LONGER`] times as many.
const ON_CPU: (u64, u64) = (0, 2000);
const ON_DEVICE: (u64, u64) = (100_000, 300);
const LONGER: u64 = 5;
/// Each side has this many tests, because a test runs in one process.
const PARTS: u64 = 4;

/// All built-in kinds and those of the tests. The kinds that print are replaced.
fn quiet_kinds(kept: &Arc<Mutex<Kept>>) -> Registry {
    let mut registry = vramp::registry().remade(|entry, make| {
        if entry.family == Family::Control && entry.name == "probe" {
            return Some(Arc::new(|_| Ok(Worker::frames(Pass))));
        }
        make.cloned()
    });
    kinds::add_to(&mut registry);
    trouble::add_to(&mut registry, kept);
    registry
}

struct Pass;

impl FrameHandler for Pass {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        pass(call)
    }
}

fn judge() -> Judge {
    let kept = Arc::default();
    Judge { registry: quiet_kinds(&kept), kept, device: None, tally: Arc::default() }
}

/// The seeds of one part of the graphs of a side.
fn seeds((first, usual): (u64, u64), part: u64) -> Range<u64> {
    if let Some(seed) = std::env::var("VRAMP_SEED").ok().and_then(|seed| seed.parse::<u64>().ok()) {
        // The first part runs it.
        return seed..seed + u64::from(part == 0);
    }
    let count = if std::env::var_os("VRAMP_LONG").is_some() { LONGER * usual } else { usual };
    first + count * part / PARTS..first + count * (part + 1) / PARTS
}

/// Runs the graphs of these seeds, alternating between the devices. Panics with the first failure and the smallest
/// graph that still fails. Few graphs may be refused.
fn all_are_right(seeds: Range<u64>, drawing: &Drawing<'_>, judges: &[Judge]) {
    trouble::quietly();
    let (count, mut refused) = (seeds.end - seeds.start, Vec::new());
    for seed in seeds {
        let judge = &judges[seed as usize % judges.len()];
        let sketch = drawing.sketch(seed);
        match judge.verdict(&sketch) {
            Verdict::Right => {}
            Verdict::Refused(why) => refused.push(format!("seed {seed}: {why}")),
            Verdict::Wrong(why) => {
                let (small, why_small) = smallest(&sketch, judge);
                panic!(
                    "seed {seed}: {why}\n{}\n\nas small as it gets: {why_small}\n{}\n\nVRAMP_SEED={seed} cargo test \
                     --test integration random:: runs it alone",
                    sketch.text(),
                    small.text()
                );
            }
        }
    }
    assert!(refused.len() as u64 * 20 <= count, "{} of {count} are refused:\n{}", refused.len(), refused.join("\n"));
    for judge in judges.iter().filter(|_| count > 1) {
        let done = (judge.tally.arrived.load(Ordering::Relaxed), judge.tally.dispatched.load(Ordering::Relaxed));
        assert!(
            done.0 > count && (done.1 > count || judge.device.is_none()),
            "arrived, dispatched: {done:?} of {count}"
        );
    }
}

fn smallest(sketch: &Sketch, judge: &Judge) -> (Sketch, String) {
    let small = sketch.shrunk(|sketch| judge.verdict(sketch).wrong().is_some());
    let why = judge.verdict(&small).wrong().unwrap_or_else(|| "it does not fail any more".to_owned());
    (small, why)
}

fn on_the_cpu(part: u64) {
    let (judge, files) = (judge(), Files::new());
    let drawing = Drawing::of(&judge.registry, &files, Space::Cpu, MOST_ON_CPU);
    all_are_right(seeds(ON_CPU, part), &drawing, std::slice::from_ref(&judge));
}

fn on_the_device(part: u64) {
    // The second device binds four buffers at a time, so that less is fused and some handlers stay on the CPU.
    let (own, files) = (judge(), Files::new());
    let judges = [LimitSet::Adapter, LimitSet::Downlevel].map(|limits| {
        let device = Device::choose().limits(limits).open();
        let device = device.expect("an adapter; Mesa's software driver is one package away");
        Judge { device: Some(device), tally: Arc::default(), ..own.clone() }
    });
    let drawing = Drawing::of(&own.registry, &files, Space::Gpu, MOST_ON_DEVICE);
    all_are_right(seeds(ON_DEVICE, part), &drawing, &judges);
}

#[test]
fn random_pipelines_make_the_same_frames_fused_and_unfused_part_1() {
    on_the_cpu(0);
}

#[test]
fn random_pipelines_make_the_same_frames_fused_and_unfused_part_2() {
    on_the_cpu(1);
}

#[test]
fn random_pipelines_make_the_same_frames_fused_and_unfused_part_3() {
    on_the_cpu(2);
}

#[test]
fn random_pipelines_make_the_same_frames_fused_and_unfused_part_4() {
    on_the_cpu(3);
}

#[test]
fn random_pipelines_make_the_same_frames_on_the_device_part_1() {
    on_the_device(0);
}

#[test]
fn random_pipelines_make_the_same_frames_on_the_device_part_2() {
    on_the_device(1);
}

#[test]
fn random_pipelines_make_the_same_frames_on_the_device_part_3() {
    on_the_device(2);
}

#[test]
fn random_pipelines_make_the_same_frames_on_the_device_part_4() {
    on_the_device(3);
}

/// What graphs must have, with the least percentage of graphs that have it: about half of what is drawn.
const FEATURES: &[(&str, u64)] = &[
    ("tensors of f32", 15),
    ("tensors of f16", 1),
    ("tensors of i32", 2),
    ("tensors of u32", 2),
    ("tensors of u8", 2),
    ("tensors of i8", 2),
    ("null takes pictures", 15),
    ("null takes tensors", 5),
    ("null takes data", 4),
    ("collects takes pictures", 25),
    ("collects takes tensors", 10),
    ("collects takes data", 8),
    ("app takes pictures", 15),
    ("app takes tensors", 5),
    ("app takes data", 4),
    ("control over pictures", 20),
    ("control over tensors", 3),
    ("control over data", 2),
    ("fan-out of pictures", 15),
    ("fan-out of tensors", 3),
    ("fan-out of data", 2),
    ("join with pictures", 3),
    ("join with tensors", 5),
    ("join with data", 7),
    ("join led by data", 1),
    ("live", 2),
    ("until=lead", 10),
    ("until=shortest", 9),
    ("on-error=stop", 4),
    ("on-error=skip", 8),
    ("on-error=retry", 8),
    ("notes, number", 6),
    ("notes, text", 2),
    ("notes, list", 2),
    ("space=any", 12),
    ("space=cpu", 12),
    ("space=gpu", 12),
];

#[test]
fn every_handler_that_runs_is_drawn() {
    let (judge, files) = (judge(), Files::new());
    for (on, most, (first, count)) in [(Space::Cpu, MOST_ON_CPU, ON_CPU), (Space::Gpu, MOST_ON_DEVICE, ON_DEVICE)] {
        let drawing = Drawing::of(&judge.registry, &files, on, most);
        let mut drawn: BTreeSet<String> = BTreeSet::new();
        let mut with: BTreeMap<String, u64> = BTreeMap::new();
        // A quarter of the CPU's graphs is enough to see what is drawn.
        let seen = count.min(500);
        for seed in first..first + seen {
            let sketch = drawing.sketch(seed);
            drawn.extend(sketch.kinds().map(str::to_owned));
            for feature in sketch.features(&drawing.contents(&sketch)) {
                *with.entry(feature).or_default() += 1;
            }
        }
        let missing: Vec<_> =
            drawing.entries().iter().map(|entry| entry.name).filter(|name| !drawn.contains(*name)).collect();
        assert!(missing.is_empty(), "never drawn for the {on}: {missing:?}");
        let sources = ["pattern", "raw", "image", "tensors", "facts"];
        assert!(sources.iter().all(|source| drawn.contains(*source)), "{drawn:?}");
        let part = |feature: &str| with.get(feature).copied().unwrap_or(0) * 100 / seen;
        let is_possible = |feature: &str| on == Space::Gpu || feature != "space=gpu";
        let rare: Vec<_> =
            FEATURES.iter().filter(|(feature, least)| is_possible(feature) && part(feature) < *least).collect();
        assert!(rare.is_empty(), "too rare for the {on}: {rare:?}\nof {seen}: {with:#?}");
    }
}

// ---- planted mistakes

static UNLIKE: PixelFn =
    PixelFn { wgsl: "fn add_red(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> { return c; }", ..ADD_RED };

static ADDS_RED: Entry = Entry { name: "addred", about: "adds to red", example: "", ..Entry::FILTER };

/// Adds a different number in each instance, so that no two runs agree.
struct AddsRed(u32);

impl PixelHandler for AddsRed {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&UNLIKE)]
    }

    fn frame(&mut self, _: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        give.part(&[self.0], &[]);
        Ok(Flow::Produced)
    }
}

static FORGES: Entry = Entry {
    name: "forges",
    about: "replaces tensors",
    example: "",
    inputs: &[Input::TENSOR],
    outputs: &[Output { tensor: TensorRule::Input, ..Output::TENSOR }],
    kernel: KernelRule::None,
    spaces: &[Space::Cpu],
    ..Entry::FILTER
};

/// Sends other elements in each instance.
struct Forges(u32);

impl FrameHandler for Forges {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(meta) = call.input(0).map(|frame| *frame.meta()) else { return Ok(Flow::Filtered) };
        let mut made = call.lend_frame(meta)?;
        // As floats, such bytes are far apart.
        made.fill().expect("it was just lent").fill(64 + (self.0 % 32) as u8);
        call.send(0, made);
        Ok(Flow::Produced)
    }
}

static MISNOTES: Entry = Entry { name: "misnotes", about: "replaces a note", example: "", ..Entry::CONTROL };

/// Attaches another note in each instance.
struct Misnotes(u32);

impl FrameHandler for Misnotes {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        call.note("instance", f64::from(self.0))?;
        pass(call)
    }
}

#[test]
fn a_handler_that_is_wrong_is_found_and_everything_else_left_out() {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let next = || MADE.fetch_add(1, Ordering::Relaxed);
    trouble::quietly();
    for planted in [&ADDS_RED, &FORGES, &MISNOTES] {
        let (mut judge, files) = (judge(), Files::new());
        let added = match planted.name {
            "addred" => judge.registry.add(planted, move |_| Ok(AddsRed(next()))),
            "forges" => judge.registry.add(planted, move |_| Ok(Forges(next()))),
            _ => judge.registry.add(planted, move |_| Ok(Misnotes(next()))),
        };
        added.expect("a new name");
        let drawing = Drawing::of(&judge.registry, &files, Space::Cpu, MOST_ON_CPU);
        let mut found = 0;
        for seed in 0..400 {
            if found == 3 {
                break;
            }
            let sketch = drawing.sketch(seed);
            let is_planted = sketch.kinds().any(|kind| kind == planted.name);
            if !is_planted || sketch.handlers() < 4 || judge.verdict(&sketch).wrong().is_none() {
                continue;
            }
            let (small, why) = smallest(&sketch, &judge);
            let kinds: Vec<_> = small.kinds().collect();
            assert!(kinds.len() == 2 && kinds[1] == planted.name, "{}\n{}", sketch.text(), small.text());
            assert!(why.contains(&format!("{}0", planted.name)), "{why}");
            found += 1;
        }
        assert_eq!(found, 3, "pipelines in which {} was found", planted.name);
    }
}
