//! File sinks: their files are read back unchanged, and errors leave no partial file.

use std::fs;

use crate::files_rig::{ENOUGH, Play, Shot, make, names, read, room, run, size, write};
use vramp_handlers::{sink, source};
use vramp_plan::catalog::Entry;
use vramp_plan::{Format, OnError};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Yuv, YuvMatrix};

static PNG: &Entry = &sink::png::ENTRY;
static Y4M: &Entry = &sink::y4m::ENTRY;
static RAW: &Entry = &sink::raw::ENTRY;

fn rgba(w: u32, h: u32, count: u64) -> Vec<Shot> {
    (0..count).map(|n| Shot::made(Format::Rgba8, size(w, h), n)).collect()
}

#[test]
fn y4m_reads_back_what_it_wrote() {
    let room = room("y4m-back");
    let path = room.join("clip.y4m").display().to_string();
    for format in [Format::I420, Format::I422, Format::I444, Format::Gray8] {
        for (w, h) in [(1, 1), (5, 3), (64, 48), (333, 7)] {
            for yuv in [Yuv::default(), Yuv { matrix: Some(YuvMatrix::Bt709), full_range: true, ..Yuv::default() }] {
                let mut shots: Vec<Shot> = (0..3).map(|n| Shot::made(format, size(w, h), n)).collect();
                for shot in &mut shots {
                    shot.meta.picture_mut().yuv = yuv;
                }
                write(Y4M, &[("path", &path)], &shots).unwrap();
                let (read, end) = read(&source::y4m::ENTRY, &[("path", &path)]);
                assert_eq!((read.len(), end), (3, Ok(())), "{format} {w}x{h}");
                for (read, shot) in read.iter().zip(&shots) {
                    assert_eq!(
                        (read.meta.picture().format, read.meta.picture().size, read.meta.picture().yuv),
                        (format, size(w, h), yuv)
                    );
                    assert_eq!(read.bare(), shot.bare(), "{format} {w}x{h}");
                }
            }
        }
    }
    assert_eq!(names(&room), ["clip.y4m"]);
}

#[test]
fn png_reads_back_what_it_wrote_at_every_quality() {
    let room = room("png-back");
    let path = room.join("a-%02d.png").display().to_string();
    for quality in ["0", "25", "60", "100"] {
        let shots: Vec<Shot> =
            [(1, 1), (7, 5), (65, 33)].map(|(w, h)| Shot::made(Format::Rgba8, size(w, h), 3)).to_vec();
        write(PNG, &[("path", &path), ("quality", quality)], &shots).unwrap();
        let (read, end) = read(&source::image::ENTRY, &[("path", &format!("{}/*.png", room.display()))]);
        assert_eq!(end, Ok(()));
        let pixels = |shots: &[Shot]| {
            shots.iter().map(|shot| (shot.meta.picture().size, shot.bytes.clone())).collect::<Vec<_>>()
        };
        assert_eq!(pixels(&read), pixels(&shots), "quality {quality}");
    }
    assert_eq!(names(&room), ["a-00.png", "a-01.png", "a-02.png"]);
}

#[test]
fn a_second_frame_for_one_name_is_an_error_with_the_way_out() {
    let room = room("png-second");
    let path = room.join("out.png").display().to_string();
    write(PNG, &[("path", &path)], &rgba(3, 2, 1)).unwrap();
    let first = fs::read(&path).unwrap();
    let error = write(PNG, &[("path", &path)], &rgba(3, 2, 3)).unwrap_err();
    assert!(error.contains("frame 1 would replace frame 0") && error.contains("out-%04d.png"), "{error}");
    assert_eq!((fs::read(&path).unwrap(), names(&room)), (first, vec!["out.png".to_owned()]));
    let error = make(PNG, &[("path", "%d-%d.png")], None).err().expect("two numbers are refused");
    assert!(error.contains("two placeholders"), "{error}");
}

#[test]
fn a_size_that_changes_on_the_way_is_an_error_and_what_was_written_stays() {
    let room = room("size-change");
    for (entry, format) in [(Y4M, Format::I420), (RAW, Format::Rgb8)] {
        let path = room.join(entry.name).display().to_string();
        let shots =
            [Shot::made(format, size(4, 4), 1), Shot::made(format, size(4, 4), 2), Shot::made(format, size(6, 4), 3)];
        let error = write(entry, &[("path", &path)], &shots).unwrap_err();
        assert!(error.contains("frame 2 is 6x4, but earlier frames are 4x4"), "{error}");
        assert!(error.contains("`resize size=4x4`"), "{error}");
        let whole = fs::read(&path).unwrap();
        assert!(whole.ends_with(&shots[1].bare()), "{}", entry.name);
    }
    let (shots, end) = read(&source::y4m::ENTRY, &[("path", &room.join("y4m").display().to_string())]);
    assert_eq!((shots.len(), end), (2, Ok(())));
    assert_eq!(names(&room), ["raw", "y4m"]);
}

