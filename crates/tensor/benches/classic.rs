//! Wall time of transfers, batches and concurrent jobs of the classic API, next to the limits it once promised.
//!
//! `cargo bench -p vramp-tensor --bench classic`. A software driver computes on the CPU; its figures are upper bounds.

#![allow(missing_docs, reason = "a program has no readers of its documentation")]
#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing bench")]

use std::time::Instant;

use vramp_gpu::Device;
use vramp_tensor::classic::{Compute, MemoryUsage};
use vramp_tensor::{Context, Tensor};

const MIB: usize = 1 << 20;
/// The best of this many rounds counts.
const ROUNDS: usize = 5;

fn main() {
    let device = Device::choose().open().unwrap_or_else(|error| panic!("needs an adapter: {error}"));
    println!("{}\n", device.adapter());
    for (side, context) in [("host", Context::on_host()), ("device", Context::on(&device).unwrap())] {
        let compute = Compute::on(&context);
        for mib in [10, 40] {
            let values = vec![1.5_f32; mib * MIB / 4];
            let ms = best(|| {
                let tensor = compute.transfer_to_gpu(&values).unwrap();
                assert_eq!(compute.transfer_from_gpu(&tensor).unwrap().len(), values.len());
            });
            row(side, &format!("{mib} MiB there and back"), ms, 1000.0);
        }
        let values = vec![1.5_f32; MIB / 4];
        let up =
            |count: usize| -> Vec<Tensor> { (0..count).map(|_| compute.transfer_to_gpu(&values).unwrap()).collect() };
        let ms = best(|| {
            for _ in 0..10 {
                assert_eq!(compute.compute_batch(&up(10)).unwrap(), [2.25; 10]);
            }
        });
        row(side, "10 batches of 10 times 1 MiB, sent up each time", ms, 2000.0);
        let ms = best(|| {
            std::thread::scope(|threads| {
                for _ in 0..5 {
                    threads.spawn(|| assert_eq!(compute.compute_batch(&up(10)).unwrap(), [2.25; 10]));
                }
            });
        });
        row(side, "5 jobs at once of 10 times 1 MiB", ms, 1000.0);
        let small: Vec<Tensor> = (0..1000).map(|_| compute.transfer_to_gpu(&[1.5; 64]).unwrap()).collect();
        for chunk in [1, 100, 1000] {
            let compute = Compute::on(&context).with_chunk(chunk);
            let ms = best(|| assert_eq!(compute.compute_batch(&small).unwrap().len(), 1000));
            row(side, &format!("a batch of 1000 times 64 values, {chunk} at once"), ms, f64::NAN);
        }
        drop(small);
        let held = up(40);
        let usage = MemoryUsage::of(&context);
        let over = (usage.in_use_bytes as f64 / usage.num_bytes as f64 - 1.0) * 100.0;
        println!("{side:<8}{:<52}{over:>9.2} %  of 10 %", "memory above the values of 40 tensors of 1 MiB");
        drop(held);
        println!();
    }
}

fn best(mut work: impl FnMut()) -> f64 {
    let times = (0..ROUNDS).map(|_| {
        let started = Instant::now();
        work();
        started.elapsed().as_secs_f64() * 1e3
    });
    times.fold(f64::INFINITY, f64::min)
}

fn row(side: &str, what: &str, ms: f64, most_ms: f64) {
    let most = if most_ms.is_nan() { String::new() } else { format!("  of {most_ms} ms") };
    println!("{side:<8}{what:<52}{ms:>9.2} ms{most}");
}
