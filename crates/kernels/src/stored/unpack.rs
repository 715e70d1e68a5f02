//! Loops that turn rows of planes into rows of pixels, shared by all formats.
//!
//! There are two kinds of intermediate rows: chroma of half the width ([`Halves`]) and chroma of full width.
//! Every vector level gives the same bytes.
//!
//! In the scalar loops the factors are constants of each matrix, because compilers use 16-bit multiplications only for
//! constants. Reading 1080p i420 on one thread with only SSE2 takes 4.3 ms with factors in variables and 1.6 ms with
//! constants.

use vramp_plan::{Format, Size};

use crate::picture::Pixel;
use crate::simd::paint::{self, ChromaRow};
use crate::simd::{Level, Loop};

use super::halves::{Halves, Sited};
use super::pack::QuadSums;
use super::planes::Planes;
use super::way::{Site, UP, Way, centred};

/// A stored frame that is read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unpacking<'a> {
    bytes: &'a [u8],
    planes: Planes,
    way: Way,
    pub(super) level: Level,
}

/// Intermediate rows between planes and pixels, allocated once and reused.
#[derive(Debug, Default)]
pub(crate) struct Between {
    halves: Halves,
    /// Chroma of full width.
    wide: [Vec<i16>; 2],
    pub(super) sums: QuadSums,
    /// Deinterleaved chroma.
    pub(super) apart: [Vec<u8>; 2],
    /// Rows of pixels that are about to be stored.
    pub(crate) pixels: [Vec<Pixel>; 4],
}

impl Between {
    /// Starts a frame or a band. Nothing of an earlier frame is used.
    pub(crate) fn begin(&mut self) {
        self.halves.begin();
    }
}

impl<'a> Unpacking<'a> {
    pub(crate) fn of(format: Format, size: Size, bytes: &'a [u8], way: Way, level: Level) -> Unpacking<'a> {
        Unpacking { bytes, planes: Planes::of(format, size), way, level }
    }

    pub(crate) fn row(&self, plane: usize, row: usize) -> &'a [u8] {
        &self.bytes[self.planes.row(plane, row)]
    }

    /// The position of 4:2:0 chroma relative to a row of pixels.
    pub(super) fn site(&self, y: usize) -> Sited {
        let (across, down) = Site::of(self.way.siting());
        let near = |y: usize| down.map(|site| site.near()[y % 2]);
        let has_next = y % 2 == 1 && y + 1 < self.planes.rows(0);
        Sited { across, near: near(y), next: has_next.then(|| near(y + 1)), y }
    }

    /// The chroma row that covers a row of pixels, and the chroma row on the other side of these pixels.
    pub(super) fn around(&self, plane: usize, y: usize) -> [&'a [u8]; 2] {
        let near = y / 2;
        let far =
            if y.is_multiple_of(2) { near.saturating_sub(1) } else { (near + 1).min(self.planes.rows(plane) - 1) };
        [self.row(plane, near), self.row(plane, far)]
    }
}

/// Computes a row of pixels from luma and from two planes of chroma of half the width. The chroma is interpolated
/// between two rows of each plane.
pub(super) fn from_halves(
    args: &Unpacking<'_>,
    between: &mut Between,
    luma: &[u8],
    chroma: [[&[u8]; 2]; 2],
    sited: Sited,
    into: &mut [Pixel],
) {
    let Between { halves, wide, .. } = between;
    finish(args, halves.of_planes(args.level, chroma, sited), wide, sited.across, luma, into);
}

/// Like [`from_halves`], with u and v interleaved.
pub(super) fn from_pairs(
    args: &Unpacking<'_>,
    between: &mut Between,
    luma: &[u8],
    chroma: [&[u8]; 2],
    sited: Sited,
    into: &mut [Pixel],
) {
    let Between { halves, wide, .. } = between;
    finish(args, halves.of_pairs(args.level, chroma, sited), wide, sited.across, luma, into);
}

/// Computes pixels from luma and chroma of the same width.
pub(super) fn from_full(
    args: &Unpacking<'_>,
    between: &mut Between,
    luma: &[u8],
    [u, v]: [&[u8]; 2],
    into: &mut [Pixel],
) {
    let done = paint::paint(args.level, args.way.up(), luma, ChromaRow::Full([u, v]), into);
    let (luma, u, v, into) = (&luma[done..], &u[done..], &v[done..], &mut into[done..]);
    for (chroma, wide) in [u, v].into_iter().zip(&mut between.wide) {
        wide.clear();
        wide.extend(chroma.iter().map(|level| centred(*level)));
    }
    plain(args, luma, &between.wide, into);
}

/// Computes pixels from luma alone, with neutral chroma.
pub(super) fn from_luma(args: &Unpacking<'_>, between: &mut Between, luma: &[u8], into: &mut [Pixel]) {
    let done = paint::paint(args.level, args.way.up(), luma, ChromaRow::None, into);
    let (luma, into) = (&luma[done..], &mut into[done..]);
    for wide in &mut between.wide {
        wide.clear();
        wide.resize(luma.len(), 0);
    }
    plain(args, luma, &between.wide, into);
}

