//! The gain of staying on the device: three steps over a frame, once without leaving it and once through the host
//! between the steps, as in programs whose steps do not share memory.
//!
//! The steps are an op, a user's shader, and an op. The frame is on the device before; the result is waited for but not
//! read. Both variants alternate, and the best round counts. On a software driver the way through the host is two
//! copies in the same memory; over a bus it costs more.
//!
//! `cargo bench -p vramp-tensor --bench whole`

#![allow(missing_docs, reason = "a program has no readers of its documentation")]

use std::time::Instant;

use vramp_gpu::Device;
use vramp_tensor::{CompiledShader, Context, DType, ShaderError, Tensor};

const ROUNDS: usize = 15;
const SHAPE: [usize; 3] = [720, 1280, 4];

const STEP: &str = "
@group(0) @binding(0) var<storage, read> frame: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> mixed: array<vec4<f32>>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&frame) { mixed[id.x] = frame[id.x].bgra * 0.5; }
}";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::choose().open()?;
    let context = Context::on(&device)?;
    let step = context.shader("step", STEP, &[("frame", DType::F32)], &[("mixed", DType::F32)])?;
    let values: Vec<f32> = (0..SHAPE.iter().product::<usize>()).map(|at| (at % 256) as f32 / 255.0).collect();
    let frame = context.tensor(&values, &SHAPE)?;
    frame.settle()?;
    let (mut whole_ms, mut broken_ms) = (f64::MAX, f64::MAX);
    let mut spent = (0, 0);
    for _ in 0..ROUNDS {
        let (before, start) = (context.transfers(), Instant::now());
        drop(run(&context, &step, &frame, Ok)?);
        whole_ms = whole_ms.min(start.elapsed().as_secs_f64() * 1e3);
        let (between, start) = (context.transfers(), Instant::now());
        drop(run(&context, &step, &frame, |tensor| Ok(context.tensor(&tensor.read::<f32>()?, &SHAPE)?))?);
        broken_ms = broken_ms.min(start.elapsed().as_secs_f64() * 1e3);
        let reads =
            |after: vramp_tensor::Transfers, before: vramp_tensor::Transfers| after.host_reads - before.host_reads;
        spent = (reads(between, before), reads(context.transfers(), between));
    }
    println!("{}: {SHAPE:?} of f32, best of {ROUNDS}", device.adapter().name);
    println!("whole  {whole_ms:7.2} ms, {} reads", spent.0);
    println!("broken {broken_ms:7.2} ms, {} reads: {:.2} times as long", spent.1, broken_ms / whole_ms);
    Ok(())
}

/// The three steps, with `between` applied between them.
fn run(
    context: &Context,
    step: &CompiledShader,
    frame: &Tensor,
    between: impl Fn(Tensor) -> Result<Tensor, ShaderError>,
) -> Result<Tensor, ShaderError> {
    let bright = between(frame.lazy().mul(1.5).clamp(0.0, 1.0).run()?)?;
    let mut mixed = step.run(&[("frame", &bright)], &[("mixed", &SHAPE)], &[], None)?;
    let mixed = between(mixed.remove(0).1)?;
    let made = mixed.add(0.25)?;
    context.finish()?;
    Ok(made)
}
