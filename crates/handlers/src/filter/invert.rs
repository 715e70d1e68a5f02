//! `invert`: the negative.
//!
//! Owns no setting.
//! Does not touch alpha.
//!
//! Always: twice is once too many: the picture is back.

use vramp_kernels::pixel::{color, table};
use vramp_plan::catalog::Entry;
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

/// What `invert` declares.
pub static ENTRY: Entry = Entry {
    name: "invert",
    about: "turns red, green and blue into their negative",
    example: "pattern ! invert ! null",
    folds: true,
    ..Entry::FILTER
};

#[expect(clippy::unnecessary_wraps, reason = "every maker has this form")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(fixed::function(&table::TABLE, &table::pack(&color::invert())))
}
