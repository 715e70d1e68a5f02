//! Loops that turn rows of planes into rows of pixels, shared by all formats.
//!
//! There are two intermediate rows: chroma of half the width, mixed from two rows of a plane, and chroma of full width.
//! Every vector level gives the same bytes.
//!
//! In the scalar loops the factors are constants of each matrix, because compilers use 16-bit multiplications only for
//! constants. Reading 1080p i420 on one thread with only SSE2 takes 4.3 ms with factors in variables and 1.6 ms with
//! constants.

use vramp_plan::{Format, Size};

use crate::picture::Pixel;
use crate::simd::paint::{self, ChromaRow};
use crate::simd::{Level, Loop};

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
    /// Chroma of half the width, with one more element at each end. Values are multiplied by four.
    half: [Vec<u16>; 2],
    /// Chroma of full width.
    wide: [Vec<i16>; 2],
    pub(super) sums: QuadSums,
    /// Deinterleaved chroma.
    pub(super) apart: [Vec<u8>; 2],
    /// Rows of pixels that are about to be stored.
    pub(crate) pixels: [Vec<Pixel>; 4],
}

/// The position of chroma relative to a row of pixels.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sited {
    across: Site,
    /// Weight of the nearer row of u and of v, in quarters.
    near: [u16; 2],
}

impl Sited {
    pub(super) const CENTRE: Sited = Sited { across: Site::Between, near: [3, 3] };
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
        Sited { across, near: down.map(|site| site.near()[y % 2]) }
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
    for (([near, far], weight), half) in chroma.into_iter().zip(sited.near).zip(&mut between.half) {
        half.resize(near.len() + 2, 0);
        let into = &mut half[1..=near.len()];
        match weight {
            4 => args.level.run(Mixed::<4> { near, far, into }),
            3 => args.level.run(Mixed::<3> { near, far, into }),
            _ => args.level.run(Mixed::<2> { near, far, into }),
        }
    }
    finish(args, between, sited.across, luma, into);
}

/// Like [`from_halves`], with u and v interleaved.
pub(super) fn from_pairs(
    args: &Unpacking<'_>,
    between: &mut Between,
    luma: &[u8],
    [near, far]: [&[u8]; 2],
    sited: Sited,
    into: &mut [Pixel],
) {
    let pairs = near.len() / 2;
    let [u, v] = &mut between.half;
    u.resize(pairs + 2, 0);
    v.resize(pairs + 2, 0);
    let (u, v) = (&mut u[1..=pairs], &mut v[1..=pairs]);
    match sited.near {
        [4, _] => args.level.run(MixedApart::<4, 2> { near, far, u, v }),
        [3, _] => args.level.run(MixedApart::<3, 3> { near, far, u, v }),
        _ => args.level.run(MixedApart::<2, 4> { near, far, u, v }),
    }
    finish(args, between, sited.across, luma, into);
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
        wide.extend(chroma.iter().map(|level| centred(16 * u16::from(*level))));
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

/// Computes pixels from luma and the intermediate half-width chroma.
fn finish(args: &Unpacking<'_>, between: &mut Between, across: Site, luma: &[u8], into: &mut [Pixel]) {
    for half in &mut between.half {
        let last = half.len() - 1;
        (half[0], half[last]) = (half[1], half[last - 1]);
    }
    let [u, v] = &between.half;
    let is_first = across == Site::First;
    let halves = if is_first { ChromaRow::Firsts([u, v]) } else { ChromaRow::Halves([u, v]) };
    let done = paint::paint(args.level, args.way.up(), luma, halves, into);
    match luma.len() - done {
        0 => {}
        // If any pixels were computed, at most one is left: the last, in an even column.
        1 if done > 0 => {
            let near = across.near()[0];
            let chroma = |half: &[u16]| centred(near * half[1 + done / 2] + (4 - near) * half[done / 2]);
            into[done] = args.way.up().pixel(luma[done], chroma(u), chroma(v)).to_le_bytes();
        }
        _ => {
            for (half, wide) in between.half.iter().zip(&mut between.wide) {
                wide.resize(luma.len(), 0);
                if is_first {
                    args.level.run(WidenedFirsts { half, into: wide });
                } else {
                    args.level.run(Widened { half, into: wide });
                }
            }
            plain(args, luma, &between.wide, into);
        }
    }
}

/// Mixes two rows of chroma with `NEAR` quarters of the nearer row. The result is four times the chroma value.
struct Mixed<'a, const NEAR: u16> {
    near: &'a [u8],
    far: &'a [u8],
    into: &'a mut [u16],
}

impl<const NEAR: u16> Loop for Mixed<'_, NEAR> {
    #[inline(always)]
    fn run(self) {
        for ((sum, near), far) in self.into.iter_mut().zip(self.near).zip(self.far) {
            *sum = NEAR * u16::from(*near) + (4 - NEAR) * u16::from(*far);
        }
    }
}

/// Like [`Mixed`], with u and v interleaved.
struct MixedApart<'a, const U: u16, const V: u16> {
    near: &'a [u8],
    far: &'a [u8],
    u: &'a mut [u16],
    v: &'a mut [u16],
}

impl<const U: u16, const V: u16> Loop for MixedApart<'_, U, V> {
    #[inline(always)]
    fn run(self) {
        let rows = self.near.as_chunks::<2>().0.iter().zip(self.far.as_chunks::<2>().0);
        for ((u, v), (near, far)) in self.u.iter_mut().zip(self.v).zip(rows) {
            let (near, far) = (u16::from_le_bytes(*near), u16::from_le_bytes(*far));
            *u = U * (near & 255) + (4 - U) * (far & 255);
            *v = V * (near >> 8) + (4 - V) * (far >> 8);
        }
    }
}

/// Widens chroma of half the width, with one more element at both ends, to full width. A pixel takes three quarters of
/// the chroma sample that covers it, and one quarter of the sample on the pixel's other side.
struct Widened<'a> {
    half: &'a [u16],
    into: &'a mut [i16],
}

impl Loop for Widened<'_> {
    #[inline(always)]
    fn run(self) {
        let Widened { half, into } = self;
        let Some((left, rest)) = into.split_first_mut() else { return };
        *left = centred(4 * half[1]);
        let mut pairs = rest.chunks_exact_mut(2);
        for (pair, (one, two)) in (&mut pairs).zip(half[1..].iter().zip(&half[2..])) {
            pair.copy_from_slice(&[centred(3 * one + two), centred(one + 3 * two)]);
        }
        if let [right] = pairs.into_remainder() {
            *right = centred(4 * half[half.len() - 1]);
        }
    }
}

/// Like [`Widened`], for chroma sited on even pixels. Odd pixels are midway between two chroma samples.
struct WidenedFirsts<'a> {
    half: &'a [u16],
    into: &'a mut [i16],
}

impl Loop for WidenedFirsts<'_> {
    #[inline(always)]
    fn run(self) {
        let WidenedFirsts { half, into } = self;
        let mut pairs = into.chunks_exact_mut(2);
        for (pair, (one, two)) in (&mut pairs).zip(half[1..].iter().zip(&half[2..])) {
            pair.copy_from_slice(&[centred(4 * one), centred(2 * (one + two))]);
        }
        if let [right] = pairs.into_remainder() {
            *right = centred(4 * half[half.len() - 1]);
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
