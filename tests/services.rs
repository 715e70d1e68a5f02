//! What a handler is given when it starts: where it runs, what its ports carry, memory, values that are kept on its side,
//! and work that is submitted with its frames. All of it continues if the device is lost or the graph is replaced.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vramp::gpu::{Buffer, Recording};
use vramp::plan::DType;
use vramp::prelude::*;
use vramp::runtime::{HandlerPool, KeptValues, Meta, TensorShape, WorkQueue, Worker};

use crate::shared::{ADD_RED, KEEPS, device, pass};

/// What a test's handler has seen.
type Seen = Arc<Mutex<Vec<String>>>;

fn note(seen: &Seen, words: String) {
    seen.lock().unwrap().push(words);
}

static LOOKS: Entry = Entry {
    name: "looks",
    about: "looks around when it starts",
    example: "pattern ! looks ! null",
    kernel: KernelRule::None,
    ..Entry::FILTER
};

/// A handler that is made of functions.
struct By<S, P> {
    start: S,
    process: P,
}

impl<S, P> FrameHandler for By<S, P>
where
    S: FnMut(&mut StartContext<'_>) -> Result<(), HandlerError> + Send,
    P: FnMut(&mut Call<'_>) -> Result<Flow, HandlerError> + Send,
{
    fn start(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        (self.start)(context)
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        (self.process)(call)
    }

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        true
    }
}

fn around(context: &StartContext<'_>) -> String {
    let ports = |ports: &[Option<vramp::plan::Content>]| {
        let each = ports.iter().map(|port| port.as_ref().map_or("nothing".to_owned(), ToString::to_string));
        each.collect::<Vec<_>>().join(", ")
    };
    assert_eq!(context.device().is_some(), context.backend().is_some());
    assert_eq!((context.pool().space(), context.host_pool().space()), (context.space(), Space::Cpu));
    assert!((1..=2).contains(&context.threads()));
    let (inputs, outputs, rate) = (ports(context.inputs()), ports(context.outputs()), context.rate().unwrap());
    format!("{} on {}: {inputs} -> {outputs} at {rate}", context.name(), context.space())
}

#[test]
fn a_handler_learns_where_it_runs_and_what_its_ports_carry() {
    static TINTS: Entry =
        Entry { name: "tints", about: "adds red", example: "pattern ! tints ! null", ..Entry::FILTER };
    struct Tints(Seen);
    impl PixelHandler for Tints {
        fn parts(&self) -> Vec<Part> {
            vec![Part::Function(&ADD_RED)]
        }

        fn start(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
            note(&self.0, around(context));
            Ok(())
        }

        fn frame(&mut self, _: &PixelInfo<'_>, give: &mut ParamWriter<'_>) -> Result<Flow, HandlerError> {
            give.part(&[1], &[]);
            Ok(Flow::Produced)
        }
    }
    for side in [Space::Cpu, Space::Gpu] {
        let seen = Seen::default();
        let mut registry = vramp::registry();
        let (looks, tints) = (Arc::clone(&seen), Arc::clone(&seen));
        let make = move |_: &Setup<'_>| {
            let seen = Arc::clone(&looks);
            Ok(By {
                start: move |context: &mut StartContext<'_>| {
                    note(&seen, around(context));
                    Ok(())
                },
                process: pass,
            })
        };
        registry.add(&LOOKS, make).unwrap();
        registry.add(&TINTS, move |_| Ok(Tints(Arc::clone(&tints)))).unwrap();
        let text = "pattern size=16x8 fps=25 frames=2 ! looks ! tints ! resize 8x4 ! tints name=last ! null";
        let options = RunOptions::new().only(side).threads(2);
        Pipeline::parse(text).registry(&registry).device(device()).options(options).build().unwrap().run().unwrap();
        let mut seen = seen.lock().unwrap().clone();
        seen.sort();
        let expected = [
            format!("last on {side}: rgba8 8x4 -> rgba8 8x4 at 25"),
            format!("looks0 on {side}: rgba8 16x8 -> rgba8 16x8 at 25"),
            format!("tints0 on {side}: rgba8 16x8 -> rgba8 16x8 at 25"),
        ];
        assert_eq!(seen, expected, "each member of a fused unit has its own context");
    }
}

