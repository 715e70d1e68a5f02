//! A group on the device: its kernels, what they bind, and what a call is lent.
//!
//! Owns the recording of a group's dispatches and the buffer of its small data.
//! Does not decide parameters or sizes: the group has them.

use std::sync::Arc;

use smallvec::SmallVec;
use vramp_gpu::{Buffer, DeviceKernel, LendError};
use vramp_kernels::FrameParams;
use vramp_kernels::head::First;
use vramp_kernels::own::OwnKernel;
use vramp_kernels::stored::StoredFormat;
use vramp_plan::{Binding, Size};

use crate::frame::Frame;
use crate::handler::DeviceError;
use crate::workplace::Desk;

/// The pictures that a group reads beside its source.
pub(super) type Sides = SmallVec<[Frame; 8]>;

/// A group's kernels on the device, one per pass.
pub(super) struct OnDevice {
    pub(super) kernels: Vec<DeviceKernel>,
    /// The first of two passes, where there are two.
    pub(super) first: Option<First>,
    /// Pictures that functions in front of the head read.
    pub(super) sides_before: usize,
    /// How what is made is stored; none where that is as pixels.
    pub(super) into: Option<&'static StoredFormat>,
    /// The user's kernel that it is, where it is one.
    pub(super) whole: Option<Arc<OwnKernel>>,
    /// Whether any of them reads small data.
    pub(super) reads_small: bool,
    /// The small data as they are on the device. One buffer for the whole run: the queue keeps a new content behind
    /// the kernels that read the old one, and the bind groups stay the same.
    pub(super) small: Option<Buffer>,
    pub(super) small_words: Vec<u32>,
}

impl OnDevice {
    /// Memory between two passes.
    pub(super) fn keep(
        &self,
        desk: &Desk,
        owner: &Arc<str>,
        sizes: (Size, Size),
    ) -> Result<Option<Buffer>, DeviceError> {
        let bytes = self.first.map(|first| first.over.bytes(sizes.0, sizes.1));
        Ok(bytes.map(|bytes| desk.device().lend(bytes, owner)).transpose()?)
    }

    pub(super) fn record(
        &self,
        desk: &mut Desk,
        params: &FrameParams,
        (source_size, size): (Size, Size),
        source: Option<&Frame>,
        sides: &Sides,
        (made, kept): (&Frame, Option<&Buffer>),
    ) -> Result<(), DeviceError> {
        let device = desk.device().clone();
        for (pass, kernel) in self.kernels.iter().enumerate() {
            let (first, second) = (self.first.filter(|_| pass == 0), self.first.filter(|_| pass == 1));
            let reads_source = second.is_none_or(|pass| pass.source_again);
            let mut bound: SmallVec<[&Buffer; 12]> = SmallVec::new();
            bound.extend(source.and_then(Frame::buffer).filter(|_| reads_source));
            bound.extend(kept.filter(|_| second.is_some()));
            // Each pass binds the pictures of its own functions: those in front first, those behind last.
            let from = if reads_source { 0 } else { self.sides_before };
            let to = if first.is_some() { self.sides_before } else { sides.len() };
            bound.extend(sides[from..to].iter().filter_map(Frame::buffer));
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
                // Cleared, so that no pixels of an earlier frame show through where it leaves some out.
                made.buffer().into_iter().for_each(|buffer| desk.recording.zero(buffer));
            }
            desk.recording.dispatch(kernel, &bound, bytemuck::cast_slice(params.words()), grid)?;
        }
        Ok(())
    }

    /// Brings the small data to the device where they have changed.
    pub(super) fn send_small(
        &mut self,
        desk: &mut Desk,
        owner: &Arc<str>,
        words: &[u32],
        planned_bytes: u64,
    ) -> Result<(), DeviceError> {
        if !self.reads_small || (self.small.is_some() && self.small_words == words) {
            return Ok(());
        }
        let bytes = (words.len() * 4).max(16) as u64;
        if self.small.as_ref().is_none_or(|buffer| buffer.bytes() < bytes) {
            let fits = |wanted: u64| wanted <= desk.device().limits().binding_bytes;
            // What is more than was planned for may grow further, such as text by a few letters.
            let planned = bytes <= planned_bytes;
            let wanted = if planned { planned_bytes } else { (2 * bytes).next_power_of_two() };
            let small = desk.device().lend(if fits(wanted) { wanted } else { bytes }, owner)?;
            if !planned {
                desk.device().pool().allow(small.bytes());
            }
            self.small = Some(small);
        }
        self.small_words.clear();
        self.small_words.extend_from_slice(words);
        if let (Some(buffer), false) = (&self.small, words.is_empty()) {
            desk.recording.write(buffer, bytemuck::cast_slice(words))?;
        }
        Ok(())
    }
}

/// What one call has been lent so far. A call that is refused more gives it all back, so its error asks for all of it: what
/// is available and what others hold then come to the budget.
#[derive(Default)]
pub(super) struct Lent(u64);

impl Lent {
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
