//! `download`: brings frames back from the device at this very place.
//!
//! Owns the wish for the transfer.
//! Does not transfer by itself: it becomes the transfer that the plan shows there.
//!
//! Always: pixels are the same on both sides.

use vramp_plan::Space;
use vramp_plan::catalog::{Entry, Family, TransferDirection};

/// What `download` declares.
pub static ENTRY: Entry = Entry {
    name: "download",
    family: Family::Convert,
    about: "moves frames from the device to host memory, here and nowhere else",
    example: "pattern ! blur ! download ! null",
    transfer: Some(TransferDirection::Down),
    spaces: &[Space::Gpu],
    ..Entry::CONTROL
};
