//! Rehearses a plan: passes frames through its units and rings on paper, under the rules of the engine, and measures the
//! latency of the frames as a run's report does.
//!
//! A host lane fires its units in order, each at most once per turn, and a unit fires only if every lossless ring after
//! it has room. The device lane receives finished submissions first, and then records the segment furthest downstream
//! that can move, if fewer submissions than allowed are in flight. The device works through submissions in order. Work
//! on the host shares the machine's threads ([`ThreadShares`]). A frame is born when its source begins to make it, and has
//! arrived at the end of the sink's call, or when the device has finished the frame's submission.
//!
//! Invariants: the same stations give the same latencies, because the variation of times is computed from a fixed
//! seed. A rehearsal takes a bounded number of steps.

use std::collections::VecDeque;

use crate::words::Policy;

/// Rehearsals of one plan; a power of two.
const REHEARSALS: usize = 8;
/// Steps of one rehearsal, which bound its time, and more steps for each unit.
const MOST_STEPS: usize = 100_000;
const MORE_STEPS: usize = 100;
/// Frames that arrive at the sinks before a rehearsal ends.
const FRAMES: usize = 200;
/// How far the cost of a unit may be off. In each rehearsal all costs differ by up to this part, because of two lanes
/// that are about equally fast, the slower one decides whether the link between them is full or empty.
const COST_ERROR: f64 = 0.3;
/// How much the times of a unit vary from frame to frame.
const VARIATION: f64 = 0.15;
/// Time to wake a lane that has waited for a frame. A lane first looks at its link for a few microseconds.
const WAKE_NS: f64 = 4_000.0;
/// What the first frame after a longer rest costs in addition: waking threads, cold caches. At 20 frames per second,
/// `pattern ! blur ! markers ! null` takes 0.40 ms at 480x270 on two x86-64 cores, and 0.25 ms without a pace.
const COLD_NS: f64 = 100_000.0;
/// The rest after which a lane counts as cold.
const REST_NS: f64 = 1_000_000.0;

/// A unit as a rehearsal sees it. Times are those of one call.
#[derive(Debug, Clone, Default)]
pub(super) struct Station {
    /// Time on the thread of its lane: the work of a host unit, or what a device unit needs to record its work.
    pub host_ns: f64,
    /// Threads that share `host_ns`.
    pub threads: f64,
    pub device_ns: f64,
    /// Time on the thread of the device lane to receive the unit's frame from the device.
    pub receive_ns: f64,
    pub source: Option<SourceClock>,
    /// The ring of the lead input.
    pub lead: Option<usize>,
    /// Rings of other inputs, and whether the unit waits until it is certain which of their frames to use.
    pub others: Vec<(usize, bool)>,
    pub outputs: Vec<usize>,
    /// The unit passes on one of this many frames.
    pub every: u64,
    /// Frames that the unit holds back.
    pub holds: usize,
    pub is_sink: bool,
    /// True if the unit's frames leave the device, so that they arrive when the device has finished.
    pub is_download: bool,
}

impl Station {
    fn is_paced(&self) -> bool {
        self.source.is_some_and(|clock| clock.period_ns.is_some())
    }
}

/// When a source makes frames.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct SourceClock {
    /// Time between two frames of the stream.
    pub step_ns: f64,
    /// Time between two frames of a paced or live source; `None` if frames come as fast as they are consumed.
    pub period_ns: Option<f64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct StationRing {
    pub depth: usize,
    pub policy: Policy,
    /// True if both ends are in one segment.
    pub inline: bool,
}

/// A plan as stations and rings.
#[derive(Debug, Clone, Default)]
pub(super) struct Stage {
    pub stations: Vec<Station>,
    pub rings: Vec<StationRing>,
    /// For each lane its segments, and for each segment its stations in running order.
    pub lanes: Vec<Vec<Vec<usize>>>,
    pub device_lane: Option<usize>,
    pub threads: f64,
    pub in_flight: usize,
    pub batch: usize,
    pub submit_ns: f64,
    /// True if the device computes on the host's threads.
    pub software: bool,
}

