//! What a valid file becomes: values, weights and nodes in order.

use bytes::Bytes;
use prost::Message as _;
use vramp_model::onnx::proto::{AttributeProto, DimensionProto, TensorProto, Undecoded, ValueInfoProto};
use vramp_model::onnx::{Dim, OnnxFile, OnnxType, Producer, Weight, WeightData};

use crate::made::{F32, I64, attribute, chain, fixed, model, named, node, packed, read, value, weight};

#[test]
fn a_graph_has_its_inputs_weights_nodes_and_outputs() {
    let graph = read(chain()).unwrap();
    assert_eq!((graph.name.as_str(), graph.opset), ("chain", 13));
    let [input] = &graph.inputs[..] else { panic!("{:?}", graph.inputs) };
    assert_eq!((input.name.as_str(), input.dtype), ("x", OnnxType::F32));
    assert_eq!(input.dims, Some(vec![Dim::Named("batch".into()), Dim::Fixed(4)]));
    assert_eq!(graph.producers[input.value], Producer::Input(0));
    assert_eq!(graph.values[graph.outputs[0].value], "y");
    assert_eq!(graph.producers[graph.outputs[0].value], Producer::Node(1));

    let first = &graph.nodes[0];
    assert_eq!((first.name.as_str(), first.op.as_str(), first.place()), ("first", "MatMul", "node `first` (MatMul)"));
    assert_eq!(first.input(0), Some(input.value));
    assert_eq!(graph.weight(first.input(1).unwrap()).unwrap().dims, [4, 8]);
    assert_eq!((first.input(2), first.output(0)), (None, graph.nodes[1].input(0)));
}

#[test]
fn a_file_tells_its_origin() {
    let file = OnnxFile::read(model(chain()).encode_to_vec().into(), None).unwrap();
    assert_eq!(file.producer(), ("tests", ""));
    assert_eq!(file.ir_version(), 8);
    assert_eq!(file.opsets().collect::<Vec<_>>(), [("", 13)]);
    assert_eq!(file.file_bytes(), model(chain()).encoded_len());
}

#[test]
fn nodes_are_sorted_and_unnamed_nodes_are_called_by_op_and_position() {
    let mut graph = chain();
    graph.node = vec![node("", "Add", &["hidden", "b"], &["y"]), node("", "MatMul", &["x", "w"], &["hidden"])];
    let graph = read(graph).unwrap();
    let names: Vec<&str> = graph.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["MatMul #1", "Add #0"]);
    assert_eq!(graph.producers[graph.outputs[0].value], Producer::Node(1));
    assert_eq!(graph.nodes[0].place(), "node `MatMul #1`");
}

#[test]
fn a_weight_that_is_also_an_input_is_only_a_weight() {
    let mut graph = chain();
    graph.input.push(value("w", vec![fixed(4), fixed(8)]));
    let graph = read(graph).unwrap();
    assert_eq!(graph.inputs.len(), 1);
    assert_eq!(graph.weights.len(), 2);
}

#[test]
fn constants_are_weights() {
    let mut graph = chain();
    let with = |name: &str, attribute: AttributeProto| {
        let mut constant = node("", "Constant", &[], &[name]);
        constant.attribute.push(attribute);
        constant
    };
    graph.node.extend([
        with("tensor", AttributeProto { t: Some(Box::new(weight("inner", &[2]))), kind: 4, ..attribute("value") }),
        with("float", AttributeProto { f: Some(1.5), kind: 1, ..attribute("value_float") }),
        with("floats", AttributeProto { floats: vec![1.0, 2.0], kind: 6, ..attribute("value_floats") }),
        with("int", AttributeProto { i: Some(-3), kind: 2, ..attribute("value_int") }),
        with("ints", AttributeProto { ints: vec![4, 5], kind: 7, ..attribute("value_ints") }),
        with("text", AttributeProto { s: Some("a".into()), kind: 3, ..attribute("value_string") }),
    ]);
    let graph = read(graph).unwrap();
    let found = |name: &str| graph.weights.iter().find(|weight| weight.name == name).unwrap();
    assert_eq!(found("tensor").dims, [2]);
    assert_eq!(found("float").floats().unwrap()[..], [1.5]);
    assert_eq!((found("float").dims.len(), &found("floats").dims[..]), (0, &[2][..]));
    assert_eq!(found("int").longs().unwrap(), [-3]);
    assert_eq!(found("ints").longs().unwrap(), [4, 5]);
    // Text cannot be a weight: the node stays, for the list of unsupported ops.
    assert_eq!(graph.nodes.last().unwrap().op, "Constant");
}

#[test]
fn unknown_ops_domains_and_nested_graphs_are_kept_for_the_list_of_unsupported_ops() {
    let mut graph = chain();
    let mut branch = node("branch", "If", &["x"], &["z"]);
    branch.attribute.push(AttributeProto { g: Some(Undecoded {}), kind: 5, ..attribute("then_branch") });
    let mut foreign = node("foreign", "Gelu", &["x"], &["v"]);
    foreign.domain = "com.example".into();
    graph.node.extend([branch, foreign]);
    let graph = read(graph).unwrap();
    assert!(graph.nodes[2].attributes.has_graph());
    assert!(graph.nodes[2].is_default_domain() && !graph.nodes[3].is_default_domain());
}

