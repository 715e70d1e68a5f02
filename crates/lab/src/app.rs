//! The `app` sources and sinks between which the lab's tools run a graph.

use vramp_handlers::{sink, source};
use vramp_plan::catalog::EntryError;
use vramp_plan::{Format, HandlerSpec, Rate, Size};
use vramp_runtime::Registry;

/// The same kinds and `app`, which a program's own registry may lack.
pub(crate) fn added_to(registry: &Registry) -> Result<Registry, EntryError> {
    let mut registry = registry.clone();
    if !registry.runs(&source::app::ENTRY) {
        registry.add(&source::app::ENTRY, source::app::make)?;
    }
    if !registry.runs(&sink::app::ENTRY) {
        registry.add(&sink::app::ENTRY, sink::app::make)?;
    }
    Ok(registry)
}

/// A source whose frames are pushed by the tool.
pub(crate) fn source(format: Format, size: Size, rate: Rate) -> HandlerSpec {
    HandlerSpec::new(source::app::ENTRY.name).set("format", format).set("size", size).set("fps", rate)
}

/// A sink that hands the frames to the tool, in the format in which they come.
pub(crate) fn sink() -> HandlerSpec {
    HandlerSpec::new(sink::app::ENTRY.name).set("format", "any").set("space", "cpu")
}
