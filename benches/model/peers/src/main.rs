//! Other Rust runtimes of ONNX models, as peers of vramp's models.
//!
//! usage: `vramp-model-peers rten [THREADS]` or `vramp-model-peers tract`. benches/model/protocol.py describes the lines
//! that the program reads and answers.

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rten::ThreadPool;
use rustix::time::{ClockId, clock_gettime};
use tract_onnx::prelude::{DatumExt, Framework, InferenceModelExt, IntoRunnable, Tensor, tvec};

const BATCH: Duration = Duration::from_millis(200);
const LEAST_RUNS: usize = 3;
const WARM_UPS: usize = 3;

/// Runs a loaded model once.
type Run = Box<dyn FnMut() -> anyhow::Result<()>>;

type Load = fn(&str, &[usize], usize) -> anyhow::Result<Run>;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let threads = words.get(1).map_or(Ok(1), |word| word.parse()).context("THREADS is not a number")?;
    let load: Load = match (words.first().map(String::as_str), threads) {
        (Some("rten"), _) => rten,
        (Some("tract"), 1) => tract,
        _ => bail!("usage: vramp-model-peers rten [THREADS], or vramp-model-peers tract"),
    };
    let mut loaded = BTreeMap::new();
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let answer = match answer(&line, &mut loaded, |path, shape| load(path, shape, threads)) {
            Ok([smallest, mean, runs]) => format!("ms {smallest:.4} {mean:.4} {runs}"),
            Err(error) => format!("error {}", format!("{error:#}").replace('\n', " ")),
        };
        writeln!(std::io::stdout().lock(), "{answer}")?;
    }
    Ok(())
}

fn answer(
    line: &str,
    loaded: &mut BTreeMap<String, Run>,
    load: impl Fn(&str, &[usize]) -> anyhow::Result<Run>,
) -> anyhow::Result<[f64; 3]> {
    if !loaded.contains_key(line) {
        let (path, shape) = line.split_once(' ').context("expected MODEL SHAPE")?;
        let shape: Vec<usize> = shape.split(',').map(str::parse).collect::<Result<_, _>>()?;
        let mut run = load(path, &shape)?;
        (0..WARM_UPS).try_for_each(|_| run())?;
        loaded.insert(line.to_owned(), run);
    }
    batch(loaded.get_mut(line).expect("the model was loaded above"))
}

/// The smallest and the mean CPU time of a run in milliseconds, and the count of runs.
fn batch(run: &mut Run) -> anyhow::Result<[f64; 3]> {
    let (end, mut times) = (Instant::now() + BATCH, Vec::new());
    while Instant::now() < end || times.len() < LEAST_RUNS {
        let start = cpu_ms();
        run()?;
        times.push(cpu_ms() - start);
    }
    let smallest = times.iter().copied().fold(f64::INFINITY, f64::min);
    Ok([smallest, times.iter().sum::<f64>() / times.len() as f64, times.len() as f64])
}

/// CPU time of the whole process, so that threads count.
fn cpu_ms() -> f64 {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    now.tv_sec as f64 * 1e3 + now.tv_nsec as f64 / 1e6
}

/// Values in 0..1, the same in every run.
fn values(shape: &[usize]) -> Vec<f32> {
    let mixed = (0..shape.iter().product::<usize>() as u32).map(|place| {
        let x = (place ^ (place >> 16)).wrapping_mul(0x85eb_ca6b);
        (x ^ (x >> 13)).wrapping_mul(0xc2b2_ae35)
    });
    mixed.map(|bits| (bits >> 8) as f32 / (1 << 24) as f32).collect()
}

fn rten(path: &str, shape: &[usize], threads: usize) -> anyhow::Result<Run> {
    let mut options = rten::ModelOptions::with_all_ops();
    options.prepack_weights(true);
    let model = options.load_file(path)?;
    let pool = std::sync::Arc::new(ThreadPool::with_num_threads(threads));
    let input = rten::Value::from_shape(shape, values(shape))?;
    let name = *model.input_ids().first().context("the model has no inputs")?;
    Ok(Box::new(move || {
        let running = rten::RunOptions::default().with_thread_pool(Some(pool.clone()));
        model.run(vec![(name, input.as_view().into())], model.output_ids(), Some(running))?;
        Ok(())
    }))
}

fn tract(path: &str, shape: &[usize], _: usize) -> anyhow::Result<Run> {
    let model = tract_onnx::onnx()
        .model_for_path(path)?
        .with_input_fact(0, f32::fact(shape).into())?
        .into_optimized()?
        .into_runnable()?;
    let input = Tensor::from_shape(shape, &values(shape))?;
    Ok(Box::new(move || {
        model.run(tvec!(input.clone().into()))?;
        Ok(())
    }))
}
