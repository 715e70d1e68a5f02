//! The classic API: one instance per process, transfers, and batches.

use crate::classic_parts::{counts, heard, nothing};
use crate::sides::both;
use vramp_gpu::Device;
use vramp_tensor::classic::{
    ClassicError, Compute, DeviceManager, DeviceSelector, GpuCompute, MemoryUsage, Monitor, PerformanceMonitor,
};
use vramp_tensor::{Context, DType, ErrorKind, HostPoolRules, TensorError};

// ---- one of each

#[test]
fn a_process_has_one_of_each_and_another_only_after_cleanup() {
    let context = Context::on_host();
    let none = GpuCompute::get().unwrap_err();
    assert_eq!(none.to_string(), "there is no GpuCompute in this process; create it with `GpuCompute::initialize`");
    let one = GpuCompute::initialize(Compute::on(&context)).unwrap();
    let second = GpuCompute::initialize(Compute::on(&context)).unwrap_err();
    assert_eq!(second, ClassicError::Exists { what: "GpuCompute" });
    assert!(second.to_string().contains("use `GpuCompute::get()`"), "{second}");
    let same = GpuCompute::get().unwrap();
    let tensor = same.transfer_to_gpu(&[1.0]).unwrap();
    assert!(one.context().memory().tensors == 1, "it is the same one");

    let devices = DeviceManager::initialize(DeviceSelector::of(&context)).unwrap();
    assert!(DeviceManager::initialize(DeviceSelector::new()).is_err());
    let monitor = PerformanceMonitor::initialize(Monitor::on(&context)).unwrap();
    assert!(PerformanceMonitor::initialize(Monitor::on(&context)).is_err());
    assert_eq!(DeviceManager::get().unwrap().active_device(), devices.active_device());

    one.cleanup();
    assert!(tensor.is_disposed() && counts(&context) == (0, 0, 0), "what it held is released");
    let words = "transfer_to_gpu: this compute was cleaned up; create another";
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
                // Neither returned nor kept by the scope, only held.
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
        assert!(usage.pooled_bytes >= 1_000_000, "{side}: it is pooled: {usage}");
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
        assert_eq!(counts(&context), before.0, "{side}: intermediates are freed");
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
fn too_little_memory_is_reported_and_returned_with_the_numbers_and_later_work_succeeds() {
    let device = Device::choose().budget_bytes(1 << 20).open().unwrap();
    let rules = HostPoolRules { budget_bytes: 1 << 20, ..HostPoolRules::default() };
    let contexts = [Context::on(&device).unwrap(), Context::builder().host_pool(rules).on_host()];
    for (place, context) in ["device", "host"].into_iter().zip(contexts) {
        let (sink, lines) = heard();
        let compute = Compute::on(&context).with_sink(sink);
        let error = compute.transfer_to_gpu(&vec![1.0; 300_000]).unwrap_err();
        let TensorError::OutOfMemory { required_bytes, available_bytes, place: reported, .. } = error else {
            panic!("{error}");
        };
        assert_eq!(reported, place);
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
fn a_failed_read_is_reported_with_its_size_and_place() {
    let (sink, lines) = heard();
    let context = Context::on_host();
    let compute = Compute::on(&context).with_sink(sink);
    let tensor = compute.transfer_to_gpu(&[1.0, 2.0]).unwrap();
    compute.dispose(&tensor);
    assert!(compute.transfer_from_gpu(&tensor).is_err());
    let line = "transfer_from_gpu failed: 2 values, 8 bytes, the host: read: the tensor [2] of f32 was disposed; keep it \
                (`TensorScope::keep`), or create it again";
    assert_eq!(lines(), [line]);
}
