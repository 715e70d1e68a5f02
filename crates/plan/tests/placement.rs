//! Placement against brute force: on random graphs, the plan's cost is the minimum over all assignments.
//!
//! Brute force pins every flexible handler, including inserted converters, to every combination of spaces and runs the
//! whole planner on each. It shares nothing with the cut except the planner's price of a finished plan.

use std::collections::BTreeSet;

use crate::support::{self, Random, check, random_profile};
use vramp_plan::{GraphSpec, HandlerId, HandlerSpec, Plan, Policy, Profile, RunOptions, Space};

/// A random graph with fan-out, several inputs, format changes, fusible runs, transfers and rates.
pub fn random_graph(random: &mut Random, handlers: usize) -> GraphSpec {
    let mut spec = GraphSpec::new();
    let mut open: Vec<HandlerId> = Vec::new();
    let mut produced: Vec<HandlerId> = Vec::new();
    let work = |random: &mut Random, handler: HandlerSpec| {
        let units = random.scale(0.01, 30.0);
        handler.set("work", units)
    };
    for _ in 0..=random.below(2) {
        let kind = random.pick(&["src", "src", "src-cpu", "src-gpu"]);
        let mut source = work(random, HandlerSpec::new(kind));
        if random.chance(20) {
            source = source.set("format", "i420");
        }
        if random.chance(20) {
            source = source.set("fps", 60);
        }
        let at = spec.add(source);
        open.push(at);
        produced.push(at);
    }
    let kinds = [
        "point",
        "point",
        "point",
        "point",
        "gather",
        "stencil",
        "reduce",
        "opaque",
        "tabled",
        "mix",
        "mix",
        "join",
        "point-cpu",
        "point-gpu",
        "pass",
        "every",
        "split",
        "detect+outline",
        "features+paint",
        "upload",
        "download",
        "convert",
        "delay",
        "shrink",
    ];
    for _ in 0..handlers {
        let kind = random.pick(&kinds);
        if kind == "features+paint" {
            // Tensors go through other handlers, and both ends may be in different spaces.
            let (features, paint) = (spec.add(HandlerSpec::new("features")), spec.add(HandlerSpec::new("paint")));
            let from = random.pick(&produced);
            open.retain(|o| *o != from);
            spec.connect(from, features);
            spec.connect(from, paint);
            if random.chance(50) {
                let between = spec.add(HandlerSpec::new(random.pick(&["pass", "upload", "download"])));
                spec.connect(features.port("tensor"), between);
                spec.connect(between, paint.port("tensor"));
            } else {
                spec.connect(features.port("tensor"), paint.port("tensor"));
            }
            open.push(paint);
            produced.push(paint);
            continue;
        }
        if kind == "detect+outline" {
            // Data is read on the host. A detector on the device pays for a download.
            let (detect, outline) = (spec.add(HandlerSpec::new("detect")), spec.add(HandlerSpec::new("outline")));
            let from = random.pick(&produced);
            open.retain(|o| *o != from);
            spec.connect(from, detect);
            spec.connect(detect, outline);
            spec.connect(detect.port("found"), outline.port("found"));
            open.push(outline);
            produced.push(outline);
            continue;
        }
        let mut handler = HandlerSpec::new(kind);
        if matches!(kind, "mix" | "join") && random.chance(30) {
            handler = handler.set("lead", "b");
        }
        if !matches!(kind, "pass" | "every" | "upload" | "download" | "convert" | "delay") {
            handler = work(random, handler);
        }
        if kind == "convert" {
            handler = handler.set("format", random.pick(&["rgba8", "i420", "gray8"]));
        }
        if kind == "shrink" {
            handler = handler.set("size", "64x48");
        }
        let at = spec.add(handler);
        let feed = |random: &mut Random, open: &mut Vec<HandlerId>| {
            // Mostly continue from an open end; sometimes branch off an output that is already used.
            if random.chance(75) && !open.is_empty() {
                open.remove(random.below(open.len()))
            } else {
                let from = random.pick(&produced);
                open.retain(|o| *o != from);
                from
            }
        };
        for port in if matches!(kind, "mix" | "join") { &["a", "b"][..] } else { &["video"] } {
            let from = feed(random, &mut open);
            let asked = random.chance(8);
            let link = spec.connect(from, at.port(*port));
            if asked {
                link.policy(random.pick(&Policy::ALL));
            }
        }
        open.push(at);
        produced.push(at);
    }
    for from in open {
        let kind = random.pick(&["sink", "sink", "sink-cpu", "sink-gpu", "file"]);
        let sink = if kind == "file" { HandlerSpec::new(kind) } else { work(random, HandlerSpec::new(kind)) };
        let at = spec.add(sink);
        spec.connect(from, at);
    }
    spec
}

