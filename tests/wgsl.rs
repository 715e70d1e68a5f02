//! Users' own shaders on a device: results match the shaders' formulas, settings reach the shaders, and shaders are
//! fused like any other function.
//!
//! Runs on any adapter and fails without one; Mesa's software driver is enough.

use vramp::harness::{Caught, Harness, Rig, Stream};
use vramp::plan::{Size, Space};

use crate::shared::{device, registry};

fn rig(text: &str, size: Size, fusion: bool) -> Rig {
    let harness = Harness::of(text, registry()).on(Space::Gpu).device(device()).fusion(fusion);
    harness.input("video", Stream::of(size)).build().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The frames that a part of a pipeline makes from these images, and the number of dispatches.
fn made(text: &str, size: Size, pictures: &[Vec<u8>], fusion: bool) -> (Vec<Caught>, u64) {
    let mut rig = rig(text, size, fusion);
    for picture in pictures {
        rig.push("video", picture).expect("a frame of that size");
        rig.step().unwrap_or_else(|error| panic!("{text}: {error}"));
    }
    let report = rig.finish().expect("it finishes");
    let frames = (0..pictures.len()).map(|_| rig.pull("video").expect("it waits")).collect();
    (frames, report.counters.dispatches / pictures.len() as u64)
}

fn one(text: &str, size: Size, picture: &[u8]) -> Vec<u8> {
    made(text, size, &[picture.to_vec()], true).0.remove(0).bytes
}

/// An image with every level in every channel, in a different order in each channel.
fn levels() -> (Size, Vec<u8>) {
    let level = |x: u32| [x as u8, 255 - x as u8, (x * 7) as u8, (x * 31 + 5) as u8];
    (Size { width: 256, height: 1 }, (0..256).flat_map(level).collect())
}

fn noise(size: Size, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut byte = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as u8
    };
    (0..4 * size.pixels()).map(|_| byte()).collect()
}

#[track_caller]
fn within_a_level(found: &[u8], expected: impl Iterator<Item = f64>) {
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let expected = (expected.clamp(0.0, 1.0) * 255.0 + 0.5).floor();
        assert!((f64::from(*found) - expected).abs() <= 1.0, "byte {at}: {found} instead of {expected}");
    }
}

#[test]
fn a_pixel_function_is_its_formula_within_a_level() {
    let (size, picture) = levels();
    let code = "fn pixel(c: vec4f) -> vec4f { return vec4f(sqrt(c.r), 1.5 * c.g - 0.25, sin(9.0 * c.b), c.a * c.a); }";
    let found = one(&format!("wgsl code=\"{code}\""), size, &picture);
    let formula = picture.iter().enumerate().map(|(at, level)| {
        let x = f64::from(*level) / 255.0;
        match at % 4 {
            0 => x.sqrt(),
            1 => 1.5 * x - 0.25,
            2 => (9.0 * x).sin(),
            _ => x * x,
        }
    });
    within_a_level(&found, formula);
}

#[test]
fn a_pixel_function_that_changes_nothing_changes_nothing() {
    let (size, picture) = levels();
    assert_eq!(one("wgsl code=\"fn pixel(c: vec4f) -> vec4f { return c; }\"", size, &picture), picture);
}

/// A shader whose names clash with each other, with names of vramp and with names of WGSL.
const CLASHING: &str = "\
struct Settings { word: f32, x: vec2f }
alias output = vec4f;
const params = 0.5;
var<private> int: i32 = 3;
fn main(c: output, load: f32) -> output { return c * load + output(0.0, 0.0, params * 0.1, 0.0); }
fn mix(a: f32) -> f32 { int += 1; return a + 0.001 * f32(int) * params; }
fn pixel(color: vec4f, settings: Settings) -> vec4f {
    let x = settings.x.x + settings.x.y;
    return main(color, settings.word) + vec4f(mix(x), 0.0, 0.0, 0.0);
}
";

