//! What happens to a node when its device is lost, and when a device is available again.
//!
//! Frames on the device that are queued at the node, held by the node or awaited by the node are lost. Frames on the
//! host stay. The lane decides where the run continues, for all of its nodes at once.
//!
//! No wrong frame is made. If the newest frame of a non-lead input was lost, the lead's frames are lost too until
//! another frame comes on that input. The same holds if a frame was lost before it arrived at that input; the frame's
//! empty slot records the loss. If no other frame will come because the source of that input has ended, the node fails
//! with [`HandlerError::SideLost`].
//!
//! Invariant: a lost frame leaves an empty slot and is counted once.

use std::sync::Arc;
use std::time::Duration;

use vramp_plan::{Shader, Space};

use crate::failure::{HandlerFailure, catch};
use crate::frame::Frame;
use crate::handler::{HandlerError, Now};
use crate::lane::context::LaneContext;
use crate::link::ring::StreamSlot;
use crate::node::inputs::Watermark;

use super::{Fired, Node};

impl Node {
    /// Whether the device still works on frames for this node.
    pub(crate) fn awaits(&self) -> bool {
        self.held.awaited() > 0
    }

    /// Drops the oldest frame that the node awaits from the device.
    pub(crate) fn lose_awaited(&mut self) {
        if let Some(now) = self.held.oldest_awaited() {
            self.counts.held -= 1;
            self.counts.lost += 1;
            self.held.arrive(StreamSlot::lost(now.pts_ns));
        }
    }

    /// Drops everything that the node has on the lost device. Returns how many of the dropped frames were queued at the
    /// node's inputs: links count the queued frames, and the node counts the other dropped frames.
    pub(crate) fn lose_device(&mut self) -> u64 {
        let waited = self.inputs.lose();
        let held = self.held.lose(|frame| frame.space() == Space::Gpu);
        self.counts.held -= held;
        self.counts.lost += held;
        if let Some(pts_ns) = self.lose_call() {
            self.counts.held -= 1;
            self.counts.lost += 1;
            self.hold_or_send(StreamSlot::lost(pts_ns));
        }
        self.release_due();
        self.stats.show(&self.counts);
        waited
    }

    /// Switches to frames on the host. Returns false if the handler cannot work on the host.
    pub(crate) fn leave_device(&mut self, context: &mut LaneContext) -> bool {
        if let Some(services) = &self.services {
            services.move_to(None);
        }
        let left = self.with_services(context, |handler, context| catch(|| Ok(handler.leave_device(context))));
        left.unwrap_or(false)
    }

    /// Switches the node's handler to the device of the context.
    pub(crate) fn enter_device(&mut self, context: &mut LaneContext) -> Result<(), HandlerFailure> {
        let number = self.counts.taken;
        if let Some(services) = &self.services {
            services.move_to(context.device_context().map(|device_context| device_context.device()));
        }
        let entered = self.with_services(context, |handler, context| catch(|| handler.enter_device(context)));
        entered.map_err(|error| self.failure(number, error))
    }

    /// Uploads the frames that the inputs other than the lead supply repeatedly, and returns the copies on the device.
    pub(crate) fn raised(&mut self, context: &mut LaneContext) -> Result<Vec<Frame>, HandlerFailure> {
        let owner: Arc<str> = self.members[0].name.as_str().into();
        let Some(device_context) = context.device_context().filter(|_| self.handler.computes()) else {
            return Ok(Vec::new());
        };
        let raised: Result<_, _> =
            self.inputs.supplied().map(|frame| device_context.raise(frame.clone(), &owner)).collect();
        raised.map_err(|error| self.failure(self.counts.taken, HandlerError::Device(error)))
    }

    /// Replaces the supplied frames by these copies.
    pub(crate) fn put_supplied(&mut self, frames: Vec<Frame>) {
        self.inputs.supplied().zip(frames).for_each(|(own, frame)| *own = frame);
    }

    /// Uploads the supplied frames that are still on the host. Each is uploaded once, not again for every frame of the
    /// lead.
    pub(super) fn raise_late(&mut self, context: &mut LaneContext) -> Result<(), HandlerError> {
        if context.device_context().is_none() || !self.inputs.supplied().any(|frame| frame.space() == Space::Cpu) {
            return Ok(());
        }
        match self.raised(context) {
            Ok(frames) => {
                self.put_supplied(frames);
                Ok(())
            }
            Err(failure) => Err(failure.error),
        }
    }

    pub(crate) fn shaders(&self) -> Vec<Shader> {
        self.handler.shaders()
    }

    /// Handles a frame that cannot be made because the frame of another input was lost with the device.
    pub(super) fn lack(&mut self, now: Now, context: &LaneContext) -> Fired {
        if let Some(input) = self.inputs.lacks_for_good() {
            return self.settle(now, Err(HandlerError::SideLost { input }), context);
        }
        self.counts.lost += 1;
        self.hold_or_send(StreamSlot::lost(now.pts_ns));
        self.pass_on(Watermark::at(now.pts_ns));
        Fired::Moved
    }

    /// Handles a frame that ends at this node, once the device has finished it. Returns the interval since the previous
    /// such frame.
    pub(crate) fn finish_awaited(&mut self, done: Duration) -> Option<Duration> {
        let now = self.held.oldest_awaited()?;
        self.counts.held -= 1;
        self.counts.emitted += 1;
        self.held.arrive(StreamSlot::empty(now.pts_ns));
        self.handler.finished();
        self.release_due();
        self.stats.show(&self.counts);
        self.note_arrival(now.birth.at_ns, done)
    }
}
