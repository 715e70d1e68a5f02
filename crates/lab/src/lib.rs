//! Tools that run pipelines to measure, compare and test them.
//!
//! [`mod@bench`] measures works, [`calibrate`] measures the machine, [`verify`] compares the results of both sides, and
//! [`harness`] tests handlers with frames and a clock of its own.
//! Nothing that runs a pipeline in earnest depends on this crate.

// The compiler proves through all of wgpu that a pipeline may be sent to a thread, which exceeds the usual limit.
#![recursion_limit = "256"]

pub mod bench;
pub mod calibrate;
pub mod harness;
pub mod verify;
