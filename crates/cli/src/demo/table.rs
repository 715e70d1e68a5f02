//! The results of the demo as a table. Columns are as wide as their widest cell; figures are right-aligned.

use std::fmt::Write as _;

use vramp::runtime::Report;

use super::Ran;

const HEAD: [&str; 11] =
    ["size", "where", "frames", "fps", "p50 ms", "p99 ms", "up", "down", "dispatches", "submits", "allocs"];

/// Number of leading text columns; the others hold figures.
const WORDS: usize = 2;

pub(super) fn of(runs: &[Ran], colour: bool) -> String {
    let rows: Vec<[String; 11]> = runs.iter().map(row).collect();
    let widths: [usize; 11] = std::array::from_fn(|at| {
        rows.iter().map(|row| row[at].len()).chain([HEAD[at].len()]).max().unwrap_or_default()
    });
    let mut out = String::new();
    let _ = writeln!(out, "{}", painted(&line(&HEAD.map(str::to_owned), &widths), colour));
    for row in &rows {
        let _ = writeln!(out, "{}", line(row, &widths));
    }
    out.push_str("(up, down, dispatches, submits, allocs: per frame, in the second half of each run)\n");
    out
}

fn row(ran: &Ran) -> [String; 11] {
    let Report { frames, fps, frame_ms, steady, .. } = &ran.report;
    let ms = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.2}"));
    // A run without a steady state has no figures per frame.
    let each = |figure: Option<f64>| match figure.filter(|_| steady.frames > 0) {
        None => "-".to_owned(),
        Some(figure) if figure.fract() == 0.0 => format!("{figure:.0}"),
        Some(figure) => format!("{figure:.2}"),
    };
    [
        ran.size.to_owned(),
        ran.place.to_string(),
        frames.to_string(),
        format!("{fps:.0}"),
        ms(frame_ms.p50),
        ms(frame_ms.p99),
        each(Some(steady.uploads)),
        each(Some(steady.downloads)),
        each(Some(steady.dispatches)),
        each(Some(steady.submits)),
        each(steady.named("allocs")),
    ]
}

fn line(cells: &[String; 11], widths: &[usize; 11]) -> String {
    let mut line = String::new();
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let _ = if at < WORDS { write!(line, "{cell:width$}  ") } else { write!(line, "{cell:>width$}  ") };
    }
    line.trim_end().to_owned()
}

fn painted(words: &str, colour: bool) -> String {
    if colour { format!("\x1b[1m{words}\x1b[0m") } else { words.to_owned() }
}
