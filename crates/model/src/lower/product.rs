//! Products of matrices: `MatMul` and `Gemm`.

#![expect(clippy::float_cmp, reason = "factors of exactly 1 change nothing")]

use vramp_tensor::Binary;
use vramp_tensor::network::ValueId;

use super::error::{Fault, problem};
use super::node::NodeLowering;

type Lowers = Result<(), Fault>;

pub(super) fn matmul(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let (a, b) = (n.x(0)?, n.x(1)?);
    if a.dtype != b.dtype {
        return problem(format!("the inputs are {} and {}, expected the same type", a.dtype.name(), b.dtype.name()));
    }
    let (one, two) = (n.lengths(a.id), n.lengths(b.id));
    if one.is_empty() || two.is_empty() {
        return problem("an input has no axes");
    }
    // A vector is a row on the left and a column on the right; the result has no axis for it.
    let left = if let [k] = one[..] { n.b.reshaped(a.id, &[1, k])? } else { a.id };
    let right = if let [k] = two[..] { n.b.reshaped(b.id, &[k, 1])? } else { b.id };
    let mut made = multiplied(n, left, right)?;
    if one.len() == 1 || two.len() == 1 {
        let mut lengths = n.lengths(made);
        if two.len() == 1 {
            lengths.pop();
        }
        if one.len() == 1 {
            lengths.remove(lengths.len() - if two.len() == 1 { 1 } else { 2 });
        }
        made = n.b.reshaped(made, &lengths)?;
    }
    n.put(0, made, a.dtype)
}

fn multiplied(n: &mut NodeLowering<'_, '_>, a: ValueId, b: ValueId) -> Result<ValueId, Fault> {
    let made = n.b.product(a, b)?;
    let inner = n.b.lengths(a).last().copied().unwrap_or(1) as u64;
    let places = n.b.lengths(made).iter().product::<usize>() as u64;
    n.lowering.multiply_adds = n.lowering.multiply_adds.saturating_add(inner.saturating_mul(places));
    Ok(made)
}

pub(super) fn gemm(n: &mut NodeLowering<'_, '_>) -> Lowers {
    let (a, b) = (n.float_input(0)?, n.float_input(1)?);
    let bias = if n.has(2) { Some(n.float_input(2)?) } else { None };
    let (alpha, beta) = (n.float("alpha", 1.0)?, n.float("beta", 1.0)?);
    let mut operands = [a.id, b.id];
    for (operand, name) in operands.iter_mut().zip(["transA", "transB"]) {
        if n.b.lengths(*operand).len() != 2 {
            return problem(format!("an input is {:?}, expected 2 axes", n.b.lengths(*operand)));
        }
        if n.flag(name, false)? {
            *operand = n.b.permuted(*operand, &[1, 0]);
        }
    }
    let [left, mut right] = operands;
    let scales_weights = n.b.is_known(right) && alpha != 1.0;
    if scales_weights {
        right = n.with(Binary::Mul, right, alpha)?;
    }
    let mut made = multiplied(n, left, right)?;
    if alpha != 1.0 && !scales_weights {
        made = n.with(Binary::Mul, made, alpha)?;
    }
    if let Some(bias) = bias.filter(|_| beta != 0.0) {
        let bias = if beta == 1.0 { bias.id } else { n.with(Binary::Mul, bias.id, beta)? };
        made = n.bin(Binary::Add, made, bias)?;
    }
    n.put(0, made, a.dtype)
}
