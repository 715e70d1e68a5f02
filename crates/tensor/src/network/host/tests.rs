//! Every loop of this module against the sums in f64, on every level and with several threads.

use super::axis::Direction;
use super::dense::convolve_with;
use super::depthwise::depthwise_with;
use super::lanes::Level;
use super::product::{Sizes, product_with};
use super::*;
use crate::ops::host::math;

/// Numbers that look random, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn from(&mut self, choices: &[usize]) -> usize {
        choices[self.next() as usize % choices.len()]
    }

    fn values(&mut self, count: usize) -> Vec<f32> {
        (0..count).map(|_| self.next() as f32 / (1_u64 << 30) as f32 - 1.0).collect()
    }
}

const ACTIVATIONS: [Activation; 9] = [
    Activation::None,
    Activation::Relu,
    Activation::Clip { low: -0.25, high: 0.5 },
    Activation::LeakyRelu(0.1),
    Activation::PRelu,
    Activation::HardSwish,
    Activation::HardSigmoid { alpha: 0.2, beta: 0.4 },
    Activation::Sigmoid,
    Activation::Silu,
];

const RESIDUALS: [Residual; 3] = [Residual::None, Residual::BeforeActivation, Residual::AfterActivation];

fn activated(activation: Activation, x: f64, slope: f32) -> f64 {
    let gate = |alpha: f64, beta: f64| (alpha * x + beta).clamp(0.0, 1.0);
    match activation {
        Activation::None => x,
        Activation::Relu => x.max(0.0),
        Activation::Clip { low, high } => x.clamp(low.into(), high.into()),
        Activation::LeakyRelu(own) => x * if x < 0.0 { f64::from(own) } else { 1.0 },
        Activation::PRelu => x * if x < 0.0 { f64::from(slope) } else { 1.0 },
        Activation::HardSwish => x * gate(1.0 / 6.0, 0.5),
        Activation::HardSigmoid { alpha, beta } => gate(alpha.into(), beta.into()),
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Activation::Silu => x / (1.0 + (-x).exp()),
    }
}

/// The operands of one case, with the weights as in ONNX.
struct Case {
    spec: ConvSpec,
    direction: Direction,
    x: Vec<f32>,
    weights: Vec<f32>,
    bias: Vec<f32>,
    slopes: Option<Vec<f32>>,
    residual: Option<Vec<f32>>,
}

impl Case {
    fn of(numbers: &mut Numbers, spec: ConvSpec, direction: Direction) -> Case {
        let ConvSpec { window, batch, inputs, outputs, groups, finish } = spec;
        let results = batch * window.places() * outputs;
        let has_bias = numbers.from(&[0, 1, 2]) > 0;
        let slopes = numbers.from(&[1, outputs]);
        Case {
            spec,
            direction,
            x: numbers.values(batch * window.inputs() * inputs),
            weights: numbers.values(inputs / groups * outputs * window.taps()),
            bias: if has_bias { numbers.values(outputs) } else { Vec::new() },
            slopes: (finish.activation == Activation::PRelu).then(|| numbers.values(slopes)),
            residual: (finish.residual != Residual::None).then(|| numbers.values(results)),
        }
    }

    fn size(&self) -> PackedSize {
        PackedSize::of(&self.spec)
    }

