//! Hostile and damaged files: typed errors that name the place, no panic, and memory within twice the size of the file
//! and 64 MB.

use bytes::Bytes;
use prost::Message as _;
use vramp_model::onnx::proto::{AttributeProto, GraphProto, ModelProto, TensorProto, Undecoded};
use vramp_model::onnx::{OnnxError, OnnxFile, OnnxGraph, Weight};

use crate::heap;
use crate::made::{
    F32, I64, around, attribute, chain, declared, field, fixed, model, node, packed, read_bytes, refusal, value,
    varint, weight,
};

// ---- graphs that contradict themselves

#[test]
fn a_cycle_names_a_node_in_it() {
    let mut graph = chain();
    graph.node = vec![
        node("outside", "Relu", &["loop"], &["y"]),
        node("a", "Add", &["x", "b2"], &["loop"]),
        node("", "Mul", &["loop", "w"], &["b2"]),
    ];
    let text = refusal(graph);
    assert!(text.ends_with("node `Mul #2`: it depends on its own output, through `loop` of node `a` (Add)"), "{text}");
    let mut graph = chain();
    graph.node.push(node("self", "Add", &["z", "b"], &["z"]));
    assert!(refusal(graph).contains("node `self` (Add): it depends on its own output"));
}

#[test]
fn inputs_and_outputs_without_a_producer_are_refused() {
    let mut graph = chain();
    graph.node[1].input[1] = "bias".into();
    assert!(refusal(graph).ends_with("node `second` (Add): nothing produces its input `bias`"));
    let mut graph = chain();
    graph.output[0].name = "z".into();
    assert!(refusal(graph).ends_with("output `z`: nothing produces it"));
    let mut graph = chain();
    graph.output.clear();
    assert!(refusal(graph).ends_with("graph: it has no outputs"));
}

#[test]
fn two_producers_of_one_value_are_refused() {
    let with = |change: &dyn Fn(&mut GraphProto)| {
        let mut graph = chain();
        change(&mut graph);
        refusal(graph)
    };
    let text = with(&|graph| graph.node[1].output[0] = "hidden".into());
    assert!(text.contains("node `second` (Add): it produces `hidden`, which node `first` (MatMul) produces as well"));
    let text = with(&|graph| graph.node[1].output[0] = "x".into());
    assert!(text.contains("node `second` (Add): it produces `x`, which input `x` produces as well"), "{text}");
    let text = with(&|graph| graph.node[1].output[0] = "w".into());
    assert!(text.contains("node `second` (Add): it produces `w`, which weight `w` produces as well"), "{text}");
    let text = with(&|graph| graph.input.push(graph.input[0].clone()));
    assert!(text.contains("input `x`: it produces `x`, which input `x` produces as well"), "{text}");
    let text = with(&|graph| graph.initializer.push(graph.initializer[0].clone()));
    assert!(text.contains("weight `w`: it produces `w`, which weight `w` produces as well"), "{text}");
    let text = with(&|graph| graph.output.push(graph.output[0].clone()));
    assert!(text.ends_with("output `y`: it is listed twice"), "{text}");
}

#[test]
fn wrong_constants_name_their_node() {
    let with = |attribute: Option<AttributeProto>| {
        let mut graph = chain();
        graph.node.push(node("c", "Constant", &[], &["z"]));
        graph.node[2].attribute.extend(attribute);
        refusal(graph)
    };
    assert!(with(None).ends_with("node `c` (Constant): it has no value"));
    let text = with(Some(AttributeProto { s: Some("1".into()), ..attribute("value") }));
    assert!(text.ends_with("node `c` (Constant): its attribute `value` has the wrong type"), "{text}");
    let wrong = TensorProto { dims: vec![3], data_type: F32, ..Default::default() };
    let text = with(Some(AttributeProto { t: Some(Box::new(wrong)), ..attribute("value") }));
    assert!(text.contains("node `c` (Constant), attribute `value`: f32 of [3] needs 12 bytes"), "{text}");
}

