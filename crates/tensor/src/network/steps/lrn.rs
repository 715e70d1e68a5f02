//! Local response normalisation: each value divided by a power of the sum of squares of neighbouring channels.
//!
//! A step sums the squares, in the order in which the values lie in memory; elementwise steps do the rest.

#[cfg(not(target_arch = "wasm32"))]
use smallvec::smallvec;
use vramp_kernels::vectorised;

#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::{KernelText, Launch, MATH, MOST_ROUNDS};
use crate::ops::error::TensorError;
use crate::ops::host::spread::spread;
use crate::ops::program::Binary;
use crate::ops::shape::Around;

use super::super::builder::{NetworkBuilder, NewValue};
#[cfg(not(target_arch = "wasm32"))]
use super::super::step::{Bound, DeviceFacts, DeviceWork, Dispatch};
use super::super::step::{HostCall, Step, WordKind};
use super::super::value::{Lengths, ValueId};
use super::softmax::around;

/// Maximum number of neighbouring channels, as many as one invocation may add.
const MOST_CHANNELS: usize = 32_768;

/// Sums of squares of the values from `before` places before a value to `after` places after it along an axis.
#[derive(Debug)]
struct SquaresStep {
    around: Around,
    before: usize,
    after: usize,
}

impl NetworkBuilder {
    /// x / (bias + alpha / size * sum of squares)^beta, with the sum over the `size` nearest channels (axis 1).
    pub fn lrn(&mut self, x: ValueId, size: usize, alpha: f32, beta: f32, bias: f32) -> Result<ValueId, TensorError> {
        let op = "lrn";
        self.check_floats(op, x, 1)?;
        let lengths = Lengths::from_slice(self.lengths(x));
        let seen = size.min(2 * lengths[1]);
        if size == 0 || seen > MOST_CHANNELS {
            let problem = format!("a size of {size} channels; 1 to {MOST_CHANNELS} are supported");
            return Err(TensorError::NotSupported { op, problem });
        }
        let order = self.views[x.0].order();
        let before = ((size - 1) / 2).min(lengths[1]);
        let after = (size - 1 - (size - 1) / 2).min(lengths[1]);
        let step = SquaresStep { around: around(&lengths, &order, 1), before, after };
        let memory = self.dense(x, &order)?;
        let sums = self.add_one(step, &[memory], NewValue { kind: WordKind::F32, lengths: &lengths, order })?;
        let share = self.floats(vec![alpha / size as f32], &[])?;
        let scaled = self.binary(Binary::Mul, sums, share)?;
        let bias = self.floats(vec![bias], &[])?;
        let base = self.binary(Binary::Add, scaled, bias)?;
        let power = self.floats(vec![-beta], &[])?;
        let factor = self.binary(Binary::Pow, base, power)?;
        self.binary(Binary::Mul, x, factor)
    }
}

impl Step for SquaresStep {
    fn name(&self) -> &'static str {
        "lrn"
    }

    fn work(&self) -> u64 {
        let Around { outer, length, inner } = self.around;
        let factors = [outer, length, inner, self.before + 1 + self.after];
        factors.iter().fold(1, |work: u64, factor| work.saturating_mul(*factor as u64))
    }

    fn host(&self, mut call: HostCall<'_, '_>) {
        let SquaresStep { around: Around { length, inner, .. }, before, after } = *self;
        let (input, threads, slab) = (call.floats(0), call.threads, length * inner);
        let out = call.floats_out(0);
        let work = out.len() * (before + 1 + after);
        spread(out, slab, work, threads, |first, out| {
            for (at, out) in out.chunks_exact_mut(slab).enumerate() {
                let input = &input[(first + at) * slab..][..slab];
                vectorised!(add_squares(input, length, inner, before, after, out));
            }
        });
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let Around { outer, length, inner } = self.around;
        debug_assert!(self.before + 1 + self.after <= MOST_ROUNDS, "checked when the step was added");
        let count = outer * length * inner;
        let mut text = KernelText::new();
        text.read("in0", "u32");
        text.write("out", "u32");
        text.params(&["count", "length", "inner", "before", "after"], 0);
        text.push(MATH);
        text.push(SQUARES);
        let words = [count, length, inner, self.before, self.after].map(|number| number as u32);
        DeviceWork::one(Dispatch {
            key: "sums of squares of neighbours".into(),
            shader: text.shader("sums of squares of neighbours".into(), 64),
            buffers: smallvec![Bound::Input(0), Bound::Output(0)],
            launch: Launch::new(&words, count.div_ceil(64) as u64, facts.most_groups),
        })
    }
}

