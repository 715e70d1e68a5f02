//! `pattern`: generates moving test images. A frame depends only on the settings and the frame number.

use vramp_kernels::head::{Head, ball, bars, checker, disc, gradient, noise, solid};
use vramp_kernels::pixel::glyphs::GLYPHS;
use vramp_plan::catalog::{
    self, Class, Entry, Family, KernelDesc, KernelRule, Output, RateRule, Setting, SizeRule, Units, Value, Work,
};
use vramp_plan::{Rate, Size};
use vramp_runtime::{Flow, HandlerError, ParamWriter, Part, PixelHandler, PixelInfo, Setup, Worker};

use crate::letters::{Fonts, Template, TextBlock, TextPlacement, TextValues, coverage_bytes};

pub static ENTRY: Entry = Entry {
    name: "pattern",
    family: Family::Source,
    about: "generates test images: a moving ball, colour bars, gradients, noise",
    example: "pattern kind=ball size=640x480 frames=60 ! null",
    inputs: &[],
    outputs: &[Output { size: SizeRule::Setting("size"), rate: RateRule::Setting("fps"), ..Output::VIDEO }],
    settings: &[
        Setting::choice("kind", &["ball", "bars", "gradient", "checker", "noise", "solid", "disc"], "kind of image")
            .default("ball")
            .rebuild(),
        Setting::size("size", "width and height").default("1280x720"),
        Setting::rate("fps", "frames per second; also sets the speed of the motion").default("30"),
        Setting::int("frames", 1..=i64::MAX, "number of frames; endless by default").optional(),
        Setting::color("color", "colour of kind=solid; alpha is ignored, since patterns are opaque")
            .default("000000")
            .live(),
        Setting::int("seed", 0..=u32::MAX as i64, "seed of kind=noise").default("0").live(),
        Setting::bool("label", "show the frame number in kind=ball").default("true").rebuild(),
    ],
    bare: Some("kind"),
    kernel: KernelRule::Always(KernelDesc::GENERATOR),
    work: Work { class: Class::Pixel, units: Units::PerPixelBy(work) },
    // The glyphs of the label.
    small: Some(small_bytes),
    ..Entry::FILTER
};

/// Work per pixel. A flat colour costs little more than storing the pixels; noise computes two hashes for every pixel.
fn work(settings: &catalog::SettingValues) -> f64 {
    match settings.text("kind") {
        Some("noise") => 3.0,
        Some("gradient" | "disc") => 1.0,
        _ => 0.5,
    }
}

struct Pattern {
    settings: Settings,
    state: State,
}

#[derive(Debug)]
struct Settings {
    kind: PatternKind,
    size: Size,
    rate: Rate,
    frames: Option<u64>,
    label: bool,
}

#[derive(Debug, Clone, Copy)]
enum PatternKind {
    Ball,
    Bars,
    Gradient,
    Checker,
    Noise { seed: u32 },
    Solid { color: [u8; 4] },
    Disc,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        let given = setup.settings;
        let kind = match setup.text("kind")? {
            "bars" => PatternKind::Bars,
            "gradient" => PatternKind::Gradient,
            "checker" => PatternKind::Checker,
            "noise" => {
                PatternKind::Noise { seed: given.int("seed").and_then(|seed| u32::try_from(seed).ok()).unwrap_or(0) }
            }
            "solid" => PatternKind::Solid {
                color: match given.get("color") {
                    Some(Value::Color([r, g, b, _])) => [*r, *g, *b, 255],
                    _ => [0, 0, 0, 255],
                },
            },
            "disc" => PatternKind::Disc,
            _ => PatternKind::Ball,
        };
        Ok(Settings {
            kind,
            size: setup.size("size")?,
            rate: setup.rate("fps")?,
            frames: given.int("frames").and_then(|frames| u64::try_from(frames).ok()),
            label: given.get("label") != Some(&Value::Bool(false)),
        })
    }
}

/// The label with the frame number, if the pattern has a label.
struct State {
    label: Option<TextBlock>,
}

impl PixelHandler for Pattern {
    fn parts(&self) -> Vec<Part> {
        let head: &'static Head = match self.settings.kind {
            PatternKind::Ball => &ball::BALL,
            PatternKind::Bars => &bars::BARS,
            PatternKind::Gradient => &gradient::GRADIENT,
            PatternKind::Checker => &checker::CHECKER,
            PatternKind::Noise { .. } => &noise::NOISE,
            PatternKind::Solid { .. } => &solid::SOLID,
            PatternKind::Disc => &disc::DISC,
        };
        let label = self.state.label.as_ref().map(|_| Part::Function(&GLYPHS));
        [Part::Head(head)].into_iter().chain(label).collect()
    }

    fn size(&self, _: Size) -> Size {
        self.settings.size
    }

    fn frame(&mut self, info: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
        let Settings { kind, size, rate, frames, .. } = self.settings;
        let n = info.now.number;
        if frames.is_some_and(|frames| n >= frames) {
            return Ok(Flow::Ended);
        }
        match kind {
            PatternKind::Ball => give.part(&ball::pack(size, rate, n), &[]),
            PatternKind::Bars => give.part(&bars::pack(), &[]),
            PatternKind::Gradient => give.part(&gradient::pack(n), &[]),
            PatternKind::Checker => give.part(&checker::pack(), &[]),
            PatternKind::Noise { seed } => give.part(&noise::pack(n, seed), &[]),
            PatternKind::Solid { color } => give.part(&solid::pack(color), &[]),
            PatternKind::Disc => give.part(&disc::pack(size, rate, n), &[]),
        }
        if let Some(label) = &mut self.state.label {
            let (words, small) = label.set(&TextValues::of(info), info.size).map_err(HandlerError::failed)?;
            give.part(words, small);
        }
        Ok(Flow::Produced)
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings::of(setup)?;
    let label = match settings.kind {
        PatternKind::Ball if settings.label => Some(label(settings.size).map_err(HandlerError::failed)?),
        _ => None,
    };
    Ok(Worker::pixels(Pattern { settings, state: State { label } }))
}

const LABEL_PX: u32 = 24;

/// Number of coverage bytes of the label. Only kind=ball has a label.
fn small_bytes(settings: &catalog::SettingValues, _: Size, frame: Size) -> u64 {
    let labelled = settings.word("kind") == Some("ball") && settings.get("label") == Some(&Value::Bool(true));
    if labelled { coverage_bytes([(20, LABEL_PX)].into_iter(), frame) } else { 0 }
}

/// "Frame: n" in the lower left corner.
fn label(size: Size) -> Result<TextBlock, crate::letters::LettersError> {
    let place = TextPlacement { x: 20, y: size.height.cast_signed() - 30, size_px: LABEL_PX };
    TextBlock::of(&mut Fonts::embedded(), [255; 4], &[(Template::read("Frame: {frame}")?, place)])
}
