//! Kernels that compute with tensors on the device.
//!
//! Owns one kernel per file, each a function from a small spec to a [`Shader`](vramp_plan::Shader), and another to its
//! parameters and grid.
//! Does not lend memory, record or play: whoever asks for a kernel does.
//!
//! Always: lengths, strides and offsets are parameters, never text, so that a kind of kernel is compiled once; all
//! parameters zero make a kernel do nothing; an invocation writes whole words that nobody else writes, and goes
//! through at most [`MOST_ROUNDS`] rounds of any loop.

pub(crate) mod copy;
pub(crate) mod gather;
mod hook;
pub(crate) mod image;
pub(crate) mod matmul;
pub(crate) mod norm;
pub(crate) mod reduce;
mod rows;
pub(crate) mod softmax;
mod text;
#[cfg(test)]
mod trial;
mod words;

pub(crate) use hook::{Hook, Hooks};
pub(crate) use rows::Lanes;
pub(crate) use text::{Launch, MATH};
pub(crate) use words::Place;

/// The most rounds of one loop in one invocation: Mesa 22 ends an invocation silently at 65,535.
pub(crate) const MOST_ROUNDS: usize = 32_768;
