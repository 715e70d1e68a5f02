//! The boxes of the graph: a handler, the handlers of a fused kernel, or a transfer, with planned and measured times.

use std::fmt::Write as _;

use vramp_plan::catalog::{Family, TransferDirection};
use vramp_plan::{Plan, Space};

use crate::figures::{bytes, counted, cut, cut_to_width, ms, px, short_ms};
use crate::layout::{BoxSize, PlacedBox};
use crate::markup::{Markup, without_credentials};
use crate::units::{Measured, UnitFigures, direction};

const WIDTH: f64 = 176.0;
const TRANSFER_WIDTH: f64 = 166.0;
const LINE: f64 = 20.0;
const PAD: f64 = 10.0;
/// Rows of handlers in a fused box; more handlers need another column.
const MOST_ROWS: usize = 12;
const COLUMN: f64 = 150.0;
const ROW: f64 = 24.0;
const HEAD: f64 = 28.0;
const FOOT: f64 = 28.0;

/// The shape of a box.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Handler,
    Fused { rows: usize, columns: usize },
    Transfer,
}

fn shape(own: &UnitFigures<'_>) -> Shape {
    match own.unit.handlers.len() {
        _ if own.unit.transfer.is_some() => Shape::Transfer,
        0 | 1 => Shape::Handler,
        count => {
            let columns = count.div_ceil(MOST_ROWS);
            Shape::Fused { rows: count.div_ceil(columns), columns }
        }
    }
}

pub(crate) fn size(own: &UnitFigures<'_>) -> BoxSize {
    match shape(own) {
        Shape::Handler => BoxSize { width: WIDTH, height: 2.0 * PAD + 2.6 * LINE },
        Shape::Transfer => BoxSize { width: TRANSFER_WIDTH, height: 2.0 * PAD + 2.2 * LINE },
        Shape::Fused { rows, columns } => {
            let width = if columns == 1 { WIDTH } else { 2.0 * PAD + COLUMN * columns as f64 };
            BoxSize { width, height: HEAD + ROW * rows as f64 + FOOT }
        }
    }
}

/// The height at which links of a handler reach the box of its unit, from the box's upper side.
pub(crate) fn port_height(own: &UnitFigures<'_>, handler: Option<usize>) -> f64 {
    let row = handler.and_then(|handler| own.unit.handlers.iter().position(|other| *other == handler));
    match (shape(own), row) {
        (Shape::Fused { rows, .. }, Some(at)) => HEAD + ROW * ((at % rows) as f64 + 0.5),
        _ => size(own).height / 2.0,
    }
}

pub(crate) fn draw(page: &mut Markup, plan: &Plan, own: &UnitFigures<'_>, place: &PlacedBox, most_share: f64) {
    let shape = shape(own);
    let kind = match (shape, own.space) {
        (Shape::Transfer, _) => "transfer",
        (_, Space::Cpu) => "cpu",
        (_, Space::Gpu) => "gpu",
    };
    let class = if matches!(shape, Shape::Fused { .. }) { format!("box fused {kind}") } else { format!("box {kind}") };
    let tip = tip(plan, own);
    let shift = format!("translate({} {})", px(place.x), px(place.y));
    page.element("g", &[("class", &class), ("transform", &shift), ("data-tip", &tip), ("tabindex", "0")], |page| {
        let (width, height) = (px(place.width), px(place.height));
        let round = if shape == Shape::Transfer { "20" } else { "9" };
        page.empty("rect", &[("class", "body"), ("width", &width), ("height", &height), ("rx", round)]);
        match shape {
            Shape::Handler => handler(page, plan, own, place),
            Shape::Fused { rows, .. } => fused(page, plan, own, place, rows),
            Shape::Transfer => transfer(page, plan, own, place),
        }
        share_bar(page, own, place, most_share);
    });
    page.line();
}

