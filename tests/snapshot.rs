//! Snapshots and progress of a running pipeline: they agree with the final report and do not disturb the run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use vramp::Pipeline;
use vramp::plan::{RunOptions, Space};
use vramp::runtime::observe::{PoolProgress, Snapshot};
use vramp::runtime::{Report, RunProgress};

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
    let begin = std::sync::Barrier::new(2);
    let (seen, report) = std::thread::scope(|scope| {
        let looking = scope.spawn(|| {
            begin.wait();
            let mut seen = vec![watch.snapshot(Duration::ZERO)];
            while !over.load(Ordering::Relaxed) {
                seen.push(watch.snapshot(Duration::ZERO));
                std::thread::yield_now();
            }
            seen
        });
        begin.wait();
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

/// Runs a pipeline and reads its progress all the while. Returns the readings, the last of them after the run, and the
/// report.
fn progress_of(text: &str, options: RunOptions) -> (Vec<RunProgress>, Report) {
    let running = Pipeline::parse(text).options(options).build().expect(text).spawn().expect(text);
    let mut seen = Vec::new();
    while !running.is_over() {
        seen.push(running.progress());
        std::thread::yield_now();
    }
    seen.push(running.progress());
    (seen, running.wait().expect(text))
}

#[test]
fn a_run_that_reuses_its_memory_has_growing_hits_and_constant_misses() {
    let text = "pattern size=64x48 frames=2000 ! blur ! invert ! null";
    for (space, frames) in [(Space::Cpu, 2000), (Space::Gpu, 400)] {
        let text = text.replace("2000", &frames.to_string());
        let (seen, report) = progress_of(&text, RunOptions::new().only(space));
        let pool = |progress: &RunProgress| match space {
            Space::Cpu => progress.cpu_pool,
            Space::Gpu => progress.gpu_pool,
        };
        let half = seen.iter().find(|progress| progress.frames_out >= frames / 2).expect("the run reaches its middle");
        let (half, last) = (pool(half), pool(&seen[seen.len() - 1]));
        assert!(seen.is_sorted_by_key(|progress| pool(progress).hits), "on the {space}");
        assert!(seen.is_sorted_by_key(|progress| pool(progress).misses), "on the {space}");
        assert!(last.hits >= frames - last.misses, "every frame takes memory on the {space}: {last:?}");
        assert!(half.misses > 0 && half.misses == last.misses, "on the {space}: {half:?}, then {last:?}");
        assert_eq!(report.steady.heap_allocs, Some(0.0), "reading the progress makes no lane allocate");
        let unused = if space == Space::Cpu { seen[seen.len() - 1].gpu_pool } else { PoolProgress::default() };
        assert!(unused.is_unused(), "{unused:?}");
    }
}

#[test]
fn the_pools_of_the_progress_add_up_to_those_of_the_report() {
    for space in [Space::Cpu, Space::Gpu] {
        let text = "pattern size=64x48 frames=200 ! blur ! invert ! null";
        let (seen, report) = progress_of(text, RunOptions::new().only(space));
        let RunProgress { cpu_pool, gpu_pool, elapsed, .. } = seen[seen.len() - 1];
        assert_eq!(cpu_pool.hits + gpu_pool.hits, report.memory.hits, "on the {space}");
        assert_eq!(cpu_pool.misses + gpu_pool.misses, report.memory.misses, "on the {space}");
        assert_eq!(cpu_pool.pooled_bytes + gpu_pool.pooled_bytes, report.memory.pool_bytes, "on the {space}");
        for pool in seen.iter().flat_map(|progress| [progress.cpu_pool, progress.gpu_pool]) {
            assert_eq!(pool.bytes(), pool.pooled_bytes + pool.lent_bytes + pool.waiting_bytes);
            assert!(pool.pooled + pool.in_use() <= pool.misses, "every buffer was allocated once: {pool:?}");
        }
        assert_eq!((cpu_pool.lent, gpu_pool.lent), (0, 0), "all memory is returned");
        let rate = cpu_pool.hits as f64 / elapsed.as_secs_f64();
        assert!((cpu_pool.hits_per_second - rate).abs() <= 1e-6 * rate, "rates cover the whole run: {cpu_pool:?}");
    }
}

#[test]
fn a_lost_device_takes_no_hits_and_misses_from_the_counts() {
    let options = RunOptions::new().only(Space::Gpu).lose_device_at(&[200]);
    let (seen, report) = progress_of("pattern size=64x48 frames=300 ! blur ! null", options);
    assert_eq!(report.recoveries.len(), 1);
    assert!(seen.is_sorted_by_key(|progress| progress.gpu_pool.hits) && seen[seen.len() - 1].gpu_pool.hits >= 250);
    assert!(seen.is_sorted_by_key(|progress| progress.gpu_pool.misses));
}
