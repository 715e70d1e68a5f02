//! Compares a report or a plan with the limits of `--budget`, and a report with `--require-gpu`.
//!
//! The limits of [`WHOLE_RUN`] apply to the whole run, and all other limits to the steady state. If the run is too short
//! to have a steady state, all limits apply to the whole run, with a warning. If no frame arrives at a sink, the run
//! fails every budget. `fps` is a minimum; every other limit is a maximum.
//!
//! A counter of the device is 0 if the device does nothing. Therefore, without `--cpu`, a budget that names such a
//! counter fails if no frame was on the device, and if frames were computed on the CPU after a device loss.

use anyhow::anyhow;
use vramp::plan::{Plan, PlanFigures};
use vramp::runtime::Report;
use vramp::runtime::observe::{NotOnDevice, PerFrame, RunCounters};

use crate::args::{CPU_FRAMES, CPU_HANDLERS, DEVICE_LOSSES, DROPS, FPS, LATENCY_MS, OF_DEVICE, SharedFlags, WHOLE_RUN};
use crate::failure::CliError;
use crate::page;

use super::words::counted;

/// Tolerance for rounding in sums of fractions.
const ROUNDING: f64 = 1e-9;

pub(crate) fn check(flags: &SharedFlags, report: &Report) -> Result<(), CliError> {
    let mut broken: Vec<String> = Vec::new();
    if flags.require_gpu
        && let Err(why) = report.check_gpu()
    {
        broken.push(not_on_device(&why));
    }
    let limits = limits(flags);
    if !limits.is_empty() && report.frames == 0 {
        broken.push("budget: no frame arrived at a sink, so the budget cannot be checked".to_owned());
    } else {
        broken.extend(exceeded(flags, &limits, report));
    }
    if broken.is_empty() { Ok(()) } else { Err(CliError::Budget(broken)) }
}

fn limits(flags: &SharedFlags) -> Vec<(&'static str, f64)> {
    flags.budget.iter().flat_map(|budget| budget.limits.clone()).collect()
}

fn not_on_device(why: &NotOnDevice) -> String {
    let help = match why {
        NotOnDevice::NoFrame => "give the source frames, or drop --require-gpu",
        NotOnDevice::OnCpu { .. } | NotOnDevice::Lost { .. } => {
            "`recoveries` in the report of --json lists each loss; `vramp doctor` checks the device"
        }
    };
    format!("--require-gpu: {why}; help: {help}")
}

