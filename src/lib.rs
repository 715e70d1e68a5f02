//! Real-time video and ML pipelines that stay on the GPU.
//!
//! A pipeline is written as text or built in Rust, checked against the catalogue of handlers, planned, and run. The
//! planner gives every handler a memory space and every transfer a price, and fuses neighbouring kernels.
//!
//! ```
//! use vramp::prelude::*;
//!
//! let text = "pattern size=640x480 frames=30 ! blur sigma=2 ! text \"hello\" ! null";
//! let mut pipeline = Pipeline::parse(text).build()?;
//! println!("{}", pipeline.plan());
//! let report = pipeline.run()?;
//! println!("{} frames, {:.0} a second", report.frames, report.fps);
//! # assert_eq!(report.frames, 30);
//! # Ok::<(), vramp::Error>(())
//! ```
//!
//! This crate only re-exports the crates of the workspace under one name: [`plan`] (graphs, the planner), [`runtime`]
//! (handlers, frames, reports), [`handlers`] (the built-in handlers), [`kernels`], [`gpu`], [`tensor`], [`model`] (ONNX
//! files), and [`machine`] (adapters, their memory and load). It also has the tools that run pipelines: [`mod@bench`],
//! [`calibrate`], [`verify`], and [`harness`] for tests of your own handlers.

pub use vramp_files as files;
pub use vramp_gpu as gpu;
pub use vramp_handlers as handlers;
pub use vramp_kernels as kernels;
pub use vramp_media as media;
pub use vramp_model as model;
pub use vramp_plan as plan;
pub use vramp_report as report;
pub use vramp_runtime as runtime;
pub use vramp_tensor as tensor;

pub use vramp_handlers::registry;

#[cfg(not(target_arch = "wasm32"))]
#[doc(inline)]
pub use vramp_lab::{bench, calibrate, harness, verify};
#[cfg(not(target_arch = "wasm32"))]
pub use vramp_machine as machine;
#[cfg(not(target_arch = "wasm32"))]
#[doc(inline)]
pub use vramp_pipeline::panel;
#[doc(inline)]
pub use vramp_pipeline::read;
#[cfg(not(target_arch = "wasm32"))]
#[doc(inline)]
pub use vramp_pipeline::{
    Access, Applied, ApplyError, Change, Controls, Error, Pipeline, PipelineBuilder, Running, SetError, SettingInput,
    SettingState, Step,
};
#[cfg(all(feature = "window", not(target_arch = "wasm32")))]
pub use vramp_window as window;

/// The types that most programs need: pipelines, options, and the handler API.
pub mod prelude {
    pub use vramp_handlers::app::{AppInput, AppOutput, LentFrame, PullError, PulledFrame, PushError, Wait};
    pub use vramp_handlers::{TensorHandler, tensors};
    #[cfg(not(target_arch = "wasm32"))]
    pub use vramp_pipeline::{Controls, Error, Pipeline, PipelineBuilder, Running, SetError, Step};
    pub use vramp_plan::catalog::{Entry, KernelRule, Probed, Setting};
    pub use vramp_plan::{Format, Graph, HandlerSpec, OnLoss, Plan, Policy, Profile, Rate, RunOptions, Size, Space};
    pub use vramp_runtime::{
        Call, Flow, Frame, FrameHandler, HandlerError, Kind, ParamWriter, Part, PixelHandler, PixelInfo, Registry,
        Report, Setup, StartContext,
    };
}
