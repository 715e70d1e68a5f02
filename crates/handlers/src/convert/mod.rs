//! Conversions: change how or where a frame is stored, not what it shows.
//!
//! Owns one declaration per conversion.
//! Does not decide where conversions are needed: the planner inserts them.

#[expect(clippy::module_inception, reason = "a handler has the file of its name, also in the family of that name")]
pub mod convert;
pub mod download;
pub mod upload;

use vramp_runtime::Kind;

/// Every handler of this family: a line each.
pub(crate) fn kinds() -> Vec<Kind> {
    vec![Kind::new(&convert::ENTRY, convert::make), Kind::planned(&upload::ENTRY), Kind::planned(&download::ENTRY)]
}