impl Stage {
    /// The latency at the sinks, in nanoseconds: the geometric mean of the medians of several rehearsals. `None` if no
    /// frame arrives.
    pub(super) fn latency_ns(&self) -> Option<f64> {
        let mut means: Vec<f64> = (0..REHEARSALS).map(|number| self.rehearsed_ns(number)).collect::<Option<_>>()?;
        while means.len() > 1 {
            // Square roots are exact on every machine, unlike logarithms.
            means = means.chunks(2).map(|pair| pair.iter().product::<f64>().sqrt()).collect();
        }
        means.first().copied()
    }

    fn rehearsed_ns(&self, number: usize) -> Option<f64> {
        let mut rehearsal = Rehearsal::of(self, number);
        rehearsal.run();
        let arrived = &mut rehearsal.arrived;
        // The first frames find empty links.
        let steady = arrived.len() / 2;
        let steady = &mut arrived[steady..];
        steady.sort_by(f64::total_cmp);
        steady.get(steady.len() / 2).copied()
    }
}

/// A frame on its way.
#[derive(Debug, Clone, Copy)]
struct Passing {
    at_ns: f64,
    born_ns: f64,
}

#[derive(Debug, Default)]
struct RingState {
    frames: VecDeque<Passing>,
    /// Stream time up to which no further frame will come.
    known_ns: f64,
}

/// Work in progress on the thread of a lane.
#[derive(Debug)]
struct Job {
    left_ns: f64,
    threads: f64,
    then: Then,
}

/// What happens when a job ends.
#[derive(Debug)]
enum Then {
    /// A host unit has finished a frame; `None` if the frame is filtered.
    Send(usize, f64, Option<Passing>),
    Submit(Submission),
    /// Frames have been received from the device.
    Receive(Vec<(usize, Passing)>),
}

#[derive(Debug)]
struct Submission {
    left_ns: f64,
    /// The units that wait for the end of the submission, with their frames.
    awaited: Vec<(usize, Passing)>,
}

#[derive(Debug, Default)]
struct UnitState {
    taken: u64,
    held: VecDeque<Passing>,
    /// Frames that the device has not returned yet.
    awaited: usize,
    /// Time at which a paced source is due.
    due_ns: f64,
    /// Stream time of a source's next frame.
    next_ns: f64,
}

struct Rehearsal<'a> {
    stage: &'a Stage,
    now_ns: f64,
    rings: Vec<RingState>,
    units: Vec<UnitState>,
    jobs: Vec<Option<Job>>,
    /// Position at which each lane continues its turn.
    turn: Vec<usize>,
    /// When each lane fell asleep, if it sleeps.
    asleep_ns: Vec<Option<f64>>,
    /// The factor by which the cost of each unit is off.
    error: Vec<f64>,
    /// The stations of each lane in running order.
    order: Vec<Vec<usize>>,
    /// Submissions that the device works on, in order.
    queue: VecDeque<Submission>,
    finished: VecDeque<Submission>,
    arrived: Vec<f64>,
    /// The sources that are paced.
    paced: Vec<usize>,
    steps: usize,
    seed: u64,
}

