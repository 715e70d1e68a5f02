//! Pipelines: from a text or a graph to a finished run.
//!
//! [`Pipeline`] and [`PipelineBuilder`] join the planner, the machine's profile, the device and the engine. Measuring
//! and comparing pipelines is the task of `vramp_lab`.
//!
//! On the web only [`read`] exists, because running needs threads.

// To prove that an engine may be sent to a thread, the compiler descends through all types of wgpu, deeper than the
// default limit allows. Crates that use this crate need no larger limit.
#![recursion_limit = "256"]

#[cfg(not(target_arch = "wasm32"))]
mod access;
#[cfg(not(target_arch = "wasm32"))]
mod builder;
#[cfg(not(target_arch = "wasm32"))]
mod control;
#[cfg(not(target_arch = "wasm32"))]
mod error;
#[cfg(not(target_arch = "wasm32"))]
pub mod panel;
#[cfg(not(target_arch = "wasm32"))]
mod pipeline;
#[cfg(not(target_arch = "wasm32"))]
mod running;

#[cfg(not(target_arch = "wasm32"))]
pub use access::Access;
#[cfg(not(target_arch = "wasm32"))]
pub use builder::PipelineBuilder;
#[cfg(not(target_arch = "wasm32"))]
pub use control::{Applied, ApplyError, Change, Controls, SetError, SettingInput, SettingState};
#[cfg(not(target_arch = "wasm32"))]
pub use error::Error;
#[cfg(not(target_arch = "wasm32"))]
pub use pipeline::{Pipeline, Step};
#[cfg(not(target_arch = "wasm32"))]
pub use running::Running;

use vramp_plan::catalog::Catalog;
use vramp_plan::{GraphSpec, Mistakes, SourceText};

/// Reads a pipeline in text form. Reports all mistakes at once, each with its place in the text.
pub fn read(pipeline: &str, catalog: &Catalog) -> Result<GraphSpec, Mistakes> {
    let reading = vramp_plan::read_text(pipeline, catalog);
    if reading.mistakes.is_empty() {
        return Ok(reading.spec);
    }
    Err(Mistakes { source: Some(SourceText::new("pipeline", pipeline)), list: reading.mistakes })
}
