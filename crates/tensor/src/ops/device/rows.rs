//! How kernels along an axis share the work: one invocation or one workgroup per row, and the WGSL that joins the
//! results of a workgroup's lanes.
//!
//! A row has `length` values. Neighbouring values of a row are `inner` values apart in memory. A row is processed by
//! one invocation, or by the [`GROUP`] invocations of a workgroup.

use std::fmt::Write;

use crate::ops::shape::Around;

/// Workgroup size: a workgroup processes 64 rows with one lane each, or one row with 64 lanes.
pub(super) const GROUP: usize = 64;

/// The longest row for one invocation: kernels read a row up to four times, and Mesa 22 counts the rounds of all loops
/// together.
const MOST_ALONE: usize = super::MOST_ROUNDS / 4;

/// Whether one invocation or one workgroup processes a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RowLanes {
    One,
    Group,
}

impl RowLanes {
    /// The choice for a shape. Short rows, and many rows side by side, take one invocation each. So do many rows of any
    /// kind on a software driver, where coalesced reads gain nothing and barriers are slow: on llvmpipe (Mesa 25),
    /// softmax of 1024 rows of 1024 values took 7.5 ms of CPU time with an invocation per row, and 14 ms with a
    /// workgroup per row.
    pub(crate) fn for_shape(around: Around, software: bool) -> RowLanes {
        let Around { outer, length, inner } = around;
        let plenty = outer * inner >= 16 * GROUP || (software && outer * inner >= 4 * GROUP);
        let fits = length <= MOST_ALONE && plenty && (inner >= GROUP || software);
        if length <= 32 || fits { RowLanes::One } else { RowLanes::Group }
    }

    pub(super) fn count(self) -> usize {
        match self {
            RowLanes::One => 1,
            RowLanes::Group => GROUP,
        }
    }

    /// Workgroups for `rows` rows.
    pub(super) fn groups(self, rows: usize) -> u64 {
        (rows * self.count()).div_ceil(GROUP) as u64
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            RowLanes::One => "a row per invocation",
            RowLanes::Group => "a row per workgroup",
        }
    }

    /// The constants of a text, and a function `fn all_NAME(v: TYPE, lane: u32) -> TYPE` for each pair of a name and a
    /// type in `joins`. The function joins the values of all lanes with `fn NAME(a: TYPE, b: TYPE) -> TYPE`, and
    /// returns the result to every lane.
    pub(super) fn wgsl(self, joins: &[(&str, &str)]) -> String {
        let lanes = self.count();
        let mut text = format!("const LANES: u32 = {lanes}u;\nconst ROWS: u32 = {}u;\n", GROUP / lanes);
        for (name, of) in joins {
            match self {
                RowLanes::One => {
                    let _ = writeln!(text, "fn all_{name}(v: {of}, lane: u32) -> {of} {{ return v; }}");
                }
                RowLanes::Group => {
                    let shared = format!("shared_{of}").replace(['<', '>'], "_");
                    let declared = format!("var<workgroup> {shared}: array<{of}, {GROUP}>;\n");
                    if !text.contains(&declared) {
                        text += &declared;
                    }
                    text += &include_str!("rows.wgsl")
                        .replace("$NAME", name)
                        .replace("$TYPE", of)
                        .replace("$SHARED", &shared);
                }
            }
        }
        text
    }
}
