//! Runs built-in handlers, made from text settings and fused, on the CPU, and keeps their frames.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use vramp_handlers::registry;
use vramp_plan::catalog::{Fallback, SettingValues};
use vramp_plan::{Policy, Rate, Size};
use vramp_runtime::internals::{
    ExtraInput, FusedPorts, FusedUnit, HeapTally, Lane, LaneContext, Node, WakeSignal, link,
};
use vramp_runtime::{
    Call, Clock, Flow, FrameHandler, FramePool, HandlerError, Part, PixelHandler, Setup, Stepped, Worker,
};

use crate::setup::setup;

pub type Pixel = [u8; 4];

/// A handler's name and its settings as `key=value`.
pub type Request<'a> = (&'a str, &'a [(&'a str, &'a str)]);

pub const THIRTY: (u32, u32) = (30, 1);

#[derive(Clone, PartialEq, Eq)]
pub struct Made {
    pub size: Size,
    pub pixels: Vec<Pixel>,
}

impl Made {
    pub fn at(&self, x: u32, y: u32) -> Pixel {
        self.pixels[(y * self.size.width + x) as usize]
    }

    pub fn each(&self) -> impl Iterator<Item = (u32, u32, Pixel)> {
        let width = self.size.width;
        self.pixels.iter().zip(0..).map(move |(pixel, i)| (i % width, i / width, *pixel))
    }

    /// The bounding box of all pixels that are not black: left, top, right, bottom, the last two exclusive.
    pub fn ink(&self) -> Option<(u32, u32, u32, u32)> {
        let inked = self.each().filter(|(.., pixel)| pixel[..3] != [0, 0, 0]);
        inked.fold(None, |around, (x, y, _)| {
            let (l, t, r, b) = around.unwrap_or((x, y, x + 1, y + 1));
            Some((l.min(x), t.min(y), r.max(x + 1), b.max(y + 1)))
        })
    }

    /// Coverage of white on black, summed in pixels.
    pub fn amount(&self) -> f64 {
        self.pixels.iter().map(|pixel| f64::from(pixel[1]) / 255.0).sum()
    }
}

pub fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

/// Makes a handler; parses its settings from text like a graph does.
pub fn make((name, given): Request<'_>) -> Result<Box<dyn PixelHandler>, String> {
    let entry = registry().catalog().entries().find(|entry| entry.name == name).expect("the handler exists");
    let mut settings = SettingValues::default();
    for setting in entry.settings {
        if let Fallback::Is(default) = setting.fallback {
            settings.set(setting.name, setting.value.read(default).expect("a default fits"));
        }
    }
    for (key, text) in given {
        let setting = entry.setting(key).expect("the setting exists");
        settings.set(*key, setting.value.read(text).expect("the value fits"));
    }
    let registry = registry();
    let maker = registry.maker(entry).expect("it can be made");
    let setup = Setup { inputs: &[], outputs: &[], rate: Rate::new(30, 1), handlers: 5, ..setup(name, &settings) };
    match maker(&setup) {
        Ok(Worker::Pixels(handler)) => Ok(handler),
        Ok(Worker::Frames(_)) => panic!("{name} is kernels"),
        Err(error) => Err(error.to_string()),
    }
}

/// The error of a handler that cannot be made.
pub fn refusal(requested: Request<'_>) -> String {
    make(requested).err().unwrap_or_else(|| panic!("{requested:?} was made"))
}

struct Keep(Arc<Mutex<Vec<Made>>>);

impl FrameHandler for Keep {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let frame = call.input(0).expect("a lead frame");
        let pixels = frame.bytes().as_chunks::<4>().0.to_vec();
        self.0.lock().expect("no thread panicked").push(Made { size: frame.meta().picture().size, pixels });
        Ok(Flow::Produced)
    }
}

struct Count;

impl FrameHandler for Count {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        Ok(if call.input(0).is_some() { Flow::Produced } else { Flow::Ended })
    }
}

