//! Video through ffmpeg processes, against ffmpeg alone, in processor time of all processes.
//!
//! - `transcode`: an H.264 clip of 1080p decoded, filtered and encoded, against one ffmpeg command with the same filters,
//!   and beside a line of `GStreamer` if `gst-launch-1.0` is installed. ffmpeg filters YUV and vramp RGBA, so that a blur
//!   is cheaper for ffmpeg, and colours are cheaper for vramp.
//! - `pipes`: raw frames of 1080p from and to ffmpeg, against a plain pipe of 64 KB. What ffmpeg takes without a pipe is
//!   subtracted on both sides.
//!
//! Each figure is the median of 5 rounds in which all cases alternate. Files are in the temporary folder; a folder in
//! memory (`TMPDIR=/dev/shm`) disturbs least.

#[expect(dead_code, reason = "each bench uses a part of it")]
mod measure;

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use measure::{cpu_with_children_ms, median};
use vramp::Pipeline;
use vramp::media::{
    Container, Decoder, DecoderInput, Decoding, Encoder, Encoding, NextFrame, Reading, Tools, VideoColours, Waiting,
    describe,
};
use vramp::plan::{Format, RunOptions, Size, Space};

const ROUNDS: usize = 5;
const FRAMES: usize = 150;
const LIMIT: Duration = Duration::from_secs(60);

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    let folder = std::env::temp_dir().join(format!("vramp-video-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    if wanted("transcode") {
        transcode(&folder);
    }
    if wanted("pipes") {
        pipes(&folder);
    }
    // The folder holds only what this program wrote.
    let _ = std::fs::remove_dir_all(&folder);
}

/// Milliseconds of processor time per frame, of this process and its children.
fn cost(work: impl FnOnce()) -> f64 {
    let before = cpu_with_children_ms();
    work();
    (cpu_with_children_ms() - before) / FRAMES as f64
}

fn ffmpeg(options: &str) {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error", "-y"]).args(options.split_whitespace());
    assert!(command.status().expect("ffmpeg is installed").success(), "{options}");
}

fn transcode(folder: &Path) {
    let (clip, out) = (folder.join("clip.mp4"), folder.join("out.mp4"));
    ffmpeg(&format!(
        "-f lavfi -i mandelbrot=s=1920x1080:r=30 -frames:v {FRAMES} -pix_fmt yuv420p -c:v libx264 -preset fast {}",
        clip.display()
    ));
    let ours = |filters: &str, preset: &str| {
        let (from, to) = (clip.display(), out.display());
        let text = format!("video path={from} ! {filters} ! video path={to} preset={preset}");
        let options = RunOptions::new().only(Space::Cpu);
        let run = Pipeline::parse(text).options(options).build().and_then(|mut pipeline| pipeline.run());
        let report = run.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(report.frames, FRAMES as u64);
    };
    let theirs = |filters: &str, preset: &str| {
        let (from, to) = (clip.display(), out.display());
        ffmpeg(&format!("-i {from} -vf {filters} -c:v libx264 -preset {preset} {to}"));
    };
    let streamer = |preset: &str| {
        let (from, to) = (clip.display(), out.display());
        let line = format!(
            "-q filesrc location={from} ! qtdemux ! h264parse ! avdec_h264 ! videoconvert ! videoflip method=horizontal-flip ! \
             videobalance brightness=0.05 ! gaussianblur sigma=2 ! videoconvert ! video/x-raw,format=I420 ! x264enc \
             pass=qual quantizer=23 speed-preset={preset} ! h264parse ! mp4mux ! filesink location={to}"
        );
        let mut command = Command::new("gst-launch-1.0");
        command
            .args(line.split_whitespace())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|s| s.success())
    };
    let has_gst = Command::new("gst-launch-1.0").arg("--version").stdout(Stdio::null()).status().is_ok();
    for (own, other, gst) in [
        ("flip h ! brightness 0.05 ! blur sigma=2", "hflip,eq=brightness=0.05,gblur=sigma=2", has_gst),
        ("contrast 1.2 ! hue 40 ! sharpen 1", "eq=contrast=1.2,hue=h=40,unsharp=3:3:1", false),
    ] {
        for preset in ["ultrafast", "medium"] {
            let mut rows: [Vec<f64>; 3] = Default::default();
            for _ in 0..ROUNDS {
                rows[0].push(cost(|| ours(own, preset)));
                rows[1].push(cost(|| theirs(other, preset)));
                if gst {
                    rows[2].push(cost(|| assert!(streamer(preset), "gst-launch-1.0 failed")));
                }
            }
            let ratios: Vec<f64> = rows[0].iter().zip(&rows[1]).map(|(ours, theirs)| ours / theirs).collect();
            println!(
                "transcode, {own}, preset {preset}: {:.2} ms a frame, ffmpeg alone {:.2}: {:.2} x (at most 1.0)",
                median(&rows[0]),
                median(&rows[1]),
                median(&ratios)
            );
            if gst {
                println!("  GStreamer {:.2} ms a frame", median(&rows[2]));
            }
        }
    }
}

