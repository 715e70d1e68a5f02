//! Users' own shaders compute the right numbers on a device.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use std::sync::Arc;
use std::time::Duration;

use crate::guide::{COSINE, DOT};
use vramp_gpu::{Buffer, Device, Player, Recording};
use vramp_tensor::{DType, OwnShader, ParamValue};

const PATIENCE: Duration = Duration::from_secs(60);

const AB: [(&str, DType); 2] = [("a", DType::F32), ("b", DType::F32)];
const RESULT: [(&str, DType); 1] = [("result", DType::F32)];

struct Bench {
    device: Device,
    player: Player,
}

impl Bench {
    fn open() -> Bench {
        let device = Device::choose().open().unwrap_or_else(|error| panic!("these tests need an adapter: {error}"));
        let player = Player::on(&device).build().unwrap();
        Bench { device, player }
    }

    fn lend(&self, bytes: usize) -> Buffer {
        let owner: Arc<str> = "tester".into();
        self.device.lend(bytes as u64, &owner).unwrap()
    }

    /// Runs a shader on bytes and returns the bytes of its outputs, which have the given lengths.
    fn run(
        &mut self,
        shader: &OwnShader,
        inputs: &[&[u8]],
        outputs: &[usize],
        params: &[(&str, ParamValue)],
        grid: [u32; 3],
    ) -> Vec<Vec<u8>> {
        shader.fits(self.device.limits()).unwrap();
        let kernel = self.device.prepare(shader.shader()).unwrap();
        let mut recording = Recording::new();
        let mut buffers = Vec::new();
        for bytes in inputs {
            let buffer = self.lend(bytes.len());
            recording.upload(&buffer, bytes.to_vec()).unwrap();
            buffers.push(buffer);
        }
        buffers.extend(outputs.iter().map(|bytes| self.lend(*bytes)));
        let bound: Vec<&Buffer> = buffers.iter().collect();
        recording.dispatch(&kernel, &bound, &shader.params(params).unwrap(), grid).unwrap();
        for buffer in &buffers[inputs.len()..] {
            recording.download(buffer).unwrap();
        }
        self.player.play(&mut recording).unwrap();
        let arrived = self.player.readbacks().wait(PATIENCE).unwrap().expect("it was requested");
        (0..arrived.len()).map(|at| arrived.bytes(at).to_vec()).collect()
    }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|word| f32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn the_dot_product_of_a_guide_is_right_whatever_memory_follows_the_tensor() {
    let mut bench = Bench::open();
    let dot = OwnShader::read("dot", DOT, &AB, &RESULT).unwrap();
    // Old content of the memory must not be visible: a longer input goes first, and its buffers are lent again.
    for count in [60, 3, 5] {
        let a: Vec<f32> = (1..=count).map(|value| value as f32).collect();
        let answer = bench.run(&dot, &[&bytes(&a), &bytes(&a)], &[4], &[], [1, 1, 1]);
        assert_eq!(floats(&answer[0]), [a.iter().map(|value| value * value).sum::<f32>()], "{count} values");
    }
}

#[test]
fn the_cosine_similarity_of_a_guide_is_right() {
    let mut bench = Bench::open();
    let cosine = OwnShader::read("cosine", COSINE, &AB, &RESULT).unwrap();
    let table: [(&[f32], &[f32], f32); 4] = [
        (&[1.0, 0.0], &[0.0, 1.0], 0.0),
        (&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0], 1.0),
        (&[1.0, 1.0], &[-1.0, -1.0], -1.0),
        (&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0], 0.974_631_8),
    ];
    for (a, b, wants) in table {
        let answer = bench.run(&cosine, &[&bytes(a), &bytes(b)], &[4], &[], [1, 1, 1]);
        // Square roots may differ by a few units in the last place.
        assert!((floats(&answer[0])[0] - wants).abs() < 1e-5, "{a:?} and {b:?}: {answer:?}");
    }
}

