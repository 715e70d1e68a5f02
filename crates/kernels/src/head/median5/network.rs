//! The sorting network of `median5`, step by step, over many values at once.
//!
//! A step compares the same positions for all values, so one vector instruction compares many values. Compilers drop
//! comparisons whose results are never read.

use super::{CHUNK, MADE, STEP};

/// Sorts pairs of values.
macro_rules! order {
    ($v:ident: $($a:literal $b:literal),*) => {
        $(($v[$a], $v[$b]) = ($v[$a].min($v[$b]), $v[$a].max($v[$b]));)*
    };
}

/// Sorts columns of five.
#[inline(always)]
pub(super) fn sort(rows: [&[u8]; 5], columns: &mut [[u8; STEP]; 5]) {
    let rows = rows.map(|row| row.first_chunk::<MADE>().unwrap_or(&[0; MADE]));
    for i in 0..MADE {
        let mut v = [rows[0][i], rows[1][i], rows[2][i], rows[3][i], rows[4][i]];
        order!(v: 0 3, 1 4, 0 2, 1 3, 0 1, 2 4, 1 2, 3 4, 2 3);
        for rank in 0..5 {
            columns[rank][i] = v[rank];
        }
    }
}

/// Merges each sorted column in `columns` with the sorted column to its right, which is one pixel further in `next`.
#[inline(always)]
pub(super) fn merge(columns: &[[u8; STEP]; 5], next: &[[u8; STEP]; 5], pairs: &mut [[u8; STEP]; 10]) {
    let (a, b) = (columns, next);
    for i in 0..MADE {
        let j = i + 4;
        let mut v = [a[0][i], a[1][i], a[2][i], a[3][i], a[4][i], b[0][j], b[1][j], b[2][j], b[3][j], b[4][j]];
        order!(v: 0 5, 4 9, 4 5, 2 7, 2 4, 7 5, 1 6, 3 8, 3 6, 1 2, 3 4, 6 7, 8 5);
        let sorted = [v[0], v[1], v[2], v[3], v[4], v[6], v[7], v[8], v[5], v[9]];
        for rank in 0..10 {
            pairs[rank][i] = sorted[rank];
        }
    }
}

/// The medians of even and of odd pixels. Two adjacent pairs of columns are combined with the even column to their left
/// for the even pixel, and with the odd column to their right for the odd pixel.
#[inline(always)]
pub(super) fn middle(pairs: &[[u8; STEP]; 10], even: &[[u8; STEP]; 5], odd: &[[u8; STEP]; 5]) -> [[u8; CHUNK]; 2] {
    let mut made = [[0; CHUNK]; 2];
    let [of_even, of_odd] = &mut made;
    for i in 0..CHUNK {
        let mut v = [0; 20];
        for rank in 0..10 {
            (v[rank], v[10 + rank]) = (pairs[rank][i], pairs[rank][i + 4]);
        }
        order!(v: 0 10, 8 18, 8 10, 4 14, 4 8, 14 10, 2 12, 6 16, 6 12, 6 8, 12 14, 1 11, 9 19, 9 11, 5 15, 5 9, 15 11,
            3 13, 7 17, 7 13, 7 9, 13 15, 7 8, 9 12, 13 14);
        // Of these twenty values, only the six in the middle can be the median of twenty-five.
        let six = [v[7], v[8], v[9], v[12], v[13], v[14]];
        of_even[i] = with(six, [even[0][i], even[1][i], even[2][i], even[3][i], even[4][i]]);
        let j = i + 8;
        of_odd[i] = with(six, [odd[0][j], odd[1][j], odd[2][j], odd[3][j], odd[4][j]]);
    }
    made
}

/// The median of six sorted values and five other values.
#[inline(always)]
fn with(six: [u8; 6], five: [u8; 5]) -> u8 {
    let mut least = six[5];
    for i in 0..5 {
        least = least.min(six[4 - i].max(five[i]));
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A network that is right for all inputs of zeros and ones is right for all values. This test passes sorted
    /// columns. Another test checks the sorting of columns.
    #[test]
    fn every_square_of_zeros_and_ones_has_its_median() {
        let mut even = [[0; STEP]; 5];
        let mut odd = [[0; STEP]; 5];
        let mut pairs = [[0; STEP]; 10];
        // In base six, a number has one digit for each of six columns: the count of ones in the column.
        for first in (0..6_usize.pow(6)).step_by(CHUNK / 16) {
            let squares = (0..CHUNK / 16).map(|at| (first + at).min(6_usize.pow(6) - 1));
            let ones = |square: usize, column: u32| square / 6_usize.pow(column) % 6;
            for (at, square) in squares.clone().enumerate() {
                // Even columns 0, 2, 4 and odd columns 1, 3, 5 are at every fourth value.
                for (columns, offset) in [(&mut even, 0), (&mut odd, 1)] {
                    for place in 0..3 {
                        for (rank, column) in columns.iter_mut().enumerate() {
                            let level = rank + ones(square, 2 * place + offset) >= 5;
                            column[16 * at + 4 * place as usize] = u8::from(level);
                        }
                    }
                }
            }
            merge(&odd, &even, &mut pairs);
            let [of_even, of_odd] = middle(&pairs, &even, &odd);
            for (at, square) in squares.enumerate() {
                let sum = |columns: std::ops::Range<u32>| columns.map(|column| ones(square, column)).sum::<usize>();
                assert_eq!(of_even[16 * at], u8::from(sum(0..5) >= 13), "{square}");
                assert_eq!(of_odd[16 * at], u8::from(sum(1..6) >= 13), "{square}");
            }
        }
    }

    #[test]
    fn every_column_of_zeros_and_ones_is_sorted() {
        let rows: [[u8; MADE]; 5] = std::array::from_fn(|row| std::array::from_fn(|i| (i >> row & 1) as u8));
        let mut columns = [[0; STEP]; 5];
        sort(rows.each_ref().map(|row| &row[..]), &mut columns);
        for i in 0..MADE {
            let ones = rows.iter().map(|row| usize::from(row[i])).sum::<usize>();
            for (rank, column) in columns.iter().enumerate() {
                assert_eq!(column[i], u8::from(rank + ones >= 5), "{i}");
            }
        }
    }
}
