//! `grayscale`: takes the colour out.
//!
//! Owns no setting; the weights of the three colours are fixed.
//! Does not touch alpha or change the format.
//!
//! Always: red, green and blue leave equal.

use vramp_kernels::pixel::gray;
use vramp_plan::catalog::{Entry, Status};
use vramp_runtime::{Flow, Given, HandlerError, Part, PixelHandler, PixelInfo, Setup, Worker};

/// What `grayscale` declares.
pub static ENTRY: Entry = Entry {
    name: "grayscale",
    about: "replaces red, green and blue by their weighted mean",
    example: "pattern ! grayscale ! null",
    status: Status::Runs,
    ..Entry::FILTER
};

#[derive(Debug)]
struct Grayscale;

impl PixelHandler for Grayscale {
    fn parts(&self) -> Vec<Part> {
        vec![Part::Function(&gray::GRAY)]
    }

    fn frame(&mut self, _: &PixelInfo, give: &mut Given<'_>) -> Result<Flow, HandlerError> {
        give.part(&[], &[]);
        Ok(Flow::Produced)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "every maker has this form")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(Worker::pixels(Grayscale))
}
