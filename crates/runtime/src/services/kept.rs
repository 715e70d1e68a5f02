//! Values that a handler keeps where its frames are, such as weights or a table.
//!
//! The host has one copy for the whole run. A device gets a copy when a call first needs it there, as part of that
//! frame's submit: all values that one frame needs are uploaded together. After the loss of a device, the copy on the host
//! is uploaded again, or used itself.

use std::sync::{Arc, Mutex, PoisonError};

use vramp_plan::DType;

use crate::frame::{Frame, Meta};
use crate::handler::{DeviceError, HandlerError};
use crate::lane::context::UploadSource;

use super::Services;
use super::pool::tensor_shape;
use super::work::queue;

/// Values on both sides. Clones share them.
#[derive(Clone)]
pub struct KeptValues {
    services: Services,
    host: Frame,
    /// The copy on the device, and the number of moves up to which it is valid.
    there: Arc<Mutex<Option<(u64, Frame)>>>,
}

impl KeptValues {
    pub(super) fn new(
        services: &Services,
        shape: &[usize],
        dtype: DType,
        bytes: &[u8],
    ) -> Result<KeptValues, HandlerError> {
        let shape = tensor_shape(shape, dtype)?;
        if bytes.len() as u64 != shape.element_bytes() {
            let (needs, has) = (shape.element_bytes(), bytes.len());
            return Err(HandlerError::failed(format!("{shape} has {needs} bytes, but {has} were given")));
        }
        let mut host = services.here().pool.lend_unplanned(Meta::tensor(shape))?;
        if let Some(mut into) = host.fill() {
            let (own, padding) = into.split_at_mut(bytes.len());
            own.copy_from_slice(bytes);
            padding.fill(0);
        }
        Ok(KeptValues { services: services.clone(), host, there: Arc::default() })
    }

    /// The values as a tensor, on the side of the handler's frames. In a call that records work for the device, request
    /// them before recording that work.
    pub fn frame(&self) -> Result<Frame, HandlerError> {
        let mut here = self.services.here();
        let Some(device) = here.device.clone() else { return Ok(self.host.clone()) };
        let mut there = self.there.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((moves, frame)) = &*there
            && *moves == here.moves
        {
            return Ok(frame.clone());
        }
        let meta = *self.host.meta();
        let buffer = device.lend_unplanned(meta.bytes(), self.services.owner()).map_err(DeviceError::Lend)?;
        queue(&self.services, &mut here, |work| {
            work.upload(&buffer, UploadSource::Frame(self.host.clone())).map_err(DeviceError::Record)
        })?;
        let frame = Frame::on_device(meta, buffer);
        *there = Some((here.moves, frame.clone()));
        Ok(frame)
    }
}

impl std::fmt::Debug for KeptValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "KeptValues({})", self.host.meta().content)
    }
}
