//! The containers of video files, by the ending of a file's name.

use std::ffi::OsString;
use std::path::Path;

/// A container that vramp writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    Mp4,
    Mov,
    Mkv,
    Webm,
    Avi,
    Ts,
    Gif,
}

/// A file name whose ending is not a container.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` does not end in a known container; expected {}", Container::ENDINGS.map(|(ending, _)| ending).join(", "))]
pub struct UnknownContainer {
    pub path: String,
}

impl Container {
    pub const ENDINGS: [(&'static str, Container); 8] = [
        (".mp4", Container::Mp4),
        (".m4v", Container::Mp4),
        (".mov", Container::Mov),
        (".mkv", Container::Mkv),
        (".webm", Container::Webm),
        (".avi", Container::Avi),
        (".ts", Container::Ts),
        (".gif", Container::Gif),
    ];

    pub fn of(path: &str) -> Result<Container, UnknownContainer> {
        let ending = Path::new(path).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        let is_it = |known: &str| known[1..].eq_ignore_ascii_case(ending);
        let found = Container::ENDINGS.into_iter().find(|(known, _)| is_it(known));
        found.map(|(_, container)| container).ok_or_else(|| UnknownContainer { path: path.to_owned() })
    }

    /// ffmpeg's name of the container.
    pub(crate) fn muxer(self) -> &'static str {
        match self {
            Container::Mp4 => "mp4",
            Container::Mov => "mov",
            Container::Mkv => "matroska",
            Container::Webm => "webm",
            Container::Avi => "avi",
            Container::Ts => "mpegts",
            Container::Gif => "gif",
        }
    }

    /// The usual encoder.
    pub fn codec(self) -> &'static str {
        match self {
            Container::Mp4 | Container::Mov | Container::Mkv | Container::Ts => "libx264",
            Container::Webm => "libvpx-vp9",
            Container::Avi => "mpeg4",
            Container::Gif => "gif",
        }
    }

    /// Whether the ticks of the container can be chosen.
    pub(crate) fn has_timescale(self) -> bool {
        matches!(self, Container::Mp4 | Container::Mov)
    }

    /// Whether the container can hide what comes before the start.
    pub(crate) fn has_edits(self) -> bool {
        matches!(self, Container::Mp4 | Container::Mov)
    }

    /// Whether the container holds sound.
    pub fn has_audio(self) -> bool {
        self != Container::Gif
    }

    /// The encoder of sound that the container cannot hold as it is.
    pub(crate) fn audio_codec(self) -> &'static str {
        match self {
            Container::Webm => "libopus",
            Container::Avi => "libmp3lame",
            _ => "aac",
        }
    }

    /// How subtitles are stored; `None` if the container has no subtitles.
    pub(crate) fn subtitles(self) -> Option<&'static str> {
        match self {
            Container::Mp4 | Container::Mov => Some("mov_text"),
            Container::Mkv => Some("copy"),
            Container::Webm => Some("webvtt"),
            Container::Avi | Container::Ts | Container::Gif => None,
        }
    }
}

/// ffmpeg's name of a file as an output.
pub(crate) fn output(file: &Path) -> OsString {
    // With its protocol, so that a name with a dash or a colon is a name.
    let mut name = OsString::from("file:");
    name.push(file);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_decides_in_any_case() {
        assert_eq!(Container::of("a/b.MP4"), Ok(Container::Mp4));
        assert_eq!(Container::of("-x.webm"), Ok(Container::Webm));
        for path in ["mp4", "a.txt", "a.", ""] {
            let error = Container::of(path).unwrap_err().to_string();
            assert!(error.contains(".mkv"), "{error}");
        }
    }
}
