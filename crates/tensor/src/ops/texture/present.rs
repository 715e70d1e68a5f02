//! Shows tensors: draws the values of a tensor onto a texture or a surface of your own.

use vramp_gpu::{Blit, Pixels, PresentError, Presenter, RenderTarget};
use vramp_plan::Size;

use crate::ops::error::TensorError;
use crate::ops::tensor::Tensor;

const OP: &str = "present";

impl Tensor {
    /// Draws the tensor as a picture. The shape is [height, width] (grey), or [height, width, channels] with 1, 3 or 4
    /// channels, with or without leading axes of length 1. Values are bytes, or floats from 0 to 1. Pending work is
    /// submitted first; nothing is downloaded. The presenter must be on the device of the tensor's context.
    pub fn present(&self, presenter: &mut Presenter, target: &RenderTarget, how: Blit) -> Result<(), TensorError> {
        self.check(OP)?;
        let Some(side) = self.context().side() else { return Err(TensorError::NoDevice { op: OP }) };
        let not_shown = || {
            let problem = format!(
                "{} is not a picture; expected [height, width], or [height, width, channels] with 1, 3 or 4 channels",
                self.shape()
            );
            TensorError::Mismatch { op: OP, problem }
        };
        let (size, channels) = picture(self.shape().lengths()).ok_or_else(not_shown)?;
        let buffer = self.storage().device(self.asking(OP), &side)?;
        side.flush(OP)?;
        let first = u32::try_from(self.offset()).map_err(|_| not_shown())?;
        let picture = Pixels { buffer: &buffer, size, channels, dtype: self.dtype(), first };
        presenter.present(&picture, target, how).map_err(|error| match error {
            PresentError::Lost(lost) => TensorError::Lost { op: OP, reason: lost.reason },
            other => TensorError::Device { op: OP, problem: other.to_string() },
        })
    }
}

/// Size and channels of a picture with these lengths.
fn picture(lengths: &[usize]) -> Option<(Size, u32)> {
    // A batch of one picture is a picture. An axis of length 1 that is needed is not a batch.
    let batch = lengths.len().saturating_sub(3);
    let (ones, lengths) = lengths.split_at(batch);
    if ones.iter().any(|length| *length != 1) {
        return None;
    }
    let (height, width, channels) = match lengths {
        [height, width] => (*height, *width, 1),
        [height, width, channels @ (1 | 3 | 4)] => (*height, *width, *channels),
        _ => return None,
    };
    let side = |length| u32::try_from(length).ok().filter(|length| *length > 0);
    Some((Size { width: side(width)?, height: side(height)? }, channels as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_has_two_or_three_axes_and_no_batch() {
        let size = Size { width: 5, height: 7 };
        assert_eq!(picture(&[7, 5]), Some((size, 1)));
        assert_eq!(picture(&[7, 5, 1]), Some((size, 1)));
        assert_eq!(picture(&[7, 5, 3]), Some((size, 3)));
        assert_eq!(picture(&[1, 7, 5, 4]), Some((size, 4)));
        for wrong in [&[][..], &[7], &[7, 5, 2], &[2, 7, 5, 4], &[0, 5, 4]] {
            assert_eq!(picture(wrong), None, "{wrong:?}");
        }
    }
}
