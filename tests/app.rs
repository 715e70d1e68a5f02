//! The ends that a program holds: frames that are pushed come out again, in order, once, and without a copy, whatever the
//! threads of the program do.

#![allow(clippy::unwrap_used, reason = "a failing unwrap is a failing test")]

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use vramp::gpu::Device;
use vramp::prelude::*;
use vramp::runtime::observe::{EndCounts, EndUse, Leak};
use vramp::tensor::{Context, DType};

const FRAME: [u8; 8] = [0, 10, 20, 255, 255, 245, 235, 7];

fn built(text: &str) -> Pipeline {
    Pipeline::parse(text).options(RunOptions::new().only(Space::Cpu)).build().expect(text)
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
fn frames_of_another_format_are_converted_for_the_program() {
    let running = built("app size=4x2 format=i420 fps=30 ! app name=out").spawn().unwrap();
    let input = running.input("").unwrap();
    let mut lent = input.lend().unwrap();
    lent.bytes_mut().fill(128);
    input.send(lent, Wait::Forever).unwrap();
    let frame = running.pull().unwrap().unwrap();
    assert_eq!((frame.meta().picture().format, frame.size()), (Format::Rgba8, Size::new(4, 2).unwrap()));
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
    let error = input.push_at(&FRAME, i64::MAX).unwrap_err().to_string();
    assert!(error.ends_with("is more than 146 years from the start of the run"), "{error}");
    assert!(matches!(input.push_at(&FRAME, i64::MIN), Err(PushError::TooFar { .. })));
    assert!(matches!(input.push(&FRAME), Err(PushError::MixedTimes { .. })));
    input.close();
    let pulled: Vec<_> = running.output("out").unwrap().iter().map(|frame| frame.unwrap().meta().pts_ns).collect();
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
    let times: Vec<_> = running.output("out").unwrap().iter().map(|frame| frame.unwrap().meta().pts_ns).collect();
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
        let other = scope.spawn(|| running.output("out").unwrap().iter().count());
        output.pull().unwrap();
        running.stop();
        assert!(matches!(pushes.join().unwrap(), PushError::Ended { .. }));
        other.join().unwrap();
    });
    running.wait().unwrap();
    assert!(output.iter().all(|frame| frame.is_ok()), "queued frames can still be pulled");
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

/// A program may share a running pipeline and its ends among threads.
fn is_shared<T: Send + Sync>() {}

#[test]
fn frames_are_conserved_when_a_run_is_closed_or_stopped_at_any_time() {
    is_shared::<(Running, AppInput, AppOutput, Controls)>();
    for round in 0..60_u64 {
        let mut random = Random(round);
        let running = built("app name=in size=1x1 ! identity ! app name=out hold=4").spawn().unwrap();
        let (input, output) = (running.input("in").unwrap(), running.output("out").unwrap());
        let threads = 1 + random.below(4);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| while input.push(&[7; 4]).is_ok() {});
                scope.spawn(|| while let Ok(Some(_)) = output.pull() {});
            }
            std::thread::sleep(Duration::from_micros(random.below(3_000)));
            match random.below(3) {
                0 => input.close(),
                1 => running.stop(),
                _ => running.finish(),
            }
        });
        let report = running.wait().unwrap();
        let (pushed, out) = (input.counts(), output.counts());
        assert_eq!(pushed.pushed, pushed.taken + pushed.dropped, "{round}: nothing stays queued");
        assert_eq!((report.frames_in, out.arrived), (pushed.taken, out.pulled + out.dropped + out.queued), "{round}");
        assert_eq!((report.frames_out, report.memory.leaked), (out.arrived, 0), "{round}");
    }
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
                    let mut number = 0;
                    while number < each {
                        let pixel = (thread as u32) << 24 | number as u32;
                        let bytes = pixel.to_le_bytes();
                        let sent = match random.below(3) {
                            0 => input.try_push(&bytes),
                            1 => input.push_timeout(&bytes, Duration::from_micros(random.below(200))),
                            _ => input.push(&bytes),
                        };
                        match sent {
                            Ok(()) => number += 1,
                            Err(PushError::WouldBlock { .. } | PushError::Timeout { .. }) => {}
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
            // The end comes before any panic, which would otherwise leave the pulling threads waiting.
            let ended: Vec<_> = pushers.into_iter().map(std::thread::ScopedJoinHandle::join).collect();
            input.close();
            for thread in ended.into_iter().chain(pullers.into_iter().map(std::thread::ScopedJoinHandle::join)) {
                thread.unwrap();
            }
        });
        let report = running.wait().unwrap();
        let (pushed, out) = (input.counts(), output.counts());
        assert_eq!(pushed.pushed, pushed.taken + pushed.dropped + pushed.queued, "{threads} {live}");
        assert_eq!((pushed.queued, report.frames_in, report.frames_out), (0, pushed.taken, out.arrived));
        assert_eq!((out.arrived, out.queued), (out.pulled + out.dropped, 0));
        assert_eq!(out.pulled, pulled.load(Ordering::Relaxed));
        assert!(live || pushed.dropped == 0);
        assert_eq!(pushed.pushed, 200_000);
        assert_eq!((report.memory.leaked, report.in_flight), (0, 0), "{:?}", report.memory.leaks);
        assert!(report.memory.misses < 64, "memory is flat: {:?}", report.memory);
    }
}

