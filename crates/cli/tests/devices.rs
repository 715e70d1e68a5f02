//! `vramp devices`, and the list that is stored for later runs.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::path::Path;

use crate::program::{Run, command, dir, ends_with, finish, json, vramp, vramp_piped};

const PIPELINE: &str = "pattern ! blur ! null";

fn caching(cache: &Path, args: &[&str]) -> Run {
    let mut command = command(args);
    command.env("XDG_CACHE_HOME", cache);
    finish(command)
}

#[test]
fn adapters_are_listed_with_what_is_known_and_which_one_is_taken() {
    let run = ends_with(0, vramp(&["devices"]));
    for words in ["0  ", "through", "driver", "memory", "in use", "load", "limits", "a run uses adapter 0", "shipped:"]
    {
        assert!(run.out.contains(words), "{words} is missing:\n{}", run.out);
    }
    assert_eq!(run.err, "", "drivers' complaints are kept away");
    let run = ends_with(0, vramp(&["devices", "--json"]));
    assert_eq!(run.out.lines().count(), 1);
    let all = json(&run);
    assert_eq!(all["chosen"], 0);
    let first = &all["adapters"][0];
    for key in ["index", "name", "backend", "kind", "software", "driver", "driver_version", "timestamps", "limits"] {
        assert!(!first[key].is_null(), "{key} is missing in {first}");
    }
    assert!(first["limits"]["binding_bytes"].as_u64().unwrap() >= 128 << 20);
}

/// More memory than any machine has.
const TOO_MUCH: &str = "1000T";
const SMALL: &str = "pattern size=64x48 frames=3 ! blur ! null";

fn without_drivers(args: &[&str]) -> Run {
    let mut command = command(args);
    command.env("VK_DRIVER_FILES", "/none.json").env("__EGL_VENDOR_LIBRARY_FILENAMES", "/none.json");
    finish(command)
}

#[test]
fn memory_and_load_are_readings_with_their_source_or_reasons_and_never_both() {
    let all = json(&ends_with(0, vramp(&["devices", "--json"])));
    for adapter in all["adapters"].as_array().unwrap() {
        for (value, from, why) in [
            ("memory_bytes", "memory_from", "memory_why"),
            ("used_bytes", "used_from", "used_why"),
            ("load_percent", "load_from", "load_why"),
        ] {
            let (value, from, why) = (&adapter[value], &adapter[from], &adapter[why]);
            assert_eq!(value.is_number(), from.is_string(), "{adapter}");
            assert!(value.is_number() || why.as_str().is_some_and(|why| !why.is_empty()), "{adapter}");
        }
        if adapter["software"] == true && cfg!(target_os = "linux") {
            assert!(adapter["memory_bytes"].as_u64().unwrap() > 1 << 20, "the host's memory");
            assert!(adapter["memory_from"].as_str().unwrap().contains("the host's"), "{adapter}");
            let load = adapter["load_percent"].as_f64();
            assert!(load.is_none_or(|percent| (0.0..=100.0).contains(&percent)), "{adapter}");
        }
    }
}

#[test]
fn too_little_memory_is_a_warning_with_numbers_and_the_cpu_takes_over() {
    let run = ends_with(0, vramp(&["run", SMALL, "--min-memory", TOO_MUCH, "--json"]));
    let (report, err) = (json(&run), &run.err);
    assert_eq!(report["backend"], "cpu", "the report names the backend that ran");
    assert_eq!(report["frames_out"], 3);
    assert!(err.contains("warning: no adapter meets the requirements: 0: "), "{err}");
    assert!(err.contains("1000000.0 GB are required") || err.contains("its memory is unknown"), "{err}");
    assert!(err.contains("everything runs on the cpu"), "{err}");
}

#[test]
fn a_required_device_matches_the_options_or_is_an_error() {
    for more in [&["--gpu"][..], &["--device", "0"], &["--backend", "vulkan"], &["--place", "blur0=gpu"]] {
        let run = ends_with(3, vramp(&[&["run", SMALL, "--min-memory", TOO_MUCH], more].concat()));
        assert!(run.err.starts_with("error: no adapter meets the requirements: 0: "), "{}", run.err);
    }
    let run = ends_with(0, vramp(&["run", SMALL, "--gpu", "--prefer", "any", "--json"]));
    assert_ne!(json(&run)["backend"], "cpu");
}

#[test]
fn the_cpu_that_takes_over_makes_the_same_pixels() {
    let pipeline = "pattern size=64x48 frames=3 label=false ! blur ! raw path=-";
    let (code, over, _) = vramp_piped(&["run", pipeline, "--min-memory", TOO_MUCH], b"");
    let (_, on_cpu, _) = vramp_piped(&["run", pipeline, "--cpu"], b"");
    let (_, on_gpu, _) = vramp_piped(&["run", pipeline, "--gpu"], b"");
    assert_eq!((code, over.len()), (0, 3 * 64 * 48 * 4));
    assert!(over == on_cpu && over == on_gpu);
}