#[test]
fn wrong_lengths_of_axes_are_refused() {
    for length in [-2, i64::MIN, 1 << 31, i64::MAX] {
        let mut graph = chain();
        graph.input[0] = value("x", vec![fixed(1), fixed(length)]);
        let text = refusal(graph);
        assert!(text.contains(&format!("input `x`: axis 1 has a length of {length}")), "{text}");
    }
    let with = |dims: &[i64]| {
        let mut graph = chain();
        graph.initializer[0].dims = dims.to_vec();
        refusal(graph)
    };
    assert!(with(&[4, -8]).ends_with("weight `w`: the length of axis 1 is -8"));
    assert!(with(&[1 << 40, 1 << 40]).contains("weight `w`: [1099511627776, 1099511627776] has too many values"));
    assert!(with(&[1 << 61]).contains("weight `w`: [2305843009213693952] has too many values"));
    assert!(with(&[4, 9]).ends_with("weight `w`: f32 of [4, 9] needs 144 bytes, but its data have 128"));
    let mut graph = chain();
    let longs = TensorProto { int64_data: packed(&[1, 2]), dims: vec![1 << 50], data_type: I64, ..weight("w", &[0]) };
    graph.initializer[0] = longs;
    assert!(refusal(graph).ends_with("weight `w`: its shape has 1125899906842624 values, but its data have 2"));
}

#[test]
fn what_is_not_supported_is_named() {
    let mut graph = chain();
    graph.sparse_initializer.push(Undecoded {});
    assert!(refusal(graph).starts_with("graph: a sparse weight is not supported"));
    let mut graph = chain();
    graph.input[0].r#type = None;
    assert!(refusal(graph).starts_with("input `x`: an input that is not a tensor is not supported"));
    let mut old = model(chain());
    old.opset_import[0].version = 99;
    assert!(matches!(read_bytes(old.encode_to_vec()), Err(OnnxError::Opset { has: 99, oldest: 1, newest: 28 })));
}

// ---- bytes that contradict themselves

#[test]
fn graphs_nested_20_000_deep_are_refused() {
    let mut nested = Vec::new();
    for _ in 0..20_000 {
        // A node with an attribute with a graph.
        let inner = [field(3, b"deep"), field(4, b"If"), field(5, &field(6, &nested))].concat();
        nested = field(1, &inner);
    }
    let file = around(&nested);
    let most = 2 * file.len() + (64 << 20);
    let (result, peak) = heap::peak(|| read_bytes(file));
    let text = result.unwrap_err().to_string();
    assert!(text.contains("node `deep` (If), ") && text.contains("nested more than 32 deep"), "{text}");
    assert!(peak < most && text.len() < 1000);
}

#[test]
fn lengths_beyond_the_end_are_refused_at_every_level() {
    for length in [1 << 46, u64::MAX, 1 << 31, 1000] {
        let in_graph = |fields: &[u8]| [declared(7, length), fields.to_vec()].concat();
        let node = |fields: &[u8]| [declared(1, length), field(3, b"n"), field(4, b"Conv"), fields.to_vec()].concat();
        let tensor = [declared(5, length), field(8, b"w"), declared(9, length)].concat();
        let cases = [
            (in_graph(&[]), "graph: field 7"),
            (in_graph(&node(&[])), "node `n` (Conv)"),
            (in_graph(&node(&declared(1, length))), "node `n` (Conv): field 1"),
            (in_graph(&node(&[declared(5, length), field(1, b"a"), declared(8, length)].concat())), "attribute `a`"),
            (in_graph(&tensor), "weight `w`: field 9"),
            (in_graph(&[declared(11, length), field(1, b"x")].concat()), "input `x`"),
        ];
        for (bytes, wants) in cases {
            let text = read_bytes(bytes).unwrap_err().to_string();
            assert!(text.contains(wants) && text.contains(&format!("a length of {length} bytes")), "{text}");
        }
    }
}

