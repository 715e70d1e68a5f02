//! Finds ffmpeg and ffprobe, checks their version, and asks what they can do.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::process::{NotStarted, Process};

/// The oldest version with all options that vramp uses.
pub const OLDEST: (u32, u32) = (5, 1);
/// Time limit for a question.
const LIMIT: Duration = Duration::from_secs(10);
/// Bytes of an answer that are read. A list of all codecs has 60 KB.
const MOST_BYTES: u64 = 1 << 20;

/// Where ffmpeg and ffprobe are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tools {
    ffmpeg: Option<PathBuf>,
}

/// What is wrong with ffmpeg or ffprobe.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    #[error("{reason}; {}", install())]
    NotStarted { reason: NotStarted },
    #[error("{program} is version {version}, but vramp needs {}.{} or newer; install a newer ffmpeg, or name one with \
             `--ffmpeg PATH`", OLDEST.0, OLDEST.1)]
    Old { program: String, version: String },
    #[error("`{program}` does not answer like ffmpeg; name the program with `--ffmpeg PATH`")]
    NotFfmpeg { program: String },
    #[error("{program} did not answer within {} s; check that it can be run", LIMIT.as_secs())]
    Silent { program: String },
}

/// How to install ffmpeg on this system.
pub fn install() -> &'static str {
    if cfg!(target_os = "macos") {
        "install ffmpeg, for example with `brew install ffmpeg`, or name the program with `--ffmpeg PATH`"
    } else if cfg!(windows) {
        "install ffmpeg, for example with `winget install ffmpeg`, or name the program with `--ffmpeg PATH`"
    } else {
        "install ffmpeg, for example with `apt install ffmpeg`, or name the program with `--ffmpeg PATH`"
    }
}

impl Tools {
    /// The programs in the PATH.
    pub fn in_path() -> Tools {
        Tools::default()
    }

    /// This ffmpeg, and the ffprobe beside it.
    pub fn at(ffmpeg: impl Into<PathBuf>) -> Tools {
        Tools { ffmpeg: Some(ffmpeg.into()) }
    }

    pub(crate) fn ffmpeg(&self) -> PathBuf {
        self.ffmpeg.clone().unwrap_or_else(|| PathBuf::from("ffmpeg"))
    }

    /// The ffprobe beside the ffmpeg, with the same suffix, such as `.exe` or `-7`.
    pub(crate) fn ffprobe(&self) -> PathBuf {
        let Some(ffmpeg) = &self.ffmpeg else { return PathBuf::from("ffprobe") };
        let name = ffmpeg.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let beside = ffmpeg.with_file_name(name.replacen("ffmpeg", "ffprobe", 1));
        // A name alone is looked up in the PATH.
        if beside == *ffmpeg || !beside.exists() && ffmpeg.components().count() > 1 {
            return ffmpeg.with_file_name(if cfg!(windows) { "ffprobe.exe" } else { "ffprobe" });
        }
        beside
    }

    /// The version of ffmpeg, such as `5.1.9`. An error if ffmpeg is missing or too old.
    pub fn version(&self) -> Result<String, ToolError> {
        version(&self.ffmpeg(), "ffmpeg")
    }

    /// The version of ffprobe.
    pub fn ffprobe_version(&self) -> Result<String, ToolError> {
        version(&self.ffprobe(), "ffprobe")
    }

    /// The names in a list of ffmpeg's, such as `-encoders`.
    pub fn list(&self, of: Abilities) -> Result<BTreeSet<String>, ToolError> {
        let program = self.ffmpeg();
        let answer = ask(&program, vec!["-hide_banner".into(), of.option().into()])?;
        Ok(of.names(&String::from_utf8_lossy(&answer.output)))
    }
}

