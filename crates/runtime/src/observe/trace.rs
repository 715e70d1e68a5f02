//! Traces: a timeline of what lanes and the device did, written as Chrome trace events, which Perfetto opens.
//!
//! A trace has one track for each lane, with a span for every frame that a node took, and one track for the device. The
//! last 131,072 spans of each track are stored, in memory that is allocated before the run; lanes record spans without
//! allocating. The watching thread samples fill levels and drops of links at most every 5 ms, and the frames and the
//! memory of the run at most every 10 ms. The file is written once, at the end, however the run ends. Lanes and the
//! player supply the times.
//!
//! Invariant: frame spans of one track do not overlap.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};

use super::monitor::RunProgress;
use super::run_samples::{RunSample, RunSamples};

/// Default number of spans per track: enough for a minute at 2,000 spans per second, in 6 MB.
const KEPT: usize = 1 << 17;

/// A timeline that a pipeline fills while it runs. Clones share the timeline.
#[derive(Debug, Clone)]
pub struct Trace {
    /// How many of the first spans of a track are never replaced.
    first: usize,
    kept: usize,
    tracks: Arc<Mutex<Vec<Track>>>,
    links: Arc<Mutex<LinkSamples>>,
    samples: Arc<Mutex<RunSamples>>,
    /// The time of the run when the watching thread looked last.
    now_ns: Arc<AtomicU64>,
}

/// The spans of one lane or of the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrackView {
    pub name: String,
    /// Whether this is the device's track.
    pub device: bool,
    /// In order, each with its name.
    pub spans: Vec<(String, TraceSpan)>,
    /// Number of spans that newer spans have replaced.
    pub lost: u64,
    /// How many of `spans` came before the replaced spans: those that [`Trace::keeping_ends`] keeps.
    pub first: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceSpan {
    pub act: SpanKind,
    /// Since the start of the run.
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// What a span shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpanKind {
    /// A node took a frame. `node` is the node's index among the names of its track.
    Frame { node: usize, frame: u64 },
    /// A submission, from the submit until the runtime noticed its end. Such spans overlap.
    Submission { number: u64 },
}

/// A lane's or the device's handle for recording spans.
#[derive(Debug, Clone)]
pub(crate) struct Track {
    shared: Arc<TraceState>,
}

#[derive(Debug)]
struct TraceState {
    name: String,
    device: bool,
    /// Names of the nodes.
    names: Vec<String>,
    spans: Mutex<RecentBuffer<TraceSpan>>,
}

/// The first entries, which stay, and a ring buffer of the most recent ones.
#[derive(Debug)]
struct RecentBuffer<T> {
    first: Vec<T>,
    most_first: usize,
    all: Vec<T>,
    most: usize,
    next: usize,
    lost: u64,
}

#[derive(Debug)]
struct LinkSamples {
    names: Vec<String>,
    last: Vec<Option<(u64, u64)>>,
    samples: RecentBuffer<LinkSample>,
}

/// A link at one moment: queued frames, and frames dropped since the previous sample.
#[derive(Debug, Clone, Copy)]
struct LinkSample {
    at_ns: u64,
    link: usize,
    queued: u64,
    dropped: u64,
}

impl Default for Trace {
    fn default() -> Trace {
        Trace::keeping(KEPT)
    }
}

impl Trace {
    /// A trace that keeps this many spans per track.
    pub fn keeping(spans: usize) -> Trace {
        Trace::keeping_ends(0, spans)
    }

    /// A trace that keeps this many spans from the beginning and from the end of each track.
    pub fn keeping_ends(first: usize, last: usize) -> Trace {
        let links = LinkSamples { names: Vec::new(), last: Vec::new(), samples: RecentBuffer::new(0, last) };
        Trace {
            first,
            kept: last.max(1),
            tracks: Arc::default(),
            links: Arc::new(Mutex::new(links)),
            samples: Arc::default(),
            now_ns: Arc::default(),
        }
    }

    /// Adds a track and allocates its spans.
    pub(crate) fn track(&self, name: String, device: bool, names: Vec<String>) -> Track {
        let spans = Mutex::new(RecentBuffer::new(self.first, self.kept));
        let track = Track { shared: Arc::new(TraceState { name, device, names, spans }) };
        lock(&self.tracks).push(track.clone());
        track
    }

    /// Adds links by their names. Returns the number of the first of them.
    pub(crate) fn watch(&self, names: Vec<String>) -> usize {
        let mut links = lock(&self.links);
        let first = links.names.len();
        links.last.resize(first + names.len(), None);
        links.names.extend(names);
        first
    }

    /// Samples a link, if its figures have changed.
    pub(crate) fn look(&self, at: Duration, link: usize, queued: u64, dropped: u64) {
        let mut links = lock(&self.links);
        let last = links.last[link].replace((queued, dropped));
        // The first sample is stored even if nothing has happened yet, so that every link has a line in the viewer.
        if last != Some((queued, dropped)) {
            let last_dropped = last.map_or(0, |(_, dropped)| dropped);
            let sample = LinkSample { at_ns: at.as_nanos() as u64, link, queued, dropped: dropped - last_dropped };
            links.samples.push(sample);
        }
    }

