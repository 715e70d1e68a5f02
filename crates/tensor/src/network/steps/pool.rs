//! Pools: the maximum or the mean of each channel over the positions that a window sees.
//!
//! Values are read and written with the channels last, so that all channels of a position are handled together. On the
//! host, lines of the output are distributed over threads.
//!
//! A float replaces the best so far unless the best is larger, like the vector maximum of a processor and so of ONNX
//! Runtime. So NaN wins, and the next value replaces it. The index is that of the first of equal values.

#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::{Hook, MOST_ROUNDS};
use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::host::spread::spread;
use crate::ops::program::{ElementwiseProgram, Running};
use crate::ops::reduction::Reduction;
use vramp_kernels::vectorised;

use super::super::builder::{NetworkBuilder, NewValue, bytes};
#[cfg(not(target_arch = "wasm32"))]
use super::super::device::pool as kernel;
#[cfg(not(target_arch = "wasm32"))]
use super::super::step::{DeviceFacts, DeviceWork};
use super::super::step::{HostCall, Step, WordKind};
use super::super::value::{Lengths, ValueId};
use super::super::window::Window;

/// Maximum number of taps of a window, as many as one invocation may see.
const MOST_TAPS: usize = 32_768;

/// Channels whose best values and places are kept together while the taps of a window pass.
const CHANNELS: usize = 64;

/// How the index of a maximum counts the positions of its channel. The index of the first position of a channel is the
/// number of values of the channels before it, over all batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexOrder {
    /// The last axis is contiguous.
    RowMajor,
    /// The first axis is contiguous.
    ColumnMajor,
}

#[derive(Debug)]
struct PoolStep {
    window: Window,
    batch: usize,
    channels: usize,
    kind: WordKind,
    fold: Fold,
    ends: Option<ElementwiseProgram>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fold {
    Max(Option<IndexOrder>),
    Mean { counts_padding: bool },
}

impl NetworkBuilder {
    /// The largest value that each window sees, and where it is if `with_indices` is set. `x` has a batch axis,
    /// channels, and one to three spatial axes. Positions outside the input never win.
    pub fn max_pool(
        &mut self,
        x: ValueId,
        window: Window,
        with_indices: Option<IndexOrder>,
    ) -> Result<(ValueId, Option<ValueId>), TensorError> {
        let op = "max_pool";
        self.check_pool(op, x, &window)?;
        if with_indices.is_none() && window.taps() > MOST_TAPS && is_global(&window) {
            return Ok((self.reduced_by(x, &self.spatial(x), Reduction::Max)?, None));
        }
        let made = self.pool(op, x, window, Fold::Max(with_indices))?;
        Ok((made[0], made.get(1).copied()))
    }

    /// The mean of the values that each window sees. Taps outside the input are left out, or count as 0 if
    /// `count_padding` is set; then all taps count, also those of a window that reaches beyond the padding.
    pub fn average_pool(&mut self, x: ValueId, window: Window, count_padding: bool) -> Result<ValueId, TensorError> {
        let op = "average_pool";
        self.check_pool(op, x, &window)?;
        if self.kind(x) != WordKind::F32 {
            return Err(TensorError::WrongType { op, has: self.kind(x).dtype(), wants: "f32" });
        }
        if is_global(&window) {
            return self.reduced_by(x, &self.spatial(x), Reduction::Mean);
        }
        Ok(self.pool(op, x, window, Fold::Mean { counts_padding: count_padding })?[0])
    }

    fn spatial(&self, x: ValueId) -> Vec<usize> {
        (2..self.lengths(x).len()).collect()
    }

    fn check_pool(&self, op: &'static str, x: ValueId, window: &Window) -> Result<(), TensorError> {
        let lengths = self.lengths(x);
        let spatial = lengths.get(2..).unwrap_or_default();
        let (missing, own) = window.input.split_at(3_usize.saturating_sub(spatial.len()));
        if !(1..=3).contains(&spatial.len()) || own != spatial || missing.iter().any(|length| *length != 1) {
            let problem = format!("a window over {:?} does not fit {lengths:?}", window.input);
            return Err(TensorError::Mismatch { op, problem });
        }
        if window.taps() > MOST_TAPS && !is_global(window) {
            let problem = format!("a window of {:?}; at most {MOST_TAPS} taps are supported", window.kernel);
            return Err(TensorError::NotSupported { op, problem });
        }
        Ok(())
    }