#[test]
fn a_file_truncated_at_every_percent_is_refused() {
    let whole = model(chain()).encode_to_vec();
    assert!(read_bytes(whole.clone()).is_ok());
    for percent in 0..100 {
        let end = whole.len() * percent / 100;
        let error = read_bytes(whole[..end].to_vec()).expect_err("a part of a file is not a model");
        assert!(matches!(error, OnnxError::Malformed { .. }), "{percent} %: {error}");
    }
}

#[test]
fn the_place_of_a_truncation_is_named() {
    let whole = model(chain()).encode_to_vec();
    let at = |text: &[u8]| whole.windows(text.len()).position(|bytes| bytes == text).unwrap();
    let text = |end: usize| read_bytes(whole[..end].to_vec()).unwrap_err().to_string();
    assert!(text(at(b"second") + 7).contains("node `second` "), "{}", text(at(b"second") + 7));
    assert!(text(at(b"\x3e\x3e") + 3).contains("weight `w`: field 9"), "{}", text(at(b"\x3e\x3e") + 3));
}

#[test]
fn a_single_changed_byte_gives_a_model_or_a_typed_error() {
    let whole = model(chain()).encode_to_vec();
    for at in 0..whole.len() {
        for change in [0x01, 0x80, 0xff, 0x08] {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            if let Err(error) = read_bytes(bytes) {
                assert!(error.to_string().len() < 2000);
            }
        }
    }
}

#[test]
fn foreign_bytes_are_refused() {
    let cases: [(&[u8], &str); 7] = [
        (b"", "the model: it has no graph"),
        (b"hello, this is not a model", "wire type"),
        (&[0x00], "0 is not the key of a field"),
        (&[0xff; 12], "a number has more than 64 bits"),
        (&[0x4b], "3 is not a wire type"),
        (&[0x38, 0x01], "field 7 has the wire type 0"),
        (&[0x08, 0xff], "a number is truncated after 1 bytes"),
    ];
    for (bytes, wants) in cases {
        let text = read_bytes(bytes.to_vec()).unwrap_err().to_string();
        assert!(text.contains(wants), "{text}");
    }
    let text = read_bytes(around(&field(1, &[field(4, b"Relu"), field(1, b"\xff")].concat()))).unwrap_err();
    assert!(text.to_string().ends_with("node `Relu #0`: field 1 is not UTF-8"), "{text}");
    let unpacked = [varint(4 << 3 | 5), vec![0; 4]].concat();
    let text = Weight::decode(unpacked.into()).unwrap_err().to_string();
    assert!(text.contains("field 4 are not packed"), "{text}");
}

// ---- memory

/// Whether a file was refused for its memory, and the most memory that the refusal or the reading took beside the file.
fn attempt(file: Vec<u8>) -> (Result<OnnxGraph, OnnxError>, usize) {
    let bytes = Bytes::from(file);
    heap::peak(move || OnnxFile::read(bytes, None)?.graph())
}

/// A name of its own for each number.
fn short_name(number: usize) -> [u8; 4] {
    let digit = |place: u32| b'0' + (number >> (6 * place) & 0x3f) as u8;
    [0, 1, 2, 3].map(digit)
}

type MakeFile = fn(usize) -> Vec<u8>;

