//! What the classic front promises: transfers, batches, a device by preference, operations by name, memory.

mod sides;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use sides::{both, device, on_device};
use vramp_gpu::{Adapter, Backend, Device, Known, Reading};
use vramp_tensor::classic::{
    ActiveDevice, ClassicError, Compute, DeviceManager, Devices, FlagError, Flags, GpuCompute, Measured, MemoryUsage,
    Monitor, PerformanceMonitor, Sink, Wish, adaptive_batch, available_bytes, run_adaptive,
};
use vramp_tensor::{Context, DType, ErrorKind, HostPoolRules, TensorError};

/// A sink, and what it was told.
fn heard() -> (Sink, impl Fn() -> Vec<String>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&lines);
    (Sink::to(move |line| told.lock().expect("no test panics here").push(line.to_owned())), move || {
        lines.lock().expect("no test panics here").clone()
    })
}

fn nothing() -> Sink {
    Sink::to(|_| ())
}

fn counts(context: &Context) -> (u64, u64, u64) {
    let memory = context.memory();
    (memory.tensors, memory.buffers, memory.bytes())
}

// ---- one of each

#[test]
fn a_process_has_one_of_each_and_another_only_after_cleanup() {
    let context = Context::on_host();
    let none = GpuCompute::get().unwrap_err();
    assert_eq!(none.to_string(), "there is no GpuCompute; make it with `GpuCompute::initialize`");
    let one = GpuCompute::initialize(Compute::on(&context)).unwrap();
    let second = GpuCompute::initialize(Compute::on(&context)).unwrap_err();
    assert_eq!(second, ClassicError::Exists { what: "GpuCompute" });
    assert!(second.to_string().contains("use `GpuCompute::get()`"), "{second}");
    let same = GpuCompute::get().unwrap();
    let tensor = same.transfer_to_gpu(&[1.0]).unwrap();
    assert!(one.context().memory().tensors == 1, "it is the same one");

    let devices = DeviceManager::initialize(Devices::of(&context)).unwrap();
    assert!(DeviceManager::initialize(Devices::new()).is_err());
    let monitor = PerformanceMonitor::initialize(Monitor::on(&context)).unwrap();
    assert!(PerformanceMonitor::initialize(Monitor::on(&context)).is_err());
    assert_eq!(DeviceManager::get().unwrap().active_device(), devices.active_device());

    one.cleanup();
    assert!(tensor.is_disposed() && counts(&context) == (0, 0, 0), "what it held is released");
    let words = "transfer_to_gpu: this compute was cleaned up; make another";
    assert_eq!(same.transfer_to_gpu(&[1.0]).unwrap_err().to_string(), words);
    let next = GpuCompute::initialize(Compute::on(&context)).unwrap();
    one.cleanup();
    assert!(GpuCompute::get().is_ok(), "an old one does not clean up the new one");
    next.cleanup();
    devices.cleanup();
    monitor.cleanup();
    assert!(GpuCompute::get().is_err() && DeviceManager::get().is_err() && PerformanceMonitor::get().is_err());
}

// ---- transfers and batches

#[test]
fn values_go_up_and_come_back_bit_by_bit_and_outlive_scopes() {
    for (side, context) in both() {
        let compute = Compute::on(&context);
        let values: Vec<f32> = (0..1000_u32).map(|i| f32::from_bits(i.wrapping_mul(0x9e37_79b9))).collect();
        let mut held = None;
        let done = context.scope(|_| {
            context.scope(|_| {
                let tensor = compute.transfer_to_gpu(&values)?;
                // Not returned, and not kept: only held.
                held = Some(tensor);
                Ok::<(), TensorError>(())
            })
        });
        done.unwrap();
        let tensor = held.unwrap();
        assert_eq!(tensor.shape().lengths(), [1000], "{side}");
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&compute.transfer_from_gpu(&tensor).unwrap()), bits(&values), "{side}: NaNs too");
        assert_eq!(tensor.location().device, side == "device");
        let empty = compute.transfer_to_gpu(&[]).unwrap();
        assert!(compute.transfer_from_gpu(&empty).unwrap().is_empty(), "{side}");
        drop((tensor, empty));
        assert_eq!(counts(&context), (0, 0, 0), "{side}");
    }
}

