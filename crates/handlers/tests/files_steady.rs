//! Reading and writing uncompressed video and images allocates nothing in steady state.

use crate::files_rig::{ENOUGH, Forget, Play, Shot, data, make, room, run, size, write};
use vramp_handlers::{convert, sink, source};
use vramp_plan::{Format, OnError};
use vramp_runtime::FrameHandler;
use vramp_runtime::internals::is_counted;

/// Runs the handlers and counts allocations after the first frames.
fn later(handlers: Vec<Box<dyn FrameHandler>>) -> u64 {
    let run = run(handlers, OnError::Stop, ENOUGH);
    assert_eq!(run.outcome, Ok(()));
    let counts = &run.allocations;
    assert!(counts.len() >= 30, "it ran for {} steps", counts.len());
    // The last step is the end.
    counts[counts.len() - 2] - counts[8]
}

#[test]
fn y4m_and_raw_read_write_and_convert_without_allocating() {
    assert!(is_counted());
    let room = room("steady");
    // One size with padded rows, one without.
    for (w, h) in [(45, 31), (64, 48)] {
        let shots: Vec<Shot> = (0..40).map(|n| Shot::made(Format::I420, size(w, h), n)).collect();
        let (y4m, raw) = (room.join("a.y4m").display().to_string(), room.join("a.raw").display().to_string());
        write(&sink::y4m::ENTRY, &[("path", &y4m)], &shots).unwrap();
        write(&sink::raw::ENTRY, &[("path", &raw)], &shots).unwrap();
        let size_text = format!("{w}x{h}");
        let frames = [("path", raw.as_str()), ("size", &size_text), ("format", "i420")];
        let copy = room.join("copy").display().to_string();
        let made = |entry, given: &[(&str, &str)]| make(entry, given, None).unwrap();
        let read_y4m = || made(&source::y4m::ENTRY, &[("path", &y4m)]);
        assert_eq!(later(vec![read_y4m(), Box::new(Forget)]), 0, "reading y4m at {w}x{h}");
        assert_eq!(later(vec![made(&source::raw::ENTRY, &frames), Box::new(Forget)]), 0, "reading raw at {w}x{h}");
        for entry in [&sink::y4m::ENTRY, &sink::raw::ENTRY] {
            let write = made(entry, &[("path", &copy)]);
            assert_eq!(later(vec![Box::new(Play(shots.clone())), write]), 0, "writing {} at {w}x{h}", entry.name);
        }
        for way in [["rgba8", "nv12"], ["i444", "i422"], ["gray8", "rgb8"]] {
            let convert = |from: &str, to| {
                let content = Some((from.parse().unwrap(), size(w, h)));
                make(&convert::convert::ENTRY, &[("format", to)], content).unwrap()
            };
            let (there, on) = (convert("i420", way[0]), convert(way[0], way[1]));
            assert_eq!(later(vec![read_y4m(), there, on, Box::new(Forget)]), 0, "{way:?} at {w}x{h}");
        }
    }
}

#[test]
fn pictures_are_written_without_allocating_also_over_those_that_are_there() {
    assert!(is_counted());
    let path = room("steady_pictures").join("p-%03d.png").display().to_string();
    let shots: Vec<Shot> = (0..40).map(|n| Shot::made(Format::Rgba8, size(45, 31), n)).collect();
    for way in ["new", "there"] {
        let write = make(&sink::png::ENTRY, &[("path", &path)], None).unwrap();
        assert_eq!(later(vec![Box::new(Play(shots.clone())), write]), 0, "{way}");
    }
}

#[test]
fn pictures_are_read_and_turned_without_allocating() {
    assert!(is_counted());
    for ending in ["jpg", "png", "webp", "tif"] {
        let room = room(&format!("steady_turned_{ending}"));
        for n in 0..40 {
            let from = data(&format!("turned/{}.{ending}", 1 + n % 8));
            std::fs::copy(from, room.join(format!("{n}.{ending}"))).unwrap();
        }
        let pattern = room.join("*").display().to_string();
        let read = make(&source::image::ENTRY, &[("path", &pattern)], None).unwrap();
        assert_eq!(later(vec![read, Box::new(Forget)]), 0, "{ending}");
    }
}
