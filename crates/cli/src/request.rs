//! From command-line flags to a pipeline builder.
//!
//! Translates every shared flag, finds the profile, and resolves the adapter. The library plans and opens devices.
//! With `--cpu` no adapters are listed. An adapter that the options name is used or refused, never replaced by another.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use anyhow::anyhow;
use vramp::gpu::{Backend, Choice, Device};
use vramp::plan::{Graph, Profile, RunOptions, Space};
use vramp::runtime::Registry;
use vramp::{Pipeline, PipelineBuilder, calibrate, machine};

use crate::args::{DeviceWord, SharedFlags};
use crate::failure::CliError;
use crate::input::read_file;

/// The run options of these flags, with the placements of single handlers (`--place`).
pub(crate) fn options(flags: &SharedFlags) -> Result<RunOptions, CliError> {
    Ok(RunOptions { pins: placements(flags)?, ..options_for_all(flags) })
}

/// The run options of these flags, without placements.
pub(crate) fn options_for_all(flags: &SharedFlags) -> RunOptions {
    let usual = RunOptions::default();
    let memory = flags.memory.unwrap_or_default();
    let only = [(flags.cpu, Space::Cpu), (flags.gpu, Space::Gpu)];
    RunOptions {
        only: only.into_iter().find_map(|(given, space)| given.then_some(space)),
        require_gpu: flags.require_gpu,
        strict: flags.strict,
        fusion: !flags.no_fusion,
        threads: flags.threads,
        in_flight: flags.in_flight.unwrap_or(usual.in_flight),
        batch: flags.batch.unwrap_or(usual.batch),
        latency_ms: flags.latency,
        pace: flags.fps,
        cpu_memory_bytes: memory.cpu_bytes,
        gpu_memory_bytes: memory.gpu_bytes,
        on_loss: flags.on_loss.unwrap_or_default(),
        lose_device_at: flags.lose_device_at.clone(),
        ..usual
    }
}

/// A builder for this graph with all options but the profile.
pub(crate) fn of(flags: &SharedFlags, graph: &Graph, registry: &Registry) -> Result<PipelineBuilder, CliError> {
    let builder = Pipeline::from_graph(graph.clone()).registry(registry);
    Ok(builder.options(options(flags)?).choice(choice(flags)))
}

/// Like `of`, with the profile that `--profile` names. Without `--profile`, building the pipeline uses the profile of
/// this machine, and may list adapters.
pub(crate) fn on_this_machine(
    flags: &SharedFlags,
    graph: &Graph,
    registry: &Registry,
) -> Result<PipelineBuilder, CliError> {
    let builder = of(flags, graph, registry)?;
    match &flags.profile {
        Some(word) => Ok(builder.profile(find_profile(word)?)),
        None => Ok(builder),
    }
}

/// The profile for these flags, and a warning about the adapter. With `--cpu`, the profile is the stored profile of the
/// CPU. Without `--cpu`, or if no such profile is stored, the profile is that of the adapter that a run would use, or
/// that of the CPU if no adapter matches the flags. `None` if no list of adapters is stored. Queries no driver.
pub(crate) fn remembered_figures(flags: &SharedFlags) -> Result<Option<(Profile, Option<String>)>, CliError> {
    if flags.cpu
        && let Some(known) = calibrate::known(None)
    {
        return Ok(Some((known.profile, None)));
    }
    let Some(known) = machine::known_adapters() else { return Ok(None) };
    match choice(flags).chosen_of(&known) {
        Ok(chosen) => Ok(Some((calibrate::figures_of(Some(&chosen.adapter)), chosen.doubt))),
        Err(why) if requires_device(flags) => Err(CliError::NoPlan(why.into())),
        Err(why) => Ok(Some((calibrate::figures_of(None), Some(format!("{why}; everything would run on the CPU"))))),
    }
}

