//! What threads meet in: the standard library's, under names that a model checker can stand in for.
//!
//! Owns the choice. `tests/store_loom.rs` compiles the same `held.rs` against loom's.
//! Does not add anything to what it names.

pub(crate) use std::sync::{Arc, Mutex, MutexGuard};
