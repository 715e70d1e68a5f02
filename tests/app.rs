//! The ends that a program holds: frames that are pushed come out again, in order, once, and without a copy, whatever the
//! threads of the program do.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use vramp::gpu::Device;
use vramp::prelude::*;

const FRAME: [u8; 8] = [0, 10, 20, 255, 255, 245, 235, 7];

fn built(text: &str) -> Pipeline {
    Pipeline::parse(text).options(RunOptions::new().only(Space::Cpu)).build().expect(text)
}

fn on_device(text: &str) -> Pipeline {
    Pipeline::parse(text).options(RunOptions::new().only(Space::Gpu)).build().expect(text)
}

/// A small generator of random numbers, the same on every machine.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

#[test]
fn a_pushed_frame_is_pulled_with_the_pixels_of_the_pipeline() {
    let running = built("app 2x1 fps=10 ! invert ! app").spawn().unwrap();
    for number in 0..5_u64 {
        running.push(&FRAME).unwrap();
        let frame = running.pull().unwrap().unwrap();
        assert_eq!(frame.bytes()[..], [255, 245, 235, 255, 0, 10, 20, 7]);
        assert_eq!((frame.meta().number, frame.meta().pts_ns), (number, number.cast_signed() * 100_000_000));
    }
    running.input("app0").unwrap().close();
    assert!(running.pull().unwrap().is_none(), "the stream has ended");
    let report = running.wait().unwrap();
    assert_eq!((report.frames_in, report.frames_out, report.memory.leaked), (5, 5, 0));
    assert!(matches!(running.wait(), Err(Error::HasRun)), "the outcome is given once");
}

#[test]
fn a_program_with_its_own_loop_pushes_steps_and_pulls_on_one_thread() {
    let mut pipeline = built("app name=in size=2x1 ! invert ! app name=out hold=2");
    let (input, output) = (pipeline.input("in").unwrap(), pipeline.output("out").unwrap());
    pipeline.step().unwrap();
    assert!(matches!(output.pull(), Err(PullError::WouldBlock { .. })), "this thread would wait for itself");
    let mut pushed = 0;
    while input.push(&FRAME).is_ok() {
        pushed += 1;
    }
    assert!(matches!(input.push(&FRAME), Err(PushError::WouldBlock { .. })));
    assert_eq!(input.counts().pushed, pushed);
    let mut pulled = 0;
    while pulled < pushed {
        while pipeline.step().unwrap() == Step::Moved {}
        while let Ok(Some(frame)) = output.try_pull() {
            assert_eq!((frame.meta().number, frame.bytes()[0]), (pulled, 255));
            pulled += 1;
        }
    }
    input.close();
    while pipeline.step().unwrap() != Step::Over {}
    assert!(matches!(output.pull(), Ok(None)));
    assert_eq!(pipeline.finish().unwrap().frames_out, pushed);
}

#[test]
fn lent_memory_is_the_memory_that_comes_out() {
    let running = built("app name=in size=64x48 ! identity ! app name=out").spawn().unwrap();
    let (input, output) = (running.input("in").unwrap(), running.output("out").unwrap());
    let mut seen = BTreeSet::new();
    for value in 0..100 {
        let mut frame = input.lend().unwrap();
        frame.bytes_mut().fill(value);
        let lent = frame.bytes_mut().as_ptr() as usize;
        input.send(frame, Wait::Forever).unwrap();
        let frame = output.pull().unwrap().unwrap();
        assert_eq!((frame.bytes().as_ptr() as usize, frame.bytes()[0]), (lent, value));
        seen.insert(lent);
    }
    input.close();
    let report = running.wait().unwrap();
    assert_eq!(report.counters.frame_copies, 0);
    assert!(seen.len() <= 2, "{}", seen.len());
}

