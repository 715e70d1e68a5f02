//! `vramp devices --calibrate`, and its effect on later plans.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Run, command, dir, ends_with, finish, json, vramp};

fn caching(cache: &Path, args: &[&str]) -> Run {
    let mut command = command(args);
    command.env("XDG_CACHE_HOME", cache);
    finish(command)
}

fn kept_in(cache: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(cache.join("vramp")).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.to_string_lossy().contains("calibration")).collect()
}

#[test]
fn a_calibration_is_kept_and_used_until_it_no_longer_fits() {
    let cache = dir("a_calibration_is_kept");
    let run = ends_with(0, caching(&cache, &["devices", "--calibrate", "--cpu", "--json"]));
    assert_eq!(run.err, "", "without a terminal there is only the result");
    let said = json(&run);
    assert_eq!(said["name"], "calibrated:cpu");
    let call = &said["profile"]["cpu"]["call_us"];
    assert!(call["value"].as_f64().unwrap() > 0.0 && call["from"].as_str().unwrap().starts_with("measured"));
    let [kept] = &kept_in(&cache)[..] else { panic!("one file is kept") };
    assert_eq!(said["kept"], kept.to_str().unwrap());

    let plan = |more: &[&str]| {
        let args = [&["plan", "pattern ! blur ! null", "--cpu", "--json"], more].concat();
        json(&ends_with(0, caching(&cache, &args)))["profile"].as_str().unwrap().to_owned()
    };
    assert_eq!(plan(&[]), "calibrated:cpu");
    // The stored file is a profile like any other.
    assert_eq!(plan(&["--profile", kept.to_str().unwrap()]), kept.to_str().unwrap());

    let text = std::fs::read_to_string(kept).unwrap();
    for broken in [&text[..text.len() / 2], "", &text.replace("# vramp ", "# vramp 9")] {
        std::fs::write(kept, broken).unwrap();
        assert!(plan(&[]).starts_with("shipped:"), "a calibration that does not fit is not used");
    }
}

#[cfg(unix)]
#[test]
fn an_interrupted_calibration_keeps_nothing() {
    let cache = dir("an_interrupted_calibration");
    let mut command = command(&["devices", "--calibrate", "--cpu", "-v"]);
    let mut child = command.env("XDG_CACHE_HOME", &cache).spawn().unwrap();
    let mut steps = BufReader::new(child.stderr.take().unwrap()).lines();
    let first = steps.next().unwrap().unwrap();
    assert!(first.contains(" 0 of "), "{first}");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(kept_in(&cache), Vec::<PathBuf>::new());
}

#[test]
fn an_adapter_that_is_not_there_is_not_replaced_by_another() {
    let run = ends_with(3, vramp(&["devices", "--calibrate", "--device", "no such card"]));
    assert!(run.err.contains("no such card"), "{}", run.err);
    ends_with(2, vramp(&["devices", "--device", "0"]));
}
