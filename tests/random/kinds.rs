//! Handlers over tensors and data, for random graphs: sources, filters from each kind of content to another, and joins
//! of several kinds. [`twin`](super::twin) has their kernels.

use vramp::plan::catalog::{
    Entry, Input, KernelRule, Output, PortMedia, RateRule, Setting, SizeRule, TensorRule, When,
};
use vramp::plan::{Content, DType, Format, Interval, Space};
use vramp::runtime::{
    Call, Classification, DataRows, Detection, Flow, Frame, FrameHandler, HandlerError, Meta, NoteList, Registry,
    Setup, TensorShape,
};

use super::twin::{self, DATA_BYTES, Twin, Words};

/// Restricts the spaces of a handler.
const SPACE: Setting = Setting::choice("space", &["any", "cpu", "gpu"], "where the handler may run").default("any");
const DTYPE: Setting =
    Setting::choice("dtype", &["f32", "f16", "i32", "u32", "u8", "i8"], "type of the elements").default("f32");
const FPS: Setting = Setting::rate("fps", "frames per second").default("30");
const LENGTH: Setting = Setting::int("frames", 1..=4, "length of the stream").default("3");
const LIVE: Setting = Setting::bool("live", "whether the source cannot be made to wait").default("false");
const BLOCK: Setting = Setting::int("block", 1..=9, "side of a block").default("4");
const LEVEL: Setting = Setting::int("level", 0..=70, "the least red").default("60");

const DATA_OUT: Output = Output { media: PortMedia::Data { bytes: DATA_BYTES }, ..Output::DATA };
const BLOCKS_OUT: Output = Output { tensor: TensorRule::By(blocks), ..Output::TENSOR };

const FILTER: Entry = Entry { settings: &[SPACE], space_by: Some("space"), kernel: KernelRule::None, ..Entry::FILTER };

/// Every kind of this file with its maker.
pub fn add_to(registry: &mut Registry) {
    let added = [
        registry.add(&TENSORS, |setup: &Setup<'_>| {
            let shape = shape(setup.outputs[0].as_ref())
                .unwrap_or_else(|| TensorShape::new(DType::F32, &[1]).expect("one axis"));
            Ok(Tensors { shape, left: setup.int("frames")? })
        }),
        registry.add(&FACTS, |setup: &Setup<'_>| Ok(Facts { left: setup.int("frames")? })),
        registry.add(&MEANS, |setup: &Setup<'_>| {
            Ok(Means {
                twin: Twin::of(&twin::MEANS, setup)?,
                shape: shape(setup.outputs[0].as_ref()),
                side: setup.int("block")?,
            })
        }),
        registry
            .add(&WEIGH, |setup: &Setup<'_>| Ok(Weigh { twin: Twin::of(&twin::WEIGH, setup)?, by: setup.int("by")? })),
        registry.add(&PAINT, |setup: &Setup<'_>| {
            Ok(Paint { twin: Twin::of(&twin::PAINT, setup)?, meta: Meta::new(Format::Rgba8, setup.size("size")?) })
        }),
        registry.add(&TINT, |setup: &Setup<'_>| Ok(Tint { twin: Twin::of(&twin::TINT, setup)? })),
        registry.add(&DETECT, Detect::of),
        registry.add(&LOOK, |setup: &Setup<'_>| {
            let shape = shape(setup.outputs[2].as_ref());
            let means = Means { twin: Twin::of(&twin::MEANS, setup)?, shape, side: setup.int("block")? };
            Ok(Look { detect: Detect::of(setup)?, means })
        }),
        registry.add(&MARK, |setup: &Setup<'_>| Ok(Mark { twin: Twin::of(&twin::BOX, setup)? })),
        registry.add(&RECOUNT, |_| Ok(Recount)),
        registry.add(&RANK, |_| Ok(Rank)),
    ];
    assert!(added.iter().all(Result::is_ok), "{added:?}");
}

fn shape(content: Option<&Content>) -> Option<TensorShape> {
    Meta::of(content?)?.shape().copied()
}

fn dtype(word: Option<&str>) -> Result<DType, String> {
    let known = DType::ALL.into_iter().find(|own| word == Some(own.name()));
    known.ok_or_else(|| "an element type is missing".to_owned())
}

// ---- sources

