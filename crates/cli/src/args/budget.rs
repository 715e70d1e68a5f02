//! The value of `--budget`: a list such as `submits=1,allocs=0`.
//!
//! Each key is a name from [`PerFrame::NAMES`] or from [`WHOLE_RUN`]; each limit is a number from 0 up. `run/budget.rs`
//! compares the limits with a report or a plan.

use vramp::runtime::observe::PerFrame;

/// The number of dropped frames, divided by the number of frames from the sources.
pub(crate) const DROPS: &str = "drops";
/// The number of handlers between sources and sinks that ran on the CPU.
pub(crate) const CPU_HANDLERS: &str = "cpu_handlers";
/// The share of the frames that such a handler computed on the CPU.
pub(crate) const CPU_FRAMES: &str = "cpu_frames";
/// How often a device was lost.
pub(crate) const DEVICE_LOSSES: &str = "device_losses";
/// Frames per second. The only key with a minimum instead of a maximum.
pub(crate) const FPS: &str = "fps";
/// The latency in milliseconds that 99 % of the frames do not exceed.
pub(crate) const LATENCY_MS: &str = "latency_ms";

/// The keys that cover the whole run. All other keys cover the steady state.
pub(crate) const WHOLE_RUN: [&str; 6] = [DROPS, CPU_HANDLERS, CPU_FRAMES, DEVICE_LOSSES, FPS, LATENCY_MS];

/// The keys that count work of the device. These counters stay at 0 if no frame is on the device.
pub(crate) const OF_DEVICE: [&str; 9] = [
    "uploads",
    "downloads",
    "transfers",
    "transfer_bytes",
    "submits",
    "dispatches",
    "passes",
    "bind_groups",
    "gpu_allocs",
];

#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Budget {
    /// In the order given on the command line.
    pub(crate) limits: Vec<(&'static str, f64)>,
}

impl Budget {
    pub(super) fn read(word: &str) -> Result<Budget, String> {
        Ok(Budget { limits: word.split(',').map(limit).collect::<Result<_, _>>()? })
    }
}

fn limit(word: &str) -> Result<(&'static str, f64), String> {
    let (key, number) = word.split_once('=').ok_or_else(|| format!("`{word}`: expected KEY=N, such as submits=1"))?;
    let mut names = PerFrame::NAMES.into_iter().chain(WHOLE_RUN);
    let name = names.find(|name| *name == key.trim()).ok_or_else(|| {
        let (steady, whole) = (PerFrame::NAMES.join(", "), WHOLE_RUN.join(", "));
        format!("`{}` is not a budget key; the keys are {steady}, {whole}", key.trim())
    })?;
    match number.trim().parse::<f64>() {
        Ok(limit) if limit.is_finite() && limit >= 0.0 => Ok((name, limit)),
        _ => Err(format!("`{}` is not a limit for {name}: expected a number from 0 up", number.trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_list_of_known_names_and_numbers() {
        let budget = Budget::read("uploads=0, submits=1.5,drops=0").unwrap();
        assert_eq!(budget.limits, [("uploads", 0.0), ("submits", 1.5), ("drops", 0.0)]);
        let budget = Budget::read("cpu_handlers=0,cpu_frames=0.5,device_losses=1,fps=59.9,latency_ms=40").unwrap();
        assert_eq!(budget.limits.len(), 5);
        for word in ["", "uploads", "uploads=", "uploads=-1", "uploads=nan", "colours=1", "uploads=1,"] {
            assert!(Budget::read(word).is_err(), "{word}");
        }
    }
}
