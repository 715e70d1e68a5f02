//! Chroma of 4:2:0 that does not lie in the centre of its pixels, from rows of pixels.
//!
//! Owns the weighted sums of sixteen and the levels made from them.
//! Does not know where planes lie.
//!
//! Always: horizontally chroma lies on even pixels, so that a pixel counts twice and its neighbours once; vertically the
//! weights are those of [`Site::taps`]. At the border a pixel is its own neighbour. Every level gives the same bytes.

use crate::picture::Pixel;
use crate::simd::Loop;

use super::PixelRows;
use super::pack::{Packing, Sums};
use super::way::{CHROMA_BIAS, DOWN, Site};

/// The bias of a sum of four pixels, for sixteen.
const BIAS: i32 = 4 * CHROMA_BIAS;

impl Packing {
    /// Two rows of pixels, and those around them, become a row of u and one of v.
    pub(super) fn sited(&self, sums: &mut Sums, rows: PixelRows<'_>, [u, v]: [&mut [u8]; 2]) {
        let (_, [of_u, of_v]) = Site::of(self.way.siting());
        let PixelRows { own: [upper, lower], around: [above, below] } = rows;
        let rows = [above, upper, lower, below];
        self.level.run(Gathered { rows, weights: of_u.taps(), sums });
        self.sixteenths::<false>(sums, u);
        if of_v != of_u {
            self.level.run(Gathered { rows, weights: of_v.taps(), sums });
        }
        self.sixteenths::<true>(sums, v);
    }

    fn sixteenths<const V: bool>(&self, sums: &Sums, into: &mut [u8]) {
        match self.way.matrix() {
            0 => self.level.run(Sixteenths::<0, V> { sums, into }),
            1 => self.level.run(Sixteenths::<1, V> { sums, into }),
            2 => self.level.run(Sixteenths::<2, V> { sums, into }),
            _ => self.level.run(Sixteenths::<3, V> { sums, into }),
        }
    }
}

/// Sums of sixteen pixels around every even one.
struct Gathered<'a> {
    rows: [&'a [Pixel]; 4],
    weights: [u16; 4],
    sums: &'a mut Sums,
}

impl Loop for Gathered<'_> {
    #[inline(always)]
    fn run(self) {
        let width = self.rows[1].len();
        let Sums { red_blue, green, above: [pairs, greens] } = self.sums;
        pairs.resize(width, 0);
        greens.resize(width, 0);
        let [above, upper, lower, below] = self.rows.map(|row| &row[..width]);
        let weights = self.weights.map(u32::from);
        let (pairs, greens) = (&mut pairs[..width], &mut greens[..width]);
        for x in 0..width {
            let four = [above[x], upper[x], lower[x], below[x]].map(u32::from_le_bytes);
            let weigh = |shift: u32, mask: u32| -> u32 {
                four.into_iter().zip(weights).map(|(pixel, weight)| weight * ((pixel >> shift) & mask)).sum()
            };
            pairs[x] = weigh(0, 0x00FF_00FF);
            greens[x] = weigh(8, 255);
        }
        across(pairs, red_blue);
        across(greens, green);
    }
}

/// Once, twice and once three neighbours around each even place.
#[inline(always)]
fn across(from: &[u32], into: &mut Vec<u32>) {
    into.resize(from.len().div_ceil(2), 0);
    let last = from.len() - 1;
    let mut before = from[0];
    for (k, sum) in into.iter_mut().enumerate() {
        let after = from[(2 * k + 1).min(last)];
        *sum = before + 2 * from[2 * k] + after;
        before = after;
    }
}

/// Levels of u or of v from sums of sixteen.
struct Sixteenths<'a, const W: usize, const V: bool> {
    sums: &'a Sums,
    into: &'a mut [u8],
}

impl<const W: usize, const V: bool> Loop for Sixteenths<'_, W, V> {
    #[inline(always)]
    fn run(self) {
        let [r, g, b] = const { if V { DOWN[W].v } else { DOWN[W].u } };
        let sums = self.sums.red_blue.iter().zip(&self.sums.green);
        for (level, (pair, green)) in self.into.iter_mut().zip(sums) {
            let (red, green, blue) = (pair & 0x7FFF, green & 0x7FFF, (pair >> 16) & 0x7FFF);
            let (red, green, blue) = (red.cast_signed(), green.cast_signed(), blue.cast_signed());
            *level = ((red * r + green * g + blue * b + BIAS) >> 19).clamp(0, 255) as u8;
        }
    }
}
