//! The reduction kernels: one sum, mean, maximum, minimum or index per row, and the split of long rows into parts and
//! passes. The caller lends the memory for the results of each pass: [`ReducePass::out_bytes`] bytes.
//!
//! Invariants: if each row has one invocation, rows of up to 4,096 values take one pass. The invocation adds at most
//! 1,024 values to each of its four sums, which are joined as a tree, so the error of a sum grows per pass by at most
//! 1,030 * 2^-24 of the sum of magnitudes. If each row has a workgroup, rows of up to 16,384 values take one pass, an
//! invocation adds at most 64 values to each of its sums, and the error grows by at most 100 * 2^-24. Rows of up to
//! 2^24 values take at most two passes. The maximum and the minimum of a row with a NaN are NaN. The index for a row
//! with a NaN is the index of the first NaN; among equal values the first index is the result.

use smallvec::SmallVec;
use vramp_plan::Shader;

use crate::ops::dtype::DType;
use crate::ops::reduction::Reduction;
use crate::ops::shape::Around;

use super::hook::Hook;
use super::rows::{GROUP, RowLanes};
use super::text::{KernelText, Launch, MATH};

/// Maximum number of values per invocation.
const MOST_PER_INVOCATION: usize = 4096;

/// Maximum number of values per workgroup. A longer row is split, so that several workgroups share it.
const PER_GROUP: usize = 256 * GROUP;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Reduce {
    pub fold: Reduction,
    pub lanes: RowLanes,
    /// True if the kernel reads values, false if it reads the results of an earlier pass.
    pub first: bool,
    /// True if the kernel writes results, false if it writes the results of parts for a later pass.
    pub last: bool,
    pub value: Hook,
    /// f32, i32 or u32. Integers are summed (wrapping) and compared in their own type, without the hook.
    pub of: DType,
}

/// One pass over rows that are split into parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReducePass {
    pub around: Around,
    /// The number of parts per row; 1 in the last pass.
    pub parts: usize,
    /// Whether one invocation or one workgroup processes a part.
    pub lanes: RowLanes,
}

impl ReducePass {
    /// The passes of a reduction. Each pass after the first reads the output of the pass before.
    pub(crate) fn plan(around: Around, software: bool) -> SmallVec<[ReducePass; 3]> {
        let mut steps = SmallVec::new();
        let mut around = around;
        loop {
            let lanes = RowLanes::for_shape(around, software);
            let most = match lanes {
                RowLanes::One => MOST_PER_INVOCATION,
                RowLanes::Group => PER_GROUP,
            };
            let parts = around.length.div_ceil(most).max(1);
            steps.push(ReducePass { around, parts, lanes });
            if parts == 1 {
                return steps;
            }
            around = Around { outer: 1, length: parts, inner: around.outer * around.inner };
        }
    }

    /// Bytes that the pass writes.
    pub(crate) fn out_bytes(&self, fold: Reduction) -> usize {
        let words = if self.parts > 1 && fold.is_position() { 2 } else { 1 };
        self.around.outer * self.around.inner * self.parts * words * 4
    }
}

const FIELDS: [&str; 7] = ["offset", "rows", "length", "inner", "parts", "part_length", "count"];

impl Reduce {
    /// The kernel of a pass. `value` is the hook of the whole reduction: only the first pass uses the hook; later
    /// passes read the results of parts.
    pub(crate) fn new(fold: Reduction, value: &Hook, steps: &[ReducePass], pass: usize) -> Reduce {
        let (first, last) = (pass == 0, pass + 1 == steps.len());
        let value = if first { value.clone() } else { Hook::plain(DType::F32) };
        Reduce { fold, lanes: steps[pass].lanes, first, last, value, of: DType::F32 }
    }

    /// The same kernel for integers of type `of`: sums, maxima and minima.
    #[must_use]
    pub(crate) fn of_whole(self, of: DType) -> Reduce {
        debug_assert!(
            matches!(self.fold, Reduction::Sum | Reduction::Max | Reduction::Min),
            "means and indices are for floats"
        );
        Reduce { of, ..self }
    }

