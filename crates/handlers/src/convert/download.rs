//! `download`: an explicit transfer from the device to host memory. The plan replaces the handler by a transfer at this
//! point of the graph.

use vramp_plan::Space;
use vramp_plan::catalog::{Entry, Family, TransferDirection};

pub static ENTRY: Entry = Entry {
    name: "download",
    family: Family::Convert,
    about: "moves frames from the device to host memory at this point",
    example: "pattern ! blur ! download ! null",
    transfer: Some(TransferDirection::Down),
    spaces: &[Space::Gpu],
    ..Entry::CONTROL
};
