//! Times, sound and colours are those of the source.

use crate::program::{dir, ends_with, json, vramp_in};

use super::{make, probe, sound, times};

#[test]
fn a_clip_of_variable_rate_keeps_its_times_its_sound_and_its_length() {
    let dir = dir("video_fidelity");
    make(
        &dir,
        "-f lavfi -i testsrc2=s=128x96:r=60:d=4 -f lavfi -i sine=d=4 -vf select=not(mod(n\\,3))+lt(mod(n\\,17)\\,2) \
         -fps_mode vfr -c:v libx264 -bf 2 -video_track_timescale 90000 -c:a aac",
        "in.mp4",
    );
    for (out, half_tick) in [("out.mp4", 0.5 / 90_000.0), ("out.mkv", 0.000_5)] {
        let run = format!("video in.mp4 ! brightness 0.1 ! video {out}");
        let run = ends_with(0, vramp_in(&dir, &["run", &run, "--cpu", "--json"]));
        assert!(!run.err.contains("warning"), "{}", run.err);
        let (before, after) = (times(&dir, "in.mp4"), times(&dir, out));
        assert_eq!((before.len(), json(&run)["frames"].as_u64()), (after.len(), Some(before.len() as u64)));
        for (before, after) in before.iter().zip(&after) {
            assert!((before - after).abs() <= half_tick + 1e-6, "{out}: {after} instead of {before}");
        }
        let (first, last) = (sound(&dir, "in.mp4"), sound(&dir, out));
        let packet = 1024.0 / 44_100.0 + 1e-5;
        assert!((first.0 - last.0).abs() <= packet && (first.1 - last.1).abs() <= packet, "{first:?} {last:?}");
    }
    let ticks = probe(&dir, "-select_streams v:0 -show_entries stream=time_base", "out.mp4");
    assert!(ticks[0].strip_prefix("1/").unwrap().parse::<u32>().unwrap() >= 90_000, "{ticks:?}");
}

#[test]
fn a_part_of_a_clip_has_the_sound_of_that_part() {
    let dir = dir("video_part");
    make(&dir, "-f lavfi -i testsrc2=s=64x48:r=25:d=4 -f lavfi -i sine=d=4 -c:v libx264 -c:a aac", "in.mp4");
    let run = "video in.mp4 start=1.5 duration=1 ! video out.mp4";
    ends_with(0, vramp_in(&dir, &["run", run, "--cpu"]));
    let (times, sound) = (times(&dir, "out.mp4"), sound(&dir, "out.mp4"));
    assert_eq!(times.len(), 25);
    assert!(sound.0.abs() < 0.03 && (sound.1 - 0.98).abs() < 0.05, "{sound:?}");
    // --frames ends the run before its source: the sound ends too.
    ends_with(0, vramp_in(&dir, &["run", "video in.mp4 ! video cut.mp4", "--cpu", "--frames", "30"]));
    assert!((super::sound(&dir, "cut.mp4").1 - 1.2).abs() < 0.05);
    // Without sound if asked, or if the source repeats.
    for (pipeline, warning) in [
        ("video in.mp4 duration=1 ! video none.mp4 audio=none", None),
        ("video in.mp4 duration=1 loop=true ! video none.mp4", Some("is not copied: the source repeats")),
    ] {
        let run = ends_with(0, vramp_in(&dir, &["run", pipeline, "--cpu", "--frames", "40"]));
        assert!(probe(&dir, "-select_streams a -show_entries stream=codec_name", "none.mp4").is_empty());
        assert!(warning.is_none_or(|warning| run.err.contains(warning)), "{}", run.err);
    }
    // Times grow from round to round.
    assert_eq!(super::times(&dir, "none.mp4").len(), 40);
    assert!(super::times(&dir, "none.mp4").is_sorted());
}

#[test]
fn sound_belongs_to_the_pictures_if_these_begin_later() {
    let dir = dir("video_late");
    make(&dir, "-f lavfi -i testsrc2=s=64x48:r=25:d=2 -f lavfi -i sine=d=2 -c:v libx264 -c:a aac", "in.mp4");
    make(&dir, "-itsoffset 0.5 -i in.mp4 -i in.mp4 -map 0:v -map 1:a -c copy", "late.mkv");
    ends_with(0, vramp_in(&dir, &["run", "video late.mkv ! video out.mp4", "--cpu"]));
    // The file begins with the first picture, half a second into the sound.
    assert_eq!(times(&dir, "out.mp4").first(), Some(&0.0));
    assert!((sound(&dir, "out.mp4").1 - 1.48).abs() < 0.05, "{:?}", sound(&dir, "out.mp4"));
}

#[test]
fn sound_that_a_container_cannot_hold_is_encoded_and_subtitles_stay() {
    let dir = dir("video_sound");
    std::fs::write(dir.join("a.srt"), "1\n00:00:00,200 --> 00:00:00,900\nhello\n").unwrap();
    make(
        &dir,
        "-f lavfi -i testsrc2=s=64x48:r=25:d=1 -f lavfi -i sine=d=1 -i a.srt -c:v libx264 -c:a flac -c:s srt",
        "in.mkv",
    );
    for (out, audio, subtitles) in [("out.webm", "opus", 1), ("out.ts", "aac", 0)] {
        let run = ends_with(0, vramp_in(&dir, &["run", &format!("video in.mkv ! video {out}"), "--cpu"]));
        assert!(run.err.contains("the sound was encoded again"), "{}", run.err);
        assert_eq!(run.err.contains("the subtitles could not be copied"), subtitles == 0, "{}", run.err);
        assert_eq!(probe(&dir, "-select_streams a -show_entries stream=codec_name", out)[0], audio);
        assert_eq!(probe(&dir, "-select_streams s -show_entries stream=codec_name", out).len(), subtitles);
    }
}

