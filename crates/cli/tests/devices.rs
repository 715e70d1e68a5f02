//! `vramp devices`, and the list that is kept for later runs.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

mod program;

use std::path::Path;

use program::{Run, command, dir, ends_with, finish, json, vramp};

const PIPELINE: &str = "pattern ! blur ! null";

fn caching(cache: &Path, args: &[&str]) -> Run {
    let mut command = command(args);
    command.env("XDG_CACHE_HOME", cache);
    finish(command)
}

#[test]
fn adapters_are_listed_with_what_is_known_and_which_one_is_taken() {
    let run = ends_with(0, vramp(&["devices"]));
    for words in ["0  ", "through", "driver", "limits", "a run takes 0", "shipped:"] {
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

#[test]
fn without_a_driver_it_says_what_to_install() {
    let mut command = command(&["devices"]);
    command.env("VK_DRIVER_FILES", "/none.json").env("__EGL_VENDOR_LIBRARY_FILENAMES", "/none.json");
    let run = ends_with(0, finish(command));
    assert!(run.out.contains("no adapter answers") && run.out.contains("install"), "{}", run.out);
}

#[test]
fn a_plan_uses_the_list_that_was_kept_and_only_under_the_same_circumstances() {
    let cache = dir("a_plan_uses_the_list");
    let plan = || caching(&cache, &["plan", PIPELINE, "--json"]);
    let before = ends_with(0, plan());
    assert_eq!(json(&before)["profile"], "shipped:integrated");
    assert!(before.err.contains("this machine is not measured"), "{}", before.err);
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
    // A card that is not there any more: plans would choose it, and what is opened is what is there.
    let text = std::fs::read_to_string(&kept).unwrap().replace("\"software\"", "\"discrete\"");
    std::fs::write(&kept, text).unwrap();
    ends_with(0, caching(&cache, &["run", "pattern size=16x16 frames=2 ! blur ! null"]));
}
