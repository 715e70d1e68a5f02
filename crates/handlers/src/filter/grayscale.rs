//! `grayscale`: takes the colour out.
//!
//! Owns no setting; the weights of the three colours are fixed.
//! Does not touch alpha or change the format.
//!
//! Always: red, green and blue leave equal.

use vramp_kernels::pixel::gray;
use vramp_plan::catalog::Entry;
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

/// What `grayscale` declares.
pub static ENTRY: Entry = Entry {
    name: "grayscale",
    about: "replaces red, green and blue by their weighted mean",
    example: "pattern ! grayscale ! null",
    ..Entry::FILTER
};

#[expect(clippy::unnecessary_wraps, reason = "every maker has this form")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(fixed::function(&gray::GRAY, &[]))
}
