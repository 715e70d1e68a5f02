//! `vramp bench`: prints how long workloads take on this machine.
//!
//! The library measures (`vramp::bench`). Each measurement is printed as soon as it is done. There are no files to
//! finish, so Ctrl-C ends the program at once.

use std::path::PathBuf;

use anyhow::anyhow;
use vramp::bench::{
    Bench, BenchError, Effort, MODEL_WORKLOADS, Measurement, ModelWorkload, Suite, TENSOR_WORKLOADS, TensorWorkload,
    WORKLOADS, Workload,
};
use vramp::gpu::AdapterKind;
use vramp::plan::Profile;
use vramp::tensor::{Context, ErrorKind, HostPoolRules};
use vramp::{Error, PipelineBuilder, machine};

use crate::args::BenchArgs;
use crate::failure::{CliError, chainless};
use crate::{page, request};

pub(crate) fn run(args: &BenchArgs) -> Result<(), CliError> {
    refuse(args)?;
    let bench = Bench::new();
    let profile = args.flags.profile.as_deref().map(request::find_profile).transpose()?;
    let effort = Effort { run: args.seconds, ..Effort::default() };
    let works: Vec<&Workload> = WORKLOADS.iter().filter(|work| is_wanted(work, &args.what)).collect();
    if !args.json {
        let threads = args.flags.threads.map_or("all threads".to_owned(), |n| format!("{n} thread(s)"));
        page::result(format!("{} on {threads}\n\n{}", args.size, HEADING).as_bytes())?;
    }
    let options = request::options_for_all(&args.flags);
    for work in works {
        let measured =
            bench.measure(work, args.size, effort, &options, |builder| wished(args, profile.as_ref(), builder));
        let measured = measured.map_err(failure)?;
        page::result(if args.json { json(&measured)? } else { row(&measured) }.as_bytes())?;
    }
    let works: Vec<&TensorWorkload> =
        TENSOR_WORKLOADS.iter().filter(|work| is_wanted_tensor(work, &args.what)).collect();
    let folders = ModelWorkload::folders();
    let models = wanted_models(&args.what, &folders);
    if works.is_empty() && models.is_empty() {
        return Ok(());
    }
    let context = context(args)?;
    let measured = works.into_iter().map(|work| work.measure(&context, effort));
    for measured in measured.chain(models.into_iter().map(|work| work.measure(&folders, &context, effort))) {
        let measured = measured.map_err(failure)?;
        page::result(if args.json { json(&measured)? } else { row(&measured) }.as_bytes())?;
    }
    Ok(())
}

/// The models that are named, and with the name of the suite those that are there. Without names there are none, because
/// models are files that other machines do not have.
fn wanted_models(what: &[String], folders: &[PathBuf]) -> Vec<&'static ModelWorkload> {
    let suite = what.iter().any(|word| word == Suite::Model.name());
    let is_named = |work: &&ModelWorkload| what.iter().any(|word| word == work.name);
    let is_wanted = |work: &&ModelWorkload| is_named(work) || suite && work.file(folders).is_some();
    let wanted: Vec<&ModelWorkload> = MODEL_WORKLOADS.iter().filter(is_wanted).collect();
    // If no model is there, measuring fails and says how to fetch them.
    if wanted.is_empty() && suite { MODEL_WORKLOADS.iter().collect() } else { wanted }
}

/// The context for workloads on tensors and models. It uses the GPU if the options require a device or the machine has GPU hardware,
/// otherwise the CPU.
fn context(args: &BenchArgs) -> Result<Context, CliError> {
    let flags = &args.flags;
    let mut builder = Context::builder();
    if let Some(threads) = flags.threads {
        builder = builder.threads(threads as usize);
    }
    let memory = flags.memory.unwrap_or_default();
    if let Some(budget_bytes) = memory.cpu_bytes {
        let usual = HostPoolRules::default();
        builder =
            builder.host_pool(HostPoolRules { budget_bytes, keep_bytes: usual.keep_bytes.min(budget_bytes), ..usual });
    }
    let mut choice = request::choice(flags);
    if let Some(bytes) = memory.gpu_bytes {
        choice = choice.budget_bytes(bytes);
    }
    let requires_device = request::requires_device(flags);
    let is_hardware = || machine::adapter(&choice).is_ok_and(|adapter| adapter.kind != AdapterKind::Software);
    if flags.cpu || !requires_device && !is_hardware() {
        return Ok(builder.on_host());
    }
    match choice.open() {
        Ok(device) => builder.on(&device).map_err(|error| CliError::Failed(error.into())),
        Err(error) if requires_device => Err(CliError::NoPlan(error.into())),
        Err(_) => Ok(builder.on_host()),
    }
}

fn wished(args: &BenchArgs, profile: Option<&Profile>, builder: PipelineBuilder) -> PipelineBuilder {
    let builder = builder.choice(request::choice(&args.flags));
    match profile {
        Some(profile) => builder.profile(profile.clone()),
        None => builder,
    }
}

const HEADING: &str = "work                       backend        ms      min   cpu ms       fps  hash\n";

fn is_wanted(work: &Workload, what: &[String]) -> bool {
    what.is_empty() || what.iter().any(|word| word == work.name || word == work.suite.name())
}

fn is_wanted_tensor(work: &TensorWorkload, what: &[String]) -> bool {
    what.is_empty() || what.iter().any(|word| word == work.name || word == Suite::Tensor.name())
}

/// Refuses options that have no meaning for a benchmark.
fn refuse(args: &BenchArgs) -> Result<(), CliError> {
    let flags = &args.flags;
    flags.refuse_verify("bench")?;
    flags.refuse_latency("`vramp bench` measures fixed workloads")?;
    for (given, option) in [
        (flags.fps.is_some(), "--fps"),
        (!flags.place.is_empty(), "--place"),
        (!flags.budget.is_empty(), "--budget"),
        (flags.require_gpu, "--require-gpu"),
        (!flags.lose_device_at.is_empty(), "--lose-device-at"),
    ] {
        if given {
            return Err(CliError::Wrong(anyhow!("{option} does not apply to `vramp bench`; use it with `vramp run`")));
        }
    }
    Ok(())
}

fn failure(error: BenchError) -> CliError {
    match error {
        BenchError::Pipeline(error @ (Error::NoPlan(_) | Error::NoDevice(_))) => error.into(),
        BenchError::Tensor { ref problem, .. } if problem.kind() == ErrorKind::OutOfMemory => {
            CliError::NoPlan(chainless(&error))
        }
        BenchError::Model { ref problem, .. } if problem.is_out_of_memory() => CliError::NoPlan(chainless(&error)),
        error => CliError::Failed(chainless(&error)),
    }
}

fn json(measured: &Measurement) -> Result<String, CliError> {
    let line = serde_json::to_string(measured).map_err(|error| CliError::Failed(error.into()))?;
    Ok(line + "\n")
}

fn row(measured: &Measurement) -> String {
    let Measurement { work, backend, ms_median, ms_min, cpu_ms, fps, hash, .. } = measured;
    let cpu = cpu_ms.map_or("-".to_owned(), |ms| format!("{ms:.3}"));
    format!("{work:26} {backend:8} {ms_median:>8.3} {ms_min:>8.3} {cpu:>8} {fps:>9.0}  {hash}\n")
}
