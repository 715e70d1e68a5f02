//! Values at other positions of one or two axes: each result is a weighted sum of a few values, whose positions and
//! weights are known (`Taps`). Resizing with any filter is such a table.
//!
//! A step works on two axes that are neighbours in memory, so that a picture is read once. If each result is one value
//! with the weight 1, words are copied, and integers can be resampled too.

#![expect(clippy::inline_always, reason = "functions that are not inlined into `vectorised!` lose its instructions")]

use crate::network::NetworkBuilder;
use crate::network::builder::NewValue;
#[cfg(not(target_arch = "wasm32"))]
use crate::network::step::{DeviceFacts, DeviceWork};
use crate::network::step::{HostCall, Step, WordKind};
use crate::network::value::{Lengths, ValueId, in_order};
use crate::ops::error::TensorError;
use crate::ops::host::spread::spread;

#[cfg(not(target_arch = "wasm32"))]
use super::by_word::WordKernel;
use super::by_word::with_length;

const OP: &str = "resample";

/// For each position of a result along an axis, the positions that it reads, and their weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Taps {
    /// `per` positions for each position of the result. -1 stands for a value outside.
    pub positions: Vec<i32>,
    pub weights: Vec<f32>,
    pub per: usize,
    /// The value of the positions outside; they do not count if there is none.
    pub outside: Option<f32>,
}

impl Taps {
    /// The table that leaves an axis as it is.
    fn same(length: usize) -> Taps {
        let positions = (0..(length as u32).cast_signed()).collect();
        Taps { positions, weights: vec![1.0; length], per: 1, outside: None }
    }

    fn is_same(&self, length: usize) -> bool {
        *self == Taps { outside: self.outside, ..Taps::same(length) }
    }

    /// The positions, if results are copies of values.
    fn picked(&self) -> Option<Vec<usize>> {
        let plain = self.per == 1 && self.weights.iter().all(|weight| weight.to_bits() == 1.0_f32.to_bits());
        let positions = self.positions.iter().map(|at| usize::try_from(*at).ok());
        if plain { positions.collect() } else { None }
    }

    fn check(&self, length: usize) -> Result<(), TensorError> {
        let problem = if self.per == 0 || !self.positions.len().is_multiple_of(self.per) {
            format!("{} positions, {} for each result", self.positions.len(), self.per)
        } else if self.weights.len() != self.positions.len() {
            format!("{} positions and {} weights", self.positions.len(), self.weights.len())
        } else if let Some(wrong) =
            self.positions.iter().find(|at| **at < -1 || i64::from(**at) >= (length as u64).cast_signed())
        {
            format!("position {wrong} is out of range; the axis has {length} positions")
        } else {
            return Ok(());
        };
        Err(TensorError::Setting { op: OP, problem })
    }
}

/// One of the two axes: its length, the length of the result, and the number of taps.
#[derive(Debug, Clone, Copy)]
struct TappedAxis {
    length: usize,
    out: usize,
    per: usize,
}

/// `outer` x rows x columns x `inner` values in memory order. The inputs are the values, the positions of rows and of
/// columns, and their weights unless `is_copy`.
#[derive(Debug)]
struct Resample {
    outer: usize,
    rows: TappedAxis,
    columns: TappedAxis,
    inner: usize,
    outside: f32,
    is_copy: bool,
}

impl NetworkBuilder {
    /// The value with another table of positions along an axis.
    pub fn resampled(&mut self, x: ValueId, axis: usize, taps: &Taps) -> Result<ValueId, TensorError> {
        self.check_taps(x, axis, taps)?;
        let length = self.lengths(x)[axis];
        if taps.is_same(length) {
            return Ok(x);
        }
        if let Some(positions) = taps.picked() {
            return self.picked(x, axis, &positions);
        }
        self.resample(x, &[(axis, taps)], taps.outside)
    }

    /// The value with other tables of positions along two axes; the same as two calls of
    /// [`resampled`](NetworkBuilder::resampled), in one step if the axes are neighbours in memory.
    pub fn resampled_two(&mut self, x: ValueId, taps: [(usize, &Taps); 2]) -> Result<ValueId, TensorError> {
        for (axis, taps) in taps {
            self.check_taps(x, axis, taps)?;
        }
        let order = self.views[x.0].order();
        let place = |axis: usize| order.iter().position(|at| *at == axis).expect("an order has all axes");
        let [(first, one), (second, two)] = taps;
        let is_same = |axis: usize, taps: &Taps| taps.is_same(self.lengths(x)[axis]);
        let apart = place(first).abs_diff(place(second));
        let is_outside = |taps: &Taps| taps.positions.contains(&-1);
        // Two values outside the picture would need two numbers in one step.
        let outside = match (is_outside(one), is_outside(two)) {
            (true, true) if one.outside.map(f32::to_bits) != two.outside.map(f32::to_bits) => None,
            (true, _) => Some(one.outside),
            _ => Some(two.outside),
        };
        match outside {
            Some(outside) if apart == 1 && !is_same(first, one) && !is_same(second, two) => {
                let mut taps = taps;
                taps.sort_by_key(|(axis, _)| place(*axis));
                self.resample(x, &taps, outside)
            }
            _ => {
                let x = self.resampled(x, first, one)?;
                self.resampled(x, second, two)
            }
        }
    }

