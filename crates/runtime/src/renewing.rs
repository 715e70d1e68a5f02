//! Kernels that are compiled while the old ones run.
//!
//! Owns the thread that compiles for a group one of whose members has changed.
//! Does not swap anything: the group does, between two frames.
//!
//! Always: the group goes on as it is until the answer is there, and for good where it is no.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use vramp_gpu::{Device, DeviceKernel};
use vramp_plan::Variant;

use crate::handler::{Part, PixelHandler};
use crate::joined::Joined;

/// A group in the making.
pub(crate) struct Renewing {
    pub(crate) joined: Joined,
    /// Which member changes.
    pub(crate) member: usize,
    /// Who it will be.
    pub(crate) handler: Box<dyn PixelHandler>,
    /// How many parts that one has.
    pub(crate) parts: usize,
    answer: Receiver<Result<Vec<DeviceKernel>, String>>,
}

/// Compilers nest as deep as the text they are given.
const STACK_BYTES: usize = 16 << 20;

impl Renewing {
    /// Begins to compile what the parts of all members become, one of which is new.
    pub(crate) fn begin(
        name: &str,
        device: &Device,
        parts: &[Vec<Part>],
        variant: Variant,
        (member, handler): (usize, Box<dyn PixelHandler>),
    ) -> Renewing {
        let joined = Joined::of(parts);
        let (send, answer) = sync_channel(1);
        let (shaders, device) = (joined.recipe.shaders_as(name, variant), device.clone());
        let compiling = std::thread::Builder::new().name("vramp compiler".to_owned()).stack_size(STACK_BYTES);
        // Where there is no thread, the sender is dropped with the closure, which is an answer too.
        let _ = compiling.spawn(move || {
            let compiled: Result<Vec<_>, _> = shaders.iter().map(|shader| device.prepare(shader)).collect();
            let _ = send.send(compiled.map_err(|problem| problem.to_string()));
        });
        Renewing { joined, member, parts: parts[member].len(), handler, answer }
    }

    /// What came of it; none while it is not known.
    pub(crate) fn compiled(&mut self) -> Option<Result<Vec<DeviceKernel>, String>> {
        match self.answer.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err("there was no thread to compile it".to_owned())),
        }
    }
}
