//! Encodes pixels as terminal text: two pixels per character, the upper pixel as foreground and the lower pixel as
//! background.
//!
//! After an image the cursor is at the start of the line below the image, and the colours are the defaults of the
//! terminal. Images of the same size reuse memory.

use std::io::Write as _;

use vramp_plan::Size;

use super::shrunk::Shrunk;

/// Characters from dark to light, for terminals without colours.
const SHADES: &[u8] = b" .:-=+*#%@";

/// Channel values in the colour cube of terminals with 256 colours.
const CUBE: [u8; 6] = [0, 95, 135, 175, 215, 255];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colours {
    /// 24-bit colours.
    All,
    /// The table of 256 colours: a cube of six values per channel, and greys.
    Table,
    /// The terminal has no colours, or the user wants none.
    None,
}

impl Colours {
    /// The colours that environment variables indicate. Most terminals show all colours, but few report this,
    /// especially over ssh, where `COLORTERM` is lost. So only terminals that are known to have fewer colours get
    /// fewer colours.
    pub(super) fn of(variable: impl Fn(&str) -> Option<String>) -> Colours {
        let is = |name: &str, value: &str| variable(name).is_some_and(|found| found == value);
        let terminal = variable("TERM").unwrap_or_default();
        if variable("NO_COLOR").is_some_and(|found| !found.is_empty()) || terminal.starts_with("vt") {
            return Colours::None;
        }
        if is("COLORTERM", "truecolor") || is("COLORTERM", "24bit") {
            return Colours::All;
        }
        let table = ["screen", "rxvt", "linux"].iter().any(|start| terminal.starts_with(start));
        if table || is("TERM_PROGRAM", "Apple_Terminal") { Colours::Table } else { Colours::All }
    }
}

#[derive(Default)]
pub(super) struct Blocks {
    text: Vec<u8>,
    /// The size of the image on the screen in pixels, and the window that it was drawn for.
    there: Option<(Size, Size)>,
}

/// The colours last sent to the terminal; `None` for the terminal's own colours.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
struct Pen {
    front: Option<[u8; 3]>,
    back: Option<[u8; 3]>,
}

impl Blocks {
    /// The bytes that draw an image into a window, over the previous image.
    pub(super) fn paint(&mut self, picture: &Shrunk, window: Size, colours: Colours) -> &[u8] {
        self.text.clear();
        let Some(size) = picture.size() else { return &self.text };
        // Synchronized output: terminals that support it show the image all at once; other terminals ignore the
        // sequence.
        self.add("\x1b[?2026h");
        match self.there {
            None => self.add("\x1b[?25l\r"),
            // The terminal may have rewrapped its lines, so the position of the image is unknown.
            Some((_, before)) if before != window => self.add("\x1b[2J\x1b[H"),
            Some((before, _)) => {
                let lines = before.height.div_ceil(2);
                self.write(format_args!("\x1b[{lines}A\r"));
                if before != size {
                    self.add("\x1b[J");
                }
            }
        }
        self.there = Some((size, window));
        for line in 0..size.height.div_ceil(2) {
            let Some(upper) = picture.row(2 * line) else { break };
            self.line(upper, picture.row(2 * line + 1), colours);
            self.add("\r\n");
        }
        self.add("\x1b[?2026l");
        &self.text
    }

    fn line(&mut self, upper: &[[u8; 3]], lower: Option<&[[u8; 3]]>, colours: Colours) {
        let mut pen = Pen::default();
        for (at, front) in upper.iter().enumerate() {
            let back = lower.map(|row| row[at]);
            if colours == Colours::None {
                self.text.push(shade(*front, back));
                continue;
            }
            let wanted = Pen { front: Some(*front), back };
            self.change(pen, wanted, colours);
            pen = wanted;
            self.add("▀");
        }
        if pen != Pen::default() {
            self.add("\x1b[0m");
        }
    }

    fn change(&mut self, from: Pen, to: Pen, colours: Colours) {
        if let Some(front) = to.front.filter(|_| to.front != from.front) {
            self.colour(38, front, colours);
        }
        if let Some(back) = to.back.filter(|_| to.back != from.back) {
            self.colour(48, back, colours);
        }
    }

