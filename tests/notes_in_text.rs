//! Notes of frames in texts (`text "{meta.KEY}"`): on both sides, fused, unfused and in stages, with settings that change
//! during a run, without allocations.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use vramp::plan::catalog::Entry;
use vramp::prelude::*;
use vramp::runtime::{NoteList, NoteValue};

use crate::shared::{device, pass};

const SIDES: [Space; 2] = [Space::Cpu, Space::Gpu];

fn number(number: f64) -> NoteValue {
    NoteValue::Number(number)
}

fn words(text: &str) -> NoteValue {
    NoteValue::Text(text.to_owned())
}

/// A running pipeline from `in` to `out`, fed frame by frame.
struct Fed(Running);

impl Fed {
    /// Handlers between a source of black frames and an output.
    fn of(handlers: &str, options: RunOptions) -> Fed {
        let text = format!("app name=in size=640x48 ! {handlers} ! app name=out");
        Fed(Pipeline::parse(text.as_str()).device(device()).options(options).build().expect(&text).spawn().unwrap())
    }

    /// Pushes a black frame with this value as its note `n`, and returns the bytes of the frame that comes out.
    fn frame(&self, note: Option<&NoteValue>) -> Vec<u8> {
        let input = self.0.input("in").unwrap();
        let mut frame = input.lend().unwrap();
        frame.bytes_mut().as_chunks_mut().0.fill([0, 0, 0, 255]);
        if let Some(note) = note {
            input.note(&mut frame, "n", note.as_note().unwrap()).unwrap();
        }
        input.send(frame, Wait::Forever).unwrap();
        let made = self.0.output("out").unwrap().pull().unwrap().unwrap();
        made.bytes().to_vec()
    }

    fn end(self) -> Report {
        self.0.input("in").unwrap().close();
        let report = self.0.wait().unwrap();
        assert_eq!((report.memory.leaked, report.failed), (0, 0), "{:?}", report.memory.leaks);
        report
    }
}

/// One frame with this text and this note.
fn drawn(text: &str, note: Option<&NoteValue>, side: Space) -> Vec<u8> {
    let fed = Fed::of(&format!("text \"{text}\""), RunOptions::new().only(side));
    let made = fed.frame(note);
    fed.end();
    made
}

#[test]
fn a_note_is_drawn_like_the_same_words() {
    let long = "n".repeat(100);
    let list = NoteValue::List(vec![1.0, -2.5, 1e-9]);
    for (note, shown) in [
        (Some(number(42.0)), "42"),
        (Some(number(0.1 + 0.2)), "0.3"),
        (Some(number(-1e300)), "-1e300"),
        (Some(words("moon")), "moon"),
        (Some(words("two\nlines")), "two lines"),
        (Some(words("öß")), "öß"),
        (Some(words("你 n")), "你 n"),
        (Some(words("")), ""),
        (Some(list), "1,-2.5,1e-9"),
        (Some(words(&long)), &(long[..79].to_owned() + "…")),
        (None, "-"),
    ] {
        let expected = drawn(shown, None, Space::Cpu);
        for side in SIDES {
            assert!(drawn("{meta.n}", note.as_ref(), side) == expected, "{side}: {note:?} as `{shown}`");
        }
    }
    let expected = drawn("-", None, Space::Cpu);
    for side in SIDES {
        assert!(drawn("{meta.other}", Some(&number(1.0)), side) == expected, "{side}: another key");
    }
    assert!(drawn("", None, Space::Cpu) != expected);
}

/// Twelve frames whose note `n` is their number; a setting changes before the seventh.
fn twelve(handlers: &str, options: &RunOptions, change: Option<(&str, &str)>) -> (Vec<Vec<u8>>, Report) {
    let fed = Fed::of(handlers, options.clone());
    let frame = |at: u32| {
        if let Some((name, value)) = change.filter(|_| at == 6) {
            fed.0.set(name, value).unwrap();
        }
        fed.frame(Some(&number(at.into())))
    };
    let frames = (0..12).map(frame).collect();
    (frames, fed.end())
}

