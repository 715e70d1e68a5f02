//! The settings of `model`, typed.

use vramp_plan::Size;
use vramp_plan::catalog::{Fallback, SettingValues};
use vramp_tensor::network::{Fit, MaskShow};

use super::{ENTRY, boxes};

/// What is made of the network's output.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum OutputUse {
    Raw,
    Mask { channel: Option<usize>, activation: Activation, threshold: Option<f32>, show: MaskShow },
    Classes { top: usize, activation: Activation },
    Boxes { decode: Decode, threshold: f32, iou: f32 },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Activation {
    None,
    Sigmoid,
    Softmax,
}

/// How rows of the output become boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Decode {
    Yolov8,
    Yolox,
    Blazeface,
    Corners,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colors {
    Rgb,
    Bgr,
    Gray,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ModelSettings {
    pub(super) path: String,
    pub(super) size: Option<Size>,
    pub(super) multiple: usize,
    /// Whether the channels of the input lie last; `None` if that is read from the file.
    pub(super) channels_last: Option<bool>,
    pub(super) colors: Colors,
    /// The factor of a byte and what is added, for red, green and blue.
    pub(super) scale: [(f32, f32); 3],
    pub(super) fit: Fit,
    pub(super) of: Option<String>,
    pub(super) output: OutputUse,
    pub(super) labels: Option<String>,
    pub(super) every: u64,
}

impl OutputUse {
    /// The number of classes that an output of these lengths has scores for; `None` if that is not in its shape.
    pub(super) fn class_count(&self, lengths: &[usize]) -> Option<usize> {
        match self {
            OutputUse::Classes { .. } => Some(lengths.iter().product()),
            OutputUse::Boxes { decode, .. } => boxes::class_count(*decode, lengths),
            OutputUse::Raw | OutputUse::Mask { .. } => None,
        }
    }
}

impl ModelSettings {
    /// The settings, or what contradicts itself in them.
    pub(super) fn of(values: &SettingValues) -> Result<ModelSettings, String> {
        let word = |key: &str| values.word(key).unwrap_or_default();
        let activation = match word("activation") {
            "sigmoid" => Activation::Sigmoid,
            "softmax" => Activation::Softmax,
            _ => Activation::None,
        };
        let threshold = values.number("threshold").map(|number| number as f32);
        let output_word = word("output");
        let output = match output_word {
            "mask" => OutputUse::Mask {
                channel: values.int("channel").and_then(|channel| usize::try_from(channel).ok()),
                activation,
                threshold,
                show: if word("show") == "mask" { MaskShow::Colors } else { MaskShow::Alpha },
            },
            "classes" => {
                if activation == Activation::Sigmoid {
                    return Err("output=classes takes activation=none or softmax, not sigmoid".to_owned());
                }
                let top = values.int("top").and_then(|top| usize::try_from(top).ok()).unwrap_or(5);
                OutputUse::Classes { top, activation }
            }
            "boxes" => {
                let decode = match word("decode") {
                    "yolov8" => Decode::Yolov8,
                    "yolox" => Decode::Yolox,
                    "blazeface" => Decode::Blazeface,
                    "corners" => Decode::Corners,
                    _ => {
                        return Err(
                            "output=boxes needs to know how the network writes boxes; add decode=yolov8, yolox, \
                                    blazeface or corners"
                                .to_owned(),
                        );
                    }
                };
                let iou = values.number("iou").unwrap_or(0.45) as f32;
                OutputUse::Boxes { decode, threshold: threshold.unwrap_or(0.5), iou }
            }
            _ => OutputUse::Raw,
        };
        for (key, outputs) in USED_BY {
            if is_set(values, key) && !outputs.contains(&output_word) {
                return Err(format!(
                    "`{key}` has no meaning with output={output_word}; it is for output={}",
                    outputs.join(", ")
                ));
            }
        }
        let colors = match word("channels") {
            "bgr" => Colors::Bgr,
            "gray" => Colors::Gray,
            _ => Colors::Rgb,
        };
        Ok(ModelSettings {
            path: values.text("path").unwrap_or_default().to_owned(),
            size: values.size("size"),
            multiple: values.int("multiple").and_then(|n| usize::try_from(n).ok()).unwrap_or(32).max(1),
            channels_last: match word("layout") {
                "nchw" => Some(false),
                "nhwc" => Some(true),
                _ => None,
            },
            colors,
            scale: scale(values)?,
            fit: match word("fit") {
                "letterbox" => Fit::Letterbox,
                "crop" => Fit::Crop,
                _ => Fit::Stretch,
            },
            of: values.text("of").map(str::to_owned),
            output,
            labels: values.text("labels").map(str::to_owned),
            every: values.int("every").and_then(|n| u64::try_from(n).ok()).unwrap_or(1).max(1),
        })
    }
}

/// Settings that only some outputs use.
const USED_BY: &[(&str, &[&str])] = &[
    ("channel", &["mask"]),
    ("show", &["mask"]),
    ("threshold", &["mask", "boxes"]),
    ("activation", &["mask", "classes"]),
    ("top", &["classes"]),
    ("decode", &["boxes"]),
    ("iou", &["boxes"]),
    ("labels", &["classes", "boxes"]),
];

/// Whether a setting has another value than its default.
fn is_set(values: &SettingValues, key: &str) -> bool {
    let default = ENTRY.setting(key).and_then(|setting| match setting.fallback {
        Fallback::Is(text) => setting.value.read(text),
        _ => None,
    });
    values.get(key) != default.as_ref()
}

/// The factor of a byte and what is added, for red, green and blue: (byte / 255 - mean) / std, or a range.
fn scale(values: &SettingValues) -> Result<[(f32, f32); 3], String> {
    let three = |key: &str| -> Option<[f64; 3]> {
        match *values.numbers(key)? {
            [one] => Some([one; 3]),
            [r, g, b] => Some([r, g, b]),
            _ => None,
        }
    };
    let (mean, std) = (three("mean"), three("std"));
    let is_gray = values.word("channels") == Some("gray");
    if let Some(key) =
        ["mean", "std"].into_iter().find(|key| values.numbers(key).is_some_and(|all| is_gray && all.len() > 1))
    {
        return Err(format!("`{key}` has 3 numbers, and channels=gray is one channel; give one number"));
    }
    if mean.is_none() && std.is_none() {
        let range = match values.word("range") {
            Some("-1..1") => (1.0 / 127.5, -1.0),
            Some("0..255") => (1.0, 0.0),
            _ => (1.0 / 255.0, 0.0),
        };
        return Ok([range; 3]);
    }
    if values.word("range").is_some_and(|range| range != "0..1") {
        return Err("`mean` and `std` are for values from 0 to 1; leave out `range`, or give only `range`".to_owned());
    }
    let (mean, std) = (mean.unwrap_or([0.0; 3]), std.unwrap_or([1.0; 3]));
    if std.contains(&0.0) {
        return Err("`std` has a 0, which nothing can be divided by".to_owned());
    }
    let scale = std::array::from_fn(|at| ((1.0 / (255.0 * std[at])) as f32, (-mean[at] / std[at]) as f32));
    if scale.iter().any(|(factor, offset): &(f32, f32)| !factor.is_finite() || !offset.is_finite()) {
        return Err("`mean` and `std` make values that are too large for f32; `std` is about 0.2 usually".to_owned());
    }
    Ok(scale)
}
