//! The classic API: timing of operations, metrics, memory, and batches that fit the memory.

use std::collections::{BTreeMap, BTreeSet};

use crate::classic_parts::{counts, heard, nothing};
use crate::sides::{both, on_device};
use vramp_gpu::{Adapter, AdapterReading, Device, Readout};
use vramp_tensor::classic::{Compute, Measured, Monitor, adaptive_batch, available_bytes, run_adaptive};
use vramp_tensor::{Context, DType, HostPoolRules, TensorError};

// ---- the monitor

#[test]
fn operations_are_recorded_also_when_they_fail_or_panic() {
    for (side, context) in both() {
        let monitor = Monitor::on(&context);
        let (answer, ms) = monitor.track_operation("add", || Ok::<_, TensorError>(1));
        assert!(answer == Ok(1) && ms >= 0.0, "{side}");
        let (answer, ms) = monitor.track_operation("add", || context.tensor(&[1.0_f32], &[2]));
        assert!(matches!(answer, Err(TensorError::WrongCount { .. })) && ms >= 0.0, "{side}: passed on");
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            monitor.track_operation("add", || -> Result<(), ()> { panic!("on purpose") })
        }));
        assert!(panicked.is_err());
        let add = monitor.statistics("add", Measured::UntilReturned).unwrap();
        assert_eq!((add.count, add.failures), (3, 2), "{side}");
        assert!(add.min_ms <= add.p50_ms && add.p50_ms <= add.p95_ms && add.p95_ms <= add.max_ms, "{side}: {add}");
        assert!(add.min_ms <= add.mean_ms && add.mean_ms <= add.max_ms, "{side}: {add}");
        assert_eq!(monitor.statistics("sub", Measured::UntilReturned), None, "{side}");
        assert_eq!(monitor.all_statistics(), [add], "{side}");
        monitor.release();
        assert!(monitor.all_statistics().is_empty(), "{side}");
    }
}

#[test]
fn a_time_says_whether_the_device_was_waited_for() {
    let context = on_device();
    let monitor = Monitor::on(&context);
    let x = context.zeros(&[1 << 16], DType::F32).unwrap();
    let submits = || context.device().unwrap().counters().submits;
    // A new kernel is tried out first.
    drop(x.exp().unwrap());
    context.finish().unwrap();
    let before = submits();
    let (_, _) = monitor.track_operation("exp", || x.exp());
    assert_eq!(submits(), before, "only recorded");
    let (answer, _) = monitor.track_until_done("exp", || x.exp());
    assert!(answer.is_ok());
    assert_eq!(submits(), before + 2, "the work recorded before, and then its own");
    let [returned, done] =
        [Measured::UntilReturned, Measured::UntilDone].map(|how| monitor.statistics("exp", how).unwrap());
    assert_eq!(returned.unreliable.as_deref(), Some("the device may still work when the call returns"));
    assert_eq!(done.unreliable, None, "two kinds of times are not mixed");
    assert!(done.to_string().starts_with("exp: 1 times, 0 failed; ms until the device was done: min "), "{done}");
    context.device().unwrap().destroy();
    let (answer, _) = monitor.track_until_done("exp", || x.exp());
    assert!(answer.is_err());
    let done = monitor.statistics("exp", Measured::UntilDone).unwrap();
    assert!(done.unreliable.unwrap().starts_with("waiting for the device failed: "));
}

#[test]
fn the_load_of_a_device_is_a_reading_or_a_reason() {
    let context = on_device();
    let read = |load: Readout<f32>| {
        Monitor::on(&context).with_readings(move |adapter: &Adapter| {
            assert!(!adapter.name.is_empty());
            AdapterReading { load_percent: load.clone(), ..AdapterReading::unavailable("not read") }
        })
    };
    assert_eq!(read(Readout::is(42.0, "a file")).gpu_utilization(), Readout::is(42.0, "a file"));
    assert_eq!(read(Readout::is(0.0, "a file")).gpu_utilization().value(), Some(0.0), "a 0 that was read");
    let unknown = read(Readout::unavailable("no such file")).gpu_utilization();
    assert_eq!(unknown, Readout::unavailable("no such file"));
    assert_eq!(
        read(Readout::is(153.0, "a file")).gpu_utilization().why(),
        Some("a file reports 153 %, outside 0 to 100")
    );
    assert_eq!(read(Readout::is(f32::NAN, "a file")).gpu_utilization().value(), None);
    let unset = Monitor::on(&context).gpu_utilization();
    assert_eq!(unset.why(), Some("no source of readings is set (`Monitor::with_readings`)"));
    let host = Monitor::on(&Context::on_host()).gpu_utilization();
    assert_eq!(host.why(), Some("no GPU is selected: tensors are on the host"));
}

