//! Writes a program as WGSL: its steps, the code that reads inputs and stores results, and the parameter words. The
//! only kernel in this file is the plain kernel, which stores the results as a tensor.
//!
//! Invariant: the text depends only on the signature. Lengths, strides, offsets and constants are parameters.

use std::fmt::Write;

use vramp_plan::{Binding, Shader};

use super::{Binary, ElementwiseProgram, Instruction, ProgramInput, ProgramStep, Unary, Walk};
use crate::ops::dtype::DType;

/// Values per invocation of the plain kernel.
pub(crate) const AT_ONCE: u32 = 4;

/// Values that a text computes at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VectorWidth {
    One,
    Four,
}

impl ElementwiseProgram {
    /// The parameter words that the text reads, in order.
    pub(crate) fn words(&self) -> Vec<u32> {
        let mut words = Vec::new();
        for input in &self.inputs {
            words.push(input.offset as u32);
            if let Walk::Stride(axes) = &input.walk {
                words.extend(axes.iter().flat_map(|(length, stride)| [*length as u32, *stride as u32]));
            }
        }
        words.extend_from_slice(&self.constants);
        // A zero whose value the compiler cannot know.
        words.push(0);
        words
    }

    /// The plain kernel: computes the program's values from first to last.
    pub(crate) fn shader(&self, workgroup: u32) -> Shader {
        let mut text = String::new();
        let mut bindings = Vec::new();
        for (at, input) in self.inputs.iter().enumerate() {
            let _ = writeln!(text, "@group(0) @binding({at}) var<storage, read> in{at}: array<{}>;", item(input));
            bindings.push(Binding::Read);
        }
        let (at, out) = (self.inputs.len(), item_of(self.out));
        let _ = writeln!(text, "@group(0) @binding({at}) var<storage, read_write> result: array<{out}>;");
        bindings.push(Binding::Write);
        let vectors = (1 + self.words().len()).div_ceil(4);
        let _ = writeln!(text, "@group(0) @binding({}) var<uniform> p: array<vec4<u32>, {vectors}>;", at + 1);
        bindings.push(Binding::Params { bytes: vectors as u32 * 16 });
        text.push_str(&self.function(VectorWidth::Four, "p", 1, "in"));
        let store = match self.out {
            DType::F32 | DType::I32 => "bitcast<vec4<u32>>(v)".to_owned(),
            DType::U32 => "v".to_owned(),
            DType::F16 => "halves(v)".to_owned(),
            DType::U8 | DType::I8 => {
                "(u32(v.x) & 255u) | ((u32(v.y) & 255u) << 8u) | ((u32(v.z) & 255u) << 16u) | (u32(v.w) << 24u)"
                    .to_owned()
            }
        };
        if self.out == DType::F16 {
            text.push_str(
                "fn halves(v: vec4<f32>) -> vec2<u32> {\n    let h = to_half(v);\n    return vec2<u32>(h.x | (h.y << 16u), h.z | (h.w << 16u));\n}\n",
            );
        }
        let _ = write!(
            text,
            "@compute @workgroup_size({workgroup})
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {{
    let at = (id.x + id.y * groups.x * {workgroup}u) * 4u;
    if (at >= p[0].x) {{
        return;
    }}
    let v = compute(at);
    result[at >> 2u] = {store};
}}
"
        );
        Shader { name: "map".to_owned(), wgsl: text, bindings, per_workgroup: workgroup * AT_ONCE }
    }