/// Replaces each picture by its kept values: four blocks of a quarter of the picture, of different bytes.
#[derive(Default)]
struct Paints {
    blocks: Vec<KeptValues>,
    pool: Option<HandlerPool>,
    recording: Recording,
}

const QUARTER: usize = 16 * 8;

impl FrameHandler for Paints {
    fn start(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        for value in 1..=4 {
            self.blocks.push(context.keep(&[8, 16], DType::U8, &[value * 10; QUARTER])?);
        }
        self.pool = Some(context.pool());
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let mut made = self.pool.as_ref().unwrap().allocate(&[8, 16, 4], DType::U8)?;
        let blocks: Vec<Frame> = self.blocks.iter().map(KeptValues::frame).collect::<Result<_, _>>()?;
        if let Some(buffer) = made.buffer() {
            for (at, block) in blocks.iter().enumerate() {
                let from = block.buffer().expect("on the side of the frames");
                let start = (at * QUARTER) as u64;
                self.recording.copy_part(from, 0, buffer, start, QUARTER as u64).map_err(HandlerError::failed)?;
            }
            call.record(&mut self.recording)?;
        } else {
            let mut into = made.fill().unwrap();
            for (at, block) in blocks.iter().enumerate() {
                into[at * QUARTER..][..QUARTER].copy_from_slice(&block.bytes());
            }
        }
        let picture = *call.input(0).unwrap().meta();
        made.set_meta(picture);
        call.send(0, made);
        Ok(Flow::Produced)
    }

    fn leave_device(&mut self, _: &mut StartContext<'_>) -> bool {
        true
    }
}

fn painting() -> Registry {
    static PAINTS: Entry = Entry { name: "paints", ..LOOKS };
    let mut registry = vramp::registry();
    registry.add(&PAINTS, |_| Ok(Paints::default())).unwrap();
    registry
}

fn painted() -> Vec<u8> {
    (1..=4).flat_map(|value: u8| [value * 10; QUARTER]).collect()
}

/// Runs and returns the report; every picture that arrives must be painted.
fn paint(text: &str, options: RunOptions) -> (usize, Report) {
    let running = Pipeline::parse(text).registry(&painting()).options(options).build().unwrap().spawn().unwrap();
    let mut count = 0;
    for frame in &running.output("out").unwrap() {
        assert_eq!(frame.unwrap().bytes()[..], painted()[..], "frame {count}");
        count += 1;
    }
    (count, running.wait().unwrap())
}

#[test]
fn kept_values_are_uploaded_once_in_the_submit_of_the_first_frame() {
    let text = "pattern size=16x8 frames=200 ! paints ! app name=out";
    let (count, report) = paint(text, RunOptions::new().only(Space::Gpu));
    assert_eq!((count, report.counters.uploads, report.counters.downloads), (200, 4, 200));
    assert_eq!(report.counters.submits, 200, "no submit but those of the frames");
    assert_eq!((report.steady.uploads, report.steady.gpu_allocs), (0.0, 0.0));
    assert_eq!(report.memory.leaked, 0, "the handler was dropped with what it held: {:?}", report.memory.leaks);
    let (count, report) = paint(text, RunOptions::new().only(Space::Cpu));
    assert_eq!((count, report.counters.uploads, report.memory.leaked), (200, 0, 0));
}

#[test]
fn kept_values_and_pools_continue_after_a_lost_device() {
    let text = "pattern size=16x8 frames=120 ! paints ! app name=out";
    for (options, uploads) in [(RunOptions::new(), 8), (RunOptions::new().on_loss(OnLoss::Cpu), 4)] {
        let (count, report) = paint(text, options.only(Space::Gpu).lose_device_at(&[40]));
        assert_eq!((report.recoveries.len(), report.memory.leaked), (1, 0));
        assert!(count as u64 + report.dropped.device_lost >= 120 && count >= 100, "{count} frames");
        assert!(report.counters.uploads <= uploads, "{} uploads", report.counters.uploads);
    }
}

