//! `probe`: says what passes.
//!
//! Owns the line it prints for each frame: size, format, space and a hash of the pixels.
//! Does not look into sources before the start: that is the crate's `probe` module.
//!
//! Always: frames pass unchanged, and the hash does not depend on the space.

use vramp_plan::catalog::{Class, Entry, Kernel, KernelRule, Units, Work};

/// What `probe` declares.
pub static ENTRY: Entry = Entry {
    name: "probe",
    about: "prints size, format, space and a hash of each frame to standard error",
    example: "pattern frames=3 ! probe ! null",
    kernel: KernelRule::Always(Kernel::REDUCTION),
    work: Work { class: Class::Reduce, units: Units::PerPixel(1.0) },
    ..Entry::CONTROL
};
