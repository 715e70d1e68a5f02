//! Column sums in 16 or 32 bits, over the rows of a square that moves down the image.
//!
//! Each step adds the row that enters the square and subtracts the row that leaves it. The sums are therefore always
//! exactly those of the rows around the current row. Each band starts with new sums.

use crate::head::SourceRows;
use crate::head::lines::Lines;
use crate::simd::{Level, Loop};

/// A column's sum of levels. The caller chooses a width that fits.
pub(super) trait Sum: Copy + Default {
    fn of(level: u8) -> Self;
    fn wide(self) -> u32;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn times(self, count: u32) -> Self;
}

/// Updates the sums from the previous row to row `y`, or computes them at the start of a band.
pub(super) fn slide<S: Sum>(
    level: Level,
    reach: i64,
    source: &mut SourceRows<'_>,
    (rows, lines): (&mut (i64, i64), &mut Lines<'_>),
    (y, last): (i64, i64),
    sums: &mut [S],
) {
    let begins = rows.1 == 0;
    *rows = (y - reach, y + reach + 1);
    if !begins {
        let (enters, leaves) = (y + reach, y - reach - 1);
        if enters <= last {
            lines.take(source, enters);
        }
        return level.run(Slide { enters: lines.at(enters), leaves: lines.at(leaves), sums });
    }
    sums.fill(S::default());
    for at in (y - reach).max(0)..=(y + reach).min(last) {
        lines.take(source, at);
        // An outermost row is added again for every row of the square beyond the border, because pixels beyond the
        // border repeat the border.
        let above = if at == 0 { (reach - y).max(0) } else { 0 };
        let below = if at == last { (y + reach - last).max(0) } else { 0 };
        level.run(Begin { row: lines.at(at), count: (1 + above + below) as u32, sums });
    }
}

struct Begin<'a, S> {
    row: &'a [u8],
    count: u32,
    sums: &'a mut [S],
}

impl<S: Sum> Loop for Begin<'_, S> {
    #[inline(always)]
    fn run(self) {
        for (sum, level) in self.sums.iter_mut().zip(self.row) {
            *sum = sum.plus(S::of(*level).times(self.count));
        }
    }
}

struct Slide<'a, S> {
    enters: &'a [u8],
    leaves: &'a [u8],
    sums: &'a mut [S],
}

impl<S: Sum> Loop for Slide<'_, S> {
    #[inline(always)]
    fn run(self) {
        for ((sum, enters), leaves) in self.sums.iter_mut().zip(self.enters).zip(self.leaves) {
            *sum = sum.plus(S::of(*enters)).minus(S::of(*leaves));
        }
    }
}

macro_rules! sums {
    ($($name:ident),*) => {
        $(impl Sum for $name {
            #[inline(always)]
            fn of(level: u8) -> $name {
                $name::from(level)
            }

            #[inline(always)]
            fn wide(self) -> u32 {
                u32::from(self)
            }

            #[inline(always)]
            fn plus(self, other: $name) -> $name {
                self.wrapping_add(other)
            }

            #[inline(always)]
            fn minus(self, other: $name) -> $name {
                self.wrapping_sub(other)
            }

            #[inline(always)]
            fn times(self, count: u32) -> $name {
                self.wrapping_mul(count as $name)
            }
        })*
    };
}

sums!(u16, u32);
