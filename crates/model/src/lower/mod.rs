//! Lowering: translates the graph of a file into values and steps of a network, for one set of input shapes.
//!
//! ```text
//! OnnxGraph -> first pass -> nodes in order -> NetworkBuilder
//!              (all unsupported (one function
//!               ops at once)     for each op)
//! ```
//!
//! A value keeps its type of the file ([`OnnxType`]) beside its words, because integers of 8 bits wrap and because results
//! are returned in the declared type. Values that are known while lowering are computed at once by the builder, so
//! arithmetic over shapes leaves no steps. Integers of 64 bits are words of 32 bits with a check of their range.
//!
//! Invariant: an op is in [`table`] or it is unsupported; no function here guesses the meaning of an unknown attribute.

mod convolution;
mod elementwise;
mod error;
mod indexing;
mod moves;
mod node;
mod normalisation;
mod pooling;
mod power;
mod product;
mod quantisation;
mod random;
mod reduction;
mod resize;
mod shape;
mod table;
mod taps;
mod windows;

use std::collections::BTreeSet;

use vramp_tensor::network::{NetworkBuilder, ValueId, WordKind};
use vramp_tensor::{Binary, TensorError};

use error::Fault;
pub use error::LowerError;
use node::NodeLowering;

use crate::error::UnsupportedOp;
use crate::onnx::{Node, OnnxGraph, OnnxType, Producer};

/// What is known of an input when a graph is lowered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenInput {
    pub lengths: Vec<usize>,
    /// The words of the input, if shapes depend on its values.
    pub words: Option<Vec<u32>>,
    /// The value of the builder that is the input, if steps before the graph compute it.
    pub made: Option<ValueId>,
}

/// A lowered graph.
#[derive(Debug)]
pub struct Lowered {
    /// The graph's inputs that the network is given, in the network's order: those without known words.
    pub inputs: Vec<usize>,
    pub outputs: Vec<LoweredOutput>,
    /// Multiplications with an addition, in convolutions and products.
    pub multiply_adds: u64,
}

/// An output of a lowered graph.
#[derive(Debug, Clone, Copy)]
pub struct LoweredOutput {
    pub value: ValueId,
    pub dtype: OnnxType,
    /// The number of first rows that are valid, if the network computes that number.
    pub rows: Option<ValueId>,
}

/// A value with its type in the file.
#[derive(Debug, Clone, Copy)]
struct Typed {
    id: ValueId,
    dtype: OnnxType,
    /// True if numbers beyond 32 bits were limited. Such values may only be moved and used as ends of slices.
    is_limited: bool,
    rows: Option<ValueId>,
}

impl Typed {
    fn of(id: ValueId, dtype: OnnxType) -> Typed {
        Typed { id, dtype, is_limited: false, rows: None }
    }
}

/// What has been lowered so far.
struct Lowering<'g> {
    graph: &'g OnnxGraph,
    values: Vec<Option<Typed>>,
    /// The nodes that read each value; the graph's outputs count as `usize::MAX`.
    readers: Vec<Vec<usize>>,
    given: &'g [GivenInput],
    /// Results of convolutions that include the normalisation which reads them.
    normalised: BTreeSet<usize>,
    multiply_adds: u64,
}

/// All nodes whose op or settings are not supported.
pub fn unsupported(graph: &OnnxGraph) -> Vec<UnsupportedOp> {
    let of = |node: &Node| {
        let op = table::unsupported(node, graph.opset)?;
        Some(UnsupportedOp { op, node: node.name.clone() })
    };
    graph.nodes.iter().filter_map(of).collect()
}

/// Adds the steps of a graph to a builder. There is one given input for each input of the graph.
pub fn lower(graph: &OnnxGraph, builder: &mut NetworkBuilder, given: &[GivenInput]) -> Result<Lowered, LowerError> {
    let ops = unsupported(graph);
    if !ops.is_empty() {
        return Err(LowerError::Unsupported { ops });
    }
    let mut readers = vec![Vec::new(); graph.values.len()];
    for (at, node) in graph.nodes.iter().enumerate() {
        for value in node.inputs.iter().flatten() {
            readers[*value].push(at);
        }
    }
    for output in &graph.outputs {
        readers[output.value].push(usize::MAX);
    }
    let values = vec![None; graph.values.len()];
    let mut lowering = Lowering { graph, values, readers, given, normalised: BTreeSet::new(), multiply_adds: 0 };
    let inputs = lowering.inputs(builder)?;
    for node in &graph.nodes {
        let mut at = NodeLowering { b: builder, lowering: &mut lowering, node };
        table::lower(&mut at).map_err(|fault| failed(fault, node))?;
    }
    let outputs = lowering.outputs(builder)?;
    Ok(Lowered { inputs, outputs, multiply_adds: lowering.multiply_adds })
}

