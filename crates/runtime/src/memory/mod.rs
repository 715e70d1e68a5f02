//! Memory that is counted, refused or short: heap allocations per pipeline, requests that the system denies, and lanes that
//! wait for each other's frames.

pub(crate) mod heap;
pub(crate) mod no_memory;
pub(crate) mod shortage;
