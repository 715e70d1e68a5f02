//! The layout of the view: the lines and tables of a window.
//!
//! Nothing is drawn outside of the window. The title of a table that does not fit says which rows are visible.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;

use super::figures::ViewText;
use super::keys::{Keys, ViewTable};

/// Width and height of the smallest window in which the view is drawn.
const LEAST: (u16, u16) = (40, 12);

const HELP: [&str; 11] = [
    "q, Esc       end the run: files are finished and the report is printed",
    "Ctrl-C       the same, with exit code 130; a second Ctrl-C ends at once",
    "p, space     pause the view; the run continues",
    "Tab, arrows  choose a table and scroll it; also PgUp, PgDn, Home, End",
    "Ctrl-L       redraw",
    "",
    "Rates, `busy` and `at work` cover the last second, all else the whole run.",
    "at work      the share of time in which a handler works. All handlers of a",
    "             kernel share one figure (\"). On the GPU, the device's time counts.",
    "depth        frames that a link can hold; inline if both ends run together",
    "?            back to the figures",
];

pub(super) fn draw(frame: &mut Frame<'_>, sheet: &ViewText, keys: &mut Keys, colour: bool) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let words = format!("window too small: {}x{}, at least {}x{}", area.width, area.height, LEAST.0, LEAST.1);
        return put(frame, 0, &words, Style::new());
    }
    let (bold, dim) = (Style::new().add_modifier(Modifier::BOLD), Style::new().add_modifier(Modifier::DIM));
    let accent = if colour { bold.fg(Color::Cyan) } else { bold };
    let state = if keys.is_paused() { "  paused" } else { "" };
    put(frame, 0, &format!("vramp top{state}  {}", sheet.head.first().map_or("starting", String::as_str)), accent);
    for (line, words) in sheet.head.iter().enumerate().skip(1) {
        put(frame, line as u16, words, if line == 1 { bold } else { Style::new() });
    }
    let (top, bottom) = (sheet.head.len().max(1) as u16, area.height - 1);
    put(frame, bottom, "q end  p pause  Tab table  \u{2191}\u{2193} scroll  ? help", dim);
    if keys.wants_help() {
        for (line, words) in (top + 1..bottom).zip(HELP) {
            put(frame, line, words, Style::new());
        }
        return;
    }
    let tables = [
        columns("handler", &["on", "kernel", "frames", "p50", "at work"], &sheet.handlers, area.width),
        columns("link", &["to", "depth", "waiting", "sent", "taken", "dropped"], &sheet.links, area.width),
        ("events".to_owned(), sheet.events.clone()),
    ];
    let rooms = rooms((bottom - top) as usize, [0, 1, 2].map(|at| tables[at].1.len()));
    let mut line = top;
    for ((table, (title, rows)), room) in ViewTable::ALL.into_iter().zip(tables).zip(rooms) {
        let fit = room.saturating_sub(1);
        let first = keys.first_row(table, fit, rows.len());
        let part = if rows.len() > fit && fit > 0 {
            format!("  [{}-{} of {}]", first + 1, first + fit, rows.len())
        } else {
            String::new()
        };
        let mut style = bold.add_modifier(Modifier::UNDERLINED);
        if table == keys.chosen() {
            style = style.add_modifier(Modifier::REVERSED);
        }
        let room_for_title = (area.width as usize).saturating_sub(part.chars().count());
        put(frame, line, &format!("{}{part}", shortened(&title, room_for_title)), style);
        for (at, row) in rows.iter().skip(first).take(fit).enumerate() {
            put(frame, line + 1 + at as u16, row, Style::new());
        }
        line += room as u16;
    }
}

/// The number of lines of each table, including its title. If the tables do not fit, events shrink first: to two rows,
/// or to the title alone in a low window. Handlers and links share the other lines.
fn rooms(lines: usize, rows: [usize; 3]) -> [usize; 3] {
    let [handlers, links, events] = rows.map(|rows| rows + 1);
    let least_for_events = events.min(3).min(lines.saturating_sub(6).max(1));
    let most_for_tables = lines.saturating_sub(least_for_events);
    if handlers + links <= most_for_tables {
        return [handlers, links, lines - handlers - links];
    }
    let half = most_for_tables / 2;
    let handlers = handlers.min(half.max(most_for_tables.saturating_sub(links)));
    let links = links.min(most_for_tables - handlers);
    [handlers, links, lines - handlers - links]
}

/// A table as a title and rows of text. Columns are as wide as their widest cell if `width` allows it.
fn columns<const N: usize>(first: &str, others: &[&str], rows: &[[String; N]], width: u16) -> (String, Vec<String>) {
    let titles: Vec<&str> = std::iter::once(first).chain(others.iter().copied()).collect();
    let widest = |at: usize| {
        rows.iter().map(|row| row[at].chars().count()).chain([titles[at].chars().count()]).max().unwrap_or(0)
    };
    let mut widths: Vec<usize> = (0..N).map(widest).collect();
    // Only columns of text become narrower, the widest first, and no narrower than 8 characters.
    let texts: Vec<usize> = (0..N).filter(|at| is_text(titles[*at])).collect();
    while widths.iter().sum::<usize>() + 2 * (N - 1) > width as usize {
        let Some(at) = texts.iter().copied().filter(|at| widths[*at] > 8).max_by_key(|at| widths[*at]) else { break };
        widths[at] -= 1;
    }
    let line = |cells: &[&str]| {
        let cell = |at: usize| {
            let text = shortened(cells[at], widths[at]);
            let gap = " ".repeat(widths[at].saturating_sub(text.chars().count()));
            if is_text(titles[at]) { format!("{text}{gap}") } else { format!("{gap}{text}") }
        };
        (0..N).map(cell).collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    let text = |row: &[String; N]| line(&row.iter().map(String::as_str).collect::<Vec<_>>());
    (line(&titles), rows.iter().map(text).collect())
}

/// Whether a column holds text. Text is left-aligned, and numbers are right-aligned.
fn is_text(title: &str) -> bool {
    matches!(title, "handler" | "link" | "to" | "on" | "depth" | "dropped")
}

fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept: String = text.chars().take(width.saturating_sub(1)).collect();
    format!("{kept}\u{2026}")
}

