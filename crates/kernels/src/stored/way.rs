//! `way`: the conversion between YUV and RGB, which consists of one of four matrices and of the siting of chroma.
//!
//! This module defines the factors, the weights and the arithmetic of one pixel, which every loop must reproduce. All
//! numbers are integers, so the WGSL and its CPU twin give the same values. The values differ by at most one from those
//! of exact arithmetic. Reading interpolates chroma in sixteenths of a level. Storing computes chroma from sums of four
//! pixels, or from sums with a total weight of sixteen if chroma is not centred.

use vramp_plan::Siting;

/// WGSL that all formats with luma share.
pub(crate) const WGSL: &str = include_str!("way.wgsl");

/// An interpretation of YUV: BT.601 or BT.709, limited or full range, and the siting of 4:2:0 chroma.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    matrix: usize,
    siting: Siting,
}

impl Way {
    /// BT.709 or BT.601, in full or limited range, with centred chroma.
    pub const fn new(bt709: bool, full_range: bool) -> Way {
        Way { matrix: 2 * bt709 as usize + full_range as usize, siting: Siting::Centre }
    }

    /// All four matrices, with centred chroma.
    pub const ALL: [Way; 4] =
        [Way::new(false, false), Way::new(false, true), Way::new(true, false), Way::new(true, true)];

    /// Sets the siting of 4:2:0 chroma.
    #[must_use]
    pub const fn sited(self, siting: Siting) -> Way {
        Way { siting, ..self }
    }

    /// The inverse of [`Way::number`]. Unknown numbers give the default siting.
    pub(crate) fn numbered(number: u32) -> Way {
        let siting = Siting::ALL.get(number as usize / 4).copied().unwrap_or_default();
        Way { matrix: number as usize % 4, siting }
    }

    pub(crate) const fn number(self) -> u32 {
        self.matrix as u32 + 4 * self.siting as u32
    }

    /// Index of the matrix and range, 0..4.
    pub(crate) const fn matrix(self) -> usize {
        self.matrix
    }

    pub(crate) const fn siting(self) -> Siting {
        self.siting
    }

    pub(crate) fn up(self) -> &'static YuvToRgb {
        &UP[self.matrix]
    }

    pub(crate) fn down(self) -> &'static RgbToYuv {
        &DOWN[self.matrix]
    }
}

/// The position of 4:2:0 chroma along one axis, between luma samples 2k and 2k + 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Site {
    /// Midway between 2k and 2k + 1.
    Between,
    /// On 2k.
    First,
    /// On 2k + 1.
    Second,
}

impl Site {
    /// The horizontal position, and the vertical positions of u and of v.
    pub(crate) const fn of(siting: Siting) -> (Site, [Site; 2]) {
        match siting {
            Siting::Centre => (Site::Between, [Site::Between; 2]),
            Siting::Left => (Site::First, [Site::Between; 2]),
            Siting::Alternate => (Site::First, [Site::Second, Site::First]),
        }
    }

    /// The weight in quarters of the chroma sample that covers a luma sample, for even and for odd luma samples. The
    /// remaining quarters are the weight of the chroma sample on the luma sample's other side.
    pub(crate) const fn near(self) -> [u16; 2] {
        match self {
            Site::Between => [3, 3],
            Site::First => [4, 2],
            Site::Second => [2, 4],
        }
    }

    /// The weights in quarters of the pixels at 2k - 1, 2k, 2k + 1 and 2k + 2 in a chroma sample. With these weights,
    /// the chroma sample is the mean over a length of two pixels around its position.
    pub(crate) const fn taps(self) -> [u16; 4] {
        match self {
            Site::Between => [0, 2, 2, 0],
            Site::First => [1, 2, 1, 0],
            Site::Second => [0, 1, 2, 1],
        }
    }
}

/// The weights for reading, packed into one word with four bits each: for even and odd columns, for even and odd rows
/// of u, for even and odd rows of v.
pub(super) fn load_weights(siting: Siting) -> u32 {
    let (across, [u, v]) = Site::of(siting);
    packed([across.near(), u.near(), v.near()].as_flattened(), 4)
}

/// The weights for storing, packed into one word with two bits each: four weights for columns, four weights for rows of
/// u, four weights for rows of v.
pub(super) fn store_weights(siting: Siting) -> u32 {
    let (across, [u, v]) = Site::of(siting);
    packed([across.taps(), u.taps(), v.taps()].as_flattened(), 2)
}

fn packed(weights: &[u16], bits: u32) -> u32 {
    weights.iter().rev().fold(0, |word, weight| (word << bits) | u32::from(*weight))
}