#[test]
fn two_shaders_with_the_same_names_are_fused_with_built_in_functions_into_one_dispatch() {
    let size = Size { width: 33, height: 7 };
    let pictures: Vec<_> = (0..3).map(|seed| noise(size, seed)).collect();
    let own = format!("wgsl code=\"{CLASHING}\"");
    let text = format!("{own} word=0.75 ! invert ! {own} word=1.25 x=0.1,0.05 ! grayscale ! {own} word=1");
    let (fused, dispatches) = made(&text, size, &pictures, true);
    assert_eq!(dispatches, 1);
    let (unfused, dispatches) = made(&text, size, &pictures, false);
    assert_eq!(dispatches, 5);
    assert!(fused.iter().zip(&unfused).all(|(one, other)| one.bytes == other.bytes), "fusing changes no pixel");
    assert!(fused[0].bytes != pictures[0], "and they do something");
}

#[test]
fn a_shader_before_a_head_sees_the_source() {
    let size = Size { width: 16, height: 8 };
    let picture = noise(size, 5);
    let own = "wgsl code=\"fn pixel(c: vec4f, at: vec2u, f: Frame) -> vec4f {
        return vec4f(vec2f(f.size) / 255.0, vec2f(at) / 255.0); }\"";
    let text = format!("{own} ! resize size=8x4 filter=nearest");
    let fused = made(&text, size, std::slice::from_ref(&picture), true).0.remove(0);
    let unfused = made(&text, size, &[picture], false).0.remove(0);
    assert_eq!(fused.bytes, unfused.bytes);
    assert_eq!(fused.pixel(0, 0).expect("there are pixels")[..2], [16, 8]);
}

#[test]
fn settings_of_every_type_reach_a_pixel_function() {
    let (size, picture) = levels();
    let code = "struct Settings { f: f32, // = 0.25
        i: i32, // = -3
        u: u32,
        b: bool, // = true
        two: vec2f,
        three: vec3f, // = 0.1, 0.2, 0.3
        four: vec4f }
    fn pixel(c: vec4f, s: Settings) -> vec4f {
        let flag = select(0.0, 0.5, s.b);
        return vec4f(s.f + flag, f32(s.i + 10) / 100.0 + s.two.y, f32(s.u) / 10.0 + s.three.z, s.four.w); }";
    let levels = |words: &str| one(&format!("wgsl code=\"{code}\" {words}"), size, &picture)[..4].to_vec();
    let expected = |values: [f64; 4]| values.map(|value| (value * 255.0 + 0.5).floor() as u8).to_vec();
    assert_eq!(levels(""), expected([0.75, 0.07, 0.3, 0.0]));
    let given = "f=0.125 i=-9 u=4 b=false two=7,0.5 three=0,0,0.25 four=9,9,9,0.75";
    assert_eq!(levels(given), expected([0.125, 0.51, 0.65, 0.75]));
}

#[test]
fn a_frame_says_its_size_number_and_time() {
    let size = Size { width: 5, height: 3 };
    let code = "fn pixel(c: vec4f, at: vec2u, f: Frame) -> vec4f {
        return vec4f(f32(f.size.x * 10u + f.size.y), f32(f.number), f.time * 30.0, f32(at.y * f.size.x + at.x)) / 255.0; }";
    let pictures = vec![vec![0; 60]; 4];
    let (frames, _) = made(&format!("wgsl code=\"{code}\""), size, &pictures, true);
    for (number, frame) in (0..).zip(&frames) {
        for (at, pixel) in (0..).zip(frame.pixels()) {
            assert_eq!(*pixel, [53, number, number, at]);
        }
    }
}

const KERNEL: &str = "@group(0) @binding(1) var<storage, read> input: array<u32>;
@group(0) @binding(0) var<storage, read_write> output: array<u32>;
struct Known { number: u32, add: u32, size: vec2u, time: f32 }
@group(0) @binding(2) var<uniform> known: Known;
";

