//! Settings: the members of a structure that a user's shader declares.
//!
//! This module defines which types settings may have, how the text declares a default, and how values are encoded as
//! parameter words. A default fits the type of its setting, and a value takes exactly the words of its type.

use naga::{Module, ScalarKind, StructMember, Type, TypeInner, VectorSize};

use super::OwnError;
use super::tokens::{WgslToken, WgslTokenKind};

/// The type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemberKind {
    Float,
    Int,
    /// `u32`; `true` is 1 and `false` is 0.
    Unsigned,
    /// Only in pixel functions.
    Bool,
    /// A vector of this many floats: `vec2f`, `vec3f` or `vec4f`.
    Floats(usize),
}

/// One setting.
#[derive(Debug, Clone, PartialEq)]
pub struct ShaderMember {
    pub name: String,
    pub kind: MemberKind,
    /// The default, as it would be written on a command line. `None` for zero.
    pub default: Option<String>,
    /// Index of the setting's first word in the parameters.
    pub(super) word: usize,
    /// Line and column of the setting in the text.
    pub at: (u32, u32),
}

impl MemberKind {
    /// The type's name in WGSL.
    pub fn name(self) -> &'static str {
        match self {
            MemberKind::Float => "f32",
            MemberKind::Int => "i32",
            MemberKind::Unsigned => "u32",
            MemberKind::Bool => "bool",
            MemberKind::Floats(2) => "vec2f",
            MemberKind::Floats(3) => "vec3f",
            MemberKind::Floats(_) => "vec4f",
        }
    }

    /// Number of parameter words.
    pub fn words(self) -> usize {
        if let MemberKind::Floats(count) = self { count } else { 1 }
    }

    pub(super) fn of(ty: &Type) -> Option<MemberKind> {
        match ty.inner {
            TypeInner::Scalar(scalar) if scalar.width == 4 || scalar.kind == ScalarKind::Bool => match scalar.kind {
                ScalarKind::Float => Some(MemberKind::Float),
                ScalarKind::Sint => Some(MemberKind::Int),
                ScalarKind::Uint => Some(MemberKind::Unsigned),
                ScalarKind::Bool => Some(MemberKind::Bool),
                ScalarKind::AbstractInt | ScalarKind::AbstractFloat => None,
            },
            TypeInner::Vector { size, scalar } if scalar.kind == ScalarKind::Float && scalar.width == 4 => {
                Some(MemberKind::Floats(size as usize))
            }
            _ => None,
        }
    }
}

impl ShaderMember {
    /// Writes a value's words to their place.
    pub fn put(&self, value: &[u32], words: &mut [u32]) {
        words[self.word..self.word + value.len()].copy_from_slice(value);
    }
}

/// Converts the members of a structure to settings. `word` returns the index of each member's first word.
pub(super) fn of(
    (text, tokens): (&str, &[WgslToken<'_>]),
    module: &Module,
    name: &str,
    members: &[StructMember],
    mut word: impl FnMut(MemberKind, &StructMember) -> usize,
) -> Result<Vec<ShaderMember>, OwnError> {
    let written = written(tokens, name);
    let mut found = Vec::new();
    for member in members {
        let own = member.name.as_deref().unwrap_or("");
        let place = written.iter().find(|place| place.name.text == own);
        let at = place.map_or(0, |place| place.name.at);
        let Some(kind) = MemberKind::of(&module.types[member.ty]) else {
            let problem = format!("`{own}`: a setting cannot have this type");
            return Err(
                OwnError::at(text, at, problem).help("settings are f32, i32, u32, bool, vec2f, vec3f and vec4f")
            );
        };
        let default = place.and_then(|place| place.default).map(str::to_owned);
        let shown = OwnError::at(text, at, "");
        let word = word(kind, member);
        found.push(ShaderMember { name: own.to_owned(), kind, default, word, at: (shown.line, shown.column) });
    }
    Ok(found)
}

/// A member in the text. Its default is the value of a comment `// = VALUE` on the same line.
struct MemberText<'a> {
    name: WgslToken<'a>,
    default: Option<&'a str>,
}

fn written<'a>(tokens: &[WgslToken<'a>], name: &str) -> Vec<MemberText<'a>> {
    let mut found: Vec<MemberText<'a>> = Vec::new();
    let solid =
        |at: usize| tokens[at..].iter().find(|token| token.kind != WgslTokenKind::Gap).map_or("", |token| token.text);
    let begins = |at: &usize| tokens[*at].text == "struct" && solid(at + 1) == name;
    let Some(start) = (0..tokens.len()).find(begins) else { return found };
    let (mut depth, mut on_this_line) = (0, false);
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.text {
            "{" | "(" | "<" => depth += 1,
            "}" if depth == 1 => break,
            "}" | ")" | ">" => depth -= 1,
            _ if token.kind == WgslTokenKind::Word && depth == 1 && solid(at + 1) == ":" => {
                found.push(MemberText { name: *token, default: None });
                on_this_line = true;
            }
            gap if token.kind == WgslTokenKind::Gap => {
                let value = gap.strip_prefix("//").and_then(|words| words.trim_start().strip_prefix('='));
                if let (Some(value), true, Some(last)) = (value, on_this_line, found.last_mut()) {
                    last.default = Some(value.trim());
                }
                on_this_line = on_this_line && !gap.contains('\n');
            }
            _ => {}
        }
    }
    found
}

pub(super) fn is_vector(ty: &Type, length: VectorSize, kind: ScalarKind) -> bool {
    matches!(ty.inner, TypeInner::Vector { size, scalar } if size == length && scalar.kind == kind && scalar.width == 4)
}

pub(super) fn is_scalar(ty: &Type, kind: ScalarKind) -> bool {
    matches!(ty.inner, TypeInner::Scalar(scalar) if scalar.kind == kind && scalar.width == 4)
}
