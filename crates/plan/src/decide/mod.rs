//! The planner: turns a checked graph and a profile into a plan.
//!
//! Each step is a file whose header explains the step. Each step passes plain data to the later steps:
//!
//! 1. `negotiate` fixes formats, sizes and rates and inserts converters; the result is the `net`. `shape` evaluates the
//!    rules of outputs.
//! 2. `tags` propagates the tags of stream headers along the wires.
//! 3. `depth` computes how many frames each lossless link must hold.
//! 4. `allow` determines the spaces in which each node may run.
//! 5. `cost` prices nodes, passes and transfers.
//! 6. `fuse` determines which wires may be fused and what fusing saves.
//! 7. `place` chooses a space for each node by a minimum cut (`cut`).
//! 8. `layout` forms fusion groups and transfers, and sums up the cost of the plan.
//! 9. `lanes` assigns lanes, segments and the depth of each link.
//! 10. `memory` counts the bytes that the pools need.
//! 11. `advise` writes the warnings.
//! 12. `wiring` makes units, rings and the running order of each lane.
//!
//! If the user needs a latency, `latency` repeats these steps with other placements and depths, and chooses among the
//! plans.
//!
//! `explain` holds [`NoPlan`], the reasons a graph has no plan.
//!
//! Invariant: the net, depths, costs and fusion savings do not depend on pins, so that the costs of placements can be
//! compared.

mod advise;
mod allow;
mod cost;
mod cut;
mod depth;
mod explain;
mod fuse;
mod lanes;
mod latency;
mod layout;
mod memory;
mod negotiate;
mod net;
mod place;
mod shape;
mod tags;
mod wiring;

use crate::graph::Graph;
use crate::options::RunOptions;
use crate::plan::{Alternatives, FusionGroup, Plan, PlannedHandler, PlannedLane, PlannedLink, PortAt, Transfer};
use crate::profile::Profile;
use crate::words::{Space, SpaceSet};

use advise::Advice;
use allow::{Allowed, Orders};
use cost::{CostOptions, Costs, Model};
pub use explain::{Claim, Conflict, NoPlan, OffDevice};
use latency::Tuning;
use layout::{UnitLayout, lay_out};
use memory::{Budgets, InFlight};
use net::Net;
use tags::Tagged;
use wiring::Wiring;

impl Plan {
    /// Plans a graph for a machine under these options.
    ///
    /// ```
    /// use vramp_plan::catalog::{Catalog, Entry, NoProbe, Output, Setting, SizeRule};
    /// # use vramp_plan::{Graph, Plan, Profile, RunOptions, Space};
    /// # use vramp_plan::catalog::Family;
    /// # static SOURCE: Entry = Entry {
    /// #     name: "still", family: Family::Source, inputs: &[],
    /// #     outputs: &[Output { size: SizeRule::Setting("size"), ..Output::VIDEO }],
    /// #     settings: &[Setting::size("size", "").default("64x64")],
    /// #     ..Entry::FILTER
    /// # };
    /// # static SINK: Entry = Entry { name: "show", ..Entry::SINK };
    /// let catalog = Catalog::of([&SOURCE, &SINK])?;
    /// let mut spec = Graph::builder();
    /// let (source, sink) = (spec.add("still"), spec.add("show"));
    /// spec.connect(source, sink);
    /// let graph = Graph::check(&spec, &catalog, &NoProbe)?;
    /// let profile = Profile::shipped("integrated").expect("it ships");
    /// let plan = Plan::decide(&graph, &profile, &RunOptions::new().only(Space::Cpu))?;
    /// assert!(plan.transfers.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn decide(graph: &Graph, profile: &Profile, options: &RunOptions) -> Result<Plan, NoPlan> {
        let orders = Orders {
            only: options.only,
            pins: options.pins.clone(),
            require_gpu: options.require_gpu,
            for_latency: false,
        };
        let budgets =
            Budgets { cpu_bytes: options.cpu_memory_bytes, gpu_bytes: options.gpu_memory_bytes, waiting: false };
        let tuning = Tuning { in_flight: options.in_flight, batch: options.batch, usual_depth: lanes::USUAL_DEPTH };
        let planner = Planner { graph, profile, options, orders, budgets, tuning };
        match options.latency_ms {
            None => planner.decide_for_memory(),
            // The conversion saturates.
            Some(asked_ms) => planner.decide_within((asked_ms * 1e6).round() as u64),
        }
    }
}