/// An encoder that cannot be used as asked.
#[derive(Debug, thiserror::Error)]
pub enum EncoderError {
    #[error(transparent)]
    Tool(#[from] ToolError),
    #[error("ffmpeg has no encoder `{0}`; `vramp doctor` lists the encoders, and `codec=` names one")]
    Unknown(String),
    #[error("the encoder `{codec}` has no setting `{setting}`; leave it out, or choose another `codec`")]
    NoSetting { codec: String, setting: &'static str },
}

/// Encoders whose settings are known: whether they have `crf` and `preset`.
const KNOWN_ENCODERS: [(&str, bool, bool); 5] = [
    ("libx264", true, true),
    ("libx265", true, true),
    ("libsvtav1", true, true),
    ("libvpx-vp9", true, false),
    ("mpeg4", false, false),
];

/// Checks that ffmpeg has an encoder, with the settings that are used. A known encoder is not asked about, which saves
/// starting ffmpeg once (60 ms); ffmpeg itself tells if it is missing.
pub fn check_encoder(tools: &Tools, codec: &str, crf: bool, preset: bool) -> Result<(), EncoderError> {
    if let Some((_, has_crf, has_preset)) = KNOWN_ENCODERS.iter().find(|(known, ..)| *known == codec) {
        let missing = [(crf && !has_crf, "crf"), (preset && !has_preset, "preset")];
        return match missing.into_iter().find(|(is_missing, _)| *is_missing) {
            Some((_, setting)) => Err(EncoderError::NoSetting { codec: codec.to_owned(), setting }),
            None => Ok(()),
        };
    }
    let answer = ask(&tools.ffmpeg(), vec!["-hide_banner".into(), "-h".into(), format!("encoder={codec}").into()])?;
    let text = String::from_utf8_lossy(&answer.output);
    if !text.starts_with("Encoder ") {
        return Err(EncoderError::Unknown(codec.to_owned()));
    }
    let has = |option: &str| text.lines().any(|line| line.split_whitespace().next() == Some(option));
    for (is_used, setting, option) in [(crf, "crf", "-crf"), (preset, "preset", "-preset")] {
        if is_used && !has(option) {
            return Err(EncoderError::NoSetting { codec: codec.to_owned(), setting });
        }
    }
    Ok(())
}

/// A list of what ffmpeg can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Abilities {
    /// Encoders of video, such as `libx264`.
    VideoEncoders,
    /// Decoders of video, such as `h264`.
    VideoDecoders,
    Filters,
    Protocols,
    HardwareDecoders,
}

impl Abilities {
    fn option(self) -> &'static str {
        match self {
            Abilities::VideoEncoders => "-encoders",
            Abilities::VideoDecoders => "-decoders",
            Abilities::Filters => "-filters",
            Abilities::Protocols => "-protocols",
            Abilities::HardwareDecoders => "-hwaccels",
        }
    }

    fn names(self, text: &str) -> BTreeSet<String> {
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let named = |line: &str| match (self, words(line).as_slice()) {
            (Abilities::VideoEncoders | Abilities::VideoDecoders, [flags, name, ..])
                if flags.starts_with('V') && flags.len() == 6 && name != "=" =>
            {
                Some(name.clone())
            }
            (Abilities::Filters, [flags, name, pads, ..]) if flags.len() <= 3 && pads.contains("->") => {
                Some(name.clone())
            }
            (Abilities::Protocols | Abilities::HardwareDecoders, [name]) if !name.ends_with(':') => Some(name.clone()),
            _ => None,
        };
        text.lines().filter_map(named).collect()
    }
}

/// The answer of a program.
pub(crate) struct Answer {
    pub(crate) status: ExitStatus,
    pub(crate) output: Vec<u8>,
    pub(crate) last_words: String,
}

/// Runs a program to its end and returns what it wrote.
pub(crate) fn ask(program: &Path, arguments: Vec<OsString>) -> Result<Answer, ToolError> {
    ask_within(program, arguments, LIMIT)
}

