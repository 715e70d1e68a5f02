//! A latency need: which plan is chosen, what it predicts, and what it says if nothing fits.

use crate::placement::random_graph;
use crate::support::{Random, chain, check, random_profile};
use vramp_plan::{Graph, GraphSpec, HandlerSpec, Plan, PlannedLatency, Policy, Profile, Rate, RunOptions, Space};

/// A need that every plan meets, to learn what the usual plan predicts.
const HOUR_MS: f64 = 3.6e6;

fn integrated() -> Profile {
    Profile::shipped("integrated").expect("it ships")
}

fn decide(graph: &Graph, profile: &Profile, options: &RunOptions) -> Plan {
    Plan::decide(graph, profile, options).unwrap_or_else(|error| panic!("{error}"))
}

/// What a plan says about its latency.
fn need(plan: &Plan) -> PlannedLatency {
    plan.latency.clone().expect("the options have a need")
}

fn predicted(graph: &Graph, profile: &Profile, options: &RunOptions) -> u64 {
    need(&decide(graph, profile, &options.clone().latency_ms(HOUR_MS))).predicted_ns
}

/// A need in milliseconds.
fn within(ns: f64) -> f64 {
    ns / 1e6
}

fn depths(plan: &Plan) -> Vec<u32> {
    plan.links.iter().map(|link| link.depth).collect()
}

/// A source, a filter and a sink that waits for a disk, in frames of 1080p.
fn to_disk(work: u32) -> GraphSpec {
    to_disk_with(work, None)
}

/// The same, with this depth before the sink.
fn to_disk_with(work: u32, depth: Option<u32>) -> GraphSpec {
    let mut spec = GraphSpec::new();
    let source = spec.add(HandlerSpec::new("src-cpu").set("size", "1920x1080"));
    let point = spec.add(HandlerSpec::new("point-cpu").set("work", 1));
    let sink = spec.add(HandlerSpec::new("file").set("work", work));
    spec.connect(source, point);
    let link = spec.connect(point, sink);
    if depth.is_some() {
        (link.policy, link.depth) = (Some(Policy::Lossless), depth);
    }
    spec
}

/// A source, a slow filter and a sink, all on the device.
fn on_device() -> GraphSpec {
    let mut spec = GraphSpec::new();
    let source = spec.add(HandlerSpec::new("src-gpu").set("size", "1920x1080"));
    let slow = spec.add(HandlerSpec::new("point-gpu").set("work", 200));
    let sink = spec.add(HandlerSpec::new("sink-gpu"));
    spec.connect(source, slow);
    spec.connect(slow, sink);
    spec
}

#[test]
fn a_need_that_the_usual_plan_meets_changes_nothing_else() {
    let mut random = Random::new(71);
    for round in 0..150 {
        let (spec, profile) = (random_graph(&mut random, 1 + round % 12), random_profile(&mut random));
        let graph = check(&spec);
        let Ok(usual) = Plan::decide(&graph, &profile, &RunOptions::new()) else { continue };
        let with_need = decide(&graph, &profile, &RunOptions::new().latency_ms(HOUR_MS));
        assert_eq!(Plan { latency: None, ..with_need.clone() }, usual);
        assert!(usual.latency.is_none() && need(&with_need).fits());
    }
}

#[test]
fn a_plan_with_a_need_is_never_predicted_slower_and_is_the_same_each_time() {
    let (mut random, mut fitted, mut missed) = (Random::new(72), 0, 0);
    for round in 0..60 {
        let (spec, profile) = (random_graph(&mut random, 1 + round % 10), random_profile(&mut random));
        let graph = check(&spec);
        let mut options = RunOptions::new().in_flight(random.pick(&[1, 2, 5])).batch(random.pick(&[1, 1, 4]));
        if random.chance(30) {
            options.pace = Rate::new(random.pick(&[5, 30, 500]), 1);
        }
        if Plan::decide(&graph, &profile, &options).is_err() {
            continue;
        }
        let usual_ns = predicted(&graph, &profile, &options);
        let asked = within(usual_ns as f64 * random.scale(0.3, 1.5));
        let options = options.latency_ms(asked);
        let plan = decide(&graph, &profile, &options);
        assert_eq!(plan, decide(&graph, &profile, &options));
        let said = need(&plan);
        assert!(said.predicted_ns <= usual_ns, "{} ns is longer than {usual_ns} ns", said.predicted_ns);
        assert!(said.in_flight <= options.in_flight && said.batch <= options.batch);
        let warned = plan.warnings.iter().any(|line| line.starts_with("no plan has a latency of"));
        assert_eq!(warned, !said.fits(), "{:?}", plan.warnings);
        *(if said.fits() { &mut fitted } else { &mut missed }) += 1;
    }
    assert!(fitted > 10 && missed > 5, "{fitted} fitted, {missed} missed");
}

#[test]
fn frames_wait_in_links_so_links_become_shallower() {
    let graph = check(&to_disk(400));
    let usual = decide(&graph, &integrated(), &RunOptions::new());
    assert_eq!(depths(&usual).iter().max(), Some(&3));
    let usual_ns = predicted(&graph, &integrated(), &RunOptions::new());
    let sink_ns = usual.handler("file0").expect("it is there").cost_ns;
    assert!(usual_ns > sink_ns * 3, "three frames wait before the sink: {usual_ns} ns, the sink takes {sink_ns} ns");
    let plan = decide(&graph, &integrated(), &RunOptions::new().latency_ms(within(usual_ns as f64 * 0.75)));
    assert_eq!(depths(&plan).iter().max(), Some(&1), "{plan}");
    assert!(need(&plan).fits(), "{plan}");
}

