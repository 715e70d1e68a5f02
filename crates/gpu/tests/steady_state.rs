//! In steady state a pipeline creates nothing, by vramp's counters and by wgpu's own.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use crate::room::{self, PATIENCE, device, invert, inverted, lend, noise, owner, run, slow};
use vramp_gpu::{Counters, Device, DeviceKernel, PlayError, Player, PoolRules, Recording, ResourceState};

/// Frames until every buffer has met every dispatch that it will meet.
const WARM: u32 = 20;

/// One frame: upload, kernel, download. Buffers are lent and returned every time.
fn frame(device: &Device, player: &mut Player, kernel: &DeviceKernel, recording: &mut Recording, seed: u32) -> Vec<u8> {
    let pixels = noise(1024, seed);
    let (from, to) = (lend(device, 1024), lend(device, 1024));
    recording.upload(&from, pixels.clone()).unwrap();
    run(recording, device, kernel, &from, &to, 0);
    recording.download(&to).unwrap();
    drop((from, to));
    player.play(recording).unwrap();
    inverted(&pixels)
}

fn since(before: &Counters, after: &Counters) -> Counters {
    Counters {
        uploads: after.uploads - before.uploads,
        downloads: after.downloads - before.downloads,
        transfer_bytes: after.transfer_bytes - before.transfer_bytes,
        dispatches: after.dispatches - before.dispatches,
        passes: after.passes - before.passes,
        submits: after.submits - before.submits,
        bind_groups: after.bind_groups - before.bind_groups,
        gpu_allocs: after.gpu_allocs - before.gpu_allocs,
        compiles: after.compiles - before.compiles,
        maps: after.maps - before.maps,
        presents: after.presents - before.presents,
        max_in_flight: after.max_in_flight,
    }
}

#[test]
fn a_hundred_frames_make_nothing_and_every_byte_is_right() {
    for direct in [true, false] {
        let device = room::open(&Device::choose().direct_mapping(direct));
        let kernel = device.prepare(&invert()).unwrap();
        let mut player = Player::on(&device).frames_in_flight(2).build().unwrap();
        let mut recording = Recording::new();
        let mut expected = std::collections::VecDeque::new();
        let (mut before, mut driver_before) = (Counters::default(), None);
        for seed in 0..WARM + 100 {
            if seed == WARM {
                (before, driver_before) = (device.counters(), device.driver_counters());
            }
            expected.push_back(frame(&device, &mut player, &kernel, &mut recording, seed));
            // One frame behind, like a slow consumer.
            if expected.len() > 1 {
                let arrived = player.readbacks().wait(PATIENCE).unwrap().unwrap();
                assert_eq!(arrived.bytes(0), expected.pop_front().unwrap(), "frame {}", arrived.ticket());
            }
        }
        let used = since(&before, &device.counters());
        let exact = Counters {
            uploads: 100,
            downloads: 100,
            transfer_bytes: 100 * 2048,
            dispatches: 100,
            passes: 100,
            submits: 100,
            maps: 200,
            max_in_flight: used.max_in_flight,
            ..Counters::default()
        };
        assert_eq!(used, exact, "direct mapping: {direct}");
        assert!(used.max_in_flight <= 2);
        assert_eq!(device.driver_counters(), driver_before, "wgpu counts nothing new either");
        assert_eq!(device.take_events(), (vec![], 0));
        let arrived = player.readbacks().wait(PATIENCE).unwrap().unwrap();
        assert_eq!(arrived.bytes(0), expected.pop_front().unwrap());
        drop(arrived);
        assert!(player.wait(PATIENCE).unwrap());
        assert_eq!(device.pool().leaks(), []);
    }
}

