//! The overlay of a window: the keys, and the settings that can change during the run.

use vramp_gpu::{Blit, Buffer, Layer, Pixels, Region};
use vramp_handlers::{PaintedLine, TextPainter};
use vramp_pipeline::panel::{ChangeStatus, SettingsPanel, StepDirection};
use vramp_plan::Size;

use crate::error::WindowError;
use crate::layout::fitted;
use crate::transfers::WindowTransfers;

/// Distance of the overlay from the corner of the window, and the size of its letters at a scale of 1.
const CORNER_PX: f64 = 12.0;
const LETTER_PX: f64 = 15.0;
const LEAST_LETTER_PX: u32 = 9;

/// A window has room for about this many letters of the chosen size, or they are made smaller.
const LETTERS_WIDE: u32 = 26;

/// Settings that are shown at the same time.
const VISIBLE: usize = 14;

const GROUND: [u8; 4] = [12, 14, 18, 215];
const PLAIN: [u8; 3] = [226, 230, 235];
const FAINT: [u8; 3] = [150, 158, 168];
const CHOSEN: [u8; 3] = [255, 206, 92];
const REFUSED: [u8; 3] = [255, 128, 110];

const KEYS: [&str; 2] = ["space pause   . step   s save", "f fullscreen   h close"];
const SETTING_KEYS: &str = "up, down choose   left, right change";

#[derive(Default)]
pub(crate) struct SettingsOverlay {
    pub(crate) is_shown: bool,
    chosen: usize,
    painter: Option<TextPainter>,
    painted: Option<PaintedOverlay>,
}

struct PaintedOverlay {
    lines: Vec<PaintedLine>,
    most: Size,
    size: Size,
    buffer: Buffer,
}

impl SettingsOverlay {
    /// Drops what is on a device.
    pub(crate) fn leave_device(&mut self) {
        self.painted = None;
    }

    /// Chooses the setting before or after the chosen one.
    pub(crate) fn choose(&mut self, panel: Option<&mut SettingsPanel>, direction: StepDirection) {
        let count = panel.map_or(0, |panel| live_rows(&panel.text().rows).len());
        self.chosen = match direction {
            StepDirection::Up => self.chosen.saturating_sub(1),
            StepDirection::Down => (self.chosen + 1).min(count.saturating_sub(1)),
        };
    }

    /// Raises or lowers the chosen setting.
    pub(crate) fn change(&self, panel: &mut SettingsPanel, direction: StepDirection) {
        let rows = panel.text().rows;
        if let Some((row, _)) = live_rows(&rows).get(self.chosen) {
            panel.step(*row, direction);
        }
    }

    /// Paints the overlay anew if its text has changed.
    pub(crate) fn paint(
        &mut self,
        panel: Option<&mut SettingsPanel>,
        transfers: &mut WindowTransfers,
        window: Size,
        scale: f64,
    ) -> Result<(), WindowError> {
        let lines = lines(panel, &mut self.chosen);
        let corner = corner(scale);
        let inner = |side: u32| side.saturating_sub(2 * corner).max(1);
        let most = Size { width: inner(window.width), height: inner(window.height) };
        if self.painted.as_ref().is_some_and(|known| known.lines == lines && known.most == most) {
            return Ok(());
        }
        let painter = self.painter.get_or_insert_default();
        // Smaller in a narrow window, so that a name and its value fit.
        let letters = ((LETTER_PX * scale).round() as u32).min(window.width / LETTERS_WIDE).max(LEAST_LETTER_PX);
        let text = painter.paint(&lines, letters, GROUND, most);
        let buffer = transfers.upload_image(text.pixels)?;
        self.painted = Some(PaintedOverlay { lines, most, size: text.size, buffer });
        Ok(())
    }

    /// The painted overlay as the top layer of a window of this size.
    pub(crate) fn layer(&self, window: Size, scale: f64) -> Option<Layer<'_>> {
        let painted = self.painted.as_ref().filter(|_| self.is_shown)?;
        let corner = corner(scale);
        let fits = painted.size.width + corner <= window.width && painted.size.height + corner <= window.height;
        // In a window smaller than its corner, the overlay is scaled.
        let into =
            if fits { Region { x: corner, y: corner, size: painted.size } } else { fitted(painted.size, window) };
        let how = Blit { into: Some(into), over: true, ..Blit::default() };
        Some(Layer { picture: Pixels::rgba8(&painted.buffer, painted.size), how })
    }
}

