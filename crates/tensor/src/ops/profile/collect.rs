//! Collects the rows of a profile while ops run, and notes for each act of a submission the row to which the act
//! belongs. An act is an entry of a recording, such as a dispatch or a copy. The device's player measures the times.
//!
//! Invariants: an op that is composed of other ops is one row, which includes the kernels of all these ops. Work of one
//! thread is never counted in the rows of another thread's ops.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use vramp_gpu::{Player, Readout, Timing};

use super::{ProfiledOp, RanOn};
use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::shape::Shape;

thread_local! {
    /// The row of the op that this thread is running.
    static ROW: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The profiling state of a context.
#[derive(Default)]
pub(crate) struct Profiler {
    /// Checked by every op without taking the lock.
    is_on: AtomicBool,
    collector: Mutex<Option<Arc<Collector>>>,
}

impl Profiler {
    pub(super) fn begin(&self) -> Result<Arc<Collector>, TensorError> {
        let mut collector = self.collector();
        if collector.is_some() {
            let problem = "this context is being profiled already; end that profile first".to_owned();
            return Err(TensorError::Setting { op: "profile", problem });
        }
        let new = Arc::new(Collector::default());
        *collector = Some(Arc::clone(&new));
        self.is_on.store(true, Ordering::Release);
        Ok(new)
    }

    pub(super) fn end(&self) {
        self.is_on.store(false, Ordering::Release);
        *self.collector() = None;
    }

    /// Notes that an op begins, if the context is profiled and the op is not a part of another op. Only then is `op`
    /// called, which builds the description.
    pub(crate) fn note(&self, op: impl FnOnce() -> OpDescription) -> Option<OpInProgress> {
        if !self.is_on.load(Ordering::Acquire) || ROW.get().is_some() {
            return None;
        }
        let collector = self.collector().clone()?;
        let row = collector.add(op());
        ROW.set(Some(row));
        Some(OpInProgress { collector, row, started: Instant::now(), has_failed: true })
    }

    fn collector(&self) -> MutexGuard<'_, Option<Arc<Collector>>> {
        self.collector.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The facts of an op that are known before the op runs.
pub(crate) struct OpDescription {
    pub(crate) op: String,
    pub(crate) inputs: Vec<(Shape, DType)>,
    pub(crate) output: Shape,
    pub(crate) dtype: DType,
    pub(crate) side: RanOn,
}

/// An op that is running. Dropping this value completes the op's row, also on error.
pub(crate) struct OpInProgress {
    collector: Arc<Collector>,
    row: usize,
    started: Instant,
    has_failed: bool,
}

impl OpInProgress {
    /// Marks the op as successful.
    pub(crate) fn done(mut self) {
        self.has_failed = false;
    }
}

impl Drop for OpInProgress {
    fn drop(&mut self) {
        ROW.set(None);
        let host_ns = self.started.elapsed().as_nanos() as u64;
        let mut state = self.collector.state();
        // The row is missing if another thread has ended the profile meanwhile; the report is then without this op.
        if let Some(row) = state.rows.get_mut(self.row) {
            (row.op.host_ns, row.op.has_failed) = (host_ns, self.has_failed);
        }
    }
}

/// The rows of one profile.
#[derive(Default)]
pub(crate) struct Collector {
    state: Mutex<ProfilerState>,
}

#[derive(Default)]
struct ProfilerState {
    rows: Vec<ProfileRow>,
    submissions: usize,
    timed: usize,
    whole_ns: u64,
    timing: Option<Timing>,
    /// Why the device is not timed.
    problem: Option<String>,
}

struct ProfileRow {
    op: ProfiledOp,
    timed_dispatches: usize,
    device_ns: u64,
}

impl Collector {
    pub(super) fn not_timed(&self, problem: String) {
        self.state().problem.get_or_insert(problem);
    }

    /// The rows, and the total time of the device.
    pub(super) fn report(&self) -> (Vec<ProfiledOp>, Readout<u64>) {
        let mut state = self.state();
        let rows = std::mem::take(&mut state.rows);
        let ops = rows.into_iter().map(|row| ProfiledOp { device_ns: state.time_of(&row), ..row.op }).collect();
        (ops, state.whole())
    }

    fn add(&self, noted: OpDescription) -> usize {
        let OpDescription { op, inputs, output, dtype, side } = noted;
        let bytes = |shape: &Shape, dtype: DType| (shape.count() * dtype.bytes()) as u64;
        let op = ProfiledOp {
            op,
            read_bytes: inputs.iter().map(|(shape, dtype)| bytes(shape, *dtype)).sum(),
            written_bytes: bytes(&output, dtype),
            inputs,
            output,
            dtype,
            side,
            dispatches: 0,
            host_ns: 0,
            device_ns: Readout::unavailable("the op has not ended"),
            has_failed: false,
        };
        let mut state = self.state();
        state.rows.push(ProfileRow { op, timed_dispatches: 0, device_ns: 0 });
        state.rows.len() - 1
    }

    fn state(&self) -> MutexGuard<'_, ProfilerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProfilerState {
    fn time_of(&self, row: &ProfileRow) -> Readout<u64> {
        let from = "timestamps of the device";
        let missing = row.op.dispatches.saturating_sub(row.timed_dispatches);
        match (&self.problem, self.timing) {
            _ if row.op.side == RanOn::Host => Readout::unavailable("the op ran on the host"),
            _ if row.op.dispatches > 0 && missing == 0 => Readout::is(row.device_ns, from),
            (Some(problem), _) => Readout::unavailable(problem.clone()),
            (None, Some(Timing::Fenced)) => {
                Readout::unavailable("this device has no timestamps; only whole submissions can be timed")
            }
            _ => Readout::unavailable(format!(
                "{missing} of the op's {} kernels were not timed: they failed, or are in a recording of another player",
                row.op.dispatches
            )),
        }
    }

    fn whole(&self) -> Readout<u64> {
        let Some(timing) = self.timing else {
            let why = self.problem.as_deref().unwrap_or("nothing ran on a device");
            return Readout::unavailable(why);
        };
        let from = match timing {
            Timing::Timestamps => "timestamps of the device",
            Timing::Fenced => "the host's clock, until each submission was seen to end",
        };
        let missing = self.submissions - self.timed;
        let doubt = (missing > 0).then(|| format!("{missing} of {} submissions were not timed", self.submissions));
        Readout::Is { value: self.whole_ns, from: from.to_owned(), doubt }
    }
}

/// Maps the acts of a device's recordings to rows.
pub(crate) struct ActOwners {
    collector: Arc<Collector>,
    /// The row of each act in the current recording.
    owners: Vec<Option<usize>>,
    under_way: VecDeque<(u64, Vec<Option<usize>>)>,
}

impl ActOwners {
    pub(crate) fn of(collector: &Arc<Collector>) -> ActOwners {
        ActOwners { collector: Arc::clone(collector), owners: Vec::new(), under_way: VecDeque::new() }
    }

    /// Notes that this thread has recorded the acts `before..after`, of which `dispatches` are dispatches. Acts in
    /// another player's recording are only counted.
    pub(crate) fn note(&mut self, (before, after): (usize, usize), dispatches: usize, is_ours: bool) {
        let row = ROW.get();
        if let Some(row) = row
            && let Some(row) = self.collector.state().rows.get_mut(row)
        {
            row.op.dispatches += dispatches;
        }
        if is_ours {
            self.owners.resize(before, None);
            self.owners.resize(after, row);
        }
    }

    /// Ends the current recording, which was played as `submission`. `None` means that the recording will never be
    /// played.
    pub(crate) fn played(&mut self, submission: Option<u64>) {
        let owners = std::mem::take(&mut self.owners);
        if let Some(submission) = submission {
            self.collector.state().submissions += 1;
            self.under_way.push_back((submission, owners));
        }
    }

    /// Takes the finished times from the player.
    pub(crate) fn hear(&mut self, player: &mut Player) {
        let timing = player.timing();
        let ActOwners { collector, under_way, .. } = self;
        player.tell_times(&mut |time| {
            while under_way.front().is_some_and(|(submission, _)| *submission < time.submission) {
                under_way.pop_front();
            }
            if under_way.front().is_none_or(|(submission, _)| *submission != time.submission) {
                return;
            }
            let Some((_, owners)) = under_way.pop_front() else { return };
            let mut state = collector.state();
            state.timing = timing;
            state.timed += 1;
            state.whole_ns += time.end_ns - time.begin_ns;
            for part in time.parts.iter().filter(|part| part.dispatches > 0) {
                if let Some(row) = owners.get(part.act).copied().flatten()
                    && let Some(row) = state.rows.get_mut(row)
                {
                    row.device_ns += part.end_ns - part.begin_ns;
                    row.timed_dispatches += part.dispatches;
                }
            }
        });
    }
}