    /// The text of the function `compute(at)` and of everything that the function needs. `words` names an array of
    /// vectors of four words, in which the program's parameters begin at word `first`. Inputs are buffers named
    /// `buffers` plus their index. If the program finishes the results of a kernel, `compute` has the kernel's result
    /// as its second parameter.
    pub(crate) fn function(&self, lanes: VectorWidth, words: &str, first: usize, buffers: &str) -> String {
        let mut text = String::new();
        let vector = |of: &str| match lanes {
            VectorWidth::One => of.to_owned(),
            VectorWidth::Four => format!("vec4<{of}>"),
        };
        for (alias, of) in [("vF", "f32"), ("vI", "i32"), ("vU", "u32"), ("vB", "bool")] {
            let _ = writeln!(text, "alias {alias} = {};", vector(of));
        }
        text.push_str(include_str!("math.wgsl"));
        let word = |at: usize| format!("{words}[{}u].{}", (first + at) / 4, ["x", "y", "z", "w"][(first + at) % 4]);
        let mut at = 0;
        for (number, input) in self.inputs.iter().enumerate() {
            at += write_load(&mut text, lanes, number, input, buffers, |offset| word(at + offset));
        }
        let zero = word(at + self.constants.len());
        let _ = writeln!(
            text,
            "// Returns `v` unchanged. The compiler does not know this, so it cannot fuse or remove steps around a call.
fn kept(v: vF) -> vF {{
    return bitcast<vF>(bitcast<vU>(v) | vU({zero}));
}}
// Like `kept`, with another operator, because the compiler would merge two calls of `kept` with the same value.
fn another(v: vF) -> vF {{
    return bitcast<vF>(bitcast<vU>(v) ^ vU({zero}));
}}"
        );
        let given = if self.steps.iter().any(|step| step.act == Instruction::Given) { ", given: vF" } else { "" };
        let _ = writeln!(text, "fn compute(at: u32{given}) -> {} {{", kind(self.out));
        for (number, step) in self.steps.iter().enumerate() {
            let value = self.value(step, |constant| word(at + constant));
            let rounds =
                step.dtype == DType::F16 && !matches!(step.act, Instruction::Input(_) | Instruction::Constant(_));
            let value = if rounds { format!("round_half({value})") } else { value };
            let computes = matches!(step.act, Instruction::Unary(..) | Instruction::Binary(..));
            let value = if computes && step.dtype.is_float() { format!("kept({value})") } else { value };
            let _ = writeln!(text, "    let v{number} = {value};");
        }
        let _ = writeln!(text, "    return v{};\n}}", self.steps.len() - 1);
        text
    }

    fn value(&self, step: &ProgramStep, constant: impl Fn(usize) -> String) -> String {
        let dtype_of = |number: u16| self.steps[usize::from(number)].dtype;
        match step.act {
            Instruction::Input(number) => format!("load{number}(at)"),
            Instruction::Constant(number) => {
                let word = constant(usize::from(number));
                match step.dtype {
                    DType::F32 | DType::F16 => format!("vF(bitcast<f32>({word}))"),
                    DType::I32 | DType::I8 => format!("vI(bitcast<i32>({word}))"),
                    DType::U32 | DType::U8 => format!("vU({word})"),
                }
            }
            Instruction::Given => "given".to_owned(),
            Instruction::Unary(op, a) => unary(op, step.dtype, &format!("v{a}")),
            Instruction::Binary(op, a, b) => {
                // If both operands are the same value, compilers assume a result, such as 0 for a - a. That result is
                // wrong for NaN and infinities.
                let may_be_same = matches!(op, Binary::Sub | Binary::Div | Binary::Equal) || a == b;
                let other =
                    if may_be_same && dtype_of(a).is_float() { format!("another(v{b})") } else { format!("v{b}") };
                binary(op, dtype_of(a), &format!("v{a}"), &other)
            }
            // Tests the bits: NaN counts as not 0, and -0 counts as 0.
            Instruction::Select(c, a, b) if dtype_of(c).is_float() => {
                format!("select(v{b}, v{a}, (bitcast<vU>(v{c}) & vU(0x7fffffffu)) != vU(0u))")
            }
            Instruction::Select(c, a, b) => format!("select(v{b}, v{a}, v{c} != {}(0))", kind(dtype_of(c))),
            Instruction::Cast(a) => cast(dtype_of(a), step.dtype, &format!("v{a}")),
        }
    }
}

/// The WGSL type in which values are computed.
fn kind(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 | DType::F16 => "vF",
        DType::I32 | DType::I8 => "vI",
        DType::U32 | DType::U8 => "vU",
    }
}

/// The WGSL type that holds four values.
fn item_of(dtype: DType) -> &'static str {
    match dtype.bytes() {
        4 => "vec4<u32>",
        2 => "vec2<u32>",
        _ => "u32",
    }
}

/// The binding type of an input in the plain kernel: groups of four values if the input is aligned, words otherwise.
fn item(input: &ProgramInput) -> &'static str {
    if input.walk == Walk::Run && input.is_aligned() { item_of(input.dtype) } else { "u32" }
}

