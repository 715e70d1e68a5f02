//! `vramp model`: arrays go in and come out with their types and shapes on either side, and every wrong request has its
//! exit code and its words.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::onnx_file::{Port, model, node};
use crate::program::{Run, command, dir, ends_with, file, finish, json, vramp, vramp_in};

/// The models in the repository.
fn shipped(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../model/models").join(name);
    path.to_str().unwrap().to_owned()
}

/// A file as `numpy.save` writes it.
fn npy(descr: &str, is_fortran: bool, shape: &str, values: &[u8]) -> Vec<u8> {
    let order = if is_fortran { "True" } else { "False" };
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    [b"\x93NUMPY\x01\x00", (header.len() as u16).to_le_bytes().as_slice(), header.as_bytes(), values].concat()
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The values of a written file of f32, after the header's `shape`, which must be as expected.
#[track_caller]
fn read_floats(path: &Path, shape: &str) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap();
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let header = String::from_utf8_lossy(&bytes[10..start]);
    assert!(header.contains("'<f4'") && header.contains(&format!("'shape': {shape}")), "{header}");
    bytes[start..].as_chunks::<4>().0.iter().map(|value| f32::from_le_bytes(*value)).collect()
}

/// A smooth picture, as the input of a model with pictures of this side.
fn picture(side: usize) -> Vec<u8> {
    let value = |at: usize| ((at % side) as f32 / side as f32 * 6.0).sin() * ((at / side % side) as f32 / 40.0).cos();
    let values: Vec<f32> = (0..3 * side * side).map(value).collect();
    npy("<f4", false, &format!("(1, 3, {side}, {side})"), &floats(&values))
}

/// The names of the files in a directory.
fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// y = x + x, for x of f32 with an axis `n` and an axis of 2.
fn doubling() -> Vec<u8> {
    let port = |name| Port { name, dtype: 1, dims: &["n", "2"] };
    model(&[node("Add", &["x", "x"], &["y"])], &[port("x")], &[port("y")])
}

// ---- running

#[test]
fn a_model_gives_the_same_results_on_both_sides() {
    let dir = dir("a_model_gives_the_same");
    let (net, input) = (shipped("blazeface.onnx"), file(&dir, "x.npy", picture(128)));
    let run = |side: &str| {
        let (threads, out) = (["--threads", "2"], format!("out{side}"));
        let args =
            [&["model", "run", &net, "--input", &input, "--output", &out, side, "--json"], &threads[..]].concat();
        json(&ends_with(0, vramp_in(&dir, &args)))
    };
    let [cpu, gpu] = ["--cpu", "--gpu"].map(run);
    assert_eq!((&cpu["backend"], &cpu["dispatches"], &cpu["threads"]), (&"cpu".into(), &0.into(), &2.into()), "{cpu}");
    assert_ne!(gpu["backend"], "cpu");
    assert!(gpu["dispatches"].as_u64() > Some(0), "{gpu}");
    assert_eq!((&gpu["compiles"], &gpu["submits"]), (&0.into(), &gpu["reps"]), "the second run only computes: {gpu}");
    for line in [&cpu, &gpu] {
        for key in ["ms_median", "ms_min", "cpu_ms", "first_ms", "load_ms", "reps", "memory", "outputs"] {
            assert!(!line[key].is_null(), "{key} in {line}");
        }
        assert_eq!(line["outputs"]["regressors"], serde_json::json!([1, 896, 16]), "{line}");
    }
    assert_eq!(names(&dir.join("out--cpu")), ["classificators.npy", "regressors.npy"]);
    for (name, shape) in [("regressors.npy", "(1, 896, 16)"), ("classificators.npy", "(1, 896, 1)")] {
        let [cpu, gpu] = ["out--cpu", "out--gpu"].map(|out| read_floats(&dir.join(out).join(name), shape));
        let largest = cpu.iter().fold(0.0_f32, |most, value| most.max(value.abs()));
        let apart = cpu.iter().zip(&gpu).fold(0.0_f32, |most, (cpu, gpu)| most.max((cpu - gpu).abs()));
        assert!(apart <= 1e-4 * largest && largest > 1.0, "{name}: {apart} of {largest}");
    }
}