fn exceeded(flags: &SharedFlags, limits: &[(&'static str, f64)], report: &Report) -> Vec<String> {
    let steady = report.steady.frames > 0;
    if !steady && !flags.quiet && limits.iter().any(|(name, _)| !WHOLE_RUN.contains(name)) {
        page::warning(&format!(
            "{} frames are too few for a steady state: the budget is checked over the whole run, including its start",
            report.frames
        ));
    }
    let figures = if steady { report.steady } else { whole(&report.counters, report.frames) };
    let mut broken: Vec<String> = beside_device(flags, limits, report).into_iter().collect();
    broken.extend(limits.iter().filter_map(|(name, limit)| {
        if WHOLE_RUN.contains(name) {
            return of_whole_run(name, *limit, report);
        }
        let Some(measured) = figures.named(name) else {
            return Some(format!(
                "budget: {name} cannot be checked, because this program does not count allocations; help: set \
                 vramp::runtime::CountingAllocator as its global allocator"
            ));
        };
        let over = if steady { figures.frames } else { report.frames };
        let words = || format!("{} per frame, at most {limit} allowed (over {over} frames)", rounded(measured));
        (measured > limit + ROUNDING).then(|| format!("budget exceeded: {name} {}", words()))
    }));
    broken
}

/// The reason why counters of the device do not describe the run, if the budget names such counters.
fn beside_device(flags: &SharedFlags, limits: &[(&'static str, f64)], report: &Report) -> Option<String> {
    let keys = keys_of_device(flags, limits)?;
    let (on_device, moved) = (report.placement.gpu_frames, report.placement.moved_frames);
    if on_device == 0 {
        return Some(format!("budget: {keys} count work of the device, but no frame was on the device; {REMEDY}"));
    }
    if report.placement.graphs_off_device > 0 {
        return Some(format!(
            "budget: {keys} count work of the device, but after an edit of the pipeline no frame was on the device; {REMEDY}"
        ));
    }
    (moved > 0).then(|| {
        format!(
            "budget: {keys} count work of the device, but {} computed on the cpu after the device was lost; help: see \
             `recoveries` in the report of --json, or add --cpu if all frames are to be computed on the cpu",
            if moved == 1 { "1 frame was".to_owned() } else { format!("{moved} frames were") }
        )
    })
}

const REMEDY: &str = "help: add --cpu if that is intended, otherwise --gpu or --require-gpu";

/// The keys of a budget that count work of the device; `None` if there are none, or if `--cpu` is given.
fn keys_of_device(flags: &SharedFlags, limits: &[(&'static str, f64)]) -> Option<String> {
    let keys: Vec<&str> = limits.iter().map(|(name, _)| *name).filter(|name| OF_DEVICE.contains(name)).collect();
    (!flags.cpu && !keys.is_empty()).then(|| keys.join(", "))
}

/// Compares a limit with a figure of the whole run; returns a message if the limit is broken.
fn of_whole_run(name: &str, limit: f64, report: &Report) -> Option<String> {
    let at_most = |measured: f64, words: &dyn Fn(String) -> String| {
        (measured > limit + ROUNDING).then(|| format!("budget exceeded: {name} {}", words(rounded(measured))))
    };
    let placement = &report.placement;
    match name {
        DROPS => {
            let (dropped, sent) = (report.dropped.sum(), report.frames_in);
            at_most(dropped as f64 / sent.max(1) as f64, &|measured| {
                format!(
                    "{measured} per frame, at most {limit} allowed ({dropped} of {sent} frames, including those left \
                     over when their consumer ended)"
                )
            })
        }
        CPU_HANDLERS => at_most(placement.cpu_handlers as f64, &|measured| {
            let names = report.between_on_cpu().collect::<Vec<_>>().join(", ");
            format!("{measured}, at most {limit} allowed (on the cpu: {names})")
        }),
        CPU_FRAMES => {
            let (count, all) = (placement.cpu_frames, placement.frames);
            at_most(count as f64 / all.max(1) as f64, &|measured| {
                format!("{measured} per frame, at most {limit} allowed ({count} of {all} frames)")
            })
        }
        DEVICE_LOSSES => at_most(placement.device_losses as f64, &|measured| {
            format!("{measured}, at most {limit} allowed (over the whole run)")
        }),
        FPS => (report.fps + ROUNDING < limit).then(|| {
            let (fps, seconds) = (rounded(report.fps), report.seconds);
            let frames = counted(report.frames as usize, "frame");
            format!("budget missed: {name} {fps}, at least {limit} required ({frames} in {seconds:.2} s)")
        }),
        LATENCY_MS => match report.latency_ms.p99 {
            Some(p99) => at_most(p99, &|measured| {
                format!("{measured} for 99 % of the frames, at most {limit} allowed (over {} frames)", report.frames)
            }),
            None => Some(format!("budget: {name} cannot be checked, because no latency was measured")),
        },
        _ => None,
    }
}

/// Refuses a budget of which a plan can check no key.
pub(crate) fn refuse_unplanned(flags: &SharedFlags) -> Result<(), CliError> {
    let limits = limits(flags);
    if limits.is_empty() || limits.iter().any(|(name, _)| is_planned(flags, name)) {
        return Ok(());
    }
    let keys: Vec<&str> = limits.iter().map(|(name, _)| *name).collect();
    let known = PerFrame::NAMES.into_iter().chain(WHOLE_RUN).filter(|name| is_planned(flags, name));
    Err(CliError::Wrong(anyhow!(
        "--budget {}: only a run can measure this; help: use `vramp run`, or a key that a plan can check: {}",
        keys.join(","),
        known.collect::<Vec<_>>().join(", ")
    )))
}

/// Whether a plan knows the figure of this key without running.
fn is_planned(flags: &SharedFlags, name: &str) -> bool {
    let submits = (flags.batch.unwrap_or(1) <= 1).then_some(0.0);
    PlanFigures { submits, ..PlanFigures::default() }.named(name).is_some()
}

/// Checks the limits whose figures a plan knows, and names the others in a note.
pub(crate) fn check_plan(flags: &SharedFlags, plan: &Plan) -> Result<(), CliError> {
    let limits = limits(flags);
    let figures = plan.figures(flags.batch.unwrap_or(1));
    let mut broken = Vec::new();
    if let Some(keys) = keys_of_device(flags, &limits)
        && !plan.uses_device()
    {
        broken.push(format!("budget: {keys} count work of the device, but the plan does not use a device; {REMEDY}"));
    }
    let mut unchecked = Vec::new();
    for (name, limit) in limits {
        let Some(planned) = figures.named(name) else {
            unchecked.push(name);
            continue;
        };
        if planned > limit + ROUNDING {
            let planned = rounded(planned);
            broken.push(if name == CPU_HANDLERS {
                let names = plan.between_on_cpu().map(|handler| handler.name.as_str()).collect::<Vec<_>>().join(", ");
                format!("budget exceeded: {name} {planned}, at most {limit} allowed (on the cpu: {names})")
            } else {
                format!("budget exceeded: {name} {planned} per frame, at most {limit} allowed (by the plan)")
            });
        }
    }
    if !unchecked.is_empty() && !flags.quiet {
        page::note(&format!("--budget: not checked, because only a run can measure it: {}", unchecked.join(", ")));
    }
    if broken.is_empty() { Ok(()) } else { Err(CliError::Budget(broken)) }
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
