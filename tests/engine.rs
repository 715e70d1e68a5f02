//! Nodes, links and lanes that are connected according to a plan deliver every frame.
//!
//! Handlers here carry numbers instead of pixels, so that every pairing of frames can be checked. Graphs are random,
//! with diamonds, delays, thinning, several sources and rates, failures and lossy links. Each graph runs stepped in
//! random order, and with one thread per lane.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use vramp::plan::GraphSpec;
use vramp::prelude::*;
use vramp_plan::{Format, OnError, PlannedHandler};
use vramp_runtime::internals::{Lane, LaneContext, LinkObserver, Node, WakeSignal, link};
use vramp_runtime::observe::{DropReason, NodeCounts};
use vramp_runtime::{Call, Clock, Flow, FrameHandler, FramePool, HandlerError, Stepped};

use crate::random::chance::Chance;

/// Makes a number of frames.
struct Make {
    left: u64,
}

impl FrameHandler for Make {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        if self.left == 0 {
            return Ok(Flow::Ended);
        }
        self.left -= 1;
        let frame = call.lend(Format::Gray8, Size { width: 4, height: 4 })?;
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

/// Passes frames through, and fails on some.
struct Pass {
    fails_every: u64,
}

impl FrameHandler for Pass {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let frame = call.take(0).expect("a lead frame");
        if self.fails_every > 0 && frame.meta().number % self.fails_every == 1 {
            return Err(HandlerError::Failed("on purpose".into()));
        }
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

/// Follows its first input. Checks that the second input supplies no newer frame and never goes back in time.
#[derive(Default)]
struct Pair {
    before: Option<i64>,
}

impl FrameHandler for Pair {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let now = call.now();
        if let Some(other) = call.input(1) {
            let at = other.meta().pts_ns;
            assert!(at <= now.pts_ns, "an input supplied a frame from the future");
            assert!(self.before.is_none_or(|before| at >= before), "an input went back in time");
            self.before = Some(at);
        }
        let frame = call.take(0).expect("a lead frame");
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

/// Takes frames and checks their order.
struct Take {
    last: Option<i64>,
    taken: Arc<AtomicU64>,
}

impl FrameHandler for Take {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let at = call.now().pts_ns;
        assert!(self.last.is_none_or(|last| at > last), "frames came out of order");
        self.last = Some(at);
        self.taken.fetch_add(1, Ordering::Relaxed);
        Ok(Flow::Produced)
    }
}

const FRAMES: u64 = 120;

/// The lanes of a plan, its pool, and the counters of its links.
struct Machine {
    lanes: Vec<Lane>,
    pool: FramePool,
    links: Vec<LinkObserver<vramp_runtime::Frame>>,
    signals: Vec<WakeSignal>,
    taken: Arc<AtomicU64>,
}

fn machine(spec: &GraphSpec, plan: &Plan) -> Machine {
    let taken = Arc::new(AtomicU64::new(0));
    let names = spec.names();
    let number = |handler: &PlannedHandler, key: &str| -> Option<u64> {
        let at = names.iter().position(|n| *n == handler.name).expect("nothing is inserted");
        spec.handlers()[at].settings.get(key)?.value.parse().ok()
    };
    let keeps_times = |handler: &PlannedHandler| {
        let at = names.iter().position(|n| *n == handler.name).expect("nothing is inserted");
        spec.handlers()[at].settings.contains_key("keep-times")
    };
    let make = |handler: &PlannedHandler| {
        let node = |kind: Box<dyn FrameHandler>, inputs, outputs| {
            Node::new(handler.name.as_str(), kind, inputs, outputs).on_error(OnError::Skip)
        };
        let pass = |fails_every| Box::new(Pass { fails_every });
        match handler.kind() {
            "pattern" => {
                let rate = number(handler, "fps").unwrap_or(30).to_string().parse().expect("a rate");
                node(Box::new(Make { left: FRAMES }), 0, 1).clock(Clock::free(rate))
            }
            "mix" => node(Box::<Pair>::default(), 2, 1),
            "null" => node(Box::new(Take { last: None, taken: Arc::clone(&taken) }), 1, 0),
            "delay" => {
                let held = number(handler, "frames").unwrap_or(1) as usize;
                node(pass(0), 1, 1).delaying(held, keeps_times(handler))
            }
            "every" => node(pass(0), 1, 1).every(number(handler, "n").unwrap_or(1)),
            // In these tests, `invert` is the handler that fails now and then.
            "invert" => node(pass(7), 1, 1),
            _ => node(pass(0), 1, 1),
        }
    };
    let mut nodes: Vec<Option<Node>> = plan.handlers.iter().map(|handler| Some(make(handler))).collect();
    let signals: Vec<WakeSignal> = plan.lanes.iter().map(|_| WakeSignal::new()).collect();
    let mut links = Vec::new();
    for planned in &plan.links {
        let (from, to) = (planned.from.handler, planned.to.handler);
        let (lane, next) = (plan.handlers[from].lane, plan.handlers[to].lane);
        let (output, input) = link(planned.policy, planned.depth as usize, &signals[lane], &signals[next]);
        links.push(output.observe());
        let port = usize::from(planned.to.port == "b");
        nodes[from].as_mut().expect("still here").connect_output(0, output);
        nodes[to].as_mut().expect("still here").connect_input(port, input, planned.policy);
    }
    let pool = FramePool::new(64 << 20);
    let lanes = plan.lanes.iter().zip(&signals).map(|(lane, signal)| {
        let nodes = lane.handlers.iter().map(|at| nodes[*at].take().expect("each is in one lane")).collect();
        Lane::new(nodes, signal.clone(), LaneContext::new(pool.clone()))
    });
    let lanes = lanes.collect();
    Machine { lanes, pool, links, signals, taken }
}

impl Machine {
    /// Checks that every link and node accounts for every frame, and that all memory is returned.
    fn check(&mut self, what: &str) {
        let mut filtered: BTreeMap<String, NodeCounts> = BTreeMap::new();
        for lane in &mut self.lanes {
            lane.stop(DropReason::Stopped).expect("stopping does not fail");
            for node in lane.nodes() {
                filtered.insert(node.name(), node.counts());
            }
        }
        for (name, counts) in &filtered {
            assert!(counts.is_conserved() && counts.held == 0, "{what}: {name} {counts:?}");
        }
        for link in &self.links {
            let counts = link.counts();
            assert!(counts.is_conserved() && counts.queued == 0, "{what}: {counts:?}");
        }
        let stats = self.pool.stats();
        assert_eq!(stats.lent_bytes, 0, "{what}: a frame is still held");
    }
}

fn random_graph(random: &mut Chance, lossy: usize) -> GraphSpec {
    let mut spec = GraphSpec::new();
    let mut made = Vec::new();
    let mut used = Vec::new();
    for _ in 0..=random.below(2) {
        made.push(
            spec.add(HandlerSpec::new("pattern").set("size", "16x16").set("fps", random.pick(&[30, 30, 60, 25]))),
        );
        used.push(false);
    }
    for _ in 0..=random.below(9) {
        let kind = random.pick(&["invert", "identity", "delay", "every", "mix", "mix", "mix"]);
        let mut handler = HandlerSpec::new(kind);
        match kind {
            "delay" => {
                handler = handler.set("frames", 1 + random.below(12));
                if random.below(3) > 0 {
                    handler = handler.set("keep-times", true);
                }
            }
            "every" => handler = handler.set("n", 1 + random.below(5)),
            _ => {}
        }
        let at = spec.add(handler);
        for port in if kind == "mix" { &["a", "b"][..] } else { &["video"] } {
            let from = random.below(made.len());
            used[from] = true;
            let drops = random.below(100) < lossy;
            let link = spec.connect(made[from], at.port(*port));
            if drops {
                link.policy(random.pick(&[Policy::Latest, Policy::Queue]));
            }
        }
        made.push(at);
        used.push(false);
    }
    for (from, _) in made.iter().zip(&used).filter(|(_, used)| !**used) {
        let sink = spec.add(HandlerSpec::new("null"));
        spec.connect(*from, sink);
    }
    spec
}

fn planned(spec: &GraphSpec) -> Plan {
    let graph = vramp::registry().check(spec).unwrap_or_else(|e| panic!("{e}"));
    let profile = Profile::shipped("cpu").expect("it ships");
    // Without fusion, every handler is a node of its own.
    Plan::decide(&graph, &profile, &RunOptions::new().fusion(false)).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn stepped_in_any_order_every_plan_comes_to_its_end_with_every_frame_accounted_for() {
    for seed in 0..400 {
        let mut random = Chance::of(seed);
        let lossy = random.pick(&[0, 0, 20]);
        let spec = random_graph(&mut random, lossy);
        let plan = planned(&spec);
        let mut machine = machine(&spec, &plan);
        let what = format!("seed {seed}\n{}", vramp::plan::write_text(&spec));
        loop {
            let (mut moved, mut over) = (false, true);
            for _ in 0..machine.lanes.len() * 2 {
                let lane = random.below(machine.lanes.len());
                match machine.lanes[lane].step(&|| Duration::ZERO) {
                    Stepped::Moved => moved = true,
                    Stepped::Failed(failure) => panic!("{what}: {failure}"),
                    _ => {}
                }
            }
            for lane in &mut machine.lanes {
                match lane.step(&|| Duration::ZERO) {
                    Stepped::Moved => (moved, over) = (true, false),
                    Stepped::Over => {}
                    _ => over = false,
                }
            }
            if over {
                break;
            }
            assert!(moved, "{what}: nothing moves and not everything has ended");
        }
        machine.check(&what);
    }
}

#[test]
fn on_one_thread_per_lane_every_plan_comes_to_its_end() {
    for seed in 1000..1060 {
        let mut random = Chance::of(seed);
        let spec = random_graph(&mut random, 10);
        let plan = planned(&spec);
        let mut machine = machine(&spec, &plan);
        let start = Instant::now();
        let what = &format!("seed {seed}\n{}", vramp::plan::write_text(&spec));
        std::thread::scope(|scope| {
            for lane in &mut machine.lanes {
                scope.spawn(move || {
                    // A run that is in a deadlock ends here.
                    let late = || start.elapsed() > Duration::from_secs(20);
                    lane.run(&|| start.elapsed(), late).unwrap_or_else(|failure| panic!("{failure}"));
                    assert!(!late(), "{what}: a lane did not come to its end");
                });
            }
        });
        machine.check(what);
    }
}

#[test]
fn a_chain_without_loss_delivers_every_frame_once() {
    let text = "pattern size=16x16 ! identity !{lossless depth=2} identity ! delay 5 keep-times=true ! every 3 ! null";
    let spec = vramp::read(text, vramp::registry().catalog()).expect("it reads");
    let plan = planned(&spec);
    let mut machine = machine(&spec, &plan);
    while machine.lanes.iter_mut().any(|lane| matches!(lane.step(&|| Duration::ZERO), Stepped::Moved)) {}
    assert_eq!(machine.taken.load(Ordering::Relaxed), FRAMES / 3);
    machine.check(text);
    assert!(machine.pool.stats().misses < 16, "frames are used again: {:?}", machine.pool.stats());
}

#[test]
fn a_stop_ends_every_lane_promptly_and_counts_what_was_left() {
    let spec = vramp::read("pattern size=16x16 !{lossless} identity !{lossless} null", vramp::registry().catalog())
        .expect("it reads");
    let plan = planned(&spec);
    let mut machine = machine(&spec, &plan);
    let stopped = AtomicBool::new(false);
    let signals = machine.signals.clone();
    std::thread::scope(|scope| {
        for lane in &mut machine.lanes {
            let stopped = &stopped;
            // The time is always zero, so a paced source would wait forever.
            scope.spawn(move || lane.run(&|| Duration::ZERO, || stopped.load(Ordering::Acquire)));
        }
        stopped.store(true, Ordering::Release);
        signals.iter().for_each(WakeSignal::notify);
    });
    machine.check("stopped");
}
