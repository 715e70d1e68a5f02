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
//! arithmetic over shapes leaves no steps. Integers of 64 bits are words of 32 bits; those that are known are computed in
//! 64 bits ([`wide`]).
//!
//! Invariants: an op is in [`table`] or it is unsupported; no function here guesses the meaning of an unknown attribute.
//! What is known while lowering takes no more memory than [`KNOWN_BYTES`] and three times the weights, however the
//! graph is made.

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
mod section;
mod shape;
mod table;
mod taps;
mod wide;
mod windows;

use std::collections::BTreeSet;

use vramp_tensor::network::{NetworkBuilder, ValueId, WordKind};
use vramp_tensor::{Binary, Shape, TensorError};

use error::Fault;
pub use error::LowerError;
use node::NodeLowering;
use section::SectionInput;
pub use section::{Rest, RestInput, Section};

use crate::error::UnsupportedOp;
use crate::onnx::{GraphInput, Node, OnnxGraph, OnnxType, Producer};

/// The memory that known values may take beside the weights: what a small file may ask for.
const KNOWN_BYTES: u64 = 64 << 20;

/// How often known values may take the memory of all weights as words: once as they are, once with a normalisation folded
/// in, and once packed for kernels.
const WEIGHTS_KNOWN: u64 = 3;

/// What is known of an input when a graph is lowered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenInput {
    pub lengths: Vec<usize>,
    /// The words of the input, if shapes depend on its values.
    pub words: Option<Vec<u32>>,
    /// The value of the builder that is the input, if steps before the graph compute it.
    pub made: Option<ValueId>,
}

/// A lowered section of a graph.
#[derive(Debug)]
pub struct Lowered {
    /// The section's inputs that the network is given, in the network's order: those without known words.
    pub inputs: Vec<usize>,
    /// Indices of the graph's outputs that this section computes, and their values.
    pub outputs: Vec<(usize, LoweredOutput)>,
    /// What is to be lowered once the section has run.
    pub rest: Option<Rest>,
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
    /// True if numbers beyond 32 bits were limited. Such values may only be moved and used as limits, unless they are
    /// known in 64 bits.
    is_limited: bool,
    /// Where the values are in 64 bits, if they are limited and were not moved.
    wide: Option<usize>,
    /// The number of first rows that are valid. Only steps that keep axis 0 accept such a value.
    rows: Option<ValueId>,
}

impl Typed {
    fn of(id: ValueId, dtype: OnnxType) -> Typed {
        Typed { id, dtype, is_limited: false, wide: None, rows: None }
    }
}

/// What has been lowered so far.
struct Lowering<'g> {
    graph: &'g OnnxGraph,
    values: Vec<Option<Typed>>,
    /// Known values of 64 bits.
    wides: Vec<Vec<i64>>,
    /// The nodes that read each value; the graph's outputs count as `usize::MAX`.
    readers: Vec<Vec<usize>>,
    section: &'g Section,
    given: &'g [GivenInput],
    /// Results of convolutions that include the normalisation which reads them.
    normalised: BTreeSet<usize>,
    multiply_adds: u64,
}

/// All inputs and nodes whose types, op or settings are not supported, as far as that does not depend on shapes.
pub fn unsupported(graph: &OnnxGraph) -> Vec<UnsupportedOp> {
    let inputs = graph.inputs.iter().filter_map(unsupported_input);
    let of = |node: &Node| {
        let op = table::unsupported(node, graph.opset)?;
        Some(UnsupportedOp { op, node: node.name.clone() })
    };
    inputs.chain(graph.nodes.iter().filter_map(of)).collect()
}

fn unsupported_input(input: &GraphInput) -> Option<UnsupportedOp> {
    if word_kind(input.dtype).is_some() { None } else { Some(unsupported_type(&input.name, input.dtype)) }
}

fn unsupported_type(input: &str, dtype: OnnxType) -> UnsupportedOp {
    UnsupportedOp { op: format!("input of type {}", dtype.name()), node: input.to_owned() }
}

