//! `markers`: squares in the corners of the frame, and a border drawn over the squares.
//!
//! The colours of the squares and of the border depend on one pulse value, which is computed once per frame in double
//! precision. Only the corners, and the five outermost rows or columns of each side, are visited.

use vramp_plan::Size;

use crate::function::{FnArgs, PixelFn, RowArgs, Spans};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};

pub static MARKERS: PixelFn = PixelFn {
    name: "markers",
    wgsl: include_str!("markers.wgsl"),
    words: 2,
    row,
    spans,
    samples: Some(samples),
    ..PixelFn::PLAIN
};

const BORDER: i64 = 5;

/// The parameter words: the side of a square and the pulse, 0..=255.
pub fn pack(side: u32, pulse: u8) -> [u32; 2] {
    [side, u32::from(pulse)]
}

fn spans(args: &FnArgs<'_>, y: u32) -> Spans {
    let (w, h, y) = (i64::from(args.size.width), i64::from(args.size.height), i64::from(y));
    if y < BORDER || y >= h - BORDER {
        return Spans::all(args.size);
    }
    let side = i64::from(args.words[0]);
    let reach = if y < side || y >= h - side { side.max(BORDER) } else { BORDER };
    Spans::NONE.and(0, reach, args.size).and(w - reach, w, args.size)
}

fn row(args: &RowArgs<'_>, pixels: &mut [Pixel]) {
    let (w, h, y) = (i64::from(args.frame.size.width), i64::from(args.frame.size.height), i64::from(args.y));
    let side = i64::from(args.frame.words[0]);
    let p = args.frame.words[1] as u8;
    let (square, border) = ([255, p, 0, 255], [128, 255 - p, p, 255]);
    if y < BORDER || y >= h - BORDER {
        return pixels.fill(border);
    }
    // Fills a range of columns, clipped to the pixels.
    let mut fill = |from: i64, to: i64, color: Pixel| {
        let count = pixels.len();
        let place = |x: i64| ((x - i64::from(args.x)).max(0) as usize).min(count);
        pixels[place(from)..place(to)].fill(color);
    };
    if y < side || y >= h - side {
        fill(0, side, square);
        fill(w - side, w, square);
    }
    fill(0, BORDER, border);
    fill(w - BORDER, w, border);
}

fn samples(chance: &mut Chance, size: Size) -> Vec<KernelSample> {
    vec![KernelSample::new(size, &pack(chance.below(40), chance.below(256) as u8))]
}
