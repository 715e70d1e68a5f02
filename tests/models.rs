//! Models in pipelines: frames become the values of a network and its results become pictures, tensors and data, on either
//! side, without leaving it.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

#[path = "../crates/cli/tests/onnx_file/mod.rs"]
mod onnx_file;

use std::path::PathBuf;
use std::sync::OnceLock;

use vramp::prelude::*;
use vramp::runtime::DataRows;
use vramp::verify::{Options, verify};

use crate::shared::{CHANGING, Changing, device};
use onnx_file::Port;

const F32: u64 = 1;
const U8: u64 = 2;
const F16: u64 = 10;

/// The files of this test: networks of one or two ops.
struct Files {
    folder: PathBuf,
}

impl Files {
    /// Written once for the process.
    fn get() -> &'static Files {
        static FILES: OnceLock<Files> = OnceLock::new();
        FILES.get_or_init(|| {
            let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("models-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            let write = |name: &str, bytes: Vec<u8>| std::fs::write(folder.join(name), bytes).unwrap();
            let picture = ["1", "c", "h", "w"];
            let same = onnx_file::node("Identity", &["x"], &["y"]);
            write("same.onnx", network(&[same], &picture, &picture));
            let same = onnx_file::node("Identity", &["x"], &["y"]);
            let last = ["1", "h", "w", "3"];
            write("last.onnx", network(&[same], &last, &last));
            write(
                "mean.onnx",
                network(&[onnx_file::node("ReduceMean", &["x"], &["y"])], &picture, &["1", "1", "1", "1"]),
            );
            write("labels.txt", b"red\ngreen\nblue\n".to_vec());
            Files { folder }
        })
    }

    fn path(name: &str) -> String {
        Files::get().folder.join(name).to_str().unwrap().to_owned()
    }
}

/// A file with an input `x` and an output `y`.
fn network(nodes: &[Vec<u8>], x: &[&str], y: &[&str]) -> Vec<u8> {
    let port = |name, dims| Port { name, dtype: F32, dims };
    onnx_file::model(nodes, &[port("x", x)], &[port("y", y)])
}

