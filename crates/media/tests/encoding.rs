//! Files that ffmpeg writes from raw frames.

use std::path::Path;

use vramp_media::{Container, EncodeError, Encoder, Encoding, SoundSource, Tools, VideoColours, add_sound};
use vramp_plan::{Format, Rate, Size};

use crate::clips::{Folder, decoding, shots, times, told};

fn encoding(size: Size, rate: Option<Rate>) -> Encoding {
    Encoding {
        container: Container::Mp4,
        codec: None,
        crf: Some(0),
        preset: Some("ultrafast".to_owned()),
        format: Format::I420,
        size,
        colours: VideoColours::default(),
        aspect: None,
        rate,
    }
}

/// A frame whose bytes differ from those of all others.
fn frame(size: Size, number: usize) -> Vec<u8> {
    (0..Format::I420.frame_bytes(size) as usize).map(|at| (16 + (at * 7 + number * 31) / 16 % 200) as u8).collect()
}

#[test]
fn frames_and_times_come_back() {
    let folder = Folder::new();
    // The large frames are lent to the pipe, the odd ones are packed.
    for (width, height) in [(1280, 960), (64, 48), (66, 34)] {
        let size = Size::new(width, height).unwrap();
        let file = folder.file("out.mp4");
        let mut encoder = Encoder::start(&Tools::in_path(), &encoding(size, None), Path::new(&file)).unwrap();
        let pts: Vec<i64> = (0..12).map(|n: i64| n * n * 11_111_111 + n * 20_000_000).collect();
        for (number, pts_ns) in pts.iter().enumerate() {
            let bytes = std::sync::Arc::new(frame(size, number));
            encoder.write(*pts_ns, &bytes.clone(), bytes, &mut || {}).unwrap();
        }
        encoder.finish(Path::new(&file), &mut || {}).unwrap();
        let read = shots(&decoding(&file));
        assert_eq!(read.len(), pts.len());
        for (number, (shot, pts_ns)) in read.iter().zip(&pts).enumerate() {
            assert!((shot.pts_ns - pts_ns).abs() <= 5_600, "{} ns instead of {pts_ns}", shot.pts_ns);
            let expected = frame(size, number);
            let is_same = Format::I420.planes(size).all(|plane| {
                (0..plane.rows).all(|row| {
                    let start = (plane.start + row * plane.stride) as usize;
                    let range = start..start + plane.row_bytes as usize;
                    shot.bytes[range.clone()] == expected[range]
                })
            });
            assert!(is_same, "frame {number} of {size}");
        }
    }
}

#[test]
fn rates_of_films_and_television_are_kept() {
    let folder = Folder::new();
    let size = Size::new(64, 48).unwrap();
    for (num, den) in [(24_000, 1001), (25, 1), (30_000, 1001), (60, 1)] {
        let rate = Rate::new(num, den);
        let file = folder.file("out.mp4");
        let mut encoder = Encoder::start(&Tools::in_path(), &encoding(size, rate), Path::new(&file)).unwrap();
        for number in 0..24_i64 {
            let pts_ns = number * i64::from(den) * 1_000_000_000 / i64::from(num);
            encoder.write(pts_ns, &frame(size, number as usize), (), &mut || {}).unwrap();
        }
        encoder.finish(Path::new(&file), &mut || {}).unwrap();
        assert_eq!(told(&file).video().unwrap().rate, rate);
    }
}

#[test]
fn every_container_is_readable() {
    let folder = Folder::new();
    let size = Size::new(64, 48).unwrap();
    for (ending, container) in Container::ENDINGS {
        let file = folder.file(&format!("out{ending}"));
        let format = if container == Container::Gif { Format::Rgba8 } else { Format::I420 };
        let encoding = Encoding { container, format, crf: None, preset: None, ..encoding(size, Rate::new(25, 1)) };
        let mut encoder = Encoder::start(&Tools::in_path(), &encoding, Path::new(&file)).unwrap();
        let bytes = vec![100; format.frame_bytes(size) as usize];
        for number in 0..10_i64 {
            encoder.write(number * 40_000_000, &bytes, (), &mut || {}).unwrap();
        }
        encoder.finish(Path::new(&file), &mut || {}).unwrap();
        assert_eq!(times(&file).len(), 10, "{ending}");
    }
}

#[test]
fn an_encoder_that_cannot_open_tells_why() {
    let folder = Folder::new();
    let size = Size::new(64, 48).unwrap();
    let wrong = Encoding { preset: Some("nonsense".to_owned()), ..encoding(size, None) };
    let file = folder.file("out.mp4");
    let bytes = frame(size, 0);
    let outcome = Encoder::start(&Tools::in_path(), &wrong, Path::new(&file)).and_then(|mut encoder| {
        for number in 0..500 {
            encoder.write(number * 40_000_000, &bytes, (), &mut || {})?;
        }
        encoder.finish(Path::new(&file), &mut || {})
    });
    let error = outcome.unwrap_err();
    assert!(matches!(error, EncodeError::Died { .. }) && error.to_string().contains("nonsense"), "{error}");
}

#[test]
fn sound_begins_and_ends_with_the_pictures() {
    let folder = Folder::new();
    let source = folder.make(
        "-f lavfi -i testsrc2=s=64x48:r=10:d=4 -f lavfi -i sine=d=4 -c:v libx264 -c:a aac -shortest",
        "source.mp4",
    );
    let video = folder.make("-f lavfi -i testsrc2=s=64x48:r=10:d=1.5 -c:v libx264", "video.mp4");
    for (container, ending) in [(Container::Mp4, "mp4"), (Container::Mkv, "mkv"), (Container::Webm, "webm")] {
        let video = if container == Container::Webm {
            folder.make("-f lavfi -i testsrc2=s=64x48:r=10:d=1.5 -c:v libvpx-vp9", "video.webm")
        } else {
            video.clone()
        };
        let sound = SoundSource { address: source.clone(), start_s: Some(1.0), has_audio: true, has_subtitles: false };
        let to = folder.file(&format!("joined.{ending}"));
        let paths = (Path::new(&video), Path::new(&to));
        let (added, notes) = add_sound(&Tools::in_path(), &sound, container, 1.5, paths, &mut || {}).unwrap();
        assert!(added, "{notes:?}");
        // WebM holds no AAC, so the sound is encoded again, with a note.
        assert_eq!(notes.len(), usize::from(container == Container::Webm), "{notes:?}");
        let media = told(&to);
        assert!(media.has_audio() && times(&to).len() == 15);
        assert!((media.duration_s.unwrap() - 1.5).abs() < 0.08, "{:?}", media.duration_s);
    }
}
