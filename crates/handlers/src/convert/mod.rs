//! Conversions: handlers that change the format or the place of a frame, but not its content. The planner inserts these
//! handlers where they are needed.

#[expect(clippy::module_inception, reason = "each handler has a file of its name, also in the family of that name")]
pub mod convert;
pub mod download;
pub mod upload;

use vramp_runtime::Kind;

/// Every handler of this family.
pub(crate) fn kinds() -> Vec<Kind> {
    vec![Kind::new(&convert::ENTRY, convert::make), Kind::planned(&upload::ENTRY), Kind::planned(&download::ENTRY)]
}
