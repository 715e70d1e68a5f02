//! A plan as text for people: the path of a frame through the spaces, then the figures.
//!
//! Invariants: no line ends in a space. Without colour there are no escape codes.

use std::fmt::Write as _;

use super::rows::{PlanRow, rows};
use super::units::{bytes, count, few, time};
use crate::catalog::{Family, TransferDirection};
use crate::plan::{Plan, PlannedLatency, Transfer};
use crate::words::Space;

const CPU: &str = "33";
const GPU: &str = "32";
const TRANSFER: &str = "1;35";
const DIM: &str = "2";
const BOLD: &str = "1";
const WARNING: &str = "1;33";

/// Lines of fused names are broken at this width.
const NAMES_WIDTH: usize = 48;
/// Longer lists are cut, with a count of the rest.
const MOST_NAMES: usize = 8;
/// An empty gutter, as wide as the marks of spaces and transfers.
const GUTTER: &str = "          ";

pub(super) fn text(plan: &Plan, colour: bool) -> String {
    let mut page = TextPage { out: String::new(), colour };
    page.headline(plan);
    page.path(plan);
    page.links(plan);
    page.lanes(plan);
    page.figures(plan);
    page.out
}

struct TextPage {
    out: String,
    colour: bool,
}

impl TextPage {
    fn headline(&mut self, plan: &Plan) {
        let on = |space| plan.handlers.iter().filter(|h| h.space == space).count();
        let transfers_ns = plan.transfers.iter().fold(0u64, |sum, r| sum.saturating_add(r.est_ns));
        let places = match (on(Space::Gpu), on(Space::Cpu)) {
            (0, n) => format!("{} on the cpu", count(n, "handler")),
            (n, 0) => format!("{} on the gpu", count(n, "handler")),
            (gpu, cpu) => format!("{} on the gpu, {cpu} on the cpu", count(gpu, "handler")),
        };
        let transfers = match plan.transfers.len() {
            0 => "no transfers".to_owned(),
            n => format!("{} ({})", count(n, "transfer"), time(transfers_ns)),
        };
        let line = format!("{} a frame: {places}, {transfers}", time(plan.cost_ns));
        self.out.push_str(&self.paint(BOLD, &line));
        self.out.push_str("\n\n");
    }

    fn path(&mut self, plan: &Plan) {
        let rows = rows(plan);
        let names: Vec<Vec<String>> = rows.iter().map(|row| wrapped_names(plan, row)).collect();
        let cells: Vec<[String; 6]> = rows.iter().map(|row| cells(plan, row)).collect();
        let name_width = names.iter().flatten().map(|n| width(n)).max().unwrap_or(0).min(NAMES_WIDTH);
        let widths: [usize; 6] = std::array::from_fn(|i| cells.iter().map(|c| width(&c[i])).max().unwrap_or(0));
        for ((row, names), cells) in rows.iter().zip(&names).zip(&cells) {
            for transfer in &row.transfers {
                self.transfer(plan, &plan.transfers[*transfer]);
            }
            let gutter = match row.space {
                Space::Cpu => format!("{}       ", self.paint(CPU, "cpu")),
                Space::Gpu => format!("       {}", self.paint(GPU, "gpu")),
            };
            let mut line = format!("  {gutter}  {:name_width$}", names[0]);
            for (i, (cell, width)) in cells.iter().zip(widths).enumerate() {
                let (left, right) = if i < 2 { (width, 0) } else { (0, width) };
                if width > 0 {
                    let padded =
                        format!("  {cell:>left$}{:right$}", "", right = right.saturating_sub(self::width(cell)));
                    line.push_str(&if i == 0 { padded } else { self.dim(&padded) });
                }
            }
            self.line(&line);
            for more in &names[1..] {
                self.line(&format!("  {GUTTER}  {more}"));
            }
        }
        self.out.push('\n');
    }

    fn transfer(&mut self, plan: &Plan, transfer: &Transfer) {
        let arrow = match transfer.direction {
            TransferDirection::Up => "=== up ==>",
            TransferDirection::Down => "<= down ==",
        };
        let to = few(transfer.to.iter().map(|at| plan.port_name(*at)), MOST_NAMES);
        let explicit = if transfer.explicit { "  (explicit)" } else { "" };
        let head = self.paint(TRANSFER, &format!("{arrow}  {}", transfer.direction));
        let (from, size, ms) = (plan.port_name(transfer.from), bytes(transfer.bytes), time(transfer.est_ns));
        self.line(&format!("  {head}  {size}  ~{ms}  {from} -> {to}{explicit}"));
    }

    fn links(&mut self, plan: &Plan) {
        let deep: Vec<[String; 4]> = plan
            .links
            .iter()
            .filter(|link| link.depth > 0)
            .map(|link| {
                let ends = format!("{} -> {}", plan.port_name(link.from), plan.port_name(link.to));
                [ends, link.policy.to_string(), format!("depth {}", link.depth), link.content.to_string()]
            })
            .collect();
        let widths: [usize; 4] = std::array::from_fn(|i| deep.iter().map(|c| width(&c[i])).max().unwrap_or(0));
        for (i, cells) in deep.iter().enumerate() {
            let mut line = label(if i == 0 { "links" } else { "" });
            for (cell, width) in cells.iter().zip(widths) {
                let _ = write!(line, "{cell:width$}  ");
            }
            self.line(&line);
        }
    }

