//! `model`: runs an ONNX network on every frame, and makes a mask, classes or boxes of its output.
//!
//! The frame's pixels, the network and what is made of its output are steps of one plan (`nets`), so on the device they are
//! part of the frame's submit, and nothing is read back to draw on the frame.

mod boxes;
mod handler;
mod known;
pub(crate) mod labels;
mod nets;
mod outputs;
mod plan;
mod settings;

use vramp_model::Port;
use vramp_model::onnx::Dim;
use vramp_plan::catalog::{
    Class, Entry, Family, KernelRule, NetworkNeeds, Output, PathUse, Setting, SettingValues, TensorRule, Units,
    ValueType, Work,
};
use vramp_plan::{Content, DType, Size};
use vramp_runtime::{HandlerError, Kind, Setup, Worker};
use vramp_tensor::network::LabelStrips;

use known::OpenedModel;
use settings::{ModelSettings, OutputUse};

/// The frames for which a file is checked if those of the graph are not known.
const ANY_FRAME: Size = Size { width: 640, height: 480 };

/// The numbers of the output ports.
const VIDEO: usize = 0;
const RESULT: usize = 1;
const DATA: usize = 2;

pub static ENTRY: Entry = Entry {
    name: "model",
    family: Family::Model,
    about: "runs an ONNX network on every frame: a mask as alpha, classes, boxes, or the network's own output",
    example: "image path=me.png ! model path=selfie.onnx output=mask ! png path=cut.png",
    outputs: &[
        Output::VIDEO,
        Output { name: "result", tensor: TensorRule::By(result), ..Output::TENSOR },
        Output { links: data_links, ..Output::DATA },
    ],
    settings: &[
        Setting::path("path", PathUse::Read, "ONNX file"),
        Setting::choice(
            "output",
            &["raw", "mask", "classes", "boxes"],
            "what is made of the network's output: raw sends it at `result`",
        )
        .default("raw"),
        Setting::text("of", "name of the network's output; the first one by default").optional(),
        Setting::size("size", "width and height of the network's input, if the file does not say them").optional(),
        Setting::int(
            "multiple",
            1..=4096,
            "the frame's size is rounded down to a multiple of this if no size is given",
        )
        .default("32"),
        Setting::choice(
            "layout",
            &["auto", "nchw", "nhwc"],
            "order of the network's axes; auto reads it from the file",
        )
        .default("auto"),
        Setting::choice("channels", &["rgb", "bgr", "gray"], "channels of the network's input").default("rgb"),
        Setting::choice("range", &["0..1", "-1..1", "0..255"], "range of the network's input").default("0..1"),
        Setting::of(
            "mean",
            ValueType::Numbers { counts: &[1, 3] },
            "subtracted from values from 0 to 1, per channel (red, green, blue)",
        )
        .optional(),
        Setting::of("std", ValueType::Numbers { counts: &[1, 3] }, "divides the values after `mean`, per channel")
            .optional(),
        Setting::choice(
            "fit",
            &["stretch", "letterbox", "crop"],
            "how a frame of another shape is fitted: stretched, with gray borders, or its middle part",
        )
        .default("stretch"),
        Setting::int("channel", 0..=4095, "for a mask: the channel of the output, from 0; the last one by default")
            .optional(),
        Setting::choice("activation", &["none", "sigmoid", "softmax"], "for a mask or classes: applied to the output")
            .default("none"),
        Setting::number("threshold", 0.0..=1.0, "a mask above this is 255 and else 0; boxes with a higher score (0.5)")
            .optional(),
        Setting::choice("show", &["alpha", "mask"], "for a mask: written into alpha, or into red, green and blue")
            .default("alpha"),
        Setting::int("top", 1..=1000, "for classes: how many, best first").default("5"),
        Setting::choice(
            "decode",
            &["yolov8", "yolox", "blazeface", "corners"],
            "for boxes: how the network writes them; docs/models.md describes each",
        )
        .optional(),
        Setting::number("iou", 0.0..=1.0, "for boxes: of boxes that overlap more than this, the best one stays")
            .default("0.45"),
        Setting::path("labels", PathUse::Read, "for classes and boxes: text file with one label a line").optional(),
        Setting::int("every", 1..=1_000_000, "computes every n-th frame; the result is used until the next one")
            .default("1"),
    ],
    bare: Some("path"),
    kernel: KernelRule::None,
    work: Work { class: Class::Network, units: Units::PerFrameBy(work) },
    network: Some(needs),
    check,
    keeps_lines: |_, _| false,
    ..Entry::FILTER
};

/// Every handler of this family.
pub(crate) fn kinds() -> Vec<Kind> {
    vec![Kind::new(&ENTRY, make)]
}