#[test]
fn subtitles_are_kept_if_the_container_can_hold_them() {
    let dir = dir("video_subtitles");
    std::fs::write(dir.join("a.srt"), "1\n00:00:00,200 --> 00:00:00,900\nhello\n").unwrap();
    make(&dir, "-f lavfi -i testsrc2=s=64x48:r=25:d=1 -i a.srt -c:v libx264 -c:s srt", "in.mkv");
    for (out, codec) in [("out.mkv", "subrip"), ("out.mp4", "mov_text")] {
        ends_with(0, vramp_in(&dir, &["run", &format!("video in.mkv ! video {out}"), "--cpu"]));
        assert_eq!(probe(&dir, "-select_streams s -show_entries stream=codec_name", out), [codec]);
    }
}

/// The peak signal-to-noise ratio of two pictures in decibels, without alpha.
fn psnr(one: &[u8], two: &[u8]) -> f64 {
    assert_eq!(one.len(), two.len());
    let pairs = one.iter().zip(two).enumerate().filter(|(at, _)| at % 4 != 3);
    let (sum, count) = pairs.fold((0.0, 0.0), |(sum, count), (_, (one, two))| {
        (sum + (f64::from(*one) - f64::from(*two)).powi(2), count + 1.0)
    });
    10.0 * (255.0 * 255.0 / (sum / count).max(1e-9)).log10()
}

#[test]
fn colours_are_those_of_ffmpeg() {
    let dir = dir("video_colours");
    for (matrix, codec) in [
        ("bt709", "-c:v libx264 -crf 10"),
        ("smpte170m", "-c:v libx264 -crf 10"),
        // Converted by ffmpeg before.
        ("bt709", "-pix_fmt yuv420p10le -c:v libx264 -crf 10"),
        ("smpte170m", "-pix_fmt yuv420p10le -c:v libx264 -crf 10"),
    ] {
        for range in ["tv", "pc"] {
            for (siting, position) in [("left", "0"), ("center", "128")] {
                let word = if matrix == "bt709" { "bt709" } else { "bt601" };
                let wide = if range == "pc" { "full" } else { "limited" };
                let options = format!(
                    "-f lavfi -i testsrc2=s=320x240:r=5:d=0.4 -vf \
                     gblur=sigma=4,scale=out_color_matrix={word}:out_range={wide}:flags=bicubic -pix_fmt yuv420p -color_range {range} \
                     -colorspace {matrix} -color_primaries {matrix} -color_trc {matrix} -chroma_sample_location {siting} \
                     {codec}",
                );
                make(&dir, &options, "in.mp4");
                ends_with(
                    0,
                    vramp_in(&dir, &["run", "video in.mp4 ! convert rgba8 ! raw path=own.rgba", "--cpu", "-q"]),
                );
                let scale = format!(
                    "-i in.mp4 -vf scale=in_color_matrix={word}:in_range={wide}:in_h_chr_pos={position}:in_v_chr_pos=128\
                     :flags=bilinear+accurate_rnd+full_chroma_int -pix_fmt rgba -f rawvideo",
                );
                make(&dir, &scale, "theirs.rgba");
                let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
                let psnr = psnr(&read("own.rgba"), &read("theirs.rgba"));
                assert!(psnr > 45.0, "{matrix} {range} {siting} {codec}: {psnr:.1} dB");
            }
        }
    }
}

#[test]
fn a_written_file_has_the_colours_of_its_pictures() {
    let dir = dir("video_tags");
    let run = "pattern kind=gradient size=64x48 frames=3 ! video out.mp4 crf=0 preset=ultrafast";
    ends_with(0, vramp_in(&dir, &["run", run, "--cpu", "-q"]));
    let tags = "-show_entries stream=color_range,color_space,chroma_location";
    assert_eq!(probe(&dir, tags, "out.mp4"), ["tv,smpte170m,center"]);
    let back = "video out.mp4 ! convert rgba8 ! raw path=back.rgba";
    ends_with(0, vramp_in(&dir, &["run", back, "--cpu", "-q"]));
    ends_with(
        0,
        vramp_in(&dir, &["run", "pattern kind=gradient size=64x48 frames=3 ! raw path=own.rgba", "--cpu", "-q"]),
    );
    let read = |name: &str| std::fs::read(dir.join(name)).unwrap();
    assert!(psnr(&read("back.rgba"), &read("own.rgba")) > 40.0);
}

#[test]
fn a_gif_keeps_its_frames_and_full_colours() {
    let dir = dir("video_gif");
    ends_with(
        0,
        vramp_in(&dir, &["run", "pattern kind=bars size=64x48 fps=10 frames=8 ! video out.gif", "--cpu", "-q"]),
    );
    let run =
        ends_with(0, vramp_in(&dir, &["run", "video out.gif ! convert rgba8 ! raw path=o.rgba", "--cpu", "--json"]));
    assert_eq!(json(&run)["frames"].as_u64(), Some(8));
    let bytes = std::fs::read(dir.join("o.rgba")).unwrap();
    assert_eq!(bytes[..4], [255, 255, 255, 255]);
    assert_eq!(bytes[36 * 4..36 * 4 + 3], [255, 0, 255], "magenta");
}
