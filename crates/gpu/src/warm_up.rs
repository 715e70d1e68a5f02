//! A kernel's first run, on scratch memory, before the first frame.
//!
//! Drivers finish compilation at the first dispatch, and this took 14 to 60 ms on llvmpipe. The first run here is one
//! workgroup with all parameters zero, so that the kernel sees a size of zero and ends at its bounds check. The results
//! are ignored.
//!
//! The first run also detects kernels without an end. Mesa 25's software driver runs kernels inside the submit call, so
//! a second thread submits and the caller's thread waits with a time limit. A device that exceeds the limit counts as
//! lost and is leaked ([`Calls::abandon_device`]).

use std::sync::Arc;

use vramp_plan::Binding;

use crate::calls::{Calls, Kernels, Refusal};
use crate::device::Device;
use crate::kernel::DeviceKernel;
use crate::pipelines::{CompileError, CompiledPipeline};

/// Sizes of scratch buffers to try, because a shader may need more than a few bytes, for example a whole table.
const SCRATCH_BYTES: [u64; 4] = [256, 16 << 10, 1 << 20, 16 << 20];

/// Time that a first run may take in addition to the device's time limit, because drivers compile during the first run.
pub(crate) const COMPILING: std::time::Duration = std::time::Duration::from_secs(1);

#[cfg(not(target_arch = "wasm32"))]
const STACK_BYTES: usize = 16 << 20;

/// Runs a kernel once. Except on the web, waits for the end of the run, at most for the device's time limit plus
/// [`COMPILING`].
pub(crate) fn run_once(
    device: &Device,
    kernel: &DeviceKernel,
    compiled: &Arc<CompiledPipeline>,
) -> Result<(), CompileError> {
    #[cfg(target_arch = "wasm32")]
    return try_sizes(device, kernel, compiled).map(|_| ());
    // Some drivers run a kernel inside the submit call, so another thread makes that call.
    #[cfg(not(target_arch = "wasm32"))]
    {
        let (send, ended) = std::sync::mpsc::sync_channel(1);
        let (running, what, with) = (device.clone(), kernel.clone(), Arc::clone(compiled));
        let most = device.time_limit() + COMPILING;
        // Drivers compile on this thread and recurse as deep as the shader text nests, so the stack is large.
        let named = std::thread::Builder::new().name("vramp first run".to_owned()).stack_size(STACK_BYTES);
        let spawned = named.spawn(move || drop(send.send(try_sizes(&running, &what, &with))));
        let Ok(thread) = spawned else { return try_sizes(device, kernel, compiled).map(|_| ()) };
        let answer = ended.recv_timeout(most);
        if answer.is_ok() {
            // The thread holds handles of the device and the kernel until the thread ends.
            let _ = thread.join();
        }
        match answer {
            Ok(Ok(true)) => Ok(()),
            Ok(Err(problem)) => Err(problem),
            Ok(Ok(false)) | Err(_) => {
                let (name, waited_ms) = (kernel.name().to_string(), most.as_millis() as u64);
                device.calls().abandon_device(format!("{name} did not end within {waited_ms} ms"));
                Err(CompileError::Overdue { name, waited_ms })
            }
        }
    }
}

/// Runs a kernel with larger and larger scratch buffers until the driver accepts their size. Returns whether the kernel
/// ended in time.
fn try_sizes(device: &Device, kernel: &DeviceKernel, compiled: &CompiledPipeline) -> Result<bool, CompileError> {
    // `run_once` stops waiting a little earlier than this limit.
    let (calls, most) = (device.calls(), device.time_limit() + 2 * COMPILING);
    let mut last = None;
    for bytes in SCRATCH_BYTES.into_iter().filter(|bytes| *bytes <= device.limits().binding_bytes) {
        match try_once(calls, kernel, compiled, bytes, most) {
            Ok(ended) => return calls.health.check().map(|()| ended).map_err(CompileError::from),
            Err(refusal) => last = Some(refusal),
        }
        calls.health.check()?;
    }
    let problem = match last {
        Some(Refusal::Refused(problem)) => problem,
        Some(Refusal::OutOfMemory) | None => "the device has no memory for a first run".into(),
    };
    Err(CompileError::Refused { name: kernel.name().to_string(), problem })
}

/// Returns whether the kernel ended in time.
fn try_once(
    calls: &Calls,
    kernel: &DeviceKernel,
    compiled: &CompiledPipeline,
    bytes: u64,
    most: std::time::Duration,
) -> Result<bool, Refusal> {
    let bindings = kernel.bindings();
    let mut buffers = Vec::with_capacity(bindings.len());
    for binding in bindings {
        buffers.push(match binding {
            Binding::Read | Binding::Write => {
                calls.create_buffer("vramp scratch", bytes, wgpu::BufferUsages::STORAGE, false)?
            }
            Binding::Params { bytes } => {
                calls.create_buffer("vramp scratch", u64::from(*bytes), wgpu::BufferUsages::UNIFORM, false)?
            }
        });
    }
    let entries: Vec<_> = (0_u32..)
        .zip(&buffers)
        .map(|(binding, buffer)| wgpu::BindGroupEntry { binding, resource: buffer.as_entire_binding() })
        .collect();
    let group = calls.create_bind_group(&compiled.layout, &entries)?;
    let offsets: &[u32] = if kernel.params_bytes() > 0 { &[0] } else { &[] };
    let submitted = calls.scoped(|| {
        let mut encoder = calls.encoder();
        {
            let mut pass = calls.begin_pass(&mut encoder, None);
            pass.set_pipeline(&compiled.pipeline);
            pass.set_bind_group(0, &group, offsets);
            calls.dispatch(&mut pass, [1, 1, 1]);
        }
        calls.submit(encoder, Kernels([Some(Arc::clone(kernel.name())), None, None, None]), true)
    });
    let (_, index) = submitted?;
    // A failed wait means that the device was lost. The caller checks for a loss.
    #[cfg(not(target_arch = "wasm32"))]
    return Ok(calls.wait(index, most).unwrap_or(true));
    #[cfg(target_arch = "wasm32")]
    {
        let _ = (index, most);
        Ok(true)
    }
}
