//! `edges`: how steeply the brightness changes.
//!
//! Owns no setting.
//! Does not touch alpha.
//!
//! Always: red, green and blue leave equal; the border mirrors without repeating the outermost pixel.

use vramp_kernels::head::edges;
use vramp_plan::catalog::{Class, Entry, KernelDesc, KernelRule, Units, Work};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

/// What `edges` declares.
pub static ENTRY: Entry = Entry {
    name: "edges",
    about: "shows edges: the Sobel gradients of the gray picture",
    example: "pattern size=64x64 ! edges ! null",
    kernel: KernelRule::Always(KernelDesc::stencil(9)),
    // Two gradients of six weights that are not zero.
    work: Work { class: Class::Tap, units: Units::PerPixel(12.0) },
    ..Entry::FILTER
};

#[expect(clippy::unnecessary_wraps, reason = "every maker has this form")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(fixed::head(&edges::EDGES, &[]))
}
