//! `upload`: brings frames onto the device at this very place.
//!
//! Owns the wish for the transfer.
//! Does not transfer by itself: it becomes the transfer that the plan shows there.
//!
//! Always: pixels are the same on both sides.

use vramp_plan::Space;
use vramp_plan::catalog::{Entry, Family, TransferDirection};

/// What `upload` declares.
pub static ENTRY: Entry = Entry {
    name: "upload",
    family: Family::Convert,
    about: "moves frames from host memory to the device, here and nowhere else",
    example: "image path=photo.png ! upload ! blur ! null",
    transfer: Some(TransferDirection::Up),
    spaces: &[Space::Gpu],
    ..Entry::CONTROL
};
