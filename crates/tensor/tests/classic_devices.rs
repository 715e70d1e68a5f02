//! The classic API: choosing a device by preference, memory and load, switching it during work, and losing it.

use crate::classic_parts::{heard, nothing};
use crate::sides::{device, on_device};
use vramp_gpu::{Adapter, AdapterReading, Backend, Device, Readout};
use vramp_tensor::classic::{ActiveDevice, Compute, DeviceRequest, DeviceSelector, FeatureFlags, FlagError};
use vramp_tensor::{DType, TensorError};

fn gpu() -> DeviceRequest {
    DeviceRequest { prefer_gpu: true, ..DeviceRequest::default() }
}

/// A choice whose adapters all have this memory and load.
fn reads(memory_bytes: Readout<u64>, load_percent: Readout<f32>) -> vramp_gpu::Choice {
    Device::choose().readings(move |_: &Adapter| AdapterReading {
        memory_bytes: memory_bytes.clone(),
        used_bytes: Readout::unavailable("not read"),
        load_percent: load_percent.clone(),
    })
}

#[test]
fn the_cpu_is_selected_unless_a_gpu_is_preferred_and_flags_go_with_it() {
    let devices = DeviceSelector::new().with_sink(nothing());
    let selected = devices.select_device(&DeviceRequest::default()).unwrap();
    assert_eq!((selected.device, selected.warnings.len()), (ActiveDevice::Cpu, 0));
    assert_eq!(devices.current_flags(), FeatureFlags { cpu_forward: true, pack: false });
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
    let devices = DeviceSelector::new().with_sink(sink);
    let selected = devices.select_device(&gpu()).unwrap();
    let is_software = device().adapter().kind == vramp_gpu::AdapterKind::Software;
    let says = |lines: &[String]| lines.iter().any(|line| line.contains("is software: its work runs on the CPU"));
    assert_eq!((says(&selected.warnings), says(&lines())), (is_software, is_software), "{selected:?}");
}

#[test]
fn memory_and_load_are_enforced_and_unmet_requests_fall_back_with_a_warning() {
    let known = |bytes: u64, percent: f32| reads(Readout::is(bytes, "a test"), Readout::is(percent, "a test"));
    let unknown = || reads(Readout::unavailable("no such file"), Readout::unavailable("no such counter"));
    let memory = DeviceRequest { min_memory_bytes: Some(2_000_000_000), ..gpu() };
    let load = DeviceRequest { max_load_percent: Some(50.0), ..gpu() };
    let cases = [
        (known(4_000_000_000, 10.0), memory, ""),
        (known(4_000_000_000, 10.0), load, ""),
        (known(1_000_000_000, 10.0), memory, "has 1.0 GB of memory, but 2.0 GB are required"),
        (known(4_000_000_000, 90.0), load, "is 90 % busy, but at most 50 % is allowed"),
        (unknown(), memory, "its memory is unknown: no such file"),
        (unknown(), load, "its load is unknown: no such counter"),
        (Device::choose(), load, "its load is unknown: no source of readings is set"),
    ];
    for (choice, request, problem) in cases {
        let (sink, lines) = heard();
        let devices = DeviceSelector::new().with_choice(choice).with_sink(sink);
        let selected = devices.select_device(&request).unwrap();
        assert_eq!(selected.device, devices.active_device());
        if problem.is_empty() {
            assert!(matches!(selected.device, ActiveDevice::Gpu(_)), "{selected:?}");
            continue;
        }
        assert_eq!(selected.device, ActiveDevice::Cpu, "{problem}");
        assert!(selected.warnings[0].starts_with("no GPU is selected: "), "{selected:?}");
        assert!(selected.warnings[0].contains(problem), "{selected:?}");
        assert_eq!(lines(), [format!("select_device: {}", selected.warnings[0])]);
        assert_eq!(devices.current_flags(), FeatureFlags { cpu_forward: true, pack: false }, "no flags of a GPU");
        assert!(devices.context().device().is_none(), "ops run on the host");
    }
}

