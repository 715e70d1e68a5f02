//! Models: ONNX files, read and run on tensors.
//!
//! [`onnx`] reads files. It knows no tensors, so that it can be fuzzed without a device. `lower` translates a graph into
//! the steps of a network. [`Model`] keeps the networks of the sizes that it has been run with.

mod embedded;
mod error;
mod facts;
mod lower;
mod model;
mod networks;
pub mod onnx;
mod shelf;
pub mod shipped;

pub use embedded::{EmbeddedLayout, EmbeddedModel, EmbeddedOutput};
pub use error::{ModelError, UnsupportedOp};
pub use facts::{ModelCost, ModelFacts};
pub use model::{Model, Port};
