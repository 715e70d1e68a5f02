//! Links that carry tensors and data, and the notes of frames: through policies, delays, transfers, fan-out and device
//! losses, on both sides.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::sync::Arc;

use vramp::gpu::Recording;
use vramp::harness::{Harness, Stream};
use vramp::plan::catalog::{Input, Output, PortMedia, TensorRule};
use vramp::plan::{Content, DType};
use vramp::prelude::*;
use vramp::runtime::{DataRows, Detection, FrameContent, Meta, NoteList, TensorShape};
use vramp::verify::{Options, verify};

use crate::shared::device;

/// A picture whose bytes are the f32 values of one detection, as `find` reads them.
fn picture(class: u32) -> Vec<u8> {
    let values = [1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 0.5, class as f32];
    let mut bytes: Vec<u8> = values.iter().flat_map(|value: &f32| value.to_le_bytes()).collect();
    bytes.resize(16 * 8 * 4, 0);
    bytes
}

/// The bytes of the data that `find` sends: a picture of 16x8.
pub const ROOM: u32 = 16 * 8 * 4;

/// Finds an object: reads a picture, and copies the values in it to its data, on either side.
pub static FIND: Entry = Entry {
    name: "find",
    about: "takes the values in a picture as a detection",
    example: "pattern size=16x8 ! find ! null",
    outputs: &[Output { media: PortMedia::Data { bytes: ROOM }, ..Output::DATA }],
    kernel: KernelRule::None,
    ..Entry::FILTER
};

#[derive(Default)]
pub struct Find {
    owner: Option<Arc<str>>,
    recording: Recording,
}

impl FrameHandler for Find {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
        let meta = Meta::data(ROOM);
        let made = match (frame.buffer(), call.device().cloned()) {
            (Some(buffer), Some(device)) => {
                let owner = self.owner.get_or_insert_with(|| "find".into());
                let found = device.lend(meta.bytes(), owner).map_err(HandlerError::failed)?;
                self.recording.copy(buffer, &found).map_err(HandlerError::failed)?;
                call.record(&mut self.recording)?;
                Frame::on_device(meta, found)
            }
            _ => {
                let mut found = call.lend_frame(meta)?;
                found.fill().unwrap().copy_from_slice(&frame.bytes());
                found
            }
        };
        call.note("found-in", call.now().number as f64)?;
        call.send(0, made);
        Ok(Flow::Produced)
    }

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        true
    }
}

/// Marks a picture with what was found in it: the class becomes a note.
static MARK: Entry = Entry {
    name: "mark",
    about: "notes what was found",
    example: "pattern size=16x8 name=p ! mark; p. ! find ! mark0.data",
    inputs: &[Input::VIDEO, Input::DATA],
    kernel: KernelRule::None,
    ..Entry::FILTER
};

struct Mark;

impl FrameHandler for Mark {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let found = call.input(1).and_then(|data| data.detections().next());
        let from = call.input(1).map(|data| data.meta().number);
        if let (Some(Detection { class, bounds, .. }), Some(from)) = (found, from) {
            call.note("class", f64::from(class))?;
            call.note("from", from as f64)?;
            let bounds = bounds.map(f64::from);
            call.note("bounds", NoteList::try_from(&bounds[..]).map_err(HandlerError::failed)?)?;
        }
        let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
        call.send(0, frame);
        Ok(Flow::Produced)
    }

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        true
    }
}

/// Passes a picture on as a tensor.
pub static SPREAD: Entry = Entry {
    name: "spread",
    about: "a picture as a tensor of its bytes",
    example: "pattern size=16x8 ! spread ! null",
    outputs: &[Output {
        tensor: TensorRule::By(|_, lead| {
            let size = lead.and_then(Content::frame).ok_or("it needs pictures")?.size;
            Ok((DType::U8, vec![size.height, size.width, 4]))
        }),
        ..Output::TENSOR
    }],
    kernel: KernelRule::None,
    ..Entry::FILTER
};

