//! The rig: a started piece of a pipeline between its two ends.
//!
//! [`Harness`](super::Harness) builds a rig. The rig pushes a frame into each `app` source that is due at the clock's
//! time, and pulls every frame that reaches an `app` sink.
//!
//! Invariants: a step returns only when the device is idle and nothing more can run at the clock's current time. So
//! nothing changes between two steps. If a frame is due and the test has pushed none, the slot of that frame stays
//! empty; an input that is slower than the clock has no slots in between.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use vramp_handlers::app::{AppInput, AppOutput, PushError, Wait};
use vramp_plan::{Plan, Rate, Size};
use vramp_runtime::engine::Engine;
use vramp_runtime::{Clock, FrameContent, Meta, Report, Stepped};

use super::{Caught, HarnessError, Stream};

/// Maximum wait for a device. No work of a test takes this long.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A port of the tested piece that the test fills or reads, and the name of the `app` source or sink at that port.
#[derive(Debug, Clone)]
pub(super) struct OpenPort {
    pub(super) handler: String,
    pub(super) port: String,
    pub(super) end: String,
    pub(super) stream: Stream,
}

impl OpenPort {
    pub(super) fn new(handler: &str, port: &str, stream: Stream) -> OpenPort {
        OpenPort { handler: handler.to_owned(), port: port.to_owned(), end: String::new(), stream }
    }

    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.handler, self.port)
    }
}

/// The position of the port with this name.
pub(super) fn find<'e>(
    ports: impl Iterator<Item = &'e OpenPort> + Clone,
    asked: &str,
    side: &'static str,
) -> Result<usize, HarnessError> {
    let exact = ports.clone().position(|port| port.name() == asked);
    let mut by_port = ports.clone().enumerate().filter(|(_, port)| port.port == asked).map(|(at, _)| at);
    match (exact, by_port.next(), by_port.next()) {
        (Some(at), ..) | (None, Some(at), None) => Ok(at),
        _ => {
            let there = ports.map(OpenPort::name).collect();
            Err(HarnessError::NoPort { asked: asked.to_owned(), side, there })
        }
    }
}

/// An open input, and the frames that the test has pushed and no step has sent.
pub(super) struct Feed {
    port: OpenPort,
    /// A frame is due at every tick whose number is a multiple of this number.
    every: u64,
    input: AppInput,
    waiting: VecDeque<Caught>,
}

/// An open output, and the frames that the test has not pulled.
pub(super) struct Catch {
    port: OpenPort,
    output: AppOutput,
    caught: VecDeque<Caught>,
}

impl Feed {
    pub(super) fn new(input: AppInput, port: OpenPort, every: u32) -> Feed {
        Feed { port, every: u64::from(every.max(1)), input, waiting: VecDeque::new() }
    }

    /// Sends the oldest frame, or skips a frame if none was pushed.
    fn send(&mut self) -> Result<(), PushError> {
        let sent = match self.waiting.pop_front() {
            None => self.input.skip(),
            Some(frame) => frame.lent(&self.input).and_then(|frame| self.input.send(frame, Wait::Never)),
        };
        match sent {
            // No handler reads this input any more.
            Err(PushError::Ended { .. }) => Ok(()),
            sent => sent,
        }
    }
}

impl Catch {
    pub(super) fn new(output: AppOutput, port: OpenPort) -> Catch {
        Catch { port, output, caught: VecDeque::new() }
    }

    /// Copies the frames that have arrived. Returns whether there were any.
    fn collect(&mut self) -> bool {
        let before = self.caught.len();
        while let Ok(Some(frame)) = self.output.try_pull() {
            self.caught.push_back(Caught::of(&frame));
        }
        self.caught.len() > before
    }
}

/// A started piece of a pipeline between `app` sources and sinks.
pub struct Rig {
    engine: Engine,
    plan: Plan,
    feeds: Vec<Feed>,
    catches: Vec<Catch>,
    rate: Rate,
    ticks: u64,
    now: Duration,
    /// The pipeline has ended or failed.
    over: bool,
}

impl Rig {
    pub(super) fn new(engine: Engine, plan: Plan, feeds: Vec<Feed>, catches: Vec<Catch>, rate: Rate) -> Rig {
        Rig { engine, plan, feeds, catches, rate, ticks: 0, now: Duration::ZERO, over: false }
    }

    /// Queues a frame at an input. When this input is due, a step sends the oldest frame in the queue.
    pub fn push(&mut self, port: &str, bytes: &[u8]) -> Result<(), HarnessError> {
        let at = self.feed(port)?;
        self.push_content(at, self.feeds[at].port.stream.content, bytes)
    }

    /// Like [`Rig::push`], for a picture whose size differs from the declared size.
    pub fn push_sized(&mut self, port: &str, size: Size, bytes: &[u8]) -> Result<(), HarnessError> {
        let at = self.feed(port)?;
        let mut content = self.feeds[at].port.stream.content;
        if let FrameContent::Video(picture) = &mut content {
            picture.size = size;
        }
        self.push_content(at, content, bytes)
    }

