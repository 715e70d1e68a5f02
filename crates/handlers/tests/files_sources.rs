//! File sources: their frames, and their errors for invalid files.
//!
//! The files are small and in `data`, with the script that made them.

use std::fs;
use std::path::Path;

use crate::files_rig::{ENOUGH, Shot, data, names, read, read_on, room, size, write};
use vramp_handlers::{sink, source};
use vramp_plan::catalog::Entry;
use vramp_plan::{Format, OnError};
use vramp_runtime::Yuv;

static IMAGE: &Entry = &source::image::ENTRY;
static Y4M: &Entry = &source::y4m::ENTRY;
static RAW: &Entry = &source::raw::ENTRY;

fn images(path: &str) -> (Vec<Shot>, Result<(), String>) {
    read(IMAGE, &[("path", path)])
}

/// The expected value of a pixel in a file.
type Expected = fn([u8; 4]) -> [u8; 4];

/// The pixels of the images in `data`, by the formula that made them.
fn picture(x: usize, y: usize) -> [u8; 4] {
    [20 * x, 25 * y, 7 * x * y % 256, 255 - 10 * x].map(|level| level as u8)
}

#[test]
fn every_format_is_decoded_to_the_pixels_it_was_made_from() {
    let cases: [(&str, Expected, u8); 9] = [
        ("rgba.png", |pixel| pixel, 0),
        ("rgb.png", |[r, g, b, _]| [r, g, b, 255], 0),
        ("palette.png", |[r, g, b, _]| [r, g, b, 255], 0),
        ("gray.png", |[r, ..]| [r, r, r, 255], 0),
        ("deep.png", |[r, ..]| [r, r, r, 255], 0),
        ("rgba.webp", |pixel| pixel, 0),
        ("rgb.bmp", |[r, g, b, _]| [r, g, b, 255], 0),
        ("rgb.tif", |[r, g, b, _]| [r, g, b, 255], 0),
        ("rgb.jpg", |[r, g, b, _]| [r, g, b, 255], 6),
    ];
    for (name, expected, tolerance) in cases {
        let (shots, end) = images(&data(name));
        assert_eq!((shots.len(), end), (1, Ok(())), "{name}");
        assert_eq!(
            (shots[0].meta.picture().format, shots[0].meta.picture().size),
            (Format::Rgba8, size(13, 9)),
            "{name}"
        );
        for (at, found) in shots[0].bytes.chunks_exact(4).enumerate() {
            let expected = expected(picture(at % 13, at / 13));
            let close = found.iter().zip(expected).all(|(found, expected)| found.abs_diff(expected) <= tolerance);
            assert!(close, "{name} at {},{}: {found:?} instead of {expected:?}", at % 13, at / 13);
        }
    }
}

/// The size of an image of 13x9 pixels after rotation.
fn upright(orientation: u8) -> vramp_plan::Size {
    if orientation < 5 { size(13, 9) } else { size(9, 13) }
}

#[test]
fn every_orientation_of_every_format_is_turned_as_other_programs_turn_it() {
    for orientation in 1..=8 {
        let golden = fs::read(data(&format!("turned/{orientation}.rgba"))).unwrap();
        for (ending, has_alpha, tolerance) in
            [("jpg", false, 6), ("png", true, 0), ("webp", true, 0), ("tif", false, 0)]
        {
            let name = format!("turned/{orientation}.{ending}");
            let (shots, end) = images(&data(&name));
            assert_eq!((shots.len(), end), (1, Ok(())), "{name}");
            assert_eq!(shots[0].meta.picture().size, upright(orientation), "{name}");
            for (at, (found, expected)) in shots[0].bytes.iter().zip(&golden).enumerate() {
                let expected = if at % 4 == 3 && !has_alpha { 255 } else { *expected };
                assert!(found.abs_diff(expected) <= tolerance, "{name} at byte {at}: {found} instead of {expected}");
            }
        }
    }
}

#[test]
fn gray_and_deep_pictures_are_turned_too() {
    let cases: [(&str, u8, Expected); 3] = [
        ("gray-6.png", 6, |[r, ..]| [r, r, r, 255]),
        ("gray-alpha-8.png", 8, |[_, _, b, a]| [b, b, b, a]),
        ("deep-7.png", 7, |[r, ..]| [r, r, r, 255]),
    ];
    for (name, orientation, expected) in cases {
        let golden = fs::read(data(&format!("turned/{orientation}.rgba"))).unwrap();
        let golden: Vec<u8> = golden.as_chunks().0.iter().flat_map(|pixel| expected(*pixel)).collect();
        let (shots, end) = images(&data(&format!("turned/{name}")));
        assert_eq!((shots.len(), end), (1, Ok(())), "{name}");
        assert_eq!((shots[0].meta.picture().size, &shots[0].bytes), (upright(orientation), &golden), "{name}");
    }
}

