//! `vramp devices --calibrate`: measures this machine and stores the profile.
//!
//! The library measures and decides where the profile is stored; this module shows progress and prints the figures. An
//! interrupted calibration stores nothing and exits with 130. If standard error is not a terminal, progress is shown
//! only with `-v`.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use vramp::calibrate::{CalibrateError, Calibration, CalibrationProgress, keep, known};
use vramp::gpu::{Adapter, Device};
use vramp::machine;
use vramp::plan::{FigureOrigin, Profile};

use crate::args::CalibrateArgs;
use crate::failure::CliError;
use crate::{interrupt, page, request};

pub(crate) fn run(args: &CalibrateArgs, json: bool) -> Result<(), CliError> {
    let device = open(args)?;
    let stop = Arc::new(AtomicBool::new(false));
    let requested = Arc::clone(&stop);
    interrupt::on_request(move || {
        if requested.swap(true, Ordering::AcqRel) {
            vramp::runtime::leave_at_once(130);
        }
    })?;
    let started = Instant::now();
    let bar = bar();
    let calibration = Calibration::on(device.as_ref()).stop_when(stop).listener(|progress| {
        hear(progress, bar.as_ref(), args.verbose);
    });
    let measured = calibration.measure();
    if let Some(bar) = &bar {
        bar.finish_and_clear();
    }
    let profile = measured.map_err(|error| match error {
        CalibrateError::Interrupted => CliError::Interrupted,
        error @ CalibrateError::Pipeline(_) => CliError::Failed(error.into()),
    })?;
    // Plans query no driver: they find the profile through the stored list of adapters.
    if device.is_some() && machine::known_adapters().is_none() {
        machine::list_adapters();
    }
    let kept = keep(&profile, device.as_ref().map(Device::adapter));
    let kept = kept.map(|path| path.display().to_string());
    if json {
        let line = json!({ "name": profile.name(), "kept": kept, "profile": profile });
        return page::result(format!("{line}\n").as_bytes());
    }
    let mut text = figures(&profile);
    let seconds = started.elapsed().as_secs_f64();
    let _ = match kept {
        Some(path) => {
            writeln!(text, "\nmeasured in {seconds:.0} s, stored in {path}; plans call this profile {}", profile.name())
        }
        None => writeln!(text, "\nmeasured in {seconds:.0} s; not stored, because there is no cache directory"),
    };
    page::result(text.as_bytes())
}

/// When an adapter's figures were measured, as text.
pub(crate) fn when(adapter: Option<&Adapter>) -> String {
    let Some(known) = known(adapter) else {
        return "not measured on this machine (help: `vramp devices --calibrate`)".to_owned();
    };
    let ago = SystemTime::now().duration_since(known.at).unwrap_or_default();
    format!("measured {}", ago_words(ago))
}

fn ago_words(ago: Duration) -> String {
    match ago.as_secs() {
        0..120 => "just now".to_owned(),
        seconds @ 120..7_200 => format!("{} minutes ago", seconds / 60),
        seconds @ 7_200..172_800 => format!("{} hours ago", seconds / 3_600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

/// The device to measure. `None` with `--cpu`, or if no device can be opened and the options name no device.
fn open(args: &CalibrateArgs) -> Result<Option<Device>, CliError> {
    if args.cpu {
        return Ok(None);
    }
    match request::named_choice(args.backend, args.device.as_ref()).open() {
        Ok(device) => Ok(Some(device)),
        Err(why) if args.backend.is_some() || args.device.is_some() => Err(CliError::NoPlan(why.into())),
        Err(why) => {
            page::warning(&format!("{why}; measuring only the CPU"));
            Ok(None)
        }
    }
}

fn bar() -> Option<ProgressBar> {
    page::is_watched().then(|| {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:24} {pos:>3} of {len}  {msg}");
        bar.set_style(style.expect("the template above is well formed"));
        bar
    })
}

fn hear(progress: &CalibrationProgress, bar: Option<&ProgressBar>, verbose: bool) {
    let CalibrationProgress { done, of, what } = progress;
    match bar {
        Some(bar) => {
            bar.set_length(*of as u64);
            bar.set_position(*done as u64);
            bar.set_message(what.clone());
        }
        None if verbose => page::words(&format!("{done:>3} of {of}  {what}")),
        None => {}
    }
}

/// The measured profile, one figure per line.
fn figures(profile: &Profile) -> String {
    let mut out = format!("{}\n\n", profile.about);
    for (key, figure) in profile.figures() {
        let estimated = if matches!(figure.origin, FigureOrigin::Estimate(_)) { "  an estimate" } else { "" };
        let _ = writeln!(out, "{key:44} {:>14}{estimated}", figure.value);
    }
    if let Some(gpu) = &profile.gpu {
        for (what, variant) in
            [("pixel", gpu.variants.pixel), ("sample", gpu.variants.sample), ("tap", gpu.variants.tap)]
        {
            let (workgroup, pixels) = (variant.workgroup, variant.pixels_per_invocation);
            let wide = if variant.wide { ", wide" } else { "" };
            let _ = writeln!(out, "{:44} {workgroup:>8} x {pixels} pixels{wide}", format!("gpu.variants.{what}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_shown_in_words() {
        assert_eq!(ago_words(Duration::from_secs(5)), "just now");
        assert_eq!(ago_words(Duration::from_secs(600)), "10 minutes ago");
        assert_eq!(ago_words(Duration::from_secs(10_000)), "2 hours ago");
        assert_eq!(ago_words(Duration::from_secs(864_000)), "10 days ago");
    }

    #[test]
    fn a_profile_is_shown_with_what_is_only_estimated() {
        let text = figures(&Profile::shipped("software").unwrap());
        assert!(text.contains("gpu.rates.tap") && text.contains("an estimate"), "{text}");
    }
}
