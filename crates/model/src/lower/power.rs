//! Pow, for all pairs of types. The result has the type of the base.

#![expect(clippy::float_cmp, reason = "only exact exponents are products")]

use vramp_tensor::network::{ValueId, WordKind};
use vramp_tensor::{Binary, Unary};

use super::error::Fault;
use super::node::NodeLowering;

/// Bits of the largest exponent for which powers of integers are products. Larger powers of anything but -1, 0 and 1
/// exceed 32 bits, and those only depend on whether the exponent is odd.
const EXPONENT_BITS: usize = 6;

/// The exponent from which only its last bit counts.
const LARGEST_EXPONENT: i32 = 32;

/// How far from a whole number the power of floats may be that stands for that number.
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
        (WordKind::I32, WordKind::F32) => with_floats(n, x.id, exponent.id)?,
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

/// Powers of integers with exponents of floats: products where the exponent is a whole number, which are exact, and
/// otherwise powers of floats without their fraction.
fn with_floats(n: &mut NodeLowering<'_, '_>, x: ValueId, exponent: ValueId) -> Result<ValueId, Fault> {
    let whole = n.integers(exponent)?;
    let back = n.floats(whole)?;
    let is_whole = n.bin(Binary::Equal, back, exponent)?;
    let known = n.b.known_integers(is_whole).unwrap_or_default();
    if !known.is_empty() && known.iter().all(|is_whole| *is_whole != 0) {
        return of_integers(n, x, whole);
    }
    let base = n.floats(x)?;
    let power = n.bin(Binary::Pow, base, exponent)?;
    // Powers of floats are not exact: what is close to a whole number is that number.
    let near = n.un(Unary::Round, power)?;
    let apart = n.bin(Binary::Sub, power, near)?;
    let apart = n.un(Unary::Abs, apart)?;
    let slack = n.with(Binary::Mul, power, SLACK)?;
    let slack = n.un(Unary::Abs, slack)?;
    let is_near = n.bin(Binary::Less, apart, slack)?;
    let near = n.b.select(is_near, near, power)?;
    let of_floats = n.integers(near)?;
    if !known.is_empty() && known.iter().all(|is_whole| *is_whole == 0) {
        return Ok(of_floats);
    }
    let of_integers = of_integers(n, x, whole)?;
    Ok(n.b.select(is_whole, of_integers, of_floats)?)
}

/// Powers of integers by repeated squares; they wrap as products do.
fn of_integers(n: &mut NodeLowering<'_, '_>, x: ValueId, exponent: ValueId) -> Result<ValueId, Fault> {
    let half = n.with_int(Binary::Div, exponent, 2)?;
    let twice = n.with_int(Binary::Mul, half, 2)?;
    let odd = n.bin(Binary::Sub, exponent, twice)?;
    let last = n.with_int(Binary::Add, odd, LARGEST_EXPONENT)?;
    let is_large = n.with_int(Binary::Greater, exponent, LARGEST_EXPONENT)?;
    let limited = n.b.select(is_large, last, exponent)?;
    let mut made = n.i(1)?;
    let (mut square, mut rest) = (x, limited);
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
