//! Diamonds are deep enough: plans are executed in a simulation, frame by frame, and never deadlock.
//!
//! The simulation does not know how depths are computed. It has bounded links (a link of depth 0 lends one frame),
//! handlers that fire when their inputs allow it, frames that fail or are dropped and leave an empty slot, and
//! watermarks. A host lane stops if a link that it feeds is full; the device lane continues with any handler that is
//! ready. Lanes run in random order until none can continue, and then every frame must have arrived.

use std::collections::VecDeque;

use crate::support::{self, Random, check, random_profile};
use vramp_plan::{GraphSpec, HandlerId, HandlerSpec, NoPlan, Plan, Policy, Profile, RunOptions};

/// Ticks per second; a multiple of every rate used here.
const SECOND: i64 = 3600;

#[derive(Debug, Clone, Copy)]
enum Does {
    Make { period: i64 },
    Pass,
    Fail { percent: u64 },
    Hold { frames: usize },
    Keep { one_in: u64 },
    Join,
    Take,
}

/// The state of a link.
#[derive(Debug, Default)]
struct Pipe {
    depth: usize,
    /// Both ends are in one lane: if it is full, the lane does not wait for another lane but must run the consumer.
    inline: bool,
    /// Never makes its producer wait: the oldest frame is dropped and leaves its slot empty.
    lossy: bool,
    /// The presentation times of the waiting slots, and whether each still has its frame.
    waiting: VecDeque<(i64, bool)>,
    /// No frame at or before this time will arrive any more.
    certain: Option<i64>,
    ended: bool,
}

impl Pipe {
    fn has_room(&self) -> bool {
        self.lossy || self.waiting.len() < self.depth
    }

    fn push(&mut self, slot: (i64, bool)) {
        assert!(self.has_room(), "a frame was pushed into a full link");
        self.waiting.push_back(slot);
        self.certain = Some(slot.0);
        if self.lossy && self.waiting.iter().filter(|slot| slot.1).count() > self.depth {
            let oldest = self.waiting.iter_mut().find(|slot| slot.1).expect("there is more than one");
            oldest.1 = false;
        }
    }

    /// Every frame up to this time has arrived or will never arrive.
    fn knows(&self, time: i64) -> bool {
        self.ended || self.certain.is_some_and(|c| c >= time)
    }
}

struct Node {
    does: Does,
    inputs: Vec<usize>,
    outputs: Vec<usize>,
    made: i64,
    seen: u64,
    held: VecDeque<(i64, bool)>,
    done: bool,
}

/// Handlers that run one after another. A host lane does not skip a handler that waits for room.
struct Turn {
    device: bool,
    nodes: Vec<usize>,
    next: usize,
}

struct Machine<'r> {
    pipes: Vec<Pipe>,
    nodes: Vec<Node>,
    lanes: Vec<Turn>,
    frames: i64,
    random: &'r mut Random,
}

