//! `vramp inspect FILE`: what is in a media file or stream, and how `video` reads it.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::anyhow;
use serde::Serialize;
use vramp::media::{Address, MediaFile, MediaStreamKind, Reading, Tools, VideoTrack, describe};

use crate::failure::CliError;
use crate::page;

/// The longest wait for a file or the network.
const LIMIT: Duration = Duration::from_secs(10);

/// Whether a word is a file or address and not the name of a handler.
pub(super) fn is_media(word: &str) -> bool {
    matches!(Address::of(word), Address::Url { .. })
        || word.contains(['.', '/', '\\'])
        || std::path::Path::new(word).is_file()
}

pub(super) fn run(address: &str, json: bool, tools: &Tools) -> Result<(), CliError> {
    let media =
        describe(tools, address, LIMIT).map_err(|error| CliError::Failed(anyhow!("{error}; {}", error.help())))?;
    let shown = if json {
        let mut line =
            serde_json::to_string(&MediaJson::of(address, &media)).map_err(|error| CliError::Failed(error.into()))?;
        line.push('\n');
        line
    } else {
        text(address, &media)
    };
    page::result(shown.as_bytes())
}

/// How `video` reads the file. Whether ffmpeg has the filters for HDR is not asked.
fn reading(media: &MediaFile) -> Result<Reading, String> {
    Reading::of(media, |_| true).map_err(|error| format!("{error}; {}", error.help()))
}

fn text(address: &str, media: &MediaFile) -> String {
    let mut out = format!("{address}\n");
    let mut fact = |name: &str, value: &str| {
        let _ = writeln!(out, "  {name:<10} {value}");
    };
    fact("container", &media.container);
    if let Some(seconds) = media.duration_s {
        fact("duration", &duration(seconds));
    }
    if let Some(rate) = media.bit_rate {
        fact("bit rate", &format!("{} kbit/s", rate / 1000));
    }
    for stream in &media.streams {
        let language = stream.language.as_ref().map_or(String::new(), |language| format!(", {language}"));
        match &stream.kind {
            MediaStreamKind::Video(track) => fact("video", &format!("{}, {}{language}", stream.codec, picture(track))),
            MediaStreamKind::Audio { channels, sample_rate } => {
                let channels = if *channels == 1 { "1 channel".to_owned() } else { format!("{channels} channels") };
                fact("audio", &format!("{}, {channels}, {sample_rate} Hz{language}", stream.codec));
            }
            MediaStreamKind::Subtitles => fact("subtitles", &format!("{}{language}", stream.codec)),
            MediaStreamKind::Other(kind) => fact(kind, &stream.codec),
        }
    }
    match reading(media) {
        Ok(reading) => {
            fact("read as", &format!("{} {}", reading.format, reading.size));
            reading.notes.iter().for_each(|note| fact("note", note));
        }
        Err(problem) => fact("read as", &problem),
    }
    out
}

fn picture(track: &VideoTrack) -> String {
    let mut parts = vec![track.size.to_string()];
    if track.turned {
        parts.push("turned by a quarter".to_owned());
    }
    if let Some(aspect) = track.aspect.filter(|aspect| aspect.num != aspect.den) {
        parts.push(format!("pixels {}:{}", aspect.num, aspect.den));
    }
    parts.extend(track.rate.map(|rate| format!("{rate} fps")));
    parts.extend(track.frames.map(|frames| format!("{frames} frames")));
    parts.push(track.pixel_format.clone());
    let colours = [&track.matrix, &track.range, &track.transfer, &track.primaries, &track.chroma_location];
    let mut seen: Vec<&str> = Vec::new();
    for word in colours.into_iter().flatten() {
        if !seen.contains(&word.as_str()) {
            seen.push(word);
        }
    }
    if !seen.is_empty() {
        parts.push(format!("colours {}", seen.join("/")));
    }
    if let Some(fields) = track.fields.as_deref().filter(|fields| *fields != "progressive") {
        parts.push(format!("fields {fields}"));
    }
    parts.join(", ")
}