#[test]
fn arrays_of_all_types_come_out_as_they_went_in() {
    let dir = dir("arrays_of_all_types");
    for (descr, dtype, values) in [
        ("<f4", 1, floats(&[1.5, -0.25])),
        ("|u1", 2, vec![0, 255]),
        ("|i1", 3, vec![128, 127]),
        ("<i4", 6, [i32::MIN, i32::MAX].map(i32::to_le_bytes).concat()),
        ("<i8", 7, [i64::from(i32::MIN), i64::from(i32::MAX)].map(i64::to_le_bytes).concat()),
        ("|b1", 9, vec![1, 0]),
        ("<f2", 10, vec![0x00, 0x3e, 0x00, 0xc2]),
    ] {
        let port = |name| Port { name, dtype, dims: &["1", "2"] };
        let net = file(&dir, "net.onnx", model(&[node("Identity", &["x"], &["y"])], &[port("x")], &[port("y")]));
        let array = npy(descr, false, "(1, 2)", &values);
        let input = file(&dir, "x.npy", &array);
        for side in ["--cpu", "--gpu"] {
            ends_with(0, vramp_in(&dir, &["model", "run", &net, "--input", &input, "--output", "out", side]));
            assert!(std::fs::read(dir.join("out/y.npy")).unwrap() == array, "{descr} {side}");
        }
    }
}

#[test]
fn inputs_have_names_or_take_their_turn_and_fortran_order_is_read() {
    let dir = dir("inputs_have_names");
    let port = |name| Port { name, dtype: 1, dims: &["2", "3"] };
    let net = file(&dir, "net.onnx", model(&[node("Sub", &["a", "b"], &["c"])], &[port("a"), port("b")], &[port("c")]));
    file(&dir, "one.npy", npy("<f4", false, "(2, 3)", &floats(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0])));
    file(&dir, "two.npy", npy("<f4", true, "(2, 3)", &floats(&[0.0, 30.0, 10.0, 40.0, 20.0, 50.0])));
    for (inputs, sign) in
        [(["one.npy", "two.npy"], 1.0), (["b=two.npy", "one.npy"], 1.0), (["b=one.npy", "a=two.npy"], -1.0)]
    {
        let args = ["model", "run", &net, "--input", inputs[0], "--input", inputs[1], "--output", "out", "--cpu"];
        let run = ends_with(0, vramp_in(&dir, &args));
        assert!(run.out.starts_with("c  2x3  f32  ") && run.out.contains("on the CPU"), "{}", run.out);
        let differences = [1.0, -8.0, -17.0, -26.0, -35.0, -44.0].map(|value: f32| sign * value);
        assert_eq!(read_floats(&dir.join("out/c.npy"), "(2, 3)"), differences);
    }
}

#[test]
fn a_model_runs_with_each_size_that_its_axes_allow() {
    let dir = dir("a_model_runs_with_each_size");
    let net = file(&dir, "net.onnx", doubling());
    for rows in [1, 3] {
        let input = file(&dir, "x.npy", npy("<f4", false, &format!("({rows}, 2)"), &floats(&vec![1.5; 2 * rows])));
        ends_with(0, vramp_in(&dir, &["model", "run", &net, "--input", &input, "--output", "out", "--cpu"]));
        assert_eq!(read_floats(&dir.join("out/y.npy"), &format!("({rows}, 2)")), vec![3.0; 2 * rows]);
    }
}

