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
mod failure;
mod frame;
mod group;
mod handler;
mod heap;
mod holding;
mod host_memory;
mod inputs;
mod joined;
mod kind;
mod lane;
mod link;
mod milestones;
mod monitor;
mod no_memory;
mod node;
mod pace;
mod passed;
mod pipeline;
mod playing;
mod pool;
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

pub use bell::Bell;
pub use clock::{Clock, Paced, Tick};
pub use failure::{Failure, Member};
pub use frame::{Birth, EditError, Frame, Matrix, Meta, Yuv};
pub use group::{Group, Ports, Side};
pub use handler::{
    Call, DeviceError, Flow, FrameHandler, Given, HandlerError, Now, Part, PartialFile, PixelHandler, PixelInfo,
    Trouble,
};
pub use heap::{CountingAllocator, Tally, counted, foreign, is_counted, share_heap_if_limited};
pub use host_memory::HostMemory;
pub use kind::{Kinds, Make, Setup, Worker};
pub use lane::{Busy, Lane, OnLoss, Reopen, Stepped};
pub use link::{Input, Observed, Output, link};
pub use monitor::{Event, GoesOn, Histogram, NodeCounts, NodeStats, Progress};
pub use no_memory::NoMemory;
pub use node::{Fired, Node, Replan};
pub use pipeline::{
    DeviceGlance, Glance, LinkGlance, MemoryGlance, NodeGlance, Outcome, Pipeline, PipelineBuilder, PrepareError,
    RunError, Stopper, Watch,
};
pub use playing::Playing;
pub use pool::{HeldFrame, HostPool, Owner, PoolError, PoolStats};
pub use report::{
    Counted, Dropped, GpuTimes, GroupTime, HandlerTime, KeptPartial, Leak, LinkUse, MemoryUse, PerFrame, Recovered,
    Report, Times,
};
pub use ring::{BEFORE_ALL, Counts, DropReason, Ring, Sent, Slot};
pub use shortage::{Holder, OutOfMemory, Shortage};
pub use trace::{Act, Span, Trace, TrackView};
pub use transfer::{Download, Upload};
pub use workplace::{Desk, Listener, Sending, Workplace};