#[derive(Debug, Clone)]
struct Planner<'a> {
    graph: &'a Graph,
    profile: &'a Profile,
    options: &'a RunOptions,
    /// The user's placement options. If the cheapest plan does not fit in memory, `Planner::only` makes a planner in
    /// which `orders.only` is one space.
    orders: Orders,
    budgets: Budgets,
    tuning: Tuning,
}

impl Planner<'_> {
    fn only(&self, space: Space) -> Self {
        Planner { orders: Orders { only: Some(space), ..self.orders.clone() }, ..self.clone() }
    }

    fn decide_for_memory(&self) -> Result<Plan, NoPlan> {
        let error = match self.decide_once() {
            Err(error @ NoPlan::Memory { .. }) => error,
            decided => return decided,
        };
        let NoPlan::Memory { space, needed, available, .. } = &error else { return Err(error) };
        if self.orders.only.is_none() {
            // Placement does not consider memory. If the cheapest plan does not fit, a plan in which every handler that
            // can run in one space does run in that space may fit.
            let extremes = Space::RANKED.into_iter().filter_map(|only| self.only(only).decide_once().ok());
            if let Some(mut plan) = extremes.min_by_key(|plan| plan.cost_ns) {
                plan.warnings.push(format!(
                    "the cheapest plan needs {needed} bytes of {space} memory, but {available} are available; a more \
                     expensive plan that fits was chosen"
                ));
                return Ok(plan);
            }
        }
        if self.budgets.cpu_bytes.is_none() && self.budgets.gpu_bytes.is_none() {
            return Err(error);
        }
        let mut waiting = self.clone();
        waiting.budgets.waiting = true;
        let mut plan = waiting.decide_once()?;
        plan.warnings.push(format!(
            "the plan needs {needed} bytes of {space} memory, but the budget is {available}: frames will wait for \
             memory, and the run fails if waiting cannot help"
        ));
        Ok(plan)
    }

    fn decide_once(&self) -> Result<Plan, NoPlan> {
        let net = negotiate::negotiate(self.graph)?;
        let tagged = tags::tags(self.graph, &net);
        let depths = depth::depths(&net);
        let allowed = allow::allow(&net, self.profile, &self.orders)?;
        if self.options.strict
            && let Some(conflict) = explain::strict_conflict(&net, &allowed)
        {
            return Err(NoPlan::Strict(conflict));
        }
        let model =
            Model::new(&net, self.profile, CostOptions { threads: self.options.threads, batch: self.tuning.batch });
        let mut costs = model.costs(&net)?;
        if self.options.fusion {
            let most = self.profile.gpu.as_ref().map_or(0, |g| g.limits.storage_buffers_per_stage.whole());
            fuse::fill_savings(&net, &model, &mut costs, &depths, most);
        }
        let spaces = place::place(&net, &allowed, &costs, self.options.strict);
        let layout = lay_out(&net, &spaces, &costs);
        let usual_depth = self.tuning.usual_depth;
        let lanes = lanes::lanes(&net, &spaces, &layout, &depths, usual_depth)?;
        let in_flight = InFlight { frames: self.tuning.in_flight, batch: self.tuning.batch };
        let memory = memory::memory(&net, &spaces, &layout, &lanes, self.profile, in_flight, self.budgets)?;
        let fits = |spaces: &[Space], layout: &UnitLayout| {
            let lanes = lanes::lanes(&net, spaces, layout, &depths, usual_depth);
            let memory = |l: &_| memory::memory(&net, spaces, layout, l, self.profile, in_flight, self.budgets);
            lanes.is_ok_and(|l| memory(&l).is_ok())
        };
        let advice = Advice {
            net: &net,
            profile: self.profile,
            orders: &self.orders,
            allowed: &allowed,
            spaces: &spaces,
            costs: &costs,
            layout: &layout,
            fits: &fits,
        };
        let busiest = busiest_lane(&net, &spaces, &layout, &lanes.lane_of, &costs);
        let warnings = advice.warnings(self.options.pace.map(|pace| (pace, busiest)));
        let is_device = |lane: &Vec<usize>| spaces[lane[0]] == Space::Gpu;
        let Wiring { units, rings, rings_of, segments } =
            wiring::wire(&net, &layout, &lanes, lanes.nodes.iter().position(is_device));
        let elsewhere = Elsewhere { net: &net, costs: &costs, allowed: &allowed, layout: &layout, spaces: &spaces };
        let made = lanes.nodes.iter().zip(segments);
        Ok(Plan {
            handlers: handlers(&net, &spaces, &layout, &lanes.lane_of, &elsewhere),
            links: links(&net, &tagged, &spaces, &layout, &lanes.depth, rings_of),
            transfers: transfers(&net, &layout),
            groups: groups(&layout, &elsewhere),
            lanes: made
                .map(|(nodes, segments)| PlannedLane { device: is_device(nodes), handlers: nodes.clone(), segments })
                .collect(),
            units,
            rings,
            memory,
            segments: lanes.segments,
            profile: self.profile.name().to_owned(),
            cost_ns: layout.cost_ns,
            alternatives: self.alternatives(&net, &costs, fits),
            latency: None,
            warnings,
            notes: probed_notes(self.graph).chain(tagged.notes).collect(),
        })
    }

    /// The costs under `--cpu` and `--gpu`; `None` for an option that is not possible.
    fn alternatives(&self, net: &Net<'_>, costs: &Costs, fits: impl Fn(&[Space], &UnitLayout) -> bool) -> Alternatives {
        let cost = |only: Space| {
            let orders = Orders { only: Some(only), ..self.orders.clone() };
            let allowed = allow::allow(net, self.profile, &orders).ok()?;
            let offered: Vec<SpaceSet> = allowed.iter().map(|a| a.spaces).collect();
            let spaces = place::extreme(net, &offered, only);
            let layout = lay_out(net, &spaces, costs);
            let allowed = !self.options.strict || layout.transfers.iter().all(|r| r.explicit);
            (allowed && fits(&spaces, &layout)).then_some(layout.cost_ns)
        };
        Alternatives { cpu_ns: cost(Space::Cpu), gpu_ns: cost(Space::Gpu) }
    }
}

