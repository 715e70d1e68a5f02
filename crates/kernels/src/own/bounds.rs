//! Bounds on a text before a compiler sees it.
//!
//! Owns how long and how deep a text may be.
//! Does not judge whether it is right.
//!
//! Always: what passes fits into [`STACK_BYTES`] of stack, here and in the driver's compiler, which has less.

use super::tokens::{self, WgslTokenKind};
use super::{MAX_BYTES, OwnError, growth};

/// The stack that a text within these bounds is read with.
#[cfg(not(target_arch = "wasm32"))]
pub(super) const STACK_BYTES: usize = 64 << 20;

/// Brackets in one another.
const MAX_DEPTH: usize = 48;
/// Tokens of one expression: each operator may be one level of recursion.
const MAX_EXPRESSION: usize = 512;
/// Branches behind one another, each of which is nested in the one before.
const MAX_ELSE: usize = 128;
/// Declarations: the compiler follows from one to the next.
const MAX_DECLARATIONS: usize = 512;

pub(super) fn check(text: &str) -> Result<(), OwnError> {
    if text.len() > MAX_BYTES {
        let problem = format!("it has {} bytes; at most {MAX_BYTES} are read", text.len());
        return Err(OwnError::whole(problem));
    }
    if let Some(at) = text.find(|c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return Err(OwnError::at(text, at, "this is no text: there is a control character in it"));
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
            () if depth > MAX_DEPTH => ("brackets in one another", depth, MAX_DEPTH),
            () if expression > MAX_EXPRESSION => ("words in one expression", expression, MAX_EXPRESSION),
            () if branches > MAX_ELSE => ("branches `else` in one function", branches, MAX_ELSE),
            () => continue,
        };
        return Err(OwnError::at(text, token.at, format!("{has} {what}; at most {most} are read")));
    }
    let declared = tokens::declared(&tokens);
    if let Some((_, name)) = declared.get(MAX_DECLARATIONS) {
        let problem = format!("{} declarations; at most {MAX_DECLARATIONS} are read", declared.len());
        return Err(OwnError::at(text, name.at, problem));
    }
    growth::check_constants(text, &tokens)
}