#[test]
fn a_pattern_of_turned_pictures_changes_its_size_on_the_way_and_a_loop_keeps_a_picture_turned() {
    let (shots, end) = images(&data("turned/*.jpg"));
    assert_eq!(end, Ok(()));
    let sizes: Vec<_> = shots.iter().map(|shot| shot.meta.picture().size).collect();
    assert_eq!(sizes, (1..=8).map(upright).collect::<Vec<_>>());
    let (shots, _) = read_on(IMAGE, &[("path", &data("turned/6.png")), ("loop", "true")], OnError::Stop, 10);
    let golden = fs::read(data("turned/6.rgba")).unwrap();
    assert!(shots.len() > 4 && shots.iter().all(|shot| shot.meta.picture().size == upright(6) && shot.bytes == golden));
}

#[test]
fn an_orientation_that_is_broken_turns_nothing() {
    let path = room("broken-exif").join("a.jpg");
    let whole = fs::read(data("turned/6.jpg")).unwrap();
    let exif = whole.windows(6).position(|bytes| bytes == b"Exif\0\0").unwrap() + 6;
    let upright = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let (shots, end) = images(&path.display().to_string());
        assert_eq!((shots.len(), end), (1, Ok(())));
        shots[0].meta.picture().size == size(9, 13)
    };
    assert!(upright(&whole));
    // Byte order, magic, offset of the directory, count of entries, tag, and a value out of range.
    for (at, byte) in [(0, b'x'), (3, 43), (4, 0xFF), (9, 0), (11, 0), (18, 1), (19, 9)] {
        let mut bytes = whole.clone();
        bytes[exif + at] = byte;
        assert!(!upright(&bytes), "byte {at}");
    }
}

#[test]
fn a_gif_gives_all_of_its_frames_laid_over_each_other() {
    let (shots, end) = images(&data("four.gif"));
    assert_eq!((shots.len(), end), (4, Ok(())));
    let (red, green, blue, white, clear) =
        ([255, 0, 0, 255], [0, 255, 0, 255], [0, 0, 255, 255], [255; 4], [0, 0, 0, 0]);
    let boxed = |x: usize, y: usize, (left, top, w, h): (usize, usize, usize, usize)| {
        (left..left + w).contains(&x) && (top..top + h).contains(&y)
    };
    for (nth, shot) in shots.iter().enumerate() {
        assert_eq!((shot.meta.picture().size, shot.meta.number), (size(8, 6), nth as u64));
        for (at, found) in shot.bytes.chunks_exact(4).enumerate() {
            let (x, y) = (at % 8, at / 8);
            let expected = match nth {
                1 if boxed(x, y, (2, 1, 4, 3)) => green,
                2 if boxed(x, y, (5, 4, 3, 2)) => blue,
                3 if boxed(x, y, (5, 4, 3, 2)) => clear,
                3 if boxed(x, y, (0, 0, 2, 2)) => white,
                _ => red,
            };
            assert_eq!(found, expected, "frame {nth} at {x},{y}");
        }
    }
}

/// Copies images of several sizes into a directory.
fn album(test: &str) -> String {
    let room = room(test);
    for (from, to) in [("four.gif", "b.gif"), ("rgb.png", "c.png"), ("rgb.bmp", "a.bmp")] {
        fs::copy(data(from), room.join(to)).expect("a file can be copied");
    }
    fs::create_dir(room.join("d.png")).expect("a directory can be made");
    format!("{}/*", room.display())
}

#[test]
fn a_pattern_gives_its_files_by_name_each_in_its_own_size() {
    let (shots, end) = images(&album("album"));
    assert_eq!(end, Ok(()));
    let sizes: Vec<String> = shots.iter().map(|shot| shot.meta.picture().size.to_string()).collect();
    assert_eq!(sizes.join(" "), "13x9 8x6 8x6 8x6 8x6 13x9");
}

#[test]
fn a_loop_begins_again() {
    let pattern = album("album-loop");
    let (shots, _) = read_on(IMAGE, &[("path", &pattern), ("loop", "true")], OnError::Stop, 40);
    assert!(shots.len() > 20, "{}", shots.len());
    for (nth, shot) in shots.iter().enumerate() {
        assert_eq!(shot.bytes, shots[nth % 6].bytes, "{nth}");
    }
    let (shots, _) = read_on(IMAGE, &[("path", &data("rgba.png")), ("loop", "true")], OnError::Stop, 10);
    assert!(shots.len() > 4 && shots.iter().all(|shot| shot.bytes == shots[0].bytes));
}