    /// Samples the progress of the run if a sample is due, or in any case at the `last` moment of the run.
    pub(crate) fn sample(&self, at: Duration, last: bool, progress: impl FnOnce() -> RunProgress) {
        let at_ns = at.as_nanos() as u64;
        self.now_ns.store(at_ns, Ordering::Relaxed);
        let mut samples = lock(&self.samples);
        if last || samples.is_due(at_ns) {
            samples.add(RunSample::of(&progress()));
        }
    }

    /// Frames and memory over the time of the run, at most 512 samples at equal intervals and one at the end.
    pub fn samples(&self) -> Vec<RunSample> {
        lock(&self.samples).all().to_vec()
    }

    /// The time of the run, to within the few milliseconds at which a traced run is watched.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }

    /// All tracks in the order of the planned lanes. The device's track follows the track of the device lane.
    pub fn tracks(&self) -> Vec<TrackView> {
        lock(&self.tracks).iter().map(Track::view).collect()
    }

    /// Writes traces as one file of Chrome trace events: a process for each trace, a thread for each track.
    pub fn write(traces: &[(&str, &Trace)], to: &mut dyn Write) -> io::Result<()> {
        let mut page = TraceJson { to, first: true };
        page.to.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
        for (process, (name, trace)) in traces.iter().enumerate() {
            page.event(&json!({"ph": "M", "name": "process_name", "pid": process + 1, "args": {"name": name}}))?;
            trace.write_one(process + 1, &mut page)?;
        }
        page.to.write_all(b"\n]}\n")?;
        page.to.flush()
    }

    fn write_one(&self, pid: usize, page: &mut TraceJson<'_>) -> io::Result<()> {
        let mut frames: BTreeMap<u64, Vec<(u64, usize)>> = BTreeMap::new();
        for (tid, track) in self.tracks().into_iter().enumerate() {
            let tid = tid + 1;
            page.event(
                &json!({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": track.name}}),
            )?;
            page.event(
                &json!({"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": tid, "args": {"sort_index": tid}}),
            )?;
            if track.lost > 0 {
                let words = format!("{} earlier spans were dropped", track.lost);
                page.event(&json!({"ph": "i", "s": "t", "name": words, "pid": pid, "tid": tid, "ts": 0}))?;
            }
            let cat = if track.device { "device" } else { "lane" };
            for (name, TraceSpan { act, begin_ns, end_ns }) in &track.spans {
                match act {
                    SpanKind::Frame { frame, .. } => {
                        frames.entry(*frame).or_default().push((*begin_ns, tid));
                        page.event(&CompleteEvent {
                            ph: "X",
                            name,
                            cat,
                            pid,
                            tid,
                            ts: us(*begin_ns),
                            dur: us(end_ns - begin_ns),
                            args: SpanArgs { frame: *frame },
                        })?;
                    }
                    SpanKind::Submission { number } => {
                        for (ph, ts) in [("b", begin_ns), ("e", end_ns)] {
                            page.event(&json!({"ph": ph, "name": name, "cat": "submission", "id": number, "pid": pid,
                                "tid": tid, "ts": us(*ts)}))?;
                        }
                    }
                }
            }
        }
        for (frame, mut at) in frames {
            at.sort_unstable();
            page.arrows(pid, frame, &at)?;
        }
        let links = lock(&self.links);
        for LinkSample { at_ns, link, queued, dropped } in links.samples.in_order() {
            let (name, ts) = (&links.names[*link], us(*at_ns));
            page.event(&json!({"ph": "C", "name": name, "pid": pid, "ts": ts, "args": {"frames": queued}}))?;
            if *dropped > 0 {
                let words = format!("dropped in {name}");
                let args = json!({"frames": dropped});
                page.event(&json!({"ph": "i", "s": "p", "name": words, "cat": "drop", "pid": pid, "tid": 0, "ts": ts,
                    "args": args}))?;
            }
        }
        Ok(())
    }
}

impl Track {
    /// Records a span. Only one thread writes, and no other thread reads before the run is over.
    pub(crate) fn note(&self, span: TraceSpan) {
        lock(&self.shared.spans).push(span);
    }

    fn view(&self) -> TrackView {
        let TraceState { name, device, names, spans } = &*self.shared;
        let spans = lock(spans);
        let named = |span: &TraceSpan| match span.act {
            SpanKind::Frame { node, .. } => names.get(node).cloned().unwrap_or_default(),
            SpanKind::Submission { number } => format!("submission {number}"),
        };
        let all = spans.in_order().map(|span| (named(span), *span)).collect();
        TrackView { name: name.clone(), device: *device, spans: all, lost: spans.lost, first: spans.first.len() }
    }
}

impl<T> RecentBuffer<T> {
    fn new(most_first: usize, most: usize) -> RecentBuffer<T> {
        let most = most.max(1);
        let (first, all) = (Vec::with_capacity(most_first), Vec::with_capacity(most));
        RecentBuffer { first, most_first, all, most, next: 0, lost: 0 }
    }

    fn push(&mut self, one: T) {
        if self.first.len() < self.most_first {
            return self.first.push(one);
        }
        if self.all.len() < self.most {
            self.all.push(one);
        } else {
            self.all[self.next] = one;
            self.lost += 1;
        }
        self.next = (self.next + 1) % self.most;
    }

    fn in_order(&self) -> impl Iterator<Item = &T> {
        let oldest = if self.all.len() < self.most { 0 } else { self.next };
        self.first.iter().chain(&self.all[oldest..]).chain(&self.all[..oldest])
    }
}

/// A span in the file format.
#[derive(Serialize)]
struct CompleteEvent<'a> {
    ph: &'static str,
    name: &'a str,
    cat: &'static str,
    pid: usize,
    tid: usize,
    ts: f64,
    dur: f64,
    args: SpanArgs,
}

#[derive(Serialize)]
struct SpanArgs {
    frame: u64,
}

struct TraceJson<'a> {
    to: &'a mut dyn Write,
    first: bool,
}

