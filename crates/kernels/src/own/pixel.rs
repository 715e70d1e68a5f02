//! A user's pixel function: `fn pixel(color: vec4f, at: vec2u, frame: Frame, settings: Settings) -> vec4f`.
//!
//! This module checks the signature, lays out the parameter words, and appends a wrapper with which the function can be
//! part of a recipe. The function has no CPU twin.
//!
//! Every name that the text declares gets a mark, which becomes the part's index when a kernel is composed. Names are
//! found by tokens, so members, swizzles and comments are not marked. `Frame` and the wrapper follow the user's text,
//! so that line numbers in messages are those of the user's text. The function is validated a second time inside a
//! kernel, because some errors only occur there.
//!
//! Invariant: the wrapper converts levels 0..=255 to 0..=1 for the function, and clamps the function's result and
//! rounds it half up to 0..=255, so that the function can be fused.

use std::fmt::Write as _;

use naga::{AddressSpace, Handle, ScalarKind, Type, TypeInner, VectorSize};

use super::members::{MemberKind, ShaderMember, is_vector};
use super::tokens::{MARK, WgslToken};
use super::{MAX_OPERATIONS, OwnError, growth, members, parsed, tokens, validated, whole};

/// The type of the `frame` parameter. It is appended to the user's text, so that the text's line numbers do not change.
const FRAME: &str = "\nstruct Frame { size: vec2<u32>, number: u32, time: f32 }\n";

/// Number of pixels that one invocation usually computes. The kernel contains one inlined copy of the function for each
/// of these pixels.
const PIXELS: u64 = 4;

const HELP: &str = "a pixel function is `fn pixel(color: vec4f, at: vec2u, frame: Frame, settings: Settings) -> \
                    vec4f`; all parameters but `color` may be left out";

/// A user's pixel function.
#[derive(Debug)]
pub struct OwnFunction {
    /// The text and the wrapper, with a mark after every name that they declare.
    marked: String,
    members: Vec<ShaderMember>,
    words: usize,
}

impl OwnFunction {
    /// The name of the wrapper.
    pub(crate) const NAME: &'static str = "vramp_own";

    /// The text as part `index` of a kernel, with names that are unique in the kernel.
    pub(crate) fn wgsl(&self, index: usize) -> String {
        self.marked.replace(MARK, &format!("_{index}"))
    }

    /// Whether both functions give the same code and read the same parameter words.
    pub fn is_same(&self, other: &OwnFunction) -> bool {
        self.marked == other.marked && self.words == other.words
    }

    /// Number of parameter words.
    pub fn words(&self) -> usize {
        self.words
    }

    /// The declared settings.
    pub fn members(&self) -> &[ShaderMember] {
        &self.members
    }

    /// Writes the frame's time in seconds to the parameter word for it.
    pub fn put_time(&self, seconds: f32, words: &mut [u32]) {
        words[0] = seconds.to_bits();
    }
}

