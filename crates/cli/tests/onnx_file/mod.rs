//! Small ONNX files, written message by message.

/// A file of opset 17 with these nodes.
pub(crate) fn model(nodes: &[Vec<u8>], inputs: &[Port<'_>], outputs: &[Port<'_>]) -> Vec<u8> {
    model_with(nodes, &[], inputs, outputs)
}

/// A file of opset 17 with these nodes and weights.
pub(crate) fn model_with(nodes: &[Vec<u8>], weights: &[Vec<u8>], inputs: &[Port<'_>], outputs: &[Port<'_>]) -> Vec<u8> {
    let mut graph = Vec::new();
    for weight in weights {
        bytes(&mut graph, 5, weight);
    }
    for node in nodes {
        bytes(&mut graph, 1, node);
    }
    bytes(&mut graph, 2, b"graph");
    for port in inputs {
        bytes(&mut graph, 11, &port.message());
    }
    for port in outputs {
        bytes(&mut graph, 12, &port.message());
    }
    let mut opset = Vec::new();
    number(&mut opset, 2, 17);
    let mut model = Vec::new();
    number(&mut model, 1, 8);
    bytes(&mut model, 7, &graph);
    bytes(&mut model, 8, &opset);
    model
}

/// A weight of f32.
pub(crate) fn weight(name: &str, dims: &[u64], values: &[f32]) -> Vec<u8> {
    let mut weight = Vec::new();
    for dim in dims {
        number(&mut weight, 1, *dim);
    }
    number(&mut weight, 2, 1);
    bytes(&mut weight, 8, name.as_bytes());
    let values: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    bytes(&mut weight, 9, &values);
    weight
}

/// A weight of f32 whose values are a whole file beside the model.
pub(crate) fn weight_in_file(name: &str, dims: &[u64], file: &str) -> Vec<u8> {
    let (mut weight, mut location) = (Vec::new(), Vec::new());
    for dim in dims {
        number(&mut weight, 1, *dim);
    }
    number(&mut weight, 2, 1);
    bytes(&mut weight, 8, name.as_bytes());
    bytes(&mut location, 1, b"location");
    bytes(&mut location, 2, file.as_bytes());
    bytes(&mut weight, 13, &location);
    number(&mut weight, 14, 1);
    weight
}

/// A node without attributes.
pub(crate) fn node(op: &str, inputs: &[&str], outputs: &[&str]) -> Vec<u8> {
    let mut node = Vec::new();
    for name in inputs {
        bytes(&mut node, 1, name.as_bytes());
    }
    for name in outputs {
        bytes(&mut node, 2, name.as_bytes());
    }
    bytes(&mut node, 4, op.as_bytes());
    node
}

/// An input or output.
#[derive(Clone, Copy)]
pub(crate) struct Port<'a> {
    pub(crate) name: &'a str,
    /// The number of a type in ONNX.
    pub(crate) dtype: u64,
    /// Lengths, or names of axes.
    pub(crate) dims: &'a [&'a str],
}

impl Port<'_> {
    fn message(&self) -> Vec<u8> {
        let mut shape = Vec::new();
        for dim in self.dims {
            let mut axis = Vec::new();
            match dim.parse() {
                Ok(length) => number(&mut axis, 1, length),
                Err(_) => bytes(&mut axis, 2, dim.as_bytes()),
            }
            bytes(&mut shape, 1, &axis);
        }
        let mut tensor = Vec::new();
        number(&mut tensor, 1, self.dtype);
        bytes(&mut tensor, 2, &shape);
        let (mut kind, mut port) = (Vec::new(), Vec::new());
        bytes(&mut kind, 1, &tensor);
        bytes(&mut port, 1, self.name.as_bytes());
        bytes(&mut port, 2, &kind);
        port
    }
}

/// Adds a field of bytes: text or a message.
fn bytes(message: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(message, field << 3 | 2);
    varint(message, value.len() as u64);
    message.extend_from_slice(value);
}

fn number(message: &mut Vec<u8>, field: u64, value: u64) {
    varint(message, field << 3);
    varint(message, value);
}

fn varint(message: &mut Vec<u8>, mut value: u64) {
    while value > 127 {
        message.push(value as u8 | 128);
        value >>= 7;
    }
    message.push(value as u8);
}
