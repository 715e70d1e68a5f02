//! The catalogue: finds entries by name and refuses malformed entries.
//!
//! A source and a sink may share a name; whether the handler has incoming links decides which of the two is meant.
//!
//! Invariants: a name has at most one entry with inputs and one entry without inputs. Iteration is ordered by family
//! and name.

use std::collections::BTreeSet;

use crate::words::Space;

use super::{Entry, Fallback, Family, FormatRule, Output, PortMedia, SizeRule, ValueType};

#[derive(Debug, Clone, Default)]
pub struct Catalog {
    entries: Vec<&'static Entry>,
    converter: Option<&'static Entry>,
}

/// The reason an entry was refused.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("handler `{entry}`: {problem}")]
pub struct EntryError {
    pub entry: &'static str,
    pub problem: String,
}

crate::debug_as_display!(EntryError);

impl Catalog {
    pub fn new() -> Catalog {
        Catalog::default()
    }

    pub fn of(entries: impl IntoIterator<Item = &'static Entry>) -> Result<Catalog, EntryError> {
        let mut catalog = Catalog::new();
        for entry in entries {
            catalog.add(entry)?;
        }
        Ok(catalog)
    }

    /// Registers an entry. A source and a handler with inputs may share a name, such as `y4m`; any other two entries
    /// must have different names.
    pub fn add(&mut self, entry: &'static Entry) -> Result<(), EntryError> {
        validate(entry).map_err(|problem| EntryError { entry: entry.name, problem })?;
        if self.named(entry.name).any(|e| e.inputs.is_empty() == entry.inputs.is_empty()) {
            let problem = "is already registered; give it another name".to_owned();
            return Err(EntryError { entry: entry.name, problem });
        }
        let key = |e: &Entry| (e.family, e.name);
        let at = self.entries.partition_point(|e| key(e) < key(entry));
        self.entries.insert(at, entry);
        Ok(())
    }

    /// Makes this entry the converter that the planner inserts between different formats. The entry must be registered
    /// and have a setting called `format` that sets its output format.
    pub fn set_converter(&mut self, name: &str) -> Result<(), EntryError> {
        let converts = |e: &&Entry| {
            let by_setting = |o: &Output| o.format == FormatRule::Setting("format") && o.size == SizeRule::Input;
            let format = e.setting("format").is_some_and(|s| s.value == ValueType::Format);
            format && e.inputs.len() == 1 && e.outputs.len() == 1 && by_setting(&e.outputs[0]) && e.transfer.is_none()
        };
        let found = self.named(name).find(converts);
        match found {
            Some(entry) => self.converter = Some(entry),
            None => {
                let problem = format!(
                    "`{name}` cannot convert; expected a registered handler with one input and one output, where the \
                     output has the size of the input and the format that the setting `format` names"
                );
                return Err(EntryError { entry: "converter", problem });
            }
        }
        Ok(())
    }

    /// The converter that the planner inserts between different formats.
    pub fn converter(&self) -> Option<&'static Entry> {
        self.converter
    }

    /// Ordered by family and name.
    pub fn entries(&self) -> impl Iterator<Item = &'static Entry> {
        self.entries.iter().copied()
    }

    /// The entries of this name: usually one, or two if a source and a sink share the name.
    pub fn named<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'static Entry> + 'a {
        self.entries.iter().copied().filter(move |e| e.name == name)
    }

    /// The entry of this name; `fed` is true for a handler with incoming links. If only one entry has this name, `fed`
    /// does not matter.
    pub fn find(&self, name: &str, fed: bool) -> Option<&'static Entry> {
        self.named(name).find(|e| e.inputs.is_empty() != fed).or_else(|| self.named(name).next())
    }

    /// The known name that is most similar to this name; `None` if no known name is similar.
    pub fn nearest(&self, name: &str) -> Option<&'static str> {
        nearest(name, self.entries.iter().map(|e| e.name))
    }
}

/// The candidate most similar to the word, or the first of several that are equally similar; `None` if no candidate is
/// similar.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Comparing megabytes of hostile input would take quadratic time.
    if word.len() > 64 {
        return None;
    }
    let allowed = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|c| (strsim::damerau_levenshtein(word, c), c))
        .filter(|(distance, c)| *distance <= allowed || c.len() > 3 && word.len() > 3 && c.starts_with(word))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, c)| c)
}

