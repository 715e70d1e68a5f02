//! Textures are created, filled, read, counted and dropped.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use crate::room::{bring, device, lend, noise};
use vramp_gpu::{Device, PlayError, Player, RecordError, Recording, TexelFormat, TextureError, TexturesHeld};

#[test]
fn what_goes_into_a_texture_comes_out_of_it_in_every_format() {
    let device = device();
    let mut player = Player::on(&device).build().unwrap();
    for format in TexelFormat::ALL {
        for (width, height) in [(1, 1), (5, 1), (5, 3), (64, 2), (65, 4)] {
            let texture = device.make_texture(format, width, height).unwrap();
            let (pitch, row) = (texture.pitch_bytes() as usize, texture.row_bytes() as usize);
            assert_eq!((pitch % 256, row), (0, (width * format.bytes()) as usize));
            let bytes = pitch * height as usize;
            // Some bit patterns are NaN as floats: copies keep them.
            let sent = noise(bytes, width + height);
            let (from, to) = (lend(&device, bytes as u64), lend(&device, bytes as u64));
            let mut recording = Recording::new();
            recording.upload(&from, sent.clone()).unwrap();
            recording.copy_to_texture(&from, 0, texture.pitch_bytes(), &texture, 0..height).unwrap();
            recording.copy_from_texture(&texture, 0..height, &to, 0, texture.pitch_bytes()).unwrap();
            recording.download(&to).unwrap();
            let got = bring(&mut player, &mut recording).remove(0);
            for y in 0..height as usize {
                assert_eq!(got[y * pitch..][..row], sent[y * pitch..][..row], "{texture}, row {y}");
            }
        }
    }
}

#[test]
fn textures_are_counted_until_their_last_handle_is_dropped() {
    let device = device();
    let before = device.counters();
    let texture = device.make_texture(TexelFormat::Rgba32Float, 3, 2).unwrap();
    let again = texture.clone();
    drop(texture);
    assert_eq!(device.textures_held(), TexturesHeld { count: 1, bytes: 96 });
    assert_eq!(device.counters().since(&before).gpu_allocs, 1);
    let adopted = device.adopt_texture(again.raw()).unwrap();
    assert_eq!(adopted.format(), TexelFormat::Rgba32Float);
    assert_eq!(device.textures_held().count, 1, "an adopted texture is not counted twice");
    drop(again);
    assert_eq!(device.textures_held(), TexturesHeld::default());
}

#[test]
fn sizes_that_no_texture_has_are_refused_with_numbers() {
    let device = device();
    let most = device.limits().texture_side;
    for (width, height) in [(0, 4), (4, 0), (most + 1, 1), (1, most + 1)] {
        let refused = device.make_texture(TexelFormat::Rgba8Unorm, width, height).unwrap_err();
        assert_eq!(refused, TextureError::Size { width, height, most });
    }
    assert_eq!(device.textures_held().count, 0);
}

#[test]
fn rows_without_gaps_are_copied_one_by_one_and_rows_that_are_not_named_stay() {
    let device = device();
    let mut player = Player::on(&device).build().unwrap();
    let texture = device.make_texture(TexelFormat::Rgba32Float, 5, 4).unwrap();
    let sent = noise(16 + 2 * 80, 1);
    let (from, to) = (lend(&device, sent.len() as u64), lend(&device, 4 * 80));
    let mut recording = Recording::new();
    recording.upload(&from, sent.clone()).unwrap();
    recording.copy_to_texture(&from, 16, 80, &texture, 1..3).unwrap();
    recording.copy_from_texture(&texture, 0..4, &to, 0, 80).unwrap();
    recording.download(&to).unwrap();
    let text = format!("{recording:?}");
    assert!(text.contains(" at 16 to rows 1..3 of a texture of 5 x 4 rgba32float, 80 bytes apart"), "{text}");
    let got = bring(&mut player, &mut recording).remove(0);
    assert_eq!(got, [vec![0; 80], sent[16..].to_vec(), vec![0; 80]].concat(), "a new texture is all zeros");
}

#[test]
fn rows_that_devices_cannot_copy_are_refused_and_not_recorded() {
    let device = device();
    let texture = device.make_texture(TexelFormat::Rgba32Float, 5, 3).unwrap();
    let buffer = lend(&device, 3 * 256);
    let mut recording = Recording::new();
    for (offset, pitch) in [(0, 64), (0, 88), (4, 256)] {
        let refused = recording.copy_to_texture(&buffer, offset, pitch, &texture, 0..3).unwrap_err();
        assert!(matches!(refused, RecordError::Pitch { row_bytes: 80, texel_bytes: 16, .. }), "{refused}");
    }
    let refused = recording.copy_from_texture(&texture, 0..3, &buffer, 256, 256).unwrap_err();
    assert!(refused.to_string().starts_with("a copy of texels of 592 bytes at 256 does not fit into"), "{refused}");
    for rows in [1..4, 2..2] {
        let refused = recording.copy_from_texture(&texture, rows.clone(), &buffer, 0, 256).unwrap_err();
        assert_eq!(refused, RecordError::Rows { rows, has: 3 });
    }
    assert!(recording.is_empty());
}

#[test]
fn a_texture_of_another_device_is_refused() {
    let (device, other): (Device, Device) = (self::device(), self::device());
    let texture = other.make_texture(TexelFormat::Rgba8Uint, 4, 1).unwrap();
    let buffer = lend(&device, 16);
    let mut recording = Recording::new();
    recording.copy_from_texture(&texture, 0..1, &buffer, 0, 16).unwrap();
    let refused = Player::on(&device).build().unwrap().play(&mut recording).unwrap_err();
    let named = PlayError::StrangeTexture { texture: "a texture of 4 x 1 rgba8uint".into() };
    assert_eq!(refused, named);
}
