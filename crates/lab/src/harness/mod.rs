//! A test rig for handlers: a test pushes frames in, steps the clock, and looks at the frames that come out.
//!
//! The harness takes a piece of a pipeline, and puts an `app` source on every open input of the piece and an `app` sink
//! on every open output. Only optional inputs that the test does not declare stay open. Nothing else is faked: the
//! piece is read, checked, planned and run like any other pipeline, but without threads and with a clock that moves
//! only in [`Rig::step`]. A test therefore runs its handler as a pipeline would, in either space.
//!
//! Invariant: the same pushes and steps give the same frames, on every run and in either space.
//!
//! ```
//! use vramp::harness::Harness;
//! use vramp::prelude::*;
//!
//! let size = Size::new(2, 1).expect("both sides are in range");
//! let mut rig = Harness::of("invert", &vramp::registry()).input("video", size).on(Space::Cpu).build()?;
//! rig.push("video", &[0, 10, 20, 255, 255, 245, 235, 7])?;
//! rig.step()?;
//! let frame = rig.pull("video")?;
//! assert_eq!(frame.pixels(), [[255, 245, 235, 255], [0, 10, 20, 7]]);
//! assert_eq!(rig.finish()?.frames_out, 1);
//! # Ok::<(), vramp::harness::HarnessError>(())
//! ```
//!
//! A source under test has no input and makes a frame at each step; a sink under test has no output. Frames for
//! handlers with several inputs are pushed by port. In a chain, a port whose name alone is ambiguous is called
//! `handler.port`:
//!
//! ```
//! # use vramp::harness::Harness;
//! # use vramp::prelude::*;
//! let size = Size::new(1, 1).expect("both sides are in range");
//! let mut rig = Harness::of("blur ! mix amount=0.25", &vramp::registry()).input("blur0.video", size).build()?;
//! rig.push("video", &[100, 100, 100, 255])?;
//! rig.push("b", &[200, 0, 200, 255])?;
//! rig.step()?;
//! assert_eq!(rig.pull("video")?.pixel(0, 0), Some([125, 75, 125, 255]));
//! # Ok::<(), vramp::harness::HarnessError>(())
//! ```

mod caught;
pub(crate) mod on_device;
mod rig;

use std::collections::BTreeSet;

use vramp_gpu::{Device, OpenError};
use vramp_handlers::app::PushError;
use vramp_plan::catalog::{Catalog, Entry, EntryError};
use vramp_plan::{
    CheckError, DType, Format, GraphSpec, HandlerId, LinkEnd, Mistakes, OnLoss, Rate, RunOptions, Size, Space,
};
use vramp_runtime::{FrameContent, HandlerFailure, Meta, Registry, TensorShape};

use crate::app;
use on_device::figures;
use rig::{Catch, Feed, OpenPort, PATIENCE, find};
use vramp_pipeline::{Error, Pipeline, read};

pub use caught::Caught;
pub use rig::Rig;

