//! `vramp devices`: lists the graphics adapters of this machine, and says which one a run uses.
//!
//! Opens no adapter. The library chooses the adapter and gives the reason. Drivers are queried every time, and the list
//! of adapters is stored for later runs. Memory and load are current readings; if a value cannot be read, the reason is
//! shown instead.

use std::fmt::Write as _;

use serde::Serialize;
use vramp::calibrate;
use vramp::gpu::{Adapter, AdapterKind, AdapterReading, Chosen, Device, Readout};
use vramp::machine::{self, Readings};
use vramp::plan::bytes_in_words;

use crate::failure::CliError;
use crate::page;

pub(crate) fn run(json: bool) -> Result<(), CliError> {
    let adapters = machine::list_adapters();
    let readings = Readings::of_this_machine().read_all(&adapters);
    let chosen = Device::choose().chosen_of(&adapters).ok();
    let why = why(chosen.as_ref());
    let read: Vec<(&Adapter, &AdapterReading)> = adapters.iter().zip(&readings).collect();
    if !json {
        return page::result(text(&read, &why, page::colour_on_stdout()).as_bytes());
    }
    let shown = read.iter().map(|(adapter, reading)| AdapterJson::of(adapter, reading)).collect();
    let all = DevicesJson { adapters: shown, chosen: chosen.map(|chosen| chosen.adapter.index), why };
    let mut line = serde_json::to_string(&all).map_err(|error| CliError::Failed(error.into()))?;
    line.push('\n');
    page::result(line.as_bytes())
}

/// What to install if no adapter is found.
pub(crate) fn what_to_install() -> &'static str {
    if cfg!(target_os = "linux") {
        "install a Vulkan driver for your card; on Debian and Ubuntu, `apt install mesa-vulkan-drivers libvulkan1` \
         installs drivers for AMD and Intel, and a driver that computes on the CPU"
    } else if cfg!(target_os = "macos") {
        "Metal comes with macOS; inside a virtual machine, turn its graphics acceleration on"
    } else if cfg!(target_os = "windows") {
        "install the driver of your card's vendor; Microsoft's basic display driver has no Direct3D 12"
    } else {
        "install a Vulkan driver"
    }
}

/// Which adapter a run uses, and why.
fn why(chosen: Option<&Chosen>) -> String {
    let Some(Chosen { adapter, why, .. }) = chosen else {
        return format!("no adapter found, so everything runs on the CPU; to use a GPU, {}", what_to_install());
    };
    let profile = calibrate::figures_of(Some(adapter));
    let used = match adapter.kind {
        AdapterKind::Software => "plans rarely choose this adapter over the CPU, but --gpu forces them to",
        _ => "a plan uses this adapter if that is cheaper, or always with --gpu",
    };
    let measured = crate::calibrate::when(Some(adapter));
    format!("a run uses adapter {}: {why}; costs are those of {}, {measured}; {used}", adapter.index, profile.name())
}

fn text(adapters: &[(&Adapter, &AdapterReading)], why: &str, colour: bool) -> String {
    let mut out = String::new();
    for (adapter, reading) in adapters {
        let Adapter { index, name, backend, kind, driver, driver_version, limits, pci, .. } = adapter;
        let name = if colour { format!("\x1b[1m{name}\x1b[0m") } else { name.clone() };
        let _ = writeln!(out, "{index}  {name}");
        let mut fact = |label: &str, value: &str| {
            let _ = writeln!(out, "   {label:10}{}", value.trim());
        };
        let software = if *kind == AdapterKind::Software { ": computes on the CPU" } else { "" };
        fact("through", &format!("{backend}, {kind}{software}"));
        fact("driver", &format!("{driver} {driver_version}"));
        if let Some(pci) = pci {
            fact("pci", pci);
        }
        fact("memory", &readout_text(&reading.memory_bytes, bytes_in_words));
        fact("in use", &readout_text(&reading.used_bytes, bytes_in_words));
        fact("load", &readout_text(&reading.load_percent, |percent| format!("{percent:.0} %")));
        let mb = |bytes: u64| format!("{} MB", bytes >> 20);
        fact(
            "limits",
            &format!(
                "{} buffers per kernel, {} per binding, {} per buffer, {} invocations per workgroup",
                limits.storage_buffers_per_stage,
                mb(limits.binding_bytes),
                mb(limits.buffer_bytes),
                limits.invocations_per_workgroup
            ),
        );
        let has = |yes: bool, what: &str| if yes { what.to_owned() } else { format!("no {what}") };
        let mapping = has(adapter.has_mappable_buffers, "mapping of kernel buffers");
        fact("features", &format!("{}, {mapping}", has(adapter.has_timestamps, "timestamps")));
        out.push('\n');
    }
    let _ = writeln!(out, "{why}");
    if adapters.len() > 1 {
        out.push_str("--device N or --device NAME selects another adapter\n");
    }
    out
}