#[test]
fn a_depth_that_the_user_set_or_that_a_diamond_needs_stays() {
    let plan = decide(&check(&to_disk_with(400, Some(6))), &integrated(), &RunOptions::new().latency_ms(within(1.0)));
    assert_eq!(depths(&plan).iter().max(), Some(&6), "{plan}");
    let diamond = crate::support::diamond(HandlerSpec::new("src"), 5);
    let usual = decide(&check(&diamond), &integrated(), &RunOptions::new());
    let plan = decide(&check(&diamond), &integrated(), &RunOptions::new().latency_ms(within(1.0)));
    assert_eq!((depths(&usual).iter().max(), depths(&plan).iter().max()), (Some(&6), Some(&6)));
}

#[test]
fn frames_wait_on_the_device_so_fewer_are_in_flight() {
    let graph = check(&on_device());
    let usual_ns = predicted(&graph, &integrated(), &RunOptions::new());
    let one_ns = predicted(&graph, &integrated(), &RunOptions::new().in_flight(1));
    assert!(usual_ns > one_ns * 3 / 2, "{usual_ns} ns with two in flight, {one_ns} ns with one");
    let plan = decide(&graph, &integrated(), &RunOptions::new().latency_ms(within(usual_ns as f64 * 0.7)));
    assert_eq!((need(&plan).in_flight, need(&plan).fits()), (1, true));
    assert!(plan.to_string().contains("that --latency asks for, 1 in flight\n"), "{plan}");
}

#[test]
fn a_batch_makes_its_frames_wait_for_each_other() {
    let graph = check(&on_device());
    let batched = RunOptions::new().batch(4);
    let batched_ns = predicted(&graph, &integrated(), &batched);
    let usual_ns = predicted(&graph, &integrated(), &RunOptions::new());
    assert!(batched_ns > usual_ns * 2, "{batched_ns} ns in batches of 4, {usual_ns} ns without");
    let plan = decide(&graph, &integrated(), &batched.latency_ms(within(usual_ns as f64 * 1.1)));
    assert_eq!((need(&plan).batch, need(&plan).in_flight, need(&plan).fits()), (1, 2, true));
}

#[test]
fn a_source_that_is_paced_makes_frames_wait_less() {
    let graph = check(&to_disk(400));
    let free_ns = predicted(&graph, &integrated(), &RunOptions::new());
    let paced_ns = predicted(&graph, &integrated(), &RunOptions { pace: Rate::new(1, 1), ..RunOptions::new() });
    assert!(paced_ns * 2 < free_ns, "{paced_ns} ns with a pace, {free_ns} ns without");
}

#[test]
fn the_other_space_is_taken_if_it_is_faster_from_end_to_end() {
    // The cheapest plan sums up costs. On the device two frames are in flight, so its latency is longer.
    let mut spec = GraphSpec::new();
    let source = spec.add(HandlerSpec::new("src").set("size", "1920x1080"));
    let slow = spec.add(HandlerSpec::new("point").set("work", 20));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(source, slow);
    spec.connect(slow, sink);
    let graph = check(&spec);
    let usual = decide(&graph, &integrated(), &RunOptions::new());
    assert!(usual.handlers.iter().all(|handler| handler.space == Space::Gpu), "{usual}");
    let all_cpu = RunOptions::new().only(Space::Cpu);
    let cpu_ns = predicted(&graph, &integrated(), &all_cpu);
    let gpu_ns = predicted(&graph, &integrated(), &RunOptions::new().in_flight(1));
    let plan = decide(&graph, &integrated(), &RunOptions::new().latency_ms(within(1.0)));
    let space = if cpu_ns < gpu_ns { Space::Cpu } else { Space::Gpu };
    assert_eq!((need(&plan).predicted_ns, plan.handlers[1].space), (cpu_ns.min(gpu_ns), space));
}

#[test]
fn if_nothing_fits_the_slowest_handler_is_named_with_its_cost() {
    let plan = decide(&check(&to_disk(400)), &integrated(), &RunOptions::new().latency_ms(2.0));
    let slowest = need(&plan).slowest.expect("there are handlers");
    assert_eq!((slowest.name.as_str(), slowest.space), ("file0", Space::Cpu));
    let line = plan.warnings.last().expect("it warns");
    let ms = |ns: u64| format!("~{:.2} ms", ns as f64 / 1e6);
    assert_eq!(
        *line,
        format!(
            "no plan has a latency of 2 ms: the shortest is {}; file0 takes {} of it on the cpu, and frames wait before \
             it; smaller frames for file0 would help, or a longer --latency",
            ms(need(&plan).predicted_ns),
            ms(slowest.ns)
        )
    );
    let text = plan.to_string();
    assert!(
        text.contains("\nlatency  ~") && text.contains(", exceeds the 2.00 ms that --latency asks for\n"),
        "{text}"
    );
}

#[test]
fn json_has_the_prediction_and_null_without_a_need() {
    let graph = check(&chain(&["src", "point", "sink"]));
    let json = |options: &RunOptions| -> serde_json::Value {
        serde_json::from_str(&decide(&graph, &integrated(), options).to_json()).expect("it is JSON")
    };
    assert!(json(&RunOptions::new())["latency"].is_null());
    let latency = &json(&RunOptions::new().latency_ms(20.0))["latency"];
    assert_eq!((&latency["asked_ms"], &latency["fits"]), (&20.0.into(), &true.into()));
    for key in ["predicted_ms", "in_flight", "batch"] {
        assert!(latency[key].is_number(), "{key}: {latency}");
    }
    assert!(latency["slowest"]["name"].is_string() && latency["slowest"]["ms"].is_number(), "{latency}");
}

#[test]
fn without_a_need_the_text_says_nothing_about_latency() {
    let plan = decide(&check(&to_disk(400)), &integrated(), &RunOptions::new());
    assert!(!plan.to_string().contains("latency"), "{plan}");
}
