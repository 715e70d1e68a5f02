//! Graphs: as written (`GraphSpec`) and as checked (`Graph`).
//!
//! Owns both values and the way from one to the other.
//! Does not decide spaces, formats or lanes: that is the plan.

mod spec;

pub use spec::{End, GraphSpec, HandlerId, HandlerSpec, LinkSpec, Place, SettingSpec, is_name};
