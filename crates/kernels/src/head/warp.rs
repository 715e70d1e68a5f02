//! `warp`: an affine map of the plane, with bilinear interpolation.
//!
//! A position is the sum of a contribution of its column and a contribution of its row. The contributions are rounded
//! from doubles to 14 fraction bits. The weights of four pixels have the sum 16384, and a result is rounded once, half
//! up. Pixels beyond the source are transparent black. Positions so far outside that they overflow 32 bits are never
//! computed, because the small data of each row holds the range of columns that touch the source.

use vramp_plan::Size;

use crate::head::{BandState, Head, HeadArgs, SourceRows};
use crate::picture::{Picture, Pixel};
use crate::sample::{Chance, KernelSample};
use crate::simd::four::{self, AT_ONCE, NeighbourTaps};
use crate::simd::{Level, Loop};

/// Small data: for each column two words, the column's contributions to the position along x and along y. Then for each
/// row four words: the row's contributions along x and along y, the first column that touches the source, and the
/// column after the last column that touches the source.
pub static WARP: Head =
    Head { name: "warp", wgsl: include_str!("warp.wgsl"), small: true, row, samples: Some(samples), ..Head::PLAIN };

/// Two rows of three numbers: factor of x, factor of y, offset.
pub type Map = [f64; 6];

/// The parameter words: none.
pub fn pack() -> [u32; 0] {
    []
}

/// The inverse map. Returns `None` if the map is singular or doubles cannot hold the inverse.
pub fn inverse(m: &Map) -> Option<Map> {
    let [xx, xy, x, yx, yy, y] = *m;
    let per = 1.0 / (xx * yy - xy * yx);
    let (xx, xy, yx, yy) = (yy * per, -xy * per, -yx * per, xx * per);
    let back = [xx, xy, -xx * x - xy * y, yx, yy, -yx * x - yy * y];
    (per != 0.0 && back.iter().all(|v| v.is_finite())).then_some(back)
}

/// Fraction bits of positions.
const FRACTION_BITS: u32 = 14;
const ONE: i32 = 1 << FRACTION_BITS;
const HALF: i32 = ONE / 2;

/// The small data for `back`, which maps positions in an output of size `size` to positions in a source of size
/// `source`.
pub fn small(back: &Map, source: Size, size: Size) -> Vec<u32> {
    let along: [Vec<i64>; 2] = [back[0], back[3]].map(|by| (0..size.width).map(|x| fixed(by * f64::from(x))).collect());
    let columns = along[0].iter().zip(&along[1]).flat_map(|(x, y)| [low(*x), low(*y)]);
    let mut small: Vec<u32> = columns.collect();
    for y in 0..size.height {
        let start = [0, 3].map(|k| fixed(back[k + 1] * f64::from(y) + back[k + 2]));
        let (first, end) = touching(&along[0], start[0], source.width);
        let (other, other_end) = touching(&along[1], start[1], source.height);
        let first = first.max(other);
        small.extend([low(start[0]), low(start[1]), first as u32, end.min(other_end).max(first) as u32]);
    }
    small
}

/// Converts to fixed point. The result is clamped so that the sum of two results fits 64 bits.
fn fixed(v: f64) -> i64 {
    const FAR: f64 = (1_i64 << 60) as f64;
    (v * f64::from(ONE)).round().clamp(-FAR, FAR) as i64
}

fn low(v: i64) -> u32 {
    v as u32
}

/// The range of columns whose position is less than a pixel away from 0..`side`. Positions are monotonic along a row.
fn touching(along: &[i64], start: i64, side: u32) -> (usize, usize) {
    between(along.len(), |x| along[x] + start, 1 - i64::from(ONE), (i64::from(side) << FRACTION_BITS) - 1)
}

/// The range in which a monotonic function is at least `least` and at most `most`.
fn between(count: usize, f: impl Fn(usize) -> i64, least: i64, most: i64) -> (usize, usize) {
    let first_where = |holds: &dyn Fn(i64) -> bool| {
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = usize::midpoint(low, high);
            if holds(f(middle)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    };
    if count == 0 || f(count - 1) >= f(0) {
        (first_where(&|v| v >= least), first_where(&|v| v > most))
    } else {
        (first_where(&|v| v <= most), first_where(&|v| v < least))
    }
}

/// The inputs of a row: the words of all columns, and the row's contribution to positions.
#[derive(Clone, Copy)]
struct WarpRow<'a> {
    columns: &'a [[u32; 2]],
    start: [u32; 2],
}

impl WarpRow<'_> {
    #[inline(always)]
    fn place(&self, x: usize) -> [i32; 2] {
        let [along, down] = self.columns[x];
        [along.wrapping_add(self.start[0]).cast_signed(), down.wrapping_add(self.start[1]).cast_signed()]
    }
}

