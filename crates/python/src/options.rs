//! The options of a pipeline, from keyword arguments.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use vramp::plan::{OnLoss, Rate, RunOptions, Space};

use crate::values::text_of;

/// The names of all options, for messages.
const NAMES: &[&str] = &[
    "gpu",
    "threads",
    "frames",
    "seconds",
    "fps",
    "place",
    "latency",
    "memory",
    "gpu_memory",
    "strict",
    "fusion",
    "on_loss",
    "watch",
    "nominal_time",
];

fn wrong(key: &str, expected: &str) -> PyErr {
    PyValueError::new_err(format!("{key}: expected {expected}"))
}

fn space_of(word: &str) -> PyResult<Space> {
    word.parse().map_err(|_| wrong("place", "`cpu` or `gpu` for every handler"))
}

/// Reads the options. `gpu`: `None` lets the planner decide, `True` requires the GPU, `False` never opens one.
pub(crate) fn of(gpu: Option<bool>, given: Option<&Bound<'_, PyDict>>) -> PyResult<RunOptions> {
    let mut options = match gpu {
        None => RunOptions::new(),
        Some(true) => RunOptions::new().require_gpu(),
        Some(false) => RunOptions::new().only(Space::Cpu),
    };
    for (key, value) in given.into_iter().flatten() {
        if value.is_none() {
            continue;
        }
        let key: String = key.extract()?;
        options = match key.as_str() {
            "threads" => {
                let threads: u32 = value.extract()?;
                if threads == 0 {
                    return Err(wrong("threads", "1 or more"));
                }
                options.threads(threads)
            }
            "frames" => options.frames(value.extract()?),
            "seconds" => {
                let seconds: f64 = value.extract()?;
                if !(seconds.is_finite() && seconds >= 0.0) {
                    return Err(wrong("seconds", "a number, 0 or more"));
                }
                options.longest_ms((seconds * 1e3) as u64)
            }
            "fps" => {
                let rate: Rate = text_of(&value)?.parse().map_err(|_| wrong("fps", "frames per second such as 30"))?;
                options.pace(rate)
            }
            "place" => {
                let mut options = options;
                for (handler, space) in value.cast::<PyDict>().map_err(|_| wrong("place", "a dict"))? {
                    options = options.place(handler.extract::<String>()?, space_of(&space.extract::<String>()?)?);
                }
                options
            }
            "latency" => options.latency_ms(value.extract::<f64>()? * 1e3),
            "memory" => options.memory_bytes(Space::Cpu, value.extract()?),
            "gpu_memory" => options.memory_bytes(Space::Gpu, value.extract()?),
            "strict" => options.strict(value.extract()?),
            "fusion" => options.fusion(value.extract()?),
            "watch" => options.watch(value.extract()?),
            "nominal_time" if value.extract()? => options.nominal_time(),
            "nominal_time" => options,
            "on_loss" => options.on_loss(match value.extract::<String>()?.as_str() {
                "reopen" => OnLoss::Reopen,
                "cpu" => OnLoss::Cpu,
                "stop" => OnLoss::Stop,
                _ => return Err(wrong("on_loss", "`reopen`, `cpu` or `stop`")),
            }),
            other => {
                let near = vramp::plan::catalog::nearest(other, NAMES.iter().copied());
                let help = near.map_or_else(
                    || format!("the options are {}", NAMES.join(", ")),
                    |near| format!("did you mean `{near}`?"),
                );
                return Err(PyTypeError::new_err(format!("Pipeline has no option `{other}`; {help}")));
            }
        };
    }
    Ok(options)
}
