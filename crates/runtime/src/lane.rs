//! Lanes: nodes that run one after another, on one thread or stepped from outside.
//!
//! Owns the nodes of a lane, its bell, and the loop that lets them fire.
//! Does not know other lanes: links and bells are all they share.
//!
//! Always: a lane that can do nothing waits for its bell, and only for that, so stopping it is ringing it.

use std::time::Duration;

use crate::bell::Bell;
use crate::handler::HandlerError;
use crate::node::{Fired, Node};
use crate::pool::HostPool;
use crate::ring::DropReason;

/// Nodes that run one after another.
pub struct Lane {
    nodes: Vec<Node>,
    bell: Bell,
}

/// What came of letting every node of a lane fire once.
#[derive(Debug)]
pub enum Stepped {
    /// Something moved.
    Moved,
    /// Nothing moves before the bell rings.
    Stuck,
    /// Nothing moves before the bell rings or this much time has passed.
    Wait(Duration),
    /// Every node has ended.
    Over,
    /// A handler failed, and its policy is to stop the run.
    Failed {
        /// Which one.
        node: String,
        /// What it said.
        error: HandlerError,
    },
}

impl Lane {
    /// A lane of these nodes, in running order, woken by this bell.
    pub fn new(nodes: Vec<Node>, bell: Bell) -> Lane {
        Lane { nodes, bell }
    }

    /// Its nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What wakes it: ring it after asking it to stop.
    pub fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Starts its handlers; the name of the one that failed comes with its error.
    pub fn start(&mut self) -> Result<(), (String, HandlerError)> {
        self.nodes.iter_mut().try_for_each(|node| {
            let name = node.name().to_owned();
            node.start().map_err(|error| (name, error))
        })
    }

    /// Lets every node fire once.
    pub fn step(&mut self, since_start: Duration, pool: &HostPool) -> Stepped {
        let (mut moved, mut over, mut wait) = (false, true, None::<Duration>);
        for node in &mut self.nodes {
            match node.fire(since_start, pool) {
                Fired::Moved => (moved, over) = (true, false),
                Fired::Stuck => over = false,
                Fired::Wait(time) => {
                    over = false;
                    wait = Some(wait.map_or(time, |other| other.min(time)));
                }
                Fired::Over => {}
                Fired::Failed(error) => return Stepped::Failed { node: node.name().to_owned(), error },
            }
        }
        match (moved, over, wait) {
            (true, ..) => Stepped::Moved,
            (_, true, _) => Stepped::Over,
            (_, _, Some(wait)) => Stepped::Wait(wait),
            _ => Stepped::Stuck,
        }
    }

    /// Runs until everything has ended, a handler fails, or `stopped` says so; `now` tells the time since the start.
    /// Stopping takes effect at the next ring of the lane's bell.
    #[cfg(not(target_arch = "wasm32"))]
    pub fn run(
        &mut self,
        pool: &HostPool,
        now: impl Fn() -> Duration,
        stopped: impl Fn() -> bool,
    ) -> Result<(), (String, HandlerError)> {
        /// A bell that is never rung must not hang a lane for good; nothing depends on this length.
        const LONGEST: Duration = Duration::from_secs(1);
        while !stopped() {
            match self.step(now(), pool) {
                Stepped::Moved => {}
                Stepped::Stuck => {
                    self.bell.wait(LONGEST);
                }
                Stepped::Wait(wait) => {
                    self.bell.wait(wait.min(LONGEST));
                }
                Stepped::Over => return Ok(()),
                Stepped::Failed { node, error } => return Err((node, error)),
            }
        }
        Ok(())
    }

    /// Stops its handlers; frames that still wait in front of them are dropped for this reason. The first error is
    /// handed back after all have been stopped.
    pub fn stop(&mut self, reason: DropReason) -> Result<(), (String, HandlerError)> {
        let mut first = Ok(());
        for node in &mut self.nodes {
            let name = node.name().to_owned();
            let stopped = node.stop(reason).map_err(|error| (name, error));
            if first.is_ok() {
                first = stopped;
            }
        }
        first
    }
}
