//! The facts about a catalogue entry, as text for the table, the page and the JSON.

use std::collections::BTreeSet;

use vramp::plan::catalog::{
    Entry, Fallback, FormatRule, Frames, KernelDesc, KernelKind, KernelRule, Output, PortMedia, RateRule, Setting,
    SizeRule, When,
};
use vramp::plan::{ANY_SIDE, DType, Format, Interval, OnError, Until};
use vramp::runtime::Registry;

/// Whether the handler can run, by the same rule as in a run: the runtime itself implements transfers, and every other
/// handler needs a maker in the registry.
pub(super) fn status(entry: &Entry, registry: &Registry) -> &'static str {
    if registry.runs(entry) { "runs" } else { "plan only" }
}

/// The memory spaces that the handler has an implementation for, best first.
pub(super) fn spaces(entry: &Entry) -> Vec<&'static str> {
    entry.spaces.iter().map(|s| s.name()).collect()
}

pub(super) fn kernels(entry: &Entry) -> Vec<&'static str> {
    let all: Vec<KernelDesc> = match entry.kernel {
        KernelRule::None => Vec::new(),
        KernelRule::Always(kernel) | KernelRule::Reading(kernel, _) => vec![kernel],
        KernelRule::By { cases, otherwise, .. } => {
            std::iter::once(otherwise).chain(cases.iter().map(|(_, kernel)| *kernel)).collect()
        }
    };
    let kinds: BTreeSet<KernelKind> = all.iter().map(|kernel| kernel.kind).collect();
    kinds.into_iter().map(KernelKind::name).collect()
}

/// The kind of the kernel as text, with the settings that change the kind.
pub(super) fn kernel(entry: &Entry) -> String {
    match entry.kernel {
        KernelRule::None => "none: moves, holds, reads or writes frames".to_owned(),
        KernelRule::Always(kernel) | KernelRule::Reading(kernel, _) if kernel.dispatches == 1 => {
            kernel.kind.name().to_owned()
        }
        KernelRule::Always(kernel) | KernelRule::Reading(kernel, _) => {
            format!("{}, {} dispatches", kernel.kind.name(), kernel.dispatches)
        }
        KernelRule::By { setting, cases, otherwise } => {
            let others = cases.iter().filter(|(_, kernel)| kernel.kind != otherwise.kind);
            let others = others.map(|(word, kernel)| format!("{} with {setting}={word}", kernel.kind.name()));
            std::iter::once(otherwise.kind.name().to_owned()).chain(others).collect::<Vec<_>>().join(", ")
        }
    }
}

pub(super) fn port_type(media: &PortMedia) -> &'static str {
    match media {
        PortMedia::Video { .. } => "video",
        PortMedia::Tensor { .. } => "tensor",
        PortMedia::Data { .. } => "data",
        PortMedia::Audio => "audio",
        PortMedia::Every { .. } => "any",
    }
}

/// The formats or element types that a port accepts, best first.
pub(super) fn formats(media: &PortMedia) -> Vec<&'static str> {
    match media {
        PortMedia::Video { formats, .. } | PortMedia::Every { formats } => {
            formats.iter().map(|f| Format::name(*f)).collect()
        }
        PortMedia::Tensor { dtypes, .. } => dtypes.iter().map(|d| DType::name(*d)).collect(),
        PortMedia::Data { .. } | PortMedia::Audio => Vec::new(),
    }
}

/// The sizes that a port accepts.
pub(super) fn sizes(media: &PortMedia) -> String {
    let side = |span: &Interval<u32>| match (span.min, span.max) {
        (min, max) if min == max => min.to_string(),
        (min, max) => format!("{min}..{max}"),
    };
    match media {
        PortMedia::Video { width, height, .. } if *width == ANY_SIDE && *height == ANY_SIDE => "any size".to_owned(),
        PortMedia::Video { width, height, .. } => format!("width {}, height {}", side(width), side(height)),
        PortMedia::Tensor { dims: None, .. } => "any shape".to_owned(),
        PortMedia::Tensor { dims: Some(dims), .. } => {
            format!("shape [{}]", dims.iter().map(side).collect::<Vec<_>>().join(", "))
        }
        PortMedia::Every { .. } => "any size".to_owned(),
        PortMedia::Data { bytes } => format!("up to {bytes} bytes"),
        PortMedia::Audio => String::new(),
    }
}