pub static TENSORS: Entry = Entry {
    name: "tensors",
    about: "a source of tensors",
    example: "tensors ! null",
    outputs: &[Output {
        tensor: TensorRule::By(|settings, _| {
            let side = |key| settings.int(key).map_or(1, |side| side as u32);
            Ok((dtype(settings.word("dtype"))?, vec![side("rows"), side("columns")]))
        }),
        rate: RateRule::Setting("fps"),
        ..Output::TENSOR
    }],
    settings: &[
        DTYPE,
        Setting::int("rows", 1..=5, "extent of the first axis").default("2"),
        Setting::int("columns", 1..=7, "extent of the second axis").default("3"),
        LENGTH,
        FPS,
        LIVE,
    ],
    live: When::Setting("live"),
    ..Entry::SOURCE
};

struct Tensors {
    shape: TensorShape,
    left: u64,
}

impl FrameHandler for Tensors {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        if self.left == 0 {
            return Ok(Flow::Ended);
        }
        self.left -= 1;
        let number = call.now().number as usize;
        let mut frame = call.lend_frame(Meta::tensor(self.shape))?;
        fill(&mut frame, |bytes| {
            for at in 0..elements(&self.shape) {
                twin::put(bytes, at, twin::number_of(self.shape.dtype()), (7 * at + 31 * number) as u8);
            }
        })?;
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

pub static FACTS: Entry = Entry {
    name: "facts",
    about: "a source of data",
    example: "facts ! null",
    outputs: &[Output { rate: RateRule::Setting("fps"), ..DATA_OUT }],
    settings: &[LENGTH, FPS, LIVE],
    live: When::Setting("live"),
    ..Entry::SOURCE
};

/// Sends detections, classes and nothing in turn.
struct Facts {
    left: u64,
}

impl FrameHandler for Facts {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        if self.left == 0 {
            return Ok(Flow::Ended);
        }
        self.left -= 1;
        let class = call.now().number as u32;
        let mut frame = call.lend_frame(Meta::data(DATA_BYTES))?;
        match class % 3 {
            0 => frame.write_detections(&[Detection { bounds: [1.0, 2.0, 9.0, 5.0], score: 0.5, class }; 2]),
            1 => frame.write_classes(&[Classification { class, score: 0.25 }; 3]),
            _ => frame.write_nothing(),
        }
        .map_err(HandlerError::failed)?;
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

// ---- pictures to tensors and data

pub static MEANS: Entry = Entry {
    name: "means",
    about: "the means of blocks of a picture, as a tensor",
    example: "pattern ! means ! null",
    outputs: &[BLOCKS_OUT],
    settings: &[SPACE, DTYPE, BLOCK],
    ..FILTER
};

struct Means {
    twin: Twin,
    /// `None` if the output is not linked.
    shape: Option<TensorShape>,
    side: u32,
}

impl Means {
    fn make(&mut self, call: &mut Call<'_>, frame: &Frame) -> Result<Option<Frame>, HandlerError> {
        let (Some(shape), size) = (self.shape, frame.size()) else { return Ok(None) };
        let blocks = size.width.div_ceil(self.side) * size.height.div_ceil(self.side);
        let dtype = twin::number_of(shape.dtype());
        let words = [blocks, size.width, size.height, self.side, dtype, 0, 0, 0];
        self.twin.make(call, frame, None, Meta::tensor(shape), words).map(Some)
    }
}

impl FrameHandler for Means {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.input(0).cloned() else { return Ok(Flow::Filtered) };
        let Some(made) = self.make(call, &frame)? else { return Ok(Flow::Filtered) };
        call.send(0, made);
        Ok(Flow::Produced)
    }
}

fn blocks(settings: &vramp::plan::catalog::SettingValues, lead: Option<&Content>) -> Result<(DType, Vec<u32>), String> {
    let size = lead.and_then(Content::frame).ok_or("it needs pictures")?.size;
    let side = settings.int("block").unwrap_or(1) as u32;
    Ok((dtype(settings.word("dtype"))?, vec![size.height.div_ceil(side), size.width.div_ceil(side), 4]))
}

pub static DETECT: Entry = Entry {
    name: "detect",
    about: "finds red pixels",
    example: "pattern ! detect ! null",
    outputs: &[DATA_OUT],
    settings: &[SPACE, LEVEL],
    ..FILTER
};

struct Detect {
    twin: Twin,
    level: u32,
}

impl Detect {
    fn of(setup: &Setup<'_>) -> Result<Detect, HandlerError> {
        Ok(Detect { twin: Twin::of(&twin::DETECT, setup)?, level: setup.int("level")? })
    }

