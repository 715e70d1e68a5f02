//! Profile of a piece of work, op by op: kernels, times and bytes.
//!
//! Profiling changes neither what is computed nor the number of kernels.
//!
//! Invariants: a figure that could not be measured carries a reason and is never 0. While no profile is running,
//! nothing is noted, timed or locked.
//!
//! The host time of an op that runs on the host covers the computation. The host time of an op that runs on the device
//! covers only the recording, because the host does not wait for kernels. The device time of an op is the time of its
//! kernels alone, by the device's clock.

mod collect;
mod table;

pub(crate) use collect::{ActOwners, Collector, OpDescription, Profiler};

use std::sync::Arc;
use std::time::Instant;

use vramp_gpu::Readout;

use crate::ops::context::{Context, DeviceSide, Transfers};
use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::shape::Shape;

/// The profile of a piece of work.
#[derive(Debug, Clone, PartialEq)]
pub struct OpProfile {
    /// Ops in the order in which they began. Ops fused into one kernel are one entry.
    pub ops: Vec<ProfiledOp>,
    /// Change in the number of tensors.
    pub new_tensors: i64,
    /// Change in the number of bytes of values, on both sides together.
    pub new_bytes: i64,
    /// Maximum number of bytes of values during the work, on both sides together.
    pub peak_bytes: u64,
    pub moved: Transfers,
    /// Time until all work was done, including the work of the device.
    pub elapsed_ns: u64,
    /// Time during which the device was busy, including transfers.
    pub device_ns: Readout<u64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ProfiledOp {
    /// The name; fused ops are joined with `+`.
    pub op: String,
    pub inputs: Vec<(Shape, DType)>,
    pub output: Shape,
    pub dtype: DType,
    pub side: RanOn,
    /// The number of kernels.
    pub dispatches: usize,
    pub read_bytes: u64,
    pub written_bytes: u64,
    pub host_ns: u64,
    /// Time of the op's kernels on the device.
    pub device_ns: Readout<u64>,
    pub has_failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RanOn {
    Host,
    Device,
}

impl Context {
    /// Runs `act` and reports what its ops did. Every kernel is timed, which costs time. Ops of other threads are
    /// included. Fails, before anything runs, if the context is being profiled already.
    pub fn profile<T>(&self, act: impl FnOnce() -> T) -> Result<(T, OpProfile), TensorError> {
        let profiling = Profiling::begin(self)?;
        let answer = act();
        Ok((answer, profiling.report()))
    }
}

/// A context that is being profiled; ends the profile on drop, also on panic.
struct Profiling<'a> {
    context: &'a Context,
    side: Option<Arc<DeviceSide>>,
    collector: Arc<Collector>,
    tensors: u64,
    bytes: u64,
    peak_bytes: u64,
    moved: Transfers,
    started: Instant,
}

impl<'a> Profiling<'a> {
    fn begin(context: &'a Context) -> Result<Self, TensorError> {
        let collector = context.profiler().begin()?;
        let side = context.side();
        if let Some(side) = &side
            && let Err(error) = side.begin_profile(&collector)
        {
            collector.not_timed(format!("the device cannot be timed: {error}"));
        }
        let memory = context.memory();
        context.restart_peak();
        let (tensors, bytes, peak_bytes) = (memory.tensors, memory.bytes(), memory.peak_bytes);
        let (moved, started) = (context.transfers(), Instant::now());
        Ok(Profiling { context, side, collector, tensors, bytes, peak_bytes, moved, started })
    }

    fn report(self) -> OpProfile {
        if let Some(side) = &self.side
            && let Err(error) = side.end_profile()
        {
            self.collector.not_timed(error.to_string());
        }
        let elapsed_ns = self.started.elapsed().as_nanos() as u64;
        let memory = self.context.memory();
        let (before, now) = (self.moved, self.context.transfers());
        let moved = Transfers {
            host_reads: now.host_reads - before.host_reads,
            async_reads: now.async_reads - before.async_reads,
            uploads: now.uploads - before.uploads,
            copies: now.copies - before.copies,
        };
        let (ops, device_ns) = self.collector.report();
        OpProfile {
            ops,
            new_tensors: memory.tensors.cast_signed() - self.tensors.cast_signed(),
            new_bytes: memory.bytes().cast_signed() - self.bytes.cast_signed(),
            peak_bytes: memory.peak_bytes,
            moved,
            elapsed_ns,
            device_ns,
        }
    }
}

impl Drop for Profiling<'_> {
    fn drop(&mut self) {
        if let Some(side) = &self.side {
            // After a report this call does nothing. After a panic there is no caller to which the error could be
            // returned.
            let _ = side.end_profile();
        }
        self.context.profiler().end();
        // The profile restarted the peak; if the earlier peak was higher, it is restored.
        self.context.counts().raise_peak(self.peak_bytes);
    }
}
