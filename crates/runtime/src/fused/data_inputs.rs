//! Data inputs of pixel handlers: small values on the host, such as detections, which a handler turns into parameters.
//!
//! Kernels do not read these frames, so they stay on the host also if the pictures are on the device.

use crate::frame::Frame;

/// A data input of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DataInput {
    /// The input of the unit.
    pub port: usize,
    pub member: usize,
    /// The same input in the member's entry.
    pub input: usize,
}

/// The data frames of one member in one call.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct DataFrames<'a> {
    pub(super) member: usize,
    pub(super) inputs: &'a [DataInput],
    pub(super) frames: &'a [Option<Frame>],
}

impl<'a> DataFrames<'a> {
    /// The frame at an input of the member; `None` if no frame has come, or if the input carries something else.
    pub(crate) fn get(&self, input: usize) -> Option<&'a Frame> {
        let own = self.inputs.iter().find(|own| (own.member, own.input) == (self.member, input))?;
        self.frames.get(own.port)?.as_ref()
    }
}
