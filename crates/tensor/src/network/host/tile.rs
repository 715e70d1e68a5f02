//! The inner loops of products and dense convolutions: one tile of the output, neighbouring positions by the channels
//! of one block, summed in registers.
//!
//! The activations are read where they are: a row of the tile is a position of the output, and the rows see inputs at
//! equal distances. Tiles that see positions outside the input read copies that have zeros there.
//!
//! Invariant: each sum is taken in the order of the packed weights, one product after the other. It depends neither on
//! the sizes of tiles nor on the neighbours in a tile.

#![expect(unsafe_code, reason = "a run of inputs is checked once, and not for each product")]

use super::lanes::{Lanes, Level, Plain, Wide};

/// Channels of a wide block of packed weights. A narrow block has half of it.
pub(super) const WIDE: usize = 32;
pub(super) const NARROW: usize = 16;

/// The maximum of positions of a tile: with two vectors per position, the sums fill the registers.
#[cfg(target_arch = "x86_64")]
const V4_ROWS: usize = 14;
#[cfg(target_arch = "x86_64")]
const V3_ROWS: usize = 6;
#[cfg(target_arch = "aarch64")]
const NEON_ROWS: usize = 6;
const PLAIN_ROWS: usize = 2;

/// How a tile sees one axis of the input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sight {
    /// The input position that the first tap of the first row sees; it may be outside.
    pub(super) first: isize,
    /// Input positions from tap to tap.
    pub(super) dilation: usize,
    pub(super) taps: usize,
    /// Input positions of this axis.
    pub(super) length: usize,
    /// Floats from one input position to the next.
    pub(super) apart: usize,
}

/// One tile.
#[derive(Debug)]
pub(super) struct Tile<'a> {
    /// The input, from the first channel of the group in the first position of the image.
    pub(super) x: &'a [f32],
    /// Depth, height and width.
    pub(super) sight: [Sight; 3],
    /// Input positions along the width from row to row of the tile.
    pub(super) stride: usize,
    /// Channels that are read of each input position.
    pub(super) inputs: usize,
    /// All taps along the width are contiguous in memory.
    pub(super) joined: bool,
    /// One block of packed weights: taps x inputs x channels of the block.
    pub(super) weights: &'a [f32],
    /// Channels of the block, [`WIDE`] or [`NARROW`].
    pub(super) width: usize,
    /// At least [`Tile::width`] values.
    pub(super) bias: &'a [f32],
    /// Added to the sums before the limits are applied; as long as `out`.
    pub(super) residual: Option<&'a [f32]>,
    pub(super) low: f32,
    pub(super) high: f32,
    /// The output, from the tile's first value.
    pub(super) out: &'a mut [f32],
    /// Floats from row to row of `out`.
    pub(super) apart: usize,
    /// Channels of the block that exist in the output.
    pub(super) channels: usize,
    /// Positions of the tile.
    pub(super) rows: usize,
}

/// The maximum of positions of a tile.
pub(super) fn most_rows(level: Level) -> usize {
    match level {
        Level::Plain(_) => PLAIN_ROWS,
        #[cfg(target_arch = "x86_64")]
        Level::V3(_) => V3_ROWS,
        #[cfg(target_arch = "x86_64")]
        Level::V4(_) => V4_ROWS,
        #[cfg(target_arch = "aarch64")]
        Level::Neon(_) => NEON_ROWS,
    }
}

macro_rules! by_rows {
    ($lanes:expr, $vectors:literal, $width:expr, $tile:ident, $at:expr, [$($rows:literal)*]) => {
        match $tile.rows {
            $($rows => sum::<_, $rows, $vectors, { $width }>($lanes, $tile, $at),)*
            rows => unreachable!("a tile of {rows} positions is larger than most_rows allows"),
        }
    };
}

macro_rules! by_width {
    ($lanes:expr, $vectors:literal, $tile:ident, $rows:tt) => {{
        let lanes = $lanes;
        for at in (0..$tile.channels).step_by($vectors * count_of(lanes)) {
            if $tile.width == WIDE {
                by_rows!(lanes, $vectors, WIDE, $tile, at, $rows);
            } else {
                by_rows!(lanes, $vectors, NARROW, $tile, at, $rows);
            }
        }
    }};
}

fn count_of<L: Lanes>(_: L) -> usize {
    L::COUNT
}