#[test]
fn times_are_those_of_the_repetitions_without_the_first_run() {
    let dir = dir("times_are_those");
    let (net, input) = (file(&dir, "net.onnx", doubling()), file(&dir, "x.npy", npy("<f4", false, "(1, 2)", &[0; 8])));
    let line =
        json(&ends_with(0, vramp(&["model", "run", &net, "--input", &input, "--repeat", "5", "--cpu", "--json"])));
    let [median, min, cpu] = ["ms_median", "ms_min", "cpu_ms"].map(|key| line[key].as_f64().unwrap());
    assert!(min <= median && cpu >= 0.0 && line["reps"] == 5, "{line}");
    let run = ends_with(0, vramp(&["model", "run", &net, "--input", &input, "--cpu"]));
    assert!(run.out.contains("first run") && !run.out.contains("median"), "{}", run.out);
    assert_eq!(run.err, "");
}

// ---- wrong requests

/// Runs the doubling model with these further arguments in a directory that has good and bad arrays.
#[track_caller]
fn refused(code: i32, dir: &Path, args: &[&str], words: &str) {
    let run = ends_with(code, vramp_in(dir, &[&["model", "run"], args].concat()));
    assert!(run.err.contains(words), "{args:?}: {}", run.err);
    assert!(!dir.join("out").exists(), "{args:?} wrote something");
}

#[test]
fn wrong_inputs_are_refused_before_anything_runs() {
    let dir = dir("wrong_inputs");
    file(&dir, "net.onnx", doubling());
    file(&dir, "x.npy", npy("<f4", false, "(1, 2)", &[0; 8]));
    file(&dir, "double.npy", npy("<f8", false, "(1, 2)", &[0; 16]));
    file(&dir, "flat.npy", npy("<f4", false, "(2,)", &[0; 8]));
    file(&dir, "wide.npy", npy("<f4", false, "(1, 3)", &[0; 12]));
    file(&dir, "short.npy", npy("<f4", false, "(1, 2)", &[0; 7]));
    file(&dir, "picture.png", "\u{89}PNG");
    let rows: &[(&[&str], &str)] = &[
        (&[], "input `x` has no values; add --input x=FILE.npy"),
        (&["--input", "none.npy"], "--input none.npy: "),
        (&["--input", "y=x.npy"], "the model has no input `y` (did you mean `x`?); its input is `x` (f32 nx2)"),
        (&["--input", "x.npy", "--input", "x.npy"], "no input is left for it"),
        (&["--input", "x=x.npy", "--input", "x=x.npy"], "is given twice for `x`"),
        (
            &["--input", "double.npy"],
            "values are f64, but input `x` is f32; convert the array with `x.astype('float32')`",
        ),
        (&["--input", "flat.npy"], "the shape is 2, but input `x` is nx2"),
        (&["--input", "wide.npy"], "the shape is 1x3, but input `x` is nx2"),
        (&["--input", "short.npy"], "takes 8 bytes after the header, but the file has 7 there"),
        (&["--input", "picture.png"], "not a .npy file"),
        (&["--input", "."], "it is a directory"),
        (&["--input", "x.npy", "--cpu", "--gpu"], "cannot be used with"),
        (&["--input", "x.npy", "--memory", "much"], "is not a unit of memory"),
        (&["--input", "x.npy", "--repeat", "0"], "--repeat"),
    ];
    for (args, words) in rows {
        refused(2, &dir, &[&["net.onnx", "--output", "out"], *args].concat(), words);
    }
    refused(2, &dir, &["x.npy", "--input", "x.npy", "--output", "out"], "x.npy: ");
    refused(2, &dir, &["none.onnx", "--output", "out"], "none.onnx");
}

#[test]
fn an_integer_beyond_32_bits_is_refused_with_its_place() {
    let dir = dir("an_integer_beyond");
    let port = |name| Port { name, dtype: 7, dims: &["2", "2"] };
    file(&dir, "net.onnx", model(&[node("Identity", &["x"], &["y"])], &[port("x")], &[port("y")]));
    let values = [1, 2, 1 << 40, 1 << 41].map(i64::to_le_bytes).concat();
    file(&dir, "x.npy", npy("<i8", false, "(2, 2)", &values));
    refused(2, &dir, &["net.onnx", "--input", "x.npy"], "the value 1099511627776 at [1, 0] does not fit into 32 bits");
}