impl<'a> Rehearsal<'a> {
    fn of(stage: &'a Stage, number: usize) -> Rehearsal<'a> {
        let lanes = stage.lanes.len();
        let mut rehearsal = Rehearsal {
            stage,
            now_ns: 0.0,
            rings: stage.rings.iter().map(|_| RingState { known_ns: -1.0, ..RingState::default() }).collect(),
            units: stage.stations.iter().map(|_| UnitState::default()).collect(),
            jobs: (0..lanes).map(|_| None).collect(),
            turn: vec![0; lanes],
            asleep_ns: vec![None; lanes],
            error: Vec::new(),
            order: stage.lanes.iter().map(|segments| segments.concat()).collect(),
            queue: VecDeque::new(),
            finished: VecDeque::new(),
            arrived: Vec::new(),
            paced: (0..stage.stations.len()).filter(|at| stage.stations[*at].is_paced()).collect(),
            steps: 0,
            seed: 0x9E37_79B9_7F4A_7C15 ^ (number as u64 + 1).wrapping_mul(0xD1B5_4A32_D192_ED03),
        };
        rehearsal.error = stage.stations.iter().map(|_| rehearsal.varied(1.0, COST_ERROR)).collect();
        rehearsal
    }

    fn run(&mut self) {
        let most = MOST_STEPS + MORE_STEPS * self.units.len();
        while self.arrived.len() < FRAMES && self.steps < most {
            let mut moved = true;
            while moved && self.steps < most {
                moved = false;
                self.steps += self.jobs.len();
                for lane in 0..self.jobs.len() {
                    moved |= self.jobs[lane].is_none() && self.step(lane);
                }
            }
            if !self.advance() {
                return;
            }
        }
    }

    /// Begins the next job of a lane; false if the lane has nothing to do now.
    fn step(&mut self, lane: usize) -> bool {
        let begun = if self.stage.device_lane == Some(lane) { self.step_device(lane) } else { self.step_host(lane) };
        match (begun, self.asleep_ns[lane]) {
            (true, Some(since_ns)) => {
                let rested = self.now_ns - since_ns > REST_NS;
                if let Some(job) = &mut self.jobs[lane] {
                    job.left_ns += if rested { COLD_NS } else { WAKE_NS };
                }
                self.asleep_ns[lane] = None;
            }
            (false, None) => self.asleep_ns[lane] = Some(self.now_ns),
            _ => {}
        }
        begun
    }

    fn step_host(&mut self, lane: usize) -> bool {
        let units = self.order[lane].len();
        for turn in 0..units {
            let at = (self.turn[lane] + turn) % units;
            self.steps += 1;
            let unit = self.order[lane][at];
            if !self.has_room(unit) {
                continue;
            }
            let Some((at_ns, frame)) = self.take(unit) else { continue };
            let station = &self.stage.stations[unit];
            let (host_ns, threads) = (station.host_ns, station.threads);
            let left_ns = if frame.is_some() { self.varied(host_ns * self.error[unit], VARIATION) } else { 0.0 };
            self.jobs[lane] = Some(Job { left_ns, threads, then: Then::Send(unit, at_ns, frame) });
            self.turn[lane] = at + 1;
            return true;
        }
        self.turn[lane] = 0;
        false
    }

    fn step_device(&mut self, lane: usize) -> bool {
        let stage = self.stage;
        while let Some(done) = self.finished.pop_front() {
            self.steps += 1;
            let mut received = Vec::new();
            for (unit, frame) in done.awaited {
                self.units[unit].awaited -= 1;
                if stage.stations[unit].is_download {
                    received.push((unit, frame));
                } else {
                    self.arrived.push(self.now_ns - frame.born_ns);
                }
            }
            if !received.is_empty() {
                let ns: f64 = received.iter().map(|(unit, _)| stage.stations[*unit].receive_ns).sum();
                let left_ns = self.varied(ns, VARIATION);
                self.jobs[lane] = Some(Job { left_ns, threads: 1.0, then: Then::Receive(received) });
                return true;
            }
        }
        if self.queue.len() >= stage.in_flight {
            return false;
        }
        for segment in stage.lanes[lane].iter().rev() {
            let mut submission = Submission { left_ns: 0.0, awaited: Vec::new() };
            let (mut host_ns, mut moved) = (0.0, false);
            for _ in 0..stage.batch {
                match self.record(segment, &mut submission) {
                    Some(ns) => (host_ns, moved) = (host_ns + ns, true),
                    None => break,
                }
            }
            if moved {
                submission.left_ns = self.varied(submission.left_ns, VARIATION);
                let left_ns = self.varied(host_ns + stage.submit_ns, VARIATION);
                self.jobs[lane] = Some(Job { left_ns, threads: 1.0, then: Then::Submit(submission) });
                return true;
            }
        }
        false
    }

    /// Records one frame of a segment; returns the time on the lane's thread, or `None` if nothing moves.
    fn record(&mut self, segment: &[usize], submission: &mut Submission) -> Option<f64> {
        let stage = self.stage;
        // A frame enters a segment only if it can leave the segment.
        let leaves = |unit: &usize| stage.stations[*unit].outputs.iter().any(|ring| !stage.rings[*ring].inline);
        let open = segment.iter().filter(|unit| leaves(unit)).all(|unit| self.has_room(*unit));
        let mut recorded = None;
        for &unit in segment {
            self.steps += 1;
            let station = &stage.stations[unit];
            let enters = station.lead.is_none_or(|ring| !stage.rings[ring].inline);
            if enters && !open || !self.has_room(unit) {
                continue;
            }
            let Some((at_ns, frame)) = self.take(unit) else { continue };
            let host_ns = recorded.get_or_insert(0.0);
            let Some(frame) = frame else {
                self.send(unit, at_ns, None);
                continue;
            };
            *host_ns += station.host_ns * self.error[unit];
            submission.left_ns += station.device_ns * self.error[unit];
            if station.is_sink || station.is_download {
                self.units[unit].awaited += 1;
                submission.awaited.push((unit, frame));
            } else {
                self.send(unit, at_ns, Some(frame));
            }
        }
        recorded
    }

    /// Whether every lossless ring after a unit has room for one more frame besides the awaited frames.
    fn has_room(&self, unit: usize) -> bool {
        let awaited = self.units[unit].awaited;
        self.stage.stations[unit].outputs.iter().all(|at| {
            let ring = &self.stage.rings[*at];
            ring.policy != Policy::Lossless || self.rings[*at].frames.len() + awaited < ring.depth
        })
    }

    /// Takes the next frame of a unit, with its stream time; the frame is `None` if the unit does not pass it on.
    fn take(&mut self, unit: usize) -> Option<(f64, Option<Passing>)> {
        let station = &self.stage.stations[unit];
        let at_ns = match (station.source, station.lead) {
            (Some(clock), _) => {
                let own = &self.units[unit];
                if clock.period_ns.is_some() && own.due_ns > self.now_ns {
                    return None;
                }
                own.next_ns
            }
            (None, Some(lead)) => self.rings[lead].frames.front()?.at_ns,
            (None, None) => return None,
        };
        if station.others.iter().any(|(ring, awaited)| *awaited && self.rings[*ring].known_ns < at_ns) {
            return None;
        }
        for (ring, _) in &station.others {
            while self.rings[*ring].frames.front().is_some_and(|frame| frame.at_ns <= at_ns) {
                self.rings[*ring].frames.pop_front();
            }
        }
        let own = &mut self.units[unit];
        let number = own.taken;
        own.taken += 1;
        let frame = match station.source {
            Some(clock) => {
                own.next_ns += clock.step_ns;
                if let Some(period_ns) = clock.period_ns {
                    // A stall delays all later frames.
                    own.due_ns = (own.due_ns + period_ns).max(self.now_ns);
                }
                Passing { at_ns, born_ns: self.now_ns }
            }
            None => self.rings[station.lead?].frames.pop_front()?,
        };
        Some((at_ns, number.is_multiple_of(station.every.max(1)).then_some(frame)))
    }

    /// Sends a frame, or only the news that none will come at this time.
    fn send(&mut self, unit: usize, at_ns: f64, frame: Option<Passing>) {
        let station = &self.stage.stations[unit];
        let mut frame = frame;
        let mut known_ns = at_ns;
        if station.holds > 0 {
            let held = &mut self.units[unit].held;
            held.extend(frame.take());
            if held.len() > station.holds {
                frame = held.pop_front();
            }
            known_ns = held.front().map_or(at_ns, |oldest| oldest.at_ns - 1.0);
        }
        for at in &station.outputs {
            let (ring, state) = (&self.stage.rings[*at], &mut self.rings[*at]);
            if let Some(frame) = frame {
                if state.frames.len() >= ring.depth && ring.policy != Policy::Lossless {
                    state.frames.pop_front();
                }
                state.frames.push_back(frame);
            }
            state.known_ns = state.known_ns.max(known_ns);
        }
        if station.is_sink
            && let Some(frame) = frame
        {
            self.arrived.push(self.now_ns - frame.born_ns);
        }
    }

    /// Lets time pass until the next job, submission or source is due; false if nothing will ever happen again.
    fn advance(&mut self) -> bool {
        self.steps += self.jobs.len();
        let shares = self.shares();
        let device_slowed = if self.stage.software { shares.slowed(self.stage.threads) } else { 1.0 };
        let jobs = self.jobs.iter().flatten().map(|job| job.left_ns * shares.slowed(job.threads));
        let device = self.queue.front().map(|front| front.left_ns * device_slowed);
        let due = self.paced.iter().map(|unit| self.units[*unit].due_ns - self.now_ns).filter(|wait_ns| *wait_ns > 0.0);
        let Some(passed_ns) = jobs.chain(device).chain(due).min_by(f64::total_cmp) else { return false };
        self.now_ns += passed_ns;
        if let Some(front) = self.queue.front_mut() {
            front.left_ns -= passed_ns / device_slowed;
            if front.left_ns <= 1e-3 {
                self.finished.extend(self.queue.pop_front());
            }
        }
        for lane in 0..self.jobs.len() {
            let Some(job) = &mut self.jobs[lane] else { continue };
            job.left_ns -= passed_ns / shares.slowed(job.threads);
            if job.left_ns > 1e-3 {
                continue;
            }
            match self.jobs[lane].take().map(|job| job.then) {
                Some(Then::Send(unit, at_ns, frame)) => self.send(unit, at_ns, frame),
                Some(Then::Submit(submission)) => self.queue.push_back(submission),
                Some(Then::Receive(frames)) => {
                    for (unit, frame) in frames {
                        self.send(unit, frame.at_ns, Some(frame));
                    }
                }
                None => {}
            }
        }
        true
    }

    /// How the machine's threads are shared now.
    fn shares(&self) -> ThreadShares {
        let software = self.stage.software && !self.queue.is_empty();
        let wide = self.jobs.iter().flatten().filter(|job| job.threads > 1.0).count() + usize::from(software);
        let narrow = self.jobs.iter().flatten().filter(|job| job.threads <= 1.0).count();
        ThreadShares { threads: self.stage.threads, wide: wide as f64, narrow: narrow as f64 }
    }

    /// A time that varies by this part.
    fn varied(&mut self, ns: f64, variation: f64) -> f64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        let part = (self.seed >> 11) as f64 / (1u64 << 53) as f64;
        ns * (1.0 + variation * (2.0 * part - 1.0))
    }
}