    fn check_taps(&self, x: ValueId, axis: usize, taps: &Taps) -> Result<(), TensorError> {
        self.has_axis(OP, x, axis)?;
        taps.check(self.lengths(x)[axis])?;
        let is_copy = taps.picked().is_some();
        match self.kind(x) {
            WordKind::I32 if !is_copy => {
                Err(TensorError::WrongType { op: OP, has: WordKind::I32.dtype(), wants: "f32" })
            }
            _ => Ok(()),
        }
    }

    /// Adds a step for one axis or for two neighbours in memory order.
    fn resample(&mut self, x: ValueId, taps: &[(usize, &Taps)], outside: Option<f32>) -> Result<ValueId, TensorError> {
        let order = self.views[x.0].order();
        let memory = self.dense(x, &order)?;
        let mut lengths = Lengths::from_slice(self.lengths(x));
        let own = in_order(&lengths, &order);
        let place = |axis: usize| order.iter().position(|at| *at == axis).expect("an order has all axes");
        let (begin, end) = (place(taps[0].0), place(taps[taps.len() - 1].0));
        let (outer, inner) = (own[..begin].iter().product(), own[end + 1..].iter().product());
        let one = Taps::same(1);
        // A single axis is taken as rows if that gives more rows, because threads share rows.
        let is_rows = inner > 1 && outer < 16;
        let ((row_taps, height), (column_taps, width)) = match taps {
            [(_, taps)] if is_rows => ((*taps, own[begin]), (&one, 1)),
            [(_, taps)] => ((&one, 1), (*taps, own[begin])),
            _ => ((taps[0].1, own[begin]), (taps[1].1, own[end])),
        };
        let axis_of = |taps: &Taps, length| TappedAxis { length, out: taps.positions.len() / taps.per, per: taps.per };
        let step = Resample {
            outer,
            rows: axis_of(row_taps, height),
            columns: axis_of(column_taps, width),
            inner,
            outside: outside.unwrap_or(0.0),
            is_copy: row_taps.picked().is_some() && column_taps.picked().is_some(),
        };
        for (axis, taps) in taps {
            lengths = with_length(&lengths, *axis, taps.positions.len() / taps.per);
        }
        let positions: Vec<i32> = [row_taps.positions.as_slice(), &column_taps.positions].concat();
        let weights: Vec<f32> = [row_taps.weights.as_slice(), &column_taps.weights].concat();
        let count = positions.len();
        let positions = self.integers(positions, &[count])?;
        let mut memories = vec![memory, self.straight(positions)?];
        if !step.is_copy {
            let weights = self.floats(weights, &[count])?;
            memories.push(self.straight(weights)?);
        }
        let kind = self.kind(x);
        self.add_one(step, &memories, NewValue { kind, lengths: &lengths, order })
    }
}

impl Resample {
    /// Copies a row of the result.
    #[inline(always)]
    fn copy_row(&self, x: &[u32], row_from: usize, columns: &[i32], out: &mut [u32]) {
        let inner = self.inner;
        let x = &x[row_from * inner..][..self.columns.length * inner];
        if inner == 1 {
            for (out, column) in out.iter_mut().zip(columns) {
                *out = x[*column as usize];
            }
            return;
        }
        for (out, column) in out.chunks_exact_mut(inner).zip(columns) {
            out.copy_from_slice(&x[*column as usize * inner..][..inner]);
        }
    }

