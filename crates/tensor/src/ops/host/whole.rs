//! Sums, maxima and minima of i32 or u32 values along an axis. Means of integers are not supported; callers cast to
//! floats first.
//!
//! Invariant: sums wrap at 32 bits, as on the device.

use vramp_kernels::vectorised;

use crate::ops::host::spread::spread;
use crate::ops::reduction::Reduction;
use crate::ops::shape::Around;

/// An integer of 32 bits.
pub(crate) trait Whole: Copy + Ord + Send + Sync {
    /// The minimum and the maximum of the type.
    const ENDS: (Self, Self);
    const NONE: Self;
    /// The wrapping sum.
    fn plus(self, other: Self) -> Self;
}

macro_rules! whole {
    ($($rust:ty),*) => {
        $(impl Whole for $rust {
            const ENDS: (Self, Self) = (<$rust>::MIN, <$rust>::MAX);
            const NONE: Self = 0;
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        })*
    };
}

whole!(i32, u32);

/// Reduces integers along an axis into `out`, which has `outer * inner` elements. For an empty axis a sum is 0. Means,
/// indices, and the maximum and the minimum of an empty axis are refused when the expression is built.
pub(crate) fn reduce_whole<T: Whole>(input: &[T], around: Around, how: Reduction, out: &mut [T], threads: usize) {
    let Around { outer, length, inner } = around;
    assert_eq!(input.len(), outer * length * inner, "values around {around:?}");
    assert_eq!(out.len(), outer * inner, "results around {around:?}");
    spread(out, inner, input.len(), threads, |first, out| {
        let input = &input[first * length * inner..][..out.len() * length];
        // One call per kind of reduction, so that each kind has its own compiled loop.
        match how {
            Reduction::Sum => vectorised!(fold(input, length, inner, T::NONE, T::plus, out)),
            Reduction::Max => vectorised!(fold(input, length, inner, T::ENDS.0, T::max, out)),
            Reduction::Min => vectorised!(fold(input, length, inner, T::ENDS.1, T::min, out)),
            _ => unreachable!("{how:?} is for floats"),
        }
    });
}

#[inline(always)]
fn fold<T: Whole>(input: &[T], length: usize, inner: usize, start: T, join: impl Fn(T, T) -> T, out: &mut [T]) {
    out.fill(start);
    if length == 0 {
        return;
    }
    if inner == 1 {
        for (out, row) in out.iter_mut().zip(input.chunks_exact(length)) {
            *out = row.iter().fold(start, |one, two| join(one, *two));
        }
        return;
    }
    for (out, slab) in out.chunks_exact_mut(inner).zip(input.chunks_exact(length * inner)) {
        for line in slab.chunks_exact(inner) {
            for (out, value) in out.iter_mut().zip(line) {
                *out = join(*out, *value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_reduced_along_any_axis() {
        let input = [3, -1, 7, 2, 5, -9];
        let mut out = [0; 2];
        let rows = Around { outer: 2, length: 3, inner: 1 };
        reduce_whole(&input, rows, Reduction::Sum, &mut out, 1);
        assert_eq!(out, [9, -2]);
        reduce_whole(&input, rows, Reduction::Max, &mut out, 1);
        assert_eq!(out, [7, 5]);
        let mut out = [0; 3];
        reduce_whole(&input, Around { outer: 1, length: 2, inner: 3 }, Reduction::Min, &mut out, 1);
        assert_eq!(out, [2, -1, -9]);
    }

    #[test]
    fn sums_wrap_and_nothing_sums_to_zero() {
        let mut out = [0_u32];
        let two = Around { outer: 1, length: 2, inner: 1 };
        reduce_whole(&[u32::MAX, 3], two, Reduction::Sum, &mut out, 1);
        assert_eq!(out, [2]);
        reduce_whole(&[], Around { length: 0, ..two }, Reduction::Sum, &mut out, 1);
        assert_eq!(out, [0]);
    }
}
