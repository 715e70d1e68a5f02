//! Matrix products of two values, of which neither needs to be known. Transposed operands, slices and repeated matrices
//! are read by their strides.

use smallvec::SmallVec;
#[cfg(not(target_arch = "wasm32"))]
use smallvec::smallvec;
use vramp_kernels::vectorised;

#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::matmul::{Operand, Product, Sizes, Strides, Tile};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::device::{Hook, KernelText, Launch, MATH};
use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::host::matmul::{MatmulSize, matmul_f32};
use crate::ops::host::spread::spread;
use crate::ops::program::{ElementwiseProgram, Running};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::program::{Instruction, ProgramInput, Walk};
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::reduction::Reduction;
#[cfg(not(target_arch = "wasm32"))]
use crate::ops::shape::Around;

use super::super::builder::{NetworkBuilder, NewValue, bytes};
#[cfg(not(target_arch = "wasm32"))]
use super::super::map;
#[cfg(not(target_arch = "wasm32"))]
use super::super::step::{Bound, DeviceFacts, DeviceWork, Dispatch};
use super::super::step::{HostCall, Step, WordKind};
use super::super::value::{Lengths, ValueId, View, straight};
#[cfg(not(target_arch = "wasm32"))]
use super::reduce::push_passes;

const OP: &str = "matmul";

/// Maximum length of a sum of products of integers, as many as one invocation may add.
const MOST_WHOLE_K: usize = 32_768;

/// A batch of products. Inputs: both operands, and those of the finishing program.
#[derive(Debug)]
struct ProductStep {
    kind: WordKind,
    size: MatmulSize,
    /// The first words of the operands in their memories.
    offsets: [usize; 2],
    ends: Option<ElementwiseProgram>,
}

impl NetworkBuilder {
    /// The matrix products of the last two axes; the axes before them broadcast. Products of integers wrap.
    pub fn product(&mut self, a: ValueId, b: ValueId) -> Result<ValueId, TensorError> {
        let kind = self.kind(a);
        let (one, two) = (Lengths::from_slice(self.lengths(a)), Lengths::from_slice(self.lengths(b)));
        let mismatch = |problem: String| TensorError::Mismatch { op: OP, problem };
        if self.kind(b) != kind {
            let problem = format!("the operands are {} and {}", kind.dtype(), self.kind(b).dtype());
            return Err(TensorError::Setting { op: OP, problem });
        }
        let ([batch_a @ .., m, k], [batch_b @ .., rows, columns]) = (one.as_slice(), two.as_slice()) else {
            return Err(mismatch(format!("{:?} and {:?}: both need at least two axes", &one[..], &two[..])));
        };
        if k != rows {
            return Err(mismatch(format!("{:?} has {k} columns, {:?} has {rows} rows", &one[..], &two[..])));
        }
        let (m, k, columns) = (*m, *k, *columns);
        let mut lengths = super::super::map::broadcast(OP, batch_a, batch_b)?;
        let batch = lengths.len();
        let whole = |matrix: [usize; 2]| -> Lengths { lengths.iter().copied().chain(matrix).collect() };
        let (one, two) = (whole([m, k]), whole([k, columns]));
        lengths.extend([m, columns]);
        if k == 0 || lengths.contains(&0) {
            let zero = match kind {
                WordKind::F32 => self.floats(vec![0.0], &[])?,
                WordKind::I32 => self.integers(vec![0], &[])?,
            };
            return self.repeated(zero, &lengths);
        }
        if kind == WordKind::I32 && k > MOST_WHOLE_K {
            let problem = format!("sums of {k} products of integers; at most {MOST_WHOLE_K} are supported");
            return Err(TensorError::NotSupported { op: OP, problem });
        }
        let (mut a, mut b) = (self.repeated(a, &one)?, self.repeated(b, &two)?);
        // A batch along several axes without a common stride takes a copy of one operand, or of both.
        let order = straight(batch + 2);
        if batch_axes(&self.views[a.0], &self.views[b.0], batch).len() > 1 {
            let alone = |of: &View| batch_axes(of, of, batch).len() <= 1;
            let (copies_a, copies_b) = match (alone(&self.views[a.0]), alone(&self.views[b.0])) {
                (false, true) => (true, false),
                (true, false) => (false, true),
                _ => (true, true),
            };
            if copies_a {
                a = self.copied(a, &order)?;
            }
            if copies_b || batch_axes(&self.views[a.0], &self.views[b.0], batch).len() > 1 {
                b = self.copied(b, &order)?;
            }
            if batch_axes(&self.views[a.0], &self.views[b.0], batch).len() > 1 {
                a = self.copied(a, &order)?;
            }
        }
        let (one, two) = (&self.views[a.0], &self.views[b.0]);
        let (mut count, a_batch, b_batch) = batch_axes(one, two, batch).first().copied().unwrap_or((1, 0, 0));
        let sides = |of: &View| (of.strides[batch], of.strides[batch + 1]);
        let mut rows = m;
        // Products with the same second matrix are one product of more rows.
        if b_batch == 0 && a_batch == m * sides(one).0 {
            (rows, count) = (m * count, 1);
        }
        let size = MatmulSize {
            batch: count,
            m: rows,
            n: columns,
            k,
            a_batch_stride: if count == 1 { 0 } else { a_batch },
            b_batch_stride: if count == 1 { 0 } else { b_batch },
            a: sides(one),
            b: sides(two),
        };
        let (inputs, offsets) = ([one.memory, two.memory], [one.offset, two.offset]);
        let step = ProductStep { kind, size, offsets, ends: None };
        self.add_one(step, &inputs, NewValue::straight(kind, &lengths))
    }
}

