//! `i420`: one plane of luma, then two planes of chroma with half the width and height, rounded up for odd sizes.

use vramp_plan::Format;

use crate::picture::Pixel;

use super::pack::Packing;
use super::unpack::{Between, Unpacking, from_halves};
use super::{PixelRows, PlaneRows, StoredFormat};

pub(super) static I420: StoredFormat =
    StoredFormat { format: Format::I420, wgsl: include_str!("i420.wgsl"), block: [8, 2], unpack, pack };

fn unpack(args: &Unpacking<'_>, between: &mut Between, y: usize, into: &mut [Pixel]) {
    let chroma = [args.around(1, y), args.around(2, y)];
    from_halves(args, between, args.row(0, y), chroma, args.site(y), into);
}

fn pack(args: &Packing, between: &mut Between, rows: PixelRows<'_>, into: &mut PlaneRows<'_>, y: usize) {
    for (pixels, y) in rows.own.into_iter().zip(y..into.rows()) {
        args.luma(pixels, into.row(0, y));
    }
    args.halves(between, rows, into.chroma(y / 2));
}
