//! Tensor handlers: frames are tensors. A handler computes with ops in either space; on the GPU, the ops are recorded into
//! the frame's own submit.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

#[path = "../examples/07_tensor_mask.rs"]
#[allow(dead_code, reason = "its main is not called here")]
mod tensor_mask;

use vramp::plan::catalog::{Input, Output, PortMedia, TensorRule};
use vramp::plan::{Content, DType};
use vramp::prelude::*;
use vramp::runtime::Detection;
use vramp::tensor::{Context, Expr, Reduction, Tensor, TensorError};
use vramp::verify::{Options, verify};

use crate::shared::{CHANGING, Changing, device};

/// Runs the lesson's handler between a pattern and a sink, in one space.
fn run(space: Space, sink: &str) -> Report {
    let text = format!(
        "pattern kind=ball size=37x23 frames=12 label=false name=cam ! blur sigma=3 ! mix mode=over amount=1 name=out ! {sink}
         cam. ! standout ! out.b"
    );
    let builder = Pipeline::parse(text).registry(&tensor_mask::registry());
    builder.options(RunOptions::new().only(space)).build().unwrap().run().unwrap()
}

#[test]
fn ops_on_a_frame_join_its_submit_and_nothing_comes_down() {
    let report = run(Space::Gpu, "null");
    assert_eq!(report.frames_out, 12);
    assert_eq!((report.counters.uploads, report.counters.downloads), (1, 0), "the weights, once");
    let steady = report.steady;
    assert!((steady.submits - 1.0).abs() < 1e-9, "{} submits a frame", steady.submits);
    assert!(steady.dispatches >= 5.0, "{} dispatches a frame", steady.dispatches);
    assert_eq!(report.memory.leaked, 0);
}

#[test]
fn both_sides_make_the_same_picture() {
    let folder = std::env::temp_dir().join(format!("vramp-tensor-frames-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let bytes = [Space::Cpu, Space::Gpu].map(|space| {
        let path = folder.join(format!("{space}.rgba"));
        run(space, &format!("raw path={}", path.display()));
        std::fs::read(path).unwrap()
    });
    std::fs::remove_dir_all(&folder).unwrap();
    let [host, device] = &bytes;
    assert_eq!(host.len(), 37 * 23 * 4 * 12);
    // The mask is a sigmoid. A difference in its last bit may change a level by one.
    assert!(host.iter().zip(device).all(|(one, two)| one.abs_diff(*two) <= 1));
    assert!(host.chunks(4).any(|pixel| pixel != &host[..4]), "there is something to see");
}

const OPS: Entry = Entry { kernel: KernelRule::None, ..Entry::FILTER };

/// A tensor handler that is made of a function.
struct By<F>(F);

impl<F: FnMut(&[Tensor]) -> Result<Tensor, TensorError> + Send> TensorHandler for By<F> {
    fn process(&mut self, inputs: &[Tensor]) -> Result<Tensor, TensorError> {
        (self.0)(inputs)
    }
}

/// The darkest and the brightest value of a picture, as a detection with these bounds.
#[derive(Default)]
struct Extremes(Option<(Tensor, Tensor)>);

const ROOM: u32 = 8 * 4;

static EXTREMES: Entry = Entry {
    name: "extremes",
    about: "finds the darkest and the brightest value",
    example: "pattern ! extremes ! null",
    outputs: &[Output { media: PortMedia::Data { bytes: ROOM }, ..Output::DATA }],
    ..OPS
};

impl TensorHandler for Extremes {
    fn start(&mut self, context: &Context, start: &mut StartContext<'_>) -> Result<(), TensorError> {
        assert!(start.inputs()[0].as_ref().is_some_and(|content| content.frame().is_some()));
        self.0 = Some((context.tensor(&[1.0_f32, 1.0], &[2])?, context.tensor(&[0.5_f32, 7.0], &[2])?));
        Ok(())
    }

