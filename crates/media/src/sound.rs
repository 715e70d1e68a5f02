//! Sound and subtitles: copied from a source file into a finished video file.
//!
//! The video is encoded first, without sound, because only then its duration is known: a run may be interrupted. The
//! streams of the source are then copied from the same start, for the same duration. What a container cannot hold as it
//! is, is encoded or left out, with a note.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use crate::address::Address;
use crate::container::{Container, output};
use crate::describe::{MediaStreamKind, describe};
use crate::encode::{EncodeError, Life};
use crate::process::Process;
use crate::tools::Tools;

/// Where the sound of a video comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct SoundSource {
    /// The file or URL.
    pub address: String,
    pub start_s: Option<f64>,
    pub has_audio: bool,
    pub has_subtitles: bool,
}

/// One way to add the streams, tried in order.
struct Attempt {
    audio: Option<String>,
    subtitles: Option<&'static str>,
    /// What to tell if this attempt is the one that works.
    note: Option<String>,
}

/// Writes the video of `from` and the sound of `source`, for `duration_s`, into `to`. Returns notes, and whether sound
/// could be added; otherwise `to` is not usable. Calls `alive` whenever ffmpeg makes progress.
pub fn add_sound(
    tools: &Tools,
    source: &SoundSource,
    container: Container,
    duration_s: f64,
    (from, to): (&Path, &Path),
    alive: &mut dyn FnMut(),
) -> Result<(bool, Vec<String>), EncodeError> {
    let mut notes = Vec::new();
    let mut problem = String::new();
    for attempt in attempts(source, container, can_copy(tools, source, container)) {
        let arguments = arguments(source, container, duration_s, (from, to), &attempt);
        let mut process = Process::start(&tools.ffmpeg(), arguments, Stdio::null(), Stdio::null())?;
        let status = Life::new().wait(&mut process, to, alive)?;
        if status.success() {
            let why = if problem.is_empty() { String::new() } else { format!(": {problem}") };
            notes.extend(attempt.note.map(|note| format!("{note}{why}")));
            return Ok((true, notes));
        }
        problem = process.log().last_words();
    }
    notes.push(format!("the sound of `{}` could not be copied, and the file has none: {problem}", source.address));
    Ok((false, notes))
}

/// Whether the container has a code for the sound. ffmpeg copies other sound into `.ts` as unknown data.
fn can_copy(tools: &Tools, source: &SoundSource, container: Container) -> bool {
    const CODES: [&str; 8] = ["aac", "mp2", "mp3", "ac3", "eac3", "dts", "opus", "truehd"];
    if container != Container::Ts {
        return true;
    }
    let Ok(media) = describe(tools, &source.address, Duration::from_secs(10)) else { return true };
    let mut sound = media.streams.iter().filter(|stream| matches!(stream.kind, MediaStreamKind::Audio { .. }));
    sound.all(|stream| CODES.contains(&stream.codec.as_str()))
}

fn attempts(source: &SoundSource, container: Container, can_copy: bool) -> Vec<Attempt> {
    let encoded = container.audio_codec();
    let again = format!("the sound was encoded again ({encoded}), because it could not be copied");
    let none = "the subtitles could not be copied";
    let subtitles = container.subtitles().filter(|_| source.has_subtitles);
    let mut attempts = Vec::new();
    for with_subtitles in [true, false] {
        if with_subtitles && subtitles.is_none() && source.has_subtitles {
            continue;
        }
        let (subtitles, lost) = match subtitles {
            Some(how) if with_subtitles => (Some(how), ""),
            None if !source.has_subtitles => (None, ""),
            _ => (None, none),
        };
        for copies in [true, false] {
            let words = [if copies { "" } else { again.as_str() }, lost];
            let note = words.iter().filter(|words| !words.is_empty()).copied().collect::<Vec<_>>().join("; ");
            let audio = Some(if copies { "copy".to_owned() } else { encoded.to_owned() });
            if !copies || can_copy {
                attempts.push(Attempt { audio, subtitles, note: (!note.is_empty()).then_some(note) });
            }
        }
        if !source.has_subtitles {
            break;
        }
    }
    attempts
}

fn arguments(
    source: &SoundSource,
    container: Container,
    duration_s: f64,
    (from, to): (&Path, &Path),
    attempt: &Attempt,
) -> Vec<OsString> {
    let mut arguments: Vec<OsString> =
        ["-nostdin", "-xerror", "-y", "-hide_banner", "-nostats", "-loglevel", "repeat+level+warning", "-i"]
            .map(OsString::from)
            .into();
    arguments.push(output(from));
    if let Some(start_s) = source.start_s {
        arguments.extend([OsString::from("-ss"), format!("{start_s:.9}").into()]);
    }
    arguments.extend([OsString::from("-t"), format!("{duration_s:.9}").into()]);
    arguments.extend(Address::of(&source.address).input(Duration::from_secs(30)));
    let mut add = |option: &str, value: &str| arguments.extend([OsString::from(option), OsString::from(value)]);
    add("-map", "0:v:0");
    add("-c:v", "copy");
    if let Some(codec) = &attempt.audio {
        add("-map", "1:a?");
        add("-c:a", codec);
    }
    if let Some(codec) = attempt.subtitles {
        add("-map", "1:s?");
        add("-c:s", codec);
    }
    if source.start_s.is_some() || !container.has_edits() {
        // Without this, packets before the start would be copied too, from the last key frame on. A container that
        // cannot hide them would shift the video.
        add("-copypriorss", "0");
    }
    add("-map_metadata", "1");
    if container.has_timescale() {
        // Without this, the ticks of the video would be chosen anew.
        add("-video_track_timescale", "0");
    }
    add("-f", container.muxer());
    arguments.push(output(to));
    arguments
}