pub(crate) fn ask_within(program: &Path, arguments: Vec<OsString>, limit: Duration) -> Result<Answer, ToolError> {
    let deadline = Instant::now() + limit;
    let silent = || ToolError::Silent { program: program.display().to_string() };
    let started = Process::start(program, arguments, Stdio::null(), Stdio::piped());
    let mut process = started.map_err(|reason| ToolError::NotStarted { reason })?;
    let output = process.take_stdout().ok_or_else(silent)?;
    let (done, all) = std::sync::mpsc::channel();
    // Without a thread, the sender is dropped and the receiver stops waiting.
    let _ = std::thread::Builder::new().name("vramp answer".to_owned()).spawn(move || {
        let mut bytes = Vec::new();
        // A broken pipe counts as the end of the output.
        let _ = output.take(MOST_BYTES).read_to_end(&mut bytes);
        let _ = done.send(bytes);
    });
    let left = || deadline.saturating_duration_since(Instant::now());
    let output = all.recv_timeout(left()).map_err(|_| silent())?;
    let status = process.wait(left().max(Duration::from_millis(100))).ok_or_else(silent)?;
    Ok(Answer { status, output, last_words: process.log().last_words() })
}

fn version(program: &Path, name: &str) -> Result<String, ToolError> {
    let answer = ask(program, vec!["-version".into()])?;
    let text = String::from_utf8_lossy(&answer.output);
    let shown = program.display().to_string();
    let version = text.strip_prefix(name).and_then(|rest| rest.trim_start().strip_prefix("version "));
    let Some(version) = version.and_then(|rest| rest.split_whitespace().next()) else {
        return Err(ToolError::NotFfmpeg { program: shown });
    };
    if is_old(version) {
        return Err(ToolError::Old { program: shown, version: version.to_owned() });
    }
    Ok(version.to_owned())
}

/// Whether a version is older than [`OLDEST`]. Builds from the development branch have no number and count as new.
fn is_old(version: &str) -> bool {
    let mut numbers = version.trim_start_matches('n').split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    let Some(Ok(major)) = numbers.next() else { return false };
    let minor = numbers.next().and_then(Result::ok).unwrap_or(0);
    // Development versions are called by their date.
    (major, minor) < OLDEST && major < 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        for version in ["4.4.2", "5.0.1", "5", "n4.4", "3.4.8-0ubuntu0.2"] {
            assert!(is_old(version), "{version}");
        }
        for version in ["5.1", "5.1.9-0+deb12u1", "6.0", "10.2", "n7.1", "N-109469-g62da0b4a74", "2026-01-01-git-1234"]
        {
            assert!(!is_old(version), "{version}");
        }
    }

    #[test]
    fn ffprobe_is_beside_ffmpeg() {
        let beside = |ffmpeg: &str| Tools::at(ffmpeg).ffprobe();
        assert_eq!(beside("ffmpeg-7"), Path::new("ffprobe-7"));
        assert_eq!(beside("/opt/x/ffmpeg"), Path::new("/opt/x/ffprobe"));
        assert_eq!(beside("/opt/ffmpeg/bin/my-build"), Path::new("/opt/ffmpeg/bin/ffprobe"));
        assert_eq!(Tools::in_path().ffprobe(), Path::new("ffprobe"));
    }

    #[test]
    fn lists_are_read_without_their_headings() {
        let encoders =
            "Encoders:\n V..... = Video\n A..... = Audio\n ------\n V....D libx264  H.264\n A....D aac AAC\n";
        assert_eq!(Abilities::VideoEncoders.names(encoders), BTreeSet::from(["libx264".to_owned()]));
        let filters =
            "Filters:\n  T.. = Timeline support\n  | = Source or sink\n TSC bwdif            V->V       Deint\n";
        assert_eq!(Abilities::Filters.names(filters), BTreeSet::from(["bwdif".to_owned()]));
        let protocols = "Supported file protocols:\nInput:\n  file\n  http\nOutput:\n  file\n";
        assert_eq!(Abilities::Protocols.names(protocols).len(), 2);
    }
}
