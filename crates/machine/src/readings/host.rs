//! The host's memory (`/proc/meminfo`) and load (`/proc/stat`), for adapters that compute on the host or share the
//! host's memory.

use std::path::Path;
use std::time::Duration;

use vramp_gpu::{AdapterReading, Readout};

use super::files;

/// A reading with the host's memory and without a load. `because` is the reason why the adapter uses this memory.
pub(super) fn memory(root: &Path, because: &str) -> AdapterReading {
    let file = root.join("proc/meminfo");
    let from = format!("the host's memory, {}: {because}", file.display());
    let text = match files::text(&file) {
        Ok(text) => text,
        Err(why) => return AdapterReading::unavailable(why),
    };
    let bytes = |key: &str| kib(&text, key).ok_or_else(|| format!("{}: no `{key}` with a number", file.display()));
    let known =
        |bytes: Result<u64, String>| bytes.map_or_else(Readout::Unavailable, |bytes| Readout::is(bytes, from.clone()));
    let total = bytes("MemTotal");
    let used = total.clone().and_then(|total| Ok(total.saturating_sub(bytes("MemAvailable")?)));
    AdapterReading {
        memory_bytes: known(total),
        used_bytes: known(used),
        load_percent: Readout::unavailable("the load was not measured"),
    }
}

/// Ticks of all threads of the CPU since the machine started.
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuTimes {
    all: u64,
    idle: u64,
}

pub(super) fn cpu_times(root: &Path) -> Result<CpuTimes, String> {
    let file = root.join("proc/stat");
    let text = files::text(&file)?;
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "));
    // The numbers are user, nice, system, idle, iowait, irq, softirq and steal. Guest time, which follows, is part of
    // user.
    let ticks: Option<Vec<u64>> =
        line.map(|line| line.split_whitespace().take(8).map_while(|word| word.parse().ok()).collect());
    match ticks.as_deref() {
        Some(ticks @ [_, _, _, idle, rest @ ..]) => {
            Ok(CpuTimes { all: ticks.iter().sum(), idle: idle + rest.first().copied().unwrap_or(0) })
        }
        _ => Err(format!("{}: no `cpu` line with four numbers", file.display())),
    }
}

/// The CPU's load between two readings.
pub(super) fn load(
    before: Option<&Result<CpuTimes, String>>,
    after: Option<&Result<CpuTimes, String>>,
    took: Duration,
) -> Readout<f32> {
    match (before, after) {
        (Some(Ok(before)), Some(Ok(after))) => {
            let all = after.all.saturating_sub(before.all);
            if all == 0 {
                return Readout::unavailable("the CPU's times in /proc/stat did not change");
            }
            let idle = after.idle.saturating_sub(before.idle).min(all);
            let percent = 100.0 * (all - idle) as f32 / all as f32;
            Readout::is(
                percent,
                format!(
                    "the CPU's load over {:.1} s, /proc/stat: this adapter computes on the CPU",
                    took.as_secs_f32()
                ),
            )
        }
        (Some(Err(why)), _) | (_, Some(Err(why))) => Readout::unavailable(why.as_str()),
        _ => Readout::unavailable("the load was not measured"),
    }
}

fn kib(text: &str, key: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
    value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}
