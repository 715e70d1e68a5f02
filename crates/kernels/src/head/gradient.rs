//! `gradient`: red increases from left to right, green from top to bottom. Blue depends on the frame number.
//!
//! Red is 0 in the first column and 255 in the last, and green likewise in rows. If there is only one column, red is 0.
//! If there is only one row, green is 0.

use vramp_plan::Size;

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};

/// Parameters: blue.
pub static GRADIENT: Head = Head {
    name: "gradient",
    wgsl: include_str!("gradient.wgsl"),
    words: 1,
    source: false,
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// The parameter words of frame number `n`.
pub fn pack(n: u64) -> [u32; 1] {
    [blue(n)]
}

/// Blue in frame number `n`.
pub(super) fn blue(n: u64) -> u32 {
    (n % 256) as u32
}

/// Computes one row of the gradient. The red values are computed once per band and kept, because a division for each
/// pixel would take longer than everything else.
pub(super) fn slopes(args: &HeadArgs<'_>, kept: &mut BandState, y: u32, blue: u32, pixels: &mut [Pixel]) {
    let size = args.frame.size;
    if kept.rows.1 == 0 {
        kept.rows.1 = 1;
        kept.sums.clear();
        kept.sums.extend((0..size.width).map(|x| level(x, size.width) as u16));
    }
    let rest = u32::from_le_bytes([0, level(y, size.height) as u8, blue as u8, 255]);
    for (red, pixel) in kept.sums.iter().zip(pixels) {
        *pixel = (u32::from(*red) | rest).to_le_bytes();
    }
}

/// The level at position `at` of `side`: 0 at the first position, 255 at the last, rounded half up in between.
fn level(at: u32, side: u32) -> u32 {
    let last = side.saturating_sub(1).max(1);
    (510 * at + last) / (2 * last)
}

fn row(args: &HeadArgs<'_>, _: &mut SourceRows<'_>, kept: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    slopes(args, kept, y, args.frame.words[0], pixels);
}

fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    [size, chance.size()]
        .map(|size| KernelSample::new(size, &pack(u64::from(chance.bits()) << chance.below(33))))
        .to_vec()
}
