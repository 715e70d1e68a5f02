//! Presenting draws the pixels that a buffer has: exactly at their own size, interpolated otherwise, flipped on request.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use vramp_gpu::{
    Background, Blit, Buffer, Device, Layer, Pixels, Player, PresentError, Presenter, Recording, Region, TexelFormat,
    Texture,
};
use vramp_plan::{DType, Size};

use crate::room::{bring, device, lend, noise};

fn size(width: u32, height: u32) -> Size {
    Size { width, height }
}

/// A buffer with these bytes.
fn filled(device: &Device, bytes: &[u8]) -> Buffer {
    let buffer = lend(device, bytes.len() as u64);
    let mut recording = Recording::new();
    recording.upload(&buffer, bytes.to_vec()).unwrap();
    Player::on(device).build().unwrap().play(&mut recording).unwrap();
    buffer
}

/// The texels of a texture, without the padding of rows.
fn texels(device: &Device, texture: &Texture) -> Vec<u8> {
    let (pitch, row, height) = (texture.pitch_bytes(), texture.row_bytes() as usize, texture.height());
    let to = lend(device, u64::from(pitch) * u64::from(height));
    let mut recording = Recording::new();
    recording.copy_from_texture(texture, 0..height, &to, 0, pitch).unwrap();
    recording.download(&to).unwrap();
    let rows = bring(&mut Player::on(device).build().unwrap(), &mut recording).remove(0);
    rows.chunks(pitch as usize).flat_map(|padded| padded[..row].to_vec()).collect()
}

fn rows_reversed(pixels: &[u8], row_bytes: usize) -> Vec<u8> {
    pixels.chunks(row_bytes).rev().flatten().copied().collect()
}

#[test]
fn a_picture_of_the_targets_size_arrives_to_the_bit_and_upside_down_on_request() {
    let device = device();
    let mut presenter = Presenter::on(&device).unwrap();
    for (width, height) in [(1, 1), (5, 3), (67, 33)] {
        let pixels = noise((width * height * 4) as usize, width);
        let buffer = filled(&device, &pixels);
        let picture = Pixels::rgba8(&buffer, size(width, height));
        let target = device.make_texture(TexelFormat::Rgba8Unorm, width, height).unwrap();
        let before = device.counters();
        presenter.present(&picture, target.raw(), Blit::default()).unwrap();
        let counted = device.counters().since(&before);
        assert_eq!((counted.presents, counted.submits, counted.downloads), (1, 0, 0), "nothing is read back");
        assert_eq!(texels(&device, &target), pixels, "{width}x{height}");
        presenter.present(&picture, target.raw(), Blit::FLIPPED).unwrap();
        assert_eq!(texels(&device, &target), rows_reversed(&pixels, width as usize * 4), "{width}x{height}");
        let bgra = device.make_texture(TexelFormat::Bgra8Unorm, width, height).unwrap();
        presenter.present(&picture, bgra.raw(), Blit::default()).unwrap();
        let swapped: Vec<u8> = pixels.chunks(4).flat_map(|p| [p[2], p[1], p[0], p[3]]).collect();
        assert_eq!(texels(&device, &bgra), swapped, "{width}x{height}");
    }
}

