//! Lateness: which node makes frames late.
//!
//! A frame is late if it comes to a sink more than half a period after it was due, or if the sink's frames of the last
//! second took a twentieth more time than planned. The sink is rarely the cause. Lanes work at the same time, so the
//! slowest lane that the sink waits for is the cause. A sink waits for the lanes that its frames pass, and for the
//! lanes that hold the producers of its frames back through a lossless link. The device counts as a stage of its own,
//! beside the lane that records for it. Of the slowest stage, the node that has recently taken the most time is named,
//! at most once a second, with its time per frame. A source that waits for its file counts with the time of its call
//! like any other node.
//!
//! Nodes write the times and lanes report late frames; nothing here steers the run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::lane::context::LaneContext;
use crate::observe::monitor::{Histogram, NodeStats, RunEvent};

/// Minimum interval between two reports of one node.
const AGAIN: Duration = Duration::from_secs(1);

/// Minimum number of frames for a rate.
const SOME_FRAMES: u64 = 8;

/// A node that may be slow.
pub(crate) struct LatenessCandidate {
    pub(crate) name: String,
    pub(crate) lane: usize,
    pub(crate) position: usize,
    /// Time available per frame at the node's rate.
    pub(crate) budget: Option<Duration>,
    pub(crate) stats: Arc<NodeStats>,
    /// The nodes that send to this node, and other nodes that this node has to wait for. This node is no faster than
    /// the slowest of them.
    pub(crate) waits_for: Vec<usize>,
}

/// Device time of a whole segment, for lanes in which the device time of each node is unknown.
pub(crate) struct SegmentTime {
    pub(crate) names: String,
    pub(crate) lane: usize,
    pub(crate) time: Arc<Histogram>,
}

/// Finds the node that makes frames late.
pub(crate) struct Lateness {
    candidates: Vec<LatenessCandidate>,
    segment_times: Vec<SegmentTime>,
    memory: Mutex<LatenessState>,
}

/// Readings at the last analysis.
#[derive(Default)]
struct LatenessState {
    before: Vec<NodeReading>,
    segment_times: Vec<(u64, u64)>,
    /// By candidate: when it was last named, and how many late frames there have been since then.
    named: Vec<(Option<Duration>, u64)>,
}

/// Count and sum of a node's times.
#[derive(Debug, Clone, Copy, Default)]
struct NodeReading {
    call: (u64, u64),
    device: (u64, u64),
    taken: u64,
}

/// Work that runs in parallel with other stages: the work of a lane, or the device's work for a lane.
struct ParallelStage {
    lane: usize,
    device: bool,
    busy_ns: u64,
    /// The largest share of `busy_ns`, and the candidate to which this share belongs.
    longest: (u64, usize),
}

/// The slow candidate, its time per frame, and the time available.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LatenessCause {
    pub(crate) name: String,
    pub(crate) own: Duration,
    budget: Duration,
    at: usize,
}

impl Lateness {
    pub(crate) fn new(candidates: Vec<LatenessCandidate>, segment_times: Vec<SegmentTime>) -> Lateness {
        let memory = LatenessState {
            before: vec![NodeReading::default(); candidates.len()],
            segment_times: vec![(0, 0); segment_times.len()],
            named: vec![(None, 0); candidates.len() + segment_times.len()],
        };
        Lateness { candidates, segment_times, memory: Mutex::new(memory) }
    }

