//! One frame's pixels in another format.
//!
//! Owns the way through the planes, two rows at a time, and the rows in between.
//! Does not compute a level: the loops are in `rows`.
//!
//! Always: chroma is the mean of the pixels it covers, and is bilinear between its centres on the way back; alpha is
//! 255 on the way to rgba8 and dropped on the way from it. Between two formats that are not rgba8 the way leads
//! through rgba8. gray8 is the luma of a picture, in the same range. Rows are made once and used again.

use vramp_plan::{Format, Plane, Size};
use vramp_runtime::Yuv;

use super::rows::{Sums, Way, blend, take_over, widen};

/// The rows between two formats.
#[derive(Default)]
pub(super) struct Repaint {
    /// Two rows of pixels.
    pixels: [Vec<u8>; 2],
    /// Chroma of half the width, at four times its level.
    half: Vec<u16>,
    /// Chroma of full width.
    wide: [Vec<i16>; 2],
    /// Chroma that is stored interleaved, taken apart.
    apart: [Vec<u8>; 4],
    sums: Sums,
}

/// A frame's bytes and what they are.
#[derive(Clone, Copy)]
pub(super) struct Painted<'a> {
    pub(super) format: Format,
    pub(super) size: Size,
    pub(super) yuv: Yuv,
    pub(super) bytes: &'a [u8],
}

/// The planes of a frame, as many as it has.
#[derive(Clone, Copy)]
struct Planes([Plane; 3]);

impl Planes {
    fn of(format: Format, size: Size) -> Planes {
        let mut planes = [Plane { start: 0, row_bytes: 0, stride: 0, rows: 0 }; 3];
        for (place, plane) in planes.iter_mut().zip(format.planes(size)) {
            *place = plane;
        }
        Planes(planes)
    }

    /// Where a row of a plane lies.
    fn row(&self, plane: usize, row: usize) -> std::ops::Range<usize> {
        let plane = &self.0[plane];
        let start = plane.start as usize + row * plane.stride as usize;
        start..start + plane.row_bytes as usize
    }

    fn rows(&self, plane: usize) -> usize {
        self.0[plane].rows as usize
    }
}

impl Repaint {
    /// Paints a frame into memory of a frame of another format and the same size and tags.
    pub(super) fn paint(&mut self, from: Painted<'_>, to: Format, into: &mut [u8]) {
        let (width, height) = (from.size.width as usize, from.size.height as usize);
        let way = Way::of(from.yuv, from.size);
        let source = Planes::of(from.format, from.size);
        let target = Planes::of(to, from.size);
        for wide in &mut self.wide {
            wide.resize(width, 0);
        }
        if to == Format::Rgba8 {
            for y in 0..height {
                self.unpack(&from, &source, way, y, &mut into[target.row(0, y)]);
            }
            return;
        }
        let mut rows = std::mem::take(&mut self.pixels);
        for row in &mut rows {
            row.resize(4 * width, 0);
        }
        for upper in (0..height).step_by(2) {
            // The last row of an odd number of rows has itself for a neighbour.
            let lower = (upper + 1).min(height - 1);
            if from.format == Format::Rgba8 {
                let pair = [&from.bytes[source.row(0, upper)], &from.bytes[source.row(0, lower)]];
                self.pack(pair, upper, lower, way, to, &target, into);
            } else {
                self.unpack(&from, &source, way, upper, &mut rows[0]);
                self.unpack(&from, &source, way, lower, &mut rows[1]);
                self.pack([&rows[0], &rows[1]], upper, lower, way, to, &target, into);
            }
        }
        self.pixels = rows;
    }

