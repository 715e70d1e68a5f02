//! A lost device is an event and a typed error, never a panic or a hang.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use std::sync::mpsc;

use crate::room::{self, PATIENCE, device, invert, lend, noise, owner, run, slow};
use vramp_gpu::{
    BufferError, CompileError, Device, DeviceEvent, LendError, PlayError, Player, ReadbackError, Recording,
};

/// Runs a test body that might hang, and fails if it does.
#[track_caller]
fn ends(act: impl FnOnce() + Send + 'static) {
    let (done, ended) = mpsc::channel();
    let worker = std::thread::spawn(move || {
        act();
        let _ = done.send(());
    });
    ended.recv_timeout(PATIENCE).expect("it neither hangs nor panics");
    worker.join().unwrap();
}

/// A device with a download in flight.
fn busy() -> (Device, Player) {
    let device = device();
    let kernel = device.prepare(&slow()).unwrap();
    let mut player = Player::on(&device).build().unwrap();
    let (from, to) = (lend(&device, 32 << 10), lend(&device, 32 << 10));
    let mut recording = Recording::new();
    recording.upload(&from, noise(32 << 10, 1)).unwrap();
    run(&mut recording, &device, &kernel, &from, &to, 60_000);
    recording.download(&to).unwrap();
    player.play(&mut recording).unwrap();
    (device, player)
}

#[test]
fn dropping_a_device_with_work_under_way_does_not_hang() {
    ends(|| drop(busy()));
    ends(|| {
        let (device, player) = busy();
        drop(device);
        drop(player);
    });
}

#[test]
fn abandoning_a_busy_device_ends_at_once() {
    ends(|| {
        let (device, mut player) = busy();
        let mut recording = Recording::new();
        recording.zero(&lend(&device, 64));
        device.clone().abandon();
        assert!(matches!(player.play(&mut recording), Err(PlayError::Lost(_))));
    });
}

#[test]
fn a_destroyed_device_says_so_everywhere_and_once_as_an_event() {
    ends(|| {
        let device = device();
        let kernel = device.prepare(&invert()).unwrap();
        let mut player = Player::on(&device).build().unwrap();
        let (from, to) = (lend(&device, 1000), lend(&device, 1000));
        let mut recording = Recording::new();
        recording.upload(&from, noise(1000, 1)).unwrap();
        run(&mut recording, &device, &kernel, &from, &to, 0);
        recording.download(&to).unwrap();
        player.play(&mut recording).unwrap();

        device.destroy();

        let (events, _) = device.take_events();
        assert!(matches!(&events[..], [DeviceEvent::Lost(lost)] if lost.reason == "it was destroyed"), "{events:?}");
        assert!(device.check().is_err() && device.poll().is_err());
        let error = device.lend(100_000, &owner()).unwrap_err();
        assert!(matches!(error, LendError::NotMade { problem: BufferError::Lost(_), .. }), "{error}");
        assert!(matches!(device.prepare(&slow()), Err(CompileError::Lost(_))));
        assert!(matches!(Player::on(&device).build(), Err(PlayError::Lost(_))));
        run(&mut recording, &device, &kernel, &from, &to, 0);
        assert!(matches!(player.play(&mut recording), Err(PlayError::Lost(_))));
        assert!(matches!(player.has_room(), Err(PlayError::Lost(_))));
        assert!(matches!(player.wait(PATIENCE), Err(PlayError::Lost(_))));
        assert_eq!(recording.len(), 1, "another device can play it");
        match player.readbacks().wait(PATIENCE) {
            Err(ReadbackError::Lost(_)) => {}
            other => panic!("{other:?}"),
        }
        let error = player.play(&mut recording).unwrap_err();
        assert_eq!(error.to_string(), "the device was lost (it was destroyed); open it again, or continue on the CPU");
        assert_eq!(device.take_events(), (vec![], 0), "only once");

        let again = room::device();
        assert!(again.prepare(&invert()).is_ok(), "a new device is not affected");
    });
}

#[test]
fn a_loss_that_wgpu_reports_by_itself_is_an_event() {
    ends(|| {
        let device = device();
        device.raw().destroy();
        // wgpu reports the loss during a poll, after its queue is empty.
        while device.poll().is_ok() {}
        let (events, _) = device.take_events();
        assert!(matches!(&events[..], [DeviceEvent::Lost(_)]), "{events:?}");
    });
}

#[test]
fn bytes_that_arrived_survive_the_device() {
    ends(|| {
        let device = device();
        let mut player = Player::on(&device).build().unwrap();
        let buffer = lend(&device, 1000);
        let mut recording = Recording::new();
        recording.upload(&buffer, noise(1000, 3)).unwrap();
        recording.download(&buffer).unwrap();
        drop(buffer);
        player.play(&mut recording).unwrap();
        let arrived = player.readbacks().wait(PATIENCE).unwrap().unwrap();
        let bytes = arrived.bytes(0).to_vec();
        device.destroy();
        drop(arrived);
        assert_eq!(bytes, noise(1000, 3));
        drop((player, device));
    });
}

#[cfg(target_os = "linux")]
#[test]
fn drivers_stay_loaded_when_the_last_device_is_gone() {
    let drivers = || std::fs::read_to_string("/proc/self/maps").unwrap().matches("libvulkan_").count();
    drop(room::device());
    let loaded = drivers();
    assert!(loaded > 0, "a device of Vulkan was open");
    drop(room::device());
    assert_eq!(drivers(), loaded);
}
