//! The device's side of a run: plays what its lane records, times it, moves frames to and from it, and remembers devices
//! that were lost.
//!
//! Does not talk to a driver: `vramp-gpu` does.

pub(crate) mod history;
pub(crate) mod lane_player;
pub(crate) mod times;
pub(crate) mod transfer;
