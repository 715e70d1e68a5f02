//! Mistakes in a text: what is wrong, where, and the remedy. Mistakes are displayed with the text and a caret.
//!
//! The readers and the checker find mistakes and report all of them together.
//!
//! Invariant: a list of mistakes returned as an error is not empty.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Renderer, Snippet};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The problem in one line.
    pub title: String,
    /// The place in the text, if there is a text.
    pub span: Option<Range<usize>>,
    /// The expected text.
    pub expected: String,
    /// The remedy: the nearest name or an edit.
    pub help: Option<String>,
}

impl Mistake {
    /// A mistake without a span.
    pub fn new(title: impl Into<String>, expected: impl Into<String>) -> Mistake {
        Mistake { title: title.into(), span: None, expected: expected.into(), help: None }
    }

    /// Sets the span.
    #[must_use]
    pub fn at(mut self, span: Option<Range<usize>>) -> Mistake {
        self.span = span;
        self
    }

    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Mistake {
        self.help = Some(help.into());
        self
    }

    /// Replaces the remedy if there is a hint.
    #[must_use]
    pub(crate) fn hint(mut self, hint: Option<String>) -> Mistake {
        self.help = hint.or(self.help);
        self
    }

    /// Suggests the nearest known name, if a known name is similar.
    #[must_use]
    pub fn nearest(self, name: Option<&str>) -> Mistake {
        match name {
            Some(name) => self.help(format!("did you mean `{name}`?")),
            None => self,
        }
    }
}

/// A text and the name that messages use for the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceText {
    /// A file name, or `pipeline` for text given directly.
    pub name: Arc<str>,
    pub text: Arc<str>,
}

impl SourceText {
    pub fn new(name: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> SourceText {
        SourceText { name: name.into(), text: text.into() }
    }

    /// Shows a span of the text, with a caret and these words below the span. Used for errors that are found only after
    /// reading.
    pub fn show(&self, place: &Range<usize>, words: &str, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[Group::with_level(Level::ERROR).element(self.snippet(place, words))])
    }

    fn snippet<'a>(&'a self, place: &Range<usize>, words: &'a str) -> Snippet<'a, Annotation<'a>> {
        let (window, first_line, place) = window(&self.text, place);
        let caret = AnnotationKind::Primary.span(place).label(words);
        Snippet::source(window).line_start(first_line).path(self.name.as_ref()).annotation(caret)
    }
}

/// All mistakes of one reading.
#[derive(Clone, PartialEq, Eq)]
pub struct Mistakes {
    /// `None` for a graph built in code.
    pub source: Option<SourceText>,
    /// In the order of the text.
    pub list: Vec<Mistake>,
}

crate::debug_as_display!(Mistakes);

/// Mistakes beyond this many are counted, not shown.
const SHOWN: usize = 20;
/// Bytes of a line shown on each side of a mistake.
const CONTEXT_BYTES: usize = 200;

impl Mistakes {
    /// The mistakes as text, with colour for a terminal.
    pub fn render(&self, colour: bool) -> String {
        let renderer = if colour { Renderer::styled() } else { Renderer::plain() };
        let mut shown: Vec<String> =
            self.list.iter().take(SHOWN).map(|mistake| self.render_one(&renderer, mistake)).collect();
        if self.list.len() > SHOWN {
            shown.push(format!("... and {} more mistakes", self.list.len() - SHOWN));
        }
        shown.join("\n\n")
    }

    fn render_one(&self, renderer: &Renderer, mistake: &Mistake) -> String {
        let mut group = Group::with_title(Level::ERROR.primary_title(mistake.title.as_str()));
        match (&self.source, &mistake.span) {
            (Some(source), Some(span)) => group = group.element(source.snippet(span, &mistake.expected)),
            _ => group = group.element(Level::NOTE.message(mistake.expected.as_str())),
        }
        if let Some(help) = &mistake.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        renderer.render(&[group])
    }
}

/// Returns the lines around a span (cut to a readable length), the number of the first of these lines, and the position
/// of the span within these lines. Any input gives a valid result: a pipeline can be one line of a megabyte, and a span
/// can belong to a text that has changed since.
fn window<'a>(text: &'a str, span: &Range<usize>) -> (&'a str, usize, Range<usize>) {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (start, end) = (floor(span.start), floor(span.end.max(span.start)));
    let line_start = text[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = text[end..].find('\n').map_or(text.len(), |at| end + at);
    let from = line_start.max(floor(start.saturating_sub(CONTEXT_BYTES)));
    let to = line_end.min(floor(end.min(start + CONTEXT_BYTES).saturating_add(CONTEXT_BYTES)));
    let first_line = text[..from].bytes().filter(|b| *b == b'\n').count() + 1;
    (&text[from..to], first_line, start - from..end.min(to) - from)
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Mistakes {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistake_is_shown_with_its_text_and_a_caret() {
        let mistakes = Mistakes {
            source: Some(SourceText::new("pipeline", "pattern ! blru ! null")),
            list: vec![
                Mistake::new("unknown handler `blru`", "expected a handler").at(Some(10..14)).nearest(Some("blur")),
            ],
        };
        let shown = mistakes.to_string();
        assert!(shown.contains("pattern ! blru ! null"), "{shown}");
        assert!(shown.contains("^^^^ expected a handler"), "{shown}");
        assert!(shown.contains("did you mean `blur`?"), "{shown}");
    }

    #[test]
    fn a_place_can_be_shown_without_calling_it_a_mistake() {
        let source = SourceText::new("pipeline", "image path=no.png ! null");
        let shown = source.show(&(11..17), "given here", false);
        assert!(shown.starts_with(" --> pipeline:1:12\n"), "{shown}");
        assert!(shown.contains("image path=no.png ! null") && shown.ends_with("^^^^^^ given here"), "{shown}");
    }

    #[test]
    fn any_span_can_be_shown_even_one_outside_the_text_or_inside_a_character() {
        let text = "äöü\n".repeat(400) + &"x".repeat(100_000);
        for span in [0..0, 1..2, 0..usize::MAX, 50_000..50_001, 3_000..90_000, usize::MAX..usize::MAX] {
            let mistakes = Mistakes {
                source: Some(SourceText::new("t", text.as_str())),
                list: vec![Mistake::new("bad", "good").at(Some(span))],
            };
            assert!(mistakes.to_string().len() < 10_000);
        }
    }
}
