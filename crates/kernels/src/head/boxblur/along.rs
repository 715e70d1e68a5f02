//! The pass along a row: adds up column sums, and divides by the number of pixels, which gives levels.
//!
//! A small number of columns is added for every pixel separately, a large number by a running sum. The caller repeats
//! the borders of rows of column sums. Sums and quotients are exact.

use crate::simd::{Level, Loop, ask_for};

use super::divide::{Divide, DoubleDivide, Float, Narrow};
use super::down::Sum;

/// Length of a row of sums, including borders. Some sums beyond the last are read, but not used.
pub(super) fn filled(values: usize, taps: usize) -> usize {
    values + 4 * taps + READ_ON
}

/// Length of the memory that [`many`] needs for sums of four pixels.
pub(super) fn fours(values: usize, taps: usize) -> usize {
    (values + 4 * taps).next_multiple_of(FOUR)
}

/// The pass along a row: it adds `taps` neighbouring column sums, which gives the sum of `count` pixels. The pass also
/// prefetches `soon`, the bytes that are needed next, because this pass computes longer between memory accesses than
/// any other pass.
pub(super) struct BoxHorizontalPass<'a, S> {
    pub(super) taps: usize,
    pub(super) count: u32,
    pub(super) sums: &'a [S],
    pub(super) values: &'a mut [u8],
    pub(super) soon: &'a [u8],
}

/// The pass for an odd number of columns from 3 to 15 whose sums fit 16 bits. In all other cases, computes nothing and
/// returns false.
pub(super) fn few(level: Level, along: &mut BoxHorizontalPass<'_, u16>) -> bool {
    let Some(divide) = Narrow::of(along.count) else { return false };
    match along.taps {
        3 => level.run(Few::<3> { divide, along }),
        5 => level.run(Few::<5> { divide, along }),
        7 => level.run(Few::<7> { divide, along }),
        9 => level.run(Few::<9> { divide, along }),
        11 => level.run(Few::<11> { divide, along }),
        13 => level.run(Few::<13> { divide, along }),
        15 => level.run(Few::<15> { divide, along }),
        _ => return false,
    }
    true
}

/// The pass for any number of columns. `fours` is memory of the length that [`fours`] returns.
pub(super) fn many<S: Sum>(level: Level, along: BoxHorizontalPass<'_, S>, fours: &mut [u32]) {
    match Float::of(along.count) {
        Some(divide) => level.run(Going { divide, along, fours }),
        None => level.run(Going { divide: DoubleDivide::of(along.count), along, fours }),
    }
}

/// Values that go through all steps while they are in the L1 cache.
const CHUNK: usize = 1024;
/// Number of values that the second step reads beyond a chunk.
const SPARE: usize = 64;
/// Number of values that the first step reads for a chunk and for [`SPARE`].
const READ_ON: usize = CHUNK + SPARE + 8;

/// Adds the columns for every pixel separately. If there are more than five columns, columns are first added in groups
/// of three, and then the sums of the groups are added. For nine columns, six instead of nine numbers are added per
/// value, which takes 1.0 instead of 1.6 ms per 1080p frame (AVX-512, Zen 4).
struct Few<'a, 'b, const TAPS: usize> {
    divide: Narrow,
    along: &'a mut BoxHorizontalPass<'b, u16>,
}

impl<const TAPS: usize> Loop for Few<'_, '_, TAPS> {
    #[inline(always)]
    fn run(self) {
        let Few { divide, along: BoxHorizontalPass { sums, values, soon, .. } } = self;
        let mut threes = [0; CHUNK + SPARE];
        let (chunks, rest) = values.as_chunks_mut::<CHUNK>();
        let last = CHUNK * chunks.len();
        let mut soon = soon.chunks(CHUNK);
        for (chunk, values) in chunks.iter_mut().enumerate() {
            ask_for(soon.next().unwrap_or(&[]));
            add::<TAPS>(divide, &sums[CHUNK * chunk..], &mut threes, values);
        }
        if !rest.is_empty() {
            let mut values = [0; CHUNK];
            add::<TAPS>(divide, &sums[last..], &mut threes, &mut values);
            rest.copy_from_slice(&values[..rest.len()]);
        }
    }
}

