//! The layout of the view: the lines and tables of a window.
//!
//! Nothing is drawn outside of the window. The title of a table that does not fit says which rows are visible. While
//! the settings are open, they take the place of the handlers, and lines below the tables show the input line or the
//! result of the latest change.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::figures::ViewText;
use super::input::{InputLine, visible};
use super::keys::{Keys, ViewTable};
use vramp::panel::{ChangeStatus, SettingsText};

/// Width and height of the smallest window in which the view is drawn.
const LEAST: (u16, u16) = (40, 12);

/// Height of the smallest window that shows the frame pools. In a lower window, handlers and links need the lines.
const LEAST_FOR_POOLS: u16 = 18;

/// Most lines that the result of a change takes.
const MOST_FOR_STATUS: usize = 3;

const HELP: [&str; 16] = [
    "q, Esc       end the run: files are finished and the report is printed",
    "Ctrl-C       the same, with exit code 130; a second Ctrl-C ends at once",
    "p, space     pause the view; the run continues",
    "Tab, arrows  choose a table and scroll it; also PgUp, PgDn, Home, End",
    "s            show the settings, and change them while the run continues:",
    "  + -        a step up or down, or the next and previous word; also Right, Left",
    "  Enter      edit the value; Enter sets it, Esc leaves it as it was",
    "  Esc        back to the figures",
    "Ctrl-L       redraw",
    "",
    "Rates, `busy` and `at work` cover the last second, all else the whole run.",
    "at work      the share of time in which a handler works. All handlers of a",
    "             kernel share one figure (\"). On the GPU, the device's time counts.",
    "depth        frames that a link can hold; inline if both ends run together",
    "hits         requests for memory that free memory served; misses allocated",
    "?            back to the figures",
];

pub(super) fn draw(frame: &mut Frame<'_>, sheet: &ViewText, settings: &SettingsText, keys: &mut Keys, colour: bool) {
    let area = frame.area();
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let words = format!("window too small: {}x{}, at least {}x{}", area.width, area.height, LEAST.0, LEAST.1);
        return put(frame, 0, &words, Style::new());
    }
    let (bold, dim) = (Style::new().add_modifier(Modifier::BOLD), Style::new().add_modifier(Modifier::DIM));
    let accent = if colour { bold.fg(Color::Cyan) } else { bold };
    let state = if keys.is_paused() { "  paused" } else { "" };
    put(frame, 0, &format!("vramp top{state}  {}", sheet.head.first().map_or("starting", String::as_str)), accent);
    let pools = if area.height < LEAST_FOR_POOLS { Vec::new() } else { pool_lines(&sheet.pools, area.width as usize) };
    for (line, words) in sheet.head.iter().chain(&pools).enumerate().skip(1) {
        put(frame, line as u16, words, if line == 1 { bold } else { Style::new() });
    }
    let (top, mut bottom) = ((sheet.head.len() + pools.len()).max(1) as u16, area.height - 1);
    put(frame, bottom, keys_in_short(keys), dim);
    if keys.wants_help() {
        for (line, words) in (top + 1..bottom).zip(HELP) {
            put(frame, line, words, Style::new());
        }
        return;
    }
    if keys.wants_settings() {
        let foot = foot(settings, keys, area.width as usize, colour);
        bottom -= foot.len() as u16;
        for (line, words) in (bottom..).zip(foot) {
            put_line(frame, line, words);
        }
    }
    let tables = [
        if keys.wants_settings() {
            let cells: Vec<_> =
                settings.rows.iter().map(|row| row.cells.each_ref().map(|cell| on_one_line(cell))).collect();
            columns("setting", &["value", "changes", "expects"], &cells, area.width)
        } else {
            columns("handler", &["on", "kernel", "frames", "p50", "at work"], &sheet.handlers, area.width)
        },
        columns("link", &["to", "depth", "waiting", "sent", "taken", "dropped"], &sheet.links, area.width),
        ("events".to_owned(), sheet.events.clone()),
    ];
    let rooms = rooms((bottom - top) as usize, [0, 1, 2].map(|at| tables[at].1.len()));
    let mut line = top;
    for ((table, (title, rows)), room) in keys.tables().into_iter().zip(tables).zip(rooms) {
        let fit = room.saturating_sub(1);
        let first = keys.first_row(table, fit, rows.len());
        let part = if rows.len() > fit && fit > 0 {
            format!("  [{}-{} of {}]", first + 1, first + fit, rows.len())
        } else {
            String::new()
        };
        let has_focus = table == keys.chosen();
        let mut style = bold.add_modifier(Modifier::UNDERLINED);
        if has_focus {
            style = style.add_modifier(Modifier::REVERSED);
        }
        let room_for_title = (area.width as usize).saturating_sub(part.chars().count());
        put(frame, line, &format!("{}{part}", shortened(&title, room_for_title)), style);
        for (at, row) in rows.iter().enumerate().skip(first).take(fit) {
            let mut style = Style::new();
            if table == ViewTable::Settings {
                style = if settings.rows[at].is_fixed { dim } else { style };
                if at == keys.chosen_setting() {
                    style = style.add_modifier(if has_focus { Modifier::REVERSED } else { Modifier::BOLD });
                }
            }
            put(frame, line + 1 + (at - first) as u16, row, style);
        }
        line += room as u16;
    }
}

