//! Decides where every step of a pipeline runs and where every frame lives, and says why.
//!
//! Owns the words, the graph, negotiation, placement, fusion groups, lanes, costs and the explanation of all of it.
//! Does not touch a device, a file, a thread or the network.
//!
//! Always: the same graph and the same device profile give the same plan, byte for byte.

mod readable;

pub mod catalog;
mod decide;
mod graph;
mod options;
mod plan;
mod profile;
mod render;
mod text;
mod words;

pub use decide::{Claim, Conflict, NoPlan};
pub use graph::{
    CheckError, FromEnd, Graph, GraphSpec, Handler, HandlerId, HandlerSpec, Link, LinkEnd, LinkSpec, SettingSpec,
    TextSpan, ToEnd, is_name,
};
pub use options::{OnLoss, RunOptions};
pub use plan::{
    Alternatives, FusionGroup, Negotiated, Plan, PlannedHandler, PlannedLane, PlannedLink, PlannedMemory, PlannedRing,
    PooledFrames, PortAt, Transfer, Unit,
};
pub use profile::{
    CpuProfile, Figure, FigureOrigin, GpuProfile, LEAST_BAND_PIXELS, Limits, Profile, ProfileError, Rates, Variants,
};
pub use render::bytes_in_words;
pub use text::{Mistake, Mistakes, ParsedGraph, SourceText, read_text, read_toml, write_text, write_toml};
pub use words::{
    ANY_SIDE, BadRate, BadSize, Binding, Cap, Caps, Content, DType, Dimension, Format, FrameDesc, Interlacing,
    Interval, Media, OnError, PixelAspect, Plane, Policy, PortType, Rate, Shader, Siting, Size, Space, SpaceSet,
    StreamTags, TensorDesc, UnknownFormat, UnknownSpace, UnknownWord, Until, Variant,
};
