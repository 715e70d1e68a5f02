//! `identity`: passes every frame on unchanged, without a copy. The handler is a point in the graph that can be named,
//! linked to and measured.

use vramp_plan::catalog::Entry;

pub static ENTRY: Entry = Entry {
    name: "identity",
    about: "passes frames on unchanged",
    example: "pattern ! identity name=here ! null",
    ..Entry::CONTROL
};
