//! The position of the largest or smallest value along an axis.
//!
//! Invariant: NaN wins against every number, and the two zeros are equal.

#![expect(clippy::inline_always, reason = "functions that are not inlined into `vectorised!` lose its instructions")]

use crate::network::NetworkBuilder;
use crate::network::builder::NewValue;
#[cfg(not(target_arch = "wasm32"))]
use crate::network::step::{Bound, DeviceFacts, DeviceWork, Dispatch};
use crate::network::step::{HostCall, Step, WordKind};
use crate::network::value::{Lengths, ValueId};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::{KernelText, Launch, MATH};
use crate::ops::error::TensorError;
use crate::ops::host::spread::spread;
use crate::ops::shape::Around;

use super::by_word::with_length;

const OP: &str = "arg";

/// How words are compared: as keys, unsigned numbers of which larger ones come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ranking {
    pub(super) kind: WordKind,
    pub(super) largest: bool,
    pub(super) nan: NanRank,
}

/// The rank of NaN.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NanRank {
    /// Before every number, also if small numbers come first.
    First,
    /// As the largest number.
    Largest,
    /// After every number.
    Last,
}

impl Ranking {
    /// The key of a word.
    #[inline(always)]
    pub(super) fn key(self, word: u32) -> u32 {
        const SIGN: u32 = 1 << 31;
        let is_nan = self.kind == WordKind::F32 && word & !SIGN > 0x7f80_0000;
        let rising = match self.kind {
            WordKind::I32 => word ^ SIGN,
            WordKind::F32 if is_nan => u32::MAX,
            // Both zeros, and positive numbers.
            WordKind::F32 if word == SIGN || word & SIGN == 0 => word | SIGN,
            WordKind::F32 => !word,
        };
        match self.nan {
            NanRank::First if is_nan => u32::MAX,
            NanRank::Last if is_nan => 0,
            _ if self.largest => rising,
            _ => !rising,
        }
    }

    /// WGSL of [`Ranking::key`].
    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn wgsl(self) -> String {
        let turn = |key: &str| if self.largest { key.to_owned() } else { format!("~({key})") };
        match self.kind {
            WordKind::I32 => format!("fn key(word: u32) -> u32 {{ return {}; }}\n", turn("word ^ 0x80000000u")),
            WordKind::F32 => {
                let nan = match self.nan {
                    NanRank::First => "0xffffffffu".to_owned(),
                    NanRank::Largest => turn("0xffffffffu"),
                    NanRank::Last => "0u".to_owned(),
                };
                format!(
                    "fn key(word: u32) -> u32 {{
    if (word & 0x7fffffffu) > 0x7f800000u {{ return {nan}; }}
    let rising = select(~word, word | 0x80000000u, word <= 0x80000000u);
    return {};
}}
",
                    turn("rising")
                )
            }
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    pub(super) fn name(self) -> String {
        let kind = self.kind.dtype();
        format!("{kind} {} nan {:?}", if self.largest { "largest" } else { "smallest" }, self.nan)
    }
}

#[derive(Debug)]
struct Arg {
    around: Around,
    ranking: Ranking,
    /// Among equal values, the last one.
    last: bool,
}

impl NetworkBuilder {
    /// The position of the largest or smallest value along an axis, as i32; the first or the last position of equal
    /// values. The axis remains with length 1 if `keep`.
    pub fn arg(
        &mut self,
        x: ValueId,
        axis: usize,
        keep: bool,
        largest: bool,
        last: bool,
    ) -> Result<ValueId, TensorError> {
        self.has_axis(OP, x, axis)?;
        let own = Lengths::from_slice(self.lengths(x));
        let mut lengths = with_length(&own, axis, 1);
        if own[axis] == 0 && !lengths.contains(&0) {
            return Err(TensorError::Mismatch { op: OP, problem: format!("axis {axis} is empty") });
        }
        let ranking = Ranking { kind: self.kind(x), largest, nan: NanRank::First };
        let along = self.along_axis(x, axis)?;
        let step = Arg { around: along.around, ranking, last };
        let new = NewValue { kind: WordKind::I32, lengths: &lengths, order: along.order };
        let made = self.add_one(step, &[along.memory], new)?;
        if keep {
            return Ok(made);
        }
        lengths.remove(axis);
        self.reshaped(made, &lengths)
    }
}

