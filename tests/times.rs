//! Times of frames: a source gives its frames their times, a live source follows arrivals, and a sink that shows frames
//! receives each frame at its time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use vramp::plan::catalog::{FormatRule, Output, RateRule, SizeRule, When};
use vramp::prelude::*;
use vramp::runtime::{Registry, Stepped};

static SHOW: Entry = Entry {
    name: "show",
    about: "shows frames at their times",
    example: "pattern ! show",
    presents: true,
    blocking: false,
    ..Entry::SINK
};

static TIMED: Entry = Entry {
    name: "timed",
    about: "frames with the times of a list, in milliseconds",
    example: "timed ! null",
    outputs: &[Output {
        format: FormatRule::Declared,
        size: SizeRule::Setting("size"),
        rate: RateRule::Setting("fps"),
        ..Output::VIDEO
    }],
    settings: &[
        Setting::size("size", "their size").default("4x4"),
        Setting::rate("fps", "their rate").default("10"),
        Setting::bool("live", "whether it follows arrivals").default("false"),
    ],
    blocking: false,
    live: When::Setting("live"),
    ..Entry::SOURCE
};

type Seen = Arc<Mutex<Vec<(u64, i64)>>>;

struct Show(Seen);

impl FrameHandler for Show {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        self.0.lock().expect("no test panics here").push((call.now().number, call.now().pts_ns));
        Ok(Flow::Produced)
    }
}

struct Timed {
    times_ms: Option<Vec<i64>>,
    next: usize,
}

impl FrameHandler for Timed {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        if let Some(times) = &self.times_ms {
            let Some(time_ms) = times.get(self.next) else { return Ok(Flow::Ended) };
            call.stamp(time_ms * 1_000_000);
        }
        self.next += 1;
        let frame = call.lend(Format::Rgba8, Size { width: 4, height: 4 })?;
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

fn registry(times_ms: Option<&[i64]>, seen: &Seen) -> Registry {
    let (times_ms, seen) = (times_ms.map(<[i64]>::to_vec), Arc::clone(seen));
    let mut registry = vramp::registry();
    registry.add(&SHOW, move |_| Ok(Show(Arc::clone(&seen)))).expect("the entry is valid");
    registry.add(&TIMED, move |_| Ok(Timed { times_ms: times_ms.clone(), next: 0 })).expect("the entry is valid");
    registry
}

/// Steps a pipeline at these times, and returns how many frames were shown after each of them.
fn shown_at(text: &str, times_ms: Option<&[i64]>, options: RunOptions, steps_ms: &[u64]) -> (Vec<usize>, Vec<i64>) {
    let seen = Seen::default();
    let builder =
        Pipeline::parse(text).registry(&registry(times_ms, &seen)).options(options.only(Space::Cpu).threads(1));
    let mut engine = builder.build().and_then(Pipeline::into_engine).expect(text);
    engine.start().expect(text);
    let mut counts = Vec::new();
    for ms in steps_ms {
        // A source without a pace is always due, so only a few steps are made at each time.
        for _ in 0..8 {
            if let Stepped::Failed(failure) = engine.step(&|| Duration::from_millis(*ms)) {
                panic!("{failure}");
            }
        }
        counts.push(seen.lock().expect("no test panics here").len());
    }
    engine.finish(Duration::ZERO);
    let times = seen.lock().expect("no test panics here").iter().map(|(_, pts_ns)| pts_ns / 1_000_000).collect();
    (counts, times)
}

#[test]
fn a_sink_that_shows_frames_receives_each_at_its_time() {
    let (counts, times) =
        shown_at("timed ! show", Some(&[500, 540, 700]), RunOptions::new(), &[3, 20, 43, 60, 203, 204]);
    assert_eq!(counts, [1, 1, 2, 2, 3, 3], "40 ms and 200 ms after the first frame, whatever time that has");
    assert_eq!(times, [500, 540, 700]);
}

#[test]
fn after_a_stall_frames_are_shown_later_and_not_in_a_burst() {
    let times: Vec<i64> = (0..10).map(|n| n * 40).collect();
    let (counts, _) = shown_at("timed ! show", Some(&times), RunOptions::new(), &[0, 1_000, 1_010, 1_040, 1_080]);
    assert_eq!(counts, [1, 2, 2, 3, 4]);
}

#[test]
fn a_pace_shows_frames_at_the_pace_and_leaves_their_times() {
    let options = RunOptions::new().pace(Rate::new(100, 1).expect("a rate"));
    let (counts, times) = shown_at("timed ! show", Some(&[0, 1_000, 2_000]), options, &[0, 5, 10, 20]);
    assert_eq!((counts, times), (vec![1, 1, 2, 3], vec![0, 1_000, 2_000]));
}

/// A camera: each call waits for the next frame.
struct Waiting(u64);

impl FrameHandler for Waiting {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        self.0 += 1;
        if self.0 > 9 {
            return Ok(Flow::Ended);
        }
        std::thread::sleep(Duration::from_millis(60));
        let frame = call.lend(Format::Rgba8, Size { width: 4, height: 4 })?;
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

#[test]
fn the_latency_of_a_live_source_does_not_count_the_wait_for_its_frames() {
    let mut registry = vramp::registry();
    registry.add(&TIMED, |_| Ok(Waiting(0))).expect("the name is free");
    let p50 = |text: &str| {
        let options = RunOptions::new().only(Space::Cpu);
        let report = Pipeline::parse(text).registry(&registry).options(options).build().expect("it is right").run();
        report.expect("it runs").latency_ms.p50.expect("frames have arrived")
    };
    let (live, read) = (p50("timed live=true ! null"), p50("timed ! null"));
    assert!(read >= 50.0, "reading is part of the latency of any other source: {read} ms");
    assert!(live < read / 2.0, "{live} ms, and {read} ms with the wait");
}

#[test]
fn a_live_source_has_the_times_of_its_arrivals() {
    let options = || RunOptions::new().frames(2).pace(Rate::new(50, 1).expect("a rate"));
    let (_, times) = shown_at("timed live=true ! show", None, options(), &[7, 8, 31]);
    assert_eq!(times, [7, 31]);
    let (_, times) = shown_at("timed ! show", None, options(), &[7, 8, 31]);
    assert_eq!(times, [0, 100], "otherwise the times of its rate");
}

#[test]
fn times_that_do_not_grow_end_the_run() {
    let seen = Seen::default();
    let builder = Pipeline::parse("timed ! null").registry(&registry(Some(&[5, 9, 9]), &seen));
    let failed = builder.options(RunOptions::new().only(Space::Cpu)).build().expect("it is valid").run();
    let error = failed.expect_err("the times do not grow").to_string();
    assert_eq!(
        error,
        "timed0, frame 2: its frame has the time 9000000 ns, but the previous frame had 9000000 ns; the times of a \
         source must grow"
    );
}
