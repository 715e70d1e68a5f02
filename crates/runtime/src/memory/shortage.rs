//! Shortage of frame memory: what a waiting node needs, when waiting is hopeless, and the error that names the holders.
//!
//! A budget is a hard limit: no pool ever exceeds it. A node that is refused memory before it has taken its frame waits
//! and is called again with the same frame, which counts as held meanwhile. Fused units, uploads and `convert` request
//! memory before they take their frame. For a source, memory is lent before the call, because a source cannot be called
//! twice for one frame. A download stays in its ring until a host frame is lent for it. A handler that takes its frame
//! first and requests memory afterwards fails on that frame, as with any other error.
//!
//! - **What is admitted can leave.** A node that requests host memory leaves enough for one frame of each downstream
//!   unit, so that sources cannot take what the next kernel needs. On the device, returned memory goes to the segment
//!   furthest downstream.
//! - **No lane spins.** A lane that waits for memory waits for the device, or one millisecond, and tries again.
//! - **No lane waits forever.** If the caller steps the engine, a stall is a round in which nothing moved, no clock
//!   runs and the device is idle. If lanes run on threads, the watching thread sees that all lanes are idle, wakes
//!   them, and finds that each lane has tried again and no lane has moved ([`Stall`]). After a stall, nodes stop
//!   leaving memory to others. If that does not help either, the run ends with [`OutOfMemory`]: which handler needs how
//!   much for which frame, how much is available, and which handlers hold the rest.

use std::fmt;
use std::sync::Arc;

use vramp_gpu::{Device, LendError};
use vramp_plan::Space;

use crate::failure::HandlerFailure;
use crate::frame::EditError;
use crate::frame::pool::FramePool;
use crate::handler::{DeviceError, HandlerError};

const MOST_HOLDERS: usize = 6;

/// The memory that a node waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    pub handler: String,
    pub frame: u64,
    pub space: Space,
    pub needed_bytes: u64,
    pub available_bytes: u64,
    pub budget_bytes: u64,
}

/// Why a run cannot continue: it needs more memory than its budget allows, and waiting does not help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{needed_bytes} bytes of {space} memory are needed, {available_bytes} of {budget_bytes} are available, and no \
     holder of the rest can move: {}; raise --memory, or reduce frame sizes, link depths, delays or --in-flight",
    HolderNames(holders)
)]
pub struct OutOfMemory {
    pub space: Space,
    pub needed_bytes: u64,
    pub available_bytes: u64,
    pub budget_bytes: u64,
    /// The largest first.
    pub holders: Vec<MemoryHolder>,
}

/// The frames that one owner holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryHolder {
    /// The handler that requested the memory.
    pub owner: Arc<str>,
    pub frames: usize,
    pub bytes: u64,
    /// The number of the first frame for which this memory was lent.
    pub since_frame: u64,
}

struct HolderNames<'a>(&'a [MemoryHolder]);

impl fmt::Display for HolderNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, MemoryHolder { owner, frames, bytes, since_frame }) in self.0.iter().take(MOST_HOLDERS).enumerate() {
            let and = if at == 0 { "" } else { ", " };
            let noun = if *frames == 1 { "frame" } else { "frames" };
            write!(f, "{and}{owner} holds {bytes} bytes in {frames} {noun} since frame {since_frame}")?;
        }
        match self.0.len() {
            0 => f.write_str("no handler holds any"),
            all if all > MOST_HOLDERS => write!(f, ", further holders: {}", all - MOST_HOLDERS),
            _ => Ok(()),
        }
    }
}

impl HandlerError {
    /// If memory is missing: its space, and the bytes needed, available and in the budget.
    pub(crate) fn missing(&self) -> Option<(Space, u64, u64, u64)> {
        match self {
            HandlerError::Pool(error) | HandlerError::Edit(EditError::NoCopy { error, .. }) => {
                let (needed, available, budget) = error.missing()?;
                Some((Space::Cpu, needed, available, budget))
            }
            HandlerError::Device(DeviceError::Lend(LendError::OutOfBudget {
                needed_bytes,
                available_bytes,
                budget_bytes,
                ..
            })) => Some((Space::Gpu, *needed_bytes, *available_bytes, *budget_bytes)),
            _ => None,
        }
    }
}

impl Shortage {
    /// The failure that ends a run in which waiting for memory is useless.
    pub(crate) fn failure(self, pool: &FramePool, device: Option<&Device>) -> HandlerFailure {
        let Shortage { handler, frame, space, needed_bytes, available_bytes, budget_bytes } = self;
        let mut holders: Vec<MemoryHolder> = Vec::new();
        let mut add = |owner: &Arc<str>, bytes: u64, since_frame: u64| match holders
            .iter_mut()
            .find(|holder| holder.owner == *owner)
        {
            Some(holder) => {
                holder.frames += 1;
                holder.bytes += bytes;
                holder.since_frame = holder.since_frame.min(since_frame);
            }
            None => holders.push(MemoryHolder { owner: Arc::clone(owner), frames: 1, bytes, since_frame }),
        };
        match space {
            Space::Cpu => {
                for held in pool.held() {
                    add(&held.owner, held.bytes, held.since_frame);
                }
            }
            Space::Gpu => {
                let lent = device.map(|device| device.pool().leaks()).unwrap_or_default();
                for row in &lent {
                    add(&row.owner, row.bytes, row.since_frame);
                }
            }
        }
        holders.sort_by_key(|holder| std::cmp::Reverse(holder.bytes));
        let error = OutOfMemory { space, needed_bytes, available_bytes, budget_bytes, holders };
        HandlerFailure { handler, frame, error: HandlerError::OutOfMemory(Box::new(error)) }
    }
}