#[test]
fn every_cut_of_every_picture_is_an_error_with_its_name_and_a_byte() {
    let room = room("cut-pictures");
    for name in
        ["rgba.png", "rgb.png", "palette.png", "rgb.jpg", "rgba.webp", "rgb.bmp", "rgb.tif", "four.gif", "deep.png"]
    {
        let whole = fs::read(data(name)).unwrap();
        let path = room.join(name);
        for length in (0..whole.len()).step_by(3) {
            fs::write(&path, &whole[..length]).unwrap();
            let (shots, end) = images(&path.display().to_string());
            // After the pixels there may be bytes that no decoder needs.
            if shots.len() == if name == "four.gif" { 4 } else { 1 } {
                assert!(length + 24 > whole.len(), "{name}: whole with {length} of {} bytes", whole.len());
                continue;
            }
            let error = end.unwrap_err();
            assert!(error.contains(&format!("{name}`, byte ")), "{length}: {error}");
        }
    }
}

#[test]
fn bytes_turned_over_never_panic_or_hang() {
    let room = room("turned");
    let mut seed = 7u64;
    for name in ["rgba.png", "rgb.jpg", "rgba.webp", "rgb.bmp", "rgb.tif", "four.gif"] {
        let whole = fs::read(data(name)).unwrap();
        for _ in 0..60 {
            let mut bytes = whole.clone();
            for _ in 0..3 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = 12 + (seed >> 33) as usize % (bytes.len() - 12);
                bytes[at] ^= (seed >> 20) as u8 | 1;
            }
            let path = room.join(name);
            fs::write(&path, bytes).unwrap();
            let (_, end) = images(&path.display().to_string());
            if let Err(error) = end {
                assert!(!error.contains("panicked"), "{name}: {error}");
            }
        }
    }
}

#[test]
fn a_broken_image_is_skipped_with_on_error_skip() {
    let room = room("skipped");
    fs::copy(data("rgb.png"), room.join("a.png")).unwrap();
    fs::write(room.join("b.png"), "not a picture").unwrap();
    fs::copy(data("rgb.png"), room.join("c.png")).unwrap();
    let pattern = format!("{}/*.png", room.display());
    let (shots, end) = images(&pattern);
    let error = end.unwrap_err();
    assert_eq!(shots.len(), 1);
    assert!(error.contains("frame 1: ") && error.contains("b.png`, byte 0: found `not a pictur`"), "{error}");
    let (shots, end) = read_on(IMAGE, &[("path", &pattern)], OnError::Skip, ENOUGH);
    assert_eq!((shots.len(), end), (2, Ok(())));
    let (shots, end) = read_on(IMAGE, &[("path", &pattern)], OnError::Retry, ENOUGH);
    assert_eq!((shots.len(), end), (2, Ok(())), "tried again, it is as broken as before");
    // A loop without a single image is an error under every policy.
    let bad = room.join("b.png").display().to_string();
    for policy in [OnError::Skip, OnError::Retry] {
        let (shots, end) = read_on(IMAGE, &[("path", &bad), ("loop", "true")], policy, ENOUGH);
        let error = end.unwrap_err();
        assert!(shots.is_empty() && error.contains("none of its 1 files gave an image"), "{error}");
    }
}

#[test]
fn what_cannot_be_read_is_named_before_the_first_frame() {
    let room = room("unreadable");
    let folder = room.display().to_string();
    let missing = room.join("none").display().to_string();
    for (entry, given) in [
        (IMAGE, [("path", ""), ("fps", "30")]),
        (Y4M, [("path", ""), ("", "")]),
        (RAW, [("path", ""), ("size", "2x2")]),
    ] {
        for (path, problem) in [(&folder, "is a directory"), (&missing, "cannot be read")] {
            let (shots, end) = read(entry, &[("path", path.as_str()), given[1]]);
            let error = end.unwrap_err();
            assert!(shots.is_empty() && error.contains(problem) && error.contains(path.as_str()), "{error}");
        }
    }
    let error = images(&format!("{folder}/*.png")).1.unwrap_err();
    assert!(error.contains(&format!("no file matches `{folder}/*.png`")), "{error}");
    let error = images("a***b").1.unwrap_err();
    assert!(error.contains("is not a valid pattern"), "{error}");
}

/// Whether file permissions restrict the user that runs the tests.
#[cfg(unix)]
fn locked(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o000)).expect("it is our own");
    fs::File::open(path).is_err()
}

#[cfg(unix)]
#[test]
fn a_file_that_may_not_be_read_is_named() {
    let room = room("locked");
    let path = room.join("a.png");
    fs::copy(data("rgb.png"), &path).unwrap();
    let error = images(&format!("{}/*.png", room.display()));
    assert_eq!(error.1, Ok(()));
    let means_something = locked(&path);
    for (entry, extra) in [(IMAGE, ("fps", "30")), (RAW, ("size", "1x1")), (Y4M, ("", ""))] {
        let (_, end) = read(entry, &[("path", &path.display().to_string()), extra]);
        // The superuser can read it, and it is not y4m.
        if means_something || entry.name == "y4m" {
            assert!(end.unwrap_err().contains("a.png"), "{}", entry.name);
        }
    }
}