pub struct Spread;

impl FrameHandler for Spread {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(mut frame) = call.take(0) else { return Ok(Flow::Filtered) };
        let size = frame.size();
        let shape = TensorShape::new(DType::U8, &[size.height, size.width, 4]).expect("three axes");
        // The same memory, under another name.
        frame.set_meta(Meta::tensor(shape));
        call.send(0, frame);
        Ok(Flow::Produced)
    }

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        true
    }
}

fn registry() -> Registry {
    let mut registry = vramp::registry();
    registry.add(&FIND, |_| Ok(Find::default())).unwrap();
    registry.add(&MARK, |_| Ok(Mark)).unwrap();
    registry.add(&SPREAD, |_| Ok(Spread)).unwrap();
    registry
}

fn built(text: &str, options: RunOptions) -> Pipeline {
    Pipeline::parse(text).registry(&registry()).device(device()).options(options).build().expect(text)
}

/// Pushes pictures of growing classes and returns each frame's number with its notes.
fn marked(text: &str, options: RunOptions, frames: u32) -> (Vec<(u64, String)>, Report) {
    // A device of its own, which may be lost.
    let pipeline = Pipeline::parse(text).registry(&registry()).options(options).build().expect(text);
    let running = pipeline.spawn().unwrap();
    let (input, output) = (running.input("in").unwrap(), running.output("out").unwrap());
    let rows = std::thread::scope(|scope| {
        scope.spawn(move || {
            for class in 0..frames {
                input.push(&picture(class)).unwrap();
            }
            input.close();
        });
        let row =
            |frame: PulledFrame| (frame.meta().number, frame.notes().map(ToString::to_string).unwrap_or_default());
        output.iter().map(|frame| row(frame.unwrap())).collect()
    });
    (rows, running.wait().unwrap())
}

const DETECTOR: &str = "app name=in size=16x8 ! mark name=m ! app name=out space=any; in. ! find ! m.data";

#[test]
fn each_frame_is_marked_with_what_was_found_in_it() {
    for side in [Space::Cpu, Space::Gpu] {
        let (rows, report) = marked(DETECTOR, RunOptions::new().only(side), 50);
        let expected = |number: u64| (number, format!("class={number} from={number} bounds=2,3,4,5"));
        assert_eq!(rows, (0..50).map(expected).collect::<Vec<_>>(), "{side}");
        assert_eq!((report.frames_in, report.dropped.sum(), report.memory.leaked), (50, 0, 0), "{side}");
        if side == Space::Gpu {
            // Each picture goes up once. Of what comes down, only the data does.
            let counters = report.counters;
            assert_eq!((counters.uploads, counters.downloads), (50, 50));
            assert_eq!(counters.transfer_bytes, 50 * u64::from(ROOM) * 2, "the test's data is as large as its picture");
        }
    }
}

#[test]
fn data_of_a_larger_picture_comes_down_alone() {
    let text = "pattern kind=gradient size=256x128 frames=400 name=p ! null; p. ! crop size=16x8 ! find ! app name=out";
    let running = built(text, RunOptions::new().only(Space::Gpu)).spawn().unwrap();
    let kinds: Vec<_> = running.output("out").unwrap().iter().map(|frame| frame.unwrap().data().unwrap()).collect();
    let report = running.wait().unwrap();
    assert_eq!((kinds.len(), &kinds[0]), (400, &DataRows::Nothing));
    assert_eq!((report.counters.uploads, report.counters.downloads), (0, 400));
    assert_eq!(report.counters.transfer_bytes, 400 * u64::from(ROOM));
    let steady = report.steady;
    assert_eq!((steady.submits, steady.gpu_allocs, steady.heap_allocs), (1.0, 0.0, Some(0.0)));
}

