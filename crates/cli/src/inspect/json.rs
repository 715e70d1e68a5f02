//! The JSON of `vramp inspect --json`: `{"handlers": [...]}`, for one handler as well as for all handlers.
//!
//! Every key is always present; a value that does not apply is null or empty.

use serde::Serialize;
use vramp::plan::catalog::{Entry, When};
use vramp::runtime::Registry;

use super::facts::{self, SettingRow};

pub(super) fn line(entries: &[&Entry], registry: &Registry) -> String {
    let handlers: Vec<InspectedHandlerJson> = entries.iter().map(|e| InspectedHandlerJson::of(e, registry)).collect();
    serde_json::to_string(&InspectJson { handlers }).expect("strings and booleans serialize to JSON")
}

#[derive(Serialize)]
struct InspectJson {
    handlers: Vec<InspectedHandlerJson>,
}

#[derive(Serialize)]
struct InspectedHandlerJson {
    name: &'static str,
    family: &'static str,
    status: &'static str,
    about: &'static str,
    example: &'static str,
    spaces: Vec<&'static str>,
    kernels: Vec<&'static str>,
    inputs: Vec<InputJson>,
    outputs: Vec<OutputJson>,
    settings: Vec<SettingJson>,
    universal: Vec<SettingJson>,
    one_of: &'static [&'static [&'static str]],
    open_settings: bool,
    stateful: bool,
    live: bool,
    latency: Option<String>,
    keeps: Option<String>,
}

#[derive(Serialize)]
struct InputJson {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    formats: Vec<&'static str>,
    sizes: String,
    required: bool,
}

#[derive(Serialize)]
struct OutputJson {
    name: &'static str,
    #[serde(rename = "type")]
    kind: &'static str,
    formats: Vec<&'static str>,
    format: String,
    size: String,
    rate: String,
}

#[derive(Serialize)]
struct SettingJson {
    name: &'static str,
    takes: String,
    default: Option<String>,
    required: bool,
    liveness: &'static str,
    bare: bool,
    about: String,
}

impl From<SettingRow> for SettingJson {
    fn from(shown: SettingRow) -> SettingJson {
        let SettingRow { name, takes, default, required, liveness, bare, about } = shown;
        SettingJson { name, takes, default, required, liveness, bare, about }
    }
}

impl InspectedHandlerJson {
    fn of(entry: &Entry, registry: &Registry) -> InspectedHandlerJson {
        let inputs = entry.inputs.iter().map(|port| InputJson {
            name: port.name,
            kind: facts::port_type(&port.media),
            formats: facts::formats(&port.media),
            sizes: facts::sizes(&port.media),
            required: port.required,
        });
        let outputs = entry.outputs.iter().map(|port| {
            let [format, size, rate] = facts::origin(port);
            let (kind, formats) = (facts::port_type(&port.media), facts::formats(&port.media));
            OutputJson { name: port.name, kind, formats, format, size, rate }
        });
        InspectedHandlerJson {
            name: entry.name,
            family: entry.family.name(),
            status: facts::status(entry, registry),
            about: entry.about,
            example: entry.example,
            spaces: facts::spaces(entry),
            kernels: facts::kernels(entry),
            inputs: inputs.collect(),
            outputs: outputs.collect(),
            settings: facts::settings(entry).into_iter().map(SettingJson::from).collect(),
            universal: facts::universal(entry).into_iter().map(SettingJson::from).collect(),
            one_of: entry.one_of,
            open_settings: entry.open_settings,
            stateful: entry.stateful,
            live: entry.live == When::Always,
            latency: facts::latency(entry),
            keeps: facts::keeps(entry),
        }
    }
}
