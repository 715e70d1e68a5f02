//! Runs built-in handlers in a chain, from frames to frames or from files to files.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vramp_handlers::registry;
use vramp_plan::catalog::{Entry, Fallback, SettingValues};
use vramp_plan::{Content, Format, FrameDesc, OnError, Policy, Rate, Size};
use vramp_runtime::internals::{FusedPorts, FusedUnit, HeapTally, Lane, LaneContext, Node, WakeSignal, link};
use vramp_runtime::observe::DropReason;
use vramp_runtime::{Call, Clock, Flow, FrameHandler, FramePool, HandlerError, Meta, Setup, Stepped, Worker};

use crate::setup::setup;

/// An input or output frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Shot {
    pub meta: Meta,
    pub bytes: Vec<u8>,
}

impl Shot {
    /// A frame whose bytes, padding included, follow from their positions.
    pub fn made(format: Format, size: Size, seed: u64) -> Shot {
        let next = |at: u64| ((at + seed * 77).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8;
        let bytes = (0..format.frame_bytes(size)).map(next).collect();
        Shot { meta: Meta::new(format, size), bytes }
    }

    /// The bytes without padding, plane by plane.
    pub fn bare(&self) -> Vec<u8> {
        let rows = self.meta.picture().format.planes(self.meta.picture().size).flat_map(|plane| {
            (0..plane.rows).map(move |row| {
                let start = (plane.start + row * plane.stride) as usize;
                start..start + plane.row_bytes as usize
            })
        });
        rows.flat_map(|row| self.bytes[row].iter().copied()).collect()
    }
}

pub fn size(width: u32, height: u32) -> Size {
    Size::new(width, height).expect("a size")
}

/// An empty directory for one test.
pub fn room(test: &str) -> PathBuf {
    let room = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    if room.exists() {
        fs::remove_dir_all(&room).expect("the last run's files can go");
    }
    fs::create_dir_all(&room).expect("a directory can be made");
    room
}

pub fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name).display().to_string()
}

/// Makes a handler with these settings, planned with this content at its only port.
pub fn make(
    entry: &'static Entry,
    given: &[(&str, &str)],
    content: Option<(Format, Size)>,
) -> Result<Box<dyn FrameHandler>, String> {
    let mut settings = SettingValues::default();
    for setting in entry.settings {
        let text = given.iter().find(|(key, _)| *key == setting.name).map(|(_, text)| *text);
        let default = if let Fallback::Is(default) = setting.fallback { Some(default) } else { None };
        if let Some(text) = text.or(default) {
            settings.set(setting.name, setting.value.read(text).expect("the value fits"));
        }
    }
    let rate = Rate::new(30, 1);
    let ports = [content.map(|(format, size)| Content::Video(FrameDesc { format, size, rate }))];
    let setup = Setup {
        inputs: &ports[..entry.inputs.len()],
        outputs: &ports[..entry.outputs.len()],
        rate,
        handlers: 2,
        ..setup(entry.name, &settings)
    };
    let registry = registry();
    let maker = registry.maker(entry).unwrap_or_else(|| panic!("{} can be made", entry.name));
    match maker(&setup).map_err(|error| error.to_string())? {
        Worker::Frames(handler) => Ok(handler),
        Worker::Pixels(handler) => {
            let size = content.map_or(size(1, 1), |(_, size)| size);
            let ports = FusedPorts { source: Some(0), extra_inputs: vec![], data_inputs: vec![], size, small_bytes: 0 };
            Ok(Box::new(FusedUnit::fuse(entry.name, vec![handler], rate, ports)))
        }
    }
}

/// A source of these frames.
pub struct Play(pub Vec<Shot>);

impl FrameHandler for Play {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(shot) = self.0.get(call.now().number as usize) else { return Ok(Flow::Ended) };
        let mut frame = call.lend(shot.meta.picture().format, shot.meta.picture().size)?;
        frame.fill().expect("it was just lent").copy_from_slice(&shot.bytes);
        frame.set_meta(shot.meta);
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

/// A sink that keeps copies of its frames.
#[derive(Clone, Default)]
pub struct Keep(pub Arc<Mutex<Vec<Shot>>>);

impl Keep {
    pub fn shots(&self) -> Vec<Shot> {
        self.0.lock().expect("no thread panicked").clone()
    }
}

impl FrameHandler for Keep {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let frame = call.input(0).expect("a lead frame");
        self.0.lock().expect("no thread panicked").push(Shot { meta: *frame.meta(), bytes: frame.bytes().to_vec() });
        Ok(Flow::Produced)
    }
}