#[test]
fn newest_wins_links_never_show_what_was_found_later() {
    for side in [Space::Cpu, Space::Gpu] {
        let text = "app name=in size=16x8 ! mark name=m ! app name=out space=any; in. !{latest} find !{latest} m.data";
        let (rows, report) = marked(text, RunOptions::new().only(side), 200);
        assert_eq!(rows.len(), 200, "{side}: the lead is lossless");
        for (number, notes) in rows.iter().filter(|(_, notes)| !notes.is_empty()) {
            let value = |key: &str| -> u64 {
                notes.split(' ').find_map(|note| note.strip_prefix(key)?.strip_prefix('=')).unwrap().parse().unwrap()
            };
            assert!(value("from") <= *number && value("class") == value("from"), "{side}: frame {number} has {notes}");
        }
        assert_eq!(report.memory.leaked, 0);
    }
}

#[test]
fn tensors_and_data_go_through_controls_and_transfers() {
    for side in [Space::Cpu, Space::Gpu] {
        let text = "pattern kind=gradient size=16x8 frames=30 ! spread ! identity ! delay 2 ! every 3 ! app name=out; \
                    pattern0. ! find ! delay 1 ! every 2 ! app name=found; spread0. ! null; find0. ! probe ! null";
        let running = built(text, RunOptions::new().only(side)).spawn().unwrap();
        let (out, found) = (running.output("out").unwrap(), running.output("found").unwrap());
        std::thread::scope(|scope| {
            let data = scope.spawn(move || {
                let rows =
                    |frame: PulledFrame| (frame.meta().number, frame.notes().unwrap().number("found-in").unwrap());
                found.iter().map(|frame| rows(frame.unwrap())).collect::<Vec<_>>()
            });
            let tensors: Vec<(u64, FrameContent, u8)> = out
                .iter()
                .map(|frame| {
                    let frame = frame.unwrap();
                    let blue = frame.bytes()[2];
                    (frame.meta().number, frame.meta().content, blue)
                })
                .collect();
            let shape = FrameContent::Tensor(TensorShape::new(DType::U8, &[8, 16, 4]).unwrap());
            // `delay` leaves out the first two; `every` then keeps each third.
            let expected: Vec<_> = (2..30).step_by(3).map(|n: u64| (n, shape, (n - 2) as u8)).collect();
            assert_eq!(tensors, expected, "{side}");
            let expected: Vec<_> = (1..30).step_by(2).map(|n: u64| (n, (n - 1) as f64)).collect();
            assert_eq!(data.join().unwrap(), expected, "{side}");
        });
        let report = running.wait().unwrap();
        assert_eq!((report.memory.leaked, report.dropped.sum()), (0, 0), "{side}: {:?}", report.memory.leaks);
    }
}

#[test]
fn notes_stay_with_their_frames_when_a_device_is_lost() {
    let text = "app name=in size=16x8 ! mark name=m ! blur ! invert ! app name=out; in. ! find ! m.data";
    for options in [RunOptions::new(), RunOptions::new().on_loss(OnLoss::Cpu)] {
        let (rows, report) = marked(text, options.only(Space::Gpu).lose_device_at(&[20]), 60);
        assert_eq!(report.recoveries.len(), 1);
        assert!(rows.len() as u64 + report.dropped.device_lost >= 60 && rows.len() >= 40, "{} frames", rows.len());
        for (number, notes) in rows.iter().filter(|(_, notes)| notes.contains("class")) {
            assert!(notes.contains(&format!("class={number} from={number}")), "frame {number} has {notes}");
        }
    }
}

#[test]
fn steady_frames_with_tensors_data_and_notes_allocate_nothing() {
    for side in [Space::Cpu, Space::Gpu] {
        let text = "pattern kind=gradient size=16x8 frames=400 name=p ! mark name=m ! blur ! null; p. ! find ! m.data; \
                    p. ! spread ! delay 1 ! null";
        let report = built(text, RunOptions::new().only(side).threads(1)).run().unwrap();
        let steady = report.steady;
        assert_eq!((steady.heap_allocs, steady.gpu_allocs, steady.frame_copies), (Some(0.0), 0.0, 0.0), "{side}");
        assert_eq!(report.memory.leaked, 0, "{side}: {:?}", report.memory.leaks);
    }
}

