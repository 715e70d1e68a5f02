//! Memory that the system refuses: a run that does not get the memory it needs reports an error, and is never ended by
//! a signal.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{cache, dir, ends_with, vramp};

/// The result of a limited run.
struct Limited {
    code: Option<i32>,
    err: String,
}

/// Runs the program with this limit of address space in KiB.
fn limited(kib: u64, args: &[&str]) -> Limited {
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -v \"$1\" && shift && exec \"$@\"", "sh", &kib.to_string()]);
    command.arg(env!("CARGO_BIN_EXE_vramp")).args(args);
    command.env("XDG_CACHE_HOME", cache()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let output = command.output().unwrap();
    Limited { code: output.status.code(), err: String::from_utf8_lossy(&output.stderr).into_owned() }
}

/// Square images of this side, one in each format that the program can write.
fn pictures(dir: &Path, side: u32) -> Vec<String> {
    let mut made = Vec::new();
    for (kind, name) in [("png", "a.png"), ("jpeg", "a.jpg")] {
        let path = dir.join(format!("{side}-{name}"));
        let text = format!("pattern kind=gradient size={side}x{side} frames=1 ! {kind} path=\"{}\"", path.display());
        ends_with(0, vramp(&["run", &text, "--cpu", "-q"]));
        made.push(path.to_str().unwrap().to_owned());
    }
    // An image with 16 bits per channel, which is decoded into a separate buffer; stored without compression.
    let pixels = vec![7; side as usize * side as usize * 8];
    let path = dir.join(format!("{side}-deep.png"));
    let mut encoder = png::Encoder::new(std::fs::File::create(&path).unwrap(), side, side);
    encoder.set_color(png::ColorType::Rgba);
    encoder.set_depth(png::BitDepth::Sixteen);
    encoder.set_compression(png::Compression::Fastest);
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
    made.push(path.to_str().unwrap().to_owned());
    made
}

const FILTERS: [&str; 8] = [
    "identity",
    "blur 3",
    "invert ! rotate 90",
    "resize 640x480",
    "resize scale=1.5 filter=lanczos",
    "delay 2",
    "waveform kind=luma",
    "convert i420",
];

#[test]
fn no_pipeline_is_ended_by_a_signal_however_little_memory_there_is() {
    let dir = dir("memory_table");
    let mut sources = vec!["pattern size=4000x4000 frames=3".to_owned(), "pattern size=64x64 frames=3".to_owned()];
    sources.extend(pictures(&dir, 4000).iter().map(|path| format!("image path=\"{path}\"")));
    let sinks = ["null", "png out-%d.png", "jpeg out-%d.jpg", "raw out.raw", "y4m out.y4m"];
    let (mut failed, mut done, mut at) = (0, 0, 0_usize);
    for source in &sources {
        for filter in FILTERS {
            for kib in [150_000, 250_000, 350_000, 600_000] {
                // Every sink is combined with every source, filter and limit, but not with all of them at once.
                at += 1;
                // A third of the combinations is enough for each change: 3 has no common divisor with the length of any
                // list.
                if at % 3 != 0 && std::env::var_os("VRAMP_LONG").is_none() {
                    continue;
                }
                let sink = sinks[at % sinks.len()].replace("out", dir.join("out").to_str().unwrap());
                let text = format!("{source} ! {filter} ! {sink}");
                let run = limited(kib, &["run", &text, "--cpu", "-q", "--threads", "2"]);
                match run.code {
                    Some(0) => done += 1,
                    Some(1..=3) => {
                        assert!(run.err.contains("error: "), "{kib} KiB: {text}: {}", run.err);
                        failed += 1;
                    }
                    other => panic!("{kib} KiB: {text}: ended with {other:?}: {}", run.err),
                }
            }
        }
    }
    assert!(failed > 10 && done > 10, "{failed} failed and {done} did not: the limits try nothing");
}