#[test]
fn a_transfer_takes_less_than_a_tenth_more_than_its_values() {
    for (side, context) in both() {
        let compute = Compute::on(&context);
        let values = vec![1.0_f32; 250_000];
        let tensor = compute.transfer_to_gpu(&values).unwrap();
        let usage = MemoryUsage::of(&context);
        assert_eq!((usage.num_tensors, usage.num_bytes, usage.buffers), (1, 1_000_000, 1), "{side}");
        assert!(usage.in_use_bytes < 1_100_000, "{side}: {usage}");
        assert_eq!(usage.unreliable, None, "{side}");
        compute.dispose(&tensor);
        compute.dispose(&tensor);
        context.finish().unwrap();
        let usage = MemoryUsage::of(&context);
        assert_eq!((usage.num_tensors, usage.num_bytes, usage.in_use_bytes), (0, 0, 0), "{side}: {usage}");
        assert!(usage.pooled_bytes >= 1_000_000, "{side}: it lies free: {usage}");
        assert!(usage.peak_bytes >= 1_000_000, "{side}");
        compute.release();
        assert_eq!(MemoryUsage::of(&context).pooled_bytes, 0, "{side}: until all is released");
    }
}

#[test]
fn a_batch_has_the_mean_of_squares_of_each_in_order_in_one_read() {
    for (side, context) in both() {
        let compute = Compute::on(&context);
        let tensors: Vec<_> = (0..7_u8)
            .map(|i| compute.transfer_to_gpu(&vec![f32::from(i); 1 + 1000 * usize::from(i)]).unwrap())
            .collect();
        let before = (counts(&context), context.transfers().host_reads);
        let means = compute.compute_batch(&tensors).unwrap();
        assert_eq!(means, [0.0, 1.0, 4.0, 9.0, 16.0, 25.0, 36.0], "{side}");
        assert_eq!(counts(&context), before.0, "{side}: what was between is freed");
        assert_eq!(context.transfers().host_reads, before.1 + 1, "{side}");
        assert_eq!(compute.compute_batch(&[]).unwrap(), [0.0_f32; 0], "{side}");
        assert_eq!(context.transfers().host_reads, before.1 + 1, "{side}: nothing to read");
        let empty = compute.transfer_to_gpu(&[]).unwrap();
        let others = [
            context.tensor(&[3_i32, 4], &[2]).unwrap(),
            context.tensor(&[1_u8, 7], &[1, 2]).unwrap(),
            empty,
            context.scalar(2.0_f32).unwrap(),
        ];
        let means = compute.compute_batch(&others).unwrap();
        assert_eq!((means[0], means[1], means[3]), (12.5, 25.0, 4.0), "{side}: of any type and shape");
        assert!(means[2].is_nan(), "{side}: of none");
    }
}

#[test]
fn chunks_change_no_bit_of_a_batch() {
    for (side, context) in both() {
        let compute = Compute::on(&context);
        let tensors: Vec<_> = (0..230_usize)
            .map(|i| {
                let values: Vec<f32> = (0..=i * 7 % 60).map(|at| (at as f32 * 0.37 + i as f32).sin()).collect();
                compute.transfer_to_gpu(&values).unwrap()
            })
            .collect();
        let bits = |means: Vec<f32>| means.into_iter().map(f32::to_bits).collect::<Vec<_>>();
        let usual = bits(compute.compute_batch(&tensors).unwrap());
        assert_eq!(usual.len(), 230, "{side}");
        for chunk in [0, 1, 7, 1000] {
            let other = Compute::on(&context).with_chunk(chunk);
            assert_eq!(bits(other.compute_batch(&tensors).unwrap()), usual, "{side}: {chunk}");
        }
        drop(tensors);
        assert_eq!(counts(&context), (0, 0, 0), "{side}");
    }
}

