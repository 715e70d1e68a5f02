//! What a node passes on to a node of the same handler in a succeeding engine: the handler with its state, the frames that
//! a delay holds, the frames at its inputs, and the clock of a source.

use vramp_gpu::Device;
use vramp_plan::Space;

use crate::clock::Clock;
use crate::engine::succession::InputLabel;
use crate::failure::{HandlerFailure, catch};
use crate::frame::pool::FramePool;
use crate::frame::{Birth, Frame};
use crate::handler::FrameHandler;
use crate::link::ring::StreamSlot;
use crate::node::delay_line::DelayLine;
use crate::node::pace::SourcePace;
use crate::services::Services;

use super::{Gone, Node};

/// A handler of whole frames, started, without its node.
pub(crate) struct KeptHandler {
    handler: Box<dyn FrameHandler>,
    services: Option<Services>,
    frame: u64,
    /// Slots that the node has seen, which `every` counts.
    slots: u64,
    /// The time of the last frame.
    before_ns: Option<i64>,
    held: DelayLine,
    /// Number of frames that are held.
    frames: u64,
}

/// What an input held: the frame that it supplies, and the slots that wait in its ring.
#[derive(Debug)]
pub(crate) struct KeptInput {
    newest: Option<Frame>,
    waiting: Vec<StreamSlot<Frame>>,
}

impl KeptInput {
    pub(crate) fn new(newest: Option<Frame>, waiting: Vec<StreamSlot<Frame>>) -> KeptInput {
        KeptInput { newest, waiting }
    }

    fn take(&mut self) -> KeptInput {
        KeptInput { newest: self.newest.take(), waiting: std::mem::take(&mut self.waiting) }
    }

    pub(crate) fn waiting_frames(&self) -> u64 {
        self.waiting.iter().filter(|slot| matches!(slot, StreamSlot::Frame { .. })).count() as u64
    }
}

/// The position of a source in its stream.
#[derive(Debug, Clone)]
pub(crate) struct KeptSource {
    clock: Clock,
    pace: SourcePace,
    born: Option<(u64, Birth)>,
    before_ns: Option<i64>,
    taken: u64,
}

impl KeptHandler {
    /// Number of frames that leave the run if no node takes the handler over.
    pub(crate) fn held_frames(&self) -> u64 {
        self.frames
    }

    /// Stops a handler that no node takes over.
    pub(crate) fn stop(mut self, name: &str) -> Result<(), HandlerFailure> {
        let stopped = catch(|| {
            self.handler.ended();
            self.handler.stop()
        });
        let dropped = catch(|| {
            drop(self.handler);
            Ok(())
        });
        stopped.and(dropped).map_err(|error| HandlerFailure { handler: name.to_owned(), frame: self.frame, error })
    }
}

impl Node {
    /// The name of the node's first handler.
    pub(crate) fn first_name(&self) -> &str {
        &self.members[0].name
    }

    /// Takes the handler out, if it was started and processes whole frames. Fused handlers are made anew. Held frames
    /// count as taken by the node that continues with them.
    pub(crate) fn take_handler(&mut self) -> Option<KeptHandler> {
        if !self.started || self.handler.parts().is_some() {
            return None;
        }
        self.started = false;
        let handler = std::mem::replace(&mut self.handler, Box::new(Gone));
        let (held, frames) = (std::mem::take(&mut self.held), std::mem::take(&mut self.counts.held));
        let frame = self.counts.taken;
        self.counts.taken -= frames;
        self.stats.show(&self.counts);
        let services = self.services.take();
        Some(KeptHandler { handler, services, frame, slots: self.slots, before_ns: self.before_ns, held, frames })
    }

    pub(crate) fn label_input(&mut self, input: usize, label: InputLabel) {
        self.labels.resize(self.labels.len().max(input + 1), None);
        self.labels[input] = Some(label);
    }

    /// Puts a source into the company of the sources whose frames are paired with its own.
    pub(crate) fn join_company(&self, company: u32) {
        if let Some(mark) = &self.mark {
            mark.join(company);
        }
    }

    /// Takes out what the inputs hold.
    pub(crate) fn take_inputs(&mut self) -> Vec<(InputLabel, KeptInput)> {
        let Node { labels, inputs, .. } = self;
        let labelled = labels.iter().enumerate().filter_map(|(at, label)| Some((at, label.clone()?)));
        labelled.filter_map(|(at, label)| Some((label, inputs.take_kept(at)?))).collect()
    }

    /// Continues with what the same inputs of another engine held, and takes it out of `kept`.
    pub(crate) fn put_inputs(&mut self, kept: &mut [(InputLabel, KeptInput)]) {
        for (at, label) in self.labels.iter().enumerate() {
            let Some(label) = label else { continue };
            let Some((own, held)) = kept.iter_mut().find(|(own, _)| own.is_same_link(label)) else { continue };
            let KeptInput { newest, waiting } = held.take();
            if own == label {
                held.waiting = self.inputs.put_kept(at, newest, waiting);
            } else {
                // The consumer is in another space now. It uploads a frame that is on the host.
                let newest = newest.filter(|frame| frame.space() == Space::Cpu);
                self.inputs.put_kept(at, newest, Vec::new());
                held.waiting = waiting;
            }
        }
    }

    /// Whether the node's handler processes whole frames.
    pub(crate) fn is_plain(&self) -> bool {
        self.handler.parts().is_none()
    }

    /// Puts a started handler in place of the handler that was made for this node.
    pub(crate) fn put_handler(&mut self, kept: KeptHandler, pool: &FramePool, device: Option<&Device>) {
        (self.handler, self.slots, self.held) = (kept.handler, kept.slots, kept.held);
        if let Some(services) = &kept.services {
            services.continue_in(pool, self.memory.owner, device);
        }
        self.services = kept.services;
        self.before_ns = self.before_ns.max(kept.before_ns);
        self.counts.taken += kept.frames;
        self.counts.held += kept.frames;
        self.stats.show(&self.counts);
        self.started = true;
        self.give_waker();
    }

    /// The position of a source.
    pub(crate) fn position(&self) -> Option<KeptSource> {
        let clock = self.clock.clone()?;
        let (pace, born, before_ns) = (self.pace, self.born, self.before_ns);
        // What earlier engines have taken is part of the limit.
        Some(KeptSource { clock, pace, born, before_ns, taken: self.counts.taken + self.taken_before })
    }

    /// Continues from the position of another source, with the numbers and times that follow.
    pub(crate) fn continue_from(&mut self, kept: &KeptSource) {
        if let Some(clock) = &mut self.clock {
            clock.continue_after(&kept.clock);
        }
        (self.pace, self.born, self.before_ns) = (kept.pace, kept.born, kept.before_ns);
        self.limit = self.limit.saturating_sub(kept.taken);
        self.taken_before = kept.taken;
    }
}

impl KeptSource {
    /// The number of the next frame.
    pub(crate) fn next(&self) -> u64 {
        self.clock.next()
    }
}