    /// The candidate on the way to a sink that has taken longest since the last analysis.
    fn cause(&self, memory: &mut LatenessState, sink: usize) -> Option<LatenessCause> {
        let way = self.way(sink);
        let lanes: Vec<usize> = way.iter().map(|at| self.candidates[*at].lane).collect();
        let now: Vec<NodeReading> = self.candidates.iter().map(|candidate| NodeReading::of(&candidate.stats)).collect();
        let since = |(now, before): (&NodeReading, &NodeReading)| now.taken - before.taken;
        let frames_of: Vec<u64> = now.iter().zip(&memory.before).map(since).collect();
        let frames = |at: usize| frames_of[at];
        let most_frames = way.iter().map(|at| frames(*at)).max().filter(|frames| *frames > 0)?;
        let mut stages: Vec<ParallelStage> = Vec::new();
        let mut add = |lane: usize, device: bool, busy_ns: u64, candidate: usize| {
            let found = stages.iter().position(|stage| (stage.lane, stage.device) == (lane, device));
            let at = found.unwrap_or_else(|| {
                stages.push(ParallelStage { lane, device, busy_ns: 0, longest: (0, candidate) });
                stages.len() - 1
            });
            stages[at].busy_ns += busy_ns;
            stages[at].longest = stages[at].longest.max((busy_ns, candidate));
        };
        for (at, candidate) in self.candidates.iter().enumerate().filter(|(_, s)| lanes.contains(&s.lane)) {
            let before = &memory.before[at];
            add(candidate.lane, false, mean_ns(before.call, now[at].call) * frames(at), at);
            add(candidate.lane, true, mean_ns(before.device, now[at].device) * frames(at), at);
        }
        for (at, segment_times) in self.segment_times.iter().enumerate().filter(|(_, t)| lanes.contains(&t.lane)) {
            let read = (segment_times.time.count(), segment_times.time.sum_ns());
            if is_known_together_only(&self.candidates, &now, segment_times.lane) {
                let busy_ns = mean_ns(memory.segment_times[at], read) * most_frames;
                add(segment_times.lane, true, busy_ns, self.candidates.len() + at);
            }
            memory.segment_times[at] = read;
        }
        memory.before = now;
        let (busy_ns, slowest) = stages.into_iter().max_by_key(|stage| stage.busy_ns)?.longest;
        let name = match slowest.checked_sub(self.candidates.len()) {
            Some(segment_times) => self.segment_times[segment_times].names.clone(),
            None => self.candidates[slowest].name.clone(),
        };
        let (frames, budget) = match self.candidates.get(slowest) {
            Some(candidate) => (frames_of[slowest], candidate.budget),
            None => (most_frames, self.candidates[sink].budget),
        };
        let own = Duration::from_nanos(busy_ns.checked_div(frames).unwrap_or(0));
        Some(LatenessCause { name, own, budget: budget?, at: slowest })
    }

    /// The sink, the nodes that its frames pass, and the nodes that hold back any of them.
    fn way(&self, sink: usize) -> Vec<usize> {
        let (mut way, mut next) = (vec![sink], 0);
        while next < way.len() {
            let more = self.candidates[way[next]].waits_for.iter().copied();
            let more: Vec<usize> = more.filter(|other| !way.contains(other)).collect();
            way.extend(more);
            next += 1;
        }
        way
    }

    fn find(&self, lane: usize, position: usize) -> Option<usize> {
        self.candidates.iter().position(|candidate| candidate.lane == lane && candidate.position == position)
    }
}

/// Whether no single node of a lane has a device time of its own.
fn is_known_together_only(candidates: &[LatenessCandidate], now: &[NodeReading], lane: usize) -> bool {
    candidates.iter().zip(now).all(|(candidate, reading)| candidate.lane != lane || reading.device.0 == 0)
}

impl NodeReading {
    fn of(stats: &NodeStats) -> NodeReading {
        let both = |times: &Histogram| (times.count(), times.sum_ns());
        NodeReading { call: both(&stats.call), device: both(&stats.device), taken: stats.counts().taken }
    }
}

/// Mean since the earlier reading; the overall mean if nothing was measured since.
fn mean_ns((count_before, sum_before): (u64, u64), (count, sum): (u64, u64)) -> u64 {
    let since = (count.saturating_sub(count_before), sum.saturating_sub(sum_before));
    let (count, sum) = if since.0 > 0 { since } else { (count, sum) };
    sum.checked_div(count).unwrap_or(0)
}

/// Reports frames of one lane that take too long.
#[derive(Default)]
pub(crate) struct LatenessReporter {
    lateness: Option<(Arc<Lateness>, usize)>,
    /// The shortest time available per frame in this lane; `None` if sources are not paced, and then nothing is
    /// reported.
    least: Option<Duration>,
    /// By node: start and frame count of the current window.
    rates: Vec<(Duration, u64)>,
}