/// Columns that the host compares side by side.
const COLUMNS: usize = 64;

impl Arg {
    /// The positions for neighbouring columns. `x` begins at the first value of the first column.
    #[inline(always)]
    fn columns(&self, x: &[u32], out: &mut [u32]) {
        let mut best = [0; COLUMNS];
        let best = &mut best[..out.len()];
        out.fill(0);
        for (at, row) in x.chunks(self.around.inner).enumerate().take(self.around.length) {
            for ((best, out), word) in best.iter_mut().zip(out.iter_mut()).zip(row) {
                let key = self.ranking.key(*word);
                let better = if self.last { key >= *best } else { key > *best };
                *out = if better || at == 0 { at as u32 } else { *out };
                *best = if better { key } else { *best };
            }
        }
    }
}

impl Step for Arg {
    fn name(&self) -> &'static str {
        OP
    }

    fn host(&self, call: HostCall<'_, '_>) {
        let Around { outer, length, inner } = self.around;
        let x = call.inputs[0];
        spread(call.outputs[0], inner, outer * length * inner, call.threads, |first, out| {
            vramp_kernels::vectorised!(for (at, out) in out.chunks_mut(inner).enumerate() {
                let x = &x[(first + at) * length * inner..][..length * inner];
                for (block, out) in out.chunks_mut(COLUMNS).enumerate() {
                    self.columns(&x[block * COLUMNS..], out);
                }
            });
        });
    }

    /// An invocation compares a segment of a row. If a row has several segments, a second dispatch compares the best
    /// positions of the segments, and so on.
    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        let rows = self.around.outer * self.around.inner;
        let mut work = DeviceWork::default();
        let mut candidates = self.around.length;
        let mut from = None;
        loop {
            // Few rows are split, so that many invocations share the work.
            let whole = candidates <= 64 || (candidates <= 4096 && rows >= 256);
            let each = if whole { candidates } else { candidates.isqrt().clamp(16, 4096) };
            let segments = candidates.div_ceil(each.max(1)).max(1);
            let into = if segments == 1 {
                Bound::Output(0)
            } else {
                work.temporary.push(rows * segments);
                Bound::Temporary(work.temporary.len() - 1)
            };
            work.dispatches.push(self.pass(from, into, [candidates, each, segments], facts));
            if segments == 1 {
                return work;
            }
            (from, candidates) = (Some(into), segments);
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
impl Arg {
    /// One dispatch: of each segment of `each` candidates, the best position. The candidates are all positions, or the
    /// positions that an earlier dispatch has written.
    fn pass(&self, from: Option<Bound>, into: Bound, sizes: [usize; 3], facts: &DeviceFacts) -> Dispatch {
        let [candidates, each, segments] = sizes;
        let Around { outer, length, inner } = self.around;
        let mut text = KernelText::new();
        text.read("in0", "u32");
        if from.is_some() {
            text.read("before", "u32");
        }
        text.write("out", "u32");
        text.params(&["count", "length", "inner", "candidates", "each", "segments"], 0);
        text.push(MATH);
        text.push(&self.ranking.wgsl());
        let candidate = if from.is_some() { "before[row * p.candidates + c]" } else { "c" };
        let better = if self.last { ">=" } else { ">" };
        text.push(&format!(
            "
@compute @workgroup_size(64)
fn main(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {{
    let number = (group.x + group.y * groups.x) * 64u + local;
    if number >= p.count {{ return; }}
    let row = quotient(number, p.segments);
    let outer = quotient(row, p.inner);
    let base = outer * p.length * p.inner + (row - outer * p.inner);
    let start = (number - row * p.segments) * p.each;
    let end = min(start + p.each, p.candidates);
    var c = start;
    var chosen = {candidate};
    var best = key(in0[base + chosen * p.inner]);
    for (c = start + 1u; c < end; c++) {{
        let at = {candidate};
        let k = key(in0[base + at * p.inner]);
        if k {better} best {{
            best = k;
            chosen = at;
        }}
    }}
    out[number] = chosen;
}}"
        ));
        let last = if self.last { "last" } else { "first" };
        let name = format!("arg {} {last} {}", self.ranking.name(), from.is_some());
        let count = outer * inner * segments;
        let words = [count, length, inner, candidates, each, segments].map(|number| number as u32);
        Dispatch {
            key: name.clone(),
            shader: text.shader(name, 64),
            buffers: [Bound::Input(0)].into_iter().chain(from).chain([into]).collect(),
            launch: Launch::new(&words, count.div_ceil(64) as u64, facts.most_groups),
        }
    }
}

#[cfg(test)]
#[expect(clippy::cast_possible_wrap, reason = "the numbers of these tests are small")]
mod tests {
    use super::super::tests::layouts::{Words, by_place, check, index_of};
    use super::super::tests::trial::noise;

    #[test]
    fn the_first_or_last_position_of_the_best_value_is_found() {
        for (lengths, axis) in [
            (vec![1], 0),
            (vec![3000], 0),
            (vec![5, 70], 1),
            (vec![70, 5], 0),
            (vec![1, 21, 9, 8], 1),
            (vec![2, 3, 4, 100], 3),
            (vec![2, 3, 2, 2, 3], 2),
            (vec![0, 3], 1),
        ] {
            let count: usize = lengths.iter().product();
            // Few different values, so that many are equal.
            let numbers: Vec<i32> = noise(count, 7).iter().map(|v| (v * 6.0) as i32).collect();
            let floats: Vec<f32> = numbers.iter().map(|v| if *v == 0 { -0.0 } else { *v as f32 }).collect();
            for (largest, last) in [(true, false), (true, true), (false, false), (false, true)] {
                let mut out = lengths.clone();
                out[axis] = 1;
                let wanted = by_place(&out, |place| {
                    let mut best = (0, None);
                    for at in 0..lengths[axis] {
                        let mut from = place.to_vec();
                        from[axis] = at;
                        let v = numbers[index_of(&from, &lengths)];
                        let v = if largest { v } else { -v };
                        if best.1.is_none_or(|best| v > best || (v == best && last)) {
                            best = (at as i32, Some(v));
                        }
                    }
                    best.0
                });
                let mut dropped = out.clone();
                dropped.remove(axis);
                let wanted = [Words::integers(&wanted, &out), Words::integers(&wanted, &dropped)];
                for x in [Words::floats(&floats, &lengths), Words::integers(&numbers, &lengths)] {
                    check(&[x], true, &wanted, &|net, x| {
                        [true, false].map(|keep| net.arg(x[0], axis, keep, largest, last).unwrap()).to_vec()
                    });
                }
            }
        }
    }

    #[test]
    fn nan_is_the_best_value_and_zeros_are_equal() {
        let (nan, inf) = (f32::NAN, f32::INFINITY);
        let x = Words::floats(&[1.0, nan, inf, -nan, 0.0, -0.0, 0.0, -0.0, -inf, 3.0, inf, -inf], &[3, 4]);
        let wanted = [[1, 0, 2], [3, 3, 2], [1, 0, 0], [3, 3, 3]].map(|row| Words::integers(&row, &[3]));
        check(&[x], true, &wanted, &|net, x| {
            let each = [(true, false), (true, true), (false, false), (false, true)];
            each.map(|(largest, last)| net.arg(x[0], 1, false, largest, last).unwrap()).to_vec()
        });
    }
}