/// The time per frame of the busiest lane. The device lane performs the transfers.
fn busiest_lane(net: &Net<'_>, spaces: &[Space], layout: &UnitLayout, lane_of: &[usize], costs: &Costs) -> u64 {
    let mut lanes = vec![0u64; net.nodes.len()];
    for at in 0..net.nodes.len() {
        lanes[lane_of[at]] += layout.compute[at];
    }
    for group in &layout.groups {
        lanes[lane_of[group.nodes[0]]] += group.pass_ns;
    }
    if let Some(device) = spaces.iter().position(|s| *s == Space::Gpu) {
        lanes[lane_of[device]] += costs.submit + layout.transfers.iter().map(|r| r.ns).sum::<u64>();
    }
    lanes.into_iter().max().unwrap_or(0)
}

/// Costs in the space in which a handler or a group does not run.
struct Elsewhere<'a> {
    net: &'a Net<'a>,
    costs: &'a Costs,
    allowed: &'a [Allowed],
    layout: &'a UnitLayout,
    spaces: &'a [Space],
}

impl Elsewhere<'_> {
    /// The cost of a node on its own in a space; `None` if the node cannot run there.
    fn alone_ns(&self, at: usize, space: Space) -> Option<u64> {
        let able = self.allowed[at].is_able(self.net.offered(at), space);
        (able && self.net.nodes[at].entry.transfer.is_none())
            .then(|| self.costs.compute[at].of(space) + self.costs.pass[at].of(space))
    }

    fn other_ns(&self, at: usize) -> Option<u64> {
        self.alone_ns(at, self.spaces[at].other())
    }

    /// The cost of a group in the other space, less what fusing the same wires saves there.
    fn group_ns(&self, group: &layout::LayoutGroup) -> Option<u64> {
        let other = group.space.other();
        group.nodes.iter().try_fold(0u64, |sum, at| {
            let joins = |wire: &usize| self.layout.group_of[self.net.wires[*wire].from] == self.layout.group_of[*at];
            let saved = self.net.lead_wire(*at).filter(joins).map_or(0, |wire| self.costs.spared(wire).of(other));
            Some((sum + self.alone_ns(*at, other)?).saturating_sub(saved))
        })
    }
}

