//! `upload`: an explicit transfer from host memory to the device. The plan replaces the handler by a transfer at this
//! point of the graph.

use vramp_plan::Space;
use vramp_plan::catalog::{Entry, Family, TransferDirection};

pub static ENTRY: Entry = Entry {
    name: "upload",
    family: Family::Convert,
    about: "moves frames from host memory to the device at this point",
    example: "image path=photo.png ! upload ! blur ! null",
    transfer: Some(TransferDirection::Up),
    spaces: &[Space::Gpu],
    ..Entry::CONTROL
};
