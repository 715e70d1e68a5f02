//! Checks a handler's settings: reads each setting as the handler's entry declares it, fills in defaults and reports
//! missing settings.

use crate::catalog::{Entry, Fallback, Probed, SettingValues, ValueType, nearest};
use crate::graph::checked::Handler;
use crate::graph::spec::HandlerSpec;
use crate::text::{Mistake, clip, foreign};
use crate::words::Until;

use super::{GraphChecker, list};

impl GraphChecker<'_> {
    pub(super) fn handler(&mut self, at: usize, spec: &HandlerSpec, entry: &'static Entry) -> Handler {
        let name = self.names[at].clone();
        let mut settings = SettingValues::default();
        let (mut lead, mut until) = (0, Until::default());
        let several = entry.inputs.len() > 1;
        for (key, setting) in &spec.settings {
            let at_value = setting.place.0.clone();
            let text = setting.value.as_str();
            if let Some(declared) = entry.setting(key) {
                match declared.value.read(text) {
                    Some(value) => settings.set(key.as_str(), value),
                    None => self.mistakes.push(
                        Mistake::new(
                            format!("{name}: `{}` is not a valid {key}", clip(text)),
                            format!("expected {}", declared.value.expects()),
                        )
                        .at(at_value)
                        .nearest(nearest(text, declared.value.words()))
                        .hint(foreign::value(text, declared.value, entry)),
                    ),
                }
            } else if several && key == "lead" {
                match entry.input(text) {
                    Some(input) => lead = input,
                    None => self.mistakes.push(
                        Mistake::new(
                            format!("{name}: no input `{}` to use as lead", clip(text)),
                            format!("expected one of {}", list(entry.inputs.iter().map(|p| p.name))),
                        )
                        .at(at_value),
                    ),
                }
            } else if several && key == "until" {
                match text.parse() {
                    Ok(rule) => until = rule,
                    Err(_) => self.mistakes.push(
                        Mistake::new(
                            format!("{name}: `{}` is not a valid until", clip(text)),
                            "expected lead or shortest",
                        )
                        .at(at_value)
                        .nearest(nearest(text, Until::ALL.map(Until::name))),
                    ),
                }
            } else if entry.open_settings {
                let number = ValueType::Number { min: f64::MIN, max: f64::MAX };
                if let Some(value) = number.read(text).or_else(|| ValueType::Text.read(text)) {
                    settings.set(key.as_str(), value);
                }
            } else {
                let known = entry.settings.iter().map(|s| s.name);
                let mistake = Mistake::new(
                    format!("{name}: unknown setting `{}`", clip(key)),
                    if entry.settings.is_empty() {
                        format!("{} has no settings of its own", entry.name)
                    } else {
                        format!("expected one of {}", list(known.clone()))
                    },
                );
                let near = nearest(key, known.chain(["name", "on-error"]));
                self.mistakes
                    .push(mistake.at(setting.key_place.0.clone()).nearest(near).hint(foreign::setting(key, entry)));
            }
        }
        self.missing_settings(&name, spec, entry);
        for declared in entry.settings {
            if let (Fallback::Is(default), false) = (declared.fallback, spec.settings.contains_key(declared.name)) {
                settings.set(declared.name, declared.value.read(default).expect("the catalogue validated defaults"));
            }
        }
        let fits = spec.settings.keys().all(|key| settings.get(key).is_some() || entry.setting(key).is_none());
        if let (true, Err(problem)) = (fits, (entry.check)(&settings)) {
            self.mistakes.push(
                Mistake::new(format!("{name}: {problem}"), "expected settings that make sense together")
                    .at(spec.place.0.clone()),
            );
        }
        Handler {
            name,
            entry,
            settings,
            on_error: spec.on_error,
            lead,
            until,
            probed: Probed::default(),
            declared: None,
            small_bytes: None,
        }
    }

    fn missing_settings(&mut self, name: &str, spec: &HandlerSpec, entry: &'static Entry) {
        for declared in entry.settings {
            if declared.fallback == Fallback::Required && !spec.settings.contains_key(declared.name) {
                self.mistakes.push(
                    Mistake::new(
                        format!("{name}: {} is missing", declared.name),
                        format!("expected {}={}", declared.name, declared.value.expects()),
                    )
                    .at(spec.place.0.clone())
                    .help(format!("for example `{}`", entry.example)),
                );
            }
        }
        for group in entry.one_of {
            let given = group.iter().filter(|key| spec.settings.contains_key(**key)).count();
            if given != 1 {
                self.mistakes.push(
                    Mistake::new(
                        format!(
                            "{name}: {} of {} given",
                            if given == 0 { "none" } else { "more than one" },
                            list(group.iter().copied())
                        ),
                        format!("expected exactly one of {}", list(group.iter().copied())),
                    )
                    .at(spec.place.0.clone()),
                );
            }
        }
    }
}
