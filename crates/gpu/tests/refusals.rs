//! Invalid operations are refused with a reason, and the next operation works.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use std::time::Duration;

use crate::room::{self, bring, device, invert, inverted, lend, noise, open, owner, params, run, slow};
use vramp_gpu::{
    Backend, BufferError, CompileError, Device, LendError, LimitSet, OpenError, PlayError, Player, Recording,
};
use vramp_plan::Binding;

/// A frame passes through the device after the refusal.
#[track_caller]
fn still_works(device: &Device) {
    let kernel = device.prepare(&invert()).unwrap();
    let mut player = Player::on(device).build().unwrap();
    let pixels = noise(1000, 9);
    let (from, to) = (lend(device, 1000), lend(device, 1000));
    let mut recording = Recording::new();
    recording.upload(&from, pixels.clone()).unwrap();
    run(&mut recording, device, &kernel, &from, &to, 0);
    recording.download(&to).unwrap();
    assert_eq!(bring(&mut player, &mut recording), [inverted(&pixels)]);
    assert_eq!(device.take_events(), (vec![], 0), "no error was reported outside of a call");
}

#[test]
fn an_adapter_that_is_not_there_is_named_with_those_that_are() {
    let error = Device::choose().named("no such card").open().unwrap_err();
    let OpenError::NoSuchAdapter { wanted, found } = error else { panic!("{error}") };
    assert_eq!(wanted, "called `no such card`");
    for adapter in Device::choose().list() {
        assert!(found.contains(&adapter.name), "{found}");
    }
    let error = Device::choose().backend(Backend::WebGpu).open().unwrap_err();
    assert!(matches!(error, OpenError::NoAdapter { .. }), "{error}");
    assert!(error.to_string().contains("mesa-vulkan-drivers"), "{error}");
}

#[test]
fn hardware_comes_before_software_in_the_list() {
    let list = Device::choose().list();
    assert!(!list.is_empty(), "these tests need an adapter");
    assert!(list.is_sorted_by_key(|adapter| adapter.kind));
    assert!(list.iter().enumerate().all(|(at, adapter)| adapter.index == at));
    assert!(list.iter().all(|adapter| adapter.backend != Backend::Noop), "only if it is requested");
    assert_eq!(device().adapter(), &list[0]);
}

#[test]
fn a_syntax_error_is_shown_with_its_line() {
    let device = device();
    let mut broken = invert();
    broken.wgsl = broken.wgsl.replace("if at >= params.pixels { return; }", "if at >= { return; }");
    let error = device.prepare(&broken).unwrap_err();
    let CompileError::Text { name, line, column, problem } = &error else { panic!("{error}") };
    assert_eq!((name.as_str(), *line), ("invert", 9), "{error}");
    assert!(*column > 1 && problem.contains("expected expression"), "{error}");
    assert_eq!(device.kernels(), 0);
    still_works(&device);
}

#[test]
fn a_wrong_name_or_type_is_shown_with_its_line() {
    let device = device();
    let mut broken = invert();
    broken.wgsl = broken.wgsl.replace("result[at] =", "result[at] = 1.0 +");
    let error = device.prepare(&broken).unwrap_err();
    assert!(matches!(error, CompileError::Text { line: 10, .. }), "{error}");
    still_works(&device);
}

#[test]
fn bindings_that_do_not_fit_the_text_are_refused() {
    let device = device();
    for bindings in [
        vec![Binding::Read, Binding::Write],
        vec![Binding::Read, Binding::Read, Binding::Params { bytes: 16 }],
        vec![Binding::Read, Binding::Params { bytes: 16 }, Binding::Write],
    ] {
        let error = device.prepare(&vramp_plan::Shader { bindings, ..invert() }).unwrap_err();
        let CompileError::Refused { name, problem } = &error else { panic!("{error}") };
        assert!(name == "invert" && problem.contains("binding"), "{error}");
    }
    still_works(&device);
}

