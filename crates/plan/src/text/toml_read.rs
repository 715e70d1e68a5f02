//! Reads a graph written as TOML, and turns typed values into the text of settings.
//!
//! Invariant: a setting has the same text as in the pipeline grammar: `2` is "2", `[1, 0.5]` is "1,0.5".

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeArray, DeInteger, DeTable, DeValue};

use crate::catalog::nearest;
use crate::graph::GraphSpec;
use crate::words::Policy;

use super::draft::{ChainItem, Draft, Reference, clip, depth_mistake, read_word};
use super::{MAX_DEPTH, MAX_LINKS, Mistake, ParsedGraph};

/// Reads a pipeline written as TOML.
///
/// ```
/// let reading = vramp_plan::read_toml(r#"
///     [[handlers]]
///     kind = "pattern"
///     settings = { size = "640x480" }
///     [[handlers]]
///     kind = "null"
///     [[links]]
///     from = "pattern0"
///     to = "null"
/// "#);
/// assert!(reading.mistakes.is_empty());
/// assert_eq!(vramp_plan::write_text(&reading.spec), "pattern size=640x480 ! null\n");
/// ```
pub fn read_toml(text: &str) -> ParsedGraph {
    let draft = Draft::new(text);
    if draft.stopped() {
        return draft.finish();
    }
    match DeTable::parse(text) {
        Ok(table) => {
            let mut reader = TomlReader { draft };
            reader.document(table.get_ref());
            reader.draft.finish()
        }
        Err(first) => syntax_mistakes(text, draft, first),
    }
}

/// Maximum length of a text for which all syntax errors are collected. Each error costs memory, and a hostile text can
/// have millions of errors.
const MAX_RECOVERED_BYTES: usize = 256 << 10;

/// Reports only the syntax errors of the TOML. A table cut short by a missing quote would only give misleading
/// messages.
fn syntax_mistakes(text: &str, mut draft: Draft<'_>, first: toml::de::Error) -> ParsedGraph {
    let errors = match text.len() {
        ..=MAX_RECOVERED_BYTES => DeTable::parse_recoverable(text).1,
        _ => vec![first],
    };
    for error in errors {
        let (title, expected) = match error.message().split_once(", expected ") {
            Some((title, expected)) => (title, format!("expected {expected}")),
            None => (error.message(), "expected TOML".to_owned()),
        };
        draft.report(Mistake::new(format!("TOML: {title}"), expected).at(error.span()));
    }
    ParsedGraph { spec: GraphSpec::new(), mistakes: draft.finish().mistakes }
}

struct TomlReader<'a> {
    draft: Draft<'a>,
}

type TomlValue<'a> = Spanned<DeValue<'a>>;

impl<'a> TomlReader<'a> {
    fn document(&mut self, table: &'a DeTable<'a>) {
        const KEYS: [&str; 2] = ["handlers", "links"];
        self.known_keys("a pipeline", table, &KEYS);
        for handler in self.tables(table, "handlers") {
            if self.draft.stopped() {
                return;
            }
            self.handler(handler);
        }
        for link in self.tables(table, "links").take(MAX_LINKS + 1) {
            if self.draft.stopped() {
                return;
            }
            self.link(link);
        }
    }

    fn handler(&mut self, value: &'a TomlValue<'a>) {
        let Some(table) = self.table(value, "[[handlers]]") else {
            return;
        };
        self.known_keys("a handler", table, &["kind", "name", "on-error", "settings"]);
        let kind = self.required(value, table, "kind", "a handler");
        // A handler without a kind is added too, because references may use its name.
        let (kind, at) = kind.unwrap_or(("", value.span()));
        let Some(index) = self.draft.add(kind, at) else {
            return;
        };
        if let Some((name, at)) = self.string(table, "name") {
            self.draft.name(index, name, at);
        }
        if let Some((word, at)) = self.string(table, "on-error") {
            self.draft.on_error(index, word, at);
        }
        let Some(settings) = table.get("settings") else {
            return;
        };
        let Some(settings) = self.table(settings, "settings = { key = value }") else {
            return;
        };
        for (key, value) in settings {
            if self.draft.stopped() {
                return;
            }
            let name: &str = key.get_ref();
            if matches!(name, "name" | "on-error") {
                let mistake = Mistake::new(format!("`{name}` is not a setting"), "expected a setting");
                let help = format!("write `{name}` beside `kind`, outside `settings`");
                self.draft.report(mistake.at(Some(key.span())).help(help));
                continue;
            }
            match setting_text(value) {
                Ok(text) => self.draft.set(index, name, text, key.span(), value.span()),
                Err(mistake) => self.draft.report(mistake),
            }
        }
    }

    fn link(&mut self, value: &'a TomlValue<'a>) {
        let Some(table) = self.table(value, "[[links]]") else {
            return;
        };
        self.known_keys("a link", table, &["from", "to", "policy", "depth"]);
        let from = self.end(value, table, "from");
        let to = self.end(value, table, "to");
        let policy = self.string(table, "policy").and_then(|(word, at)| {
            let policy = read_word("policy", word, Policy::ALL.map(Policy::name), at);
            policy.map_err(|mistake| self.draft.report(mistake)).ok()
        });
        let depth = table.get("depth").and_then(|value| {
            let depth = read_depth(value).map_err(|mistake| self.draft.report(mistake)).ok()?;
            if table.contains_key("policy") {
                return Some(depth);
            }
            let mistake = Mistake::new("a depth without a policy", "expected `policy` in the same link");
            self.draft.report(mistake.at(Some(value.span())).help("policy is latest, queue or lossless"));
            None
        });
        let at = match &from {
            ChainItem::Ref(reference) => reference.at.clone(),
            _ => value.span(),
        };
        self.draft.link(from, to, policy, depth, at);
    }

