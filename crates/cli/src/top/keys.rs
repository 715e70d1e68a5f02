//! The keys of the view, and the state that they change: which table has the focus, how far each table is scrolled,
//! which setting is chosen, the input line for its value, and whether the view is paused.
//!
//! This module neither ends the run nor changes a setting: a key press returns a [`KeyAction`], and the caller acts. A
//! table is never scrolled beyond its last row. Esc closes what is on top: the input line, the help, the settings.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

use super::input::{InputLine, InputStep};
use vramp::panel::StepDirection;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyAction {
    /// Update the view.
    Look,
    /// Clear and redraw the screen.
    Redraw,
    Quit,
    /// End the run as Ctrl-C does outside of the view.
    Interrupt,
    /// Change the setting of this row by one step.
    Step {
        row: usize,
        direction: StepDirection,
    },
    /// Open the input line for the setting of this row, by [`Keys::edit`].
    Edit {
        row: usize,
    },
    /// Change a setting to the text of the input line.
    Set {
        name: String,
        text: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ViewTable {
    Handlers,
    Links,
    Events,
    /// Takes the place of the handlers.
    Settings,
}

impl ViewTable {
    const COUNT: usize = 4;
}

/// The state that keys change.
#[derive(Debug, Default)]
pub(super) struct Keys {
    paused: bool,
    help: bool,
    settings: bool,
    /// The name of the setting whose value is edited, and the line.
    input: Option<(String, InputLine)>,
    /// The place of the table that has the focus, from the top.
    chosen: usize,
    /// The chosen row of the settings.
    row: usize,
    /// Number of rows scrolled off above each table.
    above: [usize; ViewTable::COUNT],
    /// For each table: how many rows fitted when the table was last drawn, and how many rows the table had.
    shown: [(usize, usize); ViewTable::COUNT],
}

impl Keys {
    pub(super) fn is_paused(&self) -> bool {
        self.paused
    }

    pub(super) fn wants_help(&self) -> bool {
        self.help
    }

    pub(super) fn wants_settings(&self) -> bool {
        self.settings
    }

    /// The name of the setting whose value is edited, and the line.
    pub(super) fn input(&self) -> Option<(&str, &InputLine)> {
        self.input.as_ref().map(|(name, line)| (name.as_str(), line))
    }

    /// The tables that are visible, from top to bottom.
    pub(super) fn tables(&self) -> [ViewTable; 3] {
        [if self.settings { ViewTable::Settings } else { ViewTable::Handlers }, ViewTable::Links, ViewTable::Events]
    }

    /// The table that has the focus.
    pub(super) fn chosen(&self) -> ViewTable {
        self.tables()[self.chosen]
    }

    /// The chosen row of the settings.
    pub(super) fn chosen_setting(&self) -> usize {
        self.row
    }

    /// The first row to show, for a table that has `rows` rows and space for `fit` of them. The chosen setting is
    /// always visible.
    pub(super) fn first_row(&mut self, table: ViewTable, fit: usize, rows: usize) -> usize {
        let at = table as usize;
        self.shown[at] = (fit, rows);
        let mut above = self.above[at].min(rows.saturating_sub(fit));
        if table == ViewTable::Settings {
            self.row = self.row.min(rows.saturating_sub(1));
            above = above.clamp((self.row + 1).saturating_sub(fit.max(1)), self.row);
        }
        self.above[at] = above;
        above
    }

    /// Opens the input line with a text.
    pub(super) fn edit(&mut self, name: String, text: &str) {
        self.input = Some((name, InputLine::new(text)));
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> KeyAction {
        if key.kind == KeyEventKind::Release {
            return KeyAction::Look;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('c') if control => KeyAction::Interrupt,
            KeyCode::Char('l') if control => KeyAction::Redraw,
            _ if self.input.is_some() => self.type_in(key),
            _ => self.command(key),
        }
    }

    fn type_in(&mut self, key: KeyEvent) -> KeyAction {
        let Some((name, mut line)) = self.input.take() else { return KeyAction::Look };
        match line.press(key) {
            InputStep::Editing => self.input = Some((name, line)),
            InputStep::Accepted => return KeyAction::Set { name, text: line.text() },
            InputStep::Cancelled => {}
        }
        KeyAction::Look
    }

    fn command(&mut self, key: KeyEvent) -> KeyAction {
        let page = self.shown[self.chosen() as usize].0.max(2) - 1;
        // Settings that the help covers do not change.
        let row = (self.chosen() == ViewTable::Settings && !self.help).then_some(self.row);
        match (key.code, row) {
            (KeyCode::Esc, _) if self.help => self.help = false,
            (KeyCode::Esc, _) if self.settings => self.settings = false,
            (KeyCode::Char('q' | 'Q') | KeyCode::Esc, _) => return KeyAction::Quit,
            (KeyCode::Char('?' | 'h') | KeyCode::F(1), _) => self.help = !self.help,
            (KeyCode::Char('s'), _) => {
                // The settings are never opened or closed under the help.
                self.settings = self.help || !self.settings;
                (self.help, self.chosen) = (false, 0);
            }
            (KeyCode::Char('p' | ' '), _) => self.paused = !self.paused,
            // `=` is `+` without Shift on many keyboards.
            (KeyCode::Char('+' | '=') | KeyCode::Right, Some(row)) => {
                return KeyAction::Step { row, direction: StepDirection::Up };
            }
            (KeyCode::Char('-') | KeyCode::Left, Some(row)) => {
                return KeyAction::Step { row, direction: StepDirection::Down };
            }
            (KeyCode::Enter, Some(row)) => return KeyAction::Edit { row },
            (KeyCode::Tab | KeyCode::Right, _) => self.chosen = (self.chosen + 1) % 3,
            (KeyCode::BackTab | KeyCode::Left, _) => self.chosen = (self.chosen + 2) % 3,
            (KeyCode::Up | KeyCode::Char('k'), _) => self.scroll(|at| at.saturating_sub(1)),
            (KeyCode::Down | KeyCode::Char('j'), _) => self.scroll(|at| at + 1),
            (KeyCode::PageUp, _) => self.scroll(|at| at.saturating_sub(page)),
            (KeyCode::PageDown, _) => self.scroll(|at| at + page),
            (KeyCode::Home, _) => self.scroll(|_| 0),
            (KeyCode::End, _) => self.scroll(|_| usize::MAX),
            _ => {}
        }
        KeyAction::Look
    }

    /// Scrolls the table that has the focus, or chooses another setting.
    fn scroll(&mut self, to: impl FnOnce(usize) -> usize) {
        let at = self.chosen() as usize;
        let (fit, rows) = self.shown[at];
        if self.chosen() == ViewTable::Settings {
            self.row = to(self.row).min(rows.saturating_sub(1));
        } else {
            self.above[at] = to(self.above[at]).min(rows.saturating_sub(fit));
        }
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

    /// Keys with the settings open: 10 of them, 4 rows visible.
    fn with_settings() -> Keys {
        let mut keys = Keys::default();
        assert_eq!(press(&mut keys, KeyCode::Char('s')), KeyAction::Look);
        assert_eq!(keys.tables(), [ViewTable::Settings, ViewTable::Links, ViewTable::Events]);
        keys.first_row(ViewTable::Settings, 4, 10);
        keys
    }

    #[test]
    fn a_row_of_the_settings_is_chosen_and_stays_visible() {
        let mut keys = with_settings();
        let mut see = |code: KeyCode| {
            press(&mut keys, code);
            let first = keys.first_row(ViewTable::Settings, 4, 10);
            (keys.chosen_setting(), first)
        };
        assert_eq!(see(KeyCode::Up), (0, 0));
        assert_eq!(see(KeyCode::Down), (1, 0));
        assert_eq!(see(KeyCode::PageDown), (4, 1));
        assert_eq!(see(KeyCode::End), (9, 6));
        assert_eq!(see(KeyCode::Down), (9, 6));
        assert_eq!(see(KeyCode::PageUp), (6, 6));
        assert_eq!(see(KeyCode::Up), (5, 5));
        assert_eq!(see(KeyCode::Home), (0, 0));
        press(&mut keys, KeyCode::End);
        assert_eq!((keys.first_row(ViewTable::Settings, 4, 3), keys.chosen_setting()), (0, 2), "settings are gone");
        assert_eq!((keys.first_row(ViewTable::Settings, 0, 0), keys.chosen_setting()), (0, 0));
        assert_eq!(keys.first_row(ViewTable::Settings, 0, 5), 0);
    }

    #[test]
    fn keys_step_and_edit_the_chosen_setting_while_its_table_has_the_focus() {
        let mut keys = with_settings();
        press(&mut keys, KeyCode::Down);
        for (code, direction) in [
            (KeyCode::Char('+'), StepDirection::Up),
            (KeyCode::Char('='), StepDirection::Up),
            (KeyCode::Right, StepDirection::Up),
            (KeyCode::Char('-'), StepDirection::Down),
            (KeyCode::Left, StepDirection::Down),
        ] {
            assert_eq!(press(&mut keys, code), KeyAction::Step { row: 1, direction });
        }
        assert_eq!(press(&mut keys, KeyCode::Enter), KeyAction::Edit { row: 1 });
        press(&mut keys, KeyCode::Tab);
        assert_eq!(keys.chosen(), ViewTable::Links);
        for code in [KeyCode::Char('+'), KeyCode::Char('-'), KeyCode::Enter] {
            assert_eq!(press(&mut keys, code), KeyAction::Look, "another table has the focus");
        }
        assert_eq!((press(&mut keys, KeyCode::Left), keys.chosen()), (KeyAction::Look, ViewTable::Settings));
        press(&mut keys, KeyCode::Char('?'));
        assert_eq!(press(&mut keys, KeyCode::Char('+')), KeyAction::Look, "the help covers the settings");
        press(&mut keys, KeyCode::Char('s'));
        assert!(keys.wants_settings() && !keys.wants_help(), "the settings are on top again");
        press(&mut keys, KeyCode::Char('s'));
        assert_eq!((keys.wants_settings(), keys.chosen()), (false, ViewTable::Handlers));
        assert_eq!(press(&mut keys, KeyCode::Char('+')), KeyAction::Look);
    }

    #[test]
    fn every_character_is_text_in_the_input_line_and_only_ctrl_c_interrupts() {
        let mut keys = with_settings();
        keys.edit("text0.text".to_owned(), "a");
        for c in "q?sp+-h ".chars() {
            assert_eq!(press(&mut keys, KeyCode::Char(c)), KeyAction::Look);
        }
        assert_eq!(keys.input().map(|(name, line)| (name, line.text())), Some(("text0.text", "aq?sp+-h ".to_owned())));
        assert_eq!(keys.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), KeyAction::Interrupt);
        assert_eq!(keys.press(KeyEvent::new(KeyCode::Char('l'), KeyModifiers::CONTROL)), KeyAction::Redraw);
        let set = KeyAction::Set { name: "text0.text".to_owned(), text: "aq?sp+-h ".to_owned() };
        assert_eq!(press(&mut keys, KeyCode::Enter), set);
        assert_eq!(keys.input(), None);
        assert!(!keys.is_paused() && !keys.wants_help() && keys.wants_settings());
    }

    #[test]
    fn escape_closes_the_input_line_then_the_help_then_the_settings_and_then_ends_the_run() {
        let mut keys = with_settings();
        keys.edit("blur0.sigma".to_owned(), "2");
        assert_eq!((press(&mut keys, KeyCode::Esc), keys.input()), (KeyAction::Look, None));
        press(&mut keys, KeyCode::Char('?'));
        assert_eq!((press(&mut keys, KeyCode::Esc), keys.wants_help()), (KeyAction::Look, false));
        assert!(keys.wants_settings());
        assert_eq!((press(&mut keys, KeyCode::Esc), keys.wants_settings()), (KeyAction::Look, false));
        assert_eq!(press(&mut keys, KeyCode::Esc), KeyAction::Quit);
    }
}
