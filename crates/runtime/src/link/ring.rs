//! Rings: what waits on a link, in order, bounded.
//!
//! Owns the slots between a producer and a consumer, the policy when there is no room, and the count of everything.
//! Does not wait or wake anybody: the link around it does.
//!
//! Always: sent = taken + dropped + queued; the order of times never changes; a dropped frame leaves its place behind,
//! so that whoever counts frames or waits for certainty is not misled; a ring never grows once it is made.

use std::collections::VecDeque;

use vramp_plan::Policy;

/// The time of what is before every frame.
pub const BEFORE_ALL: i64 = i64::MIN;

/// A place in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamSlot<T> {
    /// A frame, and its time.
    Frame {
        /// Its time.
        pts_ns: i64,
        /// The frame.
        frame: T,
    },
    /// Places whose frames failed or were dropped.
    Empty {
        /// How many.
        count: u64,
        /// Time of the first.
        first_ns: i64,
        /// Time of the last.
        last_ns: i64,
        /// Whether any of them went with a device: whoever wants the newest frame up to here must not take an older one.
        lost: bool,
    },
}

impl<T> StreamSlot<T> {
    /// An empty place.
    pub fn empty(pts_ns: i64) -> StreamSlot<T> {
        StreamSlot::Empty { count: 1, first_ns: pts_ns, last_ns: pts_ns, lost: false }
    }

    /// The place of a frame that went with a device.
    pub fn lost(pts_ns: i64) -> StreamSlot<T> {
        StreamSlot::Empty { count: 1, first_ns: pts_ns, last_ns: pts_ns, lost: true }
    }

    /// Takes another run of empty places in behind this one; hands back what is none.
    pub(crate) fn join(&mut self, other: StreamSlot<T>) -> Option<StreamSlot<T>> {
        match (self, other) {
            (
                StreamSlot::Empty { count, last_ns, lost, .. },
                StreamSlot::Empty { count: more, last_ns: last, lost: also, .. },
            ) => {
                *count += more;
                *last_ns = last;
                *lost |= also;
                None
            }
            (_, other) => Some(other),
        }
    }

    /// The time of the first place in it.
    pub fn first_ns(&self) -> i64 {
        match self {
            StreamSlot::Frame { pts_ns, .. } => *pts_ns,
            StreamSlot::Empty { first_ns, .. } => *first_ns,
        }
    }

    /// The time of the last place in it.
    pub fn last_ns(&self) -> i64 {
        match self {
            StreamSlot::Frame { pts_ns, .. } => *pts_ns,
            StreamSlot::Empty { last_ns, .. } => *last_ns,
        }
    }
}

/// Why frames were dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// There was no room and the link's policy is to drop.
    LinkFull,
    /// It came when its consumer had ended.
    Late,
    /// The run failed while it waited.
    Error,
    /// It was on a device that was lost.
    DeviceLost,
    /// The run was stopped while it waited.
    Stopped,
}

impl DropReason {
    /// Every reason.
    pub const ALL: [DropReason; 5] =
        [DropReason::LinkFull, DropReason::Late, DropReason::Error, DropReason::DeviceLost, DropReason::Stopped];
}

/// What a ring has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingCounts {
    /// Frames that were put in.
    pub sent: u64,
    /// Frames that were taken out.
    pub taken: u64,
    /// Frames that were dropped, by reason in the order of [`DropReason::ALL`].
    pub dropped: [u64; 5],
    /// Frames that wait.
    pub queued: u64,
}

impl RingCounts {
    /// Whether every frame is accounted for.
    pub fn is_conserved(&self) -> bool {
        self.sent == self.taken + self.dropped.iter().sum::<u64>() + self.queued
    }
}

/// What became of something that was sent.
#[derive(Debug, PartialEq, Eq)]
pub enum SendResult<T> {
    /// It is in.
    Taken,
    /// There is no room, and the policy is to wait: here it is back.
    Full(StreamSlot<T>),
}

/// Slots between a producer and a consumer.
#[derive(Debug)]
pub struct SlotRing<T> {
    slots: VecDeque<StreamSlot<T>>,
    policy: Policy,
    depth: usize,
    certain_ns: Option<i64>,
    lasts_ns: i64,
    end_ns: Option<i64>,
    closed: bool,
    counts: RingCounts,
}

impl<T> SlotRing<T> {
    /// A ring that holds this many frames, at least one.
    pub fn new(policy: Policy, depth: usize) -> SlotRing<T> {
        let depth = depth.max(1);
        // Between frames, before the first and behind the last there can be a run of empty places.
        SlotRing {
            slots: VecDeque::with_capacity(2 * depth + 2),
            policy,
            depth,
            certain_ns: None,
            lasts_ns: BEFORE_ALL,
            end_ns: None,
            closed: false,
            counts: RingCounts::default(),
        }
    }

    /// Whether something that is sent now would be taken.
    pub fn has_room(&self) -> bool {
        self.room() > 0
    }

    /// How many frames it would take now without waiting or dropping.
    pub fn room(&self) -> usize {
        if self.closed || self.policy != Policy::Lossless {
            return usize::MAX;
        }
        self.depth - (self.counts.queued as usize).min(self.depth)
    }