#[test]
fn after_a_failed_batch_the_next_one_works_and_nothing_is_left() {
    for (side, context) in both() {
        let compute = Compute::on(&context).with_chunk(1).with_sink(nothing());
        let good = compute.transfer_to_gpu(&[1.0, 3.0]).unwrap();
        let gone = compute.transfer_to_gpu(&[1.0]).unwrap();
        compute.dispose(&gone);
        let before = counts(&context);
        let error = compute.compute_batch(&[good.clone(), gone.clone()]).unwrap_err();
        assert!(matches!(error, TensorError::Disposed { op: "compute_batch", .. }), "{side}: {error}");
        let foreign = Context::on_host().tensor(&[1.0_f32], &[1]).unwrap();
        let error = compute.compute_batch(&[good.clone(), foreign]).unwrap_err();
        assert_eq!(error, TensorError::Foreign { op: "compute_batch" }, "{side}");
        let a = context.zeros(&[2, 3], DType::F32).unwrap();
        assert_eq!(a.matmul(&a).unwrap_err().kind(), ErrorKind::DimensionMismatch, "{side}");
        drop(a);
        assert_eq!(counts(&context), before, "{side}");
        assert_eq!(compute.compute_batch(&[good]).unwrap(), [5.0], "{side}");
    }
}

#[test]
fn five_threads_compute_at_once_and_each_gets_its_own() {
    for (side, context) in both() {
        let compute = Compute::on(&context);
        std::thread::scope(|threads| {
            for job in 0..5_u8 {
                let compute = &compute;
                threads.spawn(move || {
                    let own: Vec<_> =
                        (0..10_u8).map(|i| compute.transfer_to_gpu(&[f32::from(job), f32::from(i)]).unwrap()).collect();
                    let means = compute.compute_batch(&own).unwrap();
                    let expected = (0..10_u8).map(|i| f32::midpoint(f32::from(job).powi(2), f32::from(i).powi(2)));
                    assert!(means.into_iter().eq(expected), "{side}: {job}");
                });
            }
        });
        assert_eq!(counts(&context), (0, 0, 0), "{side}");
    }
}

