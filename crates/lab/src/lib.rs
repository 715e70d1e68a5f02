//! Tools that run pipelines to measure, compare and test them.
//!
//! [`mod@bench`] measures workloads, [`calibrate`] measures the machine, [`verify`] compares the frames of the CPU and
//! the GPU, and [`harness`] tests handlers with pushed frames and a clock that the test steps.
//!
//! These tools use the same planner and engine as a user's run. Planner, runtime and handlers do not depend on this
//! crate.

// To prove that a pipeline may be sent to a thread, the compiler descends through all types of wgpu, deeper than the
// default limit allows.
#![recursion_limit = "256"]

mod app;
pub mod bench;
pub mod calibrate;
pub mod harness;
pub mod verify;
