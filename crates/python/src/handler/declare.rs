//! The declaration of a Python handler, and the planner's entry that is made from it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use vramp::plan::catalog::{
    Entry, Family, FormatRule, Input, KernelRule, Liveness, Output, PortMedia, RateRule, Setting, SizeRule, ValueType,
};
use vramp::plan::{DType, Format, Space};

use crate::errors::raise;

/// What the decorator declares.
#[derive(Debug, Clone)]
pub(crate) struct Declaration {
    pub(crate) name: String,
    about: String,
    pub(crate) inputs: Vec<DeclaredPort>,
    pub(crate) outputs: Vec<DeclaredPort>,
    pub(crate) settings: Vec<DeclaredSetting>,
    /// The setting that may be given without its key.
    bare: Option<String>,
    /// Whether the handler waits for the outside, and so has a lane of its own.
    blocking: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct DeclaredPort {
    pub(crate) name: String,
    /// `any`, `tensor`, `data`, or a format.
    media: String,
}

#[derive(Debug, Clone)]
pub(crate) struct DeclaredSetting {
    pub(crate) name: String,
    /// `int`, `float`, `bool`, `str`, `size`, `color`, `path` or `choice`.
    kind: String,
    default: Option<String>,
    least: Option<f64>,
    most: Option<f64>,
    words: Vec<String>,
    live: bool,
    optional: bool,
    about: String,
}

/// A text that lives as long as the process.
fn kept(text: &str) -> &'static str {
    static TEXTS: Mutex<BTreeMap<String, &'static str>> = Mutex::new(BTreeMap::new());
    let mut texts = TEXTS.lock().unwrap_or_else(PoisonError::into_inner);
    texts.entry(text.to_owned()).or_insert_with(|| Box::leak(text.to_owned().into_boxed_str()))
}

impl Declaration {
    pub(crate) fn read(py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<Declaration> {
        let get = |key: &str| given.get_item(key);
        let name: String = get("name")?.extract()?;
        let ports = |key: &str| -> PyResult<Vec<DeclaredPort>> {
            let list: Vec<(String, String)> = get(key)?.extract()?;
            Ok(list.into_iter().map(|(name, media)| DeclaredPort { name, media }).collect())
        };
        let mut settings = Vec::new();
        for setting in get("settings")?.try_iter()? {
            let setting = setting?;
            let get = |key: &str| setting.get_item(key);
            settings.push(DeclaredSetting {
                name: get("name")?.extract()?,
                kind: get("kind")?.extract()?,
                default: get("default")?.extract()?,
                least: get("least")?.extract()?,
                most: get("most")?.extract()?,
                words: get("words")?.extract()?,
                live: get("live")?.extract()?,
                optional: get("optional")?.extract()?,
                about: get("about")?.extract()?,
            });
        }
        let declaration = Declaration {
            about: get("about")?.extract()?,
            inputs: ports("inputs")?,
            outputs: ports("outputs")?,
            bare: get("bare")?.extract()?,
            blocking: get("blocking")?.extract()?,
            settings,
            name,
        };
        declaration
            .check()
            .map_err(|problem| raise(py, "HandlerError", &format!("{}: {problem}", declaration.name)))?;
        Ok(declaration)
    }

    fn check(&self) -> Result<(), String> {
        let Declaration { name, inputs, outputs, settings, .. } = self;
        let is_name = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_alphabetic())
                && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        };
        if !is_name(name) {
            return Err("a kind is written with letters, digits, `-` and `_`, and starts with a letter".to_owned());
        }
        if inputs.is_empty() && outputs.is_empty() {
            return Err("it has neither inputs nor outputs".to_owned());
        }
        for port in inputs.iter().chain(outputs) {
            if !is_name(&port.name) {
                return Err(format!("`{}` is not a name of a port", port.name));
            }
            let formats = Format::RANKED.map(Format::name).join(", ");
            let known = matches!(port.media.as_str(), "any" | "data" | "tensor") || port.format().is_some();
            if !known {
                return Err(format!(
                    "{}: `{}` is not a media; expected any, data, tensor, {formats}",
                    port.name, port.media
                ));
            }
        }
        if let Some(port) = outputs.iter().find(|port| port.media == "tensor") {
            return Err(format!("{}: a Python handler cannot send tensors; send a picture or data", port.name));
        }
        if inputs.is_empty() && outputs.iter().any(|port| port.media == "any") {
            return Err("the output of a source needs a format, such as `rgba8`".to_owned());
        }
        if let Some(bare) = self.bare.as_ref().filter(|bare| settings.iter().all(|setting| setting.name != **bare)) {
            return Err(format!("bare: there is no setting `{bare}`"));
        }
        for setting in settings {
            let DeclaredSetting { name, default, .. } = setting;
            let value = setting.value_type()?;
            if ["name", "on-error", "lead", "until"].contains(&name.as_str()) {
                return Err(format!("`{name}` is a setting that every handler has"));
            }
            if let Some(text) = default.as_ref().filter(|text| value.read(text).is_none()) {
                return Err(format!("the default of {name}, `{text}`, is not valid; expected {}", value.expects()));
            }
        }
        Ok(())
    }

    /// The entry of this declaration. Equal declarations have the same entry.
    pub(crate) fn entry(&self) -> &'static Entry {
        static ENTRIES: Mutex<BTreeMap<String, &'static Entry>> = Mutex::new(BTreeMap::new());
        let mut entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
        entries.entry(format!("{self:?}")).or_insert_with(|| Box::leak(Box::new(self.new_entry())))
    }

    fn new_entry(&self) -> Entry {
        let is_source = self.inputs.is_empty();
        let family = match (is_source, self.outputs.is_empty()) {
            (true, _) => Family::Source,
            (_, true) => Family::Sink,
            _ => Family::Filter,
        };
        let inputs: Vec<Input> = self.inputs.iter().enumerate().map(|(at, port)| port.input(at == 0)).collect();
        let lead_format = self.inputs.first().map(|port| port.media.as_str());
        let outputs: Vec<Output> = self.outputs.iter().map(|port| port.output(is_source, lead_format)).collect();
        let mut settings: Vec<Setting> = Vec::new();
        if is_source {
            settings.push(Setting::size("size", "size of the frames").default("640x480"));
            settings.push(Setting::rate("fps", "frames per second").optional());
        }
        let own = self.settings.iter().filter(|setting| !settings.iter().any(|known| known.name == setting.name));
        let own: Vec<Setting> = own.map(DeclaredSetting::setting).collect();
        settings.extend(own);
        let base = match family {
            Family::Source => Entry::SOURCE,
            Family::Sink => Entry::SINK,
            _ => Entry::FILTER,
        };
        let name = kept(&self.name);
        Entry {
            name,
            family,
            about: kept(&self.about),
            example: name,
            inputs: Vec::leak(inputs),
            outputs: Vec::leak(outputs),
            settings: Vec::leak(settings),
            bare: self.bare.as_deref().map(kept),
            spaces: &[Space::Cpu],
            kernel: KernelRule::None,
            stateful: true,
            blocking: is_source || self.blocking,
            ..base
        }
    }
}