fn handler(page: &mut Markup, plan: &Plan, own: &UnitFigures<'_>, place: &PlacedBox) {
    let handler = &plan.handlers[own.unit.handlers[0]];
    text(page, "name", PAD, PAD + 13.0, &cut_to_width(&handler.name, place.width - 2.0 * PAD - 32.0, 13.0));
    text(page, "tag end", place.width - PAD, PAD + 12.0, &own.space.to_string());
    text(
        page,
        "faint",
        PAD,
        PAD + 31.0,
        &cut_to_width(&about(plan, own.unit.handlers[0]), place.width - 2.0 * PAD, 11.0),
    );
    times(page, own, place, PAD + 50.0);
}

fn fused(page: &mut Markup, plan: &Plan, own: &UnitFigures<'_>, place: &PlacedBox, rows: usize) {
    let kernel = match own.dispatches {
        0 => "one loop".to_owned(),
        count => counted(u64::from(count), "dispatch"),
    };
    text(page, "faint", PAD, 19.0, &format!("fused {}, {kernel}", own.unit.handlers.len()));
    text(page, "tag end", place.width - PAD, 19.0, &own.space.to_string());
    let room = if place.width > WIDTH { COLUMN - 8.0 } else { place.width - 2.0 * PAD };
    for (at, handler) in own.unit.handlers.iter().enumerate() {
        let (x, y) = (PAD + (at / rows) as f64 * COLUMN, HEAD + ROW * (at % rows) as f64);
        let next = own.unit.handlers.get(at + 1).filter(|_| (at + 1) % rows != 0);
        let follows =
            |to: &&usize| plan.links.iter().any(|link| link.from.handler == *handler && link.to.handler == **to);
        if next.as_ref().is_some_and(follows) {
            let way = format!("M{} {}v5", px(x + 14.0), px(y + ROW - 4.0));
            page.empty("path", &[("class", "inner"), ("d", &way)]);
        }
        let corner = [px(x), px(y + 1.0), px(room), px(ROW - 5.0)];
        let [x_at, y_at, width, height] = [&corner[0], &corner[1], &corner[2], &corner[3]];
        page.empty(
            "rect",
            &[("class", "chip"), ("x", x_at), ("y", y_at), ("width", width), ("height", height), ("rx", "5")],
        );
        let mark = if plan.handlers[*handler].inserted { " (inserted)" } else { "" };
        let name = format!("{}{mark}", plan.handlers[*handler].name);
        text(page, "member", x + 8.0, y + 14.5, &cut_to_width(&name, room - 14.0, 11.5));
    }
    times(page, own, place, place.height - 11.0);
}

fn transfer(page: &mut Markup, plan: &Plan, own: &UnitFigures<'_>, place: &PlacedBox) {
    let Some(transfer) = own.unit.transfer.map(|at| &plan.transfers[at]) else { return };
    let arrow = match transfer.direction {
        TransferDirection::Up => "▲",
        TransferDirection::Down => "▼",
    };
    let written = own.unit.handlers.first().map(|at| plan.handlers[*at].name.clone());
    let name = written.unwrap_or_else(|| direction(transfer.direction).to_owned());
    let middle = place.width / 2.0;
    text(
        page,
        "name middle",
        middle,
        PAD + 12.0,
        &format!("{arrow} {}", cut_to_width(&name, place.width - 60.0, 13.0)),
    );
    text(page, "faint middle", middle, PAD + 28.0, &bytes(transfer.bytes));
    let planned = format!("plan {}", short_ms(own.planned_ns as f64));
    let words = match own.measured.mean_ns() {
        Some(mean) => format!("{planned} · run {}", short_ms(mean)),
        None => planned,
    };
    let words = if words.ends_with(" ms") { words.replace(" ms ·", " ·") } else { words };
    text(page, "small middle", middle, PAD + 46.0, &words);
}

