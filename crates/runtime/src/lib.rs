//! The runtime, which runs a plan: handlers and the nodes around them, links, lanes, the clock, frame pools, and
//! reports.
//!
//! The way through this crate: [`engine::Engine::build`] turns a plan into nodes, links and lanes. A node is a handler
//! with its links; a lane is a list of nodes that run one after another. A lane fires its nodes, a node calls its
//! handler, and links carry frames between nodes. [`observe`] counts and times this work for the [`Report`].
//!
//! The runtime does not know which handlers exist ([`Registry`] holds them). Pixels are computed by `vramp_kernels`,
//! device commands are issued by `vramp_gpu`.
//!
//! Invariants: the same memory is never lent to two frames at once. Nothing waits for a frame that will never come.
//! Every frame that was sent is taken, dropped for a counted reason, or still queued.

mod clock;
mod device;
pub mod engine;
mod failure;
mod frame;
mod fused;
mod handler;
mod handles;
mod lane;
#[cfg(not(target_arch = "wasm32"))]
mod leaving;
mod link;
mod memory;
mod node;
pub mod observe;
mod registry;
mod services;
mod waker;

pub use clock::Clock;
pub use engine::{PrepareError, RunError, RunOutcome, Stopper, Watch};
pub use failure::HandlerFailure;
pub use frame::data::{Classification, DataError, DataRows, Detection};
pub use frame::notes::{Note, NoteError, NoteList, NoteValue, Notes};
pub use frame::pool::{FramePool, Owner, PoolError};
pub use frame::{Birth, EditError, Frame, FrameContent, Meta, Picture, TensorShape, Yuv, YuvMatrix};
pub use handler::{
    Call, DeviceError, Flow, FrameHandler, HandlerError, Now, ParamWriter, Part, PartialFile, PixelHandler, PixelInfo,
    Trouble,
};
pub use handles::Handles;
pub use lane::Stepped;
pub use lane::context::Listener;
#[cfg(not(target_arch = "wasm32"))]
pub use leaving::leave_at_once;
pub use link::patience::Patience;
pub use memory::heap::{CountingAllocator, foreign, share_heap_if_limited};
pub use memory::no_memory::NoMemory;
pub use observe::monitor::{RunEvent, RunProgress};
pub use observe::report::Report;
pub use observe::trace::Trace;
pub use registry::{IntoWorker, Kind, Make, Registry, Setup, Worker};
pub use services::{HandlerPool, KeptValues, Reporter, SharedValues, StartContext, WorkQueue};
pub use waker::{Driven, Waker};

/// Parts of the engine for this workspace's own tests and benchmarks. Anything here may change at any time.
#[doc(hidden)]
pub mod internals {
    pub use crate::fused::{DataInput, ExtraInput, FusedPorts, FusedUnit};
    pub use crate::lane::Lane;
    pub use crate::lane::context::LaneContext;
    pub use crate::link::ring::{SendResult, SlotRing, StreamSlot};
    pub use crate::link::wake_signal::WakeSignal;
    pub use crate::link::{LinkObserver, link};
    pub use crate::memory::heap::{HeapTally, is_counted};
    pub use crate::node::Node;
}
