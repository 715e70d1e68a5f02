//! Who does what, when: handlers and the nodes around them, links, lanes, the clock, and pipelines made from plans.
//!
//! Owns everything that runs between a plan and a report: frames and the pools that lend them, what fires and when,
//! what travels between host and device, what is counted.
//! Does not know which handlers exist, and leaves pixels to the kernels and commands to the device's room.
//!
//! Always: a frame that is lent is never lent twice; nothing waits for a frame that will never come; every frame that
//! was sent is taken, dropped for a reason, or still queued.

// Whether a lane may be sent to a thread is asked through all of wgpu, which is deeper than the usual limit.
#![recursion_limit = "256"]

mod clock;
mod device;
pub mod engine;
mod failure;
mod frame;
mod fused;
mod handler;
mod lane;
mod link;
mod memory;
mod node;
pub mod observe;
mod registry;

pub use clock::Clock;
pub use engine::{PrepareError, RunError, RunOutcome, Stopper, Watch};
pub use failure::HandlerFailure;
pub use frame::pool::{FramePool, PoolError};
pub use frame::{Birth, EditError, Frame, Meta, Yuv, YuvMatrix};
pub use handler::{
    Call, DeviceError, Flow, FrameHandler, HandlerError, Now, ParamWriter, Part, PartialFile, PixelHandler, PixelInfo,
    Trouble,
};
pub use lane::Stepped;
pub use lane::context::Listener;
pub use memory::heap::{CountingAllocator, foreign, share_heap_if_limited};
pub use memory::no_memory::NoMemory;
pub use observe::monitor::{RunEvent, RunProgress};
pub use observe::report::Report;
pub use observe::trace::Trace;
pub use registry::{IntoWorker, Kind, Make, Registry, Setup, Worker};

/// The parts of the engine, for this workspace's own tests and benchmarks. Anything here may change at any time.
#[doc(hidden)]
pub mod internals {
    pub use crate::fused::{ExtraInput, FusedPorts, FusedUnit};
    pub use crate::lane::Lane;
    pub use crate::lane::context::LaneContext;
    pub use crate::link::ring::{SendResult, SlotRing, StreamSlot};
    pub use crate::link::wake_signal::WakeSignal;
    pub use crate::link::{LinkObserver, link};
    pub use crate::memory::heap::{HeapTally, is_counted};
    pub use crate::node::Node;
}
