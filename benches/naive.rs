//! The same kernels in a naive program and in vramp: the gain from fusing, pooling and not waiting on the GPU.
//!
//! The naive program gives every handler its own dispatch, with fresh buffers, fresh bind groups, one submit and one
//! wait, like programs that call a GPU library once per operation. vramp runs the pipeline as usual. Both alternate in
//! this process on one device. CPU time of the whole process counts, including a software driver, because machines are
//! shared. It does not include waiting, so a hardware GPU gains more.
//!
//! `cargo bench --bench naive`

#[expect(dead_code, reason = "each bench uses a part of it")]
mod measure;

use std::sync::Arc;
use std::time::Duration;

use vramp::Pipeline;
use vramp::gpu::{Device, Player, Recording};
use vramp::kernels::head::{Head, ball, load_here::LOAD};
use vramp::kernels::pixel::{color, curve, glyphs, markers, matrix, table};
use vramp::kernels::{FrameParams, PixelFn, Recipe};
use vramp::plan::{Binding, Rate, RunOptions, Size, Space};

use measure::{cpu_ms, median};

/// The required speedup at 640x480.
const LIMIT: f64 = 4.0;
const ROUNDS: usize = 5;
const FRAMES: u64 = 100;

/// One handler: the head and functions of its kernel, and their parameters.
struct Step {
    head: &'static Head,
    head_words: Vec<u32>,
    functions: Vec<(&'static PixelFn, Vec<u32>, Vec<u32>)>,
}

fn main() {
    let device = Device::choose().open().unwrap_or_else(|error| panic!("needs an adapter: {error}"));
    println!("{}\n", device.adapter());
    println!("{:28} {:>11} {:>10} {:>8}", "", "naive ms", "vramp ms", "ratio");
    let color = "contrast 1.2 ! gamma 2.2 ! saturation 0.7 ! invert ! contrast 0.9 ! saturation 1.4";
    let cases = [
        (
            "demo",
            "pattern kind=ball size={} ! markers ! waveform ! fps ! null".to_owned(),
            demo as fn(Size, u64) -> Vec<Step>,
        ),
        ("six colour functions", format!("pattern kind=ball label=false size={{}} ! {color} ! null"), colors),
    ];
    for (width, height) in [(640, 480), (1920, 1080)] {
        let size = Size { width, height };
        for (name, text, steps) in &cases {
            let text = text.replace("{}", &size.to_string());
            let (mut naive_ms, mut vramp_ms) = (Vec::new(), Vec::new());
            for _ in 0..ROUNDS {
                naive_ms.push(naive(&device, size, *steps));
                vramp_ms.push(pipeline(&device, &text));
            }
            let (naive, vramp) = (median(&naive_ms), median(&vramp_ms));
            let verdict = match (width, naive / vramp >= LIMIT) {
                (640, true) => "met",
                (640, false) => "MISSED",
                _ => "",
            };
            println!("{:28} {naive:>11.2} {vramp:>10.2} {:>7.1}x  {verdict}", format!("{name} {size}"), naive / vramp);
        }
    }
}

/// CPU time of a frame in vramp.
fn pipeline(device: &Device, text: &str) -> f64 {
    let builder = Pipeline::parse(text).options(RunOptions::new().only(Space::Gpu).frames(FRAMES)).device(device);
    let mut pipeline = builder.build().unwrap_or_else(|error| panic!("{error}"));
    let start = cpu_ms();
    let outcome = pipeline.outcome();
    let report = outcome.unwrap_or_else(|e| panic!("{e}")).into_result().unwrap_or_else(|e| panic!("{e}"));
    assert!(report.counters.dispatches >= FRAMES && report.backend != "cpu");
    (cpu_ms() - start) / FRAMES as f64
}

/// CPU time of a frame, handler by handler.
fn naive(device: &Device, size: Size, steps: fn(Size, u64) -> Vec<Step>) -> f64 {
    let owner: Arc<str> = "naive".into();
    let start = cpu_ms();
    for frame in 0..FRAMES {
        let mut source = None;
        for step in steps(size, frame) {
            let mut recipe = Recipe::of(step.head);
            recipe.after.extend(step.functions.iter().map(|(function, ..)| function.into()));
            let layout = recipe.layout();
            let mut params = FrameParams::new();
            params.begin(&layout, size, size, frame);
            params.set(layout.head, &step.head_words, &[]);
            for ((_, words, small), part) in step.functions.iter().zip(&layout.after) {
                params.set(*part, words, small);
            }
            let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
            // Nothing is reused: lent buffers are released, and a new player has no bind groups.
            device.pool().trim_to(0);
            let mut player = Player::on(device).build().expect("a player");
            let mut recording = Recording::new();
            let shader = &recipe.shaders("naive")[0];
            let kernel = device.prepare(shader).expect("it compiles, once");
            let small = device.lend(params.small().len().max(4) as u64 * 4, &owner).expect("memory");
            if !params.small().is_empty() {
                recording.upload(&small, bytes(params.small())).expect("it fits");
            }
            let made = device.lend(size.pixels() * 4, &owner).expect("memory");
            let reads = shader.bindings.iter().filter(|binding| **binding == Binding::Read).count();
            let mut bound: Vec<_> = source.iter().filter(|_| step.head.source).collect();
            if bound.len() < reads {
                bound.push(&small);
            }
            bound.push(&made);
            let grid = kernel.cover(size.pixels(), device.limits());
            recording.dispatch(&kernel, &bound, &bytes(params.words()), grid).expect("it is described right");
            player.play(&mut recording).expect("the device plays it");
            assert!(player.wait(Duration::from_secs(30)).expect("the device lives"));
            source = Some(made);
        }
    }
    (cpu_ms() - start) / FRAMES as f64
}

/// The demo's four drawing handlers.
fn demo(size: Size, frame: u64) -> Vec<Step> {
    let rate = Rate::new(30, 1).expect("a rate");
    let middle = |x: u32| size.height.cast_signed() / 2 + (50.0 * (f64::from(x) * 0.02 + frame as f64).sin()) as i32;
    let rows: Vec<i32> = (0..size.width).map(middle).collect();
    let small = rows.iter().map(|y| y.cast_unsigned()).collect();
    let load = |functions| Step { head: &LOAD, head_words: vec![], functions };
    vec![
        Step {
            head: &ball::BALL,
            head_words: ball::pack(size, rate, frame).to_vec(),
            functions: vec![text(size, 20, size.height.cast_signed() - 50, 24, 10)],
        },
        load(vec![(&markers::MARKERS, markers::pack(30, frame as u8).to_vec(), vec![])]),
        load(vec![(&curve::CURVE, curve::pack([255, 255, 0, 255], &rows).to_vec(), small)]),
        load(vec![text(size, 20, 12, 36, 10), text(size, 20, 60, 76, 20)]),
    ]
}

/// A line of letters in the form that `text` passes to its kernel: coverage in a box.
fn text(size: Size, x: i32, y: i32, height: u16, letters: i32) -> (&'static PixelFn, Vec<u32>, Vec<u32>) {
    let atlas = vec![200; 20 * usize::from(height)];
    let line: Vec<_> = (0..letters).map(|i| glyphs::Glyph { x: x + i * 22, y, width: 18, height, at: 0 }).collect();
    let mut small = Vec::new();
    let words = glyphs::pack([255; 4], &atlas, &[line], size, &mut small).expect("inside the atlas");
    (&glyphs::GLYPHS, words.to_vec(), small)
}

fn colors(size: Size, frame: u64) -> Vec<Step> {
    let load = |functions| Step { head: &LOAD, head_words: vec![], functions };
    let lookup = |values: &_| load(vec![(&table::TABLE, table::pack(values).to_vec(), vec![])]);
    let product = |m: &_| load(vec![(&matrix::MATRIX, matrix::pack(m).expect("it fits").to_vec(), vec![])]);
    let rate = Rate::new(30, 1).expect("a rate");
    vec![
        Step { head: &ball::BALL, head_words: ball::pack(size, rate, frame).to_vec(), functions: vec![] },
        lookup(&color::contrast(1.2, 0.0)),
        lookup(&color::gamma(2.2)),
        product(&color::saturation(0.7)),
        lookup(&color::invert()),
        lookup(&color::contrast(0.9, 0.0)),
        product(&color::saturation(1.4)),
    ]
}