/// Refuses settings that contradict each other or the file.
fn check(values: &SettingValues) -> Result<(), String> {
    if values.text("path").is_none() {
        // Reported as missing.
        return Ok(());
    }
    let settings = ModelSettings::of(values)?;
    let opened = OpenedModel::open(&settings.path)?;
    // Sizes that the file leaves open are checked with those of the frames.
    let plan = plan::ModelPlan::of(&opened.model, &settings, ANY_FRAME)?;
    let labels = labels_of(&settings)?.len();
    let classes = if plan.is_fixed {
        opened.facts(&settings, ANY_FRAME)?.classes
    } else {
        let port = &opened.model.outputs()[plan.of];
        settings.output.class_count(&declared_lengths(port))
    };
    match (&settings.labels, classes) {
        (Some(path), Some(classes)) if labels < classes => {
            Err(format!("`{path}` has {labels} labels, and the network has {classes} classes; add the others"))
        }
        _ => Ok(()),
    }
}

/// The lengths of a port whose network has no fixed size. Axes that the file leaves open count as 1: the batch is 1, and
/// the number of boxes does not matter for that of classes.
fn declared_lengths(port: &Port) -> Vec<usize> {
    let fixed = |dim: &Dim| if let Dim::Fixed(length) = dim { *length } else { 1 };
    port.dims.iter().map(fixed).collect()
}

/// The element type and the extents of the network's own output.
fn result(values: &SettingValues, lead: Option<&Content>) -> Result<(DType, Vec<u32>), String> {
    let settings = ModelSettings::of(values)?;
    let frame = lead.and_then(Content::frame).map_or(ANY_FRAME, |frame| frame.size);
    Ok(known::facts(&settings, frame)?.result.clone())
}

/// Multiplications of the network for one frame. If they cannot be found, the run says why.
fn work(values: &SettingValues, frame: Size, _: Size) -> f64 {
    let facts =
        ModelSettings::of(values).and_then(|settings| known::facts(&settings, frame).map(|facts| (settings, facts)));
    facts.map_or(0.0, |(settings, facts)| facts.multiply_adds as f64 / settings.every as f64)
}

fn needs(values: &SettingValues, frame: Size) -> NetworkNeeds {
    let Ok(settings) = ModelSettings::of(values) else { return NetworkNeeds::default() };
    let Ok(facts) = known::facts(&settings, frame) else { return NetworkNeeds::default() };
    let every = settings.every as f64;
    // Drawing reads and writes every frame.
    let (drawn, kernels) = match settings.output {
        OutputUse::Raw => (0.0, 0.0),
        OutputUse::Mask { .. } => (1.0, 1.0),
        // Rows are placed and then drawn.
        OutputUse::Classes { .. } | OutputUse::Boxes { .. } => (1.0, 2.0),
    };
    NetworkNeeds {
        moved_bytes: facts.moved_bytes as f64 / every + drawn * 8.0 * frame.pixels() as f64,
        kernels: facts.steps as f64 / every + kernels,
        held_bytes: facts.held_bytes as u64,
        weight_bytes: facts.weight_bytes as u64,
        // The same for every spelling of a path.
        weights: std::fs::canonicalize(&settings.path)
            .map_or(settings.path, |path| path.to_string_lossy().into_owned()),
    }
}

/// Refuses a link from `data` if the handler sends none.
fn data_links(values: &SettingValues) -> Result<(), String> {
    match values.word("output") {
        Some("classes" | "boxes") | None => Ok(()),
        Some(word) => {
            Err(format!("output={word} sends no data; use output=classes or output=boxes, or link `result` or `video`"))
        }
    }
}

fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = ModelSettings::of(setup.settings).map_err(HandlerError::failed)?;
    let opened = OpenedModel::open(&settings.path).map_err(HandlerError::failed)?;
    let labels = labels_of(&settings).map_err(HandlerError::failed)?;
    let draws = setup.outputs.get(VIDEO).is_some_and(Option::is_some);
    let strips = if draws {
        let frame = setup.inputs.first().and_then(Option::as_ref).and_then(Content::frame);
        let frame = frame.map_or(ANY_FRAME, |frame| frame.size);
        // If there are no facts, the handler says why when it prepares its networks.
        let classes = opened.facts(&settings, frame).ok().and_then(|facts| facts.classes);
        strips(&labels, &settings, classes)
    } else {
        NO_STRIPS
    };
    Ok(Worker::frames(handler::ModelHandler::new(settings, opened, strips, labels)))
}

const NO_STRIPS: LabelStrips = LabelStrips { height: 0, cell: 0, widths: Vec::new(), coverage: Vec::new() };

/// The labels of the file that the settings name; none without a file.
fn labels_of(settings: &ModelSettings) -> Result<Vec<String>, String> {
    settings.labels.as_deref().map_or(Ok(Vec::new()), labels::read)
}

/// What is drawn beside boxes and classes.
fn strips(labels: &[String], settings: &ModelSettings, classes: Option<usize>) -> LabelStrips {
    match settings.output {
        OutputUse::Classes { .. } | OutputUse::Boxes { .. } => labels::strips(labels, classes.unwrap_or(0)),
        OutputUse::Raw | OutputUse::Mask { .. } => NO_STRIPS,
    }
}