#[test]
fn too_little_memory_is_told_and_returned_with_the_numbers_and_work_goes_on() {
    let device = Device::choose().budget_bytes(1 << 20).open().unwrap();
    let rules = HostPoolRules { budget_bytes: 1 << 20, ..HostPoolRules::default() };
    let contexts = [Context::on(&device).unwrap(), Context::builder().host_pool(rules).on_host()];
    for (place, context) in ["device", "host"].into_iter().zip(contexts) {
        let (sink, lines) = heard();
        let compute = Compute::on(&context).with_sink(sink);
        let error = compute.transfer_to_gpu(&vec![1.0; 300_000]).unwrap_err();
        let TensorError::OutOfMemory { required_bytes, available_bytes, place: told, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(told, place);
        assert!(required_bytes >= 1_200_000 && available_bytes <= 1 << 20, "{required_bytes} {available_bytes}");
        let lines = lines();
        assert_eq!(lines.len(), 1);
        assert!(lines[0].starts_with("transfer_to_gpu failed: 300000 values, 1200000 bytes, "), "{lines:?}");
        assert!(lines[0].ends_with(&error.to_string()), "{lines:?}");
        assert_eq!(counts(&context), (0, 0, 0), "{place}: nothing is left");
        let next = compute.transfer_to_gpu(&[2.0; 1000]).unwrap();
        assert_eq!(compute.compute_batch(&[next]).unwrap(), [4.0], "{place}");
    }
}

#[test]
fn a_failed_read_is_told_with_what_was_read() {
    let (sink, lines) = heard();
    let context = Context::on_host();
    let compute = Compute::on(&context).with_sink(sink);
    let tensor = compute.transfer_to_gpu(&[1.0, 2.0]).unwrap();
    compute.dispose(&tensor);
    assert!(compute.transfer_from_gpu(&tensor).is_err());
    let line = "transfer_from_gpu failed: 2 values, 8 bytes, the host: read: the tensor [2] of f32 was disposed of; keep it \
                (`Scope::keep`), or make it again";
    assert_eq!(lines(), [line]);
}

// ---- devices

fn gpu() -> Wish {
    Wish { prefer_gpu: true, ..Wish::default() }
}

/// A choice whose adapters all have this memory and load.
fn reads(memory_bytes: Known<u64>, load_percent: Known<f32>) -> vramp_gpu::Choice {
    Device::choose().readings(move |_: &Adapter| Reading {
        memory_bytes: memory_bytes.clone(),
        used_bytes: Known::unavailable("not asked"),
        load_percent: load_percent.clone(),
    })
}

#[test]
fn the_cpu_is_selected_unless_a_gpu_is_preferred_and_flags_go_with_it() {
    let devices = Devices::new().with_sink(nothing());
    let selected = devices.select_device(&Wish::default()).unwrap();
    assert_eq!((selected.device, selected.warnings.len()), (ActiveDevice::Cpu, 0));
    assert_eq!(devices.current_flags(), Flags { cpu_forward: true, pack: false });
    let name = device().adapter().name.clone();
    let selected = devices.select_device(&gpu()).unwrap();
    assert_eq!(selected.device, ActiveDevice::Gpu(name.clone()));
    assert_eq!(devices.active_device().to_string(), name);
    assert!(!selected.why.is_empty());
    assert_eq!((devices.flag("cpu_forward"), devices.flag("pack")), (Ok(false), Ok(true)));
    let tensor = devices.context().zeros(&[4], DType::F32).unwrap();
    assert!(tensor.location().device, "ops run there");
    devices.select_device(&gpu()).unwrap();
    assert!(tensor.location().device && !tensor.location().host, "what is there already is not moved");
}

#[test]
fn a_software_gpu_is_called_what_it_is() {
    let (sink, lines) = heard();
    let devices = Devices::new().with_sink(sink);
    let selected = devices.select_device(&gpu()).unwrap();
    let is_software = device().adapter().kind == vramp_gpu::AdapterKind::Software;
    let says = |lines: &[String]| lines.iter().any(|line| line.contains("is software: the CPU"));
    assert_eq!((says(&selected.warnings), says(&lines())), (is_software, is_software), "{selected:?}");
}

#[test]
fn memory_and_load_are_enforced_and_unmet_wishes_fall_back_with_a_warning() {
    let known = |bytes: u64, percent: f32| reads(Known::is(bytes, "a test"), Known::is(percent, "a test"));
    let unknown = || reads(Known::unavailable("no such file"), Known::unavailable("no such counter"));
    let memory = Wish { min_memory_bytes: Some(2_000_000_000), ..gpu() };
    let load = Wish { max_load_percent: Some(50.0), ..gpu() };
    let cases = [
        (known(4_000_000_000, 10.0), memory, ""),
        (known(4_000_000_000, 10.0), load, ""),
        (known(1_000_000_000, 10.0), memory, "has 1.0 GB, 2.0 GB were asked for"),
        (known(4_000_000_000, 90.0), load, "is 90 % busy, 50 % at most were asked for"),
        (unknown(), memory, "its memory is unknown: no such file"),
        (unknown(), load, "its load is unknown: no such counter"),
        (Device::choose(), load, "its load is unknown: nobody was given who could read it"),
    ];
    for (choice, wish, problem) in cases {
        let (sink, lines) = heard();
        let devices = Devices::new().with_choice(choice).with_sink(sink);
        let selected = devices.select_device(&wish).unwrap();
        assert_eq!(selected.device, devices.active_device());
        if problem.is_empty() {
            assert!(matches!(selected.device, ActiveDevice::Gpu(_)), "{selected:?}");
            continue;
        }
        assert_eq!(selected.device, ActiveDevice::Cpu, "{problem}");
        assert!(selected.warnings[0].starts_with("no GPU is selected: "), "{selected:?}");
        assert!(selected.warnings[0].contains(problem), "{selected:?}");
        assert_eq!(lines(), [format!("select_device: {}", selected.warnings[0])]);
        assert_eq!(devices.current_flags(), Flags { cpu_forward: true, pack: false }, "no flags of a GPU");
        assert!(devices.context().device().is_none(), "ops run on the host");
    }
}

#[test]
fn without_a_gpu_there_is_a_warning_and_the_truth() {
    let devices = Devices::new().with_sink(nothing()).with_choice(Device::choose().named("no such adapter"));
    let selected = devices.select_device(&gpu()).unwrap();
    assert_eq!((&selected.device, selected.warnings.len()), (&ActiveDevice::Cpu, 1), "{selected:?}");
    assert!(selected.warnings[0].contains("no adapter is called `no such adapter`"), "{selected:?}");
    assert_eq!(devices.active_device(), ActiveDevice::Cpu);
    let devices = Devices::new().with_sink(nothing()).with_choice(Device::choose().backend(Backend::Metal));
    let selected = devices.select_device(&gpu()).unwrap();
    assert!(cfg!(target_vendor = "apple") || selected.device == ActiveDevice::Cpu, "{selected:?}");
}

#[test]
fn a_wish_that_means_nothing_is_refused_and_changes_nothing() {
    let devices = Devices::of(&on_device()).with_sink(nothing());
    let before = (devices.active_device(), devices.current_flags());
    for percent in [f32::NAN, -1.0, 101.0] {
        let wish = Wish { max_load_percent: Some(percent), ..gpu() };
        let error = devices.select_device(&wish).unwrap_err();
        assert!(error.to_string().contains("it is from 0 to 100"), "{error}");
    }
    assert_eq!((devices.active_device(), devices.current_flags()), before);
}

#[test]
fn flags_are_set_by_name_all_or_none() {
    let devices = Devices::new().with_sink(nothing());
    devices.set_flags(&[("pack", "true"), ("cpu_forward", "false")]).unwrap();
    assert_eq!((devices.flag("pack"), devices.flag("cpu_forward")), (Ok(true), Ok(false)));
    let wrong = devices.set_flags(&[("pack", "false"), ("cpu_forward", "yes")]).unwrap_err();
    assert_eq!(wrong.to_string(), "`cpu_forward` is to be `yes`; a flag is `true` or `false`");
    let unknown = devices.set_flags(&[("pack", "false"), ("packed", "true")]).unwrap_err();
    assert_eq!(unknown, FlagError::Unknown { name: "packed".to_owned() });
    assert!(devices.flag("Pack").is_err());
    assert_eq!(devices.current_flags(), Flags { cpu_forward: false, pack: true }, "nothing was set");
}

#[test]
fn devices_are_switched_in_the_middle_of_work_there_and_back() {
    let devices = Devices::new().with_sink(nothing());
    let compute = Compute::on(devices.context());
    let tensors: Vec<_> = (1..=3_u8).map(|i| compute.transfer_to_gpu(&[f32::from(i); 100]).unwrap()).collect();
    let device = device();
    for to in [Some(&device), None, Some(&device)] {
        let moved = devices.switch(to).unwrap();
        assert_eq!((moved.kept, moved.gone), (3, 0));
        assert_eq!(matches!(devices.active_device(), ActiveDevice::Gpu(_)), to.is_some());
        assert_eq!(devices.flag("cpu_forward").unwrap(), to.is_none());
        assert_eq!(compute.compute_batch(&tensors).unwrap(), [1.0, 4.0, 9.0]);
        assert_eq!(compute.transfer_from_gpu(&tensors[2]).unwrap(), [3.0; 100]);
    }
    devices.release();
    assert_eq!(devices.active_device(), ActiveDevice::Cpu);
    assert_eq!(devices.memory_usage().pooled_bytes, 0);
    assert_eq!(compute.compute_batch(&tensors).unwrap(), [1.0, 4.0, 9.0], "tensors keep their values");
}

#[test]
fn when_the_device_is_lost_that_is_said_and_what_the_host_has_goes_on() {
    let (sink, lines) = heard();
    let devices = Devices::of(&on_device()).with_sink(sink);
    let careful = Compute::on(devices.context()).with_host_copies(true).with_sink(nothing());
    let usual = Compute::on(devices.context()).with_sink(nothing());
    let (kept, gone) = (careful.transfer_to_gpu(&[1.0, 2.0]).unwrap(), usual.transfer_to_gpu(&[3.0]).unwrap());
    devices.context().device().unwrap().destroy();
    assert!(usual.compute_batch(std::slice::from_ref(&kept)).is_err());
    assert!(matches!(devices.active_device(), ActiveDevice::Lost { .. }), "{}", devices.active_device());
    assert!(devices.memory_usage().unreliable.is_some_and(|why| why.contains("lost")));
    let selected = devices.select_device(&gpu()).unwrap();
    assert!(matches!(selected.device, ActiveDevice::Gpu(_)), "{selected:?}");
    let warning = "the values of 1 memories were on the lost device alone, and are gone";
    assert_eq!(selected.warnings[0], warning);
    assert!(lines().contains(&format!("select_device: {warning}")));
    assert_eq!(usual.compute_batch(&[kept]).unwrap(), [2.5]);
    assert!(matches!(usual.transfer_from_gpu(&gone), Err(TensorError::Gone { .. })));
    assert_eq!(devices.memory_usage().unreliable, None);
}

#[test]
fn memory_that_others_hold_on_the_device_makes_the_numbers_doubtful() {
    let context = on_device();
    let devices = Devices::of(&context);
    assert_eq!(devices.memory_usage().unreliable, None);
    let other = context.device().unwrap().lend(1000, &"blur".into()).unwrap();
    let why = devices.memory_usage().unreliable.unwrap();
    assert_eq!(why, "1024 of the bytes in use on the device are held by blur");
    assert!(devices.memory_usage().to_string().ends_with(&format!("; unreliable: {why}")));
    drop(other);
    assert_eq!(devices.memory_usage().unreliable, None);
}

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
    // A kernel that is new is tried out first.
    drop(x.exp().unwrap());
    context.finish().unwrap();
    let before = submits();
    let (_, _) = monitor.track_operation("exp", || x.exp());
    assert_eq!(submits(), before, "only written down");
    let (answer, _) = monitor.track_until_done("exp", || x.exp());
    assert!(answer.is_ok());
    assert_eq!(submits(), before + 2, "what was written down before, and then its own work");
    let [asked, done] =
        [Measured::UntilReturned, Measured::UntilDone].map(|how| monitor.statistics("exp", how).unwrap());
    assert_eq!(asked.unreliable.as_deref(), Some("the device may still work when the call returns"));
    assert_eq!(done.unreliable, None, "two kinds of times are not mixed");
    assert!(done.to_string().starts_with("exp: 1 times, 0 failed; ms until the device was done: min "), "{done}");
    context.device().unwrap().destroy();
    let (answer, _) = monitor.track_until_done("exp", || x.exp());
    assert!(answer.is_err());
    let done = monitor.statistics("exp", Measured::UntilDone).unwrap();
    assert!(done.unreliable.unwrap().starts_with("the device could not be waited for: "));
}

