//! Random pipelines of every handler that runs. Fused and unfused, on the CPU and on the GPU, they make the same
//! frames, lose no frame, and leave no memory in use.
//!
//! A failure is shown with its seed and with the smallest graph that still fails. `VRAMP_SEED=17` runs only seed 17.
//! `cargo xtask long` runs thousands of pipelines.

pub(crate) mod chance;
pub(crate) mod files;
pub(crate) mod kinds;
pub(crate) mod settings;
mod sketch;
pub(crate) mod trouble;
mod twin;

use std::collections::BTreeSet;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use vramp::gpu::{Adapter, Device, LimitSet};
use vramp::kernels::PixelFn;
use vramp::plan::catalog::{Entry, Family};
use vramp::plan::{Graph, Profile, RunOptions, Space};
use vramp::runtime::{
    Call, Flow, FrameHandler, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Registry, Report, Worker,
};
use vramp::verify::{Options, VerifyError, verify};
use vramp::{Error, Pipeline, machine};

use crate::shared::ADD_RED;
use files::Files;
use sketch::{Drawing, Sketch};

/// The number of frames of each source.
const FRAMES: u64 = 4;
/// The maximum number of handlers in a graph on the GPU, where every handler is also compiled and run alone.
const MOST_ON_DEVICE: usize = 5;
const MOST_ON_CPU: usize = 8;
/// No run takes this long unless it hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// All built-in kinds. The kinds that print are replaced.
fn quiet_kinds() -> Registry {
    vramp::registry().remade(|entry, make| {
        if entry.family == Family::Control && entry.name == "probe" {
            return Some(Arc::new(|_| Ok(Worker::frames(Pass))));
        }
        make.cloned()
    })
}

struct Pass;