    fn want(&self) -> Vec<f64> {
        let ConvSpec { window, batch, inputs, outputs, groups, finish } = self.spec;
        let [in_group, out_group] = [inputs / groups, outputs / groups];
        let [places, taps] = [window.places(), window.taps()];
        let three = |at: usize, lengths: [usize; 3]| {
            [at / lengths[2] / lengths[1], at / lengths[2] % lengths[1], at % lengths[2]]
        };
        let mut sums = vec![0.0; batch * places * outputs];
        for (at, sum) in sums.iter_mut().enumerate() {
            *sum = self.bias.get(at % outputs).map_or(0.0, |bias| f64::from(*bias));
        }
        for image in 0..batch {
            for (from, tap) in (0..window.inputs()).flat_map(|from| (0..taps).map(move |tap| (from, tap))) {
                let (input, kernel) = (three(from, window.input), three(tap, window.kernel));
                // The output position that sees this input with this tap.
                let seen_by = |axis: usize| {
                    let at = match self.direction {
                        Direction::Transposed => (input[axis] * window.stride[axis]
                            + kernel[axis] * window.dilation[axis])
                            .checked_sub(window.pad[axis])?,
                        Direction::Plain => {
                            let at =
                                (input[axis] + window.pad[axis]).checked_sub(kernel[axis] * window.dilation[axis])?;
                            at.is_multiple_of(window.stride[axis]).then_some(at / window.stride[axis])?
                        }
                    };
                    (at < window.output[axis]).then_some(at)
                };
                let (Some(d), Some(h), Some(w)) = (seen_by(0), seen_by(1), seen_by(2)) else { continue };
                let place = (d * window.output[1] + h) * window.output[2] + w;
                for output in 0..outputs {
                    for within in 0..in_group {
                        let input = output / out_group * in_group + within;
                        let weight = match self.direction {
                            Direction::Plain => (output * in_group + within) * taps + tap,
                            Direction::Transposed => (input * out_group + output % out_group) * taps + tap,
                        };
                        sums[(image * places + place) * outputs + output] +=
                            f64::from(self.x[(image * window.inputs() + from) * inputs + input])
                                * f64::from(self.weights[weight]);
                    }
                }
            }
        }
        for (at, sum) in sums.iter_mut().enumerate() {
            let residual = self.residual.as_ref().map_or(0.0, |all| f64::from(all[at]));
            let slope = self.slopes.as_ref().map_or(0.0, |all| all[if all.len() == 1 { 0 } else { at % outputs }]);
            *sum = match finish.residual {
                Residual::AfterActivation => activated(finish.activation, *sum, slope) + residual,
                _ => activated(finish.activation, *sum + residual, slope),
            };
        }
        sums
    }

    /// Compares `run` with the sums on every level, and several threads with one.
    fn check(&self, packed: &[f32], run: impl Fn(Level, &[f32], &mut [f32], usize)) {
        let want = self.want();
        for level in Level::available() {
            let mut out = vec![f32::NAN; want.len()];
            run(level, packed, &mut out, 1);
            for (at, (got, want)) in out.iter().zip(&want).enumerate() {
                let near = (f64::from(*got) - want).abs() <= 2e-5 * want.abs().max(1.0);
                assert!(near, "{level:?} {:?} {:?} at {at}: {got}, not {want}", self.direction, self.spec);
            }
            let mut many = vec![f32::NAN; want.len()];
            run(level, packed, &mut many, 3);
            let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
            assert_eq!(bits(&out), bits(&many), "{level:?} {:?}", self.spec);
        }
    }

    fn check_dense(&self) {
        let slopes = self.slopes.as_deref();
        let packed = match self.direction {
            Direction::Plain => pack_convolution(&self.size(), &self.weights, &self.bias, slopes),
            Direction::Transposed => pack_transposed(&self.size(), &self.weights, &self.bias, slopes),
        };
        let residual = self.residual.as_deref();
        self.check(&packed, |level, packed, out, threads| {
            convolve_with(level, self.direction, &self.spec, &self.x, packed, residual, out, threads);
        });
    }

    fn check_depthwise(&self) {
        let packed = pack_depthwise(&self.size(), &self.weights, &self.bias, self.slopes.as_deref());
        self.check(&packed, |level, packed, out, threads| {
            depthwise_with(level, &self.spec, &self.x, packed, self.residual.as_deref(), out, threads);
        });
    }
}

/// A window with `axes` spatial axes whose output has at least one position.
fn window(numbers: &mut Numbers, axes: usize, lengths: &[usize], direction: Direction) -> Window {
    loop {
        let mut window =
            Window { input: [1; 3], output: [1; 3], kernel: [1; 3], stride: [1; 3], dilation: [1; 3], pad: [0; 3] };
        let mut is_valid = true;
        for axis in 3 - axes..3 {
            window.input[axis] = numbers.from(lengths);
            window.kernel[axis] = numbers.from(&[1, 2, 3, 3, 5]);
            window.stride[axis] = numbers.from(&[1, 1, 2, 3]);
            window.dilation[axis] = numbers.from(&[1, 1, 1, 2, 3]);
            window.pad[axis] = numbers.from(&[0, 1, 1, 2, 4]);
            let after = numbers.from(&[0, 1, 2]);
            let reach = (window.kernel[axis] - 1) * window.dilation[axis] + 1;
            let length = match direction {
                Direction::Plain => (window.input[axis] + window.pad[axis] + after)
                    .checked_sub(reach)
                    .map_or(0, |room| room / window.stride[axis] + 1),
                Direction::Transposed => ((window.input[axis] - 1) * window.stride[axis] + reach + after)
                    .saturating_sub(window.pad[axis] + 1),
            };
            is_valid &= length > 0;
            window.output[axis] = length;
        }
        if is_valid {
            return window;
        }
    }
}