/// Adds the steps of a section to a builder. There is one given input for each input of the section.
pub fn lower(
    graph: &OnnxGraph,
    section: &Section,
    builder: &mut NetworkBuilder,
    given: &[GivenInput],
) -> Result<Lowered, LowerError> {
    let weights: u64 = graph.weights.iter().fold(0, |sum, weight| sum.saturating_add(weight.count() as u64));
    let weights = weights.saturating_mul(4 * WEIGHTS_KNOWN);
    builder.limit_known(weights, weights.saturating_add(KNOWN_BYTES));
    let lowered = lowered(graph, section, builder, given);
    builder.limit_known(u64::MAX, u64::MAX);
    lowered
}

fn lowered(
    graph: &OnnxGraph,
    section: &Section,
    builder: &mut NetworkBuilder,
    given: &[GivenInput],
) -> Result<Lowered, LowerError> {
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
    let mut lowering = Lowering {
        graph,
        values,
        wides: Vec::new(),
        readers,
        section,
        given,
        normalised: BTreeSet::new(),
        multiply_adds: 0,
    };
    let mut late = Late { nodes: Vec::new(), is_late: vec![false; graph.values.len()] };
    let mut refused = Refused { is_without: vec![false; graph.values.len()], ops: Vec::new() };
    let inputs = lowering.inputs(builder, &mut refused)?;
    let has_unknown = graph.nodes.iter().any(|node| table::unsupported(node, graph.opset).is_some());
    for (number, node) in section.nodes.iter().map(|at| (*at, &graph.nodes[*at])) {
        if let Some(op) = table::unsupported(node, graph.opset) {
            refused.node(node, Some(op));
        } else if node.inputs.iter().flatten().any(|value| refused.is_without[*value]) {
            refused.node(node, None);
        } else if node.inputs.iter().flatten().any(|value| late.is_late[*value]) {
            late.add(number, node);
        } else {
            let mut at = NodeLowering { b: builder, lowering: &mut lowering, node };
            match table::lower(&mut at) {
                Ok(()) => {}
                Err(Fault::ComputedRows) => late.add(number, node),
                Err(Fault::Unsupported(what)) => refused.node(node, Some(format!("{} ({what})", node.op))),
                // The list of what is not supported is of more use than a single mistake.
                Err(_) if has_unknown => refused.node(node, None),
                Err(fault) => return Err(failed(fault, node.place().to_owned())),
            }
        }
    }
    if !refused.ops.is_empty() {
        return Err(LowerError::Unsupported { ops: refused.ops });
    }
    let outputs = lowering.outputs(builder, &late)?;
    let rest = if late.nodes.is_empty() { None } else { Some(lowering.rest(builder, late)?) };
    Ok(Lowered { inputs, outputs, rest, multiply_adds: lowering.multiply_adds })
}

/// Nodes that depend on the number of rows that a step computes.
struct Late {
    nodes: Vec<usize>,
    /// For each value, whether such a node computes it.
    is_late: Vec<bool>,
}

impl Late {
    fn add(&mut self, number: usize, node: &Node) {
        self.nodes.push(number);
        for output in node.outputs.iter().flatten() {
            self.is_late[*output] = true;
        }
    }
}

/// What cannot be lowered. All of it is listed in one error, so nodes after an unsupported one are passed over.
struct Refused {
    /// For each value, whether it is missing because of this.
    is_without: Vec<bool>,
    ops: Vec<UnsupportedOp>,
}

impl Refused {
    fn node(&mut self, node: &Node, op: Option<String>) {
        for output in node.outputs.iter().flatten() {
            self.is_without[*output] = true;
        }
        self.ops.extend(op.map(|op| UnsupportedOp { op, node: node.name.clone() }));
    }
}

/// The error of a place in the graph. Most errors of steps are mistakes of the graph: wrong shapes, types and settings.
fn failed(fault: Fault, place: String) -> LowerError {
    match fault {
        Fault::Unsupported(op) => LowerError::Unsupported { ops: vec![UnsupportedOp { op, node: place }] },
        Fault::ComputedRows => {
            let op = "rows whose number is computed".to_owned();
            LowerError::Unsupported { ops: vec![UnsupportedOp { op, node: place }] }
        }
        Fault::NeedsValue(inputs) => LowerError::NeedsValue { inputs },
        Fault::Problem(problem) => LowerError::Node { node: place, problem },
        Fault::Tensor(
            error @ (TensorError::NotAlike { .. }
            | TensorError::Mismatch { .. }
            | TensorError::NoSuchAxis { .. }
            | TensorError::TooManyAxes { .. }
            | TensorError::TooManyValues { .. }
            | TensorError::WrongType { .. }
            | TensorError::WrongCount { .. }
            | TensorError::OutOfRange { .. }
            | TensorError::Setting { .. }),
        ) => LowerError::Node { node: place, problem: error.to_string() },
        Fault::Tensor(error) => LowerError::Tensor { node: place, error: Box::new(error) },
        Fault::Onnx(error) => LowerError::Onnx(error),
    }
}

