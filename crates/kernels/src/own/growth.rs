//! Bounds on how much a short text grows inside a compiler.
//!
//! Drivers inline the body of a function at every call, and the parser copies a constant to every place that names it,
//! so a text of one page can need gigabytes. This module estimates the inlined code and the copied values before
//! anything is copied. The estimates do not cover how long a shader runs: the code in a loop counts once.
//!
//! Invariants: an estimate takes time proportional to the length of the text and cannot overflow. Errors name the
//! cause, the estimate and the limit.

use std::collections::{BTreeMap, BTreeSet};

use naga::valid::{FunctionInfo, ModuleInfo};
use naga::{
    ArraySize, BinaryOperator, Block, Expression, Function, Handle, MathFunction, Module, Statement, Type, TypeInner,
};

use super::OwnError;
use super::tokens::{WgslToken, WgslTokenKind};

/// Maximum scalar operations of a function after inlining all calls. In the text of a pixel function, the limit is a
/// quarter of this, because a kernel contains four copies of the text's functions.
///
/// Near this limit, on two busy cores, Mesa 22.3's software driver took 14 s to compile 600 statements `y = sin(y * a)`
/// on vectors of four numbers, 6 s for 155 statements with `pow`, and 6 s for 7,000 statements with a multiplication
/// and an addition.
pub const MAX_OPERATIONS: u64 = 262_144;

/// All functions of a text together may have this many times the operations that one function may have. The total is
/// limited because the driver also inlines calls in functions that are never called: 500 functions, each calling the
/// next, had 8 million operations and took 0.8 GB.
const ALL_TOGETHER: u64 = 16;

/// The cost of copying a number as part of a whole array, relative to the cost of computing a number. This is a low
/// guess: the driver did not finish compiling two copies of 4,096 numbers within 60 s. How the driver's time grows with
/// the number of copies was not measured.
const COPIED: u64 = 16;

/// Numbers in the largest matrix. Values with more numbers are arrays or structures.
const MATRIX: u64 = 16;

/// Maximum number of values that the parser may copy out of constants.
const MAX_COPIES: u64 = 1 << 20;

/// Maximum number of functions of a call chain that an error names.
const MOST_NAMED: usize = 5;

/// Refuses constants that the parser would copy too often.
pub(super) fn check_constants(text: &str, tokens: &[WgslToken<'_>]) -> Result<(), OwnError> {
    let solid: Vec<WgslToken<'_>> = tokens.iter().filter(|token| token.kind != WgslTokenKind::Gap).copied().collect();
    let constants = Constants::of(&solid);
    let mut copies = 0_u64;
    for (at, token) in solid.iter().enumerate() {
        let is_mention = token.kind == WgslTokenKind::Word && (at == 0 || !matches!(solid[at - 1].text, "const" | "."));
        let Some(values) = constants.values.get(token.text).filter(|_| is_mention) else { continue };
        copies = copies.saturating_add(*values);
        if copies > MAX_COPIES {
            let problem = format!(
                "`{}` has about {values} values; up to and including this use, {copies} values are copied out of \
                 constants; the limit is {MAX_COPIES}",
                token.text
            );
            return Err(OwnError::at(text, token.at, problem).help(
                "initialise a `var<private>` with the constant and read the variable, or make the constant smaller",
            ));
        }
    }
    Ok(())
}

/// The number of values in each constant that may be an array or a structure.
struct Constants<'a> {
    values: BTreeMap<&'a str, u64>,
}