#[test]
fn kept_values_and_pools_continue_in_another_graph() {
    for side in [Space::Cpu, Space::Gpu] {
        let text = |more: &str| format!("pattern size=16x8 ! paints ! {more}keeps");
        let count = Arc::new(AtomicUsize::new(0));
        let mut registry = painting();
        let counter = Arc::clone(&count);
        let keeps = move |_: &Setup<'_>| {
            let counter = Arc::clone(&counter);
            let process = move |call: &mut Call<'_>| {
                assert_eq!(call.take(0).unwrap().bytes()[..], painted()[..], "{side}");
                counter.fetch_add(1, Ordering::Relaxed);
                Ok(Flow::Produced)
            };
            Ok(By { start: |_: &mut StartContext<'_>| Ok(()), process })
        };
        registry.add(&KEEPS, keeps).unwrap();
        let checked = |text: &str| Pipeline::parse(text).registry(&registry).check().expect(text);
        let options = RunOptions::new().only(side);
        let pipeline = Pipeline::parse(text("")).registry(&registry).options(options).build().unwrap();
        let running = pipeline.spawn().unwrap();
        for (at, more) in ["identity ! ", "", "identity ! identity ! ", "invert ! invert ! "].iter().enumerate() {
            while count.load(Ordering::Relaxed) < 20 * (at + 1) {
                std::thread::sleep(Duration::from_millis(1));
            }
            running.controls().apply(&checked(&text(more))).unwrap();
        }
        running.stop();
        let report = running.wait().unwrap();
        assert_eq!(report.memory.leaked, 0, "{side}: {:?}", report.memory.leaks);
        assert_eq!(report.counters.uploads, if side == Space::Gpu { 4 } else { 0 }, "once for all graphs");
    }
}

/// Computes a table at its start, in two steps, and copies it to each picture.
#[derive(Default)]
struct Tables {
    table: Option<Buffer>,
    work: Option<WorkQueue>,
}

impl FrameHandler for Tables {
    fn start(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        let pool = context.pool();
        let (first, table) = (pool.allocate(&[512], DType::U8)?, pool.allocate(&[512], DType::U8)?);
        let (first, table) = (first.buffer().unwrap(), table.buffer().unwrap());
        let work = context.work();
        let mut recording = Recording::new();
        recording.write(first, &[1; 512]).unwrap();
        work.add(&mut recording)?;
        recording.copy(first, table).unwrap();
        work.add(&mut recording)?;
        recording.write(first, &[2; 512]).unwrap();
        work.add(&mut recording)?;
        assert_eq!((work.waiting(), recording.len()), (3, 0));
        (self.table, self.work) = (Some(table.clone()), Some(work));
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let frame = call.take(0).unwrap();
        assert_eq!(self.work.as_ref().unwrap().waiting(), 0, "the work is part of this frame's submit");
        let mut recording = Recording::new();
        recording.copy(self.table.as_ref().unwrap(), frame.buffer().unwrap()).unwrap();
        call.record(&mut recording)?;
        call.send(0, frame);
        Ok(Flow::Produced)
    }

    fn enter_device(&mut self, context: &mut StartContext<'_>) -> Result<(), HandlerError> {
        self.start(context)
    }
}

#[test]
fn queued_work_runs_in_order_before_the_next_frame_and_in_its_submit() {
    static TABLES: Entry = Entry { name: "tables", spaces: &[Space::Gpu], ..LOOKS };
    let mut registry = vramp::registry();
    registry.add(&TABLES, |_| Ok(Tables::default())).unwrap();
    for lost in [None, Some(30)] {
        let text = "pattern size=16x8 frames=60 ! tables ! app name=out";
        let options = lost.map_or(RunOptions::new(), |at| RunOptions::new().lose_device_at(&[at]));
        let running = Pipeline::parse(text).registry(&registry).options(options).build().unwrap().spawn().unwrap();
        let all: Vec<_> = running.output("out").unwrap().iter().map(|frame| frame.unwrap().bytes().to_vec()).collect();
        let report = running.wait().unwrap();
        assert!(all.iter().all(|bytes| bytes[..] == [1; 512]), "each step sees the step before, and none after");
        assert_eq!((report.recoveries.len(), report.memory.leaked), (usize::from(lost.is_some()), 0));
        if lost.is_none() {
            assert_eq!((all.len(), report.counters.submits), (60, 60));
        }
    }
}

