//! A chart of figures over the time of a run, with marks for events.

use std::fmt::Write as _;

use super::tick_labels;
use crate::figures::{px, ticks, time};
use crate::markup::Markup;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// A line of a chart.
pub(crate) struct Series {
    /// The colour, as a class of the style sheet.
    pub(crate) class: &'static str,
    pub(crate) name: String,
    /// Times in nanoseconds and values.
    pub(crate) points: Vec<(f64, f64)>,
    /// Whether the area below the line is filled.
    pub(crate) filled: bool,
}

pub(crate) struct Chart<'a> {
    pub(crate) title: &'a str,
    pub(crate) series: Vec<Series>,
    /// Writes a value of the vertical axis.
    pub(crate) unit: fn(f64) -> String,
    /// The end of the horizontal axis.
    pub(crate) to_ns: f64,
    /// Times of marks, with their words.
    pub(crate) marks: &'a [(f64, String)],
}

impl Chart<'_> {
    pub(crate) fn draw(&self, page: &mut Markup) {
        let values = || self.series.iter().flat_map(|series| &series.points).map(|(_, value)| *value);
        let most = values().fold(0.0, f64::max);
        let most = if most > 0.0 { most * 1.08 } else { 1.0 };
        let to_ns = self.to_ns.max(1.0);
        page.element("figure", &[("class", "chart")], |page| {
            page.element("figcaption", &[], |page| {
                page.words("strong", &[], self.title);
                for series in &self.series {
                    let class = format!("key {}", series.class);
                    page.words("span", &[("class", &class)], &series.name);
                }
            });
            page.element("div", &[("class", "plot")], |page| {
                let steps = ticks(most, 4);
                page.element("div", &[("class", "levels")], |page| {
                    for level in &steps {
                        let style = format!("bottom:{}%", px(level / most * 100.0));
                        page.words("span", &[("style", &style)], &(self.unit)(*level));
                    }
                });
                let view = format!("0 0 {WIDTH} {HEIGHT}");
                let attributes = [
                    ("viewBox", view.as_str()),
                    ("preserveAspectRatio", "none"),
                    ("role", "img"),
                    ("aria-label", self.title),
                ];
                page.element("svg", &attributes, |page| {
                    let mut grid = String::new();
                    for level in &steps {
                        let _ = write!(grid, "M0 {}H{WIDTH}", px(HEIGHT - level / most * HEIGHT));
                    }
                    page.empty("path", &[("class", "grid"), ("d", &grid)]);
                    for series in &self.series {
                        let line = line(&series.points, to_ns, most);
                        if let Some((first, _)) = series.points.first().filter(|_| series.filled) {
                            let area = format!("{line}V{HEIGHT}H{}Z", px(first / to_ns * WIDTH));
                            let class = format!("area {}", series.class);
                            page.empty("path", &[("class", &class), ("d", &area)]);
                        }
                        let class = format!("line {}", series.class);
                        page.empty("path", &[("class", &class), ("d", &line)]);
                    }
                    for (at, words) in self.marks {
                        let way = format!("M{} 0V{HEIGHT}", px((at / to_ns).clamp(0.0, 1.0) * WIDTH));
                        page.empty("path", &[("class", "mark"), ("d", &way), ("data-tip", words)]);
                    }
                });
            });
            let words = |step: f64| if step == 0.0 { "0".to_owned() } else { trimmed(step) };
            tick_labels(page, "ticks inset", ticks(to_ns, 5).into_iter().map(|step| (step / to_ns, words(step))));
        });
    }
}

/// A time without trailing zeros.
pub(crate) fn trimmed(ns: f64) -> String {
    let text = time(ns);
    match text.split_once(' ') {
        Some((value, unit)) if value.contains('.') => {
            format!("{} {unit}", value.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

fn line(points: &[(f64, f64)], to_ns: f64, most: f64) -> String {
    let mut way = String::new();
    for (at, value) in points {
        let command = if way.is_empty() { 'M' } else { 'L' };
        let (x, y) = (px(at / to_ns * WIDTH), px(HEIGHT - value / most * HEIGHT));
        let _ = write!(way, "{command}{x} {y}");
    }
    way
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_an_axis_have_no_trailing_zeros() {
        assert_eq!([2e8, 2.5e9, 1e9, 1.5e6].map(trimmed), ["200 ms", "2.5 s", "1 s", "1.5 ms"]);
    }
}