/// Computes a tile.
pub(super) fn compute(level: Level, tile: &mut Tile<'_>) {
    match level {
        Level::Plain(_) => by_width!(Plain, 4, tile, [1 2]),
        #[cfg(target_arch = "x86_64")]
        Level::V3(set) => by_width!(Wide(set), 2, tile, [1 2 3 4 5 6]),
        #[cfg(target_arch = "x86_64")]
        Level::V4(set) => {
            let lanes = Wide(set);
            if tile.width == WIDE && tile.channels > NARROW {
                by_rows!(lanes, 2, WIDE, tile, 0, [1 2 3 4 5 6 7 8 9 10 11 12 13 14]);
            } else {
                by_rows!(lanes, 1, NARROW, tile, 0, [1 2 3 4 5 6 7 8 9 10 11 12 13 14]);
            }
        }
        #[cfg(target_arch = "aarch64")]
        Level::Neon(set) => by_width!(Wide(set), 4, tile, [1 2 3 4 5 6]),
    }
}

/// Floats of each row that are copied at a time where a tile sees positions outside the input.
const PIECE: usize = 128;

/// The channels from `at` of a tile with `M` rows, in `P` vectors for each row. The block has `W` channels.
fn sum<L: Lanes, const M: usize, const P: usize, const W: usize>(lanes: L, tile: &mut Tile<'_>, at: usize) {
    let [depth, height, width] = tile.sight;
    let (weights, _) = tile.weights.as_chunks::<W>();
    let last = width.first + ((width.taps.max(1) - 1) * width.dilation + (M - 1) * tile.stride).cast_signed();
    let is_inside = width.first >= 0 && last < width.length.cast_signed();
    let apart = tile.stride * width.apart;
    if is_inside && tile.joined && depth.taps * height.taps == 1 {
        let x = seen(&depth, 0).zip(seen(&height, 0)).map(|(depth, height)| depth + height);
        let x = x.map_or(&[][..], |from| &tile.x[from + width.first.cast_unsigned() * width.apart..]);
        let weights = &weights[..if x.is_empty() { 0 } else { width.taps * tile.inputs }];
        return lanes.call(
            #[inline(always)]
            || {
                let sums = with_run::<L, M, P, W>(lanes, start(lanes, tile.bias, at), x, apart, weights, at);
                finish(lanes, sums, tile, at);
            },
        );
    }
    let mut sums: [[L::Vector; P]; M] = lanes.call(
        #[inline(always)]
        || start(lanes, tile.bias, at),
    );
    let mut add = |x: &[f32], apart: usize, weights: &[[f32; W]]| {
        lanes.call(
            #[inline(always)]
            || sums = with_run::<L, M, P, W>(lanes, sums, x, apart, weights, at),
        );
    };
    let mut copies: Option<[[f32; PIECE]; M]> = None;
    for d in 0..depth.taps {
        let Some(from_depth) = seen(&depth, d) else { continue };
        for h in 0..height.taps {
            let Some(from_height) = seen(&height, h) else { continue };
            let x = &tile.x[from_depth + from_height..];
            let weights = &weights[(d * height.taps + h) * width.taps * tile.inputs..][..width.taps * tile.inputs];
            // A run has all taps whose channels are next to each other.
            let run = if tile.joined { weights.len() } else { tile.inputs };
            for (tap, weights) in weights.chunks(run.max(1)).enumerate() {
                let first = (width.first + (tap * width.dilation).cast_signed()) * width.apart.cast_signed();
                if is_inside {
                    add(&x[first.cast_unsigned()..], apart, weights);
                    continue;
                }
                for (piece, weights) in weights.chunks(PIECE).enumerate() {
                    let copies = copies.get_or_insert([[0.0; PIECE]; M]);
                    let first = first + (piece * PIECE).cast_signed();
                    copy_rows(copies, &x[..x.len().min(width.length * width.apart)], first, apart, weights.len());
                    add(copies.as_flattened(), PIECE, weights);
                }
            }
        }
    }
    lanes.call(
        #[inline(always)]
        || finish(lanes, sums, tile, at),
    );
}

/// Sums of no products: the biases of the channels from `at`.
#[inline(always)]
fn start<L: Lanes, const M: usize, const P: usize>(lanes: L, bias: &[f32], at: usize) -> [[L::Vector; P]; M] {
    let bias = &bias[at..][..P * L::COUNT];
    let bias: [L::Vector; P] = std::array::from_fn(
        #[inline(always)]
        |p| lanes.load(&bias[p * L::COUNT..]),
    );
    [bias; M]
}

