//! A timeline: one row for each lane and the device, one rectangle for each call, coloured by the frame's number.

use super::tick_labels;
use crate::draw::chart::trimmed;
use crate::figures::{cut, px, ticks};
use crate::markup::Markup;
use crate::timeline::{TimeWindow, WindowTrack};

const WIDTH: f64 = 2000.0;
const HEIGHT: f64 = 20.0;
/// Colours in turn.
const COLOURS: u64 = 6;

/// Draws a window. The script finds a rectangle's call in the page's data by the number of the window, of the track and
/// of the rectangle.
pub(crate) fn draw(page: &mut Markup, number: usize, window: &TimeWindow) {
    let length = (window.to_ns - window.from_ns).max(1) as f64;
    let number = number.to_string();
    page.element("div", &[("class", "timeline"), ("data-window", &number)], |page| {
        for (at, track) in window.tracks.iter().enumerate().filter(|(_, track)| !track.spans.is_empty()) {
            let name = if track.device { format!("device: {}", track.name) } else { track.name.clone() };
            page.element("div", &[("class", "track")], |page| {
                page.words("span", &[("class", "label"), ("title", &cut(&name, 400))], &cut(&name, 60));
                let (view, at) = (format!("0 0 {WIDTH} {HEIGHT}"), at.to_string());
                let attributes = [("viewBox", view.as_str()), ("preserveAspectRatio", "none"), ("data-track", &at)];
                page.element("svg", &attributes, |page| rectangles(page, track, window.from_ns, length));
            });
            page.line();
        }
        let words = |step: f64| match step {
            0.0 => trimmed(window.from_ns as f64),
            step => format!("+{}", trimmed(step)),
        };
        tick_labels(page, "ticks inset", ticks(length, 5).into_iter().map(|step| (step / length, words(step))));
    });
}

fn rectangles(page: &mut Markup, track: &WindowTrack, from_ns: u64, length: f64) {
    for span in &track.spans {
        let at = |ns: u64| (ns.saturating_sub(from_ns) as f64 / length * WIDTH).clamp(0.0, WIDTH);
        let (left, right) = (at(span.begin_ns), at(span.end_ns));
        let class = ["f0", "f1", "f2", "f3", "f4", "f5"][(span.frame % COLOURS) as usize];
        let (x, width) = (px(left), px((right - left).max(0.6)));
        page.empty("rect", &[("class", class), ("x", &x), ("width", &width), ("height", "20")]);
    }
}

/// The numbers of the first and the last frame in a window.
pub(crate) fn frames(window: &TimeWindow) -> Option<(u64, u64)> {
    let numbers = || window.tracks.iter().flat_map(|track| &track.spans).map(|span| span.frame);
    Some((numbers().min()?, numbers().max()?))
}
