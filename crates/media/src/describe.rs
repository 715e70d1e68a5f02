//! What is in a media file or stream, from ffprobe's JSON.

use std::ffi::OsString;
use std::time::Duration;

use serde_json::Value;
use vramp_plan::{PixelAspect, Rate, Size};

use crate::address::Address;
use crate::tools::{ToolError, Tools, ask_within};

/// How long ffmpeg may look into a live stream, after the stream has been opened, until it knows what is in it.
pub const ANALYSIS: Duration = Duration::from_secs(8);

/// A media file or stream.
#[derive(Debug, Clone, PartialEq)]
pub struct MediaFile {
    /// ffmpeg's name of the container, such as `mov,mp4,m4a`.
    pub container: String,
    pub duration_s: Option<f64>,
    /// The time of the first frame or sample in the container. vramp's times begin there.
    pub start_s: f64,
    pub bit_rate: Option<u64>,
    pub streams: Vec<MediaStream>,
}

/// One stream of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct MediaStream {
    pub kind: MediaStreamKind,
    pub codec: String,
    pub language: Option<String>,
    pub duration_s: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub enum MediaStreamKind {
    Video(Box<VideoTrack>),
    Audio {
        channels: u64,
        sample_rate: u64,
    },
    Subtitles,
    /// Pictures of a cover, data, attachments.
    Other(String),
}

/// The pictures of a stream. Width and height are those of upright pictures.
#[derive(Debug, Clone, PartialEq)]
pub struct VideoTrack {
    pub size: Size,
    /// Whether ffmpeg turns the decoded frames by a quarter.
    pub turned: bool,
    pub rate: Option<Rate>,
    /// As the container tells.
    pub frames: Option<u64>,
    pub pixel_format: String,
    pub aspect: Option<PixelAspect>,
    /// ffmpeg's words for the colours; `None` if unknown.
    pub range: Option<String>,
    pub matrix: Option<String>,
    pub transfer: Option<String>,
    pub primaries: Option<String>,
    pub chroma_location: Option<String>,
    /// ffmpeg's word for the field order, such as `progressive` or `tt`.
    pub fields: Option<String>,
}

impl MediaFile {
    /// The stream whose pictures vramp reads: the first one that is not a cover.
    pub fn video(&self) -> Option<&VideoTrack> {
        self.streams.iter().find_map(|stream| match &stream.kind {
            MediaStreamKind::Video(video) => Some(&**video),
            _ => None,
        })
    }

    pub fn has_audio(&self) -> bool {
        self.streams.iter().any(|stream| matches!(stream.kind, MediaStreamKind::Audio { .. }))
    }

    pub fn has_subtitles(&self) -> bool {
        self.streams.iter().any(|stream| stream.kind == MediaStreamKind::Subtitles)
    }
}

