//! Device times: attributes the time of each part of a submission to a node and a frame. A part is a dispatch, a whole
//! pass, or a transfer.
//!
//! A recording is a list of commands, such as dispatches and uploads, which are called acts here. The device lane notes
//! after each node how many acts the recording has. A part of a submission belongs to the node that recorded the part's
//! acts. The times of all parts that a node recorded for one frame are added up to one entry of that node's histogram.
//! Uploads and downloads count for their transfer nodes; copying in and out of staging memory on the host does not
//! count. The times are measured by the player in `vramp_gpu`.
//!
//! If only the total time of several parts is known, that time is recorded for the segment alone: the time of each node
//! is then null rather than a guess. An example is a pass of several kernels with timestamps only before and after the
//! pass. `gpu_ms` of the report adds up the times of the segments that a frame passes; `gpu_busy` is the share of the
//! run's time in which the device worked for the run. Buffers are reused, so that steady recording does not allocate.

use std::collections::VecDeque;
use std::sync::Arc;

use vramp_gpu::{DeviceTime, PartTime, Played};

use crate::observe::monitor::{Histogram, NodeStats};
use crate::observe::trace::{SpanKind, TraceSpan, Track};

/// The histograms and the track that device times go to.
pub(crate) struct DeviceTimes {
    /// By segment.
    nodes: Vec<Vec<Arc<NodeStats>>>,
    /// By segment: the time of a whole submission, divided by the frames in it.
    segments: Vec<Arc<Histogram>>,
    /// By segment: the position in the lane of the segment's first node.
    bases: Vec<usize>,
    track: Option<Track>,
    /// The end of the last span on the track.
    traced_ns: u64,
    recorded: Vec<RecordingShare>,
    sent: VecDeque<InFlightSubmission>,
    spare: Vec<Vec<RecordingShare>>,
}

/// One node's share of a recording. `acts` and `dispatches` count what the recording contains up to the end of the
/// share.
#[derive(Debug, Clone, Copy)]
struct RecordingShare {
    acts: usize,
    dispatches: usize,
    segment: usize,
    node: usize,
    frame: u64,
    took_ns: u64,
    known: bool,
}

struct InFlightSubmission {
    submission: u64,
    /// The run's clock minus the device's clock.
    offset_ns: i64,
    marks: Vec<RecordingShare>,
}

impl DeviceTimes {
    pub(crate) fn new(nodes: Vec<Vec<Arc<NodeStats>>>, track: Option<Track>) -> DeviceTimes {
        let mut next = 0;
        let base = |segment: &Vec<Arc<NodeStats>>| {
            next += segment.len();
            next - segment.len()
        };
        let bases = nodes.iter().map(base).collect();
        DeviceTimes {
            segments: nodes.iter().map(|_| Arc::default()).collect(),
            bases,
            nodes,
            track,
            traced_ns: 0,
            recorded: Vec::with_capacity(64),
            sent: VecDeque::with_capacity(8),
            spare: Vec::with_capacity(8),
        }
    }

    /// Device time per frame, by segment.
    pub(crate) fn segments(&self) -> &[Arc<Histogram>] {
        &self.segments
    }

    /// Attributes to a node and a frame everything that was recorded since the last call.
    pub(crate) fn mark(&mut self, (segment, node): (usize, usize), frame: u64, (acts, dispatches): (usize, usize)) {
        if acts > self.recorded.last().map_or(0, |last| last.acts) {
            self.recorded.push(RecordingShare { acts, dispatches, segment, node, frame, took_ns: 0, known: false });
        }
    }

    /// Called when the recording was submitted, or discarded.
    pub(crate) fn played(&mut self, played: Option<Played>, offset_ns: i64) {
        match played.filter(|played| played.timed) {
            None => self.recorded.clear(),
            Some(Played { submission, .. }) => {
                let empty = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(64));
                let marks = std::mem::replace(&mut self.recorded, empty);
                self.sent.push_back(InFlightSubmission { submission, offset_ns, marks });
            }
        }
    }

    /// Drops the submissions in flight, because their times will not come.
    pub(crate) fn forget(&mut self) {
        self.recorded.clear();
        self.sent.clear();
    }

    /// Records the measured time of a submission.
    pub(crate) fn record(&mut self, time: &DeviceTime<'_>) {
        while let Some(mut sent) = self.sent.pop_front() {
            if sent.submission == time.submission {
                self.share_out(time, &mut sent);
            }
            let done = sent.submission >= time.submission;
            sent.marks.clear();
            self.spare.push(sent.marks);
            if done {
                break;
            }
        }
    }

    fn share_out(
        &mut self,
        time: &DeviceTime<'_>,
        InFlightSubmission { offset_ns, marks, .. }: &mut InFlightSubmission,
    ) {
        let Some(first) = marks.first().copied() else { return };
        let host = |ns: u64| ns.saturating_add_signed(*offset_ns);
        let whole_ns = time.end_ns - time.begin_ns;
        let frames = marks.iter().filter(|mark| mark.node == first.node).count().max(1) as u64;
        self.segments[first.segment].add(whole_ns / frames);
        if let Some(track) = &self.track {
            let act = SpanKind::Submission { number: time.submission };
            track.note(TraceSpan { act, begin_ns: host(time.submitted_ns), end_ns: host(time.noticed_ns) });
        }
        let mut dispatches = 0;
        for part in time.parts {
            let owner = owner(marks, part, dispatches);
            dispatches += part.dispatches;
            self.trace(owner.map_or(first, |at| marks[at]), host(part.begin_ns), host(part.end_ns));
            if let Some(at) = owner {
                marks[at].took_ns += part.end_ns - part.begin_ns;
                marks[at].known = true;
            }
        }
        if time.parts.is_empty() {
            let with_work = |at: &usize| marks[*at].dispatches > at.checked_sub(1).map_or(0, |at| marks[at].dispatches);
            let mut working = (0..marks.len()).filter(with_work);
            let alone = working.next().filter(|_| working.next().is_none());
            self.trace(alone.map_or(first, |at| marks[at]), host(time.begin_ns), host(time.end_ns));
            if let Some(at) = alone {
                marks[at].took_ns = whole_ns;
                marks[at].known = true;
            }
        }
        for mark in marks.iter().filter(|mark| mark.known) {
            self.nodes[mark.segment][mark.node].device.add(mark.took_ns);
        }
    }

    /// Adds a span to the track. The offset between the clocks is only known approximately, so begin and end are
    /// adjusted to avoid overlap.
    fn trace(&mut self, mark: RecordingShare, begin_ns: u64, end_ns: u64) {
        let Some(track) = &self.track else { return };
        let begin_ns = begin_ns.max(self.traced_ns);
        let end_ns = end_ns.max(begin_ns);
        self.traced_ns = end_ns;
        let act = SpanKind::Frame { node: self.bases[mark.segment] + mark.node, frame: mark.frame };
        track.note(TraceSpan { act, begin_ns, end_ns });
    }
}

