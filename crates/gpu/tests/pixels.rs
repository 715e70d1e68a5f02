//! Bytes that are uploaded, processed by kernels and downloaded are exactly the expected ones.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use std::sync::{Mutex, OnceLock};

use crate::room::{PATIENCE, bring, device, invert, invert_in_place, inverted, lend, noise, open, params, run};
use proptest::prelude::*;
use vramp_gpu::{Device, LimitSet, Player, Recording};

#[test]
fn invert_gives_exact_bytes_on_every_adapter() {
    let adapters = Device::choose().list();
    assert!(!adapters.is_empty(), "these tests need an adapter; mesa-vulkan-drivers has one");
    for adapter in adapters {
        let device = open(&Device::choose().index(adapter.index));
        assert_eq!(device.adapter(), &adapter);
        let kernel = device.prepare(&invert()).unwrap();
        let mut player = Player::on(&device).build().unwrap();
        for seed in 0..5 {
            let pixels = noise(64 * 64 * 4, seed);
            let (from, to) = (lend(&device, 16_384), lend(&device, 16_384));
            let mut recording = Recording::new();
            recording.upload(&from, pixels.clone()).unwrap();
            run(&mut recording, &device, &kernel, &from, &to, 0);
            recording.download(&to).unwrap();
            drop((from, to));
            assert_eq!(bring(&mut player, &mut recording), [inverted(&pixels)], "{adapter}");
        }
        assert_eq!(device.counters().dispatches, 6, "five, and one to warm up");
        assert_eq!(device.take_events(), (vec![], 0));
    }
}

#[test]
fn the_limits_of_webgpu_and_of_older_devices_are_enough() {
    for (limits, buffers) in [(LimitSet::WebGpu, 8), (LimitSet::Downlevel, 4)] {
        let device = open(&Device::choose().limits(limits));
        assert_eq!(device.limits().storage_buffers_per_stage, buffers);
        assert_eq!(device.limits().binding_bytes, 128 << 20);
        let kernel = device.prepare(&invert()).unwrap();
        let mut player = Player::on(&device).build().unwrap();
        let pixels = noise(1000, 2);
        let (from, to) = (lend(&device, 1000), lend(&device, 1000));
        let mut recording = Recording::new();
        recording.upload(&from, pixels.clone()).unwrap();
        run(&mut recording, &device, &kernel, &from, &to, 0);
        recording.download(&to).unwrap();
        assert_eq!(bring(&mut player, &mut recording), [inverted(&pixels)], "{limits:?}");
    }
}

#[test]
fn a_sole_owner_edits_in_place() {
    let device = device();
    let kernel = device.prepare(&invert_in_place()).unwrap();
    let mut player = Player::on(&device).build().unwrap();
    let pixels = noise(4000, 3);
    let picture = lend(&device, 4000);
    let mut recording = Recording::new();
    recording.upload(&picture, pixels.clone()).unwrap();
    recording.dispatch(&kernel, &[&picture], &params(1000, 0), kernel.cover(1000, device.limits())).unwrap();
    recording.download(&picture).unwrap();
    assert_eq!(bring(&mut player, &mut recording), [inverted(&pixels)]);
    assert_eq!(device.counters().dispatches, 2, "one, and one to warm up");
}

#[test]
fn several_downloads_of_one_recording_arrive_together_and_in_order() {
    let device = device();
    let kernel = device.prepare(&invert()).unwrap();
    let mut player = Player::on(&device).build().unwrap();
    let pixels = noise(777, 4);
    let (from, to) = (lend(&device, 777), lend(&device, 777));
    let mut recording = Recording::new();
    recording.upload(&from, pixels.clone()).unwrap();
    run(&mut recording, &device, &kernel, &from, &to, 0);
    recording.download(&to).unwrap();
    recording.download(&from).unwrap();
    recording.download_part(&from, 8, 5).unwrap();
    let before = device.counters();
    let arrived = bring(&mut player, &mut recording);
    assert_eq!(arrived, [inverted(&pixels), pixels.clone(), pixels[8..13].to_vec()]);
    let after = device.counters();
    assert_eq!((after.downloads - before.downloads, after.transfer_bytes - before.transfer_bytes), (3, 777 * 3 + 5));
}

#[test]
fn what_is_read_between_two_writes_is_what_was_there_then() {
    // If no other handle exists, a download could map the buffer itself: not if a later command writes it.
    let device = device();
    let kernel = device.prepare(&invert()).unwrap();
    let mut player = Player::on(&device).build().unwrap();
    let pixels = noise(512, 5);
    let mut recording = Recording::new();
    {
        let (from, to) = (lend(&device, 512), lend(&device, 512));
        recording.upload(&from, pixels.clone()).unwrap();
        run(&mut recording, &device, &kernel, &from, &to, 0);
        recording.download(&to).unwrap();
        recording.zero(&to);
        recording.copy_part(&from, 0, &to, 256, 128).unwrap();
        recording.download(&to).unwrap();
    }
    let mut second = vec![0; 512];
    second[256..384].copy_from_slice(&pixels[..128]);
    assert_eq!(bring(&mut player, &mut recording), [inverted(&pixels), second]);
}

