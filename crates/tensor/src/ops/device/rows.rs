//! How kernels that go along an axis share the work.
//!
//! Owns the choice between one invocation and one workgroup for a row, and the text by which lanes of a workgroup bring
//! their results together.
//! Does not know what is computed along the row.
//!
//! Always: a row is `length` values, `inner` apart; a row is worked on by [`GROUP`] invocations or by one.

use std::fmt::Write;

use crate::ops::shape::Around;

/// Invocations of a workgroup, which are rows or the lanes of one row.
pub(super) const GROUP: usize = 64;

/// The longest row that one invocation goes through: kernels go through a row up to four times, and Mesa 22 counts the
/// rounds of all loops together.
const MOST_ALONE: usize = super::MOST_ROUNDS / 4;

/// Who works on a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RowLanes {
    /// One invocation.
    One,
    /// A workgroup.
    Group,
}

impl RowLanes {
    /// What suits the shape. Short rows, and rows of which there are plenty side by side, take one invocation each. So do
    /// plenty of any rows on a software driver, where lanes that read side by side gain nothing and barriers cost: of
    /// 1024 rows of 1024 values, softmax took 7.5 ms of CPU time instead of 14 on llvmpipe (Mesa 25).
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

    /// Workgroups for so many rows.
    pub(super) fn groups(self, rows: usize) -> u64 {
        (rows * self.count()).div_ceil(GROUP) as u64
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            RowLanes::One => "a row per invocation",
            RowLanes::Group => "a row per workgroup",
        }
    }

    /// The constants of a text, and `fn all_NAME(v: TYPE, lane: u32) -> TYPE` for each way of joining that is named
    /// with the type it is of: every lane is given all lanes' values, joined by `fn NAME(a: TYPE, b: TYPE) -> TYPE`.
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
