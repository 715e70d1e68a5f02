//! What ops do on the host: the CPU twins of the kernels, on plain slices.
//!
//! Owns loops over values: math, reductions, products, copies and pictures.
//! Does not know tensors, contexts or devices: shapes come as numbers, and whoever calls has checked them.
//!
//! Always (products of float matrices apart, whose order is that of `gemm`): results do not depend on how many threads
//! compute them, nor on which instructions the machine has, but for softmax, which fuses multiply and add where it can.
#![expect(clippy::inline_always, reason = "what is not inlined into `vectorised!` runs without its vectors")]
#![expect(clippy::float_cmp, reason = "where values are compared, they are meant to be the same bits")]

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
