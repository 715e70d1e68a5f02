//! Size and rate of a video, from ffprobe's description of the first stream.
//!
//! The ffprobe process has ended when a result is returned, and never runs longer than `LIMIT`.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use vramp_plan::catalog::{ProbeError, Probed};
use vramp_plan::{Rate, Size};

use super::refuse;

/// Time limit for ffprobe. Slow network addresses answer in less time.
const LIMIT: Duration = Duration::from_secs(10);
/// Maximum number of bytes that are read. An answer has a few hundred bytes, but a broken tool may write without end.
const MOST_BYTES: u64 = 64 << 10;

pub(super) fn probe(path: &str) -> Result<Probed, ProbeError> {
    probe_with("ffprobe", path, LIMIT)
}

fn probe_with(program: &str, path: &str, limit: Duration) -> Result<Probed, ProbeError> {
    if path == "-" {
        return Err(refuse(
            "`video` cannot read standard input, because probing would consume the stream",
            "give a file or an address, or pipe y4m into `y4m path=-`",
        ));
    }
    let said = run(program, path, limit)?;
    if !said.status.success() {
        let words = tail(&said.errors);
        let words = if words.is_empty() { said.status.to_string() } else { words };
        return Err(refuse(
            format!("ffprobe could not read `{path}`: {words}"),
            "check the path or address, and check that ffmpeg can play the video",
        ));
    }
    read(path, &said.answer)
}

/// Parses ffprobe's JSON.
fn read(path: &str, answer: &[u8]) -> Result<Probed, ProbeError> {
    let json: Value = serde_json::from_slice(answer).map_err(|error| {
        refuse(
            format!("ffprobe's answer about `{path}` is not JSON: {error}"),
            "check with `ffprobe -version` that this is the ffprobe of ffmpeg",
        )
    })?;
    let stream = &json["streams"][0];
    if stream.is_null() {
        return Err(refuse(format!("`{path}` has no video stream"), "give a video file"));
    }
    let pixels = |key: &str| stream[key].as_u64().unwrap_or(0);
    let (mut width, mut height) = (pixels("width"), pixels("height"));
    if turned(stream) {
        (width, height) = (height, width);
    }
    let size = u32::try_from(width).ok().zip(u32::try_from(height).ok()).and_then(|(w, h)| Size::new(w, h));
    let size = size.ok_or_else(|| {
        refuse(
            format!("according to ffprobe, `{path}` is {width}x{height}, expected sides from 1 to {}", Size::MAX_SIDE),
            "check that the file is complete, for example by playing it",
        )
    })?;
    // ffmpeg will send frames at the constant average rate, so the average is tried first. 0/0 means unknown.
    let rate = ["avg_frame_rate", "r_frame_rate"]
        .iter()
        .find_map(|key| stream[*key].as_str().and_then(|text| text.parse::<Rate>().ok()));
    Ok(Probed { size: Some(size), rate, ..Probed::default() })
}

/// Whether ffmpeg will rotate the frames by a quarter turn while decoding, as with upright phone videos.
fn turned(stream: &Value) -> bool {
    let sides = stream["side_data_list"].as_array();
    let degrees = sides.into_iter().flatten().find_map(|side| side["rotation"].as_f64()).unwrap_or(0.0);
    // True for every angle that is closer to a quarter turn than to no turn or a half turn.
    let off = degrees.rem_euclid(180.0);
    off > 45.0 && off < 135.0
}

struct ProcessOutput {
    status: ExitStatus,
    answer: Vec<u8>,
    errors: Vec<u8>,
}

fn run(program: &str, path: &str, limit: Duration) -> Result<ProcessOutput, ProbeError> {
    let deadline = Instant::now() + limit;
    let mut child = Command::new(program)
        .args(["-v", "error", "-select_streams", "v:0", "-of", "json", "-show_entries"])
        // The section is called `side_data` here, because ffprobe before version 5 does not know its longer name.
        .arg("stream=width,height,avg_frame_rate,r_frame_rate:side_data=rotation")
        // -i, so that a path with a leading dash is not parsed as an option.
        .args(["-i", path])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| {
            refuse(
                format!("ffprobe, which is needed to probe `{path}`, cannot be started: {error}"),
                "install ffmpeg so that `ffprobe` is in the PATH, or use `y4m` or `image`, which do not need ffmpeg",
            )
        })?;
    let answer = child.stdout.take().map(collect);
    let errors = child.stderr.take().map(collect);
    let wait = |pipe: Option<mpsc::Receiver<Vec<u8>>>| {
        let left = deadline.saturating_duration_since(Instant::now());
        pipe.and_then(|pipe| pipe.recv_timeout(left).ok())
    };
    let said = (|| Some((wait(answer)?, wait(errors)?, exit(&mut child, deadline)?)))();
    let Some((answer, errors, status)) = said else {
        // Both calls fail only if the process has already ended.
        let _ = child.kill();
        let _ = child.wait();
        return Err(refuse(
            format!("ffprobe did not answer about `{path}` within {} s", limit.as_secs_f64()),
            "check that the disk or address responds, for example by running `ffprobe`",
        ));
    };
    Ok(ProcessOutput { status, answer, errors })
}