/// One of the two real networks in the repository.
fn shipped(name: &str) -> String {
    format!("{}/crates/model/models/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn built(text: &str, options: RunOptions) -> Pipeline {
    Pipeline::parse(text).device(device()).options(options).build().unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// Number and bytes of each frame that reaches the sink `app name=out`.
fn pulled(text: &str, options: RunOptions) -> (Vec<(u64, Vec<u8>)>, Report) {
    all_frames(&built(text, options).spawn().unwrap())
}

fn all_frames(running: &Running) -> (Vec<(u64, Vec<u8>)>, Report) {
    let row = |frame: PulledFrame| (frame.meta().number, frame.bytes().to_vec());
    let rows = running.output("out").unwrap().iter().map(|frame| row(frame.unwrap())).collect();
    (rows, running.wait().unwrap())
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks::<4>().0.iter().map(|four| f32::from_le_bytes(*four)).collect()
}

fn integers(bytes: &[u8]) -> Vec<i32> {
    bytes.as_chunks::<4>().0.iter().map(|four| i32::from_le_bytes(*four)).collect()
}

/// The mean of a gradient's frame of this size with values from 0 to 1.
fn mean_of_gradient(number: u64, size: Size) -> f64 {
    let ramp = |length: u32| {
        let last = u64::from(length.max(2) - 1);
        (0..u64::from(length)).map(|at| ((510 * at + last) / (2 * last)) as f64).sum::<f64>() / f64::from(length)
    };
    (ramp(size.width) + ramp(size.height) + (number % 256) as f64) / 3.0 / 255.0
}

const SMALL: Size = Size { width: 32, height: 24 };

#[test]
fn every_frame_carries_its_own_result_under_every_policy() {
    let path = Files::path("mean.onnx");
    for side in [Space::Cpu, Space::Gpu] {
        for policy in ["", "{lossless}", "{queue depth=2}", "{latest}"] {
            let text = format!(
                "pattern kind=gradient size=32x24 frames=80 ! model path={path} multiple=8 name=m ! null; \
                 m.result !{policy} app name=out"
            );
            let running = built(&text, RunOptions::new().only(side)).spawn().unwrap();
            let mut numbers = Vec::new();
            for frame in &running.output("out").unwrap() {
                let frame = frame.unwrap();
                let number = frame.meta().number;
                let (mean, expected) = (f64::from(floats(&frame.bytes())[0]), mean_of_gradient(number, SMALL));
                assert!((mean - expected).abs() < 1e-5, "{side} {policy} {number}: {mean}, not {expected}");
                numbers.push(number);
                if numbers.len() % 8 == 0 {
                    // Slow enough that newer frames arrive meanwhile.
                    std::thread::sleep(std::time::Duration::from_millis(3));
                }
            }
            let report = running.wait().unwrap();
            assert!(numbers.is_sorted() && numbers.last() == Some(&79), "{side} {policy}: {numbers:?}");
            assert!(policy.contains('e') && !policy.contains("less") || numbers.len() == 80, "{side} {policy}");
            assert_eq!((report.frames_in, report.memory.leaked), (80, 0), "{side} {policy}");
        }
    }
}

#[test]
fn every_third_frame_is_computed_and_its_result_is_used_until_the_next() {
    let path = Files::path("mean.onnx");
    for side in [Space::Cpu, Space::Gpu] {
        let text = format!(
            "pattern kind=gradient size=32x24 frames=20 ! model path={path} multiple=8 every=3 ! null; \
             model0.result ! app name=out"
        );
        let (rows, report) = pulled(&text, RunOptions::new().only(side));
        assert_eq!(rows.len(), 20);
        for (number, bytes) in rows {
            let (mean, expected) = (f64::from(floats(&bytes)[0]), mean_of_gradient(number / 3 * 3, SMALL));
            assert!((mean - expected).abs() < 1e-5, "{side} {number}: {mean}, not {expected}");
        }
        assert_eq!(report.memory.leaked, 0);
    }
}

/// Values that the setting `range` makes of a level: a factor and what is added.
const RANGES: [(&str, f64, f64); 3] = [("0..1", 1.0 / 255.0, 0.0), ("-1..1", 1.0 / 127.5, -1.0), ("0..255", 1.0, 0.0)];

#[test]
fn prepared_values_are_those_of_resize_and_of_arithmetic_by_hand() {
    let wide = "pattern kind=noise size=53x31 frames=2 seed=3";
    let high = "pattern kind=noise size=31x53 frames=2 seed=4";
    // The part of the frame that the network sees, its place in the network's input, and the size of that input.
    let cases = [
        (wide, "stretch", "", [0, 0, 24, 16], [24, 16]),
        (wide, "crop", "! crop x=3 y=0 size=47x31", [0, 0, 24, 16], [24, 16]),
        (wide, "letterbox", "", [0, 1, 24, 14], [24, 16]),
        (high, "letterbox", "", [7, 0, 9, 16], [24, 16]),
        (high, "crop", "! crop x=0 y=16 size=31x21", [0, 0, 24, 16], [24, 16]),
    ];
    for side in [Space::Cpu, Space::Gpu] {
        for (at, (source, fit, part, [left, top, across, down], [width, height])) in cases.into_iter().enumerate() {
            let (range, factor, offset) = RANGES[at % 3];
            let bgr = at % 2 == 1;
            let order = if bgr { "bgr" } else { "rgb" };
            let (path, last) = (Files::path("same.onnx"), at == 2);
            let path = if last { Files::path("last.onnx") } else { path };
            let text = format!(
                "{source} ! model path={path} size={width}x{height} fit={fit} range={range} channels={order} ! null; \
                 model0.result ! app name=out"
            );
            let (values, _) = pulled(&text, RunOptions::new().only(side));
            let text = format!("{source} {part} ! resize size={across}x{down} ! app name=out");
            let (levels, _) = pulled(&text, RunOptions::new().only(Space::Cpu));
            for ((number, values), (_, levels)) in values.iter().zip(&levels) {
                let values = floats(values);
                assert_eq!(values.len(), 3 * width * height);
                for (y, x, channel) in
                    (0..height).flat_map(|y| (0..width).flat_map(move |x| (0..3).map(move |c| (y, x, c))))
                {
                    let color = if bgr { 2 - channel } else { channel };
                    let inside = (left..left + across).contains(&x) && (top..top + down).contains(&y);
                    let level = if inside { levels[((y - top) * across + x - left) * 4 + color] } else { 114 };
                    let expected = f64::from(level) * factor + offset;
                    let index = if last { (y * width + x) * 3 + channel } else { (channel * height + y) * width + x };
                    let value = f64::from(values[index]);
                    assert!(
                        (value - expected).abs() <= 1e-6 * expected.abs().max(1.0),
                        "{side} {fit} frame {number} at {x} {y} channel {channel}: {value}, not {expected}"
                    );
                }
            }
        }
    }
}

#[test]
fn means_and_deviations_count_on_values_from_0_to_1_and_gray_is_that_of_grayscale() {
    let path = Files::path("same.onnx");
    let source = "pattern kind=noise size=16x8 frames=1";
    let (colors, _) = pulled(&format!("{source} ! app name=out"), RunOptions::new().only(Space::Cpu));
    let (gray, _) = pulled(&format!("{source} ! grayscale ! app name=out"), RunOptions::new().only(Space::Cpu));
    for side in [Space::Cpu, Space::Gpu] {
        let values = |settings: &str| {
            let text =
                format!("{source} ! model path={path} size=16x8 {settings} name=m ! null; m.result ! app name=out");
            floats(&pulled(&text, RunOptions::new().only(side)).0[0].1)
        };
        let scaled = values("mean=0.485,0.456,0.406 std=0.229,0.224,0.225 channels=bgr");
        let means = [(0.406, 0.225), (0.456, 0.224), (0.485, 0.229)];
        for (at, value) in scaled.iter().enumerate() {
            let (channel, pixel) = (at / 128, at % 128);
            let level = f64::from(colors[0].1[4 * pixel + 2 - channel]) / 255.0;
            let expected = (level - means[channel].0) / means[channel].1;
            assert!((f64::from(*value) - expected).abs() < 2e-6, "{side} {at}: {value}, not {expected}");
        }
        let levels = values("channels=gray range=0..255");
        let expected: Vec<f32> = gray[0].1.as_chunks::<4>().0.iter().map(|pixel| f32::from(pixel[0])).collect();
        assert_eq!(levels, expected, "{side}");
    }
}

/// The selfie network knows persons; a disc is what it can be given here.
fn masked(side: Space, settings: &str) -> (Vec<(u64, Vec<u8>)>, Report) {
    let path = shipped("selfie.onnx");
    let text =
        format!("pattern kind=disc size=90x70 frames=3 ! model path={path} output=mask {settings}! app name=out");
    pulled(&text, RunOptions::new().only(side))
}

#[test]
fn masks_on_both_sides_differ_by_one_level_at_most() {
    for settings in ["", "show=mask", "show=mask threshold=0.5", "fit=letterbox", "fit=crop activation=sigmoid"] {
        let (host, _) = masked(Space::Cpu, settings);
        let (there, report) = masked(Space::Gpu, settings);
        assert_eq!((host.len(), report.counters.downloads, report.memory.leaked), (3, 3, 0), "{settings}");
        let mut seen = std::collections::BTreeSet::new();
        for ((number, host), (_, there)) in host.iter().zip(&there) {
            for (at, (one, other)) in host.iter().zip(there).enumerate() {
                let most = if settings.contains("threshold") { 255 } else { 1 };
                assert!(one.abs_diff(*other) <= most, "{settings}: frame {number} byte {at}: {one} and {other}");
                seen.insert(*one);
            }
            let differing = host.iter().zip(there).filter(|(one, other)| one.abs_diff(**other) > 1).count();
            assert!(differing * 1000 <= host.len(), "{settings}: frame {number}: {differing} bytes");
        }
        assert!(seen.len() > 1, "{settings}: there is something to see");
    }
}

#[test]
fn a_model_goes_on_after_its_device_is_lost_and_returns_to_it() {
    let path = Files::path("mean.onnx");
    let text = format!(
        "pattern kind=gradient size=32x24 frames=90 ! model path={path} multiple=8 every=2 ! null; \
         model0.result ! app name=out"
    );
    for options in [RunOptions::new(), RunOptions::new().on_loss(OnLoss::Cpu)] {
        // On a device of its own, which can be lost.
        let running = Pipeline::parse(&text)
            .options(options.only(Space::Gpu).lose_device_at(&[30]))
            .build()
            .unwrap()
            .spawn()
            .unwrap();
        let (rows, report) = all_frames(&running);
        assert_eq!((report.recoveries.len(), report.memory.leaked), (1, 0), "{:?}", report.memory.leaks);
        assert!(rows.len() >= 70, "{} frames", rows.len());
        for (number, bytes) in rows {
            let mean = f64::from(floats(&bytes)[0]);
            // A loss makes the next frame the first of a pair.
            let right = [number, number.saturating_sub(1)].map(|number| mean_of_gradient(number, SMALL));
            assert!(right.iter().any(|right| (mean - right).abs() < 1e-5), "frame {number}: {mean}, not {right:?}");
        }
    }
}

#[test]
fn frames_may_change_their_size_within_a_stream() {
    const SIZES: &[Size] =
        &[Size { width: 32, height: 24 }, Size { width: 8, height: 40 }, Size { width: 33, height: 9 }];
    let path = Files::path("mean.onnx");
    for side in [Space::Cpu, Space::Gpu] {
        let mut registry = vramp::registry();
        registry.add(&CHANGING, |_| Ok(Changing { sizes: SIZES, every: 3 })).unwrap();
        let text = format!("changing size=32x24 ! model path={path} size=16x16 ! null; model0.result ! app name=out");
        let options = RunOptions::new().only(side).frames(20);
        let running = Pipeline::parse(text)
            .registry(&registry)
            .device(device())
            .options(options)
            .build()
            .unwrap()
            .spawn()
            .unwrap();
        let mut count = 0;
        for frame in &running.output("out").unwrap() {
            let frame = frame.unwrap();
            let (number, mean) = (frame.meta().number, floats(&frame.bytes())[0]);
            // Frame n is filled with n.
            assert!((mean - number as f32 / 255.0).abs() < 1e-5, "{side} frame {number}: {mean}");
            count += 1;
        }
        assert_eq!((count, running.wait().unwrap().memory.leaked), (20, 0), "{side}");
    }
}

#[test]
fn handlers_with_the_same_file_share_its_weights() {
    let (path, copy) = (shipped("blazeface.onnx"), Files::path("copy.onnx"));
    std::fs::copy(&path, &copy).unwrap();
    let one = format!("pattern size=64x48 frames=4 name=p ! model path={path} ! null; model0.result ! null");
    let two = format!("{one}; p. ! model path={path} ! null; model1.result ! null");
    let other = format!("{one}; p. ! model path={copy} ! null; model1.result ! null");
    for side in [Space::Cpu, Space::Gpu] {
        let options = || RunOptions::new().only(side).threads(1);
        let planned = |text: &str| {
            let memory = built(text, options()).plan().memory.clone();
            if side == Space::Gpu { memory.gpu_bytes } else { memory.cpu_bytes }
        };
        let weights = planned(&other) - planned(&two);
        assert!((400_000..900_000).contains(&weights), "{side}: {weights} bytes of weights");
        assert!(planned(&two) > planned(&one), "{side}");
    }
    let peak = |text: &str| built(text, RunOptions::new().only(Space::Gpu)).run().unwrap().memory.gpu_peak_bytes;
    let (one, two, planned) =
        (peak(&one), peak(&two), built(&two, RunOptions::new().only(Space::Gpu)).plan().memory.gpu_bytes);
    assert!(two - one < one, "{one} and {two} bytes: a second handler needs its own intermediate values only");
    assert!(two <= planned + planned / 4, "{two} bytes, {planned} planned");
}

#[test]
fn verification_covers_models() {
    let (selfie, blazeface) = (shipped("selfie.onnx"), shipped("blazeface.onnx"));
    let text = format!(
        "pattern kind=disc size=64x48 frames=2 name=p ! blur ! mix name=m mode=over amount=1 ! null; \
         p. ! model path={selfie} output=mask ! m.b; \
         p. ! model path={blazeface} output=boxes decode=blazeface range=-1..1 threshold=0.01 name=faces ! null; \
         faces.result ! null; faces.data ! null"
    );
    let registry = vramp::registry();
    let spec = vramp::read(&text, registry.catalog()).unwrap();
    let options = Options { frames: 2, device: Some(device().clone()), ..Options::default() };
    let verified = verify(&spec, &registry, &options).unwrap();
    assert!(verified.is_equal(), "{verified}");
    let ports: Vec<&str> = verified.comparisons.iter().map(|one| one.port.as_str()).collect();
    for port in ["model0.video", "faces.video", "faces.result", "faces.data"] {
        assert!(ports.iter().any(|own| own.contains(port)), "{port} is compared: {ports:?}");
    }
}

#[test]
fn mistakes_in_models_have_a_place_and_a_way_out() {
    let (mean, selfie, labels) = (Files::path("mean.onnx"), shipped("selfie.onnx"), Files::path("labels.txt"));
    // Scores with one long axis that is not the last one.
    let scores = write_table("scores.onnx", &[1, 6, 1, 1], &[0.5; 6]);
    let flat = write_table("flat.onnx", &[1, 6], &[0.5; 6]);
    let nothing = write_table("nothing.onnx", &[0, 6], &[]);
    let any_batch = write_table_as("any_batch.onnx", &[1, 6], &[0.5; 6], [&["n", "3", "32", "32"], &["n", "6"]]);
    let any_size = write_table_as("any_size.onnx", &[1, 6], &[0.5; 6], [&["n", "3", "h", "w"], &["n", "6"]]);
    let odd = write_table("odd.onnx", &[1, 3, 9, 5], &[0.5; 135]);
    let bytes = same_of("bytes.onnx", U8);
    let cases = [
        ("model path=nowhere.onnx".to_owned(), "`nowhere.onnx` cannot be read"),
        (format!("model path={labels}"), "labels.txt`"),
        (format!("model path={selfie} size=100x100 output=mask"), "takes pictures of 256x256; leave out `size`"),
        (
            format!("model path={selfie} of=nothing output=mask"),
            "has no output `nothing`; its outputs are activation_10",
        ),
        (format!("model path={selfie} channels=gray"), "takes 3 channels, and 1 are given; leave out channels=gray"),
        (format!("model path={selfie} output=boxes"), "add decode=yolov8, yolox, blazeface or corners"),
        (format!("model path={selfie} output=mask labels={labels}"), "`labels` has no meaning with output=mask"),
        (format!("model path={selfie} output=raw threshold=0.5"), "`threshold` has no meaning with output=raw"),
        (format!("model path={mean} range=-1..1 mean=0.5"), "leave out `range`"),
        (format!("model path={mean} std=0"), "`std` has a 0"),
        (format!("model path={mean} std=1e-44"), "too large for f32"),
        (format!("model path={mean} channels=gray mean=0.1,0.2,0.3"), "channels=gray is one channel; give one number"),
        (format!("model path={mean} output=classes labels=nowhere.txt"), "labels `nowhere.txt` cannot be read"),
        (format!("model path={selfie} output=mask channel=3"), "no channel 3"),
        (format!("model path={selfie} output=classes"), "classes are [1, classes]; this output is"),
        (format!("model path={flat} output=mask"), "a mask is [1, channels, height, width]"),
        (
            format!("model path={scores} output=classes labels={labels}"),
            "has 3 labels, and the network has 6 classes; add the others",
        ),
        (format!("model path={nothing}"), "which has no values"),
        (format!("model path={bytes}"), "takes bytes; add range=0..255"),
        (format!("model path={mean} output=raw show=mask"), "`show` has no meaning with output=raw"),
        (format!("model path={selfie} output=mask top=3"), "`top` has no meaning with output=mask"),
        (format!("model path={scores} output=classes iou=0.3"), "`iou` has no meaning with output=classes"),
        (
            format!("model path={any_batch} output=classes labels={labels}"),
            "has 3 labels, and the network has 6 classes; add the others",
        ),
        (
            format!("model path={any_size} output=classes labels={labels}"),
            "has 3 labels, and the network has 6 classes; add the others",
        ),
        (
            format!("model path={odd} output=mask"),
            "it is [1, 3, 9, 5], which has the shape of the network's input (32x32) neither as [1, channels, height, width] \
             nor as [1, height, width, channels]; say which it is: add layout=nchw or layout=nhwc",
        ),
    ];
    for (handler, words) in cases {
        let built = Pipeline::parse(format!("pattern size=64x48 frames=1 ! {handler} ! null")).build();
        let error = built.err().unwrap_or_else(|| panic!("{handler} is accepted")).to_string();
        assert!(error.contains(words), "{handler}: {error}");
        assert!(error.contains("pipeline:1:31") && error.contains("^^^^^"), "{handler}: {error}");
    }
}

#[test]
fn classes_are_sorted_and_equal_scores_come_in_order() {
    // The mean of each channel is a score: red is 2, green and blue are 5.
    let path = Files::path("same.onnx");
    for side in [Space::Cpu, Space::Gpu] {
        let text = format!(
            "pattern kind=solid color=020505 size=1x1 frames=2 ! model path={path} size=1x1 range=0..255 output=classes \
             top=2 name=m ! null; m.data ! app name=out"
        );
        let running = built(&text, RunOptions::new().only(side)).spawn().unwrap();
        for frame in &running.output("out").unwrap() {
            let Some(DataRows::Classes(rows)) = frame.unwrap().data() else { panic!("classes") };
            let rows: Vec<(u32, f32)> = rows.iter().map(|row| (row.class, row.score)).collect();
            assert_eq!(rows, [(1, 5.0), (2, 5.0)], "{side}");
        }
        running.wait().unwrap();
    }
}

/// A network that returns its input, values of this type.
fn same_of(name: &str, dtype: u64) -> String {
    let port = |name| Port { name, dtype, dims: &["1", "3", "8", "8"] };
    let path = Files::path(name);
    let same = onnx_file::node("Identity", &["x"], &["y"]);
    std::fs::write(&path, onnx_file::model(&[same], &[port("x")], &[port("y")])).unwrap();
    path
}

/// A network that returns this table for every picture.
fn write_table(name: &str, dims: &[u64], values: &[f32]) -> String {
    let lengths: Vec<String> = dims.iter().map(u64::to_string).collect();
    let y: Vec<&str> = lengths.iter().map(String::as_str).collect();
    write_table_as(name, dims, values, [&["1", "3", "32", "32"], &y])
}

/// Like [`write_table`], with an input and an output that are declared with these lengths or names of axes.
fn write_table_as(name: &str, dims: &[u64], values: &[f32], [x, y]: [&[&str]; 2]) -> String {
    let nodes = [
        onnx_file::node("ReduceMean", &["x"], &["mean"]),
        onnx_file::node("Flatten", &["mean"], &["flat"]),
        onnx_file::node("Mul", &["flat", "zero"], &["nothing"]),
        onnx_file::node("Add", &["nothing", "table"], &["y"]),
    ];
    let weights = [onnx_file::weight("zero", &[1, 1], &[0.0]), onnx_file::weight("table", dims, values)];
    let port = |name, dims| Port { name, dtype: F32, dims };
    let path = Files::path(name);
    std::fs::write(&path, onnx_file::model_with(&nodes, &weights, &[port("x", x)], &[port("y", y)])).unwrap();
    path
}

/// The boxes that a handler finds, on each side: bounds, score and class.
fn boxes(handler: &str, frame: &str) -> [Vec<([f32; 4], f32, u32)>; 2] {
    [Space::Cpu, Space::Gpu].map(|side| {
        let text = format!(
            "pattern kind=noise size={frame} frames=1 ! {handler} output=boxes name=m ! null; m.data ! app name=out"
        );
        let running = built(&text, RunOptions::new().only(side)).spawn().unwrap();
        let output = running.output("out").unwrap();
        let frame = output.pull().unwrap().unwrap();
        let found = frame.detections().map(|one| (one.bounds, one.score, one.class)).collect();
        drop((frame, output));
        running.wait().unwrap();
        found
    })
}

#[track_caller]
fn are_boxes(found: &[Vec<([f32; 4], f32, u32)>; 2], expected: &[([f32; 4], f32, u32)]) {
    for found in found {
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (own, right) in found.iter().zip(expected) {
            let is_near = own.0.iter().zip(&right.0).all(|(one, other)| (one - other).abs() < 1e-3);
            assert!(is_near && (own.1 - right.1).abs() < 1e-5 && own.2 == right.2, "{own:?}, not {right:?}");
        }
    }
}

#[test]
fn corners_are_decoded_sorted_and_suppressed_within_their_class() {
    let rows = [
        [2.0, 3.0, 10.0, 12.0, 0.5, 4.0],
        [2.0, 3.0, 10.0, 13.0, 0.9, 4.0],
        [2.0, 3.0, 10.0, 12.0, 0.6, 5.0],
        [-4.0, 20.0, 6.0, 40.0, 0.6, 4.0],
        [1.0, 1.0, 2.0, 2.0, 0.4, 1.0],
        [1.0, 1.0, 9.0, 9.0, f32::NAN, 1.0],
    ];
    let path = write_table("corners.onnx", &[6, 6], rows.as_flattened());
    // A frame of twice the width and half the height of the network's input.
    let found = boxes(&format!("model path={path} decode=corners"), "64x16");
    let expected =
        [([4.0, 1.5, 20.0, 6.5], 0.9, 4), ([4.0, 1.5, 20.0, 6.0], 0.6, 5), ([0.0, 10.0, 12.0, 16.0], 0.6, 4)];
    are_boxes(&found, &expected);
    are_boxes(
        &boxes(&format!("model path={path} decode=corners iou=0.95"), "64x16"),
        &[expected[0], expected[1], expected[2]],
    );
    are_boxes(&boxes(&format!("model path={path} decode=corners threshold=0.95"), "64x16"), &[]);
}

#[test]
fn rows_of_yolov8_are_decoded() {
    let rows = [
        [20.0, 10.0, 10.0, 8.0, 0.9, 0.1],
        [21.0, 10.0, 10.0, 8.0, 0.8, 0.2],
        [21.0, 10.0, 10.0, 8.0, 0.1, 0.85],
        [8.0, 20.0, 6.0, 6.0, 0.4, 0.3],
        [8.0, 20.0, 6.0, 6.0, 0.7, 0.7],
        [30.0, 30.0, 10.0, 10.0, 0.6, 0.2],
    ];
    // Each row is a column of the output.
    let values: Vec<f32> = (0..6).flat_map(|column| rows.iter().map(move |row| row[column])).collect();
    let path = write_table("yolov8.onnx", &[1, 6, 6], &values);
    let found = boxes(&format!("model path={path} decode=yolov8"), "64x64");
    are_boxes(
        &found,
        &[
            ([30.0, 12.0, 50.0, 28.0], 0.9, 0),
            ([32.0, 12.0, 52.0, 28.0], 0.85, 1),
            ([10.0, 34.0, 22.0, 46.0], 0.7, 0),
            ([50.0, 50.0, 64.0, 64.0], 0.6, 0),
        ],
    );
    let labels = Files::path("labels.txt");
    boxes(&format!("model path={path} decode=yolov8 labels={labels}"), "64x64");
}

#[test]
fn cells_of_yolox_are_decoded_and_mapped_out_of_a_letterbox() {
    // 4x4 cells of 8 pixels, 2x2 of 16 and one of 32.
    let mut rows = [[0.0_f32; 7]; 21];
    rows[9] = [0.5, 0.25, 2.0_f32.ln(), 1.5_f32.ln(), 0.8, 0.9, 0.1];
    rows[19] = [0.0, 0.0, 0.0, 0.0, 1.0, 0.2, 0.6];
    rows[20] = [0.5, 0.5, -1.0, -1.0, 0.9, 0.1, 0.1];
    let path = write_table("yolox.onnx", &[1, 21, 7], rows.as_flattened());
    // The frame fills the rows 8 to 24 of the network's input.
    let found = boxes(&format!("model path={path} decode=yolox fit=letterbox"), "32x16");
    are_boxes(&found, &[([4.0, 4.0, 20.0, 16.0], 0.72, 0), ([8.0, 0.0, 24.0, 16.0], 0.6, 1)]);
    // The frame is twice as large and wider than what the network sees of it.
    let found = boxes(&format!("model path={path} decode=yolox fit=crop"), "96x64");
    are_boxes(&found, &[([24.0, 24.0, 56.0, 48.0], 0.72, 0), ([32.0, 16.0, 64.0, 48.0], 0.6, 1)]);
}

#[test]
fn at_most_256_boxes_remain_and_equal_scores_come_in_order() {
    let rows: Vec<f32> = (0..400)
        .flat_map(|at| [(at % 20) as f32, (at / 20) as f32, (at % 20) as f32 + 0.5, (at / 20) as f32 + 0.5, 0.75, 0.0])
        .collect();
    let path = write_table("many.onnx", &[400, 6], &rows);
    let found = boxes(&format!("model path={path} decode=corners"), "32x32");
    let expected: Vec<_> = rows.chunks(6).take(256).map(|row| ([row[0], row[1], row[2], row[3]], 0.75, 0)).collect();
    are_boxes(&found, &expected);
}

#[test]
fn boxes_in_the_border_of_a_letterbox_are_dropped_before_they_count() {
    // The frame fills the rows 8 to 24 of the network's input.
    let border = [0.0, 0.0, 9.0, 7.0, 0.95, 0.0];
    let beside = |at: usize| [at as f32 / 20.0, 25.0, at as f32 / 20.0 + 0.01, 31.0, 0.9, 0.0];
    let inside = [[4.0, 9.0, 12.0, 20.0, 0.8, 1.0], [20.0, 2.0, 30.0, 12.0, 0.7, 2.0]];
    let mut rows = vec![border];
    rows.extend((0..400).map(beside));
    rows.extend(inside);
    rows.push([14.0, 12.0, 14.0, 20.0, 0.85, 3.0]);
    let path = write_table("border.onnx", &[rows.len() as u64, 6], rows.as_flattened());
    let found = boxes(&format!("model path={path} decode=corners fit=letterbox"), "32x16");
    are_boxes(&found, &[([4.0, 1.0, 12.0, 12.0], 0.8, 1), ([20.0, 0.0, 30.0, 4.0], 0.7, 2)]);
}

/// The classes that a handler finds, on each side: class and score.
fn classes(handler: &str) -> [Vec<(u32, f32)>; 2] {
    [Space::Cpu, Space::Gpu].map(|side| {
        let text = format!(
            "pattern kind=noise size=32x32 frames=1 ! {handler} output=classes name=m ! null; m.data ! app name=out"
        );
        let running = built(&text, RunOptions::new().only(side)).spawn().unwrap();
        let output = running.output("out").unwrap();
        let frame = output.pull().unwrap().unwrap();
        let Some(DataRows::Classes(rows)) = frame.data() else { panic!("classes") };
        drop((frame, output));
        running.wait().unwrap();
        rows.iter().map(|row| (row.class, row.score)).collect()
    })
}

#[test]
fn scores_that_are_nan_come_last() {
    let path = write_table("nan_scores.onnx", &[1, 6], &[f32::NAN, 0.2, 0.9, -f32::NAN, 0.5, 0.1]);
    for found in classes(&format!("model path={path} top=4")) {
        assert_eq!(found, [(2, 0.9), (4, 0.5), (1, 0.2), (5, 0.1)]);
    }
    for found in classes(&format!("model path={path} top=6")) {
        let order: Vec<u32> = found.iter().map(|row| row.0).collect();
        assert_eq!(order, [2, 4, 1, 5, 0, 3]);
    }
    // More of them than there are candidates.
    let mut rows = vec![[1.0, 1.0, 9.0, 9.0, f32::NAN, 0.0]; 1100];
    rows.push([2.0, 3.0, 10.0, 12.0, 0.75, 4.0]);
    let path = write_table("nan_boxes.onnx", &[1101, 6], rows.as_flattened());
    let found = boxes(&format!("model path={path} decode=corners"), "32x32");
    are_boxes(&found, &[([2.0, 3.0, 10.0, 12.0], 0.75, 4)]);
}

#[test]
fn softmax_of_scores_and_of_the_channels_of_a_mask_is_that_of_the_formula() {
    let scores = [1.0_f32, -2.0, 3.0, 0.5, 2.5, 0.0];
    let all: f64 = scores.iter().map(|score| f64::from(*score).exp()).sum();
    let path = write_table("softmax.onnx", &[1, 6], &scores);
    for found in classes(&format!("model path={path} activation=softmax top=3")) {
        for ((class, score), expected) in found.iter().zip([2, 4, 0]) {
            let exact = f64::from(scores[expected as usize]).exp() / all;
            assert!(*class == expected && (f64::from(*score) - exact).abs() < 1e-6, "{found:?}");
        }
    }
    // Three channels of 2x2, of which the middle one is shown.
    let planes = [1.0_f32, 0.0, -1.0, 2.0, 0.5, 0.5, 1.5, 0.0, 0.0, 2.0, 0.0, 1.0];
    let path = write_table("planes.onnx", &[1, 3, 2, 2], &planes);
    for side in [Space::Cpu, Space::Gpu] {
        let text = format!(
            "pattern size=2x2 frames=1 ! model path={path} output=mask activation=softmax channel=1 show=mask ! app name=out"
        );
        let (rows, _) = pulled(&text, RunOptions::new().only(side));
        for (at, pixel) in rows[0].1.as_chunks::<4>().0.iter().enumerate() {
            let exp = |channel: usize| f64::from(planes[4 * channel + at]).exp();
            let exact = 255.0 * exp(1) / (exp(0) + exp(1) + exp(2));
            assert!((f64::from(pixel[0]) - exact).abs() <= 1.0, "{side} {at}: {pixel:?}, not {exact}");
        }
    }
}

/// The levels of the mask of a frame of 8x8 on each side.
fn mask_levels(handler: &str) -> [Vec<u8>; 2] {
    [Space::Cpu, Space::Gpu].map(|side| {
        let text = format!("pattern size=8x8 frames=1 ! {handler} output=mask show=mask ! app name=out");
        let (rows, _) = pulled(&text, RunOptions::new().only(side));
        rows[0].1.as_chunks::<4>().0.iter().map(|pixel| pixel[0]).collect()
    })
}

#[test]
fn a_mask_with_its_channels_last_is_recognised_by_its_shape() {
    // The input has its channels first. Each position has its own value.
    let values: Vec<f32> = (0..64).map(|at| at as f32 / 64.0).collect();
    let expected: Vec<u8> = values.iter().map(|value| (value * 255.0).round() as u8).collect();
    let path = write_table("last_mask.onnx", &[1, 8, 8, 1], &values);
    for levels in mask_levels(&format!("model path={path}")) {
        assert_eq!(levels, expected);
    }
    // Both orders fit, so that the mask is like the input, or as `layout` says.
    let planes: Vec<f32> = (0..512).map(|at| (at % 64) as f32 / 64.0 * f32::from(u8::from(at >= 448))).collect();
    let path = write_table("eight.onnx", &[1, 8, 8, 8], &planes);
    for levels in mask_levels(&format!("model path={path}")) {
        assert_eq!(levels, expected, "the last of eight planes");
    }
    // Neither order fits: [1, 2, 16, 4] for an input of 32x32.
    let planes: Vec<f32> = (0..128).map(|at| if at < 64 { 0.0 } else { 1.0 }).collect();
    let path = write_table("neither.onnx", &[1, 2, 16, 4], &planes);
    for (channel, level) in [(0, 0), (1, 255)] {
        for levels in mask_levels(&format!("model path={path} layout=nchw channel={channel}")) {
            assert_eq!(levels, [level; 64]);
        }
    }
}

#[test]
fn the_layout_of_the_input_can_be_said() {
    // Three rows of three channels, or three channels of three rows.
    let dims = ["1", "3", "3", "3"];
    let path = Files::path("cube.onnx");
    std::fs::write(&path, network(&[onnx_file::node("Identity", &["x"], &["y"])], &dims, &dims)).unwrap();
    let source = "pattern kind=noise size=3x3 frames=1 seed=5";
    let (levels, _) = pulled(&format!("{source} ! app name=out"), RunOptions::new().only(Space::Cpu));
    let level = |pixel: usize, channel: usize| f32::from(levels[0].1[4 * pixel + channel]);
    let first: Vec<f32> = (0..27).map(|at| level(at % 9, at / 9)).collect();
    let last: Vec<f32> = (0..27).map(|at| level(at / 3, at % 3)).collect();
    for side in [Space::Cpu, Space::Gpu] {
        for (layout, expected) in [("auto", &first), ("nchw", &first), ("nhwc", &last)] {
            let text = format!(
                "{source} ! model path={path} layout={layout} range=0..255 name=m ! null; m.result ! app name=out"
            );
            let (rows, _) = pulled(&text, RunOptions::new().only(side));
            assert_eq!(floats(&rows[0].1)[..27], expected[..], "{side} {layout}");
        }
    }
}

#[test]
fn another_output_than_the_first_is_used_if_it_is_named() {
    let nodes = [onnx_file::node("Identity", &["x"], &["same"]), onnx_file::node("Neg", &["x"], &["negative"])];
    let dims = ["1", "3", "2", "2"];
    let port = |name| Port { name, dtype: F32, dims: &dims };
    let path = Files::path("two.onnx");
    std::fs::write(&path, onnx_file::model(&nodes, &[port("x")], &[port("same"), port("negative")])).unwrap();
    for side in [Space::Cpu, Space::Gpu] {
        let values = |of: &str| {
            let text = format!(
                "pattern size=2x2 frames=1 ! model path={path} range=0..255 {of} name=m ! null; m.result ! app name=out"
            );
            floats(&pulled(&text, RunOptions::new().only(side)).0[0].1)
        };
        let (same, negative) = (values(""), values("of=negative"));
        assert!(same.iter().any(|value| *value > 0.0) && values("of=same") == same);
        assert_eq!(negative, same.iter().map(|value| -value).collect::<Vec<_>>(), "{side}");
    }
}

#[test]
fn networks_of_f16_and_of_bytes_get_values_of_their_type() {
    let source = "pattern kind=noise size=8x8 frames=1 seed=2";
    let (levels, _) = pulled(&format!("{source} ! app name=out"), RunOptions::new().only(Space::Cpu));
    let level = |at: usize| levels[0].1[4 * (at % 64) + at / 64];
    let (bytes, halves) = (same_of("of_bytes.onnx", U8), same_of("of_halves.onnx", F16));
    for side in [Space::Cpu, Space::Gpu] {
        let values = |path: &str, range: &str| {
            let text = format!("{source} ! model path={path} range={range} name=m ! null; m.result ! app name=out");
            pulled(&text, RunOptions::new().only(side)).0.remove(0).1
        };
        let whole = integers(&values(&bytes, "0..255"));
        let expected: Vec<i32> = (0..192).map(|at| i32::from(level(at))).collect();
        assert_eq!(whole[..192], expected[..], "{side}");
        let made = floats(&values(&halves, "0..1"));
        for (at, value) in made.iter().take(192).enumerate() {
            let exact = f32::from(level(at)) / 255.0;
            assert!((value - exact).abs() <= exact / 1024.0 + 1e-7, "{side} {at}: {value}, not {exact}");
        }
    }
}

/// Each frame has its number as blue, and so has the mask that `same.onnx` makes of it.
fn numbered(handler: &str) -> String {
    let path = Files::path("same.onnx");
    format!("model path={path} size=32x24 output=mask {handler}")
}

#[test]
fn results_are_drawn_on_later_frames_too() {
    for side in [Space::Cpu, Space::Gpu] {
        let text = format!("pattern kind=gradient size=32x24 frames=20 ! {} ! app name=out", numbered("every=3"));
        let (rows, report) = pulled(&text, RunOptions::new().only(side));
        assert_eq!((rows.len(), report.memory.leaked), (20, 0));
        for (number, bytes) in rows {
            let (blue, alpha) = (u64::from(bytes[2]), u64::from(bytes[3]));
            assert_eq!((blue, alpha), (number, number / 3 * 3), "{side}: the frame's own picture, the mask of another");
        }
    }
}

#[test]
fn policies_before_the_model_and_a_mix_after_it_leave_frames_with_their_results() {
    for side in [Space::Cpu, Space::Gpu] {
        for policy in ["", "{lossless}", "{queue depth=2}", "{latest}"] {
            let text = format!("pattern kind=gradient size=32x24 frames=60 !{policy} {} ! app name=out", numbered(""));
            let (rows, report) = pulled(&text, RunOptions::new().only(side));
            let lossless = !policy.contains("queue") && !policy.contains("latest");
            assert!(rows.len() == 60 || !lossless, "{side} {policy}: {} frames", rows.len());
            assert_eq!((rows.last().map(|row| row.0), report.memory.leaked), (Some(59), 0), "{side} {policy}");
            for (number, bytes) in rows {
                assert_eq!([u64::from(bytes[2]), u64::from(bytes[3])], [number; 2], "{side} {policy}");
            }
        }
        // The frame with its mask lies over the frame itself, which is as blue, so every frame has its own blue.
        let text = format!(
            "pattern kind=gradient size=32x24 frames=60 name=p ! invert ! mix name=m mode=over amount=1 ! app name=out; \
             p. ! {} ! m.b",
            numbered("threshold=0")
        );
        let (rows, _) = pulled(&text, RunOptions::new().only(side));
        assert_eq!(rows.len(), 60);
        for (number, bytes) in rows.into_iter().skip(1) {
            assert_eq!(u64::from(bytes[2]), number, "{side}: the frame over its inverse");
        }
    }
}

#[test]
fn links_that_would_carry_nothing_are_mistakes() {
    let (mean, same) = (Files::path("mean.onnx"), Files::path("same.onnx"));
    for (text, title, remedy) in [
        (
            format!("pattern ! model path={mean} name=m ! null; m.data ! null"),
            "m.data: output=raw sends no data",
            "use output=classes or output=boxes, or link `result` or `video`",
        ),
        (
            format!("pattern ! model path={same} output=mask name=m ! null; m.data ! values path=x.jsonl"),
            "m.data: output=mask sends no data",
            "use output=classes or output=boxes, or link `result` or `video`",
        ),
        (
            format!("pattern ! model path={mean} output=classes name=m ! null; m.data ! values path=x.NPY"),
            "m.data carries data, but values0.values takes tensor",
            "classes and boxes are written as lines of JSON or as .safetensors",
        ),
        (
            format!("pattern ! model path={mean} output=classes name=m ! null; m.data ! identity ! values path=x.npy"),
            "offers data",
            "classes and boxes are written as lines of JSON or as .safetensors",
        ),
    ] {
        let error = Pipeline::parse(&text).build().err().unwrap_or_else(|| panic!("{text} is accepted")).to_string();
        assert!(error.contains(title) && error.contains(remedy), "{text}\n{error}");
    }
}

/// A handler that attaches notes as any program can.
static NOTING: Entry = Entry {
    name: "noting",
    about: "attaches notes",
    example: "pattern ! noting ! null",
    kernel: KernelRule::None,
    ..Entry::FILTER
};

struct Noting(String);

impl FrameHandler for Noting {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        call.note("labels", self.0.as_str())?;
        call.note("model", self.0.as_str())?;
        crate::shared::pass(call)
    }
}

/// The labels of the lines that `values` has written.
fn labels_in(file: &std::path::Path) -> Vec<Option<String>> {
    let text = std::fs::read_to_string(file).unwrap();
    let label = |line: &str| {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        row["classes"][0]["label"].as_str().map(str::to_owned)
    };
    text.lines().map(label).collect()
}

#[test]
fn labels_are_those_of_the_model_that_a_data_frame_comes_from() {
    let (path, labels) = (Files::path("same.onnx"), Files::path("labels.txt"));
    let others = Files::path("others.txt");
    std::fs::write(&others, "un\ndeux\ntrois\n").unwrap();
    for side in [Space::Cpu, Space::Gpu] {
        let outs = ["a", "b", "c"].map(|name| Files::get().folder.join(format!("{side}-{name}.jsonl")));
        let [a, b, c] = outs.each_ref().map(|out| out.to_str().unwrap());
        let mut registry = vramp::registry();
        let note = labels.clone();
        registry.add(&NOTING, move |_| Ok(Noting(note.clone()))).unwrap();
        // A solid green frame: class 1 is the best one.
        let model = format!("model path={path} size=1x1 output=classes top=1");
        let text = format!(
            "pattern kind=solid color=020905 size=1x1 frames=3 ! noting ! {model} labels={labels} name=a \
             ! {model} name=b ! {model} labels={others} name=c ! null; \
             a.data ! values path={a}; b.data ! values path={b}; c.data ! values path={c}"
        );
        let options = RunOptions::new().only(side);
        let pipeline = Pipeline::parse(&text).registry(&registry).device(device()).options(options).build();
        pipeline.unwrap_or_else(|error| panic!("{text}\n{error}")).run().unwrap();
        let green = |label: &str| vec![Some(label.to_owned()); 3];
        // Drawn labels change the best class of later models, but not whose labels are used.
        assert_eq!(labels_in(&outs[0]), green("green"), "{side}");
        assert_eq!(labels_in(&outs[1]), [None, None, None], "{side}: a model without labels");
        assert!(
            labels_in(&outs[2]).iter().all(|label| label.as_ref().is_some_and(|label| "un deux trois".contains(label)))
        );
    }
}

#[test]
fn a_note_that_does_not_fit_is_an_error() {
    struct Full;
    impl FrameHandler for Full {
        fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
            for at in 0..4 {
                call.note(&format!("note{at}"), "x".repeat(if at < 3 { 255 } else { 220 }).as_str())?;
            }
            crate::shared::pass(call)
        }
    }
    let path = Files::path("same.onnx");
    let mut registry = vramp::registry();
    registry.add(&NOTING, |_| Ok(Full)).unwrap();
    let text = format!(
        "pattern size=8x8 frames=1 ! noting ! model path={path} size=1x1 output=classes name=m ! null; m.data ! null"
    );
    let options = RunOptions::new().only(Space::Cpu);
    let error = Pipeline::parse(&text).registry(&registry).options(options).build().unwrap().run().unwrap_err();
    let words = error.to_string();
    assert!(words.contains("there is no room for the note `model`"), "{words}");
}

