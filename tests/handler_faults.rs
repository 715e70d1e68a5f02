//! Tensor handlers and services when something goes wrong: failing and panicking calls, starts and drops, lost devices, and
//! pictures whose rows are padded.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use vramp::gpu::Recording;
use vramp::plan::DType;
use vramp::plan::catalog::{Input, Output, RateRule, SizeRule};
use vramp::prelude::*;
use vramp::tensor::{Context, Tensor, TensorError};

use crate::shared::{SIZE, pass};

const OPS: Entry = Entry {
    name: "ops",
    about: "for the test",
    example: "pattern ! ops ! null",
    kernel: KernelRule::None,
    inputs: &[Input::ANY],
    outputs: &[Output::SAME],
    ..Entry::FILTER
};

static ENTRY: Entry = OPS;

type Act = fn(u64, &Tensor, &[Tensor]) -> Result<Tensor, TensorError>;

/// A tensor handler that is a function of the number of its call, a constant, and its inputs.
struct Acts {
    calls: u64,
    sevens: Option<Tensor>,
    act: Act,
}

impl TensorHandler for Acts {
    fn start(&mut self, context: &Context, _: &mut StartContext<'_>) -> Result<(), TensorError> {
        self.sevens = Some(context.tensor(&[7.0_f32; 4], &[4])?);
        Ok(())
    }

    fn process(&mut self, inputs: &[Tensor]) -> Result<Tensor, TensorError> {
        self.calls += 1;
        (self.act)(self.calls, self.sevens.as_ref().unwrap(), inputs)
    }
}

fn acting(act: Act) -> Registry {
    let mut registry = vramp::registry();
    registry.add(&ENTRY, move |_| Ok(tensors(Acts { calls: 0, sevens: None, act }))).unwrap();
    registry
}

type Rows = Vec<(u64, Size, Vec<u8>)>;

/// The frames of the sink `out`, and the report or the error.
fn run(text: &str, registry: &Registry, options: RunOptions) -> (Rows, Result<Report, String>) {
    let running = Pipeline::parse(text).registry(registry).options(options).build().expect(text).spawn().unwrap();
    let row = |frame: PulledFrame| (frame.meta().number, frame.size(), frame.bytes().to_vec());
    let rows = running.output("out").unwrap().iter().filter_map(|frame| frame.ok().map(row)).collect();
    (rows, running.wait().map_err(|error| error.to_string()))
}

fn sevens(constant: &Tensor, inputs: &[Tensor]) -> Result<Tensor, TensorError> {
    inputs[0].cast(DType::F32)?.lazy().mul(0.0).add(constant).cast(DType::U8).run()
}

#[test]
fn constants_survive_a_call_that_fails() {
    let fails: Act = |call, constant, inputs| {
        let made = sevens(constant, inputs)?;
        if call == 1 { inputs[0].matmul(&inputs[0]) } else { Ok(made) }
    };
    let misfits: Act = |call, constant, inputs| {
        let made = sevens(constant, inputs)?;
        if call == 1 { made.cast(DType::F32) } else { Ok(made) }
    };
    let panics: Act = |call, constant, inputs| {
        let made = sevens(constant, inputs)?;
        assert!(call > 1, "on purpose");
        assert_eq!(inputs.len(), 1, "the inputs of the call that panicked are gone");
        Ok(made)
    };
    for side in [Space::Cpu, Space::Gpu] {
        for act in [fails, misfits, panics] {
            let text = "pattern size=16x8 frames=5 label=false ! ops on-error=skip ! app name=out";
            let (rows, report) = run(text, &acting(act), RunOptions::new().only(side));
            assert_eq!(rows.iter().map(|row| row.0).collect::<Vec<_>>(), [1, 2, 3, 4], "{side}");
            assert!(rows.iter().all(|(.., bytes)| bytes.iter().all(|byte| *byte == 7)), "{side}: {rows:?}");
            assert_eq!(report.unwrap().memory.leaked, 0, "{side}");
        }
    }
}