impl LatenessReporter {
    /// A reporter for a lane, by its number, with this many nodes.
    pub(crate) fn of(lateness: &Arc<Lateness>, lane: usize, nodes: usize) -> LatenessReporter {
        let own = lateness.candidates.iter().filter(|candidate| candidate.lane == lane);
        let least = own.filter_map(|candidate| candidate.budget).min();
        LatenessReporter {
            lateness: Some((Arc::clone(lateness), lane)),
            least,
            rates: vec![(Duration::ZERO, 0); nodes],
        }
    }

    /// Reports late frames at a sink and names the cause. A delay of up to half a period is jitter if it is made up for
    /// within a second.
    pub(crate) fn look_at_sink(
        &mut self,
        position: usize,
        interval: Option<Duration>,
        done: Duration,
        frame: u64,
        context: &LaneContext,
    ) {
        let (Some((lateness, lane)), Some(took), Some(_)) = (&self.lateness, interval, self.least) else { return };
        let Some(sink) = lateness.find(*lane, position) else { return };
        let Some(budget) = lateness.candidates[sink].budget else { return };
        let (since, frames) = &mut self.rates[position];
        if *frames == 0 {
            *since = done.saturating_sub(took);
        }
        *frames += 1;
        let (passed, came) = (done.saturating_sub(*since), *frames);
        let sustained = passed >= AGAIN && came >= SOME_FRAMES && passed > budget.mul_f64(1.05 * came as f64);
        if passed >= AGAIN {
            (*since, *frames) = (done, 0);
        }
        let late = took > budget + budget / 2;
        if !late && !sustained {
            return;
        }
        let mut memory = lateness.memory.lock().unwrap_or_else(PoisonError::into_inner);
        let counted = &mut memory.named[sink];
        counted.1 += 1;
        if counted.0.is_some_and(|named| done.saturating_sub(named) < AGAIN) {
            return;
        }
        let count = std::mem::take(&mut counted.1);
        counted.0 = Some(done);
        let Some(cause) = lateness.cause(&mut memory, sink) else { return };
        // Fewer frames came than planned, but the slowest node needs less than the time available: the machine was busy
        // elsewhere.
        let excused = !late && cause.own < cause.budget;
        let again = cause.at != sink && is_named(&mut memory, cause.at, done);
        drop(memory);
        if !excused && !again {
            // After `every`, a frame has more time. The reported time is converted to frames of the named node.
            let took = took.mul_f64(cause.budget.as_secs_f64() / budget.as_secs_f64());
            let LatenessCause { name: handler, own, budget, .. } = cause;
            context.report(&RunEvent::Slow { handler, own, frame, took, budget, count });
        }
    }

    /// Reports that frames take too long in this lane, and names the node that took longest.
    pub(crate) fn look(
        &mut self,
        took: Duration,
        (own, position, frame): (Duration, usize, u64),
        done: Duration,
        context: &LaneContext,
    ) {
        let Some((lateness, lane)) = self.lateness.as_ref().filter(|_| self.least.is_some_and(|least| took > least))
        else {
            return;
        };
        let Some(node) = lateness.find(*lane, position) else { return };
        let Some(budget) = lateness.candidates[node].budget.filter(|budget| took > *budget) else { return };
        let mut memory = lateness.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.named[node].1 += 1;
        if is_named(&mut memory, node, done) {
            return;
        }
        let count = std::mem::take(&mut memory.named[node].1);
        drop(memory);
        let handler = lateness.candidates[node].name.clone();
        context.report(&RunEvent::Slow { handler, own, frame, took, budget, count });
    }
}

