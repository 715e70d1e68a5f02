//! Transfers: the two handlers that move frames between host and device.
//!
//! Owns what is recorded for an upload and for a download.
//! Does not decide where they stand: the plan's transfers do, written by the user or not.
//!
//! Always: a frame keeps its number, time, size and everything else; a download comes later, in order.

use std::sync::Arc;

use crate::handler::{Call, DeviceError, Flow, FrameHandler, HandlerError};
use crate::lane::context::LaneRequest;

/// Brings frames from the host to the device. It runs in the device's lane.
#[derive(Debug)]
pub struct Upload {
    owner: Arc<str>,
}

impl Upload {
    /// An upload whose memory is held under this name.
    pub fn new(owner: &str) -> Upload {
        Upload { owner: owner.into() }
    }
}

impl FrameHandler for Upload {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(device_context) = call.context.device_context() else {
            // The device was lost: what follows goes on with the host's frames.
            let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
            call.send(0, frame);
            return Ok(Flow::Produced);
        };
        // Lent before the frame is taken: where memory is short, it is called again.
        let Some(frame) = call.inputs[0].as_ref() else { return Ok(Flow::Filtered) };
        let there = device_context.raise(frame.clone(), &self.owner)?;
        call.inputs[0] = None;
        call.send(0, there);
        Ok(Flow::Produced)
    }

    fn leave_device(&mut self) -> bool {
        true
    }
}

/// Brings frames from the device to the host. It runs in the device's lane.
#[derive(Debug, Default)]
pub struct Download;

impl FrameHandler for Download {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
        let (Some(device_context), Some(buffer)) = (call.context.device_context(), frame.buffer()) else {
            // Made on the host, since the device was lost.
            call.send(0, frame);
            return Ok(Flow::Produced);
        };
        let bytes = frame.meta().format.frame_bytes(frame.meta().size);
        device_context.recording.download_part(buffer, 0, bytes).map_err(DeviceError::Record)?;
        device_context.requests.push(LaneRequest::Download(*frame.meta()));
        call.later = true;
        Ok(Flow::Produced)
    }

    fn leave_device(&mut self) -> bool {
        true
    }
}

/// Passes frames on: a transfer that has been made already.
#[derive(Debug, Default)]
pub(crate) struct PassThrough;

impl FrameHandler for PassThrough {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
        call.send(0, frame);
        Ok(Flow::Produced)
    }

    fn leave_device(&mut self) -> bool {
        true
    }
}
