//! `gray8`: luma only. Reading gives opaque grey pixels.

use vramp_plan::Format;

use crate::picture::Pixel;

use super::pack::Packing;
use super::unpack::{Between, Unpacking, from_luma};
use super::{PixelRows, PlaneRows, StoredFormat};

pub(super) static GRAY8: StoredFormat =
    StoredFormat { format: Format::Gray8, wgsl: include_str!("gray8.wgsl"), block: [4, 1], unpack, pack };

fn unpack(args: &Unpacking<'_>, between: &mut Between, y: usize, into: &mut [Pixel]) {
    from_luma(args, between, args.row(0, y), into);
}

fn pack(args: &Packing, _: &mut Between, rows: PixelRows<'_>, into: &mut PlaneRows<'_>, y: usize) {
    for (pixels, y) in rows.own.into_iter().zip(y..into.rows()) {
        args.luma(pixels, into.row(0, y));
    }
}
