//! How many transfers a plan has, and where they are.

use crate::support::{catalog, chain, check};
use vramp_plan::catalog::{NoProbe, TransferDirection};
use vramp_plan::{CheckError, Format, Graph, GraphSpec, HandlerSpec, Plan, Policy, Profile, Rate, RunOptions, Space};

fn profile() -> Profile {
    Profile::shipped("discrete").expect("it ships")
}

fn plan(spec: &GraphSpec) -> Plan {
    Plan::decide(&check(spec), &profile(), &RunOptions::new()).unwrap_or_else(|e| panic!("{e}"))
}

fn directions(plan: &Plan) -> Vec<TransferDirection> {
    plan.transfers.iter().map(|r| r.direction).collect()
}

#[test]
fn a_chain_that_is_all_gpu_has_no_transfer() {
    let plan = plan(&chain(&["src-gpu", "point-gpu", "point", "sink-gpu"]));
    assert_eq!(plan.transfers.len(), 0);
    assert_eq!(plan.segments, 1);
    assert!(plan.warnings.is_empty(), "{:?}", plan.warnings);
}

#[test]
fn gpu_cpu_gpu_cpu_takes_three_transfers_and_says_their_sum() {
    let plan = plan(&chain(&["src-gpu", "point-cpu", "point-gpu", "sink-cpu"]));
    assert_eq!(directions(&plan), [TransferDirection::Down, TransferDirection::Up, TransferDirection::Down]);
    assert_eq!(plan.segments, 2);
    let transfers: u64 = plan.transfers.iter().map(|r| r.est_ns).sum();
    assert!(transfers > 0 && plan.cost_ns > transfers);
    assert_eq!(plan.warnings.len(), 3);
}

#[test]
fn cpu_ends_around_a_gpu_middle_take_two() {
    let plan = plan(&chain(&["src-cpu", "point-gpu", "point-gpu", "sink-cpu"]));
    assert_eq!(directions(&plan), [TransferDirection::Up, TransferDirection::Down]);
}

#[test]
fn a_chain_that_is_all_flexible_takes_none() {
    assert_eq!(plan(&chain(&["src", "point", "sink"])).transfers.len(), 0);
}

#[test]
fn a_mixed_chain_takes_one() {
    let plan = plan(&chain(&["src-gpu", "point-gpu", "point-cpu", "sink"]));
    assert_eq!(directions(&plan), [TransferDirection::Down]);
    // The flexible sink follows its neighbour instead of causing an upload.
    assert_eq!(plan.handler("sink0").unwrap().space, Space::Cpu);
}

#[test]
fn when_only_the_cpu_is_common_frames_stay_there() {
    let plan = plan(&chain(&["src-cpu", "point-cpu", "sink-cpu"]));
    assert_eq!(plan.transfers.len(), 0);
    assert_eq!(plan.segments, 0);
    assert_eq!(plan.input("point-cpu0", "video").unwrap().space, Space::Cpu);
}

#[test]
fn the_gpu_is_preferred_where_both_cost_the_same() {
    // Handlers without any cost differ only by the submit; without that too, the GPU wins the tie.
    let free = "about = \"free\"\n".to_owned()
        + include_str!("../src/profile/shipped/discrete.toml").split_once('\n').unwrap().1;
    let free = free.replace("submit_us = { value = 50", "submit_us = { value = 1e-9");
    let free = Profile::read("free", &free).unwrap();
    let spec = chain(&["src-gpu", "pass", "pass", "sink-gpu"]);
    let plan = Plan::decide(&check(&spec), &free, &RunOptions::new()).unwrap();
    assert!(plan.handlers.iter().all(|h| h.space == Space::Gpu));
}

#[test]
fn consumers_of_one_output_share_one_transfer() {
    let mut spec = chain(&["src-gpu", "sink-cpu"]);
    for _ in 0..3 {
        let sink = spec.add(HandlerSpec::new("sink-cpu"));
        spec.connect(vramp_plan::HandlerId(0), sink);
    }
    let plan = plan(&spec);
    assert_eq!(plan.transfers.len(), 1);
    assert_eq!(plan.transfers[0].to.len(), 4);
}

#[test]
fn consumers_that_want_one_format_share_one_converter() {
    let mut spec = chain(&["src", "file"]);
    for kind in ["file", "sink"] {
        let sink = spec.add(HandlerSpec::new(kind));
        spec.connect(vramp_plan::HandlerId(0), sink);
    }
    let plan = plan(&spec);
    let converters: Vec<_> = plan.handlers.iter().filter(|h| h.inserted).collect();
    assert_eq!(converters.len(), 1);
    assert_eq!(converters[0].name, "convert0");
    assert_eq!(plan.links.iter().filter(|l| plan.port_name(l.from) == "convert0.video").count(), 2);
}

