//! Frames and times as ffmpeg has them.

use std::cell::Cell;

use vramp_media::{DecodeError, Decoder, DecoderInput, NextFrame, Tools, Waiting};
use vramp_plan::{Format, Size};

use crate::clips::{Folder, LIMIT, decoding, raw, shots, times};

#[test]
fn times_of_a_clip_with_a_variable_rate_are_those_of_ffprobe() {
    let folder = Folder::new();
    let file = folder.make(
        "-f lavfi -i testsrc2=s=64x48:r=60:d=3 -vf select=not(mod(n\\,3))+lt(mod(n\\,17)\\,2) -fps_mode vfr -c:v libx264 \
         -bf 2 -video_track_timescale 90000",
        "vfr.mp4",
    );
    let (read, expected) = (shots(&decoding(&file)), times(&file));
    assert!(expected.len() > 60, "{}", expected.len());
    assert_eq!(read.len(), expected.len());
    for (shot, seconds) in read.iter().zip(&expected) {
        let off_us = (shot.pts_ns as f64 / 1e3 - seconds * 1e6).abs();
        assert!(off_us <= 1.0, "{} ns instead of {seconds} s", shot.pts_ns);
    }
}

#[test]
fn frames_have_the_decoders_own_bytes_in_every_format_and_in_odd_sizes() {
    let folder = Folder::new();
    for (pixel_format, codec, format) in [
        ("yuv420p", "rawvideo", Format::I420),
        ("yuvj420p", "mjpeg", Format::I420),
        ("yuv422p", "rawvideo", Format::I422),
        ("yuv444p", "rawvideo", Format::I444),
        ("gray", "rawvideo", Format::Gray8),
        ("nv12", "rawvideo", Format::Nv12),
        ("rgb24", "rawvideo", Format::Rgb8),
        ("rgba", "rawvideo", Format::Rgba8),
    ] {
        for size in ["64x48", "61x33"] {
            let options = format!("-f lavfi -i testsrc2=s={size}:r=10:d=0.3 -pix_fmt {pixel_format} -c:v {codec}");
            let file = folder.make(&options, "clip.nut");
            let decoding = decoding(&file);
            assert_eq!((decoding.reading.format, decoding.reading.notes.len()), (format, 0), "{pixel_format} {size}");
            let mut packed = Vec::new();
            for shot in shots(&decoding) {
                for plane in format.planes(shot.size) {
                    for row in 0..plane.rows {
                        let start = (plane.start + row * plane.stride) as usize;
                        packed.extend_from_slice(&shot.bytes[start..start + plane.row_bytes as usize]);
                    }
                }
            }
            assert!(packed == raw(&file, pixel_format), "{pixel_format} {size}");
        }
    }
}

#[test]
fn more_than_eight_bits_fields_and_hdr_are_converted_with_a_note() {
    let folder = Folder::new();
    for (options, format, word) in [
        ("-pix_fmt yuv420p10le -c:v libx265 -x265-params log-level=none", Format::I420, "10 bits"),
        (
            "-pix_fmt yuv420p -vf tinterlace=interleave_top,fieldorder=tff -flags +ildct+ilme -c:v mpeg2video",
            Format::I420,
            "interlaced",
        ),
        (
            "-pix_fmt yuv420p10le -color_trc smpte2084 -color_primaries bt2020 -colorspace bt2020nc -c:v libx265 -x265-params \
             log-level=none:colorprim=bt2020:transfer=smpte2084:colormatrix=bt2020nc",
            Format::I420,
            "HDR",
        ),
        ("-pix_fmt yuva420p -c:v libvpx-vp9 -auto-alt-ref 0", Format::I420, ""),
    ] {
        let file = folder.make(&format!("-f lavfi -i testsrc2=s=64x48:r=10:d=0.5 {options}"), "clip.mkv");
        let decoding = decoding(&file);
        assert_eq!(decoding.reading.format, format, "{options}");
        assert!(decoding.reading.notes.join(";").contains(word), "{options}: {:?}", decoding.reading.notes);
        assert!(shots(&decoding).len() >= 2, "{options}");
    }
}

#[test]
fn a_clip_that_is_turned_comes_upright() {
    let folder = Folder::new();
    let plain = folder.make("-f lavfi -i testsrc2=s=64x48:r=10:d=0.3 -c:v libx264", "plain.mp4");
    let file = folder.make(&format!("-i {plain} -c copy -metadata:s:v:0 rotate=90"), "turned.mp4");
    let decoding = decoding(&file);
    assert_eq!(Some(decoding.reading.size), Size::new(48, 64));
    assert!(shots(&decoding).iter().all(|shot| Some(shot.size) == Size::new(48, 64)));
}

