//! The sink `jpeg`: another library reads its files, their pixels are close to the input, and errors leave no partial
//! file.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::fs;
use std::path::Path;

use crate::files_rig::{Shot, data, make, names, room, size, write};
use vramp_handlers::sink;
use vramp_plan::Format;
use vramp_plan::catalog::Entry;

static JPEG: &Entry = &sink::jpeg::ENTRY;

/// An image without hard edges, in full colour; `jpeg.py` has the same formula.
fn smooth(x: u64, y: u64) -> [u8; 3] {
    [(x * 3 + y) as u8, ((x * x + y * y) / 24) as u8, 255 - (x + y * 4) as u8]
}

/// That image as a frame; row padding is filled with other values.
fn shot(format: Format, width: u32, height: u32, alpha: u8) -> Shot {
    let mut shot = Shot::made(format, size(width, height), 1);
    let plane = format.planes(shot.meta.picture().size).next().expect("a plane");
    for y in 0..u64::from(height) {
        for x in 0..u64::from(width) {
            let [r, g, b] = smooth(x, y);
            let pixel = match format {
                Format::Rgba8 => vec![r, g, b, alpha],
                _ => vec![r, g, b],
            };
            let start = (plane.start + y * plane.stride + x * pixel.len() as u64) as usize;
            shot.bytes[start..start + pixel.len()].copy_from_slice(&pixel);
        }
    }
    shot
}

fn picture(width: u32, height: u32) -> Vec<u8> {
    let rows = (0..u64::from(height)).flat_map(|y| (0..u64::from(width)).flat_map(move |x| smooth(x, y)));
    rows.collect()
}

fn decoded(path: &Path) -> (u32, u32, image::ColorType, Vec<u8>) {
    let read = image::open(path).expect("another library reads it");
    (read.width(), read.height(), read.color(), read.to_rgb8().into_raw())
}

/// The PSNR of two images in decibels.
fn psnr(one: &[u8], other: &[u8]) -> f64 {
    assert_eq!(one.len(), other.len());
    let squares: f64 = one.iter().zip(other).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
    10.0 * (255.0 * 255.0 * one.len() as f64 / squares.max(1e-9)).log10()
}

fn written(room: &Path, quality: &str, shot: &Shot) -> Vec<u8> {
    let path = room.join("out.jpg");
    write(JPEG, &[("path", &path.display().to_string()), ("quality", quality)], std::slice::from_ref(shot)).unwrap();
    fs::read(path).unwrap()
}

#[test]
fn pictures_of_every_size_and_format_come_back_nearly_as_they_were() {
    let room = room("jpeg-sizes");
    for (w, h) in [(1, 1), (1, 9), (8, 8), (7, 5), (65, 47), (333, 7)] {
        for format in [Format::Rgba8, Format::Rgb8] {
            written(&room, "90", &shot(format, w, h, 255));
            let (width, height, colours, pixels) = decoded(&room.join("out.jpg"));
            assert_eq!((width, height), (w, h), "{format}");
            let expected = picture(w, h);
            assert_eq!(colours, image::ColorType::Rgb8, "{format} {w}x{h}");
            let near = psnr(&pixels, &expected);
            assert!(near > 34.0, "{format} {w}x{h}: {near:.1} dB");
        }
    }
    assert_eq!(names(&room), ["out.jpg"]);
}

#[test]
fn alpha_is_dropped_and_nothing_else() {
    let room = room("jpeg-alpha");
    let opaque = written(&room, "90", &shot(Format::Rgba8, 33, 17, 255));
    assert!(opaque == written(&room, "90", &shot(Format::Rgba8, 33, 17, 0)));
    assert!(opaque == written(&room, "90", &shot(Format::Rgb8, 33, 17, 255)));
}

#[test]
fn more_quality_is_nearer_and_larger() {
    let room = room("jpeg-quality");
    let (mut bytes, mut near) = (0, 0.0);
    for quality in ["1", "30", "60", "85", "90", "100"] {
        let file = written(&room, quality, &shot(Format::Rgba8, 160, 120, 255));
        let now = psnr(&decoded(&room.join("out.jpg")).3, &picture(160, 120));
        assert!(file.len() > bytes && now > near, "{quality}: {} bytes, {now:.1} dB", file.len());
        (bytes, near) = (file.len(), now);
    }
    assert!(near > 45.0, "{near:.1} dB at most");
}

