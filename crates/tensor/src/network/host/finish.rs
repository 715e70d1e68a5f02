//! What happens to the sums of a convolution or product before they are stored for good: a residual is added, and an
//! activation is applied.
//!
//! Residuals before the activation and limits are applied in registers ([`Early`]). Everything else is applied to each
//! tile of the output right after it was stored, while it is in the L1 cache ([`Late`]).
//!
//! Invariant: NaN stays NaN, as in ONNX Runtime.

use vramp_kernels::vectorised;

use crate::ops::host::math;

/// How a convolution or product ends.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Finish {
    pub(crate) activation: Activation,
    pub(crate) residual: Residual,
}

/// A value like the output that is added to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum Residual {
    #[default]
    None,
    BeforeActivation,
    AfterActivation,
}

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) enum Activation {
    #[default]
    None,
    Relu,
    Clip {
        low: f32,
        high: f32,
    },
    /// Negative values times a slope.
    LeakyRelu(f32),
    /// Negative values times the slope of their channel. The slopes are packed with the weights.
    PRelu,
    /// x * HardSigmoid(x) with alpha 1/6 and beta 0.5.
    HardSwish,
    /// alpha * x + beta, between 0 and 1.
    HardSigmoid {
        alpha: f32,
        beta: f32,
    },
    Sigmoid,
    Silu,
}

/// What is done in registers: an addition and limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Early {
    pub(super) adds_residual: bool,
    pub(super) low: f32,
    pub(super) high: f32,
}

/// What is done after a tile was stored.
#[derive(Debug, Clone, Copy)]
pub(super) struct Late {
    activation: Activation,
    adds_residual: bool,
}

impl Finish {
    pub(super) fn early(self) -> Early {
        let (low, high) = match self.activation {
            Activation::Relu => (0.0, f32::INFINITY),
            Activation::Clip { low, high } => (low, high),
            _ => (f32::NEG_INFINITY, f32::INFINITY),
        };
        Early { adds_residual: self.is_added_early(), low, high }
    }

    /// `None` if registers suffice.
    pub(super) fn late(self) -> Option<Late> {
        let activation = match self.activation {
            Activation::Relu | Activation::Clip { .. } => Activation::None,
            other => other,
        };
        let adds_residual = self.residual != Residual::None && !self.is_added_early();
        (activation != Activation::None || adds_residual).then_some(Late { activation, adds_residual })
    }

    /// Without an activation, before it and after it are the same.
    fn is_added_early(self) -> bool {
        match self.residual {
            Residual::None => false,
            Residual::BeforeActivation => true,
            Residual::AfterActivation => self.activation == Activation::None,
        }
    }

    /// Panics unless there is a residual exactly if this adds one, as long as the output.
    pub(super) fn check(self, residual: Option<usize>, out: usize) {
        let wanted = (self.residual != Residual::None).then_some(out);
        assert_eq!(residual, wanted, "values of the residual of an output of {out} values that ends with {self:?}");
    }
}

/// A part of the output, as rows.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rows {
    /// Floats from row to row.
    pub(super) apart: usize,
    pub(super) count: usize,
    /// Values of each row.
    pub(super) values: usize,
}

impl Late {
    /// Finishes rows. `slopes` are those of the first channels of a row.
    pub(super) fn apply(self, rows: Rows, out: &mut [f32], residual: Option<&[f32]>, slopes: &[f32]) {
        vectorised!(self.apply_here(rows, out, residual, slopes));
    }

    #[inline(always)]
    fn apply_here(self, rows: Rows, out: &mut [f32], residual: Option<&[f32]>, slopes: &[f32]) {
        match self.activation {
            Activation::None | Activation::Relu | Activation::Clip { .. } => {}
            Activation::LeakyRelu(slope) => each(rows, out, |x| if x < 0.0 { x * slope } else { x }),
            Activation::PRelu => {
                for row in 0..rows.count {
                    let out = &mut out[row * rows.apart..][..rows.values];
                    for (value, slope) in out.iter_mut().zip(slopes) {
                        *value = if *value < 0.0 { *value * slope } else { *value };
                    }
                }
            }
            Activation::HardSwish => each(rows, out, |x| x * gate(x, 1.0 / 6.0, 0.5)),
            Activation::HardSigmoid { alpha, beta } => each(rows, out, |x| gate(x, alpha, beta)),
            Activation::Sigmoid => each(rows, out, math::sigmoid),
            Activation::Silu => each(rows, out, math::silu),
        }
        if let (true, Some(residual)) = (self.adds_residual, residual) {
            for row in 0..rows.count {
                let (first, end) = (row * rows.apart, row * rows.apart + rows.values);
                for (value, other) in out[first..end].iter_mut().zip(&residual[first..end]) {
                    *value += other;
                }
            }
        }
    }
}

#[inline(always)]
fn each(rows: Rows, out: &mut [f32], activation: impl Fn(f32) -> f32) {
    for row in 0..rows.count {
        for value in &mut out[row * rows.apart..][..rows.values] {
            *value = activation(*value);
        }
    }
}

/// alpha * x + beta, between 0 and 1.
#[inline(always)]
fn gate(x: f32, alpha: f32, beta: f32) -> f32 {
    let x = alpha * x + beta;
    let x = if x < 0.0 { 0.0 } else { x };
    if x > 1.0 { 1.0 } else { x }
}