/// The state of a waiting lane.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitingLane {
    /// Number of steps that moved something.
    pub(crate) moves: u64,
    /// Number of all steps.
    pub(crate) tries: u64,
    /// Whether only other lanes or returned memory can let the lane move.
    pub(crate) idle: bool,
    /// Whether the lane waits for memory.
    pub(crate) starves: bool,
}

/// What to do about waiting lanes.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Fine,
    /// All lanes must try again.
    Wake,
    /// Nodes need not leave memory to others any more; all lanes must try again.
    Press,
    /// Nothing will move again.
    Hopeless,
}

/// Detects lanes that wait for each other's memory.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Default)]
pub(crate) struct Stall {
    before: Option<Vec<WaitingLane>>,
    pressed: bool,
}

#[cfg(not(target_arch = "wasm32"))]
impl Stall {
    /// Compares the lanes' states with the states at the previous call.
    pub(crate) fn judge(&mut self, lanes: Vec<WaitingLane>) -> Verdict {
        let stalled = lanes.iter().all(|lane| lane.idle) && lanes.iter().any(|lane| lane.starves);
        if !stalled {
            let was_pressed = std::mem::take(&mut self.pressed);
            self.before = None;
            return if was_pressed { Verdict::Wake } else { Verdict::Fine };
        }
        // Every lane has made one whole step that began after the previous call, and no lane has moved.
        let same =
            |(before, now): (&WaitingLane, &WaitingLane)| before.moves == now.moves && now.tries >= before.tries + 2;
        let moved = |(before, now): (&WaitingLane, &WaitingLane)| before.moves != now.moves;
        match &self.before {
            Some(before) if before.len() == lanes.len() && before.iter().zip(&lanes).all(same) => {
                self.before = None;
                if std::mem::replace(&mut self.pressed, true) { Verdict::Hopeless } else { Verdict::Press }
            }
            Some(before) if before.len() == lanes.len() && !before.iter().zip(&lanes).any(moved) => Verdict::Wake,
            _ => {
                self.before = Some(lanes);
                Verdict::Wake
            }
        }
    }

    /// Whether nodes currently leave no memory to others.
    pub(crate) fn is_pressed(&self) -> bool {
        self.pressed
    }
}

#[cfg(all(test, not(target_arch = "wasm32")))]
mod tests {
    use super::*;

    fn look(moves: u64, tries: u64, starves: bool) -> WaitingLane {
        WaitingLane { moves, tries, idle: true, starves }
    }

    #[test]
    fn waiting_ends_only_when_every_lane_has_tried_again_and_none_moved() {
        let mut stall = Stall::default();
        assert_eq!(stall.judge(vec![look(5, 10, true), look(7, 20, false)]), Verdict::Wake);
        assert_eq!(stall.judge(vec![look(5, 99, true), look(7, 21, false)]), Verdict::Wake, "one has not tried again");
        assert_eq!(stall.judge(vec![look(5, 99, true), look(7, 22, false)]), Verdict::Press);
        assert_eq!(stall.judge(vec![look(5, 99, true), look(7, 22, false)]), Verdict::Wake);
        assert_eq!(stall.judge(vec![look(5, 101, true), look(7, 24, false)]), Verdict::Hopeless);
    }

    #[test]
    fn a_move_a_clock_or_a_device_at_work_begins_it_anew() {
        let mut stall = Stall::default();
        stall.judge(vec![look(5, 10, true)]);
        assert_eq!(stall.judge(vec![look(6, 99, true)]), Verdict::Wake, "it moved");
        assert_eq!(stall.judge(vec![WaitingLane { idle: false, ..look(6, 200, true) }]), Verdict::Fine);
        assert_eq!(stall.judge(vec![look(6, 300, false)]), Verdict::Fine, "no lane waits for memory");
        assert_eq!(stall.judge(vec![look(6, 400, true)]), Verdict::Wake);
        assert_eq!(stall.judge(vec![look(6, 402, true)]), Verdict::Press);
        assert!(stall.is_pressed());
        assert_eq!(stall.judge(vec![look(7, 500, false)]), Verdict::Wake, "it helped");
        assert!(!stall.is_pressed());
    }

    #[test]
    fn the_error_says_who_needs_what_and_who_holds_the_rest() {
        let holder = |owner: &str, bytes| MemoryHolder { owner: owner.into(), frames: 2, bytes, since_frame: 3 };
        let error = OutOfMemory {
            space: Space::Cpu,
            needed_bytes: 100,
            available_bytes: 20,
            budget_bytes: 300,
            holders: vec![holder("pattern0", 200), holder("blur0", 80)],
        };
        assert_eq!(
            error.to_string(),
            "100 bytes of cpu memory are needed, 20 of 300 are available, and no holder of the rest can move: \
             pattern0 holds 200 bytes in 2 frames since frame 3, blur0 holds 80 bytes in 2 frames since frame 3; raise \
             --memory, or reduce frame sizes, link depths, delays or --in-flight"
        );
    }
}