fn validate(entry: &Entry) -> Result<(), String> {
    let word = |s: &str| {
        s.starts_with(|c: char| c.is_ascii_lowercase())
            && s.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'))
    };
    if !word(entry.name) {
        return Err("a name consists of lower-case letters, digits, - and _, and starts with a letter".to_owned());
    }
    if entry.spaces.is_empty() {
        return Err("offers no memory space; declare cpu, gpu or both".to_owned());
    }
    if entry.spaces.len() > Space::RANKED.len()
        || entry.spaces.iter().collect::<BTreeSet<_>>().len() != entry.spaces.len()
    {
        return Err("declares a memory space twice".to_owned());
    }
    if entry.inputs.is_empty() && entry.outputs.is_empty() {
        return Err("has no ports; declare an input or an output".to_owned());
    }
    if entry.family == Family::Source && !entry.inputs.is_empty() {
        return Err("is a source with inputs; put it into another family".to_owned());
    }
    for (ports, side) in [
        (entry.inputs.iter().map(|p| (p.name, p.media)).collect::<Vec<_>>(), "input"),
        (entry.outputs.iter().map(|p| (p.name, p.media)).collect(), "output"),
    ] {
        let mut seen = BTreeSet::new();
        for (name, media) in ports {
            if !word(name) {
                return Err(format!("{side} `{name}`: a port name consists of lower-case letters, digits, - and _"));
            }
            if !seen.insert(name) {
                return Err(format!("declares {side} `{name}` twice"));
            }
            let contradiction = match media {
                PortMedia::Video { formats: [], .. } => Some("no format"),
                PortMedia::Video { width, height, .. } if width.min > width.max || height.min > height.max => {
                    Some("no size")
                }
                PortMedia::Tensor { dtypes: [], .. } => Some("no element type"),
                PortMedia::Tensor { dims: Some(dims), .. } if dims.iter().any(|d| d.min > d.max) => Some("no shape"),
                _ => None,
            };
            if let Some(nothing) = contradiction {
                return Err(format!("{side} `{name}` allows {nothing}"));
            }
        }
    }
    let mut seen = BTreeSet::from(["name", "on-error", "lead", "until"]);
    for setting in entry.settings {
        if !word(setting.name) || !seen.insert(setting.name) {
            return Err(format!("setting `{}` is declared twice, reserved or misspelt", setting.name));
        }
        if let Fallback::Is(default) = setting.fallback
            && setting.value.read(default).is_none()
        {
            return Err(format!(
                "setting `{}` has the default `{default}`, but takes {}",
                setting.name,
                setting.value.expects()
            ));
        }
    }
    let named = entry.bare.iter().copied().chain(entry.one_of.iter().flat_map(|group| group.iter().copied()));
    for key in named {
        if entry.setting(key).is_none() {
            return Err(format!("refers to setting `{key}`, which is not declared"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Input, Liveness, Setting, ValueType};
    use crate::words::{ANY_SIDE, Format, Interval};

    static BLUR: Entry = Entry { name: "blur", ..Entry::FILTER };

    fn problem(entry: &Entry) -> String {
        Catalog::new().add(Box::leak(Box::new(*entry))).unwrap_err().problem
    }

    #[test]
    fn an_entry_without_a_space_is_refused() {
        assert!(problem(&Entry { spaces: &[], ..BLUR }).contains("offers no memory space"));
        assert!(problem(&Entry { spaces: &[Space::Cpu, Space::Cpu], ..BLUR }).contains("twice"));
    }

    #[test]
    fn a_port_that_allows_nothing_is_refused() {
        static NO_SIZE: [Input; 1] = [Input {
            media: PortMedia::Video { formats: &[Format::Rgba8], width: Interval::new(9, 3), height: ANY_SIDE },
            ..Input::VIDEO
        }];
        static NO_FORMAT: [Input; 1] = [Input { media: PortMedia::video(&[]), ..Input::VIDEO }];
        assert!(problem(&Entry { inputs: &NO_FORMAT, ..BLUR }).contains("no format"));
        assert!(problem(&Entry { inputs: &NO_SIZE, ..BLUR }).contains("no size"));
    }

    #[test]
    fn a_default_outside_its_own_range_is_refused() {
        static BAD: [Setting; 1] = [Setting {
            name: "n",
            value: ValueType::Int { min: 1, max: 4 },
            fallback: Fallback::Is("5"),
            liveness: Liveness::Live,
            about: "",
        }];
        assert!(problem(&Entry { settings: &BAD, ..BLUR }).contains("has the default `5`"));
    }

    #[test]
    fn one_name_may_be_a_source_and_a_sink_but_not_two_sources() {
        static READS: Entry = Entry { name: "y4m", ..Entry::SOURCE };
        static WRITES: Entry = Entry { name: "y4m", ..Entry::SINK };
        let mut catalog = Catalog::of([&READS, &WRITES]).unwrap();
        assert_eq!(catalog.find("y4m", true).unwrap().family, Family::Sink);
        assert_eq!(catalog.find("y4m", false).unwrap().family, Family::Source);
        assert!(catalog.add(&READS).is_err());
    }

    #[test]
    fn the_nearest_name_is_close_or_absent() {
        let catalog = Catalog::of([&BLUR]).unwrap();
        assert_eq!(catalog.nearest("blru"), Some("blur"));
        assert_eq!(catalog.nearest("window"), None);
    }
}
