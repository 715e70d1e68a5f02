//! Shared by the tests on a device: opening one, a few shaders as data, and a frame's way through it.
//!
//! These tests fail on a machine without an adapter: a software driver is one package away.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use std::sync::Arc;
use std::time::Duration;

use vramp_gpu::{Buffer, Choice, Device, DeviceKernel, Player, Recording};
use vramp_plan::{Binding, Shader};

/// Long enough for any of these to end on a busy machine; only a hang waits this long.
pub const PATIENCE: Duration = Duration::from_secs(60);

#[track_caller]
pub fn open(choice: &Choice) -> Device {
    choice.open().unwrap_or_else(|error| panic!("these tests need an adapter: {error}"))
}

#[track_caller]
pub fn device() -> Device {
    open(&Device::choose())
}

pub fn owner() -> Arc<str> {
    "tester".into()
}

#[track_caller]
pub fn lend(device: &Device, bytes: u64) -> Buffer {
    device.lend(bytes, &owner()).unwrap()
}

const HEAD: &str = "
struct Params { pixels: u32, more: u32, unused_a: u32, unused_b: u32 }
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;
@group(0) @binding(2) var<uniform> params: Params;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = id.x + id.y * groups.x * 64u;
    if at >= params.pixels { return; }
";

fn shader(name: &str, body: &str) -> Shader {
    Shader {
        name: name.into(),
        wgsl: format!("{HEAD}{body}\n}}\n"),
        bindings: vec![Binding::Read, Binding::Write, Binding::Params { bytes: 16 }],
        per_workgroup: 64,
    }
}

/// Inverts the colours of packed rgba8 pixels and keeps alpha.
pub fn invert() -> Shader {
    shader("invert", "    result[at] = source[at] ^ 0x00ffffffu;")
}

/// Adds `more` to every word.
pub fn add() -> Shader {
    shader("add", "    result[at] = source[at] + params.more;")
}

/// Takes a while: `more` rounds per pixel, at most 60,000, since old Mesa ends loops at 65,535.
pub fn slow() -> Shader {
    shader(
        "slow",
        "    var word = source[at];
    for (var round = 0u; round < params.more; round++) { word = word * 1664525u + 1013904223u; }
    result[at] = word;",
    )
}

/// Inverts in place.
pub fn invert_in_place() -> Shader {
    let wgsl = "
struct Params { pixels: u32, more: u32, unused_a: u32, unused_b: u32 }
@group(0) @binding(0) var<storage, read_write> picture: array<u32>;
@group(0) @binding(1) var<uniform> params: Params;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = id.x + id.y * groups.x * 64u;
    if at >= params.pixels { return; }
    picture[at] ^= 0x00ffffffu;
}
";
    Shader {
        name: "invert_in_place".into(),
        wgsl: wgsl.into(),
        bindings: vec![Binding::Write, Binding::Params { bytes: 16 }],
        per_workgroup: 64,
    }
}

pub fn params(pixels: u64, more: u32) -> Vec<u8> {
    let words = [u32::try_from(pixels).unwrap(), more, 0, 0];
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// Records `kernel` over all whole words of `from`.
#[track_caller]
pub fn run(recording: &mut Recording, device: &Device, kernel: &DeviceKernel, from: &Buffer, to: &Buffer, more: u32) {
    let pixels = from.bytes().div_ceil(4);
    let grid = kernel.cover(pixels, device.limits());
    recording.dispatch(kernel, &[from, to], &params(pixels, more), grid).unwrap();
}

/// Plays a recording and returns the bytes of its downloads.
#[track_caller]
pub fn bring(player: &mut Player, recording: &mut Recording) -> Vec<Vec<u8>> {
    let played = player.play(recording).unwrap();
    let arrived = player.readbacks().wait(PATIENCE).unwrap().expect("a download is pending");
    assert_eq!(Some(arrived.ticket()), played.ticket);
    (0..arrived.len()).map(|at| arrived.bytes(at).to_vec()).collect()
}

/// Bytes that look like noise and are the same in every run.
pub fn noise(bytes: usize, seed: u32) -> Vec<u8> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let step = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()[1]
    };
    std::iter::repeat_with(step).take(bytes).collect()
}

pub fn inverted(bytes: &[u8]) -> Vec<u8> {
    bytes.iter().enumerate().map(|(at, byte)| if at % 4 == 3 { *byte } else { !byte }).collect()
}
