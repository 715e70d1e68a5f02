//! Reloads a member of a fused unit: compiles new kernels on another thread while the old kernels run, and replaces the
//! old kernels between two frames.
//!
//! The unit runs unchanged until compilation has finished, and stays unchanged if compilation failed.

use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use vramp_gpu::{Device, DeviceKernel};
use vramp_plan::Variant;

use crate::handler::{Call, Part, PixelHandler};
use crate::observe::monitor::RunEvent;

use super::recipe::FusedRecipe;
use super::{FusedMember, FusedUnit};

/// A reload whose kernels are being compiled.
pub(super) struct PendingReload {
    pub(super) recipe: FusedRecipe,
    /// The member that changes.
    pub(super) member: usize,
    /// The replacement of that member.
    pub(super) handler: Box<dyn PixelHandler>,
    /// Parts of the replacement.
    pub(super) parts: Vec<Part>,
    answer: Receiver<Result<Vec<DeviceKernel>, String>>,
}

/// Stack of the compiling thread: compilers recurse as deeply as the source text nests.
const STACK_BYTES: usize = 16 << 20;

impl FusedUnit {
    /// Starts the reload of a changed member, and swaps the replacement in once its kernels are compiled; called
    /// between two frames.
    pub(super) fn reload_changed(&mut self, call: &mut Call<'_>) {
        if let Some(member) = self.lost_reload.take() {
            let handler = self.name.split('+').nth(member).unwrap_or(&self.name).to_owned();
            let problem = "the device was lost during compilation; save the file again to retry".to_owned();
            call.context.report(&RunEvent::NotReloaded { handler, problem });
        }
        if let Some(pending_reload) = &mut self.pending_reload {
            let Some(compiled) = pending_reload.compiled() else { return };
            let Some(PendingReload { recipe, member, handler, parts, .. }) = self.pending_reload.take() else { return };
            let name = self.name.split('+').nth(member).unwrap_or(&self.name).to_owned();
            match compiled {
                Ok(kernels) => {
                    let FusedRecipe { recipe, layout, program, places, .. } = recipe;
                    (self.recipe, self.layout, self.program, self.places) = (recipe, layout, program, places);
                    self.members[member] = FusedMember { handler, parts };
                    self.put_kernels(kernels);
                    call.context.report(&RunEvent::Reloaded { handler: name });
                }
                Err(problem) => call.context.report(&RunEvent::NotReloaded { handler: name, problem }),
            }
            return;
        }
        for at in 0..self.members.len() {
            let Some(successor) = self.members[at].handler.successor() else { continue };
            let named = || self.name.split('+').nth(at).unwrap_or(&self.name).to_owned();
            match successor {
                Err(problem) => call.context.report(&RunEvent::NotReloaded { handler: named(), problem }),
                Ok(handler) => {
                    let Some(device) =
                        call.context.device_context().map(|device_context| device_context.device().clone())
                    else {
                        return;
                    };
                    self.begin_reload(&device, at, handler);
                    return;
                }
            }
        }
    }

    /// Starts to compile the unit with a replaced member.
    fn begin_reload(&mut self, device: &Device, at: usize, handler: Box<dyn PixelHandler>) {
        let mut parts: Vec<Vec<Part>> = self.members.iter().map(|member| member.handler.parts()).collect();
        parts[at] = handler.parts();
        self.pending_reload = Some(PendingReload::begin(&self.name, device, &parts, self.variant, (at, handler)));
    }
}

impl PendingReload {
    /// Starts to compile the joined parts of all members, one of which is new.
    pub(super) fn begin(
        name: &str,
        device: &Device,
        parts: &[Vec<Part>],
        variant: Variant,
        (member, handler): (usize, Box<dyn PixelHandler>),
    ) -> PendingReload {
        let recipe = FusedRecipe::of(parts);
        let (send, answer) = sync_channel(1);
        let (shaders, device) = (recipe.recipe.shaders_as(name, variant), device.clone());
        let compiling = std::thread::Builder::new().name("vramp compiler".to_owned()).stack_size(STACK_BYTES);
        // If no thread can be started, the sender is dropped with the closure, and `compiled` reports that.
        let _ = compiling.spawn(move || {
            let compiled: Result<Vec<_>, _> = shaders.iter().map(|shader| device.prepare(shader)).collect();
            let _ = send.send(compiled.map_err(|problem| problem.to_string()));
        });
        PendingReload { recipe, member, parts: parts[member].clone(), handler, answer }
    }

    /// The compiled kernels or the error; `None` while compiling.
    pub(super) fn compiled(&mut self) -> Option<Result<Vec<DeviceKernel>, String>> {
        match self.answer.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => Some(Err("no thread could be started to compile the file".to_owned())),
        }
    }
}
