//! The files of models, opened once: the text check, the planner and the handlers ask for the same file many times.
//!
//! Invariants: a file that has changed since is read again, also if only the weights beside it have changed. A file stays
//! open while a handler uses it. Of the others, the last one stays, and the ones before it within [`MOST_KEPT_BYTES`].
//! No file is read and no network is planned under the lock.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use vramp_model::Model;
use vramp_plan::Size;
use vramp_tensor::{Context, DType};

use super::plan::{self, ModelPlan};
use super::settings::ModelSettings;

/// Maximum bytes of files that are kept though no handler uses them, beside the last file.
const MOST_KEPT_BYTES: u64 = 64 << 20;

/// Maximum number of facts that are kept for a file.
const MOST_FACTS: usize = 32;

/// A file as it was when it was read.
pub(super) struct OpenedModel {
    path: PathBuf,
    /// Of the model, and then of the files with its weights.
    stamps: Vec<Stamp>,
    pub(super) model: Model,
    facts: Mutex<Vec<(FactsKey, Arc<PlannerFacts>)>>,
}

/// A file's length and time of its last change. `None` if it cannot be told.
type Stamp = Option<(u64, Option<SystemTime>)>;

/// Everything on which the facts of a plan depend.
#[derive(Debug, Clone, PartialEq)]
struct FactsKey {
    settings: ModelSettings,
    frame: Size,
}

/// What the planner asks of a model for one size of frames.
#[derive(Debug)]
pub(super) struct PlannerFacts {
    /// The type and the lengths of the chosen output.
    pub(super) result: (DType, Vec<u32>),
    /// The number of classes that the chosen output has scores for; `None` if that is not in its shape.
    pub(super) classes: Option<usize>,
    /// Multiplications with an addition for one frame.
    pub(super) multiply_adds: u64,
    /// Steps for one frame, and the bytes that they read and write.
    pub(super) steps: usize,
    pub(super) moved_bytes: usize,
    /// Bytes of intermediate values and of weights.
    pub(super) held_bytes: usize,
    pub(super) weight_bytes: usize,
}

/// The files of the process.
#[derive(Default)]
struct OpenedFiles {
    /// All that are in use.
    all: Vec<Weak<OpenedModel>>,
    /// Those that stay, the last one last.
    kept: Vec<Arc<OpenedModel>>,
}

static OPENED: Mutex<OpenedFiles> = Mutex::new(OpenedFiles { all: Vec::new(), kept: Vec::new() });

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    // No holder panics halfway through a change.
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

fn stamp(path: &Path) -> Stamp {
    fs::metadata(path).ok().map(|about| (about.len(), about.modified().ok()))
}

#[cfg(not(target_arch = "wasm32"))]
fn read(path: &str) -> Result<Model, String> {
    Model::open(path).map_err(|error| format!("`{path}`: {error}"))
}

#[cfg(target_arch = "wasm32")]
fn read(path: &str) -> Result<Model, String> {
    Err(format!("`{path}` cannot be read: there are no files in a browser"))
}

impl OpenedModel {
    /// The model of a file.
    pub(super) fn open(path: &str) -> Result<Arc<OpenedModel>, String> {
        let about = fs::metadata(path).map_err(|error| format!("`{path}` cannot be read: {error}; check the path"))?;
        if !about.is_file() {
            return Err(format!("`{path}` is not a file; give an ONNX file"));
        }
        if let Some(found) = lock(&OPENED).find(Path::new(path)) {
            return Ok(found);
        }
        // Before the file is read, so that a change in between is noticed later.
        let own = stamp(Path::new(path));
        let model = read(path)?;
        let ops = model.facts().unsupported;
        if !ops.is_empty() {
            let first: Vec<String> = ops.iter().take(3).map(ToString::to_string).collect();
            let more = if ops.len() > 3 { format!(" and {} more", ops.len() - 3) } else { String::new() };
            return Err(format!(
                "`{path}` has ops that are not supported: {}{more}; `vramp model inspect {path}` lists them",
                first.join(", ")
            ));
        }
        let stamps = std::iter::once(own).chain(model.external_files().iter().map(|path| stamp(path))).collect();
        let opened = OpenedModel { path: path.into(), stamps, model, facts: Mutex::default() };
        Ok(lock(&OPENED).keep(opened))
    }

    fn is_current(&self) -> bool {
        let paths =
            std::iter::once(self.path.as_path()).chain(self.model.external_files().iter().map(PathBuf::as_path));
        paths.map(stamp).eq(self.stamps.iter().copied())
    }

    fn bytes(&self) -> u64 {
        self.stamps.iter().flatten().map(|(bytes, _)| bytes).sum()
    }

