//! Who does what, when: frames and the pools that lend them, links that carry them, the clock that paces them.
//!
//! Owns the parts that every running pipeline is made of.
//! Does not compute pixels and does not talk to a device: kernels and devices are other rooms.
//!
//! Always: a frame that is lent is never lent twice; nothing waits for a frame that will never come; every frame that
//! was sent is taken, dropped for a reason, or still queued.

mod bell;
mod clock;
mod frame;
mod group;
mod handler;
mod lane;
mod link;
mod node;
mod pool;
mod ring;

pub use bell::Bell;
pub use clock::{Clock, Paced, Tick};
pub use frame::{EditError, Frame, Meta};
pub use group::Group;
pub use handler::{Call, Flow, FrameHandler, HandlerError, Now, Part, PixelHandler, PixelInfo};
pub use lane::{Lane, Stepped};
pub use link::{Input, Observed, Output, link};
pub use node::{Fired, Node, NodeCounts};
pub use pool::{HostPool, PoolError, PoolStats};
pub use ring::{Counts, DropReason, Ring, Sent, Slot};
