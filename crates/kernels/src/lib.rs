//! Every kernel of vramp, as WGSL and as its CPU twin, and the composer that fuses them.
//!
//! Kernels are data: pixel functions, heads, storage formats and users' own shaders. The composer turns a sequence of
//! kernels into one shader and one loop over rows. This crate does not know devices, handlers or plans. The GPU
//! receives a kernel as a `vramp_plan::Shader`.
//!
//! Invariants: the WGSL and its CPU twin compute in integers and agree to the bit. Rounding is half up, after clamping.
//! Fusing changes no pixel.

#![expect(clippy::inline_always, reason = "a loop must be inlined into the function of each level")]

mod compose;
mod function;
pub mod head;
pub mod own;
mod picture;
pub mod pixel;
#[doc(hidden)]
pub mod sample;
mod simd;
pub mod stored;

pub use compose::{
    Folded, FrameParams, FunctionPlace, KernelFrame, ParamLayout, ParamPart, Recipe, RowProgram, RowScratch,
};
pub use function::{FnArgs, Function, PixelFn, RowArgs, Spans, TryMapFn, everywhere};
pub use picture::{Picture, Pixel};
pub use simd::Level;
