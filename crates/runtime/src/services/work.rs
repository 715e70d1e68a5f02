//! Work for the device that a handler collects between its calls, for example tables that are computed once.

use std::sync::atomic::Ordering;

use vramp_gpu::{Buffer, Recording};

use crate::handler::{DeviceError, HandlerError};
use crate::lane::context::UploadSource;

use super::{Here, Services};

/// Collects work for the device. Clones are the same queue; a handler may add work on any thread.
#[derive(Clone)]
pub struct WorkQueue {
    services: Services,
}

impl WorkQueue {
    pub(super) fn new(services: &Services) -> WorkQueue {
        WorkQueue { services: services.clone() }
    }

    /// Adds work, and leaves the recording empty. Everything that was added since the handler's last call runs in the
    /// order in which it was added, before the work of the handler's next frame and in the same submit. Work that waits
    /// when the device is lost, or when the stream ends, is dropped.
    ///
    /// Fails if frames are on the host, and if the recording contains downloads, as [`Call::record`](crate::Call::record).
    /// Also fails if the recording was made for another device, because the device was lost meanwhile.
    pub fn add(&self, recording: &mut Recording) -> Result<(), HandlerError> {
        crate::handler::check_recording(recording)?;
        let mut here = self.services.here();
        let Some(device) = &here.device else { return Err(crate::handler::no_device()) };
        if !device.owns_all(recording) {
            return Err(HandlerError::failed(
                "the work uses memory or kernels of another device; if the device was lost, make them again",
            ));
        }
        queue(&self.services, &mut here, |work| {
            work.append(recording, UploadSource::Bytes);
            Ok(())
        })
    }

    /// The number of uploads, kernels and copies that wait for the handler's next frame.
    pub fn waiting(&self) -> usize {
        self.services.here().work.len()
    }
}

impl std::fmt::Debug for WorkQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WorkQueue({} waiting)", self.waiting())
    }
}

/// Adds work to the queue, for the handler's next frame.
pub(super) fn queue(
    services: &Services,
    here: &mut Here,
    add: impl FnOnce(&mut Recording<Buffer, UploadSource>) -> Result<(), DeviceError>,
) -> Result<(), HandlerError> {
    add(&mut here.work)?;
    // Release: the lane that reads the flag finds the work.
    services.all().has_work.store(true, Ordering::Release);
    Ok(())
}
