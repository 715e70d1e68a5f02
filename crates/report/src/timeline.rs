//! Chooses the part of a trace that a page shows: the first and the last frames of the run.
//!
//! Invariants: a window has no gap, in no track. A run that is short enough is one window.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use vramp_runtime::observe::{SpanKind, TrackView};

/// A window has at most this many spans, and frames of at most this many numbers: more would be too thin to see.
const MOST_SPANS: usize = 1200;
const MOST_FRAMES: usize = 36;

#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub(crate) struct Timeline {
    pub(crate) windows: Vec<TimeWindow>,
    /// Whether the windows leave out a part of the run.
    pub(crate) is_cut: bool,
}

/// A part of the run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct TimeWindow {
    pub(crate) from_ns: u64,
    pub(crate) to_ns: u64,
    pub(crate) tracks: Vec<WindowTrack>,
}

/// A lane or the device in a window.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct WindowTrack {
    pub(crate) name: String,
    pub(crate) device: bool,
    /// The names of the units.
    pub(crate) units: Vec<String>,
    pub(crate) spans: Vec<WindowSpan>,
}

/// A call for one frame. In JSON a list: index of the unit, number of the frame, begin, end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(into = "(usize, u64, u64, u64)")]
pub(crate) struct WindowSpan {
    pub(crate) unit: usize,
    pub(crate) frame: u64,
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
}

impl From<WindowSpan> for (usize, u64, u64, u64) {
    fn from(span: WindowSpan) -> (usize, u64, u64, u64) {
        (span.unit, span.frame, span.begin_ns, span.end_ns)
    }
}

impl Timeline {
    pub(crate) fn of(tracks: &[TrackView]) -> Timeline {
        let all: Vec<WindowTrack> = tracks.iter().map(calls).collect();
        // Between these times, spans of a track were replaced.
        let gaps = tracks.iter().filter(|track| track.lost > 0).map(|track| {
            let before = track.spans[..track.first].iter().map(|(_, span)| span.end_ns).max();
            let after = track.spans[track.first..].iter().map(|(_, span)| span.begin_ns).min();
            (before.unwrap_or(0), after.unwrap_or(u64::MAX))
        });
        let gap = gaps.reduce(|one, two| (one.0.min(two.0), one.1.max(two.1)));
        let mut spans: Vec<WindowSpan> = all.iter().flat_map(|track| &track.spans).copied().collect();
        spans.sort_by_key(|span| (span.begin_ns, span.end_ns));
        let (before, after) = gap.unwrap_or((u64::MAX, 0));
        let travelling = travelling(&all);
        let fitting = |spans: &[WindowSpan]| fitting(spans, &travelling);
        if gap.is_none() && fitting(&spans) == spans.len() {
            let windows = window(&all, &spans, 0, u64::MAX).into_iter().collect();
            return Timeline { windows, is_cut: false };
        }
        let early: Vec<WindowSpan> = spans.iter().filter(|span| span.end_ns <= before).copied().collect();
        let count = fitting(&early);
        let until = early.get(count).map_or(before, |next| next.begin_ns);
        let first = window(&all, &early[..count], 0, until);
        let shown_ns = first.as_ref().map_or(0, |first| first.to_ns);
        let mut late: Vec<WindowSpan> =
            spans.iter().filter(|span| span.begin_ns >= after.max(shown_ns)).copied().collect();
        late.sort_by_key(|span| std::cmp::Reverse((span.end_ns, span.begin_ns)));
        let count = fitting(&late);
        let since = late.get(count).map_or(after.max(shown_ns), |next| next.end_ns);
        let last = window(&all, &late[..count], since, u64::MAX);
        Timeline { windows: first.into_iter().chain(last).collect(), is_cut: gap.is_some() || count < late.len() }
    }
}

/// How many of the spans, from the first on, fit into a window.
fn fitting(spans: &[WindowSpan], travelling: &BTreeSet<u64>) -> usize {
    let mut frames: BTreeSet<u64> = BTreeSet::new();
    let fits = |span: &&WindowSpan| {
        frames.extend(travelling.get(&span.frame));
        frames.len() <= MOST_FRAMES
    };
    spans.iter().take(MOST_SPANS).take_while(fits).count()
}

/// The frames that are in several tracks, or all frames if there are none such. Frames that a link drops after their
/// source say little.
fn travelling(tracks: &[WindowTrack]) -> BTreeSet<u64> {
    let mut seen: BTreeMap<u64, usize> = BTreeMap::new();
    for track in tracks {
        for frame in track.spans.iter().map(|span| span.frame).collect::<BTreeSet<_>>() {
            *seen.entry(frame).or_default() += 1;
        }
    }
    let least = seen.values().max().copied().unwrap_or(0).min(2);
    seen.into_iter().filter(|(_, count)| *count >= least).map(|(frame, _)| frame).collect()
}