/// The rules for an output's format, size and rate.
pub(super) fn origin(output: &Output) -> [String; 3] {
    let format = match output.format {
        FormatRule::Declared => "declared".to_owned(),
        FormatRule::Input => "the input's".to_owned(),
        FormatRule::Setting(key) => format!("`{key}`"),
        FormatRule::Probed => "the source's own".to_owned(),
    };
    let size = match output.size {
        SizeRule::Input => "the input's".to_owned(),
        SizeRule::Setting(key) => format!("`{key}`"),
        SizeRule::SettingOrInput(key) => format!("`{key}`, else the input's"),
        SizeRule::SettingOrScaled(size, scale) => format!("`{size}`, or the input's times `{scale}`"),
        SizeRule::Cut(x, y, size) => format!("`{size}`, cut out of the input at `{x}`, `{y}`"),
        SizeRule::Turned(key) => format!("the input's, with the sides swapped by a quarter turn of `{key}`"),
        SizeRule::Probed(None) => "the source's own".to_owned(),
        SizeRule::Probed(Some(key)) => format!("the source's own, or `{key}`"),
    };
    let rate = match output.rate {
        RateRule::Input => "the input's".to_owned(),
        RateRule::Setting(key) => format!("`{key}`"),
        RateRule::Probed(None) => "the source's own".to_owned(),
        RateRule::Probed(Some(key)) => format!("the source's own, or `{key}`"),
    };
    [format, size, rate]
}

/// The number of frames by which the handler delays its output; `None` without a delay.
pub(super) fn latency(entry: &Entry) -> Option<String> {
    let frames = match entry.delay {
        Frames::Fixed(0) => return None,
        Frames::Fixed(n) => format!("{n} frames"),
        Frames::Setting(key) => format!("`{key}` frames"),
    };
    match entry.keeps_times {
        When::Never => None,
        When::Always => Some(frames),
        When::Setting(key) => Some(format!("{frames} if `{key}` is true")),
        When::LiveAddress(key) => Some(format!("{frames} if `{key}` is a live address")),
    }
}

/// Which frames the handler passes on; `None` if it passes on all frames.
pub(super) fn keeps(entry: &Entry) -> Option<String> {
    match entry.every {
        Frames::Fixed(1) => None,
        Frames::Fixed(n) => Some(format!("one frame in {n}")),
        Frames::Setting(key) => Some(format!("one frame in `{key}`")),
    }
}

pub(super) struct SettingRow {
    pub(super) name: &'static str,
    pub(super) takes: String,
    pub(super) default: Option<String>,
    pub(super) required: bool,
    pub(super) liveness: &'static str,
    pub(super) bare: bool,
    pub(super) about: String,
}

/// The settings of this handler alone.
pub(super) fn settings(entry: &Entry) -> Vec<SettingRow> {
    let shown = |s: &Setting| SettingRow {
        name: s.name,
        takes: s.value.expects(),
        default: match s.fallback {
            Fallback::Is(default) => Some(default.to_owned()),
            Fallback::Required | Fallback::Unset => None,
        },
        required: s.fallback == Fallback::Required,
        liveness: s.liveness.name(),
        bare: entry.bare == Some(s.name),
        about: s.about.to_owned(),
    };
    entry.settings.iter().map(shown).collect()
}

/// The settings that every handler has.
pub(super) fn universal(entry: &Entry) -> Vec<SettingRow> {
    let shown = |name, takes: String, default: Option<&str>, about: &str| SettingRow {
        name,
        takes,
        default: default.map(str::to_owned),
        required: false,
        liveness: "fixed",
        bare: false,
        about: about.to_owned(),
    };
    let counted = format!("name for references; defaults to {0}0, {0}1, ...", entry.name);
    let mut all = vec![
        shown("name", "a letter, then letters, digits, - and _".to_owned(), None, &counted),
        shown(
            "on-error",
            format!("one of {}", OnError::ALL.map(OnError::name).join(", ")),
            Some(OnError::default().name()),
            "action after a failed frame",
        ),
    ];
    if entry.inputs.len() > 1 {
        let names: Vec<_> = entry.inputs.iter().map(|p| p.name).collect();
        all.push(shown(
            "lead",
            format!("one of {}", names.join(", ")),
            names.first().copied(),
            "input that sets the pace",
        ));
        all.push(shown(
            "until",
            format!("one of {}", Until::ALL.map(Until::name).join(", ")),
            Some(Until::default().name()),
            "when the output ends: with the lead input, or with the first input that ends",
        ));
    }
    all
}