#[test]
fn iterating_takes_few_addresses_and_copies_nothing() {
    let running = built("pattern size=320x200 frames=300 ! app").spawn().unwrap();
    let output = running.output("").unwrap();
    let (mut addresses, mut count) = (BTreeSet::new(), 0);
    for frame in &output {
        let frame = frame.unwrap();
        assert_eq!(frame.meta().number, count);
        addresses.insert(frame.bytes().as_ptr() as usize);
        count += 1;
    }
    let report = running.wait().unwrap();
    assert_eq!((count, report.counters.frame_copies), (300, 0));
    assert!(addresses.len() <= 6, "{}", addresses.len());
}

#[test]
fn frames_keep_the_times_that_the_program_gives_them() {
    let running = built("app name=in size=2x1 ! identity ! app name=out").spawn().unwrap();
    let input = running.input("in").unwrap();
    let times = [0, 40_000_000, 41_000_000, 5_000_000_000];
    for pts_ns in times {
        input.push_at(&FRAME, pts_ns).unwrap();
    }
    let error = input.push_at(&FRAME, 5_000_000_000).unwrap_err().to_string();
    assert_eq!(error, "in: the time 5000000000 ns is not later than 5000000000 ns of the previous frame");
    assert!(matches!(input.push(&FRAME), Err(PushError::MixedTimes { .. })));
    input.close();
    let pulled: Vec<_> = running.output("out").unwrap().frames().map(|frame| frame.unwrap().meta().pts_ns).collect();
    assert_eq!(pulled, times);
}

#[test]
fn a_pace_changes_when_frames_come_and_not_their_times() {
    let options = RunOptions::new().only(Space::Cpu).pace(Rate::new(1000, 1).unwrap());
    let pipeline = Pipeline::parse("app name=in size=2x1 ! app name=out").options(options).build().unwrap();
    let running = pipeline.spawn().unwrap();
    let input = running.input("in").unwrap();
    (1..=3).for_each(|n| input.push_at(&FRAME, n * 7).unwrap());
    input.close();
    let times: Vec<_> = running.output("out").unwrap().frames().map(|frame| frame.unwrap().meta().pts_ns).collect();
    assert_eq!(times, [7, 14, 21]);
}

#[test]
fn a_live_input_drops_its_oldest_frames_and_never_waits() {
    let mut pipeline = built("app name=in size=2x1 live=true ! app name=out hold=1000");
    let (input, output) = (pipeline.input("in").unwrap(), pipeline.output("out").unwrap());
    for value in 0..100 {
        input.push(&[value; 8]).unwrap();
    }
    input.close();
    let mut values = Vec::new();
    loop {
        let step = pipeline.step().unwrap();
        while let Ok(Some(frame)) = output.try_pull() {
            values.push(frame.bytes()[0]);
        }
        if step == Step::Over {
            break;
        }
    }
    let counts = input.counts();
    assert_eq!((counts.pushed, counts.taken + counts.dropped, counts.queued), (100, 100, 0));
    assert_eq!(values, [96, 97, 98, 99]);
    pipeline.finish().unwrap();
}

#[test]
fn a_wrong_frame_is_refused_in_words() {
    let pipeline = built("app name=in size=4x4 ! app name=out");
    let input = pipeline.input("in").unwrap();
    let error = input.push(&FRAME).unwrap_err().to_string();
    assert_eq!(error, "in: 8 bytes were given, but a frame of 4x4 in rgba8 has 64 bytes");
    let error = input.lend_buffer().unwrap_err().to_string();
    assert_eq!(error, "in takes frames on the cpu; set `space=gpu` to push frames on the gpu");
    let error = pipeline.output("in").unwrap_err().to_string();
    assert_eq!(error, "`in` is not an app sink of this pipeline; its app sinks: out");
    let error = built("pattern frames=1 ! null").input("in").unwrap_err().to_string();
    assert_eq!(
        error,
        "`in` is not an app source of this pipeline; it has no app source: write `app` at the start of a chain"
    );
}

