//! Values with a border around them.
//!
//! Neighbouring axes without a border are one axis, as are all axes after a border of constants.

#[cfg(not(target_arch = "wasm32"))]
use std::fmt::Write;

use smallvec::SmallVec;

use crate::network::NetworkBuilder;
use crate::network::builder::NewValue;
#[cfg(not(target_arch = "wasm32"))]
use crate::network::step::{DeviceFacts, DeviceWork};
use crate::network::step::{HostCall, Step};
use crate::network::value::{Lengths, ValueId, in_order};
use crate::ops::error::TensorError;
use crate::ops::host::spread::spread;
use crate::ops::shape::Shape;

#[cfg(not(target_arch = "wasm32"))]
use super::by_word::WordKernel;

const OP: &str = "pad";

/// What a border consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PadMode {
    /// This word: the bits of a float, or an integer.
    Constant(u32),
    /// The values inside, mirrored at the first and the last value, which are not repeated.
    Reflect,
    /// The nearest value.
    Edge,
    /// The values from the other end.
    Wrap,
}

/// An axis in memory order.
#[derive(Debug, Clone, Copy)]
struct PaddedAxis {
    length: usize,
    begin: usize,
    end: usize,
}

impl PaddedAxis {
    fn out(self) -> usize {
        self.begin + self.length + self.end
    }

    fn is_plain(self) -> bool {
        self.begin == 0 && self.end == 0
    }
}

#[derive(Debug)]
struct Pad {
    mode: PadMode,
    axes: SmallVec<[PaddedAxis; 6]>,
}

impl PadMode {
    /// The position whose value stands at position `at` of the result.
    fn source(self, axis: PaddedAxis, at: usize) -> Option<usize> {
        let PaddedAxis { length, begin, .. } = axis;
        let inside = at.checked_sub(begin).filter(|at| *at < length);
        match self {
            PadMode::Constant(_) => inside,
            // An empty axis has no positions whose source is read.
            _ if inside.is_some() || length == 0 => inside,
            PadMode::Edge => Some(at.saturating_sub(begin).min(length - 1)),
            PadMode::Reflect => {
                let period = (2 * (length - 1)).max(1);
                let within = remainder(at, begin, period);
                Some(within.min(period - within).min(length - 1))
            }
            PadMode::Wrap => Some(remainder(at, begin, length)),
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn name(self) -> &'static str {
        match self {
            PadMode::Constant(_) => "constant",
            PadMode::Reflect => "reflect",
            PadMode::Edge => "edge",
            PadMode::Wrap => "wrap",
        }
    }
}

/// The remainder of `at - begin`, which may be negative.
fn remainder(at: usize, begin: usize, period: usize) -> usize {
    (at + begin.next_multiple_of(period) - begin) % period
}

impl NetworkBuilder {
    /// The value with `begin` and `end` positions added to each axis.
    pub fn padded(
        &mut self,
        x: ValueId,
        begin: &[usize],
        end: &[usize],
        mode: PadMode,
    ) -> Result<ValueId, TensorError> {
        let lengths = Lengths::from_slice(self.lengths(x));
        if begin.len() != lengths.len() || end.len() != lengths.len() {
            let problem = format!("{} and {} borders for {} axes", begin.len(), end.len(), lengths.len());
            return Err(TensorError::Mismatch { op: OP, problem });
        }
        if begin.iter().chain(end).all(|border| *border == 0) {
            return Ok(x);
        }
        let out: Lengths = (0..lengths.len())
            .map(|axis| lengths[axis].saturating_add(begin[axis]).saturating_add(end[axis]))
            .collect();
        let is_filled = matches!(mode, PadMode::Constant(_));
        if !is_filled && lengths.contains(&0) && !out.contains(&0) {
            let problem = format!("{:?} has no values from which a border can be made", lengths.as_slice());
            return Err(TensorError::Mismatch { op: OP, problem });
        }
        Shape::new(&out)?;
        let order = self.views[x.0].order();
        let memory = self.dense(x, &order)?;
        let of = |lengths: &[usize]| in_order(lengths, &order);
        let (own, begin, end) = (of(&lengths), of(begin), of(end));
        let mut axes: SmallVec<[PaddedAxis; 6]> = SmallVec::new();
        for axis in 0..own.len() {
            let (length, begin, end) = (own[axis], begin[axis], end[axis]);
            let next = PaddedAxis { length, begin, end };
            match axes.last_mut() {
                Some(last) if next.is_plain() && (is_filled || last.is_plain()) => {
                    let PaddedAxis { length: before, begin, end } = *last;
                    *last = PaddedAxis { length: before * length, begin: begin * length, end: end * length };
                }
                Some(last) if last.length == 1 && last.is_plain() => *last = next,
                _ => axes.push(next),
            }
        }
        let kind = self.kind(x);
        let new = NewValue { kind, lengths: &out, order };
        self.add_one(Pad { mode, axes }, &[memory], new)
    }
}

impl Pad {
    /// Fills a row of the last axis. `row` is the row's index in the result.
    fn fill(&self, x: &[u32], row: usize, out: &mut [u32]) {
        let (last, outer) = self.axes.split_last().expect("a border has an axis");
        let fill = if let PadMode::Constant(word) = self.mode { word } else { 0 };
        let (mut rest, mut from, mut stride) = (row, 0, last.length);
        for axis in outer.iter().rev() {
            let Some(source) = self.mode.source(*axis, rest % axis.out()) else { return out.fill(fill) };
            from += source * stride;
            stride *= axis.length;
            rest /= axis.out();
        }
        let x = &x[if last.length == 0 { 0 } else { from }..];
        let (begin, inside) = out.split_at_mut(last.begin);
        let (inside, end) = inside.split_at_mut(last.length);
        inside.copy_from_slice(&x[..last.length]);
        if let PadMode::Constant(_) = self.mode {
            begin.fill(fill);
            return end.fill(fill);
        }
        let (before, after) = (0..last.begin, last.begin + last.length..last.out());
        for (out, at) in begin.iter_mut().zip(before).chain(end.iter_mut().zip(after)) {
            *out = self.mode.source(*last, at).map_or(fill, |source| x[source]);
        }
    }
}

impl Step for Pad {
    fn name(&self) -> &'static str {
        OP
    }

