//! Step 5: the cost model. Turns the figures of a profile into whole nanoseconds per frame of the fastest source.
//!
//! The cost of a node is its compute time (`compute`) plus its pass over memory (`pass`), which includes a call on the
//! host or dispatches on the device. Fusing a wire saves a store, a load and one call or dispatch, less the work that a
//! stencil would have to repeat. Two fused handlers that both look up bytes in a table have the compute time of
//! one such handler. The profile gives a rate for each class of work, and may give a handler a rate of its own. On the
//! host, the rows of a kernel are divided into bands, and each band is computed by one thread. A handler without a
//! kernel uses one thread. On the device, a drawing kernel tests every pixel.
//!
//! The cost of a plan is the sum of the times of its steps, as if the steps ran one after another and each step had all
//! threads that it can use. If lanes run in parallel, the frame rate is higher than this cost suggests, unless a
//! software driver runs the device's work on the host's cores. The cut and the layout each sum up the costs on their
//! own, so that the two sums can be checked against each other.
//!
//! Invariants: every cost is an integer of at most 2^40 ns. The cost of a handler after `every n=10` counts one tenth.

use crate::catalog::{Class, IntermediateExtent};
use crate::profile::{LEAST_BAND_PIXELS, Profile, Rates};
use crate::words::{Content, Rate, Space};

use super::explain::NoPlan;
use super::net::Net;

/// The maximum cost of one node or transfer: 18 minutes.
pub(super) const MOST_NS: u64 = 1 << 40;

/// One number per space.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct PerSpace {
    pub gpu: u64,
    pub cpu: u64,
}

impl PerSpace {
    pub fn of(self, space: Space) -> u64 {
        match space {
            Space::Gpu => self.gpu,
            Space::Cpu => self.cpu,
        }
    }
}

/// The costs of transferring one output.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct TransferCost {
    pub up: u64,
    pub down: u64,
    /// The cost of the additional submit that an upload may cause. Whether this cost applies does not depend on the
    /// placement, so that the cut stays exact.
    pub resubmit: u64,
}

/// The costs of all nodes, wires and transfers of a net.
#[derive(Debug)]
pub(super) struct Costs {
    /// The compute time of each node.
    pub compute: Vec<PerSpace>,
    /// The pass over memory of each node if the node is not fused, including its call or dispatches.
    pub pass: Vec<PerSpace>,
    /// What fusing each wire saves; filled in by `fuse`.
    pub saving: Vec<PerSpace>,
    /// The part of the consumer's compute time that fusing each wire also saves, because two tables become one table.
    pub folded: Vec<PerSpace>,
    /// The transfer of each output of each node.
    pub transfer: Vec<Vec<TransferCost>>,
    /// The cost of one submit, paid once if the device is used at all.
    pub submit: u64,
}

impl Costs {
    /// Everything that fusing a wire saves: `saving` plus `folded`.
    pub fn spared(&self, wire: usize) -> PerSpace {
        let (saving, folded) = (self.saving[wire], self.folded[wire]);
        PerSpace { gpu: saving.gpu + folded.gpu, cpu: saving.cpu + folded.cpu }
    }
}

/// Run options that affect costs.
#[derive(Debug, Clone, Copy)]
pub(super) struct CostOptions {
    pub threads: Option<u32>,
    pub batch: u32,
}

/// The cost model under one profile.
pub(super) struct Model<'a> {
    profile: &'a Profile,
    tuning: CostOptions,
    fastest: Option<Rate>,
}