#[test]
fn notes_and_other_values_share_a_line() {
    for side in SIDES {
        let options = RunOptions::new().only(side);
        let (noted, report) = twelve("text \"{meta.n} {frame}: {size}\"", &options, None);
        let (plain, _) = twelve("text \"{frame} {frame}: {size}\"", &options, None);
        assert!(noted == plain, "{side}");
        assert_eq!((report.frames_out, report.counters.dispatches > 0), (12, side == Space::Gpu));
    }
}

/// Compares notes and numbers in a text after these handlers.
fn same_as_numbers(handlers: &str, options: &RunOptions, change: Option<(&str, &str)>) {
    let (noted, report) = twelve(&format!("{handlers} ! text \"{{meta.n}}\" color=ff0000 ! invert"), options, change);
    let (plain, _) = twelve(&format!("{handlers} ! text \"{{frame}}\" color=ff0000 ! invert"), options, change);
    assert!(noted == plain && noted[10] != noted[11], "{handlers}");
    assert_eq!(report.swaps, u64::from(change.is_some()), "{handlers}");
}

#[test]
fn notes_reach_texts_in_fused_units_and_stages() {
    for side in SIDES {
        let options = RunOptions::new().only(side);
        for handlers in ["invert", "blur", "flip h ! brightness 0.25"] {
            same_as_numbers(handlers, &options, None);
            same_as_numbers(handlers, &options.clone().fusion(false), None);
        }
        // The change divides the unit into stages; the text is in the last one.
        same_as_numbers("invert ! waveform kind=sine name=w", &options, Some(("w.kind", "luma")));
    }
}

#[test]
fn texts_with_notes_change_during_a_run() {
    for side in SIDES {
        let fed = Fed::of("text \"n\" name=t", RunOptions::new().only(side));
        let shown = |text: &str| drawn(text, None, side);
        assert!(fed.frame(Some(&number(5.0))) == shown("n"), "{side}");
        fed.0.set("t.text", "{meta.n}").unwrap();
        assert!(fed.frame(Some(&number(7.5))) == shown("7.5"), "{side}");
        assert!(fed.frame(Some(&words("moon"))) == shown("moon"), "{side}");
        for wrong in ["{meta.}", "{meta.a b}", "{meta.n"] {
            let error = fed.0.set("t.text", wrong).unwrap_err().to_string();
            assert!(error.contains(&format!("`{wrong}` does not name a note")), "{error}");
        }
        assert!(fed.frame(Some(&number(8.0))) == shown("8"), "{side}: a refused change changes nothing");
        fed.end();
    }
    let error = Pipeline::parse("pattern ! text \"{meta.}\" ! null").build().unwrap_err().to_string();
    assert!(error.contains("`{meta.}` does not name a note; write `{meta.KEY}`"), "{error}");
}

/// Attaches notes that change with each frame.
static TAG: Entry = Entry { name: "tag", about: "attaches notes", example: "pattern ! tag ! null", ..Entry::CONTROL };

struct Tag;

impl FrameHandler for Tag {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        const WORDS: [&str; 3] = ["one", "two", "three and more"];
        let number = call.now().number;
        call.note("number", number as f64 / 3.0)?;
        call.note("words", WORDS[number as usize % WORDS.len()])?;
        call.note("list", NoteList::try_from(&[number as f64, 0.5][..]).unwrap())?;
        pass(call)
    }
}

#[test]
fn steady_frames_with_notes_in_texts_allocate_nothing() {
    let mut registry = vramp::registry();
    registry.add(&TAG, |_| Ok(Tag)).unwrap();
    for side in SIDES {
        let text = "pattern kind=solid size=320x48 frames=600 ! tag ! text \"{meta.number} {meta.words}\\n{meta.list} \
                    {meta.none}\" size=12 ! null";
        let options = RunOptions::new().only(side).threads(1);
        let built = Pipeline::parse(text).registry(&registry).device(device()).options(options).build();
        let report = built.unwrap().run().unwrap();
        let steady = report.steady;
        assert_eq!((steady.heap_allocs, steady.gpu_allocs, steady.frame_copies), (Some(0.0), 0.0, 0.0), "{side}");
        assert_eq!((report.memory.leaked, report.counters.dispatches > 0), (0, side == Space::Gpu));
    }
}