impl TraceJson<'_> {
    /// Writes one event, on a line of its own.
    fn event(&mut self, event: &impl Serialize) -> io::Result<()> {
        self.to.write_all(if std::mem::take(&mut self.first) { b"\n" } else { b",\n" })?;
        serde_json::to_writer(&mut *self.to, event).map_err(io::Error::from)
    }

    /// Connects the spans of a frame by arrows, in the order in which the spans began.
    fn arrows(&mut self, pid: usize, frame: u64, at: &[(u64, usize)]) -> io::Result<()> {
        if at.len() < 2 {
            return Ok(());
        }
        for (index, (begin_ns, tid)) in at.iter().enumerate() {
            let ph = match index {
                0 => "s",
                _ if index + 1 == at.len() => "f",
                _ => "t",
            };
            let mut arrow = json!({"ph": ph, "name": "frame", "cat": "frame", "id": frame, "pid": pid, "tid": tid,
                "ts": us(*begin_ns)});
            if let (Value::Object(fields), "f") = (&mut arrow, ph) {
                fields.insert("bp".to_owned(), "e".into());
            }
            self.event(&arrow)?;
        }
        Ok(())
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(begin_ns: u64) -> TraceSpan {
        TraceSpan { act: SpanKind::Frame { node: 0, frame: begin_ns }, begin_ns, end_ns: begin_ns + 1 }
    }

    #[test]
    fn the_last_spans_are_kept_in_order_and_the_others_counted() {
        let trace = Trace::keeping(3);
        let track = trace.track("lane".to_owned(), false, vec!["a".to_owned()]);
        (0..2).for_each(|at| track.note(span(at)));
        assert_eq!(trace.tracks()[0].spans.len(), 2);
        (2..8).for_each(|at| track.note(span(at)));
        let view = &trace.tracks()[0];
        assert_eq!(view.spans.iter().map(|(_, span)| span.begin_ns).collect::<Vec<_>>(), [5, 6, 7]);
        assert_eq!(view.lost, 5);
    }

    #[test]
    fn the_first_spans_can_be_kept_too() {
        let trace = Trace::keeping_ends(2, 3);
        let track = trace.track("lane".to_owned(), false, vec!["a".to_owned()]);
        (0..9).for_each(|at| track.note(span(at)));
        let view = &trace.tracks()[0];
        assert_eq!(view.spans.iter().map(|(_, span)| span.begin_ns).collect::<Vec<_>>(), [0, 1, 6, 7, 8]);
        assert_eq!((view.lost, view.first), (4, 2));
    }

    #[test]
    fn names_are_escaped_and_every_event_is_whole() {
        let trace = Trace::keeping(8);
        let track = trace.track("a \"lane\"\n\\".to_owned(), false, vec!["\u{1}<\"é\">".to_owned()]);
        trace.watch(vec!["a.video -> \"b\"".to_owned()]);
        track.note(span(1_500));
        track.note(TraceSpan { act: SpanKind::Submission { number: 7 }, begin_ns: 1_000, end_ns: 9_000 });
        trace.look(Duration::from_micros(3), 0, 2, 0);
        trace.look(Duration::from_micros(4), 0, 2, 0);
        trace.look(Duration::from_micros(5), 0, 2, 3);
        let mut bytes = Vec::new();
        Trace::write(&[("one", &trace), ("two", &Trace::default())], &mut bytes).unwrap();
        let page: Value = serde_json::from_slice(&bytes).unwrap();
        let events = page["traceEvents"].as_array().unwrap();
        let named = |ph: &str| events.iter().filter(|event| event["ph"] == ph).collect::<Vec<_>>();
        assert_eq!(named("X")[0]["name"], "\u{1}<\"é\">");
        assert_eq!((named("X")[0]["ts"].as_f64(), named("X")[0]["args"]["frame"].as_u64()), (Some(1.5), Some(1_500)));
        assert_eq!((named("b").len(), named("e").len(), named("C").len(), named("i").len()), (1, 1, 2, 1));
        assert_eq!(named("i")[0]["args"]["frames"], 3);
        assert_eq!(named("M").iter().filter(|event| event["name"] == "process_name").count(), 2);
    }
}
