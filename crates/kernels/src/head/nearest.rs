//! `nearest`: scales the source to another size by taking the nearest source pixel.
//!
//! For a source of width W and an output of width w, column x of the output comes from source column (x W) div w, and
//! rows likewise. The CPU computes these positions.

use vramp_plan::Size;

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::pick::pick;

/// Small data: the source column of each column, then the source row of each row.
pub static NEAREST: Head = Head {
    name: "nearest",
    wgsl: include_str!("nearest.wgsl"),
    small: true,
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// The parameter words: none.
pub fn pack() -> [u32; 0] {
    []
}

/// The small data for scaling `source` to `size`.
pub fn small(source: Size, size: Size) -> Vec<u32> {
    let columns = axis(source.width, size.width);
    columns.chain(axis(source.height, size.height)).collect()
}

fn axis(from: u32, to: u32) -> impl Iterator<Item = u32> {
    (0..to).map(move |at| (u64::from(at) * u64::from(from) / u64::from(to)) as u32)
}

fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, _: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let (columns, rows) = args.frame.small.split_at(pixels.len());
    let from = source.row(i64::from(rows[y as usize]));
    pick(args.frame.level, from, columns, pixels);
}

/// Another size, half the size, and twice the size.
fn samples(chance: &mut Chance, source: Size) -> Vec<KernelSample> {
    let half = Size { width: source.width.div_ceil(2), height: source.height.div_ceil(2) };
    let twice = Size { width: 2 * source.width, height: 2 * source.height };
    [chance.size(), half, twice].map(|size| KernelSample::new(size, &pack()).small(small(source, size))).to_vec()
}
