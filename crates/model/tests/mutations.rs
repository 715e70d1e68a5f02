//! Mutated graphs: settings, shapes and weights are replaced by unlucky numbers, and bytes are changed. Whatever comes out is
//! lowered, or refused with an error, within bounded memory.

use prost::Message as _;
use vramp_model::onnx::Dim;
use vramp_model::onnx::proto::{GraphProto, ModelProto, NodeProto, TensorProto};
use vramp_model::{Model, ModelError};
use vramp_tensor::{Context, DType, HostPoolRules};

use crate::heap;
use crate::made::{file, floats, graph, int, ints, long, longs, node, text, with};

/// Numbers from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most.max(1) as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

const UNLUCKY: [i64; 22] = [
    0,
    1,
    -1,
    2,
    3,
    -2,
    7,
    255,
    4096,
    65_536,
    1 << 20,
    1 << 27,
    i32::MAX as i64,
    i32::MIN as i64,
    u32::MAX as i64,
    1 << 32,
    1 << 34,
    1 << 40,
    1 << 62,
    i64::MAX,
    i64::MIN,
    i64::MIN + 1,
];

fn seeds() -> Vec<GraphProto> {
    let one = |op: &str, inputs: &[&str], dims: &[i64], attributes, weights: Vec<TensorProto>| {
        graph(dims, vec![with(node("n", op, inputs, &["y"]), attributes)], weights)
    };
    let w = |dims: &[i64]| floats("w", dims, &vec![0.5; dims.iter().product::<i64>() as usize]);
    let kernel = |name: &'static str| ints(name, &[2, 2]);
    let shape = |values: &[i64]| longs("s", values);
    let picture = [1, 4, 6, 6];
    let chain = |nodes: Vec<NodeProto>, weights| graph(&[2, 3], nodes, weights);
    vec![
        one(
            "Conv",
            &["x", "w", "b"],
            &picture,
            vec![kernel("strides"), ints("pads", &[1, 1, 1, 1]), int("group", 2)],
            vec![w(&[4, 2, 3, 3]), floats("b", &[4], &[1.0; 4])],
        ),
        one(
            "Conv",
            &["x", "w"],
            &picture,
            vec![kernel("dilations"), text("auto_pad", "SAME_UPPER")],
            vec![w(&[2, 4, 2, 2])],
        ),
        one(
            "ConvTranspose",
            &["x", "w"],
            &picture,
            vec![kernel("strides"), ints("output_padding", &[1, 1])],
            vec![w(&[4, 2, 2, 2])],
        ),
        one(
            "ConvTranspose",
            &["x", "w"],
            &picture,
            vec![kernel("strides"), ints("output_shape", &[12, 12])],
            vec![w(&[4, 2, 3, 3])],
        ),
        one(
            "MaxPool",
            &["x"],
            &picture,
            vec![kernel("kernel_shape"), ints("pads", &[1, 0, 0, 1]), int("ceil_mode", 1)],
            vec![],
        ),
        one(
            "AveragePool",
            &["x"],
            &picture,
            vec![kernel("kernel_shape"), kernel("strides"), int("count_include_pad", 1)],
            vec![],
        ),
        one("LRN", &["x"], &picture, vec![int("size", 3)], vec![]),
        one("Pad", &["x", "s"], &[2, 3], vec![text("mode", "reflect")], vec![shape(&[1, 1, 0, 2])]),
        one("Pad", &["x", "s"], &[2, 3], vec![text("mode", "wrap")], vec![shape(&[1, -1, 0, 2])]),
        one(
            "Slice",
            &["x", "s", "e", "a", "t"],
            &[5, 6],
            vec![],
            vec![shape(&[0, -1]), longs("e", &[4, -9]), longs("a", &[0, 1]), longs("t", &[2, -2])],
        ),
        one("Split", &["x"], &[6, 2], vec![int("axis", 0), int("num_outputs", 1)], vec![]),
        one("Split", &["x", "s"], &[6, 2], vec![int("axis", 0)], vec![shape(&[4, 2])]),
        one("Reshape", &["x", "s"], &[6, 2], vec![int("allowzero", 0)], vec![shape(&[0, -1, 1])]),
        one("Expand", &["x", "s"], &[1, 2], vec![], vec![shape(&[4, 2])]),
        one("Tile", &["x", "s"], &[3, 2], vec![], vec![shape(&[4, 2])]),
        one("Transpose", &["x"], &[3, 2], vec![ints("perm", &[1, 0])], vec![]),
        one("Unsqueeze", &["x", "s"], &[3, 2], vec![], vec![shape(&[0, 3])]),
        one("Squeeze", &["x", "s"], &[1, 2], vec![], vec![shape(&[0])]),
        one("Flatten", &["x"], &[3, 2], vec![int("axis", 1)], vec![]),
        one("DepthToSpace", &["x"], &picture, vec![int("blocksize", 2), text("mode", "CRD")], vec![]),
        one("SpaceToDepth", &["x"], &picture, vec![int("blocksize", 3)], vec![]),
        one("Gather", &["x", "s"], &[3, 2], vec![int("axis", 0)], vec![shape(&[0, 2, 1])]),
        one("GatherElements", &["x", "s"], &[3], vec![int("axis", 0)], vec![shape(&[0, 2, 1])]),
        one("GatherND", &["x", "s"], &[3, 2], vec![int("batch_dims", 0)], vec![shape(&[2, 1])]),
        one("TopK", &["x", "s"], &[3, 8], vec![int("axis", 1)], vec![shape(&[2])]),
        one("ArgMax", &["x"], &[3, 8], vec![int("axis", 1), int("keepdims", 0)], vec![]),
        one("ReduceMean", &["x", "s"], &[3, 8], vec![int("keepdims", 0)], vec![shape(&[1])]),
        one("ReduceMax", &["w"], &[3, 8], vec![int("keepdims", 0)], vec![w(&[3, 8])]),
        one("Softmax", &["x"], &[3, 8], vec![int("axis", 1)], vec![]),
        one("LayerNormalization", &["x", "w"], &[3, 8], vec![int("axis", -1)], vec![w(&[8])]),
        one(
            "Resize",
            &["x", "", "s"],
            &[1, 1, 4, 4],
            vec![text("mode", "linear"), int("antialias", 1)],
            vec![floats("s", &[4], &[1.0, 1.0, 0.5, 2.0])],
        ),
        one("Resize", &["x", "", "", "s"], &[1, 1, 4, 4], vec![text("mode", "cubic")], vec![shape(&[1, 1, 8, 3])]),
        one(
            "Resize",
            &["x", "", "", "s"],
            &[4, 4],
            vec![text("keep_aspect_ratio_policy", "not_larger")],
            vec![shape(&[8, 3])],
        ),
        one("MatMul", &["x", "w"], &[3, 8], vec![], vec![w(&[8, 2])]),
        one("Gemm", &["x", "w"], &[3, 8], vec![int("transB", 1)], vec![w(&[2, 8])]),
        one("Range", &["a", "b", "c"], &[1], vec![], vec![long("a", 0), long("b", 9), long("c", 2)]),
        one(
            "NonMaxSuppression",
            &["x", "w", "s", "o"],
            &[1, 3, 4],
            vec![],
            vec![w(&[1, 2, 3]), shape(&[2]), floats("o", &[1], &[0.5])],
        ),
        one("Concat", &["x", "w"], &[3, 2], vec![int("axis", 0)], vec![w(&[1, 2])]),
        one("Cast", &["x"], &[3, 2], vec![int("to", 7)], vec![]),
        one("Pow", &["s", "e"], &[3, 2], vec![], vec![shape(&[2, 3]), longs("e", &[3, 40])]),
        chain(
            vec![
                node("a", "ConstantOfShape", &["s"], &["c"]),
                node("b", "Exp", &["c"], &["d"]),
                with(node("c", "ReduceMax", &["d"], &["e"]), vec![int("keepdims", 0)]),
                node("n", "Add", &["x", "e"], &["y"]),
            ],
            vec![longs("s", &[4, 4])],
        ),
        chain(
            vec![
                node("a", "Shape", &["x"], &["c"]),
                node("b", "Mul", &["c", "s"], &["d"]),
                node("n", "Expand", &["w", "d"], &["y"]),
            ],
            vec![longs("s", &[2, 2]), floats("w", &[1], &[1.0])],
        ),
    ]
}

