//! The ops: their names, the opset in which each began, and the function that lowers it.

use vramp_tensor::network::NetworkReduction;
use vramp_tensor::{Binary, Unary};

use super::error::Fault;
use super::node::NodeLowering;
use super::{
    convolution, elementwise, indexing, moves, normalisation, pooling, power, product, quantisation, reduction, resize,
    shape,
};
use crate::onnx::{Node, OnnxType};

/// An op that can be lowered.
struct Op {
    name: &'static str,
    lower: fn(&mut NodeLowering<'_, '_>) -> Result<(), Fault>,
}

const fn op(name: &'static str, lower: fn(&mut NodeLowering<'_, '_>) -> Result<(), Fault>) -> Op {
    Op { name, lower }
}

/// All ops, by name. An op that an opset does not have yet is lowered like the first version of it.
static OPS: &[Op] = &[
    op("Abs", |n| elementwise::unary(n, Unary::Abs)),
    op("Add", |n| elementwise::arithmetic(n, Binary::Add)),
    op("And", |n| elementwise::logic(n, Binary::Min)),
    op("ArgMax", indexing::arg_max),
    op("AveragePool", pooling::average),
    op("BatchNormalization", normalisation::batch),
    op("Cast", elementwise::cast),
    op("Ceil", elementwise::ceil),
    op("Clip", elementwise::clip),
    op("Concat", moves::concat),
    op("ConstantOfShape", shape::constant_of_shape),
    op("Conv", convolution::conv),
    op("ConvTranspose", convolution::conv_transpose),
    op("DepthToSpace", moves::depth_to_space),
    op("DequantizeLinear", quantisation::dequantize),
    op("Div", |n| elementwise::arithmetic(n, Binary::Div)),
    op("Dropout", indexing::dropout),
    op("Equal", |n| elementwise::comparison(n, Binary::Equal)),
    op("Erf", |n| elementwise::unary(n, Unary::Erf)),
    op("Exp", |n| elementwise::unary(n, Unary::Exp)),
    op("Expand", moves::expand),
    op("Flatten", shape::flatten),
    op("Floor", |n| elementwise::unary(n, Unary::Floor)),
    op("Gather", indexing::gather),
    op("GatherElements", indexing::gather_elements),
    op("GatherND", indexing::gather_nd),
    op("Gelu", elementwise::gelu),
    op("Gemm", product::gemm),
    op("GlobalAveragePool", |n| pooling::global(n, NetworkReduction::Mean)),
    op("GlobalMaxPool", |n| pooling::global(n, NetworkReduction::Max)),
    op("Greater", |n| elementwise::comparison(n, Binary::Greater)),
    op("GreaterOrEqual", |n| elementwise::or_equal(n, Binary::Greater)),
    op("HardSigmoid", elementwise::hard_sigmoid),
    op("HardSwish", elementwise::hard_swish),
    op("Identity", elementwise::identity),
    op("InstanceNormalization", normalisation::instance),
    op("LRN", normalisation::local_response),
    op("LayerNormalization", normalisation::layer),
    op("LeakyRelu", elementwise::leaky_relu),
    op("Less", |n| elementwise::comparison(n, Binary::Less)),
    op("LessOrEqual", |n| elementwise::or_equal(n, Binary::Less)),
    op("Log", |n| elementwise::unary(n, Unary::Log)),
    op("MatMul", product::matmul),
    op("Max", |n| elementwise::variadic(n, Binary::Max)),
    op("MaxPool", pooling::max),
    op("Min", |n| elementwise::variadic(n, Binary::Min)),
    op("Mul", |n| elementwise::arithmetic(n, Binary::Mul)),
    op("Neg", |n| elementwise::unary(n, Unary::Neg)),
    op("NonMaxSuppression", indexing::non_max_suppression),
    op("Not", elementwise::not),
    op("Or", |n| elementwise::logic(n, Binary::Max)),
    op("PRelu", elementwise::prelu),
    op("Pad", moves::pad),
    op("Pow", power::pow),
    op("QuantizeLinear", quantisation::quantize),
    op("Range", shape::range),
    op("Reciprocal", |n| elementwise::unary(n, Unary::Reciprocal)),
    op("ReduceMax", |n| reduction::reduce(n, NetworkReduction::Max)),
    op("ReduceMean", |n| reduction::reduce(n, NetworkReduction::Mean)),
    op("ReduceMin", |n| reduction::reduce(n, NetworkReduction::Min)),
    op("ReduceSum", |n| reduction::reduce(n, NetworkReduction::Sum)),
    op("Relu", |n| elementwise::unary(n, Unary::Relu)),
    op("Reshape", shape::reshape),
    op("Resize", resize::resize),
    op("Shape", shape::shape),
    op("Sigmoid", |n| elementwise::unary(n, Unary::Sigmoid)),
    op("Slice", moves::slice),
    op("Softmax", reduction::softmax),
    op("SpaceToDepth", moves::space_to_depth),
    op("Split", moves::split),
    op("Sqrt", |n| elementwise::unary(n, Unary::Sqrt)),
    op("Squeeze", shape::squeeze),
    op("Sub", |n| elementwise::arithmetic(n, Binary::Sub)),
    op("Sum", |n| elementwise::variadic(n, Binary::Add)),
    op("Tanh", |n| elementwise::unary(n, Unary::Tanh)),
    op("Tile", moves::tile),
    op("TopK", indexing::top_k),
    op("Transpose", moves::transpose),
    op("Unsqueeze", shape::unsqueeze),
    op("Upsample", resize::upsample),
    op("Where", elementwise::select),
];

