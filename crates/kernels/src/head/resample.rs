//! `resample`: scales the source to another size by weighted sums of many source pixels, first along rows, then down
//! columns.
//!
//! [`axis`] computes the weights for each filter. The weights of a pixel are fixed-point numbers with the sum one.
//! Between the passes a level has seven fraction bits and may exceed 0..=255 by half of this range on each side.
//! Nothing else is rounded or clamped before the final result. A row of the source is summed once per band.

pub mod axis;

use vramp_plan::Size;

use crate::head::bilinear::halve;
use crate::head::{BandState, First, Head, HeadArgs, SourceRows};
use crate::picture::Pixel;
use crate::sample::{Chance, KernelSample};
use crate::simd::resample as vectors;
use crate::simd::{Level, Loop};

use axis::{MOST_TAPS, NARROW_BITS, ResampleAxis, ResampleFilter, WIDE_BITS};

/// Parameters: words of weights per column, words of weights per row, flags, offset of the rows in small data. Flags
/// are bit 0 if the columns' weights are wide, bit 1 if the rows' weights are wide, and bit 2 if every pixel is the
/// mean of two by two pixels. Small data: the first tap of each column, the weights of each column, the first tap of
/// each row, the weights of each row. A word of narrow weights holds the weights of two taps in 16 bits each, with
/// [`NARROW_BITS`] fraction bits. A word of wide weights holds the weight of one tap, with [`WIDE_BITS`] fraction bits.
pub static RESAMPLE: Head = Head {
    name: "resample",
    wgsl: include_str!("resample.wgsl"),
    words: 4,
    small: true,
    first: Some(First::RESAMPLING),
    row,
    samples: Some(samples),
    ..Head::PLAIN
};

/// Fraction bits of a level between the passes.
const KEPT_BITS: u32 = 7;
/// Levels between the passes are stored as signed distances from this level.
const MIDDLE: i32 = 128;
/// At every vector level, rows of sums are padded to a multiple of this number of values.
const FILLED_TO: usize = 128;
/// Number of rows that are summed horizontally at once, because they need the same weights. This reduced the time for
/// Lanczos from 1080p to 720p from 4.9 to 3.2 ms.
const AT_ONCE: usize = 4;

/// The parameter words and small data for scaling `source` to `size`.
pub fn pack(filter: ResampleFilter, source: Size, size: Size) -> ([u32; 4], Vec<u32>) {
    let columns = ResampleAxis::of(filter, source.width, size.width);
    let rows = ResampleAxis::of(filter, source.height, size.height);
    let mut small = Vec::new();
    columns.lay_out(&mut small);
    let rows_at = small.len() as u32;
    rows.lay_out(&mut small);
    let halves = filter == ResampleFilter::Area && (source.width, source.height) == (2 * size.width, 2 * size.height);
    let flags = u32::from(columns.wide) | u32::from(rows.wide) << 1 | u32::from(halves) << 2;
    ([columns.words() as u32, rows.words() as u32, flags, rows_at], small)
}

/// The maximum bytes of small data for scaling `source` to `size`.
pub fn most_small_bytes(filter: axis::ResampleFilter, source: Size, size: Size) -> u64 {
    let words = |from: u32, to: u32| u64::from(to) * (1 + filter.most_taps(from, to));
    4 * (words(source.width, size.width) + words(source.height, size.height))
}

/// The weights of one axis in the small data.
struct AxisWeights<'a> {
    starts: &'a [u32],
    weights: &'a [u32],
    words: usize,
    wide: bool,
}

impl<'a> AxisWeights<'a> {
    fn of(small: &'a [u32], pixels: u32, words: u32, wide: bool) -> AxisWeights<'a> {
        let (starts, weights) = small.split_at(pixels as usize);
        AxisWeights { starts, weights, words: words as usize, wide }
    }

    fn taps(&self) -> usize {
        if self.wide { self.words } else { 2 * self.words }
    }
}

/// `kept.sums` is the ring of summed rows; `kept.bytes` holds padded copies of the ends of rows.
fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, kept: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let [of_columns, of_rows, flags, rows_at] = std::array::from_fn(|i| args.frame.words[i]);
    let level = args.frame.level;
    if flags & 4 != 0 {
        // Means of four pixels are exactly the same result, because a mean of two levels is exact between the passes.
        return halve(level, source.rows(2 * y), pixels);
    }
    let values = pixels.as_flattened_mut();
    let (columns, rows) = args.frame.small.split_at(rows_at as usize);
    let columns = AxisWeights::of(columns, args.frame.size.width, of_columns, flags & 1 != 0);
    let rows = AxisWeights::of(rows, args.frame.size.height, of_rows, flags & 2 != 0);
    let height = args.source.height as usize;
    let filled = values.len().next_multiple_of(FILLED_TO);
    // Four rows are summed at once, so up to three rows are in the ring before they are needed.
    let in_ring = rows.taps().min(height) + AT_ONCE - 1;
    // A vector that does not cross cache lines is read in half the time.
    kept.sums.resize(in_ring * filled + FILLED_TO, 0);
    let skipped = kept.sums.as_ptr().align_offset(64).min(FILLED_TO);
    let ring = &mut kept.sums[skipped..];
    let slot = |at: usize| at % in_ring * filled;

