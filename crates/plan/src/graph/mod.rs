//! Graphs: [`GraphSpec`] as written, [`Graph`] as checked, and the checks between them.

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