#[test]
fn lengths_that_converters_leave_open_are_unknown() {
    let mut graph = chain();
    graph.input[0] = value("x", vec![fixed(-1), named("?"), named(""), DimensionProto::default(), fixed(0)]);
    graph.output[0] = ValueInfoProto { name: "y".into(), r#type: None };
    let graph = read(graph).unwrap();
    let unknown = Dim::Unknown;
    let dims = vec![unknown.clone(), unknown.clone(), unknown.clone(), unknown, Dim::Fixed(0)];
    assert_eq!(graph.inputs[0].dims, Some(dims));
    assert_eq!((graph.outputs[0].dtype, &graph.outputs[0].dims), (OnnxType::Other(0), &None));
}

#[test]
fn optional_inputs_may_be_absent() {
    let mut graph = chain();
    graph.node.push(node("clip", "Clip", &["y", "", "b"], &["z", ""]));
    let graph = read(graph).unwrap();
    assert_eq!(graph.nodes[2].inputs.len(), 3);
    assert_eq!((graph.nodes[2].input(1), graph.nodes[2].output(1)), (None, None));
    assert!(graph.nodes[2].input(2).is_some());
}

#[test]
fn raw_data_share_the_memory_of_the_file() {
    let bytes = Bytes::from(model(chain()).encode_to_vec());
    let graph = OnnxFile::read(bytes.clone(), None).unwrap().graph().unwrap();
    let weight = graph.weights[0].bytes().unwrap();
    assert!(bytes.as_ptr_range().contains(&weight.as_ptr()));
}

fn decoded(tensor: &TensorProto) -> Weight {
    Weight::decode(tensor.encode_to_vec().into()).expect("the tensor is valid")
}

#[test]
fn floats_of_every_type_are_read_as_f32() {
    let raw = |data_type: i32, bytes: &[u8]| {
        let raw_data = Bytes::copy_from_slice(bytes);
        decoded(&TensorProto { dims: vec![2], data_type, raw_data, ..Default::default() })
    };
    assert_eq!(raw(F32, &[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]).floats().unwrap()[..], [1.0, -2.0]);
    assert_eq!(raw(10, &[0, 0x3c, 0, 0xc0]).floats().unwrap()[..], [1.0, -2.0]);
    assert_eq!(raw(16, &[0x80, 0x3f, 0, 0xc0]).floats().unwrap()[..], [1.0, -2.0]);
    let doubles = [1.0f64, -2.0].map(f64::to_le_bytes).concat();
    assert_eq!(raw(11, &doubles).floats().unwrap()[..], [1.0, -2.0]);
    assert!(raw(F32, &[0; 8]).longs().unwrap_err().to_string().ends_with("is f32, expected integers"));
}

#[test]
fn typed_fields_are_read_as_raw_data_are() {
    let of = |data_type: i32, count: i64| TensorProto { dims: vec![count], data_type, ..Default::default() };
    let float_data = vec![Bytes::copy_from_slice(&1.5f32.to_le_bytes()), Bytes::copy_from_slice(&2.5f32.to_le_bytes())];
    assert_eq!(decoded(&TensorProto { float_data, ..of(F32, 2) }).floats().unwrap()[..], [1.5, 2.5]);
    let double_data = vec![Bytes::copy_from_slice(&0.5f64.to_le_bytes())];
    assert_eq!(decoded(&TensorProto { double_data, ..of(11, 1) }).floats().unwrap()[..], [0.5]);
    let halves = TensorProto { int32_data: packed(&[0x3c00, 0xc000]), ..of(10, 2) };
    assert_eq!(decoded(&halves).floats().unwrap()[..], [1.0, -2.0]);
    for (data_type, values) in
        [(2, [0, 255]), (3, [-128, 127]), (4, [0, 65535]), (5, [-1, 1]), (6, [i64::from(i32::MIN), 7])]
    {
        let tensor = TensorProto { int32_data: packed(&values), ..of(data_type, 2) };
        assert_eq!(decoded(&tensor).longs().unwrap(), values);
    }
    assert_eq!(decoded(&TensorProto { int32_data: packed(&[0, 1]), ..of(9, 2) }).longs().unwrap(), [0, 1]);
    let longs = TensorProto { int64_data: packed(&[i64::MIN, i64::MAX]), ..of(I64, 2) };
    assert_eq!(decoded(&longs).longs().unwrap(), [i64::MIN, i64::MAX]);
    let unsigned = TensorProto { uint64_data: packed(&[3, 1 << 31]), ..of(12, 2) };
    assert_eq!(decoded(&unsigned).longs().unwrap(), [3, 1 << 31]);
}

#[test]
fn scalars_empty_tensors_and_unread_types_are_weights() {
    let scalar = TensorProto { data_type: I64, int64_data: packed(&[9]), ..Default::default() };
    assert_eq!((decoded(&scalar).count(), decoded(&scalar).longs().unwrap()), (1, vec![9]));
    let empty = TensorProto { dims: vec![1 << 62, 0, 1 << 62], data_type: F32, ..Default::default() };
    assert_eq!(decoded(&empty).floats().unwrap().len(), 0);
    let text = decoded(&TensorProto { dims: vec![2], data_type: 8, name: "t".into(), ..Default::default() });
    assert_eq!((text.dtype, &text.data), (OnnxType::String, &WeightData::Unread));
    assert_eq!(text.bytes().unwrap_err().to_string(), "weight `t` is string, expected numbers");
    assert_eq!(OnnxType::of(14).name(), "type 14 of ONNX");
}