    fn pool(&mut self, op: &'static str, x: ValueId, window: Window, fold: Fold) -> Result<Vec<ValueId>, TensorError> {
        if window.taps() > MOST_TAPS {
            let problem = format!("a window of {:?}; at most {MOST_TAPS} taps are supported", window.kernel);
            return Err(TensorError::NotSupported { op, problem });
        }
        let (kind, memory) = (self.kind(x), self.channels_last(x)?);
        let rank = self.lengths(x).len();
        let mut lengths = Lengths::from_slice(&self.lengths(x)[..2]);
        lengths.extend_from_slice(&window.output[5 - rank..]);
        let (batch, channels) = (lengths[0], lengths[1]);
        let step = PoolStep { window, batch, channels, kind, fold, ends: None };
        let mut outputs = vec![NewValue::channels_last(kind, &lengths)];
        if matches!(fold, Fold::Max(Some(_))) {
            outputs.push(NewValue::channels_last(WordKind::I32, &lengths));
        }
        self.add(step, &[memory], outputs)
    }
}

/// True if there is one window, which sees the whole input and nothing else.
fn is_global(window: &Window) -> bool {
    let Window { input, output, kernel, dilation, pad, .. } = *window;
    output == [1; 3] && kernel == input && pad == [0; 3] && dilation == [1; 3]
}

/// A word that has maxima and sums.
trait Pooled: bytemuck::Pod + Send + Sync + PartialOrd {
    const LEAST: Self;
}

impl Pooled for f32 {
    const LEAST: f32 = f32::NEG_INFINITY;
}

impl Pooled for i32 {
    const LEAST: i32 = i32::MIN;
}

impl PoolStep {
    /// Calls `work` for every line of the output, with the image of the line, its depth and its row.
    fn lines<T: Send>(&self, out: &mut [T], threads: usize, work: impl Fn(usize, [usize; 2], &mut [T]) + Sync) {
        let [depth, height, width] = self.window.output;
        let values = out.len().saturating_mul(self.window.taps());
        let line = width * self.channels;
        spread(out, line, values, threads, |first, out| {
            for (at, out) in out.chunks_exact_mut(line).enumerate() {
                let row = first + at;
                work(row / height / depth, [row / height % depth, row % height], out);
            }
        });
    }

    fn image<'a, T>(&self, x: &'a [T], image: usize) -> &'a [T] {
        let values = self.window.inputs() * self.channels;
        &x[image * values..][..values]
    }

    fn maxima<T: Pooled>(&self, x: &[T], out: &mut [T], threads: usize) {
        let (window, channels) = (&self.window, self.channels);
        self.lines(out, threads, |image, row, out| {
            let x = self.image(x, image);
            vectorised!(fold_line(window, channels, row, x, T::LEAST, larger, out));
        });
    }

    fn places<T: Pooled>(&self, x: &[T], order: IndexOrder, out: &mut [i32], threads: usize) {
        let (window, channels) = (&self.window, self.channels);
        self.lines(out, threads, |image, row, out| {
            let first = image * channels * window.inputs();
            vectorised!(place_line(window, channels, row, self.image(x, image), order, first, out));
        });
    }

    fn means(&self, x: &[f32], counts_padding: bool, out: &mut [f32], threads: usize) {
        let (window, channels) = (&self.window, self.channels);
        self.lines(out, threads, |image, row, out| {
            vectorised!(mean_line(window, channels, row, self.image(x, image), counts_padding, out));
        });
    }
}

