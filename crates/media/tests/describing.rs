//! What ffprobe tells, and programs that are not what they seem.

use std::time::{Duration, Instant};

use vramp_media::{Abilities, EncoderError, MediaStreamKind, ToolError, Tools, check_encoder, describe};
use vramp_plan::{Rate, Size};

use crate::clips::{Folder, told};

/// Programs that answer as ffprobe would, or not at all.
fn fake() -> Tools {
    Tools::at(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ffmpeg"))
}

#[test]
fn a_tool_that_never_answers_is_ended_when_the_time_is_up() {
    let begun = Instant::now();
    let error = describe(&fake(), "silent.mp4", Duration::from_millis(200)).unwrap_err().to_string();
    assert!(error.contains("did not answer about `silent.mp4` within 0.2 s"), "{error}");
    assert!(begun.elapsed() < Duration::from_secs(60), "the limit was not kept");
}

#[test]
fn a_tool_that_never_stops_talking_is_not_listened_to_for_ever() {
    let error = describe(&fake(), "loud.mp4", Duration::from_secs(10)).unwrap_err().to_string();
    assert!(error.contains("`loud.mp4`"), "{error}");
}

#[test]
fn an_old_ffmpeg_and_another_program_are_refused_in_words() {
    let error = fake().version().unwrap_err();
    assert!(matches!(error, ToolError::Old { .. }) && error.to_string().contains("4.4.1"), "{error}");
    let error = Tools::at("/bin/true").version().unwrap_err();
    assert!(matches!(error, ToolError::NotFfmpeg { .. }), "{error}");
    let error = Tools::at("/nowhere/ffmpeg").version().unwrap_err().to_string();
    assert!(error.contains("/nowhere/ffmpeg cannot be started") && error.contains("install ffmpeg"), "{error}");
}

#[test]
fn a_file_is_described_with_all_its_streams() {
    let folder = Folder::new();
    let file = folder.make(
        "-f lavfi -i testsrc2=s=64x48:r=30000/1001:d=1 -f lavfi -i sine=d=1 -c:v libx264 -preset ultrafast \
         -pix_fmt yuv420p -colorspace bt709 -color_range tv -c:a aac",
        "clip.mp4",
    );
    let media = told(&file);
    let video = media.video().unwrap();
    assert_eq!((Some(video.size), video.rate), (Size::new(64, 48), Rate::new(30_000, 1001)));
    assert_eq!(
        (video.frames, video.pixel_format.as_str(), video.matrix.as_deref()),
        (Some(30), "yuv420p", Some("bt709"))
    );
    assert!(media.has_audio() && !media.has_subtitles());
    assert!((media.duration_s.unwrap() - 1.0).abs() < 0.05);
    assert!(matches!(media.streams[1].kind, MediaStreamKind::Audio { channels: 1, sample_rate: 44_100 }));
}

#[test]
fn missing_and_broken_files_have_the_words_of_ffprobe() {
    let folder = Folder::new();
    let broken = folder.file("broken.mp4");
    std::fs::write(&broken, [7; 4000]).unwrap();
    for (file, words) in [(folder.file("gone.mp4"), "No such file"), (broken, "Invalid data")] {
        let error = describe(&Tools::in_path(), &file, Duration::from_secs(10)).unwrap_err().to_string();
        assert!(error.contains(&file) && error.contains(words), "{error}");
    }
}

#[test]
fn encoders_and_their_settings_are_checked() {
    let tools = Tools::in_path();
    assert!(tools.list(Abilities::VideoEncoders).unwrap().contains("libx264"));
    assert!(check_encoder(&tools, "libx264", true, true).is_ok());
    assert!(matches!(check_encoder(&tools, "nonsense", false, false), Err(EncoderError::Unknown(_))));
    assert!(matches!(check_encoder(&tools, "mpeg4", true, false), Err(EncoderError::NoSetting { setting: "crf", .. })));
}
