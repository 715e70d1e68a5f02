//! Graphs that ask for more than they are worth: their lowering ends soon, within bounded memory, and with an error that
//! names the node. What is only unsupported is listed in one error.

use vramp_model::onnx::proto::{GraphProto, NodeProto, TensorProto};
use vramp_model::{Model, ModelError};
use vramp_tensor::{Context, DType, HostPoolRules};

use crate::heap;
use crate::made::{F32, F64, I32, U8, file, floats, graph, int, ints, long, longs, node, text, typed, with};

/// How an attempt to lower a graph ends.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Lowered,
    /// A mistake of the file, exit code 2.
    Wrong,
    Unsupported,
    NoMemory,
}

/// Lowers a graph for its declared shapes. Returns how that ends, with the message, and the most memory that it took.
fn lowered(of: GraphProto) -> (End, String, usize) {
    let shapes: Vec<Vec<usize>> = of
        .input
        .iter()
        .map(|input| {
            let shape = input.r#type.as_ref().unwrap().tensor_type.as_ref().unwrap().shape.as_ref().unwrap();
            shape.dim.iter().map(|dim| dim.dim_value.unwrap() as usize).collect()
        })
        .collect();
    let bytes = file(of);
    let (made, peak) = heap::peak(|| Model::from_bytes(bytes).unwrap().cost(&shapes).map(drop));
    let Err(error) = made else { return (End::Lowered, String::new(), peak) };
    let end = match &error {
        ModelError::InvalidNode { .. } => End::Wrong,
        ModelError::UnsupportedOps { .. } => End::Unsupported,
        error if error.is_out_of_memory() => End::NoMemory,
        ModelError::Node { .. } => End::Unsupported,
        error => panic!("{error}"),
    };
    (end, error.to_string(), peak)
}

/// One node over x and weights.
fn one(op: &str, inputs: &[&str]) -> NodeProto {
    node("n", op, inputs, &["y"])
}

fn spatial(op: &str, inputs: &[&str], settings: &[(&str, &[i64])]) -> NodeProto {
    with(one(op, inputs), settings.iter().map(|(name, values)| ints(name, values)).collect())
}

/// Fails unless the graph ends like this, and an error names the node and says this.
#[track_caller]
fn ends(end: &End, words: &str, of: GraphProto) {
    let most = file(of.clone()).len() * 2 + (64 << 20);
    let (found, message, peak) = lowered(of);
    assert_eq!(&found, end, "{message}");
    assert!(message.contains(words), "{message}");
    assert!(found == End::Lowered || message.contains("`n`") || message.contains("`y`"), "{message}");
    assert!(peak <= most, "{peak} bytes, more than {most}");
}

#[test]
fn splits_and_blocks_of_any_number_are_refused() {
    for count in [1 << 62, 1 << 34, 0, -1] {
        let split = with(one("Split", &["x"]), vec![int("num_outputs", count)]);
        ends(&End::Wrong, "num_outputs", graph(&[2], vec![split], vec![]));
    }
    for (op, dims) in [("DepthToSpace", [1, 4, 1, 1]), ("SpaceToDepth", [1, 4, 0, 0])] {
        for side in [1 << 32, i64::MAX, 0, -2] {
            let node = with(one(op, &["x"]), vec![int("blocksize", side)]);
            ends(&End::Wrong, "blocksize", graph(&dims, vec![node], vec![]));
        }
    }
}

