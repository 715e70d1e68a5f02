//! Gather along an axis, on bytes of any type.
//!
//! Invariant: every index is checked before the first copy; if an index is wrong, nothing is copied.

use crate::ops::shape::Around;

pub(crate) trait Index: Copy {
    /// The index as i64, which holds every i32 and u32.
    fn number(self) -> i64;
}

impl Index for i32 {
    fn number(self) -> i64 {
        i64::from(self)
    }
}

impl Index for u32 {
    fn number(self) -> i64 {
        i64::from(self)
    }
}

/// An index out of range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NoSuchRow {
    /// The position among the indices.
    pub position: usize,
    pub index: i64,
}

/// Copies the picked rows along an axis to `out`, which has `outer x indices x inner` values of `bytes` bytes each.
pub(crate) fn gather<I: Index>(
    input: &[u8],
    bytes: usize,
    around: Around,
    indices: &[I],
    out: &mut [u8],
) -> Result<(), NoSuchRow> {
    let Around { outer, length, inner } = around;
    assert_eq!(input.len(), outer * length * inner * bytes, "bytes around {around:?}");
    assert_eq!(out.len(), outer * indices.len() * inner * bytes, "bytes of {} rows around {around:?}", indices.len());
    let wrong = |index: &I| !usize::try_from(index.number()).is_ok_and(|index| index < length);
    if let Some(position) = indices.iter().position(wrong) {
        return Err(NoSuchRow { position, index: indices[position].number() });
    }
    if out.is_empty() {
        return Ok(());
    }
    for (input, out) in input.chunks(length * inner * bytes).zip(out.chunks_mut(indices.len() * inner * bytes)) {
        // Small rows are copied as values of a known size; if they were byte slices, each copy would be a function
        // call.
        match inner * bytes {
            1 => pick::<1, I>(input, indices, out),
            2 => pick::<2, I>(input, indices, out),
            4 => pick::<4, I>(input, indices, out),
            8 => pick::<8, I>(input, indices, out),
            12 => pick::<12, I>(input, indices, out),
            16 => pick::<16, I>(input, indices, out),
            row => {
                for (index, out) in indices.iter().zip(out.chunks_exact_mut(row)) {
                    out.copy_from_slice(&input[index.number() as usize * row..][..row]);
                }
            }
        }
    }
    Ok(())
}

fn pick<const ROW: usize, I: Index>(input: &[u8], indices: &[I], out: &mut [u8]) {
    let (rows, _) = input.as_chunks::<ROW>();
    for (index, out) in indices.iter().zip(out.as_chunks_mut::<ROW>().0) {
        *out = rows[index.number() as usize];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_any_size_are_picked_along_any_axis() {
        for bytes in [1, 2, 3, 4, 8, 20] {
            let around = Around { outer: 2, length: 3, inner: 2 };
            let input: Vec<u8> = (0..12 * bytes).map(|at| at as u8).collect();
            let mut out = vec![0; 2 * 4 * 2 * bytes];
            gather(&input, bytes, around, &[2_u32, 0, 0, 1], &mut out).unwrap();
            for (o, i) in [(0, 0), (1, 3)] {
                let row = &out[(o * 4 + i) * 2 * bytes..][..2 * bytes];
                let from = [2, 0, 0, 1][i];
                assert_eq!(row, &input[(o * 3 + from) * 2 * bytes..][..2 * bytes], "{bytes} bytes");
            }
        }
    }

    #[test]
    fn a_wrong_index_is_named_and_nothing_is_copied() {
        let around = Around { outer: 1, length: 3, inner: 1 };
        let mut out = [9; 3];
        let wrong = gather(&[1, 2, 3], 1, around, &[0, 1, -1], &mut out).unwrap_err();
        assert_eq!(wrong, NoSuchRow { position: 2, index: -1 });
        let wrong = gather(&[1, 2, 3], 1, around, &[0_u32, 3, 4], &mut out).unwrap_err();
        assert_eq!(wrong, NoSuchRow { position: 1, index: 3 });
        assert_eq!(out, [9; 3]);
    }
}
