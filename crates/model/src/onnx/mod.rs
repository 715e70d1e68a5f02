//! Reading ONNX files.
//!
//! ```text
//! file -> scan -> proto -> graph
//! (bytes) (bounded) (decoded) (checked, sorted, weights converted)
//! ```
//!
//! This module knows the format and no tensors: which ops exist is a matter of the lowering. Invariants: any bytes are
//! read or refused with a typed error that names the place; memory stays within twice the size of the file and 64 MB.

mod allowance;
mod attributes;
mod error;
mod external;
mod file;
mod graph;
mod onnx_type;
mod opset;
mod order;
pub mod proto;
mod scan;
mod varints;
mod weight;

pub use attributes::{AttributeValue, Attributes};
pub use error::OnnxError;
pub use file::OnnxFile;
pub use graph::{Dim, GraphInput, GraphOutput, Node, OnnxGraph, Producer};
pub use onnx_type::OnnxType;
pub use opset::{NEWEST_OPSET, OLDEST_OPSET, is_default_domain};
pub use weight::{Weight, WeightData};
