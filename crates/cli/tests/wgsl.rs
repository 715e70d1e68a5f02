//! The program with users' shaders: errors in shaders, hostile shaders, and files that change while they are watched.
//!
//! Hostile shaders run on the installed driver and on Mesa 25, which `cargo xtask test` provides: the two differ in how
//! they run an infinite loop.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::program::{Run, command, dir, ends_with, file, json, vramp};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Makes a command use Mesa 25 instead of the installed driver.
fn on_mesa_25(command: &mut Command) {
    let folder = root().join("target/mesa25");
    let driver = folder.join("lvp_icd.json");
    assert!(driver.is_file(), "Mesa 25 is missing: `scripts/lavapipe25.sh target/mesa25` brings it");
    command.env("VK_ICD_FILENAMES", driver).env("LD_LIBRARY_PATH", folder.join("usr/lib/x86_64-linux-gnu"));
}

/// Runs a command that must end without help: one that hangs is killed and fails the test.
fn by_itself(mut command: Command) -> Run {
    const PATIENCE: Duration = Duration::from_secs(60);
    let mut child = command.spawn().unwrap();
    let since = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if since.elapsed() > PATIENCE {
            child.kill().unwrap();
            panic!("{command:?} did not end by itself");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    Run {
        code: output.status.code().unwrap_or_else(|| panic!("{command:?} was killed: {}", output.status)),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Hostile shaders in the order of the directory, with the expected exit code and message.
const HOSTILE: &[(&str, i32, &str)] = &[
    ("barrier_apart", 0, ""),
    ("barrier_in_pixel", 2, ":2:5: a pixel function cannot use `workgroupBarrier`"),
    ("big_workgroup", 2, ":3:11: a workgroup of 1024x1x1 is 1024 invocations"),
    ("comment_only", 2, ": it has neither a `fn pixel` nor a `@compute` entry point"),
    ("constant_division", 2, ":2:24: Division by zero"),
    ("copied_arrays", 2, ":4:4: `main` has 532577 operations with all calls inlined; the limit is 262144"),
    ("derivative", 2, ":2:20: a pixel function cannot use `dpdx`"),
    ("division_by_zero", 0, ""),
    ("doubling_constants", 2, "are copied out of constants; the limit is 1048576"),
    ("empty", 2, ": it is empty"),
    ("empty_workgroup", 2, "Workgroup size is out of range"),
    ("endless_kernel", 1, "wgsl0 did not end within"),
    ("endless_pixel", 1, "wgsl0 did not end within"),
    ("entry_of_another_name", 2, ":4:4: the entry point is `run`"),
    ("failed_assertion", 2, ":1:14: `const_assert` failure"),
    ("fan_out", 2, ":9:4: `step8` has 118735 operations with all calls inlined; the limit is 65536"),
    ("float_pixels", 2, ":1:23: `input` is not an `array<u32>`"),
    ("fragment", 2, ":1:14: the entry point is `main`; expected a `@compute` entry point"),
    ("gap_in_bindings", 2, "`output` is binding 2"),
    ("giant_numbers", 2, ":1:11: numeric literal not representable"),
    ("half_floats", 2, ":1:1: a pixel function cannot use `enable`"),
    ("huge_constant", 2, "type is too large"),
    ("huge_local", 2, ":2:5: `own` brings the memory to 256000000 bytes; the limit is 65536"),
    ("huge_private", 2, ":1:1: `own` brings the memory to 40000000 bytes; the limit is 65536"),
    ("huge_storage", 2, "type is too large"),
    ("huge_workgroup", 2, ":3:1: `shared_words` brings the memory to 4000000 bytes; the limit is 16384"),
    ("many_locals", 2, ":7:5: `own` brings the memory to 96000 bytes; the limit is 65536"),
    ("matrix_setting", 2, ":1:19: `m`: a setting cannot have this type"),
    ("mutual_recursion", 2, "is cyclic"),
    ("nan", 0, ""),
    ("no_entry", 2, ": it has neither a `fn pixel` nor a `@compute` entry point"),
    ("no_output", 2, "1 to read, 0 to write; expected one of each"),
    ("no_parameter", 2, ":1:4: the first parameter of `pixel` is not a `vec4f`"),
    ("our_names", 0, ""),
    ("out_of_bounds", 0, ""),
    ("out_of_bounds_pixel", 0, ""),
    ("overridden", 2, ":1:10: `strength`: `override` is not supported"),
    ("own_frame", 2, ":1:8: `Frame` is declared already"),
    ("pixel_binds", 2, ":1:23: a pixel function cannot bind or share `more`"),
    ("pixel_shares", 2, ":1:1: a pixel function cannot bind or share `sum`"),
    ("recursion", 2, ":1:4: declaration of `again` is recursive"),
    ("reserved_name", 2, ":4:4: `vramp_own`: names that begin with vramp_"),
    ("reserved_word", 2, ":1:10: name `virtual` is a reserved keyword"),
    ("setting_called_path", 2, ":2:5: `path` is a setting of every shader"),
    ("strange_binding", 2, ":2:23: `output` is binding 7 of group 0"),
    ("strange_group", 2, ":2:23: `output` is binding 1 of group 3"),
    ("syntax", 2, ":3:5: expected `;`, found \"return\""),
    ("texture", 2, ":3:23: `picture`: a binding of this kind is not supported"),
    ("twice_the_same", 2, ":1:4: `pixel` has two parameters of type `vec2u`"),
    ("two_entries", 2, ":4:32: the text has 2 entry points: main, other"),
    ("two_outputs", 2, "1 to read, 2 to write; expected one of each"),
    ("unclosed", 2, ":3:1: expected statement"),
    ("unknown_name", 2, ":3:20: no definition in scope for identifier: `brigtness`"),
    ("wrong_default", 2, ":2:5: `// = strong` is not a valid default for `strength`"),
    ("wrong_parameter", 2, ":1:4: the parameter `speed` of `pixel` has an unsupported type"),
    ("wrong_result", 2, ":1:4: `pixel` does not return a `vec4f`"),
    ("wrong_type", 2, ":2:12: The `return` expression"),
];

/// Runs every hostile shader. With `ends_loops` the driver ends some infinite loops.
fn face_all(on: fn(&mut Command), ends_loops: bool) {
    let folder = root().join("tests/hostile_shaders");
    for (name, code, words) in HOSTILE {
        let path = folder.join(format!("{name}.wgsl"));
        let text = format!("pattern size=64x48 frames=2 ! wgsl \"{}\" ! null", path.display());
        let mut command = command(&["run", &text, "--time-limit", "700", "-q"]);
        on(&mut command);
        let run = by_itself(command);
        if ends_loops && *code == 1 && run.code == 0 {
            continue;
        }
        let run = ends_with(*code, run);
        assert!(run.err.contains(words), "{name}: {}", run.err);
        if *code == 2 {
            assert!(run.err.contains(&format!("{name}.wgsl:")), "{name} is named: {}", run.err);
        }
        assert!(!run.err.contains("panicked"), "{name}: {}", run.err);
    }
}

#[test]
fn every_hostile_shader_is_faced() {
    let listed: Vec<String> = HOSTILE.iter().map(|(name, ..)| format!("{name}.wgsl")).collect();
    let there = std::fs::read_dir(root().join("tests/hostile_shaders")).unwrap();
    let mut there: Vec<String> = there.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    there.sort();
    assert_eq!(there, listed);
}

#[test]
fn hostile_shaders_end_in_words_on_the_installed_driver() {
    face_all(|_| {}, true);
}

#[test]
fn hostile_shaders_end_in_words_on_mesa_25() {
    face_all(on_mesa_25, false);
}

#[test]
fn texts_that_no_compiler_should_see_are_refused_by_their_size_and_depth() {
    let dir = dir("wgsl-bounds");
    let pixel = |body: &str| format!("fn pixel(c: vec4f) -> vec4f {{\n{body}\n}}\n");
    let nested = |count: usize| pixel(&format!("return c * {}1.0{};", "(".repeat(count), ")".repeat(count)));
    let blocks = pixel(&format!("{}{} return c;", "{".repeat(5000), "}".repeat(5000)));
    let sum = pixel(&format!("return c * (1.0{});", " + 1.0".repeat(20_000)));
    let minus = pixel(&format!("return c * {}1.0;", "- ".repeat(30_000)));
    let branches = "if (c.x > 1.0) { return c; } else ".repeat(5000);
    let branches = pixel(&format!("{branches} {{ return c * 2.0; }}"));
    let functions: Vec<String> = (0..4000).map(|at| format!("fn f{at}() -> f32 {{ return f{}(); }}", at + 1)).collect();
    let templates = pixel(&format!("var a: {}f32{}; return c;", "array<".repeat(3000), ", 1>".repeat(3000)));
    for (name, text, code, words) in [
        ("nested", nested(20_000).into_bytes(), 2, "nested brackets; the limit is"),
        ("blocks", blocks.into_bytes(), 2, "nested brackets; the limit is"),
        ("sum", sum.into_bytes(), 2, "tokens in one expression; the limit is"),
        ("minus", minus.into_bytes(), 2, "tokens in one expression; the limit is"),
        ("branches", branches.into_bytes(), 2, "`else` branches in one function; the limit is"),
        ("functions", functions.join("\n").into_bytes(), 2, "declarations; the limit is"),
        ("templates", templates.into_bytes(), 2, "tokens in one expression; the limit is"),
        ("megabyte", vec![b' '; 1 << 20], 1, "has more than 262144 bytes"),
        (
            "garbage",
            (0..4096_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 13) as u8).collect(),
            1,
            "is not UTF-8 text",
        ),
        ("control", b"fn pixel(c: vec4f) -> vec4f { return c\x01; }".to_vec(), 2, ":1:39: not a text file"),
        ("nul", vec![0; 64], 2, "not a text file"),
    ] {
        let path = file(&dir, &format!("{name}.wgsl"), text);
        let run = ends_with(code, vramp(&["plan", &format!("pattern ! wgsl \"{path}\" ! null")]));
        assert!(run.err.contains(words), "{name}: {}", run.err);
    }
    // Just within the bounds it is accepted, and the driver compiles it.
    let within = file(&dir, "within.wgsl", nested(40));
    ends_with(0, vramp(&["run", &format!("pattern size=16x16 frames=1 ! wgsl \"{within}\" ! null"), "-q"]));
    let run = ends_with(1, vramp(&["plan", "pattern ! wgsl no-such-file.wgsl ! null"]));
    assert!(run.err.contains("`no-such-file.wgsl` cannot be read"), "{}", run.err);
}

const SETTINGS: &str = "struct Settings {\n    strength: f32, // = 0.5\n    tint: vec3f,\n}\n\
    fn pixel(c: vec4f, s: Settings) -> vec4f {\n    return vec4f(c.rgb * s.strength + s.tint, c.a);\n}\n";

#[test]
fn wrong_settings_are_shown_with_what_the_shader_declares() {
    let path = file(&dir("wgsl-settings"), "glow.wgsl", SETTINGS);
    let plan = |words: &str| vramp(&["plan", &format!("pattern ! wgsl path=\"{path}\" {words} ! null")]);
    ends_with(0, plan("strength=1 tint=1,0,0.5"));
    let run = ends_with(2, plan("strenth=1"));
    for words in ["unknown setting `strenth`", "^^^^^^^ expected one of strength, tint", "did you mean `strength`?"] {
        assert!(run.err.contains(words), "{}", run.err);
    }
    let run = ends_with(2, plan("tint=1,0"));
    assert!(run.err.contains("`1,0` is not a valid tint") && run.err.contains("3 numbers"), "{}", run.err);
    let run = ends_with(2, plan("strength=strong"));
    assert!(run.err.contains("`strong` is not a valid strength"), "{}", run.err);
}

#[test]
fn a_plan_fuses_pixel_functions_and_leaves_kernels_alone() {
    let groups = |text: &str| {
        let plan = json(&ends_with(0, vramp(&["plan", text, "--json"])));
        plan["groups"]
            .as_array()
            .unwrap()
            .iter()
            .map(|group| group["handlers"].as_array().unwrap().len())
            .collect::<Vec<_>>()
    };
    let pixel = "wgsl code=\"fn pixel(c: vec4f) -> vec4f { return c; }\"";
    assert_eq!(groups(&format!("pattern ! {pixel} ! invert ! {pixel} ! null")), [4]);
    let kernel = format!("wgsl \"{}\"", root().join("examples/shaders/box3.wgsl").display());
    assert_eq!(groups(&format!("pattern ! {kernel} ! invert ! null")), [1, 1, 1]);
}

#[test]
fn mistakes_in_code_are_shown_with_line_and_column() {
    let text = "pattern ! wgsl code=\"fn pixel(c: vec4f) -> vec4f {\n  let a = c;\n  return a + b;\n}\" ! null";
    let run = ends_with(2, vramp(&["plan", text]));
    assert!(run.err.contains("wgsl0: code:3:14: no definition in scope for identifier: `b`"), "{}", run.err);
    assert!(run.err.contains("line 3 is `return a + b;`"), "{}", run.err);
}

#[test]
fn without_a_device_a_shader_cannot_be_planned_and_the_error_says_why() {
    let run = ends_with(
        3,
        vramp(&["run", "pattern frames=1 ! wgsl code=\"fn pixel(c: vec4f) -> vec4f { return c; }\" ! null", "--cpu"]),
    );
    assert!(run.err.contains("wgsl0 offers gpu"), "{}", run.err);
}

#[test]
fn verifying_compares_what_stands_around_a_shader() {
    let text = "pattern size=32x24 frames=2 ! invert ! wgsl code=\"fn pixel(c: vec4f) -> vec4f { return c.bgra; }\" ! flip ! null";
    let run = ends_with(0, vramp(&["run", text, "--verify"]));
    assert!(run.err.contains("wgsl0, gpu and cpu: not compared: it has no version for the cpu"), "{}", run.err);
    assert!(run.err.contains("verified: 5 comparisons, no difference"), "{}", run.err);
    ends_with(3, vramp(&["run", text, "--verify", "--cpu"]));
}

#[test]
fn files_that_were_written_before_a_kernel_hangs_are_whole() {
    let dir = dir("wgsl-hangs");
    let shader = file(&dir, "later.wgsl", LATER);
    let text = format!("pattern size=32x24 frames=9 ! wgsl \"{shader}\" ! png path=\"{}/out-%d.png\"", dir.display());
    let mut command = command(&["run", &text, "--time-limit", "500", "--in-flight", "1", "-q"]);
    on_mesa_25(&mut command);
    let run = ends_with(1, by_itself(command));
    assert!(run.err.contains("wgsl0 did not end within"), "{}", run.err);
    for number in 0..3 {
        let path = dir.join(format!("out-{number}.png"));
        let text = format!("image path=\"{}\" ! null", path.display());
        ends_with(0, vramp(&["run", &text, "--cpu", "-q"]));
    }
    assert!(!dir.join("out-4.png").exists(), "what hangs is never written");
}

/// Loops forever from its fifth frame on.
const LATER: &str = "fn pixel(c: vec4f, f: Frame) -> vec4f {
    var sum = c;
    while (f.number >= 4u) {
        sum = fract(sum * 1.7 + 0.1);
        if (sum.x < -1.0) { break; }
    }
    return sum;
}
";

#[test]
fn a_watched_shader_takes_effect_when_it_is_saved_and_stays_when_it_is_wrong() {
    let dir = dir("wgsl-watch");
    let path = file(&dir, "live.wgsl", "fn pixel(c: vec4f) -> vec4f { return vec4f(0.0, 0.0, 0.0, 1.0); }");
    let text = format!("pattern size=16x16 fps=50 ! invert ! wgsl \"{path}\" ! probe ! null");
    let mut child = command(&["run", &text, "--watch", "--fps", "50", "--gpu", "--json"]).spawn().unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut until = |words: &str| {
        let found = lines.find(|line| line.contains(words));
        found.unwrap_or_else(|| panic!("it ended without a word of `{words}`"))
    };
    // Saved by renaming, as editors do.
    let save = |text: &str| {
        let new = file(&dir, "new.wgsl", text);
        std::fs::rename(new, &path).unwrap();
    };
    let before = until("probe0: frame").split_whitespace().last().unwrap().to_owned();
    save(
        "struct Settings {\n    light: f32, // = 0.5\n}\nfn pixel(c: vec4f, s: Settings) -> vec4f { return vec4f(s.light); }",
    );
    until("wgsl0: reloaded");
    // Frames of the old shader may still be on the way to the probe when the new one takes over.
    let mut later = (0..100).map(|_| until("probe0: frame").split_whitespace().last().unwrap().to_owned());
    let after = later.find(|pixels| *pixels != before).expect("other pixels come out");
    save("fn pixel(c: vec4f) -> vec4f {\n    return d;\n}");
    let message = until("the handler keeps running as before");
    assert!(message.contains("live.wgsl:2:12: no definition in scope for identifier: `d`"), "{message}");
    assert_eq!(until("probe0: frame").split_whitespace().last().unwrap(), after, "the old shader keeps running");
    std::fs::write(&path, "fn pixel(c: vec4f) -> vec4f { return c; }").unwrap();
    until("wgsl0: reloaded");
    interrupt(child.id());
    for _ in lines {}
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["counters"]["compiles_after_first_frame"], 2);
}

fn interrupt(process: u32) {
    assert!(Command::new("kill").args(["-INT", &process.to_string()]).status().unwrap().success());
}

#[test]
fn a_file_may_begin_with_the_mark_of_utf_8() {
    let dir = dir("wgsl-mark");
    let shader = file(&dir, "marked.wgsl", "\u{feff}fn pixel(color: vec4f) -> vec4f { return color; }\n");
    let text = format!("pattern size=16x16 frames=2 ! wgsl \"{shader}\" ! null");
    ends_with(0, vramp(&["run", &text, "-q"]));
}
