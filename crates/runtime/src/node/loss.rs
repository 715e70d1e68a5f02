//! What becomes of a node when its device is lost, and when there is one again.
//!
//! Owns which of its frames are gone: those on the device that wait in front of it, that it holds, or that it awaits.
//! Does not decide where the run goes on: the lane does, for all of its nodes at once.
//!
//! Always: a frame that is gone leaves its place behind and is counted once; frames on the host stay.

use std::sync::Arc;
use std::time::Duration;

use vramp_gpu::Device;
use vramp_plan::{Shader, Space};

use crate::failure::{HandlerFailure, catch};
use crate::frame::Frame;
use crate::handler::{HandlerError, Now};
use crate::lane::context::LaneContext;
use crate::link::ring::StreamSlot;
use crate::node::inputs::Watermark;

use super::{Fired, Node};

impl Node {
    /// Whether frames that it was given are still on the device.
    pub(crate) fn awaits(&self) -> bool {
        self.held.awaited() > 0
    }

    /// Gives up the oldest frame that it awaits from the device.
    pub(crate) fn lose_awaited(&mut self) {
        if let Some(now) = self.held.oldest_awaited() {
            self.counts.held -= 1;
            self.counts.lost += 1;
            self.held.arrive(StreamSlot::lost(now.pts_ns));
        }
    }

    /// Gives up everything it has on the device that is gone, and says how many frames waited there in front of it:
    /// those are its links', the others its own.
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

    /// Goes on with the host's frames; false where its handler cannot.
    pub(crate) fn leave_device(&mut self) -> bool {
        self.handler.leave_device()
    }

    /// Goes on on another device; what it was supplied meanwhile is brought up.
    pub(crate) fn enter_device(&mut self, device: &Device) -> Result<(), HandlerFailure> {
        let number = self.counts.taken;
        catch(|| self.handler.enter_device(device)).map_err(|error| self.failure(number, error))
    }

    /// The frames that its inputs supply again and again, brought to the device.
    pub(crate) fn raised(&mut self, context: &mut LaneContext) -> Result<Vec<Frame>, HandlerFailure> {
        let owner: Arc<str> = self.members[0].name.as_str().into();
        let Some(device_context) = context.device_context().filter(|_| self.handler.computes()) else {
            return Ok(Vec::new());
        };
        let raised: Result<_, _> =
            self.inputs.supplied().map(|frame| device_context.raise(frame.clone(), &owner)).collect();
        raised.map_err(|error| self.failure(self.counts.taken, HandlerError::Device(error)))
    }

    /// Has its inputs supply these instead of what they are copies of.
    pub(crate) fn put_supplied(&mut self, frames: Vec<Frame>) {
        self.inputs.supplied().zip(frames).for_each(|(own, frame)| *own = frame);
    }

    /// Brings what its inputs supply to the device where it is still on the host: once, not for every frame.
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

    /// The kernels it needs on a device.
    pub(crate) fn shaders(&self) -> Vec<Shader> {
        self.handler.shaders()
    }

    /// A frame that cannot be made, since what belongs beside it went with the device.
    pub(super) fn lack(&mut self, now: Now, context: &LaneContext) -> Fired {
        if let Some(input) = self.inputs.lacks_for_good() {
            return self.settle(now, Err(HandlerError::SideLost { input }), context);
        }
        self.counts.lost += 1;
        self.hold_or_send(StreamSlot::lost(now.pts_ns));
        self.pass_on(Watermark::at(now.pts_ns));
        Fired::Moved
    }

    /// A frame that ends here has been finished by the device. Hands back the time since the one before.
    pub(crate) fn finish_awaited(&mut self, done: Duration) -> Option<Duration> {
        let now = self.held.oldest_awaited()?;
        self.counts.held -= 1;
        self.counts.emitted += 1;
        self.held.arrive(StreamSlot::empty(now.pts_ns));
        self.release_due();
        self.stats.show(&self.counts);
        self.note_arrival(now.birth.at_ns, done)
    }
}