impl Step for PoolStep {
    fn name(&self) -> &'static str {
        match self.fold {
            Fold::Max(_) => "max_pool",
            Fold::Mean { .. } => "average_pool",
        }
    }

    fn work(&self) -> u64 {
        let factors = [self.batch, self.channels, self.window.places(), self.window.taps()];
        factors.iter().fold(1, |work: u64, factor| work.saturating_mul(*factor as u64))
    }

    fn host(&self, mut call: HostCall<'_, '_>) {
        let (inputs, threads) = (call.inputs, call.threads);
        match (self.fold, self.kind) {
            (Fold::Max(order), WordKind::F32) => {
                let x = call.floats(0);
                self.maxima(x, call.floats_out(0), threads);
                if let Some(order) = order {
                    self.places(x, order, call.integers_out(1), threads);
                }
            }
            (Fold::Max(order), WordKind::I32) => {
                let x = call.integers(0);
                self.maxima(x, call.integers_out(0), threads);
                if let Some(order) = order {
                    self.places(x, order, call.integers_out(1), threads);
                }
            }
            (Fold::Mean { counts_padding }, _) => {
                self.means(call.floats(0), counts_padding, call.floats_out(0), threads);
            }
        }
        if let Some(program) = &self.ends {
            let out = call.floats_out(0);
            let count = out.len();
            spread(out, 16, count, threads, |line, out| {
                Running::new(program, inputs[1..].iter().map(|words| bytes(words))).end(line * 16, out);
            });
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        debug_assert!(self.window.taps() <= MOST_ROUNDS, "checked when the step was added");
        let fold = match self.fold {
            Fold::Max(order) => {
                let indices = order.map(|order| match order {
                    IndexOrder::RowMajor => kernel::IndexOrder::RowMajor,
                    IndexOrder::ColumnMajor => kernel::IndexOrder::ColumnMajor,
                });
                kernel::PoolFold::Max { kind: self.kind, indices }
            }
            Fold::Mean { counts_padding } => {
                let Window { output, kernel, stride, dilation, .. } = self.window;
                let reach = |axis: usize| output[axis] * stride[axis] + kernel[axis] * dilation[axis];
                let counted_end = counts_padding.then(|| std::array::from_fn(reach));
                kernel::PoolFold::Average { counted_end }
            }
        };
        let pool = kernel::PoolKernel { window: self.window, batch: self.batch, channels: self.channels, fold };
        match &self.ends {
            Some(program) => pool.work(facts, &program.finishing(), &program.words()),
            None => pool.work(facts, &Hook::pass(), &[]),
        }
    }

    fn finish_with(&mut self, program: &ElementwiseProgram) -> bool {
        let is_taken = self.kind == WordKind::F32 && self.ends.is_none() && program.out == DType::F32;
        if is_taken {
            self.ends = Some(program.clone());
        }
        is_taken
    }
}

#[expect(clippy::inline_always, reason = "functions that are not inlined into `vectorised!` lose its instructions")]
#[inline(always)]
fn larger<T: Pooled>(best: T, value: T) -> T {
    if best > value { best } else { value }
}

/// Calls `work` for every tap inside the input, with the index of the tap's position.
#[expect(clippy::inline_always, reason = "functions that are not inlined into `vectorised!` lose its instructions")]
#[inline(always)]
fn each_tap(window: &Window, place: [usize; 3], mut work: impl FnMut(usize)) {
    for depth in (0..window.kernel[0]).filter_map(|tap| window.seen(0, place[0], tap)) {
        for row in (0..window.kernel[1]).filter_map(|tap| window.seen(1, place[1], tap)) {
            let line = (depth * window.input[1] + row) * window.input[2];
            for column in (0..window.kernel[2]).filter_map(|tap| window.seen(2, place[2], tap)) {
                work(line + column);
            }
        }
    }
}