    fn make(&mut self, call: &mut Call<'_>, frame: &Frame) -> Result<Frame, HandlerError> {
        let size = frame.size();
        let class = call.now().number as u32;
        // From black to nearly white in steps of three.
        let words = [1, size.width, size.height, 3 * self.level, class, 0, 0, 0];
        self.twin.make(call, frame, None, Meta::data(DATA_BYTES), words)
    }
}

impl FrameHandler for Detect {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.input(0).cloned() else { return Ok(Flow::Filtered) };
        let made = self.make(call, &frame)?;
        call.send(0, made);
        Ok(Flow::Produced)
    }
}

pub static LOOK: Entry = Entry {
    name: "look",
    about: "passes a picture on, beside its means and what it finds",
    example: "pattern ! look name=l ! null; l.data ! null; l.tensor ! null",
    outputs: &[Output::VIDEO, DATA_OUT, BLOCKS_OUT],
    settings: &[SPACE, DTYPE, BLOCK, LEVEL],
    ..FILTER
};

struct Look {
    detect: Detect,
    means: Means,
}

impl FrameHandler for Look {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.input(0).cloned() else { return Ok(Flow::Filtered) };
        let found = self.detect.make(call, &frame)?;
        if let Some(means) = self.means.make(call, &frame)? {
            call.send(2, means);
        }
        call.send(1, found);
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

// ---- tensors to tensors and pictures

pub static WEIGH: Entry = Entry {
    name: "weigh",
    about: "multiplies the elements of a tensor, and adds the number of rows of data",
    example: "tensors ! weigh ! null",
    inputs: &[Input::TENSOR, Input { required: false, ..Input::DATA }],
    outputs: &[Output {
        tensor: TensorRule::By(|_, lead| match lead {
            Some(Content::Tensor(tensor)) => Ok((DType::F32, tensor.dims.clone())),
            _ => Err("it needs tensors".to_owned()),
        }),
        ..Output::TENSOR
    }],
    settings: &[SPACE, Setting::int("by", 0..=3, "the factor").default("2")],
    ..FILTER
};

struct Weigh {
    twin: Twin,
    by: u32,
}

impl FrameHandler for Weigh {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let rows = call.input(1).map_or(0, rows);
        let Some(frame) = call.input(0).cloned() else { return Ok(Flow::Filtered) };
        let shape = shape_of(&frame)?;
        let made = TensorShape::new(DType::F32, shape.dims()).ok_or_else(|| HandlerError::failed("too many axes"))?;
        let words = [elements(&shape) as u32, twin::number_of(shape.dtype()), self.by, rows, 0, 0, 0, 0];
        let made = self.twin.make(call, &frame, None, Meta::tensor(made), words)?;
        call.send(0, made);
        Ok(Flow::Produced)
    }
}

pub static PAINT: Entry = Entry {
    name: "paint",
    about: "a picture of the elements of a tensor",
    example: "tensors ! paint ! null",
    inputs: &[Input::TENSOR],
    outputs: &[Output { size: SizeRule::Setting("size"), ..Output::VIDEO }],
    settings: &[SPACE, Setting::size("size", "size of the picture").default("16x12")],
    ..FILTER
};

struct Paint {
    twin: Twin,
    meta: Meta,
}

impl FrameHandler for Paint {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.input(0).cloned() else { return Ok(Flow::Filtered) };
        let words = over(self.meta.picture().size.pixels(), &shape_of(&frame)?);
        let made = self.twin.make(call, &frame, None, self.meta, words)?;
        call.send(0, made);
        Ok(Flow::Produced)
    }
}

// ---- joins

pub static TINT: Entry = Entry {
    name: "tint",
    about: "adds the elements of a tensor to a picture",
    example: "pattern ! tint name=t ! null; tensors ! t.tensor",
    inputs: &[Input::VIDEO, Input::TENSOR],
    ..FILTER
};

struct Tint {
    twin: Twin,
}

impl FrameHandler for Tint {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.input(0).cloned() else { return Ok(Flow::Filtered) };
        let made = match call.input(1).cloned() {
            Some(tensor) => {
                let words = over(frame.size().pixels(), &shape_of(&tensor)?);
                self.twin.make(call, &frame, Some(&tensor), *frame.meta(), words)?
            }
            None => frame,
        };
        call.send(0, made);
        Ok(Flow::Produced)
    }
}

pub static MARK: Entry = Entry {
    name: "mark",
    about: "inverts what was found in a picture, and notes the bounds",
    example: "pattern ! look name=l ! mark name=m ! null; l.data ! m.data; l.tensor ! null",
    inputs: &[Input::VIDEO, Input::DATA],
    ..FILTER
};

struct Mark {
    twin: Twin,
}

