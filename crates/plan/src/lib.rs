//! The planner: decides where each handler of a pipeline runs and where each frame is stored, and explains why.
//!
//! The modules, from the vocabulary to the printed plan:
//!
//! - `words`: spaces, formats, sizes, rates, content, capability sets ([`Caps`]) and policies.
//! - [`catalog`]: entries (the static descriptions of handlers), their settings, and what a probe can find out about
//!   files.
//! - `graph`: [`GraphSpec`] as written, [`Graph`] as checked.
//! - `options`: [`RunOptions`], all options of a run with their defaults.
//! - `text`: reads and prints graphs in the pipeline grammar and as TOML, and displays each [`Mistake`].
//! - `profile`: the performance figures of a machine, read from and written as TOML.
//! - `decide`: the planner, one file per step.
//! - `plan`: the plan, which holds every decision as data.
//! - `render`: the plan as text, JSON, DOT or Mermaid.
//!
//! Invariants: the same graph, profile and options give the same plan, byte for byte. The crate does no I/O, starts no
//! threads, reads no clock and knows no device.

mod readable;

pub mod catalog;
mod decide;
mod figures;
mod graph;
mod options;
mod plan;
mod profile;
mod render;
mod text;
mod words;

pub use decide::{Claim, Conflict, NoPlan, OffDevice};
pub use figures::PlanFigures;
pub use graph::{
    CheckError, FromEnd, Graph, GraphSpec, Handler, HandlerId, HandlerSpec, Link, LinkEnd, LinkSpec, SettingSpec,
    TextSpan, ToEnd, is_name,
};
pub use options::{OnLoss, RunOptions};
pub use plan::{
    Alternatives, FusionGroup, Negotiated, Plan, PlannedHandler, PlannedLane, PlannedLatency, PlannedLink,
    PlannedMemory, PlannedRing, PooledFrames, PortAt, SlowestHandler, Transfer, Unit,
};
pub use profile::{
    CpuProfile, Figure, FigureOrigin, GpuProfile, LEAST_BAND_PIXELS, Limits, Profile, ProfileError, Rates, Variants,
};
pub use render::bytes_in_words;
pub use text::{Mistake, Mistakes, ParsedGraph, SourceText, read_text, read_toml, write_text, write_toml};
pub use words::{
    ANY_SIDE, BadRate, BadSize, Binding, Cap, Caps, Content, DType, Dimension, Format, FrameDesc, Interlacing,
    Interval, MAX_RANK, Media, OnError, PixelAspect, Plane, Policy, PortType, Rate, Shader, Siting, Size, Space,
    SpaceSet, StreamOrigin, StreamTags, TensorDesc, UnknownFormat, UnknownSpace, UnknownWord, Until, Variant,
};
