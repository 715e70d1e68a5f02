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
    let [boxes, there] = SIDES.map(|side| lines(text, &[side])[0]["boxes"].as_array().unwrap().clone());
    assert!(boxes.len() >= 10 && boxes.len() == there.len(), "{boxes:?}\n{there:?}");
    for (one, other) in boxes.iter().zip(&there) {
        let pairs = numbers(&one["box"]).into_iter().zip(numbers(&other["box"]));
        assert!(pairs.into_iter().all(|(one, other)| (one - other).abs() < 0.5), "{one} and {other}");
        assert!((one["score"].as_f64().unwrap() - other["score"].as_f64().unwrap()).abs() < 1e-3, "{one} and {other}");
    }
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
        (
            "pattern frames=60 size=160x120 ! model path={efficientnet_lite0.onnx} output=classes \
             labels={imagenet_labels.txt} ! null; model0.data ! null",
            "1",
        ),
        ("pattern frames=60 size=160x120 ! model path={selfie.onnx} output=mask every=3 ! null", "2"),
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

/// The head and the values of a .safetensors file.
fn safetensors(path: &Path) -> (Value, Vec<f32>) {
    let bytes = std::fs::read(path).unwrap();
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let values = bytes[8 + length..].as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect();
    (serde_json::from_slice(&bytes[8..8 + length]).unwrap(), values)
}

#[test]
fn classes_and_boxes_are_written_with_labels_and_as_safetensors() {
    let dir = dir("classes_and_boxes");
    same(&dir);
    file(&dir, "labels.txt", "red\n \"green\"\nblue\n");
    let write = |model: &str, path: &str| {
        let text = format!(
            "pattern kind=solid color=0a1e14 size=1x1 frames=2 fps=4 ! model path=same.onnx range=0..255 {model} name=m \
             ! null; m.data ! values path={path}"
        );
        ends_with(0, vramp_in(&dir, &["run", &text, "-q", "--cpu"])).out
    };
    let classes = "size=1x1 output=classes top=2 labels=labels.txt";
    let rows = r#"[{"class":1,"label":"\"green\"","score":30.0},{"class":2,"label":"blue","score":20.0}]"#;
    let line = |number: u32, pts: &str| format!("{{\"classes\":{rows},\"number\":{number},\"pts\":{pts}}}\n");
    assert_eq!(write(classes, "-"), [line(0, "0.0"), line(1, "0.25")].concat());
    write(classes, "classes.safetensors");
    let (head, values) = safetensors(&dir.join("classes.safetensors"));
    assert_eq!((&head["000001"]["shape"], values), (&serde_json::json!([2, 2]), [1.0, 30.0, 2.0, 20.0].repeat(2)));
    // A network that returns two boxes for any picture.
    let weights = [
        crate::onnx_file::weight("zero", &[1, 1], &[0.0]),
        crate::onnx_file::weight(
            "table",
            &[2, 6],
            &[[0.0, 0.0, 0.5, 1.0, 0.75, 2.0], [0.25, 0.0, 1.0, 0.5, 1.0, 7.0]].concat(),
        ),
    ];
    let nodes = [
        node("ReduceMean", &["x"], &["mean"]),
        node("Flatten", &["mean"], &["flat"]),
        node("Mul", &["flat", "zero"], &["nothing"]),
        node("Add", &["nothing", "table"], &["y"]),
    ];
    let port = |name, dims| Port { name, dtype: 1, dims };
    let (x, y) = (port("x", &["1", "3", "1", "1"][..]), port("y", &["2", "6"][..]));
    file(&dir, "same.onnx", crate::onnx_file::model_with(&nodes, &weights, &[x], &[y]));
    let boxes = "output=boxes decode=corners labels=labels.txt";
    let rows = r#"[{"box":[0.25,0.0,1.0,0.5],"class":7,"label":null,"score":1.0},{"box":[0.0,0.0,0.5,1.0],"class":2,"label":"blue","score":0.75}]"#;
    let line = |number: u32, pts: &str| format!("{{\"boxes\":{rows},\"number\":{number},\"pts\":{pts}}}\n");
    assert_eq!(write(boxes, "-"), [line(0, "0.0"), line(1, "0.25")].concat());
    write(boxes, "boxes.safetensors");
    let (head, values) = safetensors(&dir.join("boxes.safetensors"));
    assert_eq!(head["000000"]["shape"], serde_json::json!([2, 6]));
    assert_eq!(values[..12], [0.25, 0.0, 1.0, 0.5, 1.0, 7.0, 0.0, 0.0, 0.5, 1.0, 0.75, 2.0]);
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
    let refused = ends_with(2, vramp_in(&dir, &["run", classes, "-q", "--cpu"]));
    assert!(
        refused.err.contains("m.data carries data, but values0.values takes tensor")
            && refused.err.contains("classes and boxes are written as lines of JSON or as .safetensors"),
        "{}",
        refused.err
    );
    assert!(!dir.join("classes.npy").exists());
    let refused =
        ends_with(3, vramp_in(&dir, &["run", "pattern size=2x1 frames=1 ! values path=x.jsonl", "-q", "--cpu"]));
    assert!(refused.err.contains("accepts tensor") && refused.err.contains("`result` of a model"), "{}", refused.err);
    let refused =
        ends_with(2, vramp_in(&dir, &["run", "pattern size=2x1 frames=1 ! values path=x.npy", "-q", "--cpu"]));
    assert!(refused.err.contains("carries video, but values0.values takes tensor"), "{}", refused.err);
    let raw = "pattern size=2x1 frames=1 ! model path=same.onnx size=1x1 name=m ! null; m.data ! null";
    let refused = ends_with(2, vramp_in(&dir, &["run", raw, "-q", "--cpu"]));
    assert!(refused.err.contains("m.data: output=raw sends no data; use output=classes"), "{}", refused.err);
}