#[test]
fn axes_of_one_name_have_one_length() {
    let dir = dir("axes_of_one_name");
    let port = |name| Port { name, dtype: 1, dims: &["n"] };
    let nodes = [node("Add", &["a", "b"], &["c"])];
    file(&dir, "net.onnx", model(&nodes, &[port("a"), port("b")], &[port("c")]));
    file(&dir, "two.npy", npy("<f4", false, "(2,)", &[0; 8]));
    file(&dir, "three.npy", npy("<f4", false, "(3,)", &[0; 12]));
    let args = ["net.onnx", "--input", "two.npy", "--input", "three.npy"];
    refused(2, &dir, &args, "axis `n` has length 3, but that of input `a` has 2");
}

#[test]
fn unsupported_ops_are_listed_together() {
    let dir = dir("unsupported_ops");
    let port = |name| Port { name, dtype: 1, dims: &["2"] };
    let nodes = [node("Wobble", &["x"], &["a"]), node("Relu", &["a"], &["b"]), node("Einsum", &["b"], &["y"])];
    file(&dir, "net.onnx", model(&nodes, &[port("x")], &[port("y")]));
    file(&dir, "x.npy", npy("<f4", false, "(2,)", &[0; 8]));
    for words in ["2 nodes have unsupported ops", "Wobble", "Einsum"] {
        refused(3, &dir, &["net.onnx", "--input", "x.npy", "--output", "out"], words);
    }
    let run = ends_with(0, vramp_in(&dir, &["model", "inspect", "net.onnx", "--json"]));
    let line = json(&run);
    let ops: Vec<&str> = line["unsupported"].as_array().unwrap().iter().map(|op| op["op"].as_str().unwrap()).collect();
    assert_eq!((ops.as_slice(), &line["flops"]), (["Wobble", "Einsum"].as_slice(), &Value::Null), "{line}");
    let run = ends_with(0, vramp_in(&dir, &["model", "inspect", "net.onnx"]));
    assert!(run.out.contains("unsupported, so that the model does not run\n  Wobble (node `"), "{}", run.out);
}

#[test]
fn a_device_that_is_not_there_or_memory_that_is_too_small_is_code_3() {
    let dir = dir("a_device_that_is_not_there");
    file(&dir, "net.onnx", doubling());
    file(&dir, "x.npy", npy("<f4", false, "(512, 2)", &[0; 4096]));
    let args = ["model", "run", "net.onnx", "--input", "x.npy", "--output", "out"];
    let without_drivers = |more: &str| {
        let mut command = command(&[&args[..], &[more]].concat());
        command.env("VK_DRIVER_FILES", "/none.json").env("__EGL_VENDOR_LIBRARY_FILENAMES", "/none.json");
        command.current_dir(&dir);
        finish(command)
    };
    assert!(ends_with(3, without_drivers("--gpu")).err.contains("no graphics adapter answers"));
    let run: Run = ends_with(0, without_drivers("--json"));
    assert_eq!(json(&run)["backend"], "cpu");
    let run = ends_with(3, vramp_in(&dir, &[&args[..], &["--cpu", "--memory", "5K"]].concat()));
    assert!(run.err.contains("bytes, ") && run.err.contains("available on the host"), "{}", run.err);
}

#[test]
fn a_run_that_is_refused_leaves_no_directory() {
    let dir = dir("a_run_that_is_refused");
    let port = |dtype| move |name| Port { name, dtype, dims: &["2"] };
    let float = port(1);
    // Only the lowering finds that a product of integers is not supported.
    let nodes = [node("Shape", &["x"], &["s"]), node("Gemm", &["s", "s"], &["y"])];
    file(&dir, "net.onnx", model(&nodes, &[float("x")], &[float("y")]));
    file(&dir, "x.npy", npy("<f4", false, "(2,)", &[0; 8]));
    let args = ["net.onnx", "--input", "x.npy", "--output", "out/deep", "--cpu"];
    refused(3, &dir, &args, "Gemm (input 0 of type i64)");
    let line = json(&ends_with(0, vramp_in(&dir, &["model", "inspect", "net.onnx", "--json"])));
    assert_eq!(line["unsupported"][0]["op"], "Gemm (input 0 of type i64)", "{line}");
    // A type that no tensor has.
    let double = port(11);
    file(&dir, "net.onnx", model(&[node("Neg", &["x"], &["y"])], &[double("x")], &[double("y")]));
    let line = json(&ends_with(0, vramp_in(&dir, &["model", "inspect", "net.onnx", "--json"])));
    assert_eq!(line["unsupported"][0]["op"], "input of type f64", "{line}");
}

