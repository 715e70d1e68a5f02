//! Memory: how many bytes the pools of each space need.
//!
//! Owns the count of frames that are alive at once: within a tick, waiting in links, held by delays, and in the rings
//! of ramps.
//! Does not allocate; the pools are made to this measure.
//!
//! Always: passing a frame on costs nothing; a frame that waits is counted once, in the space where it waits; an
//! explicit transfer needs what an automatic one needs.

use crate::catalog::Direction;
use crate::plan::Memory;
use crate::profile::Profile;
use crate::words::{Content, Policy, Space};

use super::explain::NoPlan;
use super::lanes::Lanes;
use super::layout::{Layout, LayoutRamp};
use super::net::Net;

/// What the user leaves in flight at once.
#[derive(Debug, Clone, Copy)]
pub(super) struct InFlight {
    pub frames: u32,
    pub batch: u32,
}

/// Adds up both spaces and refuses what the profile cannot hold.
pub(super) fn memory(
    net: &Net<'_>,
    spaces: &[Space],
    layout: &Layout,
    lanes: &Lanes,
    profile: &Profile,
    in_flight: InFlight,
) -> Result<Memory, NoPlan> {
    let mut count = Count::new(net, spaces, layout, lanes);
    let batch = u64::from(in_flight.batch.max(1));
    let rings = u64::from(in_flight.frames.max(1)) * batch;
    for at in 0..net.nodes.len() {
        for output in 0..net.nodes[at].outputs.len() {
            count.produced(at, output, batch);
        }
    }
    for ramp in &layout.ramps {
        count.carried(ramp, rings, batch);
    }
    count.ticks(batch);
    count.refuse(profile)?;
    Ok(Memory { gpu_bytes: count.gpu.bytes, cpu_bytes: count.cpu.bytes })
}

/// What one space needs, and its largest part.
#[derive(Debug, Default)]
struct Need {
    bytes: u64,
    most: u64,
    most_for: String,
}

impl Need {
    fn add(&mut self, bytes: u64, what: impl FnOnce() -> String) {
        self.bytes = self.bytes.saturating_add(bytes);
        if bytes > self.most {
            self.most = bytes;
            self.most_for = what();
        }
    }
}

/// Frames that wait behind an output.
#[derive(Debug, Clone, Copy, Default)]
struct Waiting {
    /// Of the newest ones, which branches side by side share.
    newest: u64,
    /// Of ones picked here and there, which nobody shares.
    picked: u64,
    /// Consumers that may each be looking at another old frame, since nobody waits for them.
    readers: u64,
}

impl Waiting {
    fn beside(self, other: Waiting) -> Waiting {
        Waiting {
            newest: self.newest.max(other.newest),
            picked: self.picked + other.picked,
            readers: self.readers + other.readers,
        }
    }

    /// Frames that are needed in all: what waits, what is written, what is read. None where nothing waits.
    fn frames(self, written: u64) -> Option<u64> {
        let waiting = self.newest + self.picked;
        (waiting > 0).then(|| waiting + written + self.readers.max(written))
    }
}

/// A frame that lives only while some units of one lane run.
struct Brief {
    lane: usize,
    from: usize,
    to: usize,
    bytes: u64,
}

struct Count<'a> {
    net: &'a Net<'a>,
    spaces: &'a [Space],
    layout: &'a Layout,
    lanes: &'a Lanes,
    unit_of: Vec<usize>,
    /// Frames that wait behind a node that only passes them on, in its own space: held by it or in links.
    waiting: Vec<Waiting>,
    /// The last unit that reads what such a node passes on.
    last: Vec<usize>,
    brief: Vec<Brief>,
    gpu: Need,
    cpu: Need,
}

