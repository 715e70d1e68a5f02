//! `convert`: the same picture in another pixel format.
//!
//! Owns the declaration of every pair of formats, and the frame in between.
//! Does not scale or move pixels, and does not compute them: `repaint` does.
//!
//! Always: size and rate stay; converting to the format a frame already has changes nothing. YUV is BT.601 below 720
//! lines and BT.709 from there, in limited range, unless a frame is tagged otherwise; what is made from rgba8 is not
//! tagged.

use vramp_plan::catalog::{
    Class, Entry, Family, FormatRule, Input, KernelRule, Liveness, Output, Status, Units, ValueType, Work,
};
use vramp_plan::{Format, Space};
use vramp_runtime::{Call, Flow, FrameHandler, HandlerError, Setup, Worker, Yuv};

use super::repaint::{Painted, Repaint};
use crate::declare::required;

/// What `convert` declares.
pub static ENTRY: Entry = Entry {
    name: "convert",
    family: Family::Convert,
    about: "changes the pixel format; inserted by itself where formats differ",
    example: "pattern ! convert format=i420 ! null",
    inputs: &[Input::ANY],
    outputs: &[Output { format: FormatRule::Setting("format"), ..Output::SAME }],
    settings: &[required("format", ValueType::Format, Liveness::Fixed, "the format to convert to")],
    bare: Some("format"),
    // Not on the device yet: frames are converted where sources and sinks have them.
    spaces: &[Space::Cpu],
    kernel: KernelRule::None,
    // A matrix and the chroma samples: about two pixel functions.
    work: Work { class: Class::Pixel, units: Units::PerPixel(2.0) },
    status: Status::Runs,
    ..Entry::FILTER
};

/// Changes formats.
struct Convert {
    settings: Settings,
    state: State,
}

/// What was set.
struct Settings {
    format: Format,
}

/// What is used again from frame to frame.
#[derive(Default)]
struct State {
    repaint: Repaint,
}

impl FrameHandler for Convert {
    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(meta) = call.input(0).map(|given| *given.meta()) else { return Ok(Flow::Filtered) };
        let to = self.settings.format;
        // Memory first: as long as nothing is taken, it is called again where there is none.
        let made = if meta.format == to { None } else { Some(call.lend(to, meta.size)?) };
        let Some(given) = call.take(0) else { return Ok(Flow::Filtered) };
        let Some(mut made) = made else {
            call.send(0, given);
            return Ok(Flow::Produced);
        };
        let has_luma = |format| !matches!(format, Format::Rgba8 | Format::Rgb8);
        // Tags mean something only where there is luma, and stay where there was and is.
        let yuv = if has_luma(meta.format) { meta.yuv } else { Yuv::default() };
        if has_luma(to) {
            let mut tagged = *made.meta();
            tagged.yuv = yuv;
            made.set_meta(tagged);
        }
        {
            let bytes = given.bytes();
            let from = Painted { format: meta.format, size: meta.size, yuv, bytes: &bytes };
            let mut into = made.fill().expect("a frame that was just lent has one holder");
            self.state.repaint.paint(from, to, &mut into);
        }
        call.send(0, made);
        Ok(Flow::Produced)
    }
}

/// Makes `convert`.
pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let format = setup.settings.format("format");
    let format = format.ok_or_else(|| HandlerError::failed("the setting `format` is missing"))?;
    Ok(Worker::frames(Convert { settings: Settings { format }, state: State::default() }))
}