    fn process(&mut self, inputs: &[Tensor]) -> Result<Tensor, TensorError> {
        let (head, tail) = self.0.as_ref().unwrap();
        let values = inputs[0].cast(DType::F32)?;
        let [low, high] = [Reduction::Min, Reduction::Max].map(|how| values.reduce_all(how)?.reshape(&[1]));
        let (low, high) = (low?.lazy(), high?.lazy());
        Expr::concat(&[head.lazy(), low.clone(), high.clone(), low, high, tail.lazy()], 0).run()
    }
}

/// A picture as a tensor of f32.
static FLOATS: Entry = Entry {
    name: "floats",
    about: "a picture as a tensor of f32",
    example: "pattern ! floats ! null",
    outputs: &[Output {
        tensor: TensorRule::By(|_, lead| {
            let size = lead.and_then(Content::frame).ok_or("it needs pictures")?.size;
            Ok((DType::F32, vec![size.height, size.width, 4]))
        }),
        ..Output::TENSOR
    }],
    ..OPS
};

/// Adds the first bound of what was found in a picture, and a tensor, to the picture.
static MERGES: Entry = Entry {
    name: "merges",
    about: "adds what was found and a tensor to a picture",
    example: "pattern name=p ! merges; p. ! floats ! merges0.tensor; p. ! extremes ! merges0.data; merges0. ! null",
    inputs: &[Input::VIDEO, Input::TENSOR, Input::DATA],
    ..OPS
};

fn merge(inputs: &[Tensor]) -> Result<Tensor, TensorError> {
    let found = inputs[2].slice(0, 2, 3)?;
    let sum = inputs[0].cast(DType::F32)?.lazy().add(&inputs[1]).mul(0.25).add(&found);
    sum.cast(DType::U8).run()
}

fn registry() -> Registry {
    let mut registry = tensor_mask::registry();
    registry.add(&EXTREMES, |_| Ok(tensors(Extremes::default()))).unwrap();
    registry.add(&FLOATS, |_| Ok(tensors(By(|inputs: &[Tensor]| inputs[0].cast(DType::F32))))).unwrap();
    registry.add(&MERGES, |_| Ok(tensors(By(merge)))).unwrap();
    registry.add(&CHANGING, |_| Ok(Changing { sizes: &SIZES, every: 3 })).unwrap();
    registry
}

static SIZES: [Size; 3] =
    [Size { width: 64, height: 64 }, Size { width: 17, height: 5 }, Size { width: 33, height: 40 }];

/// Runs with an `app` sink named `out`, and returns its frames by number.
fn pulled(text: &str, registry: &Registry, options: RunOptions) -> (Vec<(u64, Vec<u8>)>, Report) {
    let running = Pipeline::parse(text).registry(registry).options(options).build().expect(text).spawn().unwrap();
    let row = |frame: PulledFrame| (frame.meta().number, frame.bytes().to_vec());
    let rows = running.output("out").unwrap().iter().map(|frame| row(frame.unwrap())).collect();
    (rows, running.wait().expect(text))
}

const ALL: &str = "pattern kind=gradient size=21x13 frames=40 label=false name=p ! merges name=m ! app name=out; \
                   p. ! floats ! m.tensor; p. ! extremes ! m.data";

