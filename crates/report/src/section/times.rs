//! The times of every unit: planned, measured, and their distribution; then the times of whole frames.

use vramp_runtime::observe::TimeDistribution;

use super::section;
use crate::draw::histogram::{self, TimeAxis};
use crate::figures::{counted, cut, grouped, ms, percent};
use crate::markup::Markup;
use crate::page::{Page, RunPart};
use crate::units::{Measured, UnitFigures};

pub(crate) fn write(page: &mut Markup, about: &Page, units: &[UnitFigures<'_>]) {
    match &about.run {
        Some(run) => {
            measured(page, units);
            frames(page, run);
        }
        None => planned(page, units),
    }
}

fn measured(page: &mut Markup, units: &[UnitFigures<'_>]) {
    let times = units.iter().filter_map(|own| own.times);
    let planned = units.iter().map(|own| own.planned_ns as f64);
    let ends =
        times.flat_map(|times| times.buckets.iter().flat_map(|own| [own.from_ns as f64, own.to_ns as f64 - 1.0]));
    let axis = TimeAxis::of(ends.chain(planned.filter(|ns| *ns >= 100.0)));
    let words = "Each row is a handler, a fused kernel or a transfer, slowest first. Bars show how often a call took how \
                 long, on a logarithmic axis, with the square root of the count as height. The solid line is the median, \
                 the dashed line the plan. The mean is that of the report.";
    let unknown = units.iter().filter(|own| own.is_unknown()).count() as u64;
    section(page, "Time per handler", words, |page| {
        if unknown > 0 {
            let rows = counted(unknown, "row");
            let words = format!("The device gave no time of its own for {rows}; shares are those of the other rows.");
            page.words("p", &[("class", "about")], &words);
        }
        let mut order: Vec<&UnitFigures<'_>> = units.iter().collect();
        let share = |own: &UnitFigures<'_>| own.measured.share().unwrap_or(-1.0);
        order.sort_by(|one, two| share(two).total_cmp(&share(one)));
        page.element("div", &[("class", "times")], |page| {
            page.element("div", &[("class", "row head")], |page| {
                for name in ["handlers", "plan", "mean", "p50", "p99", "calls", "share"] {
                    page.words("span", &[], name);
                }
                page.element("span", &[], |page| axis.iter().for_each(|axis| axis.labels(page)));
            });
            for own in order {
                row(page, own, axis.as_ref());
            }
        });
    });
}

fn row(page: &mut Markup, own: &UnitFigures<'_>, axis: Option<&TimeAxis>) {
    let class = if own.unit.transfer.is_some() { "transfer".to_owned() } else { own.space.to_string() };
    let class = format!("row {class}");
    page.element("div", &[("class", &class)], |page| {
        let name = own.name.replace('+', " + ");
        page.words("span", &[("class", "who"), ("title", &name)], &cut(&name, 120));
        let known = |ns: Option<u64>| ns.map_or_else(|| "–".to_owned(), |ns| ms(ns as f64));
        let (mean, calls, share) = match own.measured {
            Measured::Nothing => ("–".to_owned(), "0".to_owned(), "–".to_owned()),
            Measured::Alone(time) => (ms(time.mean_us * 1e3), grouped(time.calls), percent(time.share)),
            Measured::Together(time) => {
                (format!("in {}", ms(time.mean_us * 1e3)), grouped(time.calls), "shared".to_owned())
            }
        };
        let (p50, p99) = (own.times.and_then(|own| own.p50_ns), own.times.and_then(|own| own.p99_ns));
        let cells = [
            ("plan", ms(own.planned_ns as f64)),
            ("mean", mean),
            ("p50", known(p50)),
            ("p99", known(p99)),
            ("calls", calls),
            ("share", share),
        ];
        for (name, cell) in &cells {
            page.words("span", &[("class", "cell"), ("data-name", name)], cell);
        }
        page.element("span", &[("class", "drawn")], |page| {
            if let (Some(axis), Some(times)) = (axis, own.times.filter(|times| times.count > 0)) {
                histogram::draw(page, axis, times, Some(own.planned_ns));
            }
        });
    });
    page.line();
}

/// The distributions of whole frames.
fn frames(page: &mut Markup, run: &RunPart) {
    let distributions = &run.record.distributions;
    let both = [
        ("Time between frames at the sinks", &distributions.frame),
        ("Latency, from source to sink", &distributions.latency),
    ];
    if both.iter().all(|(_, times)| times.count == 0) {
        return;
    }
    section(page, "Whole frames", "", |page| {
        page.element("div", &[("class", "two")], |page| {
            for (title, times) in both.iter().filter(|(_, times)| times.count > 0) {
                page.element("figure", &[("class", "chart")], |page| {
                    page.element("figcaption", &[], |page| {
                        page.words("strong", &[], title);
                        page.words("span", &[("class", "faint")], &histogram::words(times));
                    });
                    if let Some(axis) = own_axis(times) {
                        page.element("div", &[("class", "tall")], |page| histogram::draw(page, &axis, times, None));
                        axis.labels(page);
                    }
                });
            }
        });
    });
}

fn own_axis(times: &TimeDistribution) -> Option<TimeAxis> {
    TimeAxis::of(times.buckets.iter().flat_map(|own| [own.from_ns as f64, own.to_ns as f64 - 1.0]))
}

/// Planned costs as bars, for a plan that has not run.
fn planned(page: &mut Markup, units: &[UnitFigures<'_>]) {
    let most = units.iter().map(|own| own.planned_ns).max().unwrap_or(0).max(1) as f64;
    let words = "Most expensive first, with the cost on the other side, without transfers.";
    section(page, "Planned time per handler", words, |page| {
        let mut order: Vec<&UnitFigures<'_>> = units.iter().collect();
        order.sort_by_key(|own| std::cmp::Reverse(own.planned_ns));
        page.element("div", &[("class", "times planned-only")], |page| {
            for own in order {
                let class = if own.unit.transfer.is_some() { "transfer".to_owned() } else { own.space.to_string() };
                let class = format!("row {class}");
                page.element("div", &[("class", &class)], |page| {
                    let name = own.name.replace('+', " + ");
                    page.words("span", &[("class", "who"), ("title", &name)], &cut(&name, 120));
                    page.words("span", &[("class", "cell"), ("data-name", "plan")], &ms(own.planned_ns as f64));
                    let other = own.other_ns.filter(|_| own.unit.transfer.is_none());
                    let other = other.map_or_else(String::new, |ns| format!("{} {}", own.space.other(), ms(ns as f64)));
                    page.words("span", &[("class", "cell"), ("data-name", "other side")], &other);
                    page.element("span", &[("class", "drawn")], |page| {
                        let style = format!("width:{:.1}%", own.planned_ns as f64 / most * 100.0);
                        page.empty("span", &[("class", "cost"), ("style", &style)]);
                    });
                });
                page.line();
            }
        });
    });
}
