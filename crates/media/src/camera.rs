//! Cameras: which there are, and ffmpeg's options to open one.

use std::ffi::OsString;
use std::path::PathBuf;

use vramp_plan::{Rate, Size};

/// A device name with this prefix is a made-up picture of ffmpeg's, such as `lavfi:testsrc2`, to try a pipeline without
/// a camera.
const MADE_UP: &str = "lavfi:";

/// A camera of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Camera {
    /// What to give as `device=`.
    pub device: String,
    pub name: String,
}

/// The cameras that Linux lists. Elsewhere the list is empty; `ffmpeg -list_devices true` shows the names there.
pub fn cameras() -> Vec<Camera> {
    let mut found: Vec<(u32, Camera)> = Vec::new();
    for entry in std::fs::read_dir("/sys/class/video4linux").into_iter().flatten().flatten() {
        let Some(number) = entry.file_name().to_str().and_then(|name| name.strip_prefix("video")?.parse().ok()) else {
            continue;
        };
        let read = |file: &str| std::fs::read_to_string(entry.path().join(file)).unwrap_or_default().trim().to_owned();
        // A camera has several nodes, of which the first gives pictures.
        if read("index") == "0" {
            found.push((number, Camera { device: number.to_string(), name: read("name") }));
        }
    }
    found.sort_by_key(|(number, _)| *number);
    found.into_iter().map(|(_, camera)| camera).collect()
}

/// ffmpeg's input options for a camera.
pub fn camera_input(device: &str, size: Option<Size>, rate: Option<Rate>) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut add = |option: &str, value: String| arguments.extend([OsString::from(option), value.into()]);
    if let Some(made_up) = device.strip_prefix(MADE_UP) {
        let size = size.map(|size| format!(",scale={}:{}", size.width, size.height)).unwrap_or_default();
        let rate = rate.map(|rate| format!(",fps={}/{}", rate.num(), rate.den())).unwrap_or_default();
        // `-re` sends frames at their times, as a camera does.
        arguments.push("-re".into());
        arguments.extend(["-f", "lavfi", "-i"].map(OsString::from));
        arguments.push(format!("{made_up}{rate}{size}").into());
        return arguments;
    }
    let (format, input) = if cfg!(target_os = "macos") {
        ("avfoundation", device.to_owned())
    } else if cfg!(windows) {
        ("dshow", format!("video={device}"))
    } else if device.chars().all(|c| c.is_ascii_digit()) {
        ("v4l2", PathBuf::from(format!("/dev/video{device}")).display().to_string())
    } else {
        ("v4l2", device.to_owned())
    };
    add("-f", format.to_owned());
    if let Some(rate) = rate {
        add("-framerate", format!("{}/{}", rate.num(), rate.den()));
    }
    if let Some(size) = size {
        add("-video_size", size.to_string());
    }
    add("-i", input);
    arguments
}