#[test]
fn every_kind_of_picture_shows_its_values() {
    let device = device();
    let mut presenter = Presenter::on(&device).unwrap();
    let (width, height) = (6, 4);
    let values = noise(width * height * 4, 3);
    for channels in [1, 3, 4] {
        let values = &values[..width * height * channels];
        let shown: Vec<u8> = values
            .chunks(channels)
            .flat_map(|pixel| match *pixel {
                [grey] => [grey, grey, grey, 255],
                [r, g, b] => [r, g, b, 255],
                [r, g, b, a] => [r, g, b, a],
                _ => unreachable!("1, 3 or 4 channels"),
            })
            .collect();
        let floats: Vec<f32> = values.iter().map(|value| f32::from(*value) / 255.0).collect();
        let bytes_of = |dtype: DType| -> Vec<u8> {
            match dtype {
                DType::U8 => values.to_vec(),
                // Two elements before the picture, to be skipped.
                DType::F32 => [9.0, 9.0].iter().chain(&floats).flat_map(|value: &f32| value.to_le_bytes()).collect(),
                _ => unreachable!("the test has these types"),
            }
        };
        for (dtype, first) in [(DType::U8, 0), (DType::F32, 2)] {
            let buffer = filled(&device, &bytes_of(dtype));
            let picture = Pixels {
                buffer: &buffer,
                size: size(width as u32, height as u32),
                channels: channels as u32,
                dtype,
                first,
            };
            let target = device.make_texture(TexelFormat::Rgba8Unorm, width as u32, height as u32).unwrap();
            presenter.present(&picture, target.raw(), Blit::default()).unwrap();
            assert_eq!(texels(&device, &target), shown, "{channels} channels of {dtype}");
        }
    }
    // Halves: 0, 0.25, 0.5 and 1.
    let halves: Vec<u8> = [0_u16, 0x3400, 0x3800, 0x3c00].iter().flat_map(|half| half.to_le_bytes()).collect();
    let buffer = filled(&device, &halves);
    let picture = Pixels { buffer: &buffer, size: size(4, 1), channels: 1, dtype: DType::F16, first: 0 };
    let target = device.make_texture(TexelFormat::R8Unorm, 4, 1).unwrap();
    presenter.present(&picture, target.raw(), Blit::default()).unwrap();
    assert_eq!(texels(&device, &target), [0, 64, 128, 255]);
}

/// Linear interpolation between pixel centres, in double precision.
fn scaled(pixels: &[u8], from: Size, to: Size) -> Vec<f64> {
    let mut scaled = Vec::new();
    let place = |at: u32, from: u32, to: u32| {
        let at = (f64::from(at) + 0.5) * f64::from(from) / f64::from(to) - 0.5;
        let clamp = |at: f64| at.clamp(0.0, f64::from(from - 1)) as usize;
        (clamp(at.floor()), clamp(at.floor() + 1.0), at - at.floor())
    };
    for y in 0..to.height {
        let (top, bottom, down) = place(y, from.height, to.height);
        for x in 0..to.width {
            let (left, right, across) = place(x, from.width, to.width);
            for channel in 0..4 {
                let value = |x: usize, y: usize| f64::from(pixels[4 * (y * from.width as usize + x) + channel]);
                let mix = |one: f64, two: f64, part: f64| one + (two - one) * part;
                let upper = mix(value(left, top), value(right, top), across);
                let lower = mix(value(left, bottom), value(right, bottom), across);
                scaled.push(mix(upper, lower, down));
            }
        }
    }
    scaled
}

#[test]
fn other_sizes_are_interpolated_linearly() {
    let device = device();
    let mut presenter = Presenter::on(&device).unwrap();
    let from = size(17, 11);
    let pixels = noise((from.width * from.height * 4) as usize, 5);
    let buffer = filled(&device, &pixels);
    for to in [size(34, 22), size(51, 8), size(9, 30), size(1, 1)] {
        let target = device.make_texture(TexelFormat::Rgba8Unorm, to.width, to.height).unwrap();
        presenter.present(&Pixels::rgba8(&buffer, from), target.raw(), Blit::default()).unwrap();
        let worst = texels(&device, &target)
            .iter()
            .zip(scaled(&pixels, from, to))
            .map(|(got, wanted)| (f64::from(*got) - wanted).abs())
            .fold(0.0, f64::max);
        assert!(worst <= 0.51, "{from} to {to}: {worst} levels from exact");
    }
}

