//! Makes changes of settings on a thread of its own, because a change may wait for a compiler.
//!
//! Changes are made one after another, in order. A new value of a setting that still waits replaces the waiting value,
//! so that a key that is held down does not fill the queue.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::Controls;

/// How long the answer to a change waits for the first frame that has the change.
const FIRST_FRAME: Duration = Duration::from_secs(1);

/// How often that wait looks whether another change has come.
const GLANCE: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct WantedChange {
    pub(super) name: String,
    pub(super) value: String,
}

/// What the view shows about the latest change.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ChangeStatus {
    #[default]
    Nothing,
    /// A change is being made, or was made.
    Note(String),
    /// A change was refused.
    Refused(String),
}

/// The thread that makes changes. Dropping it waits for the change that is being made, and makes no further one.
pub(super) struct Changes {
    shared: Arc<Shared>,
    worker: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<WantedChange>,
    making: Option<WantedChange>,
    status: ChangeStatus,
    /// Whether the status is newer than the status that the view last took.
    has_news: bool,
    closed: bool,
}

impl Queue {
    fn report(&mut self, status: ChangeStatus) {
        (self.status, self.has_news) = (status, true);
    }
}

impl Changes {
    pub(super) fn of(controls: Controls) -> io::Result<Changes> {
        Changes::start(move |wanted, is_urgent| set(&controls, wanted, is_urgent))
    }

    /// `make` makes a change. Its second argument tells whether `make` should return soon.
    fn start(make: impl Fn(&WantedChange, &dyn Fn() -> bool) -> ChangeStatus + Send + 'static) -> io::Result<Changes> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let worker = thread::Builder::new().name("settings".to_owned()).spawn(move || own.work(make))?;
        Ok(Changes { shared, worker: Some(worker) })
    }

    pub(super) fn want(&self, wanted: WantedChange) {
        let mut queue = self.shared.queue();
        match queue.waiting.iter_mut().find(|waiting| waiting.name == wanted.name) {
            Some(waiting) => waiting.value = wanted.value,
            None => queue.waiting.push_back(wanted),
        }
        self.shared.wake.notify_all();
    }

    /// The latest wanted value of a setting, while that change waits or is being made.
    pub(super) fn pending(&self, name: &str) -> Option<String> {
        let queue = self.shared.queue();
        let mut latest_first = queue.waiting.iter().rev().chain(&queue.making);
        latest_first.find(|wanted| wanted.name == name).map(|wanted| wanted.value.clone())
    }

    pub(super) fn report(&self, status: ChangeStatus) {
        self.shared.queue().report(status);
    }

    pub(super) fn status(&self) -> ChangeStatus {
        let mut queue = self.shared.queue();
        queue.has_news = false;
        queue.status.clone()
    }

    /// Whether there is a status that [`Changes::status`] has not returned yet.
    pub(super) fn has_news(&self) -> bool {
        self.shared.queue().has_news
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.shared.queue().closed = true;
        self.shared.wake.notify_all();
        // A worker that has panicked has nothing to finish.
        let _ = self.worker.take().map(JoinHandle::join);
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Every change of the queue is one assignment or one call, so a queue is whole after a panic.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, make: impl Fn(&WantedChange, &dyn Fn() -> bool) -> ChangeStatus) {
        let is_urgent = || {
            let queue = self.queue();
            queue.closed || !queue.waiting.is_empty()
        };
        while let Some(wanted) = self.next() {
            let status = make(&wanted, &is_urgent);
            let mut queue = self.queue();
            queue.making = None;
            queue.report(status);
        }
    }

    /// Waits for a change; `None` once the view has ended.
    fn next(&self) -> Option<WantedChange> {
        let is_idle = |queue: &mut Queue| !queue.closed && queue.waiting.is_empty();
        let mut queue = self.wake.wait_while(self.queue(), is_idle).unwrap_or_else(PoisonError::into_inner);
        if queue.closed {
            return None;
        }
        let wanted = queue.waiting.pop_front()?;
        queue.making = Some(wanted.clone());
        queue.report(ChangeStatus::Note(format!("setting {}={}", wanted.name, wanted.value)));
        Some(wanted)
    }
}

