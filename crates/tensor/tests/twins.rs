//! Every family of ops on random shapes and axes: device and host agree, fused or one by one.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
#![allow(clippy::cast_possible_wrap, reason = "numbers are small")]
#![allow(clippy::float_cmp, reason = "values that only move stay the same bits")]

use crate::sides::on_device;
use vramp_tensor::{ChannelLayout, Context, DType, Expr, ImageSpec, Reduction, ResizeMode, Tensor};

/// A random generator with a fixed seed, for small numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }

    fn float(&mut self) -> f32 {
        self.roll(1 << 16) as f32 / 8192.0 - 4.0
    }

    fn lengths(&mut self, rank: usize, most: usize) -> Vec<usize> {
        (0..rank).map(|_| 1 + self.roll(most)).collect()
    }
}

/// The same values on both sides, as a view at a random offset.
struct Pair {
    host: Context,
    device: Context,
}

impl Pair {
    fn new() -> Pair {
        Pair { host: Context::on_host(), device: on_device() }
    }

    fn floats(&self, dice: &mut Dice, lengths: &[usize], dtype: DType) -> [Tensor; 2] {
        let count: usize = lengths.iter().product();
        let before = dice.roll(6);
        let values: Vec<f32> = (0..count + before).map(|_| dice.float()).collect();
        [&self.host, &self.device].map(|context| {
            let whole = context.tensor(&values, &[values.len()]).unwrap().cast(dtype).unwrap();
            whole.view(before, count).unwrap().reshape(lengths).unwrap()
        })
    }
}

/// Checks that both sides, fused and one by one, agree within `share` of the largest value.
#[track_caller]
fn agree(exprs: [Expr; 2], share: f32, what: &str) {
    let read = |tensor: Tensor| -> Vec<f32> {
        match tensor.dtype() {
            DType::F32 => tensor.read().unwrap(),
            _ => tensor.cast(DType::F32).unwrap().read().unwrap(),
        }
    };
    let [host, device] = exprs;
    let want = read(host.run_unfused().unwrap_or_else(|error| panic!("{what}: {error}")));
    assert_eq!(read(host.run().unwrap()), want, "{what}: joined on the host");
    let largest = want.iter().fold(1e-30_f32, |largest, value| largest.max(value.abs()));
    let alone = read(device.run_unfused().unwrap_or_else(|error| panic!("{what}: {error}")));
    let joined = read(device.run().unwrap());
    assert_eq!(joined, alone, "{what}: joined on the device");
    assert_eq!(alone.len(), want.len(), "{what}");
    for (at, (one, two)) in want.iter().zip(&alone).enumerate() {
        assert!((one - two).abs() <= share * largest, "{what}: {one} on the host, {two} on the device at {at}");
    }
}

#[test]
fn reductions_along_any_axis() {
    use Reduction::{ArgMax, ArgMin, Max, Mean, MeanOfSquares, Min, Sum};
    let (pair, mut dice) = (Pair::new(), Dice(1));
    for round in 0..60 {
        let rank = 1 + dice.roll(4);
        let most = if round % 10 == 0 { 300 / rank } else { 9 };
        let lengths = dice.lengths(rank, most.max(1));
        let (axis, keep) = (dice.roll(rank), round % 2 == 0);
        for dtype in [DType::F32, DType::F16, DType::I32, DType::U32] {
            let pair = pair.floats(&mut dice, &lengths, dtype);
            for how in [Sum, Mean, Max, Min, MeanOfSquares, ArgMax, ArgMin] {
                if !dtype.is_float() && !matches!(how, Sum | Max | Min) {
                    continue;
                }
                let share = match how {
                    Sum | Mean | MeanOfSquares if dtype == DType::F16 => 1e-3,
                    Sum | Mean | MeanOfSquares if dtype == DType::F32 => 2e-6,
                    _ => 0.0,
                };
                let of = |tensor: &Tensor| tensor.lazy().reduce(how, axis as isize - rank as isize, keep);
                agree(pair.each_ref().map(of), share, &format!("{how:?} of {lengths:?} {dtype} along {axis}"));
                if dtype == DType::F32 {
                    let of = |tensor: &Tensor| tensor.lazy().mul(2.0).add(1.0).relu().reduce(how, axis as isize, keep);
                    agree(pair.each_ref().map(of), share, &format!("{how:?} of a chain of {lengths:?} along {axis}"));
                    agree(pair.each_ref().map(|tensor| tensor.lazy().abs().reduce_all(how)), share, "all");
                }
            }
        }
    }
}

