//! The steps of a calibration: which figures are measured with which pipelines.
//!
//! This module lists the handlers that need their own pipelines, finds all other handlers in the registry, and measures
//! the figures that are not the rate of a handler: calls, memory, dispatches, submits and transfers.
//! [`timer`](super::timer) takes the times, and [`cost_of`] fits the rates.
//!
//! Invariant: a figure is used only after the step that measured the figure.

use vramp_model::shipped;
use vramp_plan::catalog::{Class, Entry, Fallback, Family, KernelRule, ValueType};
use vramp_plan::{Figure, Profile, Size, Space};
use vramp_runtime::Registry;

use super::fit::{LinearFit, measured};
use super::scratch::ScratchFolder;
use super::timer::{PipelineTimer, TimedPiece};
use super::{CalibrateError, Thoroughness, cost_of, size, tune};

const SOLID: &str = "pattern kind=solid size=SIZE ! null";
const PATTERNS: [&str; 6] = ["bars", "ball", "checker", "noise", "gradient", "disc"];

/// Kinds that share a kernel or need settings, each group with the handlers that are put after a solid image to measure
/// the group. Other kinds are found in the registry ([`unlisted`]).
const FILTERS: [(&[&str], &[&str]); 15] = [
    (&["brightness", "contrast", "gamma", "invert"], &["gamma 2.2"]),
    (&["colormatrix", "hue", "saturation"], &["saturation 0.7"]),
    (&["text"], &["text \"{frame} hello\""]),
    (&["flip.v"], &["flip v"]),
    (&["flip.both"], &["flip both"]),
    (&["resize"], &["resize scale=0.5", "resize scale=2"]),
    (&["resize.nearest"], &["resize scale=0.5 filter=nearest", "resize scale=2 filter=nearest"]),
    (&["resize.area"], &["resize scale=0.6 filter=area", "resize scale=2 filter=area"]),
    (&["resize.lanczos"], &["resize scale=0.6 filter=lanczos", "resize scale=2 filter=lanczos"]),
    (&["convolve"], &["convolve kernel=-2,-1,0.1,-1,1,1,0.1,1,2"]),
    (&["crop"], &["crop x=0 y=0 size=SIZE"]),
    (&["median"], &["median 3", "median 5"]),
    (&["sharpen"], &["sharpen 0.7"]),
    (&["warp"], &["warp m=0.95,-0.2,12,0.2,0.95,-8"]),
    (&["waveform.luma"], &["waveform luma"]),
];
/// Measured after the other filters, because a blur takes longest.
const BLUR: (&[&str], &[&str]) = (&["blur"], &["blur sigma=2"]);
const MIX: &str =
    "pattern kind=solid size=SIZE ! m.a ; pattern kind=solid size=SIZE ! m.b ; mix mode=MODE name=m ! null";
const COMPOSITOR: &str = "pattern kind=solid size=SIZE ! compositor name=c ! null ; \
                          pattern kind=solid size=SIZE ! c.in1 ; pattern kind=solid size=SIZE ! c.in2";
const MODES: [(&str, &str); 6] = [
    ("mix", "mix"),
    ("mix.over", "over"),
    ("mix.add", "add"),
    ("mix.multiply", "multiply"),
    ("mix.screen", "screen"),
    ("mix.difference", "difference"),
];
/// The measured conversions, which represent all conversions.
const CONVERSIONS: [(&str, &str); 4] = [
    ("convert.i420", "convert i420"),
    ("convert.nv12", "convert nv12"),
    ("convert.gray8", "convert gray8"),
    ("convert.rgba8", "convert i420 ! convert rgba8"),
];

/// An image so small that only the overhead of using the device takes time.
const TINY: Size = size(32, 32);

pub(super) enum CalibrationStep {
    /// Calls, cache and memory of the CPU.
    Host,
    /// Dispatches, submits and memory of the GPU.
    Device,
    Transfers,
    /// The variant of a class of kernels.
    Tune(Class),
    /// The rate that these kinds share.
    Handler {
        keys: Vec<&'static str>,
        pieces: Vec<TimedPiece>,
    },
    /// Drawing an image from a file.
    Overlay(Space),
    /// Neural networks.
    Network(Space),
    /// Writing files.
    Files,
}

