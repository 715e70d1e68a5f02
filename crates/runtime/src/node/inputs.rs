//! The inputs of a node: the lead, and the other inputs, which supply a frame for each frame of the lead.
//!
//! This module implements the input rule: what has arrived, what is certain, and which frame each input supplies for a
//! frame of the lead. The node fires when the rule allows it.
//!
//! **Ends.** A source's stream ends at the time of its last slot. A handler's stream ends with its lead. With
//! `until=shortest`, a handler's stream ends at the earliest end of the lead and the other inputs; a join then passes
//! on the lead's frames up to and including that time. Streams announce how long they last in addition to their
//! watermarks, because a watermark may be later than the end of its stream. If an input may end a join, the join waits
//! until that input has ended or is known to last as long as the lead. So lossless graphs give the same frames in any
//! order of threads, fused or not (`tests/endings.rs` models the rule). A node whose consumers have all ended ends too,
//! so that an endless side input does not keep a run alive.
//!
//! Invariants: an input supplies its newest frame up to the lead's time, never a later frame. An input that has ended
//! keeps its last frame.

use vramp_plan::{Policy, Space};

use crate::frame::{Frame, FrameContent};
use crate::link::LinkReceiver;
use crate::link::ring::{BEFORE_ALL, DropReason, SlotRing, StreamSlot};
#[cfg(not(target_arch = "wasm32"))]
use crate::node::succession::KeptInput;

pub(crate) struct Inputs {
    ports: Vec<Option<Port>>,
    lead: usize,
    /// Whether the end of any input but the lead ends the node.
    ends_early: bool,
}

/// One input with its policy and its newest frame.
struct Port {
    link: LinkReceiver<Frame>,
    policy: Policy,
    newest: Option<Frame>,
    /// Whether the newest frame has been supplied before.
    seen: bool,
    /// Whether a device loss took the newest frame, and no other frame has come since.
    lost: bool,
    /// Whether the node ends when this input ends (`until=shortest`).
    ends_node: bool,
}

impl Port {
    /// Whether the node has to wait until this input is certain.
    fn is_awaited(&self) -> bool {
        self.policy == Policy::Lossless
    }
}

/// What is known of the lead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeadView {
    /// The time of the lead's oldest slot.
    pub(crate) head_ns: Option<i64>,
    pub(crate) known: Watermark,
    /// Whether the stream has ended and nothing is queued.
    pub(crate) over: bool,
    /// Whether the stream has ended; frames may still be queued.
    pub(crate) has_ended: bool,
}

/// What is known of a stream's future.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Watermark {
    /// Nothing up to this time will come any more.
    pub(crate) certain_ns: Option<i64>,
    /// The stream lasts at least until this time, which is never later than `certain_ns`. `until=shortest` waits for
    /// this time.
    pub(crate) lasts_ns: i64,
}

impl Watermark {
    pub(crate) const NOTHING: Watermark = Watermark { certain_ns: None, lasts_ns: BEFORE_ALL };

    /// The stream has reached this time.
    pub(crate) fn at(pts_ns: i64) -> Watermark {
        Watermark { certain_ns: Some(pts_ns), lasts_ns: pts_ns }
    }

    /// This watermark, limited to a time.
    pub(crate) fn up_to(self, pts_ns: i64) -> Watermark {
        Watermark { certain_ns: Some(pts_ns).min(self.certain_ns), lasts_ns: pts_ns.min(self.lasts_ns) }
    }
}

impl LeadView {
    fn of(ring: &SlotRing<Frame>) -> LeadView {
        let known = Watermark { certain_ns: ring.certain_ns(), lasts_ns: ring.lasts_ns() };
        LeadView {
            head_ns: ring.head().map(StreamSlot::first_ns),
            known,
            over: ring.is_over(),
            has_ended: ring.end_ns().is_some(),
        }
    }

    /// What a node that follows this lead can announce: nothing will come before the oldest slot.
    pub(crate) fn before_head(&self) -> Watermark {
        self.head_ns.map_or(self.known, |at| self.known.up_to(at - 1))
    }

    /// Whether every frame up to this time has been taken and none will come.
    fn is_past(&self, end_ns: i64) -> bool {
        let next_ns = self.head_ns.or(self.known.certain_ns.map(|certain| certain.saturating_add(1)));
        self.over || next_ns.is_some_and(|next| next > end_ns)
    }
}