/// Opens the device that a run would use. If there is no device and the options do not require a device, the inner
/// error is the reason. With `--cpu` no device is opened.
pub(crate) fn open_device(flags: &SharedFlags) -> Result<Result<Device, String>, CliError> {
    if flags.cpu {
        return Ok(Err("--cpu opens none".to_owned()));
    }
    match choice(flags).open() {
        Ok(device) => Ok(Ok(device)),
        Err(why) if requires_device(flags) => Err(CliError::NoPlan(why.into())),
        Err(why) => Ok(Err(why.to_string())),
    }
}

/// Whether the options require a device.
pub(crate) fn requires_device(flags: &SharedFlags) -> bool {
    let on_gpu = flags.place.iter().any(|(_, space)| *space == Space::Gpu);
    flags.gpu || flags.require_gpu || flags.backend.is_some() || flags.device.is_some() || on_gpu
}

/// The adapter that the options name or describe, or else any adapter.
pub(crate) fn choice(flags: &SharedFlags) -> Choice {
    let mut choice = named_choice(flags.backend, flags.device.as_ref()).prefer(flags.prefer.unwrap_or_default());
    if let Some(bytes) = flags.min_memory {
        choice = choice.least_memory_bytes(bytes);
    }
    if let Some(percent) = flags.max_load {
        choice = choice.most_load_percent(percent);
    }
    choice
}

/// The adapter with this API and this index or name; any adapter if no API, index or name is given.
pub(crate) fn named_choice(backend: Option<Backend>, device: Option<&DeviceWord>) -> Choice {
    let mut choice = machine::choose();
    if let Some(backend) = backend {
        choice = choice.backend(backend);
    }
    match device {
        None => {}
        Some(DeviceWord::At(index)) => choice = choice.index(*index),
        Some(DeviceWord::Named(part)) => choice = choice.named(part),
    }
    choice
}

/// The placements of single handlers. Refuses a handler that is placed in two spaces.
fn placements(flags: &SharedFlags) -> Result<BTreeMap<String, Space>, CliError> {
    let mut placed = BTreeMap::new();
    for (name, space) in &flags.place {
        if placed.insert(name.clone(), *space).is_some_and(|before| before != *space) {
            return Err(CliError::Wrong(anyhow!("--place puts `{name}` on the cpu and on the gpu; give only one")));
        }
    }
    Ok(placed)
}

/// The file of a profile; `None` for a shipped profile.
pub(crate) fn profile_file(word: &OsStr) -> Option<&Path> {
    shipped_name(word).is_none().then(|| Path::new(word))
}

/// The name of a shipped profile, which is given as `shipped:NAME` or `NAME`. A file with the name of a shipped profile
/// is given with its directory, so that a run does not depend on the files in the working directory.
fn shipped_name(word: &OsStr) -> Option<&str> {
    let word = word.to_str()?;
    word.strip_prefix("shipped:").or_else(|| Profile::SHIPPED.contains(&word).then_some(word))
}

/// A shipped profile, or a profile from a file.
pub(crate) fn find_profile(word: &OsStr) -> Result<Profile, CliError> {
    if let Some(class) = shipped_name(word) {
        return shipped(class);
    }
    let path = Path::new(word);
    if !path.exists() {
        let (name, names) = (path.display(), Profile::SHIPPED.join(", "));
        return Err(CliError::Wrong(anyhow!(
            "--profile {name}: no such file; help: give a file, or one of the shipped profiles {names}"
        )));
    }
    if path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let name = path.display();
        return Err(CliError::Wrong(anyhow!("--profile {name}: not a regular file; help: give a file")));
    }
    let text = read_file(path)?;
    Profile::read(&path.display().to_string(), &text).map_err(|error| CliError::Wrong(error.into()))
}

pub(crate) fn shipped(class: &str) -> Result<Profile, CliError> {
    Profile::shipped(class).ok_or_else(|| {
        let names = Profile::SHIPPED.join(", ");
        CliError::Wrong(anyhow!("--profile shipped:{class}: no such profile; the shipped profiles are {names}"))
    })
}
