//! `run FILE --watch` in real processes: edits of the pipeline's file reach the run, and wrong edits do not disturb it.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr};

use crate::program::command;

struct Watched {
    child: Child,
    lines: BufReader<ChildStderr>,
    folder: PathBuf,
}

impl Watched {
    fn start(name: &str, text: &str) -> Watched {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("pipeline.vramp"), text).unwrap();
        let mut command = command(&["run", "pipeline.vramp", "--watch", "--cpu", "--fps", "200"]);
        let mut child = command.current_dir(&folder).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap());
        Watched { child, lines, folder }
    }

    fn save(&self, text: &str) {
        std::fs::write(self.folder.join("pipeline.vramp"), text).unwrap();
    }

    /// The next line that contains these words.
    fn line(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the run ended before it printed `{words}`");
            if line.contains(words) {
                return line;
            }
        }
    }

    fn end(&mut self) -> i32 {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        std::io::copy(&mut self.lines, &mut std::io::sink()).unwrap();
        self.child.wait().unwrap().code().unwrap()
    }
}

/// A test that fails leaves no run behind.
impl Drop for Watched {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pictures(folder: &Path) -> Vec<String> {
    let names = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| name.starts_with("f-")).collect();
    names.sort();
    names
}

#[test]
fn edits_reach_the_run_and_pictures_go_on_in_number() {
    let head = "pattern size=16x12 ! brightness";
    let tail = "png path=f-%05d.png";
    let mut run = Watched::start("edits_reach_the_run", &format!("{head} 0.1 ! {tail}"));
    run.line("plan:");
    run.save(&format!("{head} 0.2 ! {tail}"));
    let line = run.line("its settings are in force from frame ");
    assert!(line.starts_with("note: pipeline.vramp"), "{line}");
    run.save("");
    let line = run.line("cannot be used, so the run continues as before");
    assert!(line.starts_with("warning: pipeline.vramp"), "{line}");
    run.save(&format!("{head} 0.2 ! blurr ! {tail}"));
    run.line("cannot be used, so the run continues as before");
    run.save(&format!("{head} 0.2 ! blur ! {tail}"));
    let line = run.line("another graph continues the run after ");
    assert!(line.contains("1 of its 4 handlers kept their state"), "the png sink; pixel handlers have none: {line}");
    run.save(&format!("{head} 0.4 ! blur ! {tail}"));
    run.line("its settings are in force from frame ");
    let folder = run.folder.clone();
    assert_eq!(run.end(), 130);
    let names = pictures(&folder);
    let expected: Vec<String> = (0..names.len()).map(|number| format!("f-{number:05}.png")).collect();
    assert_eq!(names, expected, "no picture is missing");
}
