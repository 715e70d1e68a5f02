//! The drawings of a page, as SVG: the graph, histograms, series over time, and timelines.
//!
//! Charts are stretched to the width of the page, whatever this is; their labels are HTML beside them, so that text keeps
//! its size. The graph has a width for desks and one for phones.

pub(crate) mod boxes;
pub(crate) mod chart;
pub(crate) mod graph;
pub(crate) mod histogram;
pub(crate) mod spans;

use crate::figures::px;
use crate::markup::Markup;

/// The labels of a horizontal axis, at positions from 0 to 1. Labels at the ends stay inside the axis.
fn tick_labels(page: &mut Markup, class: &str, labels: impl Iterator<Item = (f64, String)>) {
    page.element("div", &[("class", class)], |page| {
        for (at, words) in labels {
            let style = format!("left:{}%", px(at * 100.0));
            let class = match at {
                at if at < 0.04 => "first",
                at if at > 0.94 => "last",
                _ => "",
            };
            page.words("span", &[("class", class), ("style", &style)], &words);
        }
    });
}