impl<'a> Model<'a> {
    pub fn new(net: &Net<'_>, profile: &'a Profile, tuning: CostOptions) -> Model<'a> {
        let sources = net.nodes.iter().filter(|n| n.entry.inputs.is_empty());
        let fastest = sources.flat_map(|n| &n.outputs).filter_map(Content::rate).max();
        Model { profile, tuning, fastest }
    }

    pub fn costs(&self, net: &Net<'_>) -> Result<Costs, NoPlan> {
        let mut offers_above = vec![false; net.nodes.len()];
        let mut costs = Costs {
            compute: Vec::with_capacity(net.nodes.len()),
            pass: Vec::with_capacity(net.nodes.len()),
            saving: vec![PerSpace::default(); net.wires.len()],
            folded: vec![PerSpace::default(); net.wires.len()],
            transfer: Vec::with_capacity(net.nodes.len()),
            submit: self.submit(),
        };
        let refuse = |handler: String, space: Space, ns: u64| match ns {
            0..=MOST_NS => Ok(()),
            _ => Err(NoPlan::Cost { handler, space, ns, limit: MOST_NS }),
        };
        refuse("a submit".to_owned(), Space::Gpu, costs.submit)?;
        for at in 0..net.nodes.len() {
            let node = &net.nodes[at];
            offers_above[at] =
                node.entry.offers(Space::Gpu) || node.inputs.iter().flatten().any(|w| offers_above[net.wires[*w].from]);
            let weight = self.weight(net, at);
            let compute = PerSpace {
                gpu: self.compute(net, at, Space::Gpu, weight),
                cpu: self.compute(net, at, Space::Cpu, weight),
            };
            let pass =
                PerSpace { gpu: self.pass(net, at, Space::Gpu, weight), cpu: self.pass(net, at, Space::Cpu, weight) };
            // The cost in a space for which the node has no implementation is never used, but must not overflow a sum.
            let within = |space: Space, ns: u64| if node.entry.offers(space) { ns } else { ns.min(MOST_NS) };
            let compute = PerSpace { gpu: within(Space::Gpu, compute.gpu), cpu: within(Space::Cpu, compute.cpu) };
            let pass = PerSpace { gpu: within(Space::Gpu, pass.gpu), cpu: within(Space::Cpu, pass.cpu) };
            for space in Space::RANKED.into_iter().filter(|s| node.entry.offers(*s)) {
                refuse(node.name.clone(), space, compute.of(space).saturating_add(pass.of(space)))?;
            }
            costs.compute.push(compute);
            costs.pass.push(pass);
            let mut transfers = Vec::with_capacity(node.outputs.len());
            for content in &node.outputs {
                let transfer = self.transfer(content, offers_above[at]);
                let dearest = transfer.up.saturating_add(transfer.resubmit).max(transfer.down);
                refuse(format!("a transfer of {}'s output", node.name), Space::Gpu, dearest)?;
                transfers.push(transfer);
            }
            costs.transfer.push(transfers);
        }
        Ok(costs)
    }

    /// What fusing a wire saves in a space: the producer's store, the consumer's load and a call or dispatch. If the
    /// consumer reads a position more than once, the cost of computing that position again is subtracted; one
    /// computation of all positions costs `run_ns`.
    pub fn saving(&self, net: &Net<'_>, wire: usize, space: Space, run_ns: u64) -> u64 {
        let wire = &net.wires[wire];
        let consumer = &net.nodes[wire.to];
        let weight = self.weight(net, wire.to);
        let bytes = wire.content.bytes();
        let (before, after) = (self.share(net, wire.from), self.share(net, wire.to));
        let saved = self.memory_ns(bytes, space, before) + self.memory_ns(bytes, space, after) + self.call_ns(space);
        let reads = consumer.kernel.map_or(1, |k| k.reads_per_pixel);
        let read = consumer.outputs.first().map_or(0, Content::elements) as f64 * f64::from(reads);
        let again = (read / (wire.content.elements() as f64).max(1.0) - 1.0).max(0.0);
        // Rounded down, so that a group's pass never becomes negative.
        let saved = (saved * weight.0).floor() as u64;
        saved.saturating_sub((run_ns as f64 * again).ceil() as u64)
    }

    fn compute(&self, net: &Net<'_>, at: usize, space: Space, weight: Weight) -> u64 {
        let (class, mut units) = net.work(at);
        let node = &net.nodes[at];
        let rate = |rates: &Rates| rates.of_handler(node.entry.name, &node.settings, class);
        let rate = match (space, &self.profile.gpu) {
            // Codecs and pipes run on one thread, and the profile gives their rates for one thread.
            (Space::Cpu, _) if node.kernel.is_none() && matches!(class, Class::Codec | Class::Move) => {
                rate(&self.profile.cpu.rates)
            }
            (Space::Cpu, _) => rate(&self.profile.cpu.rates) * self.share(net, at),
            (Space::Gpu, None) => return 0,
            (Space::Gpu, Some(gpu)) => {
                // On the device, the kernel tests for every pixel whether the drawing covers the pixel.
                if class == Class::Draw && node.kernel.is_some() {
                    units = units.max(net.main_content(at).map_or(0, Content::elements) as f64);
                }
                rate(&gpu.rates)
            }
        };
        // Rates are in million units per second. One million units per second is a thousandth of a unit per nanosecond.
        weighted(units.max(0.0) / rate * 1e3 + self.network_ns(net, at, space), weight)
    }

    /// The time in which the steps of a network move their values and are called.
    fn network_ns(&self, net: &Net<'_>, at: usize, space: Space) -> f64 {
        let Some(needs) = net.network(at).filter(|needs| needs.kernels > 0.0) else { return 0.0 };
        let each = (needs.moved_bytes / needs.kernels) as u64;
        needs.kernels * (self.memory_ns(each, space, self.share(net, at)) + self.call_ns(space))
    }

    fn pass(&self, net: &Net<'_>, at: usize, space: Space, weight: Weight) -> u64 {
        let node = &net.nodes[at];
        let Some(kernel) = node.kernel else { return 0 };
        let read = node.inputs.iter().flatten().map(|w| net.wires[*w].content.bytes());
        let written = node.outputs.iter().filter(|_| !node.passes_on()).map(Content::bytes);
        let kept = net.kept_bytes(at);
        // A kernel over whole columns reads the pixels once more in its second pass.
        let again = match kernel.keeps {
            Some(IntermediateExtent::Columns) => net.lead_wire(at).map_or(0, |w| net.wires[w].content.bytes()),
            _ => 0,
        };
        let passes = read.chain(written).chain([kept, kept, again]);
        let share = self.share(net, at);
        let bytes_ns: f64 = passes.map(|bytes| self.memory_ns(bytes, space, share)).sum();
        let calls = if space == Space::Gpu { kernel.dispatches } else { 1 };
        weighted(bytes_ns + self.call_ns(space) * f64::from(calls), weight)
    }

    fn transfer(&self, content: &Content, offers_above: bool) -> TransferCost {
        let Some(gpu) = &self.profile.gpu else { return TransferCost::default() };
        let weight = self.weight_of(content.rate());
        let bytes = content.bytes();
        if bytes == 0 {
            return TransferCost::default();
        }
        let one = |us: f64, gb_s: f64| weighted(us * 1e3 + bytes as f64 / gb_s, weight);
        TransferCost {
            up: one(gpu.upload_us.value, gpu.upload_gb_s.value),
            down: one(gpu.download_us.value, gpu.download_gb_s.value),
            resubmit: if offers_above { weighted(self.submit() as f64, weight) } else { 0 },
        }
    }

    fn memory_ns(&self, bytes: u64, space: Space, share: f64) -> f64 {
        let cpu = &self.profile.cpu;
        let gb_s = match (space, &self.profile.gpu) {
            (Space::Gpu, Some(gpu)) => gpu.memory_gb_s.value,
            _ if bytes <= cpu.cache_bytes.whole() => cpu.cache_gb_s.value * share,
            _ => cpu.memory_gb_s.value,
        };
        bytes as f64 / gb_s
    }

    /// The cost of calling or dispatching one more kernel.
    fn call_ns(&self, space: Space) -> f64 {
        match space {
            Space::Cpu => self.profile.cpu.call_us.value * 1e3,
            Space::Gpu => self.profile.gpu.as_ref().map_or(0.0, |gpu| gpu.dispatch_us.value * 1e3),
        }
    }

    fn submit(&self) -> u64 {
        let us = self.profile.gpu.as_ref().map_or(0.0, |gpu| gpu.submit_us.value);
        (us * 1e3 / f64::from(self.tuning.batch.max(1))).ceil() as u64
    }

    /// The fraction of the profile's threads that a node uses. A kernel uses one thread per band of rows, up to the
    /// number of threads that the user allows, and so do the steps of a network. Any other node without a kernel uses the
    /// one thread of its lane.
    fn share(&self, net: &Net<'_>, at: usize) -> f64 {
        let threads = self.profile.cpu.threads.value;
        let left = self.tuning.threads.map_or(threads, |n| f64::from(n).min(threads)).max(1.0);
        let node = &net.nodes[at];
        let bands = match node.kernel {
            None if node.entry.network.is_some() => u64::MAX,
            None => 1,
            Some(_) => node.outputs.first().map_or(0, Content::elements) / LEAST_BAND_PIXELS,
        };
        (bands as f64).clamp(1.0, left) / threads
    }

    /// How often a node runs, relative to the fastest source.
    fn weight(&self, net: &Net<'_>, at: usize) -> Weight {
        let rate = match net.lead_wire(at) {
            Some(wire) => net.wires[wire].content.rate(),
            None => net.nodes[at].outputs.first().and_then(Content::rate),
        };
        self.weight_of(rate)
    }

    fn weight_of(&self, rate: Option<Rate>) -> Weight {
        match (rate, self.fastest) {
            (Some(rate), Some(fastest)) => Weight(rate.per_second() / fastest.per_second()),
            _ => Weight(1.0),
        }
    }
}

/// Runs per frame of the fastest source.
#[derive(Debug, Clone, Copy)]
struct Weight(f64);

fn weighted(ns: f64, weight: Weight) -> u64 {
    // The conversion saturates; the caller refuses values that are too large.
    (ns * weight.0).ceil() as u64
}
