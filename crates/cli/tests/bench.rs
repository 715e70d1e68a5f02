//! `vramp bench`: workloads are measured, and their hashes show that they were computed.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use serde_json::Value;

use crate::program::{ends_with, json, vramp};

#[test]
fn a_line_of_json_has_every_key_and_the_same_hash_each_time() {
    let args = ["bench", "gauss9_s2", "--cpu", "--size", "64x48", "--seconds", "0.001", "--json"];
    let [one, two] = [(); 2].map(|()| json(&ends_with(0, vramp(&args))));
    for key in ["peer", "work", "size", "threads", "backend", "ms_median", "ms_min", "cpu_ms", "fps", "reps", "hash"] {
        assert!(!one[key].is_null(), "{key} in {one}");
    }
    assert_eq!([&one["peer"], &one["work"], &one["size"], &one["backend"]], ["vramp", "gauss9_s2", "64x48", "cpu"]);
    assert!(one["ms_min"].as_f64() <= one["ms_median"].as_f64() && one["ms_min"].as_f64() > Some(0.0), "{one}");
    assert_eq!(one["hash"], two["hash"]);
}

#[test]
fn the_device_computes_what_the_cpu_does() {
    let args = |side| ["bench", "gauss9_s2", "chain5", side, "--size", "64x48", "--seconds", "0.001", "--json"];
    let hashes = |side| {
        let ran = ends_with(0, vramp(&args(side)));
        let lines: Vec<Value> = ran.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2, "{}", ran.out);
        assert!(lines.iter().all(|line| (line["backend"] == "cpu") == (side == "--cpu")), "{lines:?}");
        lines.iter().map(|line| line["hash"].to_string()).collect::<Vec<_>>()
    };
    assert_eq!(hashes("--cpu"), hashes("--gpu"));
}

#[test]
fn tensor_workloads_run_in_the_requested_space_and_print_every_key() {
    for (side, backend) in [("--cpu", "cpu"), ("--gpu", "vulkan")] {
        let args = ["bench", "op_dispatch_overhead_add16", side, "--seconds", "0.001", "--json"];
        let line = json(&ends_with(0, vramp(&args)));
        assert_eq!([&line["peer"], &line["work"], &line["size"]], ["vramp", "op_dispatch_overhead_add16", "16"]);
        assert_eq!(line["backend"], backend);
        for key in ["threads", "ms_median", "ms_min", "cpu_ms", "fps", "reps", "hash"] {
            assert!(!line[key].is_null(), "{key} in {line}");
        }
    }
}

#[test]
fn every_work_runs() {
    let ran = ends_with(0, vramp(&["bench", "--cpu", "--size", "32x24", "--seconds", "0.0001"]));
    let rows = ran.out.lines().skip_while(|line| !line.starts_with("work ")).count();
    assert_eq!(rows, 1 + vramp::bench::WORKLOADS.len() + vramp::bench::TENSOR_WORKLOADS.len(), "{}", ran.out);
}

#[test]
fn a_work_that_does_not_exist_is_answered_with_the_nearest_one() {
    let ran = ends_with(2, vramp(&["bench", "gaus9_s2"]));
    assert!(ran.err.contains("gauss9_s2"), "{}", ran.err);
    let ran = ends_with(2, vramp(&["bench", "invert", "--fps", "30"]));
    assert!(ran.err.contains("--fps does not apply to `vramp bench`"), "{}", ran.err);
}
