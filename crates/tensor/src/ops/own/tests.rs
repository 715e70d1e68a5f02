//! The exact messages about mistakes in users' shaders.

use super::*;

const DOT: &str = "@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> result: array<f32>;

@compute @workgroup_size(1)
fn main() {
    var sum = 0.0;
    for (var i = 0u; i < arrayLength(&a); i++) { sum += a[i] * b[i]; }
    result[0] = sum;
}
";

const AB: [(&str, DType); 2] = [("a", DType::F32), ("b", DType::F32)];
const RESULT: [(&str, DType); 1] = [("result", DType::F32)];

fn limits() -> DeviceLimits {
    DeviceLimits {
        storage_buffers_per_stage: 8,
        binding_bytes: 1 << 27,
        buffer_bytes: 1 << 28,
        params_bytes: 65_536,
        params_alignment: 256,
        workgroups_per_dimension: 65_535,
        invocations_per_workgroup: 256,
        workgroup_bytes: 16_384,
        workgroup_sides: [256, 256, 64],
        storage_alignment: 256,
        texture_side: 8192,
    }
}

#[track_caller]
fn said(text: &str) -> String {
    OwnShader::read("dot", text, &AB, &RESULT).unwrap_err().to_string()
}

#[test]
fn a_shader_is_read_with_its_bindings_in_the_declared_order() {
    let shader = OwnShader::read("dot", DOT, &AB, &RESULT).unwrap();
    assert_eq!(shader.shader().bindings, [Binding::Read, Binding::Read, Binding::Write]);
    assert_eq!(shader.inputs().iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!((shader.outputs()[0].name.as_str(), shader.workgroup()), ("result", [1, 1, 1]));
    let unnamed = OwnShader::read("dot", DOT, &[("", DType::F32); 2], &[("", DType::F32)]).unwrap();
    assert_eq!(unnamed, shader, "an empty name is replaced by the name in the text");
    let unused = DOT.replace("a[i] * b[i]", "a[i]");
    let unused = OwnShader::read("sum", &unused, &AB, &RESULT).unwrap();
    assert_eq!(unused.shader().bindings.len(), 3, "bindings that the text does not use are bound as well");
}

#[test]
fn every_mistake_of_a_text_is_reported_with_its_position_and_a_remedy() {
    let with = |from: &str, to: &str| {
        assert!(DOT.contains(from), "{from}");
        said(&DOT.replace(from, to))
    };
    let told = [
        (
            with("> b:", "> c:"),
            "shader dot, line 8, column 64: no definition in scope for identifier: `b` (unknown identifier)",
        ),
        (
            said(&DOT.replace("> b:", "> c:").replace("b[i]", "c[i]")),
            "shader dot, line 2, column 23: `c` is not declared; declared: input `a`, input `b`, output `result`; \
             declare it as an input or output, rename it, or remove it",
        ),
        (
            said(&DOT.replace("a: array<f32>", "a: array<vec3<f32>>").replace("a[i]", "a[i].x")),
            "shader dot, line 1, column 23: the input `a` is not an array of f32, i32 or u32, or of vectors of 2 or 4 of \
             these, as f32 needs; write `@group(0) @binding(0) var<storage, read> a: array<f32>;`",
        ),
        (
            with("read> a", "read_write> a"),
            "shader dot, line 1, column 23: the input `a` has the access `read_write`; an input has `read`; write \
             `@group(0) @binding(0) var<storage, read> a: array<f32>;`",
        ),
        (
            said(&DOT.replace("read_write> result", "read> result").replace("result[0] = sum;", "")),
            "shader dot, line 3, column 23: the output `result` has the access `read`; an output has `read_write`; write \
             `@group(0) @binding(2) var<storage, read_write> result: array<f32>;`",
        ),
        (
            said(
                &DOT.replace("@binding(0)", "@binding(9)")
                    .replace("@binding(1)", "@binding(0)")
                    .replace("@binding(9)", "@binding(1)"),
            ),
            "shader dot, line 1, column 23: `a` is binding 1; the declared order makes this input binding 0; bind the \
             inputs, then the outputs, in the declared order, then the parameters",
        ),
        (
            said(&DOT.replace("@binding(1)", "@binding(0)").replace("a[i] * b[i]", "a[i]")),
            "shader dot, line 2, column 23: `a` and `b` are both binding 0; number the bindings 0, 1, 2 and \
             so on, without gaps",
        ),
        (
            with("@group(0) @binding(1)", "@group(1) @binding(1)"),
            "shader dot, line 2, column 23: `b` is in group 1; everything is bound in group 0; write `@group(0) \
             @binding(1)`",
        ),
        (
            said(&format!("{DOT}@group(0) @binding(3) var picture: texture_2d<f32>;")),
            "shader dot, line 11, column 23: `picture`: textures and samplers cannot be bound; tensors are arrays; \
             `var<storage, read>` for an input, `var<storage, read_write>` for an output",
        ),
        (
            said("fn main() {}"),
            "shader dot: it has no entry point; a kernel has one entry point: `@compute @workgroup_size(64) \
             fn main() { ... }`",
        ),
        (
            said(&format!("{DOT}@compute @workgroup_size(1) fn again() {{}}")),
            "shader dot, line 11, column 32: it has 2 entry points: main, again; expected one; create one shader for \
             each entry point",
        ),
        (
            said("@fragment fn main() {}"),
            "shader dot, line 1, column 14: the entry point `main` is not `@compute`; write `@compute \
             @workgroup_size(64)` before it",
        ),
        (
            said(&format!("override n: f32;\n{DOT}").replace("result[0] = sum", "result[0] = sum * n")),
            "shader dot, line 1, column 1: `n` has no value, and nothing overrides it; give it a default, write `const`, \
             or make it a parameter",
        ),
        (
            said(&format!("override n: u32 = 4;\n{DOT}").replace("workgroup_size(1)", "workgroup_size(n)")),
            "shader dot, line 6, column 11: the size of the workgroup is an `override`; write a number or a `const`",
        ),
        (with("fn main() {", "fn main( {"), r#"shader dot, line 6, column 10: expected identifier, found "{""#),
        (
            said(" \n"),
            "shader dot: it is empty; a kernel has one entry point: `@compute @workgroup_size(64) fn main() { ... }`",
        ),
        (
            said(&format!("{DOT}@group(0) @binding(4) var<uniform> p: vec4<f32>;")),
            "shader dot, line 11, column 23: the uniform `p` is binding 4; it must be last, binding 3; write `@group(0) \
             @binding(3) var<uniform> p`",
        ),
        (
            said(&format!("{DOT}@group(0) @binding(3) var<uniform> p: vec4<f32>;")),
            "shader dot, line 11, column 23: the uniform `p` is not a structure; write `struct Params { scale: f32, size: \
             vec2<u32> }` and `var<uniform> params: Params`",
        ),
        (
            said(&format!("{DOT}struct P {{ m: mat2x2<f32> }} @group(0) @binding(3) var<uniform> p: P;")),
            "shader dot, line 11, column 51: the uniform `p` has the member `m`, which is neither f32, i32, u32 nor a \
             vector of these; write `struct Params { scale: f32, size: vec2<u32> }` and `var<uniform> params: Params`",
        ),
    ];
    for (has, wants) in told {
        assert_eq!(has, wants);
    }
}

#[test]
fn declarations_that_mean_nothing_are_refused() {
    let none = OwnShader::read("dot", DOT, &AB, &[]).unwrap_err().to_string();
    assert!(none.starts_with("shader dot: no output is declared"), "{none}");
    let twice = OwnShader::read("dot", DOT, &[("a", DType::F32); 2], &RESULT).unwrap_err().to_string();
    assert_eq!(twice, "shader dot: `a` is declared twice; give each tensor a name of its own");
    let fewer = OwnShader::read("dot", DOT, &AB[..1], &RESULT).unwrap_err().to_string();
    assert!(fewer.starts_with("shader dot, line 2, column 23: `b` is not declared"), "{fewer}");
}

#[test]
fn small_types_are_words_of_several() {
    let text = |element: &str| {
        format!(
            "@group(0) @binding(0) var<storage, read> source: array<{element}>;
             @group(0) @binding(1) var<storage, read_write> to: array<u32>;
             @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{ to[id.x] = 0u; }}"
        )
    };
    let to = [("to", DType::U8)];
    for dtype in [DType::U8, DType::I8, DType::F16] {
        let shader = OwnShader::read("copy", &text("u32"), &[("source", dtype)], &to).unwrap();
        let source = &shader.inputs()[0];
        for count in [1, 2, 3, 4, 5] {
            shader.accepts(source, dtype, count).unwrap();
        }
        let wrong = OwnShader::read("copy", &text("f32"), &[("source", dtype)], &to).unwrap_err().to_string();
        let each = dtype.per_word();
        let words =
            format!("declared as {dtype}, which needs an array of u32, {each} to a word; the text has an array of f32");
        assert!(wrong.contains(&words), "{wrong}");
    }
    let shader = OwnShader::read("copy", &text("vec2<u32>"), &[("source", DType::U8)], &to).unwrap();
    shader.accepts(&shader.inputs()[0], DType::U8, 7).unwrap();
    let odd = shader.accepts(&shader.inputs()[0], DType::U8, 4).unwrap_err().to_string();
    assert_eq!(
        odd,
        "shader copy: `source` got 4 values; an element of its array has 8 values; give a multiple of 8 values"
    );
}

#[test]
fn tensors_that_do_not_fit_the_text_are_refused_at_the_run() {
    let text = DOT.replace("a: array<f32>", "a: array<f32, 6>").replace("arrayLength(&a)", "6u");
    let shader = OwnShader::read("dot", &text, &AB, &RESULT).unwrap();
    let a = &shader.inputs()[0];
    shader.accepts(a, DType::F32, 6).unwrap();
    let told = [
        (shader.accepts(a, DType::F32, 7), "`a` got 7 values; its array has a fixed length of 6, which is 6 values"),
        (shader.accepts(a, DType::I32, 6), "`a` is declared as f32, got i32; `cast` the tensor first"),
        (
            shader.accepts(&shader.inputs()[1], DType::F32, 0),
            "`b` got 0 values; a tensor without values cannot be bound; give it at least one",
        ),
    ];
    for (has, wants) in told {
        assert_eq!(has.unwrap_err().to_string(), format!("shader dot: {wants}"));
    }
}

#[test]
fn parameters_lie_where_the_text_has_them_and_each_is_given_once() {
    let text = format!(
        "struct Params {{ scale: f32, at: vec2<u32>, color: vec3<f32>, steps: i32 }}
         {DOT}@group(0) @binding(3) var<uniform> params: Params;"
    );
    let shader = OwnShader::read("dot", &text, &AB, &RESULT).unwrap();
    assert_eq!(shader.shader().bindings[3], Binding::Params { bytes: 32 });
    assert_eq!(shader.param_names().collect::<Vec<_>>(), ["scale", "at", "color", "steps"]);
    let all: [(&str, ParamValue); 4] = [
        ("steps", (-2_i32).into()),
        ("scale", 0.5.into()),
        ("at", [3_u32, 4].into()),
        ("color", [1.0, 2.0, 3.0].into()),
    ];
    let bytes = shader.params(&all).unwrap();
    let words: Vec<u32> = bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
    let one = 1.0_f32.to_bits();
    assert_eq!(words, [0.5_f32.to_bits(), 0, 3, 4, one, 2.0_f32.to_bits(), 3.0_f32.to_bits(), u32::MAX - 1]);
    let told = [
        (shader.params(&all[1..]), "the parameter `steps` (i32) has no value; give it one"),
        (shader.params(&[("speed", 1.0.into())]), "unknown parameter `speed`; the text has scale, at, color, steps"),
        (
            shader.params(&[all[1].clone(), ("at", [1.0, 2.0].into())]),
            "the parameter `at` is vec2<u32> in the text, got vec2<f32>",
        ),
        (shader.params(&[all[1].clone(), all[1].clone()]), "the parameter `scale` is given twice; give it once"),
        (
            OwnShader::read("dot", DOT, &AB, &RESULT).unwrap().params(&all),
            "unknown parameter `steps`; the text has no parameters",
        ),
    ];
    for (has, wants) in told {
        assert_eq!(has.unwrap_err().to_string(), format!("shader dot: {wants}"));
    }
}

#[test]
fn workgroups_and_grids_beyond_a_device_are_refused_with_numbers() {
    let read = |size: &str| {
        let text = DOT.replace("workgroup_size(1)", &format!("workgroup_size({size})"));
        OwnShader::read("dot", &text, &AB, &RESULT).unwrap()
    };
    read("16, 16").fits(&limits()).unwrap();
    let told = [
        (read("512").fits(&limits()), "512 x 1 x 1 is 512 invocations"),
        (read("1, 1, 128").fits(&limits()), "1 x 1 x 128 is 128 invocations"),
    ];
    for (has, wants) in told {
        let words = format!(
            "shader dot, line 5, column 11: a workgroup of {wants}; this device allows at most 256, and at most 256 x 256 x \
             64; make the workgroup smaller, and run more workgroups"
        );
        assert_eq!(has.unwrap_err().to_string(), words);
    }
    let shared = format!("var<workgroup> kept: array<f32, 5000>;{DOT}").replace("sum = 0.0;", "sum = kept[1];");
    let shared = OwnShader::read("dot", &shared, &AB, &RESULT).unwrap().fits(&limits()).unwrap_err().to_string();
    assert!(shared.contains("a workgroup shares 20000 bytes; this device allows at most 16384"), "{shared}");
    let few = DeviceLimits { storage_buffers_per_stage: 2, ..limits() };
    let few = read("1").fits(&few).unwrap_err().to_string();
    assert_eq!(few, "shader dot: it binds 3 tensors; this device allows at most 2; split it");
    let shader = read("64");
    assert_eq!(shader.grid([65_535, 1, 1], &limits()).unwrap(), [65_535, 1, 1]);
    for grid in [[65_536, 1, 1], [1, 0, 1]] {
        let wrong = shader.grid(grid, &limits()).unwrap_err().to_string();
        let [x, y, z] = grid;
        assert!(
            wrong.starts_with(&format!("shader dot: {x} x {y} x {z} workgroups; a dispatch takes 1 to 65535")),
            "{wrong}"
        );
    }
    assert_eq!(shader.grid_over(1000, &limits()), [16, 1, 1]);
    assert_eq!(shader.grid_over(0, &limits()), [1, 1, 1]);
    let [x, y, z] = shader.grid_over(64 * 100_000, &limits());
    assert!(x <= 65_535 && y == 2 && z == 1 && x * y >= 100_000, "{x} x {y} x {z}");
}

#[test]
fn hostile_texts_end_in_words() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/hostile_shaders");
    let pictures = [("input", DType::U32)];
    let (mut refused, mut read) = (0, 0);
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        match OwnShader::read("hostile", &text, &pictures, &[("output", DType::U32)]) {
            Ok(shader) => {
                assert_eq!(shader.shader().bindings[..2], [Binding::Read, Binding::Write], "{path:?}");
                read += 1;
            }
            Err(error) => {
                assert!(error.to_string().starts_with("shader hostile"), "{path:?}: {error}");
                assert!(!error.to_string().contains("compiler itself failed"), "{path:?}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 40 && read >= 3, "{refused} are refused, {read} read");
    let deep = format!("{DOT}fn deep() -> f32 {{ return {}1.0{}; }}", "(".repeat(5000), ")".repeat(5000));
    assert!(said(&deep).contains("49 nested brackets; the limit is 48"), "{}", said(&deep));
    let long = format!("{DOT}// {}", "a".repeat(300_000));
    assert!(said(&long).contains("the limit is 262144"), "{}", said(&long));
}
