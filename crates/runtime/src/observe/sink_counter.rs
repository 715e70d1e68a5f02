//! Counts the frames that have reached a sink, and reads the run's counters at milestones.
//!
//! Only counters that belong to no segment are here; device work per frame is counted by the device lane, where the
//! count is exact. The lane that passes a milestone takes the reading, without allocating.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::device::history::DeviceHistory;
use crate::frame::pool::FramePool;
use crate::memory::heap::HeapTally;
use crate::observe::milestones::Milestones;

/// Counters that belong to no segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct CounterReading {
    pub(crate) heap_allocs: u64,
    pub(crate) foreign_allocs: u64,
    pub(crate) frame_copies: u64,
    pub(crate) gpu_allocs: u64,
    pub(crate) bind_groups: u64,
    pub(crate) compiles: u64,
    pub(crate) replans: u64,
}

#[derive(Debug)]
pub(crate) struct SinkCounter {
    frames: AtomicU64,
    milestones: Mutex<Milestones<CounterReading>>,
    next: AtomicU64,
    pub(crate) replans: AtomicU64,
    /// How often a node had to wait for memory.
    pub(crate) waits: AtomicU64,
    /// How often a node applied a change of settings, and how often it replaced kernels for a change.
    pub(crate) changes: AtomicU64,
    pub(crate) swaps: AtomicU64,
    tally: Arc<HeapTally>,
    pool: FramePool,
    device_history: Arc<DeviceHistory>,
}

impl SinkCounter {
    pub(crate) fn new(tally: Arc<HeapTally>, pool: FramePool, device_history: Arc<DeviceHistory>) -> SinkCounter {
        SinkCounter {
            frames: AtomicU64::new(0),
            milestones: Mutex::default(),
            next: AtomicU64::new(1),
            replans: AtomicU64::new(0),
            waits: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            swaps: AtomicU64::new(0),
            tally,
            pool,
            device_history,
        }
    }

    /// Reports that a sink has taken this many frames. With several sinks, the sink that has taken the most frames
    /// counts.
    pub(crate) fn sunk(&self, frames: u64) {
        if self.frames.fetch_max(frames, Ordering::Relaxed) >= frames {
            return;
        }
        if frames >= self.next.load(Ordering::Relaxed) {
            let mut milestones = self.milestones.lock().unwrap_or_else(PoisonError::into_inner);
            milestones.pass(frames, || self.read());
            self.next.store(milestones.next(), Ordering::Relaxed);
        }
    }

    pub(crate) fn frames(&self) -> u64 {
        self.frames.load(Ordering::Relaxed)
    }

    /// The current counters.
    pub(crate) fn read(&self) -> CounterReading {
        let device = self.device_history.counters();
        CounterReading {
            heap_allocs: self.tally.own(),
            foreign_allocs: self.tally.foreign(),
            frame_copies: self.pool.copies(),
            gpu_allocs: device.gpu_allocs,
            bind_groups: device.bind_groups,
            compiles: device.compiles,
            replans: self.replans.load(Ordering::Relaxed),
        }
    }

    /// Frame count and counters in the middle of the run.
    pub(crate) fn middle(&self) -> Option<(u64, CounterReading)> {
        self.milestones.lock().unwrap_or_else(PoisonError::into_inner).middle(self.frames())
    }
}