impl FrameHandler for Mark {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let found = call.input(1).map(|data| (data.meta().number, rows(data), data.detections().next()));
        let Some(frame) = call.input(0).cloned() else { return Ok(Flow::Filtered) };
        let Some((number, rows, first)) = found else {
            call.note("found", "nothing yet")?;
            call.send(0, frame);
            return Ok(Flow::Produced);
        };
        call.note("found-in", number as f64)?;
        call.note("rows", f64::from(rows))?;
        let bounds = first.unwrap_or_default().bounds;
        call.note("bounds", NoteList::try_from(&bounds.map(f64::from)[..]).map_err(HandlerError::failed)?)?;
        let [left, top, right, bottom] = bounds.map(|side| side as u32);
        let size = frame.size();
        let words = [size.pixels() as u32, size.width, left, top, right, bottom, 0, 0];
        let made = self.twin.make(call, &frame, None, *frame.meta(), words)?;
        call.send(0, made);
        Ok(Flow::Produced)
    }
}

pub static RECOUNT: Entry = Entry {
    name: "recount",
    about: "detections as classes, and classes as detections",
    example: "facts ! recount ! null",
    inputs: &[Input::DATA],
    outputs: &[DATA_OUT],
    kernel: KernelRule::None,
    spaces: &[Space::Cpu],
    ..Entry::FILTER
};

struct Recount;

impl FrameHandler for Recount {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(rows) = call.input(0).and_then(Frame::data) else { return Ok(Flow::Filtered) };
        let mut made = call.lend_frame(Meta::data(DATA_BYTES))?;
        match rows {
            DataRows::Nothing => made.write_nothing(),
            DataRows::Detections(found) => {
                let class = |found: &Detection| Classification { class: found.class, score: found.score };
                made.write_classes(&found.iter().map(class).collect::<Vec<_>>())
            }
            DataRows::Classes(classes) => {
                let found =
                    |class: &Classification| Detection { bounds: [2.0; 4], score: class.score, class: class.class };
                made.write_detections(&classes.iter().take(2).map(found).collect::<Vec<_>>())
            }
        }
        .map_err(HandlerError::failed)?;
        call.send(0, made);
        Ok(Flow::Produced)
    }
}

pub static RANK: Entry = Entry {
    name: "rank",
    about: "data as a tensor, with the size of a picture; either input may be the lead",
    example: "facts ! rank ! null",
    inputs: &[Input::DATA, Input { required: false, ..Input::VIDEO }],
    outputs: &[Output {
        media: PortMedia::Tensor { dtypes: &[DType::F32], dims: Some(&[Interval::only(8)]) },
        ..Output::TENSOR
    }],
    kernel: KernelRule::None,
    spaces: &[Space::Cpu],
    ..Entry::FILTER
};

struct Rank;

impl FrameHandler for Rank {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let size = call.input(1).map_or([0; 2], |frame| [frame.size().width, frame.size().height]);
        let row = call.input(0).map_or(0, rows);
        let class = call.input(0).and_then(|data| data.detections().next()).map_or(0, |found| found.class);
        let shape = TensorShape::new(DType::F32, &[8]).expect("one axis");
        let mut made = call.lend_frame(Meta::tensor(shape))?;
        let values = [row, class, size[0], size[1], 0, 0, 0, 1];
        fill(&mut made, |bytes| {
            bytes.as_chunks_mut::<4>().0.iter_mut().zip(values).for_each(|(four, n)| *four = (n as f32).to_le_bytes());
        })?;
        call.send(0, made);
        Ok(Flow::Produced)
    }
}

// ---- parts

/// Fills a frame that was just lent.
fn fill(frame: &mut Frame, with: impl FnOnce(&mut [u8])) -> Result<(), HandlerError> {
    let mut bytes = frame.fill().ok_or_else(|| HandlerError::failed("a lent frame is shared"))?;
    bytes.fill(0);
    with(&mut bytes);
    Ok(())
}

fn shape_of(frame: &Frame) -> Result<TensorShape, HandlerError> {
    frame.meta().shape().copied().ok_or_else(|| HandlerError::failed("a tensor was expected"))
}

fn elements(shape: &TensorShape) -> usize {
    shape.dims().iter().product::<u32>() as usize
}

/// The words of a kernel that reads a tensor for each pixel.
fn over(pixels: u64, shape: &TensorShape) -> Words {
    [pixels as u32, elements(shape) as u32, twin::number_of(shape.dtype()), 0, 0, 0, 0, 0]
}

fn rows(data: &Frame) -> u32 {
    match data.data() {
        Some(DataRows::Detections(found)) => found.len() as u32,
        Some(DataRows::Classes(classes)) => classes.len() as u32,
        Some(DataRows::Nothing) | None => 0,
    }
}