/// A lane of a group that generates frames, one group per further handler that does not work in place, and a sink. The
/// extra inputs are groups of their own and lead into the first group.
fn lane(
    requested: &[Request<'_>],
    extra_inputs: &[Request<'_>],
    rate: (u32, u32),
    sink: impl FrameHandler + 'static,
    tally: Arc<HeapTally>,
) -> Lane {
    let rate = Rate::new(rate.0, rate.1);
    let clock = Clock::free(rate.expect("a rate"));
    let signal = WakeSignal::new();
    let made =
        |requested: &[Request<'_>]| -> Vec<_> { requested.iter().map(|a| make(*a).expect("it can be made")).collect() };
    let group = |handlers: Vec<Box<dyn PixelHandler>>, source: Option<usize>, extra_inputs: Vec<usize>| {
        let made = handlers[0].size(size(1, 1));
        let extra_inputs = extra_inputs.into_iter().map(|port| ExtraInput { port, member: 0 }).collect();
        FusedUnit::fuse(
            "all",
            handlers,
            rate,
            FusedPorts { source, extra_inputs, data_inputs: vec![], size: made, small_bytes: 0 },
        )
    };
    let mut nodes = Vec::new();
    let mut runs: Vec<Vec<Box<dyn PixelHandler>>> = Vec::new();
    for handler in made(requested) {
        let heads = handler.parts().iter().any(|part| matches!(part, Part::Head(_)));
        match runs.last_mut().filter(|_| !heads) {
            Some(run) => run.push(handler),
            None => runs.push(vec![handler]),
        }
    }
    let mut runs = runs.into_iter();
    let first = group(runs.next().expect("something is requested for"), None, (0..extra_inputs.len()).collect());
    let mut main = Node::new("all", Box::new(first), extra_inputs.len(), 1).clock(clock.clone()).nominal();
    for (at, side) in extra_inputs.iter().enumerate() {
        let mut node =
            Node::new("side", Box::new(group(made(&[*side]), None, vec![])), 0, 1).clock(clock.clone()).nominal();
        let (output, input) = link(Policy::Lossless, 2, &signal, &signal);
        node.connect_output(0, output);
        main.connect_input(at, input, Policy::Lossless);
        nodes.push(node);
    }
    let behind = runs.map(|run| Node::new("all", Box::new(group(run, Some(0), vec![])), 1, 1));
    for mut next in behind.chain([Node::new("sink", Box::new(sink), 1, 0)]) {
        let (output, input) = link(Policy::Lossless, 2, &signal, &signal);
        main.connect_output(0, output);
        next.connect_input(0, input, Policy::Lossless);
        nodes.push(std::mem::replace(&mut main, next));
    }
    nodes.push(main);
    Lane::new(nodes, signal, LaneContext::new(FramePool::new(512 << 20)).counting(tally))
}

/// The frames that these handlers make; the first one ends the stream.
pub fn run(requested: &[Request<'_>], extra_inputs: &[Request<'_>], rate: (u32, u32)) -> Vec<Made> {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let mut lane = lane(requested, extra_inputs, rate, Keep(Arc::clone(&kept)), Arc::default());
    lane.start().expect("it starts");
    loop {
        match lane.step(&|| Duration::ZERO) {
            Stepped::Moved => {}
            Stepped::Over => break,
            other => panic!("{other:?}"),
        }
    }
    drop(lane);
    Arc::into_inner(kept).expect("the lane is gone").into_inner().expect("no thread panicked")
}

/// A black image with something drawn on it.
pub fn drawn(on: Size, requested: Request<'_>) -> Made {
    let side = on.to_string();
    let black: Request<'_> = ("pattern", &[("kind", "solid"), ("size", &side), ("frames", "1")]);
    run(&[black, requested], &[], THIRTY).remove(0)
}

/// Heap allocations of this many frames, after the same number of warm-up frames.
pub fn allocations(requested: &[Request<'_>], frames: usize) -> u64 {
    let tally = Arc::new(HeapTally::default());
    let mut lane = lane(requested, &[], THIRTY, Count, Arc::clone(&tally));
    lane.start().expect("it starts");
    let mut step = || {
        for _ in 0..frames {
            assert!(matches!(lane.step(&|| Duration::ZERO), Stepped::Moved));
        }
        tally.own()
    };
    let warm = step();
    step() - warm
}
