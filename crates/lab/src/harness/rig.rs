//! The rig itself: a started piece of a pipeline between its two ends.
//!
//! Owns the engine, the clock and the names of the open ports.
//! Does not put anything together: the harness does.
//!
//! Always: after a step nothing moves any more before the next one, whatever the device had to do for it.

use std::time::{Duration, Instant};

use vramp_plan::{Plan, Rate, Size};
use vramp_runtime::engine::Engine;
use vramp_runtime::{Clock, Report, Stepped, Yuv};

use super::ends::{Caught, Trays};
use super::{HarnessError, Stream};

/// Nothing that a test gives a device takes this long.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// An open port and the tray of what was put on it.
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

/// A piece of a pipeline with both ends put on, started.
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

    /// Lays a frame in front of an input. It is handed out by the step at which it is due, one frame each.
    pub fn push(&mut self, port: &str, bytes: &[u8]) -> Result<(), HarnessError> {
        let size = find(&self.inputs, port, "input")?.stream.size;
        self.push_sized(port, size, bytes)
    }

    /// As [`Rig::push`], for a frame of another size than the stream began with.
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

    /// Moves the clock to the next frame of the fastest input and lets everything happen that can. An input whose frame
    /// is due and was not pushed leaves its place empty, as a camera would.
    pub fn step(&mut self) -> Result<(), HarnessError> {
        self.now = Duration::from_nanos(Clock::pts_ns(self.rate, self.ticks).unsigned_abs());
        self.ticks += 1;
        self.settle()
    }

    /// Steps until everything that was pushed has been handed out.
    pub fn run(&mut self) -> Result<(), HarnessError> {
        while self.inputs.iter().any(|end| self.pushed.count(&end.tray) > 0) {
            self.step()?;
        }
        Ok(())
    }

    /// Takes the oldest frame that came out of an output.
    pub fn pull(&mut self, port: &str) -> Result<Caught, HarnessError> {
        let end = find(&self.outputs, port, "output")?;
        self.caught.take(&end.tray).ok_or_else(|| HarnessError::Nothing { port: end.name() })
    }

    /// How many frames came out of an output and were not pulled.
    pub fn waiting(&self, port: &str) -> Result<usize, HarnessError> {
        find(&self.outputs, port, "output").map(|end| self.caught.count(&end.tray))
    }

    /// What was decided about the piece and its ends.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The time that handlers are told.
    pub fn now(&self) -> Duration {
        self.now
    }

    /// Hands out what is left, ends the sources, lets held frames go, stops every handler. What came out by then can
    /// still be pulled.
    pub fn finish(&mut self) -> Result<Report, HarnessError> {
        let ran = self.run();
        self.engine.stopper().finish();
        let settled = ran.and_then(|()| self.settle());
        let (report, not_stopped) = self.engine.finish(self.now);
        settled?;
        not_stopped.map_or(Ok(report), |failure| Err(HarnessError::Failed(failure)))
    }

    /// Steps until nothing moves any more without another time.
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
                // Whoever polls a device hears for all on it: between the step and the question another thread may have
                // heard what this one needs. A step that began with nothing under way has missed nothing.
                Stepped::Stuck | Stepped::Wait(_) if idle => return Ok(()),
                Stepped::Stuck | Stepped::Wait(_) => idle = true,
            }
        }
    }
}
