//! Bounds on the length and nesting of a text, checked before a compiler sees the text.
//!
//! Invariant: a text that passes needs at most [`STACK_BYTES`] of stack in naga, and does not exhaust the smaller stack
//! of the driver's compiler. The compiler reports other errors in the text.

use super::tokens::{self, WgslTokenKind};
use super::{MAX_BYTES, OwnError, growth};

/// The stack of the thread that reads a text within these bounds.
#[cfg(not(target_arch = "wasm32"))]
pub(super) const STACK_BYTES: usize = 64 << 20;

/// Maximum depth of nested brackets.
const MAX_DEPTH: usize = 48;
/// Maximum number of tokens in one expression. Each operator may be one level of recursion.
const MAX_EXPRESSION: usize = 512;
/// Maximum number of `else` branches in one function. Each `else` may be nested in the `else` before it.
const MAX_ELSE: usize = 128;
/// Maximum number of declarations at module scope. The compiler recurses from one declaration to the next.
const MAX_DECLARATIONS: usize = 512;

pub(super) fn check(text: &str) -> Result<(), OwnError> {
    if text.len() > MAX_BYTES {
        let problem = format!("it has {} bytes; the limit is {MAX_BYTES}", text.len());
        return Err(OwnError::whole(problem));
    }
    if let Some(at) = text.find(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err(OwnError::at(text, at, "not a text file: it contains a control character"));
    }
    if text.trim().is_empty() {
        return Err(OwnError::whole("it is empty"));
    }
    let tokens = tokens::cut(text);
    let (mut depth, mut expression, mut branches) = (0_usize, 0_usize, 0_usize);
    for token in tokens.iter().filter(|token| token.kind != WgslTokenKind::Gap) {
        expression += 1;
        match token.text {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            "else" => branches += 1,
            "fn" => branches = 0,
            _ => {}
        }
        if matches!(token.text, "," | ";" | "{" | "}") {
            expression = 0;
        }
        let (what, has, most) = match () {
            () if depth > MAX_DEPTH => ("nested brackets", depth, MAX_DEPTH),
            () if expression > MAX_EXPRESSION => ("tokens in one expression", expression, MAX_EXPRESSION),
            () if branches > MAX_ELSE => ("`else` branches in one function", branches, MAX_ELSE),
            () => continue,
        };
        return Err(OwnError::at(text, token.at, format!("{has} {what}; the limit is {most}")));
    }
    let declared = tokens::declared(&tokens);
    if let Some((_, name)) = declared.get(MAX_DECLARATIONS) {
        let problem = format!("{} declarations; the limit is {MAX_DECLARATIONS}", declared.len());
        return Err(OwnError::at(text, name.at, problem));
    }
    growth::check_constants(text, &tokens)
}
