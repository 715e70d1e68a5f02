//! How slots leave a node: at once, after a delay, or at the end of the stream; and the watermarks sent with them.
//!
//! The last link of an output receives the producer's own reference to a frame. A single consumer is therefore the only
//! holder and edits in place. If several consumers share a frame, the pool makes a copy for a consumer that edits, and
//! counts the copy.
//!
//! Invariants: slots leave in the order they came. Nothing is sent without room. A watermark is sent only if it has
//! changed.

use crate::frame::Frame;
use crate::link::LinkSender;
use crate::link::ring::{SendResult, StreamSlot};
use crate::node::inputs::Watermark;

use super::{Fired, Node};

impl Node {
    /// Sends a slot, or holds it back and sends the slots that have been held long enough.
    pub(super) fn hold_or_send(&mut self, slot: StreamSlot<Frame>) {
        if self.delay == 0 && self.held.is_empty() {
            self.send_everywhere(slot);
        } else if self.shifts {
            self.shift(slot);
        } else {
            self.count_held(&slot, true);
            self.held.push(slot);
            self.release_due();
        }
    }

    /// Holds a slot back and sends the frame that came `delay` slots earlier, under the number and time of the new
    /// slot. If the new slot is empty, it has no number to give to that frame, so the frame is dropped.
    fn shift(&mut self, slot: StreamSlot<Frame>) {
        let (first_ns, last_ns) = (slot.first_ns(), slot.last_ns());
        let now = match &slot {
            StreamSlot::Frame { frame, .. } => Some(*frame.meta()),
            StreamSlot::Empty { .. } => None,
        };
        let (mut count, mut lost) = (0, matches!(slot, StreamSlot::Empty { lost: true, .. }));
        self.count_held(&slot, true);
        self.held.push(slot);
        while self.held.slot_count() > self.delay as u64
            && let Some(older) = self.held.pop()
        {
            match (older, now) {
                (StreamSlot::Frame { mut frame, .. }, Some(now)) => {
                    self.counts.held -= 1;
                    self.counts.emitted += 1;
                    frame.stamp(now.number, now.pts_ns, now.birth);
                    self.send_everywhere(StreamSlot::Frame { pts_ns: now.pts_ns, frame });
                    return;
                }
                (StreamSlot::Frame { .. }, None) => {
                    self.counts.held -= 1;
                    self.counts.filtered += 1;
                    count += 1;
                }
                (StreamSlot::Empty { count: more, lost: also, .. }, _) => {
                    count += more;
                    lost |= also;
                }
            }
        }
        if count > 0 {
            self.send_everywhere(StreamSlot::Empty { count, first_ns, last_ns, lost });
        }
    }

    /// Drops the held slots, because no further slot will come whose number and time they could take, or because no
    /// consumer is left.
    fn drop_held(&mut self) {
        while let Some(slot) = self.held.pop() {
            if let StreamSlot::Frame { .. } = slot {
                self.counts.held -= 1;
                self.counts.filtered += 1;
            }
        }
    }

    /// Whether the oldest held slot has been held long enough and is complete.
    pub(super) fn is_due(&self) -> bool {
        self.held.is_complete() && self.held.slot_count() > self.delay as u64
    }

    /// Sends the slots that have been held long enough, as far as there is room. A run of empty slots can make several
    /// frames due at once.
    pub(super) fn release_due(&mut self) -> bool {
        let mut moved = false;
        while self.is_due() && self.outputs.iter().flatten().all(LinkSender::has_room) {
            self.release();
            moved = true;
        }
        moved
    }

    /// Sends the oldest held slot.
    pub(super) fn release(&mut self) {
        let Some(slot) = self.held.pop() else { return };
        self.count_held(&slot, false);
        self.send_everywhere(slot);
    }

    /// A held frame counts as held, not as emitted, until it leaves.
    pub(super) fn count_held(&mut self, slot: &StreamSlot<Frame>, held: bool) {
        if let StreamSlot::Frame { .. } = slot {
            let (from, to) = if held {
                (&mut self.counts.emitted, &mut self.counts.held)
            } else {
                (&mut self.counts.held, &mut self.counts.emitted)
            };
            *from -= 1;
            *to += 1;
        }
    }

    /// Whether taking the lead's next slot makes this node send a slot, now or later.
    pub(super) fn sends_next(&self) -> bool {
        self.slots.is_multiple_of(self.every) && self.held.slot_count() >= self.delay as u64
    }

    pub(super) fn send_everywhere(&self, slot: StreamSlot<Frame>) {
        if let Some(last) = self.outputs.len().checked_sub(1) {
            (0..last).for_each(|output| self.send(output, slot.clone()));
            self.send(last, slot);
        }
    }

    /// Sends a slot on all links of an output. The last link receives the original reference, so that a single consumer
    /// is the sole holder.
    pub(super) fn send(&self, output: usize, slot: StreamSlot<Frame>) {
        let Some((last, others)) = self.outputs[output].split_last() else { return };
        let full = |sent: SendResult<Frame>| matches!(sent, SendResult::Full(_));
        for link in others {
            let refused = full(link.send(slot.clone()));
            debug_assert!(!refused, "{} fired without room", self.name());
        }
        let refused = full(last.send(slot));
        debug_assert!(!refused, "{} fired without room", self.name());
    }

    /// Sends a watermark, limited by the oldest held frame. Returns whether the watermark has changed.
    pub(super) fn pass_on(&mut self, known: Watermark) -> bool {
        let mut known = self.inputs.limit(known);
        if let Some(oldest) = self.held.first_frame_ns().filter(|_| !self.shifts) {
            known = known.up_to(oldest - 1);
        }
        let announced = Watermark {
            certain_ns: self.announced.certain_ns.max(known.certain_ns),
            lasts_ns: self.announced.lasts_ns.max(known.lasts_ns),
        };
        let news = announced != self.announced;
        self.announced = announced;
        if let (true, Some(certain_ns)) = (news, announced.certain_ns) {
            self.outputs.iter().flatten().for_each(|link| link.watermark(certain_ns, announced.lasts_ns));
        }
        news
    }

    /// Whether every link has room for one more frame besides the awaited frames.
    pub(crate) fn has_room(&self) -> bool {
        self.outputs.iter().flatten().all(|link| link.room() > self.held.awaited())
    }

    /// Sends the held slots and then ends the stream at this time.
    pub(super) fn finish(&mut self, end_ns: i64) -> Fired {
        self.end_ns = end_ns;
        self.flush()
    }

    /// Sends one held slot, or ends the stream if none is left.
    pub(super) fn flush(&mut self) -> Fired {
        if self.shifts {
            self.drop_held();
        }
        if self.held.is_empty() {
            return self.end(self.end_ns);
        }
        if !self.held.is_complete() || !self.outputs.iter().flatten().all(LinkSender::has_room) {
            return Fired::Stuck;
        }
        self.release();
        self.stats.show(&self.counts);
        Fired::Moved
    }

    /// Tells the handler that its stream has ended.
    pub(crate) fn announce_end(&mut self) {
        self.handler.ended();
    }

    pub(super) fn end(&mut self, end_ns: i64) -> Fired {
        self.forget_call();
        self.drop_held();
        if let Some(mark) = &self.mark {
            mark.end(self.last_ns());
        }
        self.outputs.iter().flatten().for_each(|link| link.end(end_ns));
        self.inputs.close();
        self.over = true;
        self.stats.show(&self.counts);
        Fired::Over
    }
}
