//! Reloading: watches the file of a shader while the file is edited.
//!
//! A thread checks the file's modification time ten times a second, and reads the file once that time has stopped
//! changing. Polling costs less than a notification library and works on every file system. A file that an editor
//! replaces by a new file is noticed too. The thread ends with the handler.
//!
//! Before each frame the fusion group asks its members for a successor. If a member has a successor, the group compiles
//! the new kernels on another thread, and swaps the member, the layout and the kernels together between two frames. A
//! text with an error, or a text that would need another plan, changes nothing.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use vramp_kernels::own::Own;
use vramp_plan::catalog::{SettingValues, Value};

use super::{OwnShader, declare};

const PERIOD: Duration = Duration::from_millis(100);

/// A watched file.
pub(super) struct Following {
    changed: AtomicBool,
    found: Mutex<Option<Result<OwnShader, String>>>,
}

impl Following {
    /// Starts to watch a file that contained `text` when it was read. `None` if no thread can be started.
    pub(super) fn begin(path: &str, text: &str, own: &Own, settings: &SettingValues) -> Option<Arc<Following>> {
        let following = Arc::new(Following { changed: AtomicBool::new(false), found: Mutex::new(None) });
        // A value that equals the default may change with the text; any other value was given by the user.
        let is_given = |key: &str, value: &Value| {
            let member = own.members().iter().find(|member| member.name == key);
            member.is_some_and(|member| declare::default(member).as_ref() != Ok(value))
        };
        let given = settings.iter().filter(|(key, value)| is_given(key, value));
        let given: Vec<(String, Value)> = given.map(|(key, value)| (key.to_owned(), value.clone())).collect();
        let eye = Eye {
            path: PathBuf::from(path),
            text: text.to_owned(),
            whole: matches!(own, Own::Whole(_)),
            given,
            tell: Arc::downgrade(&following),
        };
        let watching = std::thread::Builder::new().name("vramp watch".to_owned());
        watching.spawn(move || eye.watch()).ok().map(|_| following)
    }

    /// The new content of the file, once per change.
    pub(super) fn changed(&self) -> Option<Result<OwnShader, String>> {
        if !self.changed.load(Ordering::Acquire) {
            return None;
        }
        self.changed.store(false, Ordering::Release);
        self.found.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The state of the watching thread.
struct Eye {
    path: PathBuf,
    text: String,
    whole: bool,
    given: Vec<(String, Value)>,
    tell: Weak<Following>,
}

impl Eye {
    fn watch(mut self) {
        // The file may have changed since it was read, so the first check always counts as a change.
        let (mut seen, mut read) = (None, None);
        loop {
            std::thread::sleep(PERIOD);
            let Some(following) = self.tell.upgrade() else { return };
            let now = stamp(&self.path);
            let settled = now.is_some() && now == seen;
            seen = now;
            if settled && read != seen {
                read = seen;
                if let Some(found) = self.look() {
                    *following.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
                    following.changed.store(true, Ordering::Release);
                }
            }
        }
    }

    /// The new shader; `None` if the text is the same as before.
    fn look(&mut self) -> Option<Result<OwnShader, String>> {
        let text = match declare::read(&self.path) {
            Ok(text) if text == self.text => return None,
            Ok(text) => text,
            Err(problem) => return Some(Err(problem.to_string())),
        };
        self.text.clone_from(&text);
        Some(self.made(&text).map_err(|problem| format!("{}:{problem}", self.path.display())))
    }

    fn made(&self, text: &str) -> Result<OwnShader, String> {
        let own = Own::read(text).map_err(|error| error.to_string())?;
        if matches!(own, Own::Whole(_)) != self.whole {
            let words = ["a pixel function", "a kernel"];
            let (is, was) = if self.whole { (words[0], words[1]) } else { (words[1], words[0]) };
            return Err(format!(" the shader was {was} and is now {is}, which needs another plan; restart the run"));
        }
        if let Some((gone, _)) = self.given.iter().find(|(key, _)| own.members().iter().all(|m| m.name != *key)) {
            return Err(format!(
                " the shader no longer declares the given setting `{gone}`; restart the run without this setting"
            ));
        }
        OwnShader::of(own, |key| self.given.iter().find(|(own, _)| own == key).map(|(_, value)| value))
            .map_err(|problem| format!(" {problem}"))
    }
}

/// A stamp that changes with every save, even if an editor saves by replacing the file.
fn stamp(path: &Path) -> Option<(std::time::SystemTime, u64, u64)> {
    let found = std::fs::metadata(path).ok()?;
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(&found);
    #[cfg(not(unix))]
    let number = 0;
    Some((found.modified().ok()?, found.len(), number))
}