/// The frame pools in one line, or each in its own line if one line is too narrow.
fn pool_lines(pools: &[String], width: usize) -> Vec<String> {
    let together = format!("pools {}", pools.join("; "));
    if pools.len() > 1 && together.chars().count() <= width {
        return vec![together];
    }
    pools.iter().map(|pool| format!("pool {pool}")).collect()
}

/// The most important keys, for the last line.
fn keys_in_short(keys: &Keys) -> &'static str {
    match (keys.input(), keys.wants_settings()) {
        (Some(_), _) => "Enter set  Esc cancel",
        (None, true) => "\u{2191}\u{2193} choose  +- change  Enter edit  Esc back  q end  ? help",
        (None, false) => "q end  p pause  s settings  Tab table  \u{2191}\u{2193} scroll  ? help",
    }
}

/// The lines below the tables while the settings are open: the input line, or the result of the latest change. There is
/// always a line, so that the tables do not move when the first result appears.
fn foot(settings: &SettingsText, keys: &Keys, width: usize, colour: bool) -> Vec<Line<'static>> {
    if let Some((name, line)) = keys.input() {
        return vec![input_line(name, line, width)];
    }
    let (words, style) = match &settings.status {
        ChangeStatus::Nothing => ("", Style::new()),
        ChangeStatus::Note(words) => (words.as_str(), Style::new().add_modifier(Modifier::BOLD)),
        ChangeStatus::Refused(words) if colour => (words.as_str(), Style::new().fg(Color::Red)),
        ChangeStatus::Refused(words) => (words.as_str(), Style::new()),
    };
    wrapped(&on_one_line(words), width, MOST_FOR_STATUS).into_iter().map(|line| Line::styled(line, style)).collect()
}

/// `blur0.sigma = 2.5` with the cursor. The terminal's own cursor is hidden.
fn input_line(name: &str, line: &InputLine, width: usize) -> Line<'static> {
    let label = format!("{} = ", shortened(name, width / 2));
    let window = line.window(width.saturating_sub(label.chars().count()));
    let cursor = Style::new().add_modifier(Modifier::REVERSED);
    let bold = Style::new().add_modifier(Modifier::BOLD);
    Line::from(vec![
        Span::styled(label, bold),
        Span::raw(window.before),
        Span::styled(window.under, cursor),
        Span::raw(window.after),
    ])
}