/// Files of many small parts, by the number of parts. They are what decoding inflates most.
const SMALL_PARTS: &[(&str, MakeFile)] = &[
    ("empty nodes", |count| around(&[0x0a, 0].repeat(count))),
    ("nodes in reverse order", |count| {
        let node = |at: usize| {
            let fields = [field(1, &short_name(at + 1)), field(2, &short_name(at)), field(4, b"X")].concat();
            field(1, &fields)
        };
        let input = field(11, &value(std::str::from_utf8(&short_name(count)).expect("ascii"), vec![]).encode_to_vec());
        let output = field(12, &field(1, &short_name(0)));
        around(&[(0..count).flat_map(node).collect(), input, output].concat())
    }),
    ("nodes with an empty attribute", |count| around(&field(1, &[0x2a, 0]).repeat(count))),
    ("nodes with a named attribute", |count| {
        around(&field(1, &[field(4, b"X"), field(5, &field(1, b"a"))].concat()).repeat(count))
    }),
    ("empty attributes of a node", |count| around(&field(1, &[0x2a, 0].repeat(count)))),
    ("attributes of a node", |count| {
        let attributes = (0..count).flat_map(|at| field(5, &field(1, &short_name(at))));
        around(&field(1, &[field(4, b"X"), attributes.collect()].concat()))
    }),
    ("empty tensors in attributes", |count| {
        let attributes = (0..count).flat_map(|at| field(5, &[field(1, &short_name(at)), vec![0x2a, 0]].concat()));
        around(&field(1, &[field(4, b"X"), attributes.collect()].concat()))
    }),
    ("absent inputs of a node", |count| around(&field(1, &[field(4, b"X"), [0x0a, 0].repeat(count)].concat()))),
    ("inputs of a node", |count| {
        let inputs = (0..count).flat_map(|at| field(1, &short_name(at)));
        around(&field(1, &[field(4, b"X"), inputs.collect()].concat()))
    }),
    ("outputs of a node", |count| {
        let outputs = (0..count).flat_map(|at| field(2, &short_name(at)));
        let output = field(12, &field(1, &short_name(0)));
        around(&[field(1, &[field(4, b"X"), outputs.collect()].concat()), output].concat())
    }),
    ("weights", |count| {
        let weight = |at: usize| field(5, &[field(8, &short_name(at)), vec![0x08, 0]].concat());
        around(&(0..count).flat_map(weight).collect::<Vec<u8>>())
    }),
    ("inputs", |count| {
        let tensor = field(2, &field(1, &[]));
        let input = |at: usize| field(11, &[field(1, &short_name(at)), tensor.clone()].concat());
        around(&(0..count).flat_map(input).collect::<Vec<u8>>())
    }),
    ("axes of an input", |count| {
        let mut graph = chain();
        graph.input[0] = value("x", vec![]);
        let shape = field(2, &[0x0a, 0].repeat(count));
        let input = [field(1, b"axes"), field(2, &field(1, &shape))].concat();
        around(&[graph.encode_to_vec(), field(11, &input)].concat())
    }),
    ("axes of a weight", |count| around(&field(5, &[field(8, b"w"), field(1, &vec![0; count])].concat()))),
    ("axes of a weight, one by one", |count| around(&field(5, &[field(8, b"w"), [0x08, 0].repeat(count)].concat()))),
    ("integers of an attribute", |count| {
        let ints = field(5, &[field(1, b"a"), field(8, &vec![0; count])].concat());
        around(&field(1, &[field(4, b"X"), ints].concat()))
    }),
    ("integers of a constant", |count| {
        let ints = field(5, &[field(1, b"value_ints"), field(8, &vec![0; count])].concat());
        around(&field(1, &[field(4, b"Constant"), field(2, b"c"), ints].concat()))
    }),
    ("floats of a constant", |count| {
        let floats = field(5, &[field(1, b"value_floats"), field(7, &vec![0; 4 * count])].concat());
        around(&field(1, &[field(4, b"Constant"), field(2, b"c"), floats].concat()))
    }),
    ("integers of a weight", |count| {
        let tensor = TensorProto { dims: vec![count.cast_signed() as i64], data_type: I64, ..weight("w", &[0]) };
        around(&field(5, &[tensor.encode_to_vec(), field(7, &vec![0; count])].concat()))
    }),
    ("parts of a weight", |count| around(&field(5, &[field(8, b"w"), [0x22, 0].repeat(count)].concat()))),
    ("entries of external data", |count| around(&field(5, &[field(8, b"w"), [0x6a, 0].repeat(count)].concat()))),
    ("opsets", |count| [around(&[]), [0x42, 0].repeat(count)].concat()),
    ("graphs", |count| [0x3a, 0].repeat(count)),
    ("nested graphs", |count| {
        around(&field(1, &[field(4, b"If"), field(5, &[field(1, b"a"), [0x5a, 0].repeat(count)].concat())].concat()))
    }),
    ("a long name", |count| around(&field(1, &[field(4, b"X"), field(3, &vec![b'n'; count])].concat()))),
    ("long names", |count| {
        let node = |at: usize| {
            let name = [&short_name(at)[..], &[b'n'; 60]].concat();
            field(1, &[field(4, b"X"), field(2, &name)].concat())
        };
        around(&(0..count / 16).flat_map(node).collect::<Vec<u8>>())
    }),
];