#[test]
fn pictures_tensors_and_data_are_tensors_on_either_side() {
    let [host, there] = [Space::Cpu, Space::Gpu].map(|side| {
        let (rows, report) = pulled(ALL, &registry(), RunOptions::new().only(side));
        assert_eq!((rows.len(), report.memory.leaked, report.dropped.sum()), (40, 0, 0), "{side}");
        if side == Space::Gpu {
            // One download of data, one of the picture that leaves; what was found goes up again for the ops.
            assert_eq!(report.counters.downloads, 80);
            assert_eq!(report.counters.transfer_bytes, 40 * (21 * 13 * 4 + 2 * u64::from(ROOM)) + 2 * 8);
            // Memory of ops is not planned. If more frames are in flight than before, some is still allocated.
            assert!(report.steady.gpu_allocs < 0.5, "{} allocations a frame", report.steady.gpu_allocs);
        }
        rows
    });
    assert_eq!(host, there);
    let expected = |byte: u8, low: u8| (f32::from(byte) * 0.5 + f32::from(low)) as u8;
    let source = pulled(
        "pattern kind=gradient size=21x13 frames=40 label=false ! app name=out",
        &registry(),
        RunOptions::new().only(Space::Cpu),
    );
    for ((number, made), (_, picture)) in host.iter().zip(source.0) {
        let low = *picture.iter().min().unwrap();
        let is_right = made.iter().zip(&picture).all(|(made, byte)| made.abs_diff(expected(*byte, low)) <= 1);
        assert!(is_right, "frame {number}");
    }
}

#[test]
fn what_is_found_by_ops_is_read_as_detections() {
    let text = "pattern kind=solid color=102030ff size=16x8 frames=5 label=false ! extremes ! app name=out";
    for side in [Space::Cpu, Space::Gpu] {
        let options = RunOptions::new().only(side);
        let running = Pipeline::parse(text).registry(&registry()).options(options).build().unwrap().spawn().unwrap();
        for frame in &running.output("out").unwrap() {
            let found: Vec<Detection> = frame.unwrap().detections().collect();
            assert_eq!(found, [Detection { bounds: [16.0, 255.0, 16.0, 255.0], score: 0.5, class: 7 }], "{side}");
        }
        running.wait().unwrap();
    }
}

#[test]
fn verification_covers_tensor_handlers() {
    let registry = registry();
    let spec = vramp::read(&ALL.replace("app name=out", "null"), registry.catalog()).unwrap();
    let options = Options { frames: 3, device: Some(device().clone()), ..Options::default() };
    let verified = verify(&spec, &registry, &options).unwrap();
    assert!(verified.is_equal(), "{verified}");
}

#[test]
fn ops_continue_after_a_lost_device_and_return_to_it() {
    let text = "pattern kind=ball size=37x23 frames=90 label=false name=p ! standout ! merges name=m ! app name=out; \
                p. ! floats ! m.tensor; p. ! extremes ! m.data";
    let (expected, _) = pulled(text, &registry(), RunOptions::new().only(Space::Gpu));
    for options in [RunOptions::new(), RunOptions::new().on_loss(OnLoss::Cpu)] {
        let (rows, report) = pulled(text, &registry(), options.only(Space::Gpu).lose_device_at(&[30]));
        assert_eq!((report.recoveries.len(), report.memory.leaked), (1, 0), "{:?}", report.memory.leaks);
        assert!(rows.len() >= 70, "{} frames", rows.len());
        for (number, bytes) in rows {
            let right = &expected[number as usize].1;
            // Sigmoids may differ in their last bit, and so by one level.
            assert!(bytes.iter().zip(right).all(|(one, two)| one.abs_diff(*two) <= 1), "frame {number}");
        }
    }
}

#[test]
fn sizes_may_change_within_a_stream() {
    static NEGATES: Entry = Entry { name: "negates", about: "inverts", example: "pattern ! negates ! null", ..OPS };
    for side in [Space::Cpu, Space::Gpu] {
        let text = "changing ! negates ! app name=out";
        let mut registry = registry();
        let negate = |inputs: &[Tensor]| inputs[0].cast(DType::F32)?.lazy().mul(-1.0).add(255.0).cast(DType::U8).run();
        registry.add(&NEGATES, move |_| Ok(tensors(By(negate)))).unwrap();
        let (rows, _) = pulled(text, &registry, RunOptions::new().only(side).frames(12));
        for (number, bytes) in rows {
            let size = SIZES[(number / 3) as usize % 3];
            assert_eq!(bytes, vec![255 - number as u8; (size.pixels() * 4) as usize], "{side}: frame {number}");
        }
    }
}