    let first = rows.starts[y as usize] as usize;
    let end = (first + rows.taps()).min(height);
    let mut next = first.max(kept.rows.1 as usize);
    while next < end {
        let there = std::array::from_fn(|i| slot(next + i)..slot(next + i) + filled);
        let sums = ring.get_disjoint_mut(there).expect("a ring has room for all rows that are summed at once");
        let four: [&[Pixel]; AT_ONCE] = source.rows(next as u32);
        if columns.wide {
            four.iter().zip(sums).for_each(|(row, sums)| level.run(AlongWide { row, columns: &columns, sums }));
        } else if vectors::suits(level) {
            along(level, four, &columns, &mut kept.bytes, sums);
        } else {
            four.iter().zip(sums).for_each(|(row, sums)| level.run(AlongNarrow { row, columns: &columns, sums }));
        }
        next += AT_ONCE;
    }
    kept.rows = (i64::from(first as u32), i64::from(next as u32));

    let weights = &rows.weights[y as usize * rows.words..][..rows.words];
    if rows.wide {
        kept.wide.resize(2 * values.len(), 0);
        return level.run(DownWide { ring, filled, first, in_ring, weights, sums: &mut kept.wide, values });
    }
    let mut slots = [0; MOST_TAPS];
    let slots = &mut slots[..rows.taps()];
    // Rows after the last row of the source have weight 0, so any values may be read for them.
    slots.iter_mut().zip(first..).for_each(|(to, at)| *to = slot(at));
    if vectors::suits(level) {
        vectors::down(level, ring, slots, weights, values);
    } else {
        level.run(DownNarrow { ring, slots, weights, values });
    }
}

/// The first pass in vectors. Vectors read four pixels at a time, and read from padded copies near the end of rows.
fn along(
    level: Level,
    rows: [&[Pixel]; AT_ONCE],
    columns: &AxisWeights<'_>,
    tails: &mut Vec<u8>,
    mut sums: [&mut [u16]; AT_ONCE],
) {
    let &AxisWeights { starts, weights, words, .. } = columns;
    let read = 4 * words.div_ceil(2);
    let rows = rows.map(<[_]>::as_flattened);
    let width = rows[0].len() / 4;
    // This number of columns is rounded down to an even number, because two columns are stored at once.
    let within = starts.partition_point(|start| *start as usize + read <= width) / 2 * 2;
    let (near, far) = starts.split_at(within);
    let (near_weights, far_weights) = weights.split_at(within * words);
    vectors::along(level, &rows, 0, (near, near_weights), &mut sums);
    let (Some(from), Some(last)) = (far.first(), far.last()) else { return };
    let (from, long) = (*from as usize, 4 * ((last - from) as usize + read));
    tails.resize(AT_ONCE * long, 0);
    for (tail, row) in tails.chunks_exact_mut(long).zip(rows) {
        let there = (row.len() - 4 * from).min(long);
        tail[..there].copy_from_slice(&row[4 * from..][..there]);
    }
    let tails = std::array::from_fn(|i| &tails[i * long..][..long]);
    vectors::along(level, &tails, from, (far, far_weights), &mut sums.map(|sums| &mut sums[4 * within..]));
}

/// The two weights of a narrow word.
#[inline(always)]
fn both(word: u32) -> [i32; 2] {
    [i32::from(word as i16), word.cast_signed() >> 16]
}

/// Converts a sum to its intermediate value.
#[inline(always)]
fn kept_of(sum: i32, fraction_bits: u32) -> u16 {
    let half = 1 << (fraction_bits - KEPT_BITS - 1);
    let kept = (sum + half) >> (fraction_bits - KEPT_BITS);
    (kept.clamp(i16::MIN.into(), i16::MAX.into()) as i16).cast_unsigned()
}

/// The first pass over one row, with narrow weights.
struct AlongNarrow<'a> {
    row: &'a [Pixel],
    columns: &'a AxisWeights<'a>,
    sums: &'a mut [u16],
}

impl Loop for AlongNarrow<'_> {
    #[inline(always)]
    fn run(self) {
        let AlongNarrow { row, columns: AxisWeights { starts, weights, words, .. }, sums } = self;
        let last = row.len() - 1;
        for (at, (start, sums)) in starts.iter().zip(sums.as_chunks_mut::<4>().0).enumerate() {
            let weights = &weights[at * words..][..*words];
            let mut sum = [-MIDDLE << NARROW_BITS; 4];
            for (word, x) in weights.iter().zip((*start as usize..).step_by(2)) {
                let ([one, other], a, b) = (both(*word), row[x.min(last)], row[(x + 1).min(last)]);
                for c in 0..4 {
                    sum[c] += i32::from(a[c]) * one + i32::from(b[c]) * other;
                }
            }
            *sums = sum.map(|sum| kept_of(sum, NARROW_BITS));
        }
    }
}