impl Inputs {
    pub(crate) fn new(count: usize) -> Inputs {
        Inputs { ports: (0..count).map(|_| None).collect(), lead: 0, ends_early: false }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    pub(crate) fn lead(&self) -> usize {
        self.lead
    }

    /// Selects the lead; `None` if a clock leads.
    pub(crate) fn follow(&mut self, input: Option<usize>) {
        self.lead = input.unwrap_or(usize::MAX);
    }

    pub(crate) fn connect(&mut self, input: usize, link: LinkReceiver<Frame>, policy: Policy, ends_node: bool) {
        self.ends_early |= ends_node && input != self.lead;
        self.ports[input] = Some(Port { link, policy, newest: None, seen: false, lost: false, ends_node });
    }

    /// The state of the lead; `None` if the lead is not linked.
    pub(crate) fn look(&self) -> Option<LeadView> {
        let lead = self.ports.get(self.lead)?.as_ref()?;
        Some(lead.link.look(LeadView::of))
    }

    /// Takes the lead's oldest slot, or returns the state of the lead if it has no slot; `None` if the lead is not
    /// linked.
    pub(crate) fn take_or_look(&self) -> Option<Result<StreamSlot<Frame>, LeadView>> {
        let lead = self.ports.get(self.lead)?.as_ref()?;
        Some(lead.link.take_or(LeadView::of))
    }

    /// Takes the lead's oldest slot.
    pub(crate) fn take_lead(&self) -> Option<StreamSlot<Frame>> {
        self.ports.get(self.lead)?.as_ref()?.link.take()
    }

    /// Takes everything up to this time from the inputs other than the lead and keeps the newest frame of each. Returns
    /// whether any of these frames came or was lost.
    pub(crate) fn advance(&mut self, passed_ns: Option<i64>) -> bool {
        let Some(passed) = passed_ns else { return false };
        let mut moved = false;
        for port in self.others_mut() {
            let (newest, lost) = port.link.take_up_to(passed);
            if newest.is_some() {
                (port.newest, port.seen, port.lost) = (newest, false, false);
                moved = true;
            }
            if lost {
                (port.newest, port.lost) = (None, true);
                moved = true;
            }
        }
        moved
    }

    /// Whether every input but the lead is certain at this time. Only lossless inputs are waited for. If an input may
    /// end the node, it must also be known whether that input lasts until this time.
    pub(crate) fn are_certain(&self, at_ns: i64) -> bool {
        let certain = |port: &Port| match (port.is_awaited(), port.ends_node) {
            (false, _) => true,
            (true, false) => port.link.look(|ring| ring.is_certain(at_ns)),
            (true, true) => port.link.look(|ring| ring.end_ns().is_some() || ring.lasts_ns() >= at_ns),
        };
        self.others().all(certain)
    }

    /// The end of the node's stream, once this end is known and the lead has reached it: the earliest end of the lead
    /// and of the inputs that end the node.
    ///
    /// An end is known when each of the other streams is known to last at least until that end, so that the order in
    /// which ends are noticed makes no difference.
    pub(crate) fn end_ns(&self, lead: &LeadView) -> Option<i64> {
        if !self.ends_early && !lead.over {
            return None;
        }
        let (mut earliest, mut least) = (None, i64::MAX);
        let lead_port = self.ports.get(self.lead).and_then(Option::as_ref);
        let leads = |port: &Port| lead_port.is_some_and(|lead| std::ptr::eq(lead, port));
        for port in lead_port.into_iter().chain(self.ending()) {
            // Both values are read under one lock: a stream that ends afterwards still counts as lasting as long as
            // announced.
            match port.link.look(|ring| ring.end_ns().ok_or(ring.lasts_ns())) {
                Ok(end_ns) => earliest = Some(earliest.map_or(end_ns, |other: i64| other.min(end_ns))),
                Err(lasts_ns) if port.is_awaited() || leads(port) => least = least.min(lasts_ns),
                Err(_) => {}
            }
        }
        earliest.filter(|end_ns| least >= *end_ns && lead.is_past(*end_ns))
    }

    /// For a node that a clock leads: the earliest end of the inputs that end the node, if that end is before this
    /// time. Called when all inputs are certain at this time.
    pub(crate) fn end_before(&self, at_ns: i64) -> Option<i64> {
        self.ending().filter_map(|port| port.link.look(SlotRing::end_ns)).min().filter(|end_ns| *end_ns < at_ns)
    }

    /// Limits a watermark of the lead by how long the inputs that end the node are known to last.
    pub(crate) fn limit(&self, known: Watermark) -> Watermark {
        if !self.ends_early {
            return known;
        }
        let lasts = |port: &Port| port.link.look(|ring| ring.end_ns().unwrap_or(ring.lasts_ns()));
        let least = self.ending().filter(|port| port.is_awaited()).map(lasts).min();
        Watermark { lasts_ns: least.map_or(known.lasts_ns, |least| least.min(known.lasts_ns)), ..known }
    }

    /// The inputs other than the lead that end the node.
    fn ending(&self) -> impl Iterator<Item = &Port> {
        self.others().filter(|port| port.ends_node)
    }

    /// Puts the newest frame of each input but the lead into the call. Returns how many of these frames were supplied
    /// before.
    pub(crate) fn supply(&mut self, given: &mut [Option<Frame>]) -> u64 {
        let (lead, mut repeats) = (self.lead, 0);
        for (at, port) in self.ports.iter_mut().enumerate().filter(|(at, _)| *at != lead) {
            let Some(port) = port else { continue };
            repeats += u64::from(port.seen && port.newest.is_some());
            port.seen = true;
            given[at].clone_from(&port.newest);
        }
        repeats
    }

    /// Whether a device loss took an input's newest frame: a result that is computed without it would be wrong.
    pub(crate) fn lack_one(&self) -> bool {
        self.others().any(|port| port.lost)
    }

    /// An input whose newest frame was lost with a device, and on which no other frame will come.
    pub(crate) fn lacks_for_good(&self) -> Option<usize> {
        let gone = |port: &Port| port.lost && port.link.look(SlotRing::is_over);
        self.ports.iter().position(|port| port.as_ref().is_some_and(gone))
    }

    /// Drops the frames that were on a lost device and returns how many of them were queued. An input that has lost the
    /// frame it supplies has no frame until another frame comes. The losses of queued frames are marked in their slots.
    pub(crate) fn lose(&mut self) -> u64 {
        let is_lost = |frame: &Frame| frame.space() == Space::Gpu;
        let lead = self.lead;
        let mut lost = 0;
        for (at, port) in self.ports.iter_mut().enumerate() {
            let Some(port) = port else { continue };
            lost += port.link.lose(DropReason::DeviceLost, is_lost);
            if port.newest.take_if(|newest| is_lost(newest)).is_some() && at != lead {
                port.lost = true;
            }
        }
        lost
    }

    /// The newest frames of all inputs but the lead, without data, which stay on the host.
    pub(crate) fn supplied(&mut self) -> impl Iterator<Item = &mut Frame> {
        let is_data = |frame: &Frame| matches!(frame.meta().content, FrameContent::Data { .. });
        self.others_mut().filter_map(|port| port.newest.as_mut()).filter(move |frame| !is_data(frame))
    }

    /// Takes out what an input holds; `None` if the input is not linked.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn take_kept(&mut self, at: usize) -> Option<KeptInput> {
        let port = self.ports.get_mut(at)?.as_mut()?;
        let waiting = std::iter::from_fn(|| port.link.take()).collect();
        Some(KeptInput::new(port.newest.take(), waiting))
    }

