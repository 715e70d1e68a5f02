//! `terminal`: shows frames as coloured half blocks.
//!
//! Owns the drawing into the terminal it runs in.
//! Does not keep up at any price: what the terminal has no time for is not drawn.
//!
//! Always: the picture fits the terminal.

use vramp_plan::catalog::Entry;

/// What `terminal` declares.
pub static ENTRY: Entry = Entry {
    name: "terminal",
    about: "shows the frames in the terminal, two pixels to a character",
    example: "pattern size=160x90 ! terminal",
    ..Entry::SINK
};