/// Seconds as hours, minutes and seconds.
fn duration(seconds: f64) -> String {
    let whole = seconds as u64;
    let (hours, minutes) = (whole / 3600, whole / 60 % 60);
    let rest = seconds - (whole / 60 * 60) as f64;
    match (hours, minutes) {
        (0, 0) => format!("{rest:.2} s"),
        (0, _) => format!("{minutes}:{rest:05.2}"),
        _ => format!("{hours}:{minutes:02}:{rest:05.2}"),
    }
}

#[derive(Serialize)]
struct MediaJson<'a> {
    address: &'a str,
    container: &'a str,
    duration_s: Option<f64>,
    start_s: f64,
    bit_rate: Option<u64>,
    streams: Vec<StreamJson<'a>>,
    /// The format in which `video` reads the pictures; `None` if it cannot.
    format: Option<&'static str>,
    notes: Vec<String>,
}

#[derive(Default, Serialize)]
struct StreamJson<'a> {
    kind: &'a str,
    codec: &'a str,
    language: Option<&'a str>,
    duration_s: Option<f64>,
    size: Option<[u32; 2]>,
    fps: Option<String>,
    frames: Option<u64>,
    pixel_format: Option<&'a str>,
    pixel_aspect: Option<[u32; 2]>,
    range: Option<&'a str>,
    matrix: Option<&'a str>,
    transfer: Option<&'a str>,
    primaries: Option<&'a str>,
    chroma_location: Option<&'a str>,
    fields: Option<&'a str>,
    channels: Option<u64>,
    sample_rate: Option<u64>,
}

impl<'a> MediaJson<'a> {
    fn of(address: &'a str, media: &'a MediaFile) -> MediaJson<'a> {
        let (format, notes) = match reading(media) {
            Ok(reading) => (Some(reading.format.name()), reading.notes),
            Err(problem) => (None, vec![problem]),
        };
        let stream = |stream: &'a vramp::media::MediaStream| {
            let plain = StreamJson {
                codec: &stream.codec,
                language: stream.language.as_deref(),
                duration_s: stream.duration_s,
                ..StreamJson::default()
            };
            match &stream.kind {
                MediaStreamKind::Video(track) => StreamJson {
                    kind: "video",
                    size: Some([track.size.width, track.size.height]),
                    fps: track.rate.map(|rate| rate.to_string()),
                    frames: track.frames,
                    pixel_format: Some(&track.pixel_format),
                    pixel_aspect: track.aspect.map(|aspect| [aspect.num, aspect.den]),
                    range: track.range.as_deref(),
                    matrix: track.matrix.as_deref(),
                    transfer: track.transfer.as_deref(),
                    primaries: track.primaries.as_deref(),
                    chroma_location: track.chroma_location.as_deref(),
                    fields: track.fields.as_deref(),
                    ..plain
                },
                MediaStreamKind::Audio { channels, sample_rate } => {
                    StreamJson { kind: "audio", channels: Some(*channels), sample_rate: Some(*sample_rate), ..plain }
                }
                MediaStreamKind::Subtitles => StreamJson { kind: "subtitles", ..plain },
                MediaStreamKind::Other(kind) => StreamJson { kind, ..plain },
            }
        };
        MediaJson {
            address,
            container: &media.container,
            duration_s: media.duration_s,
            start_s: media.start_s,
            bit_rate: media.bit_rate,
            streams: media.streams.iter().map(stream).collect(),
            format,
            notes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_parts_that_they_need() {
        assert_eq!([2.5, 75.0, 3725.25].map(duration), ["2.50 s", "1:15.00", "1:02:05.25"]);
    }

    #[test]
    fn names_of_handlers_are_not_files() {
        assert!(!is_media("blur") && !is_media("video"));
        assert!(is_media("clip.mp4") && is_media("rtsp://host/1") && is_media("./clip"));
    }
}
