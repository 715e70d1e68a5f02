//! The CPU twins of the device kernels: loops over plain slices for math, reductions, products, copies and images,
//! compiled for each set of vector instructions. The loops do not know tensors, contexts or devices; callers check
//! shapes.
//!
//! Products of floats use the crate gemm-f32, which chooses its own order of summation. Softmax fuses multiply and add
//! if the machine can. All other results depend neither on the number of threads nor on the machine's instructions.
#![expect(
    clippy::inline_always,
    reason = "functions that are not inlined into `vectorised!` lose its vector instructions"
)]
#![expect(clippy::float_cmp, reason = "compared values are meant to have the same bits")]

pub(crate) mod arg;
pub(crate) mod convert;
pub(crate) mod gather;
pub(crate) mod image;
pub(crate) mod lanes;
pub(crate) mod math;
pub(crate) mod matmul;
pub(crate) mod matmul8;
pub(crate) mod norm;
pub(crate) mod reduce;
pub(crate) mod rows;
pub(crate) mod softmax;
pub(crate) mod spread;
pub(crate) mod strided;
pub(crate) mod whole;
