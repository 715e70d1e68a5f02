//! Calibration of any device: every figure is valid and has an origin, and plans use the figures.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use vramp::Pipeline;
use vramp::calibrate::{CalibrateError, Calibration, CalibrationProgress};
use vramp::gpu::Device;
use vramp::plan::catalog::{Class, Family};
use vramp::plan::{FigureOrigin, Profile, RunOptions, Space};

#[test]
fn a_hasty_calibration_has_every_figure_with_its_origin_and_plans_by_it() {
    let device = Device::choose().open().unwrap();
    let heard = RefCell::new(Vec::<CalibrationProgress>::new());
    let listen = |progress: &CalibrationProgress| heard.borrow_mut().push(progress.clone());
    let profile = Calibration::on(Some(&device)).hasty().listener(listen).measure().unwrap();
    assert_eq!(profile.name(), format!("calibrated:{}", device.adapter().name));
    let mut measured = 0;
    for (key, figure) in profile.figures() {
        assert!(figure.value.is_finite() && figure.value > 0.0, "{key} is {}", figure.value);
        assert_ne!(figure.origin, FigureOrigin::Unsaid, "{key} does not say where it comes from");
        measured += usize::from(matches!(&figure.origin, FigureOrigin::From(words) if words.starts_with("measured")));
    }
    assert!(measured > 60, "only {measured} figures were measured");
    let is_estimate = |figure: &vramp::plan::Figure| matches!(figure.origin, FigureOrigin::Estimate(_));
    let gpu = profile.gpu.as_ref().unwrap();
    assert!(!is_estimate(&gpu.rates.sort) && !is_estimate(&gpu.rates.tap), "what runs is measured");
    assert!(is_estimate(&gpu.rates.codec), "what does not run there is not");
    assert!(gpu.rates.of(Class::Tap) > 0.0);
    // A written profile can be read back.
    assert_eq!(Profile::read(profile.name(), &profile.write()), Ok(profile.clone()));

    // Every filter and drawing with a kernel has its own rate, except those that need a file.
    let registry = vramp::registry();
    let mut own = 0;
    for entry in registry.catalog().entries().filter(|e| matches!(e.family, Family::Filter | Family::Draw)) {
        let of = |rates: &vramp::plan::Rates| {
            let prefix = format!("{}.", entry.name);
            rates.handlers.keys().any(|key| key == entry.name || key.starts_with(&prefix))
        };
        if !["lut", "wgsl"].contains(&entry.name) {
            assert!(of(&profile.cpu.rates) && of(&gpu.rates), "the rate of {} was not measured", entry.name);
            own += 1;
        }
    }
    assert!(own >= 28, "only {own} handlers were looked at");

    let heard = heard.borrow();
    assert!(heard.iter().enumerate().all(|(at, progress)| progress.done == at && progress.of == heard.len() - 1));

    for text in ["pattern ! blur ! null", "pattern kind=ball ! markers ! waveform ! fps ! null"] {
        let spec = vramp::read(text, registry.catalog()).unwrap();
        let graph = registry.check(&spec).unwrap();
        let builder = Pipeline::from_graph(graph).profile(profile.clone());
        let auto = builder.plan().unwrap();
        assert_eq!(auto.profile, profile.name());
        for space in [Space::Cpu, Space::Gpu] {
            let order = builder.clone().options(RunOptions::new().only(space)).plan().unwrap();
            assert!(auto.cost_ns <= order.cost_ns, "{text}: {} against {} on the {space}", auto.cost_ns, order.cost_ns);
        }
    }
}

#[test]
fn an_interrupted_calibration_says_so_and_gives_nothing() {
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    let at_third = move |progress: &CalibrationProgress| asked.store(progress.done >= 2, Ordering::Release);
    let calibration = Calibration::on(None).hasty().stop_when(stop).listener(at_third);
    assert!(matches!(calibration.measure(), Err(CalibrateError::Interrupted)));
}

#[test]
fn a_host_that_computes_everything_again_and_again_measures_slower() {
    let plain = Calibration::on(None).hasty().measure().unwrap();
    let slowed = Calibration::on(None).hasty().slowed(64).measure().unwrap();
    // The slowed calibration does 64 times the work. Even with noise, it takes more than four times as long.
    let rate = |profile: &Profile| profile.cpu.rates.handlers["blur"].value;
    assert!(rate(&plain) > 4.0 * rate(&slowed), "{} against {}", rate(&plain), rate(&slowed));
    assert!(plain.gpu.is_none() && plain.name() == "calibrated:cpu");
}
