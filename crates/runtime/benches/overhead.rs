//! The cost of a handler that does nothing, and of handing a frame to another thread.
//!
//! Frames of 64x64 are lent by a pool and never touched. Inline: a source, 0, 8 or 64 times `identity`, and `null` in
//! one lane; the cost of one handler is the slope. Hand-over: lanes on their own threads, each with one handler, over
//! lossless links; once with two lanes, and once with 21, where the slope is the cost of one more.
//!
//! Times are per frame in microseconds: wall time, and the CPU time of all threads (wall time if the system is not
//! Linux). They are medians of rounds in which the cases alternate. Limits come from `GStreamer` on the same machine:
//! its identity takes 0.15 and its queue 0.42 (the slope over 20 of them).
//!
//! `cargo bench --bench overhead -- inline` (or `handover`) runs one half, for a profiler; a number after it is the
//! number of rounds.

use std::time::{Duration, Instant};

use vramp_plan::{Format, Policy, Rate, Size};
use vramp_runtime::internals::{Lane, LaneContext, Node, WakeSignal, link};
use vramp_runtime::{Call, Clock, Flow, FrameHandler, FramePool, HandlerError, Stepped};

const SIZE: Size = Size { width: 64, height: 64 };
const IDENTITY_LIMIT_US: f64 = 0.12;
const HAND_OVER_LIMIT_US: f64 = 0.4;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let only = arguments.iter().find(|word| word.parse::<usize>().is_err());
    let rounds = arguments.iter().find_map(|word| word.parse().ok());
    if only.is_none_or(|only| only == "inline") {
        inline(rounds.unwrap_or(15));
    }
    if only.is_none_or(|only| only == "handover") {
        hand_over(rounds.unwrap_or(5));
    }
}

/// Makes frames without writing to them.
struct Make {
    left: u64,
}

