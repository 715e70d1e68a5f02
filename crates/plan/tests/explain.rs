//! If there is no plan, the error names the conflicting handlers, with the numbers and the remedy. If a plan has an
//! avoidable transfer, the warning names its cause.

use std::collections::BTreeSet;

use crate::support::{Random, chain, check, delayed, random_profile};
use vramp_plan::{Conflict, GraphSpec, HandlerId, HandlerSpec, NoPlan, Plan, Profile, RunOptions, Space};

fn profile() -> Profile {
    Profile::shipped("discrete").expect("it ships")
}

fn strict(spec: &GraphSpec) -> Result<(), Conflict> {
    match Plan::decide(&check(spec), &profile(), &RunOptions::new().strict(true)) {
        Ok(plan) => {
            assert!(plan.transfers.iter().all(|r| r.explicit));
            Ok(())
        }
        Err(NoPlan::Strict(conflict)) => Err(conflict),
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn strict_names_the_way_between_the_ports_that_cannot_meet() {
    let conflict = strict(&chain(&["src", "point-gpu", "point", "sink-cpu"])).unwrap_err();
    assert_eq!(
        conflict.to_string(),
        "these ports do not agree on memory space:
  point0.video      offers rgba8 64x48 at 30 fps in gpu|cpu
  sink-cpu0.video   accepts rgba8|rgb8|i444|i422|i420|nv12|gray8 in cpu
  point-gpu0.video  offers rgba8 64x48 at 30 fps in gpu
  point0.video      accepts rgba8 in gpu|cpu
help: write the transfer yourself, `point-gpu0.video ! download ! point0.video`, or drop --strict"
    );
}

#[test]
fn the_edit_that_strict_suggests_really_helps() {
    assert!(strict(&chain(&["src", "point-gpu", "download", "point", "sink-cpu"])).is_ok());
    assert!(strict(&chain(&["src-cpu", "point-gpu", "sink"])).unwrap_err().fix.contains("upload"));
    assert!(strict(&chain(&["src-cpu", "upload", "point-gpu", "sink"])).is_ok());
}

#[test]
fn strict_takes_the_cheapest_plan_that_needs_no_transfer() {
    let spec = chain(&["src", "point", "sink-gpu"]);
    let plan = Plan::decide(&check(&spec), &profile(), &RunOptions::new().strict(true)).unwrap();
    assert!(plan.handlers.iter().all(|h| h.space == Space::Gpu));
}

/// A conflict is irreducible: freeing any handler on it, including its ends, resolves it.
#[test]
fn a_strict_conflict_has_no_port_too_many() {
    let mut found = 0;
    for seed in 0..400 {
        let mut random = Random::new(seed);
        let kinds = ["point", "point", "point-cpu", "point-gpu", "pass", "join"];
        let mut spec = GraphSpec::new();
        let mut made = vec![spec.add(HandlerSpec::new(random.pick(&["src", "src-cpu", "src-gpu"])))];
        for _ in 0..random.below(7) {
            let kind = random.pick(&kinds);
            let at = spec.add(HandlerSpec::new(kind));
            for port in if kind == "join" { &["a", "b"][..] } else { &["video"] } {
                spec.connect(random.pick(&made), at.port(*port));
            }
            made.push(at);
        }
        let used: BTreeSet<usize> = spec.links().iter().map(|l| l.from.handler.0).collect();
        for at in made.iter().filter(|m| !used.contains(&m.0)) {
            let sink = spec.add(HandlerSpec::new("sink"));
            spec.connect(*at, sink);
        }
        let Err(conflict) = strict(&spec) else { continue };
        found += 1;
        // The handlers of the conflict alone, linked as a chain, still conflict; without any one of them they do not.
        let on_path: Vec<String> = conflict
            .claims
            .iter()
            .map(|c| c.port.split_once('.').unwrap().0.to_owned())
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        let names = spec.names();
        let kind = |name: &String| spec.handlers()[names.iter().position(|n| n == name).unwrap()].kind.clone();
        let only = |suffix: &str| on_path.iter().filter(|n| kind(n).ends_with(suffix)).count();
        assert_eq!((only("-cpu"), only("-gpu")), (1, 1), "seed {seed}: {conflict}");
        assert_eq!(conflict.claims.len(), 2 * (on_path.len() - 1), "seed {seed}: {conflict}");
    }
    assert!(found > 100, "{found}");
}

#[test]
fn a_pin_that_cannot_hold_says_what_the_handler_offers() {
    let spec = chain(&["src", "point-cpu", "sink"]);
    let error =
        Plan::decide(&check(&spec), &profile(), &RunOptions::new().place("point-cpu0", Space::Gpu)).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("point-cpu0 offers cpu") && text.contains("--place pins it to the gpu"), "{text}");
    let error = Plan::decide(&check(&spec), &profile(), &RunOptions::new().place("point-cpu", Space::Gpu)).unwrap_err();
    assert_eq!(error.to_string(), "--place point-cpu: no handler has this name\nhelp: did you mean `point-cpu0`?");
}

#[test]
fn cpu_only_refuses_device_handlers_and_transfers_by_name() {
    for kinds in [&["src", "point-gpu", "sink"][..], &["src", "upload", "sink"]] {
        let error = Plan::decide(&check(&chain(kinds)), &profile(), &RunOptions::new().only(Space::Cpu)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("--cpu keeps it on the cpu") && text.contains("help: "), "{text}");
    }
}

#[test]
fn gpu_without_a_device_is_refused_and_device_handlers_are_too() {
    let cpu = Profile::shipped("cpu").unwrap();
    let spec = chain(&["src", "point-gpu", "sink"]);
    let error = Plan::decide(&check(&spec), &cpu, &RunOptions::new().only(Space::Gpu)).unwrap_err();
    assert_eq!(error, NoPlan::NoDevice { profile: "shipped:cpu".to_owned() });
    let error = Plan::decide(&check(&spec), &cpu, &RunOptions::new()).unwrap_err().to_string();
    assert!(error.contains("point-gpu0 offers gpu, but profile shipped:cpu has no device"), "{error}");
}

#[test]
fn gpu_puts_everything_there_that_can_be_there_and_leaves_the_rest() {
    let spec = chain(&["src-cpu", "point", "pass", "sink-cpu"]);
    let plan = Plan::decide(&check(&spec), &profile(), &RunOptions::new().only(Space::Gpu)).unwrap();
    let on_gpu: Vec<_> = plan.handlers.iter().filter(|h| h.space == Space::Gpu).map(|h| h.name.as_str()).collect();
    assert_eq!(on_gpu, ["point0", "pass0"]);
}

#[test]
fn frames_of_different_sizes_that_must_be_equal_name_all_three_ports_and_the_resize() {
    let mut spec = GraphSpec::new();
    let one = spec.add(HandlerSpec::new("src").set("size", "640x480"));
    let two = spec.add(HandlerSpec::new("src").set("size", "320x240"));
    let mix = spec.add(HandlerSpec::new("mix"));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(one, mix.port("a"));
    spec.connect(two, mix.port("b"));
    spec.connect(mix, sink);
    let error = Plan::decide(&check(&spec), &profile(), &RunOptions::new()).unwrap_err();
    let NoPlan::Conflict(conflict) = error else { panic!("{error}") };
    let ports: Vec<_> = conflict.claims.iter().map(|c| c.port.as_str()).collect();
    assert_eq!(ports, ["src0.video", "src1.video", "mix0.b"]);
    assert_eq!(conflict.fix, "put `resize size=640x480` before mix0.b");
}

#[test]
fn frames_beyond_a_binding_stay_on_the_cpu_with_a_warning_or_are_refused_with_the_numbers() {
    let mut spec = GraphSpec::new();
    let source = spec.add(HandlerSpec::new("src").set("size", "8192x8192"));
    let point = spec.add(HandlerSpec::new("point"));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(source, point);
    spec.connect(point, sink);
    let profile = profile();
    let plan = Plan::decide(&check(&spec), &profile, &RunOptions::new()).unwrap();
    assert!(plan.handlers.iter().all(|h| h.space == Space::Cpu));
    let needed = 8192 * 8192 * 4;
    assert!(plan.warnings.iter().any(|w| w.contains(&needed.to_string()) && w.contains("134217728")));
    let error =
        Plan::decide(&check(&spec), &profile, &RunOptions::new().place("point0", Space::Gpu)).unwrap_err().to_string();
    assert!(error.contains(&needed.to_string()) && error.contains("134217728"), "{error}");
}

#[test]
fn costs_beyond_counting_are_refused() {
    let mut spec = GraphSpec::new();
    let source = spec.add(HandlerSpec::new("src").set("size", "8192x8192").set("work", 1e9));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(source, sink);
    let error = Plan::decide(&check(&spec), &profile(), &RunOptions::new()).unwrap_err();
    assert!(matches!(error, NoPlan::Cost { ref handler, .. } if handler == "src0"), "{error}");
}

#[test]
fn an_avoidable_transfer_names_its_cause_its_price_and_the_remedy() {
    let spec = chain(&["src-gpu", "point-gpu", "point-cpu", "point-gpu", "sink-gpu"]);
    let plan = Plan::decide(&check(&spec), &profile(), &RunOptions::new()).unwrap();
    assert_eq!(plan.transfers.len(), 2);
    assert_eq!(plan.warnings.len(), 2);
    for warning in &plan.warnings {
        for part in ["transfer of", "ms", "point-cpu0 only runs on the cpu"] {
            assert!(warning.contains(part), "{part} is not in {warning}");
        }
    }
    // One change avoids both transfers, so only the first warning suggests it.
    for part in ["avoidable", "would save", "2 transfer", "a gpu version of point-cpu0"] {
        let advised: Vec<bool> = plan.warnings.iter().map(|warning| warning.contains(part)).collect();
        assert_eq!(advised, [true, false], "{part}: {:?}", plan.warnings);
    }
    let spec = chain(&["src-gpu", "point", "point-gpu", "sink-gpu"]);
    let plan = Plan::decide(&check(&spec), &profile(), &RunOptions::new().place("point0", Space::Cpu)).unwrap();
    assert!(plan.warnings[0].contains("dropping --place point0=cpu would save"), "{:?}", plan.warnings);
}

#[test]
fn what_a_warning_says_is_saved_is_what_planning_again_saves() {
    let spec = chain(&["src-gpu", "point", "point-gpu", "sink-gpu"]);
    let (graph, profile) = (check(&spec), profile());
    let pinned = Plan::decide(&graph, &profile, &RunOptions::new().place("point0", Space::Cpu)).unwrap();
    let free = Plan::decide(&graph, &profile, &RunOptions::new()).unwrap();
    let saved = format!("would save {:.2} ms", (pinned.cost_ns - free.cost_ns) as f64 / 1e6);
    assert!(pinned.warnings[0].contains(&saved), "{saved} is not in {:?}", pinned.warnings);
}

#[test]
fn the_same_graph_gives_the_same_plan_however_it_was_put_together() {
    for seed in 0..50 {
        let make = |order: &mut Random| {
            let mut spec = chain(&["src", "point", "stencil", "point", "file"]);
            let extra = spec.add(HandlerSpec::new("join"));
            let sink = spec.add(HandlerSpec::new("sink-cpu"));
            let mut links = vec![(0, extra.port("b")), (2, extra.port("a")), (5, sink.into())];
            while !links.is_empty() {
                let (from, to): (usize, vramp_plan::LinkEnd) = links.remove(order.below(links.len()));
                spec.connect(HandlerId(from), to);
            }
            let profile = random_profile(&mut Random::new(seed));
            Plan::decide(&check(&spec), &profile, &RunOptions::new()).unwrap().to_json()
        };
        let mut order = Random::new(seed + 1000);
        let first = make(&mut order);
        for _ in 0..5 {
            assert_eq!(make(&mut order), first);
        }
    }
}

#[test]
fn a_pace_the_plan_cannot_keep_is_a_warning() {
    let spec = chain(&["src", "point", "sink"]);
    let plan = Plan::decide(&check(&spec), &profile(), &RunOptions::new().pace("1000000000".parse().unwrap())).unwrap();
    assert!(plan.warnings.iter().any(|w| w.contains("1000000000 fps allow 0.00 ms")));
}

#[test]
fn cpu_means_no_device_even_with_a_pin_and_a_transfer_cannot_be_pinned_to_the_host() {
    let spec = chain(&["src", "point", "sink"]);
    let error =
        Plan::decide(&check(&spec), &profile(), &RunOptions::new().only(Space::Cpu).place("point0", Space::Gpu));
    assert!(matches!(error, Err(NoPlan::Nowhere { ref handler, .. }) if handler == "point0"), "{error:?}");
    let spec = chain(&["src", "upload", "sink"]);
    let error = Plan::decide(&check(&spec), &profile(), &RunOptions::new().place("upload0", Space::Cpu));
    assert!(matches!(error, Err(NoPlan::Nowhere { ref handler, .. }) if handler == "upload0"), "{error:?}");
    assert!(Plan::decide(&check(&spec), &profile(), &RunOptions::new().place("upload0", Space::Gpu)).is_ok());
}

#[test]
fn a_profile_with_absurd_figures_is_refused_and_never_wraps() {
    let text = include_str!("../src/profile/shipped/discrete.toml");
    let spec = chain(&["src-cpu", "point", "sink-cpu"]);
    for (figure, absurd) in [
        ("submit_us = { value = 50", "submit_us = { value = 1e300"),
        ("upload_gb_s = { value = 10", "upload_gb_s = { value = 1e-300"),
    ] {
        let doctored = text.replace(figure, absurd);
        assert_ne!(doctored, text);
        let absurd = Profile::read("absurd", &doctored).unwrap();
        for only in Space::RANKED {
            let result = Plan::decide(&check(&spec), &absurd, &RunOptions::new().only(only));
            assert!(matches!(result, Err(NoPlan::Cost { .. })), "{result:?}");
        }
    }
    // The cost of a handler in a space where it cannot run does not matter.
    let (before, rate) = text.split_once("[gpu.rates]\npixel = { value = ").unwrap();
    let slow = format!("{before}[gpu.rates]\npixel = {{ value = 1e-300{}", &rate[rate.find(',').unwrap()..]);
    let slow = Profile::read("slow", &slow).unwrap();
    assert!(Plan::decide(&check(&chain(&["src-cpu", "point-cpu", "sink-cpu"])), &slow, &RunOptions::new()).is_ok());
}

#[test]
fn an_order_that_causes_transfers_is_named_with_what_dropping_it_saves() {
    let spec = chain(&["src-cpu", "point", "point", "sink-cpu"]);
    let (graph, profile) = (check(&spec), profile());
    let ordered = Plan::decide(&graph, &profile, &RunOptions::new().only(Space::Gpu)).unwrap();
    let free = Plan::decide(&graph, &profile, &RunOptions::new()).unwrap();
    assert_eq!((ordered.transfers.len(), free.transfers.len()), (2, 0));
    let saved = format!("dropping --gpu would save {:.2} ms", (ordered.cost_ns - free.cost_ns) as f64 / 1e6);
    assert!(ordered.warnings.iter().any(|w| w.contains(&saved)), "{saved} is not in {:?}", ordered.warnings);
}

#[test]
fn a_change_that_spares_several_transfers_is_advised_once() {
    let spec = chain(&["src-cpu", "point", "point", "sink-cpu"]);
    let plan = Plan::decide(&check(&spec), &profile(), &RunOptions::new().only(Space::Gpu)).unwrap();
    assert_eq!(plan.warnings.iter().filter(|w| w.contains("transfer of")).count(), 2, "{:?}", plan.warnings);
    assert_eq!(plan.warnings.iter().filter(|w| w.contains("avoidable")).count(), 1, "{:?}", plan.warnings);
}

#[test]
fn neighbours_that_share_the_blame_are_named_together() {
    let spec = chain(&["src-gpu", "point-cpu", "point-cpu", "sink-gpu"]);
    let plan = Plan::decide(&check(&spec), &profile(), &RunOptions::new()).unwrap();
    let both = "a gpu version of point-cpu0 and a gpu version of point-cpu1 would save";
    assert!(plan.warnings.iter().any(|w| w.contains(both)), "{:?}", plan.warnings);
}

#[test]
fn data_of_the_device_is_downloaded_and_frames_stay() {
    let mut spec = GraphSpec::new();
    let source = spec.add(HandlerSpec::new("src"));
    let detect = spec.add(HandlerSpec::new("detect"));
    let outline = spec.add(HandlerSpec::new("outline"));
    let sink = spec.add(HandlerSpec::new("sink-gpu"));
    spec.connect(source, detect);
    spec.connect(detect.port("found"), outline.port("found"));
    spec.connect(detect, outline);
    spec.connect(outline, sink);
    let plan = Plan::decide(&check(&spec), &profile(), &RunOptions::new().only(Space::Gpu)).unwrap();
    let [down] = &plan.transfers[..] else { panic!("{:?}", plan.transfers) };
    assert_eq!((plan.port_name(down.from).as_str(), down.bytes), ("detect0.found", 8192));
    assert_eq!((plan.segments, plan.input("outline0", "found").unwrap().space), (2, Space::Cpu));
    assert_eq!(plan.input("outline0", "video").unwrap().space, Space::Gpu);
    let strict = Plan::decide(&check(&spec), &profile(), &RunOptions::new().only(Space::Gpu).strict(true)).unwrap();
    assert_eq!(strict.transfers.len(), 1, "a handler may bring its data to the host");
    let cpu = Plan::decide(&check(&spec), &profile(), &RunOptions::new().place("detect0", Space::Cpu)).unwrap();
    assert!(
        cpu.transfers.iter().all(|transfer| cpu.port_name(transfer.from) != "detect0.found"),
        "{:?}",
        cpu.transfers
    );
}

#[test]
fn a_pin_under_an_order_is_not_promised_to_save_what_the_order_would_take_back() {
    let spec = chain(&["src-cpu", "point", "sink-cpu"]);
    let (graph, profile) = (check(&spec), profile());
    let both = RunOptions::new().only(Space::Gpu).place("point0", Space::Gpu);
    let warnings = Plan::decide(&graph, &profile, &both).unwrap().warnings;
    assert!(warnings.iter().all(|w| !w.contains("dropping --place")), "{warnings:?}");
}

#[test]
fn alternatives_that_have_no_plan_have_no_price() {
    let spec = delayed(HandlerSpec::new("src").set("size", "3840x2160"), 200);
    let plan = Plan::decide(&check(&spec), &profile(), &RunOptions::new()).unwrap();
    assert!(plan.alternatives.cpu_ns.is_some() && plan.alternatives.gpu_ns.is_none());
}

fn required(kinds: &[&str], options: RunOptions, profile: &Profile) -> Result<Plan, NoPlan> {
    Plan::decide(&check(&chain(kinds)), profile, &options.require_gpu())
}

#[test]
fn require_gpu_puts_every_handler_between_the_ends_on_the_device_whatever_that_costs() {
    let software = Profile::shipped("software").expect("it ships");
    let kinds = ["src-cpu", "point", "pass", "point", "sink-cpu"];
    let cheapest = Plan::decide(&check(&chain(&kinds)), &software, &RunOptions::new()).unwrap();
    assert_eq!(cheapest.between_on_cpu().count(), 3, "without the option the CPU is cheaper");
    let plan = required(&kinds, RunOptions::new(), &software).unwrap();
    let spaces: Vec<Space> = plan.handlers.iter().map(|handler| handler.space).collect();
    assert_eq!(spaces, [Space::Cpu, Space::Gpu, Space::Gpu, Space::Gpu, Space::Cpu]);
    assert_eq!(plan.alternatives.cpu_ns, None);
    assert!(plan.warnings.iter().all(|warning| !warning.contains("version of")), "{:?}", plan.warnings);
}

#[test]
fn require_gpu_names_every_handler_that_cannot_be_on_the_device_with_its_reason_and_the_way_out() {
    let kinds = ["src", "point-cpu", "point", "point", "sink"];
    let error = required(&kinds, RunOptions::new().place("point1", Space::Cpu), &profile()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--require-gpu: 2 of the 3 handlers between sources and sinks cannot be on the device
  point-cpu0: it has no GPU implementation
  point1: --place pins it to the cpu
help: replace point-cpu0, drop --place point1=cpu; or drop --require-gpu"
    );
    assert_eq!(error.handler(), None);
    let error = required(&["src", "point-cpu", "sink"], RunOptions::new(), &profile()).unwrap_err();
    assert!(
        error.to_string().starts_with("--require-gpu: the only handler between sources and sinks cannot"),
        "{error}"
    );
    assert_eq!(error.handler(), Some("point-cpu0"));
}

#[test]
fn require_gpu_without_a_device_or_with_the_cpu_alone_has_no_plan() {
    let cpu = Profile::shipped("cpu").unwrap();
    let error = required(&["src", "point", "sink"], RunOptions::new(), &cpu).unwrap_err().to_string();
    assert!(error.contains("point0: profile shipped:cpu has no device"), "{error}");
    let error = required(&["src", "point", "sink"], RunOptions::new().only(Space::Cpu), &profile()).unwrap_err();
    assert!(error.to_string().contains("point0: --cpu keeps it on the cpu\nhelp: drop --cpu"), "{error}");
}

#[test]
fn require_gpu_says_when_there_is_nothing_to_require() {
    assert_eq!(required(&["src", "sink"], RunOptions::new(), &profile()), Err(NoPlan::NothingBetween));
    assert!(RunOptions::new().require_gpu().needs_device());
}