/// Breaks a text at spaces into lines of at most `width` characters. What does not fit into `most` lines is cut off.
/// Returns at least one line.
fn wrapped(text: &str, width: usize, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let last = lines.len() - 1;
        let length = lines[last].chars().count() + 1 + word.chars().count();
        if lines[last].is_empty() {
            word.clone_into(&mut lines[last]);
        } else if length <= width || lines.len() == most {
            lines[last].push(' ');
            lines[last].push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.iter().map(|line| shortened(line, width)).collect()
}

/// Text with a visible sign in place of each line end and other control character.
fn on_one_line(text: &str) -> String {
    visible(&text.chars().collect::<Vec<_>>())
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
    matches!(
        title,
        "handler" | "link" | "to" | "on" | "depth" | "dropped" | "setting" | "value" | "changes" | "expects"
    )
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
    let shown = shortened(words, frame.area().width as usize);
    put_line(frame, line, Line::styled(shown, style));
}

fn put_line(frame: &mut Frame<'_>, line: u16, words: Line<'static>) {
    let area = frame.area();
    if line < area.height {
        frame.render_widget(words, Rect { y: line, height: 1, ..area });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::buffer::Buffer;
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    use super::*;
    use crate::top::figures::RunHistory;
    use crate::top::figures::tests::{setting, snapshot};
    use vramp::panel::SettingRow;

    fn sheet() -> ViewText {
        let mut figures = RunHistory::default();
        figures.look(snapshot(0, 0), true);
        figures.look(snapshot(2000, 200), true);
        let events = (0..9).map(|second| (Duration::from_secs(second), format!("event {second}"))).collect();
        figures.sheet(&setting(), events, false)
    }

    fn settings(status: ChangeStatus) -> SettingsText {
        let row = |name: &str, value: &str, liveness: &str, expects: &str| SettingRow {
            cells: [name, value, liveness, expects].map(str::to_owned),
            is_fixed: liveness == "fixed",
        };
        let rows = vec![
            row("pattern0.kind", "ball", "rebuild", "one of ball, bars, gradient, checker, noise, solid, disc"),
            row("pattern0.size", "64x48", "fixed", "a size WIDTHxHEIGHT such as 1280x720"),
            row("blur0.sigma", "2", "live", "a number from 0.01 to 100"),
            row("text0.text", &format!("two\nlines{}", "x".repeat(500)), "live", "text"),
        ];
        SettingsText { rows, status }
    }

    fn buffer(width: u16, height: u16, sheet: &ViewText, settings: &SettingsText, keys: &mut Keys) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        terminal.draw(|frame| draw(frame, sheet, settings, keys, true)).unwrap();
        terminal.backend().buffer().clone()
    }

    fn drawn(width: u16, height: u16, sheet: &ViewText, keys: &mut Keys) -> Vec<String> {
        drawn_with(width, height, &settings(ChangeStatus::Nothing), sheet, keys)
    }

    fn drawn_with(width: u16, height: u16, settings: &SettingsText, sheet: &ViewText, keys: &mut Keys) -> Vec<String> {
        let buffer = buffer(width, height, sheet, settings, keys);
        let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned();
        (0..height).map(line).collect()
    }

    #[test]
    fn the_view_of_an_ordinary_window_is_this() {
        let lines = drawn(80, 24, &sheet(), &mut Keys::default());
        assert!(lines[0].starts_with("vramp top  0:02  "), "{lines:#?}");
        assert_eq!(lines[1], "100.0 fps  202 in  200 out  20 dropped (20 link full)");
        assert_eq!(lines[5], "pool cpu 4.0 MB free, 200 hits/s, 0 misses/s");
        assert_eq!(
            lines[6..11],
            [
                "handler   on   kernel  frames      p50  at work",
                "pattern0  cpu       0     202  5.00 ms     50 %",
                "invert0   cpu       0     202        \"        \"",
                "blur0     cpu       1     201  42.0 µs      0 %",
                "null0     cpu       -     200        -        -",
            ]
        );
        assert_eq!(
            lines[11..14],
            [
                "link      to     depth    waiting  sent  taken  dropped",
                "pattern0  blur0  -              1   202    201  0",
                "blur0     null0  queue 4        1   202    181  20 (20 link full)",
            ]
        );
        assert_eq!(lines[14], "events  [1-8 of 9]");
        assert_eq!(lines[15], "0:08 event 8");
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
    fn pools_have_one_line_in_a_wide_window_two_in_a_narrow_one_and_none_in_a_low_one() {
        let mut sheet = sheet();
        sheet.pools.insert(0, "gpu 12.4 MB free, 1200 hits/s, 0.3 misses/s".to_owned());
        let shown = |width: u16, height: u16| {
            let lines = drawn(width, height, &sheet, &mut Keys::default());
            let at = lines.iter().position(|line| line.starts_with("handler")).expect("there is a table of handlers");
            lines[5..at].to_vec()
        };
        assert_eq!(
            shown(120, 24),
            ["pools gpu 12.4 MB free, 1200 hits/s, 0.3 misses/s; cpu 4.0 MB free, 200 hits/s, 0 misses/s"]
        );
        assert_eq!(
            shown(80, LEAST_FOR_POOLS),
            ["pool gpu 12.4 MB free, 1200 hits/s, 0.3 misses/s", "pool cpu 4.0 MB free, 200 hits/s, 0 misses/s",]
        );
        assert!(shown(120, LEAST_FOR_POOLS - 1).is_empty());
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

    fn press(keys: &mut Keys, code: KeyCode) {
        keys.press(KeyEvent::new(code, KeyModifiers::NONE));
    }

    #[test]
    fn settings_take_the_place_of_the_handlers_and_fixed_ones_are_dim() {
        let mut keys = Keys::default();
        press(&mut keys, KeyCode::Char('s'));
        let text = settings(ChangeStatus::Note("blur0.sigma=2 from frame 17".to_owned()));
        let lines = drawn_with(80, 24, &text, &sheet(), &mut keys);
        assert_eq!(
            lines[6..10],
            [
                "setting        value                        changes  expects",
                "pattern0.kind  ball                         rebuild  one of ball, bars, gradien\u{2026}",
                "pattern0.size  64x48                        fixed    a size WIDTHxHEIGHT such a\u{2026}",
                "blur0.sigma    2                            live     a number from 0.01 to 100",
            ]
        );
        assert!(lines[10].starts_with("text0.text     two\u{21b5}linesxx") && lines[10].contains("\u{2026}  live"));
        assert!(lines[11].starts_with("link "), "{lines:#?}");
        assert_eq!(lines[22], "blur0.sigma=2 from frame 17");
        assert!(lines[23].contains("Enter edit"), "{lines:#?}");
        let buffer = buffer(80, 24, &sheet(), &text, &mut keys);
        let has = |y: u16, modifier: Modifier| buffer[(0, y)].modifier.contains(modifier);
        assert!(has(7, Modifier::REVERSED) && !has(8, Modifier::REVERSED), "the chosen row");
        assert!(has(8, Modifier::DIM) && !has(7, Modifier::DIM) && !has(9, Modifier::DIM), "the fixed row");
    }

    #[test]
    fn a_long_reason_takes_several_lines_and_the_input_line_shows_its_end() {
        let mut keys = Keys::default();
        press(&mut keys, KeyCode::Char('s'));
        let reason = "pattern0.size is read when the pipeline starts and cannot change while it runs; these can: kind, \
                      color, seed, label";
        let refused = settings(ChangeStatus::Refused(reason.to_owned()));
        let lines = drawn_with(80, 24, &refused, &sheet(), &mut keys);
        assert_eq!(
            lines[21..23],
            [
                "pattern0.size is read when the pipeline starts and cannot change while it runs;",
                "these can: kind, color, seed, label",
            ]
        );
        keys.edit("text0.text".to_owned(), &"0123456789".repeat(20));
        let lines = drawn_with(40, 12, &refused, &sheet(), &mut keys);
        assert_eq!(lines[10], "text0.text = 45678901234567890123456789");
        assert_eq!(lines[11], "Enter set  Esc cancel");
    }

    #[test]
    fn settings_can_be_drawn_in_every_size_of_window() {
        let long = ChangeStatus::Refused("word ".repeat(300));
        for (width, height) in [(20, 5), (40, 12), (41, 13), (80, 24), (300, 100)] {
            let mut keys = Keys::default();
            press(&mut keys, KeyCode::Char('s'));
            for status in [ChangeStatus::Nothing, long.clone()] {
                drawn_with(width, height, &settings(status), &sheet(), &mut keys);
                drawn_with(width, height, &SettingsText::default(), &ViewText::default(), &mut keys);
            }
            press(&mut keys, KeyCode::End);
            keys.edit("x".repeat(200), &"y".repeat(200));
            drawn_with(width, height, &settings(long.clone()), &sheet(), &mut keys);
        }
    }

    #[test]
    fn text_is_broken_at_spaces_and_cut_after_the_last_line() {
        assert_eq!(wrapped("", 10, 3), [""]);
        assert_eq!(wrapped("one two three", 7, 3), ["one two", "three"]);
        assert_eq!(wrapped("one two three four", 7, 2), ["one two", "three \u{2026}"]);
        assert_eq!(wrapped("incomprehensible it is", 7, 3), ["incomp\u{2026}", "it is"]);
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