#[test]
fn the_load_of_a_device_is_a_reading_or_a_reason() {
    let context = on_device();
    let read = |load: Known<f32>| {
        Monitor::on(&context).with_readings(move |adapter: &Adapter| {
            assert!(!adapter.name.is_empty());
            Reading { load_percent: load.clone(), ..Reading::unavailable("not asked") }
        })
    };
    assert_eq!(read(Known::is(42.0, "a file")).gpu_utilization(), Known::is(42.0, "a file"));
    assert_eq!(read(Known::is(0.0, "a file")).gpu_utilization().value(), Some(0.0), "a 0 that was read");
    let unknown = read(Known::unavailable("no such file")).gpu_utilization();
    assert_eq!(unknown, Known::unavailable("no such file"));
    assert_eq!(read(Known::is(153.0, "a file")).gpu_utilization().why(), Some("a file says 153 %"));
    assert_eq!(read(Known::is(f32::NAN, "a file")).gpu_utilization().value(), None);
    let nobody = Monitor::on(&context).gpu_utilization();
    assert_eq!(nobody.why(), Some("nobody was given who could read it (`Monitor::with_readings`)"));
    let host = Monitor::on(&Context::on_host()).gpu_utilization();
    assert_eq!(host.why(), Some("no GPU is selected: tensors are on the host"));
}

