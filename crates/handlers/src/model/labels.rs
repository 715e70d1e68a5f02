//! Labels of classes: a text file with one label a line, the strips that draw them, and the table in which other handlers
//! of the run find them.

use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

use vramp_files::open_regular;
use vramp_runtime::{HandlerError, StartContext};
use vramp_tensor::network::LabelStrips;

use crate::letters::{Fonts, strip, strip_height};

/// The font size of labels.
const SIZE_PX: u32 = 15;

/// Maximum width and characters of a label. Longer ones are cut.
const MOST_WIDTH: usize = 240;
const MOST_CHARACTERS: usize = 120;

/// Maximum bytes of the coverage of all labels. If there are very many labels, they are narrower.
const MOST_COVERAGE: usize = 32 << 20;

/// Maximum number of labels.
const MOST_LABELS: usize = 32_768;

/// Maximum bytes of a file of labels.
const MOST_BYTES: u64 = 16 << 20;

/// The key of the note that names the handler whose classes are in a data frame.
pub(crate) const MODEL_NOTE: &str = "model";

/// The labels of all models of a run, by the names of the handlers. Data frames carry only such a name, because a note is
/// text that any program can write.
///
/// Invariant: a name keeps its labels. If a graph is replaced and its model has others, these get a name with a number, so
/// that frames that wait still have theirs.
#[derive(Debug, Default)]
pub(crate) struct RunLabels(Mutex<BTreeMap<String, Arc<[String]>>>);

impl RunLabels {
    /// The table of the run.
    pub(crate) fn of(start: &StartContext<'_>) -> Result<Arc<RunLabels>, HandlerError> {
        start.share_on_host(|| Ok(RunLabels::default()))
    }

    /// Adds the labels of a handler, which are none if its settings name no file. Returns the name under which they are
    /// found.
    pub(super) fn publish(&self, handler: &str, labels: &Arc<[String]>) -> String {
        let mut all = self.lock();
        let mut name = handler.to_owned();
        for number in 2.. {
            match all.get(&name) {
                None => {
                    all.insert(name.clone(), Arc::clone(labels));
                    break;
                }
                Some(own) if own == labels => break,
                Some(_) => name = format!("{handler}#{number}"),
            }
        }
        name
    }

    /// The labels under a name; `None` if no model of the run has published them.
    pub(crate) fn labels(&self, name: &str) -> Option<Arc<[String]>> {
        self.lock().get(name).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<[String]>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The labels of a file, one a line. Blanks around a label and empty lines at the end are left out.
pub(super) fn read(path: &str) -> Result<Vec<String>, String> {
    let text = match fs::metadata(path) {
        Ok(about) if about.len() > MOST_BYTES => {
            return Err(format!("labels `{path}` has {} bytes, expected at most {MOST_BYTES}", about.len()));
        }
        _ => open_regular(path.as_ref()).and_then(std::io::read_to_string),
    };
    let text = text.map_err(|error| format!("labels `{path}` cannot be read: {error}; give a text file of UTF-8"))?;
    let labels: Vec<String> =
        text.trim_start_matches('\u{feff}').trim_end().lines().map(|line| line.trim().to_owned()).collect();
    if labels.is_empty() || labels.len() > MOST_LABELS {
        return Err(format!("labels `{path}` has {} lines; expected 1 to {MOST_LABELS}, one a class", labels.len()));
    }
    Ok(labels)
}

/// The strips of the labels. Without labels, the numbers of the classes, if there are several.
pub(super) fn strips(labels: &[String], classes: usize) -> LabelStrips {
    let mut fonts = Fonts::embedded();
    let height = strip_height(&fonts, SIZE_PX);
    let numbered = if classes > 1 { classes } else { 0 };
    let count = if labels.is_empty() { numbered } else { labels.len() }.min(MOST_LABELS);
    let width = MOST_WIDTH.min(MOST_COVERAGE / (count * height).max(1));
    let mut strips = LabelStrips { height, cell: 0, widths: Vec::with_capacity(count), coverage: Vec::new() };
    for class in 0..count {
        let number = class.to_string();
        let label = labels.get(class).unwrap_or(&number);
        // Cut before it is shaped, which takes longer for longer text.
        let end = label.char_indices().nth(MOST_CHARACTERS).map_or(label.len(), |(at, _)| at);
        let made = strip(&mut fonts, &label[..end], SIZE_PX, width);
        strips.widths.push(made.width);
        strips.coverage.extend(made.coverage);
    }
    let characters: Vec<_> =
        "0123456789.".chars().map(|one| strip(&mut fonts, one.encode_utf8(&mut [0; 4]), SIZE_PX, MOST_WIDTH)).collect();
    strips.cell = characters.iter().map(|one| one.width).max().unwrap_or(0);
    for one in characters {
        // In the middle of its cell.
        let before = (strips.cell - one.width) / 2;
        for row in one.coverage.chunks_exact(one.width.max(1)).take(height) {
            strips.coverage.extend(std::iter::repeat_n(0, before));
            strips.coverage.extend(row);
            strips.coverage.extend(std::iter::repeat_n(0, strips.cell - before - row.len()));
        }
    }
    strips
}
