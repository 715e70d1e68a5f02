//! Text templates: finds `{fps}`, `{frame}`, `{time}` and `{size}` in a text, line by line.
//!
//! `{{` stands for `{`; any other word in braces is plain text.

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
        Ok(Template { lines: text.lines().map(pieces).collect() })
    }

    /// A template of one line.
    pub(crate) fn line(pieces: impl Into<Vec<TemplatePiece>>) -> Template {
        Template { lines: vec![pieces.into()] }
    }

    /// Whether the text has placeholders.
    pub(super) fn changes(&self) -> bool {
        self.lines.iter().flatten().any(|piece| matches!(piece, TemplatePiece::Value(_)))
    }
}

impl TemplatePiece {
    pub(crate) fn fixed(text: impl Into<String>) -> TemplatePiece {
        TemplatePiece::Fixed(text.into())
    }
}

fn pieces(line: &str) -> Vec<TemplatePiece> {
    let (mut pieces, mut text, mut rest) = (Vec::new(), String::new(), line);
    while let Some(at) = rest.find('{') {
        text.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with("{{") {
            text.push('{');
            rest = &rest[2..];
            continue;
        }
        let named =
            TextValue::ALL.into_iter().find_map(|value| Some((value, rest.strip_prefix(value.placeholder()?)?)));
        match named {
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
    pieces
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
        assert_eq!(shown(""), "");
        assert_eq!(shown("a\n\nb\n"), "[a] /  / [b]");
    }

    #[test]
    fn endless_text_is_refused_with_numbers() {
        let error = Template::read(&"x".repeat(32_001)).expect_err("it is too long").to_string();
        assert!(error.contains("32001") && error.contains("32000"), "{error}");
    }
}
