//! Checks wanted changes of settings, without changing anything.
//!
//! The checks are those of a pipeline that starts: each value by its declaration, the handler's settings together, the
//! user's shader, the files, and a plan of the whole graph. In addition, only settings that are not fixed may change,
//! and every stream must stay as it is.

use vramp_handlers::files::FileUse;
use vramp_plan::catalog::{
    DeclaredSetting, DeclaredShader, Liveness, Setting, SettingValues, SourceProbe, Value, nearest,
};
use vramp_plan::{Content, Graph, Handler, Plan, PlannedMemory, Space};
use vramp_runtime::Registry;
use vramp_runtime::engine::HandlerChange;

use super::{PinnedPlanner, SetError, SettingInput};

/// Changes that were checked by name, by handler.
pub(super) struct WantedChanges<'g> {
    graph: &'g Graph,
    handlers: Vec<WantedHandler<'g>>,
}

struct WantedHandler<'g> {
    handler: &'g Handler,
    /// Keys and texts, as given.
    given: Vec<(String, String)>,
}

/// Changes that passed every check.
pub(super) struct CheckedChanges {
    pub(super) changes: Vec<HandlerChange>,
    pub(super) handlers: Vec<Handler>,
    /// What the graph needs with the new settings.
    pub(super) memory: PlannedMemory,
}

/// How a handler declares one of its settings.
pub(super) enum Declaration<'h> {
    Entry(&'static Setting),
    Shader(&'h DeclaredSetting),
}

/// Settings that the planner reads and no handler receives.
const OF_THE_GRAPH: [&str; 4] = ["name", "on-error", "lead", "until"];

/// The handler and the key that a name such as `blur0.sigma` means.
pub(super) fn named<'g, 'n>(graph: &'g Graph, name: &'n str) -> Result<(&'g Handler, &'n str), SetError> {
    let Some((handler, key)) = name.split_once('.').filter(|(handler, key)| !handler.is_empty() && !key.is_empty())
    else {
        return Err(SetError::Name { name: clipped(name), example: example(graph) });
    };
    let names = || graph.handlers().iter().map(|handler| handler.name.as_str());
    let found = graph.handlers().iter().find(|own| own.name == handler).ok_or_else(|| SetError::NoHandler {
        handler: clipped(handler),
        nearest: nearest(handler, names()).map(str::to_owned),
        known: names().map(str::to_owned).collect(),
    })?;
    Ok((found, key))
}

/// A setting of the graph, for messages.
fn example(graph: &Graph) -> String {
    let live = graph.handlers().iter().find_map(|handler| Some((handler, changeable(handler).into_iter().next()?)));
    live.map_or_else(|| "blur0.sigma".to_owned(), |(handler, key)| format!("{}.{key}", handler.name))
}

/// The settings of a handler that can change.
fn changeable(handler: &Handler) -> Vec<String> {
    let own = handler.entry.settings.iter().filter(|setting| setting.liveness != Liveness::Fixed);
    own.map(|setting| setting.name.to_owned()).chain(declared_names(handler)).collect()
}

fn declared_names(handler: &Handler) -> impl Iterator<Item = String> {
    handler.declared.iter().flat_map(|shader| &shader.settings).map(|setting| setting.name.clone())
}

/// The declaration of a setting. Fails if the handler has no such setting.
pub(super) fn declaration<'h>(handler: &'h Handler, key: &str) -> Result<Declaration<'h>, SetError> {
    if let Some(setting) = handler.entry.setting(key) {
        return Ok(Declaration::Entry(setting));
    }
    let declared = handler.declared.iter().flat_map(|shader| &shader.settings).find(|setting| setting.name == key);
    if let Some(setting) = declared {
        return Ok(Declaration::Shader(setting));
    }
    if OF_THE_GRAPH.contains(&key) {
        return Err(fixed(handler, key));
    }
    let known: Vec<String> =
        handler.entry.settings.iter().map(|setting| setting.name.to_owned()).chain(declared_names(handler)).collect();
    Err(SetError::NoSetting {
        handler: handler.name.clone(),
        key: clipped(key),
        nearest: nearest(key, known.iter().map(String::as_str)).map(str::to_owned),
        known,
    })
}

fn fixed(handler: &Handler, key: &str) -> SetError {
    SetError::Fixed { handler: handler.name.clone(), key: key.to_owned(), live: changeable(handler) }
}

/// A word of a message, shortened: names and values come from outside and may be huge.
fn clipped(text: &str) -> String {
    const MOST: usize = 60;
    let short: String = text.chars().take(MOST).flat_map(char::escape_debug).collect();
    if text.chars().nth(MOST).is_some() { format!("{short}...") } else { short }
}

