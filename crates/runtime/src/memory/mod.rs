//! Memory accounting and limits: heap allocations per pipeline, allocations that the system refuses, and lanes that
//! wait for memory.

pub(crate) mod heap;
pub(crate) mod no_memory;
pub(crate) mod shortage;