#[test]
fn it_is_as_near_as_what_opencv_writes() {
    let room = room("jpeg-opencv");
    for quality in ["90", "75"] {
        written(&room, quality, &shot(Format::Rgba8, 65, 47, 255));
        let (ours, truth) = (decoded(&room.join("out.jpg")).3, picture(65, 47));
        let theirs = fs::read(data(&format!("jpeg-q{quality}.rgb"))).unwrap();
        let (own, other) = (psnr(&ours, &truth), psnr(&theirs, &truth));
        assert!(own > other - 0.3, "quality {quality}: {own:.2} dB, OpenCV {other:.2} dB");
        let apart = psnr(&ours, &theirs);
        assert!(apart > 36.0, "quality {quality}: {apart:.2} dB from OpenCV's");
    }
}

#[test]
fn a_side_that_is_too_long_is_an_error_with_the_way_out() {
    let room = room("jpeg-large");
    written(&room, "90", &shot(Format::Rgb8, 65_535, 1, 255));
    assert_eq!(decoded(&room.join("out.jpg")).0, 65_535);
    fs::remove_file(room.join("out.jpg")).unwrap();
    let path = room.join("out.jpg").display().to_string();
    for (w, h) in [(65_536, 1), (1, 65_536)] {
        let error = write(JPEG, &[("path", &path)], &[shot(Format::Rgb8, w, h, 255)]).unwrap_err();
        assert!(error.contains(&format!("frame 0: an image of {w}x{h}")), "{error}");
        assert!(error.contains("at most 65535 pixels") && error.contains("`resize`"), "{error}");
    }
    assert_eq!(names(&room), [""; 0]);
}

#[test]
fn every_frame_has_its_name_and_a_second_one_for_one_name_is_an_error() {
    let room = room("jpeg-names");
    let shots: Vec<Shot> = [(5, 3), (9, 4), (1, 1)].map(|(w, h)| shot(Format::Rgba8, w, h, 255)).to_vec();
    write(JPEG, &[("path", &room.join("a-%02d.jpg").display().to_string())], &shots).unwrap();
    assert_eq!(names(&room), ["a-00.jpg", "a-01.jpg", "a-02.jpg"]);
    assert_eq!(decoded(&room.join("a-01.jpg")).0, 9);
    let one = room.join("one.jpg").display().to_string();
    let error = write(JPEG, &[("path", &one)], &shots).unwrap_err();
    assert!(error.contains("frame 1 would replace frame 0") && error.contains("one-%04d.jpg"), "{error}");
    let error = make(JPEG, &[("path", "%d-%d.jpg")], None).err().expect("two numbers are refused");
    assert!(error.contains("two placeholders"), "{error}");
}

#[test]
fn places_that_cannot_be_written_are_named_before_the_first_frame() {
    let room = room("jpeg-unwritable");
    let folder = room.display().to_string();
    let nowhere = room.join("none/out.jpg").display().to_string();
    for (path, problem) in [(&folder, "is a directory"), (&nowhere, "does not exist; create that directory")] {
        let error = write(JPEG, &[("path", path)], &[]).unwrap_err();
        assert!(error.contains(problem) && error.contains(path.as_str()), "{error}");
    }
    let path = room.join("old.jpg").display().to_string();
    fs::write(&path, "old").unwrap();
    write(JPEG, &[("path", &path)], &[]).unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap(), names(&room)), ("old".to_owned(), vec!["old.jpg".to_owned()]));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_device_and_a_file_system_that_takes_no_files_are_errors_with_their_place() {
    let shots = [shot(Format::Rgba8, 4, 4, 255)];
    let error = write(JPEG, &[("path", "/dev/full")], &shots).unwrap_err();
    assert!(error.contains("`/dev/full`, frame 0, byte 0: No space"), "{error}");
    let error = write(JPEG, &[("path", "/proc/vramp-out.jpg")], &[]).unwrap_err();
    assert!(error.contains("`/proc/vramp-out.jpg` cannot be written: "), "{error}");
    write(JPEG, &[("path", "/dev/null")], &shots).unwrap();
}
