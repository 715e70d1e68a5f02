//! Stages: the kernels of a fused unit whose members do not fit into one kernel.
//!
//! The plan fuses only handlers that fit into one kernel, so a unit starts with one stage. A change of a setting can
//! give a member another kind of kernel. For example, `waveform kind=luma` needs the whole frame before its first
//! result and therefore cannot be fused with its neighbours. Then the unit is divided into stages, and each stage makes
//! a frame for the next stage. On the device all stages record into the same submit.
//!
//! A call that fails in a later stage, for lack of memory or because a member is retried, continues with that stage:
//! the frame that the stage reads is kept.

use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use vramp_kernels::head::Head;
use vramp_plan::catalog::IntermediateExtent;

use crate::frame::Frame;
use crate::handler::{Call, Flow, HandlerError, Part};

use super::swap::PreparedUnit;
use super::{DataInput, ExtraInput, FusedMember, FusedPorts, FusedUnit};

/// A call that continues with a later stage.
pub(super) struct ResumedCall {
    number: u64,
    /// Index in the list of later stages.
    stage: usize,
    /// What that stage reads.
    frame: Frame,
}

/// The members of each stage, for members with these parts. `None` if a member cannot be made into one kernel.
pub(crate) fn stages(parts: &[Vec<Part>]) -> Option<Vec<Range<usize>>> {
    let mut stages: Vec<Range<usize>> = Vec::new();
    let (mut headed, mut closed) = (false, true);
    for (at, parts) in parts.iter().enumerate() {
        let heads = parts.iter().filter(|part| is_head(part)).count();
        let alone = parts.iter().any(needs_whole_frame);
        if heads > 1 || alone && parts.len() > 1 {
            return None;
        }
        // Functions before a head with several images could belong to any of the images.
        let several = parts.iter().any(|part| matches!(part, Part::HeadOf(_, 1..)));
        let joins = !(closed || alone || several || headed && heads > 0);
        match stages.last_mut().filter(|_| joins) {
            Some(stage) => {
                stage.end = at + 1;
                headed |= heads > 0;
            }
            None => {
                stages.push(at..at + 1);
                headed = heads > 0;
            }
        }
        closed = alone;
    }
    Some(stages)
}

fn is_head(part: &Part) -> bool {
    matches!(part, Part::Head(_) | Part::HeadOf(..) | Part::Whole(_))
}

/// Whether a kernel cannot be fused with any other.
fn needs_whole_frame(part: &Part) -> bool {
    let surveys = |head: &Head| head.first.is_some_and(|first| first.over == IntermediateExtent::Columns);
    match part {
        Part::Whole(_) => true,
        Part::Head(head) | Part::HeadOf(head, _) => surveys(head),
        _ => false,
    }
}

impl FusedPorts {
    /// The inputs of one stage. A later stage reads the frame of the previous stage at a port after all inputs.
    fn of_stage(&self, members: &Range<usize>) -> FusedPorts {
        let own = self.extra_inputs.iter().filter(|extra| members.contains(&extra.member));
        let own = own.map(|extra| ExtraInput { member: extra.member - members.start, ..*extra });
        let data = self.data_inputs.iter().filter(|data| members.contains(&data.member));
        let data = data.map(|data| DataInput { member: data.member - members.start, ..*data });
        let ports = self.extra_inputs.iter().map(|extra| extra.port).chain(self.source);
        let ports = ports.chain(self.data_inputs.iter().map(|data| data.port));
        let after_all = ports.max().map_or(0, |last| last + 1);
        let source = if members.start == 0 { self.source } else { Some(after_all) };
        FusedPorts { source, extra_inputs: own.collect(), data_inputs: data.collect(), ..*self }
    }
}

impl FusedUnit {
    /// All members, in order.
    pub(super) fn all_members(&self) -> impl Iterator<Item = &FusedMember> {
        self.members.iter().chain(self.later.iter().flat_map(|stage| &stage.members))
    }

    pub(super) fn member_mut(&mut self, at: usize) -> &mut FusedMember {
        let later = self.later.iter_mut().flat_map(|stage| &mut stage.members);
        self.members.iter_mut().chain(later).nth(at).expect("a change names members of the unit")
    }