#[test]
fn metrics_are_one_line_sorted_and_say_what_is_unreliable() {
    let (sink, lines) = heard();
    let monitor = Monitor::on(&Context::on_host()).with_sink(sink);
    monitor.log_metrics(&BTreeMap::from([("fps".to_owned(), 59.5), ("bad".to_owned(), f64::NAN)]));
    monitor.log_metrics([("load", monitor.gpu_utilization())]);
    let doubtful = Readout::Is { value: 7_u64, from: "a file".to_owned(), doubt: Some("it is old".to_owned()) };
    monitor.log_metrics([("b", doubtful), ("a", Readout::is(8, "a file"))]);
    monitor.log_metrics(BTreeMap::<&str, f64>::new());
    let expected = [
        "metrics: bad=unavailable (NaN is not finite), fps=59.5",
        "metrics: load=unavailable (no GPU is selected: tensors are on the host)",
        "metrics: a=8, b=7 (unreliable: it is old)",
        "metrics: none",
    ];
    assert_eq!(lines(), expected);
}

#[test]
fn a_report_has_memory_load_and_operations_with_their_reasons() {
    let context = on_device();
    let monitor = Monitor::on(&context);
    let _kept = context.zeros(&[25], DType::F32).unwrap();
    let _ = monitor.track_until_done("nothing", || Ok::<_, ()>(()));
    let report = monitor.report();
    let lines: Vec<_> = report.lines().collect();
    assert!(lines[0].starts_with("memory: 1 tensors of 100 bytes in 1 buffers; 256 bytes in use, "), "{report}");
    assert!(lines[1].starts_with("available bytes: "), "{report}");
    assert!(lines[2].starts_with("device load in percent: unavailable (no source of readings"), "{report}");
    assert!(lines[3].starts_with("nothing: 1 times"), "{report}");
}

// ---- batches that fit the memory

#[test]
fn a_batch_is_as_large_as_memory_allows_and_at_least_one() {
    let has = |bytes: u64| Readout::is(bytes, "a test");
    let sizes = [(1000, has(20_000)), (1000, has(1999)), (0, has(20_000)), (1, has(u64::MAX)), (u64::MAX, has(5))];
    assert_eq!(sizes.map(|(item, available)| adaptive_batch(item, &available)), [10, 1, 10_000, 10_000, 1]);
    assert_eq!(adaptive_batch(1000, &Readout::unavailable("not known")), 100);
}

#[test]
fn available_memory_is_what_is_left_of_the_budget_and_no_more_than_is_free() {
    let device = Device::choose().budget_bytes(1 << 20).open().unwrap();
    let context = Context::on(&device).unwrap();
    assert_eq!(available_bytes(&context, None).value(), Some(1 << 20));
    let held = context.zeros(&[64 << 10], DType::F32).unwrap();
    context.finish().unwrap();
    assert_eq!(available_bytes(&context, None).value(), Some((1 << 20) - (256 << 10)));
    let reading = |has: Readout<u64>| AdapterReading {
        memory_bytes: has,
        used_bytes: Readout::is(1000, "a file"),
        load_percent: Readout::unavailable("not read"),
    };
    let little = available_bytes(&context, Some(&reading(Readout::is(51_000, "a file"))));
    assert_eq!(little, Readout::is(50_000, "a file"));
    let plenty = available_bytes(&context, Some(&reading(Readout::is(1 << 40, "a file"))));
    assert_eq!(plenty.value(), Some((1 << 20) - (256 << 10)));
    let unknown = available_bytes(&context, Some(&reading(Readout::unavailable("no such file"))));
    assert_eq!(unknown.value(), plenty.value());
    assert_eq!(unknown.why(), Some("the free memory of the device is unknown: no such file"));
    drop(held);
    let rules = HostPoolRules { budget_bytes: 1 << 20, ..HostPoolRules::default() };
    assert_eq!(available_bytes(&Context::builder().host_pool(rules).on_host(), None).value(), Some(1 << 20));
    assert_eq!(available_bytes(&Context::on_host(), None).value(), None);
}