pub(super) fn all(registry: &Registry, device: bool) -> Vec<CalibrationStep> {
    let mut steps = vec![CalibrationStep::Host];
    handlers(&mut steps, registry, Space::Cpu);
    steps.push(CalibrationStep::Files);
    if device {
        steps.extend([Class::Pixel, Class::Sample, Class::Tap].map(CalibrationStep::Tune));
        steps.push(CalibrationStep::Device);
        steps.push(CalibrationStep::Handler {
            keys: vec!["pattern.solid"],
            pieces: vec![TimedPiece::new(SOLID, Space::Gpu)],
        });
        steps.push(CalibrationStep::Transfers);
        handlers(&mut steps, registry, Space::Gpu);
    }
    steps
}

fn handlers(steps: &mut Vec<CalibrationStep>, registry: &Registry, space: Space) {
    for (kind, key) in PATTERNS.into_iter().zip(PATTERN_KEYS) {
        let piece = TimedPiece::new(SOLID.replace("solid", kind), space);
        steps.push(CalibrationStep::Handler { keys: vec![key], pieces: vec![piece] });
    }
    for (key, text) in unlisted(registry, space) {
        steps.push(CalibrationStep::Handler { keys: vec![key], pieces: vec![behind_solid(text, space)] });
    }
    for (keys, texts) in FILTERS.into_iter().chain([BLUR]) {
        let pieces = texts.iter().map(|text| behind_solid(text, space)).collect();
        steps.push(CalibrationStep::Handler { keys: keys.to_vec(), pieces });
    }
    for (key, mode) in MODES {
        steps.push(CalibrationStep::Handler {
            keys: vec![key],
            pieces: vec![TimedPiece::new(MIX.replace("MODE", mode), space)],
        });
    }
    steps.push(CalibrationStep::Handler { keys: vec!["compositor"], pieces: vec![TimedPiece::new(COMPOSITOR, space)] });
    for (key, text) in CONVERSIONS {
        steps.push(CalibrationStep::Handler { keys: vec![key], pieces: vec![behind_solid(text, space)] });
    }
    steps.extend([CalibrationStep::Overlay(space), CalibrationStep::Network(space)]);
}

/// Handlers with a kernel that filter or draw and are in no list here, each with its text in the measured pipeline. The
/// text uses the defaults, or the handler's example if a setting has no default. Leaves out handlers that need a second
/// input or a file.
fn unlisted(registry: &Registry, space: Space) -> Vec<(&'static str, &'static str)> {
    let listed: Vec<&str> = FILTERS.iter().chain([&BLUR]).flat_map(|(keys, _)| keys.iter().copied()).collect();
    let is_measured = |entry: &&Entry| {
        let family = matches!(entry.family, Family::Filter | Family::Draw);
        let has_kernel = !matches!(entry.kernel, KernelRule::None) && !entry.open_settings;
        let needs_file = entry
            .settings
            .iter()
            .any(|setting| matches!(setting.value, ValueType::Path(_)) && setting.fallback == Fallback::Required);
        let one_input = entry.inputs.len() == 1;
        family && has_kernel && one_input && !needs_file && entry.offers(space) && registry.runs(entry)
    };
    let text = |entry: &Entry| {
        let needs_settings =
            !entry.one_of.is_empty() || entry.settings.iter().any(|s| s.fallback == Fallback::Required);
        if needs_settings { entry.in_example() } else { entry.name }
    };
    let entries = registry.catalog().entries().filter(is_measured).filter(|entry| !listed.contains(&entry.name));
    entries.map(|entry| (entry.name, text(entry))).collect()
}

const PATTERN_KEYS: [&str; 6] =
    ["pattern.bars", "pattern.ball", "pattern.checker", "pattern.noise", "pattern.gradient", "pattern.disc"];

fn behind_solid(text: &str, space: Space) -> TimedPiece {
    TimedPiece::new(format!("pattern kind=solid size=SIZE ! {text} ! null"), space)
}

