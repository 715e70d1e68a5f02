//! Snapshots of a running pipeline: they agree with the final report and do not disturb the run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use vramp::Pipeline;
use vramp::plan::{RunOptions, Space};
use vramp::runtime::Report;
use vramp::runtime::observe::Snapshot;

/// Runs a pipeline while another thread takes snapshots. Returns these, a snapshot after the run, and the report.
fn watched(pipeline: &str, space: Space) -> (Vec<Snapshot>, Snapshot, Report) {
    let registry = vramp::registry();
    let spec = vramp::read(pipeline, registry.catalog()).expect("it is right");
    let graph = registry.check(&spec).expect("it is right");
    let mut pipeline = Pipeline::from_graph(graph.clone())
        .registry(&registry)
        .options(RunOptions::new().only(space))
        .build()
        .expect("it can run here");
    let (watch, over) = (pipeline.watch(), AtomicBool::new(false));
    let (seen, report) = std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            let mut seen = vec![watch.snapshot(Duration::ZERO)];
            while !over.load(Ordering::Relaxed) {
                seen.push(watch.snapshot(Duration::ZERO));
                std::thread::yield_now();
            }
            seen
        });
        let outcome = pipeline.outcome().expect("it starts");
        over.store(true, Ordering::Relaxed);
        (looking.join().expect("looking does not fail"), outcome.into_result().expect("it runs"))
    });
    (seen, watch.snapshot(Duration::ZERO), report)
}

#[test]
fn counts_only_grow_and_end_at_what_the_report_says() {
    let pipeline = "pattern name=p size=32x24 frames=200 ! blur !{latest} null; p. ! invert ! null";
    for space in [Space::Cpu, Space::Gpu] {
        let (seen, last, report) = watched(pipeline, space);
        assert!(seen.len() > 1);
        assert!(
            seen.is_sorted_by_key(|snapshot| snapshot.frames_in)
                && seen.is_sorted_by_key(|snapshot| snapshot.frames_out)
        );
        assert_eq!((last.frames_in, last.frames_out), (report.frames_in, report.frames_out), "on the {space}");
        assert_eq!((last.dropped, last.failed), (report.dropped, report.failed));
        let links: Vec<_> = last.links.iter().map(|link| link.carried.clone()).collect();
        assert_eq!(links, report.links);
        let calls: Vec<_> = last
            .nodes
            .iter()
            .flat_map(|node| node.names.iter().map(|name| (name.clone(), node.counts.taken)))
            .collect();
        assert_eq!(calls, report.handlers.iter().map(|own| (own.name.clone(), own.calls)).collect::<Vec<_>>());
        assert!(last.nodes.iter().all(|node| node.counts.is_conserved()));
        assert_eq!(last.host.peak_bytes, report.memory.cpu_peak_bytes);
        let device = last.device.map(|device| (device.name, device.backend, device.memory.peak_bytes));
        let expected = (space == Space::Gpu).then_some((report.device, report.backend, report.memory.gpu_peak_bytes));
        assert_eq!(device, expected);
    }
}

#[test]
fn snapshots_make_lanes_allocate_nothing() {
    let (seen, _, report) = watched("pattern size=64x48 frames=2000 ! blur ! invert ! null", Space::Cpu);
    assert!(seen.iter().any(|snapshot| (1..2000).contains(&snapshot.frames_out)), "it was looked at while it ran");
    assert_eq!(report.steady.heap_allocs, Some(0.0));
}
