//! The graph of a plan: boxes for units, strokes for links, badges for drops.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use vramp_plan::{Plan, PlannedLink, Space};
use vramp_runtime::Report;

use super::boxes;
use crate::figures::{grouped, px};
use crate::layout::{self, BoxSize, Drawing, Edge, Stroke, StrokeWay};
use crate::markup::Markup;
use crate::units::UnitFigures;

/// An edge of the drawing with what it shows.
struct DrawnLink {
    edge: Edge,
    space: Space,
    tip: String,
    dropped: u64,
}

/// Draws the graph at most this wide, if its layers allow that.
pub(crate) fn draw(
    page: &mut Markup,
    plan: &Plan,
    units: &[UnitFigures<'_>],
    report: Option<&Report>,
    (class, most_width): (&str, f64),
) {
    let links = links(plan, units, report);
    let sizes: Vec<BoxSize> = units.iter().map(boxes::size).collect();
    let edges: Vec<Edge> = links.iter().map(|link| link.edge).collect();
    let drawing = layout::draw(&sizes, &edges, most_width);
    let Drawing { width, height, .. } = drawing;
    let view = format!("0 0 {} {}", px(width), px(height));
    let (width, height) = (px(width), px(height));
    let label = format!("graph of {} units and {} links", units.len(), plan.links.len());
    let attributes = [
        ("class", class),
        ("viewBox", &view),
        ("width", &width),
        ("height", &height),
        ("role", "img"),
        ("aria-label", &label),
    ];
    page.element("svg", &attributes, |page| {
        page.line();
        drawing.strokes.iter().for_each(|stroke| draw_stroke(page, stroke, &links[stroke.edge]));
        // Shares would mislead if they left out what the device does.
        let shares = units.iter().filter_map(|own| own.measured.share()).fold(0.0, f64::max);
        let most_share = if units.iter().any(UnitFigures::is_unknown) { 0.0 } else { shares };
        for (own, place) in units.iter().zip(&drawing.boxes) {
            boxes::draw(page, plan, own, place, most_share);
        }
        for stroke in drawing.strokes.iter().filter(|stroke| stroke.arrives) {
            badge(page, stroke, &links[stroke.edge]);
        }
    });
    page.line();
}

/// One edge per ring: a link over an inserted transfer has two, of which links of one output share the first.
fn links(plan: &Plan, units: &[UnitFigures<'_>], report: Option<&Report>) -> Vec<DrawnLink> {
    let mut unit_of = vec![0; plan.handlers.len()];
    for (at, own) in units.iter().enumerate() {
        own.unit.handlers.iter().for_each(|handler| unit_of[*handler] = at);
    }
    let mut by_ring: BTreeMap<usize, DrawnLink> = BTreeMap::new();
    for link in plan.links.iter().filter(|link| !link.rings.is_empty()) {
        let (from, to) = (unit_of[link.from.handler], unit_of[link.to.handler]);
        let leaves = boxes::port_height(&units[from], Some(link.from.handler));
        let enters = boxes::port_height(&units[to], Some(link.to.handler));
        let dropped = dropped(plan, link, report);
        let tip = tip(plan, link, report);
        let last = link.rings[link.rings.len() - 1];
        match plan.inserted_transfer(link) {
            Some(middle) => {
                let at = boxes::port_height(&units[middle], None);
                let edge = Edge { from, to: middle, leaves_at: leaves, enters_at: at };
                by_ring.entry(link.rings[0]).or_insert(DrawnLink {
                    edge,
                    space: link.from_space,
                    tip: tip.clone(),
                    dropped: 0,
                });
                let edge = Edge { from: middle, to, leaves_at: at, enters_at: enters };
                by_ring.insert(last, DrawnLink { edge, space: link.space, tip, dropped });
            }
            None => {
                let edge = Edge { from, to, leaves_at: leaves, enters_at: enters };
                by_ring.insert(last, DrawnLink { edge, space: link.space, tip, dropped });
            }
        }
    }
    by_ring.into_values().filter(|link| link.edge.from != link.edge.to).collect()
}

fn counts<'a>(
    plan: &Plan,
    link: &PlannedLink,
    report: Option<&'a Report>,
) -> Option<&'a vramp_runtime::observe::LinkUse> {
    let (from, to) = (plan.port_name(link.from), plan.port_name(link.to));
    report?.links.iter().find(|own| own.from == from && own.to == to)
}