    /// Buffers: the inputs of `value`, and the results, which are u32 for indices and of the type `of` otherwise.
    pub(crate) fn shader(&self) -> Shader {
        let mut text = KernelText::new();
        text.reading(&self.value, &FIELDS);
        text.push(MATH);
        let of = if self.fold.is_position() { "vec2<u32>" } else { self.of.name() };
        text.push(&self.wgsl());
        text.push(&self.lanes.wgsl(&[("join", of)]));
        text.push(include_str!("reduce.wgsl"));
        text.shader(format!("{}, {}", self.fold.name(), self.lanes.name()), 64)
    }

    /// Parameters and grid. `count` is the length of the whole row. `offset` is the index of the first value, and 0 for
    /// later passes.
    pub(crate) fn launch(&self, step: &ReducePass, count: usize, offset: usize, most: u32) -> Launch {
        let Around { outer, length, inner } = step.around;
        let rows = outer * inner;
        let part_length = length.div_ceil(step.parts);
        let words = [offset, rows, length, inner, step.parts, part_length, count].map(|word| word as u32);
        Launch::new(&words, self.lanes.groups(rows * step.parts), most)
    }

    fn wgsl(&self) -> String {
        match self.of {
            _ if self.fold.is_position() => self.places(),
            DType::I32 => self.whole("i32", ["bitcast<i32>(0x80000000u)", "0x7fffffff"]),
            DType::U32 => self.whole("u32", ["0u", "0xffffffffu"]),
            _ => self.values(),
        }
    }

    /// WGSL of `begin`, `take`, `join` and `give` for integers, with the minimum and the maximum of the type.
    fn whole(&self, of: &str, [least, greatest]: [&str; 2]) -> String {
        let (begin, join) = match self.fold {
            Reduction::Max => (least, "max(a, b)"),
            Reduction::Min => (greatest, "min(a, b)"),
            _ => ("0", "a + b"),
        };
        format!(
            "fn begin() -> {of} {{ return {of}({begin}); }}
fn join(a: {of}, b: {of}) -> {of} {{ return {join}; }}
fn take(so_far: {of}, at: u32, i: u32) -> {of} {{ return join(so_far, bitcast<{of}>(in0[p.offset + at])); }}
fn give(v: {of}, number: u32) {{ out[number] = bitcast<u32>(v); }}"
        )
    }

    /// WGSL of `begin`, `take`, `join` and `give` for one value per row.
    fn values(&self) -> String {
        let begin = match self.fold {
            Reduction::Max => "-infinity()",
            Reduction::Min => "infinity()",
            _ => "0.0",
        };
        let join = match self.fold {
            Reduction::Max => "select(a, b, b > a || is_nan(b))",
            Reduction::Min => "select(a, b, b < a || is_nan(b))",
            _ => "a + b",
        };
        let take = match self.fold {
            Reduction::MeanOfSquares if self.first => "let v = value(at); return fma(v, v, so_far);",
            _ => "return join(so_far, value(at));",
        };
        let result = match self.fold {
            Reduction::Mean | Reduction::MeanOfSquares if self.last => "v / f32(p.count)",
            _ => "v",
        };
        debug_assert!(self.fold.is_sum() || begin != "0.0", "sums begin with 0");
        format!(
            "fn begin() -> f32 {{ return {begin}; }}
fn join(a: f32, b: f32) -> f32 {{ return {join}; }}
fn take(so_far: f32, at: u32, i: u32) -> f32 {{ {take} }}
fn give(v: f32, number: u32) {{ out[number] = bitcast<u32>({result}); }}"
        )
    }

