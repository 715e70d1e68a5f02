//! scratch
#![allow(dead_code)]
#[path = "../src/device/mod.rs"]
mod device;
#[path = "../src/dtype.rs"]
mod dtype;
#[path = "../src/error.rs"]
mod error;
#[path = "../src/shape.rs"]
mod shape;

use std::sync::Arc;
use std::time::{Duration, Instant};
use device::matmul::*;
use device::Hook;
use dtype::DType;
use vramp_gpu::{Device, Player, Recording};

fn cpu_ms() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(11) + ticks(12)) * 10.0
}

fn main() {
    let device = Device::choose().open().unwrap();
    println!("{}", device.adapter());
    let owner: Arc<str> = "bench".into();
    let mut player = Player::on(&device).build().unwrap();
    let n: usize = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(512);
    let mut tiles = Tile::CANDIDATES.to_vec();
    for (m, nn, k) in [(4, 4, 8), (8, 4, 8), (6, 4, 4), (2, 8, 4), (16, 4, 4), (4, 4, 16), (16, 1, 4), (12, 1, 4),(8, 2, 4)] {
        tiles.push(Tile { m, n: nn, k, form: Form::Registers });
    }
    for tile in tiles {
        for (aa, ba) in [(Along::K, Along::Side), (Along::Any, Along::Any)] {
            if ba == Along::Side && tile.n % 4 != 0 { continue; }
            let product = Product {
                a: Operand { dtype: DType::F32, along: aa },
                b: Operand { dtype: DType::F32, along: ba },
                scale: Scale::None, out: DType::F32, wide: tile.n % 4 == 0, tile, finish: Hook::pass_product(), vectors: 0,
            };
            let shader = product.shader();
            if std::env::var("DUMP").is_ok() { println!("{}", shader.wgsl); }
            let kernel = device.prepare(&shader).unwrap_or_else(|e| panic!("{e}\n{}", shader.wgsl));
            let bytes = (n * n * 4) as u64;
            let (a, b) = (device.lend(bytes, &owner).unwrap(), device.lend(bytes, &owner).unwrap());
            let noise = |seed: usize| -> Vec<u8> {
                (0..n * n).flat_map(|i| ((((i * 7919 + seed) % 1000) as f32 - 500.0) / 500.0).to_le_bytes()).collect()
            };
            let mut recording = Recording::new();
            recording.upload(&a, noise(1)).unwrap();
            recording.upload(&b, noise(2)).unwrap();
            player.play(&mut recording).unwrap();
            let sizes = Sizes { m: n, n, k: n, products: 1,
                a: Strides { offset: 0, side: n, k: 1, product: 0 },
                b: Strides { offset: 0, side: 1, k: n, product: 0 }, out_offset: 0, scale: 1.0, scales_offset: 0 };
            let launch = product.launch(&sizes, 65535);
            let mut once = || {
                let out = device.lend(bytes, &owner).unwrap();
                recording.dispatch(&kernel, &[&a, &b, &out], launch.params(), launch.grid).unwrap();
                recording.download(&out).unwrap();
                drop(out);
                player.play(&mut recording).unwrap();
                let arrived = player.readbacks().wait(Duration::from_secs(60)).unwrap().unwrap();
                let v: &[f32] = bytemuck::cast_slice(arrived.bytes(0));
                v[n + 3]
            };
            once();
            let (c, t) = (cpu_ms(), Instant::now());
            let mut reps = 0;
            let mut got = 0.0;
            while t.elapsed() < Duration::from_millis(600) || reps < 3 { got = once(); reps += 1; }
            println!("{tile:?} {aa:?} cpu {:.1} wall {:.1} ({got})", (cpu_ms() - c) / reps as f64, t.elapsed().as_secs_f64() * 1e3 / reps as f64);
        }
    }
}