fn finish(numbers: &mut Numbers) -> Finish {
    Finish {
        activation: ACTIVATIONS[numbers.next() as usize % ACTIVATIONS.len()],
        residual: RESIDUALS[numbers.next() as usize % RESIDUALS.len()],
    }
}

fn spec(numbers: &mut Numbers, direction: Direction) -> ConvSpec {
    let axes = numbers.from(&[1, 2, 2, 2, 3]);
    let lengths: &[usize] = if axes == 3 { &[1, 2, 3, 5] } else { &[1, 2, 3, 5, 8, 17, 31] };
    let groups = numbers.from(&[1, 1, 1, 2, 3]);
    ConvSpec {
        window: window(numbers, axes, lengths, direction),
        batch: numbers.from(&[1, 2]),
        inputs: groups * numbers.from(&[1, 2, 3, 8, 17]),
        outputs: groups * numbers.from(&[1, 3, 8, 16, 17, 24, 33, 49]),
        groups,
        finish: finish(numbers),
    }
}

#[test]
fn convolutions_are_the_sums_on_every_level_with_any_threads() {
    let mut numbers = Numbers(1);
    for _ in 0..150 {
        let spec = spec(&mut numbers, Direction::Plain);
        Case::of(&mut numbers, spec, Direction::Plain).check_dense();
    }
}

#[test]
fn transposed_convolutions_are_the_sums_on_every_level_with_any_threads() {
    let mut numbers = Numbers(2);
    for _ in 0..150 {
        let spec = spec(&mut numbers, Direction::Transposed);
        Case::of(&mut numbers, spec, Direction::Transposed).check_dense();
    }
}

#[test]
fn depthwise_convolutions_are_the_sums_on_every_level_with_any_threads() {
    let mut numbers = Numbers(3);
    for _ in 0..150 {
        let groups = numbers.from(&[1, 3, 8, 15, 16, 17, 24, 40]);
        let spec = spec(&mut numbers, Direction::Plain);
        let spec = ConvSpec { inputs: groups, outputs: groups, groups, ..spec };
        Case::of(&mut numbers, spec, Direction::Plain).check_depthwise();
    }
}

#[test]
fn every_activation_follows_every_residual() {
    let mut numbers = Numbers(4);
    for activation in ACTIVATIONS {
        for residual in RESIDUALS {
            let window = Window {
                input: [1, 9, 13],
                output: [1, 9, 13],
                kernel: [1, 3, 3],
                stride: [1; 3],
                dilation: [1; 3],
                pad: [0, 1, 1],
            };
            let spec = ConvSpec {
                window,
                batch: 1,
                inputs: 4,
                outputs: 41,
                groups: 1,
                finish: Finish { activation, residual },
            };
            Case::of(&mut numbers, spec, Direction::Plain).check_dense();
            let spec = ConvSpec { inputs: 41, groups: 41, ..spec };
            Case::of(&mut numbers, spec, Direction::Plain).check_depthwise();
        }
    }
}