    fn lanes(&mut self, plan: &Plan) {
        for (id, lane) in plan.lanes.iter().enumerate() {
            let names = few(lane.handlers.iter().map(|h| plan.handlers[*h].name.clone()), MOST_NAMES);
            let device = if lane.device { " (device)" } else { "" };
            self.line(&format!("{}{id}{device}: {names}", label(if id == 0 { "lanes" } else { "" })));
        }
    }

    fn figures(&mut self, plan: &Plan) {
        let Plan { memory, alternatives, .. } = plan;
        self.line(&format!("{}gpu {}, cpu {}", label("memory"), bytes(memory.gpu_bytes), bytes(memory.cpu_bytes)));
        let dispatches = plan.groups.iter().fold(0usize, |sum, g| sum + g.dispatches as usize);
        let device = match plan.segments {
            0 => "not used".to_owned(),
            n => format!("{}, {} a frame", count(n as usize, "segment"), count(dispatches, "dispatch")),
        };
        self.line(&format!("{}{device}", label("device")));
        let other = |option: &str, ns: Option<u64>| match ns {
            Some(ns) => format!("{option} would cost {}", time(ns)),
            None => format!("{option} is impossible"),
        };
        let (cpu, gpu) = (other("--cpu", alternatives.cpu_ns), other("--gpu", alternatives.gpu_ns));
        self.line(&format!("{}{} by {}; {cpu}, {gpu}", label("cost"), time(plan.cost_ns), plan.profile));
        if let Some(PlannedLatency { asked_ns, predicted_ns, in_flight, .. }) = &plan.latency {
            let fits = if predicted_ns <= asked_ns { "fits" } else { "exceeds" };
            let flying = if plan.segments > 0 { format!(", {in_flight} in flight") } else { String::new() };
            let (predicted, asked) = (time(*predicted_ns), time(*asked_ns));
            self.line(&format!("{}~{predicted}, {fits} the {asked} that --latency asks for{flying}", label("latency")));
        }
        for warning in &plan.warnings {
            let head = self.paint(WARNING, "warning:");
            self.line(&format!("{head} {warning}"));
        }
        for note in &plan.notes {
            self.line(&format!("note: {note}"));
        }
    }

    fn line(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    fn paint(&self, code: &str, words: &str) -> String {
        if self.colour { format!("\x1b[{code}m{words}\x1b[0m") } else { words.to_owned() }
    }

    /// Dims the words but not the padding. Trailing spaces are removed from a line, but spaces before an escape code
    /// would stay.
    fn dim(&self, padded: &str) -> String {
        let words = padded.trim();
        if words.is_empty() { padded.to_owned() } else { padded.replacen(words, &self.paint(DIM, words), 1) }
    }
}

/// The names of a row's handlers, joined by `+` and broken into lines of readable length.
fn wrapped_names(plan: &Plan, row: &PlanRow<'_>) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for (i, h) in row.handlers.iter().enumerate() {
        let handler = &plan.handlers[*h];
        let name = format!("{}{}", handler.name, if handler.inserted { " (inserted)" } else { "" });
        if i > 0 && used + 3 + width(&name) > NAMES_WIDTH {
            lines.push(String::new());
            used = 0;
        }
        let joined = match (i, used) {
            (0, _) => name,
            (_, 0) => format!("+ {name}"),
            _ => format!(" + {name}"),
        };
        used += width(&joined);
        lines.last_mut().expect("there is a first line").push_str(&joined);
    }
    lines
}

/// The cells after the names: time, time in the other space, lane, fusion group, output, inputs.
fn cells(plan: &Plan, row: &PlanRow<'_>) -> [String; 6] {
    let lane = row.handlers.first().map_or(0, |h| plan.handlers[*h].lane);
    let kernel = match row.group.map(|g| (g, plan.groups[g].dispatches)) {
        Some((g, 0)) => format!("group {g}"),
        Some((g, n)) => format!("group {g}, {}", count(n as usize, "dispatch")),
        None => String::new(),
    };
    let source = row.handlers.first().is_some_and(|h| plan.handlers[*h].entry.family == Family::Source);
    let feeders = || few(row.fed_by.iter().map(|h| plan.handlers[*h].name.clone()), MOST_NAMES);
    let inputs = match (source, row.fed_by.is_empty(), row.follows) {
        (true, true, _) => "source".to_owned(),
        (true, false, _) => format!("source, <- {}", feeders()),
        (false, _, true) => String::new(),
        (false, _, false) => format!("<- {}", feeders()),
    };
    let out = row.out.map(ToString::to_string).unwrap_or_default();
    let other = row.other_ns.map_or_else(|| "-".to_owned(), |ns| format!("{} {}", row.space.other(), time(ns)));
    [time(row.cost_ns), other, format!("lane {lane}"), kernel, out, inputs]
}

fn label(word: &str) -> String {
    format!("{word:9}")
}

fn width(words: &str) -> usize {
    words.chars().count()
}
