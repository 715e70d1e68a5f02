//! `--require-gpu`, and budgets that cannot pass by accident: where handlers ran, and where the time went.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use crate::program::{Run, dir, ends_with, file, json, vramp, vramp_in};

const SMALL: &str = "pattern size=64x48 frames=120 ! blur ! null";
/// What once passed whenever the device did nothing.
const RESIDENT: &str = "downloads=0,uploads=0,submits=1,allocs=0";

fn run(text: &str, args: &[&str]) -> Run {
    vramp(&[&["run", text], args].concat())
}

/// A y4m file of 40 grey frames in a directory of its own.
fn clip(test: &str) -> std::path::PathBuf {
    let dir = dir(test);
    let mut bytes = b"YUV4MPEG2 W16 H8 F30:1 Ip A1:1 C420jpeg\n".to_vec();
    for level in 0..40 {
        bytes.extend(b"FRAME\n");
        bytes.extend([level; 16 * 8 * 3 / 2]);
    }
    file(&dir, "in.y4m", bytes);
    dir
}

/// Every frame of this run is computed on the CPU after the 40th.
const LOST: [&str; 5] = ["--gpu", "--lose-device-at", "40", "--on-loss", "cpu"];

#[test]
fn a_budget_of_device_work_does_not_pass_when_everything_ran_on_the_cpu() {
    // The software driver's profile makes the CPU cheaper.
    let missed = ends_with(4, run(SMALL, &["--budget", RESIDENT]));
    let words = "error: budget: downloads, uploads, submits count work of the device, but no frame was on the device; \
                 help: add --cpu if that is intended, otherwise --gpu or --require-gpu";
    assert!(missed.err.contains(words), "{}", missed.err);
    ends_with(0, run(SMALL, &["--cpu", "--budget", RESIDENT]));
    ends_with(0, run(SMALL, &["--gpu", "--budget", RESIDENT]));
    ends_with(0, run(SMALL, &["--require-gpu", "--budget", RESIDENT]));
}

#[test]
fn every_counter_of_the_device_needs_a_frame_on_the_device() {
    let keys = ["uploads", "downloads", "transfers", "submits", "dispatches", "passes", "bind_groups", "gpu_allocs"];
    for key in keys {
        let missed = ends_with(4, run(SMALL, &["--budget", &format!("{key}=9")]));
        assert!(missed.err.contains(&format!("budget: {key} count work of the device")), "{}", missed.err);
    }
    ends_with(0, run(SMALL, &["--budget", "drops=0,heap_allocs=0,replans=0"]));
}

#[test]
fn a_budget_of_device_work_does_not_pass_when_gpu_met_a_chain_without_a_gpu_version() {
    let dir = clip("a_chain_without_a_gpu_version");
    let text = "y4m path=in.y4m ! probe ! y4m path=out.y4m";
    let missed = ends_with(4, vramp_in(&dir, &["run", text, "--gpu", "--budget", RESIDENT]));
    assert!(missed.err.contains("but no frame was on the device"), "{}", missed.err);
    ends_with(0, vramp_in(&dir, &["run", text, "--cpu", "--budget", RESIDENT]));
}

#[test]
fn a_budget_of_device_work_does_not_pass_after_the_cpu_took_over() {
    let missed = ends_with(4, run(SMALL, &[&LOST[..], &["--budget", RESIDENT]].concat()));
    assert!(missed.err.contains("computed on the cpu after the device was lost"), "{}", missed.err);
    let reopened = ["--gpu", "--lose-device-at", "40", "--on-loss", "reopen", "--budget", "downloads=0,uploads=0"];
    ends_with(0, run(SMALL, &reopened));
}

#[test]
fn required_handlers_are_on_the_gpu_although_the_cpu_is_cheaper() {
    let report = json(&ends_with(0, run(SMALL, &["--require-gpu", "--json"])));
    let placement = &report["placement"];
    assert_eq!((&placement["gpu_handlers"], &placement["cpu_handlers"]), (&1.into(), &0.into()), "{placement}");
    assert_eq!((&placement["cpu_frames"], &placement["device_losses"]), (&0.into(), &0.into()), "{placement}");
    assert_eq!((&placement["gpu_frames"], &report["backend"]), (&120.into(), &"vulkan".into()));
    let usual = json(&ends_with(0, run(SMALL, &["--json"])));
    assert_eq!(usual["placement"]["cpu_handlers"], 1, "without the option the CPU is cheaper");
}

