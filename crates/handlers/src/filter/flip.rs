//! `flip`: mirrors the picture.
//!
//! Owns along which axis.
//! Does not change size.
//!
//! Always: pixels are copied as they are; twice along one axis gives the picture back.

use vramp_kernels::head::flip;
use vramp_plan::catalog::{Entry, Kernel, KernelRule, Liveness, Status, ValueType};
use vramp_runtime::{Flow, Given, HandlerError, Part, PixelHandler, PixelInfo, Setup, Worker};

use crate::declare::defaults;

use super::word_of;

/// What `flip` declares.
pub static ENTRY: Entry = Entry {
    name: "flip",
    about: "mirrors the picture",
    example: "pattern ! flip axis=h ! null",
    settings: &[defaults(
        "axis",
        ValueType::Choice(&["h", "v", "both"]),
        "h",
        Liveness::Rebuild,
        "h swaps left and right, v top and bottom",
    )],
    bare: Some("axis"),
    kernel: KernelRule::Always(Kernel::GATHER),
    status: Status::Runs,
    ..Entry::FILTER
};

#[derive(Debug)]
struct Flip {
    state: State,
}

#[derive(Debug)]
struct Settings {
    left_right: bool,
    top_bottom: bool,
}

impl Settings {
    fn of(setup: &Setup<'_>) -> Result<Settings, HandlerError> {
        let axis = word_of(setup, "axis")?;
        Ok(Settings { left_right: axis != "v", top_bottom: axis != "h" })
    }
}

/// Which sides change places.
#[derive(Debug)]
struct State {
    words: [u32; 2],
}

impl PixelHandler for Flip {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Head(&flip::FLIP)]
    }

    fn frame(&mut self, _: &PixelInfo, give: &mut Given<'_>) -> Result<Flow, HandlerError> {
        give.part(&self.state.words, &[]);
        Ok(Flow::Produced)
    }
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let settings = Settings::of(setup)?;
    let state = State { words: flip::pack(settings.left_right, settings.top_bottom) };
    Ok(Worker::pixels(Flip { state }))
}