/// The batch axes of two operands: lengths and both strides. Neighbours that are equivalent to one axis are merged.
fn batch_axes(a: &View, b: &View, batch: usize) -> SmallVec<[(usize, usize, usize); 4]> {
    let mut axes: SmallVec<[(usize, usize, usize); 4]> = SmallVec::new();
    for axis in (0..batch).filter(|axis| a.lengths[*axis] != 1) {
        let (length, one, two) = (a.lengths[axis], a.strides[axis], b.strides[axis]);
        match axes.last_mut() {
            Some(last) if last.1 == length * one && last.2 == length * two => *last = (last.0 * length, one, two),
            _ => axes.push((length, one, two)),
        }
    }
    axes
}

impl ProductStep {
    fn count(&self) -> usize {
        self.size.batch * self.size.m * self.size.n
    }
}

impl Step for ProductStep {
    fn name(&self) -> &'static str {
        OP
    }

    fn work(&self) -> u64 {
        let MatmulSize { batch, m, n, k, .. } = self.size;
        [m, n, k].iter().fold(batch as u64, |work, length| work.saturating_mul(*length as u64))
    }

    fn host(&self, mut call: HostCall<'_, '_>) {
        let (inputs, threads, count) = (call.inputs, call.threads, self.count());
        let [a_offset, b_offset] = self.offsets;
        if self.kind == WordKind::I32 {
            let (a, b) = (&call.integers(0)[a_offset..], &call.integers(1)[b_offset..]);
            return multiply_whole(&self.size, a, b, call.integers_out(0), threads);
        }
        let (a, b) = (&call.floats(0)[a_offset..], &call.floats(1)[b_offset..]);
        let out = call.floats_out(0);
        matmul_f32(self.size, a, b, out, threads);
        if let Some(program) = &self.ends {
            spread(out, 16, count, threads, |line, out| {
                Running::new(program, inputs[2..].iter().map(|words| bytes(words))).end(line * 16, out);
            });
        }
    }

    #[cfg(not(target_arch = "wasm32"))]
    fn device(&self, facts: &DeviceFacts) -> DeviceWork {
        match self.kind {
            WordKind::F32 => self.of_floats(facts),
            WordKind::I32 => DeviceWork::one(self.of_integers(facts)),
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

/// Products of integers. The sums of a row are built up together if the second matrix has contiguous rows.
fn multiply_whole(size: &MatmulSize, a: &[i32], b: &[i32], out: &mut [i32], threads: usize) {
    size.check(a.len(), b.len(), out.len());
    let MatmulSize { m, n, k, .. } = *size;
    let work = out.len().saturating_mul(k);
    spread(out, n, work, threads, |first, out| {
        for (at, out) in out.chunks_exact_mut(n).enumerate() {
            let (product, row) = ((first + at) / m, (first + at) % m);
            let a = &a[product * size.a_batch_stride + row * size.a.0..];
            let b = &b[product * size.b_batch_stride..];
            out.fill(0);
            for l in 0..k {
                let (factor, b) = (a[l * size.a.1], &b[l * size.b.0..]);
                if size.b.1 == 1 {
                    vectorised!(for (out, value) in out.iter_mut().zip(b) {
                        *out = out.wrapping_add(factor.wrapping_mul(*value));
                    });
                } else {
                    for (column, out) in out.iter_mut().enumerate() {
                        *out = out.wrapping_add(factor.wrapping_mul(b[column * size.b.1]));
                    }
                }
            }
        }
    });
}

#[cfg(not(target_arch = "wasm32"))]
impl ProductStep {
    fn of_floats(&self, facts: &DeviceFacts) -> DeviceWork {
        let MatmulSize { batch, m, n, k, a_batch_stride, b_batch_stride, a, b } = self.size;
        let [a_offset, b_offset] = self.offsets;
        let a = Strides { offset: a_offset, side: a.0, k: a.1, product: a_batch_stride };
        let b = Strides { offset: b_offset, side: b.1, k: b.0, product: b_batch_stride };
        let sizes = Sizes { m, n, k, products: batch, a, b, whole: false };
        let parts = sizes.parts();
        // If k is split, the partial sums are added first, and the finishing program runs afterwards.
        let ends_here = self.ends.as_ref().filter(|_| parts == 1);
        let tile = Tile::usual(m, n, facts.is_software);
        let kernel = Product {
            a: Operand { dtype: DType::F32, along: a.along(m, k) },
            b: Operand { dtype: DType::F32, along: b.along(n, k) },
            wide: n.is_multiple_of(4) && tile.n.is_multiple_of(4),
            tile,
            finish: ends_here.map_or_else(Hook::pass, ElementwiseProgram::finishing),
        };
        let signature = ends_here.map_or_else(String::new, ElementwiseProgram::signature);
        let mut work = DeviceWork::default();
        let mut buffers: SmallVec<[Bound; 6]> = smallvec![Bound::Input(0), Bound::Input(1)];
        buffers.extend((0..ends_here.map_or(0, |program| program.inputs.len())).map(|at| Bound::Input(2 + at)));
        if parts == 1 {
            buffers.push(Bound::Output(0));
        } else {
            work.temporary.push(parts * self.count());
            buffers.push(Bound::Temporary(0));
        }
        let words = ends_here.map_or_else(Vec::new, ElementwiseProgram::words);
        work.dispatches.push(Dispatch {
            key: format!("matmul {:?} {:?} {} {:?} {signature}", kernel.a, kernel.b, kernel.wide, kernel.tile),
            shader: kernel.shader(),
            buffers,
            launch: kernel.launch(&sizes, facts.most_groups).with_hook(&words),
        });
        if parts > 1 {
            self.add_parts(&mut work, facts, parts);
        }
        work
    }

    /// Adds up the partial sums of the first temporary buffer, and applies the finishing program.
    fn add_parts(&self, work: &mut DeviceWork, facts: &DeviceFacts, parts: usize) {
        let around = Around { outer: 1, length: parts, inner: self.count() };
        let sum = (Reduction::Sum, DType::F32);
        let Some(program) = &self.ends else {
            return push_passes(work, facts, sum, around, [Bound::Temporary(0), Bound::Output(0)]);
        };
        work.temporary.push(self.count());
        push_passes(work, facts, sum, around, [Bound::Temporary(0), Bound::Temporary(1)]);
        let mut program = program.clone();
        let sides = program.inputs.len();
        program.inputs.push(ProgramInput { dtype: DType::F32, offset: 0, walk: Walk::Run });
        for step in &mut program.steps {
            if step.act == Instruction::Given {
                step.act = Instruction::Input(sides as u16);
            }
        }
        let mut dispatch = map::dispatch(&program, self.count(), facts.most_groups);
        dispatch.buffers = (0..sides).map(|at| Bound::Input(2 + at)).collect();
        dispatch.buffers.extend([Bound::Temporary(1), Bound::Output(0)]);
        work.dispatches.push(dispatch);
    }

    fn of_integers(&self, facts: &DeviceFacts) -> Dispatch {
        let MatmulSize { m, n, k, a_batch_stride, b_batch_stride, a, b, .. } = self.size;
        let mut text = KernelText::new();
        text.read("a", "u32");
        text.read("b", "u32");
        text.write("out", "u32");
        text.params(&FIELDS, 0);
        text.push(MATH);
        text.push(INTEGERS);
        let [a_offset, b_offset] = self.offsets;
        let sides = [a_offset, a_batch_stride, a.0, a.1, b_offset, b_batch_stride, b.0, b.1];
        let words: Vec<u32> = [self.count(), m, n, k].into_iter().chain(sides).map(|number| number as u32).collect();
        Dispatch {
            key: "matmul of i32".into(),
            shader: text.shader("matmul of i32".into(), 64),
            buffers: smallvec![Bound::Input(0), Bound::Input(1), Bound::Output(0)],
            launch: Launch::new(&words, self.count().div_ceil(64) as u64, facts.most_groups),
        }
    }
}

#[cfg(not(target_arch = "wasm32"))]
const FIELDS: [&str; 12] =
    ["count", "m", "n", "k", "a_offset", "a_product", "a_row", "a_k", "b_offset", "b_product", "b_k", "b_column"];

/// In: both operands. Out: rows without gaps. Grid: an invocation per result.
#[cfg(not(target_arch = "wasm32"))]
const INTEGERS: &str = "
@compute @workgroup_size(64)
fn main(
    @builtin(local_invocation_index) local: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let number = (group.x + group.y * groups.x) * 64u + local;
    if number >= p.count { return; }
    let line = quotient(number, p.n);
    let product = quotient(line, p.m);
    var a_at = p.a_offset + product * p.a_product + (line - product * p.m) * p.a_row;
    var b_at = p.b_offset + product * p.b_product + (number - line * p.n) * p.b_column;
    var sum = 0;
    for (var i = 0u; i < p.k; i += 1u) {
        sum += bitcast<i32>(a[a_at]) * bitcast<i32>(b[b_at]);
        a_at += p.a_k;
        b_at += p.b_k;
    }
    out[number] = bitcast<u32>(sum);
}
";

#[cfg(test)]
mod tests {
    use super::super::tests::trial::{Given, both, close, noise, same};
    use super::*;
    use crate::ops::context::Context;
    use crate::ops::program::{Binary, Unary};

    /// Products of straight operands whose batch axes have the lengths `batch`; a batch axis of one operand may have
    /// length 1.
    fn plainly(a: (&[f32], &[usize]), b: (&[f32], &[usize]), batch: &[usize]) -> Vec<f32> {
        let rank = batch.len();
        let (m, k, columns) = (a.1[rank], a.1[rank + 1], b.1[rank + 1]);
        let mut out = Vec::new();
        for product in 0..batch.iter().product() {
            let first = |lengths: &[usize]| {
                (0..rank).fold(0, |at, axis| {
                    let place = product / batch[axis + 1..].iter().product::<usize>() % batch[axis];
                    at * lengths[axis] + place.min(lengths[axis] - 1)
                })
            };
            let (a, b) = (&a.0[first(a.1) * m * k..], &b.0[first(b.1) * k * columns..]);
            for at in 0..m * columns {
                let terms =
                    (0..k).map(|l| f64::from(a[at / columns * k + l]) * f64::from(b[l * columns + at % columns]));
                out.push(terms.sum::<f64>() as f32);
            }
        }
        out
    }

    #[test]
    fn batches_broadcast_on_both_sides() {
        let cases: [(&[usize], &[usize], &[usize]); 9] = [
            (&[3, 4], &[4, 5], &[]),
            (&[1, 7], &[7, 1], &[]),
            (&[1, 33], &[33, 64], &[]),
            (&[2, 3, 4], &[2, 4, 8], &[2]),
            (&[5, 3, 4], &[1, 4, 8], &[5]),
            (&[1, 3, 4], &[5, 4, 8], &[5]),
            (&[2, 1, 3, 4], &[1, 3, 4, 2], &[2, 3]),
            (&[2, 3, 3, 4], &[1, 3, 4, 2], &[2, 3]),
            (&[2, 3, 3, 4], &[2, 1, 4, 2], &[2, 3]),
        ];
        for (one, two, batch) in cases {
            let (a, b) = (noise(one.iter().product(), 13), noise(two.iter().product(), 14));
            let made = both(&[Given::Floats(&a, one), Given::Floats(&b, two)], |net, ids| {
                Ok(vec![net.product(ids[0], ids[1])?])
            });
            close(&made[0], &plainly((&a, one), (&b, two), batch), &format!("{one:?} by {two:?}"));
        }
        let (a, b) = (noise(6, 13), noise(12, 14));
        let made = both(&[Given::Floats(&a, &[3, 2]), Given::Floats(&b, &[2, 1, 2, 3])], |net, ids| {
            Ok(vec![net.product(ids[0], ids[1])?])
        });
        close(&made[0], &plainly((&a, &[1, 1, 3, 2]), (&b, &[2, 1, 2, 3]), &[2, 1]), "of other ranks");
    }

    #[test]
    fn heads_of_attention_are_multiplied_where_they_lie() {
        let (tokens, heads, width) = (6, 4, 8);
        let lengths = [1, tokens, heads, width];
        let (q, k) = (noise(tokens * heads * width, 15), noise(tokens * heads * width, 16));
        let scores = |net: &mut NetworkBuilder, ids: &[ValueId]| {
            let q = net.permuted(ids[0], &[0, 2, 1, 3]);
            let k = net.permuted(ids[1], &[0, 2, 3, 1]);
            net.product(q, k)
        };
        let mut net = NetworkBuilder::new(&Context::on_host());
        let ids = [net.input(WordKind::F32, &lengths).unwrap(), net.input(WordKind::F32, &lengths).unwrap()];
        let made = scores(&mut net, &ids).unwrap();
        assert_eq!(net.build(&[made]).unwrap().steps(), ["matmul"]);
        let given = [Given::Floats(&q, &lengths), Given::Floats(&k, &lengths)];
        let made = both(&given, |net, ids| Ok(vec![scores(net, ids)?]));
        let mut wanted = Vec::new();
        for (head, at) in (0..heads).flat_map(|head| (0..tokens * tokens).map(move |at| (head, at))) {
            let value = |of: &[f32], token: usize, i: usize| f64::from(of[(token * heads + head) * width + i]);
            let terms = (0..width).map(|i| value(&q, at / tokens, i) * value(&k, at % tokens, i));
            wanted.push(terms.sum::<f64>() as f32);
        }
        close(&made[0], &wanted, "scores");
    }

    #[test]
    fn elementwise_steps_end_a_product() {
        // The second sum is so long that a device splits it.
        for (m, k, n) in [(5, 12, 8), (2, 9000, 3)] {
            let (a, b, bias) = (noise(m * k, 17), noise(k * n, 18), noise(n, 19));
            let end = |net: &mut NetworkBuilder, ids: &[ValueId]| {
                let made = net.product(ids[0], ids[1])?;
                let made = net.binary(Binary::Add, made, ids[2])?;
                net.unary(Unary::Relu, made)
            };
            let mut net = NetworkBuilder::new(&Context::on_host());
            let lengths: [&[usize]; 3] = [&[m, k], &[k, n], &[n]];
            let ids = lengths.map(|lengths| net.input(WordKind::F32, lengths).unwrap());
            let made = end(&mut net, &ids).unwrap();
            assert_eq!(net.build(&[made]).unwrap().steps(), ["matmul"]);
            let given =
                [Given::Floats(&a, lengths[0]), Given::Floats(&b, lengths[1]), Given::Floats(&bias, lengths[2])];
            let made = both(&given, |net, ids| Ok(vec![end(net, ids)?]));
            let plain = plainly((&a, &[m, k]), (&b, &[k, n]), &[]);
            let wanted: Vec<f32> = plain.iter().enumerate().map(|(at, v)| (v + bias[at % n]).max(0.0)).collect();
            close(&made[0], &wanted, &format!("{m} x {k} x {n}"));
        }
    }

    #[test]
    fn products_of_integers_are_exact_and_wrap() {
        let (a, b): ([i32; 6], [i32; 4]) = ([1 << 20, 3, -7, 16_777_217, 5, 2], [1 << 13, 1, 2, -9]);
        let mut wanted = Vec::new();
        for at in 0..6 {
            let term = |l: usize| a[at / 2 * 2 + l].wrapping_mul(b[l * 2 + at % 2]);
            wanted.push(term(0).wrapping_add(term(1)));
        }
        let turned = [b[0], b[2], b[1], b[3]];
        let given = [Given::Integers(&a, &[3, 2]), Given::Integers(&b, &[2, 2]), Given::Integers(&turned, &[2, 2])];
        let made = both(&given, |net, ids| {
            let back = net.permuted(ids[2], &[1, 0]);
            Ok(vec![net.product(ids[0], ids[1])?, net.product(ids[0], back)?])
        });
        for made in &made {
            same(made, &wanted, "integers");
        }
    }

    #[test]
    fn operands_that_do_not_fit_are_refused_with_their_lengths() {
        let mut net = NetworkBuilder::new(&Context::on_host());
        let mut input = |lengths: &[usize]| net.input(WordKind::F32, lengths).unwrap();
        let [a, b, c, d] = [input(&[2, 3]), input(&[4, 5]), input(&[3]), input(&[2, 0])];
        assert!(net.product(a, b).unwrap_err().to_string().contains("[2, 3] has 3 columns, [4, 5] has 4 rows"));
        assert!(net.product(a, c).unwrap_err().to_string().contains("at least two axes"));
        let none = net.input(WordKind::F32, &[0, 4]).unwrap();
        let zeros = net.product(d, none).unwrap();
        assert_eq!(net.known_floats(zeros).unwrap(), [0.0; 8]);
    }
}