#[test]
fn verification_compares_tensors_data_and_notes() {
    let registry = registry();
    let text =
        "pattern kind=gradient size=16x8 name=p ! mark name=m ! invert ! null; p. ! find ! m.data; p. ! spread ! null";
    let spec = vramp::read(text, registry.catalog()).unwrap();
    let options = Options { frames: 4, device: Some(device().clone()), ..Options::default() };
    let verified = verify(&spec, &registry, &options).unwrap();
    assert!(verified.is_equal(), "{verified}");
    let compared: Vec<&str> = verified.comparisons.iter().flat_map(|own| &own.made_by).map(String::as_str).collect();
    assert!(["find0", "spread0", "m"].iter().all(|name| compared.contains(name)), "{compared:?}");

    let mut wrong = registry;
    wrong.add(&LIES, |setup: &Setup<'_>| Ok(Lies { on_device: setup.space == Space::Gpu })).unwrap();
    let spec = vramp::read("pattern size=16x8 ! lies ! null", wrong.catalog()).unwrap();
    let verified = verify(&spec, &wrong, &options).unwrap();
    let (_, difference) = verified.differences().next().expect("its notes differ");
    assert!(difference.to_string().contains("the notes are"), "{difference}");
}

static LIES: Entry = Entry { name: "lies", about: "differs", example: "pattern ! lies ! null", ..FIND };

/// Finds the same on both sides, and notes the side.
struct Lies {
    on_device: bool,
}

impl FrameHandler for Lies {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        call.note("side", if self.on_device { "gpu" } else { "cpu" })?;
        Find::default().process(call)
    }
}

#[test]
fn a_handler_is_tested_with_tensors_and_data() {
    let registry = registry();
    let size = Size::new(16, 8).unwrap();
    let mut rig =
        Harness::of("mark", &registry).input("video", size).input("data", Stream::data(ROOM)).build().unwrap();
    rig.push("video", &picture(0)).unwrap();
    rig.push_values("data", &[1.0, 1.0, 0.0, 0.0, 9.0, 9.0, 0.7, 42.0]).unwrap();
    rig.step().unwrap();
    let frame = rig.pull("video").unwrap();
    assert_eq!(frame.notes[0], ("class".into(), vramp::runtime::NoteValue::Number(42.0)));
    let mut rig = Harness::of("delay 1", &registry).input("video", Stream::tensor(DType::F32, &[2])).build().unwrap();
    for values in [[1.0, 2.0], [3.0, 4.0]] {
        rig.push_values("video", &values).unwrap();
        rig.step().unwrap();
    }
    assert_eq!(rig.pull("video").unwrap().values(), [1.0, 2.0]);
    let error = rig.push("video", &[0; 7]).unwrap_err().to_string();
    assert_eq!(error, "delay0.video: 7 bytes were pushed, but a frame of f32 [2] has 8 bytes");
}

#[test]
fn ports_of_different_types_are_refused_by_their_types() {
    static SINGS: Entry = Entry {
        name: "sings",
        about: "a source of sound",
        example: "sings ! null",
        outputs: &[Output { name: "audio", media: PortMedia::Audio, ..Output::VIDEO }],
        ..Entry::SOURCE
    };
    static HEARS: Entry = Entry {
        name: "hears",
        about: "a sink of sound",
        example: "sings ! hears",
        inputs: &[Input { name: "audio", media: PortMedia::Audio, ..Input::VIDEO }],
        ..Entry::SINK
    };
    let mut registry = registry();
    registry.add(&SINGS, |_| Ok(Spread)).unwrap();
    registry.add(&HEARS, |_| Ok(Spread)).unwrap();
    let refused = |text: &str| Pipeline::parse(text).registry(&registry).build().unwrap_err().to_string();
    for (text, words) in [
        ("pattern size=16x8 ! find ! blur ! null", "find0.data carries data, but blur0.video takes video"),
        ("pattern size=16x8 ! spread ! invert ! null", "spread0.tensor carries tensor, but invert0.video takes video"),
        ("sings ! blur ! null", "sings0.audio carries audio, but blur0.video takes video"),
        ("pattern size=16x8 ! hears", "pattern0.video carries video, but hears0.audio takes audio"),
        ("pattern size=16x8 ! find ! identity ! blur ! null", "offers data in cpu"),
        ("sings ! null", "offers audio in cpu"),
        ("pattern size=16x8 ! find ! upload ! null", "data is always on the host"),
        ("sings ! hears", "carries audio, which can be planned but does not run"),
    ] {
        let error = refused(text);
        assert!(error.contains(words), "{text}: {error}");
    }
}