/// Why a rig could not be built or used.
#[derive(thiserror::Error)]
pub enum HarnessError {
    #[error(transparent)]
    Text(#[from] Mistakes),
    /// The piece with both ends is not a valid graph.
    #[error(transparent)]
    Graph(#[from] CheckError),
    /// `app` could not be added to a registry that lacks it.
    #[error(transparent)]
    Kind(#[from] EntryError),
    /// The pipeline could not be planned or prepared.
    #[error(transparent)]
    Pipeline(#[from] Error),
    #[error(transparent)]
    NoDevice(#[from] OpenError),
    /// No handler of the piece runs in the requested space.
    #[error("nothing in `{text}` runs on the {space}; leave `on({space})` out, or try another handler")]
    NotThere { text: String, space: Space },
    /// The name matches no open port, or several open ports.
    #[error("`{asked}` does not name exactly one open {side} of the rig; open {side}s: {}", listed(.there))]
    NoPort { asked: String, side: &'static str, there: Vec<String> },
    /// The clock runs at the fastest input's rate, and every frame must fall on a tick.
    #[error("{port}: a rate of {own} does not divide the fastest input's rate of {rate}")]
    Rates { port: String, own: Rate, rate: Rate },
    #[error("{port}: {given} bytes were pushed, but a frame of {content} has {needed} bytes")]
    NotAFrame { port: String, content: FrameContent, needed: u64, given: usize },
    /// Every frame of this output was already pulled.
    #[error("no frame waits at {port}; call `step` again, or check `waiting` first")]
    Nothing { port: String },
    #[error(transparent)]
    Push(#[from] PushError),
    #[error(transparent)]
    Failed(#[from] HandlerFailure),
    #[error("the device did not finish its work within {PATIENCE:?}")]
    Overdue,
}

vramp_plan::debug_as_display!(HarnessError);

fn listed(there: &[String]) -> String {
    if there.is_empty() { "none".to_owned() } else { there.join(", ") }
}

/// The frames that are pushed into an input.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stream {
    /// What each frame carries; [`Rig::push_sized`] pushes a picture of another size.
    pub content: FrameContent,
    pub rate: Rate,
}

impl Stream {
    /// Pictures in rgba8 at 30 a second.
    pub fn of(size: Size) -> Stream {
        Stream::with(Meta::new(Format::Rgba8, size))
    }

    /// Tensors at 30 a second.
    ///
    /// # Panics
    ///
    /// If there are more than [`MAX_RANK`](vramp_plan::MAX_RANK) extents.
    pub fn tensor(dtype: DType, dims: &[u32]) -> Stream {
        Stream::with(Meta::tensor(TensorShape::new(dtype, dims).expect("a tensor has at most 8 axes")))
    }

    /// Data of this many bytes at 30 a second.
    pub fn data(bytes: u32) -> Stream {
        Stream::with(Meta::data(bytes))
    }

    fn with(meta: Meta) -> Stream {
        Stream { content: meta.content, rate: Rate::new(30, 1).expect("30 is a rate") }
    }

    /// Sets the format of pictures.
    #[must_use]
    pub fn format(mut self, format: Format) -> Stream {
        if let FrameContent::Video(picture) = &mut self.content {
            picture.format = format;
        }
        self
    }

    /// Sets the rate. The fastest input's rate is the rate of the rig's clock; the rates of the other inputs have to
    /// divide that rate. Each input numbers its own frames.
    #[must_use]
    pub fn rate(self, rate: Rate) -> Stream {
        Stream { rate, ..self }
    }
}

impl From<Size> for Stream {
    fn from(size: Size) -> Stream {
        Stream::of(size)
    }
}

/// Builder of a [`Rig`]; [`Harness::build`] makes the rig.
#[derive(Clone)]
pub struct Harness<'a> {
    text: &'a str,
    registry: &'a Registry,
    inputs: Vec<(String, Stream)>,
    space: Space,
    device: Option<Device>,
    fusion: bool,
}

impl<'a> Harness<'a> {
    /// A rig for a piece of a pipeline, such as a handler or a chain, in text form.
    pub fn of(text: &'a str, registry: &'a Registry) -> Harness<'a> {
        Harness { text, registry, inputs: Vec::new(), space: Space::Cpu, device: None, fusion: true }
    }

    /// Declares the frames of an open input, which is named by `port` or `handler.port`. Required inputs that are not
    /// declared get the stream of the first declared input, or frames of 64x48 if no input is declared. Optional inputs
    /// that are not declared stay open.
    #[must_use]
    pub fn input(mut self, port: impl Into<String>, stream: impl Into<Stream>) -> Self {
        self.inputs.push((port.into(), stream.into()));
        self
    }

    /// Runs every handler that offers this space in this space. Defaults to the CPU.
    #[must_use]
    pub fn on(mut self, space: Space) -> Self {
        self.space = space;
        self
    }

    /// Uses an open device. Without this call, a rig for the GPU ([`Harness::on`]) opens a device.
    #[must_use]
    pub fn device(mut self, device: &Device) -> Self {
        self.device = Some(device.clone());
        self
    }

    /// Whether neighbouring kernels are fused. Defaults to true.
    #[must_use]
    pub fn fusion(mut self, fusion: bool) -> Self {
        self.fusion = fusion;
        self
    }

    /// Adds the ends, plans the piece, and starts every handler.
    pub fn build(self) -> Result<Rig, HarnessError> {
        let registry = app::added_to(self.registry)?;
        let spec = read(self.text, registry.catalog())?;
        let Ends { spec, inputs, outputs, rate } = self.with_ends(&spec, registry.catalog())?;
        for (asked, _) in &self.inputs {
            find(inputs.iter().map(|(port, _)| port), asked, "input")?;
        }
        let graph = registry.check(&spec)?;
        let options = RunOptions::new().only(self.space).fusion(self.fusion).pace(rate).nominal_time().threads(1);
        let builder = Pipeline::from_graph(graph).registry(&registry).options(options.on_loss(OnLoss::Stop));
        let pipeline = match self.space {
            Space::Cpu => builder.build()?,
            Space::Gpu => {
                let device = self.device.clone().map_or_else(|| Device::choose().open(), Ok)?;
                builder.profile(figures(&device)).device(&device).build()?
            }
        };
        let plan = pipeline.plan().clone();
        let ends: BTreeSet<&str> =
            inputs.iter().map(|(port, _)| port).chain(&outputs).map(|port| port.end.as_str()).collect();
        if !plan.handlers.iter().any(|h| h.space == self.space && !ends.contains(h.name.as_str())) {
            return Err(HarnessError::NotThere { text: self.text.to_owned(), space: self.space });
        }
        let feed = |(port, every): (OpenPort, u32)| Ok(Feed::new(pipeline.input(&port.end)?, port, every));
        let catch = |port: OpenPort| Ok(Catch::new(pipeline.output(&port.end)?, port));
        let feeds = inputs.into_iter().map(feed).collect::<Result<_, Error>>()?;
        let catches = outputs.into_iter().map(catch).collect::<Result<_, Error>>()?;
        let mut engine = pipeline.into_engine()?;
        engine.start()?;
        Ok(Rig::new(engine, plan, feeds, catches, rate))
    }

    /// The piece with an `app` source before every input that needs one ([`Harness::input`]) and an `app` sink after
    /// every open output.
    fn with_ends(&self, spec: &GraphSpec, catalog: &Catalog) -> Result<Ends, HarnessError> {
        let names = spec.names();
        let mut whole = GraphSpec::new();
        for handler in spec.handlers() {
            whole.add(handler.clone());
        }
        let mut linked = BTreeSet::new();
        for link in spec.links() {
            let copy = whole.connect(link.from.clone(), link.to.clone());
            (copy.policy, copy.depth, copy.place) = (link.policy, link.depth, link.place.clone());
            linked.insert((link.from.handler.0, port_of(&link.from, catalog, spec, false), false));
            linked.insert((link.to.handler.0, port_of(&link.to, catalog, spec, true), true));
        }
        let wanted = |handler: &str, port: &str| {
            let full = format!("{handler}.{port}");
            self.inputs.iter().find(|(name, _)| *name == port || *name == full).map(|(_, stream)| *stream)
        };
        let usual = self.inputs.first().map_or_else(|| Stream::of(SMALL), |(_, stream)| *stream);
        let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
        for (at, handler) in spec.handlers().iter().enumerate() {
            let feeds = |entry: &Entry| entry.inputs.iter().any(|port| wanted(&names[at], port.name).is_some());
            let fed = linked.iter().any(|(to, _, incoming)| *to == at && *incoming)
                || catalog.find(&handler.kind, true).is_some_and(feeds);
            // An unknown kind is left to the check of the graph, which reports the kind with its place in the text.
            let Some(entry) = catalog.find(&handler.kind, fed) else { continue };
            let open = |port: &str, incoming: bool| !linked.contains(&(at, port.to_owned(), incoming));
            for port in entry.inputs.iter().filter(|port| open(port.name, true)) {
                let asked = wanted(&names[at], port.name);
                if asked.is_none() && !port.required {
                    continue;
                }
                let stream = asked.unwrap_or(usual);
                inputs.push((at, OpenPort::new(&names[at], port.name, stream)));
            }
            for port in entry.outputs.iter().filter(|port| open(port.name, false)) {
                let catch = whole.add(app::sink());
                whole.connect(HandlerId(at).port(port.name), catch);
                outputs.push((catch, OpenPort::new(&names[at], port.name, usual)));
            }
        }
        let rate = inputs.iter().map(|(_, end)| end.stream.rate).max().unwrap_or(usual.rate);
        let mut feeds = Vec::new();
        for (at, end) in inputs {
            let Stream { content, rate: own } = end.stream;
            let every =
                ticks_per_frame(rate, own).ok_or_else(|| HarnessError::Rates { port: end.name(), own, rate })?;
            let feed = whole.add(app::source(&content, own));
            whole.connect(feed, HandlerId(at).port(&end.port));
            feeds.push((feed, end, every));
        }
        let names = whole.names();
        let named = |id: HandlerId, port: OpenPort| OpenPort { end: names[id.0].clone(), ..port };
        let inputs = feeds.into_iter().map(|(id, port, every)| (named(id, port), every)).collect();
        let outputs = outputs.into_iter().map(|(id, port)| named(id, port)).collect();
        Ok(Ends { spec: whole, inputs, outputs, rate })
    }
}

/// A piece with both ends added.
struct Ends {
    spec: GraphSpec,
    /// Each with the number of clock ticks from one frame to the next.
    inputs: Vec<(OpenPort, u32)>,
    outputs: Vec<OpenPort>,
    /// The rate of the fastest input.
    rate: Rate,
}

/// Number of clock ticks from one frame to the next. `None` if the number is not whole.
fn ticks_per_frame(clock: Rate, own: Rate) -> Option<u32> {
    let ticks = u64::from(clock.num()) * u64::from(own.den());
    let frames = u64::from(clock.den()) * u64::from(own.num());
    ticks.is_multiple_of(frames).then(|| u32::try_from(ticks / frames).ok()).flatten()
}

/// The default size of pushed frames: small, and with unequal sides.
const SMALL: Size = Size { width: 64, height: 48 };

/// The port at an end of a link: the named port, or the first port of the handler if the link names no port.
fn port_of(end: &LinkEnd, catalog: &Catalog, spec: &GraphSpec, incoming: bool) -> String {
    let first = || {
        let fed = incoming || spec.links().iter().any(|link| link.to.handler == end.handler);
        let entry = catalog.find(&spec.handlers()[end.handler.0].kind, fed)?;
        let name = if incoming { entry.inputs.first()?.name } else { entry.outputs.first()?.name };
        Some(name.to_owned())
    };
    end.port.clone().or_else(first).unwrap_or_default()
}
