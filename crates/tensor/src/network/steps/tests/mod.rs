//! What the tests of steps share: networks that run on both sides, and values in several memory orders.

pub(super) mod layouts;
pub(super) mod trial;
mod views;
