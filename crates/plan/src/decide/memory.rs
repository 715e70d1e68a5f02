//! Step 10: how many bytes the pools of each space need.
//!
//! Frames are counted by size, since pools keep sizes apart. On the host, the count includes frames in links and
//! delays, frames in use, and frames before a node that waits. On the device, the count also includes what each
//! submission in flight uses, such as intermediates of kernels, because a recording keeps every buffer that it uses
//! until the device has finished the recording. Networks hold their weights and intermediate values; handlers with the
//! same file share the weights. The small data of a handler are counted by the upper bound in its
//! entry, or by the size that a probe found in a file. The staging rings of transfers and the rows that kernels buffer
//! on the host are not counted, since they do not come from the pools; the report of a run includes the staging rings.
//!
//! Placement does not consider memory. If the cheapest plan does not fit, the planner tries two other plans: one plan
//! in which every handler that can run on the host runs there, and one such plan for the device. The planner takes the
//! plan that fits, or the cheaper plan if both fit, and adds a warning. If no plan fits the user's own budget
//! (`--memory`), but the budget has room for one frame at a time, the planner returns the cheapest plan and warns that
//! frames will wait.
//!
//! Invariants: passing a frame on needs no memory. A frame is counted once, in the space that stores it. An explicit
//! transfer needs the same memory as an automatic transfer. No run has more frames at once than are counted here,
//! unless a handler keeps frames for itself.

mod retained;

use std::collections::BTreeMap;

use crate::catalog::TransferDirection;
use crate::plan::{PlannedMemory, PooledFrames};
use crate::profile::Profile;
use crate::words::{Content, Rate, Space};

use super::explain::NoPlan;
use super::lanes::LaneAssignment;
use super::layout::{LayoutTransfer, UnitLayout};
use super::net::Net;

use retained::{Retained, Waits};

/// The device pool rounds buffers up to blocks of this size.
const DEVICE_BLOCK_BYTES: u64 = 256;

/// The number of submissions in flight and the number of frames per submission.
#[derive(Debug, Clone, Copy)]
pub(super) struct InFlight {
    pub frames: u32,
    pub batch: u32,
}

/// The user's memory limits.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Budgets {
    pub cpu_bytes: Option<u64>,
    pub gpu_bytes: Option<u64>,
    /// True if room for one frame at a time is enough, because the run waits for memory.
    pub waiting: bool,
}

/// Sums up both spaces and returns an error if a plan does not fit.
pub(super) fn memory(
    net: &Net<'_>,
    spaces: &[Space],
    layout: &UnitLayout,
    lanes: &LaneAssignment,
    profile: &Profile,
    in_flight: InFlight,
    budgets: Budgets,
) -> Result<PlannedMemory, NoPlan> {
    let count = Count::of(net, spaces, layout, lanes, in_flight, false);
    if budgets.waiting {
        let one = InFlight { frames: 1, batch: 1 };
        Count::of(net, spaces, layout, lanes, one, true).refuse(profile, budgets)?;
    } else {
        count.refuse(profile, budgets)?;
    }
    let frames = |(bytes, count): (&u64, &u64)| PooledFrames { bytes: *bytes, count: *count };
    Ok(PlannedMemory {
        gpu_bytes: count.gpu.bytes(),
        cpu_bytes: count.cpu.bytes(),
        cpu_held_bytes: count.cpu.held,
        host_frames: count.cpu.classes.iter().map(frames).collect(),
    })
}

/// The number of frames that one space needs, by bytes per frame, and what needs the largest part of this memory.
#[derive(Debug, Default)]
struct SpaceNeed {
    classes: BTreeMap<u64, u64>,
    /// Bytes beside the frames.
    held: u64,
    most: u64,
    most_for: String,
}

impl SpaceNeed {
    fn add(&mut self, frames: u64, bytes: u64, what: impl FnOnce() -> String) {
        let count = self.classes.entry(bytes).or_default();
        *count = count.saturating_add(frames);
        self.note(frames.saturating_mul(bytes), what);
    }

    /// Adds bytes that are not frames.
    fn hold(&mut self, bytes: u64, what: impl FnOnce() -> String) {
        self.held = self.held.saturating_add(bytes);
        self.note(bytes, what);
    }

    fn note(&mut self, bytes: u64, what: impl FnOnce() -> String) {
        if bytes > self.most {
            self.most = bytes;
            self.most_for = what();
        }
    }

    fn bytes(&self) -> u64 {
        self.classes.iter().fold(self.held, |sum, (bytes, count)| sum.saturating_add(bytes.saturating_mul(*count)))
    }
}

/// A frame that is alive only while some units of one lane run.
struct Brief {
    lane: usize,
    /// The last unit that wrote the frame.
    by: usize,
    from: usize,
    to: usize,
    bytes: u64,
}