impl Machine<'_> {
    fn room(&self, node: usize) -> bool {
        self.nodes[node].outputs.iter().all(|p| self.pipes[*p].has_room())
    }

    fn send(&mut self, node: usize, slot: (i64, bool)) {
        for pipe in self.nodes[node].outputs.clone() {
            self.pipes[pipe].push(slot);
        }
    }

    /// Raises the watermark to this time; returns true if it changed.
    fn tell(&mut self, node: usize, time: Option<i64>) -> bool {
        let mut news = false;
        for pipe in self.nodes[node].outputs.clone() {
            let pipe = &mut self.pipes[pipe];
            if time > pipe.certain {
                pipe.certain = time;
                news = true;
            }
        }
        news
    }

    /// A handler that cannot fire passes on its watermark: no frame will arrive before its oldest one.
    fn pass_on(&mut self, node: usize) -> bool {
        let lead = &self.pipes[self.nodes[node].inputs[0]];
        let oldest = self.nodes[node].held.front().or(lead.waiting.front());
        let certain = oldest.map_or(lead.certain, |(time, _)| Some(time - 1));
        self.tell(node, certain)
    }

    fn end(&mut self, node: usize) -> bool {
        for pipe in self.nodes[node].outputs.clone() {
            self.pipes[pipe].ended = true;
        }
        !std::mem::replace(&mut self.nodes[node].done, true)
    }

    /// Fires a handler once, if possible; returns true if anything changed.
    fn fire(&mut self, node: usize) -> bool {
        if self.nodes[node].done && self.nodes[node].inputs.len() < 2 {
            return false;
        }
        let does = self.nodes[node].does;
        if let Does::Make { period } = does {
            let n = self.nodes[node].made;
            if n == self.frames {
                return self.end(node);
            }
            if !self.room(node) {
                return false;
            }
            self.send(node, (n * period, true));
            self.nodes[node].made += 1;
            return true;
        }
        if let Does::Join = does {
            return self.join(node);
        }
        let input = self.nodes[node].inputs[0];
        let Some(&slot) = self.pipes[input].waiting.front() else {
            if self.pipes[input].ended {
                if let (Does::Hold { .. }, Some(&held)) = (does, self.nodes[node].held.front()) {
                    if !self.room(node) {
                        return false;
                    }
                    self.nodes[node].held.pop_front();
                    self.send(node, held);
                    return true;
                }
                return self.end(node);
            }
            return self.pass_on(node);
        };
        let emits = match does {
            Does::Keep { one_in } => self.nodes[node].seen.is_multiple_of(one_in),
            Does::Hold { frames } => self.nodes[node].held.len() == frames,
            _ => true,
        };
        if emits && !self.room(node) {
            return self.pass_on(node);
        }
        self.pipes[input].waiting.pop_front();
        self.nodes[node].seen += 1;
        match does {
            Does::Keep { .. } if !emits => {
                self.tell(node, Some(slot.0));
            }
            Does::Hold { frames } => {
                self.nodes[node].held.push_back(slot);
                if self.nodes[node].held.len() > frames {
                    let oldest = self.nodes[node].held.pop_front().expect("it was just filled");
                    self.send(node, oldest);
                }
            }
            Does::Fail { percent } => {
                let lives = !self.random.chance(percent);
                self.send(node, (slot.0, slot.1 && lives));
            }
            Does::Take => {}
            _ => self.send(node, slot),
        }
        true
    }

    /// One output frame per frame of the lead (the first input); the other inputs supply their newest frame up to its
    /// time.
    fn join(&mut self, node: usize) -> bool {
        let (lead, others) = (self.nodes[node].inputs[0], self.nodes[node].inputs[1..].to_vec());
        let head = self.pipes[lead].waiting.front().copied();
        let over = head.is_none() && self.pipes[lead].ended;
        let mut changed = over && self.end(node);
        // Of the frames older than the lead only the newest counts, so the others can leave the link.
        let passed = if over { Some(i64::MAX) } else { head.map(|h| h.0).or(self.pipes[lead].certain) };
        for &other in &others {
            while self.pipes[other].waiting.front().is_some_and(|slot| Some(slot.0) <= passed) {
                self.pipes[other].waiting.pop_front();
                changed = true;
            }
        }
        let Some(slot) = head else {
            return (!over && self.pass_on(node)) || changed;
        };
        if !self.is_sure(node) || !self.room(node) {
            return self.pass_on(node) || changed;
        }
        self.pipes[lead].waiting.pop_front();
        self.send(node, slot);
        true
    }

    /// True if a handler would send a frame if another lane made room.
    fn waits_for_room(&self, node: usize) -> bool {
        let Node { does, inputs, held, made, seen, .. } = &self.nodes[node];
        let lead = inputs.first().map(|p| &self.pipes[*p]);
        let arrived = lead.is_some_and(|p| !p.waiting.is_empty());
        let sends = match does {
            Does::Make { .. } => *made < self.frames,
            Does::Keep { one_in } => arrived && seen.is_multiple_of(*one_in),
            Does::Hold { frames } => {
                arrived && held.len() == *frames || lead.is_some_and(|p| p.ended) && !held.is_empty()
            }
            Does::Join => arrived && self.is_sure(node),
            _ => arrived,
        };
        let full = |p: &usize| !self.pipes[*p].inline && !self.pipes[*p].has_room();
        sends && self.nodes[node].outputs.iter().any(full)
    }

    /// True if every other input of a join is certain at the time of its lead.
    fn is_sure(&self, node: usize) -> bool {
        let inputs = &self.nodes[node].inputs;
        let Some((time, _)) = self.pipes[inputs[0]].waiting.front() else { return false };
        // A lossy input supplies its current frame; a lossless one waits until that frame is certain.
        let sure = |pipe: &Pipe| pipe.lossy || pipe.knows(*time) || !pipe.waiting.is_empty();
        inputs[1..].iter().all(|o| sure(&self.pipes[*o]))
    }

    /// Changes whenever a handler takes or sends a frame. Passing on a watermark is not progress.
    fn progress(&self, node: usize) -> (i64, usize, usize) {
        let Node { inputs, held, made, .. } = &self.nodes[node];
        (*made, inputs.first().map_or(0, |p| self.pipes[*p].waiting.len()), held.len())
    }

    /// Runs a lane for a while; returns true if anything changed.
    fn advance(&mut self, lane: usize) -> bool {
        let mut changed = false;
        for _ in 0..self.lanes[lane].nodes.len() {
            let node = self.lanes[lane].nodes[self.lanes[lane].next];
            let before = self.progress(node);
            changed |= self.fire(node);
            let moved = self.progress(node) != before;
            if !moved && !self.lanes[lane].device && self.waits_for_room(node) {
                return changed;
            }
            self.lanes[lane].next = (self.lanes[lane].next + 1) % self.lanes[lane].nodes.len();
        }
        changed
    }

    /// Runs until no lane can continue; returns the handlers that are not done.
    fn run(&mut self) -> Vec<usize> {
        loop {
            let mut changed = false;
            let mut order: Vec<usize> = (0..self.lanes.len()).collect();
            for at in (1..order.len()).rev() {
                let other = self.random.below(at + 1);
                order.swap(at, other);
            }
            for lane in order {
                for _ in 0..=self.random.below(4) {
                    changed |= self.advance(lane);
                }
            }
            if !changed {
                return (0..self.nodes.len()).filter(|n| !self.nodes[*n].done).collect();
            }
        }
    }
}

