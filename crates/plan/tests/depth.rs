//! Diamonds are always deep enough: plans are executed in simulation, frame by frame, and never deadlock.
//!
//! The simulation knows nothing of how depths were computed. It has bounded lossless links (a link of depth 0 lends
//! one frame), handlers that fire when their inputs allow it, frames that fail on the way and leave an empty slot, and
//! watermarks; it fires one random handler after the other until none can, and then everything must have arrived.

#[expect(dead_code, reason = "each test file uses a part of it")]
mod support;

use std::collections::VecDeque;

use support::{Random, check, random_profile};
use vramp_plan::{GraphSpec, HandlerId, HandlerSpec, NoPlan, Plan, Planner, Policy, Profile};

/// Ticks per second: every rate used here divides it.
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

/// A link on its way through time.
#[derive(Debug, Default)]
struct Pipe {
    depth: usize,
    /// Presentation times of the slots that wait, and whether each still has its frame.
    waiting: VecDeque<(i64, bool)>,
    /// Nothing at or before this time will come any more.
    certain: Option<i64>,
    ended: bool,
}

impl Pipe {
    fn has_room(&self) -> bool {
        self.waiting.len() < self.depth
    }

    /// Everything up to this time is here or will never come.
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

struct Machine<'r> {
    pipes: Vec<Pipe>,
    nodes: Vec<Node>,
    frames: i64,
    random: &'r mut Random,
}

impl Machine<'_> {
    fn room(&self, node: usize) -> bool {
        self.nodes[node].outputs.iter().all(|p| self.pipes[*p].has_room())
    }

    fn send(&mut self, node: usize, slot: (i64, bool)) {
        for pipe in self.nodes[node].outputs.clone() {
            assert!(self.pipes[pipe].has_room(), "a frame was pushed into a full link");
            self.pipes[pipe].waiting.push_back(slot);
            self.pipes[pipe].certain = Some(slot.0);
        }
    }

    /// Says that nothing up to this time will come; true if that is news.
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

    /// A handler that cannot fire passes on what it knows: nothing will come before its oldest frame.
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

    /// Fires a handler once, if anything lets it; says whether anything changed.
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

    /// One frame out per frame of the lead (the first input); the others supply their newest frame up to its time.
    fn join(&mut self, node: usize) -> bool {
        let (lead, others) = (self.nodes[node].inputs[0], self.nodes[node].inputs[1..].to_vec());
        let head = self.pipes[lead].waiting.front().copied();
        let over = head.is_none() && self.pipes[lead].ended;
        let mut changed = over && self.end(node);
        // Of what lies behind the lead only the newest frame counts, so it can leave the link.
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
        let sure = others.iter().all(|o| self.pipes[*o].knows(slot.0) || !self.pipes[*o].waiting.is_empty());
        if !sure || !self.room(node) {
            return self.pass_on(node) || changed;
        }
        self.pipes[lead].waiting.pop_front();
        self.send(node, slot);
        true
    }

    /// Runs until nothing can fire any more; says which handlers are stuck.
    fn run(&mut self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.nodes.len()).collect();
        loop {
            for at in (1..order.len()).rev() {
                let other = self.random.below(at + 1);
                order.swap(at, other);
            }
            let mut fired = false;
            for &node in &order {
                for _ in 0..=self.random.below(4) {
                    fired |= self.fire(node);
                }
            }
            if !fired {
                return (0..self.nodes.len()).filter(|n| !self.nodes[*n].done).collect();
            }
        }
    }
}

/// The machine that executes a plan; `squeeze` takes slots away from every link deeper than the usual.
fn machine<'r>(spec: &GraphSpec, plan: &Plan, random: &'r mut Random, frames: i64, squeeze: u32) -> Machine<'r> {
    let pipes: Vec<Pipe> = plan
        .links
        .iter()
        .map(|link| {
            assert_eq!(link.policy, Policy::Lossless);
            let depth = if link.depth > 3 { link.depth - squeeze } else { link.depth.max(1) };
            Pipe { depth: depth as usize, ..Pipe::default() }
        })
        .collect();
    let names = spec.names();
    let node = |(at, handler): (usize, &vramp_plan::PlannedHandler)| {
        let written = &spec.handlers()[names.iter().position(|n| *n == handler.name).expect("nothing is inserted")];
        let number = |key: &str| written.settings.get(key).map_or(1, |s| s.value.parse::<u64>().expect("a number"));
        let does = match handler.kind {
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
    Machine { pipes, nodes, frames, random }
}

fn random_graph(random: &mut Random) -> GraphSpec {
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
            spec.connect(produced[from], at.port(*port));
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
        let spec = random_graph(&mut random);
        let profile = random_profile(&mut random);
        let plan = Planner::new(&check(&spec), &profile).decide().unwrap();
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
        let plan = Planner::new(&check(&spec), &profile).decide().unwrap();
        assert_eq!(depth_of(&plan, "join0.b"), frames * one_in + 1);
        let mut random = Random::new(7);
        assert!(machine(&spec, &plan, &mut random, 400, 0).run().is_empty());
        let stuck = machine(&spec, &plan, &mut random, 400, 1).run();
        assert!(!stuck.is_empty(), "{frames} frames, one in {one_in}: one slot less should not be enough");
    }
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
    let error = Planner::new(&check(&spec), &profile).decide().unwrap_err();
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
    let plan = Planner::new(&check(&spec), &Profile::shipped("cpu").unwrap()).decide().unwrap();
    assert!(depth_of(&plan, "join0.b") <= 3);
}

#[test]
fn memory_for_a_diamond_too_deep_is_refused_with_the_numbers() {
    let mut spec = GraphSpec::new();
    let source = spec.add(HandlerSpec::new("src").set("size", "7680x4320"));
    let delay = spec.add(HandlerSpec::new("delay").set("frames", 1000));
    let join = spec.add(HandlerSpec::new("join"));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(source, delay);
    spec.connect(delay, join.port("a"));
    spec.connect(source, join.port("b"));
    spec.connect(join, sink);
    let error = Planner::new(&check(&spec), &Profile::shipped("cpu").unwrap()).decide().unwrap_err();
    match error {
        NoPlan::Memory { needed, available, most, .. } => {
            assert!(needed > 1000 * 7680 * 4320 * 4 && available == 8_000_000_000 && most <= needed);
        }
        other => panic!("{other}"),
    }
}
