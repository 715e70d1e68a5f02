//! Runs kernels in tests: opens one device for all tests, uploads inputs and downloads results.
//!
//! Every bit of the output memory is set to 1 before a kernel runs, so that values that the kernel does not write show
//! up.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use vramp_gpu::{Device, Player, Recording};
use vramp_plan::Shader;

use super::text::Launch;

pub(super) const MOST: u32 = 65_535;

struct TestDevice {
    device: Device,
    player: Mutex<Player>,
}

fn trial() -> &'static TestDevice {
    static TRIAL: OnceLock<TestDevice> = OnceLock::new();
    TRIAL.get_or_init(|| {
        let device = Device::choose().open().unwrap_or_else(|error| panic!("these tests need an adapter: {error}"));
        let player = Mutex::new(Player::on(&device).build().expect("a trial runs"));
        TestDevice { device, player }
    })
}

/// The output of a kernel with these inputs: `out_bytes` bytes.
#[track_caller]
pub(super) fn run(shader: &Shader, launch: &Launch, inputs: &[&[u8]], out_bytes: usize) -> Vec<u8> {
    run_onto(shader, launch, inputs, &vec![0xff; out_bytes])
}

/// Like [`run`], but the output memory first holds the bytes of `onto`.
#[track_caller]
pub(super) fn run_onto(shader: &Shader, launch: &Launch, inputs: &[&[u8]], onto: &[u8]) -> Vec<u8> {
    let TestDevice { device, player } = trial();
    let owner: Arc<str> = "trial".into();
    let kernel = device.prepare(shader).unwrap_or_else(|error| panic!("{error}\n{}", shader.wgsl));
    let mut recording = Recording::new();
    let mut buffers = Vec::new();
    for bytes in inputs.iter().copied().chain([onto]) {
        let mut bytes = bytes.to_vec();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        let buffer = device.lend(bytes.len() as u64, &owner).expect("a trial runs");
        recording.upload(&buffer, bytes).expect("a trial runs");
        buffers.push(buffer);
    }
    let bound: Vec<_> = buffers.iter().collect();
    recording.dispatch(&kernel, &bound, launch.params(), launch.grid).expect("a trial runs");
    recording.download_part(bound[bound.len() - 1], 0, onto.len() as u64).expect("a trial runs");
    let mut player = player.lock().unwrap_or_else(PoisonError::into_inner);
    player.play(&mut recording).expect("a trial runs");
    let arrived =
        player.readbacks().wait(Duration::from_secs(60)).expect("a trial runs").expect("the download was requested");
    arrived.bytes(0).to_vec()
}

/// Like [`run`], with the output as f32.
#[track_caller]
pub(super) fn run_f32(shader: &Shader, launch: &Launch, inputs: &[&[u8]], count: usize) -> Vec<f32> {
    bytemuck::pod_collect_to_vec(&run(shader, launch, inputs, count * 4))
}

pub(super) fn bytes_of<T: bytemuck::Pod>(values: &[T]) -> &[u8] {
    bytemuck::cast_slice(values)
}

/// Deterministic noise between -1 and 1.
pub(super) fn noise(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let step = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        (state >> 8) as f32 / 8_388_608.0 - 1.0
    };
    std::iter::repeat_with(step).take(count).collect()
}