    /// The facts of the model with these settings, for frames of this size.
    pub(super) fn facts(&self, settings: &ModelSettings, frame: Size) -> Result<Arc<PlannerFacts>, String> {
        let key = FactsKey { settings: settings.clone(), frame };
        if let Some((_, facts)) = lock(&self.facts).iter().find(|(own, _)| *own == key) {
            return Ok(Arc::clone(facts));
        }
        let plan = ModelPlan::of(&self.model, settings, frame)?;
        let made = Arc::new(plan::facts(&Context::on_host(), &self.model, settings, &plan)?);
        let mut facts = lock(&self.facts);
        if facts.len() >= MOST_FACTS {
            drop(facts.remove(0));
        }
        facts.push((key, Arc::clone(&made)));
        Ok(made)
    }
}

/// The facts of the file that the settings name, for frames of this size.
pub(super) fn facts(settings: &ModelSettings, frame: Size) -> Result<Arc<PlannerFacts>, String> {
    OpenedModel::open(&settings.path)?.facts(settings, frame)
}

impl OpenedFiles {
    /// The file, if it is open and has not changed since it was read.
    fn find(&mut self, path: &Path) -> Option<Arc<OpenedModel>> {
        self.all.retain(|file| file.strong_count() > 0);
        let found = self.all.iter().filter_map(Weak::upgrade).find(|file| file.path == path && file.is_current())?;
        self.use_last(&found);
        Some(found)
    }

    /// Keeps a file that was just read. If another thread has read it meanwhile, returns that one.
    fn keep(&mut self, opened: OpenedModel) -> Arc<OpenedModel> {
        if let Some(found) = self.find(&opened.path) {
            return found;
        }
        let opened = Arc::new(opened);
        self.all.push(Arc::downgrade(&opened));
        self.use_last(&opened);
        opened
    }

    /// Makes a file the last one that was used, and drops those for which there is no room.
    fn use_last(&mut self, file: &Arc<OpenedModel>) {
        // An earlier state of the file is of no use.
        self.kept.retain(|kept| kept.path != file.path);
        self.kept.push(Arc::clone(file));
        let mut bytes = 0;
        let is_too_much = |file: &Arc<OpenedModel>| {
            bytes += file.bytes();
            bytes > MOST_KEPT_BYTES
        };
        let kept_before = self.kept.iter().rev().skip(1).position(is_too_much);
        if let Some(kept_before) = kept_before {
            self.kept.drain(..self.kept.len() - 1 - kept_before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use vramp_plan::catalog::{Fallback, SettingValues, Value};

    fn selfie() -> &'static [u8] {
        vramp_model::shipped::SELFIE
    }

    #[test]
    fn facts_are_found_without_memory_for_values_and_weights() {
        let path = std::env::temp_dir().join(format!("vramp-facts-{}.onnx", std::process::id()));
        fs::write(&path, selfie()).unwrap();
        let mut values = SettingValues::default();
        for setting in super::super::ENTRY.settings {
            if let Fallback::Is(text) = setting.fallback {
                values.set(setting.name, setting.value.read(text).unwrap());
            }
        }
        values.set("path", Value::Text(path.to_str().unwrap().to_owned()));
        values.set("output", Value::Text("mask".to_owned()));
        let settings = ModelSettings::of(&values).unwrap();
        let model = Model::open(&path).unwrap();
        let plan = ModelPlan::of(&model, &settings, Size { width: 4096, height: 2160 }).unwrap();
        let host = Context::on_host();
        let facts = plan::facts(&host, &model, &settings, &plan).unwrap();
        assert!(facts.held_bytes > 1 << 20 && facts.weight_bytes > 1 << 18, "{facts:?}");
        let pool = host.host_pool();
        assert_eq!((host.memory().peak_bytes, pool.lent_bytes, pool.hits + pool.misses), (0, 0, 0));
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn large_files_that_no_handler_uses_are_dropped_and_changed_ones_are_read_again() {
        let folder = std::env::temp_dir().join(format!("vramp-opened-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name).to_str().unwrap().to_owned();
        let names = ["a.onnx", "b.onnx", "c.onnx"].map(path);
        for name in &names {
            fs::write(name, selfie()).unwrap();
        }
        let weak = |path: &str| Arc::downgrade(&OpenedModel::open(path).unwrap());
        let first = weak(&names[0]);
        assert!(first.ptr_eq(&weak(&names[0])), "an open file is not read again");
        fs::File::options().append(true).open(&names[0]).unwrap().set_modified(SystemTime::UNIX_EPOCH).unwrap();
        assert!(!first.ptr_eq(&weak(&names[0])), "a file that has changed is read again");
        // Three of these are too many if each counts as half of the room.
        let mut files = OpenedFiles::default();
        let mut open = |name: &str, bytes: u64| {
            let model = Model::open(name).unwrap();
            let stamps = vec![Some((bytes, stamp(Path::new(name)).unwrap().1))];
            Arc::downgrade(&files.keep(OpenedModel { path: name.into(), stamps, model, facts: Mutex::default() }))
        };
        let opened: Vec<_> = names.iter().map(|name| open(name, MOST_KEPT_BYTES * 3 / 4)).collect();
        let are_kept: Vec<bool> = opened.iter().map(|file| file.strong_count() > 0).collect();
        assert_eq!(are_kept, [false, true, true], "the last one, and what is within the room");
        fs::remove_dir_all(&folder).unwrap();
    }
}
