//! `vramp inspect`, `vramp completions` and the help texts.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use crate::program::{ends_with, vramp};
use serde_json::Value;
use vramp::plan::catalog::Entry;

/// Whether a run would refuse the handler.
fn is_plan_only(entry: &Entry) -> bool {
    entry.transfer.is_none() && vramp::registry().maker(entry).is_none()
}

#[test]
fn every_handler_is_listed_and_marked_while_it_can_only_be_planned() {
    let run = ends_with(0, vramp(&["inspect"]));
    for entry in vramp::registry().catalog().entries() {
        let listed = run.out.lines().any(|line| {
            let mut words = line.split_whitespace();
            line.starts_with("  ")
                && words.next() == Some(entry.name)
                && line.contains(entry.about)
                && line.contains("plan only") == is_plan_only(entry)
        });
        assert!(listed, "{} is not listed as it should be:\n{}", entry.name, run.out);
    }
}

/// Whether an example needs no files of the machine.
fn example_without_files(example: &str) -> bool {
    example.starts_with("pattern ") && !example.contains("path=") && !example.contains("terminal")
}

#[test]
fn what_is_marked_as_running_runs() {
    let mut made = 0;
    for entry in vramp::registry().catalog().entries().filter(|entry| example_without_files(entry.example)) {
        assert!(!is_plan_only(entry), "{}", entry.name);
        let run = vramp(&["run", entry.example, "--frames", "2", "--seconds", "1", "--json"]);
        match entry.name {
            "app" => {
                let run = ends_with(2, run);
                assert!(run.err.contains("a program that uses the library"), "{}", run.err);
            }
            // Tests of windows have a display.
            "window" => {
                let run = ends_with(3, run);
                assert!(run.err.contains("there is no display"), "{}", run.err);
            }
            _ => {
                ends_with(0, run);
                made += 1;
            }
        }
    }
    assert!(made > 10, "{made} made");
}

#[test]
fn one_handler_is_shown_with_its_ports_and_every_setting() {
    for entry in vramp::registry().catalog().entries() {
        let page = ends_with(0, vramp(&["inspect", entry.name])).out;
        assert!(page.contains(entry.example), "{page}");
        let ports = entry.inputs.iter().map(|p| p.name).chain(entry.outputs.iter().map(|p| p.name));
        let settings = entry.settings.iter().map(|s| s.name).chain(["name", "on-error"]);
        let several = ["lead", "until"].into_iter().filter(|_| entry.inputs.len() > 1);
        for word in ports.chain(settings).chain(several) {
            assert!(page.lines().any(|l| l.split_whitespace().next() == Some(word)), "{word} is missing:\n{page}");
        }
        assert!(page.lines().all(|line| line.trim_end() == line));
    }
}

#[test]
fn a_name_of_a_source_and_a_sink_shows_both() {
    let page = ends_with(0, vramp(&["inspect", "y4m"])).out;
    assert!(page.contains("y4m (source, runs)") && page.contains("y4m (sink, runs)"), "{page}");
}

#[test]
fn an_unknown_handler_is_answered_with_the_nearest_name() {
    let run = ends_with(2, vramp(&["inspect", "blru"]));
    assert_eq!(run.err, "error: unknown handler `blru`; did you mean `blur`?\n");
    let run = ends_with(2, vramp(&["inspect", "zzzzzzzz"]));
    assert!(run.err.contains("`vramp inspect` lists all kinds"), "{}", run.err);
}

#[test]
fn json_tells_a_program_the_same() {
    let run = ends_with(0, vramp(&["inspect", "--json"]));
    assert_eq!(run.out.lines().count(), 1);
    let all: Value = serde_json::from_str(&run.out).unwrap();
    let handlers = all["handlers"].as_array().unwrap();
    assert_eq!(handlers.len(), vramp::registry().catalog().entries().count());
    let blur = handlers.iter().find(|h| h["name"] == "blur").unwrap();
    assert_eq!(blur["status"], "runs");
    assert_eq!(blur["spaces"], serde_json::json!(["gpu", "cpu"]));
    assert_eq!(blur["kernels"], serde_json::json!(["stencil"]));
    let sigma = blur["settings"].as_array().unwrap().iter().find(|s| s["name"] == "sigma").unwrap();
    assert_eq!((&sigma["default"], &sigma["liveness"].is_string()), (&Value::from("2"), &true));
    let one: Value = serde_json::from_str(&ends_with(0, vramp(&["inspect", "y4m", "--json"])).out).unwrap();
    assert_eq!(one["handlers"].as_array().unwrap().len(), 2);
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = ends_with(0, vramp(&["completions", shell])).out;
        assert!(script.contains("inspect") && script.contains("no-fusion"), "{shell}");
    }
    ends_with(2, vramp(&["completions", "tcsh"]));
}

#[test]
fn help_names_every_option_exit_code_and_the_grammar() {
    let main = ends_with(0, vramp(&["--help"])).out;
    for words in
        ["demo", "run", "top", "plan", "inspect", "fmt", "devices", "completions", "Exit codes", "130", "Examples"]
    {
        assert!(main.contains(words), "{words} is missing:\n{main}");
    }
    let plan = ends_with(0, vramp(&["help", "plan"])).out;
    for words in
        ["--profile", "--place", "--strict", "--no-fusion", "--in-flight", "!{latest}", "NAME.PORT", "--require-gpu"]
    {
        assert!(plan.contains(words), "{words} is missing:\n{plan}");
    }
    let run = ends_with(0, vramp(&["help", "run"])).out;
    for words in
        ["--frames", "--seconds", "--budget", "--device", "--backend", "Ctrl-C", "!{latest}", "--profile", "--verify"]
            .into_iter()
            .chain(["--require-gpu", "cpu_handlers", "cpu_frames", "device_losses", "latency_ms"])
    {
        assert!(run.contains(words), "{words} is missing:\n{run}");
    }
    for page in [&main, &run, &plan] {
        assert!(!page.contains("calibrate"), "what does not exist is not offered");
    }
    let short = ends_with(0, vramp(&["plan", "-h"])).out;
    assert!(short.len() < plan.len());
    assert_eq!(ends_with(0, vramp(&["--version"])).out, format!("vramp {}\n", env!("CARGO_PKG_VERSION")));
}

#[test]
fn every_example_in_the_help_and_in_the_catalogue_is_a_pipeline() {
    for entry in vramp::registry().catalog().entries() {
        ends_with(0, vramp(&["fmt", entry.example]));
    }
    for example in [
        "pattern size=1280x720 ! blur sigma=2 ! png path=out-%04d.png",
        "pattern name=cam ! mix name=both ! null; cam. ! flip axis=h ! both.b",
    ] {
        assert!(ends_with(0, vramp(&["help", "plan"])).out.contains(example));
        ends_with(0, vramp(&["plan", example]));
    }
}
