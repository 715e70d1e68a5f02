//! What kernels of tensors cost on the device: CPU time of the whole process, driver included, with the way back.
//!
//! Compare with other runtimes on the same driver only: a software driver computes on the CPU, and its version matters.
//!
//! `cargo bench -p vramp-tensor --bench device [-- WORDS]`, where only works whose names have one of the words run.

#![allow(dead_code, reason = "the kernels are not public; what this bench does not start is unused here")]
#![allow(unused_imports, reason = "likewise")]
#![allow(missing_docs, reason = "a program has no readers of its documentation")]
#![allow(clippy::unwrap_used, reason = "a bench that fails says so and ends")]

#[path = "../src/device/mod.rs"]
mod device;
#[path = "../src/dtype.rs"]
mod dtype;
#[path = "../src/error.rs"]
mod error;
#[path = "../src/shape.rs"]
mod shape;

pub use dtype::DType;

use std::sync::Arc;
use std::time::{Duration, Instant};

use device::copy::{Copy, Source};
use device::image::{Filter, FromPixels, Order, Picture};
use device::matmul::{Along, Operand, Product, Scale, Sizes, Strides, Tile};
use device::reduce::{Fold, Reduce, Step};
use device::softmax::Softmax;
use device::transpose::Transpose;
use device::{Hook, Hooks, Lanes, Place};
use shape::Around;
use vramp_gpu::{Backend, Buffer, Device, Kernel, Player, Recording};

/// How long each work is repeated in a round, and how many rounds; the best one counts.
const ROUND: Duration = Duration::from_millis(700);
const ROUNDS: usize = 3;

fn main() {
    let device = Device::choose().open().unwrap_or_else(|error| panic!("needs an adapter: {error}"));
    println!("{}\n", device.adapter());
    assert_eq!(device.adapter().backend, Backend::Vulkan, "figures of other backends are not comparable");
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let player = Player::on(&device).build().unwrap();
    let mut bench = Bench { device, player, owner: "bench".into(), words };
    let before = bench.device.counters().dispatches;
    bench.mean_of_squares();
    bench.softmax();
    bench.transpose();
    bench.transpose_planes();
    bench.picture();
    for size in [512, 1024] {
        bench.matmul(size);
    }
    assert!(bench.device.counters().dispatches > before, "nothing ran on the device");
}

struct Bench {
    device: Device,
    player: Player,
    owner: Arc<str>,
    words: Vec<String>,
}

impl Bench {
    fn mean_of_squares(&mut self) {
        let (count, tensors) = (262_144, 10);
        let inputs: Vec<Buffer> = (0..tensors).map(|seed| self.noise(count, seed)).collect();
        let around = Around { outer: 1, length: count, inner: 1 };
        let (steps, hooks) = (Step::plan(around, true), Hooks::plain(DType::F32));
        let passes: Vec<_> = (0..steps.len()).map(|pass| Reduce::new(Fold::MeanSquare, &hooks, &steps, pass)).collect();
        let kernels: Vec<Kernel> = passes.iter().map(|pass| self.device.prepare(&pass.shader()).unwrap()).collect();
        self.measure("square_mean_10x1MB", |device, owner, recording| {
            for input in &inputs {
                let mut from = input.clone();
                for ((pass, kernel), step) in passes.iter().zip(&kernels).zip(&steps) {
                    let launch = pass.launch(step, count, 0, 0, device.limits().workgroups_per_dimension);
                    let out = device.lend(step.out_bytes(Fold::MeanSquare) as u64, owner).unwrap();
                    recording.dispatch(kernel, &[&from, &out], launch.params(), launch.grid).unwrap();
                    from = out;
                }
                recording.download(&from).unwrap();
            }
        });
    }

    fn softmax(&mut self) {
        let around = Around { outer: 1024, length: 1024, inner: 1 };
        let from = self.noise(1 << 20, 3);
        for lanes in [Lanes::Group, Lanes::One] {
            let softmax = Softmax { log: false, lanes, hooks: Hooks::plain(DType::F32) };
            let kernel = self.device.prepare(&softmax.shader()).unwrap();
            self.measure(&format!("softmax_1024x1024 {lanes:?}"), |device, owner, recording| {
                let launch = softmax.launch(around, 0, 0, device.limits().workgroups_per_dimension);
                let out = device.lend(4 << 20, owner).unwrap();
                recording.dispatch(&kernel, &[&from, &out], launch.params(), launch.grid).unwrap();
                recording.download(&out).unwrap();
            });
        }
    }

    fn transpose(&mut self) {
        let (from, source) = (self.noise(1 << 20, 5), Source::new(0, &[1024, 1024], &[1, 1024]));
        let copy = Copy { dtype: DType::F32, rank: source.rank() };
        let kernel = self.device.prepare(&copy.shader()).unwrap();
        self.measure("transpose_1024x1024", |device, owner, recording| {
            let launch = copy.launch(&source, &Place::whole(0, 1 << 20), device.limits().workgroups_per_dimension);
            let out = device.lend(4 << 20, owner).unwrap();
            recording.dispatch(&kernel, &[&from, &out], launch.params(), launch.grid).unwrap();
            recording.download(&out).unwrap();
        });
    }

