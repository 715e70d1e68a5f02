//! Runs an engine on threads: one per lane, and the caller's thread, which takes lanes back when they have ended,
//! reports the progress every second and enforces limits.
//!
//! **Threads.** A lane is a list of nodes that run one after another. Each lane that waits for the outside (files,
//! pipes) has its own thread. Lanes that compute on the host run *inside* a rayon pool. The device lane runs there too,
//! on an extra thread, because the device lane computes on the host if its device is lost. `broadcast` runs one closure
//! on every thread of the pool: as many threads as there are lanes take one lane each and keep it, and the other
//! threads compute rows. There are two reasons for `broadcast`. Spreading rows from a pool's own thread allocates
//! nothing, while `install` from outside and `scope` allocate. And if lanes were jobs of the pool, a thread whose lane
//! waits for its rows could pick up a second lane, and the first lane would then have to wait until the second ends.
//! With `--threads 1` there is no pool, and every lane has its own thread. On the web and in the harness there are no
//! threads: [`Engine::step`] lets every lane take one step. Lanes share only links and wake signals.
//!
//! **Failures.** If a source that is alone in its lane fails, its stream ends: the frames it has sent arrive, and then
//! the run ends with the error. Any other failure stops the run. A handler is started on its lane's thread, because
//! starting may wait for files or pipes too. A handler that does not return within a second of a stop is named in the
//! error, and its thread is abandoned, since Rust cannot end a thread. The other lanes are finished all the same. A
//! handler that tells that it makes progress ([`Reporter::progress`](crate::Reporter::progress)) is waited for.
//!
//! **A kernel without an end.** Every submission has a time limit. Drivers differ in where they wait. Most drivers run
//! kernels asynchronously, so the player sees that its oldest submission is overdue. Mesa 25's software driver runs
//! kernels inside the submitting call, so the caller's thread checks how long that call has lasted. For the same
//! reason, the first run of each kernel is on a separate thread. A device that hangs counts as lost, and its handles
//! are leaked on purpose, because freeing them would wait for the kernel. The run does not wait for a lane that is
//! stuck inside the driver, so that lane cannot continue on the CPU; the other lanes are finished.
//!
//! Invariant: a stopped run returns within a second of the last progress that a handler tells, whatever handlers do.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::device::lane_player::failure;
use crate::failure::HandlerFailure;
use crate::handler::DeviceError;
use crate::lane::{Busy, Lane};
use crate::memory::no_memory::NoMemory;
use crate::memory::shortage::{Stall, Verdict};
use crate::observe::monitor::{RunEvent, RunProgress};

use super::barrier::{Switch, SwitchStep, Unrest};
use super::{Engine, PrepareError, RunError, RunOutcome, Stopper};

/// How long the run waits for handlers after a stop.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long the run waits, after the time limit of a submission, for a lane that is stuck inside the driver.
const GRACE: Duration = Duration::from_millis(400);

/// Interval at which the run checks for lanes that wait for memory in vain.
const LOOK: Duration = Duration::from_millis(25);

/// Bounds of the interval at which the run checks for anything else.
const SHORTEST: Duration = Duration::from_millis(2);
const LONGEST: Duration = Duration::from_millis(100);
/// Replaces [`LONGEST`] while links are drawn on a timeline.
const TRACED: Duration = Duration::from_millis(5);

/// A lane that its thread has returned.
struct Back {
    number: usize,
    lane: Lane,
    result: Result<(), HandlerFailure>,
}