#[test]
fn work_for_several_threads_is_split_without_a_trace() {
    let mut numbers = Numbers(5);
    let window = Window {
        input: [1, 40, 60],
        output: [1, 20, 30],
        kernel: [1, 3, 3],
        stride: [1, 2, 2],
        dilation: [1; 3],
        pad: [0, 1, 1],
    };
    let spec = ConvSpec { window, batch: 2, inputs: 24, outputs: 40, groups: 1, finish: finish(&mut numbers) };
    assert!(spec.work() > 8 << 20, "enough for three threads");
    Case::of(&mut numbers, spec, Direction::Plain).check_dense();
    let window = Window { input: window.output, output: [1, 41, 61], pad: [0; 3], ..window };
    Case::of(&mut numbers, ConvSpec { window, ..spec }, Direction::Transposed).check_dense();
    let window = Window { input: [1, 41, 61], output: [1, 41, 61], stride: [1; 3], pad: [0, 1, 1], ..window };
    let spec = ConvSpec { window, inputs: 72, outputs: 72, groups: 72, ..spec };
    Case::of(&mut numbers, spec, Direction::Plain).check_depthwise();
}

/// Rows x k x n.
const PRODUCTS: [(usize, usize, usize); 8] =
    [(1, 1, 1), (1, 2048, 1001), (5, 40, 33), (29, 64, 48), (150, 300, 40), (49, 1100, 130), (3, 0, 5), (0, 5, 7)];

/// Packed weights of a product: k x n, in the order of ONNX's convolutions, n x k.
fn pack_product((k, n): (usize, usize), weights: &[f32], bias: &[f32], slopes: Option<&[f32]>) -> Vec<f32> {
    let one = [1; 3];
    let window = Window { input: one, output: one, kernel: one, stride: one, dilation: one, pad: [0; 3] };
    pack_convolution(&PackedSize { window, inputs: k, outputs: n, groups: 1 }, weights, bias, slopes)
}

#[test]
fn products_are_the_sums_for_any_sizes_and_threads() {
    let mut numbers = Numbers(6);
    for (m, k, n) in PRODUCTS {
        let (x, weights, bias) = (numbers.values(m * k), numbers.values(k * n), numbers.values(n));
        let packed = pack_product((k, n), &weights, &bias, None);
        let finish = Finish { activation: Activation::Relu, residual: Residual::None };
        for (level, threads) in Level::available().into_iter().flat_map(|level| [(level, 1), (level, 3)]) {
            let mut out = vec![f32::NAN; m * n];
            product_with(level, Sizes { m, k, n }, finish, &x, &packed, None, &mut out, threads);
            for (at, got) in out.iter().enumerate() {
                let (row, column) = (at / n, at % n);
                let products = (0..k).map(|at| f64::from(x[row * k + at]) * f64::from(weights[column * k + at]));
                let want = (products.sum::<f64>() + f64::from(bias[column])).max(0.0);
                assert!((f64::from(*got) - want).abs() < 1e-4, "{level:?} {m} {k} {n} at {at}: {got}, not {want}");
            }
        }
    }
}

#[test]
fn nan_stays_nan_in_every_activation() {
    for activation in ACTIVATIONS {
        let finish = Finish { activation, residual: Residual::None };
        let slopes = (activation == Activation::PRelu).then_some([0.5; 1].as_slice());
        let packed = pack_product((1, 33), &[1.0; 33], &[], slopes);
        for level in Level::available() {
            let mut out = [0.0; 66];
            product_with(level, Sizes { m: 2, k: 1, n: 33 }, finish, &[f32::NAN, 0.25], &packed, None, &mut out, 1);
            assert!(out[..33].iter().all(|value| value.is_nan()), "{level:?} {activation:?}");
            assert!(out[33..].iter().all(|value| value.is_finite()), "{level:?} {activation:?}");
        }
    }
}

#[test]
fn sigmoids_have_the_bits_of_the_op() {
    let mut numbers = Numbers(7);
    let x: Vec<f32> = numbers.values(40).iter().map(|value| value * 20.0).collect();
    for (activation, function) in
        [(Activation::Sigmoid, math::sigmoid as fn(f32) -> f32), (Activation::Silu, math::silu)]
    {
        let packed = pack_product((1, 1), &[1.0], &[], None);
        let finish = Finish { activation, residual: Residual::None };
        let sizes = Sizes { m: x.len(), k: 1, n: 1 };
        let mut out = vec![0.0; x.len()];
        product_with(Level::detected(), sizes, finish, &x, &packed, None, &mut out, 1);
        for (got, x) in out.iter().zip(&x) {
            assert_eq!(got.to_bits(), function(*x).to_bits(), "{activation:?} of {x}");
        }
    }
}
