//! The inner loops of products and dense convolutions: one tile of the output, neighbouring positions by the channels
//! of one block, summed in registers.
//!
//! The activations are read where they are. A row of the tile is a position of the output; for each run of taps whose
//! inputs are contiguous, a row has a slice of the input. Rows that see a tap outside the input read zeros.
//!
//! Invariant: each sum is taken in the order of the packed weights, one product after the other. It depends neither on
//! the sizes of tiles nor on the neighbours in a tile.

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
    /// Added to the sums before anything else; as long as `out`.
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
            $($rows => $lanes.call(
                #[inline(always)]
                || sum::<_, $rows, $vectors, { $width }>($lanes, $tile, $at),
            ),)*
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

static ZEROS: [f32; 1024] = [0.0; 1024];

/// The channels from `at` of a tile with `M` rows, in `P` vectors for each row. The block has `W` channels.
#[inline(always)]
fn sum<L: Lanes, const M: usize, const P: usize, const W: usize>(lanes: L, tile: &mut Tile<'_>, at: usize) {
    let bias: [L::Vector; P] = std::array::from_fn(|p| lanes.load(&tile.bias[at + p * L::COUNT..]));
    let mut sums = [bias; M];
    if let Some(residual) = tile.residual {
        for (row, sums) in sums.iter_mut().enumerate() {
            for (p, sum) in sums.iter_mut().enumerate() {
                let first = at + p * L::COUNT;
                if first + L::COUNT <= tile.channels {
                    *sum = lanes.add(*sum, lanes.load(&residual[row * tile.apart + first..]));
                } else if first < tile.channels {
                    let part = &residual[row * tile.apart + first..row * tile.apart + tile.channels];
                    *sum = lanes.add(*sum, lanes.load_part(part));
                }
            }
        }
    }
    let [depth, height, width] = tile.sight;
    let (weights, _) = tile.weights.as_chunks::<W>();
    let last = width.first + ((width.taps.max(1) - 1) * width.dilation + (M - 1) * tile.stride).cast_signed();
    let is_inside = width.first >= 0 && last < width.length.cast_signed();
    let (runs, run) = if tile.joined && is_inside { (1, width.taps * tile.inputs) } else { (width.taps, tile.inputs) };
    let piece = if is_inside { run } else { run.min(ZEROS.len()) };
    for d in 0..depth.taps {
        let Some(from_depth) = seen(&depth, d) else { continue };
        for h in 0..height.taps {
            let Some(from_height) = seen(&height, h) else { continue };
            let x = &tile.x[from_depth + from_height..];
            let weights = &weights[(d * height.taps + h) * width.taps * tile.inputs..];
            for tap in 0..runs {
                for channel in (0..run).step_by(piece.max(1)) {
                    let piece = piece.min(run - channel);
                    let rows: [&[f32]; M] = std::array::from_fn(
                        #[inline(always)]
                        |row| {
                            let at = width.first + (tap * width.dilation + row * tile.stride).cast_signed();
                            if at >= 0 && at < width.length.cast_signed() {
                                &x[at as usize * width.apart + channel..][..piece]
                            } else {
                                &ZEROS[..piece]
                            }
                        },
                    );
                    let weights = &weights[tap * run + channel..][..piece];
                    sums = with_run::<L, M, P, W>(lanes, sums, rows, weights, at);
                }
            }
        }
    }
    let (low, high) = (lanes.splat(tile.low), lanes.splat(tile.high));
    for (row, sums) in sums.iter().enumerate() {
        for (p, sum) in sums.iter().enumerate() {
            let value = lanes.clamp(*sum, low, high);
            let first = at + p * L::COUNT;
            if first + L::COUNT <= tile.channels {
                lanes.store(value, &mut tile.out[row * tile.apart + first..]);
            } else if first < tile.channels {
                let end = row * tile.apart + tile.channels;
                lanes.store_part(value, &mut tile.out[row * tile.apart + first..end]);
            }
        }
    }
}

/// Floats to the input position that a tap of the first row sees; `None` outside the input.
#[inline(always)]
fn seen(sight: &Sight, tap: usize) -> Option<usize> {
    let at = usize::try_from(sight.first + (tap * sight.dilation).cast_signed()).ok()?;
    (at < sight.length).then_some(at * sight.apart)
}

/// Adds the products of a run of inputs. All rows are as long as `weights`.
///
/// The sums are passed by value: behind a reference, they would be stored after each addition, and the loop would take
/// twice as long.
#[inline(always)]
fn with_run<L: Lanes, const M: usize, const P: usize, const W: usize>(
    lanes: L,
    mut sums: [[L::Vector; P]; M],
    rows: [&[f32]; M],
    weights: &[[f32; W]],
    at: usize,
) -> [[L::Vector; P]; M] {
    // Slices of one length, so that one comparison ends the loop for all rows.
    let run = weights.len();
    let rows: [&[f32]; M] = std::array::from_fn(
        #[inline(always)]
        |row| &rows[row][..run],
    );
    for (k, weights) in weights.iter().enumerate() {
        let weights: [L::Vector; P] = std::array::from_fn(
            #[inline(always)]
            |p| lanes.load(&weights[at + p * L::COUNT..]),
        );
        for m in 0..M {
            let input = lanes.splat(rows[m][k]);
            for p in 0..P {
                sums[m][p] = lanes.multiply_add(input, weights[p], sums[m][p]);
            }
        }
    }
    sums
}
