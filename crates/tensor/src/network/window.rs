//! Windows: how the positions of an output with up to three spatial axes see the positions of an input. Convolutions,
//! transposed convolutions and pools share this description.
//!
//! Axes are depth, height and width. Networks with fewer axes have 1 for the missing ones.

/// A window that moves over an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Window {
    /// Lengths of the input.
    pub input: [usize; 3],
    /// Lengths of the output.
    pub output: [usize; 3],
    /// Lengths of the window.
    pub kernel: [usize; 3],
    /// Input positions from one window to the next. For a transposed convolution: output positions from one input
    /// position to the next.
    pub stride: [usize; 3],
    /// Input positions from one tap of the window to the next. For a transposed convolution: output positions.
    pub dilation: [usize; 3],
    /// Positions before the start of the input that the first window covers. For a transposed convolution: positions
    /// that are cut from the start of the output.
    pub pad: [usize; 3],
}

impl Window {
    /// The number of taps.
    pub fn taps(&self) -> usize {
        Self::product(&self.kernel)
    }

    /// The number of output positions.
    pub fn places(&self) -> usize {
        Self::product(&self.output)
    }

    /// The number of input positions.
    pub fn inputs(&self) -> usize {
        Self::product(&self.input)
    }

    /// Windows are checked after they are made, so their numbers may be any.
    fn product(of: &[usize; 3]) -> usize {
        of.iter().fold(1, |product, length| product.saturating_mul(*length))
    }

    /// True if every output position sees exactly the input position of the same index.
    pub fn is_point(&self) -> bool {
        self.taps() == 1 && self.stride == [1; 3] && self.pad == [0; 3] && self.input == self.output
    }

    /// The input position that tap `tap` of output position `place` sees along an axis; `None` outside the input.
    pub fn seen(&self, axis: usize, place: usize, tap: usize) -> Option<usize> {
        let at = place * self.stride[axis] + tap * self.dilation[axis];
        at.checked_sub(self.pad[axis]).filter(|at| *at < self.input[axis])
    }
}
