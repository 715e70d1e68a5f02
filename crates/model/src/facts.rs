//! What a model consists of and what it costs, without running it.

use std::collections::BTreeMap;

use vramp_tensor::Context;

use crate::error::{ModelError, UnsupportedOp};
use crate::lower::{self, GivenInput, Section};
use crate::networks::{Planned, Unplanned};
use crate::onnx::OnnxGraph;

/// Facts of a file, for any sizes of its inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelFacts {
    pub opset: i64,
    pub nodes: usize,
    /// Names of ops and how many nodes have each, sorted by name. Ops of other domains have the domain before them.
    pub ops: Vec<(String, usize)>,
    /// Numbers in all weights.
    pub parameters: u64,
    /// Bytes of all weights in the file.
    pub weight_bytes: u64,
    /// If there are any, the model does not run.
    pub unsupported: Vec<UnsupportedOp>,
}

/// What one run costs, for given sizes of the inputs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelCost {
    /// Multiplications with an addition, in convolutions and products.
    pub multiply_adds: u64,
    /// Bytes of known values while the network exists.
    pub weight_bytes: u64,
    /// Bytes of intermediate and final values.
    pub working_bytes: u64,
    /// The steps of the network after fusion.
    pub steps: Vec<&'static str>,
}

impl ModelFacts {
    pub(crate) fn of(graph: &OnnxGraph) -> ModelFacts {
        let mut ops = BTreeMap::new();
        for node in &graph.nodes {
            let name = if node.is_default_domain() { node.op.clone() } else { format!("{}.{}", node.domain, node.op) };
            *ops.entry(name).or_insert(0) += 1;
        }
        let bytes = |weight: &crate::onnx::Weight| weight.dtype.bytes().unwrap_or(0).saturating_mul(weight.count());
        ModelFacts {
            opset: graph.opset,
            nodes: graph.nodes.len(),
            ops: ops.into_iter().collect(),
            parameters: graph.weights.iter().map(|weight| weight.count() as u64).sum(),
            weight_bytes: graph.weights.iter().map(|weight| bytes(weight) as u64).sum(),
            unsupported: lower::unsupported(graph),
        }
    }
}

impl ModelCost {
    pub(crate) fn of(graph: &OnnxGraph, sizes: &[Vec<usize>]) -> Result<ModelCost, ModelError> {
        let given =
            sizes.iter().map(|lengths| GivenInput { lengths: lengths.clone(), words: None, made: None }).collect();
        let planned =
            Planned::of(graph, &Section::whole(graph), &Context::on_host(), given).map_err(
                |unplanned| match unplanned {
                    Unplanned::Failed(error) => error,
                    Unplanned::NeedsValue(inputs) => {
                        let names: Vec<&str> = inputs.iter().map(|at| graph.inputs[*at].name.as_str()).collect();
                        let problem = format!("shapes depend on the values of {}", names.join(", "));
                        ModelError::InvalidNode { node: "graph".to_owned(), problem }
                    }
                },
            )?;
        Ok(ModelCost {
            multiply_adds: planned.multiply_adds,
            weight_bytes: planned.weight_bytes as u64,
            working_bytes: planned.working_bytes as u64,
            steps: planned.steps(),
        })
    }
}