#[test]
fn parameters_that_no_device_takes_are_refused_with_numbers() {
    let device = open(&Device::choose().limits(LimitSet::WebGpu));
    let with = |params: &[u32]| {
        let mut shader = invert();
        shader.bindings.truncate(2);
        shader.bindings.extend(params.iter().map(|bytes| Binding::Params { bytes: *bytes }));
        device.prepare(&shader).unwrap_err().to_string()
    };
    assert_eq!(
        with(&[20]),
        "shader invert has 1 parameter blocks with 20 bytes; a shader may have one block, whose size must be a \
         multiple of 16 bytes and at most 65536"
    );
    assert!(with(&[16, 16]).contains("2 parameter blocks"));
    assert!(with(&[1 << 20]).contains("1048576 bytes"));
    still_works(&device);
}

#[test]
fn more_buffers_than_the_device_binds_are_refused_with_numbers() {
    let device = open(&Device::choose().limits(LimitSet::Downlevel));
    let mut shader = invert();
    shader.bindings = vec![Binding::Read; 5];
    let error = device.prepare(&shader).unwrap_err();
    assert_eq!(error.to_string(), "shader invert binds 5 storage buffers, but the device allows 4; split the group");
    still_works(&device);
}

#[test]
fn a_buffer_beyond_the_limits_is_refused_with_numbers() {
    let device = open(&Device::choose().limits(LimitSet::WebGpu));
    let error = device.lend((128 << 20) + 1, &owner()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "tester needs 134217729 bytes of memory: a buffer of this device has at most 134217728 bytes; use smaller \
         frames, or split them"
    );
    assert!(matches!(error, LendError::NotMade { problem: BufferError::TooBig { .. }, .. }));
    still_works(&device);
}

#[test]
fn beyond_the_budget_is_refused_with_numbers_until_something_returns() {
    let device = open(&Device::choose().budget_bytes(8192));
    let held = lend(&device, 6000);
    let error = device.lend(3000, &owner()).unwrap_err();
    let LendError::OutOfBudget { needed_bytes, available_bytes, .. } = error else { panic!("{error}") };
    assert_eq!((needed_bytes, available_bytes), (3072, 2048));
    drop(held);
    drop(lend(&device, 3000));
    still_works(&device);
}

#[test]
fn a_grid_that_is_too_long_is_refused_and_the_recording_stays() {
    let device = open(&Device::choose().limits(LimitSet::WebGpu));
    let kernel = device.prepare(&invert()).unwrap();
    let mut player = Player::on(&device).build().unwrap();
    let (from, to) = (lend(&device, 256), lend(&device, 256));
    let mut recording = Recording::new();
    recording.dispatch(&kernel, &[&from, &to], &params(64, 0), [65_536, 1, 1]).unwrap();
    let error = player.play(&mut recording).unwrap_err();
    assert!(matches!(error, PlayError::GridTooLong { most: 65_535, .. }), "{error}");
    assert_eq!(recording.len(), 1);
    assert_eq!(kernel.cover(65_536 * 64, device.limits()), [32_768, 2, 1]);
    still_works(&device);
}

#[test]
fn memory_and_kernels_of_another_device_are_refused() {
    let (here, there) = (device(), device());
    let (kernel, stranger) = (here.prepare(&invert()).unwrap(), there.prepare(&invert()).unwrap());
    let mut player = Player::on(&here).build().unwrap();
    let (a, b, _near, far) = (lend(&here, 64), lend(&here, 64), lend(&there, 64), lend(&there, 64));
    let mut recording = Recording::new();
    run(&mut recording, &here, &kernel, &a, &far, 0);
    assert!(matches!(player.play(&mut recording), Err(PlayError::StrangeBuffer { .. })));
    recording.clear();
    run(&mut recording, &here, &stranger, &a, &b, 0);
    assert!(matches!(player.play(&mut recording), Err(PlayError::StrangeKernel { .. })));
    still_works(&here);
}

