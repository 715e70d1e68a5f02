//! Users' shaders on tensors: created on a context, run by name, with results that stay on the device.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use crate::guide::{COSINE, DOT};
use crate::sides::{device, on_device};
use vramp_tensor::{CompiledShader, Context, DType, ParamValue, ShaderError, Tensor, TensorError};

const F32: DType = DType::F32;

/// Each value plus one, and the number of values it sees.
const NEXT: &str = "
@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> next: array<f32>;
@group(0) @binding(2) var<storage, read_write> seen: array<u32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x == 0u { seen[0] = arrayLength(&source); }
    if id.x < arrayLength(&source) { next[id.x] = source[id.x] + 1.0; }
}
";

fn dot(context: &Context) -> CompiledShader {
    context.shader("dot", DOT, &[("a", F32), ("b", F32)], &[("result", F32)]).unwrap()
}

fn next(context: &Context) -> CompiledShader {
    context.shader("next", NEXT, &[("source", F32)], &[("next", F32), ("seen", DType::U32)]).unwrap()
}

fn only(made: Vec<(String, Tensor)>) -> Tensor {
    let [(_, tensor)] = <[_; 1]>::try_from(made).unwrap();
    tensor
}

#[test]
fn the_dot_product_and_the_cosine_of_a_guide_take_their_inputs_in_any_order() {
    let context = on_device();
    let a = context.tensor(&[1.0_f32, 2.0, 3.0], &[3]).unwrap();
    let b = context.tensor(&[4.0_f32, 5.0, 6.0], &[3]).unwrap();
    let made = dot(&context).run(&[("b", &b), ("a", &a)], &[("result", &[1])], &[], None).unwrap();
    assert_eq!(made[0].0, "result");
    assert_eq!(only(made).read::<f32>().unwrap(), [32.0]);
    let cosine = context.shader("cosine", COSINE, &[("a", F32), ("b", F32)], &[("result", F32)]).unwrap();
    let made = cosine.run(&[("a", &a), ("b", &b)], &[("result", &[])], &[], None).unwrap();
    // Square roots may differ by a few units in the last place.
    assert!((only(made).read_scalar::<f32>().unwrap() - 0.974_631_8).abs() < 1e-5);
}

#[test]
fn several_outputs_come_in_the_declared_order_and_parameters_by_name() {
    let text = "
struct Params { scale: f32, offset: vec2<f32>, steps: i32 }
@group(0) @binding(0) var<storage, read> zebra: array<f32>;
@group(0) @binding(1) var<storage, read_write> second: array<f32>;
@group(0) @binding(2) var<storage, read_write> first: array<i32>;
@group(0) @binding(3) var<uniform> params: Params;
@compute @workgroup_size(8)
fn both(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= arrayLength(&zebra) { return; }
    second[id.x] = zebra[id.x] * params.scale + params.offset.y;
    first[id.x] = i32(id.x) * params.steps;
}";
    let context = on_device();
    let shader = context.shader("both", text, &[("zebra", F32)], &[("second", F32), ("first", DType::I32)]).unwrap();
    let zebra = context.tensor(&[0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0], &[10]).unwrap();
    let params = [("steps", ParamValue::from(-3_i32)), ("offset", [9.0, 0.5].into()), ("scale", 2.0.into())];
    let outputs: [(&str, &[usize]); 2] = [("first", &[2, 5]), ("second", &[12])];
    let made = shader.run(&[("zebra", &zebra)], &outputs, &params, None).unwrap();
    let names: Vec<&str> = made.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["second", "first"]);
    assert_eq!(made[1].1.shape().lengths(), [2, 5]);
    assert!(made.iter().all(|(_, tensor)| tensor.location().device && !tensor.location().host));
    assert_eq!(made[1].1.read::<i32>().unwrap(), (0..10).map(|at| at * -3).collect::<Vec<_>>());
    let second: Vec<f32> = made[0].1.read().unwrap();
    let wants: Vec<f32> = (0..10).map(|at| at as f32 * 2.0 + 0.5).chain([0.0, 0.0]).collect();
    assert_eq!(second, wants, "what the text does not write is 0");
}