#[test]
fn a_missing_gpu_is_a_warning_and_the_report_says_cpu() {
    let run = ends_with(0, without_drivers(&["run", SMALL, "--json"]));
    assert_eq!(json(&run)["backend"], "cpu");
    assert!(run.err.contains("warning: no graphics adapter answers"), "{}", run.err);
    assert!(run.err.contains("everything runs on the cpu"), "{}", run.err);
    let run = ends_with(0, without_drivers(&["run", SMALL, "--cpu"]));
    assert!(!run.err.contains("warning"), "no warning if the CPU was requested: {}", run.err);
    let run = ends_with(3, without_drivers(&["run", SMALL, "--gpu"]));
    assert!(run.err.contains("no graphics adapter answers"), "{}", run.err);
}

#[test]
fn a_plan_says_which_adapter_it_cannot_have() {
    let cache = dir("a_plan_says_which_adapter");
    ends_with(0, caching(&cache, &["devices"]));
    let run = ends_with(0, caching(&cache, &["plan", PIPELINE, "--json", "--min-memory", TOO_MUCH]));
    assert_eq!(json(&run)["profile"], "shipped:cpu");
    assert!(run.err.contains("everything would run on the CPU"), "{}", run.err);
    let run = ends_with(3, caching(&cache, &["plan", PIPELINE, "--min-memory", TOO_MUCH, "--gpu"]));
    assert!(run.err.contains("no adapter meets the requirements"), "{}", run.err);
}

#[test]
fn wishes_for_a_device_are_read_strictly_and_do_not_go_with_the_cpu() {
    for wrong in
        [&["--min-memory", "8X"][..], &["--max-load", "101"], &["--prefer", "fast"], &["--cpu", "--max-load", "5"]]
    {
        ends_with(2, vramp(&[&["run", SMALL], wrong].concat()));
    }
}

#[test]
fn without_a_driver_it_says_what_to_install() {
    let run = ends_with(0, without_drivers(&["devices"]));
    assert!(run.out.contains("no adapter found") && run.out.contains("install"), "{}", run.out);
}

#[test]
fn a_plan_uses_the_list_that_was_kept_and_only_under_the_same_circumstances() {
    let cache = dir("a_plan_uses_the_list");
    let plan = || caching(&cache, &["plan", PIPELINE, "--json"]);
    let before = ends_with(0, plan());
    assert_eq!(json(&before)["profile"], "shipped:integrated");
    assert!(before.err.contains("this machine is not known yet"), "{}", before.err);
    assert!(!cache.join("vramp").exists(), "a plan lists nothing and keeps nothing");

    ends_with(0, caching(&cache, &["devices"]));
    let kept = cache.join("vramp/adapters.json");
    let text = std::fs::read_to_string(&kept).unwrap();
    let list: serde_json::Value = serde_json::from_str(&text).unwrap();
    let class = format!("shipped:{}", list["adapters"][0]["kind"].as_str().unwrap());
    let after = ends_with(0, plan());
    assert_eq!(json(&after)["profile"], class.as_str());
    assert!(!after.err.contains("not measured"), "{}", after.err);
    let named = |name: &str| caching(&cache, &["plan", PIPELINE, "--json", "--device", name]);
    assert_eq!(json(&ends_with(0, named("0")))["profile"], class.as_str());
    let run = ends_with(3, named("no such card"));
    assert!(run.err.contains("no adapter is called `no such card`; there are: 0: "), "{}", run.err);

    let mut elsewhere = command(&["plan", PIPELINE, "--json"]);
    elsewhere.env("XDG_CACHE_HOME", &cache).env("VK_DRIVER_FILES", "/none.json");
    assert_eq!(json(&ends_with(0, finish(elsewhere)))["profile"], "shipped:integrated");

    for broken in ["", "{}", &text[..text.len() / 2]] {
        std::fs::write(&kept, broken).unwrap();
        assert_eq!(json(&ends_with(0, plan()))["profile"], "shipped:integrated");
    }
    ends_with(0, caching(&cache, &["run", "pattern size=16x16 frames=2 ! null"]));
    assert_eq!(std::fs::read_to_string(&kept).unwrap(), text, "a run makes it anew");
}

#[test]
fn a_list_that_is_no_longer_true_does_not_stop_a_run() {
    let cache = dir("a_list_that_is_no_longer_true");
    ends_with(0, caching(&cache, &["devices"]));
    let kept = cache.join("vramp/adapters.json");
    // Plans choose an adapter of the stored list that no longer exists; a run opens one that does.
    let text = std::fs::read_to_string(&kept).unwrap().replace("\"software\"", "\"discrete\"");
    std::fs::write(&kept, text).unwrap();
    ends_with(0, caching(&cache, &["run", "pattern size=16x16 frames=2 ! blur ! null"]));
}