    /// The same functions for pairs of a value and its index: the bits of the value, then the index.
    fn places(&self) -> String {
        let better = if self.fold == Reduction::ArgMax { ">" } else { "<" };
        let take = if self.first {
            "return join(so_far, vec2<u32>(bitcast<u32>(value(at)), i));"
        } else {
            "return join(so_far, vec2<u32>(in0[2u * at], in0[2u * at + 1u]));"
        };
        let give =
            if self.last { "out[number] = v.y;" } else { "out[2u * number] = v.x; out[2u * number + 1u] = v.y;" };
        format!(
            "const NOWHERE: u32 = 0xffffffffu;
fn begin() -> vec2<u32> {{ return vec2<u32>(0u, NOWHERE); }}
fn join(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {{
    let va = bitcast<f32>(a.x);
    let vb = bitcast<f32>(b.x);
    let na = is_nan(va);
    let nb = is_nan(vb);
    let better = select(vb {better} va || (vb == va && b.y < a.y), b.y < a.y, na && nb);
    let is_b = a.y == NOWHERE || (b.y != NOWHERE && ((nb && !na) || (na == nb && better)));
    return select(a, b, is_b);
}}
fn take(so_far: vec2<u32>, at: u32, i: u32) -> vec2<u32> {{ {take} }}
fn give(v: vec2<u32>, number: u32) {{ {give} }}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{MOST, bytes_of, noise, run};
    use super::*;

    const ALL: [Reduction; 7] = [
        Reduction::Sum,
        Reduction::Mean,
        Reduction::MeanOfSquares,
        Reduction::Max,
        Reduction::Min,
        Reduction::ArgMax,
        Reduction::ArgMin,
    ];

    /// All passes, over values from `offset` on.
    fn reduce(fold: Reduction, value: &Hook, around: Around, offset: usize, bytes: &[u8]) -> Vec<u32> {
        reduce_on(false, fold, value, around, offset, bytes)
    }

    fn reduce_on(
        software: bool,
        fold: Reduction,
        value: &Hook,
        around: Around,
        offset: usize,
        bytes: &[u8],
    ) -> Vec<u32> {
        let steps = ReducePass::plan(around, software);
        let mut from = bytes.to_vec();
        for (pass, step) in steps.iter().enumerate() {
            let reduce = Reduce::new(fold, value, &steps, pass);
            let launch = reduce.launch(step, around.length, if pass == 0 { offset } else { 0 }, MOST);
            from = run(&reduce.shader(), &launch, &[&from], step.out_bytes(fold));
        }
        bytemuck::pod_collect_to_vec(&from)
    }

    fn wanted(fold: Reduction, row: &[f32]) -> f64 {
        let values = || row.iter().map(|v| f64::from(*v));
        let place = |is_max: bool| {
            let better = |a: f32, b: f32| if is_max { b > a } else { b < a };
            (1..row.len()).fold(0, |best, at| if better(row[best], row[at]) { at } else { best }) as f64
        };
        match fold {
            Reduction::Sum => values().sum(),
            Reduction::Mean => values().sum::<f64>() / row.len() as f64,
            Reduction::MeanOfSquares => values().map(|v| v * v).sum::<f64>() / row.len() as f64,
            Reduction::Max => values().fold(f64::NEG_INFINITY, f64::max),
            Reduction::Min => values().fold(f64::INFINITY, f64::min),
            Reduction::ArgMax => place(true),
            Reduction::ArgMin => place(false),
        }
    }

    #[test]
    fn every_reduction_of_every_kind_of_row_is_that_of_f64() {
        let shapes = [
            (3, 1, 1),
            (70, 33, 1),
            (3, 1000, 1),
            (2, 5, 3),
            (2, 40, 700),
            (1, 20_000, 1),
            (1, 9000, 130),
            (260, 60, 1),
        ];
        for (outer, length, inner) in shapes {
            let around = Around { outer, length, inner };
            // Coarse values, so that some are equal.
            let values: Vec<f32> =
                noise(3 + outer * length * inner, 1).iter().map(|v| (v * 512.0).round() / 64.0).collect();
            for fold in ALL {
                let software = outer == 260;
                let got = reduce_on(software, fold, &Hook::plain(DType::F32), around, 3, bytes_of(&values));
                assert_eq!(got.len(), outer * inner);
                for (at, bits) in got.iter().enumerate() {
                    let base = 3 + at / inner * length * inner + at % inner;
                    let row: Vec<f32> = (0..length).map(|i| values[base + i * inner]).collect();
                    let got = if fold.is_position() { f64::from(*bits) } else { f64::from(f32::from_bits(*bits)) };
                    let magnitudes = wanted(fold, &row.iter().map(|v| v.abs()).collect::<Vec<_>>());
                    let tolerance = if fold.is_sum() { magnitudes * 1030.0 * 2.0 / 16_777_216.0 } else { 0.0 };
                    let wanted = wanted(fold, &row);
                    assert!((got - wanted).abs() <= tolerance, "{fold:?} {around:?} at {at}: {got} {wanted}");
                }
            }
        }
    }

    #[test]
    fn nan_is_the_greatest_and_the_least_and_its_first_place_is_found() {
        let mut values = noise(40_000, 2);
        (values[123], values[20_000], values[39_999]) = (f32::INFINITY, f32::NAN, -f32::NAN);
        for length in [20_000, 40_000] {
            let around = Around { outer: 40_000 / length, length, inner: 1 };
            for (fold, place) in [(Reduction::Max, Reduction::ArgMax), (Reduction::Min, Reduction::ArgMin)] {
                let last = *reduce(fold, &Hook::plain(DType::F32), around, 0, bytes_of(&values)).last().unwrap();
                assert!(f32::from_bits(last).is_nan(), "{fold:?}");
                let at = *reduce(place, &Hook::plain(DType::F32), around, 0, bytes_of(&values)).last().unwrap();
                assert_eq!(at as usize, 20_000 % length, "{place:?}");
            }
        }
    }

    #[test]
    fn rows_of_nothing_but_the_least_number_have_a_first_place() {
        let values = [f32::NEG_INFINITY; 100];
        let around = Around { outer: 1, length: 100, inner: 1 };
        assert_eq!(reduce(Reduction::ArgMax, &Hook::plain(DType::F32), around, 0, bytes_of(&values)), [0]);
        let max = reduce(Reduction::Max, &Hook::plain(DType::F32), around, 0, bytes_of(&values));
        assert_eq!(max, [f32::NEG_INFINITY.to_bits()]);
    }

    #[test]
    fn a_hook_is_read_through_once_whatever_the_passes() {
        let value = Hook {
            wgsl: "fn value(at: u32) -> f32 { return 2.0 * bitcast<f32>(in0[p.offset + at]) + f32(p.hook[0].x); }"
                .into(),
            inputs: 1,
            vectors: 1,
        };
        for length in [10, 1000, 40_000] {
            let around = Around { outer: 1, length, inner: 1 };
            let steps = ReducePass::plan(around, true);
            let mut from = bytes_of(&vec![1.0_f32; length]).to_vec();
            for (pass, step) in steps.iter().enumerate() {
                let reduce = Reduce::new(Reduction::Sum, &value, &steps, pass);
                let launch = reduce.launch(step, length, 0, MOST);
                let launch = if pass == 0 { launch.with_hook(&[1]) } else { launch };
                from = run(&reduce.shader(), &launch, &[&from], step.out_bytes(Reduction::Sum));
            }
            assert_eq!(bytemuck::pod_collect_to_vec::<u8, f32>(&from), [3.0 * length as f32]);
        }
    }

    #[test]
    fn bytes_are_summed_as_they_lie() {
        let bytes: Vec<u8> = (0..=255).collect();
        let around = Around { outer: 5, length: 50, inner: 1 };
        let got = reduce(Reduction::Sum, &Hook::plain(DType::U8), around, 3, &bytes);
        let first: u32 = (3..53).sum();
        assert_eq!(got[0], (first as f32).to_bits());
    }

    #[test]
    fn no_pass_goes_through_too_many_values() {
        let shapes = [(1, 1 << 28, 1), (1, 1 << 20, 64), (1 << 20, 64, 1), (1, 40_000, 5000), (5000, 40_000, 1)];
        for ((outer, length, inner), software) in shapes.into_iter().flat_map(|shape| [(shape, false), (shape, true)]) {
            let steps = ReducePass::plan(Around { outer, length, inner }, software);
            assert_eq!(steps.last().unwrap().parts, 1);
            for step in &steps {
                let each = step.around.length.div_ceil(step.parts).div_ceil(step.lanes.count());
                assert!(each <= MOST_PER_INVOCATION, "{step:?}");
            }
        }
    }
}