#[test]
fn the_same_content_under_another_name_is_compiled_once() {
    let device = device();
    let first = device.prepare(&invert()).unwrap();
    let second = device.prepare(&vramp_plan::Shader { name: "negative".into(), ..invert() }).unwrap();
    assert_eq!((device.kernels(), device.counters().compiles), (1, 1));
    assert_eq!((&**first.name(), &**second.name()), ("invert", "negative"));
    let mut other = invert();
    other.wgsl.push(' ');
    device.prepare(&other).unwrap();
    assert_eq!(device.kernels(), 2, "same name, different content");
    assert_eq!(device.forget_unused_kernels(), 1);
    drop((first, second));
    assert_eq!((device.forget_unused_kernels(), device.kernels()), (1, 0));
    still_works(&device);
}

#[test]
fn a_kernel_that_lost_its_memory_layout_is_refused_by_the_driver_and_nothing_hangs() {
    // A fixed-size array larger than the bound buffer: only the driver can know.
    let device = device();
    let mut table = invert();
    table.wgsl = table.wgsl.replace("source: array<u32>", "source: array<u32, 1000>");
    let kernel = device.prepare(&table).unwrap();
    let mut player = Player::on(&device).build().unwrap();
    let mut recording = Recording::new();
    for _ in 0..5 {
        let (from, to) = (lend(&device, 256), lend(&device, 256));
        recording.upload(&from, noise(256, 1)).unwrap();
        run(&mut recording, &device, &kernel, &from, &to, 0);
        recording.download(&to).unwrap();
        let error = player.play(&mut recording).unwrap_err();
        assert!(matches!(&error, PlayError::Refused { problem } if problem.contains("bound with size 256")), "{error}");
        recording.clear();
    }
    let small = lend(&device, 256);
    recording.upload(&small, noise(256, 3)).unwrap();
    recording.download(&small).unwrap();
    assert_eq!(bring(&mut player, &mut recording), [noise(256, 3)], "the same rings still work");
    let (from, to) = (lend(&device, 4000), lend(&device, 4000));
    let pixels = noise(4000, 2);
    recording.upload(&from, pixels.clone()).unwrap();
    run(&mut recording, &device, &kernel, &from, &to, 0);
    recording.download(&to).unwrap();
    assert_eq!(bring(&mut player, &mut recording), [inverted(&pixels)]);
    still_works(&device);
}

#[test]
fn downloads_that_are_not_taken_are_refused_not_awaited() {
    let device = device();
    let mut player = Player::on(&device).readback_slots(2).build().unwrap();
    let buffer = lend(&device, 64);
    let mut recording = Recording::new();
    for _ in 0..2 {
        recording.download(&buffer).unwrap();
        player.play(&mut recording).unwrap();
    }
    recording.download(&buffer).unwrap();
    let error = player.play(&mut recording).unwrap_err();
    assert_eq!(error, PlayError::NotTaken { slots: 2 });
    let first = player.readbacks().wait(room::PATIENCE).unwrap().unwrap();
    assert_eq!(player.play(&mut recording).unwrap_err(), error, "held is not free");
    drop(first);
    player.play(&mut recording).unwrap();
    still_works(&device);
}

#[test]
fn waiting_ends_at_its_deadline_and_a_hanging_kernel_is_named() {
    let device = device();
    let kernel = device.prepare(&slow()).unwrap();
    let mut player = Player::on(&device).frames_in_flight(1).overdue(Duration::from_millis(1)).build().unwrap();
    let (from, to) = (lend(&device, 256 << 10), lend(&device, 256 << 10));
    let mut recording = Recording::new();
    run(&mut recording, &device, &kernel, &from, &to, 60_000);
    recording.download(&to).unwrap();
    player.play(&mut recording).unwrap();
    assert!(player.readbacks().wait(Duration::from_millis(1)).unwrap().is_none(), "it takes longer than that");
    run(&mut recording, &device, &kernel, &from, &to, 60_000);
    let error = player.play(&mut recording).unwrap_err();
    assert!(matches!(&error, PlayError::Overdue { kernel, .. } if &**kernel == "slow"), "{error}");
    assert!(player.readbacks().wait(room::PATIENCE).unwrap().is_some());
    still_works(&device);
}
