//! The taps and weights of every pixel along one axis, for each filter.
//!
//! The weights of a pixel have exactly the sum one. Taps outside the image are dropped, and the other weights are
//! scaled to the sum one. Weights are wide if results with 16-bit weights could be about half a level off, or if a
//! pixel has more than `MOST_TAPS` taps.

/// A resampling filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResampleFilter {
    /// Weighs each source pixel by the share of it that the new pixel covers.
    Area,
    /// A windowed sinc of three lobes. If the image shrinks by a factor, the filter is widened by the same factor.
    Lanczos,
}

/// Fraction bits of narrow weights: one is 2^14, so that weights up to two fit 16 bits.
pub const NARROW_BITS: u32 = 14;
/// Fraction bits of wide weights: the maximum with which sums of levels fit 32 bits, if levels are counted from the
/// middle.
pub const WIDE_BITS: u32 = 23;
/// The maximum number of taps with narrow weights.
pub(crate) const MOST_TAPS: usize = 192;
/// The maximum error of narrow weights along one axis, in levels.
const MOST_OFF: f64 = 0.45;

/// The taps of every pixel along one axis.
#[derive(Debug)]
pub(crate) struct ResampleAxis {
    /// The taps of each pixel. The position of the first tap never decreases from pixel to pixel.
    pixels: Vec<AxisTaps<i32>>,
    pub(crate) wide: bool,
}

impl ResampleAxis {
    /// The axis for `to` pixels, computed from `from` pixels.
    pub(crate) fn of(filter: ResampleFilter, from: u32, to: u32) -> ResampleAxis {
        let exact: Vec<AxisTaps<f64>> = (0..to).map(|at| filter.taps(from, to, at)).collect();
        let (narrow, off) = ResampleAxis::rounded(&exact, NARROW_BITS);
        if off * filter.most_away() <= MOST_OFF && narrow.taps() <= MOST_TAPS {
            return narrow;
        }
        ResampleAxis { wide: true, ..ResampleAxis::rounded(&exact, WIDE_BITS).0 }
    }

    /// The weights as integers, and the maximum total error of a pixel's weights. Each weight compensates for the
    /// rounding error of the weight before it, so that the sum is one.
    fn rounded(exact: &[AxisTaps<f64>], fraction_bits: u32) -> (ResampleAxis, f64) {
        let one = f64::from(1 << fraction_bits);
        let mut most_off = 0.0;
        let mut pixels: Vec<AxisTaps<i32>> = Vec::with_capacity(exact.len());
        for taps in exact {
            let (mut left_over, mut off) = (0.0, 0.0);
            let whole = taps.weights.iter().map(|weight| {
                let wanted = weight * one + left_over;
                let whole = wanted.round_ties_even();
                left_over = wanted - whole;
                off += (whole - weight * one).abs() / one;
                whole as i32
            });
            let weights: Vec<i32> = whole.collect();
            most_off = f64::max(most_off, off);
            // Taps without weight at both ends are left out.
            let without = weights.iter().take_while(|weight| **weight == 0).count();
            let end = weights.iter().rposition(|weight| *weight != 0).map_or(without, |last| last + 1);
            pixels.push(AxisTaps { first: taps.first + without as u32, weights: weights[without..end].to_vec() });
        }
        // The positions of first taps must not decrease. If the first tap of a pixel is to the right of the next
        // pixel's first tap, zero weights are prepended to the former pixel.
        for at in (1..pixels.len()).rev() {
            let next = pixels[at].first;
            let AxisTaps { first, weights } = &mut pixels[at - 1];
            weights.splice(..0, (next..*first).map(|_| 0));
            *first = next.min(*first);
        }
        (ResampleAxis { pixels, wide: false }, most_off)
    }

    /// The maximum number of taps of a pixel.
    fn taps(&self) -> usize {
        self.pixels.iter().map(|taps| taps.weights.len()).max().unwrap_or(0)
    }

    /// Words of weights per pixel.
    pub(crate) fn words(&self) -> usize {
        if self.wide { self.taps() } else { self.taps().div_ceil(2) }
    }

    /// Appends the first tap of each pixel, then the words of weights: one weight per word if weights are wide,
    /// otherwise two.
    pub(crate) fn lay_out(&self, small: &mut Vec<u32>) {
        small.extend(self.pixels.iter().map(|taps| taps.first));
        let words = self.words();
        for AxisTaps { weights, .. } in &self.pixels {
            let weight = |tap: usize| weights.get(tap).map_or(0, |weight| weight.cast_unsigned());
            let two = |word: usize| (weight(2 * word) & 0xffff) | (weight(2 * word + 1) << 16);
            small.extend((0..words).map(|word| if self.wide { weight(word) } else { two(word) }));
        }
    }
}

/// The taps of one pixel, whose weights have the sum one.
#[derive(Debug)]
struct AxisTaps<W> {
    first: u32,
    weights: Vec<W>,
}

impl ResampleFilter {
    /// The maximum distance of a weighted sum of levels from the middle. The absolute weights of Lanczos add up to at
    /// most 1.58, which they reach when an image grows.
    fn most_away(self) -> f64 {
        match self {
            ResampleFilter::Area => 128.0,
            ResampleFilter::Lanczos => 1.6 * 128.0,
        }
    }

