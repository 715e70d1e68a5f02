//! A line of text that keys edit: the new value of a setting.
//!
//! Every printable key is text here. Line ends and other control characters, which only come from the value that the
//! line starts with, are kept and shown as one sign each.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct InputLine {
    chars: Vec<char>,
    /// The number of characters before the cursor.
    cursor: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InputStep {
    Editing,
    Accepted,
    Cancelled,
}

/// The visible part of the line: before the cursor, under it, and after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InputWindow {
    pub(super) before: String,
    pub(super) under: String,
    pub(super) after: String,
}

impl InputLine {
    /// Starts with a text and the cursor at its end.
    pub(super) fn new(text: &str) -> InputLine {
        let chars: Vec<char> = text.chars().collect();
        InputLine { cursor: chars.len(), chars }
    }

    pub(super) fn text(&self) -> String {
        self.chars.iter().collect()
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> InputStep {
        let is_plain = !key.modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT);
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return InputStep::Accepted,
            KeyCode::Esc => return InputStep::Cancelled,
            KeyCode::Backspace => self.remove_before(),
            // Some terminals send this for the backspace key.
            KeyCode::Char('h') if control => self.remove_before(),
            KeyCode::Char('u') if control => {
                self.chars.drain(..self.cursor);
                self.cursor = 0;
            }
            KeyCode::Delete if self.cursor < self.chars.len() => drop(self.chars.remove(self.cursor)),
            KeyCode::Left => self.cursor = self.cursor.saturating_sub(1),
            KeyCode::Right => self.cursor = (self.cursor + 1).min(self.chars.len()),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.chars.len(),
            KeyCode::Char(c) if is_plain => {
                self.chars.insert(self.cursor, c);
                self.cursor += 1;
            }
            _ => {}
        }
        InputStep::Editing
    }

    /// The part of the line around the cursor that fits into `width` characters, the cursor included.
    pub(super) fn window(&self, width: usize) -> InputWindow {
        // The cursor may stand behind the last character, so it needs a place of its own.
        let first = (self.cursor + 1).saturating_sub(width.max(1));
        let last = (first + width.max(1)).min(self.chars.len());
        let part = |from: usize, to: usize| visible(self.chars.get(from..to.max(from)).unwrap_or_default());
        let under = self.chars.get(self.cursor).map_or_else(|| " ".to_owned(), |c| visible(&[*c]));
        InputWindow { before: part(first, self.cursor), under, after: part(self.cursor + 1, last) }
    }

    fn remove_before(&mut self) {
        if let Some(before) = self.cursor.checked_sub(1) {
            self.chars.remove(before);
            self.cursor = before;
        }
    }
}

/// Text with a visible sign for each control character.
pub(super) fn visible(text: &[char]) -> String {
    let sign = |c: &char| match c {
        '\n' => '\u{21b5}',
        c if c.is_control() => '\u{fffd}',
        c => *c,
    };
    text.iter().map(sign).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(line: &mut InputLine, codes: &[KeyCode]) {
        for code in codes {
            assert_eq!(line.press(KeyEvent::new(*code, KeyModifiers::NONE)), InputStep::Editing);
        }
    }

    #[test]
    fn keys_write_and_remove_text_at_the_cursor() {
        let mut line = InputLine::new("2.5");
        press(&mut line, &[KeyCode::Backspace, KeyCode::Char('7'), KeyCode::Home, KeyCode::Char('1')]);
        assert_eq!(line.text(), "12.7");
        press(&mut line, &[KeyCode::Delete, KeyCode::End, KeyCode::Char('5'), KeyCode::Left, KeyCode::Right]);
        press(&mut line, &[KeyCode::Backspace]);
        assert_eq!(line.text(), "1.7");
    }

    #[test]
    fn the_ends_of_the_line_stop_the_cursor() {
        let mut line = InputLine::new("");
        press(&mut line, &[KeyCode::Backspace, KeyCode::Delete, KeyCode::Left, KeyCode::Right, KeyCode::Char('ä')]);
        assert_eq!(line.text(), "ä");
        press(&mut line, &[KeyCode::Delete, KeyCode::Home, KeyCode::Backspace]);
        assert_eq!(line.text(), "ä");
    }

    #[test]
    fn keys_with_control_or_alt_write_nothing() {
        let mut line = InputLine::new("abc");
        line.press(KeyEvent::new(KeyCode::Char('x'), KeyModifiers::CONTROL));
        line.press(KeyEvent::new(KeyCode::Char('x'), KeyModifiers::ALT));
        assert_eq!(line.text(), "abc");
        line.press(KeyEvent::new(KeyCode::Char('h'), KeyModifiers::CONTROL));
        assert_eq!(line.text(), "ab");
        line.press(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        assert_eq!(line.text(), "");
    }

    #[test]
    fn the_window_contains_the_cursor_at_every_width() {
        let mut line = InputLine::new("0123456789");
        let window = line.window(5);
        assert_eq!((window.before.as_str(), window.under.as_str(), window.after.as_str()), ("6789", " ", ""));
        press(&mut line, &[KeyCode::Home]);
        let window = line.window(5);
        assert_eq!((window.before.as_str(), window.under.as_str(), window.after.as_str()), ("", "0", "1234"));
        for cursor in 0..=10 {
            line.cursor = cursor;
            for width in 0..15 {
                let InputWindow { before, under, after } = line.window(width);
                let shown = before.chars().count() + under.chars().count() + after.chars().count();
                assert!(shown <= width.max(1), "{shown} of {width} at {cursor}");
            }
        }
        assert_eq!(InputLine::new("a\nb\t").window(9).before, "a\u{21b5}b\u{fffd}");
    }
}