#[test]
fn wgpu_counts_as_many_things_as_were_made() {
    let device = device();
    // The first submit completes what wgpu creates for itself when it opens a device.
    let kernel = device.prepare(&slow()).unwrap();
    drop(kernel);
    let Some(start) = device.driver_counters() else { panic!("wgpu counts on this platform") };
    let before = device.counters();
    let kernel = device.prepare(&invert()).unwrap();
    let mut player = Player::on(&device).frames_in_flight(1).readback_slots(1).build().unwrap();
    let mut recording = Recording::new();
    frame(&device, &mut player, &kernel, &mut recording, 1);
    drop(player.readbacks().wait(PATIENCE).unwrap().unwrap());
    assert!(player.wait(PATIENCE).unwrap());
    let used = since(&before, &device.counters());
    // The warm-up's three buffers and bind group are gone; everything else still exists.
    device.poll().unwrap();
    let end = device.driver_counters().unwrap();
    assert_eq!(end.compute_pipelines - start.compute_pipelines, i64::try_from(used.compiles).unwrap());
    assert_eq!(end.bind_groups - start.bind_groups, i64::try_from(used.bind_groups).unwrap() - 1);
    assert_eq!(end.buffers - start.buffers, i64::try_from(used.gpu_allocs).unwrap() - 3);
}

#[test]
fn frames_in_flight_never_exceed_the_limit() {
    for most in [1, 2, 3] {
        let device = device();
        let kernel = device.prepare(&slow()).unwrap();
        let mut player = Player::on(&device).frames_in_flight(most).build().unwrap();
        let mut recording = Recording::new();
        let (from, to) = (lend(&device, 8 << 10), lend(&device, 8 << 10));
        let mut refused = 0;
        for _ in 0..6 {
            run(&mut recording, &device, &kernel, &from, &to, 60_000);
            match player.try_play(&mut recording) {
                Ok(_) => assert!(recording.is_empty()),
                Err(PlayError::Busy { under_way }) => {
                    assert_eq!((under_way, recording.len()), (most, 1), "a refused recording is unchanged");
                    refused += 1;
                    player.play(&mut recording).unwrap();
                }
                Err(other) => panic!("{other}"),
            }
            assert!(player.under_way() <= most);
        }
        assert!(device.counters().max_in_flight <= most as u64);
        // Mesa's software driver runs a submission that depends on the previous one inside its submit call, so a
        // second submission has often finished before it could be in the way.
        assert!(most > 1 || refused > 0, "the device was never busy, so the test shows nothing");
        assert!(player.wait(PATIENCE).unwrap());
        assert_eq!((player.under_way(), device.counters().submits), (0, 6 + 1));
    }
}

#[test]
fn a_buffer_is_not_lent_again_while_a_submission_uses_it() {
    let device = device();
    let kernel = device.prepare(&slow()).unwrap();
    let mut player = Player::on(&device).build().unwrap();
    let mut recording = Recording::new();
    let (from, to) = (lend(&device, 32 << 10), lend(&device, 32 << 10));
    run(&mut recording, &device, &kernel, &from, &to, 60_000);
    let played = player.play(&mut recording).unwrap();
    let tags = [from.tag(), to.tag()];
    drop((from, to));
    let waiting = |place: ResourceState| place == ResourceState::Waiting { submission: played.submission };
    assert!(device.pool().ledger().iter().all(|row| waiting(row.place)));
    let meanwhile = lend(&device, 32 << 10);
    if !player.has_finished(played.submission) {
        assert!(!tags.iter().any(|tag| tag.id == meanwhile.tag().id));
    }
    assert!(player.wait(PATIENCE).unwrap());
    let after = lend(&device, 32 << 10);
    assert!(tags.iter().any(|tag| tag.id == after.tag().id && after.tag().generation == tag.generation + 1));
}

