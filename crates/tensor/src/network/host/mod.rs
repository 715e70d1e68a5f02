//! Convolutions and products with constant weights on the host: the sums are finished (bias, residual, activation) while
//! they are in registers or in the L1 cache.
//!
//! Values are dense: batch, up to three spatial axes, channels. Weights are packed once ([`pack`]); packed weights start
//! with the biases, so that a call has a single constant.
//!
//! Invariants: calls allocate no memory. The number of threads never changes a result. Sums are in f32, and an
//! instruction that multiplies and adds is used if the machine has one.
#![expect(clippy::inline_always, reason = "functions that are not inlined into a vector loop lose its instructions")]

mod axis;
mod dense;
mod depthwise;
mod finish;
mod lanes;
mod pack;
mod product;
#[cfg(test)]
mod tests;
mod tile;

pub(crate) use dense::{convolve, convolve_transposed};
pub(crate) use depthwise::depthwise;
pub(crate) use finish::{Activation, Finish, Residual};
pub(crate) use pack::{PackedSize, pack_convolution, pack_depthwise, pack_transposed};

use crate::network::window::Window;
use crate::ops::host::spread::spread;

/// Multiplications that take as long as one value of an elementwise step.
const PRODUCTS_PER_VALUE: usize = 16;

/// Distributes rows of an output over threads. `products` is the number of multiplications of all rows together.
fn spread_products(
    out: &mut [f32],
    row: usize,
    products: usize,
    threads: usize,
    work: impl Fn(usize, &mut [f32]) + Sync,
) {
    spread(out, row, products / PRODUCTS_PER_VALUE, threads, work);
}

/// A convolution, without its values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ConvSpec {
    pub(crate) window: Window,
    pub(crate) batch: usize,
    /// Channels of the input.
    pub(crate) inputs: usize,
    /// Channels of the output.
    pub(crate) outputs: usize,
    pub(crate) groups: usize,
    pub(crate) finish: Finish,
}

impl ConvSpec {
    /// Panics unless the lengths of all values are right.
    fn check(&self, x: usize, packed: (usize, usize), residual: Option<usize>, out: usize) {
        let ConvSpec { window, batch, inputs, outputs, groups, .. } = *self;
        assert!(
            groups > 0 && inputs.is_multiple_of(groups) && outputs.is_multiple_of(groups),
            "{inputs} inputs and {outputs} outputs cannot be in {groups} groups"
        );
        assert_eq!(x, batch * window.inputs() * inputs, "the input of {self:?}");
        assert_eq!(packed.0, packed.1, "the packed weights of {self:?}");
        assert_eq!(out, batch * window.places() * outputs, "the output of {self:?}");
        self.finish.check(residual, out);
    }

    /// Multiplications, for the choice of the number of threads.
    fn work(&self) -> usize {
        let each = self.window.taps().saturating_mul(self.inputs / self.groups).saturating_mul(self.outputs);
        each.saturating_mul(self.window.places()).saturating_mul(self.batch)
    }
}
