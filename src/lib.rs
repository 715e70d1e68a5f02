//! Real-time video and ML pipelines that stay on the GPU.
//!
//! Owns the one name people depend on: it gathers the rooms of the house, and adds what joins them: [`Pipeline`], which
//! takes a text or a graph to a finished run, what is known of the machine and measured on it, benchmarks, a harness for people who write
//! handlers, and verifying.
//! Does not plan, compute or talk to a device itself: the rooms do.
//!
//! A pipeline is written as text or built in Rust, checked against the catalogue of handlers, and planned: every
//! handler gets a memory space, every transfer a price, neighbouring kernels are fused. Then it runs.
//!
//! ```
//! use vramp::prelude::*;
//!
//! let mut pipeline = Pipeline::parse("pattern size=640x480 frames=30 ! blur sigma=2 ! text \"hello\" ! null").build()?;
//! println!("{}", pipeline.plan());
//! let report = pipeline.run()?;
//! println!("{} frames, {:.0} a second", report.frames, report.fps);
//! # assert_eq!(report.frames, 30);
//! # Ok::<(), vramp::Error>(())
//! ```
//!
//! The parts are modules of their own: [`plan`] (graphs, the planner), [`runtime`] (handlers, frames, reports),
//! [`handlers`] (the built-in ones), [`kernels`], [`gpu`], [`tensor`].

// Whether a pipeline may be sent to a thread is asked through all of wgpu, which is deeper than the usual limit.
#![recursion_limit = "256"]

pub use vramp_files as files;
pub use vramp_gpu as gpu;
pub use vramp_handlers as handlers;
pub use vramp_kernels as kernels;
pub use vramp_plan as plan;
pub use vramp_runtime as runtime;
pub use vramp_tensor as tensor;

pub use vramp_handlers::registry;

#[cfg(not(target_arch = "wasm32"))]
pub mod bench;
#[cfg(not(target_arch = "wasm32"))]
pub mod calibrate;
#[cfg(not(target_arch = "wasm32"))]
pub mod harness;
#[cfg(not(target_arch = "wasm32"))]
pub mod machine;
#[cfg(not(target_arch = "wasm32"))]
mod pipeline;
#[cfg(not(target_arch = "wasm32"))]
pub mod verify;

#[cfg(not(target_arch = "wasm32"))]
pub use pipeline::{Error, Pipeline, PipelineBuilder, Step};

use vramp_plan::catalog::Catalog;
use vramp_plan::{GraphSpec, Mistakes, SourceText};

/// What most programs need: pipelines, options, and what handlers are written with.
pub mod prelude {
    #[cfg(not(target_arch = "wasm32"))]
    pub use crate::pipeline::{Error, Pipeline, PipelineBuilder, Step};
    pub use vramp_plan::catalog::{Entry, KernelRule, Probed, Setting};
    pub use vramp_plan::{Format, Graph, HandlerSpec, OnLoss, Plan, Policy, Profile, Rate, RunOptions, Size, Space};
    pub use vramp_runtime::{
        Call, Flow, Frame, FrameHandler, HandlerError, Kind, ParamWriter, Part, PixelHandler, PixelInfo, Registry,
        Report, Setup,
    };
}

/// Reads a pipeline in text form; every mistake in it comes back at once, each with its place.
pub fn read(pipeline: &str, catalog: &Catalog) -> Result<GraphSpec, Mistakes> {
    let reading = vramp_plan::read_text(pipeline, catalog);
    if reading.mistakes.is_empty() {
        return Ok(reading.spec);
    }
    Err(Mistakes { source: Some(SourceText::new("pipeline", pipeline)), list: reading.mistakes })
}
