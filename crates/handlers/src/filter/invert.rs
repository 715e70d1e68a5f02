//! `invert`: the negative.
//!
//! Owns no setting.
//! Does not touch alpha.
//!
//! Always: twice is once too many: the picture is back.

use vramp_plan::catalog::Entry;

/// What `invert` declares.
pub static ENTRY: Entry = Entry {
    name: "invert",
    about: "turns red, green and blue into their negative",
    example: "pattern ! invert ! null",
    ..Entry::FILTER
};
