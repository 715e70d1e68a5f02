//! The arithmetic of calibration: a line through two points, and rates from times.
//!
//! Invariant: every result is finite and above zero, however noisy the input.

use vramp_plan::{Figure, FigureOrigin};

/// A time that grows linearly with an amount: `start` at zero, plus `slope` per unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LinearFit {
    pub start: f64,
    pub slope: f64,
}

/// The shortest time that counts, in nanoseconds: figures have to be above zero.
const LEAST_NS: f64 = 1.0;

impl LinearFit {
    /// The line through two points of amount and time in nanoseconds, the smaller amount first. Start and slope are
    /// never negative: if noise makes one of the two negative, the other alone explains the times.
    pub fn through(small: (f64, f64), large: (f64, f64)) -> LinearFit {
        let [(x1, y1), (x2, y2)] = [small, large].map(|(x, y)| (x.max(1.0), y.max(LEAST_NS)));
        let slope = (y2 - y1) / (x2 - x1).max(1.0);
        if slope <= 0.0 {
            // The larger amount took no longer than the smaller amount, so the start alone explains both times.
            return LinearFit { start: y1.min(y2), slope: LEAST_NS / x2 };
        }
        let start = y1 - slope * x1;
        if start < LEAST_NS {
            return LinearFit { start: LEAST_NS, slope: y2 / x2 };
        }
        LinearFit { start, slope }
    }
}

/// The rate, in million units a second, with the least relative error over all points. A point is a number of units of
/// work and the time for this work in nanoseconds.
pub(super) fn rate(points: &[(f64, f64)]) -> f64 {
    let logs = points.iter().map(|(units, ns)| (units.max(1e-3) / ns.max(LEAST_NS)).ln());
    // Rates are in million units a second, so one unit per nanosecond is a rate of 1,000.
    let mean = logs.sum::<f64>() / points.len().max(1) as f64;
    (mean.exp() * 1e3).clamp(1e-6, 1e12)
}

/// A measured figure, rounded to four digits.
pub(super) fn measured(value: f64, how: &str) -> Figure {
    // No measured figure is precise to more than four digits.
    let digits = 4 - value.abs().log10().floor() as i32 - 1;
    let scale = 10_f64.powi(digits.clamp(-15, 15));
    let rounded = (value * scale).round() / scale;
    let value = if rounded.is_finite() && rounded > 0.0 { rounded } else { value };
    Figure { value, origin: FigureOrigin::From(format!("measured: {how}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_goes_through_both_points() {
        let line = LinearFit::through((100.0, 250.0), (1_000.0, 700.0));
        assert!((line.start - 200.0).abs() < 1e-9 && (line.slope - 0.5).abs() < 1e-9, "{line:?}");
    }

    #[test]
    fn noise_never_makes_a_figure_that_a_profile_would_refuse() {
        let times = [-5.0, 0.0, 1.0, 3.0, 1e9, f64::MIN_POSITIVE];
        for a in times {
            for b in times {
                let line = LinearFit::through((10.0, a), (1e6, b));
                assert!(line.start > 0.0 && line.start.is_finite(), "{a} {b} {line:?}");
                assert!(line.slope > 0.0 && line.slope.is_finite(), "{a} {b} {line:?}");
                let rate = rate(&[(1e6, a), (0.0, b)]);
                assert!(rate > 0.0 && rate.is_finite(), "{a} {b} {rate}");
            }
        }
    }

    #[test]
    fn a_rate_lies_in_the_middle_of_what_was_seen() {
        // One unit per nanosecond is a rate of 1,000 million units a second. An error by a factor of 4 weighs the same
        // in either direction.
        assert!((rate(&[(1e6, 1e6)]) - 1e3).abs() < 1e-6);
        assert!((rate(&[(1e6, 4e6), (1e6, 0.25e6)]) - 1e3).abs() < 1e-6);
    }

    #[test]
    fn figures_keep_four_digits_and_say_how_they_came_about() {
        assert!((measured(123_456.0, "x").value - 123_500.0).abs() < 1e-9);
        assert!((measured(0.001_234_56, "x").value - 0.001_235).abs() < 1e-12);
        assert_eq!(measured(2.0, "two runs").origin, FigureOrigin::From("measured: two runs".to_owned()));
    }
}
