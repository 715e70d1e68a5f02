//! `way`: how luma and chroma make red, green and blue, and back; four ways.
//!
//! Owns the factors, in whole numbers, and the arithmetic of one pixel, which every loop has to equal.
//! Does not know planes or rows.
//!
//! Always: whole numbers only, so that both sides give the same levels, within one of exact arithmetic. Chroma comes in
//! sixteenths of a level and is made from sums of four pixels.

/// The text that every format with luma shares on the device.
pub(crate) const WGSL: &str = include_str!("way.wgsl");

/// One of the four ways of reading YUV: BT.601 or BT.709, in limited or full range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way(usize);

impl Way {
    /// BT.709 or BT.601, in full or in limited range.
    pub const fn new(bt709: bool, full_range: bool) -> Way {
        Way(2 * bt709 as usize + full_range as usize)
    }

    /// All four.
    pub const ALL: [Way; 4] = [Way(0), Way(1), Way(2), Way(3)];

    /// The one of this number; the first where there is none.
    pub(crate) fn numbered(number: u32) -> Way {
        Way::ALL.get(number as usize).copied().unwrap_or(Way(0))
    }

    pub(crate) const fn number(self) -> u32 {
        self.0 as u32
    }

    pub(crate) fn up(self) -> &'static Up {
        &UP[self.0]
    }

    pub(crate) fn down(self) -> &'static Down {
        &DOWN[self.0]
    }
}

/// Factors towards pixels: luma in 1/2^14, chroma in 1/2^13.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Up {
    pub(crate) black: i16,
    pub(crate) luma: i16,
    pub(crate) red_v: i16,
    pub(crate) green_u: i16,
    pub(crate) green_v: i16,
    pub(crate) blue_u: i16,
}

impl Up {
    /// The pixel of a luma and of chroma as [`centred`] leaves it.
    #[inline(always)]
    pub(crate) fn pixel(&self, y: u8, u: i16, v: i16) -> u32 {
        // Levels in 1/32. Each product is rounded down, by half a step in the mean: 17 instead of 16 makes up for two.
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

/// Sixteen times a level becomes its distance from the middle in 1/256, which just fills sixteen bits.
#[inline(always)]
pub(crate) fn centred(level: u16) -> i16 {
    ((level << 4) ^ 0x8000).cast_signed()
}

/// Factors towards luma and chroma, in 1/2^15, for red, green and blue.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Down {
    pub(crate) black: i32,
    pub(crate) luma: [i32; 3],
    pub(crate) u: [i32; 3],
    pub(crate) v: [i32; 3],
}

/// What is added before the fraction of a sum of four pixels is cut off: the middle of chroma, and a half.
pub(crate) const CHROMA_BIAS: i32 = (128 << 17) + (1 << 16);

impl Down {
    /// What is added before a luma's fraction is cut off: black, and a half.
    pub(crate) const fn luma_bias(&self) -> i32 {
        (self.black << 15) + (1 << 14)
    }
}

/// BT.601 limited and full, BT.709 limited and full.
pub(super) const UP: [Up; 4] = [up(BT601, false), up(BT601, true), up(BT709, false), up(BT709, true)];
pub(super) const DOWN: [Down; 4] = [down(BT601, false), down(BT601, true), down(BT709, false), down(BT709, true)];

/// How much of luma is red, and how much is blue.
const BT601: (f64, f64) = (0.299, 0.114);
const BT709: (f64, f64) = (0.2126, 0.0722);

/// How many levels black to white and the whole of chroma take.
const fn spans(full: bool) -> (f64, f64) {
    if full { (255.0, 255.0) } else { (219.0, 224.0) }
}

const fn black(full: bool) -> i16 {
    if full { 0 } else { 16 }
}

const fn nearest(value: f64) -> i32 {
    (if value < 0.0 { value - 0.5 } else { value + 0.5 }) as i32
}

const fn up((red, blue): (f64, f64), full: bool) -> Up {
    let green = 1.0 - red - blue;
    let (luma, chroma) = spans(full);
    let (luma, chroma) = (255.0 / luma * 16_384.0, 255.0 / chroma * 8192.0);
    Up {
        black: black(full),
        luma: nearest(luma) as i16,
        red_v: nearest(2.0 * (1.0 - red) * chroma) as i16,
        green_u: nearest(-2.0 * blue * (1.0 - blue) / green * chroma) as i16,
        green_v: nearest(-2.0 * red * (1.0 - red) / green * chroma) as i16,
        blue_u: nearest(2.0 * (1.0 - blue) * chroma) as i16,
    }
}

const fn down((red, blue): (f64, f64), full: bool) -> Down {
    let (luma, chroma) = spans(full);
    let (luma, chroma) = (luma / 255.0 * 32_768.0, chroma / 255.0 * 32_768.0);
    // What rounding leaves over goes to the largest factor: white stays white, and grey has no colour.
    let (lr, lb) = (nearest(red * luma), nearest(blue * luma));
    let ur = nearest(-0.5 * red / (1.0 - blue) * chroma);
    let ub = nearest(0.5 * chroma);
    let vb = nearest(-0.5 * blue / (1.0 - red) * chroma);
    Down {
        black: black(full) as i32,
        luma: [lr, nearest(luma) - lr - lb, lb],
        u: [ur, -ur - ub, ub],
        v: [ub, -ub - vb, vb],
    }
}
