//! `median5`: the median of a 5x5 window around each pixel, channel by channel. Pixels beyond the border repeat the
//! border.
//!
//! Neighbouring windows share columns, so each step below is done once for all windows that need its result:
//!
//! 1. Every column of five values is sorted.
//! 2. Every odd column is merged with the even column to its right. The result is a pair of columns.
//! 3. Two adjacent pairs are merged. These four columns are common to the windows of an even pixel and of the odd pixel
//!    to its right. Only six of the twenty values can be the median of either window.
//! 4. The six candidates are combined with the fifth column of each window: for the even pixel, the column to the left
//!    of the four columns, and for the odd pixel, the column to their right.
//!
//! All steps together take 59 minima and maxima per output value. The shortest networks that compute the median of only
//! one window take 160 minima and maxima.

mod network;

use vramp_plan::Size;

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::{Loop, ask_for};

pub static MEDIAN5: Head =
    Head { name: "median5", wgsl: include_str!("median5.wgsl"), row, samples: Some(samples), ..Head::PLAIN };

/// The parameter words: none.
pub fn pack() -> [u32; 0] {
    []
}

/// Length of a chunk: this many values of even columns, and as many values of odd columns. A chunk goes through all
/// steps before the next chunk, so that it stays in the L1 cache. A 1080p frame takes 1.9 ms with chunks of 448 values,
/// and 2.5 ms with chunks of 960 values.
const CHUNK: usize = 448;
/// Number of values that the first steps compute for a chunk. This number is larger than the chunk, because the last
/// step also reads the eight values after the chunk.
const MADE: usize = CHUNK + 64;
/// Length of a step's results, including values that may be read beyond [`MADE`].
const STEP: usize = MADE + 64;

/// `kept.bytes` holds five rows of the source, each as its even columns, then its odd columns, with one more column of
/// each kind on both sides. The results of the steps follow the rows.
fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, kept: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let half = 4 * pixels.len().div_ceil(2);
    let length = half.div_ceil(CHUNK) * CHUNK + MADE - CHUNK;
    kept.bytes.resize(10 * length + 20 * STEP, 0);
    let (ring, steps) = kept.bytes.split_at_mut(10 * length);
    let (y, last) = (i64::from(y), i64::from(args.source.height) - 1);
    let (first, end) = ((y - 2).max(0), (y + 3).min(last + 1));
    let slot = |at: i64| at.clamp(0, last) as usize % 5 * 2 * length;
    for at in first.max(kept.rows.1)..end {
        let (even, odd) = ring[slot(at)..][..2 * length].split_at_mut(length);
        args.frame.level.run(SplitRow { row: source.row(at), even, odd });
    }
    kept.rows = (first, end);
    let rows = [-2, -1, 0, 1, 2].map(|away| ring[slot(y + away)..][..2 * length].split_at(length));
    let soon = source.unchanged().filter(|_| y + 3 <= last).map_or(&[][..], |picture| picture.row(y as u32 + 3));
    args.frame.level.run(Median5Row { rows, soon, steps: steps.as_chunks_mut().0, pixels });
}

/// Separates the even and odd columns of a row. Columns beyond the border repeat the border.
struct SplitRow<'a> {
    row: &'a [Pixel],
    even: &'a mut [u8],
    odd: &'a mut [u8],
}

impl Loop for SplitRow<'_> {
    #[inline(always)]
    fn run(self) {
        let (Some(first), Some(last)) = (self.row.first(), self.row.last()) else { return };
        let (even, odd) = (self.even.as_chunks_mut::<4>().0, self.odd.as_chunks_mut::<4>().0);
        (even[0], odd[0]) = (*first, *first);
        let (pairs, rest) = self.row.as_chunks::<2>();
        for ((pair, even), odd) in pairs.iter().zip(&mut even[1..]).zip(&mut odd[1..]) {
            (*even, *odd) = (pair[0], pair[1]);
        }
        // If the number of columns is odd, the last column has an even index, and two more columns are read after it.
        let border = 1 + pairs.len();
        even[border] = *rest.first().unwrap_or(last);
        odd[border] = *last;
        even[border + rest.len()] = *last;
        odd[border + rest.len()] = *last;
    }
}

/// Runs all steps over a row, and prefetches the next row that [`SplitRow`] will separate.
struct Median5Row<'a> {
    rows: [(&'a [u8], &'a [u8]); 5],
    soon: &'a [Pixel],
    steps: &'a mut [[u8; STEP]],
    pixels: &'a mut [Pixel],
}

impl Loop for Median5Row<'_> {
    #[inline(always)]
    fn run(self) {
        let Median5Row { rows, soon, steps, pixels } = self;
        let Some((even, steps)) = steps.split_first_chunk_mut::<5>() else { return };
        let Some((odd, steps)) = steps.split_first_chunk_mut::<5>() else { return };
        let Some((pairs, _)) = steps.split_first_chunk_mut::<10>() else { return };
        let mut soon = soon.chunks(CHUNK / 2);
        for (chunk, pixels) in pixels.chunks_mut(CHUNK / 2).enumerate() {
            ask_for(soon.next().unwrap_or(&[]).as_flattened());
            ask_for(pixels.as_flattened());
            network::sort(rows.map(|(row, _)| &row[CHUNK * chunk..]), even);
            network::sort(rows.map(|(_, row)| &row[CHUNK * chunk..]), odd);
            network::merge(odd, even, pairs);
            let made = network::middle(pairs, even, odd);
            let made = [&made[0], &made[1]].map(|made| made.as_chunks::<4>().0);
            let (both, rest) = pixels.as_chunks_mut::<2>();
            for ((both, even), odd) in both.iter_mut().zip(made[0]).zip(made[1]) {
                *both = [*even, *odd];
            }
            if let (Some(last), Some(even)) = (rest.first_mut(), made[0].get(both.len())) {
                *last = *even;
            }
        }
    }
}

fn samples(_: &mut Chance, source: Size) -> Vec<KernelSample> {
    vec![KernelSample::new(source, &pack())]
}
