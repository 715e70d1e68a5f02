//! Prints a plan: as text for people, as JSON for programs, as DOT and Mermaid for drawings.
//!
//! Invariants: the same plan gives the same bytes. The time to print grows linearly with the plan.

mod dot;
mod drawing;
mod json;
mod mermaid;
mod rows;
mod text;
mod units;

use std::fmt;

use crate::plan::Plan;

/// An amount of memory for people: `8.3 MB`.
pub fn bytes_in_words(bytes: u64) -> String {
    units::bytes(bytes)
}

/// [`Plan::to_text`] without colour.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text(false))
    }
}

impl Plan {
    /// Text for people, optionally with terminal colours.
    pub fn to_text(&self, colour: bool) -> String {
        text::text(self, colour)
    }

    /// Indented JSON.
    pub fn to_json(&self) -> String {
        json::pretty(self)
    }

    /// JSON on one line.
    pub fn to_json_line(&self) -> String {
        json::line(self)
    }

    /// A Graphviz drawing.
    pub fn to_dot(&self) -> String {
        dot::dot(self)
    }

    /// A Mermaid drawing.
    pub fn to_mermaid(&self) -> String {
        mermaid::mermaid(self)
    }
}
