//! Copies of values within the device: into memory of their own, and back into their place.
//!
//! Owns when a plain copy does and when a kernel has to shift values between words.
//! Does not decide who needs one.
//!
//! Always: values beside those that are copied stay; memory of their own has zeros behind the last value.

use std::sync::atomic::Ordering;

use vramp_gpu::Buffer;

use crate::ops::context::{Context, Side};
use crate::ops::device::Place;
use crate::ops::device::copy::Copy;
use crate::ops::error::{Of, TensorError};
use crate::ops::texture::copy::Values;

/// The same values in pooled memory of their own, from its start on.
pub(crate) fn to_own(
    context: &Context,
    side: &Side,
    op: &'static str,
    from: Values<'_>,
) -> Result<Buffer, TensorError> {
    let own = side.lend(op, from.count * from.dtype.bytes())?;
    if !from.count.is_multiple_of(from.dtype.per_word()) {
        side.record(op, |recording| {
            recording.zero(&own);
            Ok(())
        })?;
    }
    copy(context, side, op, from, Values { buffer: &own, offset: 0, ..from })?;
    Ok(own)
}

/// Copies values from one memory to another one; both are as many and of one type. Counted.
pub(crate) fn copy(
    context: &Context,
    side: &Side,
    op: &'static str,
    from: Values<'_>,
    to: Values<'_>,
) -> Result<(), TensorError> {
    let Values { count, dtype, .. } = from;
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
    let copy = Copy { dtype };
    let kernel = side.kernel(op, &copy.key(), || copy.shader())?;
    let most = side.device().limits().workgroups_per_dimension;
    let launch = copy.launch(from.offset, &Place::whole(to.offset, count), most);
    side.record(op, |recording| {
        recording.dispatch(&kernel, &[from.buffer, to.buffer], launch.params(), launch.grid).of(op)
    })
}