struct Count<'a> {
    net: &'a Net<'a>,
    spaces: &'a [Space],
    lanes: &'a LaneAssignment,
    waits: Waits<'a>,
    /// For each node that passes frames on, the last unit of its lane that reads these frames.
    last: Vec<usize>,
    /// Host frames that are freed within one turn of their lane.
    brief: Vec<Brief>,
    /// Frames in all submissions in flight, by device segment and by bytes per frame.
    submitted: BTreeMap<usize, BTreeMap<u64, u64>>,
    /// The highest frame rate in each segment.
    fastest: BTreeMap<usize, f64>,
    /// Frames of one output that submissions in flight use.
    flying: u64,
    gpu: SpaceNeed,
    cpu: SpaceNeed,
}

impl<'a> Count<'a> {
    fn of(
        net: &'a Net<'a>,
        spaces: &'a [Space],
        layout: &'a UnitLayout,
        lanes: &'a LaneAssignment,
        in_flight: InFlight,
        least: bool,
    ) -> Count<'a> {
        let batch = u64::from(in_flight.batch.max(1));
        let flying = u64::from(in_flight.frames.max(1)) * batch;
        let mut count = Count {
            net,
            spaces,
            lanes,
            waits: Waits::of(net, spaces, layout, lanes, batch, least),
            fastest: fastest(net, lanes),
            last: lanes.unit_of.clone(),
            brief: Vec::new(),
            submitted: BTreeMap::new(),
            flying,
            gpu: SpaceNeed::default(),
            cpu: SpaceNeed::default(),
        };
        for at in (0..net.nodes.len()).rev().filter(|at| net.nodes[*at].passes_on()) {
            let after = net.nodes[at].fans.iter().flatten().map(|w| count.read_last(*w));
            count.last[at] = after.max().unwrap_or(0).max(lanes.unit_of[at]);
        }
        for at in 0..net.nodes.len() {
            for output in 0..net.nodes[at].outputs.len() {
                count.produced(at, output, batch);
            }
        }
        for transfer in &layout.transfers {
            count.carried(transfer, batch);
        }
        count.turns();
        count.submissions();
        count.small_data();
        count.networks();
        count
    }

    fn hold(&mut self, space: Space, frames: u64, bytes: u64, at: usize) {
        let name = &self.net.nodes[at].name;
        let what = || format!("{} of {bytes} bytes after {name}", frames_of(frames));
        match space {
            Space::Gpu => self.gpu.add(frames, blocks(bytes), what),
            Space::Cpu => self.cpu.add(frames, bytes, what),
        }
    }

    /// Counts the frames that a node produces in its own space.
    fn produced(&mut self, at: usize, output: usize, batch: u64) {
        let node = &self.net.nodes[at];
        let fan = &node.fans[output];
        let (unit, bytes) = (self.lanes.unit_of[at], node.outputs[output].bytes());
        let fused = !fan.is_empty() && fan.iter().all(|w| self.lanes.unit_of[self.net.wires[*w].to] == unit);
        if bytes == 0 || fused || node.passes_on() || node.entry.transfer.is_some() {
            return;
        }
        let fan: Vec<usize> =
            fan.iter().copied().filter(|w| self.lanes.unit_of[self.net.wires[*w].to] != unit).collect();
        let kept = fan.iter().map(|w| self.waits.on(*w)).fold(Retained::default(), Retained::beside);
        let kept = kept.and_held(self.waits.held_by(at));
        match self.spaces[at] {
            Space::Gpu => self.on_device(kept, bytes, at, batch),
            Space::Cpu => {
                if kept.frames() > 0 {
                    self.hold(Space::Cpu, kept.frames(), bytes, at);
                    return;
                }
                let to = fan.iter().map(|w| self.read_last(*w)).max().unwrap_or(unit);
                let lane = self.lanes.lane_of[at];
                match self.edited(unit, bytes) {
                    // The node writes over its input frame, which therefore stays alive.
                    Some(read) => (self.brief[read].by, self.brief[read].to) = (unit, to),
                    None => self.brief.push(Brief { lane, by: unit, from: unit, to, bytes }),
                }
            }
        }
    }

    /// The frame that a host unit changes in place instead of producing another frame.
    fn edited(&self, unit: usize, bytes: u64) -> Option<usize> {
        let nodes = &self.lanes.units[unit];
        let in_place = |at: &usize| self.net.nodes[*at].kernel.is_some_and(|k| k.works_in_place());
        let lead = self.net.lead_wire(nodes[0])?;
        let (from, output) = (self.net.wires[lead].from, self.net.wires[lead].output);
        let alone = self.net.nodes[from].fans[output].len() == 1;
        // A frame in another format needs its own memory, even if it has the same number of bytes.
        let format = |content: &Content| content.frame().map(|frame| frame.format);
        let made = nodes.last().and_then(|at| self.net.nodes[*at].outputs.first());
        let same = made.is_some_and(|made| format(made) == format(&self.net.wires[lead].content));
        let read =
            self.brief.iter().position(|b| b.by == self.lanes.unit_of[from] && b.to == unit && b.bytes == bytes)?;
        (alone && same && nodes.iter().all(in_place)).then_some(read)
    }

    /// Counts frames on the device: frames that wait, and frames that unfinished submissions use.
    fn on_device(&mut self, kept: Retained, bytes: u64, at: usize, batch: u64) {
        match kept.frames() {
            0 => self.submit(at, bytes),
            // An input that is not the lead keeps its newest frame until a newer frame arrives.
            1 if kept.newest_only => {
                self.submit(at, bytes);
                if self.flying == batch {
                    self.hold(Space::Gpu, 1, bytes, at);
                }
            }
            // Submissions of two segments alternate, so only every second submission reads the frame.
            waiting if kept.takes_turns => {
                let reading = (self.flying / batch).div_ceil(2) * batch;
                self.hold(Space::Gpu, waiting + reading, bytes, at);
            }
            waiting => self.hold(Space::Gpu, waiting + self.flying, bytes, at),
        }
    }

    /// Counts a frame that lives until its submission has finished. A node that gets one frame in ten uses memory in
    /// one of ten submissions.
    fn submit(&mut self, at: usize, bytes: u64) {
        let segment = self.lanes.segment_of[self.lanes.unit_of[at]];
        let fastest = self.fastest.get(&segment).copied().unwrap_or(0.0);
        let one_in = rate(self.net, at).map_or(1, |own| ((fastest / own).round() as u64).max(1));
        let frames = self.flying.div_ceil(one_in);
        *self.submitted.entry(segment).or_default().entry(blocks(bytes)).or_default() += frames;
    }

    /// The last unit of the producer's lane that reads the frames on a wire.
    fn read_last(&self, wire: usize) -> usize {
        let (from, to) = (self.net.wires[wire].from, self.net.wires[wire].to);
        if self.waits.is_inline(wire) { self.last[to] } else { self.lanes.unit_of[from] }
    }

    /// Counts the frames on the destination side of a transfer.
    fn carried(&mut self, transfer: &LayoutTransfer, batch: u64) {
        let bytes = self.net.nodes[transfer.from].outputs[transfer.output].bytes();
        // An explicit transfer passes on the transferred frames: count these frames on the wires after the transfer.
        let explicit = |w: &usize| self.net.nodes[self.net.wires[*w].to].entry.transfer == Some(transfer.direction);
        let after = |w: &usize| self.net.nodes[self.net.wires[*w].to].fans.iter().flatten().copied().collect();
        let one = |w: &usize| -> Vec<usize> { if explicit(w) { after(w) } else { vec![*w] } };
        let wires: Vec<usize> = transfer.wires.iter().flat_map(one).collect();
        match transfer.direction {
            TransferDirection::Up => {
                let alone = transfer.wires.len() == 1;
                let own = |w: &usize| {
                    let inserted = transfer.wires.contains(w) && !explicit(w);
                    if inserted { self.waits.after_upload(*w, alone) } else { self.waits.on(*w) }
                };
                let kept = wires.iter().map(own).fold(Retained::default(), Retained::beside);
                if let Some(first) = wires.iter().map(|w| self.net.wires[*w].to).min() {
                    self.on_device(kept, bytes, first, batch);
                }
            }
            TransferDirection::Down => {
                let kept =
                    wires.iter().map(|w| self.waits.after_download(*w)).fold(Retained::default(), Retained::beside);
                self.hold(Space::Cpu, kept.frames().max(1), bytes, transfer.from);
                // If the host reads the frame in place, the frame stays on the device until the host has read it.
                self.hold(Space::Gpu, 1, bytes, transfer.from);
            }
        }
    }

    /// Counts the peak of frames while host lanes run, for each lane separately, since lanes run in parallel.
    fn turns(&mut self) {
        let mut peaks: BTreeMap<(usize, u64), u64> = BTreeMap::new();
        for unit in 0..self.lanes.units.len() {
            let mut alive: BTreeMap<(usize, u64), u64> = BTreeMap::new();
            for brief in self.brief.iter().filter(|brief| brief.from <= unit && unit <= brief.to) {
                *alive.entry((brief.lane, brief.bytes)).or_default() += 1;
            }
            for (class, count) in alive {
                let peak = peaks.entry(class).or_default();
                *peak = count.max(*peak);
            }
        }
        for ((lane, bytes), count) in peaks {
            let first = &self.net.nodes[self.lanes.nodes[lane][0]].name;
            self.cpu.add(count, bytes, || format!("frames in use at the same time in the lane of {first}"));
        }
    }

    /// Counts what submissions in flight hold. Each submission may belong to any segment, and a buffer of one size
    /// cannot replace a buffer of another size.
    fn submissions(&mut self) {
        for (unit, nodes) in self.lanes.units.iter().enumerate() {
            if self.spaces[nodes[0]] == Space::Gpu && self.scratch(unit) > 0 {
                self.submit(nodes[0], self.scratch(unit));
            }
        }
        let mut most: BTreeMap<u64, u64> = BTreeMap::new();
        for (bytes, count) in self.submitted.values().flatten() {
            let own = most.entry(*bytes).or_default();
            *own = (*own).max(*count);
        }
        let flying = self.flying;
        for (bytes, count) in most {
            let what = || format!("{} of {bytes} bytes, with {flying} frames in flight", frames_of(count));
            self.gpu.add(count, bytes, what);
        }
    }

    /// Counts the small data of each kernel on the device. The buffer of the small data exists for the whole run.
    fn small_data(&mut self) {
        for nodes in &self.lanes.units {
            let reads = |at: &&usize| self.spaces[**at] == Space::Gpu && self.net.nodes[**at].entry.small.is_some();
            if nodes.iter().any(|at| reads(&at)) {
                let bytes: u64 = nodes.iter().fold(0, |sum, at| sum.saturating_add(self.net.small_bytes(*at)));
                let name = &self.net.nodes[nodes[0]].name;
                self.gpu.add(1, blocks(bytes.max(1)), || format!("{bytes} bytes of small data of {name}"));
            }
        }
    }

    /// Counts what networks hold during the whole run.
    fn networks(&mut self) {
        let mut counted: Vec<(Space, String)> = Vec::new();
        for (at, node) in self.net.nodes.iter().enumerate() {
            let Some(needs) = self.net.network(at) else { continue };
            let space = self.spaces[at];
            let need = match space {
                Space::Gpu => &mut self.gpu,
                Space::Cpu => &mut self.cpu,
            };
            need.hold(needs.held_bytes, || format!("intermediate values of {}", node.name));
            let weights = (space, needs.weights);
            if !counted.contains(&weights) {
                need.hold(needs.weight_bytes, || format!("weights of {}", node.name));
                counted.push(weights);
            }
        }
    }

    /// Bytes of the intermediate of a unit's kernel. At most one node of a unit has an intermediate.
    fn scratch(&self, unit: usize) -> u64 {
        self.lanes.units[unit].iter().map(|at| self.net.kept_bytes(*at)).max().unwrap_or(0)
    }

    fn refuse(&self, profile: &Profile, budgets: Budgets) -> Result<(), NoPlan> {
        let has = |figure: u64, budget: Option<u64>| match budget {
            Some(budget) => (budget, "the budget".to_owned()),
            None => (figure, format!("profile {}", profile.name())),
        };
        let gpu = has(profile.gpu.as_ref().map_or(0, |gpu| gpu.memory_bytes.whole()), budgets.gpu_bytes);
        let cpu = has(profile.cpu.memory_bytes.whole(), budgets.cpu_bytes);
        for (space, need, (available, limited_by)) in [(Space::Gpu, &self.gpu, gpu), (Space::Cpu, &self.cpu, cpu)] {
            let needed = need.bytes();
            if needed > available {
                let (most, at) = (need.most, need.most_for.clone());
                return Err(NoPlan::Memory { space, needed, available, limited_by, most, at });
            }
        }
        Ok(())
    }
}

/// Bytes rounded up to blocks of the device pool.
fn blocks(bytes: u64) -> u64 {
    bytes.div_ceil(DEVICE_BLOCK_BYTES).saturating_mul(DEVICE_BLOCK_BYTES)
}

/// The highest frame rate in each segment.
fn fastest(net: &Net<'_>, lanes: &LaneAssignment) -> BTreeMap<usize, f64> {
    let mut fastest = BTreeMap::new();
    for at in 0..net.nodes.len() {
        let most: &mut f64 = fastest.entry(lanes.segment_of[lanes.unit_of[at]]).or_default();
        *most = most.max(rate(net, at).unwrap_or(0.0));
    }
    fastest
}

fn rate(net: &Net<'_>, at: usize) -> Option<f64> {
    net.main_content(at).and_then(Content::rate).map(Rate::per_second)
}

fn frames_of(count: u64) -> String {
    if count == 1 { "1 frame".to_owned() } else { format!("{count} frames") }
}
