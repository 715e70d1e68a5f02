//! Kernels see exactly the bytes that are bound: a whole buffer, or a part of it.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use crate::room::{bring, device, lend};
use vramp_gpu::{Device, DeviceKernel, PlayError, Player, RecordError, Recording};
use vramp_plan::{Binding, Shader};

/// Writes the number of words that it sees, and their sum. Entry points may have any name.
fn tell(device: &Device) -> DeviceKernel {
    let wgsl = "
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> seen: array<u32>;
@compute @workgroup_size(1)
fn tell_all() {
    seen[0] = arrayLength(&source);
    seen[1] = 0u;
    for (var at = 0u; at < arrayLength(&source); at++) { seen[1] += source[at]; }
    seen[2] = arrayLength(&seen);
}
";
    let bindings = vec![Binding::Read, Binding::Write];
    device.prepare(&Shader { name: "tell".into(), wgsl: wgsl.into(), bindings, per_workgroup: 1 }).unwrap()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn array_length_is_the_requested_one_and_not_what_the_pool_made() {
    let device = device();
    let (kernel, mut player) = (tell(&device), Player::on(&device).build().unwrap());
    let seen = lend(&device, 12);
    for bytes in [4_u64, 12, 13, 252, 256, 260, 1000] {
        let source = lend(&device, bytes);
        let mut recording = Recording::new();
        recording.upload(&source, vec![0; bytes as usize]).unwrap();
        recording.dispatch(&kernel, &[&source, &seen], &[], [1, 1, 1]).unwrap();
        recording.download(&seen).unwrap();
        let seen = words(&bring(&mut player, &mut recording)[0]);
        assert_eq!(seen, [u32::try_from(bytes.div_ceil(4)).unwrap(), 0, 3], "{bytes} bytes");
    }
}

#[test]
fn a_part_is_seen_from_its_start_to_its_end_and_its_bind_group_is_found_again() {
    let device = device();
    let (kernel, mut player) = (tell(&device), Player::on(&device).build().unwrap());
    let step = u64::from(device.limits().storage_alignment);
    let (source, seen) = (lend(&device, 3 * step), lend(&device, step + 12));
    let numbers: Vec<u8> = (0..3 * step as u32 / 4).flat_map(u32::to_le_bytes).collect();
    let mut recording = Recording::new();
    recording.upload(&source, numbers.clone()).unwrap();
    player.play(&mut recording).unwrap();
    let parts = [0..8, step..step + 12, step..3 * step, 2 * step..2 * step + 3];
    let mut groups = Vec::new();
    for round in 0..2 {
        for part in &parts {
            let parts = [(&source, part.clone()), (&seen, step..step + 12)];
            recording.dispatch_parts(&kernel, &parts, &[], [1, 1, 1]).unwrap();
            recording.download_part(&seen, step, 12).unwrap();
            let seen = words(&bring(&mut player, &mut recording)[0]);
            let shown = words(&numbers[part.start as usize..part.end.next_multiple_of(4) as usize]);
            assert_eq!(seen, [u32::try_from(shown.len()).unwrap(), shown.iter().sum(), 3], "{part:?}, round {round}");
        }
        groups.push(device.counters().bind_groups);
    }
    assert_eq!(groups[0], groups[1], "the second round creates none");
}

#[test]
fn parts_that_cannot_be_shown_are_refused_with_numbers() {
    let device = device();
    let (kernel, mut player) = (tell(&device), Player::on(&device).build().unwrap());
    let (source, seen) = (lend(&device, 64), lend(&device, 12));
    let mut recording = Recording::new();
    let beyond = recording.dispatch_parts(&kernel, &[(&source, 60..68), (&seen, 0..12)], &[], [1, 1, 1]).unwrap_err();
    assert!(beyond.to_string().starts_with("a part of 8 bytes at 60 does not fit into "), "{beyond}");
    let nothing = recording.dispatch_parts(&kernel, &[(&source, 4..4), (&seen, 0..12)], &[], [1, 1, 1]).unwrap_err();
    assert!(matches!(nothing, RecordError::Nothing { .. }), "{nothing}");
    recording.dispatch_parts(&kernel, &[(&source, 4..8), (&seen, 0..12)], &[], [1, 1, 1]).unwrap();
    let refused = player.play(&mut recording).unwrap_err();
    let alignment = u64::from(device.limits().storage_alignment);
    assert_eq!(refused, PlayError::Unaligned { kernel: "tell".into(), offset: 4, alignment });
    assert!(format!("{recording:?}").contains("[4..8]"), "{recording:?}");
}
