//! Controls and `null`, made from their entries and run in a lane.

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use vramp_handlers::registry;
use vramp_plan::catalog::{Entry, SettingValues, Value};
use vramp_plan::{Format, Policy, Rate, Size};
use vramp_runtime::internals::{HeapTally, Lane, LaneContext, Node, WakeSignal, link};
use vramp_runtime::observe::{DropReason, NodeCounts};
use vramp_runtime::{Call, Clock, Flow, Frame, FrameHandler, FramePool, HandlerError, Stepped, Worker};

use crate::setup::setup;

fn entry(name: &str) -> &'static Entry {
    registry().catalog().entries().find(|e| e.name == name).expect("the handler exists")
}

/// A node as a pipeline makes it: the handler from its maker, `delay` and `every` from its entry.
fn node(name: &str, settings: &SettingValues) -> Node {
    let entry = entry(name);
    let registry = registry();
    let make = registry.maker(entry).unwrap_or_else(|| panic!("{name} cannot be made"));
    let setup = setup(name, settings);
    let Worker::Frames(handler) = make(&setup).unwrap_or_else(|error| panic!("{name}: {error}")) else {
        panic!("{name} works on whole frames");
    };
    Node::new(name, handler, 1, entry.outputs.len())
        .delaying(entry.delay.under(settings) as usize, entry.keeps_times.under(settings))
        .every(entry.every.under(settings).into())
}

fn set(key: &str, value: i64) -> SettingValues {
    let mut settings = SettingValues::default();
    settings.set(key, Value::Int(value));
    settings
}

/// Sends this many frames with these bytes, and keeps the last one.
struct Give {
    frames: u64,
    format: Format,
    size: Size,
    byte: fn(usize) -> u8,
    held: Arc<Mutex<Option<Frame>>>,
}

impl Give {
    fn rgba(frames: u64, width: u32, height: u32) -> Give {
        let size = Size { width, height };
        Give { frames, format: Format::Rgba8, size, byte: |i| i as u8, held: Arc::default() }
    }
}

impl FrameHandler for Give {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        if call.now().number == self.frames {
            *self.held.lock().expect("no thread panicked") = None;
            return Ok(Flow::Ended);
        }
        let mut frame = call.lend(self.format, self.size)?;
        frame.fill().expect("just lent").iter_mut().enumerate().for_each(|(i, byte)| *byte = (self.byte)(i));
        *self.held.lock().expect("no thread panicked") = Some(frame.clone());
        call.send(0, frame);
        Ok(Flow::Produced)
    }
}

/// Records the number and time of every frame, and whether it is the frame that was sent last.
#[derive(Default)]
struct Note {
    given: Arc<Mutex<Option<Frame>>>,
    seen: Arc<Mutex<Vec<(u64, i64, bool)>>>,
}

impl FrameHandler for Note {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let frame = call.input(0).expect("a lead frame");
        let same = self.given.lock().expect("no thread panicked").as_ref().is_some_and(|given| given.is_same(frame));
        self.seen.lock().expect("no thread panicked").push((call.now().number, frame.meta().pts_ns, same));
        Ok(Flow::Produced)
    }
}

struct Run {
    lane: Lane,
    pool: FramePool,
    tally: Arc<HeapTally>,
}

impl Run {
    /// A lane of these nodes in order; the first is a source.
    fn of(give: Give, others: Vec<Node>) -> Run {
        let signal = WakeSignal::new();
        let clock = Clock::free(Rate::new(10, 1).expect("a rate"));
        let mut nodes = vec![Node::new("give", Box::new(give), 0, 1).clock(clock)];
        nodes.extend(others);
        for at in 1..nodes.len() {
            let (output, input) = link(Policy::Lossless, 1, &signal, &signal);
            nodes[at - 1].connect_output(0, output);
            nodes[at].connect_input(0, input, Policy::Lossless);
        }
        let (pool, tally) = (FramePool::new(16 << 20), Arc::new(HeapTally::default()));
        let context = LaneContext::new(pool.clone()).counting(Arc::clone(&tally));
        Run { lane: Lane::new(nodes, signal, context), pool, tally }
    }

    fn step(&mut self) -> Stepped {
        self.lane.step(&|| Duration::ZERO)
    }

    fn run_out(&mut self) {
        while matches!(self.step(), Stepped::Moved) {}
        assert!(matches!(self.step(), Stepped::Over));
        self.lane.stop(DropReason::Stopped).expect("stopping does not fail");
        assert_eq!(self.pool.stats().lent_bytes, 0, "every frame is back");
    }

    fn counts(&self, node: usize) -> NodeCounts {
        self.lane.nodes().nth(node).expect("the node exists").counts()
    }
}

/// Runs ten frames through one control; returns number, time, and whether the frame is the one sent last.
fn through(name: &str, settings: &SettingValues) -> Vec<(u64, i64, bool)> {
    let give = Give::rgba(10, 2, 2);
    let note = Note { given: Arc::clone(&give.held), ..Note::default() };
    let seen = Arc::clone(&note.seen);
    let mut run = Run::of(give, vec![node(name, settings), Node::new("note", Box::new(note), 1, 0)]);
    run.run_out();
    assert_eq!(run.pool.stats().copies, 0, "{name} copies nothing");
    std::mem::take(&mut *seen.lock().expect("no thread panicked"))
}

