//! The settings of a run as a table that keys change, for views of a run: `vramp top`, and windows.
//!
//! [`Controls`] check every value, so this module does not. Changes are made on the thread of `changes`; the view
//! continues meanwhile and shows the result when it is there.

mod changes;
mod step;

pub use changes::ChangeStatus;
pub use step::StepDirection;

use std::io;

use vramp_plan::catalog::Liveness;

use crate::{Controls, SettingState};
use changes::{Changes, WantedChange};
use step::{Stepped, step, type_of};

/// What the view shows of the settings.
#[derive(Debug, Default)]
pub struct SettingsText {
    pub rows: Vec<SettingRow>,
    pub status: ChangeStatus,
}

/// One setting.
#[derive(Debug)]
pub struct SettingRow {
    /// Columns: name, value, liveness, what values are valid.
    pub cells: [String; 4],
    pub is_fixed: bool,
}

/// The settings of a run, as last read.
pub struct SettingsPanel {
    controls: Controls,
    states: Vec<SettingState>,
    changes: Changes,
    /// Whether the view can edit a value as text.
    can_edit: bool,
}

impl SettingsPanel {
    pub fn of(controls: Controls) -> io::Result<SettingsPanel> {
        let changes = Changes::of(controls.clone())?;
        Ok(SettingsPanel { controls, states: Vec::new(), changes, can_edit: true })
    }

    /// The same for a view that only steps values.
    #[must_use]
    pub fn without_editing(self) -> SettingsPanel {
        SettingsPanel { can_edit: false, ..self }
    }

    /// Reads all settings again. Rows that keys name are those of the latest text.
    pub fn text(&mut self) -> SettingsText {
        // The status first: a row is never older than a status that tells of its change.
        let status = self.changes.status();
        self.states = self.controls.settings();
        SettingsText { rows: self.states.iter().map(row).collect(), status }
    }

    /// Whether the status has changed since the latest text.
    pub fn has_news(&self) -> bool {
        self.changes.has_news()
    }

    /// Changes the setting of a row by one step.
    pub fn step(&self, row: usize, direction: StepDirection) {
        let Some(state) = self.states.get(row) else { return };
        if self.refuses(state) {
            return;
        }
        let name = name(state);
        let now = self.latest(&name);
        let declared = self.controls.type_of(&state.handler, &state.key);
        let value_type = declared.unwrap_or_else(|| type_of(now.as_deref().unwrap_or_default()));
        match step(value_type, now.as_deref(), direction) {
            Stepped::To(value) => self.set(name, value),
            Stepped::AtEnd => {
                let end = if direction == StepDirection::Up { "largest" } else { "smallest" };
                let words = format!("{name}={} is the {end} value", now.unwrap_or_default());
                self.changes.report(ChangeStatus::Note(words));
            }
            Stepped::NoStep => {
                let how = if self.can_edit { "Enter edits it" } else { "`vramp top` and `--control` change it" };
                let words = format!("{name} has no steps; {how}");
                self.changes.report(ChangeStatus::Note(words));
            }
        }
    }

    /// The name and the value of a row, to edit; `None` if the setting is fixed.
    pub fn edit(&self, row: usize) -> Option<(String, String)> {
        let state = self.states.get(row)?;
        if self.refuses(state) {
            return None;
        }
        let name = name(state);
        let value = self.latest(&name).unwrap_or_default();
        Some((name, value))
    }

    pub fn set(&self, name: String, value: String) {
        self.changes.want(WantedChange { name, value });
    }

    /// The value of a setting that the next change starts from: the value of a change that is not made yet, or the
    /// current value. The row may be older than a change that was just made.
    fn latest(&self, name: &str) -> Option<String> {
        self.changes.pending(name).or_else(|| self.controls.get(name).ok())
    }

    /// Whether a setting is fixed. If so, asks the library to change it, because its refusal gives the reason and names
    /// the settings that can change.
    fn refuses(&self, state: &SettingState) -> bool {
        let is_fixed = state.liveness == Liveness::Fixed;
        if is_fixed {
            self.set(name(state), state.value.clone().unwrap_or_default());
        }
        is_fixed
    }
}

fn name(state: &SettingState) -> String {
    format!("{}.{}", state.handler, state.key)
}