    fn transpose_planes(&mut self) {
        let (from, source) = (self.noise(1 << 20, 5), Source::new(0, &[1024, 1024], &[1, 1024]));
        let turned = Transpose::of(&source).expect("it is one");
        let kernel = self.device.prepare(&Transpose::shader()).unwrap();
        self.measure("transpose_1024x1024 by strips", |device, owner, recording| {
            let launch = turned.launch(0, device.limits().workgroups_per_dimension);
            let out = device.lend(4 << 20, owner).unwrap();
            recording.dispatch(&kernel, &[&from, &out], launch.params(), launch.grid).unwrap();
            recording.download(&out).unwrap();
        });
    }

    fn picture(&mut self) {
        let from = self.noise(1920 * 1080, 5);
        let kind = FromPixels {
            filter: Filter::Bilinear,
            order: Order::Planes,
            channels: [0, 1, 2].as_slice().into(),
            out: DType::F32,
        };
        let kernel = self.device.prepare(&kind.shader()).unwrap();
        self.measure("picture_1080p_to_640x640", |device, owner, recording| {
            let (mean, std, to) = ([0.5; 4], [0.5; 4], [640, 640]);
            let picture = Picture { from: [1920, 1080], offset: 0, to, out_offset: 0, mean, std };
            let launch = kind.launch(&picture, device.limits().workgroups_per_dimension);
            let out = device.lend(640 * 640 * 12, owner).unwrap();
            recording.dispatch(&kernel, &[&from, &out], launch.params(), launch.grid).unwrap();
            recording.download(&out).unwrap();
        });
    }

    fn matmul(&mut self, size: usize) {
        let (left, right) = (self.noise(size * size, 1), self.noise(size * size, 2));
        for tile in Tile::CANDIDATES {
            let product = Product {
                a: Operand { dtype: DType::F32, along: Along::K },
                b: Operand { dtype: DType::F32, along: Along::Side },
                scale: Scale::None,
                out: DType::F32,
                wide: true,
                tile,
                finish: Hook::pass_product(),
                vectors: 0,
            };
            let rows = Strides { offset: 0, side: size, k: 1, product: 0 };
            let columns = Strides { offset: 0, side: 1, k: size, product: 0 };
            let (m, n, k) = (size, size, size);
            let sizes =
                Sizes { m, n, k, products: 1, a: rows, b: columns, out_offset: 0, scale: 1.0, scales_offset: 0 };
            let kernel = self.device.prepare(&product.shader()).unwrap();
            let name = format!("matmul_f32_{size} {:?} {}x{}x{}", tile.form, tile.m, tile.n, tile.k);
            self.measure(&name, |device, owner, recording| {
                let launch = product.launch(&sizes, device.limits().workgroups_per_dimension);
                let out = device.lend((size * size * 4) as u64, owner).unwrap();
                recording.dispatch(&kernel, &[&left, &right, &out], launch.params(), launch.grid).unwrap();
                recording.download(&out).unwrap();
            });
        }
    }

    fn noise(&mut self, count: usize, seed: usize) -> Buffer {
        let value = |at: usize| ((at * 7919 + seed * 104_729) % 65_536) as f32 / 32_768.0 - 1.0;
        let bytes: Vec<u8> = (0..count).flat_map(|at| value(at).to_le_bytes()).collect();
        let buffer = self.device.lend(bytes.len() as u64, &self.owner).unwrap();
        let mut recording = Recording::new();
        recording.upload(&buffer, bytes).unwrap();
        self.player.play(&mut recording).unwrap();
        buffer
    }

    fn measure(&mut self, name: &str, record: impl Fn(&Device, &Arc<str>, &mut Recording)) {
        if !self.words.is_empty() && !self.words.iter().any(|word| name.contains(word.as_str())) {
            return;
        }
        let mut recording = Recording::new();
        let mut once = || {
            record(&self.device, &self.owner, &mut recording);
            self.player.play(&mut recording).unwrap();
            let arrived = self.player.readbacks().wait(Duration::from_secs(60)).unwrap().expect("it was asked for");
            // Others hand out an array of their own, so this one copies too.
            (0..arrived.len()).map(|part| arrived.bytes(part).to_vec()).collect::<Vec<_>>()
        };
        once();
        let (mut cpu, mut wall) = (f64::MAX, f64::MAX);
        for _ in 0..ROUNDS {
            let (cpu_start, start, mut times) = (cpu_ms(), Instant::now(), 0_u32);
            while start.elapsed() < ROUND || times < 3 {
                std::hint::black_box(once());
                times += 1;
            }
            cpu = cpu.min((cpu_ms() - cpu_start) / f64::from(times));
            wall = wall.min(start.elapsed().as_secs_f64() * 1e3 / f64::from(times));
        }
        println!("{name:<44} cpu_ms {cpu:>8.2}   wall_ms {wall:>8.2}");
    }
}

/// CPU time of this process so far, in steps of 10 ms.
fn cpu_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").expect("this bench reads Linux's own figures");
    // Fields are counted behind the name, which may hold anything but ends with the last bracket.
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) * 10.0
}