impl DeclaredPort {
    fn format(&self) -> Option<Format> {
        self.media.parse().ok()
    }

    pub(crate) fn is_data(&self) -> bool {
        self.media == "data"
    }

    fn media(&self) -> PortMedia {
        match self.media.as_str() {
            "any" => PortMedia::ANY,
            "data" => PortMedia::DATA,
            "tensor" => PortMedia::tensor(&DType::ALL),
            _ => PortMedia::video(match self.format() {
                Some(Format::Rgb8) => &[Format::Rgb8],
                Some(Format::I444) => &[Format::I444],
                Some(Format::I422) => &[Format::I422],
                Some(Format::I420) => &[Format::I420],
                Some(Format::Nv12) => &[Format::Nv12],
                Some(Format::Gray8) => &[Format::Gray8],
                Some(Format::Rgba8) | None => &[Format::Rgba8],
            }),
        }
    }

    fn input(&self, required: bool) -> Input {
        Input { name: kept(&self.name), media: self.media(), required, ..Input::VIDEO }
    }

    fn output(&self, is_source: bool, lead_format: Option<&str>) -> Output {
        let passes = self.media == "any" && lead_format == Some("any");
        let base = if self.is_data() { Output::DATA } else { Output::VIDEO };
        Output {
            name: kept(&self.name),
            media: self.media(),
            format: if passes { FormatRule::Input } else { FormatRule::Declared },
            size: if is_source { SizeRule::Setting("size") } else { SizeRule::Input },
            rate: if is_source { RateRule::Probed(Some("fps")) } else { RateRule::Input },
            ..base
        }
    }
}

impl DeclaredSetting {
    fn value_type(&self) -> Result<ValueType, String> {
        let DeclaredSetting { name, kind, least, most, words, .. } = self;
        Ok(match kind.as_str() {
            "int" => ValueType::Int {
                min: least.map_or(i64::MIN, |least| least as i64),
                max: most.map_or(i64::MAX, |most| most as i64),
            },
            "float" => ValueType::Number { min: least.unwrap_or(f64::MIN), max: most.unwrap_or(f64::MAX) },
            "bool" => ValueType::Bool,
            "str" => ValueType::Text,
            "path" => ValueType::Path(vramp::plan::catalog::PathUse::Read),
            "size" => ValueType::Size,
            "color" => ValueType::Color,
            "choice" if !words.is_empty() => {
                ValueType::Choice(Vec::leak(words.iter().map(|word| kept(word)).collect()))
            }
            _ => {
                return Err(format!(
                    "`{kind}` is not a type of a setting ({name}); expected int, float, bool, str, or `vramp.setting`"
                ));
            }
        })
    }

    fn setting(&self) -> Setting {
        let value = self.value_type().unwrap_or(ValueType::Text);
        let setting = Setting::of(kept(&self.name), value, kept(&self.about));
        let setting = match &self.default {
            Some(text) => setting.default(kept(text)),
            None if self.optional => setting.optional(),
            None => setting,
        };
        Setting { liveness: if self.live { Liveness::Live } else { Liveness::Fixed }, ..setting }
    }
}
