//! Small ONNX files made for tests: through the messages of the reader, or byte by byte where they must be wrong.

use bytes::Bytes;
use prost::Message as _;
use prost::encoding::encode_varint;
use vramp_model::onnx::proto::{
    AttributeProto, DimensionProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto,
    TensorShapeProto, TensorTypeProto, TypeProto, ValueInfoProto,
};
use vramp_model::onnx::{OnnxError, OnnxFile, OnnxGraph};

pub const F32: i32 = 1;
pub const U8: i32 = 2;
pub const I32: i32 = 6;
pub const I64: i32 = 7;
pub const F64: i32 = 11;

pub fn node(name: &str, op: &str, inputs: &[&str], outputs: &[&str]) -> NodeProto {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let (input, output) = (owned(inputs), owned(outputs));
    NodeProto { name: name.into(), op_type: op.into(), input, output, ..Default::default() }
}

pub fn attribute(name: &str) -> AttributeProto {
    AttributeProto { name: name.into(), ..Default::default() }
}

pub fn weight(name: &str, dims: &[i64]) -> TensorProto {
    let values = dims.iter().product::<i64>() as usize;
    let raw_data = vec![0x3e; values * 4].into();
    TensorProto { name: name.into(), dims: dims.to_vec(), data_type: F32, raw_data, ..Default::default() }
}

pub fn floats(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    let raw_data = values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into();
    TensorProto { name: name.into(), dims: dims.to_vec(), data_type: F32, raw_data, ..Default::default() }
}

/// A list of i64.
pub fn longs(name: &str, values: &[i64]) -> TensorProto {
    let raw_data = values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into();
    let dims = vec![i64::try_from(values.len()).unwrap()];
    TensorProto { name: name.into(), dims, data_type: I64, raw_data, ..Default::default() }
}

/// A single i64.
pub fn long(name: &str, value: i64) -> TensorProto {
    TensorProto { dims: Vec::new(), ..longs(name, &[value]) }
}

pub fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { i: Some(value), kind: 2, ..attribute(name) }
}

pub fn ints(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { ints: values.to_vec(), kind: 7, ..attribute(name) }
}

pub fn text(name: &str, value: &'static str) -> AttributeProto {
    AttributeProto { s: Some(value.into()), kind: 3, ..attribute(name) }
}

/// The node with attributes.
pub fn with(mut node: NodeProto, attributes: Vec<AttributeProto>) -> NodeProto {
    node.attribute = attributes;
    node
}

/// A value of any type. Without dims, the shape is not declared.
pub fn typed(name: &str, elem_type: i32, dims: Option<&[i64]>) -> ValueInfoProto {
    let shape = dims.map(|dims| TensorShapeProto { dim: dims.iter().map(|length| fixed(*length)).collect() });
    ValueInfoProto {
        name: name.into(),
        r#type: Some(TypeProto { tensor_type: Some(TensorTypeProto { elem_type, shape }) }),
    }
}

/// x -> nodes -> y, where x is f32 of these dims.
pub fn graph(dims: &[i64], nodes: Vec<NodeProto>, weights: Vec<TensorProto>) -> GraphProto {
    GraphProto {
        node: nodes,
        name: "graph".into(),
        initializer: weights,
        input: vec![typed("x", F32, Some(dims))],
        output: vec![typed("y", 0, None)],
        ..Default::default()
    }
}

/// A file of opset 18.
pub fn file(graph: GraphProto) -> Vec<u8> {
    let mut model = model(graph);
    model.opset_import[0].version = 18;
    model.encode_to_vec()
}

pub fn fixed(length: i64) -> DimensionProto {
    DimensionProto { dim_value: Some(length), dim_param: None }
}

pub fn named(name: &str) -> DimensionProto {
    DimensionProto { dim_value: None, dim_param: Some(name.into()) }
}

/// A value that is declared as f32.
pub fn value(name: &str, dim: Vec<DimensionProto>) -> ValueInfoProto {
    let shape = Some(TensorShapeProto { dim });
    let tensor_type = Some(TensorTypeProto { elem_type: F32, shape });
    ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type }) }
}

/// x -> first -> second -> y, with a weight for each node.
pub fn chain() -> GraphProto {
    GraphProto {
        node: vec![node("first", "MatMul", &["x", "w"], &["hidden"]), node("second", "Add", &["hidden", "b"], &["y"])],
        name: "chain".into(),
        initializer: vec![weight("w", &[4, 8]), weight("b", &[8])],
        input: vec![value("x", vec![named("batch"), fixed(4)])],
        output: vec![value("y", vec![named("batch"), fixed(8)])],
        ..Default::default()
    }
}

pub fn model(graph: GraphProto) -> ModelProto {
    ModelProto {
        ir_version: 8,
        producer_name: "tests".into(),
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: 13 }],
        ..Default::default()
    }
}

pub fn read(graph: GraphProto) -> Result<OnnxGraph, OnnxError> {
    read_bytes(model(graph).encode_to_vec())
}

pub fn read_bytes(bytes: Vec<u8>) -> Result<OnnxGraph, OnnxError> {
    OnnxFile::read(bytes.into(), None)?.graph()
}

/// The message of the error with which a graph is refused.
#[track_caller]
pub fn refusal(graph: GraphProto) -> String {
    read(graph).expect_err("the graph is wrong").to_string()
}

// ---- byte by byte

/// A field with a length.
pub fn field(tag: u64, content: &[u8]) -> Vec<u8> {
    let mut bytes = declared(tag, content.len() as u64);
    bytes.extend_from_slice(content);
    bytes
}

/// The start of a field that declares a length, and nothing of its content.
pub fn declared(tag: u64, length: u64) -> Vec<u8> {
    let mut bytes = varint(tag << 3 | 2);
    bytes.extend(varint(length));
    bytes
}

pub fn varint(value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode_varint(value, &mut bytes);
    bytes
}

/// A whole file around the encoded fields of a graph.
pub fn around(graph: &[u8]) -> Vec<u8> {
    let opset = model(GraphProto::default()).opset_import[0].encode_to_vec();
    [field(7, graph), field(8, &opset)].concat()
}

pub fn packed(values: &[i64]) -> Vec<Bytes> {
    vec![values.iter().flat_map(|value| varint(value.cast_unsigned())).collect::<Vec<u8>>().into()]
}
