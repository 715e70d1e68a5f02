//! Inputs of a node: the one that leads and those that supply.
//!
//! Owns the input rule: what is there, what is certain, which frame each input supplies to a lead frame.
//! Does not fire: the node does when the rule holds.
//!
//! Always: an input supplies its newest frame up to the lead's time, never one from behind it; an input that has ended
//! holds its last frame.

use vramp_plan::{Policy, Space};

use crate::frame::Frame;
use crate::link::Input;
use crate::ring::{DropReason, Ring, Slot};

/// The inputs of a node.
pub(crate) struct Inputs {
    ports: Vec<Option<Port>>,
    lead: usize,
}

/// An input with how it delivers and its newest frame.
struct Port {
    link: Input<Frame>,
    policy: Policy,
    newest: Option<Frame>,
    /// Whether the newest frame has been supplied already.
    seen: bool,
    /// Whether the newest frame went with a device, and no other has come since.
    lost: bool,
}

/// What is known of the lead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LeadView {
    /// The time of its oldest place.
    pub(crate) head_ns: Option<i64>,
    /// Up to when nothing more will come.
    pub(crate) known_ns: Option<i64>,
    pub(crate) over: bool,
}

impl LeadView {
    fn of(ring: &Ring<Frame>) -> LeadView {
        LeadView { head_ns: ring.head().map(Slot::first_ns), known_ns: ring.certain_ns(), over: ring.is_over() }
    }
}

impl Inputs {
    pub(crate) fn new(count: usize) -> Inputs {
        Inputs { ports: (0..count).map(|_| None).collect(), lead: 0 }
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

    pub(crate) fn connect(&mut self, input: usize, link: Input<Frame>, policy: Policy) {
        self.ports[input] = Some(Port { link, policy, newest: None, seen: false, lost: false });
    }

    /// Looks at the lead; none where it is not linked.
    pub(crate) fn look(&self) -> Option<LeadView> {
        let lead = self.ports.get(self.lead)?.as_ref()?;
        Some(lead.link.look(LeadView::of))
    }

    /// Takes the lead's oldest place, or looks at it where there is none; none where it is not linked.
    pub(crate) fn take_or_look(&self) -> Option<Result<Slot<Frame>, LeadView>> {
        let lead = self.ports.get(self.lead)?.as_ref()?;
        Some(lead.link.take_or(LeadView::of))
    }

    /// Takes the lead's oldest place.
    pub(crate) fn take_lead(&self) -> Option<Slot<Frame>> {
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
    /// there.
    pub(crate) fn are_certain(&self, at_ns: i64) -> bool {
        self.others().all(|port| port.policy != Policy::Lossless || port.link.look(|ring| ring.is_certain(at_ns)))
    }

    /// Whether an input other than the lead has ended before this time, so that it could only repeat itself.
    pub(crate) fn another_ended_before(&self, at_ns: i64) -> bool {
        let ended = |ring: &Ring<Frame>| ring.is_over() && ring.certain_ns().is_none_or(|last| last < at_ns);
        self.others().any(|port| port.link.look(ended))
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
        let gone = |port: &Port| port.lost && port.link.look(Ring::is_over);
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
