//! The rows of all planes in a stored frame: all rows for reading, or some of the rows for writing.
//!
//! [`PlaneRows::split`] divides a frame's memory between threads that write it at the same time. Rows that share chroma
//! stay in the same part.

use vramp_plan::{Format, Plane, Size};

/// The planes of a frame. Planes that a format does not have are empty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planes(pub(crate) [Plane; 3]);

impl Planes {
    pub(crate) fn of(format: Format, size: Size) -> Planes {
        let mut planes = [Plane { start: 0, row_bytes: 0, stride: 0, rows: 0 }; 3];
        for (place, plane) in planes.iter_mut().zip(format.planes(size)) {
            *place = plane;
        }
        Planes(planes)
    }

    /// The byte range of a row of a plane.
    pub(crate) fn row(&self, plane: usize, row: usize) -> std::ops::Range<usize> {
        let plane = &self.0[plane];
        let start = plane.start as usize + row * plane.stride as usize;
        start..start + plane.row_bytes as usize
    }

    pub(crate) fn rows(&self, plane: usize) -> usize {
        self.0[plane].rows as usize
    }
}

/// Some rows of every plane of a frame that is being written.
#[derive(Debug)]
pub struct PlaneRows<'a> {
    planes: [PlaneSlice<'a>; 3],
    /// Rows of pixels per row of the chroma planes.
    covers: usize,
}

#[derive(Debug)]
struct PlaneSlice<'a> {
    bytes: &'a mut [u8],
    stride: usize,
    row_bytes: usize,
}

impl<'a> PlaneRows<'a> {
    /// All rows of a frame. Returns `None` if the memory is too small.
    pub fn of(format: Format, size: Size, frame: &'a mut [u8]) -> Option<PlaneRows<'a>> {
        let mut rest = frame;
        let mut at = 0;
        let planes = Planes::of(format, size).0.map(|plane| {
            let skipped = plane.start.saturating_sub(at) as usize;
            let bytes = (plane.stride * plane.rows) as usize;
            at = plane.start + plane.stride * plane.rows;
            let own = std::mem::take(&mut rest).split_at_mut_checked(skipped)?.1;
            let (own, later) = own.split_at_mut_checked(bytes)?;
            rest = later;
            Some(PlaneSlice { bytes: own, stride: plane.stride as usize, row_bytes: plane.row_bytes as usize })
        });
        let [Some(first), Some(second), Some(third)] = planes else { return None };
        let covers = if matches!(format, Format::I420 | Format::Nv12) { 2 } else { 1 };
        Some(PlaneRows { planes: [first, second, third], covers })
    }

    /// Number of rows of pixels.
    pub fn rows(&self) -> usize {
        self.planes[0].bytes.len() / self.planes[0].stride.max(1)
    }

    /// Splits off the first `rows` rows of pixels. `rows` must be even, or the number of all rows.
    #[must_use]
    pub fn split(self, rows: usize) -> (PlaneRows<'a>, PlaneRows<'a>) {
        let covers = self.covers;
        let [first, second, third] = self.planes;
        let (first, later_first) = first.split(rows);
        let (second, later_second) = second.split(rows.div_ceil(covers));
        let (third, later_third) = third.split(rows.div_ceil(covers));
        let planes = [first, second, third];
        (PlaneRows { planes, covers }, PlaneRows { planes: [later_first, later_second, later_third], covers })
    }

    /// A row of a plane. Its padding is set to zero.
    pub(crate) fn row(&mut self, plane: usize, row: usize) -> &mut [u8] {
        self.planes[plane].row(row)
    }

    /// A row of both chroma planes.
    pub(crate) fn chroma(&mut self, row: usize) -> [&mut [u8]; 2] {
        let [_, u, v] = &mut self.planes;
        [u.row(row), v.row(row)]
    }
}

impl<'a> PlaneSlice<'a> {
    fn split(self, rows: usize) -> (PlaneSlice<'a>, PlaneSlice<'a>) {
        let (stride, row_bytes) = (self.stride, self.row_bytes);
        let (own, later) = self.bytes.split_at_mut((rows * stride).min(self.bytes.len()));
        (PlaneSlice { bytes: own, stride, row_bytes }, PlaneSlice { bytes: later, stride, row_bytes })
    }

    fn row(&mut self, row: usize) -> &mut [u8] {
        let (row, filling) = self.bytes[row * self.stride..][..self.stride].split_at_mut(self.row_bytes);
        filling.fill(0);
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_frame_are_its_rows_and_nothing_else() {
        for format in Format::RANKED.into_iter().filter(|format| *format != Format::Rgba8) {
            for (width, height) in [(1, 1), (5, 7), (8, 6), (3, 3)] {
                let size = Size { width, height };
                let mut bytes = vec![9; format.frame_bytes(size) as usize];
                let all = PlaneRows::of(format, size, &mut bytes).expect("it fits");
                assert_eq!(all.rows(), height as usize);
                let (upper, lower) = all.split(2.min(height as usize));
                for mut part in [upper, lower] {
                    let rows = part.rows();
                    (0..rows).for_each(|y| part.row(0, y).fill(1));
                    if matches!(format, Format::I420 | Format::I422 | Format::I444 | Format::Nv12) {
                        let covers = part.covers;
                        (0..rows.div_ceil(covers)).for_each(|y| part.chroma(y).into_iter().for_each(|row| row.fill(1)));
                    }
                }
                let mut expected = vec![9; bytes.len()];
                for plane in format.planes(size) {
                    for row in 0..plane.rows {
                        let start = (plane.start + row * plane.stride) as usize;
                        expected[start..start + plane.stride as usize].fill(0);
                        expected[start..start + plane.row_bytes as usize].fill(1);
                    }
                }
                assert_eq!(bytes, expected, "{format} {size}");
            }
        }
    }

    #[test]
    fn memory_that_is_too_small_has_no_rows() {
        let size = Size { width: 5, height: 3 };
        assert!(PlaneRows::of(Format::I420, size, &mut [0; 519]).is_none());
        assert!(PlaneRows::of(Format::I420, size, &mut [0; 520]).is_some());
    }
}