#[cfg(target_os = "linux")]
#[test]
fn a_plan_for_a_huge_network_needs_no_memory_for_its_values() {
    let text = with_files("pattern size=64x48 ! model path={ocr_det.onnx} size=8192x8192 ! null");
    // Two GB of addresses, in units of 1,024 bytes.
    let mut limited = std::process::Command::new("sh");
    limited.args(["-c", "ulimit -v 2000000; exec \"$@\"", "sh", env!("CARGO_BIN_EXE_vramp"), "plan", &text]);
    limited.args(["--format", "json", "--profile", "shipped:cpu", "--memory", "1024G"]);
    limited.stdin(std::process::Stdio::null());
    limited.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let run = ends_with(0, crate::program::finish(limited));
    let plan: Value = serde_json::from_str(&run.out).unwrap();
    assert!(plan["memory"]["cpu_bytes"].as_u64().unwrap() > 4 << 30, "{}", plan["memory"]);
}

#[test]
fn labels_of_a_model_with_an_open_batch_are_counted_before_the_run() {
    let dir = dir("labels_of_a_model_with_an_open_batch");
    let labels = file(&dir, "labels.txt", "up\ndown\n");
    let text = format!("pattern ! model path={{orientation.onnx}} output=classes labels={labels} ! null");
    let refused = ends_with(2, run(&text, &["--cpu"]));
    assert!(refused.err.contains("has 2 labels, and the network has 4 classes; add the others"), "{}", refused.err);
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

/// The commands in the indented blocks of a part of a page, under the heading that the part begins with.
#[cfg(unix)]
fn commands(page: &str, heading: &str) -> Vec<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(page)).unwrap();
    let (_, part) = text.split_once(&format!("\n{heading}\n")).unwrap_or_else(|| panic!("{page} has no {heading}"));
    let mut found: Vec<String> = Vec::new();
    for line in part.lines().take_while(|line| !line.starts_with("## ")) {
        match line.strip_prefix("    ") {
            Some(code) if code.starts_with("vramp ") => found.push(code.to_owned()),
            // A pipeline of several lines.
            Some(code) if code.starts_with("  ") => {
                let last = found.last_mut().expect("a command begins at the left");
                last.push('\n');
                last.push_str(code);
            }
            _ => {}
        }
    }
    found
}