#[test]
fn known_values_take_no_more_memory_than_their_allowance() {
    let empty = |name: &str, dims: &[i64]| floats(name, dims, &[]);
    let weights = vec![empty("a", &[40_000, 0]), empty("b", &[0, 40_000])];
    ends(&End::Lowered, "", graph(&[2], vec![one("MatMul", &["a", "b"])], weights));
    let largest = with(one("ReduceMax", &["a"]), vec![ints("axes", &[0])]);
    let mut old = graph(&[2], vec![largest], vec![empty("a", &[0, 400_000_000])]);
    old.node[0].attribute.clear();
    old.node[0].input.push("axes".into());
    old.initializer.push(longs("axes", &[0]));
    ends(&End::Lowered, "", old);

    // A constant stays one word, and so does what is computed from it, until it must lie in memory.
    let chain = |last: &str| {
        let nodes = vec![
            node("c", "ConstantOfShape", &["s"], &["v0"]),
            node("e", "Exp", &["v0"], &["v1"]),
            node("f", "Exp", &["v1"], &["v2"]),
            one(last, &["v2"]),
        ];
        graph(&[2], nodes, vec![longs("s", &[1 << 27])])
    };
    ends(&End::Lowered, "", chain("Exp"));
    ends(&End::NoMemory, "are left for such values", chain("ReduceMax"));

    let range = vec![long("a", 0), long("b", 1 << 26), long("c", 1)];
    ends(&End::NoMemory, "range", graph(&[2], vec![one("Range", &["a", "b", "c"])], range));
    let steps = vec![long("a", i64::MIN), long("b", i64::MAX), long("c", 1 << 62)];
    ends(&End::Wrong, "64 bits", graph(&[2], vec![one("Range", &["a", "b", "c"])], steps));
    let scales = floats("s", &[4], &[1.0, 1.0, 1.0, 3e7]);
    ends(&End::NoMemory, "resample", graph(&[1, 1, 1, 1], vec![one("Resize", &["x", "", "s"])], vec![scales]));
    ends(&End::Lowered, "", graph(&[2], vec![one("Pad", &["x", "p"])], vec![longs("p", &[0, 100_000_000])]));

    // Work without memory.
    let nodes = vec![
        node("one", "ConstantOfShape", &["s"], &["v"]),
        node("two", "ConstantOfShape", &["t"], &["w"]),
        one("MatMul", &["v", "w"]),
    ];
    let weights = vec![longs("s", &[2000, 1_000_000]), longs("t", &[1_000_000, 2000])];
    ends(&End::Unsupported, "operations", graph(&[2], nodes, weights));
}

#[test]
fn the_budget_of_the_context_binds_what_is_computed_while_lowering() {
    let weights = vec![long("a", 0), long("b", 1_000_000), long("c", 1)];
    let nodes = [node("n", "Range", &["a", "b", "c"], &["r"]), node("m", "Cast", &["r"], &["f"])];
    let cast = with(nodes[1].clone(), vec![int("to", 1)]);
    let model = file(graph(&[1], vec![nodes[0].clone(), cast, node("add", "Add", &["x", "f"], &["y"])], weights));
    let rules = HostPoolRules { budget_bytes: 1 << 20, ..Default::default() };
    for (context, fits) in [(Context::on_host(), true), (Context::builder().host_pool(rules).on_host(), false)] {
        let x = context.zeros(&[1], DType::F32).unwrap();
        let made = Model::from_bytes(model.clone()).unwrap().run(&[x]);
        assert_eq!(made.is_ok(), fits);
        assert!(made.err().is_none_or(|error| error.is_out_of_memory() && error.to_string().contains("`n`")));
    }
}

#[test]
fn lowering_of_hostile_settings_ends() {
    let point = || vec![floats("w", &[1, 1, 1, 1], &[1.0])];
    let block = || vec![floats("w", &[1, 1, 2, 2], &[1.0; 4])];
    let one_pixel = [1, 1, 1, 1];
    let most = i64::from(u32::MAX);
    let cases: Vec<(End, &str, GraphProto)> = vec![
        (
            End::Unsupported,
            "strides",
            graph(&one_pixel, vec![spatial("ConvTranspose", &["x", "w"], &[("strides", &[1_000_000; 2])])], point()),
        ),
        (End::Wrong, "pads", graph(&one_pixel, vec![spatial("Conv", &["x", "w"], &[("pads", &[most; 4])])], point())),
        (
            End::Wrong,
            "kernel_shape",
            graph(
                &[1, 1, 1, 1, 1],
                vec![spatial("MaxPool", &["x"], &[("kernel_shape", &[1 << 31; 3]), ("pads", &[1 << 31; 6])])],
                vec![],
            ),
        ),
        (
            End::Wrong,
            "dilations",
            graph(&one_pixel, vec![spatial("ConvTranspose", &["x", "w"], &[("dilations", &[most; 2])])], block()),
        ),
        (
            End::Wrong,
            "output",
            graph(&one_pixel, vec![spatial("ConvTranspose", &["x", "w"], &[("output_padding", &[most; 2])])], block()),
        ),
        (
            End::Wrong,
            "pads",
            graph(&one_pixel, vec![spatial("ConvTranspose", &["x", "w"], &[("pads", &[most; 4])])], block()),
        ),
        (
            End::Wrong,
            "groups",
            graph(
                &one_pixel,
                vec![with(one("Conv", &["x", "w"]), vec![int("group", 1 << 62)])],
                vec![floats("w", &[0, 4, 1, 1], &[])],
            ),
        ),
        (End::Wrong, "pads", graph(&[2, 2], vec![one("Pad", &["x", "p"])], vec![longs("p", &[i64::MAX, 0, 0, 0])])),
        (End::Wrong, "pads", graph(&[2], vec![one("Pad", &["x", "p"])], vec![longs("p", &[i64::MIN, 0])])),
        (End::Lowered, "", graph(&[1, 2, 1, 1], vec![with(one("LRN", &["x"]), vec![int("size", 1 << 62)])], vec![])),
        (
            End::Lowered,
            "",
            graph(
                &[400_000],
                vec![with(one("Resize", &["x", "", "", "s"]), vec![text("mode", "linear"), int("antialias", 1)])],
                vec![longs("s", &[1])],
            ),
        ),
        (
            End::Lowered,
            "",
            graph(
                &[3],
                vec![node("m", "Slice", &["x", "s", "e", "a", "t"], &["p"]), one("Slice", &["p", "s", "e", "a", "t"])],
                vec![longs("s", &[0]), longs("e", &[2]), longs("a", &[0]), longs("t", &[1 << 40])],
            ),
        ),
    ];
    for (end, words, graph) in cases {
        ends(&end, words, graph);
    }
}

