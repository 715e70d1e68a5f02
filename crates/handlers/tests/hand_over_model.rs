//! No frame and no wake-up is lost between a lane and the program, however their steps interleave: the real
//! `hand_over.rs`, compiled against loom's threads. A lost wake-up leaves a thread asleep forever, and loom
//! reports that.

/// What `hand_over.rs` finds under the names of the crate's own `sync`.
mod sync {
    pub(super) use loom::sync::atomic::AtomicU32;
    pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};

    /// Looks not at all: looking only adds interleavings with the same states.
    #[derive(Debug)]
    pub(super) struct Patience;

    #[expect(clippy::unused_self, reason = "as in the type that this one replaces")]
    impl Patience {
        pub(super) fn new() -> Patience {
            Patience
        }

        pub(super) fn look(&self, _: impl Fn() -> bool) -> bool {
            false
        }

        pub(super) fn sleep<R>(&self, sleep: impl FnOnce() -> R) -> R {
            sleep()
        }
    }

    /// Time does not pass in a model: a wait without limit, or none.
    #[derive(Clone, Copy)]
    pub(super) enum Until {
        Forever,
        Now,
    }

    impl Until {
        pub(super) fn is_past(self) -> bool {
            matches!(self, Until::Now)
        }
    }

    pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
        mutex.lock().expect("no thread of the model panics")
    }

    pub(super) fn sleep<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>, _: Until) -> MutexGuard<'a, T> {
        condvar.wait(guard).expect("no thread of the model panics")
    }
}

#[expect(dead_code, reason = "the model uses part of the type")]
#[path = "../src/app/hand_over.rs"]
mod hand_over;

use hand_over::{Gone, HandOver};
use loom::sync::Arc;
use loom::sync::Notify;
use loom::thread;
use sync::Until;

/// Tries every interleaving with at most three preemptions. Every known kind of lost wake-up needs fewer, and all
/// interleavings of three frames would take minutes.
fn model(body: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(body);
}

/// A hand-over and the signal that wakes its lane.
struct Pair {
    queue: HandOver<u32>,
    lane: Notify,
}

impl Pair {
    fn new(capacity: usize) -> Arc<Pair> {
        Arc::new(Pair { queue: HandOver::new(capacity), lane: Notify::new() })
    }

    fn wake(&self, wakes: bool) {
        if wakes {
            self.lane.notify();
        }
    }

    fn push(&self, frame: u32, drops: bool) -> Result<(), Gone> {
        let wakes = self.queue.send(frame, drops, || Ok(Until::Forever), |_| Ok(()))?;
        self.wake(wakes);
        Ok(())
    }

    fn pull(&self) -> Option<u32> {
        let (frame, wakes) = self.queue.receive::<Gone>(false, || Ok(Until::Forever)).expect("there is no limit");
        self.wake(wakes);
        frame
    }

    fn release(&self) {
        self.wake(self.queue.release());
    }

    /// The lane of a source: takes frames until the end.
    fn take_all(&self) -> Vec<u32> {
        let mut taken = Vec::new();
        loop {
            if !self.queue.has_news() {
                self.lane.wait();
                continue;
            }
            match self.queue.take() {
                Ok(frame) => taken.push(frame),
                Err(_) => return taken,
            }
        }
    }

    /// The lane of a sink: puts these frames and ends the stream.
    fn put_all(&self, frames: u32, hold: usize) {
        for frame in 0..frames {
            while !self.queue.has_room(hold, 0) {
                self.lane.wait();
            }
            self.queue.put(frame);
        }
        self.queue.close();
    }
}

#[test]
fn a_full_input_lets_its_lane_take_every_frame_in_order() {
    model(|| {
        let pair = Pair::new(1);
        let own = Arc::clone(&pair);
        let program = thread::spawn(move || {
            for frame in 0..3 {
                own.push(frame, false).unwrap();
            }
            own.wake(own.queue.close());
        });
        assert_eq!(pair.take_all(), [0, 1, 2]);
        program.join().unwrap();
    });
}

#[test]
fn an_input_that_ends_wakes_the_program() {
    model(|| {
        let pair = Pair::new(1);
        let own = Arc::clone(&pair);
        let program = thread::spawn(move || {
            let mut sent = 0;
            while own.push(sent, false).is_ok() {
                sent += 1;
                if sent == 3 {
                    break;
                }
            }
            sent
        });
        pair.queue.end();
        program.join().unwrap();
        let (counts, queued) = pair.queue.counts();
        assert_eq!((counts.put, queued), (counts.taken + counts.dropped, 0));
    });
}

#[test]
fn a_live_input_counts_every_frame() {
    model(|| {
        let pair = Pair::new(1);
        let own = Arc::clone(&pair);
        let program = thread::spawn(move || {
            for frame in 0..3 {
                own.push(frame, true).unwrap();
            }
            own.wake(own.queue.close());
        });
        let taken = pair.take_all();
        program.join().unwrap();
        let (counts, _) = pair.queue.counts();
        assert_eq!((counts.put, counts.taken), (3, taken.len() as u64));
        assert_eq!(counts.dropped, 3 - counts.taken);
        assert!(taken.is_sorted() && taken.last() == Some(&2), "{taken:?}");
    });
}

#[test]
fn two_threads_of_a_program_pull_every_frame_once() {
    model(|| {
        let pair = Pair::new(1);
        let pull = |pair: &Arc<Pair>| {
            let own = Arc::clone(pair);
            thread::spawn(move || {
                let mut count = 0;
                while own.pull().is_some() {
                    own.release();
                    count += 1;
                }
                count
            })
        };
        let (one, other) = (pull(&pair), pull(&pair));
        pair.put_all(2, 2);
        assert_eq!(one.join().unwrap() + other.join().unwrap(), 2);
    });
}

#[test]
fn a_frame_that_the_program_returns_lets_the_lane_go_on() {
    model(|| {
        let pair = Pair::new(2);
        let own = Arc::clone(&pair);
        let program = thread::spawn(move || {
            let mut pulled = Vec::new();
            while let Some(frame) = own.pull() {
                pulled.push(frame);
                own.release();
            }
            pulled
        });
        pair.put_all(3, 1);
        assert_eq!(program.join().unwrap(), [0, 1, 2]);
    });
}

#[test]
fn a_pull_that_must_not_wait_returns() {
    model(|| {
        let pair = Pair::new(1);
        let refused = pair.queue.receive::<Gone>(false, || Ok(Until::Now));
        assert_eq!(refused.map(|(frame, _)| frame), Err(Gone::Late));
    });
}
