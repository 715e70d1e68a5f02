//! `invert`: the negative of red, green and blue. Alpha is kept.

use vramp_kernels::pixel::{color, table};
use vramp_plan::catalog::Entry;
use vramp_runtime::{HandlerError, Setup, Worker};

use super::fixed;

pub static ENTRY: Entry = Entry {
    name: "invert",
    about: "inverts red, green and blue",
    example: "pattern ! invert ! null",
    folds: true,
    ..Entry::FILTER
};

#[expect(clippy::unnecessary_wraps, reason = "all makers share this signature")]
pub(crate) fn make(_: &Setup<'_>) -> Result<Worker, HandlerError> {
    Ok(fixed::function(&table::TABLE, &table::pack(&color::invert())))
}