    fn colour(&mut self, which: u8, [r, g, b]: [u8; 3], colours: Colours) {
        if colours == Colours::Table {
            self.write(format_args!("\x1b[{which};5;{}m", in_table([r, g, b])));
        } else {
            self.write(format_args!("\x1b[{which};2;{r};{g};{b}m"));
        }
    }

    fn add(&mut self, text: &str) {
        self.text.extend_from_slice(text.as_bytes());
    }

    fn write(&mut self, words: std::fmt::Arguments<'_>) {
        self.text.write_fmt(words).expect("writing to a Vec cannot fail");
    }
}

/// The nearest of 256 colours: a colour of the cube, or a grey if a grey is nearer.
fn in_table(colour: [u8; 3]) -> u8 {
    let apart =
        |one: [u8; 3]| -> i32 { one.iter().zip(colour).map(|(a, b)| (i32::from(*a) - i32::from(b)).pow(2)).sum() };
    let nearest = |value: u8| (0..6_u8).min_by_key(|at| CUBE[usize::from(*at)].abs_diff(value)).unwrap_or(0);
    let [r, g, b] = colour.map(nearest);
    let of_cube = [r, g, b].map(|at| CUBE[usize::from(at)]);
    let mean = colour.iter().map(|value| u32::from(*value)).sum::<u32>() / 3;
    let grey = (mean.saturating_sub(3) / 10).min(23) as u8;
    if apart([8 + 10 * grey; 3]) < apart(of_cube) { 232 + grey } else { 16 + 36 * r + 6 * g + b }
}

