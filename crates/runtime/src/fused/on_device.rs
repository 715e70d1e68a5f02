//! A fused unit on the device: compiles its kernels, records its dispatches, and keeps its small data on the device.
//!
//! **Small data** (overlay images, the coverage of text) have one buffer per fused unit, with room to grow. A change is
//! recorded with the parameters, in the same staging memory and the same submit, and the queue orders the change after
//! the kernels that still read the old content. So bind groups stay the same and nothing waits. Small data are sent
//! only when they have changed. Only frames count as uploads; small data do not.

use std::sync::Arc;

use smallvec::SmallVec;
use vramp_gpu::{Buffer, Device, DeviceKernel, LendError};
use vramp_kernels::head::First;
use vramp_kernels::own::OwnKernel;
use vramp_kernels::stored::StoredFormat;
use vramp_kernels::{FrameParams, ParamLayout};
use vramp_plan::{Binding, Size, Variant, Variants};

use crate::frame::Frame;
use crate::handler::DeviceError;
use crate::lane::context::DeviceContext;

use super::FusedUnit;

/// The images that a fused unit reads beside its source.
pub(super) type ExtraFrames = SmallVec<[Frame; 8]>;

impl FusedUnit {
    /// Compiles the unit's kernels for a device, on which the unit then runs.
    pub async fn on(self, device: &Device) -> Result<FusedUnit, DeviceError> {
        self.tuned(device, &Variants::default()).await
    }

    /// As [`FusedUnit::on`], with tuned workgroups. A workgroup that is too large for the device is replaced by the
    /// default.
    pub async fn tuned(mut self, device: &Device, variants: &Variants) -> Result<FusedUnit, DeviceError> {
        (self.variant, self.variants) = (variants.of(self.recipe.class()), *variants);
        self.compile(device).await?;
        Ok(self)
    }

    pub(super) async fn compile(&mut self, device: &Device) -> Result<(), DeviceError> {
        let mut kernels = Vec::new();
        if self.variant.workgroup > device.limits().invocations_per_workgroup {
            self.variant = Variant::default();
        }
        for shader in self.recipe.shaders_as(&self.name, self.variant) {
            kernels.push(device.prepare_async(&shader).await?);
        }
        self.put_kernels(kernels);
        self.nothing.clear();
        Ok(())
    }

    /// Runs on the device with these kernels from now on.
    pub(super) fn put_kernels(&mut self, kernels: Vec<DeviceKernel>) {
        let inputs_before_head = self.recipe.before.iter().filter(|function| function.extra_input()).count();
        let whole = self.recipe.whole.clone();
        let ParamLayout { head, before, after, .. } = &self.layout;
        let reads_small = before.iter().chain(after).chain([head]).any(|part| part.small.is_some());
        let (small, small_words) = (None, Vec::new());
        let first = self.recipe.head.first.filter(|_| whole.is_none());
        let into = self.recipe.into;
        self.kernels =
            Some(DeviceKernels { kernels, first, inputs_before_head, into, whole, reads_small, small, small_words });
    }
}

/// The kernels of a fused unit on the device, one per pass.
pub(super) struct DeviceKernels {
    pub(super) kernels: Vec<DeviceKernel>,
    /// The first of two passes, if there are two.
    pub(super) first: Option<First>,
    /// Number of images that are read by functions before the head.
    pub(super) inputs_before_head: usize,
    /// Stored format of the output; `None` for pixels.
    pub(super) into: Option<&'static StoredFormat>,
    /// The user's kernel for the whole frame, if the unit is such a kernel.
    pub(super) whole: Option<Arc<OwnKernel>>,
    /// Whether any kernel reads small data.
    pub(super) reads_small: bool,
    /// Small data on the device. The buffer is kept as long as the data fit: the queue orders new content after the
    /// kernels that read the old content, and bind groups stay the same.
    pub(super) small: Option<Buffer>,
    pub(super) small_words: Vec<u32>,
}

impl DeviceKernels {
    /// The intermediate buffer between two passes.
    pub(super) fn keep(
        &self,
        device_context: &DeviceContext,
        owner: &Arc<str>,
        sizes: (Size, Size),
    ) -> Result<Option<Buffer>, DeviceError> {
        let bytes = self.first.map(|first| first.over.bytes(sizes.0, sizes.1));
        Ok(bytes.map(|bytes| device_context.device().lend(bytes, owner)).transpose()?)
    }

