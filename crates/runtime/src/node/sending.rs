//! How places leave a node: at once, after a delay, in the end.
//!
//! Owns what is held back, what is due, and what is told to those behind.
//! Does not make frames: what is sent here has been made.
//!
//! Always: places leave in the order they came; nothing is sent without room; what is known is told once.

use crate::frame::Frame;
use crate::link::Output;
use crate::ring::{Sent, Slot};

use super::{Fired, Node};

impl Node {
    /// Sends a slot, or holds it back and sends what has been held long enough.
    pub(super) fn hold_or_send(&mut self, slot: Slot<Frame>) {
        if self.delay == 0 && self.held.is_empty() {
            self.send_everywhere(slot);
            return;
        }
        self.count_held(&slot, true);
        self.held.push(slot);
        self.release_due();
    }

    /// Whether the oldest place that is held has been held long enough, and is there.
    pub(super) fn is_due(&self) -> bool {
        self.held.is_there() && self.held.places() > self.delay as u64
    }

    /// Sends what has been held long enough, as far as there is room: a run of empty places can make several frames
    /// due at once.
    pub(super) fn release_due(&mut self) -> bool {
        let mut moved = false;
        while self.is_due() && self.outputs.iter().flatten().all(Output::has_room) {
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
    pub(super) fn count_held(&mut self, slot: &Slot<Frame>, held: bool) {
        if let Slot::Frame { .. } = slot {
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

    pub(super) fn send_everywhere(&self, slot: Slot<Frame>) {
        if let Some(last) = self.outputs.len().checked_sub(1) {
            (0..last).for_each(|output| self.send(output, slot.clone()));
            self.send(last, slot);
        }
    }

    /// Sends a slot on all links of an output; the last gets this very hold on the frame, so that a sole consumer is
    /// its sole holder.
    pub(super) fn send(&self, output: usize, slot: Slot<Frame>) {
        let Some((last, others)) = self.outputs[output].split_last() else { return };
        let full = |sent: Sent<Frame>| matches!(sent, Sent::Full(_));
        for link in others {
            let refused = full(link.send(slot.clone()));
            debug_assert!(!refused, "{} fired without room", self.name());
        }
        let refused = full(last.send(slot));
        debug_assert!(!refused, "{} fired without room", self.name());
    }

    /// Says what is known: nothing will come before the oldest place that is held, or up to this time.
    pub(super) fn pass_on(&mut self, known_ns: Option<i64>) -> bool {
        let known_ns = self.held.first_ns().map_or(known_ns, |oldest| Some(oldest - 1).min(known_ns));
        let news = known_ns > self.told_ns;
        if let (true, Some(known)) = (news, known_ns) {
            self.told_ns = known_ns;
            self.outputs.iter().flatten().for_each(|link| link.watermark(known));
        }
        news
    }

    /// Whether every link has room for one more frame, those included that are awaited.
    pub(crate) fn has_room(&self) -> bool {
        self.outputs.iter().flatten().all(|link| link.room() > self.held.awaited())
    }

    /// Sends what is held, one place at a time, and then ends.
    pub(super) fn flush(&mut self) -> Fired {
        if self.held.is_empty() {
            // How far it went is told before its end: `until=shortest` behind it goes by that.
            if let Some(lead) = self.inputs.look() {
                self.pass_on(lead.known_ns);
            }
            return self.end();
        }
        if !self.held.is_there() || !self.outputs.iter().flatten().all(Output::has_room) {
            return Fired::Stuck;
        }
        self.release();
        self.stats.show(&self.counts);
        Fired::Moved
    }

    pub(super) fn end(&mut self) -> Fired {
        self.forget_call();
        self.outputs.iter().flatten().for_each(Output::end);
        self.inputs.close();
        self.over = true;
        self.stats.show(&self.counts);
        Fired::Over
    }
}