impl FrameHandler for Pass {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let frame = call.take(0).ok_or_else(|| HandlerError::failed("no lead frame"))?;
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

fn seeds(from: u64, usual: u64, long: u64) -> Range<u64> {
    match std::env::var("VRAMP_SEED").map(|seed| seed.parse()) {
        Ok(Ok(seed)) => seed..seed + 1,
        _ if std::env::var_os("VRAMP_LONG").is_some() => from..from + long,
        _ => from..from + usual,
    }
}

/// Describes the error in the results of a graph. `None` if there is none, or if the graph is invalid.
fn wrong(sketch: &Sketch, registry: &Registry, device: Option<&Device>) -> Option<String> {
    let (send, answer) = channel();
    let (sketch, registry, device) = (sketch.clone(), registry.clone(), device.cloned());
    // If the thread hangs, it is left running, because the test has failed by then.
    std::thread::spawn(move || send.send(wrong_within(&sketch, &registry, device.as_ref())));
    answer.recv_timeout(PATIENCE).unwrap_or_else(|_| Some(format!("it has not come to its end within {PATIENCE:?}")))
}

fn wrong_within(sketch: &Sketch, registry: &Registry, device: Option<&Device>) -> Option<String> {
    let tried = catch_unwind(AssertUnwindSafe(|| {
        let spec = sketch.spec();
        let options = Options { frames: FRAMES, device: device.cloned(), ..Options::default() };
        match verify(&spec, registry, &options) {
            Ok(found) if !found.is_equal() => return Some(found.to_string()),
            Ok(found) if found.compared() == 0 => return Some(format!("nothing was compared\n{found}")),
            Ok(_) => {}
            Err(VerifyError::Graph(_) | VerifyError::Pipeline(Error::NoPlan(_))) => return None,
            Err(error) => return Some(error.to_string()),
        }
        ran(sketch, registry, device)
    }));
    tried.unwrap_or_else(|panic| {
        let said =
            panic.downcast_ref::<String>().cloned().or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
        Some(format!("it panicked: {}", said.unwrap_or_default()))
    })
}

/// Describes the error in the report of a normal run.
fn ran(sketch: &Sketch, registry: &Registry, device: Option<&Device>) -> Option<String> {
    let spec = sketch.spec();
    let graph = registry.check(&spec).ok()?;
    let options = RunOptions::new().frames(FRAMES).nominal_time().threads(2);
    let builder = Pipeline::from_graph(graph.clone()).registry(registry);
    let pipeline = match device {
        None => builder.options(options.only(Space::Cpu)).build(),
        Some(device) => builder.options(mingled(options, &graph)).profile(figures(device)).device(device).build(),
    };
    let report = match pipeline.and_then(|mut pipeline| pipeline.run()) {
        Err(Error::NoPlan(_)) => return None,
        Err(error) => return Some(error.to_string()),
        Ok(report) => report,
    };
    unaccounted(&report, sketch.ends_early())
}

/// Of the handlers that offer both spaces, pins every third to the CPU, so that frames are transferred both ways.
fn mingled(options: RunOptions, graph: &Graph) -> RunOptions {
    let both = graph.handlers().iter().filter(|h| h.entry.offers(Space::Cpu) && h.entry.offers(Space::Gpu));
    both.enumerate().fold(options.only(Space::Gpu), |options, (at, handler)| match at % 3 {
        1 => options.place(&handler.name, Space::Cpu),
        _ => options,
    })
}

/// The profile of a device with the limits that it was opened with.
fn figures(device: &Device) -> Profile {
    machine::figures_of(Some(&Adapter { limits: *device.limits(), ..device.adapter().clone() }))
}

/// Describes a frame that is not accounted for.
fn unaccounted(report: &Report, ends_early: bool) -> Option<String> {
    for link in &report.links {
        if link.sent != link.taken + link.dropped + link.queued {
            return Some(format!("a link does not account for its frames: {link:?}"));
        }
    }
    for handler in &report.handlers {
        if handler.calls != handler.emitted + handler.filtered + handler.errors + handler.lost + handler.held {
            return Some(format!("a handler does not account for its frames: {handler:?}"));
        }
    }
    let memory = &report.memory;
    // Frames are dropped if they are sent to a handler that has ended.
    let dropped = if ends_early { 0 } else { report.dropped.sum() };
    let left = (memory.leaked, report.in_flight, report.failed, dropped);
    (left != (0, 0, 0, 0)).then(|| format!("leaked, in flight, failed and dropped are {left:?}: {:?}", memory.leaks))
}

/// Runs the graphs of these seeds, alternating between the devices. Panics with the first failure and the smallest
/// graph that still fails.
fn all_are_right(seeds: Range<u64>, drawing: &Drawing<'_>, registry: &Registry, devices: &[Device]) {
    for seed in seeds {
        let device = devices.get(seed as usize % devices.len().max(1));
        let sketch = drawing.sketch(seed);
        if let Some(why) = wrong(&sketch, registry, device) {
            let (small, why_small) = smallest(&sketch, registry, device);
            panic!(
                "seed {seed}: {why}\n{}\n\nas small as it gets: {why_small}\n{}\n\nVRAMP_SEED={seed} cargo test --test \
                 integration random:: runs it alone",
                sketch.text(),
                small.text()
            );
        }
    }
}

fn smallest(sketch: &Sketch, registry: &Registry, device: Option<&Device>) -> (Sketch, String) {
    let small = sketch.shrunk(|sketch| wrong(sketch, registry, device).is_some());
    let why = wrong(&small, registry, device).unwrap_or_else(|| "it does not fail any more".to_owned());
    (small, why)
}

#[test]
fn random_pipelines_make_the_same_frames_fused_and_unfused() {
    let (registry, files) = (quiet_kinds(), Files::new());
    let drawing = Drawing::of(&registry, &files, Space::Cpu, MOST_ON_CPU);
    all_are_right(seeds(0, 250, 2000), &drawing, &registry, &[]);
}

#[test]
fn random_pipelines_make_the_same_frames_on_the_device() {
    // The second device binds four buffers at a time, so that less is fused and some handlers stay on the CPU.
    let devices = [LimitSet::Adapter, LimitSet::Downlevel].map(|limits| {
        Device::choose().limits(limits).open().expect("an adapter; Mesa's software driver is one package away")
    });
    let (registry, files) = (quiet_kinds(), Files::new());
    let drawing = Drawing::of(&registry, &files, Space::Gpu, MOST_ON_DEVICE);
    all_are_right(seeds(100_000, 40, 300), &drawing, &registry, &devices);
}

#[test]
fn every_handler_that_runs_is_drawn() {
    let (registry, files) = (quiet_kinds(), Files::new());
    for (on, most, seeds) in [(Space::Cpu, MOST_ON_CPU, 0..250), (Space::Gpu, MOST_ON_DEVICE, 100_000..100_120)] {
        let drawing = Drawing::of(&registry, &files, on, most);
        let drawn: BTreeSet<String> =
            seeds.flat_map(|seed| drawing.sketch(seed).registry().map(str::to_owned).collect::<Vec<_>>()).collect();
        let missing: Vec<_> =
            drawing.entries().iter().map(|entry| entry.name).filter(|name| !drawn.contains(*name)).collect();
        assert!(missing.is_empty(), "never drawn for the {on}: {missing:?}");
        assert!(["pattern", "raw", "image"].iter().all(|source| drawn.contains(*source)), "{drawn:?}");
    }
}

// ---- a planted mistake

static UNLIKE: PixelFn =
    PixelFn { wgsl: "fn add_red(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> { return c; }", ..ADD_RED };

static ENTRY: Entry = Entry { name: "addred", about: "adds to red", example: "", ..Entry::FILTER };

/// Adds a different number in each instance, so that no two runs agree.
struct AddRed(u32);

impl PixelHandler for AddRed {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&UNLIKE)]
    }

    fn frame(&mut self, _: &PixelInfo, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        give.part(&[self.0], &[]);
        Ok(Flow::Produced)
    }
}

#[test]
fn a_handler_that_is_wrong_is_found_and_everything_else_left_out() {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let (mut registry, files) = (quiet_kinds(), Files::new());
    let make = |_: &vramp::runtime::Setup<'_>| Ok(Worker::pixels(AddRed(MADE.fetch_add(1, Ordering::Relaxed))));
    registry.add(&ENTRY, make).expect("a new name");
    let drawing = Drawing::of(&registry, &files, Space::Cpu, MOST_ON_CPU);
    let mut found = 0;
    for seed in 0..200 {
        let sketch = drawing.sketch(seed);
        let planted = sketch.registry().any(|kind| kind == ENTRY.name);
        if !planted || sketch.handlers() < 4 || wrong(&sketch, &registry, None).is_none() {
            continue;
        }
        let (small, why) = smallest(&sketch, &registry, None);
        let registry: Vec<_> = small.registry().collect();
        assert!(registry.len() == 2 && registry[1] == ENTRY.name, "{}\n{}", sketch.text(), small.text());
        assert!(why.contains("addred0"), "{why}");
        found += 1;
        if found == 3 {
            return;
        }
    }
    panic!("found in {found} pipelines only");
}
