//! Compares a report with the limits of `--budget`.
//!
//! The limit of `drops` applies to the whole run, and all other limits to the steady state. If the run is too short to
//! have a steady state, all limits apply to the whole run, with a warning. If no frame arrives at a sink, the run fails
//! every budget.

use vramp::runtime::Report;
use vramp::runtime::observe::{PerFrame, RunCounters};

use crate::args::{DROPS, SharedFlags};
use crate::failure::CliError;
use crate::page;

/// Tolerance for rounding in sums of fractions.
const ROUNDING: f64 = 1e-9;

pub(crate) fn check(flags: &SharedFlags, report: &Report) -> Result<(), CliError> {
    let limits: Vec<(&'static str, f64)> = flags.budget.iter().flat_map(|budget| budget.limits.clone()).collect();
    if limits.is_empty() {
        return Ok(());
    }
    if report.frames == 0 {
        return Err(CliError::Budget(vec![
            "budget: no frame arrived at a sink, so the budget cannot be checked".to_owned(),
        ]));
    }
    let steady = report.steady.frames > 0;
    if !steady && !flags.quiet {
        page::warning(&format!(
            "{} frames are too few for a steady state: the budget is checked over the whole run, including its start",
            report.frames
        ));
    }
    let figures = if steady { report.steady } else { whole(&report.counters, report.frames) };
    let broken = limits.into_iter().filter_map(|(name, limit)| {
        let Some(measured) = measured(name, &figures, report) else {
            return Some(format!(
                "budget: {name} cannot be checked, because this program does not count allocations; help: set \
                 vramp::runtime::CountingAllocator as its global allocator"
            ));
        };
        let over = if steady { figures.frames } else { report.frames };
        (measured > limit + ROUNDING).then(|| {
            if name == DROPS {
                let (dropped, sent) = (report.dropped.sum(), report.frames_in);
                return format!(
                    "budget exceeded: {name} {} per frame, at most {limit} allowed ({dropped} of {sent} frames, including \
                     those left over when their consumer ended)",
                    rounded(measured)
                );
            }
            format!(
                "budget exceeded: {name} {} per frame, at most {limit} allowed (over {over} frames)",
                rounded(measured)
            )
        })
    });
    match broken.collect::<Vec<_>>() {
        none if none.is_empty() => Ok(()),
        broken => Err(CliError::Budget(broken)),
    }
}

fn measured(name: &str, figures: &PerFrame, report: &Report) -> Option<f64> {
    match name {
        DROPS => Some(report.dropped.sum() as f64 / report.frames_in.max(1) as f64),
        _ => figures.named(name),
    }
}

/// Formats with up to four decimals, without trailing zeros.
fn rounded(figure: f64) -> String {
    let text = format!("{figure:.4}");
    let text = text.trim_end_matches('0').trim_end_matches('.').to_owned();
    if text == "0" { format!("{figure:e}") } else { text }
}

/// Averages per frame over the whole run.
fn whole(counted: &RunCounters, frames: u64) -> PerFrame {
    let per_frame = |count: u64| count as f64 / frames.max(1) as f64;
    PerFrame {
        frames,
        uploads: per_frame(counted.uploads),
        downloads: per_frame(counted.downloads),
        transfer_bytes: per_frame(counted.transfer_bytes),
        dispatches: per_frame(counted.dispatches),
        passes: per_frame(counted.passes),
        submits: per_frame(counted.submits),
        bind_groups: per_frame(counted.bind_groups),
        gpu_allocs: per_frame(counted.gpu_allocs),
        heap_allocs: counted.heap_allocs.map(per_frame),
        foreign_allocs: counted.foreign_allocs.map(per_frame),
        frame_copies: per_frame(counted.frame_copies),
        compiles_after_first_frame: per_frame(counted.compiles_after_first_frame),
        replans: per_frame(counted.replans),
        max_in_flight: counted.max_in_flight,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_shown_short_but_never_as_nothing() {
        assert_eq!([1.0, 1.5, 0.0333, 12.0].map(rounded), ["1", "1.5", "0.0333", "12"]);
        assert_eq!(rounded(0.000_01), "1e-5");
    }

    #[test]
    fn every_counter_is_divided_by_the_frames() {
        let counted = RunCounters { submits: 30, heap_allocs: Some(5), max_in_flight: 2, ..RunCounters::default() };
        let per_frame = whole(&counted, 10);
        assert_eq!((per_frame.submits, per_frame.heap_allocs, per_frame.max_in_flight), (3.0, Some(0.5), 2));
    }
}