#[test]
fn a_result_that_its_port_does_not_carry_is_refused_in_words() {
    static WRONG: Entry = Entry { name: "wrong", about: "fails", example: "pattern ! wrong ! null", ..OPS };
    static TWO: Entry = Entry {
        name: "two",
        about: "has two outputs",
        example: "pattern ! two ! null",
        outputs: &[Output::VIDEO, Output::DATA],
        ..OPS
    };
    type Ops = fn(&[Tensor]) -> Result<Tensor, TensorError>;
    let cases: [(&Entry, Ops, &str); 4] = [
        (
            &WRONG,
            |inputs| inputs[0].cast(DType::F32),
            "its result is a tensor [8, 16, 4] of f32, but its output carries rgba8 16x8, a tensor [8, 16, 4] of u8",
        ),
        (&WRONG, |inputs| inputs[0].slice(-1, 0, 3), "its result is a tensor [8, 16, 3] of u8, but its output carries"),
        (&WRONG, |inputs| inputs[0].matmul(&inputs[0]), "matmul: "),
        (&TWO, |inputs| Ok(inputs[0].clone()), "a tensor handler has one output, but its entry declares 2"),
    ];
    for side in [Space::Cpu, Space::Gpu] {
        for (entry, ops, words) in cases {
            let mut registry = vramp::registry();
            registry.add(entry, move |_| Ok(tensors(By(ops)))).unwrap();
            let text = format!("pattern size=16x8 frames=3 ! {} ! null", entry.name);
            let builder = Pipeline::parse(text).registry(&registry).device(device());
            let error = builder.options(RunOptions::new().only(side)).build().unwrap().run().unwrap_err().to_string();
            assert!(error.contains(words), "{side}: {error}");
        }
    }
    let mut registry = vramp::registry();
    let reads = |inputs: &[Tensor]| inputs[0].read::<u8>().map(|_| inputs[0].clone());
    registry.add(&WRONG, move |_| Ok(tensors(By(reads)))).unwrap();
    let builder = Pipeline::parse("pattern size=16x8 frames=3 ! wrong ! null").registry(&registry).device(device());
    let error = builder.options(RunOptions::new().only(Space::Gpu)).build().unwrap().run().unwrap_err().to_string();
    assert!(error.contains("the context is recording for another player"), "{error}");
}

#[test]
fn a_view_and_an_unchanged_input_can_be_sent_on() {
    static LOWER: Entry = Entry {
        name: "lower",
        about: "the lower half",
        example: "pattern ! lower ! null",
        outputs: &[Output {
            tensor: TensorRule::By(|_, lead| {
                let size = lead.and_then(Content::frame).ok_or("it needs pictures")?.size;
                Ok((DType::U8, vec![size.height / 2, size.width, 4]))
            }),
            ..Output::TENSOR
        }],
        ..OPS
    };
    static SAME: Entry = Entry { name: "same", about: "passes on", example: "pattern ! same ! null", ..OPS };
    for side in [Space::Cpu, Space::Gpu] {
        let mut registry = vramp::registry();
        let lower = |inputs: &[Tensor]| inputs[0].slice(0, 4, 8);
        registry.add(&LOWER, move |_| Ok(tensors(By(lower)))).unwrap();
        registry.add(&SAME, |_| Ok(tensors(By(|inputs: &[Tensor]| Ok(inputs[0].clone()))))).unwrap();
        let run = |text: &str| pulled(text, &registry, RunOptions::new().only(side)).0;
        let whole = run("pattern kind=gradient size=16x8 frames=4 label=false ! same ! app name=out");
        let half = run("pattern kind=gradient size=16x8 frames=4 label=false ! same ! lower ! app name=out");
        assert_eq!(whole, run("pattern kind=gradient size=16x8 frames=4 label=false ! app name=out"), "{side}");
        assert!(whole.iter().zip(half).all(|((_, whole), (_, half))| whole[256..] == half[..]), "{side}");
    }
}