/// The machine that executes a plan; `squeeze` removes slots from every link deeper than the default.
fn machine<'r>(spec: &GraphSpec, plan: &Plan, random: &'r mut Random, frames: i64, squeeze: u32) -> Machine<'r> {
    let pipes: Vec<Pipe> = plan
        .links
        .iter()
        .map(|link| {
            let inline = link.depth == 0;
            let depth = if link.depth > 3 { link.depth - squeeze } else { link.depth.max(1) };
            Pipe { depth: depth as usize, inline, lossy: link.policy != Policy::Lossless, ..Pipe::default() }
        })
        .collect();
    let names = spec.names();
    let node = |(at, handler): (usize, &vramp_plan::PlannedHandler)| {
        let written = &spec.handlers()[names.iter().position(|n| *n == handler.name).expect("nothing is inserted")];
        let number = |key: &str| written.settings.get(key).map_or(1, |s| s.value.parse::<u64>().expect("a number"));
        let does = match handler.kind() {
            "src" => Does::Make { period: SECOND / number("fps").cast_signed() },
            "delay" => Does::Hold { frames: number("frames") as usize },
            "every" => Does::Keep { one_in: number("n") },
            "join" => Does::Join,
            "sink" => Does::Take,
            "point" => Does::Fail { percent: number("work") },
            _ => Does::Pass,
        };
        let mut inputs: Vec<(&str, usize)> = Vec::new();
        let mut outputs = Vec::new();
        for (pipe, link) in plan.links.iter().enumerate() {
            if link.to.handler == at {
                inputs.push((link.to.port, pipe));
            }
            if link.from.handler == at {
                outputs.push(pipe);
            }
        }
        inputs.sort_unstable();
        let inputs = inputs.into_iter().map(|(_, pipe)| pipe).collect();
        Node { does, inputs, outputs, made: 0, seen: 0, held: VecDeque::new(), done: false }
    };
    let nodes = plan.handlers.iter().enumerate().map(node).collect();
    let lanes = plan.lanes.iter().map(|l| Turn { device: l.device, nodes: l.handlers.clone(), next: 0 }).collect();
    Machine { pipes, nodes, lanes, frames, random }
}