#[test]
fn mistakes_of_the_file_are_errors_of_their_node() {
    let whole = |graph: &mut GraphProto| graph.input[0] = typed("x", I32, Some(&[4]));
    let mut root = graph(&[4], vec![one("Sqrt", &["x"])], vec![]);
    whole(&mut root);
    ends(&End::Wrong, "i32", root);
    let mut not = graph(&[4], vec![one("Not", &["x"])], vec![]);
    whole(&mut not);
    ends(&End::Wrong, "expected bool", not);
    ends(&End::Wrong, "values", graph(&[4], vec![one("Tile", &["x", "r"])], vec![longs("r", &[1 << 31])]));
    ends(
        &End::Wrong,
        "axes",
        graph(&[2], vec![one("Reshape", &["x", "r"])], vec![longs("r", &[1, 1, 1, 1, 1, 1, 1, 1, 2])]),
    );
    ends(&End::Wrong, "reach beyond", {
        let pad = with(one("Pad", &["x", "p"]), vec![text("mode", "reflect")]);
        graph(&[3], vec![pad], vec![longs("p", &[3, 0])])
    });
    ends(&End::Wrong, "out of range", graph(&[3], vec![one("Gather", &["x", "i"])], vec![longs("i", &[0, 7])]));
    let weights = vec![long("a", i64::MAX), long("b", 2)];
    ends(&End::Wrong, "64 bits", graph(&[3], vec![one("Mul", &["a", "b"])], weights));
    let weights = vec![long("a", 1 << 40), long("b", 2)];
    ends(&End::Wrong, "32 bits", graph(&[3], vec![one("Mul", &["a", "b"])], weights));
}

#[test]
fn settings_and_types_that_are_not_supported_are_in_one_error_with_unsupported_ops() {
    let cast = with(node("cast", "Cast", &["x"], &["a"]), vec![int("to", 8)]);
    let wide = with(node("wide", "Cast", &["x"], &["b"]), vec![int("to", i64::from(F64))]);
    let nodes = vec![
        cast,
        node("after", "Relu", &["a"], &["after"]),
        wide,
        node("product", "Gemm", &["whole", "whole"], &["c"]),
        node("wobble", "Wobble", &["x"], &["d"]),
        node("blocks", "DequantizeLinear", &["q", "scales"], &["e"]),
        node("fine", "Neg", &["x"], &["y"]),
    ];
    let whole = TensorProto { data_type: I32, ..floats("whole", &[2, 2], &[0.0; 4]) };
    let blocks = TensorProto { data_type: U8, raw_data: vec![0; 8].into(), ..floats("q", &[4, 2], &[]) };
    let mut of = graph(&[2], nodes, vec![whole, blocks, floats("scales", &[2, 2], &[1.0; 4])]);
    of.input.push(typed("large", F64, Some(&[2])));
    let (end, message, _) = lowered(of);
    assert_eq!(end, End::Unsupported, "{message}");
    assert!(message.starts_with("6 nodes have unsupported ops: "), "{message}");
    for words in [
        "input of type f64 (node `large`)",
        "Cast (to string) (node `cast`)",
        "Cast (to f64) (node `wide`)",
        "(node `product`)",
        "Wobble (node `wobble`)",
        "(node `blocks`)",
    ] {
        assert!(message.contains(words), "{words} is missing: {message}");
    }
}

