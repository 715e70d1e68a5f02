//! The wiring of a plan for the engine: units, the rings between them, and segments.

use std::collections::BTreeSet;

use crate::placement::random_graph;
use crate::support::{Random, chain, check, random_profile};
use vramp_plan::{Format, Plan, Profile, RunOptions, Space};

fn plan(kinds: &[&str], options: &RunOptions) -> Plan {
    let profile = Profile::shipped("discrete").expect("it ships");
    Plan::decide(&check(&chain(kinds)), &profile, options).unwrap_or_else(|error| panic!("{error}"))
}

/// Each unit as its handlers or the direction of its transfer, in the order of its lane.
fn running(plan: &Plan) -> Vec<Vec<Vec<String>>> {
    let name = |unit: &usize| {
        let unit = &plan.units[*unit];
        let names: Vec<&str> = unit.handlers.iter().map(|at| plan.handlers[*at].name.as_str()).collect();
        let carried =
            unit.transfer.filter(|_| unit.is_inserted()).map(|transfer| plan.transfers[transfer].direction.to_string());
        carried.unwrap_or_else(|| names.join("+"))
    };
    let lane =
        |lane: &vramp_plan::PlannedLane| lane.segments.iter().map(|units| units.iter().map(name).collect()).collect();
    plan.lanes.iter().map(lane).collect()
}

#[test]
fn inserted_transfers_run_next_to_the_units_that_they_serve() {
    let plan = plan(&["src-cpu", "point-gpu", "opaque", "sink-cpu"], &RunOptions::new().place("opaque0", Space::Gpu));
    assert_eq!(
        running(&plan),
        [
            vec![vec!["src-cpu0".to_owned()]],
            vec![vec!["cpu->gpu".to_owned(), "point-gpu0".to_owned(), "opaque0".to_owned(), "gpu->cpu".to_owned()]],
            vec![vec!["sink-cpu0".to_owned()]],
        ]
    );
    // Across a transfer a link has two rings; for a single consumer the ring on the device side has depth 0.
    let depths =
        |link: usize| plan.links[link].rings.iter().map(|ring| plan.rings[*ring].depth > 0).collect::<Vec<_>>();
    assert_eq!([depths(0), depths(1), depths(2)], [vec![true, false], vec![false], vec![false, true]]);
}

#[test]
fn fused_handlers_are_one_unit_without_rings_inside() {
    let plan = plan(&["src", "point", "point", "sink"], &RunOptions::new().only(Space::Cpu));
    let first = &plan.units[0];
    assert_eq!((first.handlers.len(), first.inputs.len()), (3, 0));
    assert_eq!(plan.links.iter().map(|link| link.rings.len()).collect::<Vec<_>>(), [0, 0, 1]);
}

#[test]
fn an_inserted_converter_has_its_settings_in_the_plan() {
    let spec = {
        let mut spec = chain(&["src", "point", "sink"]);
        spec = vramp_plan::read_text(
            &vramp_plan::write_text(&spec).replace("src", "src format=i420"),
            &crate::support::catalog(),
        )
        .spec;
        spec
    };
    let profile = Profile::shipped("discrete").expect("it ships");
    let plan = Plan::decide(&check(&spec), &profile, &RunOptions::new()).expect("a plan");
    let converter = plan.handlers.iter().find(|handler| handler.inserted).expect("i420 is not what a point takes");
    assert_eq!(converter.settings.format("format"), Some(Format::Rgba8));
}

/// Every link is a path of rings from the unit of one end to the unit of the other. Every unit is in one segment of its
/// own lane. Units joined by a ring of depth 0 are in one segment and in order.
#[test]
fn random_plans_are_wired_from_end_to_end() {
    let mut crossed = 0;
    for seed in 0..600 {
        let mut random = Random::new(seed);
        let size = 1 + random.below(14);
        let spec = random_graph(&mut random, size);
        let profile = random_profile(&mut random);
        let options = RunOptions::new().fusion(random.chance(80));
        let Ok(plan) = Plan::decide(&check(&spec), &profile, &options) else { continue };
        let what = format!("seed {seed}\n{}", vramp_plan::write_text(&spec));
        let unit_of = |handler: usize| {
            plan.units.iter().position(|unit| unit.handlers.contains(&handler)).expect("each handler is in a unit")
        };
        for link in &plan.links {
            let (from, to) = (unit_of(link.from.handler), unit_of(link.to.handler));
            let rings: Vec<_> = link.rings.iter().map(|ring| plan.rings[*ring]).collect();
            match &rings[..] {
                [] => assert_eq!(from, to, "{what}"),
                [ring] => assert_eq!((ring.from, ring.to), (from, to), "{what}"),
                [before, after] => {
                    assert_eq!((before.from, before.to, after.to), (from, after.from, to), "{what}");
                    assert!(plan.units[before.to].transfer.is_some(), "{what}");
                    crossed += 1;
                }
                _ => panic!("{what}: {} rings", rings.len()),
            }
            let depth = rings.iter().map(|ring| ring.depth).max().unwrap_or(0);
            assert!(depth >= link.depth, "{what}: {depth} of {link:?}");
        }
        let mut seen = BTreeSet::new();
        for (number, lane) in plan.lanes.iter().enumerate() {
            assert!(lane.device || lane.segments.len() == 1, "{what}");
            for unit in lane.segments.iter().flatten() {
                assert_eq!(plan.units[*unit].lane, number, "{what}");
                assert!(seen.insert(*unit), "{what}: unit {unit} runs twice");
            }
        }
        assert_eq!(seen.len(), plan.units.len(), "{what}");
        let place = |unit: usize| {
            let segments = &plan.lanes[plan.units[unit].lane].segments;
            let at = segments.iter().position(|units| units.contains(&unit)).expect("each unit runs");
            (plan.units[unit].lane, at, segments[at].iter().position(|own| *own == unit))
        };
        for ring in plan.rings.iter().filter(|ring| ring.depth == 0) {
            let (from, to) = (place(ring.from), place(ring.to));
            assert!((from.0, from.1) == (to.0, to.1) && from.2 < to.2, "{what}: {ring:?} in {:?}", running(&plan));
        }
    }
    assert!(crossed > 200, "{crossed}");
}