impl<'a> Count<'a> {
    fn new(net: &'a Net<'a>, spaces: &'a [Space], layout: &'a Layout, lanes: &'a Lanes) -> Count<'a> {
        let mut unit_of = vec![0; net.nodes.len()];
        for (unit, nodes) in lanes.units.iter().enumerate() {
            for &node in nodes {
                unit_of[node] = unit;
            }
        }
        let mut count = Count {
            net,
            spaces,
            layout,
            lanes,
            waiting: vec![Waiting::default(); net.nodes.len()],
            last: unit_of.clone(),
            unit_of,
            brief: Vec::new(),
            gpu: Need::default(),
            cpu: Need::default(),
        };
        for at in (0..net.nodes.len()).rev() {
            if count.passes_on(at) || net.nodes[at].entry.transfer.is_some() {
                let node = &net.nodes[at];
                let fans: Vec<usize> = node.fans.iter().flatten().copied().collect();
                let mut waiting = fans.iter().map(|w| count.waits(*w)).fold(Waiting::default(), Waiting::beside);
                waiting.newest += u64::from(node.entry.delay.under(&node.settings));
                if node.entry.every.under(&node.settings) > 1 {
                    waiting = Waiting { newest: 0, picked: waiting.newest + waiting.picked, ..waiting };
                }
                count.waiting[at] = waiting;
                count.last[at] = fans.iter().map(|w| count.read_last(*w)).max().unwrap_or(0).max(count.unit_of[at]);
            }
        }
        count
    }

    fn passes_on(&self, at: usize) -> bool {
        self.net.nodes[at].passes_on()
    }

    fn ramp(&self, wire: usize) -> Option<&'a LayoutRamp> {
        self.layout.ramp_of[wire].map(|ramp| &self.layout.ramps[ramp])
    }

    /// Frames that wait on a wire and behind it, in the space where the producer leaves them.
    fn waits(&self, wire: usize) -> Waiting {
        match self.ramp(wire) {
            None => self.behind(wire, true),
            // What waits for the device waits on the host; what comes down waits behind the ramp.
            Some(ramp) if ramp.direction == Direction::Up => self.on(wire),
            Some(_) => Waiting::default(),
        }
    }

    /// Frames that wait on a wire itself.
    fn on(&self, wire: usize) -> Waiting {
        let depth = u64::from(self.lanes.depth[wire]);
        let lossy = self.net.wires[wire].policy != Policy::Lossless;
        Waiting { newest: depth, picked: 0, readers: u64::from(lossy && depth > 0) }
    }

    /// Frames that wait behind a wire's consumer, if that only passes them on; with those on the wire, if asked.
    fn behind(&self, wire: usize, with_wire: bool) -> Waiting {
        let to = self.net.wires[wire].to;
        let on = if with_wire { self.on(wire) } else { Waiting::default() };
        let behind = if self.passes_on(to) { self.waiting[to] } else { Waiting::default() };
        Waiting { newest: on.newest + behind.newest, picked: behind.picked, readers: on.readers + behind.readers }
    }

    /// The last unit of the producer's own lane that reads what is on a wire.
    fn read_last(&self, wire: usize) -> usize {
        let (from, to) = (self.net.wires[wire].from, self.net.wires[wire].to);
        let inline = self.lanes.lane_of[from] == self.lanes.lane_of[to] && self.ramp(wire).is_none();
        match (inline, self.passes_on(to)) {
            (false, _) => self.unit_of[from],
            (true, true) => self.last[to],
            (true, false) => self.unit_of[to],
        }
    }

    fn need(&mut self, space: Space) -> &mut Need {
        match space {
            Space::Gpu => &mut self.gpu,
            Space::Cpu => &mut self.cpu,
        }
    }

    fn add(&mut self, space: Space, frames: u64, bytes: u64, at: usize) {
        let name = &self.net.nodes[at].name;
        let what = || format!("{frames} frames of {bytes} bytes behind {name}");
        self.need(space).add(frames.saturating_mul(bytes), what);
    }

    /// The frames that a node makes in its own space.
    fn produced(&mut self, at: usize, output: usize, batch: u64) {
        let node = &self.net.nodes[at];
        let fan = &node.fans[output];
        let (unit, bytes) = (self.unit_of[at], node.outputs[output].bytes());
        let fused = !fan.is_empty() && fan.iter().all(|w| self.unit_of[self.net.wires[*w].to] == unit);
        if bytes == 0 || fused || self.passes_on(at) || node.entry.transfer.is_some() {
            return;
        }
        let waiting = fan.iter().map(|w| self.waits(*w)).fold(Waiting::default(), Waiting::beside);
        let written = if self.spaces[at] == Space::Gpu { batch } else { 1 };
        if let Some(frames) = waiting.frames(written) {
            self.add(self.spaces[at], frames, bytes, at);
        } else {
            let to = fan.iter().map(|w| self.read_last(*w)).max().unwrap_or(unit);
            self.brief.push(Brief { lane: self.lanes.lane_of[at], from: unit, to, bytes });
        }
    }

