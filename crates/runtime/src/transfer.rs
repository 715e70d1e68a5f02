//! Transfers: the two handlers that move frames between host and device.
//!
//! Owns what is recorded for an upload and for a download.
//! Does not decide where they stand: the plan's ramps do, written by the user or not.
//!
//! Always: a frame keeps its number, time, size and everything else; a download comes later, in order.

use std::sync::Arc;

use crate::handler::{Call, DeviceError, Flow, FrameHandler, HandlerError};
use crate::workplace::Sending;

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
        let Some(meta) = call.input(0).map(|frame| *frame.meta()) else { return Ok(Flow::Filtered) };
        let Some(desk) = call.workplace.desk() else { return Ok(Flow::Filtered) };
        // Lent before the frame is taken: where memory is short, it is called again.
        let there = desk.lend(meta, &self.owner)?;
        let Some(frame) = call.inputs[0].take() else { return Ok(Flow::Filtered) };
        if let Some(buffer) = there.buffer() {
            desk.recording.upload(buffer, Sending::Frame(frame)).map_err(DeviceError::Record)?;
        }
        call.send(0, there);
        Ok(Flow::Produced)
    }
}

/// Brings frames from the device to the host. It runs in the device's lane.
#[derive(Debug, Default)]
pub struct Download;

impl FrameHandler for Download {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
        let (Some(desk), Some(buffer)) = (call.workplace.desk(), frame.buffer()) else { return Ok(Flow::Filtered) };
        let bytes = frame.meta().format.frame_bytes(frame.meta().size);
        desk.recording.download_part(buffer, 0, bytes).map_err(DeviceError::Record)?;
        desk.downloads.push(*frame.meta());
        call.later = true;
        Ok(Flow::Produced)
    }
}

/// Passes frames on: a transfer that has been made already.
#[derive(Debug, Default)]
pub(crate) struct Pass;

impl FrameHandler for Pass {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}
