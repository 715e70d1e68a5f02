//! `vramp plan` as users and programs call it.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use crate::program::{dir, ends_with, file, vramp};
use serde_json::Value;

const GOOD: &str = "pattern size=1920x1080 ! blur sigma=2 ! text \"{fps} fps\" ! png path=out-%04d.png";

fn json(args: &[&str]) -> Value {
    let run = ends_with(0, vramp(&[&["plan"], args, &["--json"]].concat()));
    serde_json::from_str(run.out.lines().last().unwrap()).unwrap()
}

#[test]
fn a_good_pipeline_is_planned_and_printed_on_standard_output() {
    let run = ends_with(0, vramp(&["plan", GOOD]));
    for name in ["pattern0", "blur0", "text0", "png0", "shipped:integrated"] {
        assert!(run.out.contains(name), "{name} is missing:\n{}", run.out);
    }
    assert!(!run.out.contains('\x1b'), "a pipe gets no colour");
    assert!(run.out.lines().all(|line| line.trim_end() == line));
}

#[test]
fn json_has_the_keys_of_the_manual() {
    let plan = json(&[GOOD]);
    let keys = |value: &Value, wanted: &[&str]| {
        let object = value.as_object().unwrap();
        for key in wanted {
            assert!(object.contains_key(*key), "{key} is missing in {value}");
        }
    };
    keys(
        &plan,
        &["handlers", "links", "ramps", "groups", "lanes", "memory", "segments", "profile", "cost_ms", "warnings"],
    );
    keys(&plan["handlers"][0], &["name", "kind", "space", "lane", "group"]);
    keys(&plan["links"][0], &["from", "to", "space", "format", "size", "policy", "depth"]);
    keys(&plan["lanes"][0], &["id", "handlers"]);
    keys(&plan["groups"][0], &["id", "space", "handlers", "dispatches"]);
    keys(&plan["memory"], &["gpu_bytes", "cpu_bytes"]);
    assert_eq!(plan["handlers"][0]["name"], "pattern0");
    assert_eq!(plan["links"][0]["size"], serde_json::json!([1920, 1080]));
}

