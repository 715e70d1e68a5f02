//! The visible bytes of a frame: its planes without row padding.

use std::ops::Range;

use vramp_plan::{Format, Size};

/// The ranges of the visible bytes of a frame, plane by plane, row by row from the top. A plane without padding is one
/// range.
pub(crate) fn visible_ranges(format: Format, size: Size) -> impl Iterator<Item = Range<usize>> {
    format.planes(size).flat_map(|plane| {
        let (length, step, count) = if plane.row_bytes == plane.stride {
            (plane.row_bytes * plane.rows, 0, 1)
        } else {
            (plane.row_bytes, plane.stride, plane.rows)
        };
        (0..count).map(move |row| {
            let start = (plane.start + row * step) as usize;
            start..start + length as usize
        })
    })
}
