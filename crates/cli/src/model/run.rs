//! `vramp model run`: runs a model on arrays from files, writes its outputs, and reports times.
//!
//! Everything that can be wrong with the request is checked before the model runs. The first run is not measured, because
//! it compiles kernels and touches memory for the first time.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Map, Value};
use vramp::bench::cpu_time;
use vramp::gpu::{Counters, Device};
use vramp::model::{Model, ModelError};
use vramp::plan::{DType, bytes_in_words};
use vramp::tensor::{Context, Tensor, TensorError};

use super::device::{backend_of, context};
use super::ending::Ending;
use super::inputs::InputFiles;
use super::outputs::OutputFiles;
use super::ports::{printable, shape};
use super::progress::Progress;
use super::{failure, inspect};
use crate::args::ModelRunArgs;
use crate::failure::CliError;
use crate::page;

pub(super) fn run(args: &ModelRunArgs) -> Result<(), CliError> {
    let ending = Ending::listen()?;
    let begun = Instant::now();
    let model = super::open(&args.model)?;
    let ops = model.facts().unsupported;
    if !ops.is_empty() {
        // Other settings that are not supported are found only for sizes of the inputs.
        let all = model.cost(&inspect::smallest(model.inputs())).err();
        let all = all.filter(|error| matches!(error, ModelError::UnsupportedOps { .. }));
        return Err(failure(&args.model, &all.unwrap_or(ModelError::UnsupportedOps { ops })));
    }
    let files = InputFiles::open(&args.input, model.inputs())?;
    let written = args.output.as_deref().map(|folder| {
        let read = files.paths().chain([args.model.as_path()]);
        OutputFiles::prepare(folder, model.outputs(), read, &ending)
    });
    let mut written = written.transpose()?;
    let context = context(args)?;
    let device = context.device();
    if args.verbose {
        page::words(&device.as_ref().map_or_else(|| "runs on the CPU".to_owned(), |device| device.why().to_owned()));
    }
    let inputs = files.tensors(&context)?;
    let load = begun.elapsed();

    let repetitions = args.repeat.unwrap_or(u32::from(args.json)) as usize;
    let runs = Runs::measure(&model, &context, &inputs, repetitions, Progress::of(repetitions, args));
    let runs = runs.map_err(|error| failure(&args.model, &error))?;
    if device.is_some() && context.device().is_none() && !args.quiet {
        page::warning("the device was lost; the results are those of the CPU");
    }
    if let Some(written) = &mut written {
        let types = model.output_types(&context, &inputs).map_err(|error| failure(&args.model, &error))?;
        written.write(model.outputs(), &types, &runs.outputs, &ending)?;
    }
    let figures = Figures::of(&runs, &context, load);
    let text = if args.json {
        let line = Line { figures, outputs: shapes(&model, &runs.outputs) };
        serde_json::to_string(&line).map_err(|error| CliError::Failed(error.into()))? + "\n"
    } else {
        text(&model, &runs.outputs, written.as_ref().map_or(&[], OutputFiles::paths), &figures)
    };
    page::result(text.as_bytes())
}

/// All runs of a model on the same inputs.
struct Runs {
    outputs: Vec<Tensor>,
    first: Duration,
    /// Wall time and CPU time of each run after the first.
    times: Vec<(Duration, Option<Duration>)>,
    /// What the device did in these runs.
    device: Counters,
    dispatches: u64,
}

impl Runs {
    fn measure(
        model: &Model,
        context: &Context,
        inputs: &[Tensor],
        repetitions: usize,
        mut progress: Progress,
    ) -> Result<Runs, ModelError> {
        let counters = || context.device().as_ref().map(Device::counters).unwrap_or_default();
        let once = || {
            let outputs = model.run_in(context, inputs)?;
            download(context, &outputs)?;
            Ok::<_, ModelError>(outputs)
        };
        let (before, begun) = (counters(), Instant::now());
        let mut outputs = once()?;
        let first = begun.elapsed();
        let after_first = counters();
        let mut times = Vec::with_capacity(repetitions);
        for done in 1..=repetitions {
            // The memory of the results is free for the next ones.
            outputs.clear();
            let (cpu, wall) = (cpu_time(), Instant::now());
            outputs = once()?;
            let wall = wall.elapsed();
            let cpu = cpu_time().zip(cpu).map(|(after, before)| after.saturating_sub(before));
            times.push((wall, cpu));
            progress.done(done, wall.as_secs_f64() * 1e3);
        }
        let device = counters().since(&after_first);
        let dispatches = match repetitions as u64 {
            0 => after_first.since(&before).dispatches,
            repetitions => device.dispatches / repetitions,
        };
        Ok(Runs { outputs, first, times, device, dispatches })
    }
}

