//! Histograms of times on a logarithmic axis, which all rows of a table share.

use std::fmt::Write as _;

use vramp_runtime::observe::TimeDistribution;

use super::tick_labels;
use crate::figures::{grouped, px, time};
use crate::markup::Markup;

/// The times that an axis covers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TimeAxis {
    from_ns: f64,
    to_ns: f64,
}

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

impl TimeAxis {
    /// The axis that shows all of these times, from one power of ten to another; `None` if there are none.
    pub(crate) fn of(times: impl Iterator<Item = f64>) -> Option<TimeAxis> {
        let (mut least, mut most) = (f64::MAX, f64::MIN);
        for ns in times.filter(|ns| *ns > 0.0) {
            (least, most) = (least.min(ns), most.max(ns));
        }
        if least > most {
            return None;
        }
        let from_ns = 10_f64.powf(least.log10().floor()).max(10.0);
        let to_ns = 10_f64.powf(most.log10().ceil()).max(from_ns * 10.0);
        Some(TimeAxis { from_ns, to_ns })
    }

    /// The position of a time, from 0 to 1.
    pub(crate) fn at(&self, ns: f64) -> f64 {
        ((ns / self.from_ns).log10() / (self.to_ns / self.from_ns).log10()).clamp(0.0, 1.0)
    }

    /// The powers of ten.
    pub(crate) fn ticks(&self) -> Vec<f64> {
        let count = (self.to_ns / self.from_ns).log10().round() as i32;
        (0..=count).map(|power| self.from_ns * 10_f64.powi(power)).collect()
    }

    /// The labels of the axis, as HTML.
    pub(crate) fn labels(&self, page: &mut Markup) {
        tick_labels(page, "ticks", self.ticks().into_iter().map(|tick| (self.at(tick), short(tick))));
    }
}

/// A power of ten without decimals.
fn short(ns: f64) -> String {
    match ns {
        ns if ns < 999.0 => format!("{ns:.0} ns"),
        ns if ns < 999e3 => format!("{:.0} µs", ns / 1e3),
        ns if ns < 999e6 => format!("{:.0} ms", ns / 1e6),
        ns => format!("{:.0} s", ns / 1e9),
    }
}

/// Draws the bars of a distribution, its median, and the planned time if there is one.
pub(crate) fn draw(page: &mut Markup, axis: &TimeAxis, times: &TimeDistribution, planned_ns: Option<u64>) {
    let view = format!("0 0 {WIDTH} {HEIGHT}");
    let label = words(times);
    let attributes = [
        ("class", "histogram"),
        ("viewBox", view.as_str()),
        ("preserveAspectRatio", "none"),
        ("role", "img"),
        ("aria-label", &label),
        ("data-tip", &label),
    ];
    page.element("svg", &attributes, |page| {
        let mut grid = String::new();
        for tick in axis.ticks() {
            let _ = write!(grid, "M{} 0V{HEIGHT}", px(axis.at(tick) * WIDTH));
        }
        page.empty("path", &[("class", "grid"), ("d", &grid)]);
        page.empty("path", &[("class", "bars"), ("d", &bars(axis, times))]);
        let line = |ns: f64| format!("M{0} 0V{HEIGHT}", px(axis.at(ns) * WIDTH));
        if let Some(planned) = planned_ns.filter(|ns| *ns > 0) {
            page.empty("path", &[("class", "planned"), ("d", &line(planned as f64))]);
        }
        if let Some(p50) = times.p50_ns {
            page.empty("path", &[("class", "median"), ("d", &line(p50 as f64))]);
        }
    });
}

/// Bars of equal area for equal counts would hide rare slow calls, so the height is the square root of the share.
fn bars(axis: &TimeAxis, times: &TimeDistribution) -> String {
    let most = times.buckets.iter().map(|bucket| bucket.count).max().unwrap_or(0).max(1) as f64;
    let mut way = String::new();
    for bucket in &times.buckets {
        let (left, right) = (axis.at(bucket.from_ns as f64) * WIDTH, axis.at(bucket.to_ns as f64) * WIDTH);
        let height = (bucket.count as f64 / most).sqrt() * (HEIGHT - 8.0);
        let _ = write!(
            way,
            "M{} {HEIGHT}V{}H{}V{HEIGHT}Z",
            px(left + 0.5),
            px(HEIGHT - height),
            px((right - 0.5).max(left + 1.5))
        );
    }
    way
}

/// A distribution in words.
pub(crate) fn words(times: &TimeDistribution) -> String {
    let (Some(p50), Some(p99)) = (times.p50_ns, times.p99_ns) else { return "no times measured".to_owned() };
    format!(
        "{} times: p50 {}, p99 {}, longest {}",
        grouped(times.count),
        time(p50 as f64),
        time(p99 as f64),
        time(times.max_ns as f64)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_covers_its_times_with_whole_powers_of_ten() {
        let axis = TimeAxis::of([2_300.0, 45_000_000.0].into_iter()).unwrap();
        assert_eq!(
            axis.ticks().iter().map(|tick| short(*tick)).collect::<Vec<_>>(),
            ["1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms"]
        );
        assert_eq!((axis.at(1_000.0), axis.at(1e8), axis.at(1.0)), (0.0, 1.0, 0.0));
        assert!((axis.at(1e5) - 0.4).abs() < 1e-9);
        assert!(TimeAxis::of([0.0].into_iter()).is_none());
        assert_eq!(TimeAxis::of([1_000.0].into_iter()).unwrap().ticks().len(), 2);
    }
}
