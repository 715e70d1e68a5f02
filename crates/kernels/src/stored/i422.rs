//! `i422`: one plane of luma, then two planes of chroma with half the width, rounded up for odd widths. Each row has
//! its own chroma.

use vramp_plan::Format;

use crate::picture::Pixel;

use super::halves::Sited;
use super::pack::Packing;
use super::unpack::{Between, Unpacking, from_halves};
use super::{PixelRows, PlaneRows, StoredFormat};

pub(super) static I422: StoredFormat =
    StoredFormat { format: Format::I422, wgsl: include_str!("i422.wgsl"), block: [8, 1], unpack, pack };

fn unpack(args: &Unpacking<'_>, between: &mut Between, y: usize, into: &mut [Pixel]) {
    let both = |plane| [args.row(plane, y); 2];
    from_halves(args, between, args.row(0, y), [both(1), both(2)], Sited::CENTRE, into);
}

fn pack(args: &Packing, between: &mut Between, rows: PixelRows<'_>, into: &mut PlaneRows<'_>, y: usize) {
    for (pixels, y) in rows.own.into_iter().zip(y..into.rows()) {
        args.luma(pixels, into.row(0, y));
        args.centred_halves(&mut between.sums, [pixels; 2], into.chroma(y));
    }
}
