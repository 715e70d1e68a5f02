//! The two ends of a rig: the feed, a source that sends the pushed frames, and the catch, a sink that keeps the frames
//! it receives.
//!
//! The ends do not decide when a frame is due; the rig's clock does.
//!
//! Invariants: if a frame is due and a feed has no frame, the slot of that frame stays empty. A caught frame is a copy
//! and holds no memory of the pipeline's pools.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use vramp_plan::catalog::{
    Entry, EntryError, Fallback, FormatRule, Frames, Input, Liveness, Output, PortMedia, RateRule, Setting, SizeRule,
    ValueType, Work,
};
use vramp_plan::{Format, Size};
use vramp_runtime::{Call, Flow, Frame, FrameHandler, HandlerError, Meta, Registry, Worker, Yuv};

pub(crate) static FEED: Entry = Entry {
    name: "harness-feed",
    about: "sends the frames that a test pushed",
    outputs: &[Output {
        media: PortMedia::ANY,
        format: FormatRule::Setting("format"),
        // The size counts as probed, not as set, so that a pushed frame of another size is a change in mid-stream, as
        // in a folder of images.
        size: SizeRule::Probed(Some("size")),
        rate: RateRule::Setting("fps"),
        ..Output::VIDEO
    }],
    settings: &[
        setting("format", ValueType::Format),
        setting("size", ValueType::Size),
        setting("fps", ValueType::Rate),
        setting("every", ValueType::Int { min: 1, max: u32::MAX as i64 }),
    ],
    work: Work::NONE,
    blocking: false,
    ..Entry::SOURCE
};

pub(crate) static CATCH: Entry = Entry {
    name: "harness-catch",
    about: "keeps the frames it receives for the test",
    inputs: &[Input::ANY],
    work: Work::NONE,
    blocking: false,
    ..Entry::SINK
};

/// Makes a feed slower than the clock. Between two frames of the feed there are then no slots at all, rather than empty
/// slots.
pub(crate) static SLOWER: Entry = Entry {
    name: "harness-slower",
    about: "passes one slot in n",
    settings: &[setting("n", ValueType::Int { min: 1, max: u32::MAX as i64 })],
    every: Frames::Setting("n"),
    ..Entry::CONTROL
};

const fn setting(name: &'static str, value: ValueType) -> Setting {
    Setting { name, value, fallback: Fallback::Required, liveness: Liveness::Fixed, about: "of the pushed frames" }
}

/// A frame that reached an output, with a copy of its bytes.
#[derive(Debug, Clone, PartialEq)]
pub struct Caught {
    /// The frame's number, counted by its source.
    pub number: u64,
    pub pts_ns: i64,
    pub format: Format,
    pub size: Size,
    /// How luma and chroma are to be read, if the format has luma and chroma.
    pub yuv: Yuv,
    /// Rows and planes are laid out as in [`Format::planes`].
    pub bytes: Vec<u8>,
}

impl Caught {
    /// Red, green, blue and alpha of a pixel. `None` outside the frame or if the format is not rgba8.
    pub fn pixel(&self, x: u32, y: u32) -> Option<[u8; 4]> {
        if self.format != Format::Rgba8 || x >= self.size.width || y >= self.size.height {
            return None;
        }
        let at = u64::from(y) * u64::from(self.size.width) + u64::from(x);
        self.pixels().get(usize::try_from(at).ok()?).copied()
    }

    /// All pixels of an rgba8 frame, row by row.
    pub fn pixels(&self) -> &[[u8; 4]] {
        self.bytes.as_chunks::<4>().0
    }

    pub(crate) fn of(frame: &Frame) -> Caught {
        let Meta { pts_ns, number, format, size, yuv, .. } = *frame.meta();
        Caught { number, pts_ns, format, size, yuv, bytes: frame.bytes().to_vec() }
    }

    /// Sends a copy of this frame, in memory of the pipeline's pool.
    pub(crate) fn send(&self, call: &mut Call<'_>, port: usize) -> Result<(), HandlerError> {
        let mut frame = call.lend(self.format, self.size)?;
        let meta = *frame.meta();
        frame.set_meta(Meta { yuv: self.yuv, ..meta });
        frame.fill().expect("a frame that was just lent has one holder").copy_from_slice(&self.bytes);
        call.send(port, frame);
        Ok(())
    }
}

/// Frames that wait between a pipeline and the test, by the name of the feed or catch.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trays(Arc<Mutex<BTreeMap<String, VecDeque<Caught>>>>);

impl Trays {
    pub(crate) fn put(&self, name: &str, frame: Caught) {
        let mut trays = self.lock();
        match trays.get_mut(name) {
            Some(tray) => tray.push_back(frame),
            None => drop(trays.insert(name.to_owned(), VecDeque::from([frame]))),
        }
    }

    pub(crate) fn take(&self, name: &str) -> Option<Caught> {
        self.lock().get_mut(name)?.pop_front()
    }

    /// Takes all frames out.
    pub(crate) fn empty(&self) -> BTreeMap<String, Vec<Caught>> {
        std::mem::take(&mut *self.lock()).into_iter().map(|(name, tray)| (name, Vec::from(tray))).collect()
    }

    pub(crate) fn count(&self, name: &str) -> usize {
        self.lock().get(name).map_or(0, VecDeque::len)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, VecDeque<Caught>>> {
        // No handler can panic while it holds the lock, so the trays have only whole frames.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Adds the kinds of both ends to a registry. Returns the trays of the pushed frames and the trays of the caught
/// frames.
pub(crate) fn add_ends(registry: &mut Registry) -> Result<(Trays, Trays), EntryError> {
    let (pushed, caught) = (Trays::default(), Trays::default());
    let from = pushed.clone();
    registry.add(&FEED, move |setup| {
        let every = u64::try_from(setup.settings.int("every").unwrap_or(1)).unwrap_or(1).max(1);
        Ok(Worker::frames(Feed { name: setup.name.to_owned(), every, from: from.clone() }))
    })?;
    registry.add(&SLOWER, |_| Ok(Worker::frames(Carry)))?;
    let to = caught.clone();
    registry.add(&CATCH, move |setup| Ok(Worker::frames(Catch::new(setup.name, &to))))?;
    Ok((pushed, caught))
}

/// Passes frames through.
pub(crate) struct Carry;

impl FrameHandler for Carry {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

struct Feed {
    name: String,
    /// A frame is due at every tick whose number is a multiple of this number.
    every: u64,
    from: Trays,
}

impl FrameHandler for Feed {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        if !call.now().number.is_multiple_of(self.every) {
            return Ok(Flow::Filtered);
        }
        match self.from.take(&self.name) {
            None => Ok(Flow::Filtered),
            Some(frame) => frame.send(call, 0).map(|()| Flow::Produced),
        }
    }
}

pub(crate) struct Catch {
    name: String,
    to: Trays,
}

impl Catch {
    pub(crate) fn new(name: &str, to: &Trays) -> Catch {
        Catch { name: name.to_owned(), to: to.clone() }
    }
}

impl FrameHandler for Catch {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        if let Some(frame) = call.input(0) {
            self.to.put(&self.name, Caught::of(frame));
        }
        Ok(Flow::Produced)
    }
}
