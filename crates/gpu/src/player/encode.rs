//! Encoding: finds kernels, bind groups and slots for the commands of a recording, fills the staging memory, and writes
//! wgpu's commands.

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::calls::{Kernels, Refusal};
use crate::memory::Resource;
use crate::readback::Claimed;
use crate::recording::{COPY_BYTES, GpuCommand, HostSource, Recording};
use crate::timing::Stamps;

use super::{PlayStep, Player, Taken};

/// Rounds up to whole words, the unit of copies on a device.
pub(super) fn words(bytes: u64) -> u64 {
    bytes.next_multiple_of(COPY_BYTES)
}

impl Player {
    /// Finds kernels, bind groups and slots for every command, and fills the staging memory.
    pub(super) fn prepare<H: HostSource>(
        &mut self,
        recording: &Recording<Buffer, H>,
        taken: &Taken,
        mut claimed: Option<&mut Claimed>,
    ) -> Result<(), Refusal> {
        let Self { device, groups, uniforms, readbacks, scratch, .. } = self;
        let calls = device.calls();
        recording.order(&mut scratch.order);
        scratch.steps.clear();
        let (mut block, mut upload) = (0, taken.params_bytes);
        for (at, act) in recording.commands().iter().enumerate() {
            scratch.steps.push(match act {
                GpuCommand::Upload { bytes, .. } => {
                    let from = upload;
                    upload += words(bytes.len() as u64);
                    PlayStep::Upload { from }
                }
                GpuCommand::Write { bytes, .. } => {
                    let from = upload;
                    upload += words(bytes.len() as u64);
                    PlayStep::Upload { from }
                }
                GpuCommand::Zero { .. }
                | GpuCommand::Copy { .. }
                | GpuCommand::ToTexture { .. }
                | GpuCommand::FromTexture { .. } => PlayStep::Plain,
                GpuCommand::Dispatch { kernel, buffers, .. } => {
                    let forgotten = || Refusal::Refused(format!("{} was forgotten; prepare it again", kernel.name()));
                    let compiled = device.pipelines().find(kernel.id).ok_or_else(forgotten)?;
                    let bound = (recording.bound(buffers), recording.parts(buffers));
                    let group = groups.find(calls, kernel, &compiled, bound, uniforms)?;
                    let takes = uniforms.block_bytes(kernel.params_bytes());
                    let offset = (takes > 0).then_some((taken.params_at + block) as u32);
                    block += takes;
                    PlayStep::Dispatch { compiled, group, offset }
                }
                GpuCommand::Download { from, offset, bytes } => {
                    let claimed = claimed.as_mut().expect("a recording with downloads has a slot for them");
                    if recording.is_final(at) && is_direct(recording, from, *offset) {
                        readbacks.add_direct(claimed, from.clone(), *offset, *bytes);
                        PlayStep::Download { to: None }
                    } else {
                        PlayStep::Download { to: Some(readbacks.add_copied(claimed, *bytes)) }
                    }
                }
            });
        }
        self.fill(recording, taken)
    }