/// A reading with its source, or the reason why there is no reading.
fn readout_text<T: Copy>(known: &Readout<T>, show: impl Fn(T) -> String) -> String {
    match known {
        Readout::Unavailable(why) => format!("unavailable: {why}"),
        Readout::Is { value, from, doubt: None } => format!("{} ({from})", show(*value)),
        Readout::Is { value, from, doubt: Some(doubt) } => format!("{} ({from}; {doubt})", show(*value)),
    }
}

#[derive(Serialize)]
struct DevicesJson<'a> {
    adapters: Vec<AdapterJson<'a>>,
    chosen: Option<usize>,
    why: String,
}

#[derive(Serialize)]
struct AdapterJson<'a> {
    index: usize,
    name: &'a str,
    backend: String,
    kind: String,
    software: bool,
    driver: &'a str,
    driver_version: &'a str,
    vendor: u32,
    model: u32,
    pci: Option<&'a str>,
    /// Null if the memory cannot be read. `memory_why` says why, or why the value may be wrong.
    memory_bytes: Option<u64>,
    memory_from: Option<&'a str>,
    memory_why: Option<&'a str>,
    used_bytes: Option<u64>,
    used_from: Option<&'a str>,
    used_why: Option<&'a str>,
    load_percent: Option<f32>,
    load_from: Option<&'a str>,
    load_why: Option<&'a str>,
    timestamps: bool,
    mappable_buffers: bool,
    limits: LimitsJson,
}

#[derive(Serialize)]
struct LimitsJson {
    storage_buffers_per_stage: u32,
    binding_bytes: u64,
    buffer_bytes: u64,
    params_bytes: u64,
    workgroups_per_dimension: u32,
    invocations_per_workgroup: u32,
    workgroup_bytes: u32,
}

impl<'a> AdapterJson<'a> {
    fn of(adapter: &'a Adapter, reading: &'a AdapterReading) -> AdapterJson<'a> {
        let AdapterReading { memory_bytes, used_bytes, load_percent } = reading;
        let limits = &adapter.limits;
        AdapterJson {
            index: adapter.index,
            name: &adapter.name,
            backend: adapter.backend.to_string(),
            kind: adapter.kind.to_string(),
            software: adapter.kind == AdapterKind::Software,
            driver: &adapter.driver,
            driver_version: &adapter.driver_version,
            vendor: adapter.vendor,
            model: adapter.model,
            pci: adapter.pci.as_deref(),
            memory_bytes: memory_bytes.value(),
            memory_from: memory_bytes.from(),
            memory_why: memory_bytes.why(),
            used_bytes: used_bytes.value(),
            used_from: used_bytes.from(),
            used_why: used_bytes.why(),
            load_percent: load_percent.value(),
            load_from: load_percent.from(),
            load_why: load_percent.why(),
            timestamps: adapter.has_timestamps,
            mappable_buffers: adapter.has_mappable_buffers,
            limits: LimitsJson {
                storage_buffers_per_stage: limits.storage_buffers_per_stage,
                binding_bytes: limits.binding_bytes,
                buffer_bytes: limits.buffer_bytes,
                params_bytes: limits.params_bytes,
                workgroups_per_dimension: limits.workgroups_per_dimension,
                invocations_per_workgroup: limits.invocations_per_workgroup,
                workgroup_bytes: limits.workgroup_bytes,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_adapter_it_says_what_to_install() {
        let words = text(&[], &why(None), false);
        assert!(words.starts_with("no adapter found") && words.contains("install"), "{words}");
    }

    #[test]
    fn unknown_readings_are_unavailable_and_doubtful_ones_show_their_doubt() {
        let unknown: Readout<u64> = Readout::unavailable("/a/b: permission denied");
        assert_eq!(readout_text(&unknown, bytes_in_words), "unavailable: /a/b: permission denied");
        assert_eq!(readout_text(&Readout::is(2_500_000_000, "/a/c"), bytes_in_words), "2.5 GB (/a/c)");
        let doubtful = Readout::Is { value: 3.0, from: "/proc".to_owned(), doubt: Some("some are hidden".to_owned()) };
        assert_eq!(readout_text(&doubtful, |value: f32| value.to_string()), "3 (/proc; some are hidden)");
    }
}