    /// Continues with what the same input of another engine held. Returns the slots for which the ring has no room.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn put_kept(
        &mut self,
        at: usize,
        newest: Option<Frame>,
        waiting: Vec<StreamSlot<Frame>>,
    ) -> Vec<StreamSlot<Frame>> {
        let Some(port) = self.ports.get_mut(at).and_then(Option::as_mut) else { return waiting };
        (port.newest, port.seen) = (newest, true);
        let mut waiting = waiting.into_iter();
        let full = waiting.by_ref().find_map(|slot| port.link.put_first(slot));
        full.into_iter().chain(waiting).collect()
    }

    /// Ends consumption, so that no producer waits for room at a node that has ended.
    pub(crate) fn close(&mut self) {
        for port in self.ports.iter_mut().flatten() {
            port.link.close();
            port.newest = None;
        }
    }

    /// Drops all queued frames.
    pub(crate) fn drain(&mut self, reason: DropReason) {
        for port in self.ports.iter_mut().flatten() {
            port.link.drain(reason);
            port.newest = None;
        }
    }

    fn others(&self) -> impl Iterator<Item = &Port> {
        self.ports.iter().enumerate().filter(|(at, _)| *at != self.lead).filter_map(|(_, port)| port.as_ref())
    }

    fn others_mut(&mut self) -> impl Iterator<Item = &mut Port> {
        let lead = self.lead;
        self.ports.iter_mut().enumerate().filter(move |(at, _)| *at != lead).filter_map(|(_, port)| port.as_mut())
    }
}
