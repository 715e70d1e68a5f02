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
pub use engine::{Outcome, PrepareError, RunError, Stopper, Watch};
pub use failure::Failure;
pub use frame::pool::{HostPool, PoolError};
pub use frame::{Birth, EditError, Frame, Matrix, Meta, Yuv};
pub use handler::{
    Call, DeviceError, Flow, FrameHandler, Given, HandlerError, Now, Part, PartialFile, PixelHandler, PixelInfo,
    Trouble,
};
pub use lane::Stepped;
pub use lane::context::Listener;
pub use memory::heap::{CountingAllocator, foreign, share_heap_if_limited};
pub use memory::no_memory::NoMemory;
pub use observe::monitor::{Event, Progress};
pub use observe::report::Report;
pub use observe::trace::Trace;
pub use registry::{IntoWorker, Kind, Make, Registry, Setup, Worker};

/// The parts of the engine, for this workspace's own tests and benchmarks. Anything here may change at any time.
#[doc(hidden)]
pub mod internals {
    pub use crate::fused::{Group, Ports, Side};
    pub use crate::lane::Lane;
    pub use crate::lane::context::Workplace;
    pub use crate::link::ring::{Ring, Sent, Slot};
    pub use crate::link::wake_signal::Bell;
    pub use crate::link::{Observed, link};
    pub use crate::memory::heap::{Tally, is_counted};
    pub use crate::node::Node;
}
