//! However a run ends, files are complete or absent and no process is left.

use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Child;

use serde_json::Value;

use crate::program::{command, dir, ends_with, vramp_in};

use super::{make, processes_with, times, wait_until};

/// Starts the program in a process group of its own, as a shell does.
fn start(dir: &Path, args: &[&str]) -> Child {
    command(args).current_dir(dir).process_group(0).spawn().unwrap()
}

fn signal(pid: i64, signal: rustix::process::Signal) {
    let group = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process_group(group, signal).unwrap();
}

/// Whether a file that is being written has this many bytes.
fn part_has(dir: &Path, bytes: u64) -> bool {
    let parts = std::fs::read_dir(dir).unwrap().flatten().filter(|e| e.path().extension().is_some_and(|e| e == "part"));
    parts.filter_map(|entry| entry.metadata().ok()).any(|found| found.len() >= bytes)
}

#[test]
fn ctrl_c_to_the_whole_group_leaves_a_playable_file_with_every_frame() {
    let dir = dir("video_ctrl_c");
    let run = "pattern kind=disc size=1280x720 ! video out.mp4 preset=veryslow crf=30";
    let child = start(&dir, &["run", run, "--cpu", "--json"]);
    wait_until("frames are written", || part_has(&dir, 1));
    std::thread::sleep(std::time::Duration::from_secs(2));
    signal(child.id().into(), rustix::process::Signal::INT);
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(!err.contains("did not return"), "{err}");
    let report: Value = serde_json::from_slice(output.stdout.split(|b| *b == b'\n').next().unwrap()).unwrap();
    assert_eq!(times(&dir, "out.mp4").len() as u64, report["frames_out"].as_u64().unwrap());
    assert!(processes_with(dir.to_str().unwrap()).is_empty(), "no encoder is left");
}

#[test]
fn an_older_file_is_replaced_only_by_a_finished_one() {
    let dir = dir("video_older");
    std::fs::write(dir.join("out.mp4"), "older").unwrap();
    let run = "pattern size=320x240 ! video out.mp4 preset=ultrafast";
    let child = start(&dir, &["run", run, "--cpu", "--fps", "60"]);
    wait_until("frames are written", || part_has(&dir, 1000));
    signal(child.id().into(), rustix::process::Signal::INT);
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(130));
    assert_eq!(std::fs::read(dir.join("out.mp4")).unwrap(), b"older");
    assert!(!times(&dir, "out.partial.mp4").is_empty());
    ends_with(0, vramp_in(&dir, &["run", run, "--cpu", "--frames", "10", "-q"]));
    assert_eq!(times(&dir, "out.mp4").len(), 10);
}

#[test]
fn an_encoder_that_is_killed_ends_the_run_with_its_last_words_and_no_file() {
    let dir = dir("video_killed");
    for round in 0..5_u64 {
        let child = start(&dir, &["run", "pattern size=320x240 ! video killed.mp4", "--cpu", "--fps", "100"]);
        wait_until("the encoder runs", || !processes_with("killed.mp4").is_empty());
        std::thread::sleep(std::time::Duration::from_millis(round * 60));
        for pid in processes_with("killed.mp4") {
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{err}");
        assert!(err.contains("video0") && err.contains("ffmpeg was ended by signal 9"), "{err}");
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "{err}");
    }
}

#[test]
fn no_process_is_left_when_the_program_is_killed() {
    let dir = dir("video_sigkill");
    make(&dir, "-f lavfi -i testsrc2=s=320x240:r=30:d=20 -c:v libx264 -preset ultrafast", "endless.mp4");
    for round in 0..20_u64 {
        let mut child =
            start(&dir, &["run", "video endless.mp4 loop=true ! video endless.mkv", "--cpu", "--fps", "60"]);
        wait_until("both run", || processes_with("endless.m").len() >= 2 || child.try_wait().unwrap().is_some());
        std::thread::sleep(std::time::Duration::from_millis(round * 5));
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until("both have ended", || processes_with("endless.m").is_empty());
    }
}

#[test]
fn ten_thousand_frames_take_constant_memory() {
    let dir = dir("video_memory");
    make(&dir, "-f lavfi -i testsrc2=s=64x48:r=500:d=20 -c:v libx264 -preset ultrafast -g 500", "long.mp4");
    let run = "video long.mp4 ! brightness 0.1 ! video out.mkv preset=ultrafast";
    let mut child = start(&dir, &["run", run, "--cpu", "--json"]);
    let kilobytes = |pid: u32| -> Option<u64> {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmRSS"))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    let mut seen = Vec::new();
    while child.try_wait().unwrap().is_none() {
        seen.extend(kilobytes(child.id()));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let output = child.wait_with_output().unwrap();
    let report: Value = serde_json::from_slice(output.stdout.split(|b| *b == b'\n').next().unwrap()).unwrap();
    assert_eq!(report["frames"].as_u64(), Some(10_000), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(report["steady"]["heap_allocs"].as_f64(), Some(0.0));
    let early = seen[seen.len() / 4];
    let most = seen.iter().max().unwrap();
    assert!(*most <= early + early / 10 + 2048, "{early} kB after a quarter, {most} kB at the most");
}
