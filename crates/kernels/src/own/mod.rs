//! Users' own shaders: a pixel function, which is fused like any other, or a whole kernel.
//!
//! This module reads untrusted text. It determines whether the text is a pixel function or a kernel, which settings and
//! bindings the text declares and how much memory the text needs. It then makes a kernel of the text. The module reads
//! no files and runs nothing.
//!
//! Invariants: for any text, the result is either a shader that compiles, or an error. An error has a line number
//! unless the error concerns the whole text. No compiler receives a text that could exhaust the compiler's stack or
//! memory:
//!
//! - Before naga sees the text, `bounds` limits length, nesting, expressions and declarations, because compilers
//!   process these recursively. naga then runs on a thread with a large stack.
//! - `growth` limits how much a text grows inside compilers. From the tokens of the text, it estimates how many values
//!   the parser copies out of constants. From the call graph that naga has validated, it estimates the number of
//!   operations after inlining all calls, before a driver sees the text.
//!
//! A graph's shaders are read while the graph is checked, through the probe that also inspects sources, because the
//! planner must know whether a shader can be fused. The graph then holds the text that was read, so the shader that
//! runs is the shader that was planned.
//!
//! A pixel function becomes a [`Function::Own`](crate::Function::Own) of a recipe (`pixel`). A whole kernel is a recipe
//! without other parts (`whole`). Neither has a CPU twin. The handler offers only the GPU for them, so no plan places
//! them on the CPU.

mod bounds;
mod growth;
mod members;
mod pixel;
mod tokens;
mod whole;

pub use growth::MAX_OPERATIONS;
pub use members::{MemberKind, ShaderMember};
pub use pixel::OwnFunction;
pub use whole::OwnKernel;

use std::fmt;
use std::sync::Arc;

use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{Module, Span};

/// The maximum length of a text.
pub const MAX_BYTES: usize = 256 << 10;

const PIXEL_HELP: &str = "a pixel function is `fn pixel(color: vec4f) -> vec4f { return color; }`";
const KERNEL_HELP: &str = "a kernel has one entry point: `@compute @workgroup_size(64) fn main() { ... }`";

/// A user's shader.
#[derive(Debug, Clone)]
pub enum Own {
    Pixel(Arc<OwnFunction>),
    /// A kernel over the whole frame.
    Whole(Arc<OwnKernel>),
}

/// An error in a user's text, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnError {
    /// The line, counted from 1, or 0 if the error concerns the whole text.
    pub line: u32,
    /// The column, counted from 1.
    pub column: u32,
    pub problem: String,
    /// The remedy, if one is known.
    pub help: Option<String>,
    /// The source line, cut to a readable length.
    pub shown: String,
}

impl fmt::Display for OwnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}", self.problem),
            line => write!(f, "{line}:{}: {}", self.column, self.problem),
        }
    }
}

impl std::error::Error for OwnError {}

impl OwnError {
    /// An error about the whole text.
    pub fn whole(problem: impl Into<String>) -> OwnError {
        OwnError { line: 0, column: 0, problem: problem.into(), help: None, shown: String::new() }
    }

    /// An error at this byte of the text.
    pub fn at(text: &str, byte: usize, problem: impl Into<String>) -> OwnError {
        let byte = byte.min(text.len());
        let start = text[..byte].rfind('\n').map_or(0, |at| at + 1);
        let line = text[..byte].matches('\n').count() as u32 + 1;
        let column = text[start..byte].chars().count() as u32 + 1;
        let shown: String = text[start..].lines().next().unwrap_or("").chars().take(160).collect();
        OwnError { line, column, problem: problem.into(), help: None, shown: shown.replace('\t', " ") }
    }

    /// An error at the first occurrence of this word outside of comments.
    pub fn at_word(text: &str, word: &str, problem: impl Into<String>) -> OwnError {
        let at = tokens::cut(text).iter().find(|token| token.text == word).map_or(0, |token| token.at);
        OwnError::at(text, at, problem)
    }

    /// Adds an example of a valid shader if the text is empty.
    fn or_help(self, help: &str, text: &str) -> OwnError {
        if text.trim().is_empty() { self.help(help) } else { self }
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> OwnError {
        self.help = Some(help.into());
        self
    }
}

impl Own {
    pub fn read(text: &str) -> Result<Own, OwnError> {
        bounds::check(text).map_err(|error| error.or_help(PIXEL_HELP, text))?;
        on_own_stack(|| read_here(text))
    }

