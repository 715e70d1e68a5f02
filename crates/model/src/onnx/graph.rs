//! The graph of a file in a form that is easy to lower: values are numbers, and nodes are in the order of execution.
//!
//! Invariants: every value has one producer; the producers of a node's inputs come before the node; names of inputs,
//! outputs and weights are unique. Constants are weights. A weight that is also listed as an input, as in files before
//! version 4 of the format, is only a weight. Nodes with unsupported ops are kept, so that the lowering can list all of
//! them in one error.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use super::attributes::{AttributeValue, Attributes};
use super::error::{OnnxError, node_place, quoted};
use super::onnx_type::OnnxType;
use super::opset::{default_opset, is_default_domain};
use super::order::{Cycle, order};
use super::proto::{DimensionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto};
use super::weight::{Weight, WeightReader};

/// The longest axis that an input or output may declare.
const LONGEST_AXIS: i64 = i32::MAX as i64;

/// The graph of a model. Values are indices into `values`.
#[derive(Debug, Clone, PartialEq)]
pub struct OnnxGraph {
    pub name: String,
    /// The version of the ops of the default domain.
    pub opset: i64,
    pub inputs: Vec<GraphInput>,
    pub outputs: Vec<GraphOutput>,
    pub nodes: Vec<Node>,
    pub weights: Vec<Weight>,
    /// The names of the values.
    pub values: Vec<String>,
    /// For each value, what produces it.
    pub producers: Vec<Producer>,
    /// The files beside the model from which weights were read.
    pub external_files: Vec<PathBuf>,
}

/// What produces a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Producer {
    /// An index into `inputs`.
    Input(usize),
    /// An index into `weights`.
    Weight(usize),
    /// An index into `nodes`.
    Node(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphInput {
    pub name: String,
    pub value: usize,
    pub dtype: OnnxType,
    /// Absent if the file does not state even the number of axes.
    pub dims: Option<Vec<Dim>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GraphOutput {
    pub name: String,
    pub value: usize,
    /// As declared; `Other(0)` if it is not.
    pub dtype: OnnxType,
    pub dims: Option<Vec<Dim>>,
}

/// The declared length of an axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dim {
    Fixed(usize),
    /// Axes with the same name have the same length.
    Named(String),
    Unknown,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// The name in the file. An unnamed node is called by its op and its position in the file, as `Conv #12`.
    pub name: String,
    pub op: String,
    pub domain: String,
    /// The values that the node reads; an optional input may be absent.
    pub inputs: Vec<Option<usize>>,
    pub outputs: Vec<Option<usize>>,
    pub attributes: Attributes,
}

impl OnnxGraph {
    /// The weight that a value is, if it is one.
    pub fn weight(&self, value: usize) -> Option<&Weight> {
        match self.producers[value] {
            Producer::Weight(at) => Some(&self.weights[at]),
            Producer::Input(_) | Producer::Node(_) => None,
        }
    }

    pub(super) fn read(model: ModelProto, weights: WeightReader<'_>) -> Result<OnnxGraph, OnnxError> {
        let graph = model.graph.ok_or_else(|| {
            OnnxError::malformed("the model", "it has no graph: it is truncated, or not an ONNX file")
        })?;
        let opset = default_opset(&model.opset_import)?;
        let (names, inputs, nodes) = (Names::default(), Vec::new(), Vec::new());
        Making { reader: weights, names, inputs, weights: Vec::new(), nodes }.make(graph, opset)
    }
}

impl Node {
    /// The value of an input, if the node has it.
    pub fn input(&self, at: usize) -> Option<usize> {
        self.inputs.get(at).copied().flatten()
    }

    /// The value of an output, if the node has it.
    pub fn output(&self, at: usize) -> Option<usize> {
        self.outputs.get(at).copied().flatten()
    }

    /// Whether the op is one of ONNX itself.
    pub fn is_default_domain(&self) -> bool {
        is_default_domain(&self.domain)
    }

    /// How errors name the node.
    pub fn place(&self) -> &str {
        self.attributes.place()
    }
}

/// The names of all values, and what produces each.
#[derive(Default)]
struct Names {
    indices: BTreeMap<String, usize>,
    values: Vec<String>,
    producers: Vec<Option<Producer>>,
}

impl Names {
    /// The value with a name, which may be produced later.
    fn value(&mut self, name: String) -> usize {
        if let Some(known) = self.indices.get(&name) {
            return *known;
        }
        let value = self.values.len();
        self.indices.insert(name.clone(), value);
        self.values.push(name);
        self.producers.push(None);
        value
    }
}

struct Making<'a> {
    reader: WeightReader<'a>,
    names: Names,
    inputs: Vec<GraphInput>,
    weights: Vec<Weight>,
    /// In the order of the file.
    nodes: Vec<Node>,
}

