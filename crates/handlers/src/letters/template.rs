//! Text templates: finds `{fps}`, `{frame}`, `{time}`, `{size}` and `{meta.KEY}` in a text, line by line.
//!
//! `{{` stands for `{`; any other word in braces is plain text. `{meta.` without a key and a closing brace is an error.

use vramp_runtime::Notes;

use super::LettersError;
use super::values::TextValue;

/// Maximum number of characters of a text. A longer text would have too many glyphs, even if every four characters
/// joined into one glyph.
const MOST_CHARACTERS: usize = 4 * super::MOST_GLYPHS;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TemplatePiece {
    Fixed(String),
    Value(TextValue),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pub(super) lines: Vec<Vec<TemplatePiece>>,
}

impl Template {
    /// Parses the text of a setting.
    pub(crate) fn read(text: &str) -> Result<Template, LettersError> {
        let count = text.chars().count();
        if count > MOST_CHARACTERS {
            return Err(LettersError::TooLong { count, most: MOST_CHARACTERS });
        }
        Ok(Template { lines: text.lines().map(pieces).collect::<Result<_, _>>()? })
    }

    /// A template of one line.
    pub(crate) fn line(pieces: impl Into<Vec<TemplatePiece>>) -> Template {
        Template { lines: vec![pieces.into()] }
    }

    /// Whether the text has placeholders.
    pub(super) fn changes(&self) -> bool {
        self.lines.iter().flatten().any(|piece| matches!(piece, TemplatePiece::Value(_)))
    }

    /// Whether the text has placeholders of notes.
    pub(super) fn has_notes(&self) -> bool {
        self.lines.iter().flatten().any(|piece| matches!(piece, TemplatePiece::Value(TextValue::Note(_))))
    }
}

impl TemplatePiece {
    pub(crate) fn fixed(text: impl Into<String>) -> TemplatePiece {
        TemplatePiece::Fixed(text.into())
    }
}

/// The beginning of the placeholder of a note.
const NOTE: &str = "{meta.";

/// The note that the text begins with, and the text after its placeholder; `None` if the text begins otherwise.
fn note(text: &str) -> Result<Option<(TextValue, &str)>, LettersError> {
    let Some(rest) = text.strip_prefix(NOTE) else { return Ok(None) };
    match rest.split_once('}') {
        Some((key, rest)) if Notes::is_key(key) => Ok(Some((TextValue::Note(key.to_owned()), rest))),
        found => {
            let key = found.map_or(rest, |(key, _)| key);
            let end = if found.is_some() { "}" } else { "" };
            Err(LettersError::NoKey { placeholder: format!("{NOTE}{}{end}", shortened(key)) })
        }
    }
}

/// The beginning of a text, for an error.
fn shortened(text: &str) -> String {
    const MOST: usize = 70;
    match text.char_indices().nth(MOST) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

fn pieces(line: &str) -> Result<Vec<TemplatePiece>, LettersError> {
    let (mut pieces, mut text, mut rest) = (Vec::new(), String::new(), line);
    while let Some(at) = rest.find('{') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with("{{") {
            text.push('{');
            rest = &rest[2..];
            continue;
        }
        let named = || {
            let behind = |value: &TextValue| rest.strip_prefix(value.placeholder()?);
            TextValue::PLACED.into_iter().find_map(|value| behind(&value).map(|behind| (value, behind)))
        };
        match note(rest)?.or_else(named) {
            Some((value, behind)) => {
                if !text.is_empty() {
                    pieces.push(TemplatePiece::Fixed(std::mem::take(&mut text)));
                }
                pieces.push(TemplatePiece::Value(value));
                rest = behind;
            }
            None => {
                text.push('{');
                rest = &rest[1..];
            }
        }
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(TemplatePiece::Fixed(text));
    }
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let lines = Template::read(text).expect("it is short").lines;
        let piece = |piece: &TemplatePiece| match piece {
            TemplatePiece::Fixed(text) => format!("[{text}]"),
            TemplatePiece::Value(value) => format!("{value:?}"),
        };
        let line = |line: &Vec<TemplatePiece>| line.iter().map(piece).collect::<Vec<_>>().join(" ");
        lines.iter().map(line).collect::<Vec<_>>().join(" / ")
    }

    #[test]
    fn placeholders_are_found_and_everything_else_is_text() {
        assert_eq!(shown("{fps} fps"), "Fps [ fps]");
        assert_eq!(shown("{frame}{time}\r\n{size}!"), "Frame Time / Size [!]");
        assert_eq!(shown("a {{fps} b {{{fps}"), "[a {fps} b {] Fps");
        assert_eq!(shown("{word} {} { {fps {FPS} }"), "[{word} {} { {fps {FPS} }]");
        assert_eq!(shown("{delta}"), "[{delta}]");
        assert_eq!(shown("{meta.n}{meta.a-b_c.d} {{meta.} {meta}"), r#"Note("n") Note("a-b_c.d") [ {meta.} {meta}]"#);
        assert_eq!(shown(""), "");
        assert_eq!(shown("a\n\nb\n"), "[a] /  / [b]");
    }

    #[test]
    fn a_note_without_a_key_is_refused_in_words() {
        let long = format!("{{meta.{}}}", "k".repeat(100));
        for (text, shown) in [
            ("a {meta.} b", "`{meta.}`"),
            ("{meta.two words}", "`{meta.two words}`"),
            ("{meta.open", "`{meta.open`"),
            ("{meta.open\n}", "`{meta.open`"),
            (&long, "kkk...}`"),
        ] {
            let error = Template::read(text).expect_err("it has no key").to_string();
            assert!(error.contains(shown) && error.contains("write `{meta.KEY}`"), "{error}");
            assert!(error.contains("or `{{meta.` for plain text"), "{error}");
        }
    }

    #[test]
    fn endless_text_is_refused_with_numbers() {
        let error = Template::read(&"x".repeat(32_001)).expect_err("it is too long").to_string();
        assert!(error.contains("32001") && error.contains("32000"), "{error}");
    }
}
