//! The device side of a run: plays what the device lane records, times it, transfers frames, and keeps the totals of
//! lost devices.
//!
//! Driver calls are in `vramp_gpu`.

pub(crate) mod history;
pub(crate) mod lane_player;
pub(crate) mod times;
pub(crate) mod transfer;
