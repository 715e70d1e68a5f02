//! Products of rows by constant weights: fully connected layers, and convolutions with a window of one position.

use super::finish::{Finish, Rows};
use super::lanes::Level;
use super::pack::{Header, block_width, has_slopes, padded};
use super::spread_products;
use super::tile::{self, Sight, Tile, WIDE};

/// Floats of the input that stay in the L2 cache while all blocks of weights pass.
const NEAR: usize = 128 * 1024;

/// The sizes of a product, m x k by k x n.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sizes {
    pub(super) m: usize,
    pub(super) k: usize,
    pub(super) n: usize,
}

/// Writes the product of `x` (m x k) and packed weights (k x n) to `out`.
#[expect(clippy::too_many_arguments, reason = "the operands of one product")]
pub(super) fn product_with(
    level: Level,
    sizes: Sizes,
    finish: Finish,
    x: &[f32],
    packed: &[f32],
    residual: Option<&[f32]>,
    out: &mut [f32],
    threads: usize,
) {
    let Sizes { m, k, n } = sizes;
    assert_eq!(x.len(), m * k, "the input of {sizes:?}");
    assert_eq!(out.len(), m * n, "the output of {sizes:?}");
    let parts = Header::of(n, has_slopes(finish.activation));
    assert_eq!(packed.len(), parts.weights + k * padded(n), "the packed weights of {sizes:?}");
    finish.check(residual.map(<[f32]>::len), out.len());
    let work = m.saturating_mul(k).saturating_mul(n);
    if m == 1 {
        // The blocks of a single row are distributed.
        return spread_products(out, WIDE.min(n), work, threads, |first, out| {
            let channels = first * WIDE.min(n)..first * WIDE.min(n) + out.len();
            let residual = residual.map(|residual| &residual[channels.clone()]);
            Piece { level, k, n, finish, packed, parts }.compute(x, residual, channels, out);
        });
    }
    spread_products(out, n, work, threads, |first, out| {
        let rows = out.len() / n;
        let residual = residual.map(|residual| &residual[first * n..][..out.len()]);
        Piece { level, k, n, finish, packed, parts }.compute(&x[first * k..][..rows * k], residual, 0..n, out);
    });
}

/// A part of a product for one thread.
struct Piece<'a> {
    level: Level,
    k: usize,
    n: usize,
    finish: Finish,
    packed: &'a [f32],
    parts: Header,
}

impl Piece<'_> {
    /// Computes some channels of all rows of `x`; `out` has only these channels.
    fn compute(&self, x: &[f32], residual: Option<&[f32]>, channels: std::ops::Range<usize>, out: &mut [f32]) {
        let (k, n) = (self.k, self.n);
        let (early, late) = (self.finish.early(), self.finish.late());
        let apart = channels.len();
        let rows = out.len() / apart;
        let most = tile::most_rows(self.level);
        // If all weights stay in the cache, a tile is computed for all blocks before the next.
        let near = if k * padded(n) <= NEAR { most } else { (NEAR / k.max(1)).next_multiple_of(most).max(most) };
        let point = Sight { first: 0, dilation: 1, taps: 1, length: 1, apart: 0 };
        for top in (0..rows).step_by(near) {
            let bottom = rows.min(top + near);
            for channel in channels.clone().step_by(WIDE) {
                let width = block_width(n, channel);
                let weights = &self.packed[self.parts.weights + channel * k..][..width * k];
                let within = channel - channels.start;
                let mut row = top;
                while row < bottom {
                    // Tiles of nearly equal sizes, because small tiles take nearly as long as large ones.
                    let count = (bottom - row).div_ceil((bottom - row).div_ceil(most));
                    let first = row * apart + within;
                    let residual = residual.map(|residual| &residual[first..]);
                    let valid = (n - channel).min(width);
                    tile::compute(
                        self.level,
                        &mut Tile {
                            x: &x[row * k..],
                            sight: [point, point, Sight { length: count, apart: k, ..point }],
                            stride: 1,
                            inputs: k,
                            joined: true,
                            weights,
                            width,
                            bias: &self.packed[channel..self.parts.slopes],
                            residual: residual.filter(|_| early.adds_residual),
                            low: early.low,
                            high: early.high,
                            out: &mut out[first..],
                            apart,
                            channels: valid,
                            rows: count,
                        },
                    );
                    if let Some(late) = late {
                        let rows = Rows { apart, count, values: valid };
                        let slopes = &self.packed[self.parts.slopes + channel..];
                        late.apply(rows, &mut out[first..], residual, slopes);
                    }
                    row += count;
                }
            }
        }
    }
}