/// The window of these spans, between two times.
fn window(all: &[WindowTrack], spans: &[WindowSpan], since: u64, until: u64) -> Option<TimeWindow> {
    let from_ns = spans.iter().map(|span| span.begin_ns).min()?.max(since);
    let to_ns = spans.iter().map(|span| span.end_ns).max()?.min(until).max(from_ns + 1);
    let is_inside = |span: &&WindowSpan| span.begin_ns < to_ns && span.end_ns > from_ns;
    let tracks = all
        .iter()
        .map(|track| WindowTrack { spans: track.spans.iter().filter(is_inside).copied().collect(), ..track.clone() });
    Some(TimeWindow { from_ns, to_ns, tracks: tracks.collect() })
}

fn calls(track: &TrackView) -> WindowTrack {
    let mut units: Vec<String> = Vec::new();
    let mut spans = Vec::new();
    for (name, span) in &track.spans {
        let SpanKind::Frame { frame, .. } = span.act else { continue };
        let unit = units.iter().position(|own| own == name).unwrap_or_else(|| {
            units.push(name.clone());
            units.len() - 1
        });
        spans.push(WindowSpan { unit, frame, begin_ns: span.begin_ns, end_ns: span.end_ns });
    }
    WindowTrack { name: track.name.clone(), device: track.device, units, spans }
}

#[cfg(test)]
mod tests {
    use vramp_runtime::observe::TraceSpan;

    use super::*;

    /// A track with a span of 8 ns every 10 ns.
    fn track(frames: std::ops::Range<u64>, first: usize, lost: u64) -> TrackView {
        let span = |at: u64| {
            let act = SpanKind::Frame { node: 0, frame: at };
            ("blur0".to_owned(), TraceSpan { act, begin_ns: at * 10, end_ns: at * 10 + 8 })
        };
        let kept = frames.clone().take(first).chain(frames.skip(first + lost as usize));
        TrackView { name: "lane".to_owned(), device: false, spans: kept.map(span).collect(), lost, first }
    }

    fn frames(window: &TimeWindow) -> (u64, u64) {
        let numbers = || window.tracks.iter().flat_map(|track| &track.spans).map(|span| span.frame);
        (numbers().min().unwrap(), numbers().max().unwrap())
    }

    #[test]
    fn a_short_run_is_one_window() {
        let Timeline { windows, is_cut } = Timeline::of(&[track(0..30, 0, 0), track(0..30, 0, 0)]);
        assert_eq!((windows.len(), is_cut, frames(&windows[0])), (1, false, (0, 29)));
        assert_eq!((windows[0].from_ns, windows[0].to_ns), (0, 298));
        assert_eq!(Timeline::of(&[]), Timeline::default());
    }

    #[test]
    fn a_long_run_shows_its_first_and_last_frames() {
        for (first, lost) in [(0, 0), (100, 800)] {
            let Timeline { windows, is_cut } = Timeline::of(&[track(0..1000, first, lost), track(0..1000, 0, 0)]);
            assert!(is_cut);
            let shown: Vec<_> = windows.iter().map(frames).collect();
            assert_eq!(shown, [(0, MOST_FRAMES as u64 - 1), (1000 - MOST_FRAMES as u64, 999)]);
        }
    }

    #[test]
    fn frames_of_two_graphs_in_one_lane_each_are_counted() {
        let mut second = track(500..1000, 0, 0);
        second.name = "another lane".to_owned();
        let Timeline { windows, .. } = Timeline::of(&[track(0..500, 0, 0), second]);
        let shown: Vec<_> = windows.iter().map(frames).collect();
        assert_eq!(shown, [(0, MOST_FRAMES as u64 - 1), (1000 - MOST_FRAMES as u64, 999)]);
    }

    #[test]
    fn a_window_does_not_reach_into_what_was_replaced() {
        let Timeline { windows, is_cut } = Timeline::of(&[track(0..1000, 5, 985), track(0..1000, 0, 0)]);
        assert_eq!((windows.len(), is_cut), (2, true));
        assert_eq!((frames(&windows[0]), frames(&windows[1])), ((0, 4), (990, 999)));
        let Timeline { windows, .. } = Timeline::of(&[track(0..1000, 0, 990)]);
        assert_eq!((windows.len(), frames(&windows[0])), (1, (990, 999)));
    }
}
