//! A handler's access to the frame pools: memory by shape and element type.
//!
//! The memory comes from the run's own pools, on the host and on the device. So it counts for the memory budget, appears
//! in the report, and is lent again when the last holder drops it. Of each size, at most ten blocks stay free, unless the
//! plan needs more, and everything is released when the run ends.

use std::fmt;

use vramp_plan::{DType, Space, bytes_in_words};

use crate::frame::pool::FramePool;
use crate::frame::{Frame, Meta, TensorShape};
use crate::handler::{DeviceError, HandlerError};
use crate::observe::pool_progress::PoolProgress;

use super::{Here, Services};

/// Lends memory to a handler. Clones lend from the same pool; a handler may use them on any thread.
#[derive(Clone)]
pub struct HandlerPool {
    services: Services,
    is_host: bool,
}

impl HandlerPool {
    pub(super) fn new(services: &Services, is_host: bool) -> HandlerPool {
        HandlerPool { services: services.clone(), is_host }
    }

    /// The side on which the pool lends now. It changes if the device is lost.
    pub fn space(&self) -> Space {
        if self.is_host || self.services.here().device.is_none() { Space::Cpu } else { Space::Gpu }
    }

    /// Lends memory for a tensor, which returns to the pool when the last clone of the frame is dropped. The values are
    /// undefined.
    ///
    /// A handler that receives a memory error returns it to the runtime before it has taken its input. The runtime then
    /// calls the handler again when memory is available.
    pub fn allocate(&self, shape: &[usize], dtype: DType) -> Result<Frame, HandlerError> {
        let meta = Meta::tensor(tensor_shape(shape, dtype)?);
        let here = self.services.here();
        match here.device.as_ref().filter(|_| !self.is_host) {
            Some(device) => {
                let buffer = device.lend_unplanned(meta.bytes(), self.services.owner()).map_err(DeviceError::Lend)?;
                Ok(Frame::on_device(meta, buffer))
            }
            None => Ok(here.pool.lend_unplanned(meta)?),
        }
    }

    /// The pool's memory, and its requests since the start of the run. Other handlers and the links of the pipeline use
    /// the same pool.
    pub fn statistics(&self) -> PoolProgress {
        let Here { device, pool, .. } = &*self.services.here();
        match device.as_ref().filter(|_| !self.is_host) {
            Some(device) => PoolProgress::of_device(&device.pool().statistics()),
            None => PoolProgress::of_host(&FramePool::stats(pool)),
        }
    }
}

/// The shape of an allocation of at least one value.
pub(super) fn tensor_shape(shape: &[usize], dtype: DType) -> Result<TensorShape, HandlerError> {
    let dims: Option<Vec<u32>> = shape.iter().map(|dim| u32::try_from(*dim).ok()).collect();
    let made = dims.and_then(|dims| TensorShape::new(dtype, &dims)).filter(|shape| shape.bytes() < u64::MAX);
    let made = made.ok_or_else(|| HandlerError::failed(format!("a tensor cannot have the shape {shape:?}")))?;
    if made.element_bytes() == 0 {
        return Err(HandlerError::failed(format!("a tensor of the shape {shape:?} has no values")));
    }
    Ok(made)
}

impl fmt::Display for HandlerPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PoolProgress { pooled, pooled_bytes, hits, misses, .. } = self.statistics();
        let (in_use, in_use_bytes) = (self.statistics().in_use(), self.statistics().in_use_bytes());
        write!(
            f,
            "{} pool: {pooled} free ({}), {in_use} in use ({}), {hits} hits, {misses} misses",
            self.space(),
            bytes_in_words(pooled_bytes),
            bytes_in_words(in_use_bytes),
        )
    }
}

impl fmt::Debug for HandlerPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
