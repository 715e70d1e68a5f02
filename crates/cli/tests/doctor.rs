//! `vramp doctor` on this machine, and in broken environments.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use crate::program::{Run, command, dir, ends_with, finish, json, vramp};
use serde_json::Value;

/// Runs the doctor with these variables and a cache directory that works.
fn doctor(test: &str, vars: &[(&str, &str)], args: &[&str]) -> Run {
    let mut command = command(&[&["doctor"], args].concat());
    command.env("XDG_CACHE_HOME", dir(test)).env_remove("VK_ICD_FILENAMES").env_remove("VK_DRIVER_FILES");
    command.envs(vars.iter().copied());
    finish(command)
}

#[track_caller]
fn check<'v>(all: &'v Value, name: &str) -> &'v Value {
    let found = all["checks"].as_array().unwrap().iter().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("{name} is missing in {all}"))
}

#[test]
fn a_machine_that_works_is_tried_on_both_sides() {
    let run = ends_with(0, doctor("a_machine_that_works", &[], &[]));
    for words in
        ["vector instructions", "can be written", "trial on cpu", "trial on gpu", "its pixels equal those of the CPU"]
    {
        assert!(run.out.contains(words), "{words} is missing:\n{}", run.out);
    }
    assert!(!run.out.contains("problem") && run.err.is_empty(), "{}{}", run.out, run.err);
    let run = ends_with(0, doctor("a_machine_that_works_json", &[], &["--json"]));
    assert_eq!(run.out.lines().count(), 1);
    let all = json(&run);
    assert_eq!(all["problems"], 0);
    for name in ["cpu", "terminal", "cache", "ffmpeg", "adapter", "trial on cpu", "trial on gpu"] {
        let check = check(&all, name);
        assert!(["ok", "warning"].contains(&check["state"].as_str().unwrap()), "{check}");
    }
}

#[test]
fn a_variable_that_names_no_file_is_a_problem_with_what_to_type() {
    for name in ["VK_ICD_FILENAMES", "VK_DRIVER_FILES"] {
        let run = ends_with(1, doctor("a_variable_that_names", &[(name, "/nonexistent.json")], &[]));
        let line = run.out.lines().find(|line| line.starts_with("problem")).unwrap();
        assert!(line.contains(name) && line.contains("/nonexistent.json, which does not exist"), "{line}");
        assert!(run.out.contains(&format!("type: unset {name}")), "{}", run.out);
        assert!(run.err.contains("1 problem found"), "{}", run.err);
    }
    let run = ends_with(1, doctor("json_too", &[("VK_ICD_FILENAMES", "/nonexistent.json")], &["--json"]));
    assert_eq!(check(&json(&run), "VK_ICD_FILENAMES")["fix"], "unset VK_ICD_FILENAMES");
}

#[test]
fn without_any_driver_the_cpu_is_still_tried_and_that_is_not_a_problem() {
    let vars = [("VK_DRIVER_FILES", "/none.json"), ("__EGL_VENDOR_LIBRARY_FILENAMES", "/none.json")];
    let all = json(&ends_with(1, doctor("without_any_driver", &vars, &["--json"])));
    assert_eq!(all["problems"], 1, "only the variable: {all}");
    assert_eq!(check(&all, "adapter")["state"], "warning");
    assert!(check(&all, "adapter")["fix"].is_string());
    assert_eq!(check(&all, "trial on cpu")["state"], "ok");
}

#[test]
fn a_cache_that_cannot_be_written_is_a_warning_that_names_what_is_in_the_way() {
    // The default environment of these tests has a file in place of the directory.
    let run = ends_with(0, vramp(&["doctor", "--json"]));
    let all = json(&run);
    let cache = check(&all, "cache");
    assert_eq!(cache["state"], "warning");
    assert!(cache["words"].as_str().unwrap().contains("every run queries the drivers again"), "{cache}");
    assert!(cache["fix"].as_str().unwrap().starts_with("rm "), "{cache}");
    let all = json(&ends_with(0, doctor("nowhere", &[("XDG_CACHE_HOME", "/proc/none")], &["--json"])));
    assert_eq!(check(&all, "cache")["fix"], "unset XDG_CACHE_HOME");
}

#[test]
fn a_missing_ffmpeg_is_a_warning_with_what_to_type() {
    let all = json(&ends_with(0, doctor("ffmpeg_is_optional", &[("PATH", "")], &["--json"])));
    let ffmpeg = check(&all, "ffmpeg");
    assert_eq!(ffmpeg["state"], "warning");
    assert!(ffmpeg["words"].as_str().unwrap().contains("`video` and `camera` need ffmpeg"), "{ffmpeg}");
    assert!(ffmpeg["fix"].as_str().unwrap().contains("install"), "{ffmpeg}");
}

#[test]
fn a_variable_that_vramp_does_not_read_is_reported_with_its_option() {
    let all = json(&ends_with(0, doctor("a_variable_that_vramp", &[("WGPU_BACKEND", "opengl")], &["--json"])));
    let check = check(&all, "WGPU_BACKEND");
    assert_eq!(check["state"], "warning");
    assert!(check["words"].as_str().unwrap().contains("--backend"), "{check}");
}
