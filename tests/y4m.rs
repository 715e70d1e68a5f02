//! Header fields of a y4m file reach the y4m sink. A handler that does not affect a field keeps it; other handlers
//! recompute the field or drop it with a note. Chroma is converted according to the siting in the header, in both
//! spaces.
//!
//! Runs on any adapter and fails without one; Mesa's software driver is enough.

use std::path::PathBuf;

use vramp::plan::{RunOptions, Space};
use vramp::{Pipeline, registry};

use crate::ran::run;

/// A file of one test, deleted on drop.
struct Scrap(PathBuf);

impl Scrap {
    fn new(name: &str) -> Scrap {
        Scrap(std::env::temp_dir().join(format!("vramp-y4m-{}-{name}.y4m", std::process::id())))
    }

    fn holding(name: &str, bytes: &[u8]) -> Scrap {
        let scrap = Scrap::new(name);
        std::fs::write(&scrap.0, bytes).expect("it can be written");
        scrap
    }

    fn bytes(&self) -> Vec<u8> {
        std::fs::read(&self.0).expect("it was written")
    }
}

impl Drop for Scrap {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Bytes that look random.
fn noise(count: usize) -> Vec<u8> {
    (0..count as u64).map(|at| ((at + 7).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8).collect()
}

/// A stream with this header and one frame of `frame_bytes` bytes after each of these lines.
fn stream(header: &str, lines: &[&str], frame_bytes: usize) -> Vec<u8> {
    let pixels = noise(frame_bytes * lines.len());
    let frames = lines.iter().zip(pixels.chunks(frame_bytes));
    frames.fold(format!("{header}\n").into_bytes(), |bytes, (line, frame)| {
        [&bytes, line.as_bytes(), b"\n", frame].concat()
    })
}

/// The header that a pipeline with `between` writes, and the notes of the plan. Frames are 8x6 in 4:2:0.
fn left_of(name: &str, header: &str, between: &str) -> (String, Vec<String>) {
    let from = Scrap::holding(&format!("{name}-from"), &stream(header, &["FRAME"], 72));
    let to = Scrap::new(&format!("{name}-to"));
    let text = format!("y4m path={} {between} ! y4m path={}", from.0.display(), to.0.display());
    let (plan, _) = run(&text, |options| options.only(Space::Cpu).threads(1));
    let written = to.bytes();
    let end = written.iter().position(|byte| *byte == b'\n').expect("a header ends");
    (String::from_utf8(written[..end].to_vec()).expect("these headers are text"), plan.notes)
}

#[test]
fn a_pass_keeps_header_and_frames() {
    for (nth, (header, frame_bytes)) in [
        ("YUV4MPEG2 W5 H3 F25:1 It A16:11 C420mpeg2 XYSCSS=420MPEG2 Xhello=there X", 27),
        ("YUV4MPEG2 W5 H3 F30000:1001 Ib A59:54 C420paldv XCOLORRANGE=FULL", 27),
        ("YUV4MPEG2 W5 H3 I? A0:0 C420", 27),
        ("YUV4MPEG2 W5 H3", 27),
        ("YUV4MPEG2 W5 H3 F1:1 Ip A1:1 C422 XCOLORMATRIX=BT709 Xlast", 33),
        ("YUV4MPEG2 W5 H3 C444", 45),
        ("YUV4MPEG2 W5 H3 A2:1 Cmono X\u{7}\r", 15),
    ]
    .into_iter()
    .enumerate()
    {
        let bytes = stream(header, &["FRAME", "FRAME"], frame_bytes);
        let from = Scrap::holding(&format!("pass-{nth}"), &bytes);
        let to = Scrap::new(&format!("pass-{nth}-to"));
        for between in ["", " ! identity ! delay frames=0"] {
            let text = format!("y4m path={}{between} ! y4m path={}", from.0.display(), to.0.display());
            let (plan, _) = run(&text, |options| options.only(Space::Cpu));
            assert_eq!(plan.notes, Vec::<String>::new(), "{header}");
            assert!(to.bytes() == bytes, "{header}{between}: {}", to.bytes()[..60].escape_ascii());
        }
    }
}

#[test]
fn frames_of_mixed_interlacing_keep_their_own_letters() {
    let bytes = stream("YUV4MPEG2 W4 H2 Im C444", &["FRAME Itip", "FRAME", "FRAME Ibii"], 24);
    let from = Scrap::holding("mixed", &bytes);
    let to = Scrap::new("mixed-to");
    run(&format!("y4m path={} ! y4m path={}", from.0.display(), to.0.display()), |s| s.only(Space::Cpu));
    assert!(to.bytes() == bytes, "{}", to.bytes().escape_ascii());
    // A filter that keeps lines in place also keeps the letters of each frame, in both spaces. A filter that mixes
    // lines drops them.
    for space in [Space::Cpu, Space::Gpu] {
        run(&format!("y4m path={} ! invert ! y4m path={}", from.0.display(), to.0.display()), |s| s.only(space));
        let text = to.bytes().escape_ascii().to_string();
        assert!(text.contains("FRAME Itip\\n") && text.contains("FRAME Ibii\\n"), "{text}");
    }
    run(&format!("y4m path={} ! blur ! y4m path={}", from.0.display(), to.0.display()), |s| s.only(Space::Cpu));
    let text = to.bytes().escape_ascii().to_string();
    assert!(text.contains(" I? ") && !text.contains("FRAME I"), "{text}");
}

#[test]
fn each_filter_keeps_recomputes_or_drops_what_a_header_says() {
    let header = "YUV4MPEG2 W8 H6 F25:1 It A4:3 C420mpeg2 Xkept";
    let (fields, converts) = ("interlacing is dropped", "as progressive, although");
    for (nth, (between, expected, noted)) in [
        // Filters that keep pixels in place keep everything; converting mixes the chroma of two fields.
        ("! invert", "W8 H6 F25:1 It A4:3 C420mpeg2 Xkept", &[converts, converts][..]),
        ("! text text=a ! markers", "W8 H6 F25:1 It A4:3 C420mpeg2 Xkept", &[converts, converts]),
        ("! waveform kind=luma", "W8 H6 F25:1 It A4:3 C420mpeg2 Xkept", &[converts, converts]),
        ("! flip h", "W8 H6 F25:1 It A4:3 C420mpeg2 Xkept", &[converts, converts]),
        ("! every n=1", "W8 H6 F25:1 It A4:3 C420mpeg2 Xkept", &[]),
        ("! convert nv12 ! convert i420", "W8 H6 F25:1 It A4:3 C420mpeg2 Xkept", &[converts, converts]),
        ("! convert i444", "W8 H6 F25:1 It A4:3 C444 Xkept", &[converts]),
        // Filters that move or mix lines drop the interlacing.
        ("! blur", "W8 H6 F25:1 I? A4:3 C420mpeg2 Xkept", &[converts, fields]),
        ("! flip v", "W8 H6 F25:1 I? A4:3 C420mpeg2 Xkept", &[converts, fields]),
        ("! crop size=4x4", "W4 H4 F25:1 I? A4:3 C420mpeg2 Xkept", &[converts, fields]),
        ("! rotate 180", "W8 H6 F25:1 I? A4:3 C420mpeg2 Xkept", &[converts, fields]),
        ("! rotate 90", "W6 H8 F25:1 I? A3:4 C420mpeg2 Xkept", &[converts, fields]),
        // The displayed width and height stay the same.
        ("! resize scale=0.5", "W4 H3 F25:1 I? A4:3 C420mpeg2 Xkept", &[converts, fields]),
        ("! resize size=8x3", "W8 H3 F25:1 I? A2:3 C420mpeg2 Xkept", &[converts, fields]),
        (
            "! compositor name=c size=8x8; pattern size=8x6 ! c.in1; c.",
            "W8 H8 F25:1 I? A0:0 C420mpeg2 Xkept",
            &[converts, fields, "compositor0 makes 8x8 from 8x6: the pixel aspect 4:3 is dropped"],
        ),
        // With two inputs, the header of the lead input is kept.
        ("! mix name=m; pattern size=8x6 ! m.b; m.", "W8 H6 F25:1 It A4:3 C420mpeg2 Xkept", &[converts, converts]),
    ]
    .into_iter()
    .enumerate()
    {
        let (written, notes) = left_of(&format!("filter-{nth}"), header, between);
        assert_eq!(written, format!("YUV4MPEG2 {expected}"), "{between}");
        let noted: Vec<String> = noted.iter().map(|words| words.replace("compositor0", "c")).collect();
        assert_eq!(notes.len(), noted.len(), "{between}: {notes:?}");
        for (note, words) in notes.iter().zip(&noted) {
            assert!(note.contains(words.as_str()), "{between}: {note}");
        }
    }
}

#[test]
fn progressive_square_and_unknown_are_kept_without_a_note() {
    for tags in ["Ip A1:1", "I? A0:0", ""] {
        let header = format!("YUV4MPEG2 W8 H6 {tags}").trim_end().to_owned();
        let (written, notes) = left_of(&format!("plain-{}", tags.len()), &header, "! blur ! flip v");
        assert_eq!(written, header);
        assert_eq!(notes, Vec::<String>::new(), "{tags}");
    }
}

#[test]
fn nothing_is_noted_of_what_no_sink_would_have_written() {
    let from = Scrap::holding("unwritten", &stream("YUV4MPEG2 W8 H6 It A4:3 C444", &["FRAME"], 144));
    let (plan, _) = run(&format!("y4m path={} ! blur ! null", from.0.display()), |s| s.only(Space::Cpu));
    assert_eq!(plan.notes, Vec::<String>::new());
}

/// The planes of the last frame of a stream, 8x6 in 4:2:0.
fn last_frame(stream: &[u8]) -> &[u8] {
    &stream[stream.len() - 72..]
}

#[test]
fn sitings_differ_and_convert_back_to_where_they_were_on_both_sides() {
    let mut pixels = Vec::new();
    for word in ["420jpeg", "420mpeg2", "420paldv"] {
        // Luma keeps colours in range, and chroma grows linearly, so that samples between two pixels are exact.
        let luma = [128; 48];
        let linear =
            |u: u8, v: u8| (0..12).flat_map(move |at| [80 + 16 * (at % 4) + u, v]).step_by(2).collect::<Vec<u8>>();
        let bytes =
            [format!("YUV4MPEG2 W8 H6 C{word}\nFRAME\n").as_bytes(), &luma, &linear(0, 0), &linear(5, 0)].concat();
        let from = Scrap::holding(&format!("siting-{word}"), &bytes);
        let (to, raw) = (Scrap::new(&format!("siting-{word}-to")), Scrap::new(&format!("siting-{word}-raw")));
        let mut sides = Vec::new();
        for space in [Space::Cpu, Space::Gpu] {
            let rgba = format!("y4m path={} ! convert rgba8 ! raw path={}", from.0.display(), raw.0.display());
            run(&rgba, |options| options.only(space));
            let back = format!("y4m path={} ! identity ! gamma 1 ! y4m path={}", from.0.display(), to.0.display());
            run(&back, |options| options.only(space));
            let written = to.bytes();
            let header = format!("YUV4MPEG2 W8 H6 C{word}\n");
            assert!(written.starts_with(header.as_bytes()), "{word}: {}", written[..30].escape_ascii());
            // Away from the left and right borders, linear chroma is restored to within a level.
            for at in (48..72).filter(|at| !matches!(at % 4, 0 | 3)) {
                let (found, given) = (last_frame(&written)[at], last_frame(&bytes)[at]);
                assert!(found.abs_diff(given) <= 1, "{word}, byte {at}: {found} instead of {given}");
            }
            sides.push((raw.bytes(), written));
        }
        assert!(sides[0] == sides[1], "{word}");
        pixels.push(sides.remove(0).0);
    }
    assert!(pixels[0] != pixels[1], "centred and left chroma differ");
    // Chroma that changes only horizontally does not depend on the vertical siting.
    assert!(pixels[1] == pixels[2]);
}

#[test]
fn a_header_that_changes_between_planning_and_running_is_refused() {
    let from = Scrap::holding("changed", &stream("YUV4MPEG2 W8 H6 It", &["FRAME"], 72));
    let to = Scrap::new("changed-to");
    let registry = registry();
    let text = format!("y4m path={} ! y4m path={}", from.0.display(), to.0.display());
    let spec = vramp::read(&text, registry.catalog()).expect("it reads");
    let graph = registry.check(&spec).expect("it is right");
    let mut pipeline = Pipeline::from_graph(graph.clone())
        .registry(&registry)
        .options(RunOptions::new().only(Space::Cpu))
        .build()
        .expect("it can be planned");
    std::fs::write(&from.0, stream("YUV4MPEG2 W8 H6 Ib", &["FRAME"], 72)).expect("it can be written");
    let error = pipeline.outcome().expect("it starts").into_result().unwrap_err().to_string();
    assert!(error.contains("has changed since the run was planned; restart the run"), "{error}");
}

#[test]
fn tagged_streams_allocate_nothing_once_they_are_steady() {
    for word in ["420mpeg2", "420paldv"] {
        let header = format!("YUV4MPEG2 W64 H48 F25:1 Im A4:3 C{word} Xcomment");
        let from = Scrap::holding(&format!("steady-{word}"), &stream(&header, &["FRAME Itii"; 600], 64 * 48 * 3 / 2));
        let to = Scrap::new(&format!("steady-{word}-to"));
        let text = format!("y4m path={} ! invert ! convert nv12 ! y4m path={}", from.0.display(), to.0.display());
        for space in [Space::Cpu, Space::Gpu] {
            let (_, report) = run(&text, |options| options.only(space).threads(2));
            let steady = &report.steady;
            assert_eq!((steady.heap_allocs, steady.gpu_allocs), (Some(0.0), 0.0), "{word} {space}: {report:?}");
        }
    }
}