    /// Writes parameters and uploads into the staging memory.
    fn fill<H: HostSource>(&self, recording: &Recording<Buffer, H>, taken: &Taken) -> Result<(), Refusal> {
        let Some(staging) = &taken.staging else { return Ok(()) };
        let mapped = staging.buffer.get_mapped_range_mut(..);
        let mut mapped = mapped.map_err(|problem| Refusal::Refused(problem.to_string()))?;
        for (act, step) in recording.commands().iter().zip(&self.scratch.steps) {
            let (at, bytes) = match (act, step) {
                (GpuCommand::Upload { bytes, .. }, PlayStep::Upload { from }) => {
                    let start = *from as usize;
                    bytes.read(&mut |bytes| mapped.slice(start..start + bytes.len()).copy_from_slice(bytes));
                    continue;
                }
                (GpuCommand::Write { bytes, .. }, PlayStep::Upload { from }) => (*from, recording.params(bytes)),
                (GpuCommand::Dispatch { params, .. }, PlayStep::Dispatch { offset: Some(offset), .. }) => {
                    (u64::from(*offset) - taken.params_at, recording.params(params))
                }
                _ => continue,
            };
            let start = at as usize;
            mapped.slice(start..start + bytes.len()).copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Encodes all commands into one command buffer and submits that buffer.
    pub(super) fn encode<H: HostSource>(
        &self,
        recording: &Recording<Buffer, H>,
        taken: &Taken,
        claimed: Option<&Claimed>,
        mut stamps: Option<Stamps<'_>>,
    ) -> Result<(u64, wgpu::SubmissionIndex), Refusal> {
        let calls = self.device.calls();
        let down = match claimed {
            Some(claimed) => self.readbacks.staging(calls, claimed)?,
            None => None,
        };
        calls.scoped(|| {
            let mut encoder = calls.encoder();
            if let Some(stamps) = &mut stamps {
                stamps.begin(&mut encoder);
            }
            if let Some(staging) = &taken.staging {
                staging.buffer.unmap();
                if taken.params_bytes > 0 {
                    let params = self.uniforms.buffer();
                    encoder.copy_buffer_to_buffer(&staging.buffer, 0, params, taken.params_at, taken.params_bytes);
                }
            }
            let mut order = self.scratch.order.iter().copied().peekable();
            while let Some(at) = order.next() {
                match (&recording.commands()[at], &self.scratch.steps[at]) {
                    (GpuCommand::Dispatch { .. }, _) => {
                        let split = stamps.as_ref().is_some_and(|stamps| stamps.split);
                        let writes = stamps.as_mut().and_then(|stamps| stamps.pass(at));
                        let mut pass = calls.begin_pass(&mut encoder, writes);
                        self.dispatch(recording, at, &mut pass, stamps.as_mut());
                        let is_dispatch = |at: &usize| matches!(recording.commands()[*at], GpuCommand::Dispatch { .. });
                        while let Some(at) = order.next_if(|at| is_dispatch(at) && !split) {
                            self.dispatch(recording, at, &mut pass, stamps.as_mut());
                        }
                        continue;
                    }
                    (GpuCommand::Upload { to, offset, bytes }, PlayStep::Upload { from }) => {
                        let Some(staging) = &taken.staging else { continue };
                        let bytes = bytes.len() as u64;
                        encoder.copy_buffer_to_buffer(&staging.buffer, *from, to.raw(), *offset, words(bytes));
                        calls.count_upload(bytes);
                    }
                    (GpuCommand::Write { to, bytes }, PlayStep::Upload { from }) => {
                        let Some(staging) = &taken.staging else { continue };
                        encoder.copy_buffer_to_buffer(&staging.buffer, *from, to.raw(), 0, words(bytes.len() as u64));
                    }
                    (GpuCommand::Zero { buffer }, _) => encoder.clear_buffer(buffer.raw(), 0, None),
                    (GpuCommand::Copy { from, from_offset, to, to_offset, bytes }, _) => {
                        encoder.copy_buffer_to_buffer(from.raw(), *from_offset, to.raw(), *to_offset, words(*bytes));
                    }
                    (GpuCommand::ToTexture { from, offset, pitch_bytes, to, rows }, _) => {
                        to.encode_filling(&mut encoder, rows, from, *offset, *pitch_bytes);
                    }
                    (GpuCommand::FromTexture { from, rows, to, offset, pitch_bytes }, _) => {
                        from.encode_reading(&mut encoder, rows, to, *offset, *pitch_bytes);
                    }
                    (GpuCommand::Download { from, offset, bytes }, PlayStep::Download { to }) => {
                        if let (Some(to), Some(down)) = (to, &down) {
                            encoder.copy_buffer_to_buffer(from.raw(), *offset, down, *to, words(*bytes));
                        }
                        calls.count_download(*bytes);
                    }
                    _ => {}
                }
                if let Some(stamps) = &mut stamps {
                    stamps.copied(at, &mut encoder);
                }
            }
            if let Some(stamps) = &stamps {
                stamps.finish(&mut encoder);
            }
            calls.submit(encoder, named(recording), false)
        })
    }

    fn dispatch<H: HostSource>(
        &self,
        recording: &Recording<Buffer, H>,
        at: usize,
        pass: &mut wgpu::ComputePass<'_>,
        stamps: Option<&mut Stamps<'_>>,
    ) {
        let (GpuCommand::Dispatch { grid, .. }, PlayStep::Dispatch { compiled, group, offset }) =
            (&recording.commands()[at], &self.scratch.steps[at])
        else {
            return;
        };
        pass.set_pipeline(&compiled.pipeline);
        pass.set_bind_group(0, group, offset.as_slice());
        self.device.calls().dispatch(pass, *grid);
        if let Some(stamps) = stamps {
            stamps.dispatched(at, pass);
        }
    }
}

/// The first kernels of a recording. If the recording does not end, the error names these kernels.
pub(super) fn named<H: HostSource>(recording: &Recording<Buffer, H>) -> Kernels {
    let mut kernels = recording.commands().iter().filter_map(|act| match act {
        GpuCommand::Dispatch { kernel, .. } => Some(Arc::clone(kernel.name())),
        _ => None,
    });
    Kernels(std::array::from_fn(|_| kernels.next()))
}

/// Whether a download can map the buffer itself. The buffer must be mappable, the offset aligned, and the download the
/// only one of this buffer. No handle outside the recording may exist, so that nothing else uses the buffer while it is
/// mapped.
fn is_direct<H: HostSource>(recording: &Recording<Buffer, H>, buffer: &Buffer, offset: u64) -> bool {
    let id = Resource::tag(buffer).id;
    let downloads = recording
        .commands()
        .iter()
        .filter(|act| matches!(act, GpuCommand::Download { from, .. } if from.tag().id == id));
    buffer.is_mappable()
        && offset.is_multiple_of(wgpu::MAP_ALIGNMENT)
        && downloads.count() == 1
        && buffer.holders() == recording.handles().filter(|other| other.tag().id == id).count()
}