    /// The frames on the far side of a ramp, and its rings.
    fn carried(&mut self, ramp: &LayoutRamp, rings: u64, batch: u64) {
        let bytes = self.net.nodes[ramp.from].outputs[ramp.output].bytes();
        // An explicit transfer passes on what the ramp brought: look behind it.
        let wires: Vec<usize> = ramp
            .wires
            .iter()
            .flat_map(|w| {
                let to = self.net.wires[*w].to;
                let explicit = self.net.nodes[to].entry.transfer == Some(ramp.direction);
                if explicit { self.net.nodes[to].fans.iter().flatten().copied().collect() } else { vec![*w] }
            })
            .collect();
        match ramp.direction {
            Direction::Up => {
                // Staged copies, or the frames themselves where the device reads them in place.
                self.add(Space::Cpu, rings, bytes, ramp.from);
                let one = |w: &usize| self.behind(*w, self.ramp(*w).is_none());
                let waiting = wires.iter().map(one).fold(Waiting::default(), Waiting::beside);
                if let Some(frames) = waiting.frames(batch) {
                    self.add(Space::Gpu, frames, bytes, ramp.from);
                } else if let Some(lane) = wires.first().map(|w| self.lanes.lane_of[self.net.wires[*w].to]) {
                    let units = || wires.iter().map(|w| self.unit_of[self.net.wires[*w].to]);
                    let to = wires.iter().map(|w| self.last[self.net.wires[*w].to]).max().unwrap_or(0);
                    let (from, to) = (units().min().unwrap_or(0), units().max().unwrap_or(0).max(to));
                    self.brief.push(Brief { lane, from, to, bytes });
                }
            }
            Direction::Down => {
                let waiting = wires.iter().map(|w| self.behind(*w, true)).fold(Waiting::default(), Waiting::beside);
                self.add(Space::Cpu, waiting.frames(1).unwrap_or(1) - 1 + rings, bytes, ramp.from);
            }
        }
    }

    /// The most that is alive at once while lanes run: each lane by itself, since they run side by side.
    fn ticks(&mut self, batch: u64) {
        let units = self.lanes.units.len();
        let mut starts: Vec<Vec<(usize, u64)>> = vec![Vec::new(); units];
        let mut ends: Vec<Vec<(usize, u64)>> = vec![Vec::new(); units];
        for brief in &self.brief {
            starts[brief.from].push((brief.lane, brief.bytes));
            ends[brief.to].push((brief.lane, brief.bytes));
        }
        let mut alive = vec![0u64; self.lanes.nodes.len()];
        let mut peak = vec![0u64; self.lanes.nodes.len()];
        for (unit, nodes) in self.lanes.units.iter().enumerate() {
            for (lane, bytes) in &starts[unit] {
                alive[*lane] = alive[*lane].saturating_add(*bytes);
            }
            let lane = self.lanes.lane_of[nodes[0]];
            peak[lane] = peak[lane].max(alive[lane].saturating_add(self.scratch(nodes)));
            for (lane, bytes) in &ends[unit] {
                alive[*lane] -= bytes;
            }
        }
        for (lane, nodes) in self.lanes.nodes.iter().enumerate() {
            let space = self.spaces[nodes[0]];
            let times = if space == Space::Gpu { batch } else { 1 };
            let first = &self.net.nodes[nodes[0]].name;
            let what = || format!("what is worked on at once in the lane of {first}");
            self.need(space).add(peak[lane].saturating_mul(times), what);
        }
    }

    /// What a unit's kernels keep between their dispatches.
    fn scratch(&self, nodes: &[usize]) -> u64 {
        let one = |at: &usize| {
            let node = &self.net.nodes[*at];
            let per_pixel = node.kernel.map_or(0, |k| u64::from(k.scratch_per_pixel));
            per_pixel.saturating_mul(node.outputs.first().map_or(0, Content::elements))
        };
        nodes.iter().map(one).sum()
    }

    fn refuse(&self, profile: &Profile) -> Result<(), NoPlan> {
        let gpu = profile.gpu.as_ref().map_or(0, |gpu| gpu.memory_bytes.whole());
        let cpu = profile.cpu.memory_bytes.whole();
        for (space, need, available) in [(Space::Gpu, &self.gpu, gpu), (Space::Cpu, &self.cpu, cpu)] {
            if need.bytes > available {
                return Err(NoPlan::Memory {
                    space,
                    needed: need.bytes,
                    available,
                    profile: profile.name().to_owned(),
                    most: need.most,
                    at: need.most_for.clone(),
                });
            }
        }
        Ok(())
    }
}