    /// Adds a row of the input with this weight to a row of the result.
    #[inline(always)]
    fn add_row(&self, row: Option<&[f32]>, weight: f32, columns: (&[i32], &[f32]), is_first: bool, out: &mut [f32]) {
        let (inner, per) = (self.inner, self.columns.per);
        let (positions, weights) = columns;
        let taps = positions.chunks_exact(per).zip(weights.chunks_exact(per));
        for (out, (positions, weights)) in out.chunks_exact_mut(inner).zip(taps) {
            let mut is_first = is_first;
            for (position, column_weight) in positions.iter().zip(weights) {
                let weight = weight * column_weight;
                let pixel = row.zip(usize::try_from(*position).ok()).map(|(row, at)| &row[at * inner..][..inner]);
                match (pixel, is_first) {
                    (Some(pixel), true) => out.iter_mut().zip(pixel).for_each(|(out, v)| *out = weight * v),
                    (Some(pixel), false) => out.iter_mut().zip(pixel).for_each(|(out, v)| *out += weight * v),
                    (None, true) => out.fill(weight * self.outside),
                    (None, false) => out.iter_mut().for_each(|out| *out += weight * self.outside),
                }
                is_first = false;
            }
        }
    }

    /// Like [`Resample::add_row`], for single values and two taps per column: the usual case of a plane.
    #[inline(always)]
    fn add_single(row: &[f32], weight: f32, columns: (&[i32], &[f32]), is_first: bool, out: &mut [f32]) {
        let (positions, weights) = (columns.0.as_chunks::<2>().0, columns.1.as_chunks::<2>().0);
        for ((out, positions), weights) in out.iter_mut().zip(positions).zip(weights) {
            let sum =
                weight * weights[0] * row[positions[0] as usize] + weight * weights[1] * row[positions[1] as usize];
            *out = if is_first { sum } else { *out + sum };
        }
    }

    /// Like [`Resample::add_row`] for both rows at once, for two taps per row and column, all inside.
    #[inline(always)]
    fn mix_four(&self, rows: [&[f32]; 2], by: [f32; 2], columns: (&[i32], &[f32]), out: &mut [f32]) {
        let inner = self.inner;
        let (positions, weights) = (columns.0.as_chunks::<2>().0, columns.1.as_chunks::<2>().0);
        for ((out, positions), weights) in out.chunks_exact_mut(inner).zip(positions).zip(weights) {
            let [left, right] = positions.map(|at| at as usize * inner);
            let [a, b] = rows.map(|row| &row[left..][..inner]);
            let [c, d] = rows.map(|row| &row[right..][..inner]);
            let [wa, wb] = by.map(|by| by * weights[0]);
            let [wc, wd] = by.map(|by| by * weights[1]);
            for ((((out, a), b), c), d) in out.iter_mut().zip(a).zip(b).zip(c).zip(d) {
                *out = (wa * a + wb * b) + (wc * c + wd * d);
            }
        }
    }

    /// Computes a row of the result.
    #[inline(always)]
    fn sum_row(&self, x: &[f32], outer: usize, row: (&[i32], &[f32]), columns: (&[i32], &[f32]), out: &mut [f32]) {
        let pitch = self.columns.length * self.inner;
        let plane = &x[outer * self.rows.length * pitch..][..self.rows.length * pitch];
        let of = |at: i32| usize::try_from(at).ok().map(|at| &plane[at * pitch..][..pitch]);
        let all_inside = !columns.0.contains(&-1) && self.columns.per == 2;
        if let ([one, two], true) = (row.0, all_inside && self.inner > 1)
            && let (Some(one), Some(two)) = (of(*one), of(*two))
        {
            return self.mix_four([one, two], [row.1[0], row.1[1]], columns, out);
        }
        for (tap, (at, weight)) in row.0.iter().zip(row.1).enumerate() {
            match of(*at) {
                Some(row) if all_inside && self.inner == 1 => Self::add_single(row, *weight, columns, tap == 0, out),
                row => self.add_row(row, *weight, columns, tap == 0, out),
            }
        }
    }
}

