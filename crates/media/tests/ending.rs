//! Processes that end, however they or their users end.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use vramp_media::{DecodeError, Decoder, NextFrame, Tools, Waiting};

use crate::clips::{Folder, LIMIT, decoding};

/// Set for the child process: the clip to decode for ever.
const PLAYS: &str = "VRAMP_TEST_PLAYS";

/// The ffmpeg processes that decode this file.
fn decoders_of(file: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command);
        if command.starts_with("ffmpeg") && command.contains(file) {
            found.push(pid);
        }
    }
    found
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(30), "waited in vain: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn clip(folder: &Folder) -> String {
    folder.make("-f lavfi -i testsrc2=s=320x240:r=30:d=4 -c:v libx264 -preset ultrafast", "clip.mp4")
}

#[test]
fn a_dropped_decoder_leaves_no_process() {
    let folder = Folder::new();
    let file = clip(&folder);
    let decoder = Decoder::start(&Tools::in_path(), &decoding(&file)).unwrap();
    wait_until("ffmpeg runs", || decoders_of(&file).len() == 1);
    drop(decoder);
    assert!(decoders_of(&file).is_empty());
}

#[test]
fn a_decoder_that_is_killed_at_any_time_is_an_error_with_its_signal() {
    let folder = Folder::new();
    let file = clip(&folder);
    let decoding = decoding(&file);
    let waiting = Waiting { over: &|| false, limit: LIMIT };
    let mut bytes = vec![0; 320 * 240 * 2];
    let mut killed = 0;
    for round in 0..50_u64 {
        let mut decoder = Decoder::start(&Tools::in_path(), &decoding).unwrap();
        let kill_after = round * 7 % 60;
        let mut frames = 0;
        let error = loop {
            if frames == kill_after {
                for pid in decoders_of(&file) {
                    let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
                }
            }
            match decoder.next(&waiting) {
                Ok(NextFrame::Frame { .. }) => match decoder.read(&mut bytes, &waiting) {
                    Ok(whole) => assert!(whole),
                    Err(error) => break Some(error),
                },
                Ok(NextFrame::End) => break None,
                Ok(NextFrame::Over) => panic!("the run is not over"),
                Err(error) => break Some(error),
            }
            frames += 1;
        };
        // A process that had sent everything may have ended before.
        if let Some(error) = error {
            assert!(matches!(&error, DecodeError::Died { ending, .. } if ending.contains("signal 9")), "{error}");
            killed += 1;
        }
    }
    assert!(killed >= 40, "{killed}");
    assert!(decoders_of(&file).is_empty());
}

#[test]
fn decoders_end_when_their_user_is_killed() {
    // The child process decodes until it is killed.
    if let Ok(file) = std::env::var(PLAYS) {
        let _decoder = Decoder::start(&Tools::in_path(), &decoding(&file)).unwrap();
        std::thread::sleep(Duration::from_secs(600));
        return;
    }
    let folder = Folder::new();
    let file = clip(&folder);
    for _ in 0..20 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "ending::decoders_end_when_their_user_is_killed", "--nocapture"])
            .env(PLAYS, &file)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_until("ffmpeg runs", || !decoders_of(&file).is_empty());
        child.kill().unwrap();
        child.wait().unwrap();
        wait_until("ffmpeg has ended", || decoders_of(&file).is_empty());
    }
}