/// The frames of `app ! blur ! app` on the CPU, by number.
fn blurred(size: Size, pushed: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let running = built(&format!("app name=in size={size} ! blur sigma=2 ! app name=out")).spawn().unwrap();
    let (input, output) = (running.input("in").unwrap(), running.output("out").unwrap());
    let pull = || output.pull().unwrap().unwrap().bytes().to_vec();
    pushed.iter().map(|bytes| input.push(bytes).map(|()| pull()).unwrap()).collect()
}

/// Random images.
fn images(size: Size, count: u64) -> Vec<Vec<u8>> {
    let mut random = Random(1);
    (0..count).map(|_| (0..4 * size.pixels()).map(|_| random.below(256) as u8).collect()).collect()
}

#[test]
fn frames_on_the_device_stay_there_and_have_the_cpus_pixels() {
    let size = Size { width: 64, height: 48 };
    let images = images(size, 20);
    // A device of its own, because the counters of a device that tests share would count other tests.
    let device = Device::choose().open().unwrap();
    let context = Context::on(&device).unwrap();
    let shape = [48, 64, 4];
    // Tensors and their first use as a buffer, before the pipeline begins to count.
    let tensors: Vec<_> = images.iter().map(|image| context.tensor::<u8>(image, &shape).unwrap()).collect();
    for tensor in &tensors {
        drop(tensor.as_buffer().unwrap());
    }
    context.finish().unwrap();
    let text = "app name=in size=64x48 space=gpu ! blur sigma=2 ! app name=out space=gpu hold=32";
    let options = RunOptions::new().only(Space::Gpu);
    let mut pipeline = Pipeline::parse(text).options(options).device(&device).build().unwrap();
    assert!(pipeline.plan().transfers.is_empty(), "{}", pipeline.plan());
    let (input, output) = (pipeline.input("in").unwrap(), pipeline.output("out").unwrap());
    assert!(matches!(input.push(&images[0]), Err(PushError::WrongSpace { .. })));
    let elsewhere = Context::on_host().tensor::<u8>(&images[0], &shape).unwrap();
    assert!(matches!(input.push_tensor(&elsewhere), Err(PushError::WrongSpace { .. })));
    let mut pulled = Vec::new();
    for (number, tensor) in tensors.iter().enumerate() {
        if number % 2 == 0 {
            input.push_tensor(tensor).unwrap();
        } else {
            let frame = input.lend_buffer().unwrap();
            device.raw_queue().write_buffer(frame.buffer().unwrap().raw(), 0, &images[number]);
            input.send(frame, Wait::Never).unwrap();
        }
        while pulled.len() <= number {
            pipeline.step().unwrap();
            match output.try_pull() {
                Ok(Some(frame)) => pulled.push(frame),
                _ => pipeline.wait_for_device(),
            }
        }
    }
    input.close();
    while pipeline.step().unwrap() != Step::Over {
        pipeline.wait_for_device();
    }
    let report = pipeline.finish().unwrap();
    let counters = &report.counters;
    assert_eq!((counters.uploads, counters.downloads, counters.submits), (0, 0, 20), "{counters:?}");
    assert_eq!(report.frames_out, 20);
    for (number, (frame, expected)) in pulled.iter().zip(blurred(size, &images)).enumerate() {
        assert_eq!(frame.space(), Space::Gpu);
        let tensor = context.tensor_over(frame.buffer().unwrap(), &shape, DType::U8).unwrap();
        assert_eq!(tensor.read::<u8>().unwrap(), expected, "frame {number}");
        assert_eq!(tensors[number].read::<u8>().unwrap(), images[number], "a pushed tensor is not changed");
    }
}

