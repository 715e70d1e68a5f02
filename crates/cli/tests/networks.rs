//! The handler `model` and the sink `values` as people use them: real networks on pictures whose contents are known, on
//! both sides; what stays on the device; the files of values.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::onnx_file::{Port, model, node};
use crate::program::{Run, dir, ends_with, file, vramp, vramp_in};

const SIDES: [&str; 2] = ["--cpu", "--gpu"];

/// A model of the repository, or a file that `cargo xtask models` fetches.
fn fetched(name: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let places = ["crates/model/models", "target/models"].map(|folder| root.join(folder).join(name));
    let found = places.into_iter().find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} is missing; `cargo xtask models` fetches it")).to_str().unwrap().to_owned()
}

/// Replaces `{name}` in a pipeline's text by the path of that file.
fn with_files(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}').unwrap();
        out.push_str(before);
        out.push_str(&fetched(name));
        rest = after;
    }
    out + rest
}

fn run(text: &str, args: &[&str]) -> Run {
    vramp(&[&["run", &with_files(text), "-q"], args].concat())
}

/// The lines of JSON that a run writes to standard output.
fn lines(text: &str, args: &[&str]) -> Vec<Value> {
    let run = ends_with(0, run(text, args));
    run.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The red values of the first frame that a pipeline makes.
fn reds(test: &str, text: &str, side: &str) -> Vec<u8> {
    let dir = dir(test);
    ends_with(0, vramp_in(&dir, &["run", &with_files(&format!("{text} ! raw path=out.rgba")), "-q", side]));
    std::fs::read(dir.join("out.rgba")).unwrap().as_chunks::<4>().0.iter().map(|pixel| pixel[0]).collect()
}

fn numbers(of: &Value) -> Vec<f64> {
    of.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

#[test]
fn the_face_of_the_astronaut_is_found() {
    let text = "image path={astronaut.png} ! model path={blazeface.onnx} output=boxes decode=blazeface range=-1..1 name=m \
                ! null; m.data ! values path=-";
    let found = SIDES.map(|side| {
        let lines = lines(text, &[side]);
        assert_eq!((lines.len(), &lines[0]["number"], &lines[0]["pts"]), (1, &0.into(), &0.0.into()));
        let boxes = lines[0]["boxes"].as_array().unwrap().clone();
        assert_eq!((boxes.len(), &boxes[0]["class"], &boxes[0]["label"]), (1, &0.into(), &Value::Null), "{side}");
        boxes
    });
    let [host, there] = found.map(|boxes| (numbers(&boxes[0]["box"]), boxes[0]["score"].as_f64().unwrap()));
    for (own, expected) in host.0.iter().zip([179.0, 82.0, 271.0, 175.0]) {
        assert!((own - expected).abs() < 8.0, "{host:?}");
    }
    assert!(host.0.iter().zip(&there.0).all(|(one, other)| (one - other).abs() < 0.5), "{host:?} and {there:?}");
    assert!(host.1 > 0.5 && (host.1 - there.1).abs() < 1e-3, "{host:?} and {there:?}");
}

/// The labels and scores of a picture, best first.
fn classes(picture: &str, side: &str) -> Vec<(String, f64)> {
    let text = format!(
        "image path={{{picture}}} ! model path={{efficientnet_lite0.onnx}} output=classes labels={{imagenet_labels.txt}} \
         fit=crop mean=0.498 std=0.502 name=m ! null; m.data ! values path=-"
    );
    let lines = lines(&text, &[side]);
    let row = |row: &Value| (row["label"].as_str().unwrap().to_owned(), row["score"].as_f64().unwrap());
    lines[0]["classes"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn cats_and_coffee_are_told_apart() {
    let cat = SIDES.map(|side| classes("chelsea.png", side));
    let mut names: Vec<&str> = cat[0].iter().take(3).map(|(label, _)| label.as_str()).collect();
    names.sort_unstable();
    assert_eq!((names, cat[0].len()), (vec!["Egyptian cat", "tabby", "tiger cat"], 5));
    let coffee = SIDES.map(|side| classes("coffee.png", side));
    assert_eq!(coffee[0][0].0, "espresso");
    for [host, there] in [cat, coffee] {
        for (one, other) in host.iter().zip(&there) {
            assert!(one.0 == other.0 && (one.1 - other.1).abs() < 1e-3, "{host:?} and {there:?}");
        }
    }
}

#[test]
fn the_text_on_a_page_is_found() {
    let text = "image path={page.png} ! model path={ocr_det.onnx} output=mask show=mask channels=bgr \
                mean=0.485,0.456,0.406 std=0.229,0.224,0.225";
    let [host, there] = SIDES.map(|side| reds("the_text_on_a_page", text, side));
    let width = 384;
    assert_eq!(host.len(), width * 191);
    let most = |from: usize, to: usize| *host[from * width..to * width].iter().max().unwrap();
    assert!(most(10, 35) > 200 && most(48, 64) > 200, "the heading and the first line");
    assert!(most(141, 160) < 128, "between the text and the code");
    let inside = host.iter().filter(|level| **level > 127).count() * 100 / host.len();
    assert!((5..50).contains(&inside), "{inside} % of the page");
    assert!(host.iter().zip(&there).all(|(one, other)| one.abs_diff(*other) <= 1));
    let text = "image path={page.png} ! model path={yolox_text.onnx} output=boxes decode=yolox range=0..255 \
                channels=bgr fit=letterbox name=m ! null; m.data ! values path=-";
    let boxes = lines(text, &["--cpu"])[0]["boxes"].as_array().unwrap().clone();
    assert!(boxes.len() >= 10, "{boxes:?}");
    for one in boxes {
        let bounds = numbers(&one["box"]);
        // Words are lines high, and inside the page.
        assert!(
            (8.0..40.0).contains(&(bounds[3] - bounds[1])) && bounds[2] <= 384.0 && bounds[3] <= 191.0,
            "{bounds:?}"
        );
    }
}

#[test]
fn a_person_is_masked_as_by_mediapipe() {
    let golden = format!("{}/tests/data/astronaut-mask.png", env!("CARGO_MANIFEST_DIR"));
    let golden = reds("mediapipe", &format!("image path={golden}"), "--cpu");
    let text = "image path={astronaut.png} ! model path={selfie.onnx} output=mask show=mask";
    let masks = SIDES.map(|side| reds("a_person_is_masked", text, side));
    for mask in &masks {
        let pairs = || mask.iter().zip(&golden).map(|(own, other)| (*own > 127, *other > 127));
        let both = pairs().filter(|(own, other)| *own && *other).count();
        let any = pairs().filter(|(own, other)| *own || *other).count();
        assert!(both as f64 > 0.95 * any as f64, "{both} of {any} pixels");
    }
    assert!(masks[0].iter().zip(&masks[1]).all(|(one, other)| one.abs_diff(*other) <= 1));
}

#[test]
fn frames_networks_and_results_stay_on_the_device() {
    let budget = ["--gpu", "--require-gpu", "--budget", "uploads=0,downloads=0,submits=1,allocs=0"];
    for text in [
        "pattern frames=60 size=160x120 name=p ! blur ! mix name=m mode=over amount=1 ! null; \
         p. ! model path={selfie.onnx} output=mask ! m.b",
        "pattern frames=60 size=160x120 ! model path={blazeface.onnx} output=boxes decode=blazeface range=-1..1 ! null",
        "pattern frames=60 size=160x120 ! model path={blazeface.onnx} output=raw ! null; model0.result ! null",
    ] {
        ends_with(0, run(text, &budget));
    }
}

#[test]
fn classes_stay_on_the_device() {
    let text = "pattern frames=40 size=160x120 ! model path={efficientnet_lite0.onnx} output=classes \
                labels={imagenet_labels.txt} ! null";
    let budget = ["--gpu", "--require-gpu", "--budget", "uploads=0,downloads=0,submits=1,allocs=0"];
    ends_with(0, run(text, &budget));
}

#[test]
fn steady_frames_on_the_cpu_allocate_nothing() {
    for (text, threads) in [
        (
            "pattern frames=60 size=160x120 name=p ! blur ! mix name=m mode=over amount=1 ! null; \
             p. ! model path={selfie.onnx} output=mask ! m.b",
            "1",
        ),
        (
            "pattern frames=60 size=160x120 ! model path={blazeface.onnx} output=boxes decode=blazeface range=-1..1 ! null; \
             model0.data ! null",
            "2",
        ),
        ("pattern frames=60 size=160x120 ! model path={blazeface.onnx} ! null; model0.result ! null", "1"),
    ] {
        ends_with(0, run(text, &["--cpu", "--threads", threads, "--budget", "allocs=0,drops=0"]));
    }
}

/// A network that returns its input, for frames of any size.
fn same(dir: &Path) {
    let dims = ["1", "c", "h", "w"];
    let port = |name| Port { name, dtype: 1, dims: &dims };
    file(dir, "same.onnx", model(&[node("Identity", &["x"], &["y"])], &[port("x")], &[port("y")]));
}

const SOLID: &str = "pattern kind=solid color=0a141e size=2x1 fps=4 frames=3 ! model path=same.onnx size=2x1 range=0..255 \
                     name=m ! null; m.result ! values";

#[test]
fn values_of_tensors_are_written_as_json_numpy_and_safetensors() {
    let dir = dir("values_of_tensors");
    same(&dir);
    let write = |path: &str| ends_with(0, vramp_in(&dir, &["run", &format!("{SOLID} path={path}"), "-q", "--cpu"]));
    let line = |number: u32, pts: &str| {
        format!(
            "{{\"number\":{number},\"pts\":{pts},\"shape\":[1,3,1,2],\"type\":\"f32\",\
             \"values\":[10.0,10.0,20.0,20.0,30.0,30.0]}}\n"
        )
    };
    let expected = [line(0, "0.0"), line(1, "0.25"), line(2, "0.5")].concat();
    assert_eq!(write("-").out, expected);
    write("out.jsonl");
    assert_eq!(std::fs::read_to_string(dir.join("out.jsonl")).unwrap(), expected);
    write("out.npy");
    let bytes = std::fs::read(dir.join("out.npy")).unwrap();
    let header = String::from_utf8_lossy(&bytes[10..128]);
    assert!(header.contains("'<f4'") && header.contains("'shape': (3, 1, 3, 1, 2,)"), "{header}");
    let values =
        |bytes: &[u8]| -> Vec<f32> { bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect() };
    let frame = [10.0, 10.0, 20.0, 20.0, 30.0, 30.0];
    assert_eq!(values(&bytes[128..]), [frame, frame, frame].concat());
    write("out.safetensors");
    let bytes = std::fs::read(dir.join("out.safetensors")).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let head: Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let entry = &head["000002"];
    assert_eq!((&entry["dtype"], &entry["shape"]), (&"F32".into(), &serde_json::json!([1, 3, 1, 2])));
    assert_eq!(entry["data_offsets"], serde_json::json!([48, 72]));
    assert_eq!((&head["__metadata__"]["pts.000002"], (8 + length) % 8), (&"0.5".into(), 0));
    assert_eq!(values(&bytes[8 + length..]).len(), 18);
}

#[test]
fn files_of_values_are_whole_or_absent() {
    let dir = dir("files_of_values");
    same(&dir);
    let names = || {
        let mut names: Vec<String> =
            std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    // Pictures of two sizes do not fit into one array; JSON takes them.
    ends_with(0, vramp_in(&dir, &["run", "pattern size=2x1 frames=1 ! png path=a.png", "-q", "--cpu"]));
    ends_with(0, vramp_in(&dir, &["run", "pattern size=3x1 frames=1 ! png path=b.png", "-q", "--cpu"]));
    let before = names();
    let text = |path: &str| {
        format!("image path=\"?.png\" ! model path=same.onnx multiple=1 name=m ! null; m.result ! values path={path}")
    };
    let refused = ends_with(1, vramp_in(&dir, &["run", &text("out.npy"), "-q", "--cpu"]));
    assert!(
        refused.err.contains("an array needs equal tensors, so use .safetensors or lines of JSON"),
        "{}",
        refused.err
    );
    // What came before the failure is a whole array of one frame, and nothing else is left.
    let after = |name: &str| names().iter().filter(|name| !before.contains(name)).eq([name]);
    assert!(after("out.npy"), "{:?}", names());
    let bytes = std::fs::read(dir.join("out.npy")).unwrap();
    let header = String::from_utf8_lossy(&bytes[10..128]);
    assert!(header.contains("'shape': (1, 1, 3, 1, 2,)") && bytes.len() == 128 + 24, "{header} {}", bytes.len());
    std::fs::remove_file(dir.join("out.npy")).unwrap();
    ends_with(0, vramp_in(&dir, &["run", &text("out.jsonl"), "-q", "--cpu"]));
    assert_eq!(std::fs::read_to_string(dir.join("out.jsonl")).unwrap().lines().count(), 2);
    // The file of the run before is kept until the new one is complete.
    let both = ends_with(2, vramp_in(&dir, &["run", &text("-"), "--json", "-q", "--cpu"]));
    assert!(both.err.contains("--json"), "{}", both.err);
    let own = ends_with(2, vramp_in(&dir, &["run", &text("same.onnx"), "-q", "--cpu"]));
    assert!(own.err.contains("same.onnx"), "{}", own.err);
    assert!(std::fs::read(dir.join("same.onnx")).unwrap().len() > 10, "the model is not overwritten");
    let classes = "pattern size=2x1 frames=1 ! model path=same.onnx size=1x1 output=classes name=m ! null; \
                   m.data ! values path=classes.npy";
    let refused = ends_with(1, vramp_in(&dir, &["run", classes, "-q", "--cpu"]));
    assert!(refused.err.contains("use .safetensors or lines of JSON for classes and boxes"), "{}", refused.err);
    assert!(!dir.join("classes.npy").exists());
    let refused =
        ends_with(3, vramp_in(&dir, &["run", "pattern size=2x1 frames=1 ! values path=x.npy", "-q", "--cpu"]));
    assert!(refused.err.contains("accepts tensor"), "{}", refused.err);
}

#[test]
fn plans_count_the_memory_and_the_work_of_networks() {
    let plan = |text: &str, args: &[&str]| {
        let text = with_files(text);
        let run =
            ends_with(0, vramp(&[&["plan", &text, "--format", "json", "--profile", "shipped:cpu"], args].concat()));
        let plan: Value = serde_json::from_str(&run.out).unwrap();
        (plan["memory"]["cpu_bytes"].as_u64().unwrap(), plan["cost_ms"].as_f64().unwrap())
    };
    let bare = plan("pattern size=64x48 ! null", &[]);
    let one = plan("pattern size=64x48 ! model path={selfie.onnx} output=mask ! null", &[]);
    let seldom = plan("pattern size=64x48 ! model path={selfie.onnx} output=mask every=5 ! null", &[]);
    assert!(one.0 > bare.0 + 1_000_000, "{one:?} {bare:?}: weights and intermediate values");
    assert!(one.1 > bare.1 + 0.2, "{one:?} {bare:?}");
    assert!(seldom.1 < bare.1 + (one.1 - bare.1) / 3.0, "{seldom:?} {one:?}");
    let text = with_files("pattern size=64x48 ! model path={selfie.onnx} output=mask ! null");
    let refused = ends_with(3, vramp(&["plan", &text, "--cpu", "--memory", "1M"]));
    assert!(refused.err.contains("of model0"), "{}", refused.err);
}
