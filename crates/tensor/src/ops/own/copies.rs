//! Copies of values within the device: into separate memory, and back. If the source and the target are whole words,
//! the device copies the words directly; otherwise a kernel shifts the values between words.
//!
//! Invariants: values beside the copied values do not change. Separate memory has zeros after the last value.

use std::sync::atomic::Ordering;

use vramp_gpu::Buffer;

use crate::ops::context::{Context, DeviceSide};
use crate::ops::device::OutputRuns;
use crate::ops::device::copy::CopyKernel;
use crate::ops::error::{DeviceResult, TensorError};
use crate::ops::texture::copy::DeviceValues;

/// Copies the values to the start of separate pool memory.
pub(crate) fn to_own(
    context: &Context,
    side: &DeviceSide,
    op: &'static str,
    from: DeviceValues<'_>,
) -> Result<Buffer, TensorError> {
    let own = side.lend(op, from.count * from.dtype.bytes())?;
    if !from.count.is_multiple_of(from.dtype.per_word()) {
        side.record(op, |recording| {
            recording.zero(&own);
            Ok(())
        })?;
    }
    copy(context, side, op, from, DeviceValues { buffer: &own, offset: 0, ..from })?;
    Ok(own)
}

/// Copies values from one memory to another, and counts the copy. Both ranges have the same number and type of values.
pub(crate) fn copy(
    context: &Context,
    side: &DeviceSide,
    op: &'static str,
    from: DeviceValues<'_>,
    to: DeviceValues<'_>,
) -> Result<(), TensorError> {
    let DeviceValues { count, dtype, .. } = from;
    if count == 0 {
        return Ok(());
    }
    context.counts().copies.fetch_add(1, Ordering::Relaxed);
    let (start, to_start, bytes) = (from.offset * dtype.bytes(), to.offset * dtype.bytes(), count * dtype.bytes());
    if [start, to_start, bytes].iter().all(|place| place.is_multiple_of(4)) {
        return side.record(op, |recording| {
            recording.copy_part(from.buffer, start as u64, to.buffer, to_start as u64, bytes as u64).of(op)
        });
    }
    let copy = CopyKernel { dtype };
    let kernel = side.kernel(op, &copy.key(), || copy.shader())?;
    let most = side.device().limits().workgroups_per_dimension;
    let launch = copy.launch(from.offset, &OutputRuns::whole(to.offset, count), most);
    side.record(op, |recording| {
        recording.dispatch(&kernel, &[from.buffer, to.buffer], launch.params(), launch.grid).of(op)
    })
}
