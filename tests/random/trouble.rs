//! Handlers that fail, panic or filter on certain frames, that attach notes, and a sink that keeps what arrives.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vramp::kernels::PixelFn;
use vramp::plan::catalog::{Entry, Input, Setting};
use vramp::plan::{Format, Space};
use vramp::runtime::{
    Call, Flow, FrameContent, FrameHandler, HandlerError, Meta, NoteList, NoteValue, Notes, ParamWriter, Part,
    PixelHandler, PixelInfo, Registry, Setup,
};

use crate::shared::{ADD_RED, pass};

/// Adds the kinds of this file. The sinks keep their frames in `kept`.
pub fn add_to(registry: &mut Registry, kept: &Arc<Mutex<Kept>>) {
    let kept = Arc::clone(kept);
    let added = [
        registry.add(&STUMBLES, |setup: &Setup<'_>| Ok(Stumbles { trouble: Trouble::of(setup)?, asked: 0 })),
        registry.add(&TRIPS, |setup: &Setup<'_>| Ok(Trips { trouble: Trouble::of(setup)? })),
        registry.add(&ANNOTATE, |setup: &Setup<'_>| {
            Ok(Annotate { key: setup.word("key")?.to_owned(), what: setup.word("what")?.to_owned() })
        }),
        registry.add(&COLLECTS, move |setup: &Setup<'_>| Ok(Collects(setup.name.to_owned(), Arc::clone(&kept)))),
    ];
    assert!(added.iter().all(Result::is_ok), "{added:?}");
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Silences intended panics, which would fill the output.
pub fn quietly() {
    std::panic::set_hook(Box::new(|panic| {
        if panic.payload().downcast_ref::<&str>() != Some(&"on purpose") {
            eprintln!("{panic}");
        }
    }));
}

// ---- failures

const TROUBLE: &[Setting] = &[
    Setting::int("each", 1..=5, "frames from one failure to the next").default("3"),
    Setting::int("from", 0..=5, "number of the first frame that may fail").default("0"),
    Setting::choice("how", &["fails", "panics", "filters", "fails-once"], "what happens").default("fails"),
];

pub static STUMBLES: Entry = Entry {
    name: "stumbles",
    about: "fails now and then",
    example: "pattern ! stumbles ! null",
    settings: TROUBLE,
    ..Entry::FILTER
};

pub static TRIPS: Entry = Entry {
    name: "trips",
    about: "fails now and then, whatever it passes on",
    example: "pattern ! trips ! null",
    settings: TROUBLE,
    ..Entry::CONTROL
};

pub fn does_stumble(each: u64, from: u64, number: u64) -> bool {
    number >= from && (number - from).is_multiple_of(each)
}

struct Trouble {
    each: u64,
    from: u64,
    how: String,
    /// The last frame that failed once.
    failed: Option<u64>,
}

impl Trouble {
    fn of(setup: &Setup<'_>) -> Result<Trouble, HandlerError> {
        let how = setup.word("how")?.to_owned();
        Ok(Trouble { each: setup.int("each")?, from: setup.int("from")?, how, failed: None })
    }

    fn meet(&mut self, number: u64) -> Result<Flow, HandlerError> {
        if !does_stumble(self.each, self.from, number) {
            return Ok(Flow::Produced);
        }
        match self.how.as_str() {
            "fails" => Err(HandlerError::failed("on purpose")),
            "panics" => std::panic::panic_any("on purpose"),
            "filters" => Ok(Flow::Filtered),
            _ if self.failed.replace(number) != Some(number) => Err(HandlerError::failed("at first")),
            _ => Ok(Flow::Produced),
        }
    }
}

static STUMBLING: PixelFn = ADD_RED;

/// Adds the number of its calls to red, so that a second call for one frame is visible.
struct Stumbles {
    trouble: Trouble,
    asked: u32,
}

impl PixelHandler for Stumbles {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&STUMBLING)]
    }

    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        self.asked += 1;
        let flow = self.trouble.meet(info.now.number)?;
        if flow == Flow::Produced {
            give.part(&[self.asked & 255], &[]);
        }
        Ok(flow)
    }
}

/// Passes on pictures, tensors and data.
struct Trips {
    trouble: Trouble,
}

impl FrameHandler for Trips {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        match self.trouble.meet(call.now().number)? {
            Flow::Produced => pass(call),
            flow => Ok(flow),
        }
    }
}

// ---- notes

pub static ANNOTATE: Entry = Entry {
    name: "annotate",
    about: "attaches a note that depends on the number of the frame",
    example: "pattern ! annotate ! null",
    settings: &[
        Setting::choice("key", &["a", "b", "c"], "key of the note").default("a"),
        Setting::choice("what", &["number", "text", "list"], "kind of the value").default("number"),
    ],
    ..Entry::CONTROL
};

struct Annotate {
    key: String,
    what: String,
}

/// The note that `annotate` attaches to a frame.
pub fn note_of(what: &str, number: u64) -> NoteValue {
    match what {
        "number" => NoteValue::Number(number as f64 + 0.5),
        "text" => NoteValue::Text(format!("frame {number}")),
        _ => NoteValue::List((0..=number).map(|at| at as f64).collect()),
    }
}

impl FrameHandler for Annotate {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        match note_of(&self.what, call.now().number) {
            NoteValue::Number(number) => call.note(&self.key, number)?,
            NoteValue::Text(text) => call.note(&self.key, text.as_str())?,
            NoteValue::List(list) => {
                let list = NoteList::try_from(list.as_slice()).map_err(HandlerError::failed)?;
                call.note(&self.key, list)?;
            }
        }
        pass(call)
    }
}

// ---- what arrives

pub static COLLECTS: Entry = Entry {
    name: "collects",
    about: "keeps what arrives",
    example: "pattern ! collects",
    inputs: &[Input::EVERY],
    blocking: false,
    ..Entry::SINK
};

/// A frame at a sink.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrived {
    pub number: u64,
    pub pts_ns: i64,
    pub content: FrameContent,
    pub notes: Vec<(String, NoteValue)>,
    /// `None` if the frame is on the device, or in a format with padding, whose bytes are undefined.
    pub bytes: Option<Vec<u8>>,
}

/// The frames of each sink, by its name.
pub type Kept = BTreeMap<String, Vec<Arrived>>;

impl Arrived {
    pub fn of(frame: &vramp::runtime::Frame) -> Arrived {
        let Meta { number, pts_ns, content, .. } = *frame.meta();
        let notes = frame.notes().map(Notes::to_vec).unwrap_or_default();
        let is_padded = matches!(content, FrameContent::Video(picture) if picture.format != Format::Rgba8);
        let bytes = (frame.space() == Space::Cpu && !is_padded).then(|| frame.bytes().to_vec());
        Arrived { number, pts_ns, content, notes, bytes }
    }
}

struct Collects(String, Arc<Mutex<Kept>>);

impl FrameHandler for Collects {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let frame = call.take(0).ok_or_else(|| HandlerError::failed("no lead frame"))?;
        lock(&self.1).entry(self.0.clone()).or_default().push(Arrived::of(&frame));
        Ok(Flow::Produced)
    }
}