#[test]
fn results_feed_ops_and_other_shaders_without_a_read() {
    let context = on_device();
    let (next, dot) = (next(&context), dot(&context));
    let source = context.tensor(&[1.0_f32, 2.0, 3.0, 4.0], &[4]).unwrap().square().unwrap();
    let made = next.run(&[("source", &source)], &[("next", &[4]), ("seen", &[1])], &[], None).unwrap();
    let twice = made[0].1.mul(2.0).unwrap();
    let answer = only(dot.run(&[("a", &twice), ("b", &source)], &[("result", &[1])], &[], None).unwrap());
    assert_eq!(context.transfers().host_reads, 0);
    let wants: f32 = [1.0_f32, 4.0, 9.0, 16.0].iter().map(|value| (value + 1.0) * 2.0 * value).sum();
    assert_eq!(answer.read::<f32>().unwrap(), [wants]);
    assert_eq!((context.transfers().host_reads, context.transfers().copies), (1, 0));
}

#[test]
fn a_second_run_compiles_nothing_and_makes_no_memory() {
    let context = on_device();
    let device = context.device().unwrap();
    let next = next(&context);
    let source = context.tensor(&[1.0_f32; 1000], &[1000]).unwrap();
    let run = || {
        let made = next.run(&[("source", &source)], &[("next", &[1000]), ("seen", &[1])], &[], None).unwrap();
        context.finish().unwrap();
        drop(made);
    };
    run();
    let before = device.counters();
    for _ in 0..3 {
        run();
    }
    let spent = device.counters().since(&before);
    assert_eq!((spent.compiles, spent.gpu_allocs, spent.bind_groups), (0, 0, 0), "{spent:?}");
    assert_eq!(spent.dispatches, 3);
}

#[test]
fn views_are_seen_exactly_and_copied_only_if_they_cannot_be_bound() {
    let context = on_device();
    let next = next(&context);
    let all: Vec<f32> = (0..200).map(|at| at as f32).collect();
    let all = context.tensor(&all, &[200]).unwrap();
    let step = context.device().unwrap().limits().storage_alignment as usize / 4;
    for (start, count, copies) in [(step, 7, 0), (0, 200, 0), (1, 5, 1), (step + 3, 64, 1)] {
        let before = context.transfers();
        let view = all.view(start, count).unwrap();
        let made = next.run(&[("source", &view)], &[("next", &[count]), ("seen", &[1])], &[], None).unwrap();
        let values: Vec<f32> = made[0].1.read().unwrap();
        assert_eq!(values, (start..start + count).map(|at| at as f32 + 1.0).collect::<Vec<_>>());
        assert_eq!(made[1].1.read::<u32>().unwrap(), [count as u32], "it sees its own values only");
        assert_eq!(context.transfers().copies - before.copies, copies, "from {start}");
    }
}

#[test]
fn bytes_that_end_within_a_word_are_followed_by_zeros() {
    let text = "
@group(0) @binding(0) var<storage, read> bytes: array<u32>;
@group(0) @binding(1) var<storage, read_write> words: array<u32>;
@compute @workgroup_size(1)
fn main() {
    words[0] = arrayLength(&bytes);
    for (var at = 0u; at < arrayLength(&bytes); at++) { words[at + 1u] = bytes[at]; }
}";
    let context = on_device();
    let shader = context.shader("words", text, &[("bytes", DType::U8)], &[("words", DType::U32)]).unwrap();
    let bytes = context.tensor(&[1_u8, 2, 3, 4, 5, 6, 7, 8, 9, 10], &[10]).unwrap();
    for (start, count, wants) in
        [(0, 8, [2, 0x0403_0201, 0x0807_0605]), (1, 5, [2, 0x0504_0302, 6]), (4, 5, [2, 0x0807_0605, 9])]
    {
        let view = bytes.view(start, count).unwrap();
        let made = shader.run(&[("bytes", &view)], &[("words", &[3])], &[], Some([1, 1, 1])).unwrap();
        assert_eq!(only(made).read::<u32>().unwrap(), wants, "{count} from {start}");
    }
}

