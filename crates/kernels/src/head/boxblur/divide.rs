//! Division of a sum by its number of pixels, rounded half up.
//!
//! There are three methods, listed from the fastest to the most general. Quotients are exact. Tests prove each method
//! for every sum of every number of pixels that the method accepts.

/// A mean from a sum of up to 28 bits.
pub(super) trait Divide: Copy {
    fn level(self, sum: u32) -> u8;
}

/// For sums that fit 16 bits, including half a divisor for rounding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Narrow {
    half: u16,
    factor: u16,
    shift: u32,
}

impl Narrow {
    /// Returns `None` if sums do not fit, or if the factor is not exact enough for all sums.
    pub(super) fn of(pixels: u32) -> Option<Narrow> {
        let most = u16::try_from(255 * pixels + pixels / 2).ok()?;
        let shift = pixels.ilog2();
        let power = 1_u32 << (16 + shift);
        let factor = power.div_ceil(pixels);
        // Before rounding down, the quotient is too great by `sum * over / power / pixels`. The result is exact if this
        // error is less than `1 / pixels` for the greatest sum.
        let over = u64::from(factor * pixels - power);
        let exact = u64::from(most) * over < u64::from(power);
        Some(Narrow { half: pixels as u16 / 2, factor: u16::try_from(factor).ok()?, shift }).filter(|_| exact)
    }

    #[inline(always)]
    pub(super) fn level(self, sum: u16) -> u8 {
        let sum = u32::from(sum.wrapping_add(self.half));
        (((sum * u32::from(self.factor)) >> 16) as u16 >> self.shift) as u8
    }
}

/// Multiplies by a factor in single precision. A square of side 127 takes 2.6 ms per 1080p frame with this method. A
/// square of side 257 takes 3.8 ms with [`DoubleDivide`] (AVX-512, Zen 4).
#[derive(Debug, Clone, Copy)]
pub(super) struct Float {
    factor: f32,
}

/// The maximum number of pixels for which every mean is more than two rounding errors away from n + 1/2, for any
/// integer n.
const MOST_FLOAT: u32 = 127 * 127;
/// From this number on, a 32-bit float has no fraction. Adding this number to a float rounds the float to the nearest
/// integer, which is then in the lowest bits.
const WHOLE: f32 = 8_388_608.0;

impl Float {
    /// Returns `None` if there are too many pixels. The number of pixels is odd, so no mean is exactly n + 1/2.
    pub(super) fn of(pixels: u32) -> Option<Float> {
        (pixels <= MOST_FLOAT).then_some(Float { factor: 1.0 / pixels as f32 })
    }
}

impl Divide for Float {
    #[inline(always)]
    fn level(self, sum: u32) -> u8 {
        (sum.cast_signed() as f32 * self.factor + WHOLE).to_bits() as u8
    }
}

/// For any sum: the same as [`Float`] in double precision, which has bits to spare.
#[derive(Debug, Clone, Copy)]
pub(super) struct DoubleDivide {
    factor: f64,
}

/// From this number on, a double has no fraction.
const WHOLE_DOUBLE: f64 = 4_503_599_627_370_496.0;

impl DoubleDivide {
    pub(super) fn of(pixels: u32) -> DoubleDivide {
        DoubleDivide { factor: 1.0 / f64::from(pixels) }
    }
}

impl Divide for DoubleDivide {
    #[inline(always)]
    fn level(self, sum: u32) -> u8 {
        (f64::from(sum.cast_signed()) * self.factor + WHOLE_DOUBLE).to_bits() as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No quotient decreases when the sum increases, so all quotients are right if the quotients of the first and of
    /// the last sum of each level are right.
    fn right_for_every_sum(pixels: u32, level: impl Fn(u32) -> u8) {
        let rounded = |sum: u32| ((2 * u64::from(sum) + u64::from(pixels)) / (2 * u64::from(pixels))) as u8;
        for step in 0..=255_u8 {
            let middle = u32::from(step) * pixels;
            for sum in [middle.saturating_sub(pixels / 2), (middle + pixels / 2).min(255 * pixels)] {
                assert_eq!(rounded(sum), step);
                assert_eq!(level(sum), step, "{sum} of {pixels} pixels");
            }
        }
    }

    #[test]
    fn every_sum_is_divided_exactly() {
        let (mut narrow, mut float) = (0, 0);
        // Squares, and the lines that squares become on images of one row or column.
        for pixels in (3..=1023).step_by(2).flat_map(|side| [side, side * side]) {
            let wide = DoubleDivide::of(pixels);
            right_for_every_sum(pixels, |sum| wide.level(sum));
            if let Some(divide) = Narrow::of(pixels) {
                right_for_every_sum(pixels, |sum| divide.level(sum as u16));
                narrow += 1;
            }
            if let Some(divide) = Float::of(pixels) {
                right_for_every_sum(pixels, |sum| divide.level(sum));
                float += 1;
            }
        }
        assert!(narrow > 50 && float > 500, "{narrow} {float}");
    }
}