#[test]
fn a_pull_that_waits_for_frames_in_the_programs_own_hands_says_so() {
    let running = built("pattern size=16x16 ! app hold=3").spawn().unwrap();
    let output = running.output("").unwrap();
    let mut held: Vec<_> = (0..3).map(|_| output.pull().unwrap().unwrap()).collect();
    let error = output.pull().unwrap_err();
    assert_eq!(
        error.to_string(),
        "app0: the program holds all 3 frames that it may hold, so no other frame can come; drop a frame before the \
         next pull, or set `hold` to a larger number"
    );
    assert!(matches!(output.pull_timeout(Duration::from_millis(1)), Err(PullError::Timeout { .. })));
    held.pop();
    assert_eq!(output.pull().unwrap().unwrap().meta().number, 3);
    running.finish();
    let report = running.wait().unwrap();
    let rows = &report.memory.held_by_program;
    // Two frames are in the program's hands, and one more was ready to be pulled.
    assert_eq!((rows.len(), report.memory.leaked, report.memory.leaks.len()), (3, 0, 0), "{rows:?}");
    assert!(rows.iter().all(|row| row.last == "app0" && row.bytes == 1024), "{rows:?}");
}

#[test]
fn a_run_that_stops_ends_every_wait() {
    let running = built("app name=in size=2x1 ! identity ! app name=out").spawn().unwrap();
    let (input, output) = (running.input("in").unwrap(), running.output("out").unwrap());
    std::thread::scope(|scope| {
        let pushes = scope.spawn(|| {
            loop {
                if let Err(error) = input.push(&FRAME) {
                    break error;
                }
            }
        });
        let other = scope.spawn(|| running.output("out").unwrap().frames().count());
        output.pull().unwrap();
        running.stop();
        assert!(matches!(pushes.join().unwrap(), PushError::Ended { .. }));
        other.join().unwrap();
    });
    running.wait().unwrap();
    assert!(output.frames().all(|frame| frame.is_ok()), "queued frames can still be pulled");
    assert!(matches!(input.push(&FRAME), Err(PushError::Ended { .. })));
}

#[test]
fn a_pipeline_that_is_dropped_ends_its_ends() {
    let pipeline = built("app name=in size=2x1 ! app name=out");
    let (input, output) = (pipeline.input("in").unwrap(), pipeline.output("out").unwrap());
    drop(pipeline);
    assert!(matches!(input.push(&FRAME), Err(PushError::Ended { .. })));
    assert!(matches!(output.pull(), Ok(None)));
    let running = built("pattern size=16x16 ! app").spawn().unwrap();
    let output = running.output("").unwrap();
    let frame = output.pull().unwrap().unwrap();
    drop(running);
    assert_eq!(frame.bytes().len(), 1024, "a frame outlives its pipeline");
}