    /// The declared settings, in the order of the text.
    pub fn members(&self) -> &[ShaderMember] {
        match self {
            Own::Pixel(function) => function.members(),
            Own::Whole(kernel) => kernel.members(),
        }
    }
}

/// Reads a kernel with arbitrary bindings: checks the bounds of the text, parses and validates the text, and limits the
/// kernel's operations and private memory. `judge` receives the parsed module and the number of bytes that a workgroup
/// shares.
pub fn judged<R: Send>(
    text: &str,
    judge: impl FnOnce(&Module, u32) -> Result<R, OwnError> + Send,
) -> Result<R, OwnError> {
    bounds::check(text).map_err(|error| error.or_help(KERNEL_HELP, text))?;
    on_own_stack(|| {
        let module = parsed(text, text.len())?;
        let info = validated(text, text.len(), &module)?;
        if module.entry_points.is_empty() {
            return Err(OwnError::whole("it has no entry point").help(KERNEL_HELP));
        }
        let shared_bytes = whole::check_memory(text, &module, u32::MAX)?;
        growth::check_calls(text, &module, &info, MAX_OPERATIONS)?;
        judge(&module, shared_bytes)
    })
}

/// Runs the compiler on a thread with [`bounds::STACK_BYTES`] of stack. The compiler recurses over nested text, so the
/// size of this stack must suffice for every text within `bounds`.
fn on_own_stack<R: Send>(read: impl FnOnce() -> Result<R, OwnError> + Send) -> Result<R, OwnError> {
    #[cfg(target_arch = "wasm32")]
    return read();
    #[cfg(not(target_arch = "wasm32"))]
    std::thread::scope(|scope| {
        let reading = std::thread::Builder::new().name("vramp shader".to_owned()).stack_size(bounds::STACK_BYTES);
        match reading.spawn_scoped(scope, read) {
            Ok(reading) => {
                reading.join().unwrap_or_else(|_| Err(OwnError::whole("the shader compiler crashed on this text")))
            }
            Err(problem) => Err(OwnError::whole(format!("cannot start a thread for the shader compiler: {problem}"))),
        }
    })
}

fn read_here(text: &str) -> Result<Own, OwnError> {
    let tokens = tokens::cut(text);
    let names = tokens::declared(&tokens);
    if let Some((_, taken)) = names.iter().find(|(_, name)| name.text.starts_with("vramp_")) {
        let problem = format!("`{}`: names that begin with vramp_ are reserved", taken.text);
        return Err(OwnError::at(text, taken.at, problem).help("rename it"));
    }
    if let Some((_, constant)) = names.iter().find(|(keyword, _)| *keyword == "override") {
        let problem = format!("`{}`: `override` is not supported", constant.text);
        return Err(
            OwnError::at(text, constant.at, problem).help("write `const`, or declare a member of `Settings` instead")
        );
    }
    let is_kernel =
        tokens.windows(2).any(|pair| pair[0].text == "@" && ["compute", "vertex", "fragment"].contains(&pair[1].text));
    let has_pixel = names.iter().any(|(keyword, name)| *keyword == "fn" && name.text == "pixel");
    match (is_kernel, has_pixel) {
        (true, _) => Ok(Own::Whole(Arc::new(whole::read(text, &tokens)?))),
        (false, true) => Ok(Own::Pixel(Arc::new(pixel::read(text, &tokens, &names)?))),
        (false, false) => {
            // Report the compiler's errors first: a typo before `fn` hides the function.
            parsed(text, text.len())?;
            Err(OwnError::whole("it has neither a `fn pixel` nor a `@compute` entry point").help(PIXEL_HELP))
        }
    }
}

/// Parses a text. Everything after `own_bytes` is vramp's wrapper. No error is reported at a position in the wrapper.
fn parsed(text: &str, own_bytes: usize) -> Result<Module, OwnError> {
    naga::front::wgsl::parse_str(text).map_err(|error| {
        let is_ours = error.labels().all(|(span, _)| !is_own(span, own_bytes)) && error.labels().len() > 0;
        if is_ours && own_bytes < text.len() {
            // The user's text has an unclosed bracket, so the parser failed in the wrapper. Parsing the user's text
            // alone gives an error at the right position.
            if let Err(error) = parsed(&text[..own_bytes], own_bytes) {
                return error;
            }
        }
        let mut problem = error.message().to_owned();
        let label =
            error.labels().find(|(span, _)| is_own(*span, own_bytes)).map(|(span, label)| (span, label.to_owned()));
        let says_more = |label: &str| !label.is_empty() && label != "see msg" && !problem.contains(label);
        if let Some((_, label)) = label.as_ref().filter(|(_, label)| says_more(label)) {
            problem = format!("{problem} ({label})");
        }
        let notes: Vec<&str> = error.notes().take(4).collect();
        let error = match label.and_then(|(span, _)| span.to_range()) {
            Some(range) => OwnError::at(&text[..own_bytes], range.start, one_line(&problem)),
            None => OwnError::whole(one_line(&problem)),
        };
        if notes.is_empty() { error } else { error.help(notes.join("; ")) }
    })
}

/// Validates a parsed module and returns naga's analysis of it.
fn validated(text: &str, own_bytes: usize, module: &Module) -> Result<ModuleInfo, OwnError> {
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::empty());
    validator.validate(module).map_err(|error| {
        let own = error.spans().filter(|(span, _)| is_own(*span, own_bytes)).last().map(|(span, _)| *span);
        let mut words = error.as_inner().to_string();
        let mut cause = std::error::Error::source(error.as_inner());
        while let Some(deeper) = cause {
            words = deeper.to_string();
            cause = deeper.source();
        }
        match own.and_then(Span::to_range) {
            Some(range) => OwnError::at(&text[..own_bytes], range.start, one_line(&words)),
            None => OwnError::whole(one_line(&words)),
        }
    })
}

fn is_own(span: Span, own_bytes: usize) -> bool {
    span.to_range().is_some_and(|range| range.start <= own_bytes)
}

fn one_line(words: &str) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    words.join(" ")
}