#[test]
fn two_outputs_an_unused_input_and_parameters_are_bound_in_the_declared_order() {
    let text = "
struct Params { scale: f32, offset: vec2<f32>, steps: i32 }
@group(0) @binding(0) var<storage, read> zebra: array<f32>;
@group(0) @binding(1) var<storage, read> apple: array<f32>;
@group(0) @binding(2) var<storage, read_write> second: array<f32>;
@group(0) @binding(3) var<storage, read_write> first: array<i32>;
@group(0) @binding(4) var<uniform> params: Params;
@compute @workgroup_size(8)
fn both(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= arrayLength(&zebra) { return; }
    second[id.x] = zebra[id.x] * params.scale + params.offset.y;
    first[id.x] = i32(id.x) * params.steps;
}";
    let inputs = [("zebra", DType::F32), ("apple", DType::F32)];
    let shader = OwnShader::read("both", text, &inputs, &[("second", DType::F32), ("first", DType::I32)]).unwrap();
    let mut bench = Bench::open();
    let zebra: Vec<f32> = (0..11).map(|value| value as f32).collect();
    let params = [("steps", ParamValue::from(-3_i32)), ("offset", [9.0, 0.5].into()), ("scale", 2.0.into())];
    let grid = shader.grid_over(zebra.len(), bench.device.limits());
    let answer = bench.run(&shader, &[&bytes(&zebra), &bytes(&[7.0])], &[44, 44], &params, grid);
    assert_eq!(floats(&answer[0]), zebra.iter().map(|value| value * 2.0 + 0.5).collect::<Vec<_>>());
    let first: Vec<i32> = answer[1].chunks_exact(4).map(|word| i32::from_le_bytes(word.try_into().unwrap())).collect();
    assert_eq!(first, (0..11).map(|at| at * -3).collect::<Vec<_>>());
}

#[test]
fn bytes_come_four_to_a_word_with_zeros_behind_the_last() {
    let text = "
@group(0) @binding(0) var<storage, read> pixels: array<u32>;
@group(0) @binding(1) var<storage, read_write> sums: array<u32>;
@compute @workgroup_size(1)
fn main() {
    sums[1] = arrayLength(&pixels);
    var sum = 0u;
    for (var at = 0u; at < arrayLength(&pixels); at++) {
        let four = unpack4x8unorm(pixels[at]) * 255.0;
        sum += u32(four.x + four.y + four.z + four.w + 0.5);
    }
    sums[0] = sum;
}";
    let shader = OwnShader::read("sum", text, &[("pixels", DType::U8)], &[("sums", DType::U32)]).unwrap();
    let answer = Bench::open().run(&shader, &[&[1, 2, 3, 4, 5]], &[8], &[], [1, 1, 1]);
    assert_eq!(answer[0], [15, 0, 0, 0, 2, 0, 0, 0]);
}

#[test]
fn more_values_than_one_row_of_workgroups_covers_are_all_reached() {
    let text = "
@group(0) @binding(0) var<storage, read> source: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;
@compute @workgroup_size(1)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let at = id.x + id.y * groups.x;
    if at < arrayLength(&source) { result[at] = source[at] + 1u; }
}";
    let shader = OwnShader::read("next", text, &[("source", DType::U32)], &[("result", DType::U32)]).unwrap();
    let mut bench = Bench::open();
    let count = bench.device.limits().workgroups_per_dimension as usize + 5;
    let numbers: Vec<u8> = (0..count as u32).flat_map(u32::to_le_bytes).collect();
    let grid = shader.grid_over(count, bench.device.limits());
    assert_eq!(grid[1], 2);
    let answer = bench.run(&shader, &[&numbers], &[numbers.len()], &[], grid);
    let wants: Vec<u8> = (1..=count as u32).flat_map(u32::to_le_bytes).collect();
    assert!(answer[0] == wants, "some were not reached");
}
