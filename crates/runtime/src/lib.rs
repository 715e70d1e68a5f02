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

mod bands;
mod bell;
mod blame;
mod clock;
mod device_time;
mod devices;
pub mod engine;
mod failure;
mod frame;
mod group;
mod handler;
mod heap;
mod holding;
mod host_memory;
mod inputs;
mod joined;
mod lane;
mod link;
mod milestones;
mod monitor;
mod no_memory;
mod node;
mod pace;
mod passed;
mod playing;
mod pool;
mod registry;
#[cfg(not(target_arch = "wasm32"))]
mod renewing;
mod report;
mod ring;
mod shortage;
mod survey;
mod sync;
mod trace;
mod transfer;
mod workplace;

pub use clock::Clock;
pub use engine::{Outcome, PrepareError, RunError, Stopper, Watch};
pub use failure::Failure;
pub use frame::{Birth, EditError, Frame, Matrix, Meta, Yuv};
pub use handler::{
    Call, DeviceError, Flow, FrameHandler, Given, HandlerError, Now, Part, PartialFile, PixelHandler, PixelInfo,
    Trouble,
};
pub use heap::{CountingAllocator, foreign, share_heap_if_limited};
pub use lane::Stepped;
pub use monitor::{Event, Progress};
pub use no_memory::NoMemory;
pub use pool::{HostPool, PoolError};
pub use registry::{IntoWorker, Kind, Make, Registry, Setup, Worker};
pub use report::Report;
pub use trace::Trace;
pub use workplace::Listener;

/// What can be read of a run besides its [`Report`]: the parts of a report, glances while it runs, timelines.
pub mod observe {
    pub use crate::engine::{DeviceGlance, Glance, LinkGlance, MemoryGlance, NodeGlance};
    pub use crate::monitor::{GoesOn, NodeCounts};
    pub use crate::report::{
        Counted, Dropped, GpuTimes, GroupTime, HandlerTime, KeptPartial, Leak, LinkUse, MemoryUse, PerFrame, Recovered,
        Times,
    };
    pub use crate::ring::DropReason;
    pub use crate::shortage::{Holder, OutOfMemory};
    pub use crate::trace::{Act, Span, TrackView};
}

/// The parts of the engine, for this workspace's own tests and benchmarks. Anything here may change at any time.
#[doc(hidden)]
pub mod internals {
    pub use crate::bell::Bell;
    pub use crate::group::{Group, Ports, Side};
    pub use crate::heap::{Tally, is_counted};
    pub use crate::lane::Lane;
    pub use crate::link::{Observed, link};
    pub use crate::node::Node;
    pub use crate::ring::{Ring, Sent, Slot};
    pub use crate::workplace::Workplace;
}