/// Reads results that are on a device. Results on the host are already computed.
fn download(context: &Context, outputs: &[Tensor]) -> Result<(), TensorError> {
    if context.device().is_none() {
        return Ok(());
    }
    let floats: Vec<&Tensor> = outputs.iter().filter(|tensor| tensor.dtype() == DType::F32).collect();
    context.read_all::<f32>(&floats)?;
    for tensor in outputs {
        match tensor.dtype() {
            DType::F32 => {}
            DType::F16 => drop(tensor.read::<half::f16>()?),
            DType::I32 => drop(tensor.read::<i32>()?),
            DType::U32 => drop(tensor.read::<u32>()?),
            DType::U8 => drop(tensor.read::<u8>()?),
            DType::I8 => drop(tensor.read::<i8>()?),
        }
    }
    Ok(())
}

/// Times and counts. The names of the fields are the JSON keys.
#[derive(Serialize)]
struct Figures {
    backend: String,
    device: Option<String>,
    threads: usize,
    reps: usize,
    load_ms: f64,
    first_ms: f64,
    ms_median: Option<f64>,
    ms_min: Option<f64>,
    /// The smallest CPU time of a run after the first.
    cpu_ms: Option<f64>,
    /// Of one run.
    dispatches: u64,
    /// These are of all runs after the first.
    submits: u64,
    compiles: u64,
    gpu_allocs: u64,
    memory: Memory,
}

#[derive(Serialize)]
#[expect(clippy::struct_field_names, reason = "the keys of the line, with their unit")]
struct Memory {
    host_bytes: u64,
    device_bytes: u64,
    peak_bytes: u64,
}

#[derive(Serialize)]
struct Line {
    #[serde(flatten)]
    figures: Figures,
    outputs: Map<String, Value>,
}

impl Figures {
    fn of(runs: &Runs, context: &Context, load: Duration) -> Figures {
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let mut walls: Vec<Duration> = runs.times.iter().map(|(wall, _)| *wall).collect();
        walls.sort_unstable();
        let memory = context.memory();
        Figures {
            backend: backend_of(context),
            device: context.device().map(|device| device.adapter().name.clone()),
            threads: context.threads(),
            reps: runs.times.len(),
            load_ms: ms(load),
            first_ms: ms(runs.first),
            ms_median: walls.get(walls.len() / 2).copied().map(ms),
            ms_min: walls.first().copied().map(ms),
            cpu_ms: runs.times.iter().filter_map(|(_, cpu)| *cpu).min().map(ms),
            dispatches: runs.dispatches,
            submits: runs.device.submits,
            compiles: runs.device.compiles,
            gpu_allocs: runs.device.gpu_allocs,
            memory: Memory {
                host_bytes: memory.host_bytes,
                device_bytes: memory.device_bytes,
                peak_bytes: memory.peak_bytes,
            },
        }
    }
}

fn shapes(model: &Model, outputs: &[Tensor]) -> Map<String, Value> {
    let pairs = model.outputs().iter().zip(outputs);
    pairs.map(|(port, tensor)| (port.name.clone(), Value::from(tensor.shape().lengths()))).collect()
}

fn text(model: &Model, outputs: &[Tensor], paths: &[PathBuf], figures: &Figures) -> String {
    let Figures { backend, device, threads, reps, first_ms, ms_median, ms_min, cpu_ms, dispatches, memory, .. } =
        figures;
    let rows: Vec<[String; 4]> = model
        .outputs()
        .iter()
        .zip(outputs)
        .enumerate()
        .map(|(at, (port, tensor))| {
            let path = paths.get(at).map_or_else(String::new, |path| path.display().to_string());
            [printable(&port.name), shape(tensor.shape().lengths()), port.dtype.name().into_owned(), printable(&path)]
        })
        .collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths = [width(0), width(1), width(2)];
    let mut out = String::new();
    for [name, shape, dtype, path] in &rows {
        let [a, b, c] = widths;
        let _ = writeln!(out, "{}", format!("{name:a$}  {shape:b$}  {dtype:c$}  {path}").trim_end());
    }
    let place = match device {
        Some(name) => format!("{name} ({backend})"),
        None if *threads == 1 => "the CPU, 1 thread".to_owned(),
        None => format!("the CPU, {threads} threads"),
    };
    let _ = write!(out, "on {place}: first run {first_ms:.2} ms");
    if let (Some(median), Some(min)) = (ms_median, ms_min) {
        let cpu = cpu_ms.map_or_else(String::new, |ms| format!(", CPU time {ms:.2} ms"));
        let _ = write!(out, "; then {reps}: median {median:.2} ms, best {min:.2} ms{cpu}");
    }
    if device.is_some() {
        let _ = write!(out, "; {dispatches} dispatches");
    }
    let _ = writeln!(out, "; memory: peak {}", bytes_in_words(memory.peak_bytes));
    out
}