pub(super) fn read(
    text: &str,
    tokens: &[WgslToken<'_>],
    names: &[(&str, WgslToken<'_>)],
) -> Result<OwnFunction, OwnError> {
    refuse_what_needs_a_kernel(text, tokens, names)?;
    let checked = format!("{text}{FRAME}");
    let module = parsed(&checked, text.len())?;
    let info = validated(&checked, text.len(), &module)?;
    whole::check_memory(text, &module, whole::MAX_WORKGROUP_BYTES)?;
    growth::check_calls(text, &module, &info, MAX_OPERATIONS / PIXELS)?;
    let place = names.iter().find(|(keyword, name)| *keyword == "fn" && name.text == "pixel").map_or(0, |(_, n)| n.at);
    let wrong = |problem: String| OwnError::at(text, place, problem).help(HELP);
    let named = |name: &str| module.functions.iter().find(|(_, function)| function.name.as_deref() == Some(name));
    let Some((_, pixel)) = named("pixel") else { return Err(wrong("there is no `fn pixel`".into())) };
    let color = |ty: Handle<Type>| is_vector(&module.types[ty], VectorSize::Quad, ScalarKind::Float);
    if !pixel.result.as_ref().is_some_and(|result| color(result.ty)) {
        return Err(wrong("`pixel` does not return a `vec4f`".into()));
    }
    if !pixel.arguments.first().is_some_and(|argument| color(argument.ty)) {
        return Err(wrong("the first parameter of `pixel` is not a `vec4f`".into()));
    }
    let mut given = vec!["vec4<f32>(c) / 255.0".to_owned()];
    let mut members = Vec::new();
    let mut seen: Vec<&str> = Vec::new();
    for argument in &pixel.arguments[1..] {
        let ty = &module.types[argument.ty];
        let name = argument.name.as_deref().unwrap_or("");
        let what = match (&ty.inner, ty.name.as_deref()) {
            _ if is_vector(ty, VectorSize::Bi, ScalarKind::Uint) => {
                given.push("vec2<u32>(at)".to_owned());
                "vec2u"
            }
            _ if is_vector(ty, VectorSize::Bi, ScalarKind::Float) => {
                given.push("vec2<f32>(at) + 0.5".to_owned());
                "vec2f"
            }
            (TypeInner::Struct { .. }, Some("Frame")) => {
                given.push(format!("Frame{MARK}(vec2<u32>(frame_size()), word(4u), bitcast<f32>(word(k)))"));
                "Frame"
            }
            (TypeInner::Struct { members: own, .. }, Some("Settings")) => {
                let mut next = 1;
                members = members::of((text, tokens), &module, "Settings", own, |kind, _| {
                    next += kind.words();
                    next - kind.words()
                })?;
                given.push(settings(&members));
                "Settings"
            }
            _ => return Err(wrong(format!("the parameter `{name}` of `pixel` has an unsupported type"))),
        };
        if seen.contains(&what) {
            return Err(wrong(format!("`pixel` has two parameters of type `{what}`")));
        }
        seen.push(what);
    }
    let mut own: Vec<&str> = names.iter().map(|(_, name)| name.text).collect();
    own.push("Frame");
    let mut marked = tokens::marked(tokens, &own);
    let _ = write!(
        marked,
        "{}fn {name}{MARK}(c: vec4<i32>, at: vec2<i32>, k: u32) -> vec4<i32> {{
    let made = pixel{MARK}({given});
    return clamp(vec4<i32>(floor(clamp(made, vec4<f32>(0.0), vec4<f32>(1.0)) * 255.0 + 0.5)), vec4<i32>(0), vec4<i32>(255));
}}
",
        FRAME.replace("Frame", &format!("Frame{MARK}")),
        name = OwnFunction::NAME,
        given = given.join(", "),
    );
    let words = 1 + members.iter().map(|member| member.kind.words()).sum::<usize>();
    let function = OwnFunction { marked, members, words };
    check_composed(text, function)
}

/// A WGSL expression that constructs the settings from parameter words.
fn settings(members: &[ShaderMember]) -> String {
    let word = |at: usize| format!("word(k + {at}u)");
    let float = |at: usize| format!("bitcast<f32>({})", word(at));
    let values: Vec<String> = members
        .iter()
        .map(|member| match member.kind {
            MemberKind::Float => float(member.word),
            MemberKind::Int => format!("bitcast<i32>({})", word(member.word)),
            MemberKind::Unsigned => word(member.word),
            MemberKind::Bool => format!("({} != 0u)", word(member.word)),
            MemberKind::Floats(count) => {
                let each: Vec<String> = (0..count).map(|at| float(member.word + at)).collect();
                format!("vec{count}<f32>({})", each.join(", "))
            }
        })
        .collect();
    format!("Settings{MARK}({})", values.join(", "))
}

/// Built-ins, directives and statements that a pixel function cannot use.
const NOT_HERE: [&str; 8] = [
    "workgroupBarrier",
    "storageBarrier",
    "textureBarrier",
    "workgroupUniformLoad",
    "enable",
    "requires",
    "diagnostic",
    "discard",
];

/// Refuses barriers and directives, which need a whole kernel, and `discard` and derivatives, which need a fragment
/// shader. Also refuses a declaration of `Frame`, which vramp appends. [`whole::check_memory`] refuses bindings.
fn refuse_what_needs_a_kernel(
    text: &str,
    tokens: &[WgslToken<'_>],
    names: &[(&str, WgslToken<'_>)],
) -> Result<(), OwnError> {
    if let Some((_, name)) = names.iter().find(|(_, name)| name.text == "Frame") {
        let problem = "`Frame` is declared already: size, number and time of the frame";
        return Err(OwnError::at(text, name.at, problem).help("remove or rename this declaration"));
    }
    let is_derivative = |word: &str| ["dpdx", "dpdy", "fwidth"].iter().any(|start| word.starts_with(start));
    match tokens.iter().find(|token| NOT_HERE.contains(&token.text) || is_derivative(token.text)) {
        None => Ok(()),
        Some(token) => {
            let problem = format!("a pixel function cannot use `{}`", token.text);
            let help = if is_derivative(token.text) || token.text == "discard" {
                "only fragment shaders can use it"
            } else {
                "a whole kernel can use it: `@compute @workgroup_size(8, 8) fn main`"
            };
            Err(OwnError::at(text, token.at, problem).help(help))
        }
    }
}

/// Validates the function inside a kernel, because some errors only occur there. The kernel contains the user's lines
/// as one block, from which the line of an error in the user's text is computed.
fn check_composed(text: &str, function: OwnFunction) -> Result<OwnFunction, OwnError> {
    let function = std::sync::Arc::new(function);
    let recipe = crate::Recipe::of(&crate::head::load_here::LOAD).then(&function);
    for shader in recipe.shaders("own") {
        let checked = naga::front::wgsl::parse_str(&shader.wgsl).map_err(|error| error.message().to_owned());
        let module = checked.map_err(|problem| OwnError::whole(super::one_line(&problem)))?;
        validated(&shader.wgsl, shader.wgsl.len(), &module).map_err(|error| {
            // Part 0 is the head, part 1 is this function. The columns of errors do not match the user's text, because
            // the names in the kernel are longer.
            let begin = shader.wgsl.find(&function.wgsl(1)).unwrap_or(0);
            let before = shader.wgsl[..begin].matches('\n').count() as u32;
            match text.lines().nth(error.line.saturating_sub(before + 1) as usize) {
                Some(shown) if error.line > before => {
                    OwnError { line: error.line - before, column: 1, shown: shown.to_owned(), ..error }
                }
                _ => OwnError::whole(error.problem),
            }
        })?;
    }
    drop(recipe);
    std::sync::Arc::try_unwrap(function).map_err(|_| OwnError::whole("internal error: the function is still in use"))
}

/// Whether a pixel function may declare variables in this address space. Variables that are bound or shared are
/// refused.
pub(super) fn is_allowed(space: AddressSpace) -> bool {
    matches!(space, AddressSpace::Private)
}
