//! What a piece of work did, op by op: which kernels, how long, over how many bytes.
//!
//! Owns the report, and the switching on and off around the work.
//! Does not change what is computed, nor into how many kernels.
//!
//! Always: what could not be measured is a reason and never 0; nothing is noted, timed or locked while nobody asks.
//!
//! The host's time of an op is that of computing it where it runs on the host, and that of writing it down where it runs
//! on the device: kernels are not waited for. The device's time is that of its kernels alone, by the device's own clock.

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

/// What a piece of work did.
#[derive(Debug, Clone, PartialEq)]
pub struct OpProfile {
    /// Its ops, in the order in which they began. Ops that became one kernel are one.
    pub ops: Vec<ProfiledOp>,
    /// Tensors that there are more than before; fewer where it is below 0.
    pub new_tensors: i64,
    /// Bytes of values that there are more than before, on both sides.
    pub new_bytes: i64,
    /// The most bytes of values that there were at once meanwhile, on both sides.
    pub peak_bytes: u64,
    /// What was moved.
    pub moved: Transfers,
    /// Time until all of it was done, the device's work included.
    pub elapsed_ns: u64,
    /// Time that the device worked, transfers included.
    pub device_ns: Readout<u64>,
}

/// What one op did.
#[derive(Debug, Clone, PartialEq)]
pub struct ProfiledOp {
    /// Its name; where several became one kernel, all of them, joined with `+`.
    pub op: String,
    /// The shapes and types of what it read.
    pub inputs: Vec<(Shape, DType)>,
    /// The shape of what it made.
    pub output: Shape,
    /// The type of what it made.
    pub dtype: DType,
    /// Where it ran.
    pub side: RanOn,
    /// Kernels that it started.
    pub dispatches: usize,
    /// Bytes of values that it read.
    pub read_bytes: u64,
    /// Bytes of values that it made.
    pub written_bytes: u64,
    /// Time on the host, in nanoseconds.
    pub host_ns: u64,
    /// Time of its kernels on the device.
    pub device_ns: Readout<u64>,
    /// Whether it failed.
    pub has_failed: bool,
}

/// Where an op ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RanOn {
    /// On the host.
    Host,
    /// On the device.
    Device,
}

impl Context {
    /// Runs something and tells what its ops did. Meanwhile each kernel is timed, which costs time of its own, and ops
    /// of other threads are told of too. Refused, before anything runs, where somebody does this already.
    pub fn profile<T>(&self, act: impl FnOnce() -> T) -> Result<(T, OpProfile), TensorError> {
        let profiling = Profiling::begin(self)?;
        let answer = act();
        Ok((answer, profiling.report()))
    }
}

/// A context that is looked at; left alone again at the end, on panic too.
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
        let (ops, device_ns) = self.collector.told();
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
            // After a report this does nothing, and on panic there is nobody to be told.
            let _ = side.end_profile();
        }
        self.context.profiler().end();
        // The peak that others look at is not this work's alone.
        self.context.counts().raise_peak(self.peak_bytes);
    }
}
