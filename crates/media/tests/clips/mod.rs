//! Clips that ffmpeg makes, and what ffmpeg and ffprobe tell about them.

use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use vramp_media::{Decoder, DecoderInput, Decoding, MediaFile, NextFrame, Reading, Tools, Waiting, describe};
use vramp_plan::Size;

/// A folder that is removed at the end of a test.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Folder {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!("vramp-media-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }

    /// Runs ffmpeg with these options, which write a file of this folder, and returns the file.
    pub fn make(&self, options: &str, name: &str) -> String {
        let file = self.file(name);
        let made = Command::new("ffmpeg")
            .args(["-nostdin", "-v", "error", "-y"])
            .args(options.split_whitespace())
            .arg(format!("file:{file}"))
            .output()
            .expect("`cargo xtask test` installs ffmpeg");
        assert!(made.status.success(), "{options}: {}", String::from_utf8_lossy(&made.stderr));
        file
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub const LIMIT: Duration = Duration::from_secs(20);

pub fn told(file: &str) -> MediaFile {
    describe(&Tools::in_path(), file, LIMIT).unwrap()
}

pub fn decoding(file: &str) -> Decoding {
    let reading = Reading::of(&told(file), |_| true).unwrap();
    let input = DecoderInput::Address { address: file.to_owned(), start_s: None, duration_s: None, timeout: LIMIT };
    Decoding { input, reading, hwaccel: None }
}

/// A decoded frame.
pub struct Shot {
    pub pts_ns: i64,
    pub size: Size,
    pub bytes: Vec<u8>,
}

/// All frames.
pub fn shots(decoding: &Decoding) -> Vec<Shot> {
    let mut decoder = Decoder::start(&Tools::in_path(), decoding).unwrap();
    let waiting = Waiting { over: &|| false, limit: LIMIT };
    let mut shots = Vec::new();
    while let NextFrame::Frame { pts_ns, size } = decoder.next(&waiting).unwrap() {
        let mut bytes = vec![0; decoding.reading.format.frame_bytes(size) as usize];
        assert!(decoder.read(&mut bytes, &waiting).unwrap());
        shots.push(Shot { pts_ns, size, bytes });
    }
    shots
}

/// The times of all frames in seconds, from ffprobe.
pub fn times(file: &str) -> Vec<f64> {
    let told = Command::new("ffprobe")
        .args(["-v", "error", "-select_streams", "v:0", "-show_entries", "frame=best_effort_timestamp_time"])
        .args(["-of", "csv=p=0", "-i", file])
        .output()
        .unwrap();
    let text = String::from_utf8(told.stdout).unwrap();
    text.lines().filter_map(|line| line.trim_matches([',', ' ']).parse().ok()).collect()
}

/// Raw frames from ffmpeg itself.
pub fn raw(file: &str, pixel_format: &str) -> Vec<u8> {
    let made = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-i", file, "-fps_mode", "passthrough", "-f", "rawvideo", "-pix_fmt"])
        .args([pixel_format, "-"])
        .output()
        .unwrap();
    made.stdout
}