fn corner(scale: f64) -> u32 {
    (CORNER_PX * scale).round() as u32
}

/// The settings that can change, with their places in the panel.
fn live_rows(rows: &[vramp_pipeline::panel::SettingRow]) -> Vec<(usize, &vramp_pipeline::panel::SettingRow)> {
    rows.iter().enumerate().filter(|(_, row)| !row.is_fixed).collect()
}

fn lines(panel: Option<&mut SettingsPanel>, chosen: &mut usize) -> Vec<PaintedLine> {
    let line = |text: String, color| PaintedLine { text, color };
    let mut lines: Vec<PaintedLine> = KEYS.map(|keys| line(keys.to_owned(), FAINT)).into();
    let Some(panel) = panel else {
        lines.push(line("the settings of this run are not available here".to_owned(), FAINT));
        return lines;
    };
    let text = panel.text();
    let rows = live_rows(&text.rows);
    if rows.is_empty() {
        lines.push(line("this pipeline has no settings that can change".to_owned(), FAINT));
        return lines;
    }
    *chosen = (*chosen).min(rows.len() - 1);
    lines.push(line(SETTING_KEYS.to_owned(), FAINT));
    // The chosen row is visible, and the list moves only if it must.
    let first = chosen.saturating_sub(VISIBLE - 1);
    for (at, (_, row)) in rows.iter().enumerate().skip(first).take(VISIBLE) {
        let [name, value, _, expects] = &row.cells;
        if at == *chosen {
            lines.push(line(format!("{name} = {value}   ({expects})"), CHOSEN));
        } else {
            lines.push(line(format!("{name} = {value}"), PLAIN));
        }
    }
    if rows.len() > VISIBLE {
        lines.push(line(format!("setting {} of {}", *chosen + 1, rows.len()), FAINT));
    }
    match text.status {
        ChangeStatus::Nothing => {}
        ChangeStatus::Note(words) => lines.push(line(words, FAINT)),
        ChangeStatus::Refused(words) => lines.push(line(words, REFUSED)),
    }
    lines
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

    use vramp_pipeline::Pipeline;
    use vramp_plan::{Profile, RunOptions, Space};

    use super::*;

    fn panel(pipeline: &str) -> (Pipeline, SettingsPanel) {
        let profile = Profile::shipped("cpu").unwrap();
        let builder = Pipeline::parse(pipeline).options(RunOptions::new().only(Space::Cpu)).profile(profile);
        let pipeline = builder.build().unwrap();
        let panel = SettingsPanel::of(pipeline.controls()).unwrap();
        (pipeline, panel)
    }

    #[test]
    fn the_overlay_lists_settings_that_can_change_and_changes_the_chosen_one() {
        let (_pipeline, mut panel) = panel("pattern size=64x48 ! blur ! null");
        let mut overlay = SettingsOverlay::default();
        let shown = |overlay: &mut SettingsOverlay, panel: &mut SettingsPanel| -> Vec<String> {
            lines(Some(panel), &mut overlay.chosen).into_iter().map(|line| line.text).collect()
        };
        let before = shown(&mut overlay, &mut panel);
        assert!(before.iter().any(|line| line == "blur0.sigma = 2"), "{before:?}");
        assert!(!before.iter().any(|line| line.contains("pattern0.size")), "fixed: {before:?}");
        for _ in 0..99 {
            overlay.choose(Some(&mut panel), StepDirection::Down);
            let chosen = shown(&mut overlay, &mut panel);
            if chosen.iter().any(|line| line.starts_with("blur0.sigma = 2   (a number")) {
                overlay.change(&mut panel, StepDirection::Up);
                break;
            }
        }
        let begun = std::time::Instant::now();
        while !shown(&mut overlay, &mut panel).iter().any(|line| line.starts_with("blur0.sigma = 2.2")) {
            assert!(begun.elapsed().as_secs() < 60, "{:?}", shown(&mut overlay, &mut panel));
            std::thread::yield_now();
        }
        for _ in 0..99 {
            overlay.choose(Some(&mut panel), StepDirection::Up);
        }
        assert_eq!(overlay.chosen, 0);
    }

    #[test]
    fn without_a_pipeline_or_settings_the_overlay_says_so() {
        let mut chosen = 3;
        assert!(lines(None, &mut chosen)[2].text.contains("not available"));
    }
}
