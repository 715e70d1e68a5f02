//! Copies of boxes by strides: transposes, slices and repeats of values of any type.
//!
//! Invariants: the result is contiguous. Contiguous runs are copied whole. Transposed axes are copied in tiles, so that
//! the cache lines of the input and the output stay in the cache.

use smallvec::SmallVec;
use vramp_kernels::vectorised;

use crate::ops::shape::MAX_RANK;

/// A box of values: the lengths `shape` and the strides `strides` of its axes, from value number `offset` of the input
/// on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Strided<'a> {
    /// Lengths along the axes of the result.
    pub shape: &'a [usize],
    /// Distances between neighbours along the axes, in values of the input; 0 repeats a value.
    pub strides: &'a [usize],
    pub offset: usize,
}

/// Copies a box of values of 1, 2 or 4 bytes to `out`, without gaps. Panics if a value is out of range.
pub(crate) fn copy_strided(input: &[u8], bytes: usize, from: Strided<'_>, out: &mut [u8]) {
    match bytes {
        1 => copy::<1>(input, from, out),
        2 => copy::<2>(input, from, out),
        4 => copy::<4>(input, from, out),
        _ => panic!("values of {bytes} bytes: a type has 1, 2 or 4"),
    }
}

/// An axis: its length, and its strides in the input and in the output.
#[derive(Clone, Copy, Debug)]
struct StridedAxis {
    length: usize,
    from: usize,
    to: usize,
}

type Axes = SmallVec<[StridedAxis; MAX_RANK]>;

fn copy<const BYTES: usize>(input: &[u8], from: Strided<'_>, out: &mut [u8]) {
    let (input, _) = input.as_chunks::<BYTES>();
    let (out, rest) = out.as_chunks_mut::<BYTES>();
    assert_eq!(from.shape.len(), from.strides.len(), "a stride for each axis");
    assert!(rest.is_empty() && out.len() == from.shape.iter().product::<usize>(), "room for {:?}", from.shape);
    if out.is_empty() {
        return;
    }
    let mut axes = joined(from);
    let input = &input[from.offset..];
    let Some(last) = axes.pop() else {
        out[0] = input[0];
        return;
    };
    // Short lines are copied many at a time, without a call for each.
    if last.length <= SHORT
        && let Some(at) = axes.iter().position(|axis| axis.to == last.length)
    {
        let axis = axes.remove(at);
        let lines = Lines { count: axis.length, apart: axis.from, length: last.length, stride: last.from };
        return each(&axes, input, out, &|input, out| copy_lines(input, lines, out));
    }
    if last.from == 1 {
        return each(&axes, input, out, &|input, out| out[..last.length].copy_from_slice(&input[..last.length]));
    }
    if last.from == 0 {
        return each(&axes, input, out, &|input, out| vectorised!(out[..last.length].fill(input[0])));
    }
    // An axis that is contiguous in the input but not in the output is transposed in tiles.
    if let Some(at) = axes.iter().position(|axis| axis.from == 1) {
        let beside = axes.remove(at);
        return each(&axes, input, out, &|input, out| turn(input, out, beside, last));
    }
    each(&axes, input, out, &|input, out| {
        for (out, value) in out[..last.length].iter_mut().zip(input.iter().step_by(last.from)) {
            *out = *value;
        }
        // Checked here, because `zip` would end early without an error.
        assert!((last.length - 1) * last.from < input.len(), "values past the end");
    });
}

/// Maximum length of the lines of [`copy_lines`].
pub(crate) const SHORT: usize = 4;

/// Lines at equal distances, of values at equal distances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines {
    pub count: usize,
    /// Values of the input from line to line.
    pub apart: usize,
    /// Values of a line, at most [`SHORT`].
    pub length: usize,
    /// Values of the input from value to value of a line.
    pub stride: usize,
}

/// Copies short lines to the start of `out`, without gaps: for example, pixels from planes of colors.
pub(crate) fn copy_lines<T: Copy>(input: &[T], lines: Lines, out: &mut [T]) {
    match lines.length {
        1 => copy_lines_of::<T, 1>(input, lines, out),
        2 => copy_lines_of::<T, 2>(input, lines, out),
        3 => copy_lines_of::<T, 3>(input, lines, out),
        SHORT => copy_lines_of::<T, SHORT>(input, lines, out),
        length => panic!("a line of {length} values is not short"),
    }
}

fn copy_lines_of<T: Copy, const N: usize>(input: &[T], lines: Lines, out: &mut [T]) {
    let Lines { count, apart, stride, .. } = lines;
    let out = &mut out.as_chunks_mut::<N>().0[..count];
    if count == 0 {
        return;
    }
    // Slices of one length, so that the length is compared once for all.
    let reach = (count - 1) * apart + 1;
    let columns: [&[T]; N] = std::array::from_fn(|at| &input[at * stride..][..reach]);
    if apart == 1 {
        vectorised!(for (line, out) in out.iter_mut().enumerate() {
            for (value, column) in out.iter_mut().zip(columns) {
                *value = column[line];
            }
        });
    } else {
        for (line, out) in out.iter_mut().enumerate() {
            for (value, column) in out.iter_mut().zip(columns) {
                *value = column[line * apart];
            }
        }
    }
}

