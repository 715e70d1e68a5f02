//! Pipelines that choose a device by memory or load: whether they use the device, and their warnings.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use vramp::gpu::{AdapterReading, OpenError, Readout, Unmet};
use vramp::prelude::*;
use vramp::{Error, machine};

const GB: u64 = 1_000_000_000;
const PIPELINE: &str = "pattern size=64x48 frames=3 ! blur ! null";

/// A reading of 2 GB of memory and a load of 80 %, instead of the values of the real device.
fn reading() -> AdapterReading {
    AdapterReading {
        memory_bytes: Readout::is(2 * GB, "a test"),
        used_bytes: Readout::unavailable("not read"),
        load_percent: Readout::is(80.0, "a test"),
    }
}

/// Whether a pipeline with this choice uses a device, and the warnings of its plan.
fn prepared(choice: vramp::gpu::Choice, only: Option<Space>) -> Result<(bool, Vec<String>), Error> {
    let options = RunOptions { only, ..RunOptions::default() };
    let pipeline = Pipeline::parse(PIPELINE).options(options).choice(choice).build()?;
    Ok((pipeline.device().is_some(), pipeline.plan().warnings.clone()))
}

#[test]
fn an_unmet_choice_falls_back_to_the_cpu_with_numbers_and_is_an_error_if_the_gpu_was_required() {
    let choice = || machine::choose().readings(|_| reading()).least_memory_bytes(8 * GB);
    let (on_device, warnings) = prepared(choice(), None).unwrap();
    assert!(!on_device);
    let said = warnings.iter().find(|words| words.contains("has 2.0 GB of memory, but 8.0 GB are required"));
    assert!(said.is_some_and(|words| words.ends_with("everything runs on the cpu")), "{warnings:?}");
    let error = prepared(choice(), Some(Space::Gpu)).unwrap_err();
    let Error::NoDevice(OpenError::Unmet { unmet }) = error else { panic!("{error}") };
    let wanted = Unmet::Memory { has_bytes: 2 * GB, wanted_bytes: 8 * GB };
    assert!(!unmet.is_empty() && unmet.iter().all(|(_, unmet)| *unmet == wanted), "{unmet:?}");
}

#[test]
fn a_busy_device_is_not_taken_and_one_that_is_idle_enough_is() {
    let choice = |most| machine::choose().readings(|_| reading()).most_load_percent(most);
    let (on_device, warnings) = prepared(choice(50.0), None).unwrap();
    assert!(
        !on_device && warnings.iter().any(|words| words.contains("is 80 % busy, but at most 50 % is allowed")),
        "{warnings:?}"
    );
    let (on_device, warnings) = prepared(choice(80.0), Some(Space::Gpu)).unwrap();
    assert!(on_device && !warnings.iter().any(|words| words.contains("busy")), "{warnings:?}");
}

#[test]
fn an_unknown_reading_meets_no_choice_and_is_reported() {
    let choice = machine::choose().readings(|_| AdapterReading::unavailable("not reported")).most_load_percent(99.0);
    let (on_device, warnings) = prepared(choice, None).unwrap();
    assert!(
        !on_device && warnings.iter().any(|words| words.contains("its load is unknown: not reported")),
        "{warnings:?}"
    );
}

#[test]
fn a_doubtful_reading_is_taken_with_a_warning() {
    let doubt = Some("three processes are hidden".to_owned());
    let reading =
        AdapterReading { load_percent: Readout::Is { value: 1.0, from: "a test".to_owned(), doubt }, ..reading() };
    let choice = machine::choose().readings(move |_| reading.clone()).most_load_percent(50.0);
    let (on_device, warnings) = prepared(choice, Some(Space::Gpu)).unwrap();
    assert!(on_device && warnings.iter().any(|words| words.contains("three processes are hidden")), "{warnings:?}");
}

#[test]
fn no_device_is_read_unless_a_choice_needs_it() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    let asked = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&asked);
    let choice = machine::choose().readings(move |_| {
        counting.fetch_add(1, Ordering::Relaxed);
        reading()
    });
    prepared(choice, Some(Space::Gpu)).unwrap();
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[test]
fn an_open_device_knows_why_it_was_taken() {
    let device = machine::choose().index(0).open().unwrap();
    assert_eq!(device.why(), "it was requested");
    assert!(!machine::choose().open().unwrap().why().is_empty());
}