/// Changes one number of a graph.
fn change(of: &mut GraphProto, random: &mut Random) {
    let number = random.one_of(&UNLUCKY);
    let at = random.below(4);
    match random.below(5) {
        0 => {
            let Some(shape) = of.input[0].r#type.as_mut().and_then(|t| t.tensor_type.as_mut()?.shape.as_mut()) else {
                return;
            };
            let axis = random.below(shape.dim.len());
            if let Some(dim) = shape.dim.get_mut(axis) {
                dim.dim_value = Some(number.rem_euclid(1 << 16));
            }
        }
        1 | 2 => {
            let nodes = of.node.len();
            let node = &mut of.node[random.below(nodes)];
            let count = node.attribute.len();
            let Some(attribute) = node.attribute.get_mut(random.below(count)) else { return };
            if attribute.ints.is_empty() {
                attribute.i = attribute.i.map(|_| number);
            } else {
                let at = at % attribute.ints.len();
                attribute.ints[at] = number;
            }
        }
        3 => {
            let count = of.initializer.len();
            let Some(weight) = of.initializer.get_mut(random.below(count)) else { return };
            let mut raw = weight.raw_data.to_vec();
            let size = if weight.data_type == 7 { 8 } else { 4 };
            let places = raw.len() / size;
            if places > 0 {
                let at = random.below(places) * size;
                let bytes =
                    if size == 8 { number.to_le_bytes().to_vec() } else { (number as f32).to_le_bytes().to_vec() };
                raw[at..at + size].copy_from_slice(&bytes);
            }
            weight.raw_data = raw.into();
        }
        _ => {
            // A weight without values may have any lengths.
            let count = of.initializer.len();
            let Some(weight) = of.initializer.get_mut(random.below(count)) else { return };
            weight.raw_data = Vec::new().into();
            weight.dims = vec![0, number.rem_euclid(1 << 32), random.one_of(&UNLUCKY).rem_euclid(1 << 16)];
        }
    }
}