#[test]
fn y4m_files_of_every_format_are_read_to_the_byte() {
    for (name, planes) in
        [("i420", vec![15, 6, 6]), ("i422", vec![15, 9, 9]), ("i444", vec![15, 15, 15]), ("gray8", vec![15])]
    {
        let (shots, end) = read(Y4M, &[("path", &data(&format!("{name}.y4m")))]);
        assert_eq!((shots.len(), end), (3, Ok(())), "{name}");
        for (n, shot) in shots.iter().enumerate() {
            assert_eq!((shot.meta.picture().format.name(), shot.meta.picture().size), (name, size(5, 3)));
            assert_eq!(shot.meta.picture().yuv, Yuv { matrix: None, full_range: true, ..Yuv::default() }, "{name}");
            let planes = planes.iter().enumerate();
            let expected =
                planes.flat_map(|(p, samples)| (0..*samples).map(move |i| ((31 * n + 17 * p + i) % 256) as u8));
            assert_eq!(shot.bare(), expected.collect::<Vec<_>>(), "{name} frame {n}");
        }
    }
}

#[test]
fn a_y4m_file_that_is_cut_gives_its_whole_frames_and_then_says_what_is_missing() {
    let room = room("cut-y4m");
    let path = room.join("clip.y4m").display().to_string();
    let whole = fs::read(data("i420.y4m")).unwrap();
    let head = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let (shots, end) = read(Y4M, &[("path", &path)]);
    let error = end.unwrap_err();
    assert_eq!(shots.len(), 2);
    let expected = format!(
        "frame 2: `{path}` ends at byte {} in the middle of frame 2: 5 of its 27 bytes are missing",
        whole.len() - 5
    );
    assert!(error.contains(&expected), "{error}");
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let (shots, end) = read(Y4M, &[("path", &path)]);
        let frames = length.saturating_sub(head) / 33;
        assert!(shots.len() <= frames, "{length}");
        match end {
            Ok(()) => assert!(length >= head, "{length}"),
            Err(error) => assert!(error.contains("clip.y4m") && error.contains("byte"), "{length}: {error}"),
        }
    }
    // A wrong size shows as a missing `FRAME` line.
    let text = String::from_utf8_lossy(&whole).replace("W5", "W4");
    fs::write(&path, text.as_bytes()).unwrap();
    let error = read(Y4M, &[("path", &path)]).1.unwrap_err();
    assert!(error.contains("expected a line `FRAME`"), "{error}");
}

#[test]
fn raw_frames_of_every_format_come_back_as_they_went() {
    let room = room("raw");
    for format in Format::RANKED {
        for (w, h) in [(1, 1), (5, 3), (64, 2), (333, 5)] {
            let path = room.join(format.name()).display().to_string();
            let shots: Vec<Shot> = (0..3).map(|n| Shot::made(format, size(w, h), n)).collect();
            write(&sink::raw::ENTRY, &[("path", &path)], &shots).unwrap();
            assert_eq!(fs::read(&path).unwrap(), shots.iter().flat_map(Shot::bare).collect::<Vec<_>>());
            let given = [("path", path.as_str()), ("size", &format!("{w}x{h}")), ("format", format.name())];
            let (read, end) = read(RAW, &given);
            assert_eq!((read.len(), end), (3, Ok(())), "{format}");
            for (read, shot) in read.iter().zip(&shots) {
                assert_eq!(read.bare(), shot.bare(), "{format} {w}x{h}");
            }
        }
    }
    assert_eq!(names(&room).len(), 7, "nothing is left behind");
}

#[test]
fn raw_files_that_are_empty_or_cut_are_named() {
    let room = room("cut-raw");
    let path = room.join("a.rgb").display().to_string();
    let given = [("path", path.as_str()), ("size", "3x2"), ("format", "rgb8")];
    fs::write(&path, []).unwrap();
    let error = read(RAW, &given).1.unwrap_err();
    assert!(error.contains("a.rgb` is empty, expected frames of 18 bytes"), "{error}");
    fs::write(&path, [5; 40]).unwrap();
    let (shots, end) = read(RAW, &given);
    let error = end.unwrap_err();
    assert_eq!(shots.len(), 2);
    assert!(error.contains("ends at byte 40 in the middle of frame 2: 14 of its 18 bytes"), "{error}");
    let (shots, end) = read_on(RAW, &given, OnError::Skip, ENOUGH);
    assert_eq!((shots.len(), end), (2, Ok(())));
}