#[test]
fn a_converter_to_the_format_that_comes_in_has_no_kernel_and_costs_nothing() {
    let mut spec = GraphSpec::new();
    let convert = || HandlerSpec::new("convert").set("format", Format::Nv12);
    let [source, one, two, sink] =
        [HandlerSpec::new("src"), convert(), convert(), HandlerSpec::new("sink")].map(|h| spec.add(h));
    spec.connect(source, one);
    spec.connect(one, two);
    spec.connect(two, sink);
    let plan = plan(&spec);
    let converter = |name| plan.handler(name).expect("it was planned");
    assert!(converter("convert0").group.is_some() && converter("convert0").cost_ns > 0, "{plan:?}");
    assert!(converter("convert1").group.is_none() && converter("convert1").cost_ns == 0, "{plan:?}");
}

#[test]
fn an_inserted_converter_takes_a_free_name() {
    let mut spec = GraphSpec::new();
    let source = spec.add(HandlerSpec::new("src").named("convert0"));
    let sink = spec.add(HandlerSpec::new("file").named("convert1"));
    spec.connect(source, sink);
    let plan = plan(&spec);
    assert!(plan.handler("convert2").is_some_and(|h| h.inserted));
}

#[test]
fn explicit_transfers_give_the_same_count_as_automatic_ones() {
    let automatic = plan(&chain(&["src-cpu", "point-gpu", "sink-cpu"]));
    let explicit = plan(&chain(&["src-cpu", "upload", "point-gpu", "download", "sink-cpu"]));
    assert_eq!(directions(&automatic), directions(&explicit));
    assert_eq!(automatic.cost_ns, explicit.cost_ns);
    assert_eq!(automatic.segments, explicit.segments);
    assert!(explicit.transfers.iter().all(|r| r.explicit) && explicit.warnings.is_empty());
}

#[test]
fn an_explicit_transfer_is_shared_with_other_consumers() {
    let mut spec = chain(&["src-cpu", "upload", "point-gpu", "sink-gpu"]);
    let other = spec.add(HandlerSpec::new("point-gpu"));
    let sink = spec.add(HandlerSpec::new("sink-gpu"));
    spec.connect(vramp_plan::HandlerId(0), other);
    spec.connect(other, sink);
    assert_eq!(plan(&spec).transfers.len(), 1);
}

#[test]
fn adding_a_connection_and_planning_again_renegotiates() {
    let mut spec = chain(&["src", "point", "sink-gpu"]);
    let before = plan(&spec);
    assert_eq!(before.transfers.len(), 0);
    assert_eq!(before.output("src0", "video").unwrap().space, Space::Gpu);
    let file = spec.add(HandlerSpec::new("file"));
    spec.connect(vramp_plan::HandlerId(1), file);
    let after = plan(&spec);
    assert_eq!(after.transfers.len(), 1);
    assert!(after.handlers.iter().any(|h| h.inserted));
    assert_eq!(after.input("file0", "video").unwrap().space, Space::Cpu);
    assert_eq!(after.input("file0", "nothing"), None);
}

