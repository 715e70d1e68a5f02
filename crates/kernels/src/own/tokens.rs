//! A tokenizer for WGSL, with which declared names are found and renamed.
//!
//! The tokenizer separates words, numbers, comments and signs, and does not interpret them. Concatenating all tokens
//! gives the text again.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WgslTokenKind {
    /// A name or keyword.
    Word,
    /// A number with its suffix.
    Number,
    /// A comment or white space.
    Gap,
    /// Any other single character.
    Sign,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WgslToken<'a> {
    pub(super) kind: WgslTokenKind,
    pub(super) text: &'a str,
    /// The token's offset in the text, in bytes.
    pub(super) at: usize,
}

/// The character after every name that must become unique to a part. `_` and the part's index replace this character.
pub(super) const MARK: char = '\u{1}';

/// Splits a text into tokens.
pub(super) fn cut(text: &str) -> Vec<WgslToken<'_>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let (kind, length) = if first.is_whitespace() {
            (WgslTokenKind::Gap, run(rest, char::is_whitespace))
        } else if rest.starts_with("//") {
            (WgslTokenKind::Gap, rest.find('\n').unwrap_or(rest.len()))
        } else if rest.starts_with("/*") {
            (WgslTokenKind::Gap, block_comment(rest))
        } else if first.is_ascii_digit() {
            // A suffix and a decimal point belong to the number. The sign of an exponent becomes a separate token,
            // which does no harm.
            (WgslTokenKind::Number, run(rest, |c| is_word(c) || c == '.'))
        } else if is_word(first) {
            (WgslTokenKind::Word, run(rest, is_word))
        } else {
            (WgslTokenKind::Sign, first.len_utf8())
        };
        tokens.push(WgslToken { kind, text: &rest[..length], at });
        at += length;
    }
    tokens
}

/// For each declaration at module scope, the keyword and the token of the declared name.
pub(super) fn declared<'a>(tokens: &[WgslToken<'a>]) -> Vec<(&'a str, WgslToken<'a>)> {
    let mut found = Vec::new();
    let mut depth = 0_i32;
    let mut after: Option<&str> = None;
    for token in tokens.iter().filter(|token| token.kind != WgslTokenKind::Gap) {
        match token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        match after {
            _ if depth > 0 => {}
            // In `var<storage, read> name`, the words in the list are not names.
            Some("var<") => {
                if token.text == ">" {
                    after = Some("var");
                }
            }
            Some("var") if token.text == "<" => after = Some("var<"),
            Some(keyword) if token.kind == WgslTokenKind::Word => {
                found.push((keyword, *token));
                after = None;
            }
            _ => {
                after = ["fn", "struct", "alias", "const", "override", "var"].into_iter().find(|k| *k == token.text);
            }
        }
    }
    found
}

/// The text with a mark after each of these names, except where the word is the name of a member or of an attribute.
pub(super) fn marked(tokens: &[WgslToken<'_>], names: &[&str]) -> String {
    let mut out = String::with_capacity(tokens.len() * 8);
    let mut struct_depth: Option<i32> = None;
    let mut depth = 0_i32;
    let mut before = "";
    let solid: Vec<usize> = (0..tokens.len()).filter(|at| tokens[*at].kind != WgslTokenKind::Gap).collect();
    let mut next = solid.iter().skip(1);
    for token in tokens {
        out.push_str(token.text);
        if token.kind == WgslTokenKind::Gap {
            continue;
        }
        let following = next.next().map_or("", |at| tokens[*at].text);
        match token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth -= 1;
                struct_depth = struct_depth.filter(|at| depth > *at);
            }
            "struct" => struct_depth = Some(depth),
            _ => {}
        }
        let member = struct_depth.is_some_and(|at| depth == at + 1) && following == ":";
        if token.kind == WgslTokenKind::Word && names.contains(&token.text) && !matches!(before, "." | "@") && !member {
            out.push(MARK);
        }
        before = token.text;
    }
    out
}

fn run(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}

/// The length of a block comment; block comments nest.
fn block_comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while let Some(next) = text[at..].find(['/', '*']) {
        at += next;
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "/* a /* b */ fn no() {} */ const x = 1.0f; // fn nor() {}\n\
        struct S { x: f32, @align(16) f: vec2<f32> }\nvar<private> kept: array<S, 2>;\n\
        fn f(c: vec4f) -> f32 { let x_ = c.x + x; return x_ * kept[0].f.x + f32(x); }\n";

    #[test]
    fn tokens_are_the_text() {
        for text in [TEXT, "", "/*", "1.e5", "ä + ö // ß", "\r\n\t"] {
            assert_eq!(cut(text).iter().map(|token| token.text).collect::<String>(), text);
        }
    }

    #[test]
    fn only_what_stands_outermost_is_declared() {
        let tokens = cut(TEXT);
        let names: Vec<_> = declared(&tokens).into_iter().map(|(keyword, name)| (keyword, name.text)).collect();
        assert_eq!(names, [("const", "x"), ("struct", "S"), ("var", "kept"), ("fn", "f")]);
    }

    #[test]
    fn names_are_marked_and_members_are_not() {
        let tokens = cut(TEXT);
        let marked = marked(&tokens, &["x", "S", "kept", "f"]).replace(MARK, "_7");
        assert!(marked.starts_with("/* a /* b */ fn no() {} */ const x_7 = 1.0f; // fn nor() {}\n"), "{marked}");
        assert!(marked.contains("struct S_7 { x: f32, @align(16) f: vec2<f32> }"), "{marked}");
        assert!(marked.contains("var<private> kept_7: array<S_7, 2>;"), "{marked}");
        assert!(marked.contains("let x_ = c.x + x_7; return x_ * kept_7[0].f.x + f32(x_7);"), "{marked}");
    }
}