impl<'a> Constants<'a> {
    fn of(tokens: &[WgslToken<'a>]) -> Constants<'a> {
        let mut types = BTreeSet::from(["array"]);
        let mut written: BTreeMap<&'a str, Vec<&[WgslToken<'a>]>> = BTreeMap::new();
        for (at, pair) in tokens.windows(2).enumerate() {
            match pair[0].text {
                "struct" | "alias" => {
                    types.insert(pair[1].text);
                }
                "const" => {
                    let rest = &tokens[at + 2..];
                    let end = rest.iter().position(|token| token.text == ";").unwrap_or(rest.len());
                    let begin = rest[..end].iter().position(|token| token.text == "=").map_or(end, |is| is + 1);
                    written.entry(pair[1].text).or_default().push(&rest[begin..end]);
                }
                _ => {}
            }
        }
        let mut constants = Constants { values: BTreeMap::new() };
        let names: Vec<&str> = written.keys().copied().collect();
        for name in names {
            constants.count(name, &types, &written);
        }
        constants
    }

    /// Counts the values of a constant, after the constants that it names. Uses an explicit stack instead of recursion,
    /// because a text may have thousands of constants that each name the next.
    fn count(&mut self, name: &'a str, types: &BTreeSet<&'a str>, written: &BTreeMap<&'a str, Vec<&[WgslToken<'a>]>>) {
        let mut begun = BTreeSet::new();
        let mut stack = vec![name];
        while let Some(name) = stack.last().copied() {
            if self.values.contains_key(name) {
                stack.pop();
                continue;
            }
            let values = &written[name];
            let named = values.iter().flat_map(|value| value.iter()).map(|token| token.text);
            let open = named.filter(|name| written.contains_key(name) && !self.values.contains_key(name));
            // A constant that has begun but is not counted yet depends on itself. It is skipped here, and the compiler
            // reports the cycle.
            let open: Vec<&str> = open.filter(|name| !begun.contains(name)).collect();
            if begun.insert(name) && !open.is_empty() {
                stack.extend(open);
                continue;
            }
            let count = values.iter().fold(0_u64, |all, value| all.saturating_add(self.values_of(value, types)));
            self.values.insert(name, count);
            stack.pop();
        }
    }

    /// The number of values in one initialiser. In a constructor, each token counts as one value, or as the values of
    /// the constant that it names. Any other expression has at most as many values as a matrix, or as the constant at
    /// the start of the expression if this constant has more values.
    fn values_of(&self, value: &[WgslToken<'a>], types: &BTreeSet<&'a str>) -> u64 {
        let Some(first) = value.iter().find(|token| token.text != "(") else { return 0 };
        let known = |token: &WgslToken<'_>| self.values.get(token.text).copied();
        if !types.contains(first.text) {
            return known(first).unwrap_or(MATRIX).max(MATRIX);
        }
        value.iter().fold(0, |all: u64, token| all.saturating_add(known(token).unwrap_or(1)))
    }
}

/// Refuses functions that become too large after inlining all calls.
pub(super) fn check_calls(text: &str, module: &Module, info: &ModuleInfo, most: u64) -> Result<(), OwnError> {
    let mut sizes = Sizes { module, most, functions: BTreeMap::new(), types: BTreeMap::new() };
    let mut all = 0_u64;
    // naga stores every function after the functions that it calls.
    for (handle, function) in module.functions.iter() {
        let size = sizes.of(function, &info[handle]);
        sizes.check(text, function, &size)?;
        all = all.saturating_add(size.operations);
        if all > most.saturating_mul(ALL_TOGETHER) {
            let name = function.name.as_deref().unwrap_or("");
            let problem = format!(
                "the functions up to `{name}` have {all} operations with all calls inlined; the limit is {}",
                most.saturating_mul(ALL_TOGETHER)
            );
            return Err(
                OwnError::at_word(text, name, problem).help("write fewer functions, or shorter chains of calls")
            );
        }
        sizes.functions.insert(handle, size);
    }
    for (at, entry) in module.entry_points.iter().enumerate() {
        let size = sizes.of(&entry.function, info.get_entry_point(at));
        sizes.check(text, &entry.function, &size)?;
    }
    Ok(())
}

/// The cost of one number of an expression's result, relative to an addition, according to the measurements at
/// [`MAX_OPERATIONS`].
fn weight(expression: &Expression) -> u64 {
    use MathFunction as Math;
    match expression {
        Expression::Math { fun: Math::Pow, .. } => 400,
        Expression::Math {
            fun:
                Math::Cos
                | Math::Cosh
                | Math::Sin
                | Math::Sinh
                | Math::Tan
                | Math::Tanh
                | Math::Acos
                | Math::Asin
                | Math::Atan
                | Math::Atan2
                | Math::Asinh
                | Math::Acosh
                | Math::Atanh
                | Math::Exp
                | Math::Exp2
                | Math::Log
                | Math::Log2,
            ..
        } => 100,
        Expression::Math { .. } => 10,
        Expression::Binary { op: BinaryOperator::Divide | BinaryOperator::Modulo, .. } => 4,
        _ => 1,
    }
}

/// The size of one function after inlining.
#[derive(Debug, Clone, Default)]
struct Inlined {
    operations: u64,
    /// The callee that contributes most operations, and the number of times that the function calls it.
    heaviest: Option<(Handle<Function>, u64)>,
}

struct Sizes<'a> {
    module: &'a Module,
    most: u64,
    functions: BTreeMap<Handle<Function>, Inlined>,
    types: BTreeMap<Handle<Type>, u64>,
}