/// Reads a pipe on a separate thread, so that the caller can stop waiting at a deadline.
fn collect(pipe: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (done, said) = mpsc::channel();
    // If no thread can be started, the sender is dropped and the receiver stops waiting.
    let _ = thread::Builder::new().name("vramp ffprobe".to_owned()).spawn(move || {
        let mut bytes = Vec::new();
        // A broken pipe counts as the end of the output. The receiver may already have been dropped.
        let _ = pipe.take(MOST_BYTES).read_to_end(&mut bytes);
        let _ = done.send(bytes);
    });
    said
}

/// Waits for the exit status of a process that has closed its pipes. The status is nearly always available at once.
fn exit(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    loop {
        if let Some(status) = child.try_wait().ok()? {
            return Some(status);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// The last lines of a tool's error output, shortened for a message.
fn tail(errors: &[u8]) -> String {
    let text = String::from_utf8_lossy(errors);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join("; ");
    last.chars().filter(|c| !c.is_control()).take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(answer: &str) -> Result<(Option<Size>, Option<Rate>), String> {
        read("clip", answer.as_bytes()).map(|p| (p.size, p.rate)).map_err(|error| error.to_string())
    }

    #[test]
    fn size_and_average_rate_are_taken_from_the_first_stream() {
        let answer = r#"{"programs": [], "streams": [{"width": 1920, "height": 1080, "r_frame_rate": "60/1",
            "avg_frame_rate": "30000/1001"}]}"#;
        assert_eq!(look(answer), Ok((Size::new(1920, 1080), Rate::new(30_000, 1001))));
    }

    #[test]
    fn without_an_average_the_base_rate_counts_and_without_both_none() {
        let with = |avg: &str, base: &str| {
            format!(r#"{{"streams":[{{"width":2,"height":2,"avg_frame_rate":"{avg}","r_frame_rate":"{base}"}}]}}"#)
        };
        assert_eq!(look(&with("0/0", "25/1")).unwrap().1, Rate::new(25, 1));
        assert_eq!(look(&with("0/0", "99999999999/1")).unwrap().1, None);
        assert_eq!(look(r#"{"streams":[{"width":2,"height":2}]}"#).unwrap().1, None);
    }

    #[test]
    fn an_upright_phone_video_has_its_sides_swapped() {
        let with = |degrees: i32| {
            format!(
                r#"{{"streams":[{{"width":1920,"height":1080,"side_data_list":[{{}},{{"rotation":{degrees}}}]}}]}}"#
            )
        };
        for degrees in [-90, 90, 270, -270] {
            assert_eq!(look(&with(degrees)).unwrap().0, Size::new(1080, 1920), "{degrees}");
        }
        for degrees in [0, 180, -180, 360] {
            assert_eq!(look(&with(degrees)).unwrap().0, Size::new(1920, 1080), "{degrees}");
        }
    }

    #[test]
    fn answers_without_a_usable_picture_are_errors() {
        for (answer, problem) in [
            ("", "not JSON"),
            ("[", "not JSON"),
            ("[]", "no video stream"),
            ("{}", "no video stream"),
            (r#"{"streams":[]}"#, "no video stream"),
            (r#"{"streams":[{}]}"#, "is 0x0, expected sides from 1"),
            (r#"{"streams":[{"width":-1,"height":1e99}]}"#, "is 0x0"),
            (r#"{"streams":[{"width":99999999999,"height":1}]}"#, "is 99999999999x1"),
        ] {
            let error = look(answer).unwrap_err();
            assert!(error.contains(problem) && error.contains("clip"), "{answer}: {error}");
        }
    }

    #[test]
    fn a_tools_complaint_is_shown_by_its_last_lines_without_control_characters() {
        assert_eq!(tail(b"a\nb\n\n c \nd\x1b[31m\n"), "b; c; d[31m");
        assert_eq!(tail(b""), "");
        assert!(tail(&vec![0xFF; 100_000]).len() < 2000);
    }

    #[cfg(unix)]
    const FAKE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ffprobe");

    #[cfg(unix)]
    #[test]
    fn a_tool_that_never_answers_is_ended_when_the_time_is_up() {
        let begun = Instant::now();
        let error = probe_with(FAKE, "silent.mp4", Duration::from_millis(200)).unwrap_err();
        assert!(error.problem.contains("did not answer about `silent.mp4` within 0.2 s"), "{error}");
        assert!(begun.elapsed() < Duration::from_secs(60), "the limit was not kept");
    }

    #[cfg(unix)]
    #[test]
    fn a_tool_that_never_stops_talking_is_not_listened_to_for_ever() {
        let error = probe_with(FAKE, "loud.mp4", LIMIT).unwrap_err();
        assert!(error.problem.contains("`loud.mp4`"), "{error}");
    }
}