fn random_graph(random: &mut Random, lossy: u64) -> GraphSpec {
    let mut spec = GraphSpec::new();
    let mut produced: Vec<HandlerId> = Vec::new();
    let mut used: Vec<bool> = Vec::new();
    for _ in 0..=random.below(3) {
        let fps = random.pick(&[30, 30, 30, 60, 20, 24, 25]);
        produced.push(spec.add(HandlerSpec::new("src").set("fps", fps)));
        used.push(false);
    }
    for _ in 0..=random.below(9) {
        let kind = random.pick(&["point", "pass", "delay", "delay", "every", "join", "join", "join"]);
        let mut handler = HandlerSpec::new(kind);
        match kind {
            "delay" => handler = handler.set("frames", 1 + random.below(12)),
            "every" => handler = handler.set("n", 1 + random.below(5)),
            "point" => handler = handler.set("work", random.pick(&[0, 20, 90])),
            _ => {}
        }
        let at = spec.add(handler);
        for port in if kind == "join" { &["a", "b"][..] } else { &["video"] } {
            let from = random.below(produced.len());
            used[from] = true;
            let lossy = random.chance(lossy);
            let link = spec.connect(produced[from], at.port(*port));
            if lossy {
                link.policy(random.pick(&[Policy::Latest, Policy::Queue]));
            }
        }
        produced.push(at);
        used.push(false);
    }
    for (from, used) in produced.iter().zip(&used) {
        if !used {
            let sink = spec.add(HandlerSpec::new("sink"));
            spec.connect(*from, sink);
        }
    }
    spec
}

#[test]
fn no_plan_deadlocks_whatever_skips_fails_or_runs_first() {
    let (mut deep, graphs) = (0, if std::env::var_os("VRAMP_LONG").is_some() { 20_000 } else { 1_500 });
    for seed in 0..graphs {
        let mut random = Random::new(seed);
        let lossy = random.pick(&[0, 0, 15]);
        let spec = random_graph(&mut random, lossy);
        let profile = random_profile(&mut random);
        // A latency need that no plan meets makes links as shallow as they may be.
        let shallow = (seed % 25 == 0).then_some(1e-6);
        let plan =
            Plan::decide(&check(&spec), &profile, &RunOptions { latency_ms: shallow, ..RunOptions::new() }).unwrap();
        deep += usize::from(plan.links.iter().any(|l| l.depth > 3));
        for _ in 0..2 {
            let mut machine = machine(&spec, &plan, &mut random, 150, 0);
            let stuck = machine.run();
            let names: Vec<_> = stuck.iter().map(|n| &plan.handlers[*n].name).collect();
            let links: Vec<_> = (plan.links.iter())
                .map(|l| format!("{} -> {} depth {}", plan.port_name(l.from), plan.port_name(l.to), l.depth))
                .collect();
            assert!(
                stuck.is_empty(),
                "seed {seed}: stuck at {names:?} in\n{}\n{}",
                vramp_plan::write_text(&spec),
                links.join("\n")
            );
        }
    }
    assert!(deep * 5 > graphs as usize, "only {deep} graphs needed depth: the test does not test it");
}

fn diamond(frames: u32, one_in: u32) -> GraphSpec {
    let mut spec = GraphSpec::new();
    let source = spec.add(HandlerSpec::new("src").set("fps", 30));
    let every = spec.add(HandlerSpec::new("every").set("n", one_in));
    let delay = spec.add(HandlerSpec::new("delay").set("frames", frames));
    let join = spec.add(HandlerSpec::new("join"));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(source, every);
    spec.connect(every, delay);
    spec.connect(delay, join.port("a"));
    spec.connect(source, join.port("b"));
    spec.connect(join, sink);
    spec
}

fn depth_of(plan: &Plan, to: &str) -> u32 {
    plan.links.iter().find(|l| plan.port_name(l.to) == to).expect("the link is there").depth
}