/// A folder with the files that commands of the pages about models name.
#[cfg(unix)]
fn folder_of_pages(test: &str) -> PathBuf {
    let dir = dir(test);
    for (name, from) in [
        ("me.png", "astronaut.png"),
        ("selfie.onnx", "selfie.onnx"),
        ("faces.onnx", "blazeface.onnx"),
        ("net.onnx", "efficientnet_lite0.onnx"),
        ("labels.txt", "imagenet_labels.txt"),
    ] {
        std::fs::copy(fetched(from), dir.join(name)).unwrap();
    }
    std::fs::create_dir_all(dir.join("crates/model/models")).unwrap();
    std::fs::copy(fetched("selfie.onnx"), dir.join("crates/model/models/selfie.onnx")).unwrap();
    for name in ["chelsea", "coffee"] {
        let text = with_files(&format!("image path={{{name}.png}} ! resize size=224x224 ! jpeg path={name}.jpg"));
        ends_with(0, vramp_in(&dir, &["run", &text, "-q", "--cpu"]));
    }
    // What `numpy.save` writes.
    let array = |name: &str, dims: &str, count: usize| {
        let mut head = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({dims}), }}");
        head.push_str(&" ".repeat((10 + head.len() + 1).next_multiple_of(64) - 11 - head.len()));
        head.push('\n');
        let mut bytes = [&b"\x93NUMPY\x01\x00"[..], &(head.len() as u16).to_le_bytes(), head.as_bytes()].concat();
        bytes.extend((0..count).flat_map(|at| (at as f32 / count as f32).to_le_bytes()));
        file(&dir, name, bytes);
    };
    array("picture.npy", "1, 3, 224, 224", 3 * 224 * 224);
    array("ids.npy", "1, 8", 8);
    array("mask.npy", "1, 8", 8);
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_vramp"), dir.join("vramp")).unwrap();
    dir
}

/// Runs a command of a page as printed.
#[cfg(unix)]
fn run_as_printed(dir: &Path, command: &str) -> Run {
    let mut shell = std::process::Command::new("sh");
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").unwrap());
    shell.args(["-e", "-c", command]).current_dir(dir).env("PATH", path).env("XDG_CACHE_HOME", crate::program::cache());
    shell.env_remove("DISPLAY").env_remove("WAYLAND_DISPLAY");
    shell.stdin(std::process::Stdio::null());
    shell.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    crate::program::finish(shell)
}

#[cfg(unix)]
#[test]
fn pipelines_of_the_page_about_models_run_as_printed() {
    let dir = folder_of_pages("pipelines_of_the_page_about_models");
    let all = [commands("docs/models.md", "## In a pipeline"), commands("README.md", "## Models")].concat();
    let of = |word: &str| all.iter().filter(|command| command.contains(word)).collect::<Vec<_>>();
    assert!(all.len() >= 5, "{all:?}");
    for command in &all {
        // There is no camera here, and no display; the handlers between them run.
        let command = if command.contains("camera !") {
            command.replace("camera !", "pattern frames=3 !").replace("! window", "! null")
        } else {
            command.clone()
        };
        let run = ends_with(0, run_as_printed(&dir, &command));
        assert!(!run.err.contains("warning"), "{command}: {}", run.err);
    }
    assert_eq!((of("out.png").len(), of("classes.jsonl").len()), (2, 1), "{all:?}");
    assert!(dir.join("out.png").is_file());
    let lines = std::fs::read_to_string(dir.join("classes.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 2, "a line for each picture");
    assert!(lines.contains("\"label\":\"espresso\""), "{lines}");
}

#[cfg(unix)]
#[test]
fn commands_of_the_page_about_models_run_as_printed() {
    let dir = folder_of_pages("commands_of_the_page_about_models");
    let all = commands("docs/models.md", "## The program");
    assert!(all.len() >= 5, "{all:?}");
    for command in &all {
        if command.contains("bench model") {
            // Takes long; bench.rs has its own test.
            continue;
        }
        if command.contains("ids=") {
            let port = |name| Port { name, dtype: 1, dims: &["1", "8"] };
            let nodes = [node("Mul", &["ids", "mask"], &["y"])];
            file(&dir, "net.onnx", model(&nodes, &[port("ids"), port("mask")], &[port("y")]));
        } else {
            std::fs::copy(fetched("efficientnet_lite0.onnx"), dir.join("net.onnx")).unwrap();
        }
        let _ = std::fs::remove_dir_all(dir.join("results"));
        ends_with(0, run_as_printed(&dir, command));
        assert_eq!(command.contains("--output"), dir.join("results").is_dir(), "{command}");
    }
}