// ---- files

#[test]
fn names_of_outputs_become_names_of_files_and_never_collide() {
    let dir = dir("names_of_outputs");
    let port = |name| Port { name, dtype: 1, dims: &["2"] };
    let two = |name: &'static str| {
        let nodes = [node("Relu", &["x"], &["head/y"]), node("Neg", &["x"], &[name])];
        model(&nodes, &[port("x")], &[port("head/y"), port(name)])
    };
    file(&dir, "net.onnx", two("other"));
    file(&dir, "collides.onnx", two("head_y"));
    file(&dir, "overwrites.onnx", two("x"));
    file(&dir, "x.npy", npy("<f4", false, "(2,)", &floats(&[-1.0, 2.0])));
    file(&dir, "a file", "");
    let words = "outputs `head/y` and `head_y` would both be written to `head_y.npy`";
    refused(2, &dir, &["collides.onnx", "--input", "x.npy", "--output", "out"], words);
    refused(2, &dir, &["net.onnx", "--input", "x.npy", "--output", "a file"], "choose another directory");
    ends_with(0, vramp_in(&dir, &["model", "run", "net.onnx", "--input", "x.npy", "--output", "new/out", "--cpu"]));
    assert_eq!(names(&dir.join("new/out")), ["head_y.npy", "other.npy"]);
    assert_eq!(read_floats(&dir.join("new/out/head_y.npy"), "(2,)"), [0.0, 2.0]);
}