#[test]
fn weights_beside_a_model_that_have_changed_are_read_again() {
    let weights = Files::get().folder.join("scale.bin");
    let write = |scale: f32, seconds: u64| {
        std::fs::write(&weights, scale.to_le_bytes()).unwrap();
        let time = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(seconds);
        std::fs::File::options().write(true).open(&weights).unwrap().set_modified(time).unwrap();
    };
    let path = Files::path("scaled.onnx");
    let port = |name| Port { name, dtype: F32, dims: &["1", "3", "1", "1"] };
    let nodes = [onnx_file::node("Mul", &["x", "scale"], &["y"])];
    let scale = [onnx_file::weight_in_file("scale", &[1], "scale.bin")];
    std::fs::write(&path, onnx_file::model_with(&nodes, &scale, &[port("x")], &[port("y")])).unwrap();
    let text = format!(
        "pattern kind=solid color=010203 size=1x1 frames=1 ! model path={path} range=0..255 name=m ! null; \
         m.result ! app name=out"
    );
    for (scale, seconds) in [(2.0, 1_000), (3.0, 2_000)] {
        write(scale, seconds);
        let (rows, _) = pulled(&text, RunOptions::new().only(Space::Cpu));
        assert_eq!(floats(&rows[0].1)[..3], [scale, 2.0 * scale, 3.0 * scale]);
    }
}

