//! Prints a plan: as text for people, as JSON for programs, as DOT and Mermaid for drawings.
//!
//! Owns every printed form and the units in it.
//! Does not change or look up anything: all that is printed stands in the plan.
//!
//! Always: the same plan gives the same bytes; the time taken grows with the plan's length, not with its square.

mod dot;
mod drawing;
mod json;
mod mermaid;
mod rows;
mod text;
mod units;

use std::fmt;

use crate::plan::Plan;

/// An amount of memory as people read it: `8.3 MB`.
pub fn bytes_in_words(bytes: u64) -> String {
    units::bytes(bytes)
}

/// As [`Plan::to_text`], without colour.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text(false))
    }
}

impl Plan {
    /// For a person to read, with colour for a terminal.
    pub fn to_text(&self, colour: bool) -> String {
        text::text(self, colour)
    }

    /// As JSON over many lines.
    pub fn to_json(&self) -> String {
        json::pretty(self)
    }

    /// As JSON on one line.
    pub fn to_json_line(&self) -> String {
        json::line(self)
    }

    /// As a drawing for Graphviz.
    pub fn to_dot(&self) -> String {
        dot::dot(self)
    }

    /// As a drawing for Mermaid.
    pub fn to_mermaid(&self) -> String {
        mermaid::mermaid(self)
    }
}
