//! `--latency`: what is refused, what a plan predicts, and what the report of a run says.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use crate::program::{ends_with, json, vramp};

const SMALL: &str = "pattern size=64x48 frames=60 ! blur ! null";

#[test]
fn a_latency_that_is_not_a_time_is_refused_with_what_is_expected() {
    for word in ["0", "-5", "fast", "20 fps", "nan", "2h", ""] {
        let refused = ends_with(2, vramp(&["plan", SMALL, &format!("--latency={word}")]));
        assert!(
            refused.err.contains("--latency") && refused.err.contains("such as 20, 20ms"),
            "{word}: {}",
            refused.err
        );
        ends_with(2, vramp(&["run", SMALL, &format!("--latency={word}")]));
    }
}

#[test]
fn the_same_time_in_another_unit_is_the_same_need() {
    let asked = |word: &str| {
        let args = ["plan", SMALL, "--profile", "integrated", "--json", "--latency", word];
        json(&ends_with(0, vramp(&args)))["latency"]["asked_ms"].to_string()
    };
    assert_eq!(
        ["20", "20ms", "0.02s", "20000us", "20.5", "1s"].map(asked),
        ["20.0", "20.0", "20.0", "20.0", "20.5", "1000.0"]
    );
}

#[test]
fn commands_with_plans_of_their_own_refuse_it_in_words() {
    for (args, why) in [
        (vec!["bench", "chain5", "--latency", "20"], "`vramp bench` measures fixed workloads"),
        (vec!["demo", "--latency", "20"], "`vramp demo` compares fixed runs"),
        (vec!["run", SMALL, "--verify", "--latency", "20"], "--verify compares instead of running"),
    ] {
        let refused = ends_with(2, vramp(&args));
        let words = format!("--latency: {why}; use it with `vramp run`, `vramp top` or `vramp plan`");
        assert!(refused.err.contains(&words), "{}", refused.err);
    }
}

#[test]
fn a_plan_says_what_it_predicts_and_warns_if_nothing_fits() {
    let text = "pattern size=1920x1080 ! blur sigma=9 ! png path=never-%d.png";
    let fits = ends_with(0, vramp(&["plan", text, "--profile", "integrated", "--latency", "10s"]));
    assert!(fits.out.contains("\nlatency  ~") && fits.out.contains(", fits the 10000.00 ms"), "{}", fits.out);
    assert!(!fits.err.contains("no plan has a latency"), "{}", fits.err);
    let misses = ends_with(0, vramp(&["plan", text, "--profile", "integrated", "--latency", "0.5ms"]));
    assert!(misses.out.contains(", exceeds the 0.50 ms that --latency asks for"), "{}", misses.out);
    let warning = "warning: no plan has a latency of 0.5 ms: the shortest is ~";
    assert!(misses.err.contains(warning) && misses.err.contains("; png0 takes ~"), "{}", misses.err);
    let usual = ends_with(0, vramp(&["plan", text, "--profile", "integrated"]));
    assert!(!usual.out.contains("latency"), "{}", usual.out);
}

#[test]
fn the_report_has_the_need_the_prediction_and_the_median() {
    for side in ["--cpu", "--gpu"] {
        let ran = ends_with(0, vramp(&["run", SMALL, side, "--json", "--latency", "30s"]));
        let report = json(&ran);
        let need = &report["latency_need"];
        assert_eq!(need["asked_ms"], 30_000.0, "{need}");
        assert!(need["predicted_ms"].as_f64().unwrap() > 0.0, "{need}");
        assert_eq!(need["p50_ms"], report["latency_ms"]["p50"], "{need}");
        assert!(ran.err.contains(", within the 30000 ms of --latency"), "{}", ran.err);
        let usual = json(&ends_with(0, vramp(&["run", SMALL, side, "--json"])));
        assert!(usual.as_object().unwrap().contains_key("latency_need") && usual["latency_need"].is_null());
    }
}

#[test]
fn a_run_that_misses_its_need_names_the_slowest_handler_and_ends_well() {
    let text = "pattern size=640x480 frames=20 ! blur sigma=9 ! null";
    let ran = ends_with(0, vramp(&["run", text, "--cpu", "--latency", "1us"]));
    assert!(ran.err.contains("warning: no plan has a latency of 0.001 ms"), "{}", ran.err);
    assert!(ran.err.contains(", above the 0.001 ms of --latency; blur0 takes most of the time, "), "{}", ran.err);
}

#[test]
fn a_run_has_no_more_in_flight_than_its_plan_chose_for_the_need() {
    let text = "pattern size=320x240 frames=12 ! blur sigma=9 ! null";
    let need = ["--gpu", "--in-flight", "4", "--json", "--latency", "1us"];
    let plan = json(&ends_with(0, vramp(&[&["plan", text, "--profile", "software"], &need[..]].concat())));
    assert_eq!(plan["latency"]["in_flight"], 1, "{plan}");
    let report = json(&ends_with(0, vramp(&[&["run", text], &need[..]].concat())));
    assert_eq!(report["counters"]["max_in_flight"], 1, "{report}");
}
