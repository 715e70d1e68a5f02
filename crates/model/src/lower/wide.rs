//! Known integers of 64 bits. Arithmetic on shapes is computed in 64 bits, so that a product that leaves 32 bits on the
//! way to a smaller number does no harm.

use vramp_tensor::Binary;
use vramp_tensor::network::{NetworkBuilder, WordKind};

use super::error::{Fault, problem};
use super::node::{NodeLowering, limited, signed};
use super::{Lowering, Typed};
use crate::onnx::OnnxType;

/// A value of known integers. Beyond 32 bits its words are limited, and it is kept in 64 bits as well.
pub(super) fn known(
    lowering: &mut Lowering<'_>,
    b: &mut NetworkBuilder,
    longs: Vec<i64>,
    lengths: &[usize],
    dtype: OnnxType,
) -> Result<Typed, Fault> {
    let is_limited = longs.iter().any(|long| i32::try_from(*long).is_err());
    let id = b.integers(longs.iter().map(|long| limited(*long)).collect(), lengths)?;
    let mut typed = Typed { is_limited, ..Typed::of(id, dtype) };
    if is_limited {
        b.claim_known("constant", longs.len().saturating_mul(2))?;
        typed.wide = Some(lowering.wides.len());
        lowering.wides.push(longs);
    }
    Ok(typed)
}

impl NodeLowering<'_, '_> {
    /// The integers of a value in 64 bits, first axis slowest; `None` if they are not known.
    pub(super) fn wide(&self, typed: Typed) -> Option<Vec<i64>> {
        match typed.wide {
            Some(at) => Some(self.lowering.wides[at].clone()),
            None if typed.is_limited => None,
            None => Some(self.b.known_integers(typed.id)?.into_iter().map(i64::from).collect()),
        }
    }

    /// An op on two known values of 64 bits; `None` if it has no meaning for integers, or if a value is not known.
    pub(super) fn wide_binary(&mut self, op: Binary, one: Typed, two: Typed) -> Result<Option<Typed>, Fault> {
        let is_long = |typed: Typed| typed.dtype == OnnxType::I64 && typed.rows.is_none();
        let is_known = |typed: Typed| typed.wide.is_some() || (!typed.is_limited && self.b.is_known(typed.id));
        if ![one, two].into_iter().all(|typed| is_long(typed) && is_known(typed)) {
            return Ok(None);
        }
        let of: fn(i64, i64) -> Option<i64> = match op {
            Binary::Add => i64::checked_add,
            Binary::Sub => i64::checked_sub,
            Binary::Mul => i64::checked_mul,
            Binary::Div => i64::checked_div,
            Binary::Min => |one, two| Some(one.min(two)),
            Binary::Max => |one, two| Some(one.max(two)),
            Binary::Less => |one, two| Some(i64::from(one < two)),
            Binary::Greater => |one, two| Some(i64::from(one > two)),
            Binary::Equal => |one, two| Some(i64::from(one == two)),
            _ => return Ok(None),
        };
        let lengths = self.broadcast(one, two)?;
        let (Some(a), Some(b)) = (self.spread_wide(one, &lengths)?, self.spread_wide(two, &lengths)?) else {
            return Ok(None);
        };
        let mut made = Vec::with_capacity(a.len());
        for (one, two) in a.into_iter().zip(b) {
            match of(one, two) {
                Some(result) => made.push(result),
                None => return problem(format!("{} of {one} and {two} has no result in 64 bits", op.name())),
            }
        }
        known(self.lowering, self.b, made, &lengths, OnnxType::I64).map(Some)
    }

    /// The lengths to which two values broadcast.
    fn broadcast(&self, one: Typed, two: Typed) -> Result<Vec<usize>, Fault> {
        let (one, two) = (self.lengths(one.id), self.lengths(two.id));
        let rank = one.len().max(two.len());
        let of = |lengths: &[usize], axis: usize| (axis + lengths.len()).checked_sub(rank).map_or(1, |at| lengths[at]);
        let mut all = Vec::with_capacity(rank);
        for axis in 0..rank {
            match (of(&one, axis), of(&two, axis)) {
                (a, b) if a == b || b == 1 => all.push(a),
                (1, b) => all.push(b),
                _ => return problem(format!("{one:?} and {two:?} do not broadcast")),
            }
        }
        Ok(all)
    }

    fn spread_wide(&mut self, typed: Typed, lengths: &[usize]) -> Result<Option<Vec<i64>>, Fault> {
        let Some(longs) = self.wide(typed) else { return Ok(None) };
        let own = self.lengths(typed.id);
        if own == lengths {
            return Ok(Some(longs));
        }
        // The places of the values, repeated as the values are.
        let places = self.b.integers((0..limited(signed(longs.len()))).collect(), &own)?;
        let places = self.b.repeated(places, lengths)?;
        let count = lengths.iter().product::<usize>();
        self.b.claim_known("constant", count.saturating_mul(2))?;
        let places = self.b.known_integers(places);
        Ok(places.map(|places| places.into_iter().map(|place| longs[place as usize]).collect()))
    }

    /// A value of 64 bits cast to another type; `None` if the value is not limited.
    pub(super) fn wide_cast(&mut self, x: Typed, to: OnnxType) -> Result<Option<Typed>, Fault> {
        let Some(longs) = x.wide.and_then(|_| self.wide(x)) else { return Ok(None) };
        let lengths = self.lengths(x.id);
        let id = match super::word_kind(to) {
            Some(WordKind::F32) => self.b.floats(longs.into_iter().map(|long| long as f32).collect(), &lengths)?,
            Some(WordKind::I32) => {
                let words = longs.into_iter().map(|long| match to {
                    OnnxType::Bool => i32::from(long != 0),
                    OnnxType::U8 => i32::from(long as u8),
                    OnnxType::I8 => i32::from(long as i8),
                    _ => long as i32,
                });
                self.b.integers(words.collect(), &lengths)?
            }
            None => return Ok(None),
        };
        Ok(Some(Typed::of(id, to)))
    }
}
