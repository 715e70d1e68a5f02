//! `median3`: the median of a 3x3 window around each pixel, channel by channel.
//!
//! Usually two output rows are computed at once, from four source rows. Otherwise one output row is computed from three
//! source rows. Pixels beyond the border repeat the border.

use vramp_plan::Size;

use crate::head::lines::Lines;
use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::{Loop, ask_for};

pub static MEDIAN3: Head = Head {
    name: "median3",
    wgsl: include_str!("median3.wgsl"),
    rows_at_once: 2,
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// The parameter words: none.
pub fn pack() -> [u32; 0] {
    []
}

/// Values that are computed at once.
const CHUNK: usize = 512;
/// The output is prefetched this many chunks ahead. A 1080p frame takes 1.1 ms, and 1.25 ms if a whole row is
/// prefetched at once.
const AHEAD: usize = 3;

/// `kept.bytes` holds source rows if functions precede the head or the source's format is not rgba8.
fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, kept: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let mut lines = Lines::of(source, args.source, 4, &mut kept.bytes);
    let (upper, lower) = pixels.split_at_mut(args.source.width as usize);
    let (y, made) = (i64::from(y), if lower.is_empty() { 1 } else { 2 });
    let (first, end) = ((y - 1).max(0), (y + made + 1).min(i64::from(args.source.height)));
    for at in first.max(kept.rows.1)..end {
        lines.take(source, at);
    }
    kept.rows = (first, end);
    let rows @ [above, here, below, last] = [y - 1, y, y + 1, y + 2].map(|at| lines.at(at.min(end - 1)));
    let level = args.frame.level;
    if lower.is_empty() {
        return level.run(Median3Row { rows: [above, here, below], soon: lines.soon(y + 2), pixels: upper });
    }
    if 4 * upper.len() < CHUNK + 8 {
        level.run(Median3Row { rows: [above, here, below], soon: &[], pixels: upper });
        return level.run(Median3Row { rows: [here, below, last], soon: &[], pixels: lower });
    }
    level.run(Two { rows, soon: [y + 3, y + 4].map(|at| lines.soon(at)), upper, lower });
}

/// Computes two output rows, one below the other.
struct Two<'a> {
    rows: [&'a [u8]; 4],
    soon: [&'a [u8]; 2],
    upper: &'a mut [Pixel],
    lower: &'a mut [Pixel],
}

impl Loop for Two<'_> {
    #[inline(always)]
    fn run(self) {
        let Two { rows, soon, upper, lower } = self;
        let [a, b, c, d] = rows;
        ends([a, b, c], upper);
        ends([b, c, d], lower);
        let last = upper.len() - 1;
        let (upper, lower) = (upper[1..last].as_flattened_mut(), lower[1..last].as_flattened_mut());
        let [mut third, mut fourth] = [soon[0].chunks(CHUNK), soon[1].chunks(CHUNK)];
        for chunk in 0..upper.len().div_ceil(CHUNK) {
            ask_for(third.next().unwrap_or(&[]));
            ask_for(fourth.next().unwrap_or(&[]));
            // The last chunk overlaps the one before.
            let at = (CHUNK * chunk).min(upper.len() - CHUNK);
            ask_for(upper[at..].chunks(CHUNK).nth(AHEAD).unwrap_or(&[]));
            ask_for(lower[at..].chunks(CHUNK).nth(AHEAD).unwrap_or(&[]));
            pairs(rows, at, &mut upper[at..], &mut lower[at..]);
        }
    }
}

struct Median3Row<'a> {
    rows: [&'a [u8]; 3],
    soon: &'a [u8],
    pixels: &'a mut [Pixel],
}

impl Loop for Median3Row<'_> {
    #[inline(always)]
    fn run(self) {
        let Median3Row { rows, soon, pixels } = self;
        ends(rows, pixels);
        let last = pixels.len() - 1;
        if last < 2 {
            return;
        }
        let values = pixels[1..last].as_flattened_mut();
        if values.len() < CHUNK {
            let mut filled = [[0; CHUNK + 8]; 3];
            for (filled, row) in filled.iter_mut().zip(rows) {
                filled[..row.len()].copy_from_slice(row);
            }
            let mut made = [0; CHUNK];
            medians([&filled[0], &filled[1], &filled[2]], 0, &mut made);
            return values.copy_from_slice(&made[..values.len()]);
        }
        let mut soon = soon.chunks(CHUNK);
        for chunk in 0..values.len().div_ceil(CHUNK) {
            ask_for(soon.next().unwrap_or(&[]));
            // The last chunk overlaps the one before.
            let at = (CHUNK * chunk).min(values.len() - CHUNK);
            ask_for(values[at..].chunks(CHUNK).nth(AHEAD).unwrap_or(&[]));
            medians(rows, at, &mut values[at..]);
        }
    }
}