fn set(controls: &Controls, wanted: &WantedChange, is_urgent: &dyn Fn() -> bool) -> ChangeStatus {
    let change = match controls.set(&wanted.name, &wanted.value) {
        Ok(change) => change,
        Err(error) => return ChangeStatus::Refused(error.to_string()),
    };
    let begun = Instant::now();
    let frame = loop {
        let frame = change.frame(GLANCE);
        if frame.is_some() || begun.elapsed() >= FIRST_FRAME || is_urgent() {
            break frame;
        }
    };
    if let Some(problem) = change.problem() {
        return ChangeStatus::Refused(problem);
    }
    // The library may write a value in another way than the user did, such as `3` for `3.0`.
    let value = controls.get(&wanted.name).unwrap_or_else(|_| wanted.value.clone());
    let since = frame.map_or_else(|| "the next frame".to_owned(), |frame| format!("frame {frame}"));
    ChangeStatus::Note(format!("{}={value} from {since}", wanted.name))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn wanted(name: &str, value: &str) -> WantedChange {
        WantedChange { name: name.to_owned(), value: value.to_owned() }
    }

    #[test]
    fn changes_are_made_in_order_and_a_waiting_value_is_replaced() {
        let (begun, begins) = mpsc::channel();
        let (finish, may_finish) = mpsc::channel::<()>();
        let changes = Changes::start(move |wanted, is_urgent| {
            begun.send((wanted.clone(), is_urgent())).unwrap();
            may_finish.recv().unwrap();
            ChangeStatus::Note(format!("{} is {}", wanted.name, wanted.value))
        })
        .unwrap();
        changes.want(wanted("a.x", "1"));
        assert_eq!(begins.recv().unwrap(), (wanted("a.x", "1"), false));
        assert_eq!(changes.status(), ChangeStatus::Note("setting a.x=1".to_owned()), "a change does not block");
        assert_eq!(changes.pending("a.x").as_deref(), Some("1"));
        for value in ["2", "3"] {
            changes.want(wanted("a.x", value));
        }
        changes.want(wanted("a.y", "9"));
        assert_eq!(changes.pending("a.x").as_deref(), Some("3"));
        finish.send(()).unwrap();
        assert_eq!(begins.recv().unwrap(), (wanted("a.x", "3"), true), "another change waits");
        finish.send(()).unwrap();
        assert_eq!(begins.recv().unwrap(), (wanted("a.y", "9"), false));
        assert_eq!(changes.pending("a.x"), None);
        finish.send(()).unwrap();
        drop(changes);
        assert!(begins.recv().is_err(), "the thread has ended");
    }

    #[test]
    fn the_view_learns_of_each_status_once_and_a_closed_view_drops_what_waits() {
        let (begun, begins) = mpsc::channel();
        let (finish, may_finish) = mpsc::channel::<()>();
        let changes = Changes::start(move |wanted, is_urgent| {
            begun.send(wanted.name.clone()).unwrap();
            may_finish.recv().unwrap();
            assert!(is_urgent(), "the view is closed");
            ChangeStatus::Nothing
        })
        .unwrap();
        assert!(!changes.has_news());
        changes.report(ChangeStatus::Refused("no".to_owned()));
        assert!(changes.has_news());
        assert_eq!((changes.status(), changes.has_news()), (ChangeStatus::Refused("no".to_owned()), false));
        changes.want(wanted("a.x", "1"));
        begins.recv().unwrap();
        changes.want(wanted("a.y", "2"));
        changes.shared.queue().closed = true;
        finish.send(()).unwrap();
        drop(changes);
        assert!(begins.recv().is_err(), "the waiting change is not made");
    }
}
