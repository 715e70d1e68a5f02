//! Devices are opened, used and dropped by several threads at once, on every backend of the machine.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use crate::room::{bring, invert, inverted, lend, noise, open, run};
use vramp_gpu::{Backend, Choice, Device, Player, Recording};

/// Opens a device, inverts some pixels on it, and drops it.
fn use_once(choice: &Choice, seed: u32) {
    let device = open(choice);
    let kernel = device.prepare(&invert()).unwrap();
    let mut player = Player::on(&device).build().unwrap();
    let bytes = noise(4096, seed);
    let (from, to) = (lend(&device, 4096), lend(&device, 4096));
    let mut recording = Recording::new();
    recording.upload(&from, bytes.clone()).unwrap();
    run(&mut recording, &device, &kernel, &from, &to, 0);
    recording.download(&to).unwrap();
    assert_eq!(bring(&mut player, &mut recording)[0], inverted(&bytes));
}

/// OpenGL adapters share a context that only one thread may use at a time.
#[test]
fn threads_list_open_and_drop_devices_of_every_backend_at_the_same_time() {
    let listed = Device::choose().list();
    let mut backends: Vec<Backend> = listed.iter().map(|adapter| adapter.backend).collect();
    backends.dedup();
    assert!(!backends.is_empty(), "these tests need an adapter");
    let mut choices: Vec<Choice> = backends.into_iter().map(|backend| Device::choose().backend(backend)).collect();
    choices.push(Device::choose());
    for choice in &choices {
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || (0..4).for_each(|round| use_once(choice, 4 * thread + round)));
            }
            scope.spawn(|| (0..8).for_each(|_| assert_eq!(Device::choose().list().len(), listed.len())));
        });
    }
}