    /// Like [`Rig::push`], for the f32 values of a tensor or of data. Values that are not given are 0.
    pub fn push_values(&mut self, port: &str, values: &[f32]) -> Result<(), HarnessError> {
        let at = self.feed(port)?;
        let content = self.feeds[at].port.stream.content;
        let mut bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        if let FrameContent::Data { .. } = content {
            bytes.resize(bytes.len().max(Meta::with(content).bytes() as usize), 0);
        }
        self.push_content(at, content, &bytes)
    }

    fn push_content(&mut self, at: usize, content: FrameContent, bytes: &[u8]) -> Result<(), HarnessError> {
        let feed = &mut self.feeds[at];
        let needed = Meta::with(content).bytes();
        if needed != bytes.len() as u64 {
            return Err(HarnessError::NotAFrame { port: feed.port.name(), content, needed, given: bytes.len() });
        }
        let frame = Caught { number: 0, pts_ns: 0, content, notes: Vec::new(), bytes: bytes.to_vec() };
        feed.waiting.push_back(frame);
        Ok(())
    }

    /// Moves the clock to the next frame of the fastest input and runs everything that can run. If a frame of an input
    /// is due but no frame was pushed, the slot of that frame stays empty, as if a camera had dropped the frame.
    pub fn step(&mut self) -> Result<(), HarnessError> {
        self.now = Duration::from_nanos(Clock::pts_ns(self.rate, self.ticks).unsigned_abs());
        let tick = self.ticks;
        self.ticks += 1;
        for feed in &mut self.feeds {
            if self.over {
                feed.waiting.clear();
            } else if tick.is_multiple_of(feed.every) {
                feed.send()?;
            }
        }
        self.settle()
    }

    /// Steps until every pushed frame was sent.
    pub fn run(&mut self) -> Result<(), HarnessError> {
        while self.feeds.iter().any(|feed| !feed.waiting.is_empty()) {
            self.step()?;
        }
        Ok(())
    }

    /// Takes the oldest frame of an output.
    pub fn pull(&mut self, port: &str) -> Result<Caught, HarnessError> {
        let at = self.catch(port)?;
        let catch = &mut self.catches[at];
        catch.caught.pop_front().ok_or_else(|| HarnessError::Nothing { port: catch.port.name() })
    }

    /// How many frames wait at an output to be pulled.
    pub fn waiting(&self, port: &str) -> Result<usize, HarnessError> {
        self.catch(port).map(|at| self.catches[at].caught.len())
    }

    /// The plan of the piece and its ends.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The time of the rig's clock, which handlers see.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Sends the remaining frames, ends the sources, flushes held frames, and stops every handler. The frames that come
    /// out can still be pulled.
    pub fn finish(&mut self) -> Result<Report, HarnessError> {
        let ran = self.run();
        self.engine.stopper().finish();
        let settled = ran.and_then(|()| self.settle());
        let (report, not_stopped) = self.engine.finish(self.now);
        settled?;
        not_stopped.map_or(Ok(report), |failure| Err(HarnessError::Failed(failure)))
    }

    fn feed(&self, port: &str) -> Result<usize, HarnessError> {
        find(self.feeds.iter().map(|feed| &feed.port), port, "input")
    }

    fn catch(&self, port: &str) -> Result<usize, HarnessError> {
        find(self.catches.iter().map(|catch| &catch.port), port, "output")
    }

    /// Steps the engine, and pulls the frames that arrive, until nothing more can run at the clock's current time.
    fn settle(&mut self) -> Result<(), HarnessError> {
        let now = self.now;
        let (mut moved, mut idle) = (Instant::now(), false);
        loop {
            let stepped = self.engine.step(&|| now);
            let mut arrived = false;
            for catch in &mut self.catches {
                arrived |= catch.collect();
            }
            self.over = matches!(stepped, Stepped::Over | Stepped::Failed(_));
            match stepped {
                Stepped::Moved => (moved, idle) = (Instant::now(), false),
                Stepped::Over => return Ok(()),
                Stepped::Failed(failure) => return Err(HarnessError::Failed(failure)),
                // A sink that was full has room again.
                Stepped::Stuck | Stepped::Wait(_) if arrived => (moved, idle) = (Instant::now(), false),
                Stepped::Stuck | Stepped::Wait(_) if self.engine.wait_for_device(PATIENCE) => {
                    idle = false;
                    if moved.elapsed() >= PATIENCE {
                        return Err(HarnessError::Overdue);
                    }
                }
                // A poll of the device collects results for every thread that uses the device, so another thread may
                // have collected this rig's results between the step and the poll. Those results may allow more work.
                // So the rig takes one more step after it found the device idle.
                Stepped::Stuck | Stepped::Wait(_) if idle => return Ok(()),
                Stepped::Stuck | Stepped::Wait(_) => idle = true,
            }
        }
    }
}