#[test]
fn without_a_gpu_there_is_a_warning_and_the_truth() {
    let devices = DeviceSelector::new().with_sink(nothing()).with_choice(Device::choose().named("no such adapter"));
    let selected = devices.select_device(&gpu()).unwrap();
    assert_eq!((&selected.device, selected.warnings.len()), (&ActiveDevice::Cpu, 1), "{selected:?}");
    assert!(selected.warnings[0].contains("no adapter is called `no such adapter`"), "{selected:?}");
    assert_eq!(devices.active_device(), ActiveDevice::Cpu);
    let devices = DeviceSelector::new().with_sink(nothing()).with_choice(Device::choose().backend(Backend::Metal));
    let selected = devices.select_device(&gpu()).unwrap();
    assert!(cfg!(target_vendor = "apple") || selected.device == ActiveDevice::Cpu, "{selected:?}");
}

#[test]
fn an_invalid_request_is_refused_and_changes_nothing() {
    let devices = DeviceSelector::of(&on_device()).with_sink(nothing());
    let before = (devices.active_device(), devices.current_flags());
    for percent in [f32::NAN, -1.0, 101.0] {
        let request = DeviceRequest { max_load_percent: Some(percent), ..gpu() };
        let error = devices.select_device(&request).unwrap_err();
        assert!(error.to_string().contains("out of range; use 0 to 100"), "{error}");
    }
    assert_eq!((devices.active_device(), devices.current_flags()), before);
}

#[test]
fn flags_are_set_by_name_all_or_none() {
    let devices = DeviceSelector::new().with_sink(nothing());
    devices.set_flags(&[("pack", "true"), ("cpu_forward", "false")]).unwrap();
    assert_eq!((devices.flag("pack"), devices.flag("cpu_forward")), (Ok(true), Ok(false)));
    let wrong = devices.set_flags(&[("pack", "false"), ("cpu_forward", "yes")]).unwrap_err();
    assert_eq!(wrong.to_string(), "`yes` is not a value of the flag `cpu_forward`; use `true` or `false`");
    let unknown = devices.set_flags(&[("pack", "false"), ("packed", "true")]).unwrap_err();
    assert_eq!(unknown, FlagError::Unknown { name: "packed".to_owned() });
    assert!(devices.flag("Pack").is_err());
    assert_eq!(devices.current_flags(), FeatureFlags { cpu_forward: false, pack: true }, "nothing was set");
}

#[test]
fn devices_are_switched_in_the_middle_of_work_there_and_back() {
    let devices = DeviceSelector::new().with_sink(nothing());
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
fn a_lost_device_is_reported_and_values_on_the_host_stay_usable() {
    let (sink, lines) = heard();
    let devices = DeviceSelector::of(&on_device()).with_sink(sink);
    let careful = Compute::on(devices.context()).with_host_copies(true).with_sink(nothing());
    let usual = Compute::on(devices.context()).with_sink(nothing());
    let (kept, gone) = (careful.transfer_to_gpu(&[1.0, 2.0]).unwrap(), usual.transfer_to_gpu(&[3.0]).unwrap());
    devices.context().device().unwrap().destroy();
    assert!(usual.compute_batch(std::slice::from_ref(&kept)).is_err());
    assert!(matches!(devices.active_device(), ActiveDevice::Lost { .. }), "{}", devices.active_device());
    assert!(devices.memory_usage().unreliable.is_some_and(|why| why.contains("lost")));
    let selected = devices.select_device(&gpu()).unwrap();
    assert!(matches!(selected.device, ActiveDevice::Gpu(_)), "{selected:?}");
    let warning = "the values of 1 memories were only on the lost device and are lost";
    assert_eq!(selected.warnings[0], warning);
    assert!(lines().contains(&format!("select_device: {warning}")));
    assert_eq!(usual.compute_batch(&[kept]).unwrap(), [2.5]);
    assert!(matches!(usual.transfer_from_gpu(&gone), Err(TensorError::Gone { .. })));
    assert_eq!(devices.memory_usage().unreliable, None);
}

#[test]
fn memory_that_others_hold_on_the_device_makes_the_numbers_doubtful() {
    let context = on_device();
    let devices = DeviceSelector::of(&context);
    assert_eq!(devices.memory_usage().unreliable, None);
    let other = context.device().unwrap().lend(1000, &"blur".into()).unwrap();
    let why = devices.memory_usage().unreliable.unwrap();
    assert_eq!(why, "1024 of the bytes in use on the device are held by blur");
    assert!(devices.memory_usage().to_string().ends_with(&format!("; unreliable: {why}")));
    drop(other);
    assert_eq!(devices.memory_usage().unreliable, None);
}