#[test]
fn changing_sizes_keep_memory_flat_and_forget_old_bind_groups() {
    let rules = PoolRules { budget_bytes: 32 << 10, keep_bytes: 16 << 10, keep_each: 10 };
    let device = room::open(&Device::choose().pool(rules).direct_mapping(false));
    let kernel = device.prepare(&invert()).unwrap();
    let mut player = Player::on(&device).build().unwrap();
    let mut recording = Recording::new();
    let start = device.driver_counters().unwrap();
    for round in 0..200_u64 {
        let bytes = 256 + 256 * (round / 4 % 20);
        let (from, to) = (lend(&device, bytes), lend(&device, bytes));
        run(&mut recording, &device, &kernel, &from, &to, 0);
        drop((from, to));
        player.play(&mut recording).unwrap();
        assert!(device.pool().statistics().held_bytes() <= 32 << 10);
    }
    assert!(player.wait(PATIENCE).unwrap());
    device.pool().trim_to(0);
    recording.zero(&lend(&device, 4));
    player.play(&mut recording).unwrap();
    assert!(player.wait(PATIENCE).unwrap());
    device.poll().unwrap();
    let end = device.driver_counters().unwrap();
    assert_eq!((end.bind_groups - start.bind_groups, player.bind_groups()), (0, 0), "{start:?} {end:?}");
    assert!(end.buffers - start.buffers <= 1 + 2, "the lent one, and staging: {start:?} {end:?}");
    assert_eq!(device.pool().leaks(), []);
}

#[test]
fn a_receiver_on_another_thread_gets_every_frame_in_order() {
    let device = device();
    let kernel = device.prepare(&invert()).unwrap();
    let mut player = Player::on(&device).build().unwrap();
    let readbacks = player.readbacks().clone();
    let receiver = std::thread::spawn(move || {
        let mut next = 1;
        while next <= 200 {
            if let Some(arrived) = readbacks.wait(PATIENCE).unwrap() {
                assert_eq!(arrived.ticket(), next);
                assert_eq!(arrived.bytes(0), inverted(&noise(1024, u32::try_from(next).unwrap())));
                next += 1;
            } else {
                std::thread::yield_now();
            }
        }
    });
    let mut recording = Recording::new();
    for seed in 1..=200 {
        let (from, to) = (lend(&device, 1024), lend(&device, 1024));
        recording.upload(&from, noise(1024, seed)).unwrap();
        run(&mut recording, &device, &kernel, &from, &to, 0);
        recording.download(&to).unwrap();
        drop((from, to));
        loop {
            match player.play(&mut recording) {
                Ok(_) => break,
                Err(PlayError::NotTaken { .. }) => std::thread::yield_now(),
                Err(other) => panic!("{other}"),
            }
        }
    }
    receiver.join().unwrap();
    assert!(player.wait(PATIENCE).unwrap());
    assert_eq!(device.pool().leaks(), []);
}

#[test]
fn several_dispatches_share_one_pass_and_parameters_share_one_copy() {
    let device = device();
    let add = device.prepare(&room::add()).unwrap();
    let mut player = Player::on(&device).build().unwrap();
    let mut recording = Recording::new();
    let buffers: Vec<_> = (0..9).map(|_| device.lend(400, &owner()).unwrap()).collect();
    recording.upload(&buffers[0], vec![0; 400]).unwrap();
    for at in 0..8 {
        run(&mut recording, &device, &add, &buffers[at], &buffers[at + 1], 1 << at);
    }
    recording.download(&buffers[8]).unwrap();
    let before = device.counters();
    let arrived = room::bring(&mut player, &mut recording);
    assert_eq!(arrived, [255_u32.to_le_bytes().repeat(100)]);
    let used = since(&before, &device.counters());
    assert_eq!((used.dispatches, used.passes, used.submits, used.uploads), (8, 1, 1, 1));
}

#[test]
fn more_parameters_than_ever_before_still_fit() {
    let device = device();
    let add = device.prepare(&room::add()).unwrap();
    let mut player = Player::on(&device).build().unwrap();
    let mut recording = Recording::new();
    let (a, b) = (lend(&device, 64), lend(&device, 64));
    for round in [1, 500, 3, 2000] {
        recording.upload(&a, vec![0; 64]).unwrap();
        for at in 0..round {
            let (from, to) = if at % 2 == 0 { (&a, &b) } else { (&b, &a) };
            run(&mut recording, &device, &add, from, to, at);
        }
        recording.download(if round % 2 == 0 { &a } else { &b }).unwrap();
        let sum: u32 = (0..round).sum();
        assert_eq!(room::bring(&mut player, &mut recording), [sum.to_le_bytes().repeat(16)], "{round}");
    }
}