#[test]
fn a_note_that_does_not_fit_fails_its_frame_in_words() {
    static LONG: Entry =
        Entry { name: "long", about: "notes too much", example: "pattern ! long ! null", ..Entry::CONTROL };
    struct Long;
    impl FrameHandler for Long {
        fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
            call.note("words", "x".repeat(300).as_str())?;
            Ok(Flow::Filtered)
        }
    }
    let mut registry = registry();
    registry.add(&LONG, |_| Ok(Long)).unwrap();
    let text = "pattern size=16x8 frames=3 ! long ! null";
    let options = RunOptions::new().only(Space::Cpu);
    let error = Pipeline::parse(text).registry(&registry).options(options).build().unwrap().run().unwrap_err();
    assert!(error.to_string().contains("the note `words` has 300 bytes of text, but 255 is the maximum"), "{error}");
}

#[test]
fn a_frame_of_another_input_that_is_sent_on_has_the_notes_of_the_lead() {
    static SWAPS: Entry = Entry {
        name: "swaps",
        about: "sends the frame of its second input",
        example: "pattern name=p ! swaps name=s ! null; p. ! s.b",
        inputs: &[Input::VIDEO, Input { name: "b", ..Input::VIDEO }],
        settings: &[Setting::bool("adds", "whether it attaches a note").default("false")],
        kernel: KernelRule::None,
        ..Entry::FILTER
    };
    static CALLS: Entry = Entry {
        name: "calls",
        about: "attaches a note",
        example: "pattern ! calls key=x ! null",
        settings: &[Setting::text("key", "the key").default("")],
        ..Entry::CONTROL
    };
    /// Sends the frame of an input, with a note.
    struct Sends(usize, String);
    impl FrameHandler for Sends {
        fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
            if !self.1.is_empty() {
                call.note(&self.1, 1.0)?;
            }
            let Some(frame) = call.take(self.0) else { return Ok(Flow::Filtered) };
            call.send(0, frame);
            Ok(Flow::Produced)
        }
    }
    let mut registry = registry();
    let swaps = |setup: &Setup<'_>| Ok(Sends(1, if setup.flag("adds")? { "added".to_owned() } else { String::new() }));
    registry.add(&SWAPS, swaps).unwrap();
    registry.add(&CALLS, |setup: &Setup<'_>| Ok(Sends(0, setup.text("key")?.to_owned()))).unwrap();
    for (key, adds, expected) in
        [("", false, ""), ("", true, "added=1"), ("lead", false, "lead=1"), ("lead", true, "lead=1 added=1")]
    {
        let text = format!(
            "pattern size=16x8 frames=3 name=p ! calls key=\"{key}\" ! swaps adds={adds} name=s ! app name=out; \
             p. ! calls key=side ! s.b"
        );
        let options = RunOptions::new().only(Space::Cpu);
        let running = Pipeline::parse(text).registry(&registry).options(options).build().unwrap().spawn().unwrap();
        for frame in &running.output("out").unwrap() {
            assert_eq!(frame.unwrap().notes().map(ToString::to_string).unwrap_or_default(), expected);
        }
        running.wait().unwrap();
    }
}