fn handlers(
    net: &Net<'_>,
    spaces: &[Space],
    layout: &UnitLayout,
    lane_of: &[usize],
    elsewhere: &Elsewhere<'_>,
) -> Vec<PlannedHandler> {
    let one = |(at, node): (usize, &net::NetNode<'_>)| PlannedHandler {
        name: node.name.clone(),
        entry: node.entry,
        settings: node.settings.clone().into_owned(),
        lead: node.lead,
        inserted: node.inserted,
        space: spaces[at],
        lane: lane_of[at],
        group: layout.group_of[at],
        cost_ns: layout.compute[at],
        alone_ns: elsewhere.alone_ns(at, spaces[at]).unwrap_or(0),
        other_ns: elsewhere.other_ns(at),
        small_bytes: if spaces[at] == Space::Gpu { net.small_bytes(at) } else { 0 },
    };
    net.nodes.iter().enumerate().map(one).collect()
}

fn links(
    net: &Net<'_>,
    tagged: &Tagged,
    spaces: &[Space],
    layout: &UnitLayout,
    depth: &[u32],
    mut rings_of: Vec<Vec<usize>>,
) -> Vec<PlannedLink> {
    let one = |at: usize| {
        let wire = &net.wires[at];
        // Audio is carried nowhere.
        let silent = wire.content.bytes() == 0;
        let from_space = net.space_out(wire.from, spaces[wire.from]);
        let space = net.space_in(at, spaces[wire.to]);
        PlannedLink {
            from: net.output_at(at),
            to: net.input_at(at),
            from_space: if silent { Space::Cpu } else { from_space },
            space: if silent { Space::Cpu } else { space },
            content: wire.content.clone(),
            tags: tagged.of_wire(net, at),
            policy: wire.policy,
            depth: depth[at],
            transfer: layout.transfer_of[at],
            rings: std::mem::take(&mut rings_of[at]),
        }
    };
    wiring::by_ends(net).into_iter().map(one).collect()
}

fn transfers(net: &Net<'_>, layout: &UnitLayout) -> Vec<Transfer> {
    let one = |transfer: &layout::LayoutTransfer| Transfer {
        from: PortAt { handler: transfer.from, port: net.nodes[transfer.from].entry.outputs[transfer.output].name },
        to: transfer.wires.iter().map(|w| net.input_at(*w)).collect(),
        direction: transfer.direction,
        bytes: net.nodes[transfer.from].outputs[transfer.output].bytes(),
        est_ns: transfer.ns,
        explicit: transfer.explicit,
    };
    layout.transfers.iter().map(one).collect()
}

/// The notes of the sources' probes.
fn probed_notes(graph: &Graph) -> impl Iterator<Item = String> {
    let notes = |handler: &crate::graph::Handler| {
        let named = |note: &String| format!("{}: {note}", handler.name);
        handler.probed.notes.iter().map(named).collect::<Vec<_>>()
    };
    graph.handlers().iter().flat_map(notes)
}

fn groups(layout: &UnitLayout, elsewhere: &Elsewhere<'_>) -> Vec<FusionGroup> {
    let one = |group: &layout::LayoutGroup| FusionGroup {
        space: group.space,
        handlers: group.nodes.clone(),
        dispatches: group.dispatches,
        pass_ns: group.pass_ns,
        other_ns: elsewhere.group_ns(group),
    };
    layout.groups.iter().map(one).collect()
}