#[test]
fn a_change_of_size_is_a_frame_of_another_size() {
    let folder = Folder::new();
    let one = folder.make("-f lavfi -i testsrc2=s=64x48:r=10:d=1 -c:v libx264", "one.h264");
    let two = folder.make("-f lavfi -i testsrc2=s=128x32:r=10:d=1 -c:v libx264", "two.h264");
    let three = folder.make("-f lavfi -i testsrc2=s=32x128:r=10:d=1 -c:v libx264", "three.h264");
    let joined = folder.file("joined.h264");
    let read = |file: &str| std::fs::read(file).unwrap();
    std::fs::write(&joined, [read(&one), read(&two), read(&one)].concat()).unwrap();
    let sizes: Vec<String> = shots(&decoding(&joined)).iter().map(|shot| shot.size.to_string()).collect();
    assert_eq!([&sizes[..10], &sizes[10..20], &sizes[20..]], [&["64x48"; 10][..], &["128x32"; 10], &["64x48"; 10]]);
    // Two sizes with as many bytes cannot be told apart, and must not be mixed up, whatever follows.
    std::fs::write(&joined, [read(&two), read(&three), read(&one)].concat()).unwrap();
    let decoding = decoding(&joined);
    let mut decoder = Decoder::start(&Tools::in_path(), &decoding).unwrap();
    let waiting = Waiting { over: &|| false, limit: LIMIT };
    let mut bytes = vec![0; 128 * 32 * 2];
    let error = loop {
        match decoder.next(&waiting) {
            Ok(NextFrame::Frame { .. }) => assert!(decoder.read(&mut bytes, &waiting).unwrap()),
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, DecodeError::SameBytes(..)), "{error}");
}

#[test]
fn parts_of_a_clip_begin_at_zero() {
    let folder = Folder::new();
    let file = folder.make("-f lavfi -i testsrc2=s=64x48:r=10:d=3 -c:v libx264", "clip.mp4");
    let mut part = decoding(&file);
    if let DecoderInput::Address { start_s, duration_s, .. } = &mut part.input {
        (*start_s, *duration_s) = (Some(1.0), Some(0.5));
    }
    let (part, whole) = (shots(&part), shots(&decoding(&file)));
    assert_eq!(part.iter().map(|shot| shot.pts_ns).collect::<Vec<_>>(), [0, 1, 2, 3, 4].map(|n| n * 100_000_000));
    assert!(part.iter().zip(&whole[10..]).all(|(part, whole)| part.bytes == whole.bytes));
}

#[test]
fn flipped_bytes_are_counted_and_the_rest_is_decoded() {
    let folder = Folder::new();
    let file = folder.make("-f lavfi -i testsrc2=s=320x240:r=30:d=2 -c:v libx264 -g 15", "clip.mp4");
    let mut bytes = std::fs::read(&file).unwrap();
    let length = bytes.len();
    for at in (length / 4..length * 3 / 4).step_by(length / 800) {
        bytes[at] ^= 0x5A;
    }
    std::fs::write(&file, bytes).unwrap();
    let decoding = decoding(&file);
    let mut decoder = Decoder::start(&Tools::in_path(), &decoding).unwrap();
    let waiting = Waiting { over: &|| false, limit: LIMIT };
    let mut frame = vec![0; Format::I420.frame_bytes(decoding.reading.size) as usize];
    let mut frames = 0;
    while let NextFrame::Frame { .. } = decoder.next(&waiting).unwrap() {
        assert!(decoder.read(&mut frame, &waiting).unwrap());
        frames += 1;
    }
    assert!(frames > 20, "{frames}");
    assert!(decoder.error_count() > 10 && decoder.last_error().is_some(), "{}", decoder.error_count());
}

#[test]
fn a_run_that_is_over_ends_the_wait() {
    let folder = Folder::new();
    let file = folder.make("-f lavfi -i testsrc2=s=64x48:r=10:d=1 -c:v libx264", "clip.mp4");
    let reading = decoding(&file).reading;
    // A camera that sends a frame every ten seconds.
    let input = DecoderInput::Device(vramp_media::camera_input("lavfi:testsrc2=r=1/10:s=64x48", None, None));
    let slow = vramp_media::Decoding { input, reading, hwaccel: None };
    let mut decoder = Decoder::start(&Tools::in_path(), &slow).unwrap();
    let looks = Cell::new(0);
    let over = || looks.replace(looks.get() + 1) > 10;
    let waiting = Waiting { over: &over, limit: LIMIT };
    let mut bytes = vec![0; 64 * 48 * 2];
    loop {
        match decoder.next(&waiting).unwrap() {
            NextFrame::Over => break,
            NextFrame::Frame { .. } => assert!(decoder.read(&mut bytes, &waiting).unwrap()),
            NextFrame::End => panic!("it has no end"),
        }
    }
    let silent = Waiting { over: &|| false, limit: std::time::Duration::from_millis(300) };
    // On a busy machine the first frame comes only now.
    loop {
        match decoder.next(&silent) {
            Ok(NextFrame::Frame { .. }) => assert!(decoder.read(&mut bytes, &silent).unwrap()),
            Err(DecodeError::Silent { .. }) => break,
            _ => panic!("a source that sends nothing is silent"),
        }
    }
}
