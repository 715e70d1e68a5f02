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
pub const I64: i32 = 7;

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
