//! How a kernel is joined with what comes before or after it.
//!
//! Owns the texts through which a kernel that goes through rows reads them and a product passes its results on, and the
//! plain ones that only read and pass on.
//! Does not make texts of fused ops: those come from whoever fuses.
//!
//! Always: a text that reads defines `fn value(at: u32) -> f32` over buffers `in0`, `in1` and so on; one that passes on
//! defines `fn finish(v: f32, row: u32, col: u32, at: u32) -> f32` over `side0`, `side1` and so on. Both find their
//! parameters in `p.hook`, an array of `vec4<u32>`.

use crate::ops::dtype::DType;

use super::text::load;

/// The text of one function, and what it reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Hook {
    /// The function.
    pub wgsl: String,
    /// Buffers.
    pub inputs: usize,
    /// `vec4<u32>` of parameters.
    pub vectors: usize,
}

impl Hook {
    /// Reads `in0`, which begins at the kernel's own offset.
    pub(crate) fn plain(dtype: DType) -> Hook {
        let wgsl = format!("fn value(at: u32) -> f32 {{\n    return {};\n}}\n", load(dtype, "in0", "p.offset + at"));
        Hook { wgsl, inputs: 1, vectors: 0 }
    }

    /// Passes results of a product on as they are.
    pub(crate) fn pass() -> Hook {
        let wgsl = "fn finish(v: f32, row: u32, col: u32, at: u32) -> f32 {\n    return v;\n}\n";
        Hook { wgsl: wgsl.into(), inputs: 0, vectors: 0 }
    }
}