/// Writes the function that loads an input. Returns the number of parameter words that the function uses.
fn write_load(
    text: &mut String,
    lanes: VectorWidth,
    number: usize,
    input: &ProgramInput,
    buffers: &str,
    word: impl Fn(usize) -> String,
) -> usize {
    let kind = kind(input.dtype);
    let buffer = format!("{buffers}{number}");
    let offset = word(0);
    let one = |place: &str| one_value(input.dtype, &buffer, place);
    if lanes == VectorWidth::Four && input.walk == Walk::Run && input.is_aligned() {
        let group = format!("{buffer}[({offset} + at) >> 2u]");
        let value = match input.dtype {
            DType::F32 => format!("bitcast<vec4<f32>>({group})"),
            DType::I32 => format!("bitcast<vec4<i32>>({group})"),
            DType::U32 => group,
            DType::F16 => format!("from_half(four_halves({group}))"),
            DType::U8 => format!("four_bytes({group})"),
            DType::I8 => format!("low_byte_signed(bitcast<vec4<i32>>(four_bytes({group})))"),
        };
        match input.dtype {
            DType::F16 if !text.contains("fn four_halves") => text.push_str(
                "fn four_halves(g: vec2<u32>) -> vec4<u32> {\n    return vec4<u32>(g.x & 0xffffu, g.x >> 16u, g.y & 0xffffu, g.y >> 16u);\n}\n",
            ),
            DType::U8 | DType::I8 if !text.contains("fn four_bytes") => text.push_str(
                "fn four_bytes(g: u32) -> vec4<u32> {\n    return (vec4<u32>(g) >> vec4<u32>(0u, 8u, 16u, 24u)) & vec4<u32>(255u);\n}\n",
            ),
            _ => {}
        }
        let _ = writeln!(text, "fn load{number}(at: u32) -> {kind} {{\n    return {value};\n}}");
        return 1;
    }
    let _ = writeln!(text, "fn place{number}(at: u32) -> u32 {{");
    let used = match &input.walk {
        Walk::Run => {
            let _ = writeln!(text, "    return {offset} + at;");
            1
        }
        Walk::Stay => {
            let _ = writeln!(text, "    return {offset};");
            1
        }
        Walk::Stride(axes) => {
            let _ = writeln!(text, "    var rest = at;\n    var place = {offset};");
            for axis in (0..axes.len()).rev() {
                let (length, stride) = (word(1 + 2 * axis), word(2 + 2 * axis));
                if axis > 0 {
                    let _ = writeln!(text, "    place += (rest % {length}) * {stride};\n    rest /= {length};");
                } else {
                    // The slowest axis needs no remainder, only a clamp: indices past the end may read any value,
                    // because their results are not stored.
                    let _ = writeln!(text, "    place += min(rest, {length} - 1u) * {stride};");
                }
            }
            let _ = writeln!(text, "    return place;");
            1 + 2 * axes.len()
        }
    };
    text.push_str("}\n");
    let scalar = match kind {
        "vF" => "f32",
        "vI" => "i32",
        _ => "u32",
    };
    let _ = writeln!(text, "fn one{number}(place: u32) -> {scalar} {{\n    return {};\n}}", one("place"));
    let value = match (lanes, &input.walk) {
        (VectorWidth::One, _) | (VectorWidth::Four, Walk::Stay) => format!("{kind}(one{number}(place{number}(at)))"),
        (VectorWidth::Four, _) => {
            let four: Vec<String> = (0..4).map(|lane| format!("one{number}(place{number}(at + {lane}u))")).collect();
            format!("{kind}({})", four.join(", "))
        }
    };
    let _ = writeln!(text, "fn load{number}(at: u32) -> {kind} {{\n    return {value};\n}}");
    used
}

