//! Conversions: change how or where a frame is stored, not what it shows.
//!
//! Owns one declaration per conversion.
//! Does not decide where conversions are needed: the planner inserts them.

#[expect(clippy::module_inception, reason = "a handler has the file of its name, also in the family of that name")]
pub mod convert;
pub mod download;
pub mod upload;

use vramp_runtime::Kinds;

/// Says how the handlers of this family are made.
pub(crate) fn register(kinds: &mut Kinds) {
    kinds.makes(&convert::ENTRY, convert::make);
}