fn dropped(plan: &Plan, link: &PlannedLink, report: Option<&Report>) -> u64 {
    counts(plan, link, report).map_or(0, |own| own.dropped)
}

/// The link in words.
fn tip(plan: &Plan, link: &PlannedLink, report: Option<&Report>) -> String {
    let mut tip = format!("{} to {}\n{}", plan.port_name(link.from), plan.port_name(link.to), link.content);
    if link.depth > 0 {
        let _ = write!(tip, ", {}, depth {}", link.policy, link.depth);
    }
    if let Some(own) = counts(plan, link, report) {
        let _ = write!(tip, "\n{} sent, {} taken, {} dropped", own.sent, own.taken, own.dropped);
    }
    tip
}

fn draw_stroke(page: &mut Markup, stroke: &Stroke, link: &DrawnLink) {
    let mut way = match &stroke.way {
        StrokeWay::Across { from, to } => {
            let middle = px(f64::midpoint(from.0, to.0));
            let (y_from, x_to, y_to) = (px(from.1), px(to.0), px(to.1));
            if y_from == y_to {
                format!("M{} {y_from}H{x_to}", px(from.0))
            } else {
                format!("M{} {y_from}C{middle} {y_from} {middle} {y_to} {x_to} {y_to}", px(from.0))
            }
        }
        StrokeWay::Through { from, to } => format!("M{} {}H{}", px(from.0), px(from.1), px(to.0)),
        StrokeWay::Below { points } => rounded(points),
    };
    if stroke.arrives {
        // The arrow head. Strokes arrive horizontally.
        way.push_str("m-7 -4l7 4l-7 4");
    }
    let class = format!("link {}", link.space);
    page.element("path", &[("class", &class), ("d", &way), ("data-tip", &link.tip)], |_| {});
    page.line();
}

/// Horizontal and vertical lines with round corners.
fn rounded(points: &[(f64, f64)]) -> String {
    const RADIUS: f64 = 8.0;
    let mut way = format!("M{} {}", px(points[0].0), px(points[0].1));
    for three in points.windows(3) {
        let [before, corner, after] = [three[0], three[1], three[2]];
        let length = |one: (f64, f64), two: (f64, f64)| (one.0 - two.0).abs() + (one.1 - two.1).abs();
        let radius = RADIUS.min(length(before, corner) / 2.0).min(length(corner, after) / 2.0);
        let towards = |other: (f64, f64)| {
            let far = length(other, corner).max(1e-9);
            (corner.0 + (other.0 - corner.0) * radius / far, corner.1 + (other.1 - corner.1) * radius / far)
        };
        let (start, end) = (towards(before), towards(after));
        let _ = write!(
            way,
            "L{} {}Q{} {} {} {}",
            px(start.0),
            px(start.1),
            px(corner.0),
            px(corner.1),
            px(end.0),
            px(end.1)
        );
    }
    let last = points[points.len() - 1];
    let _ = write!(way, "L{} {}", px(last.0), px(last.1));
    way
}

/// The number of frames that a link dropped, where the link arrives.
fn badge(page: &mut Markup, stroke: &Stroke, link: &DrawnLink) {
    if link.dropped == 0 {
        return;
    }
    let to = match &stroke.way {
        StrokeWay::Across { to, .. } | StrokeWay::Through { to, .. } => *to,
        StrokeWay::Below { points } => points[5],
    };
    let words = format!("−{}", grouped(link.dropped));
    let width = 10.0 + 6.5 * words.chars().count() as f64;
    let shift = format!("translate({} {})", px((to.0 - width - 6.0).max(1.0)), px(to.1 - 21.0));
    page.element("g", &[("class", "badge"), ("transform", &shift), ("data-tip", &link.tip)], |page| {
        page.empty("rect", &[("width", &px(width)), ("height", "16"), ("rx", "8")]);
        page.words("text", &[("class", "middle"), ("x", &px(width / 2.0)), ("y", "12")], &words);
    });
    page.line();
}