#[test]
fn a_buffer_that_is_written_after_its_download_is_not_mapped_itself() {
    let device = device();
    let mut player = Player::on(&device).build().unwrap();
    let pixels = noise(512, 7);
    let mut recording = Recording::new();
    let buffer = lend(&device, 512);
    recording.upload(&buffer, pixels.clone()).unwrap();
    recording.download(&buffer).unwrap();
    recording.zero(&buffer);
    drop(buffer);
    assert_eq!(bring(&mut player, &mut recording), [pixels]);
}

#[test]
fn a_download_of_a_buffer_with_one_holder_needs_no_copy_if_memory_is_shared() {
    for direct in [true, false] {
        let device = open(&Device::choose().direct_mapping(direct));
        let kernel = device.prepare(&invert()).unwrap();
        let mut player = Player::on(&device).build().unwrap();
        let ring_bytes = player.ring_bytes();
        for seed in 0..20 {
            let pixels = noise(4001, seed);
            let mut recording = Recording::new();
            let (from, to) = (lend(&device, 4001), lend(&device, 4001));
            recording.upload(&from, pixels.clone()).unwrap();
            run(&mut recording, &device, &kernel, &from, &to, 0);
            recording.download(&to).unwrap();
            drop((from, to));
            let inverted = inverted(&pixels);
            assert_eq!(bring(&mut player, &mut recording), [inverted]);
        }
        let read_slots = player.ring_bytes() - ring_bytes > 4096;
        assert_eq!(read_slots, !device.maps_directly(), "staging memory exists only if nothing is mapped directly");
        assert!(device.maps_directly() <= direct);
        assert!(device.pool().statistics().misses <= 4, "{:?}", device.pool());
    }
}

#[test]
fn a_shared_buffer_is_copied_and_can_be_used_while_it_is_read() {
    let device = device();
    let kernel = device.prepare(&invert()).unwrap();
    let mut player = Player::on(&device).build().unwrap();
    let pixels = noise(2048, 6);
    let (from, to) = (lend(&device, 2048), lend(&device, 2048));
    let mut recording = Recording::new();
    recording.upload(&from, pixels.clone()).unwrap();
    recording.download(&from).unwrap();
    player.play(&mut recording).unwrap();
    let first = player.readbacks().wait(PATIENCE).unwrap().unwrap();
    run(&mut recording, &device, &kernel, &from, &to, 0);
    recording.download(&to).unwrap();
    assert_eq!(bring(&mut player, &mut recording), [inverted(&pixels)]);
    assert_eq!(first.bytes(0), pixels);
}

#[test]
fn the_slowest_first_run_is_before_the_first_frame() {
    // The smallest scratch size is too small for this table: the warm-up tries larger ones.
    let device = device();
    let mut table = invert();
    table.wgsl = table.wgsl.replace("source: array<u32>", "source: array<u32, 3000>");
    let before = device.counters();
    let kernel = device.prepare(&table).unwrap();
    let after = device.counters();
    assert_eq!((after.compiles - before.compiles, after.submits - before.submits), (1, 2));
    assert_eq!(device.take_events(), (vec![], 0));
    assert_eq!(device.prepare(&table).unwrap(), kernel);
    assert_eq!(device.counters(), after, "a known shader is neither compiled nor run");
}

fn shared() -> &'static Mutex<(Device, Player)> {
    static SHARED: OnceLock<Mutex<(Device, Player)>> = OnceLock::new();
    SHARED.get_or_init(|| {
        let device = device();
        let player = Player::on(&device).build().unwrap();
        Mutex::new((device, player))
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_bytes_come_back_as_they_went(bytes in prop::collection::vec(any::<u8>(), 1..5000), hold in any::<bool>()) {
        let mut shared = shared().lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let (device, player) = &mut *shared;
        let kernel = device.prepare(&invert()).unwrap();
        let size = bytes.len() as u64;
        let (from, through, to) = (lend(device, size), lend(device, size), lend(device, size));
        let mut recording = Recording::new();
        recording.upload(&from, bytes.clone()).unwrap();
        run(&mut recording, device, &kernel, &from, &through, 0);
        run(&mut recording, device, &kernel, &through, &to, 0);
        recording.download(&to).unwrap();
        let held = if hold { Some(to) } else { drop(to); None };
        prop_assert_eq!(bring(player, &mut recording), [bytes]);
        drop(held);
    }
}