/// The first and the last pixel of a row.
#[inline(always)]
fn ends(rows: [&[u8]; 3], pixels: &mut [Pixel]) {
    let last = pixels.len() - 1;
    for x in [0, last] {
        let (left, right) = (x.saturating_sub(1), (x + 1).min(last));
        for (channel, value) in pixels[x].iter_mut().enumerate() {
            let column = |x: usize| {
                let at = 4 * x + channel;
                sorted([rows[0][at], rows[1][at], rows[2][at]])
            };
            *value = of_columns(column(left), column(x), column(right));
        }
    }
}

/// The medians of a chunk in two output rows, which share the two source rows in the middle. A 1080p frame takes 0.8 ms
/// at best, and 1.1 ms row by row.
#[inline(always)]
fn pairs(rows: [&[u8]; 4], at: usize, upper: &mut [u8], lower: &mut [u8]) {
    const READ: usize = CHUNK + 8;
    let (Some(a), Some(b)) = (rows[0][at..].first_chunk::<READ>(), rows[1][at..].first_chunk::<READ>()) else { return };
    let (Some(c), Some(d)) = (rows[2][at..].first_chunk::<READ>(), rows[3][at..].first_chunk::<READ>()) else { return };
    let (Some(upper), Some(lower)) = (upper.first_chunk_mut::<CHUNK>(), lower.first_chunk_mut::<CHUNK>()) else {
        return;
    };
    for i in 0..CHUNK {
        // Written out, as in `medians`.
        let left = (b[i].min(c[i]), b[i].max(c[i]));
        let here = (b[i + 4].min(c[i + 4]), b[i + 4].max(c[i + 4]));
        let right = (b[i + 8].min(c[i + 8]), b[i + 8].max(c[i + 8]));
        upper[i] = of_columns(also(left, a[i]), also(here, a[i + 4]), also(right, a[i + 8]));
        lower[i] = of_columns(also(left, d[i]), also(here, d[i + 4]), also(right, d[i + 8]));
    }
}

/// The medians of a chunk. The values that are read start one pixel to the left of the first median.
///
/// Each column is sorted three times, once for each of the three medians that need the column. Keeping sorted columns
/// takes fewer instructions, but is slower (1.5 instead of 1.0 ms per 1080p frame).
#[inline(always)]
fn medians(rows: [&[u8]; 3], at: usize, values: &mut [u8]) {
    const READ: usize = CHUNK + 8;
    let (Some(a), Some(b)) = (rows[0][at..].first_chunk::<READ>(), rows[1][at..].first_chunk::<READ>()) else { return };
    let (Some(c), Some(values)) = (rows[2][at..].first_chunk::<READ>(), values.first_chunk_mut::<CHUNK>()) else {
        return;
    };
    for i in 0..CHUNK {
        // Written out, because mapping an array would be a call for each value.
        let left = sorted([a[i], b[i], c[i]]);
        let here = sorted([a[i + 4], b[i + 4], c[i + 4]]);
        let right = sorted([a[i + 8], b[i + 8], c[i + 8]]);
        values[i] = of_columns(left, here, right);
    }
}

#[inline(always)]
fn of_columns(left: [u8; 3], here: [u8; 3], right: [u8; 3]) -> u8 {
    let low = left[0].max(here[0]).max(right[0]);
    let middle = median(left[1], here[1], right[1]);
    let high = left[2].min(here[2]).min(right[2]);
    median(low, middle, high)
}

/// Inserts a value into two sorted values.
#[inline(always)]
fn also((low, high): (u8, u8), value: u8) -> [u8; 3] {
    let above = low.max(value);
    [low.min(value), above.min(high), above.max(high)]
}

#[inline(always)]
fn sorted([a, b, c]: [u8; 3]) -> [u8; 3] {
    let (a, b) = (a.min(b), a.max(b));
    let (b, c) = (b.min(c), b.max(c));
    [a.min(b), a.max(b), c]
}

#[inline(always)]
fn median(a: u8, b: u8, c: u8) -> u8 {
    a.min(b).max(a.max(b).min(c))
}

fn samples(_: &mut Chance, source: Size) -> Vec<KernelSample> {
    vec![KernelSample::new(source, &pack())]
}