#[test]
fn sources_and_sinks_may_be_on_the_cpu_and_controls_and_converters_count() {
    let dir = clip("sources_and_sinks_may_be_on_the_cpu");
    let text = "y4m path=in.y4m ! delay 2 ! identity ! every 2 ! blur ! y4m path=out.y4m";
    let report = json(&ends_with(0, vramp_in(&dir, &["run", text, "--require-gpu", "--json"])));
    let inserted = |handler: &&serde_json::Value| handler["name"].as_str().unwrap().starts_with("convert");
    let handlers = report["handlers"].as_array().unwrap();
    assert!(handlers.iter().any(|handler| inserted(&handler)), "{report}");
    for handler in handlers {
        let between = !handler["name"].as_str().unwrap().starts_with("y4m");
        assert_eq!(handler["between"], between, "{handler}");
        assert_eq!(handler["space"], if between { "gpu" } else { "cpu" }, "{handler}");
        assert_eq!(handler["cpu_calls"], if between { 0.into() } else { handler["calls"].clone() }, "{handler}");
    }
    assert_eq!(report["placement"]["gpu_handlers"], handlers.len() - 2);
}

#[test]
fn a_handler_that_cannot_be_on_the_gpu_is_named_before_the_run() {
    let text = "pattern size=64x48 frames=9 ! probe ! blur ! invert ! null";
    for command in ["run", "plan"] {
        let refused = ends_with(3, vramp(&[command, text, "--require-gpu", "--place", "blur0=cpu"]));
        let words = "error: --require-gpu: 2 of the 3 handlers between sources and sinks cannot be on the device\n  \
                     probe0: it has no GPU implementation\n  blur0: --place pins it to the cpu\nhelp: replace probe0, drop \
                     --place blur0=cpu; or drop --require-gpu\n";
        assert!(refused.err.contains(words), "{}", refused.err);
        assert!(!refused.err.contains("invert0") && refused.out.is_empty(), "{}{}", refused.err, refused.out);
    }
    let one = ends_with(3, run("pattern frames=9 ! probe ! null", &["--require-gpu"]));
    assert!(one.err.contains("^^^^^") && one.err.contains("pattern frames=9 ! probe ! null"), "{}", one.err);
    ends_with(0, vramp(&["plan", "pattern ! blur ! null", "--require-gpu"]));
    ends_with(0, vramp(&["plan", "pattern ! blur ! null", "--require-gpu", "--place", "pattern0=cpu"]));
}

#[test]
fn requiring_the_gpu_where_that_means_nothing_is_refused_in_words() {
    let nothing = ends_with(3, run("pattern frames=9 ! null", &["--require-gpu"]));
    assert!(nothing.err.contains("no handler between its sources and sinks"), "{}", nothing.err);
    let no_device = ends_with(3, vramp(&["plan", SMALL, "--require-gpu", "--profile", "cpu"]));
    assert!(no_device.err.contains("blur0: profile shipped:cpu has no device"), "{}", no_device.err);
    ends_with(2, run(SMALL, &["--require-gpu", "--cpu"]));
    ends_with(2, vramp(&["plan", SMALL, "--require-gpu", "--cpu"]));
    let verify = ends_with(2, run(SMALL, &["--require-gpu", "--verify"]));
    assert!(verify.err.contains("--verify also runs every handler on the CPU"), "{}", verify.err);
    let bench = ends_with(2, vramp(&["bench", "chain5", "--require-gpu"]));
    assert!(bench.err.contains("--require-gpu does not apply to `vramp bench`"), "{}", bench.err);
}

#[test]
fn a_run_without_a_driver_cannot_require_the_gpu() {
    let mut command = crate::program::command(&["run", SMALL, "--require-gpu"]);
    command
        .env("VK_ICD_FILENAMES", "/nonexistent")
        .env("VK_DRIVER_FILES", "/nonexistent")
        .env("LIBGL_DRIVERS_PATH", "/");
    command.env("__EGL_VENDOR_LIBRARY_FILENAMES", "/nonexistent");
    ends_with(3, crate::program::finish(command));
}

#[test]
fn a_lost_device_breaks_the_requirement_however_the_run_goes_on() {
    let on_cpu = ends_with(4, run(SMALL, &[&LOST[..], &["--require-gpu", "--json"]].concat()));
    assert!(on_cpu.err.contains("error: --require-gpu: ") && on_cpu.err.contains("by blur0"), "{}", on_cpu.err);
    let placement = json(&on_cpu)["placement"].clone();
    let count = |key: &str| placement[key].as_u64().unwrap();
    assert_eq!((count("cpu_handlers"), count("gpu_handlers"), count("device_losses")), (1, 0, 1), "{placement}");
    assert_eq!(count("cpu_frames") + count("gpu_frames"), 120, "each frame was taken once: {placement}");
    assert!((75..=80).contains(&count("cpu_frames")), "{placement}");
    let reopened = ends_with(4, run(SMALL, &["--require-gpu", "--lose-device-at", "40"]));
    assert!(reopened.err.contains("--require-gpu: the device was lost, and "), "{}", reopened.err);
    let stopped = ends_with(1, run(SMALL, &["--require-gpu", "--lose-device-at", "40", "--on-loss", "stop"]));
    assert!(stopped.err.contains("the device was lost"), "{}", stopped.err);
}

