//! Follows the files that handlers are made from: when a file is saved, its handler is made anew from the file.
//!
//! A thread looks ten times a second whether a file was saved ([`Saves`]), and then reads the file. If the content has changed, the thread sets the setting that names the file
//! to the value that it has, which makes the handler anew, and reports whether that succeeded.
//!
//! Sources are not followed: they read their files during the run.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use vramp_files::Saves;
use vramp_plan::Graph;
use vramp_plan::catalog::{Liveness, PathUse, ValueType};
use vramp_runtime::RunEvent;

use super::Controls;

const PERIOD: Duration = Duration::from_millis(100);

/// How long a report waits for the first frame of the new handler.
const FIRST_FRAME: Duration = Duration::from_secs(2);

/// A file that a handler is made from.
#[derive(Debug, Clone)]
pub(crate) struct FollowedFile {
    handler: String,
    key: &'static str,
    path: String,
    content: Option<u64>,
    saves: Saves,
}

/// The files of a graph, with the content that they have now. To be called before handlers are made.
pub(crate) fn files(graph: &Graph) -> Vec<FollowedFile> {
    let mut files = Vec::new();
    for handler in graph.handlers().iter().filter(|handler| !handler.entry.inputs.is_empty()) {
        for setting in handler.entry.settings {
            let follows = setting.value == ValueType::Path(PathUse::Read) && setting.liveness != Liveness::Fixed;
            if let (true, Some(path)) = (follows, handler.settings.text(setting.name)) {
                // The text of a shader was read when the graph was checked.
                let content = match &handler.declared {
                    Some(shader) => Some(hash(shader.text.as_bytes())),
                    None => content(Path::new(path)).ok(),
                };
                let (handler, path) = (handler.name.clone(), path.to_owned());
                let saves = Saves::new(&path);
                files.push(FollowedFile { handler, key: setting.name, path, content, saves });
            }
        }
    }
    files
}

/// Follows files until it is dropped.
pub(crate) struct Follower {
    ended: Arc<AtomicBool>,
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
    }
}

impl Follower {
    /// Starts to follow files. `None` if there are none or no thread can be started.
    pub(crate) fn begin(files: Vec<FollowedFile>, controls: &Controls) -> Option<Follower> {
        if files.is_empty() {
            return None;
        }
        let ended = Arc::new(AtomicBool::new(false));
        let (controls, stop) = (controls.clone(), Arc::clone(&ended));
        let following = move || follow(files, &controls, &stop);
        thread::Builder::new().name("vramp watch".to_owned()).spawn(following).ok().map(|_| Follower { ended })
    }
}

fn follow(mut files: Vec<FollowedFile>, controls: &Controls, ended: &AtomicBool) {
    while !ended.load(Ordering::Acquire) {
        for file in &mut files {
            // The setting may have been changed to another file.
            if let Ok(path) = controls.get(&file.name())
                && path != file.path
            {
                file.saves = Saves::new(&path);
                file.content = content(Path::new(&path)).ok();
                file.path = path;
            }
            if file.has_changed() {
                file.set(controls);
            }
        }
        thread::sleep(PERIOD);
    }
}

impl FollowedFile {
    fn name(&self) -> String {
        format!("{}.{}", self.handler, self.key)
    }

    /// Whether the file has other content than before, once per change.
    fn has_changed(&mut self) -> bool {
        if !self.saves.saved() {
            return false;
        }
        let content = content(Path::new(&self.path)).ok();
        std::mem::replace(&mut self.content, content) != content
    }

    /// Makes the handler anew and reports the result.
    fn set(&self, controls: &Controls) {
        let handler = self.handler.clone();
        let event = match controls.set(&self.name(), &self.path) {
            Ok(change) => {
                // If no frame comes, for example because the source waits, the new handler is in use all the same.
                change.frame(FIRST_FRAME);
                match change.problem() {
                    None => RunEvent::Reloaded { handler },
                    Some(problem) => RunEvent::NotReloaded { handler, problem },
                }
            }
            Err(error) => {
                let words = error.to_string();
                let problem = words.strip_prefix(&format!("{handler}: ")).unwrap_or(&words).to_owned();
                RunEvent::NotReloaded { handler, problem }
            }
        };
        controls.report(&event);
    }
}

fn content(path: &Path) -> std::io::Result<u64> {
    std::fs::read(path).map(|bytes| hash(&bytes))
}

/// Some editors write a byte order mark at the start, which is not part of a shader's text.
fn hash(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).hash(&mut hasher);
    hasher.finish()
}
