//! `identity`: passes every frame on.
//!
//! Owns nothing; it is a place in the graph to name, link to and measure.
//! Does not copy.
//!
//! Always: the frame that leaves is the one that came.

use vramp_plan::catalog::Entry;

/// What `identity` declares.
pub static ENTRY: Entry = Entry {
    name: "identity",
    about: "passes frames on as they are",
    example: "pattern ! identity name=here ! null",
    ..Entry::CONTROL
};