/// The supported values of attributes that are texts.
static TEXTS: &[(&str, &str, &[&str])] = &[
    ("AveragePool", "auto_pad", AUTO_PADS),
    ("Conv", "auto_pad", AUTO_PADS),
    ("ConvTranspose", "auto_pad", AUTO_PADS),
    ("DepthToSpace", "mode", &["DCR", "CRD"]),
    ("Gelu", "approximate", &["none", "tanh"]),
    ("MaxPool", "auto_pad", AUTO_PADS),
    ("Pad", "mode", &["constant", "reflect", "edge", "wrap"]),
    (
        "Resize",
        "coordinate_transformation_mode",
        &[
            "half_pixel",
            "half_pixel_symmetric",
            "pytorch_half_pixel",
            "align_corners",
            "asymmetric",
            "tf_crop_and_resize",
        ],
    ),
    ("Resize", "keep_aspect_ratio_policy", &["stretch", "not_larger", "not_smaller"]),
    ("Resize", "mode", &["nearest", "linear", "cubic"]),
    ("Resize", "nearest_mode", &["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"]),
    ("SpaceToDepth", "mode", &["DCR", "CRD"]),
    ("Upsample", "mode", &["nearest", "linear", "bilinear"]),
];

/// Ops that meant the same before opset 7, in which broadcasting and other attributes changed.
const UNCHANGED: &[&str] = &[
    "Abs",
    "Ceil",
    "Conv",
    "Exp",
    "Floor",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "Identity",
    "Log",
    "MatMul",
    "Neg",
    "Not",
    "Reciprocal",
    "Relu",
    "Shape",
    "Sigmoid",
    "Sqrt",
    "Tanh",
    "Transpose",
];

const AUTO_PADS: &[&str] = &["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"];

fn found(node: &Node) -> Option<&'static Op> {
    let at = OPS.binary_search_by(|op| op.name.cmp(&node.op)).ok()?;
    Some(&OPS[at]).filter(|_| node.is_default_domain())
}

/// The op of a node that is not supported, with the reason if the op itself is.
pub(super) fn unsupported(node: &Node, opset: i64) -> Option<String> {
    if found(node).is_none() {
        let is_own = node.is_default_domain();
        return Some(if is_own { node.op.clone() } else { format!("{}.{}", node.domain, node.op) });
    }
    if opset < 7 && !UNCHANGED.contains(&node.op.as_str()) {
        return Some(format!("{} (of opset {opset})", node.op));
    }
    let texts = TEXTS.iter().filter(|(op, ..)| *op == node.op);
    for (_, attribute, supported) in texts {
        let Ok(Some(text)) = node.attributes.text(attribute) else { continue };
        if !supported.contains(&text) {
            return Some(format!("{} ({attribute} `{text}`)", node.op));
        }
    }
    if let ("Cast", Ok(Some(to))) = (node.op.as_str(), node.attributes.int("to")) {
        let to = OnnxType::of(to as i32);
        if super::word_kind(to).is_none() {
            return Some(format!("Cast (to {})", to.name()));
        }
    }
    let outputs = node.outputs.iter().flatten().count();
    if node.op == "BatchNormalization" && opset < 14 && outputs > 1 {
        return Some("BatchNormalization (training)".to_owned());
    }
    None
}

/// Lowers the node.
pub(super) fn lower(n: &mut NodeLowering<'_, '_>) -> Result<(), Fault> {
    match found(n.node) {
        Some(op) => (op.lower)(n),
        None => Err(Fault::Unsupported("the op".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_are_sorted_by_name() {
        assert!(OPS.is_sorted_by(|one, two| one.name < two.name));
    }
}