/// Whether the candidate was named within the last second; marks it as named if not.
fn is_named(memory: &mut LatenessState, candidate: usize, done: Duration) -> bool {
    let named = &mut memory.named[candidate].0;
    if named.is_some_and(|named| done.saturating_sub(named) < AGAIN) {
        return true;
    }
    *named = Some(done);
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::monitor::NodeCounts;

    const BUDGET: Duration = Duration::from_millis(16);

    /// A node that has taken this many frames. Each frame took `here` milliseconds on the host and `there` milliseconds
    /// on the device.
    fn candidate(
        name: &str,
        lane: usize,
        frames: u64,
        (here, there): (u64, u64),
        waits_for: &[usize],
    ) -> LatenessCandidate {
        let stats = Arc::new(NodeStats::default());
        for _ in 0..frames {
            stats.call.add(here * 1_000_000);
            if there > 0 {
                stats.device.add(there * 1_000_000);
            }
        }
        stats.show(&NodeCounts { taken: frames, emitted: frames, ..NodeCounts::default() });
        let waits_for = waits_for.to_vec();
        LatenessCandidate { name: name.to_owned(), lane, position: 0, budget: Some(BUDGET), stats, waits_for }
    }

    fn cause(lateness: &Lateness, sink: usize) -> (String, u128) {
        let cause = lateness.cause(&mut lateness.memory.lock().unwrap(), sink).unwrap();
        (cause.name, cause.own.as_millis())
    }

    #[test]
    fn the_slowest_lane_decides_and_in_it_the_slowest_node() {
        let lateness = Lateness::new(
            vec![
                candidate("a", 0, 10, (20, 0), &[]),
                candidate("b", 1, 10, (11, 0), &[0]),
                candidate("c", 1, 10, (12, 0), &[1]),
                candidate("sink", 2, 10, (1, 0), &[2]),
                candidate("elsewhere", 3, 10, (90, 0), &[]),
            ],
            Vec::new(),
        );
        assert_eq!(cause(&lateness, 3), ("c".to_owned(), 12), "23 ms in one lane are more than 20");
    }

    #[test]
    fn work_for_few_frames_counts_for_few() {
        let all = vec![candidate("blur", 0, 100, (5, 0), &[]), candidate("rare", 1, 10, (40, 0), &[0])];
        let lateness = Lateness::new(all, Vec::new());
        assert_eq!(cause(&lateness, 1), ("blur".to_owned(), 5));
    }

    #[test]
    fn the_device_is_a_lane_of_its_own() {
        let on_device = |name: &str, there: u64, waits_for: &[usize]| candidate(name, 0, 10, (2, there), waits_for);
        let all = vec![on_device("up", 3, &[]), on_device("k", 30, &[0]), on_device("down", 4, &[1])];
        let lateness = Lateness::new(all, vec![]);
        assert_eq!(cause(&lateness, 2), ("k".to_owned(), 30));
        let time = Arc::new(Histogram::default());
        time.add(50_000_000);
        let segment_times = || vec![SegmentTime { names: "p, q".to_owned(), lane: 0, time: Arc::clone(&time) }];
        let all = vec![candidate("p", 0, 10, (2, 0), &[]), candidate("q", 0, 10, (3, 0), &[0])];
        assert_eq!(cause(&Lateness::new(all, segment_times()), 1), ("p, q".to_owned(), 50), "known together only");
    }

    #[test]
    fn a_node_that_holds_the_source_back_is_the_cause_and_any_other_is_not() {
        let all = |held: &[usize]| {
            vec![
                candidate("source", 0, 10, (1, 0), held),
                candidate("quick", 1, 10, (2, 0), &[0]),
                candidate("slow", 2, 10, (40, 0), &[0]),
            ]
        };
        assert_eq!(cause(&Lateness::new(all(&[1, 2]), Vec::new()), 1).0, "slow");
        assert_eq!(cause(&Lateness::new(all(&[1]), Vec::new()), 1).0, "quick", "no node waits for a lossy link");
    }

    #[test]
    fn only_what_was_taken_lately_counts() {
        let lateness =
            Lateness::new(vec![candidate("a", 0, 10, (30, 0), &[]), candidate("b", 1, 10, (20, 0), &[0])], Vec::new());
        assert_eq!(cause(&lateness, 1), ("a".to_owned(), 30));
        for (at, ms) in [(0, 1), (1, 25)] {
            let stats = &lateness.candidates[at].stats;
            stats.call.add(ms * 1_000_000);
            stats.show(&NodeCounts { taken: 11, emitted: 11, ..NodeCounts::default() });
        }
        assert_eq!(cause(&lateness, 1), ("b".to_owned(), 25));
    }
}