/// The planned time at the left and the measured time at the right.
fn times(page: &mut Markup, own: &UnitFigures<'_>, place: &PlacedBox, y: f64) {
    let planned = format!("plan {}", short_ms(own.planned_ns as f64));
    let Some(mean) = own.measured.mean_ns() else { return text(page, "small", PAD, y, &planned) };
    let measured = format!("run {}", short_ms(mean));
    // If both times have the same unit, there is not always room for it twice.
    let has_room = planned.chars().count() + measured.chars().count() <= 23 || !measured.ends_with(" ms");
    text(page, "small", PAD, y, if has_room { &planned } else { planned.trim_end_matches(" ms") });
    text(page, "small strong end", place.width - PAD, y, &measured);
}

/// A bar along the lower side: the share of the unit in the time of all units, relative to the largest share.
fn share_bar(page: &mut Markup, own: &UnitFigures<'_>, place: &PlacedBox, most_share: f64) {
    let Some(share) = own.measured.share().filter(|_| most_share > 0.0) else { return };
    let width = (place.width - 18.0) * (share / most_share).clamp(0.0, 1.0);
    if width >= 1.0 {
        let (y, width) = (px(place.height - 3.5), px(width));
        page.empty(
            "rect",
            &[("class", "share"), ("x", "9"), ("y", &y), ("width", &width), ("height", "3.5"), ("rx", "1.5")],
        );
    }
}

fn text(page: &mut Markup, class: &str, x: f64, y: f64, words: &str) {
    page.words("text", &[("class", class), ("x", &px(x)), ("y", &px(y))], words);
}

/// What a handler sends, or that it is a sink or was inserted.
fn about(plan: &Plan, handler: usize) -> String {
    let own = &plan.handlers[handler];
    let sent = plan.links.iter().find(|link| link.from.handler == handler).map(|link| link.content.to_string());
    match (own.inserted, own.entry.family) {
        (true, _) => format!("inserted: {}", sent.unwrap_or_default()),
        (false, Family::Sink) => format!("{}, a sink", own.kind()),
        _ => sent.unwrap_or_else(|| own.kind().to_owned()),
    }
}

/// The figures of a box in words, for pointers and screen readers.
pub(crate) fn tip(plan: &Plan, own: &UnitFigures<'_>) -> String {
    let mut lines = vec![own.name.replace('+', " + ")];
    let place = if own.space == Space::Gpu { "on the gpu" } else { "on the cpu" };
    lines.push(format!("{place}, lane {}", own.unit.lane));
    let mut planned = format!("planned {}", ms(own.planned_ns as f64));
    if let Some(other) = own.other_ns.filter(|_| own.unit.transfer.is_none()) {
        let _ = write!(planned, "; on the {} {}", own.space.other(), ms(other as f64));
    }
    lines.push(planned);
    match own.measured {
        Measured::Nothing => {}
        Measured::Alone(time) => {
            lines.push(format!("measured {} a call, {} calls", ms(time.mean_us * 1e3), time.calls));
            if let Some((p50, p99)) = own.times.and_then(|times| Some((times.p50_ns?, times.p99_ns?))) {
                lines.push(format!("p50 {}, p99 {}", ms(p50 as f64), ms(p99 as f64)));
            }
        }
        Measured::Together(time) => {
            lines.push(format!("measured {} together with the rest of its segment", ms(time.mean_us * 1e3)));
        }
    }
    if let Some(transfer) = own.unit.transfer.map(|at| &plan.transfers[at]) {
        let to: Vec<String> = transfer.to.iter().take(4).map(|at| plan.port_name(*at)).collect();
        let more = transfer.to.len().saturating_sub(4);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        lines.push(format!("{} to {}{more}", plan.port_name(transfer.from), to.join(", ")));
    }
    for handler in own.unit.handlers.iter().take(6).map(|at| &plan.handlers[*at]) {
        let settings: Vec<String> = handler
            .settings
            .iter()
            .map(|(key, value)| format!("{key}={}", cut(&without_credentials(&value.to_string()), 40)))
            .collect();
        if !settings.is_empty() {
            lines.push(format!("{}: {}", handler.name, settings.join(" ")));
        }
    }
    lines.join("\n")
}
