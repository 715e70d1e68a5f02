//! Probes the sources of an otherwise valid graph. Refuses a source whose frames have no known size or format.

use std::ops::Range;

use crate::catalog::{FormatRule, PortMedia, RateRule, SizeRule, SourceProbe};
use crate::graph::checked::Handler;
use crate::graph::spec::GraphSpec;
use crate::text::Mistake;

use super::CheckError;

/// Probes sources and refuses a graph in which a size or format is still unknown.
pub(super) fn probe(spec: &GraphSpec, handlers: &mut [Handler], probe: &dyn SourceProbe) -> Result<(), CheckError> {
    let (mut mistakes, mut failed) = (Vec::new(), Vec::new());
    for (at, handler) in handlers.iter_mut().enumerate() {
        if handler.entry.small.is_some() {
            handler.small_bytes = probe.small_bytes(handler.entry, &handler.settings);
        }
        if !handler.entry.inputs.is_empty() {
            continue;
        }
        // A blocking source is probed even if its settings are complete, so that a missing file is found now.
        let probed = handler.entry.blocking
            || handler.entry.outputs.iter().any(|o| {
                matches!(o.format, FormatRule::Probed)
                    || matches!(o.size, SizeRule::Probed(_))
                    || matches!(o.rate, RateRule::Probed(_))
            });
        if probed {
            match probe.probe(handler.entry, &handler.settings) {
                Ok(probed) => handler.probed = probed,
                Err(error) => {
                    failed.push((handler.name.clone(), error));
                    continue;
                }
            }
        }
        for output in handler.entry.outputs {
            if !matches!(output.media, PortMedia::Video { .. }) {
                continue;
            }
            let place = spec.handlers()[at].place.0.clone();
            let size = match output.size {
                SizeRule::Probed(key) => handler.probed.size.or_else(|| handler.settings.size(key?)),
                SizeRule::Setting(key) => handler.settings.size(key),
                _ => None,
            };
            if size.is_none() {
                let remedy = match output.size {
                    SizeRule::Probed(Some(key)) | SizeRule::Setting(key) => format!("set {key}=WIDTHxHEIGHT"),
                    _ => "register the source with a probe that returns the size (`Kind::probed`)".to_owned(),
                };
                mistakes.push(unknown(handler, "size", &remedy, place.clone()));
            }
            let format = match output.format {
                FormatRule::Probed => handler.probed.format,
                FormatRule::Setting(key) => handler.settings.format(key),
                _ => continue,
            };
            if format.is_none() {
                mistakes.push(unknown(handler, "format", "convert the input to a known format", place));
            }
        }
    }
    if !failed.is_empty() {
        return Err(CheckError::Probe(failed));
    }
    if mistakes.is_empty() { Ok(()) } else { Err(CheckError::Mistakes(mistakes)) }
}

fn unknown(handler: &Handler, what: &str, remedy: &str, place: Option<Range<usize>>) -> Mistake {
    Mistake::new(
        format!("{}: probing the source did not find the {what} of its frames", handler.name),
        format!("expected a known {what}"),
    )
    .at(place)
    .help(remedy)
}