impl FrameHandler for Make {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        if self.left == 0 {
            return Ok(Flow::Ended);
        }
        self.left -= 1;
        let frame = call.lend(Format::Rgba8, SIZE)?;
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

/// Passes frames on, as `identity` does.
struct Identity;

impl FrameHandler for Identity {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let frame = call.take(0).expect("a lead frame");
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

/// Consumes frames, as `null` does.
struct Null;

impl FrameHandler for Null {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        drop(call.take(0));
        Ok(Flow::Produced)
    }
}

/// A source, this many times `identity`, and `null`, connected by links of this depth. Node i uses signal i modulo
/// their number.
fn chain(frames: u64, identities: usize, depth: usize, signals: &[WakeSignal]) -> Vec<Node> {
    let clock = Clock::free(Rate::new(30, 1).expect("a rate"));
    let mut nodes = vec![Node::new("make", Box::new(Make { left: frames }), 0, 1).clock(clock)];
    nodes.extend((0..identities).map(|_| Node::new("identity", Box::new(Identity), 1, 1)));
    nodes.push(Node::new("null", Box::new(Null), 1, 0));
    for at in 1..nodes.len() {
        let signal = |at: usize| &signals[at % signals.len()];
        let (output, input) = link(Policy::Lossless, depth, signal(at - 1), signal(at));
        nodes[at - 1].connect_output(0, output);
        nodes[at].connect_input(0, input, Policy::Lossless);
    }
    nodes
}

/// Time per frame.
#[derive(Debug, Clone, Copy)]
struct Took {
    cpu_us: f64,
    wall_us: f64,
}

fn inline(rounds: usize) {
    const CASES: [(usize, u64); 3] = [(0, 60_000), (8, 30_000), (64, 6_000)];
    let took = measure(rounds, CASES.len(), |case| {
        let (identities, frames) = CASES[case];
        let signal = WakeSignal::new();
        let nodes = chain(frames, identities, 1, std::slice::from_ref(&signal));
        let mut lane = Lane::new(nodes, signal, LaneContext::new(FramePool::new(64 << 20)));
        let start = Instant::now();
        let before = cpu_time(start);
        while matches!(lane.step(&|| start.elapsed()), Stepped::Moved) {}
        per_frame(cpu_time(start).saturating_sub(before), start.elapsed(), frames)
    });
    println!("inline, one lane                          CPU us   wall us   limit");
    for ((identities, _), took) in CASES.iter().zip(&took) {
        let name = format!("  make, {identities} identity, null: a frame");
        println!("{name:40} {:8.3}  {:8.3}", took.cpu_us, took.wall_us);
    }
    for (from, to) in [(0, 1), (0, 2)] {
        let slope = slope(took[from], took[to], CASES[to].0 - CASES[from].0);
        verdict(&format!("  one handler (slope 0 to {})", CASES[to].0), slope, slope.cpu_us, IDENTITY_LIMIT_US);
    }
}

fn hand_over(rounds: usize) {
    const CASES: [(usize, usize, u64); 4] = [(1, 3, 1_000_000), (1, 64, 1_000_000), (20, 3, 50_000), (20, 64, 50_000)];
    let took = measure(rounds, CASES.len(), |case| {
        let (links, depth, frames) = CASES[case];
        let signals: Vec<WakeSignal> = (0..=links).map(|_| WakeSignal::new()).collect();
        let pool = FramePool::new(64 << 20);
        let nodes = chain(frames, links - 1, depth, &signals);
        let lanes = nodes.into_iter().zip(&signals);
        let mut lanes: Vec<Lane> =
            lanes.map(|(node, signal)| Lane::new(vec![node], signal.clone(), LaneContext::new(pool.clone()))).collect();
        let start = Instant::now();
        let used: Duration = std::thread::scope(|scope| {
            let run = |lane: &mut Lane| {
                let before = cpu_time(start);
                lane.run(&|| start.elapsed(), || false).expect("nothing fails");
                cpu_time(start).saturating_sub(before)
            };
            let threads: Vec<_> = lanes.iter_mut().map(|lane| scope.spawn(move || run(lane))).collect();
            threads.into_iter().map(|thread| thread.join().expect("nothing panics")).sum()
        });
        per_frame(used, start.elapsed(), frames)
    });
    println!("hand-over, one thread per lane            CPU us   wall us   limit");
    for ((links, depth, _), took) in CASES.iter().zip(&took) {
        let name = format!("  {} lanes, depth {depth}: a frame", links + 1);
        if *links == 1 {
            verdict(&name, *took, took.wall_us, HAND_OVER_LIMIT_US);
        } else {
            println!("{name:40} {:8.3}  {:8.3}", took.cpu_us, took.wall_us);
        }
    }
    for (one, twenty) in [(0, 2), (1, 3)] {
        let slope = slope(took[one], took[twenty], 19);
        let name = format!("  one hand-over more, depth {} (slope)", CASES[one].1);
        verdict(&name, slope, slope.wall_us, HAND_OVER_LIMIT_US);
    }
}

fn verdict(name: &str, took: Took, us: f64, limit_us: f64) {
    let met = if us <= limit_us { "met" } else { "MISSED" };
    println!("{name:40} {:8.3}  {:8.3}  {limit_us:6} {met}", took.cpu_us, took.wall_us);
}

/// Runs all cases in each round and returns the median of each.
fn measure(rounds: usize, cases: usize, mut run: impl FnMut(usize) -> Took) -> Vec<Took> {
    let mut took: Vec<Vec<Took>> = vec![Vec::new(); cases];
    for round in 0..rounds {
        // Each round starts with another case.
        (0..cases).map(|at| (at + round) % cases).for_each(|case| took[case].push(run(case)));
    }
    let middle = |all: &[Took], key: fn(&Took) -> f64| {
        let mut all: Vec<f64> = all.iter().map(key).collect();
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    took.iter().map(|all| Took { cpu_us: middle(all, |t| t.cpu_us), wall_us: middle(all, |t| t.wall_us) }).collect()
}

fn per_frame(cpu: Duration, wall: Duration, frames: u64) -> Took {
    let us = |time: Duration| time.as_secs_f64() * 1e6 / frames as f64;
    Took { cpu_us: us(cpu), wall_us: us(wall) }
}

fn slope(one: Took, other: Took, by: usize) -> Took {
    let by = by as f64;
    Took { cpu_us: (other.cpu_us - one.cpu_us) / by, wall_us: (other.wall_us - one.wall_us) / by }
}

/// CPU time of this thread on Linux, wall time elsewhere.
fn cpu_time(since: Instant) -> Duration {
    // The kernel updates a thread's CPU time when it yields.
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let used = stat.as_deref().and_then(|text| text.split(' ').next()?.parse().ok());
    used.map_or_else(|| since.elapsed(), Duration::from_nanos)
}