    /// Puts a slot in. Without room a lossless ring hands it back, any other one drops its oldest frame.
    pub fn send(&mut self, slot: StreamSlot<T>) -> SendResult<T> {
        if let StreamSlot::Frame { pts_ns, .. } = slot {
            if self.closed {
                self.counts.sent += 1;
                self.counts.dropped[DropReason::Late as usize] += 1;
                return SendResult::Taken;
            }
            if self.counts.queued as usize >= self.depth {
                if self.policy == Policy::Lossless {
                    return SendResult::Full(slot);
                }
                self.drop_oldest(DropReason::LinkFull);
            }
            self.counts.sent += 1;
            self.counts.queued += 1;
            self.watermark(pts_ns, pts_ns);
            self.slots.push_back(slot);
            return SendResult::Taken;
        }
        if !self.closed {
            self.certain_ns = self.certain_ns.max(Some(slot.last_ns()));
            let rest = match self.slots.back_mut() {
                Some(back) => back.join(slot),
                None => Some(slot),
            };
            self.slots.extend(rest);
        }
        SendResult::Taken
    }

    /// Says that nothing up to this time will come any more, and up to when the stream is known to last.
    pub fn watermark(&mut self, pts_ns: i64, lasts_ns: i64) {
        self.certain_ns = self.certain_ns.max(Some(pts_ns));
        self.lasts_ns = self.lasts_ns.max(lasts_ns);
    }

    /// Says that nothing will come any more, and when the stream ended: at [`BEFORE_ALL`] if nothing ever came.
    pub fn end(&mut self, end_ns: i64) {
        self.end_ns = Some(end_ns);
    }

    /// The oldest slot.
    pub fn head(&self) -> Option<&StreamSlot<T>> {
        self.slots.front()
    }

    /// Takes the oldest slot out.
    pub fn take(&mut self) -> Option<StreamSlot<T>> {
        let slot = self.slots.pop_front();
        if let Some(StreamSlot::Frame { .. }) = slot {
            self.counts.taken += 1;
            self.counts.queued -= 1;
        }
        slot
    }

    /// Takes everything up to a time out and hands back the newest frame of it: what an input supplies to a lead of
    /// that time; and whether a newer one went with a device.
    pub fn take_up_to(&mut self, pts_ns: i64) -> (Option<T>, bool) {
        let (mut newest, mut lost) = (None, false);
        while self.slots.front().is_some_and(|slot| slot.first_ns() <= pts_ns) {
            match self.take() {
                Some(StreamSlot::Frame { frame, .. }) => (newest, lost) = (Some(frame), false),
                Some(StreamSlot::Empty { lost: also, .. }) => lost |= also,
                None => {}
            }
        }
        (newest, lost)
    }

    /// The newest frame, which stays where it is.
    pub fn latest(&self) -> Option<&T> {
        self.slots.iter().rev().find_map(|slot| match slot {
            StreamSlot::Frame { frame, .. } => Some(frame),
            StreamSlot::Empty { .. } => None,
        })
    }

    /// Whether everything up to this time is here, was here, or will never come.
    pub fn is_certain(&self, pts_ns: i64) -> bool {
        self.end_ns.is_some() || self.certain_ns.is_some_and(|certain| certain >= pts_ns)
    }

    /// Up to which time nothing more will come.
    pub fn certain_ns(&self) -> Option<i64> {
        self.certain_ns
    }

    /// Up to which time the stream is known to last. An empty place says nothing about that.
    pub fn lasts_ns(&self) -> i64 {
        self.lasts_ns
    }

    /// When the stream ended, if it has. What came before may still wait.
    pub fn end_ns(&self) -> Option<i64> {
        self.end_ns
    }

    /// Whether nothing more will come and nothing waits.
    pub fn is_over(&self) -> bool {
        self.end_ns.is_some() && self.slots.is_empty()
    }

    /// Says that the consumer has ended: what waits and whatever still comes is dropped as too late, and the producer
    /// never waits for room again.
    pub fn close(&mut self) {
        self.drain(DropReason::Late);
        self.closed = true;
    }

    /// Whether the consumer has ended.
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Drops everything that waits.
    pub fn drain(&mut self, reason: DropReason) {
        while self.counts.queued > 0 {
            self.drop_oldest(reason);
        }
        self.slots.clear();
    }

    /// Makes the places of those frames empty that `is_lost` says are gone, and says how many there were.
    pub fn lose(&mut self, reason: DropReason, is_lost: impl Fn(&T) -> bool) -> u64 {
        let mut lost = 0;
        for slot in &mut self.slots {
            if let StreamSlot::Frame { pts_ns, frame } = slot
                && is_lost(frame)
            {
                *slot = StreamSlot::lost(*pts_ns);
                lost += 1;
            }
        }
        self.counts.queued -= lost;
        self.counts.dropped[reason as usize] += lost;
        // Runs of empty places are one slot: once round, each is put behind the one before it.
        for at in 0..self.slots.len() {
            let Some(slot) = self.slots.pop_front() else { break };
            let rest = match self.slots.back_mut().filter(|_| at > 0) {
                Some(back) => back.join(slot),
                None => Some(slot),
            };
            self.slots.extend(rest);
        }
        lost
    }

    /// What it has counted.
    pub fn counts(&self) -> RingCounts {
        self.counts
    }

    /// Makes the oldest frame's place an empty one, joined with the empty places around it.
    fn drop_oldest(&mut self, reason: DropReason) {
        let Some(at) = self.slots.iter().position(|slot| matches!(slot, StreamSlot::Frame { .. })) else { return };
        let pts_ns = self.slots[at].first_ns();
        self.slots[at] = StreamSlot::empty(pts_ns);
        self.counts.queued -= 1;
        self.counts.dropped[reason as usize] += 1;
        // The oldest frame has at most one run in front of it and one behind.
        if let Some(StreamSlot::Empty { .. }) = self.slots.get(at + 1)
            && let Some(behind) = self.slots.remove(at + 1)
        {
            self.slots[at].join(behind);
        }
        if at > 0
            && let StreamSlot::Empty { .. } = self.slots[at - 1]
            && let Some(own) = self.slots.remove(at)
        {
            self.slots[at - 1].join(own);
        }
    }
}