/// Pushes an image where the input takes frames now. Returns the space, or `None` if there is no room.
fn push_somewhere(input: &AppInput, image: &[u8]) -> Option<Space> {
    let (space, pushed) = match input.device() {
        None => (Space::Cpu, input.try_push(image)),
        Some(device) => {
            let lent = input.lend_buffer();
            let write = |frame: &LentFrame| device.raw_queue().write_buffer(frame.buffer().unwrap().raw(), 0, image);
            (Space::Gpu, lent.inspect(write).and_then(|frame| input.send(frame, Wait::Never)))
        }
    };
    match pushed {
        Ok(()) => Some(space),
        // The pipeline has not noticed yet that its device is lost.
        Err(PushError::WouldBlock { .. } | PushError::Lend { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_lost_device_takes_no_end_with_it_and_no_frame_is_wrong() {
    let size = Size { width: 16, height: 12 };
    let images = images(size, 60);
    let expected = blurred(size, &images);
    for (rule, space_after) in [(OnLoss::Cpu, Space::Cpu), (OnLoss::Reopen, Space::Gpu)] {
        let text = "app name=in size=16x12 space=gpu ! blur sigma=2 ! app name=out space=gpu";
        let options = RunOptions::new().only(Space::Gpu).on_loss(rule).lose_device_at(&[20]);
        let mut pipeline = Pipeline::parse(text).options(options).build().unwrap();
        let (input, output) = (pipeline.input("in").unwrap(), pipeline.output("out").unwrap());
        let (mut right, mut unreadable) = (BTreeSet::new(), 0);
        let mut last = (Space::Gpu, Space::Gpu);
        let mut collect = |step: &mut Pipeline| {
            let stepped = step.step().unwrap();
            while let Ok(Some(frame)) = output.try_pull() {
                let bytes = match frame.buffer() {
                    None => Some(frame.bytes().to_vec()),
                    // A frame that was pulled before the loss may be on the lost device.
                    Some(buffer) => step.watch().device().and_then(|device| {
                        let tensor = Context::on(&device).ok()?.tensor_over(buffer, &[12, 16, 4], DType::U8).ok()?;
                        tensor.read::<u8>().ok()
                    }),
                };
                let number = frame.meta().number;
                last.1 = frame.space();
                match bytes {
                    None => unreadable += 1,
                    Some(bytes) => {
                        assert_eq!(bytes, expected[number as usize], "frame {number} with {rule:?}");
                        right.insert(number);
                    }
                }
            }
            stepped
        };
        for image in &images {
            last.0 = loop {
                match push_somewhere(&input, image) {
                    Some(space) => break space,
                    None => drop(collect(&mut pipeline)),
                }
            };
            collect(&mut pipeline);
        }
        input.close();
        while collect(&mut pipeline) != Step::Over {
            pipeline.wait_for_device();
        }
        assert_eq!(last, (space_after, space_after), "{rule:?}");
        let report = pipeline.finish().unwrap();
        assert_eq!((report.placement.device_losses, report.frames_in, report.in_flight), (1, 60, 0), "{rule:?}");
        let lost = report.dropped.device_lost + report.filtered;
        assert_eq!(right.len() as u64 + unreadable + lost, 60, "{rule:?}: {report:?}");
        assert!((1..16).contains(&(lost + unreadable)), "{rule:?}: {lost} and {unreadable}");
        assert!(right.contains(&0) && right.contains(&59), "{rule:?}");
    }
}

#[test]
fn a_skipped_frame_is_an_empty_slot_that_no_join_waits_for() {
    let text = "app name=a size=1x1 ! mix mode=mix amount=1 name=m ! app name=out; app name=b size=1x1 ! m.b";
    let mut pipeline = built(text);
    let (a, b, output) = (pipeline.input("a").unwrap(), pipeline.input("b").unwrap(), pipeline.output("out").unwrap());
    let mut found = Vec::new();
    for (tick, (of_a, of_b)) in (0_u8..).zip([(true, true), (true, false), (false, true), (true, true)]) {
        let (pts_ns, level) = (i64::from(tick) * 50, tick);
        if of_a { a.push_at(&[0; 4], pts_ns) } else { a.skip_at(pts_ns) }.unwrap();
        if of_b { b.push_at(&[100 + level; 4], pts_ns) } else { b.skip_at(pts_ns) }.unwrap();
        while pipeline.step().unwrap() == Step::Moved {}
        while let Ok(Some(frame)) = output.try_pull() {
            found.push((frame.meta().number, frame.meta().pts_ns, frame.bytes()[0]));
        }
        assert_eq!(found.len(), usize::from(tick) + 1 - usize::from(tick >= 2), "nothing waits for a skipped frame");
    }
    // The second frame has the older frame of `b`, and the third slot is empty because `a` leads.
    assert_eq!(found, [(0, 0, 100), (1, 50, 100), (3, 150, 103)]);
    assert!(matches!(a.skip_at(150), Err(PushError::Backwards { .. })));
    assert!(matches!(a.skip(), Err(PushError::MixedTimes { .. })));
    a.close();
    b.close();
    while pipeline.step().unwrap() != Step::Over {}
    let report = pipeline.finish().unwrap();
    assert_eq!((report.frames_in, report.frames_out, a.counts().pushed), (8, 3, 4));
}

#[test]
fn forwarded_frames_share_their_memory_with_the_other_pipeline() {
    let one = built("pattern size=64x48 ! app hold=4").spawn().unwrap();
    let two = built("app name=in size=64x48 ! identity ! app name=out").spawn().unwrap();
    let other = built("app name=in size=64x48 ! invert ! app name=out").spawn().unwrap();
    let mut held = None;
    for _ in 0..40 {
        let frame = one.pull().unwrap().unwrap();
        let before = frame.bytes().to_vec();
        two.input("in").unwrap().forward(&frame).unwrap();
        let shared = two.pull().unwrap().unwrap();
        assert!(shared.is_same(&frame), "the same memory");
        other.input("in").unwrap().forward(&frame).unwrap();
        let inverted = other.pull().unwrap().unwrap();
        assert!(!inverted.is_same(&frame) && inverted.bytes()[0] == 255 - before[0]);
        assert_eq!(frame.bytes()[..], before[..], "a shared frame is not changed");
        held = Some(shared);
    }
    let error = two.input("in").unwrap().forward(&built_gray().pull().unwrap().unwrap()).unwrap_err().to_string();
    assert_eq!(error, "in takes frames in rgba8, but the forwarded frame is in gray8; add `convert rgba8` before it");
    one.output("").unwrap().close();
    one.finish();
    let report = one.wait().unwrap();
    let rows = &report.memory.held_by_program;
    let is_shared = |row: &&Leak| row.owner == "pattern0" && row.last == "another pipeline";
    assert_eq!((rows.iter().filter(is_shared).count(), report.memory.leaked), (1, 0), "{:?}", report.memory);
    drop(held);
}

fn built_gray() -> vramp::Running {
    built("pattern size=64x48 frames=1 ! convert gray8 ! app format=any").spawn().unwrap()
}

#[test]
fn the_report_counts_the_frames_of_each_end() {
    let mut pipeline = built("app name=in size=2x1 live=true ! app name=out; pattern size=2x1 frames=1 ! null");
    let (input, output) = (pipeline.input("in").unwrap(), pipeline.output("out").unwrap());
    (0..10).for_each(|_| input.push(&FRAME).unwrap());
    input.close();
    while let Ok(None) | Err(PullError::WouldBlock { .. }) = output.try_pull() {
        pipeline.step().unwrap();
    }
    while pipeline.step().unwrap() == Step::Moved {}
    let report = pipeline.finish().unwrap();
    let of = |name: &str, counts| EndUse { name: name.to_owned(), counts };
    let expected = [
        of("in", EndCounts::In { pushed: 10, taken: 4, dropped: 6, queued: 0 }),
        of("out", EndCounts::Out { arrived: 3, pulled: 1, dropped: 0, queued: 2 }),
    ];
    assert_eq!(report.ends, expected);
    let json = serde_json::to_value(&report).unwrap();
    let row = serde_json::json!({"name": "in", "direction": "in", "pushed": 10, "taken": 4, "dropped": 6, "queued": 0});
    assert_eq!(json["ends"][0], row);
    let none = serde_json::to_value(built("pattern frames=1 ! null").run().unwrap()).unwrap();
    assert!(none.get("ends").is_none());
}