    /// The members of each stage.
    pub(super) fn stage_members(&self) -> Vec<Range<usize>> {
        let mut start = 0;
        let counts = std::iter::once(self.members.len()).chain(self.later.iter().map(|stage| stage.members.len()));
        let ranges = counts.map(|count| {
            start += count;
            start - count..start
        });
        ranges.collect()
    }

    pub(super) fn stage_mut(&mut self, at: usize) -> &mut FusedUnit {
        match at.checked_sub(1) {
            None => self,
            Some(later) => &mut self.later[later],
        }
    }

    /// Divides the members into other stages, which have these kernels.
    pub(super) fn divide(&mut self, stages: &[Range<usize>], prepared: Vec<PreparedUnit>) {
        let on_device = self.kernels.is_some();
        let mut members = std::mem::take(&mut self.members);
        for stage in std::mem::take(&mut self.later) {
            members.extend(stage.members);
        }
        self.resumed = None;
        for (range, prepared) in stages.iter().zip(prepared).rev() {
            let (own, ports) = (members.split_off(range.start), self.whole_ports.of_stage(range));
            if range.start == 0 {
                (self.members, self.ports) = (own, ports);
                self.put_prepared(prepared, on_device);
                continue;
            }
            let mut stage =
                FusedUnit::new(&stage_name(&self.name, range), own, prepared.recipe.clone(), self.rate, ports);
            stage.variants = self.variants;
            stage.put_prepared(prepared, on_device);
            self.later.insert(0, stage);
        }
    }

    /// Runs all stages of a frame.
    pub(super) fn process_stages(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let number = call.now().number;
        let has_source = self.ports.source.is_some();
        // The frames between the stages have the lead's notes, for the members of the later stages.
        let notes = call.lead_notes().cloned();
        let (mut frame, first) = match self.resumed.take().filter(|resumed| resumed.number == number) {
            Some(ResumedCall { stage, frame, .. }) => {
                if has_source {
                    call.take(call.lead);
                }
                (frame, stage)
            }
            None => match self.process_stage(call)? {
                Flow::Produced => (call.outputs[0].take().expect("a stage that has produced has sent its frame"), 0),
                flow => return Ok(flow),
            },
        };
        for at in first..self.later.len() {
            let slot = self.later[at].ports.source.expect("a later stage reads the previous stage");
            let mut inputs: SmallVec<[Option<Frame>; 9]> = call.inputs.iter().cloned().collect();
            inputs.resize(inputs.len().max(slot + 1), None);
            frame.set_notes(notes.clone());
            inputs[slot] = Some(frame);
            let mut made = [None];
            let mut stage = Call {
                now: call.now,
                inputs: &mut inputs,
                outputs: &mut made,
                context: call.context,
                lead: slot,
                leave_bytes: call.leave_bytes,
                later: false,
                stamped_ns: None,
                notes: call.notes,
                services: call.services,
            };
            let flow = self.later[at].process_stage(&mut stage);
            if !matches!(flow, Ok(Flow::Produced)) {
                let before = self.later[..at].iter().map(|stage| stage.members.len()).sum::<usize>();
                self.failed = Some(self.members.len() + before + self.later[at].failed.unwrap_or(0));
            }
            match flow {
                Ok(Flow::Produced) => {}
                Ok(flow) => return Ok(flow),
                Err(error) => {
                    if let Some(frame) = inputs[slot].take() {
                        // A node repeats a call only if the call has left a frame at the lead.
                        if let Some(lead) = call.inputs.get_mut(call.lead).filter(|_| has_source) {
                            *lead = Some(frame.clone());
                        }
                        self.resumed = Some(ResumedCall { number, stage: at, frame });
                    }
                    return Err(error);
                }
            }
            frame = made[0].take().expect("a stage that has produced has sent its frame");
        }
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

fn stage_name(name: &Arc<str>, members: &Range<usize>) -> String {
    name.split('+').skip(members.start).take(members.len()).collect::<Vec<_>>().join("+")
}