#[test]
fn handlers_show_their_ports_and_links_go_between_named_ones() {
    let mut spec = GraphSpec::new();
    let source = spec.add(HandlerSpec::new("src"));
    let mix = spec.add(HandlerSpec::new("mix"));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(source.port("video"), mix.port("a"));
    spec.connect(source.port("video"), mix.port("b"));
    spec.connect(mix.port("video"), sink.port("video"));
    let graph = check(&spec);
    assert_eq!(graph.handlers()[1].inputs().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(graph.handlers()[1].outputs().collect::<Vec<_>>(), ["video"]);
}

#[test]
fn pixel_functions_fuse_and_fan_out_a_reduction_or_a_queue_ends_the_group() {
    let groups = |spec: &GraphSpec| -> Vec<Vec<String>> {
        let plan = Plan::decide(&check(spec), &profile(), &RunOptions::new().only(Space::Gpu)).unwrap();
        let name = |h: &usize| plan.handlers[*h].name.clone();
        plan.groups.iter().map(|g| g.handlers.iter().map(name).collect()).collect()
    };
    let spec = chain(&["src", "point", "point", "stencil", "point", "reduce", "point", "sink"]);
    // The stencil cannot be fused with a generator before it, but with the pixel function after it.
    assert_eq!(
        groups(&spec),
        [vec!["src0", "point0", "point1"], vec!["stencil0", "point2"], vec!["reduce0"], vec!["point3"]]
    );
    let mut fan = chain(&["src", "point", "point", "sink"]);
    let sink = fan.add(HandlerSpec::new("sink"));
    fan.connect(vramp_plan::HandlerId(1), sink);
    assert_eq!(groups(&fan), [vec!["src0", "point0"], vec!["point1"]]);
    let mut queued = chain(&["src", "point"]);
    let (point, sink) = (queued.add(HandlerSpec::new("point")), queued.add(HandlerSpec::new("sink")));
    queued.connect(vramp_plan::HandlerId(1), point).policy(Policy::Queue);
    queued.connect(point, sink);
    assert_eq!(groups(&queued), [vec!["src0", "point0"], vec!["point1"]]);
}

#[test]
fn a_run_of_pixel_functions_joins_the_gather_after_it() {
    let plan = Plan::decide(
        &check(&chain(&["src-cpu", "point", "gather", "point", "sink"])),
        &profile(),
        &RunOptions::new().only(Space::Gpu),
    )
    .unwrap();
    let group = &plan.groups[plan.handler("gather0").unwrap().group.unwrap()];
    assert_eq!(group.handlers.len(), 3);
    assert_eq!(group.dispatches, 1);
}

#[test]
fn without_fusion_every_kernel_is_separate_and_the_plan_costs_more() {
    let spec = chain(&["src", "point", "point", "sink"]);
    let graph = check(&spec);
    let profile = profile();
    let fused = Plan::decide(&graph, &profile, &RunOptions::new().only(Space::Gpu)).unwrap();
    let alone = Plan::decide(&graph, &profile, &RunOptions::new().only(Space::Gpu).fusion(false)).unwrap();
    assert_eq!((fused.groups.len(), alone.groups.len()), (1, 3));
    assert!(fused.cost_ns < alone.cost_ns);
}

#[test]
fn a_group_that_binds_too_many_buffers_is_split() {
    // Every mix reads another frame besides that of the chain.
    let mut spec = GraphSpec::new();
    let other = spec.add(HandlerSpec::new("src-cpu"));
    let mut before = spec.add(HandlerSpec::new("src"));
    for _ in 0..9 {
        let mix = spec.add(HandlerSpec::new("mix"));
        spec.connect(before, mix.port("a"));
        spec.connect(other, mix.port("b"));
        before = mix;
    }
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(before, sink);
    let sizes = |only: Space| -> Vec<usize> {
        let plan = Plan::decide(&check(&spec), &profile(), &RunOptions::new().only(only)).unwrap();
        plan.groups.iter().filter(|g| g.handlers[0] != 0).map(|g| g.handlers.len()).collect()
    };
    // Eight buffers hold the output and seven frames; the second group also reads the output of the first.
    assert_eq!(sizes(Space::Gpu), [8, 2]);
    assert_eq!(sizes(Space::Cpu), [10], "the host has no such limit");
}

#[test]
fn small_data_of_a_group_share_one_buffer() {
    let mut kinds = vec!["src"];
    kinds.extend(["tabled"; 20]);
    kinds.push("sink");
    let plan = Plan::decide(&check(&chain(&kinds)), &profile(), &RunOptions::new().only(Space::Gpu)).unwrap();
    assert_eq!(plan.groups.len(), 1);
}

#[test]
fn blocking_handlers_get_lanes_of_their_own_and_a_lane_links_inline() {
    let plan = Plan::decide(
        &check(&chain(&["src", "point", "pass", "file"])),
        &profile(),
        &RunOptions::new().only(Space::Cpu),
    )
    .unwrap();
    let lanes: Vec<Vec<&str>> =
        plan.lanes.iter().map(|l| l.handlers.iter().map(|h| plan.handlers[*h].name.as_str()).collect()).collect();
    assert_eq!(lanes, [vec!["src0", "point0", "pass0", "convert0"], vec!["file0"]]);
    let depths: Vec<_> = plan.links.iter().map(|l| l.depth).collect();
    assert_eq!(depths, [0, 0, 0, 3]);
}

#[test]
fn live_sources_deliver_the_latest_and_files_lose_nothing() {
    let live = plan(&chain(&["src-live", "point", "sink"]));
    assert!(live.links.iter().all(|l| l.policy == Policy::Latest));
    let file = plan(&chain(&["src-cpu", "point", "sink"]));
    assert!(file.links.iter().all(|l| l.policy == Policy::Lossless));
}

#[test]
fn what_runs_less_often_counts_less() {
    let cost = |n: u32| {
        let mut spec = GraphSpec::new();
        let source = spec.add(HandlerSpec::new("src-cpu").set("work", 0));
        let every = spec.add(HandlerSpec::new("every").set("n", n));
        let point = spec.add(HandlerSpec::new("point-cpu").set("work", 1000));
        let sink = spec.add(HandlerSpec::new("sink-cpu").set("work", 0));
        spec.connect(source, every);
        spec.connect(every, point);
        spec.connect(point, sink);
        let plan = plan(&spec);
        assert_eq!(plan.input("point-cpu0", "video").unwrap().content.rate(), Rate::new(30, n));
        plan.cost_ns as f64
    };
    let ratio = cost(1) / cost(10);
    assert!((9.0..10.1).contains(&ratio), "{ratio}");
}

#[test]
fn every_kind_of_mistake_in_a_built_graph_is_reported_at_once() {
    let mut spec = GraphSpec::new();
    let source = spec.add(HandlerSpec::new("src").set("fps", "fast").set("colour", "red"));
    let mix = spec.add(HandlerSpec::new("mix"));
    let odd = spec.add(HandlerSpec::new("pont"));
    spec.connect(source, mix.port("a"));
    spec.connect(source, mix.port("a"));
    spec.connect(mix.port("c"), odd);
    let Err(CheckError::Mistakes(mistakes)) = Graph::check(&spec, &catalog(), &NoProbe) else { panic!() };
    let all = mistakes.iter().map(|m| m.title.as_str()).collect::<Vec<_>>().join("\n");
    for part in
        ["`fast` is not a valid fps", "unknown setting `colour`", "unknown handler `pont`", "mix0.a is fed twice"]
    {
        assert!(all.contains(part), "{part} is not in\n{all}");
    }
    assert!(mistakes.iter().any(|m| m.help.as_deref() == Some("did you mean `point`?")));
}

#[test]
fn cycles_and_loose_ends_are_mistakes() {
    let titles = |spec: &GraphSpec| match Graph::check(spec, &catalog(), &NoProbe) {
        Err(CheckError::Mistakes(m)) => m.into_iter().map(|m| m.title).collect::<Vec<_>>().join("\n"),
        other => panic!("{other:?}"),
    };
    let mut cycle = chain(&["src", "mix", "point", "pass", "sink"]);
    cycle.connect(vramp_plan::HandlerId(3), vramp_plan::HandlerId(1).port("b"));
    assert!(titles(&cycle).contains("cycle: mix0 -> point0 -> pass0 -> mix0"), "{}", titles(&cycle));
    assert!(titles(&chain(&["src", "point"])).contains("point0.video goes nowhere"));
    assert!(titles(&chain(&["point", "sink"])).contains("point0.video is not linked"));
    assert!(titles(&chain(&["src", "src"])).contains("src1 has no input"));
    assert!(titles(&GraphSpec::new()).contains("empty"));
}

#[test]
fn an_explicit_policy_holds_on_both_sides_of_an_inserted_converter() {
    let mut spec = GraphSpec::new();
    let source = spec.add(HandlerSpec::new("src-live"));
    let file = spec.add(HandlerSpec::new("file"));
    spec.connect(source, file).policy(Policy::Lossless);
    let plan = plan(&spec);
    assert_eq!(plan.links.len(), 2);
    assert!(plan.links.iter().all(|l| l.policy == Policy::Lossless));
}

#[test]
fn links_that_do_not_belong_or_hold_nothing_are_mistakes() {
    let title = |spec: &GraphSpec| match Graph::check(spec, &catalog(), &NoProbe) {
        Err(CheckError::Mistakes(m)) => m.into_iter().map(|m| m.title).collect::<Vec<_>>().join("\n"),
        other => panic!("{other:?}"),
    };
    let mut foreign = chain(&["src", "sink"]);
    foreign.connect(vramp_plan::HandlerId(0), vramp_plan::HandlerId(9));
    assert!(title(&foreign).contains("a link refers to handler 9, but the graph has 2 handlers"));
    let mut shallow = GraphSpec::new();
    let (source, sink) = (shallow.add(HandlerSpec::new("src")), shallow.add(HandlerSpec::new("sink")));
    shallow.connect(source, sink).policy(Policy::Queue).depth(0);
    assert!(title(&shallow).contains("a link cannot have depth 0"));
}

#[test]
fn a_broken_link_does_not_hide_mistakes_elsewhere() {
    let mut spec = chain(&["src", "mix", "sink"]);
    let loose = spec.add(HandlerSpec::new("point"));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(loose, sink);
    spec.connect(vramp_plan::HandlerId(0), vramp_plan::HandlerId(1).port("zz"));
    let Err(CheckError::Mistakes(mistakes)) = Graph::check(&spec, &catalog(), &NoProbe) else { panic!() };
    let titles: Vec<_> = mistakes.iter().map(|m| m.title.as_str()).collect();
    assert!(titles.contains(&"mix0 has no input `zz`") && titles.contains(&"point0.video is not linked"), "{titles:?}");
}

#[test]
fn a_frame_that_touches_the_host_leaves_the_lane_of_the_device() {
    let plan = plan(&chain(&["src-gpu", "download", "upload", "sink-gpu"]));
    let link = plan.links.iter().find(|l| plan.port_name(l.to) == "upload0.video").unwrap();
    assert!(link.depth > 0 && link.space == Space::Cpu);
    assert_eq!(plan.segments, 2);
}

#[test]
fn ports_of_different_types_cannot_be_linked() {
    let mut spec = GraphSpec::new();
    let source = spec.add(HandlerSpec::new("src"));
    let detect = spec.add(HandlerSpec::new("detect"));
    let sink = spec.add(HandlerSpec::new("sink"));
    spec.connect(source, detect);
    spec.connect(detect.port("found"), sink);
    let Err(CheckError::Mistakes(mistakes)) = Graph::check(&spec, &catalog(), &NoProbe) else { panic!() };
    assert_eq!(mistakes[0].title, "detect0.found carries data, but sink0.video takes video");
    assert_eq!(mistakes[0].expected, "expected both ends to carry video");
}

#[test]
fn figures_per_frame_count_transfers_submits_dispatches_and_the_cpu() {
    let plan = plan(&chain(&["src-gpu", "point-cpu", "point-gpu", "sink-cpu"]));
    let figures = plan.figures(1);
    assert_eq!((figures.uploads, figures.downloads, figures.cpu_handlers), (1.0, 2.0, 1));
    assert_eq!(figures.submits, Some(f64::from(plan.segments)));
    assert_eq!(
        figures.named("transfer_bytes"),
        Some(plan.transfers.iter().map(|transfer| transfer.bytes as f64).sum())
    );
    let dispatches = plan.groups.iter().map(|group| f64::from(group.dispatches)).sum();
    assert_eq!(figures.named("dispatches"), Some(dispatches));
    assert_eq!((figures.named("transfers"), figures.named("cpu_frames")), (Some(3.0), Some(1.0)));
    assert_eq!((figures.named("passes"), plan.figures(4).submits), (None, None), "only a run knows");
    assert_eq!(plan.between_on_cpu().map(|handler| handler.name.as_str()).collect::<Vec<_>>(), ["point-cpu0"]);
}

#[test]
fn a_handler_knows_its_cost_on_the_other_side_if_it_has_one() {
    let spec = chain(&["src", "point", "point", "point-cpu", "sink-cpu"]);
    let on = |space| Plan::decide(&check(&spec), &profile(), &RunOptions::new().only(space)).unwrap();
    let (gpu, cpu) = (on(Space::Gpu), on(Space::Cpu));
    for name in ["src0", "point0", "point1"] {
        let (there, here) = (gpu.handler(name).unwrap(), cpu.handler(name).unwrap());
        assert_eq!((there.other_ns, here.other_ns), (Some(here.alone_ns), Some(there.alone_ns)), "{name}");
    }
    assert_eq!(gpu.handler("point-cpu0").unwrap().other_ns, None);
}

#[test]
fn a_group_that_fuses_likewise_on_both_sides_knows_what_the_other_side_costs() {
    let spec = chain(&["src", "point", "point", "sink"]);
    let on = |space| Plan::decide(&check(&spec), &profile(), &RunOptions::new().only(space)).unwrap();
    let cost = |plan: &Plan| {
        let group = &plan.groups[plan.handler("point1").unwrap().group.unwrap()];
        assert_eq!(group.handlers.len(), 3);
        (group.handlers.iter().fold(group.pass_ns, |sum, at| sum + plan.handlers[*at].cost_ns), group.other_ns)
    };
    let ((gpu_ns, gpu_other), (cpu_ns, cpu_other)) = (cost(&on(Space::Gpu)), cost(&on(Space::Cpu)));
    assert_eq!((gpu_other, cpu_other), (Some(cpu_ns), Some(gpu_ns)));
}
