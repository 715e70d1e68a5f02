//! The two transfer handlers, upload and download. The plan decides where they are.
//!
//! A frame keeps its number, time, size and all other metadata. A downloaded frame arrives after the call, in order.

use std::sync::Arc;

use crate::handler::{Call, DeviceError, Flow, FrameHandler, HandlerError};
use crate::lane::context::LaneRequest;
use crate::services::StartContext;

/// Moves frames from the host to the device, in the device lane.
#[derive(Debug)]
pub struct Upload {
    owner: Arc<str>,
}

impl Upload {
    /// An upload whose memory is lent under this name.
    pub fn new(owner: &str) -> Upload {
        Upload { owner: owner.into() }
    }
}

impl FrameHandler for Upload {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(device_context) = call.context.device_context() else {
            // The device was lost: downstream nodes continue with host frames.
            let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
            call.send(0, frame);
            return Ok(Flow::Produced);
        };
        // Memory is lent before the frame is taken, so that the call can be repeated if memory is short.
        let Some(frame) = call.inputs[0].as_ref() else { return Ok(Flow::Filtered) };
        let there = device_context.raise(frame.clone(), &self.owner)?;
        call.inputs[0] = None;
        call.send(0, there);
        Ok(Flow::Produced)
    }

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        true
    }
}

/// Moves frames from the device to the host, in the device lane.
#[derive(Debug, Default)]
pub struct Download;

impl FrameHandler for Download {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
        let (Some(device_context), Some(buffer)) = (call.context.device_context(), frame.buffer()) else {
            // This frame was made on the host, because the device was lost.
            call.send(0, frame);
            return Ok(Flow::Produced);
        };
        let bytes = frame.meta().bytes();
        device_context.recording.download_part(buffer, 0, bytes).map_err(DeviceError::Record)?;
        device_context.requests.push(LaneRequest::Download(*frame.meta()));
        call.later = true;
        Ok(Flow::Produced)
    }

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        true
    }
}

/// A second transfer of an output that has already been transferred: passes frames on.
#[derive(Debug, Default)]
pub(crate) struct PassThrough;

impl FrameHandler for PassThrough {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
        call.send(0, frame);
        Ok(Flow::Produced)
    }

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        true
    }
}
