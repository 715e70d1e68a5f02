//! `vramp fmt`: converts a pipeline between text and TOML.
//!
//! Parsing the output gives the same graph. An invalid pipeline is not converted.

use std::ffi::OsStr;

use vramp::plan::{write_text, write_toml};
use vramp::runtime::Registry;

use crate::failure::CliError;
use crate::input::{Language, PipelineSource, certain_mistakes};
use crate::page;

pub(crate) fn run(pipeline: &OsStr, registry: &Registry) -> Result<(), CliError> {
    let catalog = registry.catalog();
    let given = PipelineSource::find(pipeline)?;
    let reading = given.read(catalog);
    let mut mistakes = reading.mistakes;
    mistakes.extend(certain_mistakes(&reading.spec, catalog));
    if !mistakes.is_empty() {
        return Err(given.mistakes(mistakes));
    }
    let mut other = match given.language {
        Language::Text => write_toml(&reading.spec),
        Language::Toml => write_text(&reading.spec),
    };
    if !other.ends_with('\n') {
        other.push('\n');
    }
    page::result(other.as_bytes())
}