/// Sums of squares of each value of a slab and its neighbours. The neighbours at one distance are added to all values
/// together.
#[expect(clippy::inline_always, reason = "functions that are not inlined into `vectorised!` lose its instructions")]
#[inline(always)]
fn add_squares(input: &[f32], length: usize, inner: usize, before: usize, after: usize, out: &mut [f32]) {
    out.fill(0.0);
    for back in (1..=before.min(length.saturating_sub(1))).rev() {
        let skip = back * inner;
        for (out, value) in out[skip..].iter_mut().zip(input) {
            *out += value * value;
        }
    }
    for ahead in 0..=after.min(length.saturating_sub(1)) {
        for (out, value) in out.iter_mut().zip(&input[ahead * inner..]) {
            *out += value * value;
        }
    }
}

/// In: values. Out: sums of squares of neighbours. Grid: an invocation per value.
#[cfg(not(target_arch = "wasm32"))]
const SQUARES: &str = "
@compute @workgroup_size(64)
fn main(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let number = (group.x + group.y * groups.x) * 64u + local;
    if number >= p.count { return; }
    let line = quotient(number, p.inner);
    let place = line - quotient(line, p.length) * p.length;
    let back = min(place, p.before);
    let rounds = back + 1u + min(p.length - 1u - place, p.after);
    var at = number - back * p.inner;
    var sum = 0.0;
    for (var i = 0u; i < rounds; i += 1u) {
        let v = bitcast<f32>(in0[at]);
        sum = fma(v, v, sum);
        at += p.inner;
    }
    out[number] = bitcast<u32>(sum);
}
";

#[cfg(test)]
mod tests {
    use super::super::tests::trial::{Given, both, close, noise};

    #[test]
    fn values_are_divided_by_a_power_of_their_neighbours_on_both_sides() {
        for (channels, size) in [(1, 3), (5, 1), (7, 4), (20, 5), (3, 50)] {
            let lengths = [2, channels, 3, 2];
            let x: Vec<f32> = noise(12 * channels, 12).iter().map(|v| v * 4.0).collect();
            let wanted: Vec<f32> = (0..x.len())
                .map(|at| {
                    let channel = at / 6 % channels;
                    let first = channel.saturating_sub((size - 1) / 2);
                    let last = (channel + size - 1 - (size - 1) / 2).min(channels - 1);
                    let value = |other: usize| f64::from(x[at + other * 6 - channel * 6]);
                    let sum: f64 = (first..=last).map(|other| value(other).powi(2)).sum();
                    (f64::from(x[at]) / (1.5 + 0.3 / size as f64 * sum).powf(0.75)) as f32
                })
                .collect();
            // The same values with their channels last.
            let turned: Vec<f32> = (0..x.len())
                .map(|at| x[at / (6 * channels) * 6 * channels + at % channels * 6 + at / channels % 6])
                .collect();
            let given = [Given::Floats(&x, &lengths), Given::Floats(&turned, &[2, 3, 2, channels])];
            let made = both(&given, |net, ids| {
                let picture = net.permuted(ids[1], &[0, 3, 1, 2]);
                Ok(vec![net.lrn(ids[0], size, 0.3, 0.75, 1.5)?, net.lrn(picture, size, 0.3, 0.75, 1.5)?])
            });
            for made in &made {
                close(made, &wanted, &format!("{size} of {channels} channels"));
            }
        }
    }
}