#[test]
fn work_without_a_device_and_values_of_another_size_are_refused_in_words() {
    let seen = Seen::default();
    let looks = Arc::clone(&seen);
    let mut registry = vramp::registry();
    let make = move |_: &Setup<'_>| {
        let seen = Arc::clone(&looks);
        let start = move |context: &mut StartContext<'_>| {
            let errors = [
                context.work().add(&mut Recording::new()).unwrap_err(),
                context.keep(&[2, 3], DType::F32, &[0; 20]).unwrap_err(),
                context.pool().allocate(&[2, 0], DType::F32).unwrap_err(),
                context.pool().allocate(&[1; 9], DType::F32).unwrap_err(),
                context.pool().allocate(&[usize::MAX], DType::U8).unwrap_err(),
            ];
            for error in errors {
                note(&seen, error.to_string());
            }
            Ok(())
        };
        Ok(Worker::frames(By { start, process: pass }))
    };
    registry.add(&LOOKS, make).unwrap();
    let options = RunOptions::new().only(Space::Cpu);
    let text = "pattern size=16x8 frames=1 ! looks ! null";
    Pipeline::parse(text).registry(&registry).options(options).build().unwrap().run().unwrap();
    assert_eq!(
        *seen.lock().unwrap(),
        [
            "there is no device to record for: frames are on the host",
            "f32 [2, 3] has 24 bytes, but 20 were given",
            "a tensor of the shape [2, 0] has no values",
            "a tensor cannot have the shape [1, 1, 1, 1, 1, 1, 1, 1, 1]",
            &format!("a tensor cannot have the shape [{}]", usize::MAX),
        ]
    );
}

#[test]
fn the_pool_lends_the_same_memory_again_and_keeps_ten_of_a_size() {
    for side in [Space::Cpu, Space::Gpu] {
        let seen = Seen::default();
        let looks = Arc::clone(&seen);
        let mut registry = vramp::registry();
        let make = move |_: &Setup<'_>| {
            let seen = Arc::clone(&looks);
            let start = move |context: &mut StartContext<'_>| {
                let pool = context.pool();
                let allocate = |shape: &[usize], dtype| pool.allocate(shape, dtype).unwrap();
                let before = pool.statistics();
                let many: Vec<Frame> = (0..12).map(|_| allocate(&[3, 5, 7], DType::F32)).collect();
                let shape = TensorShape::new(DType::F32, &[3, 5, 7]).unwrap();
                assert_eq!(many[0].meta().content, Meta::tensor(shape).content);
                assert_eq!(pool.statistics().misses - before.misses, 12);
                drop(many);
                let free = pool.statistics().pooled - before.pooled;
                let again: Vec<Frame> = (0..3).map(|_| allocate(&[3, 5, 7], DType::F32)).collect();
                assert_eq!(pool.statistics().hits - before.hits, 3);
                drop(again);
                // Other shapes and types of as many bytes are served from the same memory.
                drop((allocate(&[7, 5, 3], DType::F32), allocate(&[105], DType::I32)));
                assert_eq!(pool.statistics().hits - before.hits, 5);
                drop(allocate(&[3, 5, 7], DType::U8));
                assert_eq!(pool.statistics().misses - before.misses, 13);
                note(&seen, format!("{free} {pool}"));
                Ok(())
            };
            Ok(By { start, process: pass })
        };
        registry.add(&LOOKS, make).unwrap();
        let text = "pattern size=16x8 frames=1 ! looks ! null";
        let options = RunOptions::new().only(side);
        // A device of its own, so that no other test uses its pool.
        Pipeline::parse(text).registry(&registry).options(options).build().unwrap().run().unwrap();
        let seen = seen.lock().unwrap();
        assert!(seen[0].starts_with("10 ") && seen[0].contains(&format!("{side} pool: ")), "{seen:?}");
    }
}

