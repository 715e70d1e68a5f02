//! Device kernels of convolutions and pools, one kind per file. A kernel is a small spec with pure functions: one packs
//! the weights, one gives the dispatches. Values are dense words, positions of channels, with up to three spatial axes.
//!
//! Invariants: lengths are parameters, never text, except for the taps that a text has unrolled; keys of dispatches
//! name those. Each word of the output is written by one invocation.

pub(crate) mod conv;
pub(crate) mod depthwise;
pub(crate) mod pool;
mod tile_text;

#[cfg(test)]
mod tests;