impl Making<'_> {
    fn make(mut self, graph: GraphProto, opset: i64) -> Result<OnnxGraph, OnnxError> {
        if !graph.sparse_initializer.is_empty() {
            let what = "a sparse weight".to_owned();
            let remedy = "save the model again with dense weights";
            return Err(OnnxError::Unsupported { at: "graph".into(), what, remedy });
        }
        self.weights.reserve_exact(graph.initializer.len());
        for (at, tensor) in graph.initializer.into_iter().enumerate() {
            if tensor.name.is_empty() {
                return Err(OnnxError::malformed("graph", format!("weight {at} has no name")));
            }
            let place = format!("weight {}", quoted(&tensor.name));
            let weight = self.reader.read(tensor, &place)?;
            self.weight(weight, &place)?;
        }
        self.inputs.reserve_exact(graph.input.len());
        for input in graph.input {
            self.input(input)?;
        }
        self.nodes.reserve_exact(graph.node.len());
        for (position, node) in graph.node.into_iter().enumerate() {
            self.node(node, position)?;
        }
        let outputs = self.outputs(graph.output)?;
        self.check_producers()?;
        self.sort()?;

        let Making { names, inputs, weights, nodes, .. } = self;
        // Every value is an input, a weight, or the input or output of a node, and is now known to be produced.
        let producers = names.producers.into_iter().flatten().collect();
        let values = names.values;
        Ok(OnnxGraph {
            name: graph.name,
            opset,
            inputs,
            outputs,
            nodes,
            weights,
            values,
            producers,
            external_files: Vec::new(),
        })
    }

    /// Records what produces a value. `place` names the producer in errors.
    fn produce(&mut self, name: String, producer: Producer, place: &str) -> Result<usize, OnnxError> {
        let value = self.names.value(name);
        if let Some(first) = self.names.producers[value] {
            let name = quoted(&self.names.values[value]);
            let first = match first {
                Producer::Input(_) => format!("input {name}"),
                Producer::Weight(_) => format!("weight {name}"),
                Producer::Node(at) => self.nodes[at].place().to_owned(),
            };
            return Err(OnnxError::malformed(place, format!("it produces {name}, which {first} produces as well")));
        }
        self.names.producers[value] = Some(producer);
        Ok(value)
    }

    fn weight(&mut self, weight: Weight, place: &str) -> Result<(), OnnxError> {
        self.produce(weight.name.clone(), Producer::Weight(self.weights.len()), place)?;
        self.weights.push(weight);
        Ok(())
    }

    fn input(&mut self, input: ValueInfoProto) -> Result<(), OnnxError> {
        let place = format!("input {}", quoted(&input.name));
        if input.name.is_empty() {
            return Err(OnnxError::malformed("graph", "an input has no name"));
        }
        let known = self.names.indices.get(&input.name);
        if known.is_some_and(|value| matches!(self.names.producers[*value], Some(Producer::Weight(_)))) {
            return Ok(());
        }
        let Some((dtype, dims)) = tensor_type(&input, &place)? else {
            let what = "an input that is not a tensor".to_owned();
            return Err(OnnxError::Unsupported { at: place, what, remedy: "only tensors can be inputs" });
        };
        let value = self.produce(input.name.clone(), Producer::Input(self.inputs.len()), &place)?;
        self.inputs.push(GraphInput { name: input.name, value, dtype, dims });
        Ok(())
    }

    fn node(&mut self, node: NodeProto, position: usize) -> Result<(), OnnxError> {
        let place: Arc<str> = node_place(&node.name, &node.op_type, position).into();
        if node.op_type.is_empty() {
            return Err(OnnxError::malformed(&place, "it has no op"));
        }
        let mut attributes = Attributes::read(node.attribute, place.clone(), &mut self.reader)?;
        if node.op_type == "Constant" && is_default_domain(&node.domain) {
            let [output] = &node.output[..] else {
                let problem = format!("a constant has one output, not {}", node.output.len());
                return Err(OnnxError::malformed(&place, problem));
            };
            if let Some(weight) = constant(output, &mut attributes)? {
                return self.weight(weight, &place);
            }
        }
        let is_named = |name: String| Some(name).filter(|name| !name.is_empty());
        let inputs = node.input.into_iter().map(|name| is_named(name).map(|name| self.names.value(name))).collect();
        let mut outputs = Vec::with_capacity(node.output.len());
        for name in node.output {
            let producer = Producer::Node(self.nodes.len());
            outputs.push(is_named(name).map(|name| self.produce(name, producer, &place)).transpose()?);
        }
        let name = if node.name.is_empty() { format!("{} #{position}", node.op_type) } else { node.name };
        self.nodes.push(Node { name, op: node.op_type, domain: node.domain, inputs, outputs, attributes });
        Ok(())
    }

    fn outputs(&mut self, outputs: Vec<ValueInfoProto>) -> Result<Vec<GraphOutput>, OnnxError> {
        if outputs.is_empty() {
            return Err(OnnxError::malformed("graph", "it has no outputs"));
        }
        let mut seen = BTreeSet::new();
        let mut made = Vec::with_capacity(outputs.len());
        for output in outputs {
            let place = format!("output {}", quoted(&output.name));
            let known = self.names.indices.get(&output.name).copied();
            let value = known.filter(|value| self.names.producers[*value].is_some());
            let value = value.ok_or_else(|| OnnxError::malformed(&place, "nothing produces it"))?;
            if !seen.insert(value) {
                return Err(OnnxError::malformed(&place, "it is listed twice"));
            }
            let (dtype, dims) = tensor_type(&output, &place)?.unwrap_or((OnnxType::Other(0), None));
            made.push(GraphOutput { name: output.name, value, dtype, dims });
        }
        Ok(made)
    }

    fn check_producers(&self) -> Result<(), OnnxError> {
        for node in &self.nodes {
            if let Some(value) = node.inputs.iter().flatten().find(|value| self.names.producers[**value].is_none()) {
                let name = quoted(&self.names.values[*value]);
                return Err(OnnxError::malformed(node.place(), format!("nothing produces its input {name}")));
            }
        }
        Ok(())
    }

    /// Brings the nodes into the order of execution.
    fn sort(&mut self) -> Result<(), OnnxError> {
        let node_before = |value: usize| match self.names.producers[value] {
            Some(Producer::Node(at)) => Some(at),
            _ => None,
        };
        let (nodes, count) = (&self.nodes, self.nodes.len());
        let order = order(count, |node| nodes[node].inputs.iter().flatten().filter_map(|value| node_before(*value)));
        let order = order.map_err(|Cycle { node, from }| {
            let through = nodes[node].inputs.iter().flatten().find(|value| node_before(**value) == Some(from));
            let name = through.map_or_else(String::new, |value| quoted(&self.names.values[*value]));
            let problem = format!("it depends on its own output, through {name} of {}", nodes[from].place());
            OnnxError::malformed(nodes[node].place(), problem)
        })?;

        let mut places = vec![0; count];
        order.iter().enumerate().for_each(|(place, node)| places[*node] = place);
        let mut left: Vec<Option<Node>> = std::mem::take(&mut self.nodes).into_iter().map(Some).collect();
        self.nodes = order.iter().filter_map(|node| left[*node].take()).collect();
        for producer in self.names.producers.iter_mut().flatten() {
            if let Producer::Node(at) = producer {
                *at = places[*at];
            }
        }
        Ok(())
    }
}