/// A sink that drops frames.
pub struct Forget;

impl FrameHandler for Forget {
    fn process(&mut self, _: &mut Call<'_>) -> Result<Flow, HandlerError> {
        Ok(Flow::Produced)
    }
}

/// The result of a run: allocations by frame handlers after each step, and the first failure.
pub struct Run {
    pub allocations: Vec<u64>,
    pub outcome: Result<(), String>,
}

/// Runs a source, optional handlers and a sink, for at most this many steps.
pub fn run(handlers: Vec<Box<dyn FrameHandler>>, on_error: OnError, steps: usize) -> Run {
    let signal = WakeSignal::new();
    let last = handlers.len() - 1;
    let mut nodes: Vec<Node> = handlers
        .into_iter()
        .enumerate()
        .map(|(at, handler)| {
            let node = Node::new(format!("h{at}"), handler, usize::from(at > 0), usize::from(at < last));
            if at == 0 { node.clock(Clock::free(Rate::new(30, 1).expect("a rate"))) } else { node }.on_error(on_error)
        })
        .collect();
    for at in 0..last {
        let (output, input) = link(Policy::Lossless, 1, &signal, &signal);
        nodes[at].connect_output(0, output);
        nodes[at + 1].connect_input(0, input, Policy::Lossless);
    }
    let tally = Arc::new(HeapTally::default());
    let context = LaneContext::new(FramePool::new(256 << 20)).counting(Arc::clone(&tally));
    let mut lane = Lane::new(nodes, signal, context);
    let mut allocations = Vec::with_capacity(steps.min(10_000));
    let mut outcome = lane.start().map_err(|failure| failure.to_string());
    if outcome.is_ok() {
        for _ in 0..steps {
            match lane.step(&|| Duration::ZERO) {
                Stepped::Over => break,
                Stepped::Failed(failure) => {
                    outcome = Err(failure.to_string());
                    break;
                }
                Stepped::Stuck => panic!("nothing moves"),
                _ => {}
            }
            allocations.push(tally.own());
        }
    }
    let stopped = lane.stop(DropReason::Stopped).map_err(|failure| failure.to_string());
    Run { allocations, outcome: outcome.and(stopped) }
}

pub const ENOUGH: usize = 10_000;

/// The frames of a source until its end or its first failure.
pub fn read(entry: &'static Entry, given: &[(&str, &str)]) -> (Vec<Shot>, Result<(), String>) {
    read_on(entry, given, OnError::Stop, ENOUGH)
}

pub fn read_on(
    entry: &'static Entry,
    given: &[(&str, &str)],
    on_error: OnError,
    steps: usize,
) -> (Vec<Shot>, Result<(), String>) {
    let keep = Keep::default();
    let source = make(entry, given, None).expect("the source can be made");
    let run = run(vec![source, Box::new(keep.clone())], on_error, steps);
    (keep.shots(), run.outcome)
}

/// Writes these frames with a sink.
pub fn write(entry: &'static Entry, given: &[(&str, &str)], shots: &[Shot]) -> Result<(), String> {
    let sink = make(entry, given, None)?;
    run(vec![Box::new(Play(shots.to_vec())), sink], OnError::Stop, ENOUGH).outcome
}

/// Sends frames through a handler.
pub fn through(entry: &'static Entry, given: &[(&str, &str)], shots: &[Shot]) -> Vec<Shot> {
    let keep = Keep::default();
    let content = shots.first().map(|shot| (shot.meta.picture().format, shot.meta.picture().size));
    let handler = make(entry, given, content).expect("it can be made");
    let run = run(vec![Box::new(Play(shots.to_vec())), handler, Box::new(keep.clone())], OnError::Stop, ENOUGH);
    run.outcome.expect("it runs");
    keep.shots()
}

/// The names in a directory, sorted.
pub fn names(room: &Path) -> Vec<String> {
    let entries = fs::read_dir(room).expect("the directory is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}
