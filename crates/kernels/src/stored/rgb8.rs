//! `rgb8`: three bytes per pixel. Reading and storing do not change colours. Alpha is 255 after reading.

use vramp_plan::Format;

use crate::picture::Pixel;
use crate::simd::triples;

use super::pack::Packing;
use super::unpack::{Between, Unpacking};
use super::{PixelRows, PlaneRows, StoredFormat};

pub(super) static RGB8: StoredFormat =
    StoredFormat { format: Format::Rgb8, wgsl: include_str!("rgb8.wgsl"), block: [4, 1], unpack, pack };

fn unpack(args: &Unpacking<'_>, _: &mut Between, y: usize, into: &mut [Pixel]) {
    let row = args.row(0, y);
    let done = triples::to_pixels(args.level, row, into);
    for (pixel, [r, g, b]) in into[done..].iter_mut().zip(row[3 * done..].as_chunks::<3>().0) {
        *pixel = [*r, *g, *b, 255];
    }
}

fn pack(args: &Packing, _: &mut Between, rows: PixelRows<'_>, into: &mut PlaneRows<'_>, y: usize) {
    for (pixels, y) in rows.own.into_iter().zip(y..into.rows()) {
        let row = into.row(0, y);
        let done = triples::from_pixels(args.level, pixels, row);
        for (triple, [r, g, b, _]) in row[3 * done..].as_chunks_mut::<3>().0.iter_mut().zip(&pixels[done..]) {
            *triple = [*r, *g, *b];
        }
    }
}
