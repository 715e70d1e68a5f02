//! Tools that run pipelines to measure, compare and test them.
//!
//! [`mod@bench`] measures workloads, [`calibrate`] measures the machine, [`verify`] compares the frames of the CPU and
//! the GPU, and [`harness`] tests handlers with pushed frames and a clock that the test steps.
//!
//! These tools use the same planner and engine as a user's run. Planner, runtime and handlers do not depend on this
//! crate.

mod app;
pub mod bench;
pub mod calibrate;
pub mod harness;
pub mod verify;
