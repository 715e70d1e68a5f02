//! Pipelines: from a text or a graph to a finished run.
//!
//! [`Pipeline`] and [`PipelineBuilder`] join the planner, the machine's profile, the device and the engine; [`Error`] is
//! their error.
//! Does not measure or compare pipelines: `vramp_lab` does, and nothing here depends on it.
//!
//! On the web there is only [`read`]: running takes threads.

// The compiler proves through all of wgpu that a pipeline may be sent to a thread, which exceeds the usual limit.
#![recursion_limit = "256"]

#[cfg(not(target_arch = "wasm32"))]
mod builder;
#[cfg(not(target_arch = "wasm32"))]
mod error;
#[cfg(not(target_arch = "wasm32"))]
mod pipeline;

#[cfg(not(target_arch = "wasm32"))]
pub use builder::PipelineBuilder;
#[cfg(not(target_arch = "wasm32"))]
pub use error::Error;
#[cfg(not(target_arch = "wasm32"))]
pub use pipeline::{Pipeline, Step};

use vramp_plan::catalog::Catalog;
use vramp_plan::{GraphSpec, Mistakes, SourceText};

/// Reads a pipeline in text form. Reports every mistake in it at once, each with its place.
pub fn read(pipeline: &str, catalog: &Catalog) -> Result<GraphSpec, Mistakes> {
    let reading = vramp_plan::read_text(pipeline, catalog);
    if reading.mistakes.is_empty() {
        return Ok(reading.spec);
    }
    Err(Mistakes { source: Some(SourceText::new("pipeline", pipeline)), list: reading.mistakes })
}
