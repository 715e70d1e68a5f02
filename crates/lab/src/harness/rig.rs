//! The rig: a started piece of a pipeline between its two ends.
//!
//! [`Harness`](super::Harness) builds a rig.
//!
//! Invariant: a step returns only when the device is idle and nothing more can run at the clock's current time. So
//! nothing changes between two steps.

use std::time::{Duration, Instant};

use vramp_plan::{Plan, Rate, Size};
use vramp_runtime::engine::Engine;
use vramp_runtime::{Clock, Report, Stepped, Yuv};

use super::ends::{Caught, Trays};
use super::{HarnessError, Stream};

/// Maximum wait for a device. No work of a test takes this long.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// A port of the tested piece that the test fills (through a feed) or reads (through a catch), and the name of the
/// queue (the tray) that holds its frames.
#[derive(Debug, Clone)]
pub(super) struct OpenPort {
    pub(super) handler: String,
    pub(super) port: String,
    pub(super) tray: String,
    pub(super) stream: Stream,
}

impl OpenPort {
    pub(super) fn new(handler: &str, port: &str, stream: Stream) -> OpenPort {
        OpenPort { handler: handler.to_owned(), port: port.to_owned(), tray: String::new(), stream }
    }

    pub(super) fn name(&self) -> String {
        format!("{}.{}", self.handler, self.port)
    }
}

pub(super) fn find<'e>(ends: &'e [OpenPort], asked: &str, side: &'static str) -> Result<&'e OpenPort, HarnessError> {
    let exact = ends.iter().find(|end| end.name() == asked);
    let mut by_port = ends.iter().filter(|end| end.port == asked);
    match (exact, by_port.next(), by_port.next()) {
        (Some(end), ..) | (None, Some(end), None) => Ok(end),
        _ => {
            let there = ends.iter().map(OpenPort::name).collect();
            Err(HarnessError::NoPort { asked: asked.to_owned(), side, there })
        }
    }
}

/// A started piece of a pipeline between feeds and catches.
pub struct Rig {
    engine: Engine,
    plan: Plan,
    inputs: Vec<OpenPort>,
    outputs: Vec<OpenPort>,
    pushed: Trays,
    caught: Trays,
    rate: Rate,
    ticks: u64,
    now: Duration,
}

impl Rig {
    pub(super) fn new(
        engine: Engine,
        plan: Plan,
        (inputs, outputs): (Vec<OpenPort>, Vec<OpenPort>),
        (pushed, caught): (Trays, Trays),
        rate: Rate,
    ) -> Rig {
        Rig { engine, plan, inputs, outputs, pushed, caught, rate, ticks: 0, now: Duration::ZERO }
    }

    /// Queues a frame at an input. When this input is due, a step sends the oldest frame in the queue.
    pub fn push(&mut self, port: &str, bytes: &[u8]) -> Result<(), HarnessError> {
        let size = find(&self.inputs, port, "input")?.stream.size;
        self.push_sized(port, size, bytes)
    }

    /// Like [`Rig::push`], for a frame whose size differs from the declared size.
    pub fn push_sized(&mut self, port: &str, size: Size, bytes: &[u8]) -> Result<(), HarnessError> {
        let end = find(&self.inputs, port, "input")?;
        let format = end.stream.format;
        let needed = format.frame_bytes(size);
        if needed != bytes.len() as u64 {
            return Err(HarnessError::NotAFrame { port: end.name(), size, format, needed, given: bytes.len() });
        }
        let frame = Caught { number: 0, pts_ns: 0, format, size, yuv: Yuv::default(), bytes: bytes.to_vec() };
        self.pushed.put(&end.tray, frame);
        Ok(())
    }

    /// Moves the clock to the next frame of the fastest input and runs everything that can run. If a frame of an input
    /// is due but no frame was pushed, the slot of that frame stays empty, as if a camera had dropped the frame.
    pub fn step(&mut self) -> Result<(), HarnessError> {
        self.now = Duration::from_nanos(Clock::pts_ns(self.rate, self.ticks).unsigned_abs());
        self.ticks += 1;
        self.settle()
    }

    /// Steps until every pushed frame was sent.
    pub fn run(&mut self) -> Result<(), HarnessError> {
        while self.inputs.iter().any(|end| self.pushed.count(&end.tray) > 0) {
            self.step()?;
        }
        Ok(())
    }

    /// Takes the oldest frame of an output.
    pub fn pull(&mut self, port: &str) -> Result<Caught, HarnessError> {
        let end = find(&self.outputs, port, "output")?;
        self.caught.take(&end.tray).ok_or_else(|| HarnessError::Nothing { port: end.name() })
    }

    /// How many frames wait at an output to be pulled.
    pub fn waiting(&self, port: &str) -> Result<usize, HarnessError> {
        find(&self.outputs, port, "output").map(|end| self.caught.count(&end.tray))
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

    /// Steps the engine until nothing more can run at the clock's current time.
    fn settle(&mut self) -> Result<(), HarnessError> {
        let now = self.now;
        let (mut moved, mut idle) = (Instant::now(), false);
        loop {
            match self.engine.step(&|| now) {
                Stepped::Moved => (moved, idle) = (Instant::now(), false),
                Stepped::Over => return Ok(()),
                Stepped::Failed(failure) => return Err(HarnessError::Failed(failure)),
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
