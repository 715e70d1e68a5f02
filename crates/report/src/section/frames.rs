//! The timeline of frames.

use super::section;
use crate::draw::spans;
use crate::figures::{grouped, time};
use crate::markup::Markup;
use crate::timeline::{TimeWindow, Timeline};

pub(crate) fn write(page: &mut Markup, timeline: &Timeline) {
    if timeline.windows.is_empty() {
        return;
    }
    let words = if timeline.is_cut {
        "Each rectangle is a call for one frame; rectangles of one frame have the same colour. Only the first and the last \
         frames of the run are kept."
    } else {
        "Each rectangle is a call for one frame; rectangles of one frame have the same colour. This is the whole run."
    };
    section(page, "Timeline of frames", words, |page| {
        for (number, window) in timeline.windows.iter().enumerate() {
            page.words("h3", &[], &heading(window));
            spans::draw(page, number, window);
        }
    });
}

fn heading(window: &TimeWindow) -> String {
    let took = time((window.to_ns - window.from_ns) as f64);
    match spans::frames(window) {
        Some((first, last)) if first != last => format!("Frames {} to {}, {took}", grouped(first), grouped(last)),
        Some((first, _)) => format!("Frame {}, {took}", grouped(first)),
        None => took,
    }
}
