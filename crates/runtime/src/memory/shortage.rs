//! Shortage: somebody waits for memory, and whether that can help.
//!
//! Owns the words for memory that is not there: who needs it, who holds it, what to do; and the judgement that nothing
//! will come back any more.
//! Does not lend, and does not end a run: pools do the one, pipelines the other.
//!
//! Always: whoever waits for memory has taken nothing and can be asked again; waiting is given up only where everybody
//! has looked once more and nobody could move.

use std::fmt;
use std::sync::Arc;

use vramp_gpu::{Device, LendError};
use vramp_plan::Space;

use crate::failure::HandlerFailure;
use crate::frame::EditError;
use crate::frame::pool::FramePool;
use crate::handler::{DeviceError, HandlerError};

/// How many holders are named.
const MOST_HOLDERS: usize = 6;

/// Memory that somebody waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// Who waits.
    pub handler: String,
    /// For which frame.
    pub frame: u64,
    /// Which memory.
    pub space: Space,
    /// Bytes it needs.
    pub needed_bytes: u64,
    /// Bytes it could have had.
    pub available_bytes: u64,
    /// Bytes in all.
    pub budget_bytes: u64,
}

/// A run that needs more memory than it may have, however long it waits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{needed_bytes} bytes of {space} memory are needed, {available_bytes} of {budget_bytes} are available, and nothing \
     that holds the rest can move: {}; raise --memory, or make frames, links, delays or --in-flight smaller",
    HolderNames(holders)
)]
pub struct OutOfMemory {
    /// Which memory.
    pub space: Space,
    /// Bytes that are needed.
    pub needed_bytes: u64,
    /// Bytes that could be had.
    pub available_bytes: u64,
    /// Bytes in all.
    pub budget_bytes: u64,
    /// Who holds what, most first.
    pub holders: Vec<MemoryHolder>,
}

/// Somebody who holds memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryHolder {
    /// Who asked for it.
    pub owner: Arc<str>,
    /// How many frames.
    pub frames: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The first frame for which it was lent.
    pub since_frame: u64,
}

struct HolderNames<'a>(&'a [MemoryHolder]);

impl fmt::Display for HolderNames<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, MemoryHolder { owner, frames, bytes, since_frame }) in self.0.iter().take(MOST_HOLDERS).enumerate() {
            let and = if at == 0 { "" } else { ", " };
            write!(f, "{and}{owner} holds {bytes} bytes in {frames} since frame {since_frame}")?;
        }
        match self.0.len() {
            0 => f.write_str("nobody holds any"),
            all if all > MOST_HOLDERS => write!(f, " and {} more", all - MOST_HOLDERS),
            _ => Ok(()),
        }
    }
}

impl HandlerError {
    /// What is missing, where memory is: space, bytes needed, available and in all.
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
    /// What ends a run for which waiting is of no use.
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

/// What a lane that waits shows of itself.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitingLane {
    /// Steps that moved something.
    pub(crate) moves: u64,
    /// Steps in all.
    pub(crate) tries: u64,
    /// Whether it can only be woken by other lanes, or by memory.
    pub(crate) idle: bool,
    /// Whether it waits for memory.
    pub(crate) starves: bool,
}

/// What to do about lanes that wait.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing.
    Fine,
    /// They should all look once more.
    Wake,
    /// Nobody needs to leave memory for others any more; and they should all look once more.
    Press,
    /// Nothing will move again.
    Hopeless,
}

/// Judges from outside whether lanes wait for each other's memory.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Default)]
pub(crate) struct Stall {
    before: Option<Vec<WaitingLane>>,
    pressed: bool,
}

#[cfg(not(target_arch = "wasm32"))]
impl Stall {
    /// Judges by what lanes show now and showed at the last look.
    pub(crate) fn judge(&mut self, lanes: Vec<WaitingLane>) -> Verdict {
        let stalled = lanes.iter().all(|lane| lane.idle) && lanes.iter().any(|lane| lane.starves);
        if !stalled {
            let was_pressed = std::mem::take(&mut self.pressed);
            self.before = None;
            return if was_pressed { Verdict::Wake } else { Verdict::Fine };
        }
        // One whole step of each lane that began after the last look, and no move by anybody.
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

    /// Whether nobody leaves memory for others at present.
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
    fn waiting_is_given_up_only_when_everybody_has_looked_again_and_nobody_moved() {
        let mut stall = Stall::default();
        assert_eq!(stall.judge(vec![look(5, 10, true), look(7, 20, false)]), Verdict::Wake);
        assert_eq!(stall.judge(vec![look(5, 99, true), look(7, 21, false)]), Verdict::Wake, "one has not looked");
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
        assert_eq!(stall.judge(vec![look(6, 300, false)]), Verdict::Fine, "nobody waits for memory");
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
            "100 bytes of cpu memory are needed, 20 of 300 are available, and nothing that holds the rest can move: \
             pattern0 holds 200 bytes in 2 since frame 3, blur0 holds 80 bytes in 2 since frame 3; raise --memory, or \
             make frames, links, delays or --in-flight smaller"
        );
    }
}
