//! What vramp can compute: every kernel as WGSL and as its twin on the CPU, and the composer that joins them.
//!
//! Owns pixel functions, heads, formats, users' own shaders, and how a run of them becomes one shader and one loop over
//! rows.
//! Does not know devices, handlers or plans: kernels are data, and meet the device in `vramp_plan::Shader`.
//!
//! Always: numbers are exact. Both sides compute in whole numbers, rounding is half up after clamping, and fusing
//! changes no result.

#![expect(clippy::inline_always, reason = "a loop that is compiled once per level must become part of each of them")]

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