#[test]
fn a_diamond_is_as_deep_as_its_latency_and_rate_ask_and_one_slot_less_deadlocks() {
    let profile = Profile::shipped("cpu").unwrap();
    for (frames, one_in) in [(5, 1), (9, 1), (5, 3), (2, 10)] {
        let spec = diamond(frames, one_in);
        let plan = Plan::decide(&check(&spec), &profile, &RunOptions::new()).unwrap();
        assert_eq!(depth_of(&plan, "join0.b"), frames * one_in + 1);
        let mut random = Random::new(7);
        assert!(machine(&spec, &plan, &mut random, 400, 0).run().is_empty());
        let stuck = machine(&spec, &plan, &mut random, 400, 1).run();
        assert!(!stuck.is_empty(), "{frames} frames, one in {one_in}: one slot less should not be enough");
    }
}

#[test]
fn a_lossless_link_beside_a_lossy_one_is_deep_enough_too() {
    let mut spec = GraphSpec::new();
    let source = spec.add(HandlerSpec::new("src").set("fps", 30));
    let delay = spec.add(HandlerSpec::new("delay").set("frames", 10));
    let join = spec.add(HandlerSpec::new("join"));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(source, delay).policy(Policy::Latest);
    spec.connect(delay, join.port("a"));
    spec.connect(source, join.port("b"));
    spec.connect(join, sink);
    let plan = Plan::decide(&check(&spec), &Profile::shipped("cpu").unwrap(), &RunOptions::new()).unwrap();
    assert_eq!(depth_of(&plan, "join0.b"), 11);
    assert!(machine(&spec, &plan, &mut Random::new(3), 400, 0).run().is_empty());
}

#[test]
fn inputs_that_tick_to_different_clocks_are_not_in_one_tick() {
    let mut spec = GraphSpec::new();
    let fast = spec.add(HandlerSpec::new("src").set("fps", 60));
    let slow = spec.add(HandlerSpec::new("src").set("fps", 1));
    let join = spec.add(HandlerSpec::new("join"));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(fast, join.port("a"));
    spec.connect(slow, join.port("b"));
    spec.connect(join, sink);
    let plan = Plan::decide(&check(&spec), &Profile::shipped("cpu").unwrap(), &RunOptions::new()).unwrap();
    assert!(depth_of(&plan, "join0.b") > 0);
    assert_ne!(plan.handler("src1").unwrap().lane, plan.handler("join0").unwrap().lane);
}

#[test]
fn a_depth_that_is_too_small_for_its_diamond_is_refused_with_the_numbers() {
    let mut spec = GraphSpec::new();
    let source = spec.add(HandlerSpec::new("src"));
    let delay = spec.add(HandlerSpec::new("delay").set("frames", 5));
    let join = spec.add(HandlerSpec::new("join"));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(source, delay);
    spec.connect(delay, join.port("a"));
    spec.connect(source, join.port("b")).policy(Policy::Lossless).depth(4);
    spec.connect(join, sink);
    let profile = Profile::shipped("cpu").unwrap();
    let error = Plan::decide(&check(&spec), &profile, &RunOptions::new()).unwrap_err();
    assert_eq!(error, NoPlan::Depth { link: "src0.video -> join0.b".to_owned(), given: 4, needed: 6, held: 5 });
}

#[test]
fn branches_that_share_no_cycle_are_not_made_deep() {
    let mut spec = GraphSpec::new();
    let one = spec.add(HandlerSpec::new("src"));
    let two = spec.add(HandlerSpec::new("src"));
    let delay = spec.add(HandlerSpec::new("delay").set("frames", 300));
    let join = spec.add(HandlerSpec::new("join"));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(one, delay);
    spec.connect(delay, join.port("a"));
    spec.connect(two, join.port("b"));
    spec.connect(join, sink);
    let plan = Plan::decide(&check(&spec), &Profile::shipped("cpu").unwrap(), &RunOptions::new()).unwrap();
    assert!(depth_of(&plan, "join0.b") <= 3);
}

#[test]
fn memory_for_a_diamond_too_deep_is_refused_with_the_numbers() {
    let spec = support::diamond(HandlerSpec::new("src").set("size", "7680x4320"), 1000);
    let error = Plan::decide(&check(&spec), &Profile::shipped("cpu").unwrap(), &RunOptions::new()).unwrap_err();
    match error {
        NoPlan::Memory { needed, available, most, .. } => {
            assert!(needed > 1000 * 7680 * 4320 * 4 && available == 8_000_000_000 && most <= needed);
        }
        other => panic!("{other}"),
    }
}
