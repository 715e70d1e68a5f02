//! Inputs of a node: the one that leads and those that supply.
//!
//! Owns the input rule: what is there, what is certain, which frame each input supplies to a lead frame.
//! Does not fire: the node does when the rule holds.
//!
//! Always: an input supplies its newest frame up to the lead's time, never one from behind it; an input that has ended
//! holds its last frame.

use vramp_plan::{Policy, Space};

use crate::frame::Frame;
use crate::link::LinkReceiver;
use crate::link::ring::{BEFORE_ALL, DropReason, SlotRing, StreamSlot};

/// The inputs of a node.
pub(crate) struct Inputs {
    ports: Vec<Option<Port>>,
    lead: usize,
    /// Whether any input but the lead ends the node.
    ends_early: bool,
}

/// An input with how it delivers and its newest frame.
struct Port {
    link: LinkReceiver<Frame>,
    policy: Policy,
    newest: Option<Frame>,
    /// Whether the newest frame has been supplied already.
    seen: bool,
    /// Whether the newest frame went with a device, and no other has come since.
    lost: bool,
    /// Whether the node ends when this input ends (`until=shortest`).
    ends_node: bool,
}

impl Port {
    /// Whether the rule has to wait for what this input knows.
    fn is_awaited(&self) -> bool {
        self.policy == Policy::Lossless
    }
}

/// What is known of the lead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeadView {
    /// The time of its oldest place.
    pub(crate) head_ns: Option<i64>,
    /// What is known of the stream.
    pub(crate) known: Watermark,
    pub(crate) over: bool,
}

/// What a stream is known to do: a watermark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Watermark {
    /// Up to when nothing more will come.
    pub(crate) certain_ns: Option<i64>,
    /// Up to when the stream lasts at least. What `until=shortest` waits for; never later than `certain_ns`.
    pub(crate) lasts_ns: i64,
}

impl Watermark {
    /// Nothing yet.
    pub(crate) const NOTHING: Watermark = Watermark { certain_ns: None, lasts_ns: BEFORE_ALL };

    /// The stream has come to this time.
    pub(crate) fn at(pts_ns: i64) -> Watermark {
        Watermark { certain_ns: Some(pts_ns), lasts_ns: pts_ns }
    }

    /// The same, up to this time only.
    pub(crate) fn up_to(self, pts_ns: i64) -> Watermark {
        Watermark { certain_ns: Some(pts_ns).min(self.certain_ns), lasts_ns: pts_ns.min(self.lasts_ns) }
    }
}

impl LeadView {
    fn of(ring: &SlotRing<Frame>) -> LeadView {
        let known = Watermark { certain_ns: ring.certain_ns(), lasts_ns: ring.lasts_ns() };
        LeadView { head_ns: ring.head().map(StreamSlot::first_ns), known, over: ring.is_over() }
    }

    /// What the node that follows it knows: nothing will come before the oldest place.
    pub(crate) fn before_head(&self) -> Watermark {
        self.head_ns.map_or(self.known, |at| self.known.up_to(at - 1))
    }

    /// Whether every frame up to this time has been taken, and none up to it will come.
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

    /// Follows this input; none of them where a clock leads.
    pub(crate) fn follow(&mut self, input: Option<usize>) {
        self.lead = input.unwrap_or(usize::MAX);
    }

    pub(crate) fn connect(&mut self, input: usize, link: LinkReceiver<Frame>, policy: Policy, ends_node: bool) {
        self.ends_early |= ends_node && input != self.lead;
        self.ports[input] = Some(Port { link, policy, newest: None, seen: false, lost: false, ends_node });
    }

    /// Looks at the lead; none where it is not linked.
    pub(crate) fn look(&self) -> Option<LeadView> {
        let lead = self.ports.get(self.lead)?.as_ref()?;
        Some(lead.link.look(LeadView::of))
    }