/// Folds the taps of each position of a line.
#[expect(clippy::inline_always, reason = "functions that are not inlined into `vectorised!` lose its instructions")]
#[inline(always)]
fn fold_line<T: Pooled>(
    window: &Window,
    channels: usize,
    [depth, row]: [usize; 2],
    x: &[T],
    start: T,
    join: impl Fn(T, T) -> T,
    out: &mut [T],
) {
    for (column, out) in out.chunks_exact_mut(channels).enumerate() {
        for (block, out) in out.chunks_mut(CHANNELS).enumerate() {
            out.fill(start);
            each_tap(window, [depth, row, column], |at| {
                let values = &x[at * channels + block * CHANNELS..][..out.len()];
                for (best, value) in out.iter_mut().zip(values) {
                    *best = join(*best, *value);
                }
            });
        }
    }
}

#[expect(clippy::inline_always, reason = "functions that are not inlined into `vectorised!` lose its instructions")]
#[inline(always)]
fn mean_line(window: &Window, channels: usize, row: [usize; 2], x: &[f32], counts_padding: bool, out: &mut [f32]) {
    fold_line(window, channels, row, x, 0.0, |sum, value| sum + value, out);
    for (column, out) in out.chunks_exact_mut(channels).enumerate() {
        let place = [row[0], row[1], column];
        let seen =
            |axis: usize| (0..window.kernel[axis]).filter(|tap| window.seen(axis, place[axis], *tap).is_some()).count();
        let count = if counts_padding { window.taps() } else { seen(0) * seen(1) * seen(2) };
        for sum in out {
            *sum /= count as f32;
        }
    }
}