/// The first pass over one row, with wide weights.
struct AlongWide<'a> {
    row: &'a [Pixel],
    columns: &'a AxisWeights<'a>,
    sums: &'a mut [u16],
}

impl Loop for AlongWide<'_> {
    #[inline(always)]
    fn run(self) {
        let AlongWide { row, columns: AxisWeights { starts, weights, words, .. }, sums } = self;
        for (at, (start, sums)) in starts.iter().zip(sums.as_chunks_mut::<4>().0).enumerate() {
            let weights = &weights[at * words..][..*words];
            let mut sum = [0; 4];
            // Taps beyond the end of the row have weight 0.
            for (weight, pixel) in weights.iter().zip(&row[*start as usize..]) {
                for c in 0..4 {
                    sum[c] += (i32::from(pixel[c]) - MIDDLE) * weight.cast_signed();
                }
            }
            *sums = sum.map(|sum| kept_of(sum, WIDE_BITS));
        }
    }
}

/// Values that are summed at once, in registers.
const LANES: usize = 32;

/// The second pass over one row, with narrow weights.
struct DownNarrow<'a> {
    ring: &'a [u16],
    slots: &'a [usize],
    weights: &'a [u32],
    values: &'a mut [u8],
}

impl Loop for DownNarrow<'_> {
    #[inline(always)]
    fn run(self) {
        const BITS: u32 = NARROW_BITS + KEPT_BITS;
        let DownNarrow { ring, slots, weights, values } = self;
        for (group, values) in values.chunks_mut(LANES).enumerate() {
            let lanes = |slot: usize| ring[slot + LANES * group..].first_chunk::<LANES>().unwrap_or(&[0; LANES]);
            let mut sums = [(MIDDLE << BITS) + (1 << (BITS - 1)); LANES];
            for (word, [one, other]) in weights.iter().zip(slots.as_chunks().0) {
                let ([a, b], one, other) = (both(*word), lanes(*one), lanes(*other));
                for i in 0..LANES {
                    sums[i] += i32::from(one[i].cast_signed()) * a + i32::from(other[i].cast_signed()) * b;
                }
            }
            for (value, sum) in values.iter_mut().zip(sums) {
                *value = (sum >> BITS).clamp(0, 255) as u8;
            }
        }
    }
}

/// The second pass for one row, with wide weights. It adds one source row after another, because there are many source
/// rows. An intermediate value is split into its upper byte, and its lower byte minus the middle, so that the sums of
/// upper bytes and the sums of lower bytes fit 32 bits. The sums of lower bytes are stored after the sums of upper
/// bytes.
struct DownWide<'a> {
    ring: &'a [u16],
    filled: usize,
    first: usize,
    in_ring: usize,
    weights: &'a [u32],
    sums: &'a mut [u32],
    values: &'a mut [u8],
}

impl Loop for DownWide<'_> {
    #[inline(always)]
    fn run(self) {
        let DownWide { ring, filled, first, in_ring, weights, sums, values } = self;
        let (upper, lower) = sums.split_at_mut(values.len());
        upper.fill(0);
        lower.fill(0);
        for (weight, at) in weights.iter().zip(first..).filter(|(weight, _)| **weight != 0) {
            let kept = &ring[at % in_ring * filled..][..values.len()];
            for ((upper, lower), kept) in upper.iter_mut().zip(&mut *lower).zip(kept) {
                let kept = i32::from(kept.cast_signed());
                *upper = upper.wrapping_add((kept >> 8).cast_unsigned().wrapping_mul(*weight));
                *lower = lower.wrapping_add(((kept & 255) - MIDDLE).cast_unsigned().wrapping_mul(*weight));
            }
        }
        // Adds back the middle of the lower bytes, and the half for rounding.
        let add = (1 << (WIDE_BITS - 1)) + (1 << (WIDE_BITS - 2));
        for ((upper, lower), value) in upper.iter().zip(&*lower).zip(values) {
            let sum = (upper.cast_signed() + add + (lower.cast_signed() >> 8)) >> (WIDE_BITS - 1);
            *value = (sum + MIDDLE).clamp(0, 255) as u8;
        }
    }
}

/// Another size, and half the size, which has its own loop.
fn samples(chance: &mut Chance, source: Size) -> Vec<KernelSample> {
    let half = Size { width: source.width.div_ceil(2), height: source.height.div_ceil(2) };
    let ways =
        [chance.size(), half].map(|size| [ResampleFilter::Area, ResampleFilter::Lanczos].map(|filter| (filter, size)));
    let drawn = ways.as_flattened().iter().map(|(filter, size)| {
        let (words, small) = pack(*filter, source, *size);
        KernelSample::new(*size, &words).small(small)
    });
    drawn.collect()
}
