//! `resize`: scales the image to a size or by a factor.
//!
//! The filter does not keep proportions: each side gets the requested size, and at least one pixel. All four channels
//! are treated alike. `area` and `lanczos` treat each axis separately and read nothing outside of the image; at the
//! border, the weights of the pixels inside are normalised.

use vramp_kernels::head::{Head, bilinear, nearest, resample};
use vramp_plan::Size;
use vramp_plan::catalog::{self, Class, Entry, KernelDesc, KernelRule, Output, Setting, SizeRule, Units, Work};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

pub static ENTRY: Entry = Entry {
    name: "resize",
    about: "scales the image to a size or by a factor",
    example: "pattern size=64x48 ! resize size=40x30 filter=area ! null",
    outputs: &[Output { size: SizeRule::SettingOrScaled("size", "scale"), ..Output::VIDEO }],
    settings: &[
        Setting::size("size", "output width and height").optional(),
        Setting::number("scale", 0.000_1..=1000.0, "factor for both sides").optional(),
        Setting::choice(
            "filter",
            &["nearest", "bilinear", "area", "lanczos"],
            "filter: nearest is fastest, bilinear is smooth, area takes exact means, lanczos is sharpest",
        )
        .default("bilinear")
        .rebuild(),
    ],
    bare: Some("size"),
    one_of: &[&["size", "scale"]],
    kernel: KernelRule::By {
        setting: "filter",
        cases: &[
            ("nearest", KernelDesc::GATHER),
            ("area", KernelDesc::resampling(3)),
            ("lanczos", KernelDesc::resampling(6)),
        ],
        otherwise: KernelDesc::stencil(4),
    },
    work: Work { class: Class::Sample, units: Units::PerFrameBy(samples) },
    small: Some(small_bytes),
    ..Entry::FILTER
};

/// The work in bilinear samples of four taps each. The two-pass filters `area` and `lanczos` have taps along each axis.
/// The number of taps along an axis is proportional to the factor by which the image shrinks along that axis.
fn samples(settings: &catalog::SettingValues, input: Size, output: Size) -> f64 {
    let shrink = |from: u32, to: u32| (f64::from(from) / f64::from(to)).max(1.0);
    let (across, down) = (shrink(input.width, output.width), shrink(input.height, output.height));
    let per_pixel = match settings.text("filter") {
        Some("nearest") => 0.25,
        Some("area") => (across + 1.0 + down + 1.0) / 4.0,
        Some("lanczos") => 6.0 * (across + down) / 4.0,
        // The CPU passes over each source row once, and the device reads two source rows for every pixel. Per output
        // pixel, shrinking therefore costs the CPU three times as much as growing, and costs the device as much as
        // growing. This estimate is off by a third for the CPU and for the device.
        _ => 0.5 + 0.5 * (f64::from(input.height) / f64::from(output.height)).clamp(0.5, 1.75),
    };
    per_pixel * output.pixels() as f64
}

#[derive(Debug)]
struct ResizeHandler {
    settings: Settings,
    state: State,
}

#[derive(Debug)]
struct Settings {
    to: ResizeTarget,
    filter: ResizeFilter,
}

/// Number of bytes of the source positions and weights along both axes.
fn small_bytes(settings: &catalog::SettingValues, source: Size, size: Size) -> u64 {
    match settings.word("filter") {
        Some("area") => resample::most_small_bytes(resample::axis::ResampleFilter::Area, source, size),
        Some("lanczos") => resample::most_small_bytes(resample::axis::ResampleFilter::Lanczos, source, size),
        _ => 4 * (u64::from(size.width) + u64::from(size.height)),
    }
}

#[derive(Debug, Clone, Copy)]
enum ResizeTarget {
    Size(Size),
    Scale(f64),
}

#[derive(Debug, Clone, Copy)]
enum ResizeFilter {
    Nearest,
    Bilinear,
    Resample(resample::axis::ResampleFilter),
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        let to = match (setup.settings.size("size"), setup.settings.number("scale")) {
            (Some(size), _) => ResizeTarget::Size(size),
            (None, Some(scale)) => ResizeTarget::Scale(scale),
            (None, None) => return Err(HandlerError::failed("neither `size` nor `scale` has a value")),
        };
        let filter = match setup.word("filter")? {
            "nearest" => ResizeFilter::Nearest,
            "area" => ResizeFilter::Resample(resample::axis::ResampleFilter::Area),
            "lanczos" => ResizeFilter::Resample(resample::axis::ResampleFilter::Lanczos),
            _ => ResizeFilter::Bilinear,
        };
        Ok(Settings { to, filter })
    }
}

impl ResizeTarget {
    /// The requested sides, before they are limited; a side may be too large.
    fn sides(self, from: Size) -> (f64, f64) {
        match self {
            ResizeTarget::Size(size) => (f64::from(size.width), f64::from(size.height)),
            // Rounds like the plan: half up, and at least one pixel.
            ResizeTarget::Scale(scale) => {
                let side = |n: u32| (f64::from(n) * scale + 0.5).floor().max(1.0);
                (side(from.width), side(from.height))
            }
        }
    }
}

/// The source positions for the sizes of the last frame.
#[derive(Debug, Default)]
struct State {
    /// The input size and the output size that the positions were computed for.
    sizes: Option<(Size, Size)>,
    words: Vec<u32>,
    small: Vec<u32>,
}

impl PixelHandler for ResizeHandler {
    fn parts(&self) -> Vec<Part> {
        let head: &'static Head = match self.settings.filter {
            ResizeFilter::Nearest => &nearest::NEAREST,
            ResizeFilter::Bilinear => &bilinear::BILINEAR,
            ResizeFilter::Resample(_) => &resample::RESAMPLE,
        };
        vec![Part::Head(head)]
    }

    fn size(&self, source: Size) -> Size {
        let (width, height) = self.settings.to.sides(source);
        let side = |side: f64| side.min(f64::from(Size::MAX_SIDE)) as u32;
        Size { width: side(width), height: side(height) }
    }

    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        let (width, height) = self.settings.to.sides(info.source);
        if width.max(height) > f64::from(Size::MAX_SIDE) {
            let (from, most) = (info.source, Size::MAX_SIDE);
            return Err(HandlerError::failed(format!(
                "scaling {from} gives {width}x{height}, but a side may have at most {most} pixels; choose a smaller \
                 scale"
            )));
        }
        let sizes = (info.source, info.size);
        if self.state.sizes != Some(sizes) {
            (self.state.words, self.state.small) = match self.settings.filter {
                ResizeFilter::Nearest => (Vec::new(), nearest::small(sizes.0, sizes.1)),
                ResizeFilter::Bilinear => (Vec::new(), bilinear::small(sizes.0, sizes.1)),
                ResizeFilter::Resample(filter) => {
                    let (words, small) = resample::pack(filter, sizes.0, sizes.1);
                    (words.to_vec(), small)
                }
            };
            self.state.sizes = Some(sizes);
        }
        give.part(&self.state.words, &self.state.small);
        Ok(Flow::Produced)
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(Worker::pixels(ResizeHandler { settings: Settings::of(setup)?, state: State::default() }))
}