// ---- rows whose number is computed

/// Non-maximum suppression of five boxes, and nodes after it.
fn suppression(nodes: &[NodeProto], weights: &[TensorProto]) -> GraphProto {
    let mut all = vec![node("boxes", "NonMaxSuppression", &["x", "scores", "most", "overlap"], &["rows"])];
    all.extend_from_slice(nodes);
    let mut of = graph(&[1, 5, 4], all, vec![longs("most", &[5]), floats("overlap", &[1], &[0.5])]);
    of.initializer.push(floats("scores", &[1, 1, 5], &[0.9, 0.8, 0.7, 0.6, 0.5]));
    of.initializer.extend_from_slice(weights);
    of
}

fn boxes(context: &Context) -> vramp_tensor::Tensor {
    let corners =
        [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.1, 5.0, 5.0, 6.0, 6.0, 9.0, 9.0, 10.0, 10.0, 20.0, 20.0, 21.0, 21.0];
    context.tensor::<f32>(&corners, &[1, 5, 4]).unwrap()
}

#[test]
fn the_number_of_suppressed_rows_stays_with_ops_that_keep_the_first_axis() {
    let slice = node("n", "Slice", &["rows", "s", "e", "a"], &["y"]);
    let weights = [longs("s", &[2]), longs("e", &[3]), longs("a", &[1])];
    let column = with(node("n", "Gather", &["rows", "i"], &["y"]), vec![int("axis", 1)]);
    let turned = with(node("n", "Transpose", &["rows"], &["y"]), vec![ints("perm", &[0, 1])]);
    let context = Context::on_host();
    for (nodes, weights, wanted) in [
        (vec![slice], weights.to_vec(), vec![0, 2, 3, 4]),
        (vec![column], vec![longs("i", &[2])], vec![0, 2, 3, 4]),
        (vec![turned], vec![], vec![0, 0, 0, 0, 0, 2, 0, 0, 3, 0, 0, 4]),
    ] {
        let model = Model::from_bytes(file(suppression(&nodes, &weights))).unwrap();
        let made = model.run(&[boxes(&context)]).unwrap();
        assert_eq!(made[0].shape().lengths()[0], 4, "{}", made[0].shape());
        assert_eq!(made[0].read::<i32>().unwrap(), wanted);
    }
}

#[test]
fn any_op_reads_suppressed_rows_on_both_sides() {
    let weights = [longs("i", &[0]), longs("r", &[-1]), longs("s", &[1]), longs("e", &[3]), longs("two", &[2])];
    let weights = [&weights[..], &[floats("table", &[5, 1], &[1.0, 2.0, 3.0, 4.0, 5.0])]].concat();
    let one = |op: &str, inputs: &[&str]| vec![one(op, inputs)];
    let index = with(node("m", "Gather", &["rows", "two"], &["c"]), vec![int("axis", 1)]);
    let turned = with(node("n", "Transpose", &["rows"], &["y"]), vec![ints("perm", &[1, 0])]);
    // The usual end of a detector: the boxes that are left.
    let boxes_left = [
        index.clone(),
        node("o", "Squeeze", &["c", "s"], &["d"]),
        with(node("p", "Gather", &["x", "d"], &["f"]), vec![int("axis", 1)]),
        with(node("n", "ReduceSum", &["f", "two"], &["y"]), vec![int("keepdims", 0)]),
    ];
    let cases: Vec<(Vec<NodeProto>, &[usize], Vec<f32>)> = vec![
        (one("Reshape", &["rows", "r"]), &[12], vec![0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 3.0, 0.0, 0.0, 4.0]),
        (vec![turned], &[3, 4], vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 3.0, 4.0]),
        (one("Slice", &["rows", "s", "e", "i"]), &[2, 3], vec![0.0, 0.0, 2.0, 0.0, 0.0, 3.0]),
        (one("Gather", &["rows", "i"]), &[1, 3], vec![0.0, 0.0, 0.0]),
        (
            one("Unsqueeze", &["rows", "i"]),
            &[1, 4, 3],
            vec![0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 3.0, 0.0, 0.0, 4.0],
        ),
        (one("Shape", &["rows"]), &[2], vec![4.0, 3.0]),
        (one("Add", &["rows", "rows"]), &[4, 3], vec![0.0, 0.0, 0.0, 0.0, 0.0, 4.0, 0.0, 0.0, 6.0, 0.0, 0.0, 8.0]),
        (vec![index, node("n", "Gather", &["table", "c"], &["y"])], &[4, 1, 1], vec![1.0, 3.0, 4.0, 5.0]),
        (boxes_left.to_vec(), &[1, 4], vec![2.0, 22.0, 38.0, 82.0]),
    ];
    let device = Context::on(&vramp_gpu::Device::choose().open().unwrap()).unwrap();
    for context in [Context::on_host(), device] {
        for (nodes, lengths, wanted) in &cases {
            let model = Model::from_bytes(file(suppression(nodes, &weights))).unwrap();
            for _ in 0..2 {
                let made = model.run(&[boxes(&context)]).unwrap();
                assert_eq!(made[0].shape().lengths(), *lengths, "{nodes:?}");
                assert_eq!(made[0].cast(DType::F32).unwrap().read::<f32>().unwrap(), *wanted, "{nodes:?}");
            }
        }
    }
}