/// One character for a pixel and the pixel below it.
fn shade(upper: [u8; 3], lower: Option<[u8; 3]>) -> u8 {
    let luma = |[r, g, b]: [u8; 3]| (299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b)) / 1000;
    let both = u32::midpoint(luma(upper), lower.map_or(0, luma));
    SHADES[(both as usize * SHADES.len() / 256).min(SHADES.len() - 1)]
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;

    const WINDOW: Size = Size { width: 20, height: 6 };

    fn many(count: u16) -> NonZero<u16> {
        NonZero::new(count).unwrap()
    }

    /// A terminal of the window's size.
    fn terminal() -> vt100::Parser {
        vt100::Parser::new(many(6), many(20), 0)
    }

    fn picture(width: u32, height: u32, window: Size, pixel: impl Fn(u32, u32) -> [u8; 3]) -> Shrunk {
        let mut picture = Shrunk::default();
        let rows = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        let frame: Vec<u8> = rows.flat_map(|(x, y)| pixel(x, y).into_iter().chain([255])).collect();
        picture.take(&frame, Size { width, height }, window);
        picture
    }

    fn colours(screen: &vt100::Screen, row: u16, column: u16) -> (vt100::Color, vt100::Color) {
        let cell = screen.cell(row, column).unwrap();
        assert_eq!(cell.contents(), "▀", "row {row}, column {column}");
        (cell.fgcolor(), cell.bgcolor())
    }

    #[test]
    fn a_terminal_shows_two_pixels_in_a_character_and_the_next_picture_in_its_place() {
        let mut terminal = terminal();
        let mut blocks = Blocks::default();
        terminal.process(b"before\r\n");
        for shift in [0, 100] {
            let pixel = move |x: u32, y: u32| [x as u8 * 10, y as u8 * 20, shift];
            let four = Size { width: 20, height: 5 };
            terminal.process(blocks.paint(&picture(8, 8, four, pixel), four, Colours::All));
            let screen = terminal.screen();
            assert_eq!(screen.contents().lines().next(), Some("before"));
            for (row, column) in [(0_u16, 0_u16), (1, 3), (3, 7)] {
                let color = |y: u16| vt100::Color::Rgb(column as u8 * 10, y as u8 * 20, shift);
                assert_eq!(colours(screen, row + 1, column), (color(2 * row), color(2 * row + 1)));
            }
            assert_eq!((screen.cursor_position(), screen.hide_cursor()), ((5, 0), true));
            assert_eq!(screen.fgcolor(), vt100::Color::Default);
        }
    }

    #[test]
    fn the_last_of_an_odd_number_of_rows_stands_on_the_terminals_own_ground() {
        let mut terminal = terminal();
        let wide = picture(20, 3, WINDOW, |_, _| [1, 2, 3]);
        terminal.process(Blocks::default().paint(&wide, WINDOW, Colours::All));
        let one = vt100::Color::Rgb(1, 2, 3);
        assert_eq!(colours(terminal.screen(), 0, 19), (one, one));
        assert_eq!(colours(terminal.screen(), 1, 19), (one, vt100::Color::Default));
        assert_eq!(terminal.screen().cursor_position(), (2, 0), "a full line is not broken twice");
    }

    #[test]
    fn another_window_or_another_form_leaves_nothing_of_the_picture_before() {
        let mut terminal = terminal();
        let mut blocks = Blocks::default();
        let paint = |w, h, window| picture(w, h, window, |_, _| [9, 9, 9]);
        terminal.process(blocks.paint(&paint(8, 8, WINDOW), WINDOW, Colours::All));
        terminal.process(blocks.paint(&paint(20, 1, WINDOW), WINDOW, Colours::All));
        let lines = |terminal: &vt100::Parser| {
            terminal.screen().contents().lines().map(|l| l.chars().count()).collect::<Vec<_>>()
        };
        assert_eq!(lines(&terminal), [20]);
        terminal.screen_mut().set_size(many(4), many(9));
        let small = Size { width: 9, height: 4 };
        terminal.process(blocks.paint(&paint(8, 8, small), small, Colours::All));
        assert_eq!(lines(&terminal), [6, 6, 6]);
    }

    #[test]
    fn fewer_colours_are_the_nearest_and_none_are_shades() {
        assert_eq!([[0, 0, 0], [255; 3], [255, 0, 0], [95, 135, 175]].map(in_table), [16, 231, 196, 67]);
        assert_eq!([[8; 3], [128; 3], [238; 3]].map(in_table), [232, 244, 255]);
        let mut terminal = terminal();
        let red = picture(2, 2, WINDOW, |_, _| [255, 0, 0]);
        terminal.process(Blocks::default().paint(&red, WINDOW, Colours::Table));
        assert_eq!(colours(terminal.screen(), 0, 0), (vt100::Color::Idx(196), vt100::Color::Idx(196)));
        let grey = picture(10, 10, WINDOW, |x, _| [x as u8 * 28; 3]);
        let text = Blocks::default().paint(&grey, WINDOW, Colours::None).to_vec();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(" .:-=+*#%@") && !text.contains('▀') && !text.contains("38;"), "{text:?}");
    }

    #[test]
    fn what_a_terminal_shows_follows_from_its_variables() {
        let of = |given: &[(&str, &str)]| {
            Colours::of(|name| given.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned()))
        };
        assert_eq!(of(&[]), Colours::All);
        assert_eq!(of(&[("TERM", "xterm-256color")]), Colours::All);
        assert_eq!(of(&[("TERM", "screen-256color")]), Colours::Table);
        assert_eq!(of(&[("TERM", "screen-256color"), ("COLORTERM", "truecolor")]), Colours::All);
        assert_eq!(of(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "Apple_Terminal")]), Colours::Table);
        assert_eq!(of(&[("NO_COLOR", "1"), ("COLORTERM", "truecolor")]), Colours::None);
        assert_eq!(of(&[("NO_COLOR", "")]), Colours::All);
        assert_eq!(of(&[("TERM", "vt220")]), Colours::None);
    }

    #[test]
    fn equal_neighbours_do_not_repeat_their_colours() {
        let even = picture(20, 10, WINDOW, |_, _| [1, 2, 3]);
        let mut blocks = Blocks::default();
        let text = String::from_utf8(blocks.paint(&even, WINDOW, Colours::All).to_vec()).unwrap();
        assert_eq!((text.matches("38;2;1;2;3").count(), text.matches('▀').count()), (5, 100));
    }
}