#[test]
fn metrics_are_one_line_sorted_and_say_what_is_unreliable() {
    let (sink, lines) = heard();
    let monitor = Monitor::on(&Context::on_host()).with_sink(sink);
    monitor.log_metrics(&BTreeMap::from([("fps".to_owned(), 59.5), ("bad".to_owned(), f64::NAN)]));
    monitor.log_metrics([("load", monitor.gpu_utilization())]);
    let doubtful = Known::Is { value: 7_u64, from: "a file".to_owned(), doubt: Some("it is old".to_owned()) };
    monitor.log_metrics([("b", doubtful), ("a", Known::is(8, "a file"))]);
    monitor.log_metrics(BTreeMap::<&str, f64>::new());
    let expected = [
        "metrics: bad=unavailable (NaN is no number), fps=59.5",
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
    assert!(lines[2].starts_with("device load in percent: unavailable (nobody was given"), "{report}");
    assert!(lines[3].starts_with("nothing: 1 times"), "{report}");
}

// ---- as much at once as there is memory for

#[test]
fn a_batch_is_as_large_as_memory_allows_and_at_least_one() {
    let has = |bytes: u64| Known::is(bytes, "a test");
    let sizes = [(1000, has(20_000)), (1000, has(1999)), (0, has(20_000)), (1, has(u64::MAX)), (u64::MAX, has(5))];
    assert_eq!(sizes.map(|(item, available)| adaptive_batch(item, &available)), [10, 1, 10_000, 10_000, 1]);
    assert_eq!(adaptive_batch(1000, &Known::unavailable("nobody knows")), 100);
}

#[test]
fn available_memory_is_what_is_left_of_the_budget_and_no_more_than_is_free() {
    let device = Device::choose().budget_bytes(1 << 20).open().unwrap();
    let context = Context::on(&device).unwrap();
    assert_eq!(available_bytes(&context, None).value(), Some(1 << 20));
    let held = context.zeros(&[64 << 10], DType::F32).unwrap();
    context.finish().unwrap();
    assert_eq!(available_bytes(&context, None).value(), Some((1 << 20) - (256 << 10)));
    let reading = |has: Known<u64>| Reading {
        memory_bytes: has,
        used_bytes: Known::is(1000, "a file"),
        load_percent: Known::unavailable("not asked"),
    };
    let little = available_bytes(&context, Some(&reading(Known::is(51_000, "a file"))));
    assert_eq!(little, Known::is(50_000, "a file"));
    let plenty = available_bytes(&context, Some(&reading(Known::is(1 << 40, "a file"))));
    assert_eq!(plenty.value(), Some((1 << 20) - (256 << 10)));
    let unknown = available_bytes(&context, Some(&reading(Known::unavailable("no such file"))));
    assert_eq!(unknown.value(), plenty.value());
    assert_eq!(unknown.why(), Some("what is free on the device is unknown: no such file"));
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
    assert_eq!(few, "run_adaptive: the work gave 1 results for 2 items; it has to give as many");
    assert!(run_adaptive(&[], 0, |_: &[u8]| Ok(vec![1])).unwrap().results.is_empty());
}

// ---- memory that is used again

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
