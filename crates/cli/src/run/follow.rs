//! `--watch` with a pipeline in a file: applies every edit of the file to the run.
//!
//! Edits of settings that can change during a run are set; any other edit replaces the graph between two frames. A file
//! that is empty or wrong is reported, and the run goes on as before.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use vramp::files::Saves;
use vramp::runtime::Registry;
use vramp::{Applied, ApplyError, Controls};

use super::live::{Live, Message};
use super::read_to_run;
use crate::args::RunArgs;
use crate::failure::CliError;
use crate::input::CheckedPipeline;

const PERIOD: Duration = Duration::from_millis(100);

/// Follows a file until it is dropped.
pub(super) struct FollowedPipeline {
    ended: Arc<AtomicBool>,
}

impl Drop for FollowedPipeline {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
    }
}

impl FollowedPipeline {
    /// Follows the file of this pipeline, whose text was `text` when the run began. `None` if the pipeline is not in a file, or if no thread can be started.
    pub(super) fn begin(
        args: &RunArgs,
        text: &str,
        registry: &Registry,
        controls: Controls,
        live: &Live,
    ) -> Option<FollowedPipeline> {
        let path = CheckedPipeline::file_of(&args.pipeline)?;
        let (ended, text) = (Arc::new(AtomicBool::new(false)), text.as_bytes().to_vec());
        let (stop, registry, live, args) = (Arc::clone(&ended), registry.clone(), live.clone(), args.clone());
        let follow = move || {
            let mut saves = Saves::new(&path);
            let mut known = Some(text);
            while !stop.load(Ordering::Acquire) {
                if saves.saved() {
                    let text = std::fs::read(&path).ok();
                    if text.is_some() && text != known {
                        let (applied, message) = apply(&args, &path, &registry, &controls);
                        // A file that was refused is tried again when it is saved again.
                        known = if applied { text } else { None };
                        if let Some(message) = message {
                            live.tell(message);
                        }
                    }
                }
                std::thread::sleep(PERIOD);
            }
        };
        let thread = std::thread::Builder::new().name("pipeline file".to_owned()).spawn(follow);
        thread.ok().map(|_| FollowedPipeline { ended })
    }
}

/// Applies the file to the run. Returns whether the run has what the file says, and what to tell the user.
fn apply(args: &RunArgs, path: &Path, registry: &Registry, controls: &Controls) -> (bool, Option<Message>) {
    let shown = path.display();
    let refused = |problem: String| {
        let words = format!("{shown} cannot be used, so the run continues as before: {problem}");
        (false, Some(Message::Warning(words)))
    };
    // The same checks of files and standard streams as at the start of the run.
    let read = read_to_run(args, registry);
    let checked = match read {
        Ok(checked) => checked,
        Err(CliError::Mistakes(mistakes)) => return refused(mistakes.to_string()),
        Err(error) => return refused(error.words().unwrap_or_else(|| "it cannot be read".to_owned())),
    };
    match controls.apply(&checked.graph) {
        // An event of the run reports a replaced graph.
        Ok(Applied::Nothing | Applied::Replaced) => (true, None),
        Ok(Applied::Set(change)) => {
            let from = match change.frame(Duration::from_secs(1)) {
                Some(frame) => format!("from frame {frame} on"),
                None => "from the next frame on".to_owned(),
            };
            (true, Some(Message::Note(format!("{shown}: its settings are in force {from}"))))
        }
        // The run has ended, or ends before the edit could take effect.
        Err(ApplyError::Ending) => (false, None),
        Err(error) => refused(error.to_string()),
    }
}