/// The weight that a node `Constant` stands for. Text and sparse tensors are left to the list of unsupported ops.
fn constant(output: &str, attributes: &mut Attributes) -> Result<Option<Weight>, OnnxError> {
    let name = output.to_owned();
    if name.is_empty() {
        return Err(OnnxError::malformed(attributes.place(), "its output has no name"));
    }
    for attribute in ["value", "value_float", "value_floats", "value_int", "value_ints"] {
        return Ok(Some(match attributes.take(attribute) {
            None => continue,
            Some(AttributeValue::Tensor(tensor)) => Weight { name, ..*tensor },
            Some(AttributeValue::Float(value)) => Weight::of_floats(name, vec![], &[value]),
            Some(AttributeValue::Floats(values)) => Weight::of_floats(name, vec![values.len()], &values),
            Some(AttributeValue::Int(value)) => Weight::of_longs(name, vec![], &[value]),
            Some(AttributeValue::Ints(values)) => Weight::of_longs(name, vec![values.len()], &values),
            Some(_) => {
                let problem = format!("its attribute `{attribute}` has the wrong type");
                return Err(OnnxError::malformed(attributes.place(), problem));
            }
        }));
    }
    if attributes.iter().len() == 0 {
        return Err(OnnxError::malformed(attributes.place(), "it has no value"));
    }
    Ok(None)
}

/// A type, and lengths if they are declared.
type Declared = (OnnxType, Option<Vec<Dim>>);

/// The declared type and lengths, if the value is declared as a tensor.
fn tensor_type(value: &ValueInfoProto, place: &str) -> Result<Option<Declared>, OnnxError> {
    let Some(tensor) = value.r#type.as_ref().and_then(|r#type| r#type.tensor_type.as_ref()) else { return Ok(None) };
    let axes = tensor.shape.as_ref().map(|shape| shape.dim.iter().enumerate());
    let dims = axes.map(|axes| axes.map(|(axis, dim)| declared(dim, axis, place)).collect::<Result<_, _>>());
    Ok(Some((OnnxType::of(tensor.elem_type), dims.transpose()?)))
}

/// The length of an axis. Converters write -1 or `?` for unknown lengths; axes named `?` may have different lengths.
fn declared(dim: &DimensionProto, axis: usize, place: &str) -> Result<Dim, OnnxError> {
    match (dim.dim_value, dim.dim_param.as_deref()) {
        (Some(-1), _) | (None, None | Some("" | "?")) => Ok(Dim::Unknown),
        (Some(length @ 0..=LONGEST_AXIS), _) => Ok(Dim::Fixed(length as usize)),
        (None, Some(name)) => Ok(Dim::Named(name.to_owned())),
        (Some(length), _) => {
            let problem = format!("axis {axis} has a length of {length}, outside of 0 to {LONGEST_AXIS}");
            Err(OnnxError::malformed(place, problem))
        }
    }
}