#[test]
fn a_whole_kernel_is_its_formula() {
    let size = Size { width: 37, height: 11 };
    let picture = noise(size, 3);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/shaders/box3.wgsl");
    let found = one(&format!("wgsl {path}"), size, &picture);
    let (width, height) = (size.width.cast_signed(), size.height.cast_signed());
    let at = |x: i32, y: i32, channel: i32| {
        let (x, y) = (x.clamp(0, width - 1), y.clamp(0, height - 1));
        f64::from(picture[(4 * (y * width + x) + channel) as usize]) / 255.0
    };
    let mean = |byte: i32| {
        let (x, y, channel) = (byte / 4 % width, byte / 4 / width, byte % 4);
        (-1..=1)
            .flat_map(|dy| (-1..=1).map(move |dx| (dx, dy)))
            .map(|(dx, dy)| at(x + dx, y + dy, channel))
            .sum::<f64>()
            / 9.0
    };
    within_a_level(&found, (0..4 * width * height).map(mean));
    let off = one(&format!("wgsl {path} strength=0"), size, &picture);
    assert_eq!(off, picture);
}

#[test]
fn a_kernel_is_given_its_frame_and_its_settings_and_may_bind_in_any_order() {
    let size = Size { width: 19, height: 5 };
    let pictures: Vec<_> = (0..3).map(|seed| noise(size, seed)).collect();
    for workgroup in ["64", "1", "4, 2", "16, 16"] {
        let code = format!(
            "{KERNEL}@compute @workgroup_size({workgroup}) fn main(@builtin(global_invocation_id) id: vec3u) {{
            if (any(id.xy >= known.size)) {{ return; }}
            let at = id.y * known.size.x + id.x;
            output[at] = input[at] + known.number + known.add + u32(known.time * 30.0 + 0.5); }}"
        );
        let (frames, dispatches) =
            made(&format!("invert ! wgsl code=\"{code}\" add=5 ! invert"), size, &pictures, true);
        assert_eq!(dispatches, 3, "a whole kernel is fused with nothing");
        for (number, (frame, picture)) in (0..).zip(frames.iter().zip(&pictures)) {
            let words = |bytes: &[u8]| -> Vec<u32> {
                bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word) ^ 0x00ff_ffff).collect()
            };
            let expected: Vec<u32> = words(picture).iter().map(|word| word.wrapping_add(2 * number + 5)).collect();
            assert_eq!(words(&frame.bytes), expected, "workgroup {workgroup}");
        }
    }
}

#[test]
fn what_a_kernel_leaves_out_is_transparent_and_what_it_writes_beyond_is_nowhere() {
    let size = Size { width: 8, height: 8 };
    let picture = noise(size, 9);
    let code = format!(
        "{KERNEL}@compute @workgroup_size(8, 8) fn main(@builtin(global_invocation_id) id: vec3u) {{
        if (id.x == 3u && id.y == 2u) {{ output[19] = known.add + input[0xffffffffu - known.add]; }}
        output[1000000000u + id.x] = 7u; }}"
    );
    let text = format!("wgsl code=\"{code}\" add=0");
    let first = one(&text, size, &picture);
    let written = |bytes: &[u8]| bytes.as_chunks::<4>().0.iter().filter(|pixel| **pixel != [0; 4]).count();
    // A read or a write beyond the end may hit any place inside the buffer, but none outside of it.
    assert!(written(&first) <= 2, "{first:?}");
    assert_eq!(one(&text, size, &picture), first);
}

#[test]
fn every_shader_that_ships_runs() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/shaders");
    let size = Size { width: 64, height: 48 };
    let picture = noise(size, 1);
    let mut count = 0;
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        let found = one(&format!("wgsl {}", path.display()), size, &picture);
        assert_ne!(found, picture, "{}", path.display());
        count += 1;
    }
    assert!(count >= 3);
}
