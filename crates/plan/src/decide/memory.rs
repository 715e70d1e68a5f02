//! Memory: how many bytes the pools of each space need.
//!
//! Owns the count of frames that are alive at once: within a tick, waiting in links, and in the rings of ramps.
//! Does not allocate; the pools are made to this measure.
//!
//! Always: a frame that waits in a link is counted as often as the link is deep, plus the one being written and the
//! one being read.

use crate::catalog::Direction;
use crate::plan::Memory;
use crate::profile::Profile;
use crate::words::{Content, Space};

use super::explain::NoPlan;
use super::lanes::Lanes;
use super::layout::Layout;
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
    let mut sum = Sum { gpu: 0, cpu: 0, most: (0, String::new()) };
    let unified = profile.gpu.as_ref().is_some_and(|gpu| gpu.unified);
    let rings = u64::from(in_flight.frames.max(1));
    let mut kept = vec![false; net.nodes.len()];
    for (at, node) in net.nodes.iter().enumerate() {
        for (output, fan) in node.fans.iter().enumerate() {
            let deepest = fan.iter().filter(|w| layout.ramp_of[**w].is_none()).map(|w| lanes.depth[*w]).max();
            if let Some(depth) = deepest.filter(|d| *d > 0) {
                kept[at] = true;
                let frames = u64::from(depth) + 2;
                sum.add(net, net.space_out(at, spaces[at]), node.outputs[output].bytes(), frames, at);
            }
        }
    }
    for ramp in &layout.ramps {
        let bytes = net.nodes[ramp.from].outputs[ramp.output].bytes();
        let depth = ramp.wires.iter().map(|w| u64::from(lanes.depth[*w])).max().unwrap_or(0);
        match ramp.direction {
            // What waits for the device waits on the host; staging comes on top where memory is not shared.
            Direction::Up => {
                sum.add(net, Space::Cpu, bytes, depth + if unified { 0 } else { rings }, ramp.from);
            }
            // What comes down waits, in order, in the readback ring.
            Direction::Down => sum.add(net, Space::Cpu, bytes, depth + rings, ramp.from),
        }
    }
    let (gpu, cpu) = within_ticks(net, spaces, layout, lanes, &kept);
    sum.gpu += gpu * u64::from(in_flight.batch.max(1));
    sum.cpu += cpu;
    sum.refuse(profile)?;
    Ok(Memory { gpu_bytes: sum.gpu, cpu_bytes: sum.cpu })
}

struct Sum {
    gpu: u64,
    cpu: u64,
    /// The largest single part and who needs it.
    most: (u64, String),
}

impl Sum {
    fn add(&mut self, net: &Net<'_>, space: Space, bytes: u64, frames: u64, node: usize) {
        let total = bytes.saturating_mul(frames);
        let side = if space == Space::Gpu { &mut self.gpu } else { &mut self.cpu };
        *side = side.saturating_add(total);
        if total > self.most.0 {
            self.most = (total, format!("{frames} frames of {bytes} bytes behind {}", net.nodes[node].name));
        }
    }

    fn refuse(&self, profile: &Profile) -> Result<(), NoPlan> {
        let gpu = profile.gpu.as_ref().map_or(0, |gpu| gpu.memory_bytes.whole());
        let cpu = profile.cpu.memory_bytes.whole();
        for (space, needed, available) in [(Space::Gpu, self.gpu, gpu), (Space::Cpu, self.cpu, cpu)] {
            if needed > available {
                let (most, at) = self.most.clone();
                let at = if at.is_empty() { "frames that are worked on at once".to_owned() } else { at };
                let fix = match space {
                    Space::Gpu => "use smaller frames, shallower links or shorter delays, or --cpu",
                    Space::Cpu => "use smaller frames, shallower links or shorter delays",
                };
                return Err(NoPlan::Memory {
                    space,
                    needed,
                    available,
                    profile: profile.name().to_owned(),
                    most,
                    at,
                    fix: fix.to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// The most bytes alive at once while lanes run, lane by lane: an output lives until its last consumer in the same
/// tick has run; scratch lives while its kernel runs.
fn within_ticks(net: &Net<'_>, spaces: &[Space], layout: &Layout, lanes: &Lanes, kept: &[bool]) -> (u64, u64) {
    let mut unit_of = vec![0; net.nodes.len()];
    for (unit, nodes) in lanes.units.iter().enumerate() {
        for &node in nodes {
            unit_of[node] = unit;
        }
    }
    let mut freed: Vec<Vec<u64>> = vec![Vec::new(); lanes.units.len()];
    let mut alive = vec![0u64; lanes.nodes.len()];
    let mut peak = vec![0u64; lanes.nodes.len()];
    let (mut gpu, mut cpu) = (0, 0);
    for (unit, nodes) in lanes.units.iter().enumerate() {
        let lane = lanes.lane_of[nodes[0]];
        let mut scratch = 0;
        for &at in nodes {
            let node = &net.nodes[at];
            let per_pixel = node.kernel.map_or(0, |k| u64::from(k.scratch_per_pixel));
            scratch += per_pixel * node.outputs.first().map_or(0, Content::elements);
            let inside = |w: &usize| unit_of[net.wires[*w].to] == unit;
            for (output, fan) in node.fans.iter().enumerate() {
                // What goes to the next member of a fused group never reaches memory, and what passes through a
                // handler without a kernel is a reference to what came in.
                let passed = node.kernel.is_none() && !node.inputs.is_empty() && spaces[at] == Space::Gpu;
                if kept[at] || passed || fan.iter().all(inside) && !fan.is_empty() {
                    continue;
                }
                let bytes = node.outputs[output].bytes();
                alive[lane] += bytes;
                let last =
                    fan.iter().map(|w| unit_of[net.wires[*w].to]).filter(|u| lanes.lane_of[lanes.units[*u][0]] == lane);
                freed[last.max().unwrap_or(unit)].push(bytes);
            }
            // A frame that is uploaded for this unit lives on the device while the unit runs.
            for wire in node.inputs.iter().flatten() {
                let up = layout.ramp_of[*wire].is_some_and(|r| layout.ramps[r].direction == Direction::Up);
                if up || net.nodes[at].entry.transfer == Some(Direction::Up) {
                    let bytes = net.wires[*wire].content.bytes();
                    alive[lane] += bytes;
                    freed[unit].push(bytes);
                }
            }
        }
        peak[lane] = peak[lane].max(alive[lane] + scratch);
        alive[lane] -= freed[unit].iter().sum::<u64>();
    }
    for (lane, nodes) in lanes.nodes.iter().enumerate() {
        match spaces[nodes[0]] {
            Space::Gpu => gpu += peak[lane],
            Space::Cpu => cpu += peak[lane],
        }
    }
    (gpu, cpu)
}