#[test]
fn labels_stay_with_their_model_when_the_graph_is_replaced() {
    let (path, labels, out) = (Files::path("same.onnx"), Files::path("labels.txt"), Files::path("replaced.jsonl"));
    let others = Files::path("new_labels.txt");
    std::fs::write(&others, "un\ndeux\ntrois\n").unwrap();
    // Green is the best class. The models tell themselves apart by the number of classes.
    let text = |labels: &str, top: usize| {
        format!(
            "pattern kind=solid color=010903 size=1x1 ! model path={path} size=1x1 output=classes top={top} labels={labels} \
             name=m ! null; m.data ! values path={out}"
        )
    };
    let registry = vramp::registry();
    let running = Pipeline::parse(text(&labels, 1)).options(RunOptions::new().only(Space::Cpu)).build().unwrap();
    let running = running.spawn().unwrap();
    let wait_for = |frames: u64| {
        while running.progress().frames_out < frames {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
    };
    wait_for(20);
    let spec = vramp::read(&text(&others, 2), registry.catalog()).unwrap();
    running.controls().apply(&registry.check(&spec).unwrap()).unwrap();
    wait_for(running.progress().frames_out + 40);
    running.finish();
    running.wait().unwrap();
    let text = std::fs::read_to_string(&out).unwrap();
    let mut seen = [0; 2];
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let classes = row["classes"].as_array().unwrap();
        assert_eq!(classes[0]["label"], ["green", "deux"][classes.len() - 1], "{line}");
        seen[classes.len() - 1] += 1;
    }
    assert!(seen[0] > 5 && seen[1] > 5, "{seen:?}");
}