#[test]
fn frames_are_conserved_whatever_the_threads_do() {
    // Frames of one pixel, which carries the number of the thread and a count, so that order can be checked.
    for (threads, live, seed) in [(1, false, 1), (2, false, 2), (8, false, 3), (2, true, 4), (8, true, 5)] {
        let text = format!("app name=in size=1x1 live={live} ! identity ! app name=out");
        let running = built(&text).spawn().unwrap();
        let (input, output) = (running.input("in").unwrap(), running.output("out").unwrap());
        let each = 200_000 / threads;
        let pulled = AtomicU64::new(0);
        std::thread::scope(|scope| {
            let push = |thread: u64| {
                let input = &input;
                move || {
                    let mut random = Random(seed + thread);
                    for number in 0..each {
                        let pixel = (thread as u32) << 24 | number as u32;
                        let bytes = pixel.to_le_bytes();
                        let sent = match random.below(3) {
                            0 => input.try_push(&bytes),
                            1 => input.push_timeout(&bytes, Duration::from_micros(random.below(200))),
                            _ => input.push(&bytes),
                        };
                        match sent {
                            Ok(()) | Err(PushError::WouldBlock { .. } | PushError::Timeout { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            };
            let pushers: Vec<_> = (0..threads).map(|thread| scope.spawn(push(thread))).collect();
            let pullers: Vec<_> = (0..threads)
                .map(|thread| {
                    let (output, pulled) = (&output, &pulled);
                    scope.spawn(move || {
                        let mut random = Random(seed + 100 + thread);
                        let mut last = [None::<u32>; 8];
                        let mut held = Vec::new();
                        loop {
                            let frame = match random.below(4) {
                                0 => output.try_pull(),
                                1 => output.pull_timeout(Duration::from_micros(random.below(200))),
                                2 if random.below(10) == 0 => output.latest(),
                                _ => output.pull(),
                            };
                            match frame {
                                Ok(Some(frame)) => {
                                    let bytes = frame.bytes();
                                    let pixel = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
                                    let (from, number) = ((pixel >> 24) as usize, pixel & 0xff_ffff);
                                    assert!(last[from] < Some(number), "frames of a thread stay in order");
                                    last[from] = Some(number);
                                    pulled.fetch_add(1, Ordering::Relaxed);
                                    drop(bytes);
                                    if random.below(8) == 0 {
                                        held.push(frame);
                                    }
                                }
                                Ok(None) => break,
                                Err(PullError::WouldBlock { .. } | PullError::Timeout { .. }) => held.clear(),
                                Err(error) => panic!("{error}"),
                            }
                            if held.len() > 1 {
                                held.clear();
                            }
                        }
                    })
                })
                .collect();
            pushers.into_iter().for_each(|pusher| pusher.join().unwrap());
            input.close();
            pullers.into_iter().for_each(|puller| puller.join().unwrap());
        });
        let report = running.wait().unwrap();
        let (pushed, out) = (input.counts(), output.counts());
        assert_eq!(pushed.pushed, pushed.taken + pushed.dropped + pushed.queued, "{threads} {live}");
        assert_eq!((pushed.queued, report.frames_in, report.frames_out), (0, pushed.taken, out.arrived));
        assert_eq!((out.arrived, out.queued), (out.pulled + out.dropped, 0));
        assert_eq!(out.pulled, pulled.load(Ordering::Relaxed));
        assert!(live || pushed.dropped == 0);
        assert_eq!((report.memory.leaked, report.in_flight), (0, 0), "{:?}", report.memory.leaks);
        assert!(report.memory.misses < 64, "memory is flat: {:?}", report.memory);
    }
}

#[test]
fn frames_on_the_device_stay_there() {
    let mut pipeline = on_device("app name=in size=64x48 space=gpu ! blur sigma=2 ! app name=out space=gpu");
    assert!(pipeline.plan().transfers.is_empty(), "{}", pipeline.plan());
    let device: Device = pipeline.device().unwrap().clone();
    let (input, output) = (pipeline.input("in").unwrap(), pipeline.output("out").unwrap());
    assert!(matches!(input.push(&[0; 64 * 48 * 4]), Err(PushError::WrongSpace { .. })));
    let bytes: Vec<u8> = (0..64 * 48 * 4_u32).map(|n| (n * 7 % 251) as u8).collect();
    let mut frames = 0;
    for _ in 0..20 {
        let frame = input.lend_buffer().unwrap();
        device.raw_queue().write_buffer(frame.buffer().unwrap().raw(), 0, &bytes);
        input.send(frame, Wait::Never).unwrap();
        loop {
            pipeline.step().unwrap();
            if let Ok(Some(frame)) = output.try_pull() {
                assert_eq!(frame.space(), Space::Gpu);
                frames += 1;
                break;
            }
            pipeline.wait_for_device();
        }
    }
    input.close();
    while pipeline.step().unwrap() != Step::Over {
        pipeline.wait_for_device();
    }
    let report = pipeline.finish().unwrap();
    let counters = &report.counters;
    assert_eq!((counters.uploads, counters.downloads, counters.submits), (0, 0, frames), "{counters:?}");
    assert_eq!(report.frames_out, 20);
}