#[test]
fn many_small_parts_stay_within_twice_the_file_and_64_mb() {
    // Steps towards the largest number that is not refused for its memory, which takes the most.
    let (most, steps) = if std::env::var_os("VRAMP_LONG").is_some() { (1 << 22, 6) } else { (1 << 20, 1) };
    for (what, file) in SMALL_PARTS {
        let taken = |count: usize| {
            let bytes = file(count);
            // The file itself is the other part of the bound.
            let most = bytes.len() + (64 << 20);
            let (result, peak) = attempt(bytes);
            assert!(peak <= most, "{what}: {count} take {peak} bytes, more than {most}");
            !matches!(result, Err(OnnxError::TooManyParts { .. }))
        };
        let (mut accepted, mut refused) = (most, most);
        while !taken(accepted) {
            (accepted, refused) = (accepted / 2, accepted);
        }
        for _ in 0..steps {
            let middle = usize::midpoint(accepted, refused);
            if middle == accepted {
                break;
            }
            *(if taken(middle) { &mut accepted } else { &mut refused }) = middle;
        }
    }
}

#[test]
fn refusals_of_many_small_parts_name_their_place() {
    let text = |what: &str| {
        let (_, file) = SMALL_PARTS.iter().find(|(name, _)| *name == what).expect("a listed file");
        attempt(file(1 << 21)).0.unwrap_err().to_string()
    };
    assert!(text("empty attributes of a node").starts_with("node ` #0`, attribute ``: decoding needs more than "));
    assert!(text("integers of a constant").contains("node `Constant #0`, attribute `value_ints`"));
    assert!(text("entries of external data").starts_with("weight `w`: decoding needs more than "));
}

#[test]
fn real_files_are_far_from_the_bound() {
    // As many nodes and attributes as the largest models have.
    let mut graph = chain();
    for at in 0..8_000 {
        let mut next =
            node(&format!("/model/block.{at}/Conv"), "Conv", &["x", "w", "b"], &[&format!("/block.{at}/out")]);
        next.attribute = ["dilations", "group", "kernel_shape", "pads", "strides"]
            .map(|name| AttributeProto { ints: vec![1, 1, 1, 1], kind: 7, ..attribute(name) })
            .into();
        graph.node.push(next);
    }
    let bytes = model(graph).encode_to_vec();
    let (result, peak) = attempt(bytes);
    assert_eq!(result.unwrap().nodes.len(), 8_002);
    assert!(peak < 40 << 20, "{peak}");
}

#[test]
fn a_file_on_disk_is_in_memory_once() {
    let path = std::env::temp_dir().join(format!("vramp-model-hostile-{}.onnx", std::process::id()));
    let mut graph = chain();
    graph.initializer[0] = weight("w", &[4, 2_000_000]);
    let bytes = model(graph).encode_to_vec();
    std::fs::write(&path, &bytes).unwrap();
    let (result, peak) = heap::peak(|| OnnxFile::open(&path)?.graph());
    std::fs::remove_file(&path).unwrap();
    assert_eq!(result.unwrap().weights[0].dims, [4, 2_000_000]);
    assert!(peak < bytes.len() + 100_000, "{peak}");
}

#[test]
fn a_model_without_parts_is_refused() {
    assert!(read_bytes(ModelProto::default().encode_to_vec()).is_err());
    assert!(refusal(GraphProto::default()).contains("no outputs"));
}