/// A file or stream could not be described.
#[derive(Debug, thiserror::Error)]
pub enum DescribeError {
    #[error(transparent)]
    Tool(#[from] ToolError),
    #[error("ffprobe could not read `{address}`: {words}")]
    Unreadable { address: String, words: String },
    #[error("ffprobe did not answer about `{address}` within {} s", limit.as_secs_f64())]
    Silent { address: String, limit: Duration },
    #[error("ffprobe's answer about `{address}` is not JSON: {problem}")]
    NotJson { address: String, problem: String },
    #[error("according to ffprobe, `{address}` is {width}x{height}, expected sides from 1 to {}", Size::MAX_SIDE)]
    Size { address: String, width: u64, height: u64 },
}

impl DescribeError {
    /// The remedy.
    pub fn help(&self) -> String {
        match self {
            DescribeError::Tool(_) => "or use `y4m` or `image`, which do not need ffmpeg".to_owned(),
            DescribeError::Unreadable { address, .. } | DescribeError::Silent { address, .. }
                if matches!(Address::of(address), Address::Url { .. }) =>
            {
                "check the address, and that the other side is sending; `timeout=SECONDS` waits longer".to_owned()
            }
            DescribeError::Unreadable { .. } | DescribeError::Silent { .. } => {
                "check the path, and check that ffmpeg can play the video".to_owned()
            }
            DescribeError::NotJson { .. } => {
                "check with `ffprobe -version` that this is the ffprobe of ffmpeg".to_owned()
            }
            DescribeError::Size { .. } => "check that the file is complete, for example by playing it".to_owned(),
        }
    }
}

/// Asks ffprobe about a file or URL.
pub fn describe(tools: &Tools, address: &str, limit: Duration) -> Result<MediaFile, DescribeError> {
    ask_about(tools, address, Address::of(address).input(limit), limit)
}

/// Asks ffprobe about a camera, which is opened for that. `input` are ffmpeg's options to open it.
pub fn describe_camera(
    tools: &Tools,
    device: &str,
    input: Vec<OsString>,
    limit: Duration,
) -> Result<MediaFile, DescribeError> {
    // ffprobe has no option for the pace of made-up pictures.
    let input = input.into_iter().filter(|option| option != "-re").collect();
    ask_about(tools, device, input, limit)
}

fn ask_about(tools: &Tools, address: &str, input: Vec<OsString>, limit: Duration) -> Result<MediaFile, DescribeError> {
    let entries = "format=format_name,duration,start_time,bit_rate:stream=codec_type,codec_name,width,height,pix_fmt,\
                   avg_frame_rate,r_frame_rate,nb_frames,duration,color_range,color_space,color_transfer,\
                   color_primaries,chroma_location,field_order,sample_aspect_ratio,channels,sample_rate:\
                   stream_side_data=rotation:stream_disposition=attached_pic:stream_tags=language";
    let mut arguments: Vec<OsString> =
        ["-v", "level+error", "-of", "json", "-show_entries", entries].map(OsString::from).into();
    arguments.extend(input);
    let answer = match ask_within(&tools.ffprobe(), arguments, limit + ANALYSIS) {
        Err(ToolError::Silent { .. }) => {
            return Err(DescribeError::Silent { address: address.to_owned(), limit });
        }
        answer => answer?,
    };
    if !answer.status.success() {
        let words = answer.last_words;
        let words = if words.is_empty() { crate::process::ending(answer.status) } else { words };
        return Err(DescribeError::Unreadable { address: address.to_owned(), words });
    }
    read(address, &answer.output)
}

fn read(address: &str, answer: &[u8]) -> Result<MediaFile, DescribeError> {
    let json: Value = serde_json::from_slice(answer)
        .map_err(|error| DescribeError::NotJson { address: address.to_owned(), problem: error.to_string() })?;
    let format = &json["format"];
    let streams = json["streams"].as_array().map(Vec::as_slice).unwrap_or_default();
    Ok(MediaFile {
        container: word(&format["format_name"]).unwrap_or_default(),
        duration_s: number(&format["duration"]),
        start_s: number(&format["start_time"]).unwrap_or(0.0),
        bit_rate: number(&format["bit_rate"]).map(|rate| rate as u64),
        streams: streams.iter().map(|stream| read_stream(address, stream)).collect::<Result<_, _>>()?,
    })
}

fn read_stream(address: &str, stream: &Value) -> Result<MediaStream, DescribeError> {
    let kind = match stream["codec_type"].as_str().unwrap_or_default() {
        "video" if stream["disposition"]["attached_pic"] == 1 => MediaStreamKind::Other("cover".to_owned()),
        "video" => MediaStreamKind::Video(Box::new(read_video(address, stream)?)),
        "audio" => MediaStreamKind::Audio {
            channels: stream["channels"].as_u64().unwrap_or(0),
            sample_rate: number(&stream["sample_rate"]).unwrap_or(0.0) as u64,
        },
        "subtitle" => MediaStreamKind::Subtitles,
        other => MediaStreamKind::Other(other.to_owned()),
    };
    Ok(MediaStream {
        kind,
        codec: word(&stream["codec_name"]).unwrap_or_else(|| "unknown".to_owned()),
        language: word(&stream["tags"]["language"]).filter(|language| language != "und"),
        duration_s: number(&stream["duration"]),
    })
}

fn read_video(address: &str, stream: &Value) -> Result<VideoTrack, DescribeError> {
    let pixels = |key: &str| stream[key].as_u64().unwrap_or(0);
    let turned = is_turned(stream);
    let (mut width, mut height) = (pixels("width"), pixels("height"));
    if turned {
        (width, height) = (height, width);
    }
    let size = u32::try_from(width).ok().zip(u32::try_from(height).ok()).and_then(|(w, h)| Size::new(w, h));
    let size = size.ok_or(DescribeError::Size { address: address.to_owned(), width, height })?;
    // 0/0 means unknown.
    let rate = ["avg_frame_rate", "r_frame_rate"]
        .iter()
        .find_map(|key| stream[*key].as_str().and_then(|text| text.parse::<Rate>().ok()));
    let aspect = stream["sample_aspect_ratio"].as_str().and_then(|text| {
        let (num, den) = text.split_once(':')?;
        let (num, den) = (num.parse().ok().filter(|num| *num > 0)?, den.parse().ok().filter(|den| *den > 0)?);
        Some(if turned { PixelAspect { num: den, den: num } } else { PixelAspect { num, den } })
    });
    Ok(VideoTrack {
        size,
        turned,
        rate,
        frames: number(&stream["nb_frames"]).map(|frames| frames as u64).filter(|frames| *frames > 0),
        pixel_format: word(&stream["pix_fmt"]).unwrap_or_else(|| "unknown".to_owned()),
        aspect,
        range: word(&stream["color_range"]),
        matrix: word(&stream["color_space"]),
        transfer: word(&stream["color_transfer"]),
        primaries: word(&stream["color_primaries"]),
        chroma_location: word(&stream["chroma_location"]).filter(|location| location != "unspecified"),
        fields: word(&stream["field_order"]),
    })
}

/// Whether ffmpeg turns the frames by a quarter while decoding, as with upright phone videos.
fn is_turned(stream: &Value) -> bool {
    let sides = stream["side_data_list"].as_array();
    let degrees = sides.into_iter().flatten().find_map(|side| side["rotation"].as_f64()).unwrap_or(0.0);
    // ffmpeg turns by a quarter only if the angle is close to one; other angles keep the size.
    let off = degrees.rem_euclid(180.0);
    (89.0..=91.0).contains(&off)
}

fn word(value: &Value) -> Option<String> {
    value.as_str().filter(|word| !matches!(*word, "" | "unknown" | "N/A")).map(str::to_owned)
}

/// ffprobe writes most numbers as text.
fn number(value: &Value) -> Option<f64> {
    let number = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn video(fields: &str) -> Result<VideoTrack, String> {
        let answer = format!(r#"{{"streams":[{{"codec_type":"video",{fields}}}],"format":{{"format_name":"mp4"}}}}"#);
        let media = read("clip", answer.as_bytes()).map_err(|error| error.to_string())?;
        Ok(media.video().expect("there is a video").clone())
    }

    #[test]
    fn size_and_average_rate_are_those_of_the_video() {
        let read = video(r#""width": 1920, "height": 1080, "r_frame_rate": "60/1", "avg_frame_rate": "30000/1001""#);
        let read = read.unwrap();
        assert_eq!((Some(read.size), read.rate), (Size::new(1920, 1080), Rate::new(30_000, 1001)));
        let rate = |avg: &str, base: &str| {
            let fields = format!(r#""width":2,"height":2,"avg_frame_rate":"{avg}","r_frame_rate":"{base}""#);
            video(&fields).unwrap().rate
        };
        assert_eq!(rate("0/0", "25/1"), Rate::new(25, 1));
        assert_eq!(rate("0/0", "99999999999/1"), None);
    }

    #[test]
    fn an_upright_phone_video_has_its_sides_and_its_aspect_swapped() {
        let with = |degrees: i32| {
            let fields = format!(
                r#""width":1920,"height":1080,"sample_aspect_ratio":"4:3","side_data_list":[{{}},{{"rotation":{degrees}}}]"#
            );
            let read = video(&fields).unwrap();
            (read.size, read.aspect.map(|aspect| (aspect.num, aspect.den)))
        };
        for degrees in [-90, 90, 270, -270] {
            assert_eq!(with(degrees), (Size::new(1080, 1920).unwrap(), Some((3, 4))), "{degrees}");
        }
        for degrees in [0, 180, -180, 360, 45] {
            assert_eq!(with(degrees), (Size::new(1920, 1080).unwrap(), Some((4, 3))), "{degrees}");
        }
    }

    #[test]
    fn covers_sound_and_subtitles_are_not_the_video() {
        let answer = r#"{"streams":[
            {"codec_type":"video","codec_name":"mjpeg","width":9,"height":9,"disposition":{"attached_pic":1}},
            {"codec_type":"audio","codec_name":"aac","channels":2,"sample_rate":"48000","tags":{"language":"deu"}},
            {"codec_type":"subtitle","codec_name":"mov_text"}],
            "format":{"format_name":"mov,mp4","duration":"12.5","start_time":"-0.021","bit_rate":"1000"}}"#;
        let media = read("clip", answer.as_bytes()).unwrap();
        assert!(media.video().is_none() && media.has_audio() && media.has_subtitles());
        assert_eq!((media.duration_s, media.start_s, media.bit_rate), (Some(12.5), -0.021, Some(1000)));
        assert_eq!(media.streams[1].language.as_deref(), Some("deu"));
        assert_eq!(media.streams[1].kind, MediaStreamKind::Audio { channels: 2, sample_rate: 48_000 });
    }

    #[test]
    fn answers_without_a_usable_picture_are_errors() {
        for (answer, problem) in [("", "not JSON"), ("[", "not JSON")] {
            let error = read("clip", answer.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains("clip"), "{answer}: {error}");
        }
        for (fields, problem) in [
            (r#""width":-1,"height":1e99"#, "is 0x0"),
            (r#""width":99999999999,"height":1"#, "is 99999999999x1, expected sides from 1"),
        ] {
            assert!(video(fields).unwrap_err().contains(problem), "{fields}");
        }
        assert_eq!(read("clip", b"[]").unwrap().video(), None);
    }
}
