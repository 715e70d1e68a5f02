//! The workloads of `vramp bench tensor`, compared with other libraries: on one CPU thread `NumPy`, `PyTorch` and ONNX
//! Runtime, on the GPU TensorFlow.js's WebGPU backend through Dawn, on the same driver.
//!
//! `cargo bench --bench tensor [-- PYTHON [FOLDER [WORK...]]]`. PYTHON (default: `python3`) runs
//! `benches/peers/tensors.py`. FOLDER is where `npm install` has installed `benches/peers/tfjs/package.json`. Dawn
//! needs Mesa 25: run `scripts/lavapipe25.sh FOLDER`, then `source FOLDER/env.sh` before the bench, so that both use
//! it. Programs alternate. CPU time of the whole process counts, because machines are shared and a software driver
//! computes on the CPU.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use vramp::bench::{Effort, TENSOR_WORKLOADS, TensorWorkload};
use vramp::gpu::Device;
use vramp::tensor::Context;

const ROUNDS: usize = 3;
const EFFORT: Effort = Effort { runs: 3, run: Duration::from_millis(250) };

/// Required speedups on the CPU over the best of the others; fused workloads must be faster.
const WANTED: [(&str, f64); 4] =
    [("matmul_f32_512", 0.9), ("matmul_f32_1024", 0.9), ("softmax_1024x1024", 0.8), ("elementwise8_1024x1024", 1.0)];

fn main() {
    let mut words = std::env::args().skip(1).filter(|word| !word.starts_with('-'));
    let python = words.next().unwrap_or_else(|| "python3".to_owned());
    let tfjs = words.next();
    let only: Vec<String> = words.collect();
    let works: Vec<&TensorWorkload> =
        TENSOR_WORKLOADS.iter().filter(|work| only.is_empty() || only.iter().any(|name| name == work.name)).collect();

    println!("host, one thread, ms of CPU time a call, the best of {ROUNDS} rounds");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/tensors.py");
    let host = Context::builder().threads(1).on_host();
    compare(&host, &works, &WANTED, || lines(Command::new(&python).arg(script).args(&only)));

    let device = Device::choose().open().unwrap_or_else(|error| panic!("no device: {error}"));
    let context = Context::on(&device).unwrap_or_else(|error| panic!("{error}"));
    println!("\n{}, ms of CPU time a call, result read, the best of {ROUNDS} rounds", device.adapter().name);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/tfjs/works.mjs");
    compare(&context, &works, &[], || match &tfjs {
        Some(folder) => lines(Command::new("node").arg(script).args(&only).current_dir(folder)),
        None => Vec::new(),
    });
}

fn compare(
    context: &Context,
    works: &[&TensorWorkload],
    wanted: &[(&str, f64)],
    others: impl Fn() -> Vec<(String, String, f64)>,
) {
    let mut own: BTreeMap<&str, f64> = BTreeMap::new();
    let mut theirs: BTreeMap<(String, String), f64> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for work in works {
            let measured = work.measure(context, EFFORT).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(measured.backend == "cpu", context.device().is_none(), "{} ran elsewhere", work.name);
            let best = own.entry(work.name).or_insert(f64::MAX);
            *best = best.min(measured.cpu_ms.unwrap_or(measured.ms_median));
        }
        for (peer, work, ms) in others() {
            let best = theirs.entry((work, peer)).or_insert(f64::MAX);
            *best = best.min(ms);
        }
    }
    if theirs.is_empty() {
        println!("no library to compare with: see the head of benches/tensor.rs");
    }
    println!("{:28} {:>9}  {:24} {:>9} {:>7}  wanted", "", "vramp", "the best of the others", "", "ratio");
    for work in works {
        let ours = own[work.name];
        let peers = theirs.iter().filter(|((name, _), _)| name == work.name);
        match peers.min_by(|one, other| one.1.total_cmp(other.1)) {
            Some(((_, peer), ms)) => {
                let wish = wanted.iter().find(|(name, _)| *name == work.name).map_or(1.0, |(_, wish)| *wish);
                let verdict = if ms / ours >= wish { "met" } else { "MISSED" };
                println!("{:28} {ours:>9.3}  {peer:24} {ms:>9.3} {:>6.2}x  {wish}x {verdict}", work.name, ms / ours);
            }
            None => println!("{:28} {ours:>9.3}", work.name),
        }
    }
}

/// The lines of another program: library, workload, time. Empty if it cannot run.
fn lines(command: &mut Command) -> Vec<(String, String, f64)> {
    let Ok(output) = command.output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let one = |line: &str| {
        let mut words = line.split_whitespace();
        Some((words.next()?.to_owned(), words.next()?.to_owned(), words.next()?.parse().ok()?))
    };
    text.lines().filter_map(one).collect()
}