impl Sizes<'_> {
    fn of(&mut self, function: &Function, info: &FunctionInfo) -> Inlined {
        let mut operations = 0_u64;
        for (handle, expression) in function.expressions.iter() {
            let ty = info[handle].ty.inner_with(&self.module.types);
            operations = operations.saturating_add(self.copied(ty).saturating_mul(weight(expression)));
        }
        // Compilers write every number of a variable at its declaration.
        for (_, variable) in function.local_variables.iter() {
            operations = operations.saturating_add(self.values_of(variable.ty));
        }
        let mut calls = BTreeMap::new();
        operations = operations.saturating_add(self.statements(&function.body, info, &mut calls));
        let mut heaviest = (0, None);
        for (callee, times) in calls {
            let each = self.functions.get(&callee).map_or(0, |callee| callee.operations);
            let all = each.saturating_mul(times);
            operations = operations.saturating_add(all);
            if all >= heaviest.0 {
                heaviest = (all, Some((callee, times)));
            }
        }
        Inlined { operations, heaviest: heaviest.1 }
    }

    /// The number of statements in a block, including nested statements, plus the cost of the values that these
    /// statements store, return and pass. Counts the calls of each function in `calls`.
    fn statements(&mut self, block: &Block, info: &FunctionInfo, calls: &mut BTreeMap<Handle<Function>, u64>) -> u64 {
        let mut count = 0_u64;
        for statement in block {
            count = count.saturating_add(1);
            let within = match statement {
                Statement::Block(inner) => self.statements(inner, info, calls),
                Statement::If { accept, reject, .. } => {
                    let accepted = self.statements(accept, info, calls);
                    accepted.saturating_add(self.statements(reject, info, calls))
                }
                Statement::Switch { cases, .. } => {
                    let each = |all: u64, case: &naga::SwitchCase| {
                        all.saturating_add(self.statements(&case.body, info, calls))
                    };
                    // Compilers compare every case with every case before it. Mesa 22 took 2.9 s for 300 cases and 14 s
                    // for 600.
                    let count = cases.len() as u64;
                    cases.iter().fold(count.saturating_mul(count) / 2, each)
                }
                Statement::Loop { body, continuing, .. } => {
                    let body = self.statements(body, info, calls);
                    body.saturating_add(self.statements(continuing, info, calls))
                }
                Statement::Store { value, .. } | Statement::Return { value: Some(value) } => {
                    self.copied(info[*value].ty.inner_with(&self.module.types))
                }
                Statement::Call { function, arguments, .. } => {
                    *calls.entry(*function).or_default() += 1;
                    let each = |all: u64, value: &Handle<Expression>| {
                        all.saturating_add(self.copied(info[*value].ty.inner_with(&self.module.types)))
                    };
                    arguments.iter().fold(0, each)
                }
                _ => 0,
            };
            count = count.saturating_add(within);
        }
        count
    }

    fn values_of(&mut self, ty: Handle<Type>) -> u64 {
        if let Some(values) = self.types.get(&ty) {
            return *values;
        }
        let values = self.values(&self.module.types[ty].inner);
        self.types.insert(ty, values);
        values
    }

    /// The cost of constructing a value of this type from its numbers.
    fn copied(&mut self, ty: &TypeInner) -> u64 {
        match self.values(ty) {
            numbers if numbers > MATRIX => numbers.saturating_mul(COPIED),
            numbers => numbers,
        }
    }

    /// The number of scalars in a value of this type.
    fn values(&mut self, ty: &TypeInner) -> u64 {
        match ty {
            TypeInner::Vector { size, .. } => *size as u64,
            TypeInner::Matrix { columns, rows, .. } => *columns as u64 * *rows as u64,
            TypeInner::Array { base, size: ArraySize::Constant(length), .. } => {
                self.values_of(*base).saturating_mul(u64::from(length.get()))
            }
            TypeInner::Struct { members, .. } => {
                members.iter().fold(0, |all: u64, member| all.saturating_add(self.values_of(member.ty)))
            }
            _ => 1,
        }
    }

    fn check(&self, text: &str, function: &Function, size: &Inlined) -> Result<(), OwnError> {
        if size.operations <= self.most {
            return Ok(());
        }
        let name = function.name.as_deref().unwrap_or("main");
        let mut chain = Vec::new();
        let mut next = size.heaviest;
        while let Some((callee, times)) = next {
            let called = self.module.functions[callee].name.as_deref().unwrap_or("");
            let times = if times == 1 { String::new() } else { format!(" {times} times") };
            chain.push(format!("`{called}`{times}"));
            next = self.functions.get(&callee).and_then(|callee| callee.heaviest);
        }
        let more = chain.len().saturating_sub(MOST_NAMED);
        chain.truncate(MOST_NAMED);
        let more = if more == 0 { String::new() } else { format!(", and so on for {more} more functions") };
        let problem =
            format!("`{name}` has {} operations with all calls inlined; the limit is {}", size.operations, self.most);
        let help = if chain.is_empty() {
            "long functions and copies of large arrays have many operations; shorten the function, or pass pointers to \
             arrays"
                .to_owned()
        } else {
            format!(
                "compilers inline every call, and `{name}` calls {}{more}; write repeated calls as one call in a loop, \
                 or reuse the result of a call",
                chain.join(", which calls ")
            )
        };
        Err(OwnError::at_word(text, name, problem).help(help))
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::own::{Own, judged};

    const BOUND: &str = "@group(0) @binding(0) var<storage, read> input: array<u32>;
@group(0) @binding(1) var<storage, read_write> output: array<u32>;
";

    /// The name of a shape, and the number of times that the function at a position of the chain calls the function
    /// before it.
    type Shape = (&'static str, fn(usize) -> usize);

    const SHAPES: [Shape; 5] = [
        ("single", |_| 1),
        ("binary", |_| 2),
        ("ternary", |_| 3),
        ("of four", |_| 4),
        ("mixed", |at| if at % 3 == 0 { 1 } else { 2 }),
    ];

    /// A chain of functions, each of which calls the function before it, and the number of leaf calls, which is
    /// computed from the shape alone.
    fn row(depth: usize, calls: fn(usize) -> usize, body: &str) -> (String, u128) {
        let mut text = format!("fn step0(x: vec4f) -> vec4f {{ {body} }}\n");
        let mut leaves = 1_u128;
        for at in 1..=depth {
            let each: Vec<String> = (0..calls(at)).map(|j| format!("step{}(x * {j}.5)", at - 1)).collect();
            let _ = writeln!(text, "fn step{at}(x: vec4f) -> vec4f {{ return {}; }}", each.join(" + "));
            leaves = leaves.saturating_mul(calls(at) as u128);
        }
        (text, leaves)
    }

    fn read(text: &str) -> Result<(), OwnError> {
        let began = Instant::now();
        let outcome = Own::read(text).map(drop);
        assert!(began.elapsed() < Duration::from_secs(5), "{:?} for {} bytes", began.elapsed(), text.len());
        outcome
    }

    #[test]
    fn calls_that_fan_out_are_read_quickly_and_refused_if_they_explode() {
        for (name, calls) in SHAPES {
            for depth in (5..=64).step_by(3) {
                let (row, leaves) = row(depth, calls, "return x.wzyx * 2.0 + 1.0;");
                let pixel = format!("{row}fn pixel(c: vec4f) -> vec4f {{ return step{depth}(c); }}\n");
                let kernel = format!(
                    "{row}{BOUND}@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{
    output[id.x] = pack4x8unorm(step{depth}(unpack4x8unorm(input[id.x])));
}}\n"
                );
                let whole = judged(&kernel, |_, _| Ok(()));
                for (kind, outcome) in [("pixel", read(&pixel)), ("kernel", read(&kernel)), ("tensor", whole)] {
                    // A leaf has about twenty operations, and each call of a leaf adds a few.
                    match outcome {
                        Ok(()) => assert!(leaves < 20_000, "{kind}, {name}, {depth}: {leaves} leaves were let through"),
                        Err(error) => {
                            assert!(leaves > 500, "{kind}, {name}, {depth}: {leaves} leaves were refused: {error}");
                            assert!(
                                error.problem.contains("operations with all calls inlined; the limit is "),
                                "{error}"
                            );
                            assert!(error.line > 0, "{error}");
                            let help = error.help.unwrap();
                            assert!(help.contains(" calls `step") && help.len() < 400, "{help}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn the_refusal_names_the_estimate_the_limit_and_the_calls() {
        let (row, _) = row(18, |_| 2, "return x;");
        let error = read(&format!("{row}fn pixel(c: vec4f) -> vec4f {{ return step18(c); }}\n")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "12:4: `step11` has 108500 operations with all calls inlined; the limit is 65536"
        );
        assert_eq!(
            error.help.as_deref(),
            Some(
                "compilers inline every call, and `step11` calls `step10` 2 times, which calls `step9` 2 times, \
                 which calls `step8` 2 times, which calls `step7` 2 times, which calls `step6` 2 times, \
                 and so on for 6 more functions; \
                 write repeated calls as one call in a loop, or reuse the result of a call"
            )
        );
    }

    #[test]
    fn functions_that_are_never_called_count_too() {
        let (row, _) = row(40, |_| 2, "return x;");
        assert!(read(&format!("{row}fn pixel(c: vec4f) -> vec4f {{ return c; }}\n")).is_err());
    }

    #[test]
    fn a_long_row_of_single_calls_is_bounded_as_a_whole() {
        let body = "var y = x; y = y * y + x; y = y * y + x; y = y * y + x; y = y * y + x; return y;";
        let (mut text, mut made) = (String::new(), 0);
        for at in 0..500 {
            let call = if at == 0 { "x".to_owned() } else { format!("step{}(x)", at - 1) };
            let _ = writeln!(
                text,
                "fn step{at}(x: vec4f) -> vec4f {{ {} }}",
                body.replace("var y = x", &format!("var y = {call}"))
            );
            made += 1;
        }
        let error =
            read(&format!("{text}fn pixel(c: vec4f) -> vec4f {{ return step{}(c); }}\n", made - 1)).unwrap_err();
        assert!(
            error.problem.contains("the functions up to") && error.problem.contains("the limit is 1048576"),
            "{error}"
        );
    }

    #[test]
    fn a_loop_counts_once_and_its_calls_count_as_often_as_they_are_written() {
        let (row, _) = row(3, |_| 2, "return sin(x);");
        let text = format!(
            "{row}fn pixel(c: vec4f) -> vec4f {{
    var y = c;
    for (var i = 0; i < 1000000; i++) {{ y = step3(y); }}
    return y;
}}\n"
        );
        read(&text).unwrap();
    }

    #[test]
    fn a_switch_costs_more_with_every_case() {
        let text = |cases: usize| {
            let case = |at: usize| format!("case {at}u: {{ return c * {at}.0; }}\n");
            let cases: String = (0..cases).map(case).collect();
            format!(
                "fn pixel(c: vec4f) -> vec4f {{ switch u32(c.x * 255.0) {{\n{cases}default: {{ return c; }} }} }}\n"
            )
        };
        read(&text(100)).unwrap();
        for cases in [600, 2000] {
            let error = read(&text(cases)).unwrap_err();
            assert!(error.problem.contains("operations"), "{error}");
        }
    }

    #[test]
    fn arrays_that_are_copied_again_and_again_are_refused() {
        let copies = "b = a; a[b[3] % 7u] = 1u; a = b; b[a[5] % 7u] = 2u;\n    ".repeat(8);
        let text = format!(
            "{BOUND}@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {{
    var a: array<u32, 4096>;
    var b: array<u32, 4096>;
    {copies}output[id.x] = b[input[id.x] % 4096u];
}}\n"
        );
        let error = read(&text).unwrap_err();
        assert!(error.problem.starts_with("`main` has "), "{error}");
        assert!(error.help.unwrap().contains("pass pointers"));
        read(&text.replace(&copies, "b[1] = a[2];")).unwrap();
    }

    #[test]
    fn constants_that_double_are_refused_before_they_are_copied() {
        for (depth, fits) in [(4, true), (10, true), (24, false), (64, false), (400, false)] {
            let mut text = "const a0 = array<f32, 2>(1.0, 2.0);\n".to_owned();
            for at in 1..=depth {
                let _ = writeln!(text, "const a{at} = array(a{0}, a{0});", at - 1);
            }
            let first = "[0]".repeat(if fits { depth + 1 } else { 1 });
            let _ = writeln!(text, "fn pixel(c: vec4f) -> vec4f {{ return c * a{depth}{first}; }}");
            match read(&text) {
                Ok(()) => assert!(fits, "{depth}"),
                Err(error) => {
                    assert!(!fits, "{depth}: {error}");
                    assert!(error.problem.contains("are copied out of constants; the limit is 1048576"), "{error}");
                }
            }
        }
    }

    #[test]
    fn a_large_constant_that_is_named_often_is_refused_and_a_variable_with_its_values_is_not() {
        let table = vec!["1.0"; 4096].join(",");
        let text = |times: usize| {
            let reads = "y = y + T[i];\n    ".repeat(times);
            format!(
                "const T = array<f32, 4096>({table});
fn pixel(c: vec4f, at: vec2u) -> vec4f {{
    let i = at.x % 4096u;
    var y = 0.0;
    {reads}return c * y;
}}\n"
            )
        };
        assert!(read(&text(500)).unwrap_err().problem.contains("copied out of constants"));
        let kept = text(0).replace("fn pixel", "var<private> kept: array<f32, 4096> = T;\nfn pixel");
        read(&kept.replace("var y = 0.0;", "var y = kept[i] + kept[i + 1u];")).unwrap();
    }

    #[test]
    fn numbers_made_of_numbers_are_numbers() {
        let mut text = "const a0 = 1.5;\nconst b0 = vec4f(a0, a0, a0, a0);\n".to_owned();
        for at in 1..200 {
            let _ = writeln!(text, "const a{at} = max(a{0}, a{0}) * 0.5 + a{0} * 0.5;", at - 1);
            let _ = writeln!(text, "const b{at} = b{0} * 0.5 + b{0} * 0.5;", at - 1);
        }
        read(&format!("{text}fn pixel(c: vec4f) -> vec4f {{ return c * a199 * b199; }}\n")).unwrap();
    }
}
