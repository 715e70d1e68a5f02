//! The files of models, opened once: the text check, the planner and the handlers ask for the same file many times.
//!
//! Invariant: a file that has changed since is read again. At most [`MOST`] files are kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use vramp_model::Model;
use vramp_plan::Size;
use vramp_tensor::DType;

use super::plan::{self, ModelPlan};
use super::settings::ModelSettings;

/// Maximum number of files that are kept.
const MOST: usize = 8;

/// Maximum number of facts that are kept for a file.
const MOST_FACTS: usize = 32;

/// A file as it was when it was read.
struct Known {
    path: PathBuf,
    bytes: u64,
    changed: Option<SystemTime>,
    model: Model,
    facts: Vec<(FactsKey, Result<Arc<ModelFacts>, String>)>,
}

/// Everything on which the facts of a plan depend.
#[derive(Debug, Clone, PartialEq)]
struct FactsKey {
    settings: ModelSettings,
    frame: Size,
}

/// What the planner asks of a model for one size of frames.
#[derive(Debug)]
pub(super) struct ModelFacts {
    /// The type and the lengths of the chosen output.
    pub(super) result: (DType, Vec<u32>),
    /// Multiplications with an addition for one frame.
    pub(super) multiply_adds: u64,
    /// Steps for one frame, and the bytes that they read and write.
    pub(super) steps: usize,
    pub(super) moved_bytes: usize,
    /// Bytes of intermediate values and of weights.
    pub(super) held_bytes: usize,
    pub(super) weight_bytes: usize,
}

static KNOWN: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// The model of a file.
pub(super) fn model(path: &str) -> Result<Model, String> {
    with(path, |known| known.model.clone())
}

/// The facts of a model with these settings, for frames of this size.
pub(super) fn facts(settings: &ModelSettings, frame: Size) -> Result<Arc<ModelFacts>, String> {
    let key = FactsKey { settings: settings.clone(), frame };
    let found = |known: &mut Known| {
        let at = known.facts.iter().position(|(own, _)| *own == key);
        (at.map(|at| known.facts[at].1.clone()), known.model.clone())
    };
    let (made, model) = with(&settings.path, found)?;
    if let Some(made) = made {
        return made;
    }
    // Not under the lock, because lowering a large model takes a while.
    let made =
        ModelPlan::of(&model, settings, frame).and_then(|plan| plan::facts(&model, settings, &plan)).map(Arc::new);
    with(&settings.path, |known| {
        if known.facts.len() >= MOST_FACTS {
            drop(known.facts.remove(0));
        }
        known.facts.push((key, made.clone()));
    })?;
    made
}

fn with<R>(path: &str, act: impl FnOnce(&mut Known) -> R) -> Result<R, String> {
    let unreadable = |error: std::io::Error| format!("`{path}` cannot be read: {error}; check the path");
    let about = fs::metadata(path).map_err(unreadable)?;
    if !about.is_file() {
        return Err(format!("`{path}` is not a file; give an ONNX file"));
    }
    let (own, bytes, changed) = (Path::new(path), about.len(), about.modified().ok());
    let mut all = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_same = |known: &Known| known.path == own && known.bytes == bytes && known.changed == changed;
    let at = match all.iter().position(is_same) {
        Some(at) => at,
        None => {
            let model = Model::open(path).map_err(|error| format!("`{path}`: {error}"))?;
            let ops = model.facts().unsupported;
            if !ops.is_empty() {
                let first: Vec<String> = ops.iter().take(3).map(ToString::to_string).collect();
                let more = if ops.len() > 3 { format!(" and {} more", ops.len() - 3) } else { String::new() };
                return Err(format!(
                    "`{path}` has ops that are not supported: {}{more}; `vramp model inspect {path}` lists them",
                    first.join(", ")
                ));
            }
            all.retain(|known| known.path != own);
            if all.len() >= MOST {
                all.remove(0);
            }
            all.push(Known { path: own.to_owned(), bytes, changed, model, facts: Vec::new() });
            all.len() - 1
        }
    };
    // The file that was used last is last.
    let known = all.remove(at);
    all.push(known);
    Ok(act(all.last_mut().expect("a file was just kept")))
}