impl<'g> WantedChanges<'g> {
    pub(super) fn of(graph: &'g Graph) -> WantedChanges<'g> {
        WantedChanges { graph, handlers: Vec::new() }
    }

    /// Adds a change. Fails if there is no such setting or the setting is fixed.
    pub(super) fn add(&mut self, name: &str, value: SettingInput) -> Result<(), SetError> {
        let (handler, key) = named(self.graph, name)?;
        // The settings that a shader declares may change with the shader, so they are looked up later.
        match declaration(handler, key) {
            Ok(Declaration::Entry(setting)) if setting.liveness == Liveness::Fixed => return Err(fixed(handler, key)),
            Err(error) if !handler.entry.open_settings || matches!(error, SetError::Fixed { .. }) => return Err(error),
            _ => {}
        }
        let at = self.handlers.iter().position(|own| own.handler.name == handler.name).unwrap_or_else(|| {
            self.handlers.push(WantedHandler { handler, given: Vec::new() });
            self.handlers.len() - 1
        });
        let given = &mut self.handlers[at].given;
        if given.iter().any(|(own, _)| own == key) {
            return Err(SetError::Twice { name: name.to_owned() });
        }
        given.push((key.to_owned(), value.0));
        Ok(())
    }

    /// Checks everything else.
    pub(super) fn check(
        self,
        registry: &Registry,
        planner: &PinnedPlanner,
        writes: bool,
    ) -> Result<CheckedChanges, SetError> {
        let names = self.handlers.iter().map(|wanted| wanted.handler.name.as_str()).collect::<Vec<_>>().join(", ");
        let (mut changed, mut handlers) = (Vec::new(), Vec::new());
        for wanted in &self.handlers {
            let handler = wanted.changed(registry)?;
            let texts = wanted.given.iter().map(|(key, text)| {
                let value = handler.settings.get(key).map_or_else(|| text.clone(), ToString::to_string);
                (key.clone(), value)
            });
            changed.push(texts.collect::<Vec<_>>());
            handlers.push(handler);
        }
        let after = handlers.iter().fold(self.graph.clone(), |graph, handler| graph.with_handler(handler.clone()));
        if writes {
            FileUse::of(&after).check()?;
        }
        let plan = planner.decide(&after)?;
        // Streams of several sizes may meet while sources change their sizes; then there is no plan to compare with.
        if let Ok(before) = planner.decide(self.graph) {
            compare(&before, &plan, &names)?;
        }
        let small_bytes =
            |name: &str| plan.handlers.iter().find(|own| own.name == name).map_or(0, |own| own.small_bytes);
        let change = |(handler, changed): (&Handler, Vec<(String, String)>)| HandlerChange {
            handler: handler.name.clone(),
            settings: handler.settings.clone(),
            declared: handler.declared.clone(),
            small_bytes: small_bytes(&handler.name),
            changed,
        };
        let changes = handlers.iter().zip(changed).map(change).collect();
        Ok(CheckedChanges { changes, handlers, memory: plan.memory })
    }
}

impl WantedHandler<'_> {
    /// The handler with its new settings.
    fn changed(&self, registry: &Registry) -> Result<Handler, SetError> {
        let (entry, name) = (self.handler.entry, &self.handler.name);
        let mut settings = self.handler.settings.clone();
        let mut other_shader = false;
        for (key, text) in &self.given {
            let Some(setting) = entry.setting(key) else { continue };
            let value = setting.value.read(text).ok_or_else(|| SetError::Value {
                handler: name.clone(),
                key: key.clone(),
                text: clipped(text),
                expects: setting.value.expects(),
                nearest: nearest(text, setting.value.words()).map(str::to_owned),
            })?;
            for group in entry.one_of.iter().filter(|group| group.contains(&key.as_str())) {
                other_shader |= entry.open_settings;
                settings = self.replacing(&settings, key, group)?;
            }
            settings.set(key.as_str(), value);
        }
        (entry.check)(&settings).map_err(|problem| SetError::Together { handler: name.clone(), problem })?;
        let mut handler = Handler { settings, ..self.handler.clone() };
        if other_shader {
            let declared = registry.declared(entry, &handler.settings);
            handler.declared = declared.map_err(|error| SetError::Shader { handler: name.clone(), error })?;
            self.follow_shader(&mut handler)?;
        }
        for (key, text) in self.given.iter().filter(|(key, _)| entry.setting(key).is_none()) {
            let value = match declaration(&handler, key)? {
                Declaration::Shader(setting) => setting.read(text).ok_or_else(|| SetError::Value {
                    handler: name.clone(),
                    key: key.clone(),
                    text: clipped(text),
                    expects: setting.value.expects(),
                    nearest: nearest(text, setting.value.words()).map(str::to_owned),
                })?,
                Declaration::Entry(_) => continue,
            };
            handler.settings.set(key.as_str(), value);
        }
        if entry.small.is_some() {
            handler.small_bytes = registry.small_bytes(entry, &handler.settings);
        }
        Ok(handler)
    }