#[test]
fn a_transfer_is_shown_with_its_direction_bytes_and_time() {
    let plan = json(&[GOOD, "--gpu"]);
    let ramps = plan["ramps"].as_array().unwrap();
    assert_eq!(ramps.len(), 1);
    assert_eq!(ramps[0]["direction"], "gpu->cpu");
    assert_eq!(ramps[0]["bytes"], 8_294_400);
    assert!(ramps[0]["est_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(ramps[0]["to"], serde_json::json!(["png0.video"]));
    let text = ends_with(0, vramp(&["plan", GOOD, "--gpu"])).out;
    assert!(text.contains("<= down ==  gpu->cpu  8.3 MB  ~"), "{text}");
}

#[test]
fn every_format_is_printed() {
    for (format, start) in [
        ("text", ""),
        ("json", "{\n  \"handlers\""),
        ("dot", "digraph vramp {"),
        ("mermaid", "flowchart LR"),
        ("html", "<!doctype html>"),
    ] {
        let run = ends_with(0, vramp(&["plan", GOOD, "--format", format, "-q"]));
        assert!(run.out.starts_with(start), "{format}:\n{}", run.out);
        assert!(run.out.ends_with('\n'));
        assert_eq!(run.err, "", "-q is quiet");
    }
}

#[test]
fn without_a_profile_the_plan_says_that_it_is_an_estimate() {
    let warning = "no profile given and this machine is not known yet";
    let run = ends_with(0, vramp(&["plan", GOOD, "--json"]));
    assert!(run.err.contains(&format!("warning: {warning}")), "{}", run.err);
    assert!(run.out.contains(warning));
    let text = ends_with(0, vramp(&["plan", GOOD]));
    assert_eq!(
        (text.out.matches(warning).count(), text.err.matches(warning).count()),
        (0, 1),
        "printed once, on standard error"
    );
    let with = ends_with(0, vramp(&["plan", GOOD, "--json", "--profile", "shipped:discrete"]));
    assert!(!with.out.contains(warning) && !with.err.contains(warning));
    assert!(with.out.contains("\"profile\":\"shipped:discrete\""));
}

#[test]
fn an_unknown_handler_is_shown_with_a_caret_and_the_nearest_name() {
    let run = ends_with(2, vramp(&["plan", "pattern ! blru ! null"]));
    assert!(run.err.contains("^^^^") && run.err.contains("did you mean `blur`?"), "{}", run.err);
    assert_eq!(run.out, "");
}

#[test]
fn several_mistakes_are_shown_at_once_in_the_order_of_the_text() {
    let run = ends_with(2, vramp(&["plan", "patern ! blur sigma=lots ! nul"]));
    let places = ["patern", "lots", "nul"].map(|word| run.err.find(&format!("`{word}`")).expect(word));
    assert!(places.is_sorted(), "{}", run.err);
    assert_eq!(run.err.matches("error").count(), 3, "{}", run.err);
}

#[test]
fn a_mistake_in_the_grammar_does_not_hide_a_wrong_kind_or_value() {
    let run = ends_with(2, vramp(&["plan", "patern ! ! blur sigma=lots !"]));
    for words in ["`patern`", "two links in a row", "`lots`", "nothing after it"] {
        assert!(run.err.contains(words), "{words} is missing:\n{}", run.err);
    }
}

#[test]
fn strict_refuses_automatic_transfers_and_names_both_ends() {
    let pipeline = "pattern name=made ! blur name=soft ! null";
    ends_with(0, vramp(&["plan", pipeline, "--strict"]));
    let run = ends_with(3, vramp(&["plan", pipeline, "--strict", "--place", "made=cpu", "--place", "soft=gpu"]));
    assert!(run.err.starts_with("error: "), "{}", run.err);
    assert!(run.err.contains("made") && run.err.contains("soft"), "{}", run.err);
    assert_eq!(run.out, "");
}

#[test]
fn an_explicit_upload_cannot_be_planned_without_the_device() {
    let run = ends_with(3, vramp(&["plan", "pattern ! upload ! blur ! null", "--cpu"]));
    assert!(run.err.contains("upload0"), "{}", run.err);
    ends_with(3, vramp(&["plan", "pattern ! null", "--gpu", "--profile", "shipped:cpu"]));
}

#[test]
fn options_reach_the_planner() {
    let spaces = |args: &[&str]| -> Vec<String> {
        let plan = json(&[&["pattern ! blur ! null"], args].concat());
        plan["handlers"].as_array().unwrap().iter().map(|h| h["space"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(spaces(&["--cpu"]), ["cpu"; 3]);
    assert_eq!(spaces(&["--gpu"])[..2], ["gpu"; 2]);
    assert_eq!(spaces(&["--gpu", "--place", "pattern0=cpu"])[..2], ["cpu", "gpu"]);
    let chain = "pattern ! invert ! gamma ! null";
    let fused = json(&[chain, "--gpu"])["groups"].as_array().unwrap().len();
    let apart = json(&[chain, "--gpu", "--no-fusion"])["groups"].as_array().unwrap().len();
    assert!(fused < apart, "{fused} groups fused, {apart} apart");
    let few = json(&[GOOD, "--cpu", "--threads", "1"])["cost_ms"].as_f64().unwrap();
    let many = json(&[GOOD, "--cpu", "--threads", "8"])["cost_ms"].as_f64().unwrap();
    assert!(few > many, "1 thread {few} ms, 8 threads {many} ms");
    json(&[GOOD, "--in-flight", "4", "--batch", "2", "--fps", "29.97", "--backend", "vulkan", "--device", "0"]);
}

#[test]
fn options_without_effect_on_a_plan_are_warned_about() {
    let run = ends_with(0, vramp(&["plan", GOOD, "--profile", "shipped:discrete", "--device", "0"]));
    assert!(run.err.contains("--backend and --device have no effect"), "{}", run.err);
}

#[test]
fn a_wrong_command_line_ends_with_two() {
    for args in [
        &["plan"][..],
        &["plan", GOOD, "--cpu", "--gpu"],
        &["plan", GOOD, "--format", "svg"],
        &["plan", GOOD, "--format", "dot", "--json"],
        &["plan", GOOD, "--place", "blur0"],
        &["plan", GOOD, "--place", "blur0=disk"],
        &["plan", GOOD, "--threads", "0"],
        &["plan", GOOD, "--fps", "0"],
        &["plan", GOOD, "-q", "-v"],
        &["plan", GOOD, "--profile", "shipped:quantum"],
        &["plan", GOOD, "--place", "unknown=cpu"],
        &["plan", GOOD, "--place", "blur0=cpu", "--place", "blur0=gpu"],
        &["plan", GOOD, "--backend", "opengl"],
        &["plan", GOOD, "--budget", "colours=1"],
        &["plan", GOOD, "--cpu", "--device", "0"],
        &["dance"],
        &[],
    ] {
        let run = ends_with(2, vramp(args));
        assert!(run.out.is_empty() && !run.err.is_empty(), "{args:?}");
    }
}

#[test]
fn a_bad_profile_is_refused_with_its_name_and_place() {
    let dir = dir("a_bad_profile");
    for (name, content) in [("broken.toml", "about = \n"), ("strange.toml", "colour = 1\n"), ("empty.toml", "")] {
        let path = file(&dir, name, content);
        let run = ends_with(2, vramp(&["plan", GOOD, "--profile", &path]));
        assert!(run.err.starts_with("error: ") && run.err.contains(name), "{}", run.err);
    }
    let missing = dir.join("missing.toml");
    let run = ends_with(2, vramp(&["plan", GOOD, "--profile", missing.to_str().unwrap()]));
    assert!(run.err.contains("missing.toml"), "{}", run.err);
}

#[test]
fn a_source_that_cannot_be_looked_at_ends_with_one() {
    let run = ends_with(1, vramp(&["plan", "image path=no/such/picture.png ! null"]));
    assert!(run.err.starts_with("error: ") && run.err.contains("no/such/picture.png"), "{}", run.err);
}

#[test]
fn verbose_says_for_every_link_what_was_negotiated() {
    let run = ends_with(0, vramp(&["plan", GOOD, "--gpu", "-v"]));
    let lines: Vec<&str> = run.err.lines().filter(|line| line.contains(": Negotiated: ")).collect();
    assert_eq!(lines[0], "pattern0.video -> blur0.video: Negotiated: gpu (no transfer)");
    let last = lines.last().unwrap();
    assert!(last.starts_with("text0.video -> png0.video: Negotiated: gpu->cpu (transfer, ~"), "{last}");
    assert!(last.ends_with(" ms)"), "{last}");
    assert_eq!(lines.len(), 3);
    let run = ends_with(0, vramp(&["plan", "pattern name=p ! upload ! blur ! null", "--place", "p=cpu", "-v"]));
    let up = run.err.lines().next().unwrap();
    assert!(up.starts_with("p.video -> upload0.video: Negotiated: cpu->gpu (transfer, ~"), "{up}");
    assert!(up.ends_with(" ms, explicit)"), "{up}");
}

#[test]
fn five_runs_print_the_same_bytes() {
    for format in ["text", "json", "dot", "mermaid"] {
        let pipeline = "pattern name=p ! blur ! mix name=m ! null; p. ! flip axis=h ! m.b; p. ! png path=a-%d.png";
        let first = ends_with(0, vramp(&["plan", pipeline, "--format", format]));
        for _ in 0..4 {
            assert_eq!(vramp(&["plan", pipeline, "--format", format]), first);
        }
    }
}