/// A WGSL expression for value number `place` (an expression) of `buffer`, an array of words. The expression has the
/// type that holds the value exactly: f32, i32 or u32.
pub(crate) fn one_value(dtype: DType, buffer: &str, place: &str) -> String {
    match dtype {
        DType::F32 => format!("bitcast<f32>({buffer}[{place}])"),
        DType::I32 => format!("bitcast<i32>({buffer}[{place}])"),
        DType::U32 => format!("{buffer}[{place}]"),
        DType::F16 => format!("unpack2x16float({buffer}[({place}) >> 1u] >> ((({place}) & 1u) << 4u)).x"),
        DType::U8 => format!("extractBits({buffer}[({place}) >> 2u], (({place}) & 3u) << 3u, 8u)"),
        DType::I8 => format!("extractBits(bitcast<i32>({buffer}[({place}) >> 2u]), (({place}) & 3u) << 3u, 8u)"),
    }
}

fn unary(op: Unary, dtype: DType, x: &str) -> String {
    let kind = kind(dtype);
    match op {
        Unary::Neg if dtype == DType::I32 => format!("(vI(0) - {x})"),
        Unary::Neg => format!("(-{x})"),
        Unary::Abs => format!("abs({x})"),
        Unary::Relu if dtype.is_float() => format!("select({x}, vF(0.0), {x} < vF(0.0))"),
        Unary::Relu => format!("max({x}, {kind}(0))"),
        Unary::Sigmoid => format!("sigmoid_each({x})"),
        Unary::Tanh => format!("tanh_each({x})"),
        Unary::Gelu => format!("gelu_each({x})"),
        Unary::Silu => format!("silu_each({x})"),
        Unary::Erf => format!("erf_each({x})"),
        Unary::Exp => format!("exp_each({x})"),
        Unary::Log => format!("log_each({x})"),
        Unary::Sqrt => format!("sqrt({x})"),
        Unary::Square => format!("({x} * {x})"),
        Unary::Reciprocal => format!("(vF(1.0) / {x})"),
        Unary::Floor => format!("floor({x})"),
        Unary::Round => format!("round({x})"),
        Unary::FiniteSize => {
            format!("select(vF(0.0), abs({x}), (bitcast<vU>({x}) & vU(0x7fffffffu)) < vU(0x7f800000u))")
        }
        Unary::ScaleOf => format!("select(vF(1.0), max({x} / vF(127.0), vF(1.17549435e-38)), {x} > vF(0.0))"),
    }
}

fn binary(op: Binary, dtype: DType, a: &str, b: &str) -> String {
    let kind = kind(dtype);
    let one = |condition: String| format!("select({kind}(0), {kind}(1), {condition})");
    match op {
        Binary::Add => format!("({a} + {b})"),
        Binary::Sub => format!("({a} - {b})"),
        Binary::Mul => format!("({a} * {b})"),
        Binary::Div if dtype.is_float() => format!("({a} / {b})"),
        // WGSL itself defines this result for a division by 0, and drivers comply, but the explicit form costs nothing.
        Binary::Div => format!("select({a} / select({b}, {kind}(1), {b} == {kind}(0)), {a}, {b} == {kind}(0))"),
        Binary::Min if dtype.is_float() => format!("min_each({a}, {b})"),
        Binary::Max if dtype.is_float() => format!("max_each({a}, {b})"),
        Binary::Min => format!("min({a}, {b})"),
        Binary::Max => format!("max({a}, {b})"),
        Binary::Pow => format!("pow_each({a}, {b})"),
        Binary::Less => one(format!("{a} < {b}")),
        Binary::Greater => one(format!("{a} > {b}")),
        Binary::Equal => one(format!("{a} == {b}")),
        Binary::Quantized => format!("quantized_each({a}, {b})"),
    }
}

fn cast(from: DType, to: DType, x: &str) -> String {
    match (from.is_float(), to) {
        (true, DType::F32 | DType::F16) => x.to_owned(),
        (true, DType::I32) => format!("to_signed({x})"),
        (true, DType::U32) => format!("to_unsigned({x})"),
        (true, DType::U8) => format!("min(to_unsigned({x}), vU(255u))"),
        (true, DType::I8) => format!("clamp(to_signed({x}), vI(-128), vI(127))"),
        (false, DType::F32 | DType::F16) => format!("vF({x})"),
        (false, DType::I32) => format!("bitcast<vI>({x})"),
        (false, DType::U32) => format!("bitcast<vU>({x})"),
        (false, DType::U8) => format!("(bitcast<vU>({x}) & vU(255u))"),
        (false, DType::I8) => format!("low_byte_signed(bitcast<vI>({x}))"),
    }
}
