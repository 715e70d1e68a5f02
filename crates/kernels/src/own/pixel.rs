//! A user's pixel function: `fn pixel(color: vec4f, at: vec2u, frame: Frame, settings: Settings) -> vec4f`.
//!
//! Owns its signature, its parameter words, and the wrapper that lets it stand among vramp's own functions.
//! Does not have a twin on the host.
//!
//! Always: levels 0..=255 become 0..=1 and back, rounded half up after clamping, so that it can be fused.

use std::fmt::Write as _;

use naga::{AddressSpace, Handle, ScalarKind, Type, TypeInner, VectorSize};

use super::members::{MemberKind, ShaderMember, is_vector};
use super::tokens::{MARK, WgslToken};
use super::{MAX_OPERATIONS, OwnError, growth, members, parsed, tokens, validated, whole};

/// What every pixel function may ask for; it stands behind the user's text, whose lines stay what they are.
const FRAME: &str = "\nstruct Frame { size: vec2<u32>, number: u32, time: f32 }\n";

/// Pixels that one invocation usually makes, each with a copy of the function.
const PIXELS: u64 = 4;

const HELP: &str = "it is `fn pixel(color: vec4f, at: vec2u, frame: Frame, settings: Settings) -> vec4f`; all but the \
                    colour may be left out";

/// A pixel function of somebody's own.
#[derive(Debug)]
pub struct OwnFunction {
    /// Its text and the wrapper, with a mark behind every name that it declares.
    marked: String,
    members: Vec<ShaderMember>,
    words: usize,
}

impl OwnFunction {
    /// The name of the wrapper.
    pub(crate) const NAME: &'static str = "vramp_own";

    /// Its text as one part of a kernel, all of its names its own.
    pub(crate) fn wgsl(&self, index: usize) -> String {
        self.marked.replace(MARK, &format!("_{index}"))
    }

    /// Parameter words it takes.
    pub fn words(&self) -> usize {
        self.words
    }

    /// The settings it declares.
    pub fn members(&self) -> &[ShaderMember] {
        &self.members
    }

    /// Puts the frame's time, in seconds, among the words.
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
            _ => return Err(wrong(format!("`pixel` cannot be given its parameter `{name}`"))),
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

/// The constructor of the settings from parameter words.
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

/// What belongs to a kernel.
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

/// Bindings, barriers and directives belong to a kernel: a pixel function stands in somebody else's.
fn refuse_what_needs_a_kernel(
    text: &str,
    tokens: &[WgslToken<'_>],
    names: &[(&str, WgslToken<'_>)],
) -> Result<(), OwnError> {
    if let Some((_, name)) = names.iter().find(|(_, name)| name.text == "Frame") {
        let problem = "`Frame` is declared already: size, number and time of the frame";
        return Err(OwnError::at(text, name.at, problem).help("leave this out, or call it something else"));
    }
    let is_derivative = |word: &str| ["dpdx", "dpdy", "fwidth"].iter().any(|start| word.starts_with(start));
    match tokens.iter().find(|token| NOT_HERE.contains(&token.text) || is_derivative(token.text)) {
        None => Ok(()),
        Some(token) => {
            let problem = format!("a pixel function cannot use `{}`", token.text);
            let help = if is_derivative(token.text) || token.text == "discard" {
                "that is for fragment shaders"
            } else {
                "a whole kernel may: `@compute @workgroup_size(8, 8) fn main`"
            };
            Err(OwnError::at(text, token.at, problem).help(help))
        }
    }
}

/// What only shows inside a kernel, such as derivatives. The kernel has the user's lines in a row.
fn check_composed(text: &str, function: OwnFunction) -> Result<OwnFunction, OwnError> {
    let function = std::sync::Arc::new(function);
    let recipe = crate::Recipe::of(&crate::head::load_here::LOAD).then(&function);
    for shader in recipe.shaders("own") {
        let checked = naga::front::wgsl::parse_str(&shader.wgsl).map_err(|error| error.message().to_owned());
        let module = checked.map_err(|problem| OwnError::whole(super::one_line(&problem)))?;
        validated(&shader.wgsl, shader.wgsl.len(), &module).map_err(|error| {
            // Part 0 is the head, part 1 this one. Names have grown, so that columns are not those of the user.
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
    std::sync::Arc::try_unwrap(function).map_err(|_| OwnError::whole("somebody kept the function"))
}

/// What a pixel function may declare for everybody: nothing that is bound or shared.
pub(super) fn is_allowed(space: AddressSpace) -> bool {
    matches!(space, AddressSpace::Private)
}
