//! Shapes and everything that follows from a shape alone: counts, strides, axes counted from the end, broadcasting.
//!
//! Invariants: a shape has at most [`MAX_RANK`] axes. The number of its values fits in 32 bits, because kernels index
//! with u32.

use std::fmt;

use smallvec::SmallVec;

use crate::ops::error::TensorError;

/// The maximum number of axes.
pub const MAX_RANK: usize = 8;

/// Lengths of the axes, slowest first. A shape without axes is a single value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Shape(SmallVec<[usize; 4]>);

impl Shape {
    /// Fails if there are more than [`MAX_RANK`] axes, or too many values.
    pub fn new(lengths: &[usize]) -> Result<Shape, TensorError> {
        if lengths.len() > MAX_RANK {
            return Err(TensorError::TooManyAxes { has: lengths.len(), most: MAX_RANK });
        }
        let count = lengths.iter().try_fold(1_u64, |count, length| count.checked_mul((*length).max(1) as u64));
        // A length of 0 makes the count 0, but the product of the other lengths must still be in range, because the
        // axis of length 0 may be dropped later.
        match count.filter(|count| u32::try_from(*count).is_ok()) {
            Some(_) => Ok(Shape(SmallVec::from_slice(lengths))),
            None => Err(TensorError::TooManyValues { shape: lengths.to_vec(), most: u64::from(u32::MAX) }),
        }
    }

    pub fn scalar() -> Shape {
        Shape(SmallVec::new())
    }

    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The number of values.
    pub fn count(&self) -> usize {
        self.0.iter().product()
    }

    pub fn lengths(&self) -> &[usize] {
        &self.0
    }

    /// The distance in values between neighbours along each axis, for values without gaps.
    pub fn strides(&self) -> SmallVec<[usize; 4]> {
        let mut strides = SmallVec::from_elem(1, self.rank());
        for axis in (1..self.rank()).rev() {
            strides[axis - 1] = strides[axis] * self.0[axis].max(1);
        }
        strides
    }

    /// Resolves an axis; negative numbers count from the end.
    pub fn axis(&self, op: &'static str, axis: isize) -> Result<usize, TensorError> {
        let at = if axis < 0 { self.rank().checked_sub(axis.unsigned_abs()) } else { Some(axis.unsigned_abs()) };
        at.filter(|at| *at < self.rank()).ok_or_else(|| TensorError::NoSuchAxis { op, axis, shape: self.clone() })
    }

    /// The shape as three axes: all axes before `axis` merged, `axis` itself, and all axes after it merged.
    pub fn around(&self, axis: usize) -> Around {
        let (before, rest) = self.0.split_at(axis);
        Around { outer: before.iter().product(), length: rest[0], inner: rest[1..].iter().product() }
    }

    /// The shape with one axis removed, or kept with length 1.
    #[must_use]
    pub fn reduced(&self, axis: usize, keep: bool) -> Shape {
        let mut lengths = self.0.clone();
        if keep {
            lengths[axis] = 1;
        } else {
            lengths.remove(axis);
        }
        Shape(lengths)
    }

    /// The shape to which both shapes broadcast. Axes are paired from the end: the two lengths of a pair must be equal,
    /// or one of the lengths must be 1 or missing.
    pub fn broadcast(&self, other: &Shape, op: &'static str) -> Result<Shape, TensorError> {
        let (long, short) = if self.rank() >= other.rank() { (self, other) } else { (other, self) };
        let mut lengths = long.0.clone();
        let skip = long.rank() - short.rank();
        for (length, with) in lengths[skip..].iter_mut().zip(&short.0) {
            match (*length, *with) {
                (one, two) if one == two => {}
                (1, two) => *length = two,
                (_, 1) => {}
                _ => return Err(TensorError::NotAlike { op, one: self.clone(), two: other.clone() }),
            }
        }
        Shape::new(&lengths)
    }

    /// Strides for reading values of this shape as if they had the shape `into`, to which this shape broadcasts.
    /// Strides are 0 along repeated axes.
    pub fn strides_as(&self, into: &Shape) -> SmallVec<[usize; 4]> {
        let own = self.strides();
        let skip = into.rank() - self.rank();
        (0..into.rank())
            .map(|axis| if axis < skip || self.0[axis - skip] == 1 { 0 } else { own[axis - skip] })
            .collect()
    }
}

/// Lengths and strides, slowest axis first. Merges neighbouring axes that are equivalent to a single axis with one
/// stride, and drops axes of length 1.
pub(crate) fn merged(lengths: &[usize], strides: &[usize]) -> SmallVec<[(usize, usize); 4]> {
    let mut axes: SmallVec<[(usize, usize); 4]> = SmallVec::new();
    for (&length, &stride) in lengths.iter().zip(strides).filter(|(length, _)| **length != 1) {
        match axes.last_mut() {
            // One step of the slower axis spans the whole faster axis.
            Some(last) if last.1 == length * stride => *last = (last.0 * length, stride),
            _ => axes.push((length, stride)),
        }
    }
    axes
}

/// A shape seen from one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Around {
    /// The product of the lengths before the axis.
    pub outer: usize,
    pub length: usize,
    /// The product of the lengths after the axis, which is the distance between neighbours along the axis.
    pub inner: usize,
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

impl std::ops::Index<usize> for Shape {
    type Output = usize;

    fn index(&self, axis: usize) -> &usize {
        &self.0[axis]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(lengths: &[usize]) -> Shape {
        Shape::new(lengths).unwrap()
    }

    #[test]
    fn axes_count_from_either_end() {
        let it = shape(&[2, 3, 4]);
        assert_eq!(it.axis("sum", -1).unwrap(), 2);
        assert_eq!(it.axis("sum", 0).unwrap(), 0);
        let wrong = it.axis("sum", 3).unwrap_err().to_string();
        assert_eq!(wrong, "sum: [2, 3, 4] has no axis 3; the axes are 0 to 2, or -3 to -1");
        assert_eq!(it.around(1), Around { outer: 2, length: 3, inner: 4 });
    }

    #[test]
    fn strides_are_those_of_rows_without_gaps() {
        assert_eq!(shape(&[2, 3, 4]).strides().as_slice(), [12, 4, 1]);
        assert!(Shape::scalar().strides().is_empty());
    }

    #[test]
    fn lengths_of_one_repeat_and_others_must_be_equal() {
        let both = shape(&[2, 1, 4]).broadcast(&shape(&[3, 1]), "add").unwrap();
        assert_eq!(both.lengths(), [2, 3, 4]);
        assert_eq!(shape(&[3, 1]).strides_as(&both).as_slice(), [0, 1, 0]);
        let wrong = shape(&[2, 3]).broadcast(&shape(&[4, 3]), "add").unwrap_err().to_string();
        assert_eq!(
            wrong,
            "add: dimension mismatch: [2, 3] and [4, 3] do not broadcast: two lengths differ, and neither is 1"
        );
        assert_eq!(shape(&[0]).broadcast(&shape(&[1]), "add").unwrap().lengths(), [0], "an empty axis stays empty");
    }

    #[test]
    fn shapes_that_cannot_be_counted_are_refused() {
        assert!(Shape::new(&[usize::MAX, 2]).unwrap_err().to_string().contains("4294967295"));
        assert!(Shape::new(&[0, 65_536, 65_536]).is_err() && Shape::new(&[0, usize::MAX, 4]).is_err());
        assert!(Shape::new(&[1; 9]).unwrap_err().to_string().contains("at most 8"));
    }
}