fn pipes(folder: &Path) {
    let size = Size::new(1920, 1080).expect("a valid size");
    let raw = folder.join("raw.nut");
    ffmpeg(&format!(
        "-f lavfi -i testsrc2=s={size}:r=30 -frames:v {FRAMES} -pix_fmt yuv420p -c:v rawvideo {}",
        raw.display()
    ));
    let address = raw.display().to_string();
    // What a decoder asks of ffmpeg, so that ffmpeg does the same work in all cases.
    let read = format!(
        "-i {address} -map 0:V:0 -autoscale 0 -pix_fmt yuv420p -fps_mode passthrough -enc_time_base -1 -c:v rawvideo \
         -flush_packets 1 -write_index 0 -f nut"
    );
    let decoding = decoding(&address);
    let mut rows: [Vec<f64>; 6] = Default::default();
    for _ in 0..ROUNDS {
        rows[0].push(cost(|| ffmpeg(&format!("{read} /dev/null"))));
        rows[1].push(cost(|| plain_in(&read)));
        rows[2].push(cost(|| decoded(&decoding)));
        rows[3].push(cost(|| encoded_from(&raw)));
        rows[4].push(cost(|| plain_out(&raw)));
        rows[5].push(cost(|| encoded(size)));
    }
    let net = |at: usize, without: usize| (median(&rows[at]) - median(&rows[without])).max(0.0);
    for (what, plain, ours, without, most) in [("in", 1, 2, 0, 0.75), ("out", 4, 5, 3, 0.5)] {
        let (plain, ours) = (net(plain, without), net(ours, without));
        println!(
            "pipes, {what}: {ours:.2} ms a frame, a pipe of 64 KB {plain:.2}: {:.2} x (at most {most}; without any pipe {:.2} ms)",
            ours / plain.max(0.01),
            median(&rows[without])
        );
    }
}

/// Reads what ffmpeg writes through a plain pipe, into memory of one frame.
fn plain_in(read: &str) {
    let mut command = Command::new("ffmpeg");
    command.args(["-nostdin", "-v", "error"]).args(read.split_whitespace()).arg("-").stdout(Stdio::piped());
    let mut child = command.spawn().expect("ffmpeg starts");
    let mut pipe = child.stdout.take().expect("a pipe");
    let mut frame = vec![0; 3_110_400];
    let mut at = 0;
    while let count @ 1.. = pipe.read(&mut frame[at..]).expect("the pipe is read") {
        at = (at + count) % frame.len();
    }
    assert!(child.wait().expect("it ends").success());
}

fn decoding(address: &str) -> Decoding {
    let media = describe(&Tools::in_path(), address, LIMIT).unwrap_or_else(|error| panic!("{error}"));
    let reading = Reading::of(&media, |_| true).unwrap_or_else(|error| panic!("{error}"));
    let input = DecoderInput::Address { address: address.to_owned(), start_s: None, duration_s: None, timeout: LIMIT };
    Decoding { input, reading, hwaccel: None }
}

fn decoded(decoding: &Decoding) {
    let mut decoder = Decoder::start(&Tools::in_path(), decoding).unwrap_or_else(|error| panic!("{error}"));
    let waiting = Waiting { over: &|| false, limit: LIMIT };
    let mut frame = vec![0; Format::I420.frame_bytes(decoding.reading.size) as usize];
    let mut frames = 0;
    while let NextFrame::Frame { .. } = decoder.next(&waiting).unwrap_or_else(|error| panic!("{error}")) {
        decoder.read(&mut frame, &waiting).unwrap_or_else(|error| panic!("{error}"));
        frames += 1;
    }
    assert_eq!(frames, FRAMES);
}

const TO_NOTHING: &str = "-map 0:v:0 -c:v rawvideo -f matroska /dev/null";

/// ffmpeg reads frames from a file.
fn encoded_from(raw: &Path) {
    ffmpeg(&format!("-f nut -i {} {TO_NOTHING}", raw.display()));
}

/// ffmpeg reads the same bytes from a plain pipe.
fn plain_out(raw: &PathBuf) {
    let mut bytes = vec![0; 3_110_400];
    let mut file = std::fs::File::open(raw).expect("the file is there");
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error", "-y", "-f", "nut", "-i", "pipe:0"]).args(TO_NOTHING.split_whitespace());
    let mut child = command.stdin(Stdio::piped()).spawn().expect("ffmpeg starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    loop {
        match file.read(&mut bytes).expect("the file is read") {
            0 => break,
            count => pipe.write_all(&bytes[..count]).expect("ffmpeg takes all"),
        }
    }
    drop(pipe);
    assert!(child.wait().expect("it ends").success());
}

fn encoded(size: Size) {
    let encoding = Encoding {
        container: Container::Mkv,
        codec: Some("rawvideo".to_owned()),
        crf: None,
        preset: None,
        format: Format::I420,
        size,
        colours: VideoColours::default(),
        aspect: None,
        rate: None,
    };
    let frames: Vec<std::sync::Arc<Vec<u8>>> =
        (0..3).map(|n| std::sync::Arc::new(vec![n; Format::I420.frame_bytes(size) as usize])).collect();
    let nothing = Path::new("/dev/null");
    let mut encoder = Encoder::start(&Tools::in_path(), &encoding, nothing).unwrap_or_else(|error| panic!("{error}"));
    for number in 0..FRAMES {
        let frame = std::sync::Arc::clone(&frames[number % frames.len()]);
        let written = encoder.write(i64::try_from(number).unwrap_or(0) * 33_333_333, &frame.clone(), frame, &mut || {});
        written.unwrap_or_else(|error| panic!("{error}"));
    }
    encoder.finish(nothing, &mut || {}).unwrap_or_else(|error| panic!("{error}"));
}