impl Step for Resample {
    fn name(&self) -> &'static str {
        OP
    }

    fn work(&self) -> u64 {
        let Resample { outer, rows, columns, inner, .. } = *self;
        let factors = [outer, rows.out, rows.per, columns.out, columns.per, inner];
        factors.iter().fold(1, |work: u64, factor| work.saturating_mul(*factor as u64))
    }

    fn host(&self, mut call: HostCall<'_, '_>) {
        let Resample { rows, columns, inner, .. } = *self;
        let (row_positions, column_positions) = call.integers(1).split_at(rows.out * rows.per);
        let width = columns.out * inner;
        let count = self.outer * rows.out * width;
        let threads = call.threads;
        if self.is_copy {
            let x = call.inputs[0];
            return spread(call.outputs[0], width, count, threads, |first, out| {
                for (at, out) in out.chunks_mut(width).enumerate() {
                    let (outer, row) = ((first + at) / rows.out, (first + at) % rows.out);
                    let from = (outer * rows.length + row_positions[row] as usize) * columns.length;
                    self.copy_row(x, from, column_positions, out);
                }
            });
        }
        let x = call.floats(0);
        let (row_weights, column_weights) = call.floats(2).split_at(rows.out * rows.per);
        spread(call.floats_out(0), width, count, threads, |first, out| {
            vramp_kernels::vectorised!(for (at, out) in out.chunks_mut(width).enumerate() {
                let (outer, row) = ((first + at) / rows.out, (first + at) % rows.out);
                let taps = row * rows.per..(row + 1) * rows.per;
                let row = (&row_positions[taps.clone()], &row_weights[taps]);
                self.sum_row(x, outer, row, (column_positions, column_weights), out);
            });
        });
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let begin = "
fn element(i: u32) -> u32 {
    let pixel = quotient(i, p.inner);
    let row_number = quotient(pixel, p.columns);
    let outer = quotient(row_number, p.rows);
    let row = row_number - outer * p.rows;
    let column = p.rows * p.row_taps + (pixel - row_number * p.columns) * p.column_taps;
    let inner = i - pixel * p.inner;
    let plane = outer * p.height;
";
        let copy = "
    return in0[((plane + position[row]) * p.width + position[column]) * p.inner + inner];
}";
        let sum = "
    var sum = 0.0;
    for (var r = 0u; r < p.row_taps; r++) {
        let y = position[row * p.row_taps + r];
        let weight_of_row = bitcast<f32>(weight[row * p.row_taps + r]);
        for (var c = 0u; c < p.column_taps; c++) {
            let x = position[column + c];
            var v = bitcast<f32>(p.outside);
            // -1 is the largest position.
            if max(x, y) != 0xffffffffu { v = bitcast<f32>(in0[((plane + y) * p.width + x) * p.inner + inner]); }
            sum += weight_of_row * bitcast<f32>(weight[column + c]) * v;
        }
    }
    return bitcast<u32>(sum);
}";
        let kernel = WordKernel {
            name: if self.is_copy { "resample copies" } else { "resample sums" },
            inputs: if self.is_copy { &["in0", "position"] } else { &["in0", "position", "weight"] },
            fields: &[
                ("height", self.rows.length),
                ("width", self.columns.length),
                ("rows", self.rows.out),
                ("columns", self.columns.out),
                ("row_taps", self.rows.per),
                ("column_taps", self.columns.per),
                ("inner", self.inner),
                ("outside", self.outside.to_bits() as usize),
            ],
            vectors: &[],
            wgsl: &(begin.to_owned() + if self.is_copy { copy } else { sum }),
            count: self.outer * self.rows.out * self.columns.out * self.inner,
        };
        DeviceWork::one(kernel.dispatch(facts))
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_wrap, reason = "the numbers of these tests are small")]
mod tests {
    use super::super::tests::layouts::{Words, by_place, check};
    use super::super::tests::trial::noise;
    use super::*;

    /// A table with `per` taps, some of them outside if there is a value for that.
    fn taps(length: usize, out: usize, per: usize, outside: Option<f32>) -> Taps {
        let positions = (0..out * per).map(|at| {
            let at = at * 7 % (length + usize::from(outside.is_some()));
            if at == length { -1 } else { at as i32 }
        });
        let weights = noise(out * per, 11);
        Taps { positions: positions.collect(), weights, per, outside }
    }

    fn nearest(length: usize, out: usize) -> Taps {
        let positions = (0..out).map(|at| (at * length / out) as i32).collect();
        Taps { positions, weights: vec![1.0; out], per: 1, outside: None }
    }

    /// The result along one axis, by its definition.
    fn plainly(x: &Words, axis: usize, taps: &Taps) -> Words {
        let mut out = x.lengths.clone();
        out[axis] = taps.positions.len() / taps.per;
        let values = by_place(&out, |place| {
            let each = place[axis] * taps.per..(place[axis] + 1) * taps.per;
            let sum: f64 = each
                .map(|tap| {
                    let mut from = place.to_vec();
                    let value = usize::try_from(taps.positions[tap]).ok().map(|at| {
                        from[axis] = at;
                        x.float(&from)
                    });
                    f64::from(taps.weights[tap]) * f64::from(value.or(taps.outside).unwrap_or(0.0))
                })
                .sum();
            sum as f32
        });
        Words::floats(&values, &out)
    }