fn failed(fault: Fault, node: &Node) -> LowerError {
    match fault {
        Fault::Unsupported(what) => {
            let op = format!("{} ({what})", node.op);
            LowerError::Unsupported { ops: vec![UnsupportedOp { op, node: node.name.clone() }] }
        }
        Fault::NeedsValue(inputs) => LowerError::NeedsValue { inputs },
        Fault::Problem(problem) => LowerError::Node { node: node.place().to_owned(), problem },
        Fault::Tensor(error) => LowerError::Tensor { node: node.place().to_owned(), error: Box::new(error) },
        Fault::Onnx(error) => LowerError::Onnx(error),
    }
}

impl Lowering<'_> {
    fn inputs(&mut self, builder: &mut NetworkBuilder) -> Result<Vec<usize>, LowerError> {
        let mut asked = Vec::new();
        for (at, (input, given)) in self.graph.inputs.iter().zip(self.given).enumerate() {
            let place = || format!("input `{}`", input.name);
            let kind = word_kind(input.dtype).ok_or_else(|| {
                let op = format!("input of type {}", input.dtype.name());
                LowerError::Unsupported { ops: vec![UnsupportedOp { op, node: input.name.clone() }] }
            })?;
            let made = match (&given.words, given.made, kind) {
                (None, Some(made), _) => builder.cast(made, kind),
                (None, None, _) => {
                    asked.push(at);
                    builder.input(kind, &given.lengths)
                }
                (Some(words), _, WordKind::F32) => builder.floats(bytemuck::cast_slice(words).to_vec(), &given.lengths),
                (Some(words), _, WordKind::I32) => {
                    builder.integers(bytemuck::cast_slice(words).to_vec(), &given.lengths)
                }
            };
            let limited =
                made.and_then(|id| if input.dtype == OnnxType::Bool { one_at_most(builder, id) } else { Ok(id) });
            let id = limited.map_err(|error| LowerError::Tensor { node: place(), error: Box::new(error) })?;
            self.values[input.value] = Some(Typed::of(id, input.dtype));
        }
        Ok(asked)
    }

    fn outputs(&mut self, builder: &mut NetworkBuilder) -> Result<Vec<LoweredOutput>, LowerError> {
        let graph = self.graph;
        let mut outputs = Vec::with_capacity(graph.outputs.len());
        for output in &graph.outputs {
            let place = || format!("output `{}`", output.name);
            let typed = node::value(self, builder, output.value).map_err(|fault| match fault {
                Fault::Onnx(error) => LowerError::Onnx(error),
                Fault::Tensor(error) => LowerError::Tensor { node: place(), error: Box::new(error) },
                Fault::Problem(problem) => LowerError::Node { node: place(), problem },
                Fault::Unsupported(what) => {
                    LowerError::Unsupported { ops: vec![UnsupportedOp { op: what, node: output.name.clone() }] }
                }
                Fault::NeedsValue(inputs) => LowerError::NeedsValue { inputs },
            })?;
            if typed.is_limited {
                let problem = "its numbers do not fit into 32 bits".to_owned();
                return Err(LowerError::Node { node: place(), problem });
            }
            outputs.push(LoweredOutput { value: typed.id, dtype: typed.dtype, rows: typed.rows });
        }
        Ok(outputs)
    }

    /// The graph's inputs on whose values a value depends, as far as they are not known.
    fn inputs_behind(&self, builder: &NetworkBuilder, value: usize) -> BTreeSet<usize> {
        let mut behind = BTreeSet::new();
        let mut seen = BTreeSet::new();
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            let is_known = self.values[value].is_some_and(|typed| builder.is_known(typed.id));
            if is_known || !seen.insert(value) {
                continue;
            }
            match self.graph.producers[value] {
                Producer::Input(at) => {
                    behind.insert(at);
                }
                Producer::Weight(_) => {}
                Producer::Node(at) => open.extend(self.graph.nodes[at].inputs.iter().flatten()),
            }
        }
        behind
    }
}

/// Bools of a caller may be any bytes; computed ones are 0 and 1.
fn one_at_most(builder: &mut NetworkBuilder, id: ValueId) -> Result<ValueId, TensorError> {
    let one = builder.integers(vec![1], &[])?;
    builder.binary(Binary::Min, id, one)
}

/// The words in which values of a type are computed; `None` for types that are not supported.
fn word_kind(dtype: OnnxType) -> Option<WordKind> {
    match dtype {
        OnnxType::F32 | OnnxType::F16 | OnnxType::F64 | OnnxType::Bf16 => Some(WordKind::F32),
        OnnxType::U8 | OnnxType::I8 | OnnxType::I32 | OnnxType::I64 | OnnxType::Bool => Some(WordKind::I32),
        _ => None,
    }
}