/// The share that a part belongs to; `None` if the part belongs to several shares.
fn owner(marks: &[RecordingShare], part: &PartTime, dispatched: usize) -> Option<usize> {
    let at = marks.iter().position(|mark| mark.acts > part.act)?;
    let inside = part.dispatches < 2 || dispatched + part.dispatches <= marks[at].dispatches;
    inside.then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times() -> DeviceTimes {
        DeviceTimes::new(vec![vec![Arc::default(), Arc::default()], vec![Arc::default()]], None)
    }

    fn part(act: usize, dispatches: usize, begin_ns: u64, end_ns: u64) -> PartTime {
        PartTime { act, dispatches, begin_ns, end_ns }
    }

    fn time(submission: u64, parts: &[PartTime]) -> DeviceTime<'_> {
        DeviceTime {
            submission,
            submitted_ns: 0,
            begin_ns: 1_000,
            end_ns: 9_000,
            noticed_ns: 10_000,
            uncertain_ns: 0,
            parts,
        }
    }

    fn play(times: &mut DeviceTimes, submission: u64, marks: &[(usize, usize, usize)]) {
        for (node, acts, dispatches) in marks {
            times.mark((0, *node), 5, (*acts, *dispatches));
        }
        times.played(Some(Played { submission, ticket: None, timed: true }), 0);
    }

    fn recorded(times: &DeviceTimes) -> Vec<(u64, u64)> {
        times.nodes[0].iter().map(|node| (node.device.count(), node.device.sum_ns())).collect()
    }

    #[test]
    fn parts_go_to_the_node_that_recorded_them_and_are_added_up_for_a_frame() {
        let mut times = times();
        play(&mut times, 3, &[(0, 1, 1), (1, 3, 3)]);
        times.record(&time(3, &[part(0, 1, 1_000, 2_000), part(1, 1, 2_000, 5_000), part(2, 1, 5_000, 9_000)]));
        assert_eq!(recorded(&times), [(1, 1_000), (1, 7_000)]);
        assert_eq!((times.segments[0].count(), times.segments[0].sum_ns()), (1, 8_000));
    }

    #[test]
    fn a_time_that_is_known_together_only_is_attributed_to_no_node() {
        let mut times = times();
        play(&mut times, 1, &[(0, 1, 1), (1, 2, 2)]);
        times.record(&time(1, &[part(0, 2, 1_000, 9_000)]));
        play(&mut times, 2, &[(0, 1, 1), (1, 2, 2)]);
        times.record(&time(2, &[]));
        assert_eq!(recorded(&times), [(0, 0), (0, 0)]);
        // A pass of one node's two dispatches, and a submission of one kernel with a transfer.
        play(&mut times, 3, &[(0, 2, 2)]);
        times.record(&time(3, &[part(0, 2, 1_000, 4_000)]));
        play(&mut times, 4, &[(0, 1, 0), (1, 2, 1)]);
        times.record(&time(4, &[]));
        assert_eq!(recorded(&times), [(1, 3_000), (1, 8_000)]);
        assert_eq!(times.segments[0].count(), 4);
    }

    #[test]
    fn submissions_whose_times_never_come_are_forgotten() {
        let mut times = times();
        play(&mut times, 1, &[(0, 1, 1)]);
        play(&mut times, 2, &[(1, 1, 1)]);
        times.record(&time(2, &[]));
        assert_eq!((recorded(&times), times.sent.len()), (vec![(0, 0), (1, 8_000)], 0));
        times.mark((0, 0), 1, (1, 1));
        times.played(None, 0);
        assert!(times.recorded.is_empty());
    }
}