#[test]
fn the_number_of_suppressed_rows_may_change_from_run_to_run_and_be_0() {
    let column = with(node("m", "Gather", &["rows", "two"], &["c"]), vec![int("axis", 1)]);
    let mut of = suppression(
        &[column, node("n", "Gather", &["table", "c"], &["y"])],
        &[longs("two", &[2]), floats("table", &[5], &[1.0, 2.0, 3.0, 4.0, 5.0]), floats("least", &[1], &[0.65])],
    );
    // Scores are an input, so that their number above the threshold changes.
    of.initializer.retain(|weight| weight.name != "scores");
    of.input.push(typed("scores", F32, Some(&[1, 1, 5])));
    of.node[0].input.push("least".into());
    let model = Model::from_bytes(file(of)).unwrap();
    let context = Context::on_host();
    for (scores, wanted) in [
        ([0.9, 0.8, 0.7, 0.6, 0.5], vec![1.0, 3.0]),
        ([0.0; 5], vec![]),
        ([0.7, 0.8, 0.7, 0.9, 0.95], vec![5.0, 4.0, 2.0, 3.0]),
        ([0.9, 0.8, 0.7, 0.6, 0.5], vec![1.0, 3.0]),
    ] {
        let scores = context.tensor::<f32>(&scores, &[1, 1, 5]).unwrap();
        let made = model.run(&[boxes(&context), scores]).unwrap();
        assert_eq!(made[0].read::<f32>().unwrap(), wanted);
    }
}

#[test]
fn suppressed_rows_are_refused_in_a_pipeline() {
    let model = Model::from_bytes(file(suppression(&[one("Identity", &["rows"])], &[]))).unwrap();
    let before = |net: &mut vramp_tensor::network::NetworkBuilder| {
        Ok(vec![net.input(vramp_tensor::network::WordKind::F32, &[1, 5, 4])?])
    };
    let made = model.embedded(&Context::on_host(), before, |_, outputs| Ok(vec![outputs[0].value]));
    let text = made.err().expect("rows cannot be taken").to_string();
    assert!(text.contains("whose number of rows") && text.contains("(node `y`)"), "{text}");
}

#[test]
fn a_constant_of_doubles_may_be_cast_and_nothing_else() {
    let double = |values: &[f64]| {
        let raw_data = values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into();
        TensorProto { name: "d".into(), dims: vec![2], data_type: F64, raw_data, ..Default::default() }
    };
    let cast = with(node("cast", "Cast", &["d"], &["f"]), vec![int("to", i64::from(F32))]);
    let of = graph(&[2], vec![cast, one("Add", &["x", "f"])], vec![double(&[0.5, -2.0])]);
    let context = Context::on_host();
    let x = context.tensor(&[1.0_f32, 1.0], &[2]).unwrap();
    let made = Model::from_bytes(file(of)).unwrap().run(&[x]).unwrap();
    assert_eq!(made[0].read::<f32>().unwrap(), [1.5, -1.0]);
    ends(&End::Unsupported, "of type f64", graph(&[2], vec![one("Neg", &["d"])], vec![double(&[0.5, -2.0])]));
}
