//! The program reports what is wrong in words, with the right exit code.

use serde_json::Value;

use crate::program::{dir, ends_with, json, vramp_in};

use super::make;

#[test]
fn wrong_files_codecs_and_tools_end_with_words_and_a_code() {
    let dir = dir("video_messages");
    make(&dir, "-f lavfi -i testsrc2=s=64x48:r=25:d=1 -c:v libx264", "in.mp4");
    std::fs::write(dir.join("broken.mp4"), [9; 5000]).unwrap();
    make(&dir, "-f lavfi -i sine=d=1 -c:a aac", "sound.m4a");
    for (pipeline, options, code, words) in [
        ("video gone.mp4 ! null", &[][..], 1, "No such file"),
        ("video broken.mp4 ! null", &[], 1, "Invalid data"),
        ("video sound.m4a ! null", &[], 1, "has no video stream; give a file with pictures"),
        ("video - ! null", &[], 1, "cannot read standard input"),
        ("video in.mp4 ! null", &["--ffmpeg", "/nowhere/ffmpeg"], 1, "install ffmpeg"),
        ("video in.mp4 ! video out.mp4 codec=nonsense", &[], 1, "no encoder `nonsense`"),
        ("video in.mp4 ! video out.avi crf=20", &[], 1, "no setting `crf`"),
        ("video in.mp4 ! video out.mp4 preset=nonsense", &[], 1, "nonsense"),
        ("video in.mp4 ! video out.txt", &[], 2, "expected .mp4"),
        ("video in.mp4 ! video -", &[], 2, "writes files only"),
        ("video in.mp4 ! video in.mp4", &[], 2, "would overwrite `in.mp4`"),
        ("video in.mp4 ! video nowhere/out.mp4", &[], 1, "mkdir -p nowhere"),
        ("camera device=9 ! null", &[], 1, "/dev/video9"),
    ] {
        let args: Vec<&str> = ["run", pipeline, "--cpu"].into_iter().chain(options.iter().copied()).collect();
        let run = ends_with(code, vramp_in(&dir, &args));
        assert!(run.err.contains(words), "{pipeline}: {}", run.err);
    }
    let left: Vec<String> = std::fs::read_dir(&dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.contains("out") || name.contains("part"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn names_with_dashes_and_colons_are_names() {
    let dir = dir("video_names");
    make(&dir, "-f lavfi -i testsrc2=s=64x48:r=25:d=0.2 -c:v libx264", "-in:1.mp4");
    ends_with(0, vramp_in(&dir, &["run", "video path=-in:1.mp4 ! video path=-out:2.mp4", "--cpu"]));
    assert!(dir.join("-out:2.mp4").is_file());
}

#[test]
fn errors_of_the_decoder_are_counted_or_end_the_run() {
    let dir = dir("video_errors");
    make(&dir, "-f lavfi -i testsrc2=s=320x240:r=30:d=2 -c:v libx264 -g 15", "in.mp4");
    let mut bytes = std::fs::read(dir.join("in.mp4")).unwrap();
    let length = bytes.len();
    for at in (length / 4..length * 3 / 4).step_by(length / 800) {
        bytes[at] ^= 0x5A;
    }
    std::fs::write(dir.join("in.mp4"), bytes).unwrap();
    let run = ends_with(0, vramp_in(&dir, &["run", "video in.mp4 ! null", "--cpu", "--json"]));
    assert!(run.err.contains("ffmpeg reports an error in `in.mp4`"), "{}", run.err);
    let report = json(&run);
    assert!(report["handlers"][0]["problems"].as_u64().unwrap() > 10, "{}", report["handlers"][0]);
    let run = ends_with(1, vramp_in(&dir, &["run", "video in.mp4 errors=stop ! null", "--cpu"]));
    assert!(run.err.contains("ffmpeg reports: "), "{}", run.err);
}

#[test]
fn plans_note_what_is_converted_and_runs_fall_back_from_missing_hardware() {
    let dir = dir("video_notes");
    let tenbit =
        "-f lavfi -i testsrc2=s=64x48:r=25:d=0.4 -pix_fmt yuv420p10le -c:v libx265 -x265-params log-level=none";
    make(&dir, tenbit, "deep.mp4");
    let plan = json(&ends_with(0, vramp_in(&dir, &["plan", "video deep.mp4 ! null", "--json", "--profile", "cpu"])));
    assert!(plan["notes"][0].as_str().unwrap().contains("video0: the video has 10 bits"), "{}", plan["notes"]);
    let run = ends_with(0, vramp_in(&dir, &["run", "video deep.mp4 hwaccel=cuda ! null", "--cpu", "--json"]));
    assert!(run.err.contains("hwaccel=cuda does not work here, decoding on the CPU"), "{}", run.err);
    assert_eq!(json(&run)["frames"].as_u64(), Some(10));
}

#[test]
fn inspect_tells_what_is_in_a_file() {
    let dir = dir("video_inspect");
    make(
        &dir,
        "-f lavfi -i testsrc2=s=64x48:r=30000/1001:d=1 -f lavfi -i sine=d=1 -c:v libx264 -colorspace bt709 -c:a aac",
        "in.mp4",
    );
    let text = ends_with(0, vramp_in(&dir, &["inspect", "in.mp4"])).out;
    for words in
        ["h264, 64x48, 30000/1001 fps, 30 frames, yuv420p", "aac, 1 channel, 44100 Hz", "read as    i420 64x48"]
    {
        assert!(text.contains(words), "{text}");
    }
    let told: Value = json(&ends_with(0, vramp_in(&dir, &["inspect", "in.mp4", "--json"])));
    assert_eq!((&told["streams"][0]["size"], &told["format"]), (&serde_json::json!([64, 48]), &"i420".into()));
    let run = ends_with(1, vramp_in(&dir, &["inspect", "gone.mp4"]));
    assert!(run.err.contains("No such file"), "{}", run.err);
}

#[test]
fn progress_tells_how_long_the_rest_takes() {
    let dir = dir("video_progress");
    make(&dir, "-f lavfi -i testsrc2=s=64x48:r=25:d=3 -c:v libx264", "in.mp4");
    let run = ends_with(0, vramp_in(&dir, &["run", "video in.mp4 ! null", "--cpu", "--fps", "30"]));
    assert!(run.err.contains(" of 75 frames, ") && run.err.contains(" s left"), "{}", run.err);
}