#[test]
fn shares_and_norms_along_any_axis() {
    let (pair, mut dice) = (Pair::new(), Dice(2));
    for _ in 0..40 {
        let rank = 1 + dice.roll(3);
        let lengths = dice.lengths(rank, 40);
        let axis = dice.roll(rank) as isize;
        for (dtype, share) in [(DType::F32, 3e-6), (DType::F16, 2e-3)] {
            let pair_of = pair.floats(&mut dice, &lengths, dtype);
            let what = format!("{lengths:?} {dtype} along {axis}");
            agree(pair_of.each_ref().map(|x| x.lazy().softmax(axis)), share, &what);
            agree(pair_of.each_ref().map(|x| x.lazy().mul(0.5).log_softmax(axis)), share, &what);
            let row = pair.floats(&mut dice, &lengths[rank - 1..], dtype);
            let other = pair.floats(&mut dice, &lengths[rank - 1..], dtype);
            let normed = [0, 1].map(|side| {
                let (gamma, beta) = ((&row[side]).into(), (&other[side]).into());
                pair_of[side].lazy().add(0.25).layer_norm(Some(gamma), Some(beta), 1e-3)
            });
            agree(normed, share * 10.0, &format!("layer norm of {what}"));
            agree(pair_of.each_ref().map(|x| x.lazy().layer_norm(None, None, 1e-3)), share * 10.0, &what);
        }
    }
}

#[test]
fn rows_longer_than_a_workgroup_goes_through() {
    let pair = Pair::new();
    let values: Vec<f32> = (0..530_000).map(|at| (at % 7) as f32 * 0.25).collect();
    for context in [&pair.host, &pair.device] {
        let x = context.tensor(&values, &[530_000]).unwrap();
        let shares: f64 = x.softmax(0).unwrap().read::<f32>().unwrap().iter().copied().map(f64::from).sum();
        assert!((shares - 1.0).abs() < 1e-4, "{shares}");
        let shares = x.lazy().mul(1.0).log_softmax(0).exp().run().unwrap().read::<f32>().unwrap();
        let shares: f64 = shares.iter().copied().map(f64::from).sum();
        assert!((shares - 1.0).abs() < 1e-4, "{shares}");
        let normed = x.layer_norm(None, None, 1e-5).unwrap().read::<f32>().unwrap();
        let (mean, squares) = normed.iter().fold((0.0, 0.0), |(mean, squares), value| {
            (mean + f64::from(*value) / 530_000.0, squares + f64::from(value * value) / 530_000.0)
        });
        assert!(mean.abs() < 1e-4 && (squares - 1.0).abs() < 1e-3, "{mean} {squares}");
    }
}