    #[test]
    fn results_are_weighted_sums_along_an_axis() {
        for (lengths, axis, out, per, outside) in [
            (vec![5], 0, 9, 2, None),
            (vec![3, 4], 1, 6, 4, None),
            (vec![2, 3, 5], 2, 4, 3, Some(0.5)),
            (vec![1, 3, 4, 5], 2, 8, 2, None),
            (vec![1, 3, 4, 5], 3, 3, 2, Some(-2.0)),
            (vec![2, 3, 4, 2, 3], 1, 5, 1, None),
            (vec![2, 3], 1, 0, 2, None),
            (vec![20, 3, 2], 1, 5, 3, None),
            // Enough values for several threads.
            (vec![1, 4, 130, 100], 2, 190, 2, None),
        ] {
            let (x, taps) = (Words::noise(&lengths, 2), taps(lengths[axis], out, per, outside));
            let wanted = plainly(&x, axis, &taps);
            check(&[x], false, &[wanted], &|net, x| vec![net.resampled(x[0], axis, &taps).unwrap()]);
        }
    }

    #[test]
    fn two_axes_are_resampled_as_one_after_the_other() {
        let lengths = [2, 3, 4, 5];
        let x = Words::noise(&lengths, 9);
        for (rows, columns) in [
            (taps(4, 7, 2, None), taps(5, 9, 2, None)),
            (taps(4, 3, 4, None), taps(5, 8, 3, None)),
            (taps(4, 6, 2, Some(0.25)), taps(5, 9, 2, Some(0.25))),
            (nearest(4, 8), nearest(5, 10)),
            (nearest(4, 8), taps(5, 10, 2, None)),
            (nearest(4, 4), taps(5, 10, 2, None)),
        ] {
            // A value outside in the second axis counts once, whatever the weights of the first axis are.
            let whole = |taps: &Taps| {
                let mut taps = taps.clone();
                for weights in taps.weights.chunks_mut(taps.per) {
                    let last = weights.len() - 1;
                    weights[last] = 1.0 - weights[..last].iter().sum::<f32>();
                }
                taps
            };
            let (rows, columns) = (whole(&rows), whole(&columns));
            let wanted = plainly(&plainly(&x, 2, &rows), 3, &columns);
            let build = |net: &mut NetworkBuilder, x: &[ValueId]| {
                vec![net.resampled_two(x[0], [(3, &columns), (2, &rows)]).unwrap()]
            };
            check(std::slice::from_ref(&x), false, &[wanted], &build);
        }
    }

    #[test]
    fn threads_share_the_rows_of_a_picture() {
        let x = Words::noise(&[1, 3, 60, 70], 1);
        for (rows, columns) in [(taps(60, 170, 2, None), taps(70, 200, 2, None)), (nearest(60, 170), nearest(70, 200))]
        {
            let wanted = plainly(&plainly(&x, 2, &rows), 3, &columns);
            let build = |net: &mut NetworkBuilder, x: &[ValueId]| {
                vec![net.resampled_two(x[0], [(2, &rows), (3, &columns)]).unwrap()]
            };
            check(std::slice::from_ref(&x), false, &[wanted], &build);
        }
    }

    #[test]
    fn the_nearest_integers_are_copied_and_others_refused() {
        let x = Words::integers(&[1, i32::MAX, 3, 4, 5, i32::MIN], &[1, 1, 2, 3]);
        let wanted = [1, 1, i32::MAX, i32::MAX, 3, 3, 4, 4, 5, 5, i32::MIN, i32::MIN];
        let wanted: Vec<i32> = [0, 0, 1, 1].iter().flat_map(|row| wanted[row * 6..][..6].to_vec()).collect();
        let wanted = Words::integers(&wanted, &[1, 1, 4, 6]);
        let build = |net: &mut NetworkBuilder, x: &[ValueId]| {
            let linear = taps(2, 2, 2, None);
            assert!(net.resampled(x[0], 2, &linear).is_err());
            vec![net.resampled_two(x[0], [(2, &nearest(2, 4)), (3, &nearest(3, 6))]).unwrap()]
        };
        check(&[x], true, &[wanted], &build);
    }

    #[test]
    fn tables_that_do_not_fit_are_refused() {
        let mut net = NetworkBuilder::new(&crate::Context::on_host());
        let x = net.input(WordKind::F32, &[4]).unwrap();
        let good = Taps { positions: vec![0, 3], weights: vec![0.5; 2], per: 2, outside: None };
        assert!(net.resampled(x, 0, &good).is_ok() && net.resampled(x, 1, &good).is_err());
        for wrong in [
            Taps { positions: vec![0, 4], ..good.clone() },
            Taps { positions: vec![0, -2], ..good.clone() },
            Taps { weights: vec![1.0], ..good.clone() },
            Taps { per: 0, ..good.clone() },
        ] {
            assert!(net.resampled(x, 0, &wrong).is_err(), "{wrong:?}");
        }
    }
}
