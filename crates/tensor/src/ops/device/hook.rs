//! Hooks: WGSL functions that fuse a kernel with the ops before or after it. A kernel over rows reads its values
//! through a hook, and a product passes its results through a hook. The plain hooks in this file only read a value, or
//! pass on a result unchanged; `program` writes the hooks of fused ops.
//!
//! A reading hook defines `fn value(at: u32) -> f32` over buffers `in0`, `in1` and so on. A finishing hook defines
//! `fn finish(v: f32, row: u32, col: u32, at: u32) -> f32` over `side0`, `side1` and so on. Both kinds find their
//! parameters in `p.hook`, an array of `vec4<u32>`.

use crate::ops::dtype::DType;

use super::text::load;

/// The text of one function, and how many buffers and parameters it has.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Hook {
    pub wgsl: String,
    /// The number of buffers.
    pub inputs: usize,
    /// The number of `vec4<u32>` of parameters.
    pub vectors: usize,
}

impl Hook {
    /// Reads the buffer `in0` from the kernel's own offset on.
    pub(crate) fn plain(dtype: DType) -> Hook {
        let wgsl = format!("fn value(at: u32) -> f32 {{\n    return {};\n}}\n", load(dtype, "in0", "p.offset + at"));
        Hook { wgsl, inputs: 1, vectors: 0 }
    }

    /// Passes on the results of a product unchanged.
    pub(crate) fn pass() -> Hook {
        let wgsl = "fn finish(v: f32, row: u32, col: u32, at: u32) -> f32 {\n    return v;\n}\n";
        Hook { wgsl: wgsl.into(), inputs: 0, vectors: 0 }
    }
}