    /// The maximum number of taps of a pixel, which is also the maximum number of words of its weights.
    pub(super) fn most_taps(self, from: u32, to: u32) -> u64 {
        let shrinks = f64::from(from) / f64::from(to);
        let wide = match self {
            ResampleFilter::Area => shrinks.ceil() as u64 + 1,
            ResampleFilter::Lanczos => (2.0 * LOBES * shrinks.max(1.0)).ceil() as u64 + 1,
        };
        wide.min(from.into())
    }

    fn taps(self, from: u32, to: u32, at: u32) -> AxisTaps<f64> {
        match self {
            ResampleFilter::Area => area(from, to, at),
            ResampleFilter::Lanczos => lanczos(from, to, at),
        }
    }
}

/// The taps of one pixel. A source pixel counts as `to` long and a new pixel as `from` long, so that all covered
/// lengths are integers.
fn area(from: u32, to: u32, at: u32) -> AxisTaps<f64> {
    let (long, short) = (u64::from(from), u64::from(to));
    let (begin, end) = (u64::from(at) * long, (u64::from(at) + 1) * long);
    let first = begin / short;
    let covered = |pixel: u64| end.min((pixel + 1) * short) - begin.max(pixel * short);
    let weights = (first..end.div_ceil(short)).map(|pixel| covered(pixel) as f64 / f64::from(from)).collect();
    AxisTaps { first: first as u32, weights }
}

/// Lobes on each side.
const LOBES: f64 = 3.0;

/// The taps of one pixel around its centre in the source. Only taps inside the image are used, and their weights are
/// scaled to the sum one.
fn lanczos(from: u32, to: u32, at: u32) -> AxisTaps<f64> {
    let scale = f64::from(from) / f64::from(to);
    let (centre, wider) = ((f64::from(at) + 0.5) * scale, scale.max(1.0));
    let first = (centre - LOBES * wider - 0.5).ceil().max(0.0) as u32;
    let end = ((centre + LOBES * wider - 0.5).floor() as u32).min(from - 1) + 1;
    let bell = |pixel: u32| lobes((f64::from(pixel) + 0.5 - centre) / wider);
    let mut weights: Vec<f64> = (first..end).map(bell).collect();
    let sum: f64 = weights.iter().sum();
    for weight in &mut weights {
        *weight /= sum;
    }
    AxisTaps { first, weights }
}

/// sinc(x) sinc(x / 3) for x between -3 and 3, otherwise 0.
fn lobes(x: f64) -> f64 {
    let angle = std::f64::consts::PI * x;
    match x.abs() {
        x if x < 1e-9 => 1.0,
        x if x >= LOBES => 0.0,
        _ => LOBES * angle.sin() * (angle / LOBES).sin() / (angle * angle),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sides() -> impl Iterator<Item = (u32, u32)> {
        let sides = [1, 2, 3, 4, 5, 7, 16, 17, 100, 101, 640, 1080, 65_536];
        sides.into_iter().flat_map(move |from| sides.map(|to| (from, to)))
    }

    #[test]
    fn weights_come_to_one_at_every_pixel_and_lie_within_the_source() {
        for filter in [ResampleFilter::Area, ResampleFilter::Lanczos] {
            for (from, to) in sides() {
                let axis = ResampleAxis::of(filter, from, to);
                let one = 1 << if axis.wide { WIDE_BITS } else { NARROW_BITS };
                assert!(
                    axis.pixels.is_sorted_by_key(|taps| taps.first) && axis.pixels.len() == to as usize,
                    "{filter:?} {from} {to}"
                );
                for AxisTaps { first, weights } in &axis.pixels {
                    assert_eq!(weights.iter().sum::<i32>(), one, "{filter:?} {from} {to}");
                    assert!(*first as usize + weights.len() <= from as usize, "{filter:?} {from} {to}");
                    let without_signs: i64 = weights.iter().map(|weight| i64::from(weight.abs())).sum();
                    assert!(without_signs as f64 <= 1.6 * f64::from(one), "{filter:?} {from} {to}");
                    assert!(axis.wide || weights.iter().all(|weight| i16::try_from(*weight).is_ok()));
                }
            }
        }
    }

    #[test]
    fn the_same_size_is_one_tap_and_twice_as_many_taps_as_lobes_are_enough_to_grow() {
        for filter in [ResampleFilter::Area, ResampleFilter::Lanczos] {
            let same = ResampleAxis::of(filter, 77, 77);
            assert!(same.taps() == 1 && same.pixels.iter().map(|taps| taps.first).eq(0..77));
        }
        assert_eq!(ResampleAxis::of(ResampleFilter::Lanczos, 77, 200).taps(), 6);
        assert_eq!(
            (
                ResampleAxis::of(ResampleFilter::Area, 77, 200).taps(),
                ResampleAxis::of(ResampleFilter::Area, 77, 154).taps()
            ),
            (2, 1)
        );
    }

    #[test]
    fn weights_are_wide_only_where_narrow_ones_could_be_off() {
        for (filter, from, to, wide) in [
            (ResampleFilter::Area, 1920, 1280, false),
            (ResampleFilter::Area, 1920, 20, false),
            (ResampleFilter::Area, 4000, 1, true),
            (ResampleFilter::Lanczos, 4000, 300, false),
            (ResampleFilter::Lanczos, 4000, 4, true),
        ] {
            assert_eq!(ResampleAxis::of(filter, from, to).wide, wide, "{filter:?} {from} {to}");
        }
    }
}