#[test]
fn an_output_may_be_memory_of_an_input_which_is_then_copied() {
    let text = "
@group(0) @binding(0) var<storage, read> source: array<f32>;
@group(0) @binding(1) var<storage, read_write> turned: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x < arrayLength(&turned) { turned[id.x] = source[arrayLength(&source) - 1u - id.x]; }
}";
    let context = on_device();
    let shader = context.shader("turned", text, &[("source", F32)], &[("turned", F32)]).unwrap();
    let values = context.tensor(&[1.0_f32, 2.0, 3.0, 4.0, 5.0], &[5]).unwrap();
    shader.run_into(&[("source", &values)], &[("turned", &values)], &[], None).unwrap();
    assert_eq!(context.transfers().copies, 1);
    assert_eq!(values.read::<f32>().unwrap(), [5.0, 4.0, 3.0, 2.0, 1.0]);
    // A view of the middle, at an offset that cannot be bound. The other values stay unchanged.
    let middle = values.view(1, 3).unwrap();
    shader.run_into(&[("source", &values)], &[("turned", &middle)], &[], None).unwrap();
    assert_eq!(context.transfers().copies, 3, "into memory of its own and back");
    assert_eq!(values.read::<f32>().unwrap(), [5.0, 1.0, 2.0, 3.0, 1.0]);
}

#[test]
fn two_outputs_may_be_in_one_memory() {
    let text = "
@group(0) @binding(0) var<storage, read_write> low: array<u32>;
@group(0) @binding(1) var<storage, read_write> high: array<u32>;
@compute @workgroup_size(1)
fn main() { low[0] = 0x04030201u; high[0] = 0x08070605u; }";
    let context = on_device();
    let shader = context.shader("pair", text, &[], &[("low", DType::U8), ("high", DType::U8)]).unwrap();
    let bytes = context.tensor(&[99_u8; 10], &[10]).unwrap();
    let (low, high) = (bytes.view(0, 4).unwrap(), bytes.view(5, 3).unwrap());
    shader.run_into(&[], &[("low", &low), ("high", &high)], &[], None).unwrap();
    assert_eq!(bytes.read::<u8>().unwrap(), [1, 2, 3, 4, 99, 5, 6, 7, 99, 99]);
}

#[test]
fn errors_in_a_text_are_reported_when_the_shader_is_made() {
    let context = on_device();
    let wrong =
        context.shader("dot", &DOT.replace("sum + a", "sun + a"), &[("a", F32), ("b", F32)], &[("result", F32)]);
    let wrong = wrong.unwrap_err();
    assert!(matches!(&wrong, ShaderError::Text { at, .. } if at.line == 9), "{wrong:?}");
    let wrong = context.shader("dot", DOT, &[("a", F32), ("b", DType::I32)], &[("result", F32)]).unwrap_err();
    assert!(wrong.to_string().contains("`b` is declared as i32, which needs an array of i32"), "{wrong}");
    let wide = NEXT.replace("workgroup_size(64)", "workgroup_size(1024, 64)");
    let wrong = context.shader("next", &wide, &[("source", F32)], &[("next", F32), ("seen", DType::U32)]).unwrap_err();
    assert!(wrong.to_string().contains("1024 x 64 x 1 is 65536 invocations; this device allows at most"), "{wrong}");
}