const PERIOD_NS: i64 = 100_000_000;

#[test]
fn identity_hands_on_the_very_frame_that_came() {
    let expected: Vec<_> = (0..10).map(|n: u64| (n, n.cast_signed() * PERIOD_NS, true)).collect();
    assert_eq!(through("identity", &SettingValues::default()), expected);
}

#[test]
fn every_lets_the_first_and_then_one_in_n_pass() {
    for (n, expected) in [(1, (0..10).collect()), (3, vec![0, 3, 6, 9]), (4, vec![0, 4, 8]), (1_000_000, vec![0])] {
        let numbers: Vec<u64> = through("every", &set("n", n)).into_iter().map(|(number, ..)| number).collect();
        assert_eq!(numbers, expected, "every {n}");
    }
}

#[test]
fn delay_shows_older_pictures_under_the_times_of_now() {
    for frames in [0, 1, 3, 9, 50] {
        let seen = through("delay", &set("frames", frames));
        let expected: Vec<_> = (0..10).map(|n: u64| (n, n.cast_signed() * PERIOD_NS)).skip(frames as usize).collect();
        assert_eq!(seen.iter().map(|(number, at, _)| (*number, *at)).collect::<Vec<_>>(), expected);
        assert!(seen.iter().all(|(.., same)| *same == (frames == 0)), "delay {frames}");
    }
}

#[test]
fn with_keep_times_delay_hands_frames_on_later_with_their_own_times_and_all_of_them() {
    for frames in [0, 1, 3, 9, 50] {
        let mut settings = set("frames", frames);
        settings.set("keep-times", Value::Bool(true));
        let seen = through("delay", &settings);
        let expected: Vec<_> = (0..10).map(|n: u64| (n, n.cast_signed() * PERIOD_NS)).collect();
        assert_eq!(seen.iter().map(|(number, at, _)| (*number, *at)).collect::<Vec<_>>(), expected);
        // A delayed frame arrives after the source has sent others: it is not the last one.
        assert!(seen.iter().take(9).all(|(.., same)| *same == (frames == 0)), "delay {frames}");
    }
}

#[test]
fn null_takes_every_frame_and_keeps_none() {
    let mut run = Run::of(Give::rgba(10, 3, 3), vec![node("null", &SettingValues::default())]);
    run.run_out();
    assert_eq!(run.counts(1), NodeCounts { taken: 10, emitted: 10, ..NodeCounts::default() });
}

#[test]
fn passing_frames_on_allocates_nothing() {
    let null = SettingValues::default();
    for control in [node("identity", &null), node("every", &set("n", 2)), node("delay", &set("frames", 4))] {
        let name = control.name();
        let mut run = Run::of(Give::rgba(u64::MAX, 4, 4), vec![control, node("null", &null)]);
        (0..20).for_each(|_| assert!(matches!(run.step(), Stepped::Moved)));
        let warm = run.tally.own();
        (0..100).for_each(|_| assert!(matches!(run.step(), Stepped::Moved)));
        assert_eq!(run.tally.own(), warm, "{name}");
    }
}

/// The test reads standard error of a child process, which runs this test again and probes.
#[test]
fn probe_prints_one_line_per_frame_with_the_hash_that_xxhsum_prints() {
    const CHILD: &str = "VRAMP_TEST_PROBES";
    if std::env::var_os(CHILD).is_some() {
        let gray = Give { format: Format::Gray8, ..Give::rgba(1, 3, 2) };
        let noisy = Give { byte: |i| (i * 7 + 3) as u8, ..Give::rgba(200, 64, 48) };
        for (give, name) in [(Give::rgba(2, 3, 2), "probe"), (gray, "probe"), (noisy, "probe")] {
            let frames = give.frames;
            let mut run =
                Run::of(give, vec![node(name, &SettingValues::default()), node("null", &SettingValues::default())]);
            if frames > 100 {
                (0..20).for_each(|_| assert!(matches!(run.step(), Stepped::Moved)));
                let warm = run.tally.own();
                (0..100).for_each(|_| assert!(matches!(run.step(), Stepped::Moved)));
                assert_eq!(run.tally.own(), warm, "a line takes no new memory");
            }
            run.run_out();
            assert_eq!(run.counts(2).taken, frames, "frames pass");
        }
        return;
    }
    let name = "controls::probe_prints_one_line_per_frame_with_the_hash_that_xxhsum_prints";
    let child = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .expect("it runs once more");
    let said = String::from_utf8(child.stderr).expect("text");
    assert!(child.status.success(), "{said}");
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("probe: ")).collect();
    // Bytes 0 to 23; bytes 0 1 2 4 5 6, since each row of three has one byte of padding; (7 i + 3) mod 256.
    assert_eq!(
        lines[..4],
        [
            "probe: frame 0 pts 0 ns 3x2 rgba8 cpu dd14a0292632be9b",
            "probe: frame 1 pts 100000000 ns 3x2 rgba8 cpu dd14a0292632be9b",
            "probe: frame 0 pts 0 ns 3x2 gray8 cpu b15ec29a32bde11b",
            "probe: frame 0 pts 0 ns 64x48 rgba8 cpu 2ec9210f72e7f712",
        ]
    );
    assert_eq!(lines.len(), 2 + 1 + 200);
}
