//! The gather kernel: picks values along an axis by index. An index that is negative or too large gives NaN for floats
//! and 0 for integers, because a device cannot report an error. Indices on the host are checked by the caller.

use vramp_plan::Shader;

use crate::ops::dtype::DType;
use crate::ops::shape::Around;

use super::text::{KernelText, Launch, MATH, load_bits};
use super::words::{self, OutputRuns};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Gather {
    pub dtype: DType,
}

const FIELDS: [&str; 5] = ["offset", "length", "inner", "index_offset", "indices"];

impl Gather {
    /// Buffers: the values, the indices (i32 or u32), the results.
    pub(crate) fn shader(self) -> Shader {
        let mut text = KernelText::new();
        text.read("in0", "u32");
        text.read("index", "u32");
        text.write("out", "u32");
        let fields: Vec<&str> = FIELDS.iter().copied().chain(words::FIELDS).collect();
        text.params(&fields, 0);
        text.push(MATH);
        let beyond = match self.dtype {
            DType::F32 => "0x7fc00000u",
            DType::F16 => "0x7e00u",
            _ => "0u",
        };
        // As an unsigned number, a negative index is large, so one comparison suffices.
        text.push(&format!(
            "fn element(i: u32) -> u32 {{
    let row = quotient(i, p.inner);
    let outer = quotient(row, p.indices);
    let picked = index[p.index_offset + row - outer * p.indices];
    if picked >= p.length {{ return {beyond}; }}
    let at = p.offset + (outer * p.length + picked) * p.inner + (i - row * p.inner);
    return {};
}}",
            load_bits(self.dtype, "in0", "at")
        ));
        words::push_main(&mut text, self.dtype);
        text.shader(format!("gather of {}", self.dtype), 64)
    }

    /// The parameters and the grid for picking `indices` entries from `around`, which has `length` values along the
    /// axis. The results have the shape `[outer, indices, inner]`.
    pub(crate) fn launch(
        self,
        around: Around,
        offset: usize,
        indices: usize,
        index_offset: usize,
        most: u32,
    ) -> Launch {
        let Around { outer, length, inner } = around;
        let own = [offset, length, inner, index_offset, indices].map(|number| number as u32);
        OutputRuns::whole(0, outer * indices * inner).launch(self.dtype, &own, most)
    }
}

#[cfg(test)]
mod tests {
    use half::f16;

    use super::super::trial::{MOST, bytes_of, run};
    use super::*;

    fn gather(dtype: DType, values: &[u8], around: Around, offset: usize, indices: &[i32]) -> Vec<u8> {
        let gather = Gather { dtype };
        let count = around.outer * (indices.len() - 1) * around.inner;
        let launch = gather.launch(around, offset, indices.len() - 1, 1, MOST);
        run(&gather.shader(), &launch, &[values, bytes_of(indices)], count * dtype.bytes())
    }

    #[test]
    fn values_are_picked_along_an_axis_and_numbers_beyond_it_give_nan_or_zero() {
        let around = Around { outer: 2, length: 3, inner: 2 };
        // The tensors begin at the second index and at the second value.
        let indices = [9, 2, 0, 3, -1, 2];
        let wanted = |at: usize| {
            let (o, i, n) = (at / 10, at / 2 % 5, at % 2);
            usize::try_from(indices[1 + i]).ok().filter(|picked| *picked < 3).map(|picked| 1 + (o * 3 + picked) * 2 + n)
        };
        let floats: Vec<f32> = (0..13).map(|v| v as f32).collect();
        let got: Vec<f32> = bytemuck::pod_collect_to_vec(&gather(DType::F32, bytes_of(&floats), around, 1, &indices));
        for (at, got) in got.iter().enumerate() {
            assert_eq!(wanted(at).map(|v| v as f32), (!got.is_nan()).then_some(*got), "at {at}");
        }
        let halves: Vec<f16> = (0..13).map(|v| f16::from_f32(v as f32)).collect();
        let got: Vec<f16> = bytemuck::pod_collect_to_vec(&gather(DType::F16, bytes_of(&halves), around, 1, &indices));
        for (at, got) in got.iter().enumerate() {
            assert_eq!(wanted(at).map(|v| v as f32), (!got.is_nan()).then_some(got.to_f32()), "at {at}");
        }
        let bytes: Vec<u8> = (0..13).collect();
        let got = gather(DType::U8, &bytes, around, 1, &indices);
        assert_eq!(got, (0..20).map(|at| wanted(at).unwrap_or(0) as u8).collect::<Vec<_>>());
    }
}