#[test]
fn gray_pictures_of_any_width_are_tensors_of_padded_rows() {
    let negate: Act = |_, _, inputs| inputs[0].cast(DType::F32)?.lazy().mul(-1.0).add(255.0).cast(DType::U8).run();
    let registry = acting(negate);
    for size in ["7x3", "1x1", "5x5", "17x9", "3x1", "1x3", "33x7", "8x4"] {
        let text = |middle: &str| {
            format!("pattern kind=noise size={size} frames=3 label=false ! convert gray8 ! {middle} ! app name=out")
        };
        let options = RunOptions::new().only(Space::Cpu);
        let (expected, _) = run(&text("convert rgba8"), &registry, options.clone());
        for side in [Space::Cpu, Space::Gpu] {
            let (rows, report) = run(&text("ops ! ops ! convert rgba8"), &registry, options.clone().only(side));
            report.unwrap_or_else(|error| panic!("{size} on the {side}: {error}"));
            assert_eq!(rows, expected, "{size} on the {side}");
        }
    }
}

#[test]
fn a_picture_keeps_its_size_if_only_its_axes_are_swapped() {
    struct Turns;
    impl FrameHandler for Turns {
        fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
            let number = call.now().number;
            let (width, height) = if number.is_multiple_of(2) { (4, 1) } else { (1, 4) };
            let mut frame = call.lend(Format::Rgba8, Size { width, height })?;
            frame.fill().unwrap().fill(number as u8);
            call.send(0, frame);
            Ok(Flow::Produced)
        }
    }
    static TURNS: Entry = Entry {
        name: "turns",
        about: "for the test",
        example: "turns ! null",
        outputs: &[Output { size: SizeRule::Probed(Some("size")), rate: RateRule::Probed(None), ..Output::VIDEO }],
        settings: &[SIZE],
        blocking: false,
        ..Entry::SOURCE
    };
    let mut registry = acting(|_, _, inputs| Ok(inputs[0].clone()));
    registry.add(&TURNS, |_| Ok(Turns)).unwrap();
    for side in [Space::Cpu, Space::Gpu] {
        let (rows, _) = run("turns size=4x1 ! ops ! app name=out", &registry, RunOptions::new().only(side).frames(6));
        assert_eq!(rows.len(), 6);
        assert!(rows.iter().all(|(number, size, _)| (size.width == 4) == number.is_multiple_of(2)), "{side}: {rows:?}");
    }
}

#[test]
fn a_start_that_panics_after_a_lost_device_ends_the_run() {
    struct Once(u32);
    impl TensorHandler for Once {
        fn start(&mut self, _: &Context, _: &mut StartContext<'_>) -> Result<(), TensorError> {
            self.0 += 1;
            assert!(self.0 < 2, "on purpose");
            Ok(())
        }

        fn process(&mut self, inputs: &[Tensor]) -> Result<Tensor, TensorError> {
            Ok(inputs[0].clone())
        }
    }
    let mut registry = vramp::registry();
    registry.add(&ENTRY, |_| Ok(tensors(Once(0)))).unwrap();
    for on_loss in [OnLoss::Reopen, OnLoss::Cpu] {
        let options = RunOptions::new().only(Space::Gpu).lose_device_at(&[20]).on_loss(on_loss);
        let (_, report) = run("pattern size=16x8 frames=100 label=false ! ops ! app name=out", &registry, options);
        assert!(report.unwrap_err().starts_with("ops0, frame "));
    }
}

#[test]
fn a_drop_that_panics_is_an_error_of_its_handler() {
    struct Falls;
    impl FrameHandler for Falls {
        fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
            pass(call)
        }
    }
    impl Drop for Falls {
        fn drop(&mut self) {
            assert!(std::thread::panicking(), "falls when dropped");
        }
    }
    let mut registry = vramp::registry();
    registry.add(&ENTRY, |_| Ok(Falls)).unwrap();
    for side in [Space::Cpu, Space::Gpu] {
        let (_, report) =
            run("pattern size=16x8 frames=5 ! ops ! app name=out", &registry, RunOptions::new().only(side));
        let error = report.unwrap_err();
        assert!(error.starts_with("ops0, frame 5: it panicked: falls when dropped"), "{side}: {error}");
    }
}

