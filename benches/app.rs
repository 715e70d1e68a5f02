//! What the ends of a program cost, in frames of 64x48 and of 1080p.
//!
//! - `threads`: a thread pushes a frame through `app ! identity ! app` and pulls it, against two bounded channels of
//!   crossbeam with a thread between them that sends every buffer back. Both copy the frame once.
//! - `step`: the same pipeline pushed, stepped and pulled on one thread, against `pattern ! identity ! null` stepped.
//! - `pull`: `pattern ! app` iterated at 1080p, against `pattern ! null`, in CPU time.
//!
//! Each figure is the median of 9 rounds in which both cases alternate.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crossbeam_channel::bounded;
use vramp::prelude::*;

const ROUNDS: usize = 9;
const FRAMES: u64 = 20_000;

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let wanted = |name: &str| only.is_empty() || only.iter().any(|word| word == name);
    if wanted("threads") {
        for (what, window) in [("one frame at a time", 1), ("four frames in flight", 4)] {
            let ratio = compare(|| through_pipeline(window), || through_channels(window));
            println!("threads, {what}: push and pull {} of crossbeam's hand-over (at most 1.5)", words(&ratio));
        }
    }
    if wanted("step") {
        let ratio = compare(stepped_app, stepped_pattern);
        println!("step: push, step and pull {} of `pattern ! identity ! null` (at most 1.5)", words(&ratio));
    }
    if wanted("pull") {
        let ratio = compare(pulled, dropped);
        println!("pull: iterating 1080p {} of `pattern ! null`, in CPU time (at most 1.06)", words(&ratio));
    }
}

struct Compared {
    ours: Duration,
    theirs: Duration,
    ratio: f64,
    /// The fastest round of each, on an undisturbed machine the cost without any sleep.
    fastest: (Duration, Duration),
}

/// The medians per frame, and the median of the ratios of alternating rounds.
fn compare(ours: impl Fn() -> Duration, theirs: impl Fn() -> Duration) -> Compared {
    let mut rounds: Vec<(Duration, Duration)> = (0..ROUNDS).map(|_| (ours(), theirs())).collect();
    let mut ratios: Vec<f64> = rounds.iter().map(|(one, two)| one.as_secs_f64() / two.as_secs_f64()).collect();
    ratios.sort_by(f64::total_cmp);
    rounds.sort();
    let (ours, fastest) = (rounds[ROUNDS / 2].0, rounds[0].0);
    rounds.sort_by_key(|round| round.1);
    Compared { ours, theirs: rounds[ROUNDS / 2].1, ratio: ratios[ROUNDS / 2], fastest: (fastest, rounds[0].1) }
}

fn words(compared: &Compared) -> String {
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let Compared { ours, theirs, ratio, fastest } = compared;
    let fastest = format!("(fastest rounds {:.2} and {:.2})", us(fastest.0), us(fastest.1));
    format!("{:.2} us {fastest}, {ratio:.2} times the {:.2} us", us(*ours), us(*theirs))
}

fn built(text: &str) -> Pipeline {
    Pipeline::parse(text).options(RunOptions::new().only(Space::Cpu)).build().expect("the pipeline is valid")
}

fn through_pipeline(window: u64) -> Duration {
    let running = built("app name=in size=64x48 ! identity ! app name=out").spawn().expect("it starts");
    let (input, output) = (running.input("in").expect("it is there"), running.output("out").expect("it is there"));
    let bytes = vec![7; 64 * 48 * 4];
    let (mut sent, mut begun) = (0, Instant::now());
    for received in 0..FRAMES + 200 {
        if received == 200 {
            begun = Instant::now();
        }
        while sent < received + window {
            input.push(&bytes).expect("it runs");
            sent += 1;
        }
        assert_eq!(output.pull().expect("it runs").expect("it has not ended").bytes()[0], 7);
    }
    begun.elapsed() / FRAMES as u32
}

fn through_channels(window: u64) -> Duration {
    let (to, from) = bounded::<Vec<u8>>(4);
    let (back_to, back) = bounded::<Vec<u8>>(2);
    let echo = std::thread::spawn(move || from.into_iter().try_for_each(|frame| back_to.send(frame)).is_ok());
    let bytes = vec![7; 64 * 48 * 4];
    let mut free: Vec<Vec<u8>> = (0..window).map(|_| vec![0; bytes.len()]).collect();
    let (mut sent, mut begun) = (0, Instant::now());
    for received in 0..FRAMES + 200 {
        if received == 200 {
            begun = Instant::now();
        }
        while sent < received + window {
            let mut frame = free.pop().expect("as many buffers as frames in flight");
            frame.copy_from_slice(&bytes);
            to.send(frame).expect("the other thread runs");
            sent += 1;
        }
        let frame = back.recv().expect("the other thread runs");
        assert_eq!(frame[0], 7);
        free.push(frame);
    }
    let took = begun.elapsed() / FRAMES as u32;
    drop((to, back));
    echo.join().expect("the other thread ends");
    took
}

fn stepped_app() -> Duration {
    let mut pipeline = built("app name=in size=64x48 ! identity ! app name=out");
    let (input, output) = (pipeline.input("in").expect("it is there"), pipeline.output("out").expect("it is there"));
    let bytes = vec![7; 64 * 48 * 4];
    let begun = Instant::now();
    for _ in 0..FRAMES {
        input.try_push(&bytes).expect("there is room");
        loop {
            pipeline.step().expect("it runs");
            if let Ok(Some(frame)) = output.try_pull() {
                assert_eq!(frame.bytes()[0], 7);
                break;
            }
        }
    }
    begun.elapsed() / FRAMES as u32
}

fn stepped_pattern() -> Duration {
    let mut pipeline = built(&format!("pattern size=64x48 frames={FRAMES} ! identity ! null"));
    let begun = Instant::now();
    while pipeline.step().expect("it runs") != Step::Over {}
    begun.elapsed() / FRAMES as u32
}

const BIG: &str = "pattern size=1920x1080 frames=1000";

fn pulled() -> Duration {
    let pipeline = built(&format!("{BIG} ! app"));
    let begun = cpu_time();
    let running = pipeline.spawn().expect("it starts");
    let (mut addresses, mut frames) = (BTreeSet::new(), 0);
    for frame in &running.output("").expect("it is there") {
        addresses.insert(frame.expect("it runs").bytes().as_ptr() as usize);
        frames += 1;
    }
    let report = running.wait().expect("it runs");
    let took = cpu_time().saturating_sub(begun);
    assert_eq!((frames, report.counters.frame_copies), (1000, 0));
    assert!(addresses.len() <= 6, "{} addresses", addresses.len());
    took / 1000
}

fn dropped() -> Duration {
    let mut pipeline = built(&format!("{BIG} ! null"));
    let begun = cpu_time();
    pipeline.run().expect("it runs");
    cpu_time().saturating_sub(begun) / 1000
}

/// The CPU time of all threads of this process, or wall time if the system does not tell.
fn cpu_time() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    vramp::bench::cpu_time().unwrap_or_else(|| START.get_or_init(Instant::now).elapsed())
}
