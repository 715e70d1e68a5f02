//! A device that is lost during `vramp run`: messages, report and exit code.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use crate::program::{ends_with, json, vramp};

const TEXT: &str = "pattern kind=noise size=32x24 frames=300 label=false ! blur ! delay 3 keep-times=true ! null";

#[test]
fn a_run_goes_on_says_so_and_counts_what_was_lost() {
    for (rule, goes_on) in [("reopen", "device"), ("cpu", "cpu")] {
        let run = ends_with(0, vramp(&["run", TEXT, "--gpu", "--lose-device-at", "100", "--on-loss", rule, "--json"]));
        let report = json(&run);
        let lost = report["dropped"]["device_lost"].as_u64().unwrap();
        assert!((1..=5).contains(&lost), "{lost}");
        assert_eq!(report["frames_out"].as_u64().unwrap(), 300 - lost);
        assert_eq!(report["recoveries"][0]["on"], goes_on);
        assert_eq!(report["recoveries"][0]["lost"], lost);
        assert!(run.err.contains("the device was lost (it was destroyed)"), "{}", run.err);
        assert!(run.err.contains(&format!("{lost} device lost")), "{}", run.err);
    }
}

#[test]
fn frames_are_counted_over_all_sources_of_the_device() {
    let text: Vec<String> = (0..8).map(|at| format!("pattern size=16x16 seed={at} frames=6 ! blur ! null")).collect();
    let run = ends_with(0, vramp(&["run", &text.join("; "), "--gpu", "--lose-device-at", "3,9", "--json"]));
    assert_eq!(json(&run)["recoveries"].as_array().map(Vec::len), Some(2), "{}", run.err);
}

#[test]
fn a_run_that_is_to_stop_fails_with_the_reason() {
    let run = ends_with(1, vramp(&["run", TEXT, "--gpu", "--lose-device-at", "100", "--on-loss", "stop"]));
    assert!(run.err.contains("error: ") && run.err.contains("the device was lost"), "{}", run.err);
}

#[test]
fn what_cannot_be_done_at_a_loss_is_refused() {
    let run = ends_with(2, vramp(&["run", TEXT, "--on-loss", "pray"]));
    assert!(run.err.contains("reopen") && run.err.contains("stop"), "{}", run.err);
    ends_with(2, vramp(&["run", TEXT, "--lose-device-at", "soon"]));
}
