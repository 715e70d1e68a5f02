//! Sections of a graph: what is lowered at once. A graph is one section, unless steps read rows whose number a step before
//! them computes. Those steps are a section of their own, which is lowered when the number is known.

use super::{LoweredOutput, Typed};
use crate::onnx::{OnnxGraph, OnnxType};

/// The part of a graph that is lowered at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Indices of nodes, in the order of execution.
    pub(super) nodes: Vec<usize>,
    pub(super) inputs: Vec<SectionInput>,
    /// Indices of the graph's outputs.
    pub outputs: Vec<usize>,
    /// True if the inputs are those of the graph.
    pub(super) is_first: bool,
}

/// A value that a section is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SectionInput {
    pub(super) name: String,
    pub(super) value: usize,
    pub(super) dtype: OnnxType,
    pub(super) is_limited: bool,
}

/// What is left of a section.
#[derive(Debug)]
pub struct Rest {
    pub section: Section,
    /// For each input of that section, where it comes from.
    pub inputs: Vec<RestInput>,
}

/// Where the input of a later section comes from.
#[derive(Debug)]
pub enum RestInput {
    Known { words: Vec<u32>, lengths: Vec<usize> },
    Computed(LoweredOutput),
}

impl Section {
    /// The whole graph.
    pub fn whole(graph: &OnnxGraph) -> Section {
        let input = |input: &crate::onnx::GraphInput| SectionInput {
            name: input.name.clone(),
            value: input.value,
            dtype: input.dtype,
            is_limited: false,
        };
        Section {
            nodes: (0..graph.nodes.len()).collect(),
            inputs: graph.inputs.iter().map(input).collect(),
            outputs: (0..graph.outputs.len()).collect(),
            is_first: true,
        }
    }
}

impl SectionInput {
    pub(super) fn of(graph: &OnnxGraph, value: usize, typed: Typed) -> SectionInput {
        let name = graph.values[value].clone();
        SectionInput { name, value, dtype: typed.dtype, is_limited: typed.is_limited }
    }
}
