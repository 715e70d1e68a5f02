//! `i444`: luma and two planes of chroma, all of the same size. Each pixel has its own chroma.

use vramp_plan::Format;

use crate::picture::Pixel;

use super::pack::Packing;
use super::unpack::{Between, Unpacking, from_full};
use super::{PixelRows, PlaneRows, StoredFormat};

pub(super) static I444: StoredFormat =
    StoredFormat { format: Format::I444, wgsl: include_str!("i444.wgsl"), block: [4, 1], unpack, pack };

fn unpack(args: &Unpacking<'_>, between: &mut Between, y: usize, into: &mut [Pixel]) {
    from_full(args, between, args.row(0, y), [args.row(1, y), args.row(2, y)], into);
}

fn pack(args: &Packing, between: &mut Between, rows: PixelRows<'_>, into: &mut PlaneRows<'_>, y: usize) {
    for (pixels, y) in rows.own.into_iter().zip(y..into.rows()) {
        args.luma(pixels, into.row(0, y));
        args.full(&mut between.sums, pixels, into.chroma(y));
    }
}