#[test]
fn places_that_cannot_be_written_are_named_before_the_first_frame() {
    let room = room("unwritable");
    let folder = room.display().to_string();
    let nowhere = room.join("none/out").display().to_string();
    for entry in [PNG, Y4M, RAW] {
        for (path, problem) in [(&folder, "is a directory"), (&nowhere, "does not exist; create that directory")] {
            // Without frames, so that only starting can fail.
            let error = write(entry, &[("path", path)], &[]).unwrap_err();
            assert!(error.contains(problem) && error.contains(path.as_str()), "{}: {error}", entry.name);
        }
    }
    assert_eq!(names(&room), [""; 0]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_system_that_takes_no_files_is_named_before_the_first_frame() {
    for entry in [PNG, Y4M, RAW] {
        let error = write(entry, &[("path", "/proc/vramp-out.png")], &[]).unwrap_err();
        assert!(error.contains("`/proc/vramp-out.png` cannot be written: "), "{}: {error}", entry.name);
    }
}

#[test]
fn without_a_frame_nothing_is_written_and_what_was_there_stays() {
    let room = room("nothing-came");
    let path = room.join("out").display().to_string();
    fs::write(&path, "old").unwrap();
    for entry in [PNG, Y4M, RAW] {
        write(entry, &[("path", &path)], &[]).unwrap();
        assert_eq!((fs::read_to_string(&path).unwrap(), names(&room)), ("old".to_owned(), vec!["out".to_owned()]));
    }
}

/// Checks a file whenever a frame passes.
struct Look(String);

impl FrameHandler for Look {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        assert_eq!(fs::read_to_string(&self.0).expect("the file is there"), "old");
        let frame = call.take(0).expect("a lead frame");
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

#[test]
fn a_stop_in_mid_stream_leaves_an_older_file_and_whole_frames_beside_it() {
    let room = room("stopped");
    let path = room.join("out.y4m").display().to_string();
    let shots: Vec<Shot> = (0..100).map(|n| Shot::made(Format::I420, size(8, 8), n)).collect();
    for (partial, written) in [("beside", "out.partial.y4m"), ("beside", "out.partial-2.y4m"), ("replace", "out.y4m")] {
        fs::write(&path, "old").unwrap();
        let sink = make(Y4M, &[("path", &path), ("partial", partial)], None).unwrap();
        // Stopped in the middle, as by Ctrl-C.
        let stopped = run(vec![Box::new(Play(shots.clone())), Box::new(Look(path.clone())), sink], OnError::Stop, 20);
        assert_eq!(stopped.outcome, Ok(()));
        assert_eq!(fs::read(&path).unwrap() == b"old", partial == "beside");
        let written = room.join(written).display().to_string();
        let (read, end) = read(&source::y4m::ENTRY, &[("path", &written)]);
        assert_eq!(end, Ok(()));
        assert!(read.len() > 5 && read.len() < 100, "{}", read.len());
        assert!(read.iter().zip(&shots).all(|(read, shot)| read.bare() == shot.bare()));
    }
    assert_eq!(names(&room), ["out.partial-2.y4m", "out.partial.y4m", "out.y4m"]);
}

#[test]
fn a_clip_can_be_written_over_itself() {
    let room = room("itself");
    let path = room.join("clip.y4m").display().to_string();
    let shots: Vec<Shot> = (0..5).map(|n| Shot::made(Format::I444, size(9, 7), n)).collect();
    write(Y4M, &[("path", &path)], &shots).unwrap();
    let before = fs::read(&path).unwrap();
    let (from, to) = (make(&source::y4m::ENTRY, &[("path", &path)], None), make(Y4M, &[("path", &path)], None));
    assert_eq!(run(vec![from.unwrap(), to.unwrap()], OnError::Stop, ENOUGH).outcome, Ok(()));
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_devices_stay_devices() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    let room = room("links");
    fs::create_dir(room.join("real")).unwrap();
    let real = room.join("real/out.raw");
    fs::write(&real, "old").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&real, room.join("out.raw")).unwrap();
    let shots = rgba(2, 2, 1);
    write(RAW, &[("path", &room.join("out.raw").display().to_string())], &shots).unwrap();
    assert_eq!(fs::read(&real).unwrap(), shots[0].bytes);
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    assert!(fs::symlink_metadata(room.join("out.raw")).unwrap().is_symlink());
    assert_eq!(names(&room.join("real")), ["out.raw"]);
    // Links to missing targets: a file that can be created, and one in a directory that does not exist.
    symlink("real/new.raw", room.join("near.raw")).unwrap();
    symlink("near.raw", room.join("far.raw")).unwrap();
    write(RAW, &[("path", &room.join("far.raw").display().to_string())], &shots).unwrap();
    assert_eq!(fs::read(room.join("real/new.raw")).unwrap(), shots[0].bytes);
    assert!(fs::symlink_metadata(room.join("far.raw")).unwrap().is_symlink());
    symlink("nowhere/new.raw", room.join("lost.raw")).unwrap();
    let error = write(RAW, &[("path", &room.join("lost.raw").display().to_string())], &shots).unwrap_err();
    assert!(error.contains("nowhere` of") && error.contains("does not exist; create that directory"), "{error}");
    for entry in [RAW, PNG] {
        write(entry, &[("path", "/dev/null")], &shots).unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }
}

/// `/dev/full` is a device that is always full.
#[cfg(target_os = "linux")]
#[test]
fn a_full_device_is_an_error_with_frame_and_byte() {
    for (entry, problem) in
        [(RAW, "`/dev/full`, frame 0, byte 0: No space left"), (PNG, "`/dev/full`, frame 0, byte 0: No space")]
    {
        let error = write(entry, &[("path", "/dev/full")], &rgba(4, 4, 1)).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
}