/// The axes of the box, except axes of length 1. Neighbouring axes are merged if one axis can replace them.
fn joined(from: Strided<'_>) -> Axes {
    let mut axes = Axes::new();
    let mut to = 1;
    for (length, stride) in from.shape.iter().copied().zip(from.strides.iter().copied()).rev() {
        if length == 1 {
            continue;
        }
        let axis = StridedAxis { length, from: stride, to };
        to *= length;
        match axes.last_mut() {
            Some(inner) if inner.from * inner.length == stride => inner.length *= length,
            _ => axes.push(axis),
        }
    }
    axes.reverse();
    axes
}

/// Calls `work` for every position of the axes, with the input and the output from that position on.
fn each<T>(axes: &[StridedAxis], input: &[T], out: &mut [T], work: &impl Fn(&[T], &mut [T])) {
    match axes {
        [] => work(input, out),
        [axis, rest @ ..] => {
            for at in 0..axis.length {
                each(rest, &input[at * axis.from..], &mut out[at * axis.to..], work);
            }
        }
    }
}

/// The side of a tile in values. With values of 4 bytes, a tile is 16 cache lines of 64 bytes in the input, and as many
/// in the output.
const SIDE: usize = 16;

/// `out[i * beside.to + j] = input[i + j * along.from]`.
fn turn<const BYTES: usize>(input: &[[u8; BYTES]], out: &mut [[u8; BYTES]], beside: StridedAxis, along: StridedAxis) {
    for top in (0..beside.length).step_by(SIDE) {
        let high = SIDE.min(beside.length - top);
        for left in (0..along.length).step_by(SIDE) {
            let wide = SIDE.min(along.length - left);
            let input = &input[top + left * along.from..];
            let out = &mut out[top * beside.to + left..];
            if high == SIDE && wide == SIDE {
                turn_tile(input, along.from, out, beside.to);
                continue;
            }
            for i in 0..high {
                for j in 0..wide {
                    out[i * beside.to + j] = input[i + j * along.from];
                }
            }
        }
    }
}

/// Transposes a whole tile through an array, so that reads and writes are whole lines.
fn turn_tile<const BYTES: usize>(input: &[[u8; BYTES]], input_apart: usize, out: &mut [[u8; BYTES]], out_apart: usize) {
    let mut tile = [[[0; BYTES]; SIDE]; SIDE];
    for (j, line) in tile.iter_mut().enumerate() {
        line.copy_from_slice(&input[j * input_apart..][..SIDE]);
    }
    for i in 0..SIDE {
        let out: &mut [[u8; BYTES]; SIDE] = out[i * out_apart..].first_chunk_mut().expect("the tile is whole");
        for j in 0..SIDE {
            out[j] = tile[j][i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn plainly(input: &[u8], bytes: usize, from: Strided<'_>) -> Vec<u8> {
        let count: usize = from.shape.iter().product();
        let mut out = Vec::new();
        for at in 0..count {
            let (mut rest, mut place) = (at, from.offset);
            for (length, stride) in from.shape.iter().zip(from.strides).rev() {
                place += rest % length * stride;
                rest /= length;
            }
            out.extend_from_slice(&input[place * bytes..][..bytes]);
        }
        out
    }

    fn check(input_values: usize, from: Strided<'_>) {
        for bytes in [1, 2, 4] {
            let input: Vec<u8> = (0..input_values * bytes).map(|at| (at * 31 % 251) as u8).collect();
            let mut out = vec![0; from.shape.iter().product::<usize>() * bytes];
            copy_strided(&input, bytes, from, &mut out);
            assert_eq!(out, plainly(&input, bytes, from), "{from:?} of {bytes} bytes");
        }
    }

    #[test]
    fn turned_matrices_are_those_of_a_plain_loop() {
        for (rows, columns) in [(1, 1), (2, 3), (16, 16), (17, 40), (100, 33), (3, 500)] {
            check(rows * columns, Strided { shape: &[columns, rows], strides: &[1, columns], offset: 0 });
        }
        check(2 * 20 * 30, Strided { shape: &[30, 2, 20], strides: &[1, 600, 30], offset: 0 });
        check(20 * 18 * 17, Strided { shape: &[17, 18, 20], strides: &[1, 17, 306], offset: 0 });
    }

    #[test]
    fn slices_repeats_and_single_values_are_those_of_a_plain_loop() {
        check(100, Strided { shape: &[3, 4], strides: &[10, 1], offset: 25 });
        check(100, Strided { shape: &[3, 4], strides: &[10, 2], offset: 3 });
        check(10, Strided { shape: &[5, 3, 2], strides: &[0, 1, 0], offset: 2 });
        check(10, Strided { shape: &[], strides: &[], offset: 7 });
        check(10, Strided { shape: &[0, 4], strides: &[1, 1], offset: 0 });
    }

    #[test]
    #[should_panic(expected = "past the end")]
    fn values_behind_the_end_are_not_made_up() {
        copy_strided(&[0; 8], 1, Strided { shape: &[3], strides: &[4], offset: 0 }, &mut [0; 3]);
    }

    proptest! {
        #[test]
        fn any_box_is_that_of_a_plain_loop(
            shape in proptest::collection::vec(1_usize..7, 0..5),
            strides in proptest::collection::vec(0_usize..9, 5),
            offset in 0_usize..5,
        ) {
            let strides = &strides[..shape.len()];
            let last: usize = shape.iter().zip(strides).map(|(length, stride)| (length - 1) * stride).sum();
            check(offset + last + 1, Strided { shape: &shape, strides, offset });
        }
    }
}