    /// Takes the lead's oldest place, or looks at it where there is none; none where it is not linked.
    pub(crate) fn take_or_look(&self) -> Option<Result<StreamSlot<Frame>, LeadView>> {
        let lead = self.ports.get(self.lead)?.as_ref()?;
        Some(lead.link.take_or(LeadView::of))
    }

    /// Takes the lead's oldest place.
    pub(crate) fn take_lead(&self) -> Option<StreamSlot<Frame>> {
        self.ports.get(self.lead)?.as_ref()?.link.take()
    }

    /// Takes from the other inputs what lies behind the lead: of that, only the newest frame counts.
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

    /// Whether every other input is certain at this time: over a lossless link it waits, over others it takes what is
    /// there. Of an input that may end the node, it has to be certain too whether it lasts that long.
    pub(crate) fn are_certain(&self, at_ns: i64) -> bool {
        let certain = |port: &Port| match (port.is_awaited(), port.ends_node) {
            (false, _) => true,
            (true, false) => port.link.look(|ring| ring.is_certain(at_ns)),
            (true, true) => port.link.look(|ring| ring.end_ns().is_some() || ring.lasts_ns() >= at_ns),
        };
        self.others().all(certain)
    }

    /// When the node ends, once that is known and the lead has come that far: at the earliest end of its lead and of the
    /// inputs that end it.
    ///
    /// An end is known when it is not later than what every other stream that counts is known to last, so that which of
    /// them was heard of first makes no difference.
    pub(crate) fn end_ns(&self, lead: &LeadView) -> Option<i64> {
        if !self.ends_early && !lead.over {
            return None;
        }
        let (mut earliest, mut least) = (None, i64::MAX);
        let lead_port = self.ports.get(self.lead).and_then(Option::as_ref);
        let leads = |port: &Port| lead_port.is_some_and(|lead| std::ptr::eq(lead, port));
        for port in lead_port.into_iter().chain(self.ending()) {
            // One look: what ends in between counts as lasting as long as it did before.
            match port.link.look(|ring| ring.end_ns().ok_or(ring.lasts_ns())) {
                Ok(end_ns) => earliest = Some(earliest.map_or(end_ns, |other: i64| other.min(end_ns))),
                Err(lasts_ns) if port.is_awaited() || leads(port) => least = least.min(lasts_ns),
                Err(_) => {}
            }
        }
        earliest.filter(|end_ns| least >= *end_ns && lead.is_past(*end_ns))
    }

    /// When an input ends a node that is led by a clock, if that is before this time. Asked when all are certain then.
    pub(crate) fn end_before(&self, at_ns: i64) -> Option<i64> {
        self.ending().filter_map(|port| port.link.look(SlotRing::end_ns)).min().filter(|end_ns| *end_ns < at_ns)
    }

    /// Up to when the inputs that end the node are known to last, of a time up to which the lead does.
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

    /// Puts each other input's newest frame where the handler finds it; counts those that were supplied before.
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

    /// Whether an input's newest frame went with a device: what is made without it would be wrong.
    pub(crate) fn lack_one(&self) -> bool {
        self.others().any(|port| port.lost)
    }

    /// An input whose newest frame went with a device, and that will bring no other.
    pub(crate) fn lacks_for_good(&self) -> Option<usize> {
        let gone = |port: &Port| port.lost && port.link.look(SlotRing::is_over);
        self.ports.iter().position(|port| port.as_ref().is_some_and(gone))
    }

    /// Gives up frames that were on a device that is gone; says how many of those waited. An input that has lost the
    /// frame it supplies lacks one until another comes; where later ones were lost, their places will say so.
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

    /// The frames that other inputs than the lead supply.
    pub(crate) fn supplied(&mut self) -> impl Iterator<Item = &mut Frame> {
        self.others_mut().filter_map(|port| port.newest.as_mut())
    }

    /// Says that nothing will be taken any more: nobody must wait for room in front of a node that has ended.
    pub(crate) fn close(&mut self) {
        for port in self.ports.iter_mut().flatten() {
            port.link.close();
            port.newest = None;
        }
    }

    /// Drops what waits.
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