/// Memory for tensors, which the planned values of a network take.
const BUDGET_BYTES: u64 = 64 << 20;

/// Lowers a file and plans its network for the lengths that it declares. Other axes have the length 1.
fn attempt(bytes: Vec<u8>) -> Result<(), ModelError> {
    let rules = HostPoolRules { budget_bytes: BUDGET_BYTES, ..Default::default() };
    let context = Context::builder().threads(1).host_pool(rules).on_host();
    let model = Model::from_bytes(bytes)?;
    let length = |dim: &Dim| if let Dim::Fixed(length) = dim { *length } else { 1 };
    let inputs = model.inputs().iter().map(|port| {
        let lengths: Vec<usize> = port.dims.iter().map(length).collect();
        context.zeros(&lengths, DType::F32)
    });
    let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
    model.prepare(&context, &inputs).map(drop)
}

#[test]
fn mutated_graphs_are_lowered_or_refused_within_their_memory() {
    let rounds = if std::env::var_os("VRAMP_LONG").is_some() { 4000 } else { 120 };
    let mut lowered = 0;
    for (at, seed) in seeds().into_iter().enumerate() {
        attempt(file(seed.clone())).unwrap_or_else(|error| panic!("seed {at}: {error}"));
        let mut random = Random(at as u64 * 7919 + 1);
        for round in 0..rounds {
            let mut of = seed.clone();
            for _ in 0..=random.below(3) {
                change(&mut of, &mut random);
            }
            let mut bytes = file(of);
            if round % 8 == 7 {
                let place = random.below(bytes.len());
                bytes[place] ^= 1 << random.below(8);
            }
            let shown = || format!("seed {at}, round {round}: {:?}", ModelProto::decode(&bytes[..]));
            let most = 2 * bytes.len() + (64 << 20) + BUDGET_BYTES as usize;
            let (made, peak) = heap::peak(|| attempt(bytes.clone()));
            assert!(peak <= most + (1 << 20), "{peak} bytes: {}", shown());
            lowered += usize::from(made.is_ok());
        }
    }
    assert!(lowered > 500, "{lowered} mutated graphs can be lowered");
}
