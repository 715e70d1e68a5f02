//! `vramp inspect`: lists the handlers of the catalogue, shows one handler with its ports and settings, or tells what is
//! in a media file.

mod facts;
mod json;
mod media;
mod text;

use anyhow::anyhow;
use vramp::media::Tools;
use vramp::plan::catalog::Entry;
use vramp::runtime::Registry;

use crate::failure::CliError;
use crate::page;

pub(crate) fn run(handler: Option<&str>, json: bool, tools: &Tools, registry: &Registry) -> Result<(), CliError> {
    let catalog = registry.catalog();
    if let Some(address) = handler.filter(|word| catalog.named(word).next().is_none() && media::is_media(word)) {
        return media::run(address, json, tools);
    }
    let entries: Vec<&'static Entry> = match handler {
        None => catalog.entries().collect(),
        Some(name) => catalog.named(name).collect(),
    };
    if let (Some(name), true) = (handler, entries.is_empty()) {
        let help = match catalog.nearest(name) {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`vramp inspect` lists all kinds".to_owned(),
        };
        return Err(CliError::Wrong(anyhow!("unknown handler `{name}`; {help}")));
    }
    let colour = page::colour_on_stdout();
    let mut shown = match (json, handler) {
        (true, _) => json::line(&entries, registry),
        (false, None) => text::table(&entries, registry, colour),
        (false, Some(_)) => entries.iter().map(|e| text::detail(e, registry, colour)).collect::<Vec<_>>().join("\n"),
    };
    if !shown.ends_with('\n') {
        shown.push('\n');
    }
    page::result(shown.as_bytes())
}
