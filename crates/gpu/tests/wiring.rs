//! Everything except arithmetic works on wgpu's noop device, so these tests need no driver.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use crate::room::{PATIENCE, add, invert, lend, noise, open, run};
use vramp_gpu::{AdapterKind, Backend, Device, Player, Recording};
use vramp_plan::Shader;

#[test]
fn bytes_go_up_across_and_down_without_a_driver() {
    for direct in [true, false] {
        let device = open(&Device::choose().backend(Backend::Noop).direct_mapping(direct));
        assert_eq!(device.adapter().backend, Backend::Noop);
        let kernel = device.prepare(&invert()).unwrap();
        let mut player = Player::on(&device).build().unwrap();
        let mut recording = Recording::new();
        for seed in 0..50 {
            let bytes = noise(300 + seed as usize, seed);
            let (from, to) = (lend(&device, bytes.len() as u64), lend(&device, bytes.len() as u64));
            recording.upload(&from, bytes.clone()).unwrap();
            run(&mut recording, &device, &kernel, &from, &to, 0);
            recording.copy(&from, &to).unwrap();
            recording.download(&to).unwrap();
            drop((from, to));
            player.play(&mut recording).unwrap();
            let arrived = player.readbacks().wait(PATIENCE).unwrap().unwrap();
            assert_eq!(arrived.bytes(0), bytes);
        }
        let counters = device.counters();
        assert_eq!((counters.uploads, counters.downloads, counters.compiles), (50, 50, 1));
        assert_eq!(device.take_events(), (vec![], 0));
    }
}

#[test]
fn a_device_lists_what_it_compiled_in_order_and_each_text_once() {
    let device = open(&Device::choose().backend(Backend::Noop));
    assert_eq!(device.adapter().kind, AdapterKind::Other, "kernels are those of GPUs, not of software drivers");
    assert_eq!(device.shaders(), []);
    let again = Shader { name: "again".into(), ..invert() };
    let kernels = [invert(), add(), again].map(|shader| device.prepare(&shader).unwrap());
    assert_eq!(device.shaders(), [invert(), add()]);
    drop(kernels);
    device.forget_unused_kernels();
    assert_eq!(device.shaders(), []);
}