#[test]
fn another_thread_may_use_the_services_while_the_device_is_lost() {
    /// Copies kept values all the time, on a thread of its own.
    #[derive(Default)]
    struct Busy {
        thread: Option<JoinHandle<()>>,
        stops: Arc<AtomicBool>,
        refused: Arc<AtomicUsize>,
    }
    impl FrameHandler for Busy {
        fn start(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
            let (work, pool) = (context.work(), context.pool());
            let kept = context.keep(&[512], DType::U8, &[3; 512])?;
            let (stops, refused) = (Arc::clone(&self.stops), Arc::clone(&self.refused));
            self.thread = Some(std::thread::spawn(move || {
                // Memory of the first device, for as long as the run goes on.
                let first = pool.allocate(&[512], DType::U8).unwrap();
                while !stops.load(Ordering::Relaxed) {
                    let mut recording = Recording::new();
                    if let (Some(to), Ok(values)) = (first.buffer(), kept.frame())
                        && let Some(from) = values.buffer()
                    {
                        let added = recording.copy(from, to).is_ok() && work.add(&mut recording).is_ok();
                        refused.fetch_add(usize::from(!added), Ordering::Relaxed);
                    }
                    std::thread::sleep(Duration::from_micros(300));
                }
            }));
            Ok(())
        }

        fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
            std::thread::sleep(Duration::from_millis(1));
            pass(call)
        }

        fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
            true
        }

        fn stop(&mut self) -> Result<(), HandlerError> {
            self.stops.store(true, Ordering::Relaxed);
            self.thread.take().map_or(Ok(()), |thread| thread.join().map_err(|_| HandlerError::failed("its thread")))
        }
    }
    for lost in [&[][..], &[20], &[20, 40]] {
        let refused = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&refused);
        let mut registry = vramp::registry();
        registry.add(&ENTRY, move |_| Ok(Busy { refused: Arc::clone(&counter), ..Busy::default() })).unwrap();
        let options = RunOptions::new().only(Space::Gpu).lose_device_at(lost);
        let (rows, report) = run("pattern size=16x8 frames=100 ! ops ! app name=out", &registry, options);
        let report = report.unwrap();
        assert!(rows.len() >= 80, "{} frames", rows.len());
        assert_eq!((report.recoveries.len(), report.memory.leaked), (lost.len(), 0));
        assert_eq!(refused.load(Ordering::Relaxed) > 0, !lost.is_empty(), "work for a lost device is refused");
    }
}

#[test]
fn a_frame_of_an_earlier_call_that_is_sent_on_has_the_notes_of_the_lead() {
    struct Holds(Option<Frame>);
    impl FrameHandler for Holds {
        fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
            let before = self.0.replace(call.take(0).unwrap());
            let Some(frame) = before else { return Ok(Flow::Filtered) };
            call.send(0, frame);
            Ok(Flow::Produced)
        }
    }
    struct Numbers;
    impl FrameHandler for Numbers {
        fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
            let number = call.now().number;
            if number.is_multiple_of(2) {
                call.note("n", number as f64)?;
            }
            pass(call)
        }
    }
    static NUMBERS: Entry = Entry { name: "numbers", ..OPS };
    let mut registry = vramp::registry();
    registry.add(&ENTRY, |_| Ok(Holds(None))).unwrap();
    registry.add(&NUMBERS, |_| Ok(Numbers)).unwrap();
    let options = RunOptions::new().only(Space::Cpu);
    let text = "pattern size=8x8 frames=6 ! numbers ! ops ! app name=out";
    let running = Pipeline::parse(text).registry(&registry).options(options).build().unwrap().spawn().unwrap();
    for frame in &running.output("out").unwrap() {
        let frame = frame.unwrap();
        let (number, notes) = (frame.meta().number, frame.notes().map(ToString::to_string));
        assert_eq!(notes, number.is_multiple_of(2).then(|| format!("n={number}")));
    }
    running.wait().unwrap();
}
