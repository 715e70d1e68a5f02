//! Real-time video and ML pipelines that stay on the GPU.
//!
//! Owns the one name people depend on: it gathers the rooms of the house and adds a prelude.
//! Does not add behaviour of its own.
//!
//! A pipeline is written as text or built in Rust, checked against the catalogue of handlers, and planned: every
//! handler gets a memory space, every transfer a price, neighbouring kernels are fused.
//!
//! ```
//! use vramp::prelude::*;
//!
//! let catalog = vramp::catalog();
//! let spec = vramp::read("pattern size=1920x1080 ! blur sigma=2 ! text \"hello\" ! null", &catalog)?;
//! let graph = Graph::check(&spec, &catalog, &FileProbe)?;
//! let profile = Profile::shipped("discrete").expect("it ships with vramp");
//!
//! let plan = Planner::new(&graph, &profile).decide()?;
//! assert_eq!(plan.ramps.len(), 0);
//! assert_eq!(plan.handler("blur0").expect("it is in the graph").space, Space::Gpu);
//! println!("{}", plan.to_text(false));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use vramp_gpu as gpu;
pub use vramp_handlers as handlers;
pub use vramp_kernels as kernels;
pub use vramp_plan as plan;
pub use vramp_runtime as runtime;

pub use vramp_handlers::{FileProbe, catalog, kinds};

#[cfg(not(target_arch = "wasm32"))]
pub mod harness;
#[cfg(not(target_arch = "wasm32"))]
pub mod machine;
#[cfg(not(target_arch = "wasm32"))]
mod session;
#[cfg(not(target_arch = "wasm32"))]
pub mod verify;

#[cfg(not(target_arch = "wasm32"))]
pub use session::{Prepared, Session, SessionError};

use vramp_plan::catalog::Catalog;
use vramp_plan::{GraphSpec, Mistakes, Source};

/// What most programs need.
pub mod prelude {
    #[cfg(not(target_arch = "wasm32"))]
    pub use crate::session::Session;
    pub use vramp_handlers::FileProbe;
    pub use vramp_plan::catalog::{Catalog, Entry};
    pub use vramp_plan::{Graph, GraphSpec, HandlerSpec, Plan, Planner, Policy, Profile, Size, Space};
}

/// Reads a pipeline in text form; every mistake in it comes back at once, each with its place.
pub fn read(pipeline: &str, catalog: &Catalog) -> Result<GraphSpec, Mistakes> {
    let reading = vramp_plan::read_text(pipeline, catalog);
    if reading.mistakes.is_empty() {
        return Ok(reading.spec);
    }
    Err(Mistakes { source: Some(Source::new("pipeline", pipeline)), list: reading.mistakes })
}
