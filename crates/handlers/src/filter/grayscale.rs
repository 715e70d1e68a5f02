//! `grayscale`: replaces red, green and blue by their weighted mean, with fixed weights. Alpha and the pixel format
//! are kept.

use vramp_kernels::pixel::gray;
use vramp_plan::catalog::Entry;
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

pub static ENTRY: Entry = Entry {
    name: "grayscale",
    about: "replaces red, green and blue by their weighted mean",
    example: "pattern ! grayscale ! null",
    ..Entry::FILTER
};

#[expect(clippy::unnecessary_wraps, reason = "all makers share this signature")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(fixed::function(&gray::GRAY, &[]))
}
