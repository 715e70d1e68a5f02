//! The two ends of a measured pipeline: a source that costs nothing, and an `app` sink from which the measuring thread
//! pulls the first and the last frame.
//!
//! The source is not an `app` source, because a thread that forwards the same frame to one costs CPU time for each frame
//! that a workload would have to bear: `crop` at 1920x1080 takes 83 instead of 59 us of CPU time per frame, and `invert`
//! at 64x48 takes 2.7 instead of 1.4 us (medians of 7 alternating runs on 2 cores).
//!
//! Invariants: all frames of a source are the same memory. The source keeps a handle of this memory, so that no handler
//! can edit the memory in place. The image depends only on size, format, seed and alpha.

use std::time::{Duration, Instant};

use vramp_handlers::app::{AppOutput, PullError};
use vramp_handlers::control::probe::hash;
use vramp_plan::catalog::{
    Entry, EntryError, Fallback, FormatRule, Liveness, Output, PortMedia, RateRule, Setting, SizeRule, ValueType, Work,
};
use vramp_plan::{Format, Size};
use vramp_runtime::{Call, Flow, Frame, FrameHandler, HandlerError, Registry, Setup, Worker};

use super::clock::cpu_time;

static STILL: Entry = Entry {
    name: "bench-still",
    about: "the same image in every frame, at no cost",
    example: "bench-still 64x64 ! null",
    outputs: &[Output {
        media: PortMedia::ANY,
        format: FormatRule::Setting("format"),
        size: SizeRule::Setting("size"),
        rate: RateRule::Setting("fps"),
        ..Output::VIDEO
    }],
    settings: &[
        setting("size", ValueType::Size, Fallback::Required, "its size"),
        setting("format", ValueType::Format, Fallback::Is("rgba8"), "its format"),
        setting("fps", ValueType::Rate, Fallback::Is("30"), "its nominal rate"),
        setting("seed", ValueType::Int { min: 0, max: 1 << 30 }, Fallback::Is("0"), "which image"),
        setting("alpha", ValueType::Int { min: 0, max: 255 }, Fallback::Is("255"), "its alpha"),
    ],
    bare: Some("size"),
    work: Work::NONE,
    blocking: false,
    ..Entry::SOURCE
};

const fn setting(name: &'static str, value: ValueType, fallback: Fallback, about: &'static str) -> Setting {
    Setting { name, value, fallback, liveness: Liveness::Fixed, about }
}

/// Time and CPU time between the first and the last frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct RunSpan {
    pub took: Duration,
    /// CPU time of all threads, if the system reports CPU time.
    pub cpu: Option<Duration>,
    /// The hash of the last frame.
    pub hash: u64,
}

/// The span from the first frame to frame `number`, if both frames arrive. Returns at the end of the stream.
pub(super) fn span(output: &AppOutput, number: u64) -> Result<Option<RunSpan>, PullError> {
    let Some(first) = output.pull()? else { return Ok(None) };
    let (begun, before) = (Instant::now(), cpu_time());
    drop(first);
    let mut span = None;
    while let Some(frame) = output.pull()? {
        let (took, cpu) = (begun.elapsed(), cpu_time());
        if frame.meta().number == number {
            let cpu = cpu.zip(before).map(|(now, before)| now.saturating_sub(before));
            span = Some(RunSpan { took, cpu, hash: hash(&frame) });
        }
    }
    Ok(span)
}

/// Adds the source to a registry.
pub(super) fn add_to(registry: &mut Registry) -> Result<(), EntryError> {
    registry.add(&STILL, |setup: &Setup<'_>| Ok(Worker::frames(StillSource::of(setup)?)))
}

struct StillSource {
    format: Format,
    size: Size,
    seed: u32,
    alpha: u8,
    frame: Option<Frame>,
}

impl StillSource {
    fn of(setup: &Setup<'_>) -> Result<StillSource, HandlerError> {
        let missing = || HandlerError::failed("settings must be checked by a graph");
        let settings = setup.settings;
        let int = |key| settings.int(key).ok_or_else(missing);
        Ok(StillSource {
            format: settings.format("format").ok_or_else(missing)?,
            size: settings.size("size").ok_or_else(missing)?,
            seed: int("seed")? as u32,
            alpha: int("alpha")? as u8,
            frame: None,
        })
    }

    /// In rgba8, paints a smooth gradient with a little noise and a green rectangle. In other formats, paints noise.
    fn paint(&self, bytes: &mut [u8]) {
        if self.format != Format::Rgba8 {
            for (i, byte) in (0_u32..).zip(bytes.iter_mut()) {
                *byte = 16 + (noise(i, self.seed) % 220) as u8;
            }
            return;
        }
        let Size { width, height } = self.size;
        for (i, pixel) in (0_u32..).zip(bytes.as_chunks_mut::<4>().0) {
            let (x, y) = (i % width, i / width);
            let grain = noise(i, self.seed) % 16;
            let level = |part: u32, whole: u32| (part * 239 / whole + grain) as u8;
            let field = (width / 4..width / 2).contains(&x) && (height / 4..height / 2).contains(&y);
            let color =
                if field { [20, 220, 30] } else { [level(x, width), level(y, height), level(x + y, width + height)] };
            *pixel = [color[0], color[1], color[2], self.alpha];
        }
    }
}

fn noise(i: u32, seed: u32) -> u32 {
    let mixed = (i ^ seed.wrapping_mul(0x9e37_79b9)).wrapping_mul(0x85eb_ca6b);
    (mixed ^ (mixed >> 15)).wrapping_mul(0xc2b2_ae35) >> 16
}

impl FrameHandler for StillSource {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let frame = match &self.frame {
            Some(frame) => frame.clone(),
            None => {
                let mut frame = call.lend(self.format, self.size)?;
                self.paint(&mut frame.fill().ok_or_else(|| HandlerError::failed("a lent frame is held twice"))?);
                self.frame.insert(frame).clone()
            }
        };
        call.send(0, frame);
        Ok(Flow::Produced)
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        self.frame = None;
        Ok(())
    }

    /// True, because the source lends only one frame, at its first call, and needs no memory for further frames.
    fn can_repeat(&self) -> bool {
        true
    }
}
