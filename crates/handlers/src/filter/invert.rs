//! `invert`: the negative.
//!
//! Owns no setting.
//! Does not touch alpha.
//!
//! Always: twice is once too many: the picture is back.

use vramp_kernels::pixel::{color, table};
use vramp_plan::catalog::{Entry, Status};
use vramp_runtime::{Flow, Given, HandlerError, Part, PixelHandler, PixelInfo, Setup, Worker};

/// What `invert` declares.
pub static ENTRY: Entry = Entry {
    name: "invert",
    about: "turns red, green and blue into their negative",
    example: "pattern ! invert ! null",
    status: Status::Runs,
    ..Entry::FILTER
};

#[derive(Debug)]
struct Invert {
    state: State,
}

/// The table, made once.
#[derive(Debug)]
struct State {
    words: [u32; 64],
}

impl PixelHandler for Invert {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&table::TABLE)]
    }

    fn frame(&mut self, _: &PixelInfo, give: &mut Given<'_>) -> Result<Flow, HandlerError> {
        give.part(&self.state.words, &[]);
        Ok(Flow::Produced)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "every maker has this form")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    let state = State { words: table::pack(&color::invert()) };
    Ok(Worker::pixels(Invert { state }))
}