/// Factors from YUV to pixels: luma in 1/2^14, chroma in 1/2^13.
#[derive(Debug, Clone, Copy)]
pub(crate) struct YuvToRgb {
    pub(crate) black: i16,
    pub(crate) luma: i16,
    pub(crate) red_v: i16,
    pub(crate) green_u: i16,
    pub(crate) green_v: i16,
    pub(crate) blue_u: i16,
}

impl YuvToRgb {
    /// The pixel for a luma value and for chroma as its distance from the middle in 1/256 of a level, which takes all
    /// sixteen bits.
    #[inline(always)]
    pub(crate) fn pixel(&self, y: u8, u: i16, v: i16) -> u32 {
        // Values are in 1/32 of a level. Each product is rounded down, on average by half a 32nd. Adding 17 instead of
        // 16 compensates for two products.
        let times = |a: i16, b: i16| ((i32::from(a) * i32::from(b)) >> 16) as i16;
        let level = |v: i16| ((v >> 5).clamp(0, 255)) as u16;
        let y = times((i16::from(y) - self.black) << 7, self.luma) + 17;
        let red = level(y + times(v, self.red_v));
        let green = level(y + times(u, self.green_u) + times(v, self.green_v));
        let blue = level(y + times(u, self.blue_u));
        let (low, high) = (red | (green << 8), blue | 0xFF00);
        u32::from(low) | (u32::from(high) << 16)
    }
}

/// The distance of a chroma value from the middle in 1/256 of a level.
#[inline(always)]
pub(crate) fn centred(level: u8) -> i16 {
    ((u16::from(level) << 8) ^ 0x8000).cast_signed()
}

/// Factors from red, green and blue to luma and chroma, in 1/2^15.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RgbToYuv {
    pub(crate) black: i32,
    pub(crate) luma: [i32; 3],
    pub(crate) u: [i32; 3],
    pub(crate) v: [i32; 3],
}

/// Added to the chroma of a sum of four pixels before the fraction is cut off: the middle of the range, and a half for
/// rounding.
pub(crate) const CHROMA_BIAS: i32 = (128 << 17) + (1 << 16);

impl RgbToYuv {
    /// Added to luma before the fraction is cut off: black, and a half for rounding.
    pub(crate) const fn luma_bias(&self) -> i32 {
        (self.black << 15) + (1 << 14)
    }
}

/// BT.601 limited and full, BT.709 limited and full.
pub(super) const UP: [YuvToRgb; 4] = [up(BT601, false), up(BT601, true), up(BT709, false), up(BT709, true)];
pub(super) const DOWN: [RgbToYuv; 4] = [down(BT601, false), down(BT601, true), down(BT709, false), down(BT709, true)];

/// The weights of red and of blue in luma.
const BT601: (f64, f64) = (0.299, 0.114);
const BT709: (f64, f64) = (0.2126, 0.0722);

/// Number of levels from black to white, and number of levels in the whole range of chroma.
const fn spans(full: bool) -> (f64, f64) {
    if full { (255.0, 255.0) } else { (219.0, 224.0) }
}

const fn black(full: bool) -> i16 {
    if full { 0 } else { 16 }
}

const fn nearest(value: f64) -> i32 {
    (if value < 0.0 { value - 0.5 } else { value + 0.5 }) as i32
}

const fn up((red, blue): (f64, f64), full: bool) -> YuvToRgb {
    let green = 1.0 - red - blue;
    let (luma, chroma) = spans(full);
    let (luma, chroma) = (255.0 / luma * 16_384.0, 255.0 / chroma * 8192.0);
    YuvToRgb {
        black: black(full),
        luma: nearest(luma) as i16,
        red_v: nearest(2.0 * (1.0 - red) * chroma) as i16,
        green_u: nearest(-2.0 * blue * (1.0 - blue) / green * chroma) as i16,
        green_v: nearest(-2.0 * red * (1.0 - red) / green * chroma) as i16,
        blue_u: nearest(2.0 * (1.0 - blue) * chroma) as i16,
    }
}

const fn down((red, blue): (f64, f64), full: bool) -> RgbToYuv {
    let (luma, chroma) = spans(full);
    let (luma, chroma) = (luma / 255.0 * 32_768.0, chroma / 255.0 * 32_768.0);
    // The rounding errors are added to the largest factor, so that white stays white and grey has no colour.
    let (lr, lb) = (nearest(red * luma), nearest(blue * luma));
    let ur = nearest(-0.5 * red / (1.0 - blue) * chroma);
    let ub = nearest(0.5 * chroma);
    let vb = nearest(-0.5 * blue / (1.0 - red) * chroma);
    RgbToYuv {
        black: black(full) as i32,
        luma: [lr, nearest(luma) - lr - lb, lb],
        u: [ur, -ur - ub, ub],
        v: [ub, -ub - vb, vb],
    }
}
