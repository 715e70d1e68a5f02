//! How long the host's loops take, on one thread.
//!
//! Owns the sizes, and prints a line for each: the median of the wall times of a call, in milliseconds.
//! Does not compare: peers are run beside it, alternately, by whoever wants a ratio.
//!
//! `cargo bench -p vramp-tensor --bench host [WORD]...` runs those with one of the words in their name.
#![allow(
    dead_code,
    unused_imports,
    missing_docs,
    reason = "the loops are private to the crate, and are compiled here once more, with tests that are not run"
)]

use std::hint::black_box;
use std::time::Instant;

use half::f16;

#[path = "../src/host/mod.rs"]
mod host;

mod shape {
    pub use vramp_tensor::{Around, MAX_RANK, Shape};
}

use host::image::{Layout, Normal, Resize};
use host::matmul::MatmulSize;
use host::reduce::Reduction;
use host::strided::Strided;
use host::vector::vectorised;
use shape::Around;

/// Calls in a row until this many milliseconds are over.
const BUDGET_MS: f64 = 300.0;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let time = |name: &str, call: &mut dyn FnMut()| {
        if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
            return;
        }
        call();
        let (start, mut times_ms) = (Instant::now(), Vec::new());
        while times_ms.len() < 7 || start.elapsed().as_secs_f64() * 1e3 < BUDGET_MS {
            let before = Instant::now();
            call();
            times_ms.push(before.elapsed().as_secs_f64() * 1e3);
        }
        times_ms.sort_by(f64::total_cmp);
        println!("{name:28} {:9.4} ms", times_ms[times_ms.len() / 2]);
    };
    for side in [512, 1024] {
        products(side, &time);
    }
    rows(&time);
    pictures(&time);
}

type Time<'a> = &'a dyn Fn(&str, &mut dyn FnMut());

fn values(count: usize) -> Vec<f32> {
    (0..count).map(|at| ((at * 7919) % 1013) as f32 / 1013.0).collect()
}

fn products(side: usize, time: Time<'_>) {
    let size = MatmulSize {
        batch: 1,
        m: side,
        n: side,
        k: side,
        a_batch_stride: 0,
        b_batch_stride: 0,
        a: (side, 1),
        b: (side, 1),
    };
    let a = values(side * side);
    let half: Vec<f16> = a.iter().map(|x| f16::from_f32(*x)).collect();
    let small: Vec<i8> = a.iter().map(|x| (x * 254.0 - 127.0) as i8).collect();
    let mut out = vec![0.0; side * side];
    time(&format!("matmul f32 {side}"), &mut || host::matmul::matmul_f32(size, &a, &a, &mut out, 1));
    time(&format!("matmul f16 {side}"), &mut || host::matmul::matmul_f16(size, &half, &half, &mut out, 1));
    let scales = host::matmul8::Scales { a: 0.01, b: &[0.01] };
    time(&format!("matmul i8 {side}"), &mut || host::matmul8::matmul_i8(size, &small, &small, scales, &mut out, 1));
}

fn rows(time: Time<'_>) {
    let input = values(1 << 20);
    let input = &input.as_slice();
    let (last, first) =
        (Around { outer: 1024, length: 1024, inner: 1 }, Around { outer: 1, length: 1024, inner: 1024 });
    let (mut out, mut few, mut places) = (vec![0.0; 1 << 20], vec![0.0; 1024], vec![0; 1024]);
    let mut whole = vec![0; 1 << 20];
    for (axis, around) in [("last axis", last), ("first axis", first)] {
        for how in [Reduction::Sum, Reduction::Max] {
            time(&format!("{how:?} 1024x1024 {axis}"), &mut || host::reduce::reduce(input, around, how, &mut few, 1));
        }
        time(&format!("argmax 1024x1024 {axis}"), &mut || host::arg::argmax(input, around, &mut places, 1));
        time(&format!("softmax 1024x1024 {axis}"), &mut || host::softmax::softmax(input, around, &mut out, 1));
    }
    let batch: Vec<Vec<f32>> = (0..10).map(|_| values(1 << 18)).collect();
    let all = Around { outer: 1, length: 1 << 18, inner: 1 };
    time("mean of squares 10x1MB", &mut || {
        for (values, out) in batch.iter().zip(few.chunks_mut(1)) {
            host::reduce::reduce(&values.as_slice(), all, Reduction::MeanOfSquares, out, 1);
        }
    });
    time("layer norm 1024x1024", &mut || host::norm::layer_norm(input, 1024, 1e-5, None, None, &mut out, 1));
    let together = Around { outer: 1, length: 1, inner: 1 << 20 };
    time("quantise 1M", &mut || {
        let mut scale = [0.0];
        host::quant::scales(input, together, &mut scale);
        host::quant::quantize(input, together, &scale, &mut whole, 1);
    });
    let (bytes, mut turned) = (bytemuck::cast_slice::<f32, u8>(input).to_vec(), vec![0; 4 << 20]);
    let across = Strided { shape: &[1024, 1024], strides: &[1, 1024], offset: 0 };
    time("transpose 1024x1024", &mut || host::strided::copy_strided(&bytes, 4, across, &mut turned));
    macro_rules! function {
        ($($name:ident),*) => {
            $(time(concat!(stringify!($name), " 1M"), &mut || {
                vectorised!(for (to, from) in out.iter_mut().zip(input.iter()) {
                    *to = host::math::$name(*from);
                });
                black_box(&mut out);
            });)*
        };
    }
    function!(exp, log, tanh, sigmoid, silu, gelu);
}

fn pictures(time: Time<'_>) {
    let image: Vec<u8> = (0..1080 * 1920 * 4).map(|at| (at * 37 % 256) as u8).collect();
    let mut out = vec![0.0; 1080 * 1920 * 3];
    let mut back = vec![0; image.len()];
    for layout in [Layout::Nchw, Layout::Nhwc] {
        let normal = Normal { channels: &[0, 1, 2], mean: &[0.485; 3], std: &[0.225; 3], layout };
        for to in [(1080, 1920), (224, 224)] {
            let out = &mut out[..to.0 * to.1 * 3];
            time(&format!("picture 1080p to {to:?} {layout:?}"), &mut || {
                host::image::from_image(&image, (1080, 1920), to, Resize::Bilinear, &normal, out, 1);
            });
        }
        time(&format!("picture 1080p back {layout:?}"), &mut || {
            host::image::to_image(&out, (1080, 1920), &normal, &mut back, 1);
        });
    }
}