impl Engine {
    /// Runs until the sources end, a handler fails, the run is stopped, or `longest` has passed.
    pub fn run(mut self, longest: Option<Duration>) -> Result<RunOutcome, PrepareError> {
        let started = *self.begun.get_or_insert_with(Instant::now);
        self.driver.run_on_threads();
        let count = self.lanes.len();
        let busy: Vec<Arc<Busy>> = self.lanes.iter().map(|lane| Arc::clone(lane.busy())).collect();
        let alive: Vec<Arc<AtomicU64>> = self.lanes.iter().map(|lane| Arc::clone(lane.alive())).collect();
        let progress = || alive.iter().fold(0_u64, |sum, lane| sum.wrapping_add(lane.load(Ordering::Relaxed)));
        let mut progressed = 0;
        let device_lane = self.lanes.iter().position(|lane| lane.player().is_some());
        let back = self.spawn(started)?;
        let mut lanes: Vec<Option<Lane>> = (0..count).map(|_| None).collect();
        let mut error = None;
        let (mut stopped_at, mut finished_at) = (None::<Instant>, None::<Instant>);
        let (mut second, mut last) = (started.elapsed().as_secs() + 1, self.watched.before);
        let (mut hangs, mut stuck) = (None, None::<(Instant, HandlerFailure)>);
        let (mut stall, mut looked) = (Stall::default(), started);
        let mut switch = Switch::default();
        while (0..count).any(|number| lanes[number].is_none() && hangs != Some(number)) {
            let now = Instant::now();
            // The device lane cannot report an overdue submission itself while it is inside the driver.
            if let (None, None, Some(device)) = (hangs, &stuck, self.watched.device_history.current())
                && let Err(overdue) = device.check_overdue()
            {
                // If the lane does return, it continues without this device.
                let failure = failure(DeviceError::Play(overdue));
                self.watched.device_history.hang(failure.error.trouble());
                device.abandon();
                stuck = Some((now, failure));
            }
            let left = self.watched.device_history.is_hanging();
            if let Some((_, failure)) = stuck.take_if(|(since, _)| !left || now.duration_since(*since) >= GRACE)
                && left
            {
                hangs = device_lane;
                self.failed = Some(failure.drops());
                error.get_or_insert(RunError::Failed(failure));
                self.stop.stop();
            }
            if finished_at.is_none() && longest.is_some_and(|longest| started.elapsed() >= longest) {
                self.stop.finish();
                finished_at = Some(now);
            }
            // A source that waits for the outside does not notice that it should end.
            let is_late = finished_at.is_some_and(|at| now.duration_since(at) >= PATIENCE);
            if is_late && !self.stop.is_stopped() && self.a_source_is_busy(&busy, &lanes) {
                self.time_is_up = true;
                self.stop.stop();
            }
            if self.stop.is_stopped() {
                // A handler that tells that it makes progress, such as an encoder that takes its last frame, is waited for.
                if std::mem::replace(&mut progressed, progress()) != progressed {
                    stopped_at = Some(now);
                }
                if now.duration_since(*stopped_at.get_or_insert(now)) >= PATIENCE {
                    break;
                }
            }
            let next_second = Duration::from_secs(second).saturating_sub(started.elapsed());
            let to_end =
                longest.filter(|_| finished_at.is_none()).map(|longest| longest.saturating_sub(started.elapsed()));
            let longest_wait = if self.watched.trace.is_some() { TRACED } else { LONGEST };
            let wait = next_second.min(to_end.unwrap_or(next_second)).clamp(SHORTEST, longest_wait);
            if looked.elapsed() >= LOOK && !self.stop.is_stopped() {
                looked = now;
                if let Some(failure) = self.judge(&mut stall, &busy, &lanes) {
                    self.failed = Some(failure.drops());
                    error.get_or_insert(RunError::Failed(failure));
                    self.stop.stop();
                }
            }
            let mut wait = wait.min(LOOK);
            if self.stop.is_handing_over() && !self.stop.is_switching() {
                self.come_to_rest(&mut switch, &busy, &lanes);
                wait = wait.min(SHORTEST);
            }
            match back.recv_timeout(wait) {
                Ok(Back { number, lane, result }) => {
                    let lone_source = lane.is_lone_source();
                    lanes[number] = Some(lane);
                    if let Err(failure) = result {
                        self.failed = Some(failure.drops());
                        error.get_or_insert(RunError::Failed(failure));
                        if lone_source {
                            self.stop.finish();
                        } else {
                            self.stop.stop();
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.watched.look_at_run(&|| started.elapsed(), false);
            if started.elapsed() >= Duration::from_secs(second) {
                second += 1;
                last = self.report_second(started.elapsed(), &last);
            }
        }
        let missing: Vec<usize> =
            (0..count).filter(|number| lanes[*number].is_none() && hangs != Some(*number)).collect();
        let waited = stopped_at.map_or(PATIENCE, |at| at.elapsed());
        let unresponsive: Vec<String> = missing
            .iter()
            .map(|number| match busy[*number].node() {
                Some(position) => self.watched.name_at(*number, position),
                None => format!("lane {number}"),
            })
            .collect();
        for handler in &unresponsive {
            self.report_event(&RunEvent::Unresponsive { handler: handler.clone(), waited });
        }
        if !unresponsive.is_empty() {
            error.get_or_insert(RunError::Unresponsive { handlers: unresponsive, waited });
        }
        self.lanes = lanes.into_iter().flatten().collect();
        Ok(self.close(started, error))
    }

    /// Advances towards the end between two frames, at which another engine continues.
    fn come_to_rest(&self, switch: &mut Switch, busy: &[Arc<Busy>], lanes: &[Option<Lane>]) {
        let step = if self.stop.is_ending() {
            SwitchStep::GiveUp(Unrest::Frames)
        } else {
            let out = (0..lanes.len()).filter(|number| lanes[*number].is_none());
            switch.look(self.stop.barrier(), &self.marks, out.map(|number| busy[number].look()).collect())
        };
        match step {
            SwitchStep::Raise => self.stop.raise_barrier(),
            SwitchStep::Look => self.stop.wake_all(),
            SwitchStep::Switch => self.stop.switch(),
            SwitchStep::GiveUp(why) => {
                *switch = Switch::default();
                self.stop.resume((!self.stop.is_ending()).then_some(why));
            }
        }
    }

    /// Checks whether lanes wait for memory that will never be returned; returns the failure if so.
    fn judge(&self, stall: &mut Stall, busy: &[Arc<Busy>], lanes: &[Option<Lane>]) -> Option<HandlerFailure> {
        let out = || (0..lanes.len()).filter(|number| lanes[*number].is_none());
        let verdict = stall.judge(out().map(|number| busy[number].look()).collect());
        self.watched.pool.press(stall.is_pressed());
        match verdict {
            Verdict::Fine => None,
            Verdict::Wake | Verdict::Press => {
                self.stop.wake_all();
                None
            }
            Verdict::Hopeless => {
                let shortage = out().find_map(|number| busy[number].shortage())?;
                Some(shortage.failure(&self.watched.pool, self.watched.device_history.current().as_ref()))
            }
        }
    }

    /// Whether a source is being called in a lane that has not returned.
    fn a_source_is_busy(&self, busy: &[Arc<Busy>], lanes: &[Option<Lane>]) -> bool {
        let inside = |number: usize| busy[number].node().is_some_and(|at| self.watched.is_source_at(number, at));
        (0..lanes.len()).any(|number| lanes[number].is_none() && inside(number))
    }

    /// Stops every returned lane and assembles the outcome.
    fn close(mut self, started: Instant, error: Option<RunError>) -> RunOutcome {
        let elapsed = started.elapsed();
        let stopped = self.stop.is_stopped() && error.is_none();
        let kept = self.hand_over(error.is_some());
        let (report, not_stopped) = self.finish(elapsed);
        let error = error.or(not_stopped.map(RunError::Failed));
        RunOutcome { report, error, stopped, kept }
    }

    fn report_event(&self, event: &RunEvent) {
        if let Some(listener) = &self.listener {
            listener(event);
        }
    }

    fn report_second(&self, elapsed: Duration, last: &RunProgress) -> RunProgress {
        let mut progress = self.watched.progress(elapsed);
        let seconds = elapsed.saturating_sub(last.elapsed).as_secs_f64().max(1e-9);
        progress.fps = (progress.frames_out - last.frames_out) as f64 / seconds;
        progress.cpu_pool = progress.cpu_pool.since(&last.cpu_pool, seconds);
        progress.gpu_pool = progress.gpu_pool.since(&last.gpu_pool, seconds);
        self.report_event(&RunEvent::Second(progress));
        progress
    }

    /// Gives every lane its thread. Lanes that compute on the host run inside a pool of threads, so that each lane can
    /// spread its rows over all threads of the pool.
    ///
    /// No lane starts before all threads exist: if a thread cannot be created, no handler has opened anything yet.
    fn spawn(&mut self, started: Instant) -> Result<Receiver<Back>, PrepareError> {
        let (send, back) = channel();
        let (mut computing, mut begin) = (Vec::new(), Vec::new());
        // Checked before the first thread is started: a thread that finds no memory later would abort the program.
        let most = self.lanes.len() + self.threads + 1;
        let stacks = NoMemory::probe(most as u64 * STACK_BYTES);
        stacks.map_err(|problem| PrepareError::Threads { count: most, problem: problem.to_string() })?;
        let mut thread = |name: String, count: usize, work: Box<dyn FnOnce() + Send>| {
            let (go, wait) = channel::<()>();
            begin.push(go);
            let spawned = thread::Builder::new().name(name).spawn(move || {
                if wait.recv().is_ok() {
                    work();
                }
            });
            spawned.map(drop).map_err(|problem| PrepareError::Threads { count, problem: problem.to_string() })
        };
        for (number, lane) in self.lanes.drain(..).enumerate() {
            if lane.computes() && self.threads > 1 {
                computing.push((number, lane));
                continue;
            }
            let (send, stop) = (send.clone(), self.stop.clone());
            let work = Box::new(move || work(number, lane, started, &stop, &send));
            thread(format!("vramp lane {number}"), 1, work)?;
        }
        if !computing.is_empty() {
            // The device lane is in the pool only in case its device is lost, so the lane's thread does not count as a
            // computing thread.
            let on_device = computing.iter().filter(|(_, lane)| lane.may_leave()).count();
            let count = self.threads.max(computing.len() - on_device) + on_device;
            let pool = rayon::ThreadPoolBuilder::new().num_threads(count).thread_name(|at| format!("vramp rows {at}"));
            let pool = pool.build().map_err(|error| PrepareError::Threads { count, problem: error.to_string() })?;
            let stop = self.stop.clone();
            let lanes: Vec<Mutex<Option<(usize, Lane)>>> =
                computing.into_iter().map(|lane| Mutex::new(Some(lane))).collect();
            let work = Box::new(move || {
                // As many threads as there are lanes take one lane each and keep it; the other threads compute rows. If
                // lanes were jobs, a thread whose lane waits for rows could pick up another lane.
                pool.broadcast(|context| {
                    let lane = lanes.get(context.index());
                    let lane = lane.and_then(|lane| lane.lock().unwrap_or_else(PoisonError::into_inner).take());
                    if let Some((number, lane)) = lane {
                        work(number, lane, started, &stop, &send.clone());
                    }
                });
            });
            thread("vramp rows".to_owned(), count, work)?;
        }
        for go in begin {
            go.send(()).expect("every thread first waits for this message");
        }
        Ok(back)
    }
}

/// Address space a thread reserves, including what it allocates before it starts working.
const STACK_BYTES: u64 = (2 << 20) + (256 << 10);

fn work(number: usize, mut lane: Lane, started: Instant, stop: &Stopper, send: &Sender<Back>) {
    lane.begin(started);
    // Handlers are started on the lane's thread, because starting may wait for files or pipes too.
    let result =
        lane.start().and_then(|()| lane.run(&|| started.elapsed(), || stop.is_stopped() || stop.is_switching()));
    // If the lane returns too late, the receiver is gone and the result is not needed any more.
    let _ = send.send(Back { number, lane, result });
}
