//! `lut`: colours looked up in a table from a `.cube` file.
//!
//! Owns the table.
//! Does not touch alpha.
//!
//! Always: the file is read once, at the start.

use vramp_plan::catalog::{Class, Entry, Liveness, Units, ValueType, Work};

use crate::declare::required;

/// What `lut` declares.
pub static ENTRY: Entry = Entry {
    name: "lut",
    about: "applies the colour table of a .cube file",
    example: "pattern ! lut path=film.cube ! null",
    settings: &[required("path", ValueType::Path, Liveness::Fixed, "a .cube file with a 1-D or 3-D table")],
    bare: Some("path"),
    // Four corners of a tetrahedron are read and weighted.
    work: Work { class: Class::Pixel, units: Units::PerPixel(4.0) },
    small: true,
    ..Entry::FILTER
};
