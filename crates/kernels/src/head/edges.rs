//! `edges`: the strength of edges, computed from the Sobel gradients of the grey value along both axes.
//!
//! A row of the source is converted to grey once per band, with the formula of the pixel function `gray`. Pixels beyond
//! the border mirror those inside, without repeating the outermost pixel. An axis of one pixel has no gradient. Alpha
//! is kept.

use vramp_plan::Size;

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::pixel::gray::gray;
use crate::sample::{Chance, KernelSample};
use crate::simd::Loop;

pub static EDGES: Head =
    Head { name: "edges", wgsl: include_str!("edges.wgsl"), row, samples: Some(samples), ..Head::PLAIN };

/// Number of grey values that are processed at once. Rows are padded to a multiple of this number.
const LANES: usize = 64;
/// Rows that a gradient needs.
const IN_RING: usize = 3;

/// `kept.bytes` holds the ring of grey rows, each with one more pixel on both sides, followed by one row of results.
fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, kept: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let filled = pixels.len().next_multiple_of(LANES);
    let stride = filled + 2;
    kept.bytes.resize(IN_RING * stride + filled, 0);
    let (y, last) = (i64::from(y), i64::from(args.source.height) - 1);
    let slot = |at: i64| at as usize % IN_RING * stride;
    let (first, end) = ((y - 1).max(0), (y + 1).min(last) + 1);
    for at in first.max(kept.rows.1)..end {
        let grays = &mut kept.bytes[slot(at)..][..stride];
        args.frame.level.run(MirroredGrayRow { pixels: source.row(at), grays });
    }
    kept.rows = (first, end);

    // At the border, the neighbouring row on the other side replaces the missing row. If the image has only one row,
    // the row is its own neighbour.
    let above = if y == 0 { last.min(1) } else { y - 1 };
    let below = if y == last { (last - 1).max(0) } else { y + 1 };
    let (rows, steep) = kept.bytes.split_at_mut(IN_RING * stride);
    let [above, middle, below] = [above, y, below].map(|at| &rows[slot(at)..][..stride]);
    let steep = steep.as_chunks_mut().0;
    args.frame.level.run(Gradients { above, middle, below, steep, here: source.row(y), pixels });
}

/// Converts a row to grey and mirrors it at its ends.
struct MirroredGrayRow<'a> {
    pixels: &'a [Pixel],
    grays: &'a mut [u8],
}

impl Loop for MirroredGrayRow<'_> {
    #[inline(always)]
    fn run(self) {
        let MirroredGrayRow { pixels, grays } = self;
        for (to, pixel) in grays[1..].iter_mut().zip(pixels) {
            *to = gray(u32::from_le_bytes(*pixel)) as u8;
        }
        let width = pixels.len();
        grays[0] = grays[2.min(width)];
        grays[width + 1] = grays[(width - 1).max(1)];
    }
}

/// Computes the edge strengths of one row, then converts them to pixels.
struct Gradients<'a> {
    above: &'a [u8],
    middle: &'a [u8],
    below: &'a [u8],
    steep: &'a mut [ByteLanes],
    here: &'a [Pixel],
    pixels: &'a mut [Pixel],
}

impl Loop for Gradients<'_> {
    #[inline(always)]
    fn run(self) {
        let Gradients { above, middle, below, steep, here, pixels } = self;
        for (group, steep) in steep.iter_mut().enumerate() {
            let three = |row| three(row, LANES * group);
            *steep = both(three(above), three(middle), three(below));
        }
        for ((to, here), v) in pixels.iter_mut().zip(here).zip(steep.as_flattened()) {
            let alpha = u32::from_le_bytes(*here) & 0xff00_0000;
            let v = u32::from(*v);
            *to = (v | (v << 8) | (v << 16) | alpha).to_le_bytes();
        }
    }
}

type ByteLanes = [u8; LANES];

/// Three groups of values: the left neighbours of a group, the group, and its right neighbours.
#[inline(always)]
fn three(row: &[u8], at: usize) -> [&ByteLanes; 3] {
    [0, 1, 2].map(|right| row[at + right..].first_chunk().unwrap_or(&[0; LANES]))
}

#[inline(always)]
fn both(above: [&ByteLanes; 3], middle: [&ByteLanes; 3], below: [&ByteLanes; 3]) -> ByteLanes {
    let mut steep = [0; LANES];
    for i in 0..LANES {
        let value = |row: [&ByteLanes; 3], right: usize| i16::from(row[right][i]);
        let corners = value(below, 2) - value(above, 0);
        let across = value(above, 2) - value(below, 0);
        let x = corners + across + 2 * (value(middle, 2) - value(middle, 0));
        let y = corners - across + 2 * (value(below, 1) - value(above, 1));
        steep[i] = ((x.abs().min(255) + y.abs().min(255) + 1) >> 1) as u8;
    }
    steep
}

fn samples(_: &mut Chance, source: Size) -> Vec<KernelSample> {
    vec![KernelSample::new(source, &[])]
}
