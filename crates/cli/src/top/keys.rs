//! The keys of the view, and the state that they change: which table has the focus, how far each table is scrolled,
//! and whether the view is paused.
//!
//! This module does not end the run: a key press returns a [`KeyAction`], and the caller acts. A table is never
//! scrolled beyond its last row.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyAction {
    /// Update the view.
    Look,
    /// Clear and redraw the screen.
    Redraw,
    Quit,
    /// End the run as Ctrl-C does outside of the view.
    Interrupt,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ViewTable {
    Handlers,
    Links,
    Events,
}

impl ViewTable {
    pub(super) const ALL: [ViewTable; 3] = [ViewTable::Handlers, ViewTable::Links, ViewTable::Events];
}

/// The state that keys change.
#[derive(Debug, Default)]
pub(super) struct Keys {
    paused: bool,
    help: bool,
    chosen: usize,
    /// Number of rows scrolled off above each table.
    above: [usize; 3],
    /// For each table: how many rows fitted when the table was last drawn, and how many rows the table had.
    shown: [(usize, usize); 3],
}

impl Keys {
    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    pub(super) fn wants_help(&self) -> bool {
        self.help
    }

    pub(super) fn chosen(&self) -> ViewTable {
        ViewTable::ALL[self.chosen]
    }

    /// The first row to show, for a table that has `rows` rows and space for `fit` of them.
    pub(super) fn first_row(&mut self, table: ViewTable, fit: usize, rows: usize) -> usize {
        let at = table as usize;
        self.shown[at] = (fit, rows);
        self.above[at] = self.above[at].min(rows.saturating_sub(fit));
        self.above[at]
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> KeyAction {
        if key.kind == KeyEventKind::Release {
            return KeyAction::Look;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let page = self.shown[self.chosen].0.max(2) - 1;
        match key.code {
            KeyCode::Char('c') if control => return KeyAction::Interrupt,
            KeyCode::Char('l') if control => return KeyAction::Redraw,
            KeyCode::Esc if self.help => self.help = false,
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => return KeyAction::Quit,
            KeyCode::Char('?' | 'h') | KeyCode::F(1) => self.help = !self.help,
            KeyCode::Char('p' | ' ') => self.paused = !self.paused,
            KeyCode::Tab | KeyCode::Right => self.chosen = (self.chosen + 1) % 3,
            KeyCode::BackTab | KeyCode::Left => self.chosen = (self.chosen + 2) % 3,
            KeyCode::Up | KeyCode::Char('k') => self.scroll(|above| above.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.scroll(|above| above + 1),
            KeyCode::PageUp => self.scroll(|above| above.saturating_sub(page)),
            KeyCode::PageDown => self.scroll(|above| above + page),
            KeyCode::Home => self.scroll(|_| 0),
            KeyCode::End => self.scroll(|_| usize::MAX),
            _ => {}
        }
        KeyAction::Look
    }

    fn scroll(&mut self, to: impl FnOnce(usize) -> usize) {
        let (fit, rows) = self.shown[self.chosen];
        self.above[self.chosen] = to(self.above[self.chosen]).min(rows.saturating_sub(fit));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(keys: &mut Keys, code: KeyCode) -> KeyAction {
        keys.press(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn keys_end_pause_and_explain() {
        let mut keys = Keys::default();
        assert_eq!(press(&mut keys, KeyCode::Char('q')), KeyAction::Quit);
        assert_eq!(press(&mut keys, KeyCode::Esc), KeyAction::Quit);
        assert_eq!(keys.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), KeyAction::Interrupt);
        assert_eq!(press(&mut keys, KeyCode::Char('c')), KeyAction::Look);
        press(&mut keys, KeyCode::Char(' '));
        assert!(keys.is_paused());
        press(&mut keys, KeyCode::Char('p'));
        assert!(!keys.is_paused());
        press(&mut keys, KeyCode::Char('?'));
        assert!(keys.wants_help());
        assert_eq!(
            (press(&mut keys, KeyCode::Esc), keys.wants_help()),
            (KeyAction::Look, false),
            "it closes the help first"
        );
    }

    #[test]
    fn a_table_scrolls_to_its_last_row_and_no_further() {
        let mut keys = Keys::default();
        assert_eq!(keys.first_row(ViewTable::Handlers, 4, 10), 0);
        for _ in 0..20 {
            press(&mut keys, KeyCode::Down);
        }
        assert_eq!(keys.first_row(ViewTable::Handlers, 4, 10), 6);
        press(&mut keys, KeyCode::PageUp);
        assert_eq!(keys.first_row(ViewTable::Handlers, 4, 10), 3);
        press(&mut keys, KeyCode::End);
        assert_eq!(keys.first_row(ViewTable::Handlers, 8, 10), 2, "a window that has grown shows what fits");
        press(&mut keys, KeyCode::Tab);
        assert_eq!(keys.chosen(), ViewTable::Links);
        press(&mut keys, KeyCode::Down);
        assert_eq!(keys.first_row(ViewTable::Links, 4, 3), 0);
        press(&mut keys, KeyCode::BackTab);
        assert_eq!((keys.chosen(), keys.first_row(ViewTable::Handlers, 8, 10)), (ViewTable::Handlers, 2));
    }
}
