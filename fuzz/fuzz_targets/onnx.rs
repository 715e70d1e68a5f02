//! Any bytes are read as an ONNX file or refused. In a graph that was read, every value has one producer, nodes come
//! after the producers of their inputs, and the data of weights match their shapes.

#![no_main]
#![allow(dead_code, unused_imports, reason = "only the reader is compiled here, without the lowering that uses it")]

#[path = "../../crates/model/src/onnx/mod.rs"]
mod onnx;

use libfuzzer_sys::fuzz_target;
use onnx::{OnnxError, OnnxFile, OnnxGraph, Producer, Weight, WeightData};

fuzz_target!(|bytes: &[u8]| {
    match OnnxFile::read(bytes.to_vec().into(), None).and_then(OnnxFile::graph) {
        Ok(graph) => check(&graph),
        Err(error) => check_message(&error),
    }
    match Weight::decode(bytes.to_vec().into()) {
        Ok(weight) => check_weight(&weight),
        Err(error) => check_message(&error),
    }
});

fn check(graph: &OnnxGraph) {
    assert_eq!(graph.values.len(), graph.producers.len());
    graph.weights.iter().for_each(check_weight);
    for (value, producer) in graph.producers.iter().enumerate() {
        match producer {
            Producer::Input(at) => assert_eq!(graph.inputs[*at].value, value),
            Producer::Weight(at) => assert_eq!(graph.weights[*at].name, graph.values[value]),
            Producer::Node(at) => assert!(graph.nodes[*at].outputs.contains(&Some(value))),
        }
    }
    for (at, node) in graph.nodes.iter().enumerate() {
        for value in node.inputs.iter().flatten() {
            assert!(!matches!(graph.producers[*value], Producer::Node(producer) if producer >= at));
        }
    }
    assert!(graph.outputs.iter().all(|output| graph.values[output.value] == output.name));
}

fn check_weight(weight: &Weight) {
    if let WeightData::Bytes(bytes) = &weight.data {
        assert_eq!(Some(bytes.len()), weight.dtype.bytes().map(|size| size * weight.count()));
        if let Ok(values) = weight.floats() {
            assert_eq!(values.len(), weight.count());
        }
    }
}

fn check_message(error: &OnnxError) {
    // Names and shapes from the file are shortened.
    assert!(error.to_string().len() < 4000);
}