/// Writes the indices of the maxima of a line. `first` is the index of the first value of the image.
#[expect(clippy::inline_always, reason = "functions that are not inlined into `vectorised!` lose its instructions")]
#[inline(always)]
fn place_line<T: Pooled>(
    window: &Window,
    channels: usize,
    [depth, row]: [usize; 2],
    x: &[T],
    order: IndexOrder,
    first: usize,
    out: &mut [i32],
) {
    let [depths, rows, columns] = window.input;
    for (column, out) in out.chunks_exact_mut(channels).enumerate() {
        for (block, out) in out.chunks_mut(CHANNELS).enumerate() {
            let mut best = [T::LEAST; CHANNELS];
            let mut is_first = true;
            out.fill(0);
            each_tap(window, [depth, row, column], |at| {
                let index = match order {
                    IndexOrder::RowMajor => at,
                    IndexOrder::ColumnMajor => {
                        let line = at / columns;
                        line / rows + depths * (line % rows + rows * (at % columns))
                    }
                };
                let index = (index as u32).cast_signed();
                let values = &x[at * channels + block * CHANNELS..][..out.len()];
                for ((best, out), value) in best.iter_mut().zip(out.iter_mut()).zip(values) {
                    // The first value wins also if it is the least, and any value wins against NaN.
                    let stays = *best >= *value && !is_first;
                    *out = if stays { *out } else { index };
                    *best = if stays { *best } else { *value };
                }
                is_first = false;
            });
            for (channel, out) in (block * CHANNELS..).zip(out) {
                *out += ((first + channel * window.inputs()) as u32).cast_signed();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::trial::{Given, Made, both, close, noise, same};
    use super::*;
    use crate::ops::context::Context;
    use crate::ops::program::Unary;

    fn windows() -> [Window; 6] {
        let plain = Window {
            input: [1, 6, 7],
            output: [1, 3, 3],
            kernel: [1, 2, 3],
            stride: [1, 2, 2],
            dilation: [1; 3],
            pad: [0; 3],
        };
        [
            plain,
            Window { output: [1, 4, 4], kernel: [1, 3, 3], pad: [0, 1, 1], ..plain },
            Window { output: [1, 4, 5], kernel: [1, 2, 2], stride: [1; 3], dilation: [1, 2, 2], ..plain },
            // The last windows of `ceil_mode` reach beyond the end.
            Window { output: [1, 3, 4], kernel: [1, 3, 3], pad: [0, 1, 0], ..plain },
            Window { input: [1, 1, 9], output: [1, 1, 5], kernel: [1, 1, 3], pad: [0, 0, 1], ..plain },
            Window {
                input: [4, 3, 5],
                output: [2, 2, 3],
                kernel: [2, 2, 2],
                stride: [2; 3],
                dilation: [1; 3],
                pad: [0, 1, 1],
            },
        ]
    }

    fn axes(of: [usize; 3], window: &Window, index: usize) -> Vec<usize> {
        let spatial: &[usize] = match (window.input[0] > 1, window.input[1] > 1) {
            (true, _) => &of,
            (_, true) => &of[1..],
            _ => &of[2..],
        };
        let outer = if index == 0 { [2, 3] } else { [1, 8] };
        outer.into_iter().chain(spatial.iter().copied()).collect()
    }

    /// Values that the window of each output position sees, by batch and channel, with their indices.
    fn seen(x: &[f32], window: &Window, planes: usize) -> Vec<Vec<(usize, f64)>> {
        let [depth, height, width] = window.output;
        let mut all = Vec::new();
        for at in 0..planes * depth * height * width {
            let (plane, place) = (at / window.places(), at % window.places());
            let place = [place / width / height, place / width % height, place % width];
            let mut values = Vec::new();
            each_tap(window, place, |tap| {
                let index = plane * window.inputs() + tap;
                values.push((index, f64::from(x[index])));
            });
            all.push(values);
        }
        all
    }

    #[test]
    fn maxima_and_means_of_windows_are_those_of_the_formula_on_both_sides() {
        for (number, window) in windows().into_iter().enumerate() {
            for index in [0, 1] {
                let lengths = axes(window.input, &window, index);
                let x = noise(lengths.iter().product(), 20);
                let all = seen(&x, &window, lengths[0] * lengths[1]);
                let made = both(&[Given::Floats(&x, &lengths)], |net, ids| {
                    let (plain, none) = net.max_pool(ids[0], window, None)?;
                    assert_eq!(net.lengths(plain), axes(window.output, &window, index));
                    assert_eq!(none, None);
                    let (most, places) = net.max_pool(ids[0], window, Some(IndexOrder::RowMajor))?;
                    Ok(vec![
                        plain,
                        most,
                        places.expect("indices are wanted"),
                        net.average_pool(ids[0], window, false)?,
                        net.average_pool(ids[0], window, true)?,
                    ])
                });
                let what = format!("window {number} of {lengths:?}");
                let best = |values: &Vec<(usize, f64)>| {
                    values.iter().copied().reduce(|one, two| if two.1 > one.1 { two } else { one }).unwrap()
                };
                let wanted: Vec<f32> = all.iter().map(|values| best(values).1 as f32).collect();
                close(&made[0], &wanted, &what);
                close(&made[1], &wanted, &what);
                let wanted: Vec<i32> = all.iter().map(|values| i32::try_from(best(values).0).unwrap()).collect();
                same(&made[2], &wanted, &what);
                let sum = |values: &Vec<(usize, f64)>| values.iter().map(|value| value.1).sum::<f64>();
                let wanted: Vec<f32> = all.iter().map(|values| (sum(values) / values.len() as f64) as f32).collect();
                close(&made[3], &wanted, &what);
                let wanted: Vec<f32> = all.iter().map(|values| (sum(values) / window.taps() as f64) as f32).collect();
                close(&made[4], &wanted, &what);
            }
        }
    }

    fn pooled(kind: WordKind, order: IndexOrder) -> Vec<Made> {
        let window = Window {
            input: [1, 2, 3],
            output: [1, 1, 2],
            kernel: [1, 2, 2],
            stride: [1; 3],
            dilation: [1; 3],
            pad: [0; 3],
        };
        let (floats, integers) = ([1.0, 2.0, 9.0, 3.0, 8.0, -5.0], [1, 2, 9, 3, 8, -5]);
        let lengths = [1, 1, 2, 3];
        let given = match kind {
            WordKind::F32 => Given::Floats(&floats, &lengths),
            WordKind::I32 => Given::Integers(&integers, &lengths),
        };
        both(&[given], |net, ids| {
            let (most, places) = net.max_pool(ids[0], window, Some(order))?;
            Ok(vec![most, places.expect("indices are wanted")])
        })
    }

    #[test]
    fn indices_count_along_columns_or_rows() {
        for kind in [WordKind::F32, WordKind::I32] {
            same(&pooled(kind, IndexOrder::RowMajor)[1], &[4, 2], "row major");
            same(&pooled(kind, IndexOrder::ColumnMajor)[1], &[3, 4], "column major");
        }
        same(&pooled(WordKind::I32, IndexOrder::RowMajor)[0], &[8, 9], "integers");
    }

    #[test]
    fn nan_gives_way_to_the_next_value_and_minus_infinity_is_a_maximum() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let x = [nan, 1.0, 2.0, nan, 3.0, nan, nan, -inf, -inf, inf];
        let window = Window { input: [1, 1, 10], output: [1, 1, 9], kernel: [1, 1, 2], stride: [1; 3], ..windows()[0] };
        let most = [1.0, 2.0, nan, 3.0, nan, nan, -inf, -inf, inf];
        for channels in [1, 4_u8] {
            // Channels last, so that all channels of a position are the same.
            let x: Vec<f32> = x.iter().flat_map(|value| vec![*value; usize::from(channels)]).collect();
            let made = both(&[Given::Floats(&x, &[1, 10, usize::from(channels)])], |net, ids| {
                let x = net.permuted(ids[0], &[0, 2, 1]);
                let (plain, _) = net.max_pool(x, window, None)?;
                let (most, places) = net.max_pool(x, window, Some(IndexOrder::RowMajor))?;
                Ok(vec![plain, most, places.expect("indices are wanted")])
            });
            let wanted = most.repeat(usize::from(channels));
            close(&made[0], &wanted, "plain");
            close(&made[1], &wanted, "with indices");
            let places =
                (0..i32::from(channels)).flat_map(|channel| [1, 2, 3, 4, 5, 6, 7, 7, 9].map(|at| at + 10 * channel));
            same(&made[2], &places.collect::<Vec<_>>(), "indices");
        }
    }

    #[test]
    fn a_window_over_everything_is_a_mean_and_an_activation_ends_a_pool() {
        let mut net = NetworkBuilder::new(&Context::on_host());
        let x = net.input(WordKind::F32, &[1, 4, 6, 7]).unwrap();
        let window = windows()[0];
        let whole = Window { output: [1; 3], kernel: [1, 6, 7], ..window };
        let mean = net.average_pool(x, whole, false).unwrap();
        assert_eq!(net.lengths(mean), [1, 4, 1, 1]);
        let (pool, _) = net.max_pool(x, window, None).unwrap();
        let ended = net.unary(Unary::Relu, pool).unwrap();
        let back = net.permuted(ended, &[0, 2, 3, 1]);
        let network = net.build(&[mean, back]).unwrap();
        assert!(network.steps().contains(&"mean") && network.steps().contains(&"max_pool"), "{:?}", network.steps());
        assert!(!network.steps().contains(&"relu"), "{:?}", network.steps());
        let values = noise(4 * 42, 21);
        let all = seen(&values, &window, 4);
        let largest = |values: &Vec<(usize, f64)>| values.iter().map(|value| value.1).fold(0.0, f64::max) as f32;
        let wanted: Vec<f32> = all.iter().map(largest).collect();
        let made = both(&[Given::Floats(&values, &[1, 4, 6, 7])], |net, ids| {
            let (pool, _) = net.max_pool(ids[0], window, None)?;
            Ok(vec![net.unary(Unary::Relu, pool)?])
        });
        close(&made[0], &wanted, "ended");
    }

    #[test]
    fn a_window_over_other_lengths_is_refused() {
        let mut net = NetworkBuilder::new(&Context::on_host());
        let x = net.input(WordKind::F32, &[1, 4, 5, 7]).unwrap();
        let refused = net.max_pool(x, windows()[0], None).unwrap_err().to_string();
        assert!(refused.contains("[1, 6, 7] does not fit [1, 4, 5, 7]"), "{refused}");
    }
}