/// Draws a line of text, cut off at the edge of the window.
fn put(frame: &mut Frame<'_>, line: u16, words: &str, style: Style) {
    let area = frame.area();
    if line < area.height {
        let shown = shortened(words, area.width as usize);
        frame.render_widget(Line::styled(shown, style), Rect { y: line, height: 1, ..area });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::*;
    use crate::top::figures::RunHistory;
    use crate::top::figures::tests::{setting, snapshot};

    fn sheet() -> ViewText {
        let mut figures = RunHistory::default();
        figures.look(snapshot(0, 0), true);
        figures.look(snapshot(2000, 200), true);
        let events = (0..9).map(|second| (Duration::from_secs(second), format!("event {second}"))).collect();
        figures.sheet(&setting(), events, false)
    }

    fn drawn(width: u16, height: u16, sheet: &ViewText, keys: &mut Keys) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, sheet, keys, true)).unwrap();
        let buffer = terminal.backend().buffer();
        let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    #[test]
    fn the_view_of_an_ordinary_window_is_this() {
        let lines = drawn(80, 24, &sheet(), &mut Keys::default());
        assert!(lines[0].starts_with("vramp top  0:02  "), "{lines:#?}");
        assert_eq!(lines[1], "100.0 fps  202 in  200 out  20 dropped (20 link full)");
        assert_eq!(
            lines[5..10],
            [
                "handler   on   kernel  frames      p50  at work",
                "pattern0  cpu       0     202  5.00 ms     50 %",
                "invert0   cpu       0     202        \"        \"",
                "blur0     cpu       1     201  42.0 µs      0 %",
                "null0     cpu       -     200        -        -",
            ]
        );
        assert_eq!(
            lines[10..13],
            [
                "link      to     depth    waiting  sent  taken  dropped",
                "pattern0  blur0  -              1   202    201  0",
                "blur0     null0  queue 4        1   202    181  20 (20 link full)",
            ]
        );
        assert_eq!(lines[13], "events");
        assert_eq!(lines[14], "0:08 event 8");
        assert!(lines[23].starts_with("q end  p pause"), "{lines:#?}");
    }

    #[test]
    fn a_small_window_shows_parts_and_says_which_and_a_tiny_one_says_so() {
        let mut keys = Keys::default();
        let lines = drawn(40, 12, &sheet(), &mut keys);
        assert!(lines[5].contains("[1-1 of 4]"), "{lines:#?}");
        assert!(lines[6].starts_with("pattern0"), "{lines:#?}");
        keys.press(KeyEvent::new(KeyCode::End, KeyModifiers::NONE));
        let lines = drawn(40, 12, &sheet(), &mut keys);
        assert!(lines[5].contains("[4-4 of 4]") && lines[6].starts_with("null0"), "{lines:#?}");
        let lines = drawn(39, 12, &sheet(), &mut keys);
        assert_eq!(lines[0], "window too small: 39x12, at least 40x12");
        assert!(lines[1..].iter().all(String::is_empty));
        for (width, height) in [(1, 1), (3, 50), (200, 2)] {
            drawn(width, height, &sheet(), &mut keys);
        }
    }

    #[test]
    fn every_size_of_window_can_be_drawn() {
        let mut keys = Keys::default();
        for width in (1..130).step_by(7) {
            for height in 1..40 {
                drawn(width, height, &sheet(), &mut keys);
            }
        }
        drawn(80, 24, &ViewText::default(), &mut keys);
    }

    #[test]
    fn help_and_pause_are_shown() {
        let mut keys = Keys::default();
        keys.press(KeyEvent::new(KeyCode::Char('?'), KeyModifiers::NONE));
        keys.press(KeyEvent::new(KeyCode::Char('p'), KeyModifiers::NONE));
        let lines = drawn(80, 24, &sheet(), &mut keys);
        assert!(lines[0].starts_with("vramp top  paused  0:02"), "{lines:#?}");
        assert!(lines.iter().any(|line| line.contains("files are finished")), "{lines:#?}");
        assert!(HELP.iter().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn room_is_shared_and_never_more_than_there_is() {
        assert_eq!(rooms(18, [4, 2, 0]), [5, 3, 10]);
        assert_eq!(rooms(18, [40, 40, 9]), [7, 8, 3]);
        assert_eq!(rooms(18, [40, 2, 0]), [14, 3, 1]);
        assert_eq!(rooms(18, [2, 40, 0]), [3, 14, 1]);
        for lines in 6..60 {
            for rows in [[0, 0, 0], [1, 1, 1], [50, 3, 9], [3, 50, 100], [100, 100, 100]] {
                assert_eq!(rooms(lines, rows).iter().sum::<usize>(), lines, "{rows:?}");
            }
        }
    }
}