    fn host(&self, call: HostCall<'_, '_>) {
        let x = call.inputs[0];
        let row = self.axes.last().expect("a border has an axis").out();
        let count = call.outputs[0].len();
        spread(call.outputs[0], row, count, call.threads, |first, out| {
            for (at, out) in out.chunks_mut(row).enumerate() {
                self.fill(x, first + at, out);
            }
        });
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let source = match self.mode {
            PadMode::Constant(_) => "",
            PadMode::Edge => "fn source(at: i32, n: i32) -> i32 { return clamp(at, 0, n - 1); }",
            PadMode::Reflect => {
                "fn source(at: i32, n: i32) -> i32 {
    let period = max(2 * (n - 1), 1);
    let within = ((at % period) + period) % period;
    return min(min(within, period - within), n - 1);
}"
            }
            PadMode::Wrap => "fn source(at: i32, n: i32) -> i32 { return ((at % n) + n) % n; }",
        };
        let mut wgsl = format!("{source}\nfn element(i: u32) -> u32 {{\n    var rest = i;\n    var place = 0u;\n");
        let mut vectors = Vec::new();
        let mut stride = 1;
        for (at, axis) in self.axes.iter().rev().enumerate() {
            vectors.push([axis.out(), axis.length, axis.begin, stride].map(|number| number as u32));
            stride *= axis.length;
            // (length of the result, length of the input, begin, stride)
            let _ = writeln!(wgsl, "    let axis{at} = p.hook[{at}];\n    let up{at} = quotient(rest, axis{at}.x);");
            let _ = writeln!(wgsl, "    let at{at} = rest - up{at} * axis{at}.x - axis{at}.z;\n    rest = up{at};");
            if let PadMode::Constant(_) = self.mode {
                // As an unsigned number, a negative position is large.
                let _ = writeln!(wgsl, "    if at{at} >= axis{at}.y {{ return p.fill; }}");
                let _ = writeln!(wgsl, "    place += at{at} * axis{at}.w;");
            } else {
                let _ = writeln!(wgsl, "    place += u32(source(bitcast<i32>(at{at}), i32(axis{at}.y))) * axis{at}.w;");
            }
        }
        wgsl += "    return in0[place];\n}";
        let kernel = WordKernel {
            name: &format!("pad {} {}", self.mode.name(), self.axes.len()),
            inputs: &["in0"],
            fields: &[("fill", if let PadMode::Constant(word) = self.mode { word as usize } else { 0 })],
            vectors: &vectors,
            wgsl: &wgsl,
            count: self.axes.iter().copied().map(PaddedAxis::out).product(),
        };
        DeviceWork::one(kernel.dispatch(facts))
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_wrap, reason = "the numbers of these tests are small")]
mod tests {
    use super::super::tests::layouts::{Words, by_place, check};
    use super::*;

