//! Copies of values that lie in any order: transposed, cut out, repeated, put side by side.
//!
//! Owns the kernel and how axes that lie without gaps are seen as one.
//! Does not convert values, nor copy what lies side by side on both sides: a recording's own copy is faster.
//!
//! Always: bits are copied as they are.

use std::fmt::Write;

use smallvec::SmallVec;
use vramp_plan::Shader;

use crate::dtype::DType;
use crate::shape::merged;

use super::text::{Launch, MATH, Text, load_bits};
use super::words::{self, Place};

/// A kind of copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Copy {
    /// Of what. Only its size matters: f32, i32 and u32 have the same kernel.
    pub dtype: DType,
    /// Axes of the source, once those that can be are seen as one.
    pub rank: usize,
}

/// Where the values of a copy come from, in the order of the results.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Source {
    offset: usize,
    /// Length and stride of each axis, the slowest first.
    axes: SmallVec<[(usize, usize); 4]>,
}

impl Source {
    /// Values with these lengths and strides; 0 repeats.
    pub(crate) fn new(offset: usize, lengths: &[usize], strides: &[usize]) -> Source {
        let mut axes = merged(lengths, strides);
        if axes.is_empty() {
            axes.push((1, 0));
        }
        Source { offset, axes }
    }

    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    pub(super) fn axes(&self) -> &[(usize, usize)] {
        &self.axes
    }

    /// Axes that are left.
    pub(crate) fn rank(&self) -> usize {
        self.axes.len()
    }
}

impl Copy {
    /// The kernel. Buffers: the source, the results.
    pub(crate) fn shader(self) -> Shader {
        let mut text = Text::new();
        text.read("in0", "u32");
        text.write("out", "u32");
        let mut names = vec!["offset".to_owned()];
        names.extend((0..self.rank).flat_map(|axis| [format!("length{axis}"), format!("stride{axis}")]));
        let fields: Vec<&str> = names.iter().map(String::as_str).chain(words::FIELDS).collect();
        text.params(&fields, 0);
        text.push(MATH);
        let mut element = String::from("fn element(i: u32) -> u32 {\n    var rest = i;\n    var at = p.offset;\n");
        for axis in (1..self.rank).rev() {
            let _ = writeln!(
                element,
                "    let q{axis} = quotient(rest, p.length{axis});
    at += (rest - q{axis} * p.length{axis}) * p.stride{axis};
    rest = q{axis};"
            );
        }
        let _ =
            writeln!(element, "    at += rest * p.stride0;\n    return {};\n}}", load_bits(self.dtype, "in0", "at"));
        text.push(&element);
        words::push_main(&mut text, self.dtype);
        text.shader(format!("copy of {} along {} axes", self.dtype, self.rank), 64)
    }

    /// Its parameters and grid.
    pub(crate) fn launch(self, source: &Source, place: &Place, most: u32) -> Launch {
        let axes = source.axes.iter().flat_map(|(length, stride)| [*length as u32, *stride as u32]);
        let own: SmallVec<[u32; 17]> = std::iter::once(source.offset as u32).chain(axes).collect();
        place.launch(self.dtype, &own, most)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{MOST, run_onto};
    use super::*;

    const DTYPES: [DType; 3] = [DType::F32, DType::F16, DType::I8];

    /// Copies numbers that stand for themselves; what is not copied onto stays 250 (of each byte).
    fn copy(dtype: DType, source: &Source, place: &Place, from: usize, onto: usize) -> Vec<u8> {
        let size = dtype.bytes();
        let from: Vec<u8> = (0..from).flat_map(|at| [at as u8; 4][..size].to_vec()).collect();
        let copy = Copy { dtype, rank: source.rank() };
        let got = run_onto(&copy.shader(), &copy.launch(source, place, MOST), &[&from], &vec![250; onto * size]);
        got.chunks(size).map(|value| value.iter().copied().min().unwrap_or_default()).collect()
    }

    #[test]
    fn transposed_cut_out_and_repeated_values_are_copied_whatever_their_size() {
        for dtype in DTYPES {
            // [2, 3, 5] with the axes turned around.
            let turned = Source::new(1, &[5, 3, 2], &[1, 5, 15]);
            assert_eq!(turned.rank(), 3);
            let got = copy(dtype, &turned, &Place::whole(0, 30), 31, 30);
            let wanted = (0..5).flat_map(|a| (0..3).flat_map(move |b| (0..2).map(move |c| 1 + a + 5 * b + 15 * c)));
            assert_eq!(got, wanted.collect::<Vec<u8>>(), "{dtype}");
            // Columns 2 to 4 of [4, 6], each row twice.
            let cut = Source::new(2, &[4, 2, 3], &[6, 0, 1]);
            let got = copy(dtype, &cut, &Place::whole(0, 24), 24, 24);
            let wanted = (0..4).flat_map(|row| [2, 3, 4, 2, 3, 4].map(|col| row * 6 + col));
            assert_eq!(got, wanted.collect::<Vec<u8>>(), "{dtype}");
        }
    }

    #[test]
    fn parts_side_by_side_leave_what_lies_between_them() {
        for dtype in DTYPES {
            for (width, offset, pitch) in [(3, 1, 7), (1, 2, 3), (2, 0, 2), (5, 3, 11)] {
                let place = Place { offset, count: 4 * width, run: width, pitch };
                let source = Source::new(0, &[4, width], &[1, 4]);
                let onto = offset + 4 * pitch + 3;
                let got = copy(dtype, &source, &place, 4 * width, onto);
                let mut wanted = vec![250; onto];
                for row in 0..4 {
                    for col in 0..width {
                        wanted[offset + row * pitch + col] = (row + 4 * col) as u8;
                    }
                }
                assert_eq!(got, wanted, "{dtype} {width} {offset} {pitch}");
            }
        }
    }

    #[test]
    fn axes_without_gaps_are_one() {
        assert_eq!(Source::new(7, &[2, 3, 4], &[12, 4, 1]).axes(), [(24, 1)]);
        assert_eq!(Source::new(0, &[], &[]).axes(), [(1, 0)]);
        assert_eq!(Source::new(0, &[2, 3, 1, 4], &[24, 4, 9, 1]).axes.as_slice(), [(2, 24), (12, 1)]);
        assert_eq!(Source::new(0, &[3, 4], &[0, 1]).rank(), 2, "what is repeated stays an axis");
        assert_eq!(Source::new(0, &[3], &[0]).axes(), [(3, 0)]);
    }
}