/// Stores the sums of the channels from `at` of a tile, with its residual and within its limits.
#[inline(always)]
fn finish<L: Lanes, const M: usize, const P: usize>(
    lanes: L,
    sums: [[L::Vector; P]; M],
    tile: &mut Tile<'_>,
    at: usize,
) {
    let (low, high) = (lanes.splat(tile.low), lanes.splat(tile.high));
    if at + P * L::COUNT <= tile.channels && tile.residual.is_none() {
        for (m, sums) in sums.into_iter().enumerate() {
            let out = &mut tile.out[m * tile.apart + at..][..P * L::COUNT];
            for (p, sum) in sums.into_iter().enumerate() {
                lanes.store(lanes.clamp(sum, low, high), &mut out[p * L::COUNT..]);
            }
        }
        return;
    }
    // A copy, because sums that are indexed by a variable would stay in memory everywhere.
    let kept = sums;
    for (row, sums) in kept.iter().enumerate() {
        for (p, sum) in sums.iter().enumerate() {
            let first = at + p * L::COUNT;
            let valid = row * tile.apart + first..row * tile.apart + tile.channels.min(first + L::COUNT);
            if valid.is_empty() {
                continue;
            }
            let residual = tile.residual.map(|residual| &residual[valid.clone()]);
            let out = &mut tile.out[valid];
            if out.len() == L::COUNT {
                let sum = residual.map_or(*sum, |residual| lanes.add(*sum, lanes.load(residual)));
                lanes.store(lanes.clamp(sum, low, high), out);
            } else {
                let sum = residual.map_or(*sum, |residual| lanes.add(*sum, lanes.load_part(residual)));
                lanes.store_part(lanes.clamp(sum, low, high), out);
            }
        }
    }
}

/// Copies `count` floats of a line for each row, with zeros for positions outside. The first row begins at the position
/// `first`, and each row is `apart` floats further.
fn copy_rows(copies: &mut [[f32; PIECE]], line: &[f32], first: isize, apart: usize, count: usize) {
    for (row, copy) in copies.iter_mut().enumerate() {
        let first = first + (row * apart).cast_signed();
        let inside = |at: isize| at.clamp(0, line.len().cast_signed()).cast_unsigned();
        let from = inside(first)..inside(first + count.cast_signed());
        let before = count.min((-first).max(0).cast_unsigned());
        copy[..before].fill(0.0);
        copy[before + from.len()..count].fill(0.0);
        for (to, value) in copy[before..].iter_mut().zip(&line[from]) {
            *to = *value;
        }
    }
}

/// Floats to the input position that a tap of the first row sees; `None` outside the input.
#[inline(always)]
fn seen(sight: &Sight, tap: usize) -> Option<usize> {
    let at = usize::try_from(sight.first + (tap * sight.dilation).cast_signed()).ok()?;
    (at < sight.length).then_some(at * sight.apart)
}

/// Adds the products of a run of inputs. `apart` is the distance in `x` from row to row.
///
/// The sums are passed by value: behind a reference, they would be stored after each addition, and the loop would take
/// twice as long.
#[inline(always)]
fn with_run<L: Lanes, const M: usize, const P: usize, const W: usize>(
    lanes: L,
    mut sums: [[L::Vector; P]; M],
    x: &[f32],
    apart: usize,
    weights: &[[f32; W]],
    at: usize,
) -> [[L::Vector; P]; M] {
    let run = weights.len();
    if run == 0 {
        return sums;
    }
    assert!(x.len() >= (M - 1) * apart + run && at + P * L::COUNT <= W, "a tile reads only its operands");
    let (mut x, mut from) = (x.as_ptr(), weights.as_flattened().as_ptr().wrapping_add(at));
    for _ in 0..run {
        let weights: [L::Vector; P] = std::array::from_fn(
            #[inline(always)]
            |p| {
                // SAFETY: `from` is at channel `at` of a row of `weights`, and P vectors from there are in this row.
                unsafe { lanes.load_at(from.add(p * L::COUNT)) }
            },
        );
        for (m, sums) in sums.iter_mut().enumerate() {
            // SAFETY: `x` is less than `run` values from its start, so the assertion above covers each row.
            let input = lanes.splat(unsafe { *x.add(m * apart) });
            for (sum, weights) in sums.iter_mut().zip(weights) {
                *sum = lanes.multiply_add(input, weights, *sum);
            }
        }
        (x, from) = (x.wrapping_add(1), from.wrapping_add(W));
    }
    sums
}
