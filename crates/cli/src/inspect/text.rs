//! Layout of the table of all handlers, and of the page about one handler.
//!
//! No line ends in a space; without colour there are no escape codes.

use std::fmt::Write as _;

use vramp::plan::catalog::{Entry, Family, When};
use vramp::runtime::Registry;

use super::facts::{self, SettingRow};

/// One line per handler, by family.
pub(super) fn table(entries: &[&Entry], registry: &Registry, colour: bool) -> String {
    let rows: Vec<(Family, [String; 5])> = entries
        .iter()
        .map(|e| {
            let cells = [
                e.name.to_owned(),
                facts::spaces(e).join(" "),
                facts::kernels(e).join("/"),
                facts::status(e, registry).to_owned(),
                e.about.to_owned(),
            ];
            (e.family, cells)
        })
        .collect();
    let widths = widths(rows.iter().map(|(_, cells)| cells));
    let mut out = String::new();
    for family in Family::ALL {
        let mut of_family = rows.iter().filter(|(f, _)| *f == family).peekable();
        if of_family.peek().is_none() {
            continue;
        }
        let _ = writeln!(out, "{}", bold(family.name(), colour));
        for (_, cells) in of_family {
            push_row(&mut out, cells, &widths);
        }
        out.push('\n');
    }
    if entries.iter().any(|e| facts::status(e, registry) == "plan only") {
        out.push_str("plan only: can be planned, but has no implementation yet\n");
    }
    out.push_str("vramp inspect HANDLER shows a handler with its ports and settings\n");
    out
}

/// The page about one handler.
pub(super) fn detail(entry: &Entry, registry: &Registry, colour: bool) -> String {
    let mut out = String::new();
    let head = bold(entry.name, colour);
    let _ = writeln!(out, "{head} ({}, {}): {}\n", entry.family.name(), facts::status(entry, registry), entry.about);
    let mut fact = |label: &str, value: &str| {
        let _ = writeln!(out, "  {label:9}{value}");
    };
    fact("spaces", &facts::spaces(entry).join(", "));
    fact("kernel", &facts::kernel(entry));
    if let Some(latency) = facts::latency(entry) {
        fact("latency", &latency);
    }
    if let Some(keeps) = facts::keeps(entry) {
        fact("rate", &keeps);
    }
    match entry.live {
        When::Never => {}
        When::Always => fact("live", "the handler cannot wait, so its links keep only the newest frame"),
        When::Setting(key) => {
            fact("live", &format!("with {key}=true the handler cannot wait, so its links keep only the newest frame"));
        }
        When::LiveAddress(key) => fact(
            "live",
            &format!(
                "if `{key}` is a live address (rtsp, udp, ...) the handler cannot wait, so its links keep only the newest frame"
            ),
        ),
    }
    if entry.stateful {
        fact("state", "the result of a frame depends on earlier frames");
    }
    fact("example", entry.example);
    ports(&mut out, entry, colour);
    settings(&mut out, entry, colour);
    out
}

fn ports(out: &mut String, entry: &Entry, colour: bool) {
    if !entry.inputs.is_empty() {
        let _ = writeln!(out, "\n  {}", bold("inputs", colour));
        let rows: Vec<[String; 4]> = entry
            .inputs
            .iter()
            .map(|port| {
                let needed = if port.required { "" } else { "optional" };
                [port.name.to_owned(), carries(&port.media), facts::sizes(&port.media), needed.to_owned()]
            })
            .collect();
        push_rows(out, &rows);
    }
    if !entry.outputs.is_empty() {
        let _ = writeln!(out, "\n  {}", bold("outputs", colour));
        let rows: Vec<[String; 4]> = entry
            .outputs
            .iter()
            .map(|port| {
                let [format, size, rate] = facts::origin(port);
                let format = if format == "declared" { String::new() } else { format!("format: {format}; ") };
                let (size, rate) = (format!("{format}size: {size}; "), format!("rate: {rate}"));
                [port.name.to_owned(), carries(&port.media), size + &rate, String::new()]
            })
            .collect();
        push_rows(out, &rows);
    }
}

fn settings(out: &mut String, entry: &Entry, colour: bool) {
    let cells = |settings: Vec<SettingRow>| settings.iter().map(setting_cells).collect::<Vec<[String; 5]>>();
    if !entry.settings.is_empty() || entry.open_settings {
        let _ = writeln!(out, "\n  {}", bold("settings", colour));
        push_rows(out, &cells(facts::settings(entry)));
    }
    for group in entry.one_of {
        let _ = writeln!(out, "    exactly one of {} is required", group.join(", "));
    }
    if let Some(bare) = entry.bare {
        let _ = writeln!(out, "    `{bare}` may be given without its key: `{} VALUE`", entry.name);
    }
    if entry.open_settings {
        out.push_str("    other settings are passed to the handler's own code\n");
    }
    let several = if entry.inputs.len() > 1 { " with several inputs" } else { "" };
    let _ = writeln!(out, "\n  {}", bold(&format!("settings of every handler{several}"), colour));
    push_rows(out, &cells(facts::universal(entry)));
}

fn setting_cells(setting: &SettingRow) -> [String; 5] {
    let default = match (&setting.default, setting.required) {
        (Some(default), _) => format!("default {default}"),
        (None, true) => "required".to_owned(),
        (None, false) => "optional".to_owned(),
    };
    [setting.name.to_owned(), setting.takes.clone(), default, setting.liveness.to_owned(), setting.about.clone()]
}

fn carries(media: &vramp::plan::catalog::PortMedia) -> String {
    format!("{} {}", facts::port_type(media), facts::formats(media).join(", ")).trim_end().to_owned()
}

fn bold(words: &str, colour: bool) -> String {
    if colour { format!("\x1b[1m{words}\x1b[0m") } else { words.to_owned() }
}

fn push_rows<const N: usize>(out: &mut String, rows: &[[String; N]]) {
    let widths = widths(rows.iter());
    for cells in rows {
        out.push_str("  ");
        push_row(out, cells, &widths);
    }
}

fn push_row<const N: usize>(out: &mut String, cells: &[String; N], widths: &[usize; N]) {
    let mut line = String::new();
    for (cell, width) in cells.iter().zip(widths).filter(|(_, width)| **width > 0) {
        let _ = write!(line, "  {cell:width$}");
    }
    let _ = writeln!(out, "{}", line.trim_end());
}

fn widths<'a, const N: usize>(rows: impl Iterator<Item = &'a [String; N]>) -> [usize; N] {
    rows.fold([0; N], |widths, cells| std::array::from_fn(|i| widths[i].max(cells[i].chars().count())))
}
