//! The reductions that tensors have. The host loops, the device kernels and expressions all use this enum.

/// How values along an axis become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduction {
    /// Their sum; 0 of none.
    Sum,
    /// Their mean; NaN of none.
    Mean,
    /// The largest; NaN if any is.
    Max,
    /// The smallest; NaN if any is.
    Min,
    /// The mean of their squares; NaN of none.
    MeanOfSquares,
    /// Where the largest is, the first of equals; where the first NaN is, if any is.
    ArgMax,
    /// Where the smallest is, likewise.
    ArgMin,
}

impl Reduction {
    /// Its name, as the method is called.
    pub const fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Mean => "mean",
            Reduction::Max => "max",
            Reduction::Min => "min",
            Reduction::MeanOfSquares => "mean_of_squares",
            Reduction::ArgMax => "argmax",
            Reduction::ArgMin => "argmin",
        }
    }

    /// Whether the result is a position and not a value.
    pub(crate) const fn is_position(self) -> bool {
        matches!(self, Reduction::ArgMax | Reduction::ArgMin)
    }

    /// Whether values are added up.
    pub(crate) const fn is_sum(self) -> bool {
        matches!(self, Reduction::Sum | Reduction::Mean | Reduction::MeanOfSquares)
    }
}