#[inline(always)]
fn add<const TAPS: usize>(divide: Narrow, sums: &[u16], threes: &mut [u16; CHUNK + SPARE], values: &mut [u8; CHUNK]) {
    let Some(sums) = sums.first_chunk::<READ_ON>() else { return };
    let by_three = if TAPS > 5 { TAPS / 3 } else { 0 };
    if by_three > 0 {
        for i in 0..CHUNK + SPARE {
            threes[i] = sums[i].wrapping_add(sums[i + 4]).wrapping_add(sums[i + 8]);
        }
    }
    for i in 0..CHUNK {
        let mut total = 0_u16;
        for three in 0..by_three {
            total = total.wrapping_add(threes[i + 12 * three]);
        }
        for tap in 3 * by_three..TAPS {
            total = total.wrapping_add(sums[i + 4 * tap]);
        }
        values[i] = divide.level(total);
    }
}

/// Number of values in four pixels, whose running sums advance together.
const FOUR: usize = 16;

/// Running sums, which advance by four pixels per step: four pixels enter and four leave. Sums of four pixels are
/// computed first, so that the four running sums of a step do not depend on each other.
struct Going<'a, S, D> {
    divide: D,
    along: BoxHorizontalPass<'a, S>,
    fours: &'a mut [u32],
}

impl<S: Sum, D: Divide> Loop for Going<'_, S, D> {
    #[inline(always)]
    fn run(self) {
        let Going { divide, along: BoxHorizontalPass { taps, sums, values, soon, .. }, fours } = self;
        let count = fours.len();
        let (a, b, c, d) = (&sums[..count], &sums[4..4 + count], &sums[8..8 + count], &sums[12..12 + count]);
        for i in 0..count {
            fours[i] = a[i].wide() + b[i].wide() + c[i].wide() + d[i].wide();
        }
        let leave = fours.as_chunks::<FOUR>().0;
        let mut total = [0; FOUR];
        for four in &leave[..taps / 4] {
            for i in 0..FOUR {
                total[i] += four[i];
            }
        }
        for tap in taps / 4 * 4..taps {
            for i in 0..FOUR {
                total[i] += sums[4 * tap + i].wide();
            }
        }
        let enter = fours[4 * taps..].as_chunks::<FOUR>().0;
        let (groups, rest) = values.as_chunks_mut::<FOUR>();
        let (ahead, chunk) = (soon.chunks(CHUNK), CHUNK / FOUR);
        let ahead = ahead.chain(std::iter::repeat(&[][..]));
        let steps = groups.chunks_mut(chunk).zip(enter.chunks(chunk)).zip(leave.chunks(chunk)).zip(ahead);
        for (((groups, enter), leave), soon) in steps {
            ask_for(soon);
            for ((values, enter), leave) in groups.iter_mut().zip(enter).zip(leave) {
                *values = levels(divide, &total);
                for i in 0..FOUR {
                    total[i] = total[i].wrapping_add(enter[i]).wrapping_sub(leave[i]);
                }
            }
        }
        rest.copy_from_slice(&levels(divide, &total)[..rest.len()]);
    }
}

#[inline(always)]
fn levels(divide: impl Divide, total: &[u32; FOUR]) -> [u8; FOUR] {
    let mut levels = [0; FOUR];
    for i in 0..FOUR {
        levels[i] = divide.level(total[i]);
    }
    levels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_of_few_columns_are_divided_in_16_bits() {
        for side in (3..=15).step_by(2) {
            assert!(Narrow::of(side * side).is_some(), "{side}");
        }
        assert!(Narrow::of(17 * 17).is_none());
    }
}