#[test]
fn an_output_never_replaces_a_file_that_is_read() {
    let dir = dir("an_output_never_replaces");
    let port = |name| Port { name, dtype: 1, dims: &["2"] };
    file(&dir, "net.onnx", model(&[node("Neg", &["x"], &["y"])], &[port("x")], &[port("y")]));
    let array = npy("<f4", false, "(2,)", &floats(&[-1.0, 2.0]));
    file(&dir, "y.npy", &array);
    refused(
        2,
        &dir,
        &["net.onnx", "--input", "y.npy", "--output", ".", "--cpu"],
        "which is read; choose another directory",
    );
    assert!(std::fs::read(dir.join("y.npy")).unwrap() == array);
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_long_inference_and_leaves_no_files() {
    use std::io::{BufRead as _, BufReader};

    let dir = dir("ctrl_c_ends");
    // Products of large matrices, one after the other: minutes of work on the CPU.
    let names: Vec<String> = (0..200).map(|at| format!("v{at}")).collect();
    let nodes: Vec<Vec<u8>> = names.windows(2).map(|pair| node("MatMul", &[&pair[0], &pair[0]], &[&pair[1]])).collect();
    let port = |name| Port { name, dtype: 1, dims: &["1500", "1500"] };
    file(&dir, "net.onnx", model(&nodes, &[port("v0")], &[port("v199")]));
    file(&dir, "x.npy", npy("<f4", false, "(1500, 1500)", &vec![0; 9_000_000]));
    for side in ["--cpu", "--gpu"] {
        let mut command = command(&["model", "run", "net.onnx", "--input", "x.npy", "--output", "out", "-v", side]);
        command.current_dir(&dir);
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // Printed right before the inference.
        assert!(lines.next().is_some_and(|line| line.is_ok()));
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{side}");
        assert_eq!(std::fs::read_dir(dir.join("out")).unwrap().count(), 0, "{side}");
    }
}

// ---- inspect

#[test]
fn inspect_shows_what_a_model_reads_computes_and_needs() {
    let line = json(&ends_with(0, vramp(&["model", "inspect", &shipped("selfie.onnx"), "--json"])));
    assert_eq!(line["inputs"][0]["shape"], serde_json::json!([1, 3, 256, 256]), "{line}");
    assert_eq!((&line["inputs"][0]["type"], &line["unsupported"]), (&"f32".into(), &serde_json::json!([])), "{line}");
    assert!(line["ops"]["Conv"].as_u64() > Some(10), "{line}");
    assert!(line["parameters"].as_u64() > Some(100_000) && line["flops"].as_u64() > Some(50_000_000), "{line}");
    assert!(line["memory"]["working_bytes"].as_u64() > Some(1 << 20), "{line}");
    let run = ends_with(0, vramp(&["model", "inspect", &shipped("selfie.onnx")]));
    for words in ["ONNX, opset ", "\ninputs\n", "1x3x256x256", "\noutputs\n", "\nops\n", "Conv ", "parameters", "FLOPs"]
    {
        assert!(run.out.contains(words), "{words} is missing:\n{}", run.out);
    }
    assert!(!run.out.contains("unsupported"), "{}", run.out);
}

#[test]
fn the_size_of_an_input_can_be_given() {
    let dir = dir("the_size_of_an_input");
    let net = file(&dir, "net.onnx", doubling());
    let working = |more: &[&str]| {
        let line = json(&ends_with(0, vramp(&[&["model", "inspect", &net, "--json"], more].concat())));
        (line["sizes"]["x"].clone(), line["memory"]["working_bytes"].as_u64().unwrap())
    };
    let ((one, small), (many, large)) = (working(&[]), working(&["--size", "x=1000x2"]));
    assert_eq!([one, many], [serde_json::json!([1, 2]), serde_json::json!([1000, 2])]);
    assert!(large >= small + 7000, "{small} {large}");
    for (size, words) in [
        ("1000x3", "the shape does not fit `x`; its input is `x` (f32 nx2)"),
        ("big", "expected a shape"),
        ("z=1x2", "the model has no input `z`"),
    ] {
        let run = ends_with(2, vramp(&["model", "inspect", &net, "--size", size]));
        assert!(run.err.contains(words), "{}", run.err);
    }
}

#[test]
fn a_file_that_is_no_model_is_refused() {
    let dir = dir("a_file_that_is_no_model");
    let whole = doubling();
    for (name, bytes) in [("empty.onnx", &b""[..]), ("text.onnx", b"hello"), ("cut.onnx", &whole[..whole.len() / 2])] {
        let net = file(&dir, name, bytes);
        for what in ["inspect", "run"] {
            let run = ends_with(2, vramp(&["model", what, &net]));
            assert!(run.err.starts_with("error: ") && run.err.contains(name), "{}", run.err);
        }
    }
}

#[test]
fn the_models_of_the_repository_are_measured() {
    for (side, backend) in [("--cpu", "cpu"), ("--gpu", "vulkan")] {
        let line = json(&ends_with(0, vramp(&["bench", "blazeface", side, "--seconds", "0.001", "--json"])));
        assert_eq!([&line["peer"], &line["work"], &line["size"]], ["vramp", "blazeface", "1x3x128x128"], "{line}");
        assert_eq!(line["backend"], backend);
        for key in ["threads", "ms_median", "ms_min", "cpu_ms", "fps", "reps", "hash"] {
            assert!(!line[key].is_null(), "{key} in {line}");
        }
    }
    let run = ends_with(3, vramp(&["bench", "blazeface", "--cpu", "--seconds", "0.001", "--memory", "100K"]));
    assert!(run.err.contains("available on the host"), "{}", run.err);
    let mut command = command(&["bench", "yolox_text", "--cpu"]);
    // Outside the repository.
    command.current_dir(std::env::temp_dir());
    let run = ends_with(1, finish(command));
    assert!(run.err.contains("cargo xtask models"), "{}", run.err);
}
