//! Settings that a user's shader declares. This module asks the probe for the declared settings and checks the settings
//! that the user wrote against the declared settings.
//!
//! Invariant: afterwards every setting of a handler with a probed shader has a value of the declared type.

use crate::catalog::{DeclareError, SourceProbe, nearest};
use crate::text::{Mistake, clip};

use super::check::CheckError;
use super::checked::Handler;
use super::spec::{GraphSpec, HandlerSpec};

/// Probes the shaders of handlers with open settings and checks each handler's settings against its shader.
pub(super) fn settings(spec: &GraphSpec, handlers: &mut [Handler], probe: &dyn SourceProbe) -> Result<(), CheckError> {
    let (mut mistakes, mut failed) = (Vec::new(), Vec::new());
    for (handler, written) in handlers.iter_mut().zip(spec.handlers()).filter(|(h, _)| h.entry.open_settings) {
        match probe.declared(handler.entry, &handler.settings) {
            Ok(None) => {}
            Ok(Some(declared)) => {
                handler.declared = Some(declared);
                typed(handler, written, &mut mistakes);
            }
            Err(DeclareError::Unreadable(error)) => failed.push((handler.name.clone(), error)),
            Err(DeclareError::Wrong { problem, help }) => {
                let named = handler.entry.one_of.iter().copied().flatten();
                let place = named.filter_map(|key| written.settings.get(*key)).find_map(|s| s.place.0.clone());
                mistakes.push(
                    Mistake::new(format!("{}: {problem}", handler.name), "expected a shader that compiles")
                        .at(place.or_else(|| written.place.0.clone()))
                        .help(help),
                );
            }
        }
    }
    if !mistakes.is_empty() {
        return Err(CheckError::Mistakes(mistakes));
    }
    if failed.is_empty() { Ok(()) } else { Err(CheckError::Probe(failed)) }
}

/// Reads the settings of one handler again, by the types that its shader declares.
fn typed(handler: &mut Handler, written: &HandlerSpec, mistakes: &mut Vec<Mistake>) {
    let Some(declared) = &handler.declared else { return };
    let names = || declared.settings.iter().map(|setting| setting.name.as_str());
    for (key, given) in written.settings.iter().filter(|(key, _)| handler.entry.setting(key).is_none()) {
        let Some(setting) = declared.settings.iter().find(|setting| setting.name == *key) else {
            let expected = match names().count() {
                0 => "its shader declares no settings".to_owned(),
                _ => format!("expected one of {}", names().collect::<Vec<_>>().join(", ")),
            };
            let known = names().chain(handler.entry.settings.iter().map(|s| s.name)).chain(["name", "on-error"]);
            mistakes.push(
                Mistake::new(format!("{}: unknown setting `{}`", handler.name, clip(key)), expected)
                    .at(given.key_place.0.clone())
                    .nearest(nearest(key, known)),
            );
            continue;
        };
        match setting.read(&given.value) {
            Some(value) => handler.settings.set(key.as_str(), value),
            None => mistakes.push(
                Mistake::new(
                    format!("{}: `{}` is not a valid {key}", handler.name, clip(&given.value)),
                    format!("expected {}", setting.value.expects()),
                )
                .at(given.place.0.clone())
                .nearest(nearest(&given.value, setting.value.words())),
            ),
        }
    }
    for setting in declared.settings.iter().filter(|setting| !written.settings.contains_key(&setting.name)) {
        handler.settings.set(setting.name.as_str(), setting.default.clone());
    }
}
