//! Which positions of an axis a resized axis reads, and with which weights.
//!
//! Coordinates are computed in f32 as ONNX Runtime computes them: where a coordinate lies exactly between two positions,
//! more bits would choose another one.

#![expect(clippy::float_cmp, reason = "scales of exactly 1 change nothing")]

use vramp_tensor::network::{NetworkBuilder, Taps};

use super::error::{Fault, problem};
use super::node::{limited, signed};

/// The settings of a resize that hold for all axes.
#[derive(Debug, Clone, Copy)]
pub(super) struct ResizeRules {
    pub(super) mode: ResizeMode,
    pub(super) coordinates: Coordinates,
    pub(super) nearest: Nearest,
    pub(super) cubic_coefficient: f32,
    pub(super) excludes_outside: bool,
    pub(super) antialias: bool,
    /// The value outside of a cropped region.
    pub(super) extrapolation: f32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResizeMode {
    Nearest,
    Linear,
    Cubic,
}

/// How a position of the output becomes a coordinate of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Coordinates {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    Crop,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nearest {
    RoundPreferFloor,
    RoundPreferCeil,
    Floor,
    Ceil,
    /// As before opset 11: up when the axis shrinks, otherwise down.
    Simple,
}

/// One axis of a resize.
#[derive(Debug, Clone, Copy)]
pub(super) struct AxisResize {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) scale: f32,
    /// Start and end of the region, as shares of the axis.
    pub(super) region: (f32, f32),
}

/// The largest table of an axis, in values.
const MOST_TAPS: usize = 1 << 26;

impl AxisResize {
    /// True if every value stays where it is.
    pub(super) fn is_identity(&self, rules: &ResizeRules) -> bool {
        self.from == self.to && self.scale == 1.0 && rules.coordinates != Coordinates::Crop
    }

    /// The coordinate that an output position reads; `None` outside of a cropped region.
    fn coordinate(&self, coordinates: Coordinates, at: usize) -> Option<f32> {
        let (x, length, scale) = (at as f32, self.from as f32, self.scale);
        // The length before rounding, which a scale may make a fraction.
        let wide = scale * length;
        Some(match coordinates {
            Coordinates::HalfPixel => (x + 0.5) / scale - 0.5,
            Coordinates::PytorchHalfPixel if self.to > 1 => (x + 0.5) / scale - 0.5,
            Coordinates::PytorchHalfPixel => 0.0,
            Coordinates::Asymmetric => x / scale,
            Coordinates::AlignCorners if wide == 1.0 || self.to == 1 => 0.0,
            Coordinates::AlignCorners => x * (length - 1.0) / (wide - 1.0),
            Coordinates::HalfPixelSymmetric => {
                let offset = length / 2.0 * (1.0 - self.to as f32 / wide);
                offset + (x + 0.5) / scale - 0.5
            }
            Coordinates::Crop => {
                let (start, end) = self.region;
                let found = if self.to == 1 {
                    (start + end) * (length - 1.0) / 2.0
                } else {
                    start * (length - 1.0) + x * (end - start) * (length - 1.0) / (self.to as f32 - 1.0)
                };
                return (0.0..=length - 1.0).contains(&found).then_some(found);
            }
        })
    }

    /// The table of the axis.
    pub(super) fn taps(&self, rules: &ResizeRules, b: &mut NetworkBuilder) -> Result<Taps, Fault> {
        let support = match rules.mode {
            ResizeMode::Nearest => 0.0,
            ResizeMode::Linear => 1.0,
            ResizeMode::Cubic => 2.0,
        };
        // Antialiasing widens the kernel when the axis shrinks.
        let squeeze = if rules.antialias && rules.mode != ResizeMode::Nearest { self.scale.min(1.0) } else { 1.0 };
        let reach = (support / squeeze).ceil() as usize;
        let per = reach.saturating_mul(2).max(1);
        let count = self.to.saturating_mul(per);
        if count > MOST_TAPS {
            return problem(format!("{} positions that read {per} values each are too many", self.to));
        }
        // All positions have room for as many taps; most kernels use it.
        b.claim_known("resample", count.saturating_mul(2))?;
        let (mut positions, mut weights) = (vec![0; count], vec![0.0; count]);
        let (mut most, mut is_outside) = (1, false);
        for (at, (positions, weights)) in positions.chunks_mut(per).zip(weights.chunks_mut(per)).enumerate() {
            let mut row = TapRow { positions, weights, count: 0 };
            match self.coordinate(rules.coordinates, at) {
                Some(x) if rules.mode == ResizeMode::Nearest => row.add(self.nearest(rules.nearest, x), 1.0),
                Some(x) => self.weigh(rules, x, squeeze, reach, &mut row),
                None => {
                    is_outside = true;
                    // The first tap of a position outside counts in full.
                    row.add(-1, 1.0);
                }
            }
            most = most.max(row.count);
            row.fill();
        }
        if most < per {
            // Narrower rows move together.
            for at in 0..self.to {
                positions.copy_within(at * per..at * per + most, at * most);
                weights.copy_within(at * per..at * per + most, at * most);
            }
            positions.truncate(self.to * most);
            weights.truncate(self.to * most);
        }
        Ok(Taps { positions, weights, per: most, outside: is_outside.then_some(rules.extrapolation) })
    }