    /// The settings without the alternatives of a setting that is given.
    fn replacing(&self, settings: &SettingValues, key: &str, group: &[&str]) -> Result<SettingValues, SetError> {
        let also = self.given.iter().find(|(own, _)| own != key && group.contains(&own.as_str()));
        if let Some((other, _)) = also {
            let keys = vec![key.to_owned(), other.clone()];
            return Err(SetError::Alternatives { handler: self.handler.name.clone(), keys });
        }
        let mut left = SettingValues::default();
        for (own, value) in settings.iter() {
            let replaced = own != key && group.contains(&own);
            let is_fixed = |setting: &Setting| setting.liveness == Liveness::Fixed;
            if replaced && self.handler.entry.setting(own).is_some_and(is_fixed) {
                return Err(fixed(self.handler, own));
            }
            if !replaced {
                left.set(own, value.clone());
            }
        }
        Ok(left)
    }

    /// Keeps the values that the user gave for the settings of the previous shader, and takes the new shader's defaults
    /// for the other settings. A value that equals the previous default counts as not given.
    fn follow_shader(&self, handler: &mut Handler) -> Result<(), SetError> {
        let settings_of = |shader: &Option<DeclaredShader>| -> Vec<DeclaredSetting> {
            shader.iter().flat_map(|shader| shader.settings.clone()).collect()
        };
        let (before, now) = (settings_of(&self.handler.declared), settings_of(&handler.declared));
        let given: Vec<(String, Value)> = before
            .iter()
            .filter_map(|setting| Some((setting, self.handler.settings.get(&setting.name)?)))
            .filter(|(setting, value)| **value != setting.default)
            .map(|(setting, value)| (setting.name.clone(), value.clone()))
            .collect();
        let mut settings = SettingValues::default();
        for (key, value) in handler.settings.iter().filter(|(key, _)| handler.entry.setting(key).is_some()) {
            settings.set(key, value.clone());
        }
        for setting in &now {
            settings.set(setting.name.as_str(), setting.default.clone());
        }
        for (key, value) in given {
            let Some(setting) = now.iter().find(|setting| setting.name == key) else {
                let (handler, value) = (handler.name.clone(), value.to_string());
                return Err(SetError::Undeclared { handler, key, value });
            };
            let text = value.to_string();
            let value = setting.read(&text).ok_or_else(|| SetError::Value {
                handler: handler.name.clone(),
                key: key.clone(),
                text: text.clone(),
                expects: setting.value.expects(),
                nearest: None,
            })?;
            settings.set(key, value);
        }
        handler.settings = settings;
        Ok(())
    }
}

/// Refuses a plan in which a stream or a handler differs from the running plan in more than its settings.
fn compare(before: &Plan, after: &Plan, handlers: &str) -> Result<(), SetError> {
    for (old, new) in before.links.iter().zip(&after.links) {
        let ends = |plan: &Plan, link: &vramp_plan::PlannedLink| (plan.port_name(link.from), plan.port_name(link.to));
        let (from, to) = ends(before, old);
        if (from.clone(), to.clone()) != ends(after, new) {
            return Err(SetError::OtherPlan { handlers: handlers.to_owned() });
        }
        if old.content != new.content {
            let words = |content: &Content| match content.rate() {
                Some(rate) => format!("{content} at {rate} frames per second"),
                None => content.to_string(),
            };
            let (was, becomes) = (words(&old.content), words(&new.content));
            return Err(SetError::OtherFrames { handlers: handlers.to_owned(), from, to, was, becomes });
        }
    }
    let same = before.links.len() == after.links.len() && places(before) == places(after);
    if same { Ok(()) } else { Err(SetError::OtherPlan { handlers: handlers.to_owned() }) }
}

/// What the engine has built of a plan and cannot change: handlers, their spaces, delays and rates.
fn places(plan: &Plan) -> Vec<(&str, Space, u32, bool, u32)> {
    let place = |handler: &'_ vramp_plan::PlannedHandler| {
        let (entry, settings) = (handler.entry, &handler.settings);
        (entry.delay.under(settings), entry.keeps_times.under(settings), entry.every.under(settings))
    };
    let all = plan.handlers.iter().map(|handler| {
        let (delay, keeps_times, every) = place(handler);
        (handler.name.as_str(), handler.space, delay, keeps_times, every)
    });
    all.collect()
}
