//! The output of the tool: tables for people, and JSON.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::cards::{CARDS, Modelled};
use crate::kernels::Kernel;
use crate::table::{Column, Row, Table};

/// All rows, one block for each GPU.
pub(crate) fn table(table: &Table) -> String {
    let mut text = format!("{}\n", table.driver);
    let wide = table.rows.iter().map(|row| row.kernel.len()).max().unwrap_or(0);
    let mut gpu = "";
    for row in &table.rows {
        if row.gpu != gpu {
            gpu = &row.gpu;
            let _ = write!(text, "\n{gpu:wide$}");
            for column in Column::ALL {
                let _ = write!(text, " {:>w$}", column.name(), w = width(column));
            }
            text.push('\n');
        }
        let _ = write!(text, "{:wide$}", row.kernel);
        for column in Column::ALL {
            let _ = write!(text, " {:>w$}", row.of(column), w = width(column));
        }
        text.push('\n');
    }
    text
}

fn width(column: Column) -> usize {
    column.name().len().max(6)
}

/// How the rows differ from those of another table. Rows without a difference are left out.
pub(crate) fn difference(before: &Table, now: &Table) -> String {
    const SHOWN: [Column; 6] = [
        Column::Instructions,
        Column::Accesses,
        Column::VectorRegisters,
        Column::Waves,
        Column::Inverse,
        Column::Cycles,
    ];
    let wide = now.rows.iter().map(|row| row.gpu.len() + 1 + row.kernel.len()).max().unwrap_or(0);
    let mut text = String::new();
    if before.driver != now.driver {
        let _ = writeln!(text, "compiled by {} before, and by {} now", before.driver, now.driver);
    }
    let _ = write!(text, "{:wide$}", "");
    for column in SHOWN {
        let _ = write!(text, " {:>17}", column.name());
    }
    text.push('\n');
    let mut same = 0;
    for row in &now.rows {
        let name = format!("{} {}", row.gpu, row.kernel);
        let Some(old) = before.find(&row.gpu, &row.kernel) else {
            let _ = writeln!(text, "{name:wide$} new");
            continue;
        };
        if SHOWN.iter().all(|column| old.of(*column) == row.of(*column)) {
            same += 1;
            continue;
        }
        let _ = write!(text, "{name:wide$}");
        for column in SHOWN {
            let (a, b) = (old.of(column), row.of(column));
            let cell = if a == b { format!("{b}") } else { format!("{a} -> {b}") };
            let _ = write!(text, " {cell:>17}");
        }
        text.push('\n');
    }
    let gone = before
        .rows
        .iter()
        .filter(|row| now.rows.iter().any(|other| other.gpu == row.gpu) && now.find(&row.gpu, &row.kernel).is_none());
    for row in gone {
        let _ = writeln!(text, "{} {} gone", row.gpu, row.kernel);
    }
    let _ = writeln!(text, "{same} rows are the same");
    text
}

/// The modelled frame on every card whose GPU the table has.
pub(crate) fn frames(kernels: &[Kernel], table: &Table) -> String {
    let mut text = String::new();
    for card in CARDS {
        let made = card.frame(kernels, table);
        if made.is_empty() {
            continue;
        }
        let wide = made.iter().map(|row| row.kernel.len()).max().unwrap_or(0);
        let _ = writeln!(text, "\n{}, compiled for {}; {}", card.name, card.gpu, card.from);
        let _ = writeln!(
            text,
            "{:wide$} {:>6} {:>5} {:>6} {:>8} {:>10} {:>10} {:>10} {:>8} {:>6}",
            "", "instr", "vgpr", "waves", "cycles", "compute us", "latency us", "memory us", "bound", "ratio"
        );
        for row in &made {
            let figure = |column: Column| {
                let found = table.find(card.gpu, &row.kernel).map(|found: &Row| found.of(column).to_string());
                found.unwrap_or_default()
            };
            let _ = writeln!(
                text,
                "{:wide$} {:>6} {:>5} {:>6} {:>8} {:>10.1} {:>10.1} {:>10.1} {:>8} {:>6.2}",
                row.kernel,
                figure(Column::Instructions),
                figure(Column::VectorRegisters),
                figure(Column::Waves),
                figure(Column::Cycles),
                row.compute_us,
                row.latency_us,
                row.memory_us,
                row.bound(),
                row.ratio()
            );
        }
    }
    text
}

/// Everything as one JSON value.
pub(crate) fn json(kernels: &[Kernel], table: &Table) -> Value {
    let rows = table.rows.iter().map(|row| {
        let mut object = serde_json::Map::new();
        object.insert("gpu".to_owned(), json!(row.gpu));
        object.insert("kernel".to_owned(), json!(row.kernel));
        object.extend(Column::ALL.map(|column| (column.name().to_owned(), json!(row.of(column)))));
        Value::Object(object)
    });
    let cards = CARDS.iter().map(|card| {
        let frame = card.frame(kernels, table);
        let frame = frame.iter().map(|row: &Modelled| {
            json!({
                "kernel": row.kernel, "compute_us": row.compute_us, "latency_us": row.latency_us,
                "memory_us": row.memory_us, "time_us": row.time_us, "bound": row.bound(), "ratio": row.ratio(),
            })
        });
        json!({
            "card": card.name, "gpu": card.gpu, "simds": card.simds, "clock_mhz": card.clock_mhz,
            "memory_gb_s": card.memory_gb_s, "from": card.from, "kernels": frame.collect::<Vec<_>>(),
        })
    });
    json!({ "driver": table.driver, "rows": rows.collect::<Vec<_>>(), "cards": cards.collect::<Vec<_>>() })
}