    pub(super) fn record(
        &self,
        device_context: &mut DeviceContext,
        params: &FrameParams,
        (source_size, size): (Size, Size),
        source: Option<&Frame>,
        extra_inputs: &ExtraFrames,
        (made, kept): (&Frame, Option<&Buffer>),
    ) -> Result<(), DeviceError> {
        let device = device_context.device().clone();
        for (pass, kernel) in self.kernels.iter().enumerate() {
            let (first, second) = (self.first.filter(|_| pass == 0), self.first.filter(|_| pass == 1));
            let reads_source = second.is_none_or(|pass| pass.source_again);
            let mut bound: SmallVec<[&Buffer; 12]> = SmallVec::new();
            bound.extend(source.and_then(Frame::buffer).filter(|_| reads_source));
            bound.extend(kept.filter(|_| second.is_some()));
            // Each pass binds the images of its own functions. Images of functions before the head come first in the
            // list.
            let from = if reads_source { 0 } else { self.inputs_before_head };
            let to = if first.is_some() { self.inputs_before_head } else { extra_inputs.len() };
            bound.extend(extra_inputs[from..to].iter().filter_map(Frame::buffer));
            let reads = kernel.bindings().iter().filter(|binding| **binding == Binding::Read).count();
            if bound.len() < reads {
                bound.extend(self.small.as_ref());
            }
            let made_of = self.into.map_or(size.pixels(), |stored| stored.blocks(size));
            let covered = first.map_or(made_of, |pass| pass.over.size(source_size, size).pixels());
            bound.extend(if first.is_some() { kept } else { made.buffer() });
            let mut grid = kernel.cover(covered, device.limits());
            if let Some(whole) = &self.whole {
                grid = whole.grid(size);
                if whole.writes_first() {
                    bound.reverse();
                }
                // Cleared, so that no pixels of an earlier frame show through if the kernel leaves some pixels
                // unwritten.
                made.buffer().into_iter().for_each(|buffer| device_context.recording.zero(buffer));
            }
            device_context.recording.dispatch(kernel, &bound, bytemuck::cast_slice(params.words()), grid)?;
        }
        Ok(())
    }

    /// Sends the small data if they have changed.
    pub(super) fn send_small(
        &mut self,
        device_context: &mut DeviceContext,
        owner: &Arc<str>,
        words: &[u32],
        planned_bytes: u64,
    ) -> Result<(), DeviceError> {
        if !self.reads_small || (self.small.is_some() && self.small_words == words) {
            return Ok(());
        }
        let bytes = (words.len() * 4).max(16) as u64;
        if self.small.as_ref().is_none_or(|buffer| buffer.bytes() < bytes) {
            let fits = |bytes: u64| bytes <= device_context.device().limits().binding_bytes;
            // Data that exceed the planned bytes may grow further, for example text by a few letters.
            let planned = bytes <= planned_bytes;
            let wanted = if planned { planned_bytes } else { (2 * bytes).next_power_of_two() };
            let small = device_context.device().lend(if fits(wanted) { wanted } else { bytes }, owner)?;
            if !planned {
                device_context.device().pool().allow(small.bytes());
            }
            self.small = Some(small);
        }
        self.small_words.clear();
        self.small_words.extend_from_slice(words);
        if let (Some(buffer), false) = (&self.small, words.is_empty()) {
            device_context.recording.write(buffer, bytemuck::cast_slice(words))?;
        }
        Ok(())
    }
}

/// The bytes lent to one call so far. A call that is refused more memory returns all of these bytes. The call's error
/// therefore counts these bytes both as needed and as available, so that the available bytes and the bytes of other
/// holders add up to the budget.
#[derive(Default)]
pub(super) struct LentBytes(u64);

impl LentBytes {
    pub(super) fn and<R, E>(&mut self, lent: Result<R, E>, bytes: impl FnOnce(&R) -> u64) -> Result<R, DeviceError>
    where
        DeviceError: From<E>,
    {
        match lent.map_err(DeviceError::from) {
            Ok(lent) => {
                self.0 += bytes(&lent);
                Ok(lent)
            }
            Err(DeviceError::Lend(mut error)) => {
                if let LendError::OutOfBudget { needed_bytes, available_bytes, .. } = &mut error {
                    *needed_bytes += self.0;
                    *available_bytes += self.0;
                }
                Err(DeviceError::Lend(error))
            }
            Err(error) => Err(error),
        }
    }
}