#[test]
fn frames_leave_memory_for_what_is_small() {
    let dir = dir("memory_spare");
    for (side, kib) in [(2500, 200_000), (3500, 300_000), (4000, 160_000), (4000, 300_000)] {
        let out = dir.join("out.y4m");
        let text = format!(
            "pattern size={side}x{side} frames=3 ! resize scale=1.5 filter=lanczos ! y4m path=\"{}\"",
            out.display()
        );
        for _ in 0..5 {
            let run = limited(kib, &["run", &text, "--cpu", "-q", "--threads", "2"]);
            assert!(matches!(run.code, Some(0 | 1)), "{kib} KiB, {side}: {:?}: {}", run.code, run.err);
        }
    }
}

#[test]
fn without_threads_nothing_is_opened() {
    let dir = dir("memory_threads");
    let text = format!("pattern size=8x8 frames=3 ! raw path=\"{}\"", dir.join("o.raw").display());
    let run = limited(150_000, &["run", &text, "--cpu", "-q", "--threads", "64"]);
    if run.code != Some(0) {
        assert_eq!(run.code, Some(1), "{}", run.err);
        assert!(run.err.contains("thread"), "{}", run.err);
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0, "nothing half-written is left behind");
    }
}

#[test]
fn a_picture_without_memory_is_an_error_of_its_frame_and_the_next_one_is_made() {
    let dir = dir("memory_skips");
    pictures(&dir, 8000);
    std::fs::rename(dir.join("8000-a.png"), dir.join("b1.png")).unwrap();
    for name in ["b0.png", "b2.png"] {
        let text = format!("pattern size=64x64 frames=1 ! png path=\"{}\"", dir.join(name).display());
        ends_with(0, vramp(&["run", &text, "--cpu", "-q"]));
    }
    let text = format!("image path=\"{0}/b*.png\" on-error=skip ! png path=\"{0}/out-%d.png\"", dir.display());
    let run = limited(250_000, &["run", &text, "--cpu"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    // The refused memory is that of the file or of its pixels.
    assert!(run.err.contains("b1.png") && run.err.contains("bytes of host memory are needed, and"), "{}", run.err);
    let sizes = ["out-0.png", "out-1.png", "out-2.png"].map(|name| {
        let reader = std::fs::File::open(dir.join(name)).ok().map(std::io::BufReader::new)?;
        Some(png::Decoder::new(reader).read_info().unwrap().info().width)
    });
    assert_eq!(sizes, [Some(64), None, Some(64)]);
    // Without `on-error=skip` the run ends there, and finished files stay.
    let text = text.replace(" on-error=skip", "").replace("out-", "other-");
    let run = limited(250_000, &["run", &text, "--cpu", "-q"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("error: image0, frame 1: "), "{}", run.err);
    assert!(dir.join("other-0.png").is_file() && !dir.join("other-2.png").exists());
    let left = std::fs::read_dir(&dir)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().ends_with(".part"));
    assert_eq!(left.count(), 0, "nothing half-written is left behind");
}

#[test]
fn a_stream_waits_for_frames_that_come_back_where_the_system_has_no_more() {
    let dir = dir("memory_waits");
    let out = dir.join("out.raw");
    // A few frames of 64 MB fit, while the plan needs more.
    let text =
        format!("pattern kind=solid size=4000x4000 frames=6 !{{lossless depth=12}} raw path=\"{}\"", out.display());
    let run = limited(650_000, &["run", &text, "--cpu", "-q"]);
    assert_eq!(run.code, Some(0), "{}", run.err);
    assert_eq!(std::fs::metadata(&out).unwrap().len(), 6 * 4 * 4000 * 4000);
}

#[test]
fn an_overlay_without_memory_is_refused_with_its_bytes() {
    let dir = dir("memory_overlay");
    let path = pictures(&dir, 5000).remove(0);
    let text = format!("pattern size=64x64 frames=1 ! overlay path=\"{path}\" ! null");
    let run = limited(300_000, &["run", &text, "--cpu", "-q"]);
    assert_eq!(run.code, Some(1), "{}", run.err);
    assert!(run.err.contains("500000000 bytes of host memory are needed"), "{}", run.err);
}
