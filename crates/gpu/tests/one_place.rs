//! Counted calls are in one file, so that no code can bypass a counter.

#![allow(clippy::unwrap_used, reason = "a failing unwrap in a test is a failing test")]

use std::path::{Path, PathBuf};

/// The counted calls, and the only file that may contain them.
const COUNTED: &[&str] = &[
    ".create_buffer(",
    ".create_buffer_init(",
    ".create_texture(",
    ".create_texture_with_data(",
    ".write_texture(",
    ".create_bind_group(",
    ".create_compute_pipeline(",
    ".begin_compute_pass(",
    ".dispatch_workgroups(",
    ".dispatch_workgroups_indirect(",
    ".submit(",
    ".map_async(",
    ".write_buffer(",
    ".write_buffer_with(",
];
const COUNTS: &str = "calls.rs";

/// Calls of wgpu's own functions outside that file. vramp's functions of the same names are called on `calls` and
/// `progress`.
fn strays(path: &str, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (line, words) in (1..).zip(text.lines()) {
        let code = words.split("//").next().unwrap_or_default();
        for call in COUNTED {
            for (at, _) in code.match_indices(call) {
                let before = code[..at].trim_end();
                let ours = ["calls", "self", "progress"].iter().any(|name| before.ends_with(name));
                if !ours {
                    found.push(format!("{path}:{line}: `{call}` outside {COUNTS}"));
                }
            }
        }
    }
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_counted_call_stands_in_one_file() {
    let sources = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(sources.iter().any(|path| path.ends_with(COUNTS)));
    let mut found = Vec::new();
    for path in sources.iter().filter(|path| !path.ends_with(COUNTS)) {
        found.extend(strays(&path.display().to_string(), &std::fs::read_to_string(path).unwrap()));
    }
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn in_that_file_each_call_stands_once() {
    let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(COUNTS)).unwrap();
    for call in ["create_buffer", "create_texture", "create_bind_group", "create_compute_pipeline", "submit"] {
        let owner = if call == "submit" { "queue" } else { "device" };
        assert_eq!(text.matches(&format!("{owner}.{call}(")).count(), 1, "{call}");
    }
    for call in ["dispatch_workgroups(", "map_async(", "begin_compute_pass("] {
        assert_eq!(text.matches(&format!(".{call}")).count(), 1, "{call}");
    }
}

#[test]
fn a_call_elsewhere_is_found() {
    for planted in ["device.create_buffer(&d);", "let a = x.queue().submit([b]);", "buffer.map_async(m, .., f)"] {
        assert_eq!(strays("a.rs", planted).len(), 1, "{planted}");
    }
    for innocent in ["calls.create_buffer(a, b)", "// device.submit(", "self.submit(recording)"] {
        assert_eq!(strays("a.rs", innocent), [""; 0], "{innocent}");
    }
}