    /// Makes one row of pixels.
    fn unpack(&mut self, from: &Painted<'_>, planes: &Planes, way: Way, y: usize, into: &mut [u8]) {
        let first = &from.bytes[planes.row(0, y)];
        match from.format {
            Format::Rgba8 => return into.copy_from_slice(first),
            Format::Rgb8 => {
                for (pixel, [r, g, b]) in into.as_chunks_mut::<4>().0.iter_mut().zip(first.as_chunks::<3>().0) {
                    *pixel = [*r, *g, *b, 255];
                }
                return;
            }
            // No chroma is chroma in the middle.
            Format::Gray8 => self.wide.iter_mut().for_each(|wide| wide.fill(0)),
            Format::I444 => {
                for (plane, wide) in self.wide.iter_mut().enumerate() {
                    take_over(&from.bytes[planes.row(plane + 1, y)], wide);
                }
            }
            Format::I422 | Format::I420 => {
                let (near, far) = if from.format == Format::I422 { (y, y) } else { around(y, planes.rows(1)) };
                for (plane, wide) in self.wide.iter_mut().enumerate() {
                    let near = &from.bytes[planes.row(plane + 1, near)];
                    let far = &from.bytes[planes.row(plane + 1, far)];
                    self.half.resize(near.len(), 0);
                    blend(near, far, &mut self.half);
                    widen(&self.half, wide);
                }
            }
            Format::Nv12 => {
                let (near, far) = around(y, planes.rows(1));
                let [near_u, near_v, far_u, far_v] = &mut self.apart;
                take_apart(&from.bytes[planes.row(1, near)], near_u, near_v);
                take_apart(&from.bytes[planes.row(1, far)], far_u, far_v);
                for (wide, (near, far)) in self.wide.iter_mut().zip([(near_u, far_u), (near_v, far_v)]) {
                    self.half.resize(near.len(), 0);
                    blend(near, far, &mut self.half);
                    widen(&self.half, wide);
                }
            }
        }
        (way.paint)(first, &self.wide[0], &self.wide[1], into);
    }

    /// Takes two rows of pixels in; both are the same at the end of an odd number.
    #[expect(clippy::too_many_arguments, reason = "two rows, where they are, and the frame they go to")]
    fn pack(
        &mut self,
        [above, below]: [&[u8]; 2],
        upper: usize,
        lower: usize,
        way: Way,
        to: Format,
        planes: &Planes,
        into: &mut [u8],
    ) {
        let both = [(above, upper), (below, lower)];
        if to == Format::Rgb8 {
            for (row, y) in both {
                let colours = into[planes.row(0, y)].as_chunks_mut::<3>().0;
                for (colour, [r, g, b, _]) in colours.iter_mut().zip(row.as_chunks::<4>().0) {
                    *colour = [*r, *g, *b];
                }
            }
            return;
        }
        for (row, y) in both {
            (way.luma)(row, &mut into[planes.row(0, y)]);
        }
        match to {
            Format::I444 | Format::I422 => {
                for (row, y) in both {
                    self.sums.add_up(row, row, to == Format::I422);
                    let (head, tail) = into.split_at_mut(planes.0[2].start as usize);
                    let v = planes.row(2, y);
                    let start = planes.0[2].start as usize;
                    (way.chroma)(&self.sums, &mut head[planes.row(1, y)], &mut tail[v.start - start..v.end - start]);
                }
            }
            Format::I420 => {
                self.sums.add_up(above, below, true);
                let (head, tail) = into.split_at_mut(planes.0[2].start as usize);
                let (v, start) = (planes.row(2, upper / 2), planes.0[2].start as usize);
                let u = &mut head[planes.row(1, upper / 2)];
                (way.chroma)(&self.sums, u, &mut tail[v.start - start..v.end - start]);
            }
            Format::Nv12 => {
                self.sums.add_up(above, below, true);
                let together = into[planes.row(1, upper / 2)].as_chunks_mut::<2>().0;
                let [u, v, ..] = &mut self.apart;
                u.resize(together.len(), 0);
                v.resize(together.len(), 0);
                (way.chroma)(&self.sums, u, v);
                for (pair, (u, v)) in together.iter_mut().zip(u.iter().zip(v.iter())) {
                    *pair = [*u, *v];
                }
            }
            Format::Gray8 | Format::Rgb8 | Format::Rgba8 => {}
        }
    }
}

/// The chroma row that a row of pixels lies in, and the other one it is nearest to.
fn around(y: usize, rows: usize) -> (usize, usize) {
    let near = y / 2;
    let far = if y.is_multiple_of(2) { near.saturating_sub(1) } else { (near + 1).min(rows - 1) };
    (near, far)
}

fn take_apart(together: &[u8], u: &mut Vec<u8>, v: &mut Vec<u8>) {
    let pairs = together.as_chunks::<2>().0;
    u.resize(pairs.len(), 0);
    v.resize(pairs.len(), 0);
    for ((u, v), pair) in u.iter_mut().zip(v).zip(pairs) {
        (*u, *v) = (pair[0], pair[1]);
    }
}
