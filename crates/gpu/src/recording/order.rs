//! The order in which a recording is played, so that its dispatches share as few passes as possible.
//!
//! Some transfers move to the front or the end. This does not change results: two commands that touch the same memory
//! keep their order if at least one of the two writes that memory.

use vramp_plan::Binding;

use super::{GpuCommand, HostSource, Recording};
use crate::memory::Resource;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CommandPhase {
    Front,
    Middle,
    End,
}

impl<B: Resource, H: HostSource> Recording<B, H> {
    /// Fills `order` with the indices of the commands in play order. First come uploads, writes and zeros to memory
    /// that no earlier command of another kind touches. Downloads of memory that no later command writes come last.
    pub(crate) fn order(&self, order: &mut Vec<usize>) {
        order.clear();
        let count = self.commands.len();
        order.extend((0..count).filter(|at| self.part(*at) == CommandPhase::Front));
        order.extend((0..count).filter(|at| self.part(*at) == CommandPhase::Middle));
        order.extend((0..count).filter(|at| self.part(*at) == CommandPhase::End));
    }

    /// Number of compute passes: one for each run of consecutive dispatches.
    pub fn passes(&self) -> usize {
        let mut order = Vec::new();
        self.order(&mut order);
        let is_dispatch = |at: &usize| matches!(self.commands[*at], GpuCommand::Dispatch { .. });
        let starts = |(place, at): (usize, &usize)| is_dispatch(at) && (place == 0 || !is_dispatch(&order[place - 1]));
        order.iter().enumerate().filter(|found| starts(*found)).count()
    }

    /// Whether no later command of the recording writes the memory of this download.
    pub(crate) fn is_final(&self, at: usize) -> bool {
        self.part(at) == CommandPhase::End
    }

    /// The phase in which a command is played. This function scans the other commands, because a recording has only a
    /// few commands, and the scan is cheaper than building a table.
    fn part(&self, at: usize) -> CommandPhase {
        match &self.commands[at] {
            GpuCommand::Upload { to: buffer, .. }
            | GpuCommand::Write { to: buffer, .. }
            | GpuCommand::Zero { buffer } => {
                let id = buffer.tag().id;
                // Earlier uploads to this memory can be ignored. If such an upload stays in the middle, an even earlier
                // command touches the memory, and this search finds that command too.
                let blocked = self.commands[..at].iter().any(|act| !fills(act) && self.touches(act, id));
                if blocked { CommandPhase::Middle } else { CommandPhase::Front }
            }
            GpuCommand::Download { from, .. } => {
                let id = from.tag().id;
                let overwritten = self.commands[at + 1..].iter().any(|act| self.writes(act, id));
                if overwritten { CommandPhase::Middle } else { CommandPhase::End }
            }
            GpuCommand::Dispatch { .. }
            | GpuCommand::Copy { .. }
            | GpuCommand::ToTexture { .. }
            | GpuCommand::FromTexture { .. } => CommandPhase::Middle,
        }
    }

    fn touches(&self, act: &GpuCommand<B, H>, id: u64) -> bool {
        let is = |buffer: &B| buffer.tag().id == id;
        match act {
            GpuCommand::Upload { to: buffer, .. }
            | GpuCommand::Write { to: buffer, .. }
            | GpuCommand::Zero { buffer }
            | GpuCommand::ToTexture { from: buffer, .. }
            | GpuCommand::FromTexture { to: buffer, .. }
            | GpuCommand::Download { from: buffer, .. } => is(buffer),
            GpuCommand::Copy { from, to, .. } => is(from) || is(to),
            GpuCommand::Dispatch { buffers, .. } => self.bound(buffers).iter().any(is),
        }
    }

    fn writes(&self, act: &GpuCommand<B, H>, id: u64) -> bool {
        match act {
            GpuCommand::Upload { .. } | GpuCommand::Write { .. } | GpuCommand::Zero { .. } => self.touches(act, id),
            GpuCommand::Copy { to, .. } | GpuCommand::FromTexture { to, .. } => to.tag().id == id,
            GpuCommand::Download { .. } | GpuCommand::ToTexture { .. } => false,
            GpuCommand::Dispatch { kernel, buffers, .. } => {
                let storage = kernel.bindings().iter().filter(|binding| !matches!(binding, Binding::Params { .. }));
                let mut bound = storage.zip(self.bound(buffers));
                bound.any(|(binding, buffer)| *binding == Binding::Write && buffer.tag().id == id)
            }
        }
    }
}

fn fills<B, H>(act: &GpuCommand<B, H>) -> bool {
    matches!(act, GpuCommand::Upload { .. } | GpuCommand::Write { .. } | GpuCommand::Zero { .. })
}
