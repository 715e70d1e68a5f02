//! The device side of a run: plays the recordings of the device lane, measures device times, transfers frames, and
//! keeps the counters of devices that were lost during the run.
//!
//! A recording is a list of device commands that the nodes of the device lane have requested. To play a recording means
//! to turn it into one submit.
//!
//! Driver calls are in `vramp_gpu`.

pub(crate) mod history;
pub(crate) mod lane_player;
pub(crate) mod times;
pub(crate) mod transfer;
