//! The order in which a recording is played, so that its dispatches share as few passes as possible.
//!
//! Owns the rule which transfers may move to the front or the end.
//! Does not change what is computed.
//!
//! Always: acts that touch the same memory, one of them writing it, keep their order.

use vramp_plan::Binding;

use super::{Act, HostSource, Recording};
use crate::memory::Resource;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Front,
    Middle,
    End,
}

impl<B: Resource, H: HostSource> Recording<B, H> {
    /// Fills `order` with the acts, by number, as they are played: uploads to memory that nothing before touches come
    /// first, downloads of memory that nothing behind writes come last.
    pub(crate) fn order(&self, order: &mut Vec<usize>) {
        order.clear();
        let count = self.acts.len();
        order.extend((0..count).filter(|at| self.part(*at) == Part::Front));
        order.extend((0..count).filter(|at| self.part(*at) == Part::Middle));
        order.extend((0..count).filter(|at| self.part(*at) == Part::End));
    }

    /// Passes that playing takes: one for each run of dispatches.
    pub fn passes(&self) -> usize {
        let mut order = Vec::new();
        self.order(&mut order);
        let is_dispatch = |at: &usize| matches!(self.acts[*at], Act::Dispatch { .. });
        let starts = |(place, at): (usize, &usize)| is_dispatch(at) && (place == 0 || !is_dispatch(&order[place - 1]));
        order.iter().enumerate().filter(|found| starts(*found)).count()
    }

    /// Whether a download shows its memory as the whole recording leaves it.
    pub(crate) fn is_final(&self, at: usize) -> bool {
        self.part(at) == Part::End
    }

    /// A few acts per tick: looking through the others for each is cheaper than a table would be.
    fn part(&self, at: usize) -> Part {
        match &self.acts[at] {
            Act::Upload { to: buffer, .. } | Act::Write { to: buffer, .. } | Act::Zero { buffer } => {
                let id = buffer.tag().id;
                // An earlier upload to the same memory that stays in the middle is touched by something before it.
                let blocked = self.acts[..at].iter().any(|act| !fills(act) && self.touches(act, id));
                if blocked { Part::Middle } else { Part::Front }
            }
            Act::Download { from, .. } => {
                let id = from.tag().id;
                let overwritten = self.acts[at + 1..].iter().any(|act| self.writes(act, id));
                if overwritten { Part::Middle } else { Part::End }
            }
            Act::Dispatch { .. } | Act::Copy { .. } | Act::ToTexture { .. } | Act::FromTexture { .. } => Part::Middle,
        }
    }

    fn touches(&self, act: &Act<B, H>, id: u64) -> bool {
        let is = |buffer: &B| buffer.tag().id == id;
        match act {
            Act::Upload { to: buffer, .. }
            | Act::Write { to: buffer, .. }
            | Act::Zero { buffer }
            | Act::ToTexture { from: buffer, .. }
            | Act::FromTexture { to: buffer, .. }
            | Act::Download { from: buffer, .. } => is(buffer),
            Act::Copy { from, to, .. } => is(from) || is(to),
            Act::Dispatch { buffers, .. } => self.bound(buffers).iter().any(is),
        }
    }

    fn writes(&self, act: &Act<B, H>, id: u64) -> bool {
        match act {
            Act::Upload { .. } | Act::Write { .. } | Act::Zero { .. } => self.touches(act, id),
            Act::Copy { to, .. } | Act::FromTexture { to, .. } => to.tag().id == id,
            Act::Download { .. } | Act::ToTexture { .. } => false,
            Act::Dispatch { kernel, buffers, .. } => {
                let storage = kernel.bindings().iter().filter(|binding| !matches!(binding, Binding::Params { .. }));
                let mut bound = storage.zip(self.bound(buffers));
                bound.any(|(binding, buffer)| *binding == Binding::Write && buffer.tag().id == id)
            }
        }
    }
}

fn fills<B, H>(act: &Act<B, H>) -> bool {
    matches!(act, Act::Upload { .. } | Act::Write { .. } | Act::Zero { .. })
}
