//! How a kernel is joined with what comes before and after it.
//!
//! Owns the texts through which a kernel reads its input and passes its result on, and the plain ones that only read.
//! Does not make texts of fused ops: those come from whoever fuses.
//!
//! Always: a text that reads defines `fn value(at: u32) -> f32` over buffers `in0`, `in1` and so on; one that passes on
//! defines `fn finish(v: f32, at: u32) -> f32` (of products of matrices `fn finish(v: f32, row: u32, col: u32, at: u32) ->
//! f32`) over `side0`, `side1` and so on. Both find their parameters in `p.hook`, an array of `vec4<u32>`.

use crate::dtype::DType;

use super::text::load;

/// The text of one function, and how many buffers it reads.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Hook {
    /// The function.
    pub wgsl: String,
    /// Buffers that it reads.
    pub inputs: usize,
}

impl Hook {
    /// Reads `in0`, which begins at the kernel's own offset.
    pub(crate) fn plain(dtype: DType) -> Hook {
        let wgsl = format!("fn value(at: u32) -> f32 {{\n    return {};\n}}\n", load(dtype, "in0", "p.offset + at"));
        Hook { wgsl, inputs: 1 }
    }

    /// Passes results on as they are.
    pub(crate) fn pass() -> Hook {
        Hook { wgsl: "fn finish(v: f32, at: u32) -> f32 {\n    return v;\n}\n".into(), inputs: 0 }
    }

    /// Passes results of a product on as they are.
    pub(crate) fn pass_product() -> Hook {
        let wgsl = "fn finish(v: f32, row: u32, col: u32, at: u32) -> f32 {\n    return v;\n}\n";
        Hook { wgsl: wgsl.into(), inputs: 0 }
    }
}

/// Both ends of a kernel.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Hooks {
    /// Reads the input.
    pub value: Hook,
    /// Passes the result on.
    pub finish: Hook,
    /// How many `vec4<u32>` of parameters both have together.
    pub vectors: usize,
}

impl Hooks {
    /// A kernel by itself, over values of one type.
    pub(crate) fn plain(dtype: DType) -> Hooks {
        Hooks { value: Hook::plain(dtype), finish: Hook::pass(), vectors: 0 }
    }
}