impl CalibrationStep {
    /// The measured figures, for people.
    pub fn what(&self) -> String {
        match self {
            CalibrationStep::Host => "calls and memory on the cpu".to_owned(),
            CalibrationStep::Device => "dispatches, submits and memory on the gpu".to_owned(),
            CalibrationStep::Transfers => "uploads and downloads".to_owned(),
            CalibrationStep::Tune(class) => format!("variants of {} kernels", class.name()),
            CalibrationStep::Handler { keys, pieces } => {
                let space = pieces.first().map_or(Space::Cpu, |piece| piece.space);
                format!("{} on the {space}", keys[0])
            }
            CalibrationStep::Overlay(space) => format!("overlay on the {space}"),
            CalibrationStep::Network(space) => format!("networks on the {space}"),
            CalibrationStep::Files => "files".to_owned(),
        }
    }

    pub fn take(
        &self,
        timer: &PipelineTimer<'_>,
        profile: &mut Profile,
        folder: Option<&ScratchFolder>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(), CalibrateError> {
        // All other figures depend on the figures of host, device and transfers, so these three steps get more runs.
        let thorough = PipelineTimer { effort: Thoroughness { runs: 4 * timer.effort.runs, ..timer.effort }, ..*timer };
        match (self, folder) {
            (CalibrationStep::Host, _) => host(&thorough, profile, stopped),
            (CalibrationStep::Device, _) => device(&thorough, profile, stopped),
            (CalibrationStep::Transfers, _) => transfers(&thorough, profile, stopped),
            (CalibrationStep::Tune(class), _) => tune::tune(timer, *class, profile, stopped),
            (CalibrationStep::Handler { keys, pieces }, _) => {
                // The solid image gets more runs as well, because most other measurements contain a solid image.
                let timer = if keys[0] == "pattern.solid" { &thorough } else { timer };
                cost_of::handler(timer, keys, pieces, profile, stopped)
            }
            (CalibrationStep::Overlay(space), Some(folder)) => overlay(timer, *space, profile, folder, stopped),
            (CalibrationStep::Network(space), Some(folder)) => network(timer, *space, profile, folder, stopped),
            (CalibrationStep::Files, Some(folder)) => files(timer, profile, folder, stopped),
            // Without a folder for files, the figures of the class remain.
            (CalibrationStep::Overlay(_) | CalibrationStep::Network(_) | CalibrationStep::Files, None) => Ok(()),
        }
    }
}

/// Measures with solid images, because a solid image is one pass over memory and nothing else.
fn host(timer: &PipelineTimer<'_>, profile: &mut Profile, stopped: &dyn Fn() -> bool) -> Result<(), CalibrateError> {
    let piece = TimedPiece::new(SOLID, Space::Cpu);
    let how = "a solid image is one pass over memory";
    profile.cpu.rates.handlers.insert("pattern.solid".to_owned(), measured(1e7, how));
    // The number of bytes that the planner charges for. This number is higher if rows are not spread over all threads.
    let mut unit = profile.clone();
    (unit.cpu.call_us.value, unit.cpu.cache_gb_s.value, unit.cpu.memory_gb_s.value) = (1e-6, 1.0, 1.0);
    unit.cpu.cache_bytes.value = 1e15;
    let point = |size: Size| -> Result<(f64, f64, f64), CalibrateError> {
        let ns = timer.frame_ns(&piece, size, profile, stopped)?;
        Ok((timer.cost_ns(&piece, size, &unit)?, ns, (size.pixels() * 4) as f64))
    };
    let (small, large) = (point(timer.effort.small)?, point(timer.effort.large)?);
    let line = LinearFit::through((small.0, small.1), (large.0, large.1));
    let mut passes = vec![(large.2, 1.0 / line.slope)];
    for size in timer.effort.beyond {
        let (bytes, ns, _) = point(*size)?;
        passes.push(((size.pixels() * 4) as f64, bytes / (ns - line.start).max(ns / 50.0)));
    }
    let how = format!(
        "`{SOLID}` at {} in {:.1} us and {} in {:.1} us",
        timer.effort.small,
        small.1 / 1e3,
        timer.effort.large,
        large.1 / 1e3
    );
    let cpu = &mut profile.cpu;
    cpu.call_us = measured(line.start / 1e3, &how);
    cpu.cache_gb_s = measured(passes[0].1, &how);
    // A size is beyond the cache if its rate is below the geometric mean of two rates: the rate of the first image,
    // which is quickest, and the rate of the largest image.
    let (largest, slowest) = *passes.last().unwrap_or(&passes[0]);
    let middle = (passes[0].1 * slowest).sqrt();
    let within = passes.iter().filter(|(_, gb_s)| *gb_s >= middle).map(|(bytes, _)| *bytes).fold(passes[0].0, f64::max);
    let seen: Vec<String> = passes.iter().map(|(bytes, gb_s)| format!("{:.1} MB at {gb_s:.1}", bytes / 1e6)).collect();
    let how = format!("solid images of {} GB/s", seen.join(", "));
    cpu.cache_bytes = measured(within, &how);
    cpu.memory_gb_s = measured(if largest > within { slowest } else { passes[0].1.min(slowest) }, &how);
    Ok(())
}

fn device(timer: &PipelineTimer<'_>, profile: &mut Profile, stopped: &dyn Fn() -> bool) -> Result<(), CalibrateError> {
    let chain = |grays: usize| {
        TimedPiece::new(format!("pattern kind=solid size=SIZE {}! null", "! grayscale ".repeat(grays)), Space::Gpu)
    };
    let one = timer.frame_ns(&chain(0), TINY, profile, stopped)?;
    let nine = timer.frame_ns(&chain(8).unfused(), TINY, profile, stopped)?;
    let line = LinearFit::through((1.0, one), (9.0, nine));
    let large = timer.effort.large;
    let fused = timer.frame_ns(&chain(4), large, profile, stopped)?;
    let unfused = timer.frame_ns(&chain(4).unfused(), large, profile, stopped)?;
    let alone = timer.frame_ns(&chain(0), large, profile, stopped)?;
    // Unfused, each of the four links costs a store, a load and a dispatch. A store takes at most as long as a solid
    // image.
    let store_ns = (alone - line.start - line.slope).max(alone / 50.0);
    let pass_ns = (((unfused - fused) / 4.0 - line.slope).max(unfused / 400.0) / 2.0).min(store_ns);
    let Some(gpu) = &mut profile.gpu else { return Ok(()) };
    let how = format!("{TINY} with 1 dispatch in {:.1} us, with 9 in {:.1} us", one / 1e3, nine / 1e3);
    gpu.dispatch_us = measured(line.slope / 1e3, &how);
    gpu.submit_us = measured(line.start / 1e3, &how);
    let how = format!("5 kernels at {large} in {:.1} us, fused in {:.1} us", unfused / 1e3, fused / 1e3);
    gpu.memory_gb_s = measured((large.pixels() * 4) as f64 / pass_ns, &how);
    Ok(())
}

fn transfers(
    timer: &PipelineTimer<'_>,
    profile: &mut Profile,
    stopped: &dyn Fn() -> bool,
) -> Result<(), CalibrateError> {
    // Transfers overlap with kernels, so the device must have nothing else to do. Transfers also overlap with the
    // source's work on the CPU, so that work must be small.
    let timer = PipelineTimer { slowed: 1, ..*timer };
    let up = TimedPiece::new(SOLID, Space::Gpu).pin("pattern0", Space::Cpu).pin("null0", Space::Gpu);
    let there_and_back = "pattern kind=solid size=SIZE ! upload ! download ! null";
    let down = TimedPiece::new(there_and_back, Space::Gpu).pin("pattern0", Space::Cpu).pin("null0", Space::Cpu);
    let submit_ns = profile.gpu.as_ref().map_or(0.0, |gpu| gpu.submit_us.value * 1e3);
    let mut before = [submit_ns; 2];
    for (piece, is_up) in [(up, true), (down, false)] {
        let (mut points, mut words) = (Vec::new(), Vec::new());
        for (size, before) in [TINY, timer.effort.large].into_iter().zip(&mut before) {
            let ns = timer.frame_ns(&piece, size, profile, stopped)?;
            points.push(((size.pixels() * 4) as f64, (ns - *before).max(ns / 50.0)));
            words.push(format!("{size} in {:.1} us, the transfer takes {:.1} us", ns / 1e3, (ns - *before) / 1e3));
            *before = ns.max(*before);
        }
        let line = LinearFit::through(points[0], points[1]);
        let how = format!("`{}` at {}", piece.text.replace(" size=SIZE", ""), words.join(", "));
        let Some(gpu) = &mut profile.gpu else { return Ok(()) };
        let (us, gb_s) = (measured(line.start / 1e3, &how), measured(1.0 / line.slope, &how));
        if is_up {
            (gpu.upload_us, gpu.upload_gb_s) = (us, gb_s);
        } else {
            (gpu.download_us, gpu.download_gb_s) = (us, gb_s);
        }
    }
    Ok(())
}

fn overlay(
    timer: &PipelineTimer<'_>,
    space: Space,
    profile: &mut Profile,
    folder: &ScratchFolder,
    stopped: &dyn Fn() -> bool,
) -> Result<(), CalibrateError> {
    let path = folder.file("logo.png");
    let make = TimedPiece::new(format!("pattern kind=disc size=256x256 frames=1 ! png path={path}"), Space::Cpu);
    timer.frame_ns(&make.most_frames(1), TINY, profile, stopped)?;
    let piece = behind_solid(&format!("overlay path={path}"), space);
    cost_of::handler(timer, &["overlay"], &[piece], profile, stopped)
}

/// Measures a network that finds faces; it represents all networks.
fn network(
    timer: &PipelineTimer<'_>,
    space: Space,
    profile: &mut Profile,
    folder: &ScratchFolder,
    stopped: &dyn Fn() -> bool,
) -> Result<(), CalibrateError> {
    let path = folder.file("faces.onnx");
    let plain = path.trim_matches('"');
    if std::fs::write(plain, shipped::BLAZEFACE).is_err() {
        // As without a folder, the figure of the class remains.
        return Ok(());
    }
    let model = format!("model path={path} output=boxes decode=blazeface range=-1..1");
    let piece = behind_solid(&model, space).most_frames(16);
    cost_of::handler(timer, &["model"], &[piece], profile, stopped)?;
    if let Some(rates) = cost_of::rates(profile, space)
        && let Some(figure) = rates.handlers.remove("model")
    {
        rates.network = figure;
    }
    Ok(())
}

/// Measures writing files: `png` represents all codecs, and `raw` represents everything that only moves bytes.
fn files(
    timer: &PipelineTimer<'_>,
    profile: &mut Profile,
    folder: &ScratchFolder,
    stopped: &dyn Fn() -> bool,
) -> Result<(), CalibrateError> {
    let png = format!("pattern kind=ball size=SIZE ! png path={}", folder.file("out-%04d.png"));
    cost_of::handler(timer, &["png"], &[TimedPiece::new(png, Space::Cpu).most_frames(6)], profile, stopped)?;
    let raw = format!("pattern kind=solid size=SIZE ! raw path={}", folder.file("out.raw"));
    cost_of::handler(timer, &["raw"], &[TimedPiece::new(raw, Space::Cpu).most_frames(16)], profile, stopped)?;
    let rates = &mut profile.cpu.rates;
    if let Some(figure) = rates.handlers.get("png") {
        rates.codec = figure.clone();
    }
    // The sink's figure is removed, because the source `raw` has the same name but another cost.
    if let Some(figure) = rates.handlers.remove("raw") {
        rates.moved = figure;
    }
    Ok(())
}

/// Gives each class of work the rate of the kind that represents the class.
pub(super) fn classes(profile: &mut Profile) {
    for space in Space::RANKED {
        let Some(rates) = cost_of::rates(profile, space) else { continue };
        let of = |kind: &str| rates.handlers.get(kind).cloned();
        let (pixel, draw, tap, sample) = (of("saturation"), of("markers"), of("blur"), of("resize"));
        let (sort, reduce) = (of("median"), of("waveform.luma"));
        for (figure, found) in [
            (&mut rates.pixel, pixel),
            (&mut rates.draw, draw),
            (&mut rates.tap, tap),
            (&mut rates.sample, sample),
            (&mut rates.sort, sort),
            (&mut rates.reduce, reduce),
        ] {
            if let Some(found) = found {
                *figure = found;
            }
        }
    }
}

/// Calls a function with the rate of every class of work.
pub(super) fn each_rate(profile: &mut Profile, mut look: impl FnMut(&mut Figure)) {
    for space in Space::RANKED {
        let Some(rates) = cost_of::rates(profile, space) else { continue };
        let all = [
            &mut rates.pixel,
            &mut rates.draw,
            &mut rates.tap,
            &mut rates.sample,
            &mut rates.sort,
            &mut rates.reduce,
            &mut rates.codec,
            &mut rates.moved,
            &mut rates.network,
        ];
        all.into_iter().for_each(&mut look);
    }
}