/// Computes pixels from luma and chroma of half the width.
fn finish(
    args: &Unpacking<'_>,
    [u, v]: [&[i16]; 2],
    wide: &mut [Vec<i16>; 2],
    across: Site,
    luma: &[u8],
    into: &mut [Pixel],
) {
    let is_first = across == Site::First;
    let halves = if is_first { ChromaRow::Firsts([u, v]) } else { ChromaRow::Halves([u, v]) };
    let done = paint::paint(args.level, args.way.up(), luma, halves, into);
    match luma.len() - done {
        0 => {}
        // If any pixels were computed, at most one is left: the last, in an even column.
        1 if done > 0 => {
            let at = done / 2;
            let chroma = |half: &[i16]| if is_first { 2 * half[at + 1] } else { 3 * half[at + 1] + half[at] };
            into[done] = args.way.up().pixel(luma[done], chroma(u), chroma(v)).to_le_bytes();
        }
        _ => {
            for (half, wide) in [u, v].into_iter().zip(&mut *wide) {
                wide.resize(luma.len(), 0);
                if is_first {
                    args.level.run(WidenedFirsts { half, into: wide });
                } else {
                    args.level.run(Widened { half, into: wide });
                }
            }
            plain(args, luma, wide, into);
        }
    }
}

/// Widens chroma of half the width, with one more element at both ends, to full width. A pixel takes three quarters of
/// the chroma sample that covers it, and one quarter of the sample on the pixel's other side.
struct Widened<'a> {
    half: &'a [i16],
    into: &'a mut [i16],
}

impl Loop for Widened<'_> {
    #[inline(always)]
    fn run(self) {
        let Widened { half, into } = self;
        let Some((left, rest)) = into.split_first_mut() else { return };
        *left = 4 * half[1];
        let mut pairs = rest.chunks_exact_mut(2);
        for (pair, (one, two)) in (&mut pairs).zip(half[1..].iter().zip(&half[2..])) {
            pair.copy_from_slice(&[3 * one + two, one + 3 * two]);
        }
        if let [right] = pairs.into_remainder() {
            *right = 4 * half[half.len() - 1];
        }
    }
}

/// Like [`Widened`], for chroma sited on even pixels. Odd pixels are midway between two chroma samples.
struct WidenedFirsts<'a> {
    half: &'a [i16],
    into: &'a mut [i16],
}

impl Loop for WidenedFirsts<'_> {
    #[inline(always)]
    fn run(self) {
        let WidenedFirsts { half, into } = self;
        let mut pairs = into.chunks_exact_mut(2);
        for (pair, (one, two)) in (&mut pairs).zip(half[1..].iter().zip(&half[2..])) {
            pair.copy_from_slice(&[2 * one, one + two]);
        }
        if let [right] = pairs.into_remainder() {
            *right = 2 * half[half.len() - 1];
        }
    }
}

fn plain(args: &Unpacking<'_>, luma: &[u8], [u, v]: &[Vec<i16>; 2], into: &mut [Pixel]) {
    match args.way.matrix() {
        0 => args.level.run(Painted::<0> { luma, u, v, into }),
        1 => args.level.run(Painted::<1> { luma, u, v, into }),
        2 => args.level.run(Painted::<2> { luma, u, v, into }),
        _ => args.level.run(Painted::<3> { luma, u, v, into }),
    }
}

/// Computes opaque pixels from luma and chroma of full width.
struct Painted<'a, const W: usize> {
    luma: &'a [u8],
    u: &'a [i16],
    v: &'a [i16],
    into: &'a mut [Pixel],
}

impl<const W: usize> Loop for Painted<'_, W> {
    #[inline(always)]
    fn run(self) {
        let up = const { &UP[W] };
        for (((pixel, y), u), v) in self.into.iter_mut().zip(self.luma).zip(self.u).zip(self.v) {
            *pixel = up.pixel(*y, *u, *v).to_le_bytes();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored;
    use vramp_plan::Siting;

    #[test]
    fn rows_are_the_same_in_any_order_and_after_another_frame() {
        for (format, siting, width) in [Format::I420, Format::Nv12]
            .into_iter()
            .flat_map(|format| Siting::ALL.into_iter().map(move |siting| (format, siting)))
            .flat_map(|(format, siting)| [7, 150].map(|width| (format, siting, width)))
        {
            let size = Size { width, height: 10 };
            let stored = stored::of(format).expect("it is not rgba8");
            let frame = |seed: u32| -> Vec<u8> {
                let level = |at: u32| (at.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 15) as u8;
                (0..format.frame_bytes(size) as u32).map(level).collect()
            };
            let (first, second) = (frame(1), frame(77));
            for level in Level::available() {
                let args = |bytes| Unpacking::of(format, size, bytes, Way::ALL[2].sited(siting), level);
                let row = |bytes, between: &mut Between, y: usize| {
                    let mut row = vec![[0; 4]; width as usize];
                    (stored.unpack)(&args(bytes), between, y, &mut row);
                    row
                };
                let mut between = Between::default();
                for y in [0, 1, 2, 3, 3, 4, 5, 4, 6, 9, 8, 7, 7, 8, 2, 1] {
                    assert_eq!(
                        row(&first, &mut between, y),
                        row(&first, &mut Between::default(), y),
                        "{format} row {y}"
                    );
                }
                row(&first, &mut between, 3);
                between.begin();
                assert_eq!(
                    row(&second, &mut between, 4),
                    row(&second, &mut Between::default(), 4),
                    "{format} {siting:?}"
                );
            }
        }
    }
}
