//! How places leave a node: at once, after a delay, in the end.
//!
//! Owns what is held back, what is due, and what is told to those behind.
//! Does not make frames: what is sent here has been made.
//!
//! Always: places leave in the order they came; nothing is sent without room; what is known is told once.

use crate::frame::{Frame, Meta};
use crate::link::LinkSender;
use crate::link::ring::{SendResult, StreamSlot};
use crate::node::inputs::Watermark;

use super::{Fired, Node};

impl Node {
    /// Sends a slot, or holds it back and sends what has been held long enough.
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

    /// Holds a slot back and sends the picture of `delay` places before under its number and time. A place without a frame
    /// has no time to lend, so the picture that is due there is dropped.
    fn shift(&mut self, slot: StreamSlot<Frame>) {
        let (first_ns, last_ns) = (slot.first_ns(), slot.last_ns());
        let now = match &slot {
            StreamSlot::Frame { frame, .. } => Some(*frame.meta()),
            StreamSlot::Empty { .. } => None,
        };
        let (mut count, mut lost) = (0, matches!(slot, StreamSlot::Empty { lost: true, .. }));
        self.count_held(&slot, true);
        self.held.push(slot);
        while self.held.places() > self.delay as u64
            && let Some(older) = self.held.pop()
        {
            match (older, now) {
                (StreamSlot::Frame { mut frame, .. }, Some(now)) => {
                    self.counts.held -= 1;
                    self.counts.emitted += 1;
                    let own = *frame.meta();
                    frame.set_meta(Meta { pts_ns: now.pts_ns, number: now.number, birth: now.birth, ..own });
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

    /// Drops what is held: no place comes any more under which it could be sent, or no consumer is left.
    fn drop_held(&mut self) {
        while let Some(slot) = self.held.pop() {
            if let StreamSlot::Frame { .. } = slot {
                self.counts.held -= 1;
                self.counts.filtered += 1;
            }
        }
    }

    /// Whether the oldest place that is held has been held long enough, and is there.
    pub(super) fn is_due(&self) -> bool {
        self.held.is_there() && self.held.places() > self.delay as u64
    }

    /// Sends what has been held long enough, as far as there is room: a run of empty places can make several frames
    /// due at once.
    pub(super) fn release_due(&mut self) -> bool {
        let mut moved = false;
        while self.is_due() && self.outputs.iter().flatten().all(LinkSender::has_room) {
            self.release();
            moved = true;
        }
        moved
    }

    /// Sends the oldest place that is held.
    pub(super) fn release(&mut self) {
        let Some(slot) = self.held.pop() else { return };
        self.count_held(&slot, false);
        self.send_everywhere(slot);
    }

    /// A frame that is held counts as held, not as emitted, until it goes.
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

    /// Whether taking the next place from the lead makes this node send one, now or later.
    pub(super) fn sends_next(&self) -> bool {
        self.places.is_multiple_of(self.every) && self.held.places() >= self.delay as u64
    }

    pub(super) fn send_everywhere(&self, slot: StreamSlot<Frame>) {
        if let Some(last) = self.outputs.len().checked_sub(1) {
            (0..last).for_each(|output| self.send(output, slot.clone()));
            self.send(last, slot);
        }
    }

    /// Sends a slot on all links of an output; the last gets this very hold on the frame, so that a sole consumer is
    /// its sole holder.
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

    /// Says what is known: nothing will come before the oldest frame that is held, or up to this time.
    pub(super) fn pass_on(&mut self, known: Watermark) -> bool {
        let mut known = self.inputs.limit(known);
        if let Some(oldest) = self.held.first_frame_ns().filter(|_| !self.shifts) {
            known = known.up_to(oldest - 1);
        }
        let told = Watermark {
            certain_ns: self.told.certain_ns.max(known.certain_ns),
            lasts_ns: self.told.lasts_ns.max(known.lasts_ns),
        };
        let news = told != self.told;
        self.told = told;
        if let (true, Some(certain_ns)) = (news, told.certain_ns) {
            self.outputs.iter().flatten().for_each(|link| link.watermark(certain_ns, told.lasts_ns));
        }
        news
    }

    /// Whether every link has room for one more frame, those included that are awaited.
    pub(crate) fn has_room(&self) -> bool {
        self.outputs.iter().flatten().all(|link| link.room() > self.held.awaited())
    }

    /// Sends what is held and then ends, as a stream that lasted until this time.
    pub(super) fn finish(&mut self, end_ns: i64) -> Fired {
        self.end_ns = end_ns;
        self.flush()
    }

    /// Sends what is held, one place at a time, and then ends.
    pub(super) fn flush(&mut self) -> Fired {
        if self.shifts {
            self.drop_held();
        }
        if self.held.is_empty() {
            return self.end(self.end_ns);
        }
        if !self.held.is_there() || !self.outputs.iter().flatten().all(LinkSender::has_room) {
            return Fired::Stuck;
        }
        self.release();
        self.stats.show(&self.counts);
        Fired::Moved
    }

    pub(super) fn end(&mut self, end_ns: i64) -> Fired {
        self.forget_call();
        self.drop_held();
        self.outputs.iter().flatten().for_each(|link| link.end(end_ns));
        self.inputs.close();
        self.over = true;
        self.stats.show(&self.counts);
        Fired::Over
    }
}
