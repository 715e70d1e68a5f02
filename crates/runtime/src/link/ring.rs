//! The bounded queue of a link: slots in order of time, with a policy for a full queue.
//!
//! A ring never blocks and wakes no thread; [`super::LinkSender`] and [`super::LinkReceiver`] wake the lanes at the
//! ends of the ring.
//!
//! Invariants: sent = taken + dropped + queued. Times never decrease. A dropped frame leaves an empty slot, because
//! `delay` and `every` count slots and joins wait for times. A ring never grows after it is created.

use std::collections::VecDeque;

use vramp_plan::Policy;

/// The time before every frame.
pub const BEFORE_ALL: i64 = i64::MIN;

/// One slot of a stream: a frame, or a run of empty slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamSlot<T> {
    Frame {
        pts_ns: i64,
        frame: T,
    },
    /// A run of slots whose frames failed, were filtered or were dropped.
    Empty {
        count: u64,
        first_ns: i64,
        last_ns: i64,
        /// True if a device loss took one of the frames. A join must then not fall back to an older frame.
        lost: bool,
    },
}

impl<T> StreamSlot<T> {
    pub fn empty(pts_ns: i64) -> StreamSlot<T> {
        StreamSlot::Empty { count: 1, first_ns: pts_ns, last_ns: pts_ns, lost: false }
    }

    /// The slot of a frame that a device loss took.
    pub fn lost(pts_ns: i64) -> StreamSlot<T> {
        StreamSlot::Empty { count: 1, first_ns: pts_ns, last_ns: pts_ns, lost: true }
    }

    /// Appends `other` if `self` and `other` are both runs of empty slots. Otherwise returns `other` unchanged.
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

    pub fn first_ns(&self) -> i64 {
        match self {
            StreamSlot::Frame { pts_ns, .. } => *pts_ns,
            StreamSlot::Empty { first_ns, .. } => *first_ns,
        }
    }

    pub fn last_ns(&self) -> i64 {
        match self {
            StreamSlot::Frame { pts_ns, .. } => *pts_ns,
            StreamSlot::Empty { last_ns, .. } => *last_ns,
        }
    }
}

/// Why a frame was dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The ring was full and its policy is to drop.
    LinkFull,
    /// The consumer had ended.
    Late,
    /// The run failed while the frame waited.
    Error,
    DeviceLost,
    /// The run was stopped while the frame waited.
    Stopped,
}

impl DropReason {
    pub const ALL: [DropReason; 5] =
        [DropReason::LinkFull, DropReason::Late, DropReason::Error, DropReason::DeviceLost, DropReason::Stopped];
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RingCounts {
    pub sent: u64,
    pub taken: u64,
    /// By reason, in the order of [`DropReason::ALL`].
    pub dropped: [u64; 5],
    pub queued: u64,
}

impl RingCounts {
    pub fn is_conserved(&self) -> bool {
        self.sent == self.taken + self.dropped.iter().sum::<u64>() + self.queued
    }
}

/// The result of [`SlotRing::send`].
#[derive(Debug, PartialEq, Eq)]
pub enum SendResult<T> {
    Taken,
    /// The ring is full and lossless; the slot is returned to the producer.
    Full(StreamSlot<T>),
}

/// The slots between a producer and a consumer.
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
    /// A ring for `depth` frames, at least one.
    pub fn new(policy: Policy, depth: usize) -> SlotRing<T> {
        let depth = depth.max(1);
        // Room for a run of empty slots between frames, before the first frame and after the last frame.
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

    /// Whether a frame sent now would be accepted.
    pub fn has_room(&self) -> bool {
        self.room() > 0
    }

    /// How many frames the ring accepts now. Only a lossless ring whose consumer has not ended has a limit; any other
    /// ring drops frames instead.
    pub fn room(&self) -> usize {
        if self.closed || self.policy != Policy::Lossless {
            return usize::MAX;
        }
        self.depth - (self.counts.queued as usize).min(self.depth)
    }

    /// Appends a slot. When full, a lossless ring returns the slot and any other ring drops its oldest frame.
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

    /// Announces that nothing up to `pts_ns` will come any more, and that the stream lasts at least until `lasts_ns`.
    pub fn watermark(&mut self, pts_ns: i64, lasts_ns: i64) {
        self.certain_ns = self.certain_ns.max(Some(pts_ns));
        self.lasts_ns = self.lasts_ns.max(lasts_ns);
    }

    /// Announces the end of the stream; `end_ns` is `BEFORE_ALL` if nothing ever came.
    pub fn end(&mut self, end_ns: i64) {
        self.end_ns = Some(end_ns);
    }

    pub fn head(&self) -> Option<&StreamSlot<T>> {
        self.slots.front()
    }

    /// Takes the oldest slot.
    pub fn take(&mut self) -> Option<StreamSlot<T>> {
        let slot = self.slots.pop_front();
        if let Some(StreamSlot::Frame { .. }) = slot {
            self.counts.taken += 1;
            self.counts.queued -= 1;
        }
        slot
    }

    /// Takes all slots up to a time. Returns the newest frame among them, and whether a device loss took a frame that
    /// was newer than the returned frame. An input supplies the returned frame together with a lead frame of that time.
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

    /// The newest frame; it stays in the ring.
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

    /// The watermark: nothing up to this time will come any more.
    pub fn certain_ns(&self) -> Option<i64> {
        self.certain_ns
    }

    /// The time until which the stream is known to last. An empty slot does not extend this time.
    pub fn lasts_ns(&self) -> i64 {
        self.lasts_ns
    }

    /// The end of the stream, if it has ended. Earlier slots may still be queued.
    pub fn end_ns(&self) -> Option<i64> {
        self.end_ns
    }

    /// Whether the stream has ended and nothing is queued.
    pub fn is_over(&self) -> bool {
        self.end_ns.is_some() && self.slots.is_empty()
    }

    /// Marks the consumer as ended: queued and later frames are dropped as late, and the producer never waits for room
    /// again.
    pub fn close(&mut self) {
        self.drain(DropReason::Late);
        self.closed = true;
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Drops all queued frames.
    pub fn drain(&mut self, reason: DropReason) {
        while self.counts.queued > 0 {
            self.drop_oldest(reason);
        }
        self.slots.clear();
    }

    /// Empties the slots of the frames that `is_lost` selects and returns their number.
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
        // Rotates the ring once and joins neighbouring runs of empty slots.
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

    pub fn counts(&self) -> RingCounts {
        self.counts
    }

    /// Replaces the oldest frame by an empty slot, joined with the empty slots around it.
    fn drop_oldest(&mut self, reason: DropReason) {
        let Some(at) = self.slots.iter().position(|slot| matches!(slot, StreamSlot::Frame { .. })) else { return };
        let pts_ns = self.slots[at].first_ns();
        self.slots[at] = StreamSlot::empty(pts_ns);
        self.counts.queued -= 1;
        self.counts.dropped[reason as usize] += 1;
        // The oldest frame has at most one run before it and one after it.
        if let Some(StreamSlot::Empty { .. }) = self.slots.get(at + 1)
            && let Some(after) = self.slots.remove(at + 1)
        {
            self.slots[at].join(after);
        }
        if at > 0
            && let StreamSlot::Empty { .. } = self.slots[at - 1]
            && let Some(own) = self.slots.remove(at)
        {
            self.slots[at - 1].join(own);
        }
    }
}