#[test]
fn handlers_of_a_run_make_a_shared_value_once_for_each_side() {
    struct Made(usize);
    let (made, seen) = (Arc::new(AtomicUsize::new(0)), Seen::default());
    let (count, look) = (Arc::clone(&made), Arc::clone(&seen));
    let mut registry = vramp::registry();
    let make = move |_: &Setup<'_>| {
        let (count, seen) = (Arc::clone(&count), Arc::clone(&look));
        let held = Arc::new(Mutex::new(Vec::new()));
        let start = move |context: &mut StartContext<'_>| {
            let failed: Result<Arc<u8>, _> =
                context.share(|| Err(HandlerError::failed("nothing is kept of a failure")));
            assert!(failed.is_err());
            let value = context.share(|| Ok(Made(count.fetch_add(1, Ordering::Relaxed))))?;
            note(&seen, format!("{} on {} has {}", context.name(), context.space(), value.0));
            held.lock().unwrap().push(value);
            Ok(())
        };
        Ok(By { start, process: pass })
    };
    registry.add(&LOOKS, make).unwrap();
    let run = |text: &str, options: RunOptions| {
        seen.lock().unwrap().clear();
        Pipeline::parse(text).registry(&registry).device(device()).options(options).build().unwrap().run().unwrap();
        let mut seen = seen.lock().unwrap().clone();
        seen.sort();
        seen
    };
    let text = "pattern size=16x8 frames=2 ! looks ! looks ! null";
    assert_eq!(run(text, RunOptions::new().only(Space::Cpu)), ["looks0 on cpu has 0", "looks1 on cpu has 0"]);
    assert_eq!(run(text, RunOptions::new().only(Space::Cpu)), ["looks0 on cpu has 1", "looks1 on cpu has 1"]);
    assert_eq!(run(text, RunOptions::new().only(Space::Gpu)), ["looks0 on gpu has 2", "looks1 on gpu has 2"]);
    let mixed = "pattern size=16x8 frames=2 ! looks name=a ! upload ! looks name=b ! download ! looks name=c ! null";
    let pins = [("a", Space::Cpu), ("b", Space::Gpu), ("c", Space::Cpu)].map(|(name, side)| (name.to_owned(), side));
    let seen = run(mixed, RunOptions { pins: pins.into_iter().collect(), ..RunOptions::new() });
    let numbers: Vec<&str> = seen.iter().map(|line| line.rsplit(' ').next().unwrap()).collect();
    assert_eq!((numbers[0], made.load(Ordering::Relaxed)), (numbers[2], 5), "{seen:?}: one per side, not per lane");
    assert_ne!(numbers[0], numbers[1], "{seen:?}");
}

#[test]
fn handlers_on_both_sides_share_a_value_on_the_host() {
    struct Made;
    let (made, held) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (count, values) = (Arc::clone(&made), Arc::clone(&held));
    let mut registry = vramp::registry();
    let make = move |_: &Setup<'_>| {
        let (count, held) = (Arc::clone(&count), Arc::clone(&values));
        let start = move |context: &mut StartContext<'_>| {
            let make = || {
                count.fetch_add(1, Ordering::Relaxed);
                Ok(Made)
            };
            held.lock().unwrap().push((context.space(), context.share_on_host(make)?));
            Ok(())
        };
        Ok(By { start, process: pass })
    };
    registry.add(&LOOKS, make).unwrap();
    let text = "pattern size=16x8 frames=2 ! looks name=a ! upload ! looks name=b ! download ! null";
    let pins = [("a", Space::Cpu), ("b", Space::Gpu)].map(|(name, side)| (name.to_owned(), side));
    let options = RunOptions { pins: pins.into_iter().collect(), ..RunOptions::new() };
    Pipeline::parse(text).registry(&registry).device(device()).options(options).build().unwrap().run().unwrap();
    let held = held.lock().unwrap();
    assert_eq!((held.len(), made.load(Ordering::Relaxed)), (2, 1));
    assert!(Arc::ptr_eq(&held[0].1, &held[1].1) && held[0].0 != held[1].0);
}
