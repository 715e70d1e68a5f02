//! Whole pipelines on one thread of the host, beside `OpenCV` where it is installed.
//!
//! `cargo bench --bench speed [-- PYTHON]` alternates with `benches/peers/opencv.py`, run by that interpreter (`python3`
//! unless told). CPU time of the whole process counts: machines are shared.

mod measure;

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::Mutex;

use vramp::plan::catalog::{Entry, Fallback, Liveness, Output, Setting, SizeRule, ValueType};
use vramp::plan::{Format, Graph, Size, Space};
use vramp::runtime::{Call, Flow, Frame, FrameHandler, HandlerError, Kinds, Setup, Worker};
use vramp::{FileProbe, Session};

use measure::{cpu_ms, median};

const FRAMES: u64 = 600;
const ROUNDS: usize = 3;

/// Works, how they are compared, and by how much vramp has to be faster.
const CASES: [(&str, &str, f64); 3] =
    [("chain5", "chain5", 5.0), ("demo", "demo_copying", 15.0), ("demo", "demo_in_place", 1.0)];
const DEMO: &str = "pattern kind=ball size=1920x1080 ! markers ! waveform ! fps ! null";
const CHAIN5: &str = "still ! contrast 1.2 ! brightness 0.0392157 ! gamma 2.2 ! saturation 0.7 ! invert ! \
                      mix amount=0.3 name=m ! null ; still ! m.b";

static STILL: Entry = Entry {
    name: "still",
    about: "the same noise in every frame, at no cost",
    example: "still ! null",
    outputs: &[Output { size: SizeRule::Setting("size"), ..Output::VIDEO }],
    settings: &[Setting {
        name: "size",
        value: ValueType::Size,
        fallback: Fallback::Is("1920x1080"),
        liveness: Liveness::Fixed,
        about: "its size",
    }],
    blocking: false,
    ..Entry::SOURCE
};

/// Hands out one picture again and again.
#[derive(Default)]
struct Still {
    frame: Mutex<Option<Frame>>,
}

impl FrameHandler for Still {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let mut kept = self.frame.lock().map_err(|_| HandlerError::failed("nobody panics here"))?;
        if kept.is_none() {
            let mut frame = call.lend(Format::Rgba8, Size { width: 1920, height: 1080 })?;
            let mut bytes = frame.fill().ok_or_else(|| HandlerError::failed("it was just lent"))?;
            (0_u32..).zip(bytes.iter_mut()).for_each(|(i, byte)| *byte = (i.wrapping_mul(2_654_435_761) >> 13) as u8);
            drop(bytes);
            *kept = Some(frame);
        }
        if let Some(frame) = &*kept {
            call.send(0, frame.clone());
        }
        Ok(Flow::Produced)
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        self.frame = Mutex::default();
        Ok(())
    }
}

fn main() {
    let python = std::env::args().skip(1).find(|word| !word.starts_with('-')).unwrap_or_else(|| "python3".to_owned());
    let mut kinds = vramp::kinds();
    let make = |_: &Setup<'_>| Ok(Worker::frames(Still::default()));
    kinds.add(&STILL, make).expect("a good entry");
    let mut own: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    let mut others: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        for (work, text) in [("chain5", CHAIN5), ("demo", DEMO)] {
            own.entry(work).or_default().push(frame_ms(&kinds, text));
        }
        for (work, ms) in opencv(&python) {
            others.entry(work).or_default().push(ms);
        }
    }
    if others.is_empty() {
        println!("OpenCV is not there: `pip install opencv-python-headless numpy`, then name that python\n");
    }
    println!("1920x1080, one thread, ms of CPU time a frame");
    println!("{:24} {:>8} {:>8} {:>7}  wanted", "", "vramp", "OpenCV", "ratio");
    for (work, peer, wanted) in CASES {
        let ours = median(&own[work]);
        match others.get(peer) {
            None => println!("{peer:24} {ours:>8.3} {:>8} {:>7}  {wanted}x", "-", "-"),
            Some(theirs) => {
                let (theirs, ratio) = (median(theirs), median(theirs) / ours);
                let verdict = if ratio >= wanted { "met" } else { "MISSED" };
                println!("{peer:24} {ours:>8.3} {theirs:>8.3} {ratio:>6.1}x  {wanted}x {verdict}");
            }
        }
    }
}

fn frame_ms(kinds: &Kinds, text: &str) -> f64 {
    let spec = vramp::read(text, kinds.catalog()).unwrap_or_else(|mistakes| panic!("{mistakes}"));
    let graph = Graph::check(&spec, kinds.catalog(), &FileProbe).unwrap_or_else(|error| panic!("{error}"));
    let session = Session::of(&graph, kinds).only(Space::Cpu).threads(1).frames(FRAMES);
    let prepared = session.prepare().unwrap_or_else(|error| panic!("{error}"));
    let start = cpu_ms();
    let outcome = prepared.run(None).unwrap_or_else(|error| panic!("{error}"));
    let took = cpu_ms() - start;
    assert_eq!(outcome.into_result().unwrap_or_else(|error| panic!("{error}")).frames, FRAMES);
    took / FRAMES as f64
}

/// What the other program prints; nothing where it cannot run.
fn opencv(python: &str) -> Vec<(String, f64)> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/opencv.py");
    let Ok(output) = Command::new(python).arg(script).output() else { return Vec::new() };
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let one = |line: &str| line.split_once(' ').and_then(|(work, ms)| Some((work.to_owned(), ms.parse().ok()?)));
    text.lines().filter_map(one).collect()
}
