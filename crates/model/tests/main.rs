//! The integration tests of vramp-model as one binary.
//!
//! `cargo test -p vramp-model --test integration hostile::` runs one file.
#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test, also in the functions that tests share")]
#![allow(clippy::cast_possible_wrap, clippy::float_cmp, reason = "expected values are small, and compared to the bit")]

// Shared by several files.
mod heap;
mod made;

mod external;
mod hostile;
mod lowering;
mod models;
mod mutations;
mod nodes;
mod reading;
mod running;
