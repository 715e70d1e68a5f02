//! `mix`: two pictures blended into one.
//!
//! Owns how, and how much of the second.
//! Does not scale: both have to be of one size.
//!
//! Always: amount 0 gives the first picture.

use vramp_plan::catalog::{Entry, Family, Input, Liveness, ValueType};

use crate::declare::{defaults, number};

/// What `mix` declares.
pub static ENTRY: Entry = Entry {
    name: "mix",
    family: Family::Draw,
    about: "blends two pictures of one size",
    example: "pattern ! mix amount=0.3 name=both ! null; pattern kind=bars ! both.b",
    inputs: &[Input { name: "a", ..Input::VIDEO }, Input { name: "b", ..Input::VIDEO }],
    settings: &[
        defaults("amount", number(0.0, 1.0), "0.5", Liveness::Live, "how much of the second; 0 is the first alone"),
        defaults(
            "mode",
            ValueType::Choice(&["mix", "over", "add", "multiply", "screen", "difference"]),
            "mix",
            Liveness::Rebuild,
            "how two pixels become one",
        ),
    ],
    bare: Some("amount"),
    equal_sizes: true,
    ..Entry::FILTER
};
