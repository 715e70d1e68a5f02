//! `identity`: passes every frame on unchanged, without a copy. It is a point in the graph to name, link to and
//! measure.

use vramp_plan::catalog::Entry;

pub static ENTRY: Entry = Entry {
    name: "identity",
    about: "passes frames on unchanged",
    example: "pattern ! identity name=here ! null",
    ..Entry::CONTROL
};
