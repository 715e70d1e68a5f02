//! `edges`: computes the strength of edges from the Sobel gradients of the brightness. Alpha is kept.
//!
//! Red, green and blue of the output are equal. Pixels beyond the border mirror the image, without repeating the
//! outermost pixels.

use vramp_kernels::head::edges;
use vramp_plan::catalog::{Class, Entry, KernelDesc, KernelRule, Units, Work};
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

pub static ENTRY: Entry = Entry {
    name: "edges",
    about: "shows the strength of edges, from the Sobel gradients of the brightness",
    example: "pattern size=64x64 ! edges ! null",
    kernel: KernelRule::Always(KernelDesc::stencil(9)),
    // Two gradients with six nonzero weights each.
    work: Work { class: Class::Tap, units: Units::PerPixel(12.0) },
    ..Entry::FILTER
};

#[expect(clippy::unnecessary_wraps, reason = "all makers share this signature")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(fixed::head(&edges::EDGES, &[]))
}
