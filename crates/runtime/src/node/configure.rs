//! Construction of a node: its handler, links, lead, ends, delay and limits.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use vramp_plan::{OnError, Policy, Size};

use crate::clock::Clock;
use crate::engine::barrier::{Barrier, SourceMark};
use crate::failure::NodeMember;
use crate::frame::notes::NewNotes;
use crate::frame::{Birth, Frame};
#[cfg(not(target_arch = "wasm32"))]
use crate::handler::Part;
use crate::handler::{FrameHandler, Now};
use crate::link::ring::BEFORE_ALL;
use crate::link::{LinkReceiver, LinkSender};
use crate::node::delay_line::DelayLine;
use crate::node::inputs::{Inputs, Watermark};
use crate::node::pace::SourcePace;
use crate::node::presenting::Gate;
use crate::observe::monitor::{Measuring, NodeCounts, NodeStats};

use super::{Node, Replan};

impl Node {
    /// A node around one handler. The first input leads.
    pub fn new(name: impl Into<String>, handler: Box<dyn FrameHandler>, inputs: usize, outputs: usize) -> Node {
        Node::of(vec![NodeMember::named(name)], handler, inputs, outputs)
    }

    /// The parts of each member, if the node is a fused unit.
    #[cfg(not(target_arch = "wasm32"))]
    pub(crate) fn parts(&self) -> Option<Vec<Vec<Part>>> {
        self.handler.parts()
    }

    /// A node of several handlers that run as one.
    pub fn of(members: Vec<NodeMember>, handler: Box<dyn FrameHandler>, inputs: usize, outputs: usize) -> Node {
        let retries = members.iter().any(|member| member.on_error == OnError::Retry);
        let count = members.len();
        Node {
            members,
            handler,
            inputs: Inputs::new(inputs),
            outputs: (0..outputs).map(|_| Vec::new()).collect(),
            ends_with: vec![false; inputs],
            input_of: vec![0; inputs],
            clock: None,
            pace: SourcePace::default(),
            is_gated: false,
            gate: Gate::default(),
            born: None,
            planned: None,
            limit: u64::MAX,
            taken_before: 0,
            pauses: Arc::default(),
            barrier: Arc::default(),
            mark: None,
            stamps: false,
            delay: 0,
            shifts: false,
            every: 1,
            slots: 0,
            held: DelayLine::default(),
            sunk_ns: None,
            before_ns: None,
            announced: Watermark::NOTHING,
            end_ns: BEFORE_ALL,
            given: vec![None; inputs],
            made: vec![None; outputs],
            new_notes: NewNotes::default(),
            later_notes: None,
            services: None,
            supplied_again: 0,
            counts: NodeCounts::default(),
            stats: Arc::new(NodeStats::of(count)),
            last: Now { number: 0, pts_ns: 0, delta_ns: 0, birth: Birth::default() },
            is_simple: inputs == 1,
            retries,
            enters_device: false,
            measuring: Measuring::default(),
            ending: false,
            reported: vec![false; count],
            started: false,
            over: false,
            memory: super::short::NodeMemory::default(),
            changes: super::changes::NodeChanges::default(),
            #[cfg(not(target_arch = "wasm32"))]
            labels: Vec::new(),
        }
    }

    /// Selects the lead input.
    #[must_use]
    pub fn lead(mut self, input: usize) -> Node {
        self.inputs.follow(Some(input));
        self
    }

    /// Lets the end of this input end the node, as the end of the lead does (`until=shortest`). Must be called before
    /// the input is connected.
    #[must_use]
    pub fn ends_with(mut self, input: usize) -> Node {
        self.ends_with[input] = true;
        self
    }

    /// Sets the member that each input belongs to; by default, all inputs belong to the first member.
    #[must_use]
    pub fn input_of(mut self, members: Vec<usize>) -> Node {
        self.input_of = members;
        self
    }

    /// Sets the `on-error` policy of all members.
    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> Node {
        self.members.iter_mut().for_each(|member| member.on_error = on_error);
        self.retries = on_error == OnError::Retry;
        self
    }

    /// Makes the node a source that fires by this clock.
    #[must_use]
    pub fn clock(mut self, clock: Clock) -> Node {
        self.clock = Some(clock);
        self.inputs.follow(None);
        self.is_simple = false;
        self
    }

    /// Ends a source after this many frames.
    #[must_use]
    pub fn limit(mut self, frames: Option<u64>) -> Node {
        self.limit = frames.unwrap_or(u64::MAX);
        self
    }

    /// Lets a source end as soon as this flag is set, or pause if there is a barrier, which `mark` tells.
    #[must_use]
    pub(crate) fn pausing(mut self, pauses: Arc<AtomicBool>, barrier: &Arc<Barrier>, mark: &Arc<SourceMark>) -> Node {
        (self.pauses, self.barrier, self.mark) = (pauses, Arc::clone(barrier), Some(Arc::clone(mark)));
        self
    }

    /// Gives the source's frames planned times instead of measured times, so that a run can be repeated exactly.
    #[must_use]
    pub fn nominal(mut self) -> Node {
        self.pace.nominal = true;
        self
    }

    /// Sets the planned frame size and the function to call when the size changes.
    #[must_use]
    pub fn planned(mut self, size: Size, replan: Replan) -> Node {
        self.planned = Some((size, replan));
        self
    }

    /// Holds back this many slots. A held frame leaves under the number and time of the frame that pushes it out. With
    /// `keeps_times`, a held frame leaves under its own number and time instead.
    #[must_use]
    pub fn delaying(mut self, slots: usize, keeps_times: bool) -> Node {
        (self.delay, self.shifts) = (slots, slots > 0 && !keeps_times);
        self.is_simple &= slots == 0;
        self.held.reserve(slots);
        self
    }

    /// Passes on one slot in this many.
    #[must_use]
    pub fn every(mut self, slots: u64) -> Node {
        self.every = slots.max(1);
        self.is_simple &= self.every == 1;
        self
    }

    #[must_use]
    pub(crate) fn entering_device(mut self, enters: bool) -> Node {
        self.enters_device = enters;
        self
    }

    pub fn connect_input(&mut self, input: usize, link: LinkReceiver<Frame>, policy: Policy) {
        self.inputs.connect(input, link, policy, self.ends_with[input]);
    }

    /// Connects an output to one more link.
    pub fn connect_output(&mut self, output: usize, link: LinkSender<Frame>) {
        self.outputs[output].push(link);
    }
}
