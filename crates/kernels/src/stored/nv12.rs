//! `nv12`: luma, then one plane of 4:2:0 chroma with u and v interleaved. The values are the same as in i420.

use vramp_plan::Format;

use crate::picture::Pixel;

use super::pack::Packing;
use super::unpack::{Between, Unpacking, from_pairs};
use super::{PixelRows, PlaneRows, StoredFormat};

pub(super) static NV12: StoredFormat =
    StoredFormat { format: Format::Nv12, wgsl: include_str!("nv12.wgsl"), block: [4, 2], unpack, pack };

fn unpack(args: &Unpacking<'_>, between: &mut Between, y: usize, into: &mut [Pixel]) {
    from_pairs(args, between, args.row(0, y), args.around(1, y), args.site(y), into);
}

fn pack(args: &Packing, between: &mut Between, rows: PixelRows<'_>, into: &mut PlaneRows<'_>, y: usize) {
    for (pixels, y) in rows.own.into_iter().zip(y..into.rows()) {
        args.luma(pixels, into.row(0, y));
    }
    args.pairs(between, rows, into.row(1, y / 2));
}
