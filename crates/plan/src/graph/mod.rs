//! Graphs: as written (`GraphSpec`) and as checked (`Graph`).
//!
//! Owns both values and the way from one to the other.
//! Does not decide spaces, formats or lanes: that is the plan.

mod check;
mod checked;
mod declare;
mod order;
mod spec;

pub use check::CheckError;
pub use checked::{Graph, Handler, Link};
pub(crate) use order::running_order;
pub(crate) use spec::looks_like_name;
pub use spec::{FromEnd, GraphSpec, HandlerId, HandlerSpec, LinkEnd, LinkSpec, SettingSpec, TextSpan, ToEnd, is_name};
