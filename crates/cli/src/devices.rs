//! `vramp devices`: the graphics adapters of this machine.
//!
//! Owns the command: the list for people and for programs, which adapter a run takes and why, and what to install
//! where there is none.
//! Does not open an adapter.
//!
//! Always: drivers are asked anew, and what they say is what later runs begin with.

use std::fmt::Write as _;

use serde::Serialize;
use vramp::gpu::{Adapter, AdapterKind};
use vramp::{calibrate, machine};

use crate::failure::Failure;
use crate::page;

pub(crate) fn run(json: bool) -> Result<(), Failure> {
    let adapters = machine::list_adapters();
    let why = why(&adapters);
    if !json {
        return page::result(text(&adapters, &why, page::colour_on_stdout()).as_bytes());
    }
    let chosen = adapters.first().map(|adapter| adapter.index);
    let all = All { adapters: adapters.iter().map(Shown::of).collect(), chosen, why };
    let mut line = serde_json::to_string(&all).map_err(|error| Failure::Failed(error.into()))?;
    line.push('\n');
    page::result(line.as_bytes())
}

/// What to do where no adapter answers.
pub(crate) fn what_to_install() -> &'static str {
    if cfg!(target_os = "linux") {
        "install a Vulkan driver for your card; on Debian and Ubuntu, `apt install mesa-vulkan-drivers libvulkan1` has \
         those for AMD and Intel, and one that computes on the cpu"
    } else if cfg!(target_os = "macos") {
        "Metal comes with macOS; inside a virtual machine, turn its graphics acceleration on"
    } else if cfg!(target_os = "windows") {
        "install the driver of your card's maker; Windows' own basic driver has no Direct3D 12"
    } else {
        "install a Vulkan driver"
    }
}

/// Which one a run takes, and why.
fn why(adapters: &[Adapter]) -> String {
    let Some(best) = adapters.first() else {
        return format!("no adapter answers, so that everything runs on the cpu; to use a gpu, {}", what_to_install());
    };
    let profile = calibrate::figures_of(Some(best));
    let chosen = match best.kind {
        AdapterKind::Software => "it is the only kind there is: the cpu, behind a graphics driver",
        AdapterKind::Discrete => "it has its own memory, which comes before adapters that share the cpu's",
        _ if adapters.iter().any(|other| other.kind == AdapterKind::Software) => "hardware comes before software",
        _ => "it is the first of the list",
    };
    let used = match best.kind {
        AdapterKind::Software => "; plans rarely choose it over the cpu itself, --gpu insists",
        _ => "; a plan uses it where that is cheaper, --gpu insists",
    };
    let measured = crate::calibrate::when(Some(best));
    format!("a run takes {}: {chosen}; its costs are those of {}, {measured}{used}", best.index, profile.name())
}

fn text(adapters: &[Adapter], why: &str, colour: bool) -> String {
    let mut out = String::new();
    for adapter in adapters {
        let Adapter { index, name, backend, kind, driver, driver_version, limits, .. } = adapter;
        let name = if colour { format!("\x1b[1m{name}\x1b[0m") } else { name.clone() };
        let _ = writeln!(out, "{index}  {name}");
        let mut fact = |label: &str, value: &str| {
            let _ = writeln!(out, "   {label:10}{}", value.trim());
        };
        let software = if *kind == AdapterKind::Software { ": computes on the cpu" } else { "" };
        fact("through", &format!("{backend}, {kind}{software}"));
        fact("driver", &format!("{driver} {driver_version}"));
        let mb = |bytes: u64| format!("{} MB", bytes >> 20);
        fact(
            "limits",
            &format!(
                "{} buffers a kernel, {} a binding, {} a buffer, {} invocations a workgroup",
                limits.storage_buffers_per_stage,
                mb(limits.binding_bytes),
                mb(limits.buffer_bytes),
                limits.invocations_per_workgroup
            ),
        );
        let has = |yes: bool, what: &str| if yes { what.to_owned() } else { format!("no {what}") };
        let mapping = has(adapter.has_mappable_buffers, "mapping of kernels' buffers");
        fact("features", &format!("{}, {mapping}", has(adapter.has_timestamps, "timestamps")));
        out.push('\n');
    }
    let _ = writeln!(out, "{why}");
    if adapters.len() > 1 {
        out.push_str("--device N or --device NAME takes another one\n");
    }
    out
}

#[derive(Serialize)]
struct All<'a> {
    adapters: Vec<Shown<'a>>,
    chosen: Option<usize>,
    why: String,
}

#[derive(Serialize)]
struct Shown<'a> {
    index: usize,
    name: &'a str,
    backend: String,
    kind: String,
    software: bool,
    driver: &'a str,
    driver_version: &'a str,
    vendor: u32,
    model: u32,
    timestamps: bool,
    mappable_buffers: bool,
    limits: Limits,
}

#[derive(Serialize)]
struct Limits {
    storage_buffers_per_stage: u32,
    binding_bytes: u64,
    buffer_bytes: u64,
    params_bytes: u64,
    workgroups_per_dimension: u32,
    invocations_per_workgroup: u32,
    workgroup_bytes: u32,
}

impl Shown<'_> {
    fn of(adapter: &Adapter) -> Shown<'_> {
        let limits = &adapter.limits;
        Shown {
            index: adapter.index,
            name: &adapter.name,
            backend: adapter.backend.to_string(),
            kind: adapter.kind.to_string(),
            software: adapter.kind == AdapterKind::Software,
            driver: &adapter.driver,
            driver_version: &adapter.driver_version,
            vendor: adapter.vendor,
            model: adapter.model,
            timestamps: adapter.has_timestamps,
            mappable_buffers: adapter.has_mappable_buffers,
            limits: Limits {
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
        let words = text(&[], &why(&[]), false);
        assert!(words.starts_with("no adapter answers") && words.contains("install"), "{words}");
    }
}