    fn nearest(&self, nearest: Nearest, x: f32) -> i32 {
        let at = match nearest {
            Nearest::RoundPreferFloor => (x - 0.5).ceil(),
            Nearest::RoundPreferCeil => (x + 0.5).floor(),
            Nearest::Simple if self.scale < 1.0 => x.ceil(),
            Nearest::Floor | Nearest::Simple => x.floor(),
            Nearest::Ceil => x.ceil(),
        };
        at.clamp(0.0, self.from as f32 - 1.0) as i32
    }

    /// The positions around a coordinate with their weights, joined at the ends of the axis.
    fn weigh(&self, rules: &ResizeRules, x: f32, squeeze: f32, reach: usize, taps: &mut TapRow<'_>) {
        let below = x.floor();
        let (last, reach) = (signed(self.from) - 1, signed(reach));
        let at = |tap: i64| (below as i64).saturating_add(tap);
        let inside = |position: i64| limited(position.clamp(0, last));
        let mut sum = 0.0_f64;
        for tap in 1 - reach..=reach {
            let distance = (tap as f32 - (x - below)).abs() * squeeze;
            let weight = match rules.mode {
                ResizeMode::Cubic => cubic(distance, rules.cubic_coefficient),
                _ => (1.0 - distance).max(0.0),
            };
            let position = at(tap);
            let is_outside = position < 0 || position > last;
            if weight == 0.0 || (is_outside && rules.excludes_outside) {
                continue;
            }
            sum += f64::from(weight);
            taps.add(inside(position), weight);
        }
        if taps.count == 0 {
            return taps.add(inside(at(0)), 1.0);
        }
        if squeeze < 1.0 || rules.excludes_outside {
            for weight in &mut taps.weights[..taps.count] {
                *weight = (f64::from(*weight) / sum) as f32;
            }
        }
    }
}

/// The taps of one position. Positions rise, so equal ones are neighbours.
struct TapRow<'a> {
    positions: &'a mut [i32],
    weights: &'a mut [f32],
    count: usize,
}

impl TapRow<'_> {
    fn add(&mut self, position: i32, weight: f32) {
        match self.count.checked_sub(1) {
            Some(last) if self.positions[last] == position => self.weights[last] += weight,
            _ => {
                self.positions[self.count] = position;
                self.weights[self.count] = weight;
                self.count += 1;
            }
        }
    }

    /// The rest of the row repeats a position that is read anyway, without weight.
    fn fill(&mut self) {
        let last = self.positions[self.count - 1];
        self.positions[self.count..].fill(last);
        self.weights[self.count..].fill(0.0);
    }
}

/// The cubic kernel at a distance; `a` is its coefficient.
fn cubic(distance: f32, a: f32) -> f32 {
    let (x, x2) = (distance, distance * distance);
    let x3 = x2 * x;
    if x <= 1.0 {
        (a + 2.0) * x3 - (a + 3.0) * x2 + 1.0
    } else if x < 2.0 {
        a * x3 - 5.0 * a * x2 + 8.0 * a * x - 4.0 * a
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn builder() -> NetworkBuilder {
        NetworkBuilder::new(&vramp_tensor::Context::on_host())
    }

    fn rules(mode: ResizeMode, coordinates: Coordinates) -> ResizeRules {
        ResizeRules {
            mode,
            coordinates,
            nearest: Nearest::RoundPreferFloor,
            cubic_coefficient: -0.75,
            excludes_outside: false,
            antialias: false,
            extrapolation: 0.0,
        }
    }

    #[test]
    fn a_doubled_axis_reads_its_neighbours_with_quarters() {
        let axis = AxisResize { from: 2, to: 4, scale: 2.0, region: (0.0, 1.0) };
        let taps = axis.taps(&rules(ResizeMode::Linear, Coordinates::HalfPixel), &mut builder()).unwrap();
        assert_eq!((taps.per, taps.outside), (2, None));
        assert_eq!(taps.positions, [0, 0, 0, 1, 0, 1, 1, 1]);
        assert_eq!(taps.weights, [1.0, 0.0, 0.75, 0.25, 0.25, 0.75, 1.0, 0.0]);
    }

    #[test]
    fn the_weights_of_every_position_sum_to_one() {
        for mode in [ResizeMode::Linear, ResizeMode::Cubic] {
            for (antialias, excludes_outside) in [(false, false), (true, false), (true, true), (false, true)] {
                let axis = AxisResize { from: 11, to: 4, scale: 4.0 / 11.0, region: (0.0, 1.0) };
                let rules = ResizeRules { excludes_outside, antialias, ..rules(mode, Coordinates::HalfPixel) };
                let taps = axis.taps(&rules, &mut builder()).unwrap();
                for weights in taps.weights.chunks(taps.per) {
                    assert!((weights.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{mode:?} {weights:?}");
                }
            }
        }
    }

    #[test]
    fn positions_outside_of_a_crop_have_the_extrapolated_value() {
        let axis = AxisResize { from: 4, to: 3, scale: 0.75, region: (0.5, 1.5) };
        let rules = ResizeRules { extrapolation: 10.0, ..rules(ResizeMode::Linear, Coordinates::Crop) };
        let taps = axis.taps(&rules, &mut builder()).unwrap();
        assert_eq!(taps.outside, Some(10.0));
        assert!(taps.positions[2 * taps.per..].iter().all(|position| *position == -1), "{taps:?}");
    }
}