#[test]
fn a_requirement_that_no_frame_has_met_is_not_met() {
    let dir = dir("a_requirement_that_no_frame_has_met");
    file(&dir, "in.y4m", "YUV4MPEG2 W16 H8 F30:1 Ip A1:1 C420jpeg\n");
    let empty = vramp_in(&dir, &["run", "y4m path=in.y4m ! blur ! y4m path=out.y4m", "--require-gpu"]);
    let empty = ends_with(4, empty);
    assert!(empty.err.contains("--require-gpu: no frame was on the device"), "{}", empty.err);
}

#[test]
fn cpu_handlers_counts_the_handlers_between_the_ends_and_names_them() {
    let text = "pattern size=64x48 frames=40 ! blur ! invert ! null";
    let exceeded = ends_with(4, run(text, &["--cpu", "--budget", "cpu_handlers=1"]));
    let words = "error: budget exceeded: cpu_handlers 2, at most 1 allowed (on the cpu: blur0, invert0)";
    assert!(exceeded.err.contains(words), "{}", exceeded.err);
    ends_with(0, run(text, &["--cpu", "--budget", "cpu_handlers=2"]));
    ends_with(0, run(text, &["--gpu", "--budget", "cpu_handlers=0"]));
    let fused_with_source =
        ends_with(4, run("pattern ! invert ! null", &["--cpu", "--frames", "9", "--budget", "cpu_handlers=0"]));
    assert!(fused_with_source.err.contains("(on the cpu: invert0)"), "{}", fused_with_source.err);
    ends_with(4, run(SMALL, &[&LOST[..], &["--budget", "cpu_handlers=0"]].concat()));
}

#[test]
fn cpu_frames_is_the_share_of_frames_that_were_computed_on_the_cpu() {
    let lost = ends_with(4, run(SMALL, &[&LOST[..], &["--budget", "cpu_frames=0.5"]].concat()));
    assert!(lost.err.contains("error: budget exceeded: cpu_frames 0.6"), "{}", lost.err);
    ends_with(0, run(SMALL, &[&LOST[..], &["--budget", "cpu_frames=0.7"]].concat()));
    // Frames in the first half of a run count too, although the steady state is the second half.
    let early = ["--gpu", "--lose-device-at", "4", "--on-loss", "cpu", "--budget", "cpu_frames=0.9"];
    ends_with(4, run(SMALL, &early));
    ends_with(0, run(SMALL, &["--gpu", "--budget", "cpu_frames=0"]));
    // Two handlers on the CPU compute the same frames, which count once.
    ends_with(0, run("pattern size=64x48 frames=40 ! blur ! blur ! null", &["--cpu", "--budget", "cpu_frames=1"]));
    let tenth = "pattern size=64x48 frames=40 ! every 10 ! blur ! null";
    let tenth_on_cpu = ["--gpu", "--place", "blur0=cpu", "--budget"];
    ends_with(0, run(tenth, &[&tenth_on_cpu[..], &["cpu_frames=0.1"]].concat()));
    let more = ends_with(4, run(tenth, &[&tenth_on_cpu[..], &["cpu_frames=0.05"]].concat()));
    assert!(more.err.contains("cpu_frames 0.1 per frame, at most 0.05 allowed (4 of 40 frames)"), "{}", more.err);
    ends_with(0, vramp(&[&["plan", tenth], &tenth_on_cpu[..], &["cpu_frames=0.1"]].concat()));
    ends_with(4, vramp(&[&["plan", tenth], &tenth_on_cpu[..], &["cpu_frames=0.05"]].concat()));
}

#[test]
fn device_losses_are_counted_over_the_whole_run() {
    let twice = ["--gpu", "--lose-device-at", "10,20", "--budget"];
    let lost = ends_with(4, run(SMALL, &[&twice[..], &["device_losses=1"]].concat()));
    let words = "error: budget exceeded: device_losses 2, at most 1 allowed (over the whole run)";
    assert!(lost.err.contains(words), "{}", lost.err);
    ends_with(0, run(SMALL, &[&twice[..], &["device_losses=2"]].concat()));
}