fn row(state: &SettingState) -> SettingRow {
    let value = state.value.clone().unwrap_or_else(|| "-".to_owned());
    let cells = [name(state), value, state.liveness.name().to_owned(), state.expects.clone()];
    SettingRow { cells, is_fixed: state.liveness == Liveness::Fixed }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use vramp_plan::{RunOptions, Space};

    use super::*;
    use crate::Pipeline;

    /// The settings of a pipeline, which is returned too, because settings of a dropped pipeline cannot change.
    fn settings(pipeline: &str) -> (Pipeline, SettingsPanel) {
        let profile = vramp_plan::Profile::shipped("cpu").unwrap();
        let builder = Pipeline::parse(pipeline).options(RunOptions::new().only(Space::Cpu)).profile(profile);
        let pipeline = builder.build().unwrap();
        let settings = SettingsPanel::of(pipeline.controls()).unwrap();
        (pipeline, settings)
    }

    /// The row of a setting in the current text.
    fn row_of(settings: &mut SettingsPanel, name: &str) -> usize {
        settings.text().rows.iter().position(|row| row.cells[0] == name).unwrap()
    }

    fn value_of(settings: &mut SettingsPanel, name: &str) -> String {
        let at = row_of(settings, name);
        settings.text().rows[at].cells[1].clone()
    }

    #[track_caller]
    fn wait_for(settings: &mut SettingsPanel, words: &str) -> ChangeStatus {
        let begun = Instant::now();
        loop {
            let status = settings.text().status;
            if matches!(&status, ChangeStatus::Note(text) | ChangeStatus::Refused(text) if text.contains(words)) {
                return status;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "{words}: {status:?}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn rows_are_the_settings_in_the_order_of_the_pipeline() {
        let (_pipeline, mut settings) = settings("pattern size=64x48 kind=bars ! blur ! null");
        let text = settings.text();
        let rows: Vec<_> =
            text.rows.iter().map(|row| (row.cells.each_ref().map(String::as_str), row.is_fixed)).collect();
        assert_eq!(rows[0].0[..3], ["pattern0.kind", "bars", "rebuild"]);
        assert!(rows.contains(&(["blur0.sigma", "2", "live", "a number from 0.01 to 100"], false)), "{rows:?}");
        let frames = rows.iter().find(|(cells, _)| cells[0] == "pattern0.frames").unwrap();
        assert_eq!((frames.0[1], frames.0[2], frames.1), ("-", "fixed", true), "no value is a dash");
    }

    #[test]
    fn steps_follow_each_other_without_waiting_for_the_run() {
        let (_pipeline, mut settings) = settings("pattern size=64x48 ! blur ! null");
        let row = row_of(&mut settings, "blur0.sigma");
        for _ in 0..3 {
            settings.step(row, StepDirection::Up);
        }
        wait_for(&mut settings, "blur0.sigma=2.6 from the next frame");
        assert_eq!(value_of(&mut settings, "blur0.sigma"), "2.6");
        settings.set("blur0.sigma".to_owned(), "100".to_owned());
        wait_for(&mut settings, "blur0.sigma=100 from");
        settings.step(row, StepDirection::Up);
        wait_for(&mut settings, "blur0.sigma=100 is the largest value");
        let row = row_of(&mut settings, "pattern0.color");
        settings.step(row, StepDirection::Up);
        wait_for(&mut settings, "pattern0.color has no steps; Enter edits it");
    }

    #[test]
    fn a_fixed_setting_and_a_wrong_value_are_refused_in_the_words_of_the_library() {
        let (_pipeline, mut settings) = settings("pattern size=64x48 ! blur ! null");
        let row = row_of(&mut settings, "pattern0.size");
        assert_eq!(settings.edit(row), None);
        let status = wait_for(&mut settings, "pattern0.size is read when the pipeline starts");
        assert!(matches!(status, ChangeStatus::Refused(_)));
        settings.changes.report(ChangeStatus::Nothing);
        settings.step(row, StepDirection::Down);
        wait_for(&mut settings, "pattern0.size is read when the pipeline starts");
        let row = row_of(&mut settings, "blur0.sigma");
        assert_eq!(settings.edit(row), Some(("blur0.sigma".to_owned(), "2".to_owned())));
        settings.set("blur0.sigma".to_owned(), "many".to_owned());
        wait_for(&mut settings, "`many` is not a valid sigma; expected a number from 0.01 to 100");
        assert_eq!(value_of(&mut settings, "blur0.sigma"), "2");
        assert_eq!((settings.edit(999), settings.step(999, StepDirection::Up)), (None, ()), "a row that is gone");
    }
}
