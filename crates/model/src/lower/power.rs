//! Pow, for all pairs of types. The result has the type of the base.

#![expect(clippy::float_cmp, reason = "only exact exponents are products")]

use vramp_tensor::network::{ValueId, WordKind};
use vramp_tensor::{Binary, Unary};

use super::error::Fault;
use super::node::NodeLowering;

/// Bits of the largest exponent for which powers of integers are products. Larger powers of anything but -1, 0 and 1
/// exceed 32 bits.
const EXPONENT_BITS: usize = 5;

/// How far below a whole number the power of floats may be that stands for that number.
const SLACK: f32 = 2e-6;

pub(super) fn pow(n: &mut NodeLowering<'_, '_>) -> Result<(), Fault> {
    let (x, exponent) = (n.x(0)?, n.x(1)?);
    if let Some(power) = known_small(n, exponent.id) {
        let made = product(n, x.id, power)?;
        let made = spread_like(n, made, exponent.id)?;
        return n.put(0, made, x.dtype);
    }
    let made = match (n.b.kind(x.id), n.b.kind(exponent.id)) {
        (WordKind::F32, _) => {
            let exponent = n.floats(exponent.id)?;
            n.bin(Binary::Pow, x.id, exponent)?
        }
        (WordKind::I32, WordKind::F32) => {
            let base = n.floats(x.id)?;
            let power = n.bin(Binary::Pow, base, exponent.id)?;
            let lifted = n.with(Binary::Mul, power, 1.0 + SLACK)?;
            n.integers(lifted)?
        }
        (WordKind::I32, WordKind::I32) => of_integers(n, x.id, exponent.id)?,
    };
    n.put(0, made, x.dtype)
}

/// The exponent, if it is one number from 1 to 4 for all values. Products are faster than powers, and exact for whole
/// numbers.
fn known_small(n: &NodeLowering<'_, '_>, exponent: ValueId) -> Option<u32> {
    let values: Vec<f32> = match n.b.kind(exponent) {
        WordKind::F32 => n.b.known_floats(exponent)?,
        WordKind::I32 => n.b.known_integers(exponent)?.into_iter().map(|value| value as f32).collect(),
    };
    let [value] = values.as_slice() else { return None };
    [1, 2, 3, 4].into_iter().find(|power| *power as f32 == *value)
}

fn product(n: &mut NodeLowering<'_, '_>, x: ValueId, power: u32) -> Result<ValueId, Fault> {
    let square = if power > 1 { n.un(Unary::Square, x)? } else { x };
    match power {
        1 | 2 => Ok(square),
        3 => n.bin(Binary::Mul, square, x),
        _ => n.un(Unary::Square, square),
    }
}

/// Adds the axes of length 1 that the exponent has and the base has not.
fn spread_like(n: &mut NodeLowering<'_, '_>, made: ValueId, exponent: ValueId) -> Result<ValueId, Fault> {
    let (mut lengths, more) = (n.lengths(made), n.lengths(exponent).len());
    while lengths.len() < more {
        lengths.insert(0, 1);
    }
    Ok(n.b.reshaped(made, &lengths)?)
}

/// Powers of integers by repeated squares; they wrap as products do.
fn of_integers(n: &mut NodeLowering<'_, '_>, x: ValueId, exponent: ValueId) -> Result<ValueId, Fault> {
    let mut made = n.i(1)?;
    let (mut square, mut rest) = (x, exponent);
    for bit in 0..EXPONENT_BITS {
        if bit > 0 {
            square = n.bin(Binary::Mul, square, square)?;
        }
        let half = n.with_int(Binary::Div, rest, 2)?;
        let twice = n.with_int(Binary::Mul, half, 2)?;
        let odd = n.bin(Binary::Sub, rest, twice)?;
        let with = n.bin(Binary::Mul, made, square)?;
        made = n.b.select(odd, with, made)?;
        rest = half;
    }
    // With negative exponents, all but 1 and -1 become 0. Their products keep the sign that an odd exponent gives.
    let magnitude = n.un(Unary::Abs, x)?;
    let is_one = n.with_int(Binary::Equal, magnitude, 1)?;
    let small = n.bin(Binary::Mul, made, is_one)?;
    let is_negative = n.with_int(Binary::Less, exponent, 0)?;
    Ok(n.b.select(is_negative, small, made)?)
}