#[test]
fn fps_is_a_minimum_and_latency_a_maximum() {
    let slow = ends_with(4, run(SMALL, &["--cpu", "--frames", "5", "--fps", "20", "--budget", "fps=1000000"]));
    assert!(
        slow.err.contains("error: budget missed: fps ")
            && slow.err.contains(", at least 1000000 required (5 frames in ")
    );
    assert!(!slow.err.contains("too few for a steady state"), "fps is over the whole run: {}", slow.err);
    ends_with(0, run(SMALL, &["--cpu", "--budget", "fps=0.001,latency_ms=600000"]));
    let late = ends_with(4, run(SMALL, &["--cpu", "--budget", "latency_ms=0"]));
    assert!(late.err.contains("error: budget exceeded: latency_ms "), "{}", late.err);
    assert!(late.err.contains(" for 99 % of the frames, at most 0 allowed (over 120 frames)"), "{}", late.err);
}

#[test]
fn a_plan_checks_the_keys_that_it_knows_and_names_the_others() {
    let text = "pattern size=64x48 ! blur ! png path=out-%d.png";
    let good =
        "transfers=1,downloads=1,uploads=0,submits=1,dispatches=3,transfer_bytes=12288,cpu_handlers=0,cpu_frames=0";
    let kept = ends_with(0, vramp(&["plan", text, "--gpu", "--budget", good]));
    assert!(!kept.err.contains("budget"), "{}", kept.err);
    let broken = ends_with(4, vramp(&["plan", text, "--gpu", "--budget", "downloads=0,fps=60,drops=0", "--json"]));
    assert!(broken.err.contains("error: budget exceeded: downloads 1 per frame, at most 0 allowed (by the plan)"));
    assert!(broken.err.contains("note: --budget: not checked, because only a run can measure it: fps, drops"));
    assert_eq!(json(&broken)["ramps"].as_array().unwrap().len(), 1, "the plan is printed all the same");
    let on_cpu = ends_with(4, vramp(&["plan", text, "--cpu", "--budget", "cpu_handlers=0,cpu_frames=0.5"]));
    assert!(on_cpu.err.contains("cpu_handlers 1, at most 0 allowed (on the cpu: blur0)"), "{}", on_cpu.err);
    assert!(on_cpu.err.contains("cpu_frames 1 per frame, at most 0.5 allowed"), "{}", on_cpu.err);
    let idle = ends_with(4, vramp(&["plan", text, "--profile", "cpu", "--budget", "uploads=0"]));
    assert!(idle.err.contains("but the plan does not use a device; help: add --cpu"), "{}", idle.err);
    ends_with(0, vramp(&["plan", text, "--cpu", "--budget", "uploads=0"]));
}

#[test]
fn a_plan_refuses_a_budget_that_only_a_run_can_check() {
    let refused = ends_with(2, vramp(&["plan", SMALL, "--budget", "fps=60,latency_ms=5"]));
    assert!(refused.err.contains("--budget fps,latency_ms: only a run can measure this"), "{}", refused.err);
    assert!(refused.err.contains("cpu_handlers") && refused.out.is_empty(), "{}", refused.err);
    ends_with(2, vramp(&["plan", SMALL, "--gpu", "--batch", "4", "--budget", "submits=1"]));
}

#[test]
fn a_demo_checks_its_runs_on_the_device_and_takes_its_runs_on_the_cpu_as_intended() {
    let dir = dir("a_demo_checks_its_runs");
    let demo = |args: &[&str]| vramp_in(&dir, &[&["demo", "--seconds", "0.05", "-q"], args].concat());
    ends_with(0, demo(&["--budget", "uploads=0"]));
    ends_with(4, demo(&["--budget", "cpu_handlers=0"]));
    let required = ends_with(0, demo(&["--require-gpu", "--budget", "cpu_handlers=0", "--json"]));
    let runs = json(&required)["runs"].clone();
    assert!(runs.as_array().unwrap().iter().all(|run| run["where"] == "gpu"), "{runs}");
}

#[test]
fn the_last_line_names_both_sides() {
    let last = |run: &Run| run.err.lines().last().unwrap().to_owned();
    let cpu = last(&ends_with(0, run(SMALL, &["--cpu"])));
    assert!(cpu.ends_with("; no handler on the gpu, 3 on the cpu"), "{cpu}");
    let gpu = last(&ends_with(0, run(SMALL, &["--gpu"])));
    assert!(gpu.contains("; 3 handlers on the gpu (llvmpipe") && gpu.ends_with(", vulkan), none on the cpu"), "{gpu}");
    let both = last(&ends_with(0, run(SMALL, &["--gpu", "--place", "blur0=cpu"])));
    assert!(both.contains("; 2 handlers on the gpu (") && both.ends_with(", vulkan), 1 on the cpu"), "{both}");
    let lost = last(&ends_with(0, run(SMALL, &LOST)));
    assert!(
        lost.contains("; the device was lost once, and ") && lost.ends_with(" computed on the cpu instead"),
        "{lost}"
    );
}