#[test]
fn layers_fill_their_regions_and_the_rest_is_kept_or_black() {
    let device = device();
    let mut presenter = Presenter::on(&device).unwrap();
    let red = filled(&device, &[255, 0, 0, 255].repeat(4));
    let half_green = filled(&device, &[0, 255, 0, 128]);
    let target = device.make_texture(TexelFormat::Rgba8Unorm, 4, 3).unwrap();
    let layers = [
        Layer {
            picture: Pixels::rgba8(&red, size(2, 2)),
            how: Blit { into: Some(Region { x: 1, y: 1, size: size(2, 2) }), ..Blit::default() },
        },
        Layer {
            picture: Pixels::rgba8(&half_green, size(1, 1)),
            how: Blit { into: Some(Region { x: 2, y: 2, size: size(1, 1) }), over: true, ..Blit::default() },
        },
    ];
    presenter.draw(&layers, Background::Black, target.raw()).unwrap();
    let (black, red_pixel) = ([0, 0, 0, 255], [255, 0, 0, 255]);
    let got = texels(&device, &target);
    let pixel = |x: usize, y: usize| <[u8; 4]>::try_from(&got[4 * (4 * y + x)..][..4]).unwrap();
    for (x, y) in [(0, 0), (3, 0), (0, 1), (3, 2)] {
        assert_eq!(pixel(x, y), black);
    }
    assert_eq!([pixel(1, 1), pixel(2, 1), pixel(1, 2)], [red_pixel; 3]);
    let mixed = pixel(2, 2);
    assert!((127..=128).contains(&mixed[0]) && (127..=129).contains(&mixed[1]) && mixed[2] == 0, "{mixed:?}");
    // The default keeps what is outside of the region.
    let corner = Blit { into: Some(Region { x: 0, y: 0, size: size(1, 1) }), ..Blit::default() };
    presenter.present(&Pixels::rgba8(&half_green, size(1, 1)), target.raw(), corner).unwrap();
    let now = texels(&device, &target);
    assert_eq!((&now[..4], &now[4..]), (&[0, 255, 0, 128][..], &got[4..]));
}

#[test]
fn what_cannot_be_shown_is_refused_in_words() {
    let (device, other) = (device(), device());
    let mut presenter = Presenter::on(&device).unwrap();
    let buffer = filled(&device, &[7; 64]);
    let target = device.make_texture(TexelFormat::Rgba8Unorm, 4, 4).unwrap();
    let mut refused = |picture: Pixels<'_>, how: Blit| presenter.present(&picture, target.raw(), how).unwrap_err();
    let picture = Pixels::rgba8(&buffer, size(4, 4));
    assert_eq!(
        refused(Pixels { channels: 2, ..picture }, Blit::default()).to_string(),
        "a picture of 2 channels of u8 cannot be shown; expected 1, 3 or 4 channels of u8, f16 or f32"
    );
    assert!(matches!(refused(Pixels { dtype: DType::I32, ..picture }, Blit::default()), PresentError::Kind { .. }));
    assert_eq!(
        refused(Pixels::rgba8(&buffer, size(5, 4)), Blit::default()).to_string(),
        "a picture of 5x4 with 4 channels takes 80 bytes, but its memory has 64"
    );
    let outside = Blit { into: Some(Region { x: 3, y: 0, size: size(2, 4) }), ..Blit::default() };
    assert_eq!(refused(picture, outside).to_string(), "the region 2x4 at 3,0 is not inside the target of 4x4");
    let foreign = filled(&other, &[7; 64]);
    assert_eq!(refused(Pixels::rgba8(&foreign, size(4, 4)), Blit::default()), PresentError::OtherDevice);
    let integers = device.make_texture(TexelFormat::Rgba8Uint, 4, 4).unwrap();
    let error = presenter.present(&picture, integers.raw(), Blit::default()).unwrap_err().to_string();
    assert!(error.starts_with("the target has the format Rgba8Uint; create it with"), "{error}");
    other.destroy();
    assert!(matches!(Presenter::on(&other), Err(PresentError::Lost(_))));
}

#[test]
fn showing_the_same_buffers_again_makes_nothing_new() {
    let device = device();
    let mut presenter = Presenter::on(&device).unwrap();
    let buffers: Vec<Buffer> = (0..3).map(|seed| filled(&device, &noise(256, seed))).collect();
    let target = device.make_texture(TexelFormat::Rgba8Unorm, 8, 8).unwrap();
    let show = |presenter: &mut Presenter| {
        for buffer in &buffers {
            presenter.present(&Pixels::rgba8(buffer, size(8, 8)), target.raw(), Blit::default()).unwrap();
        }
    };
    show(&mut presenter);
    let before = device.counters();
    (0..50).for_each(|_| show(&mut presenter));
    let counted = device.counters().since(&before);
    assert_eq!((counted.presents, counted.gpu_allocs, counted.bind_groups, counted.compiles), (150, 0, 0, 0));
    // Another presenter of the device compiles nothing.
    show(&mut Presenter::on(&device).unwrap());
    assert_eq!(device.counters().since(&before).compiles, 0);
}