fn cpu_side(plan: &Plan) -> BTreeSet<String> {
    plan.handlers.iter().filter(|h| h.space == Space::Cpu).map(|h| h.name.clone()).collect()
}

/// Plans a graph freely and under every assignment, and compares the costs.
fn compare(seed: u64) -> Option<usize> {
    let mut random = Random::new(seed);
    let most = if random.chance(4) { 12 } else { 8 };
    let size = 1 + random.below(most);
    let spec = random_graph(&mut random, size);
    let profile = random_profile(&mut random);
    let graph = check(&spec);
    let fusion = random.chance(85);
    let batch = if random.chance(10) { 4 } else { 1 };
    let strict = random.chance(10);
    let mut options = RunOptions::new().fusion(fusion).batch(batch).strict(strict);
    let decide = |options: &RunOptions| Plan::decide(&graph, &profile, options);
    let mut free: Vec<String> = Vec::new();
    let Ok(plan) = decide(&options) else {
        assert!(strict, "seed {seed}: only --strict leaves a random graph without a plan");
        return None;
    };
    for handler in &plan.handlers {
        let both =
            support::ENTRIES.iter().any(|e| e.name == handler.kind() && e.spaces.len() == 2 && e.transfer.is_none());
        if both {
            free.push(handler.name.clone());
        }
    }
    if free.len() > most {
        return None;
    }
    if random.chance(25) && !free.is_empty() {
        let pinned = free.remove(random.below(free.len()));
        let with_pin = options.clone().place(pinned.as_str(), random.pick(&Space::RANKED));
        if decide(&with_pin).is_ok() {
            options = with_pin;
        }
    }
    let auto = decide(&options).expect("it was planned a moment ago");
    let mut least = u64::MAX;
    let mut least_cpu: Option<BTreeSet<String>> = None;
    for choice in 0..1u32 << free.len() {
        let mut pinned = options.clone();
        for (bit, name) in free.iter().enumerate() {
            let space = if choice >> bit & 1 == 1 { Space::Gpu } else { Space::Cpu };
            pinned = pinned.place(name.as_str(), space);
        }
        let Ok(plan) = decide(&pinned) else { continue };
        if plan.cost_ns < least {
            least = plan.cost_ns;
            least_cpu = Some(cpu_side(&plan));
        } else if plan.cost_ns == least {
            let other = cpu_side(&plan);
            least_cpu = least_cpu.map(|cpu| cpu.intersection(&other).cloned().collect());
        }
    }
    assert_eq!(auto.cost_ns, least, "seed {seed}: the cut is not the least of all assignments");
    // The GPU wins ties: a handler is on the CPU only if every cheapest plan has it there.
    assert_eq!(Some(cpu_side(&auto)), least_cpu, "seed {seed}: a tie went to the cpu");
    Some(free.len())
}

#[test]
fn the_plan_costs_as_little_as_the_best_of_all_assignments() {
    let wanted = if std::env::var_os("VRAMP_LONG").is_some() { 20_000 } else { 500 };
    let (mut compared, mut large, mut seed) = (0, 0, 0);
    while compared < wanted {
        if let Some(free) = compare(seed) {
            compared += 1;
            large += usize::from(free > 8);
        }
        seed += 1;
    }
    println!("{compared} graphs compared, {large} of them with 9 to 12 flexible handlers");
    assert!(large * 200 > compared, "too few large graphs");
}

#[test]
fn random_graphs_really_land_on_both_sides() {
    let (mut cpu, mut gpu, mut mixed) = (0, 0, 0);
    for seed in 0..300 {
        let mut random = Random::new(seed);
        let spec = random_graph(&mut random, 6);
        let profile: Profile = random_profile(&mut random);
        let plan = Plan::decide(&check(&spec), &profile, &RunOptions::new()).unwrap();
        let on_cpu = plan.handlers.iter().filter(|h| h.space == Space::Cpu).count();
        match on_cpu {
            0 => gpu += 1,
            n if n == plan.handlers.len() => cpu += 1,
            _ => mixed += 1,
        }
    }
    assert!(cpu >= 5 && gpu > 3 && mixed > 100, "cpu {cpu}, gpu {gpu}, mixed {mixed}");
}