/// How jobs share the threads of the machine. A job on one thread has a thread of its own, as long as there are enough.
/// Jobs that are spread over threads wait for their slowest part, so they get what is left: on two threads, beside a sink
/// that takes 0.18 ms, `blur sigma=2` takes 0.26 ms at 480x270 instead of 0.13.
#[derive(Debug, Clone, Copy)]
struct ThreadShares {
    threads: f64,
    /// Jobs that are spread over several threads, a software device among them.
    wide: f64,
    /// Jobs on one thread.
    narrow: f64,
}

impl ThreadShares {
    /// How many times longer a job on this many threads takes than alone.
    fn slowed(&self, threads: f64) -> f64 {
        let crowd = ((self.wide + self.narrow) / self.threads).max(1.0);
        if threads <= 1.0 {
            return crowd;
        }
        let left = ((self.threads - self.narrow) / self.wide.max(1.0)).max(1.0);
        (threads / left).max(1.0) * crowd
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A source and a sink in two lanes with a link of this depth, with their times in milliseconds.
    fn two_lanes(source_ms: f64, sink_ms: f64, depth: usize, period_ms: Option<f64>) -> Stage {
        let clock = SourceClock { step_ns: 1e6, period_ns: period_ms.map(|ms| ms * 1e6) };
        let usual = || Station { threads: 1.0, every: 1, ..Station::default() };
        let source = Station { host_ns: source_ms * 1e6, source: Some(clock), outputs: vec![0], ..usual() };
        let sink = Station { host_ns: sink_ms * 1e6, lead: Some(0), is_sink: true, ..usual() };
        Stage {
            stations: vec![source, sink],
            rings: vec![StationRing { depth, policy: Policy::Lossless, inline: false }],
            lanes: vec![vec![vec![0]], vec![vec![1]]],
            threads: 8.0,
            in_flight: 2,
            batch: 1,
            ..Stage::default()
        }
    }

    #[track_caller]
    fn takes(stage: &Stage, ms: f64) {
        let found = stage.latency_ns().unwrap() / 1e6;
        assert!((found / ms - 1.0).abs() < 0.1, "{found} ms, expected about {ms} ms");
    }

    #[test]
    fn a_full_link_before_a_slow_sink_adds_its_depth_in_frames() {
        takes(&two_lanes(1.0, 10.0, 3, None), 40.0);
        takes(&two_lanes(1.0, 10.0, 1, None), 20.0);
    }

    #[test]
    fn no_frame_waits_before_a_fast_sink_or_at_a_slow_pace() {
        takes(&two_lanes(10.0, 1.0, 3, None), 11.0);
        takes(&two_lanes(1.0, 10.0, 3, Some(50.0)), 11.2);
    }

    #[test]
    fn lanes_share_the_threads_of_the_machine() {
        let mut stage = two_lanes(10.0, 5.0, 3, None);
        takes(&stage, 15.0);
        stage.threads = 1.0;
        let shared = stage.latency_ns().unwrap();
        assert!(shared > 18e6, "{shared} ns");
    }

    #[test]
    fn a_spread_job_gets_the_threads_that_are_left() {
        let shares = |threads, wide, narrow| ThreadShares { threads, wide, narrow };
        assert!((shares(2.0, 1.0, 0.0).slowed(2.0) - 1.0).abs() < 1e-9);
        let beside_one = shares(2.0, 1.0, 1.0);
        assert!((beside_one.slowed(1.0) - 1.0).abs() < 1e-9 && (beside_one.slowed(2.0) - 2.0).abs() < 1e-9);
        assert!((shares(8.0, 2.0, 2.0).slowed(8.0) - 8.0 / 3.0).abs() < 1e-9);
        let crowded = shares(1.0, 1.0, 2.0);
        assert!((crowded.slowed(1.0) - 3.0).abs() < 1e-9 && (crowded.slowed(2.0) - 6.0).abs() < 1e-9);
    }

    #[test]
    fn frames_in_flight_wait_for_the_device() {
        let mut stage = two_lanes(0.0, 0.0, 1, None);
        stage.stations[0].device_ns = 10e6;
        stage.rings[0].inline = true;
        (stage.lanes, stage.device_lane) = (vec![vec![vec![0, 1]]], Some(0));
        takes(&stage, 20.0);
        stage.in_flight = 1;
        takes(&stage, 10.0);
        stage.batch = 4;
        takes(&stage, 40.0);
    }

    #[test]
    fn a_stage_without_frames_has_no_latency() {
        let mut stage = two_lanes(1.0, 1.0, 1, None);
        stage.stations[0].source = None;
        assert_eq!(stage.latency_ns(), None);
    }
}
