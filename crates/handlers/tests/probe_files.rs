//! Probing of files: the results, and the errors for invalid files.

use std::fs;
use std::path::PathBuf;

use vramp_handlers::registry;
use vramp_handlers::{sink, source};
use vramp_plan::catalog::{Entry, ProbeError, Probed, SettingValues, SourceProbe, Value};
use vramp_plan::{Format, Rate, Size, StreamTags};

/// An empty directory for one test.
fn room(test: &str) -> PathBuf {
    let room = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    if room.exists() {
        fs::remove_dir_all(&room).expect("the last run's files can go");
    }
    fs::create_dir_all(&room).expect("a directory can be made");
    room
}

fn look(entry: &Entry, path: &str) -> Result<Probed, ProbeError> {
    let mut settings = SettingValues::default();
    settings.set("path", Value::Text(path.to_owned()));
    registry().probe(entry, &settings)
}

fn gif(width: u16, height: u16) -> Vec<u8> {
    [b"GIF89a".as_slice(), &width.to_le_bytes(), &height.to_le_bytes(), &[0; 3]].concat()
}

#[test]
fn a_pattern_stands_for_its_first_file_by_name() {
    let room = room("pattern");
    fs::create_dir(room.join("a-directory.gif")).unwrap();
    for (name, width) in [("c.gif", 3), ("b.gif", 2), ("d.gif", 4)] {
        fs::write(room.join(name), gif(width, 1)).unwrap();
    }
    let probed = look(&source::image::ENTRY, &format!("{}/*.gif", room.display())).unwrap();
    assert_eq!(probed, Probed { size: Size::new(2, 1), ..Probed::default() });
}

#[test]
fn a_file_whose_name_reads_like_a_pattern_is_taken_by_its_name() {
    let room = room("brackets");
    fs::write(room.join("[a].gif"), gif(7, 5)).unwrap();
    let probed = look(&source::image::ENTRY, &room.join("[a].gif").display().to_string()).unwrap();
    assert_eq!(probed.size, Size::new(7, 5));
}

#[test]
fn a_pattern_without_a_match_and_a_bad_pattern_are_named() {
    let room = room("nothing");
    let pattern = format!("{}/*.png", room.display());
    let error = look(&source::image::ENTRY, &pattern).unwrap_err();
    assert_eq!(error.problem, format!("no file matches `{pattern}`"));
    let error = look(&source::image::ENTRY, "a***b.png").unwrap_err();
    assert!(error.problem.starts_with("`a***b.png` is not a valid pattern"), "{error}");
}

#[test]
fn a_missing_file_is_an_error_for_every_source_of_files() {
    let path = room("missing").join("none.bin").display().to_string();
    for entry in [&source::image::ENTRY, &source::y4m::ENTRY, &source::raw::ENTRY] {
        let error = look(entry, &path).unwrap_err();
        assert!(error.problem.starts_with(&format!("`{path}` cannot be read: ")), "{}: {error}", entry.name);
        assert!(error.help.starts_with("check the path"), "{}: {error}", entry.name);
    }
}

#[test]
fn a_directory_is_not_a_file() {
    let path = room("directory").display().to_string();
    for entry in [&source::image::ENTRY, &source::y4m::ENTRY, &source::raw::ENTRY] {
        let error = look(entry, &path).unwrap_err();
        assert!(error.problem.contains("is a directory"), "{}: {error}", entry.name);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_is_not_read_for_a_header() {
    for entry in [&source::image::ENTRY, &source::y4m::ENTRY] {
        let error = look(entry, "/dev/zero").unwrap_err();
        assert!(error.problem.contains("is a pipe or a device"), "{}: {error}", entry.name);
    }
}

#[test]
fn a_picture_that_is_none_is_shown_by_its_first_bytes() {
    let path = room("text").join("notes.png");
    fs::write(&path, "dear diary, today").unwrap();
    let error = look(&source::image::ENTRY, &path.display().to_string()).unwrap_err();
    assert!(error.problem.contains("starts with `dear diary, `, expected a PNG, JPEG"), "{error}");
}

#[test]
fn the_size_of_a_picture_is_that_after_turning() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/turned");
    for orientation in 1..=8 {
        for ending in ["jpg", "png", "webp", "tif"] {
            let path = folder.join(format!("{orientation}.{ending}")).display().to_string();
            let expected = if orientation < 5 { Size::new(13, 9) } else { Size::new(9, 13) };
            assert_eq!(look(&source::image::ENTRY, &path).unwrap().size, expected, "{path}");
        }
    }
}

#[test]
fn a_y4m_file_tells_format_size_and_rate() {
    let path = room("y4m").join("clip.y4m");
    fs::write(&path, b"YUV4MPEG2 W352 H288 F25:1 C422\nFRAME\n\xff\xff").unwrap();
    let probed = look(&source::y4m::ENTRY, &path.display().to_string()).unwrap();
    let tags = StreamTags { chroma: Some("422"), ..StreamTags::default() };
    let expected = Probed {
        format: Some(Format::I422),
        size: Size::new(352, 288),
        rate: Rate::new(25, 1),
        tags: Some(std::sync::Arc::new(tags)),
        ..Probed::default()
    };
    assert_eq!(probed, expected);
}

#[test]
fn a_broken_y4m_file_is_named_with_the_byte() {
    let path = room("broken-y4m").join("clip.y4m");
    fs::write(&path, "YUV4MPEG2 W352 H288 F25:1 C420p10\n").unwrap();
    let error = look(&source::y4m::ENTRY, &path.display().to_string()).unwrap_err();
    assert!(error.problem.contains("clip.y4m`, byte 26: found `C420p10`"), "{error}");
    assert!(error.help.contains("-pix_fmt yuv420p"), "{error}");
}

#[test]
fn raw_files_and_standard_input_tell_nothing() {
    let path = room("raw").join("frames");
    fs::write(&path, [0; 16]).unwrap();
    assert_eq!(look(&source::raw::ENTRY, &path.display().to_string()), Ok(Probed::default()));
    assert_eq!(look(&source::raw::ENTRY, "-"), Ok(Probed::default()));
}

#[test]
fn video_does_not_eat_standard_input() {
    let error = look(&source::video::ENTRY, "-").unwrap_err();
    assert!(error.help.contains("`y4m path=-`"), "{error}");
}

#[test]
fn patterns_and_sinks_are_not_looked_into() {
    let absent = room("absent").join("out.y4m").display().to_string();
    for entry in [&source::pattern::ENTRY, &sink::y4m::ENTRY, &sink::video::ENTRY] {
        assert_eq!(look(entry, &absent), Ok(Probed::default()), "{}", entry.name);
    }
}