#[test]
fn products_of_all_kinds() {
    let (pair, mut dice) = (Pair::new(), Dice(3));
    for round in 0..18 {
        let (height, width, deep) = (1 + dice.roll(40), 1 + dice.roll(40), 1 + dice.roll(60));
        let batches: [(&[usize], &[usize]); 6] =
            [(&[], &[]), (&[3], &[3]), (&[3], &[]), (&[], &[2]), (&[2, 1], &[3]), (&[2, 3], &[2, 1])];
        let (before_a, before_b) = batches[round % 6];
        let (turn_a, turn_b) = (dice.roll(2) == 1, dice.roll(2) == 1);
        let of_a = if turn_a { [deep, height] } else { [height, deep] };
        let of_b = if turn_b { [width, deep] } else { [deep, width] };
        let (lengths_a, lengths_b) = ([before_a, &of_a].concat(), [before_b, &of_b].concat());
        let what = format!("{lengths_a:?} {turn_a} by {lengths_b:?} {turn_b}");
        for dtype in [DType::F32, DType::F16, DType::I8] {
            let (a, b) = (pair.floats(&mut dice, &lengths_a, dtype), pair.floats(&mut dice, &lengths_b, dtype));
            let (bias, scale) =
                (pair.floats(&mut dice, &[width], DType::F32), pair.floats(&mut dice, &[1], DType::F32));
            let product = [0, 1].map(|side| {
                let (a, b) = (a[side].lazy(), b[side].lazy());
                let product = match dtype {
                    DType::I8 => a.matmul_scaled(&scale[side].lazy(), &b, &bias[side].lazy(), (turn_a, turn_b)),
                    _ => a.matmul_as(&b, turn_a, turn_b),
                };
                product.add(&bias[side]).gelu()
            });
            agree(product, 3e-6, &format!("{what} of {dtype}"));
        }
    }
}

#[test]
fn values_that_only_move() {
    let (pair, mut dice) = (Pair::new(), Dice(4));
    for round in 0..60 {
        let rank = 2 + dice.roll(3);
        let lengths = dice.lengths(rank, 9);
        let dtype = DType::ALL[round % 6];
        let tensors = pair.floats(&mut dice, &lengths, dtype);
        let what = format!("{lengths:?} of {dtype}");
        let mut axes: Vec<usize> = (0..rank).collect();
        axes.rotate_left(dice.roll(rank));
        axes.swap(0, dice.roll(rank));
        agree(tensors.each_ref().map(|x| x.lazy().permute(&axes)), 0.0, &format!("{what} as {axes:?}"));
        agree(tensors.each_ref().map(|x| x.lazy().transpose()), 0.0, &what);
        let axis = dice.roll(rank);
        let start = dice.roll(lengths[axis]);
        let end = start + dice.roll(lengths[axis] - start + 1);
        agree(tensors.each_ref().map(|x| x.lazy().slice(axis as isize, start, end)), 0.0, &what);
        let repeated: Vec<usize> = [vec![2], lengths.clone()].concat();
        agree(tensors.each_ref().map(|x| x.lazy().broadcast_to(&repeated)), 0.0, &what);
        let mut longer = lengths.clone();
        longer[axis] = 1 + dice.roll(5);
        let others = pair.floats(&mut dice, &longer, dtype);
        let joined = [0, 1].map(|side| {
            Expr::concat(&[tensors[side].lazy(), others[side].lazy(), tensors[side].lazy()], axis as isize)
        });
        agree(joined, 0.0, &format!("{what} and {longer:?} along {axis}"));
        let numbers: Vec<i32> = (0..dice.roll(6)).map(|_| dice.roll(lengths[axis]) as i32).collect();
        let gathered = [0, 1].map(|side| {
            let context = tensors[side].context();
            let indices = context.tensor(&numbers, &[numbers.len()]).unwrap();
            tensors[side].lazy().gather(&indices, axis as isize)
        });
        agree(gathered, 0.0, &format!("{what} by {numbers:?} along {axis}"));
    }
}

