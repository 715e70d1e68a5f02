//! The overhead of a pipeline on the GPU over a loop that only records, submits and reads back.
//!
//! The loop uses vramp-gpu directly, which itself is within a microsecond of a program that uses wgpu
//! (crates/gpu/benches/overhead.rs). Both alternate in this process: one dispatch and one readback of 64x64 pixels a
//! frame. CPU time of the whole process counts, driver included.
//!
//! `cargo bench --bench device`

#[expect(dead_code, reason = "each bench uses a part of it")]
mod measure;

use std::sync::Arc;
use std::time::Duration;

use vramp::Pipeline;
use vramp::gpu::{Device, Player, Recording, Timed};
use vramp::kernels::head::gradient;
use vramp::kernels::{FrameParams, Recipe};
use vramp::plan::{RunOptions, Size, Space};

use measure::{cpu_ms, median};

const SIZE: Size = Size { width: 64, height: 64 };
const FRAMES: u64 = 4_000;
const ROUNDS: usize = 7;
/// The allowed overhead per frame.
const LIMIT_US: f64 = 15.0;

fn main() {
    let device = Device::choose().open().unwrap_or_else(|error| panic!("needs an adapter: {error}"));
    println!("{}\n", device.adapter());
    let (mut by_hand, mut by_pipeline, mut extra) = (Vec::new(), Vec::new(), Vec::new());
    let (mut sampled, mut each) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (hand, pipeline) = (loop_us(&device, Timed::Never), pipeline_us(&device));
        by_hand.push(hand);
        by_pipeline.push(pipeline);
        extra.push(pipeline - hand);
        sampled.push(loop_us(&device, Timed::Sampled) / hand);
        each.push(loop_us(&device, Timed::Each) / hand);
    }
    let extra = median(&extra);
    let verdict = if extra <= LIMIT_US { "met" } else { "MISSED" };
    println!("one dispatch and one readback of {SIZE}, us of CPU time a frame");
    println!("  by hand   {:>8.1}", median(&by_hand));
    println!(
        "  by hand, a sample of submissions timed: {:.3} times that; each timed: {:.3} times",
        median(&sampled),
        median(&each)
    );
    println!("  pipeline  {:>8.1}", median(&by_pipeline));
    println!("  extra     {extra:>8.1}   at most {LIMIT_US} {verdict}");
}

fn loop_us(device: &Device, timed: Timed) -> f64 {
    let owner: Arc<str> = "by hand".into();
    let recipe = Recipe::of(&gradient::GRADIENT);
    let layout = recipe.layout();
    let kernel = device.prepare(&recipe.shaders("by hand")[0]).expect("it compiles");
    let mut player = Player::on(device).frames_in_flight(2).timed(timed).build().expect("a player");
    let (mut recording, mut params, mut sum) = (Recording::new(), FrameParams::new(), 0_u64);
    let (mut bytes, mut told) = (Vec::new(), 0);
    let mut take = |player: &Player, wait: bool| {
        let patience = if wait { Duration::from_secs(10) } else { Duration::ZERO };
        while let Some(arrived) = player.readbacks().wait(patience).expect("the device lives") {
            sum += u64::from(arrived.bytes(0)[2]);
        }
    };
    let start = cpu_ms();
    for frame in 0..FRAMES {
        params.begin(&layout, SIZE, SIZE, frame);
        params.set(layout.head, &gradient::pack(frame), &[]);
        bytes.clear();
        bytes.extend(params.words().iter().flat_map(|word| word.to_le_bytes()));
        let made = device.lend(SIZE.pixels() * 4, &owner).expect("memory");
        let grid = kernel.cover(SIZE.pixels(), device.limits());
        recording.dispatch(&kernel, &[&made], &bytes, grid).expect("it is described right");
        recording.download(&made).expect("it is there");
        if player.readbacks().pending() == player.readbacks().slots() {
            take(&player, true);
        }
        player.play(&mut recording).expect("the device plays it");
        player.tell_times(&mut |time| told += time.end_ns - time.begin_ns);
        drop(made);
    }
    take(&player, true);
    let took = (cpu_ms() - start) * 1e3;
    assert!(sum > 0, "the downloaded frames were read");
    assert_eq!(told > 0, timed != Timed::Never);
    took / FRAMES as f64
}

fn pipeline_us(device: &Device) -> f64 {
    let options = RunOptions::new().place("pattern0", Space::Gpu).place("null0", Space::Cpu).frames(FRAMES);
    let builder = Pipeline::parse(format!("pattern kind=gradient size={SIZE} ! null")).options(options).device(device);
    let mut pipeline = builder.build().unwrap_or_else(|error| panic!("{error}"));
    let start = cpu_ms();
    let outcome = pipeline.outcome().unwrap_or_else(|error| panic!("{error}"));
    let took = (cpu_ms() - start) * 1e3;
    let report = outcome.into_result().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((report.counters.dispatches, report.counters.downloads), (FRAMES, FRAMES));
    took / FRAMES as f64
}