fn row(args: &HeadArgs<'_>, source: &mut SourceRows<'_>, _: &mut BandState, y: u32, pixels: &mut [Pixel]) {
    let (columns, rows) = args.frame.small.split_at(2 * pixels.len());
    let &[along, down, first, end] = rows[4 * y as usize..].first_chunk().unwrap_or(&[0; 4]);
    let line = WarpRow { columns: columns.as_chunks().0, start: [along, down] };
    let (first, end) = (first as usize, end as usize);
    pixels[..first].fill([0; 4]);
    pixels[end..].fill([0; 4]);
    if first == end {
        return;
    }
    let ends =
        [line.place(first)[1], line.place(end - 1)[1]].map(|place| (place >> FRACTION_BITS).max(0).cast_unsigned());
    let Some(picture) = source.placed(ends[0].min(ends[1])..ends[0].max(ends[1]) + 2) else { return };
    // The columns whose four pixels are all within the source.
    let within = |axis: usize, side: u32| {
        let last = (i64::from(side) - 1) << FRACTION_BITS;
        let (low, high) = between(end - first, |x| i64::from(line.place(first + x)[axis]), 0, last - 1);
        (first + low, first + high)
    };
    let (one, other) = (within(0, picture.size.width), within(1, picture.size.height));
    let inside = one.0.max(other.0);
    let outside = one.1.min(other.1).max(inside);
    for x in (first..inside).chain(outside..end) {
        pixels[x] = at_the_edge(picture, line.place(x));
    }
    mix(args.frame.level, picture, line, inside, &mut pixels[inside..outside]);
}

/// The weights of four pixels: at the position, to its right, below it, and below to its right.
#[inline(always)]
fn weights([x, y]: [i32; 2]) -> [i32; 4] {
    let (x, y) = (x & (ONE - 1), y & (ONE - 1));
    let both = (x * y + HALF) >> FRACTION_BITS;
    [ONE - x - y + both, x - both, y - both, both]
}

fn at_the_edge(picture: Picture<'_>, place: [i32; 2]) -> Pixel {
    let [x, y] = place.map(|v| i64::from(v >> FRACTION_BITS));
    let Size { width, height } = picture.size;
    let mut sum = [HALF; 4];
    for ((dx, dy), weight) in [(0, 0), (1, 0), (0, 1), (1, 1)].into_iter().zip(weights(place)) {
        let (x, y) = (x + dx, y + dy);
        if (0..i64::from(width)).contains(&x) && (0..i64::from(height)).contains(&y) {
            let pixel = picture.pixels[(y * i64::from(width) + x) as usize];
            sum.iter_mut().zip(pixel).for_each(|(sum, level)| *sum += weight * i32::from(level));
        }
    }
    sum.map(|sum| (sum >> FRACTION_BITS) as u8)
}

/// Computes pixels whose four source pixels are all within the source, from column `x` on.
fn mix(level: Level, picture: Picture<'_>, line: WarpRow<'_>, x: usize, pixels: &mut [Pixel]) {
    let mut taps = NeighbourTaps::default();
    let mut x = x;
    for pixels in pixels.chunks_mut(AT_ONCE) {
        level.run(Fetch { picture, line, x, count: pixels.len(), taps: &mut taps });
        four::mix(level, &taps, pixels);
        x += pixels.len();
    }
}

/// Fetches the source pixels and their weights.
struct Fetch<'a> {
    picture: Picture<'a>,
    line: WarpRow<'a>,
    x: usize,
    count: usize,
    taps: &'a mut NeighbourTaps,
}

impl Loop for Fetch<'_> {
    #[inline(always)]
    fn run(self) {
        let Fetch { picture, line, x, count, taps } = self;
        let columns = &line.columns[x..x + count];
        let width = picture.size.width.cast_signed();
        let mut at = [0_u32; AT_ONCE];
        for (([along, down], at), to) in columns.iter().zip(&mut at).zip(&mut taps.weights) {
            let x = along.wrapping_add(line.start[0]).cast_signed();
            let y = down.wrapping_add(line.start[1]).cast_signed();
            *at = (y >> FRACTION_BITS).wrapping_mul(width).wrapping_add(x >> FRACTION_BITS).cast_unsigned();
            let [here, right, below, both] = weights([x, y]).map(i32::cast_unsigned);
            *to = [here | (right << 16), below | (both << 16)];
        }
        taps.fetch(picture.pixels, picture.size.width as usize, &at[..count]);
    }
}

/// A map with random factors, and a map that rotates and stretches.
fn samples(chance: &mut Chance, source: Size) -> Vec<KernelSample> {
    let mut from = |least: f64| chance.between(least, least + 2.0);
    let any = [from(0.1), from(-1.0), from(-5.0), from(-1.0), from(-2.0), from(3.0)];
    let (stretch, (sin, cos)) = (chance.between(0.05, 12.0), chance.between(0.0, 80.0).sin_cos());
    let (x, y) = (chance.between(-8.5, 30.5), chance.between(-8.5, 30.5));
    let turned = [cos * stretch, -sin * stretch, x, sin, cos, y];
    let drawn = [any, turned].into_iter().filter_map(|map| {
        let back = inverse(&map)?;
        Some(KernelSample::new(source, &pack()).small(small(&back, source, source)))
    });
    drawn.collect()
}