    /// A source position by its definition, one step at a time.
    fn source(mode: PadMode, length: usize, begin: usize, at: usize) -> Option<usize> {
        let (length, mut at) = (length as i64, at as i64 - begin as i64);
        while !(0..length).contains(&at) {
            at = match mode {
                PadMode::Constant(_) => return None,
                PadMode::Edge => at.clamp(0, length - 1),
                PadMode::Wrap => at + if at < 0 { length } else { -length },
                PadMode::Reflect if length == 1 => 0,
                PadMode::Reflect if at < 0 => -at,
                PadMode::Reflect => 2 * (length - 1) - at,
            };
        }
        Some(at as usize)
    }

    #[test]
    fn borders_of_every_mode_surround_values_of_any_rank() {
        let modes = [PadMode::Constant(2.5_f32.to_bits()), PadMode::Reflect, PadMode::Edge, PadMode::Wrap];
        for (lengths, begin, end) in [
            (vec![4], vec![3], vec![2]),
            (vec![1], vec![2], vec![2]),
            (vec![3, 2], vec![0, 5], vec![1, 4]),
            (vec![2, 3, 4], vec![0, 0, 1], vec![0, 2, 0]),
            (vec![1, 3, 4, 5], vec![0, 0, 1, 2], vec![0, 0, 2, 1]),
            (vec![2, 2, 3, 2, 3], vec![1, 0, 1, 0, 2], vec![0, 1, 0, 0, 1]),
            // Enough values for several threads.
            (vec![1, 4, 120, 140], vec![0, 0, 3, 2], vec![0, 0, 1, 4]),
        ] {
            let x = Words::noise(&lengths, 6);
            let out: Vec<usize> = (0..lengths.len()).map(|axis| lengths[axis] + begin[axis] + end[axis]).collect();
            for mode in modes {
                let wanted = by_place(&out, |place| {
                    let axes = 0..lengths.len();
                    let from: Option<Vec<usize>> =
                        axes.map(|axis| source(mode, lengths[axis], begin[axis], place[axis])).collect();
                    from.map_or(2.5, |from| x.float(&from))
                });
                let wanted = Words::floats(&wanted, &out);
                let build =
                    |net: &mut NetworkBuilder, x: &[ValueId]| vec![net.padded(x[0], &begin, &end, mode).unwrap()];
                check(std::slice::from_ref(&x), true, &[wanted], &build);
            }
        }
    }

    #[test]
    fn nothing_is_padded_with_constants_only() {
        let x = Words::integers(&[], &[2, 0]);
        let wanted = Words::integers(&[7; 6], &[2, 3]);
        let build = |net: &mut NetworkBuilder, x: &[ValueId]| {
            assert!(net.padded(x[0], &[0, 1], &[0, 2], PadMode::Edge).is_err());
            vec![net.padded(x[0], &[0, 1], &[0, 2], PadMode::Constant(7)).unwrap()]
        };
        check(&[x], true, &[wanted], &build);
    }
}