#[test]
fn too_large_chunks_are_halved_until_they_fit_and_every_item_is_done_once() {
    let device = Device::choose().budget_bytes(1 << 20).open().unwrap();
    let rules = HostPoolRules { budget_bytes: 1 << 20, ..HostPoolRules::default() };
    for context in [Context::on(&device).unwrap(), Context::builder().host_pool(rules).on_host()] {
        let compute = Compute::on(&context).with_sink(nothing());
        let items: Vec<u16> = (0..40).collect();
        // 40 times 64 KB do not fit into 1 MiB.
        let all_at_once = |chunk: &[u16]| {
            let up: Result<Vec<_>, _> =
                chunk.iter().map(|item| compute.transfer_to_gpu(&vec![f32::from(*item); 16_000])).collect();
            compute.compute_batch(&up?)
        };
        let adapted = run_adaptive(&items, 40, all_at_once).unwrap();
        let expected: Vec<f32> = items.iter().map(|item| f32::from(*item).powi(2)).collect();
        assert_eq!(adapted.results, expected);
        assert!(adapted.halved >= 2 && adapted.chunk <= 10, "{} {}", adapted.halved, adapted.chunk);
        assert_eq!(counts(&context), (0, 0, 0));
        let planned = compute.run_adaptive(&items, 64_000, all_at_once).unwrap();
        assert_eq!((planned.results, planned.halved), (expected, 0), "by what is available nothing has to be halved");
    }
}

#[test]
fn chunks_are_halved_when_any_kind_of_memory_is_too_small() {
    let way_up = |chunk: &[u8]| match chunk.len() {
        0..=2 => Ok(chunk.to_vec()),
        _ => Err(TensorError::NoTransferMemory { op: "test" }),
    };
    let adapted = run_adaptive(&[1_u8, 2, 3, 4, 5], 5, way_up).unwrap();
    assert_eq!((adapted.results, adapted.chunk, adapted.halved), (vec![1, 2, 3, 4, 5], 2, 1));
}

#[test]
fn what_does_not_fit_alone_and_any_other_error_is_returned() {
    let out = TensorError::OutOfMemory { op: "test", required_bytes: 2, available_bytes: 1, place: "host" };
    let mut tried = Vec::new();
    let error = run_adaptive(&[1, 2, 3, 4, 5], 5, |chunk| {
        tried.push(chunk.len());
        Err::<Vec<()>, _>(out.clone())
    });
    assert_eq!((error, tried), (Err(out), vec![5, 2, 1]));
    let other = TensorError::NoDevice { op: "test" };
    let mut calls = 0;
    let error = run_adaptive(&[1, 2], 2, |_| {
        calls += 1;
        Err::<Vec<()>, _>(other.clone())
    });
    assert_eq!((error, calls), (Err(other), 1));
    let few = run_adaptive(&[1, 2], 2, |_| Ok(vec![1])).unwrap_err().to_string();
    assert_eq!(few, "run_adaptive: the work returned 1 results for 2 items; return one per item");
    assert!(run_adaptive(&[], 0, |_: &[u8]| Ok(vec![1])).unwrap().results.is_empty());
}

// ---- reuse of memory

#[test]
fn memory_of_one_tensor_serves_the_next_and_zeros_are_zeros_whatever_the_shape_and_type() {
    let context = Context::on_host();
    let mut seen = BTreeSet::new();
    for round in 0..5 {
        let used = context.tensor(&[7.0_f32; 64], &[8, 8]).unwrap();
        seen.insert(used.memory_id());
        drop(used);
        let zeros = context.zeros(&[16, 16], DType::U8).unwrap();
        assert_eq!(zeros.read::<u8>().unwrap(), [0; 256], "{round}");
    }
    let pool = context.host_pool();
    assert_eq!((pool.misses, pool.hits), (1, 9), "one block was made, and used ten times");
    assert_eq!(seen.len(), 5, "a memory's number is never used again");
}