impl Lowering<'_> {
    fn inputs(&mut self, builder: &mut NetworkBuilder, refused: &mut Refused) -> Result<Vec<usize>, LowerError> {
        let mut asked = Vec::new();
        for (at, (input, given)) in self.section.inputs.iter().zip(self.given).enumerate() {
            let place = format!("input `{}`", input.name);
            let Some(kind) = word_kind(input.dtype) else {
                refused.ops.push(unsupported_type(&input.name, input.dtype));
                refused.is_without[input.value] = true;
                continue;
            };
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
            let id = limited.map_err(|error| failed(Fault::Tensor(error), place))?;
            let is_limited = input.is_limited;
            self.values[input.value] = Some(Typed { is_limited, ..Typed::of(id, input.dtype) });
        }
        Ok(asked)
    }

    /// The values of the outputs, but for those that are late.
    fn outputs(
        &mut self,
        builder: &mut NetworkBuilder,
        late: &Late,
    ) -> Result<Vec<(usize, LoweredOutput)>, LowerError> {
        let graph = self.graph;
        let mut outputs = Vec::with_capacity(self.section.outputs.len());
        for (number, output) in self.section.outputs.iter().map(|at| (*at, &graph.outputs[*at])) {
            if late.is_late[output.value] {
                continue;
            }
            let place = || format!("output `{}`", output.name);
            let typed = node::value(self, builder, output.value).map_err(|fault| failed(fault, place()))?;
            if typed.is_limited {
                let problem = "its numbers do not fit into 32 bits".to_owned();
                return Err(LowerError::Node { node: place(), problem });
            }
            // A tensor has a limited number of axes.
            Shape::new(builder.lengths(typed.id)).map_err(|error| failed(Fault::Tensor(error), place()))?;
            outputs.push((number, LoweredOutput { value: typed.id, dtype: typed.dtype, rows: typed.rows }));
        }
        Ok(outputs)
    }

    /// The section of the late nodes, with what they read of this one.
    fn rest(&mut self, builder: &NetworkBuilder, late: Late) -> Result<Rest, LowerError> {
        let graph = self.graph;
        let read: BTreeSet<usize> =
            late.nodes.iter().flat_map(|node| graph.nodes[*node].inputs.iter().flatten()).copied().collect();
        let (mut own, mut inputs) = (Vec::new(), Vec::new());
        for value in read {
            // Weights are read from the file again.
            let Some(typed) = self.values[value].filter(|_| graph.weight(value).is_none()) else { continue };
            own.push(SectionInput::of(graph, value, typed));
            let lengths = builder.lengths(typed.id).to_vec();
            let place = || format!("`{}`", graph.values[value]);
            Shape::new(&lengths).map_err(|error| failed(Fault::Tensor(error), place()))?;
            inputs.push(match builder.known(typed.id).filter(|_| typed.rows.is_none()) {
                Some(words) => RestInput::Known { words, lengths },
                None => RestInput::Computed(LoweredOutput { value: typed.id, dtype: typed.dtype, rows: typed.rows }),
            });
        }
        let outputs = self.section.outputs.iter().copied().filter(|at| late.is_late[graph.outputs[*at].value]);
        let section = Section { outputs: outputs.collect(), nodes: late.nodes, inputs: own, is_first: false };
        Ok(Rest { section, inputs })
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

/// The words in which values of a type are computed; `None` for types that are not supported. Floats of 64 bits would lose
/// digits, and those of brain floats would be more than the type has.
fn word_kind(dtype: OnnxType) -> Option<WordKind> {
    match dtype {
        OnnxType::F32 | OnnxType::F16 => Some(WordKind::F32),
        OnnxType::U8 | OnnxType::I8 | OnnxType::I32 | OnnxType::I64 | OnnxType::Bool => Some(WordKind::I32),
        _ => None,
    }
}