#[test]
fn a_run_ends_with_its_slowest_handlers_and_their_share() {
    let text = "pattern size=64x48 frames=120 ! blur ! invert ! null";
    for side in ["--cpu", "--gpu"] {
        let done = ends_with(0, run(text, &[side, "--no-fusion", "--json"]));
        let units = json(&done)["units"].clone();
        let units = units.as_array().unwrap();
        let shares: Vec<f64> = units.iter().map(|unit| unit["share"].as_f64().unwrap()).collect();
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{shares:?}");
        assert!(shares.is_sorted_by(|a, b| a >= b), "{shares:?}");
        let blur = units.iter().find(|unit| unit["handlers"] == serde_json::json!(["blur0"])).unwrap();
        assert_eq!((&blur["space"], &blur["calls"]), (&side[2..].into(), &120.into()));
        let slowest: Vec<&str> = done.err.lines().filter(|line| line.starts_with("slowest: ")).collect();
        let first = format!("slowest: {} {:.0} % (", units[0]["name"].as_str().unwrap(), 100.0 * shares[0]);
        assert!(slowest.len() == 1 && slowest[0].starts_with(&first), "{first}\n{}", done.err);
        assert_eq!(slowest[0].matches(" a frame on the ").count(), 3, "{slowest:?}");
    }
    let table = ends_with(0, run(text, &["--cpu", "--no-fusion", "-v"])).err;
    assert!(!table.contains("slowest: "), "{table}");
    let rows = table.lines().skip_while(|line| !line.ends_with("space  handlers")).skip(1);
    let names = rows.filter(|row| row.contains(" % ")).map(|row| row.rsplit("  ").next().unwrap());
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    assert_eq!(names, ["blur0", "invert0", "null0", "pattern0"], "{table}");
    assert!(!ends_with(0, run(text, &["--cpu", "-q"])).err.contains("slowest"));
}

#[test]
fn transfers_have_their_share_of_the_time() {
    let text = "pattern size=64x48 frames=120 ! blur ! null";
    let done = ends_with(0, run(text, &["--gpu", "--place", "pattern0=cpu", "--json"]));
    let units = json(&done)["units"].clone();
    // If the driver measures only whole submissions, the transfer is part of its segment.
    let names = units.as_array().unwrap().iter().map(|unit| unit["name"].as_str().unwrap());
    assert!(names.clone().any(|name| name.contains("upload of pattern0.video")), "{units}");
}

#[test]
fn groups_carry_the_names_of_their_handlers() {
    for side in ["--cpu", "--gpu"] {
        let report = json(&ends_with(0, run("pattern frames=9 ! invert ! gamma ! null", &[side, "--json"])));
        assert_eq!(report["groups"][0]["handlers"], serde_json::json!(["pattern0", "invert0", "gamma0"]), "{side}");
    }
}

#[test]
fn a_plan_has_a_column_with_the_cost_on_the_other_side() {
    let text = "pattern size=64x48 ! blur ! probe ! null";
    let printed = ends_with(0, vramp(&["plan", text, "--gpu", "--profile", "discrete"])).out;
    let row = |name: &str| printed.lines().find(|line| line.contains(&format!("  {name}"))).unwrap().to_owned();
    assert!(row("blur0").contains(" cpu "), "{printed}");
    assert!(row("probe0").split_whitespace().any(|word| word == "-"), "{printed}");
    let plan = |side: &str| json(&ends_with(0, vramp(&["plan", text, side, "--profile", "discrete", "--json"])));
    let (gpu, cpu) = (plan("--gpu"), plan("--cpu"));
    let cost = |plan: &serde_json::Value, at: usize, key: &str| plan["handlers"][at][key].as_f64();
    assert_eq!(cost(&gpu, 1, "other_ms"), cost(&cpu, 1, "alone_ms"));
    assert_eq!(cost(&cpu, 1, "other_ms"), cost(&gpu, 1, "alone_ms"));
    assert!(cost(&gpu, 1, "alone_ms").unwrap() > 0.0);
    assert_eq!(cost(&gpu, 2, "other_ms"), None, "probe has no GPU implementation");
    assert!(gpu["groups"][0]["cost_ms"].is_f64() && gpu["groups"][0]["other_ms"].is_f64(), "{gpu}");
}
