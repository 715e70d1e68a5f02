//! A recording as text, for tests and debugging.
//!
//! Memory is shown by its tag, which unlike an address is the same in every run.

use std::fmt;

use vramp_plan::Binding;

use super::{GpuCommand, HostSource, Recording};
use crate::memory::Resource;

impl<B: Resource, H: HostSource> fmt::Debug for Recording<B, H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut order = Vec::new();
        self.order(&mut order);
        write!(f, "recording: {} commands, {} passes", self.len(), self.passes())?;
        for at in order {
            f.write_str("\n  ")?;
            self.write_command(f, &self.commands()[at])?;
        }
        Ok(())
    }
}

impl<B: Resource, H: HostSource> Recording<B, H> {
    fn write_command(&self, f: &mut fmt::Formatter<'_>, act: &GpuCommand<B, H>) -> fmt::Result {
        match act {
            GpuCommand::Upload { to, offset, bytes } => {
                write!(f, "upload   {} bytes to {} at {offset}", bytes.len(), to.tag())
            }
            GpuCommand::Write { to, bytes } => write!(f, "write    {} bytes to {}", bytes.len(), to.tag()),
            GpuCommand::Zero { buffer } => write!(f, "zero     {} bytes of {}", buffer.bytes(), buffer.tag()),
            GpuCommand::Dispatch { kernel, buffers, params, grid: [x, y, z] } => {
                write!(f, "dispatch {} over {x}x{y}x{z}", kernel.name())?;
                let storage = kernel.bindings().iter().filter(|binding| !matches!(binding, Binding::Params { .. }));
                for ((binding, buffer), part) in storage.zip(self.bound(buffers)).zip(self.parts(buffers)) {
                    let act = if *binding == Binding::Write { "writes" } else { "reads" };
                    write!(f, " {act} {}", buffer.tag())?;
                    if *part != (0..buffer.bytes()) {
                        write!(f, "[{}..{}]", part.start, part.end)?;
                    }
                }
                if params.is_empty() { Ok(()) } else { write!(f, " with {} bytes", params.len()) }
            }
            GpuCommand::Copy { from, from_offset, to, to_offset, bytes } => {
                write!(f, "copy     {bytes} bytes of {} at {from_offset} to {} at {to_offset}", from.tag(), to.tag())
            }
            GpuCommand::ToTexture { from, offset, pitch_bytes, to, rows } => {
                let from = from.tag();
                write!(f, "copy     {from} at {offset} to rows {rows:?} of {to}, {pitch_bytes} bytes apart")
            }
            GpuCommand::FromTexture { from, rows, to, offset, pitch_bytes } => {
                let to = to.tag();
                write!(f, "copy     rows {rows:?} of {from} to {to} at {offset}, {pitch_bytes} bytes apart")
            }
            GpuCommand::Download { from, offset, bytes } => {
                write!(f, "download {bytes} bytes of {} at {offset}", from.tag())
            }
        }
    }
}
