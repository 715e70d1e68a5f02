//! The kernel that copies values that do not begin and end at word boundaries, and rows that are placed side by side.
//! If both the source and the target are whole words, callers use a recording's own copy, which is faster.
//!
//! Invariants: bits are copied unchanged. Values around the results in the target do not change.

use vramp_plan::Shader;

use crate::ops::dtype::DType;

use super::text::{KernelText, Launch, MATH, load_bits};
use super::words::{self, OutputRuns};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct CopyKernel {
    /// Only the size of the type matters: f32, i32 and u32 have the same kernel.
    pub dtype: DType,
}

impl CopyKernel {
    /// Everything that the text depends on.
    pub(crate) fn key(self) -> String {
        format!("copy {}", self.dtype.bytes())
    }

    /// Buffers: the source, the results.
    pub(crate) fn shader(self) -> Shader {
        let mut text = KernelText::new();
        text.read("in0", "u32");
        text.write("out", "u32");
        let fields: Vec<&str> = ["offset"].into_iter().chain(words::FIELDS).collect();
        text.params(&fields, 0);
        text.push(MATH);
        let value = load_bits(self.dtype, "in0", "p.offset + i");
        text.push(&format!("fn element(i: u32) -> u32 {{\n    return {value};\n}}"));
        words::push_main(&mut text, self.dtype);
        text.shader(format!("copy of {}", self.dtype), 64)
    }

    /// Parameters and grid for a copy to `place`; the first value copied is value number `offset` of the source.
    pub(crate) fn launch(self, offset: usize, place: &OutputRuns, most: u32) -> Launch {
        place.launch(self.dtype, &[offset as u32], most)
    }
}

#[cfg(test)]
mod tests {
    use super::super::trial::{MOST, run_onto};
    use super::*;

    #[test]
    fn parts_side_by_side_leave_what_lies_between_them() {
        for dtype in [DType::F32, DType::F16, DType::I8] {
            let size = dtype.bytes();
            for (width, offset, pitch, from) in [(3, 1, 7, 0), (1, 2, 3, 1), (2, 0, 2, 3), (5, 3, 11, 2)] {
                // Each byte of a value is the value's index; bytes that are not overwritten stay 250.
                let source: Vec<u8> = (0..from + 4 * width).flat_map(|at| vec![at as u8; size]).collect();
                let place = OutputRuns { offset, count: 4 * width, run: width, pitch };
                let onto = offset + 4 * pitch + 3;
                let copy = CopyKernel { dtype };
                let launch = copy.launch(from, &place, MOST);
                let got = run_onto(&copy.shader(), &launch, &[&source], &vec![250; onto * size]);
                let mut wanted = vec![250; onto];
                for row in 0..4 {
                    for col in 0..width {
                        wanted[offset + row * pitch + col] = (from + row * width + col) as u8;
                    }
                }
                let wanted: Vec<u8> = wanted.into_iter().flat_map(|value| vec![value; size]).collect();
                assert_eq!(got, wanted, "{dtype} {width} {offset} {pitch} {from}");
            }
        }
    }
}
