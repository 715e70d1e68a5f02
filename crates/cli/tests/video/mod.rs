//! Video files, cameras and streams through the real program and a real ffmpeg, which `cargo xtask test` installs.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

mod endings;
mod fidelity;
pub(crate) mod live;
mod messages;
pub(crate) mod rtsp;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Runs ffmpeg with these options, which write `name` in `dir`.
fn make(dir: &Path, options: &str, name: &str) {
    let made = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-y"])
        .args(options.split_whitespace())
        .arg(format!("file:{name}"))
        .current_dir(dir)
        .output()
        .expect("`cargo xtask test` installs ffmpeg");
    assert!(made.status.success(), "{options}: {}", String::from_utf8_lossy(&made.stderr));
}

/// What ffprobe prints about a file, line by line.
pub(crate) fn probe(dir: &Path, options: &str, name: &str) -> Vec<String> {
    let told = Command::new("ffprobe")
        .args(["-v", "error", "-of", "csv=p=0"])
        .args(options.split_whitespace())
        .args(["-i", name])
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(told.status.success(), "{name}: {}", String::from_utf8_lossy(&told.stderr));
    let text = String::from_utf8(told.stdout).unwrap();
    text.lines().map(|line| line.trim_matches([',', ' ']).to_owned()).filter(|line| !line.is_empty()).collect()
}

/// The times of all frames of the video in seconds.
pub(crate) fn times(dir: &Path, name: &str) -> Vec<f64> {
    let lines = probe(dir, "-select_streams v:0 -show_entries frame=best_effort_timestamp_time", name);
    lines.iter().map(|line| line.parse().unwrap()).collect()
}

/// The first and the last time of the sound, with the time of a packet.
pub(crate) fn sound(dir: &Path, name: &str) -> (f64, f64) {
    let lines = probe(dir, "-select_streams a:0 -show_entries packet=pts_time", name);
    let at = |line: Option<&String>| line.unwrap().split(',').next().unwrap().parse::<f64>().unwrap();
    (at(lines.first()), at(lines.last()))
}

/// A process that is killed at the end of a test.
pub(crate) struct Killed(Child);

impl Killed {
    /// ffmpeg with these options, which sends something.
    pub(crate) fn ffmpeg(dir: &Path, options: &str) -> Killed {
        let child = Command::new("ffmpeg")
            .args(["-nostdin", "-v", "error", "-y"])
            .args(options.split_whitespace())
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        Killed(child.unwrap())
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The processes whose command line contains this text, without those of this test.
fn processes_with(text: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command);
        if command.starts_with("ffmpeg") && command.contains(text) {
            found.push(pid);
        }
    }
    found
}