#[test]
fn what_is_wrong_with_a_run_names_what_is_expected_and_takes_nothing() {
    let context = on_device();
    let dot = dot(&context);
    let a = context.tensor(&[1.0_f32, 2.0], &[2]).unwrap();
    let whole = context.tensor(&[1_i32, 2], &[2]).unwrap();
    let elsewhere = on_device().tensor(&[1.0_f32], &[1]).unwrap();
    let gone = context.tensor(&[1.0_f32], &[1]).unwrap();
    gone.dispose();
    let before = context.memory();
    let result: [(&str, &[usize]); 1] = [("result", &[1])];
    let said = |inputs: &[(&str, &Tensor)], outputs: &[(&str, &[usize])], params: &[(&str, ParamValue)], grid| {
        dot.run(inputs, outputs, params, grid).unwrap_err().to_string()
    };
    let table = [
        (said(&[("a", &a)], &result, &[], None), "shader dot: the input `b` is missing; it is declared as f32"),
        (said(&[("a", &a), ("c", &a)], &result, &[], None), "shader dot: unknown input `c`; declared: a, b"),
        (said(&[("a", &a), ("a", &a)], &result, &[], None), "shader dot: the input `a` is given twice; give it once"),
        (
            said(&[("a", &a), ("b", &whole)], &result, &[], None),
            "shader dot: `b` is declared as f32, got i32; `cast` the tensor first",
        ),
        (
            said(&[("a", &a), ("b", &a)], &[], &[], None),
            "shader dot: the output `result` is missing; it is declared as f32",
        ),
        (
            said(&[("a", &a), ("b", &a)], &[("result", &[0])], &[], None),
            "shader dot: `result` got 0 values; a tensor without values cannot be bound; give it at least one",
        ),
        (
            said(&[("a", &a), ("b", &a)], &result, &[("scale", 1.0.into())], None),
            "shader dot: unknown parameter `scale`; the text has no parameters",
        ),
        (
            said(&[("a", &a), ("b", &elsewhere)], &result, &[], None),
            "shader: the tensors belong to different contexts; read one and create it again in the other context",
        ),
    ];
    for (said, wants) in table {
        assert_eq!(said, wants);
    }
    assert!(said(&[("a", &a), ("b", &a)], &result, &[], Some([0, 1, 1])).contains("0 x 1 x 1 workgroups"));
    let disposed = dot.run(&[("a", &a), ("b", &gone)], &result, &[], None).unwrap_err();
    assert!(matches!(disposed, ShaderError::Tensor(TensorError::Disposed { .. })), "{disposed:?}");
    assert_eq!(context.memory(), before);
    assert_eq!(only(dot.run(&[("a", &a), ("b", &a)], &result, &[], None).unwrap()).read::<f32>().unwrap(), [5.0]);
}

#[test]
fn without_a_device_there_are_no_shaders_and_on_another_one_they_are_compiled_anew() {
    let wrong = Context::on_host().shader("dot", DOT, &[("a", F32), ("b", F32)], &[("result", F32)]).unwrap_err();
    assert_eq!(wrong, ShaderError::Tensor(TensorError::NoDevice { op: "shader" }));
    let context = on_device();
    let dot = dot(&context);
    let a = context.tensor(&[1.0_f32, 2.0], &[2]).unwrap();
    let run = || dot.run(&[("a", &a), ("b", &a)], &[("result", &[1])], &[], None);
    context.move_to(None).unwrap();
    assert_eq!(run().unwrap_err(), ShaderError::Tensor(TensorError::NoDevice { op: "shader" }));
    let other = device();
    context.move_to(Some(&other)).unwrap();
    let before = other.counters();
    for _ in 0..2 {
        assert_eq!(only(run().unwrap()).read::<f32>().unwrap(), [5.0]);
    }
    assert_eq!(other.counters().since(&before).compiles, 1);
}

#[test]
fn a_scope_keeps_the_results_that_it_returns() {
    let context = on_device();
    let next = next(&context);
    let source = context.tensor(&[1.0_f32], &[1]).unwrap();
    let before = context.memory().tensors;
    let made = context
        .scope(|_| {
            let again = next.run(&[("source", &source)], &[("next", &[1]), ("seen", &[1])], &[], None)?;
            next.run(&[("source", &again[0].1)], &[("next", &[1]), ("seen", &[1])], &[], None)
        })
        .unwrap();
    assert_eq!(context.memory().tensors - before, 2);
    assert_eq!(made[0].1.read::<f32>().unwrap(), [3.0]);
}
