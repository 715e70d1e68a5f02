//! The graph, in a pane that scrolls and zooms.

use super::section;
use crate::draw;
use crate::markup::Markup;
use crate::page::Page;
use crate::units::UnitFigures;

/// Buttons: what they do, in words, and their signs.
const ZOOM: [(&str, &str, &str); 4] = [
    ("out", "smaller", "−"),
    ("in", "larger", "+"),
    ("whole", "the whole graph", "all"),
    ("one", "original size", "1:1"),
];

/// The width of the drawing on a desk and on a phone.
const WIDE: f64 = 1150.0;
const NARROW: f64 = 352.0;

pub(crate) fn write(page: &mut Markup, about: &Page, units: &[UnitFigures<'_>]) {
    let (plan, report) = (&about.plan, about.run.as_ref().map(|run| &run.report));
    let words = if report.is_some() {
        "Planned and measured time per frame. The bar below a box is its share of the measured time of all boxes."
    } else {
        "Planned time per frame."
    };
    section(page, "Graph", words, |page| {
        page.element("div", &[("class", "legend")], |page| {
            for (class, name) in [("cpu", "cpu"), ("gpu", "gpu"), ("transfer", "transfer"), ("fused", "fused kernel")] {
                let class = format!("key-box {class}");
                page.words("span", &[("class", &class)], name);
            }
            page.element("span", &[("class", "zoom"), ("hidden", "hidden")], |page| {
                for (act, label, sign) in ZOOM {
                    let attributes = [("type", "button"), ("data-zoom", act), ("title", label), ("aria-label", label)];
                    page.words("button", &attributes, sign);
                }
            });
        });
        page.element("div", &[("class", "pane"), ("tabindex", "0")], |page| {
            draw::graph::draw(page, plan, units, report, ("graph wide", WIDE));
            draw::graph::draw(page, plan, units, report, ("graph narrow", NARROW));
        });
    });
}
