//! The `app` sources and sinks between which the lab's tools run a graph.

use vramp_handlers::{sink, source};
use vramp_plan::catalog::{
    Entry, EntryError, Frames, Output, PortMedia, RateRule, Setting, TensorRule, ValueType, Work,
};
use vramp_plan::{DType, HandlerSpec, Rate};
use vramp_runtime::{FrameContent, Registry, Setup, TensorShape};

/// A source of tensors that the tool pushes.
static TENSORS: Entry = Entry {
    name: "lab-tensors",
    about: "tensors that the program pushes which runs the pipeline",
    example: "lab-tensors dims=3,2 ! null",
    outputs: &[Output {
        tensor: TensorRule::By(|settings, _| {
            let dtype = DType::ALL.into_iter().find(|own| settings.word("dtype") == Some(own.name()));
            let dims = settings.numbers("dims").unwrap_or_default().iter().map(|dim| *dim as u32).collect();
            Ok((dtype.ok_or("dtype is not known")?, dims))
        }),
        rate: RateRule::Setting("fps"),
        ..Output::TENSOR
    }],
    settings: &[
        Setting::choice("dtype", &["f32", "f16", "i32", "u32", "u8", "i8"], "type of the elements").default("f32"),
        Setting::of("dims", ValueType::Numbers { counts: &[1, 2, 3, 4, 5, 6, 7, 8] }, "the extent along each axis"),
        Setting::rate("fps", "tensors per second").default("30"),
    ],
    work: Work::NONE,
    blocking: false,
    holds: Frames::Fixed(6),
    ..Entry::SOURCE
};

/// A source of data that the tool pushes.
static DATA: Entry = Entry {
    name: "lab-data",
    about: "data that the program pushes which runs the pipeline",
    example: "lab-data ! null",
    // Large enough for every test; each frame tells its own size.
    outputs: &[Output { media: PortMedia::DATA, rate: RateRule::Setting("fps"), ..Output::DATA }],
    settings: &[
        Setting::int("bytes", 8..=65_536, "the room for values").default("8192"),
        Setting::rate("fps", "frames per second").default("30"),
    ],
    work: Work::NONE,
    blocking: false,
    holds: Frames::Fixed(6),
    ..Entry::SOURCE
};

/// The same kinds and `app`, which a program's own registry may lack, and the sources of tensors and data.
pub(crate) fn added_to(registry: &Registry) -> Result<Registry, EntryError> {
    let mut registry = registry.clone();
    if !registry.runs(&source::app::ENTRY) {
        registry.add(&source::app::ENTRY, source::app::make)?;
    }
    if !registry.runs(&sink::app::ENTRY) {
        registry.add(&sink::app::ENTRY, sink::app::make)?;
    }
    if !registry.runs(&TENSORS) {
        registry.add(&TENSORS, |setup: &Setup<'_>| {
            let dims: Vec<u32> = setup.numbers("dims")?.iter().map(|dim| *dim as u32).collect();
            let dtype = setup.word("dtype")?;
            let dtype = DType::ALL.into_iter().find(|own| own.name() == dtype);
            let shape = dtype.and_then(|dtype| TensorShape::new(dtype, &dims));
            let shape = shape.ok_or_else(|| vramp_runtime::HandlerError::failed("a tensor has at most 8 axes"))?;
            Ok(source::app::stand_in(setup, FrameContent::Tensor(shape)))
        })?;
    }
    if !registry.runs(&DATA) {
        registry.add(&DATA, |setup: &Setup<'_>| {
            Ok(source::app::stand_in(setup, FrameContent::Data { bytes: setup.int("bytes")? }))
        })?;
    }
    Ok(registry)
}

/// A source whose frames are pushed by the tool.
pub(crate) fn source(content: &FrameContent, rate: Rate) -> HandlerSpec {
    match content {
        FrameContent::Video(picture) => HandlerSpec::new(source::app::ENTRY.name)
            .set("format", picture.format)
            .set("size", picture.size)
            .set("fps", rate),
        FrameContent::Tensor(shape) => {
            let dims: Vec<String> = shape.dims().iter().map(ToString::to_string).collect();
            HandlerSpec::new(TENSORS.name).set("dtype", shape.dtype()).set("dims", dims.join(",")).set("fps", rate)
        }
        FrameContent::Data { bytes } => HandlerSpec::new(DATA.name).set("bytes", bytes).set("fps", rate),
    }
}

/// A sink that hands the frames to the tool, in the format in which they come.
pub(crate) fn sink() -> HandlerSpec {
    HandlerSpec::new(sink::app::ENTRY.name).set("format", "any").set("space", "cpu")
}