    fn end(&mut self, link: &'a TomlValue<'a>, table: &'a DeTable<'a>, key: &str) -> ChainItem<'a> {
        let Some((word, at)) = self.required(link, table, key, "a link") else {
            return ChainItem::Broken;
        };
        // A plain name means `name.`: after `from` and `to` a word can only be the name of a handler.
        let reference = Reference::read(word, at.clone()).or_else(|| Reference::whole(word, at.clone()));
        reference.map_or_else(
            || {
                let title = format!("`{}` is not an end of a link", clip(word));
                self.draft.report(Mistake::new(title, "expected `name` or `name.port`").at(Some(at)));
                ChainItem::Broken
            },
            ChainItem::Ref,
        )
    }

    fn known_keys(&mut self, what: &str, table: &DeTable<'_>, keys: &[&str]) {
        for key in table.keys() {
            let name: &str = key.get_ref();
            if !keys.contains(&name) {
                let title = format!("{what} has no `{}`", clip(name));
                let mistake = Mistake::new(title, format!("expected {}", keys.join(", ")));
                self.draft.report(mistake.at(Some(key.span())).nearest(nearest(name, keys.iter().copied())));
            }
        }
    }

    /// The tables under a key; none if the key is missing.
    fn tables(&mut self, table: &'a DeTable<'a>, key: &str) -> impl Iterator<Item = &'a TomlValue<'a>> + use<'a> {
        let array = table.get(key).and_then(|value| {
            let array = value.get_ref().as_array();
            if array.is_none() {
                let mistake = Mistake::new(format!("`{key}` is {}", article(value)), format!("expected [[{key}]]"));
                self.draft.report(mistake.at(Some(value.span())));
            }
            array
        });
        array.into_iter().flatten()
    }

    fn table(&mut self, value: &'a TomlValue<'a>, expected: &str) -> Option<&'a DeTable<'a>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            let mistake =
                Mistake::new(format!("{} in place of a table", article(value)), format!("expected {expected}"));
            self.draft.report(mistake.at(Some(value.span())));
        }
        table
    }

    fn string(&mut self, table: &'a DeTable<'a>, key: &str) -> Option<(&'a str, Range<usize>)> {
        let value = table.get(key)?;
        let text = value.get_ref().as_str();
        if text.is_none() {
            let mistake = Mistake::new(format!("`{key}` is {}", article(value)), "expected a string");
            self.draft.report(mistake.at(Some(value.span())));
        }
        text.map(|text| (text, value.span()))
    }

    fn required(
        &mut self,
        owner: &TomlValue<'_>,
        table: &'a DeTable<'a>,
        key: &str,
        what: &str,
    ) -> Option<(&'a str, Range<usize>)> {
        if !table.contains_key(key) {
            let mistake = Mistake::new(format!("{what} without `{key}`"), format!("expected `{key} = \"...\"`"));
            self.draft.report(mistake.at(Some(owner.span())));
        }
        self.string(table, key)
    }
}

/// A setting's value as its text in the pipeline grammar.
fn setting_text(value: &TomlValue<'_>) -> Result<String, Mistake> {
    match value.get_ref() {
        DeValue::String(text) => Ok(text.as_ref().to_owned()),
        DeValue::Boolean(truth) => Ok(truth.to_string()),
        DeValue::Array(array) => list_text(array, value.span()),
        DeValue::Integer(_) | DeValue::Float(_) => number_text(value),
        DeValue::Datetime(_) | DeValue::Table(_) => {
            let expected = "expected a string, a number, true, false or a list of numbers";
            Err(Mistake::new(format!("{} cannot be a setting's value", article(value)), expected)
                .at(Some(value.span())))
        }
    }
}

fn list_text(array: &DeArray<'_>, at: Range<usize>) -> Result<String, Mistake> {
    let mut text = String::new();
    for (index, number) in array.iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        text.push_str(&number_text(number)?);
    }
    if text.is_empty() {
        return Err(Mistake::new("an empty list", "expected at least one number").at(Some(at)));
    }
    Ok(text)
}

fn number_text(value: &TomlValue<'_>) -> Result<String, Mistake> {
    let (text, expected) = match value.get_ref() {
        DeValue::Integer(number) => (whole(number).map(|n| n.to_string()), "expected a whole number of 64 bits"),
        DeValue::Float(number) => {
            let number = number.as_str().parse().ok().filter(|n: &f64| n.is_finite());
            (number.map(|n| n.to_string()), "expected a finite number of 64 bits")
        }
        _ => (None, "expected a number"),
    };
    let mistake =
        || Mistake::new(format!("{} that is not valid here", article(value)), expected).at(Some(value.span()));
    text.ok_or_else(mistake)
}

fn whole(number: &DeInteger<'_>) -> Option<i64> {
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

fn read_depth(value: &TomlValue<'_>) -> Result<u32, Mistake> {
    let shown = match value.get_ref() {
        DeValue::Integer(number) => {
            let depth = whole(number).and_then(|n| u32::try_from(n).ok()).filter(|n| (1..=MAX_DEPTH).contains(n));
            if let Some(depth) = depth {
                return Ok(depth);
            }
            number.to_string()
        }
        _ => article(value).to_owned(),
    };
    Err(depth_mistake(&shown, value.span()))
}

/// A value's type with its article, for messages.
fn article(value: &TomlValue<'_>) -> &'static str {
    match value.get_ref() {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date or time",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