#[test]
fn quantised_values_and_back() {
    let (pair, mut dice) = (Pair::new(), Dice(5));
    for axis in [None, Some(0), Some(1), Some(-1)] {
        let tensors = pair.floats(&mut dice, &[3, 5, 7], DType::F32);
        let back = |x: &Tensor| {
            let (values, scale) = x.lazy().quantize(axis);
            values.dequantize(scale)
        };
        agree(tensors.each_ref().map(|x| x.lazy().quantize(axis).0), 0.0, "values");
        agree(tensors.each_ref().map(|x| x.lazy().quantize(axis).1), 0.0, "scale");
        agree(tensors.each_ref().map(back), 0.0, "back");
        let (values, scale) = tensors[1].quantize(axis).unwrap();
        assert_eq!(values.bytes() * 4, tensors[1].bytes());
        let (again, back) =
            (tensors[1].read::<f32>().unwrap(), values.dequantize(&scale).unwrap().read::<f32>().unwrap());
        let scales = scale.broadcast_to(&[3, 5, 7]);
        let scales =
            scales.map_or_else(|_| vec![scale.read::<f32>().unwrap()[0]; 105], |scales| scales.read().unwrap());
        for ((one, two), scale) in again.iter().zip(&back).zip(&scales) {
            assert!((one - two).abs() <= scale * 0.5001, "{one} came back as {two}, a step is {scale}");
        }
    }
}

#[test]
fn pictures_in_and_out() {
    let (pair, mut dice) = (Pair::new(), Dice(6));
    for round in 0..30 {
        let (height, width) = (1 + dice.roll(20), 1 + dice.roll(20));
        let bytes: Vec<u8> = (0..height * width * 4).map(|_| dice.roll(256) as u8).collect();
        let images = [&pair.host, &pair.device].map(|context| context.tensor(&bytes, &[height, width, 4]).unwrap());
        let channels = ["rgb", "bgr", "rgba", "a"][round % 4].to_owned();
        let size = (round % 3 > 0).then(|| (1 + dice.roll(30), 1 + dice.roll(30)));
        let layout = if round % 2 == 0 { ChannelLayout::Nchw } else { ChannelLayout::Nhwc };
        let resize = if round % 5 < 3 { ResizeMode::Bilinear } else { ResizeMode::Nearest };
        let mean = [0.485, 0.456, 0.406, 0.5];
        let picture = ImageSpec { size, channels, mean, std: [0.25, 0.5, 2.0, 1.0], layout, resize };
        let what = format!("{height}x{width} {picture:?}");
        agree(images.each_ref().map(|image| image.lazy().image_to_tensor(&picture)), 4e-6, &what);
        let same = ImageSpec { size: None, ..picture.clone() };
        if same.channels != "a" {
            let back = |image: &Tensor| image.lazy().image_to_tensor(&same).tensor_to_image(&same);
            let there: Vec<u8> = back(&images[1]).run().unwrap().read().unwrap();
            let kept: Vec<usize> = same.channels.chars().map(|letter| "rgba".find(letter).unwrap()).collect();
            for (pixel, (one, two)) in bytes.chunks(4).zip(there.chunks(4)).enumerate() {
                assert!(kept.iter().all(|channel| one[*channel] == two[*channel]), "{what}: pixel {pixel}");
            }
            assert_eq!(back(&images[0]).run().unwrap().read::<u8>().unwrap(), there, "{what}");
        }
    }
}

#[test]
fn a_device_is_tuned_once_and_computes_the_same_afterwards() {
    let context = on_device();
    let values: Vec<f32> = (0..64 * 64).map(|at| (at % 13) as f32 * 0.25 - 1.5).collect();
    let a = context.tensor(&values, &[64, 64]).unwrap();
    let before: Vec<f32> = a.matmul(&a).unwrap().read().unwrap();
    let tuning = context.tune().unwrap();
    assert_eq!(tuning.trials.len(), 6, "{tuning:?}");
    let quickest = tuning.trials.iter().map(|trial| trial.ms).fold(f64::MAX, f64::min);
    assert!((tuning.trials[tuning.best].ms - quickest).abs() < 1e-12 && quickest > 0.0, "{tuning:?}");
    let after: Vec<f32> = a.matmul(&a).unwrap().read().unwrap();
    assert_eq!(before, after, "sums of quarters are exact in any order");
    let compiled = context.device().unwrap().counters().compiles;
    assert_eq!(context.tune().unwrap(), tuning);
    assert_eq!(context.device().unwrap().counters().compiles, compiled, "what is known is not tried again");
    assert!(Context::on_host().tune().is_err());
}
