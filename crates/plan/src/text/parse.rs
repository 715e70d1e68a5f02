//! The parser of the pipeline grammar: turns tokens into chains of handlers, references and links.
//!
//! Unknown kinds, keys and values are accepted here; the checker refuses them and suggests the nearest name. After a
//! mistake the parser keeps only what it is certain of, so that one mistake gives one message.
//!
//! Invariant: the parser takes one step per token.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

use crate::catalog::{Catalog, Setting, ValueType, nearest};
use crate::words::Policy;

use super::draft::{ChainItem, Draft, Reference, clip};
use super::lexer::{LexToken, Lexeme, Lexer};
use super::{Mistake, ParsedGraph, foreign};

/// Reads a pipeline written in the pipeline grammar.
///
/// ```
/// use vramp_plan::{catalog::{Catalog, Entry}, read_text, write_text};
///
/// static PATTERN: Entry = Entry { name: "pattern", ..Entry::SOURCE };
/// static NULL: Entry = Entry { name: "null", ..Entry::SINK };
/// let catalog = Catalog::of([&PATTERN, &NULL])?;
/// let reading = read_text("pattern size=640x480 !{queue depth=4} null", &catalog);
/// assert!(reading.mistakes.is_empty());
/// assert_eq!(write_text(&reading.spec), "pattern size=640x480 !{queue depth=4} null\n");
/// # Ok::<(), vramp_plan::catalog::EntryError>(())
/// ```
pub fn read_text(text: &str, catalog: &Catalog) -> ParsedGraph {
    let draft = Draft::new(text);
    if draft.stopped() {
        return draft.finish();
    }
    let mut kinds: BTreeMap<&str, KindPorts> = BTreeMap::new();
    for entry in catalog.entries() {
        let kind = kinds.entry(entry.name).or_default();
        kind.settings.extend(entry.settings.iter().map(|s| s.name));
        // A source and a sink of the same name usually have the same bare setting.
        let bare = entry.bare.and_then(|key| entry.setting(key));
        kind.bare.extend(bare.filter(|s| kind.bare.iter().all(|b| b.name != s.name)));
    }
    let mut lexer = Lexer::new(text);
    let ahead = lexer.next_token();
    TextReader { lexer, ahead, kinds, draft, item: None, linked: false, link: None }.read()
}

/// The properties of a kind that parsing needs.
#[derive(Debug, Default)]
struct KindPorts {
    bare: Vec<&'static Setting>,
    settings: Vec<&'static str>,
}

/// A link whose right side has not been read yet.
#[derive(Debug)]
struct Pending<'a> {
    from: Option<ChainItem<'a>>,
    policy: Option<Policy>,
    depth: Option<u32>,
    at: Range<usize>,
}

struct TextReader<'a> {
    lexer: Lexer<'a>,
    ahead: LexToken<'a>,
    kinds: BTreeMap<&'static str, KindPorts>,
    draft: Draft<'a>,
    /// The last handler or reference of the current chain.
    item: Option<ChainItem<'a>>,
    /// True if there is a link before `item`.
    linked: bool,
    link: Option<Pending<'a>>,
}

const ITEM: &str = "expected a handler, or a reference such as `cam.`";

impl<'a> TextReader<'a> {
    fn read(mut self) -> ParsedGraph {
        loop {
            let ahead = self.lexer.next_token();
            let LexToken { lexeme, at } = std::mem::replace(&mut self.ahead, ahead);
            for mistake in self.lexer.take_mistakes() {
                self.draft.report(mistake);
            }
            match lexeme {
                Lexeme::Word(word) => self.word(word, at),
                Lexeme::Quoted(text) => self.quoted(text, at),
                Lexeme::Setting { key, key_at, value, reported } => self.setting(key, key_at, value, reported),
                Lexeme::Link { policy, depth } => self.link(policy, depth, at),
                Lexeme::Separator => self.end_chain(),
                Lexeme::End => {
                    self.end_chain();
                    break;
                }
            }
            if self.draft.stopped() {
                break;
            }
        }
        self.draft.finish()
    }

    fn word(&mut self, word: &'a str, at: Range<usize>) {
        match self.item {
            Some(ChainItem::Handler { index, .. }) => self.word_after_handler(index, word, at),
            Some(ChainItem::Ref(_) | ChainItem::Broken) if foreign::is_link(word) => self.foreign_link(word, at),
            Some(ChainItem::Broken) if !self.starts_chain(word) => {}
            _ => self.begin(word, at, None),
        }
    }

    /// Chains can also be separated by spaces, so a word after a handler is either the handler's bare value or the
    /// start of the next chain.
    fn word_after_handler(&mut self, index: usize, word: &'a str, at: Range<usize>) {
        let kind = self.kinds.get(self.draft.kind(index));
        let open = kind.map(|k| k.bare.as_slice()).unwrap_or_default();
        let mut open = open.iter().filter(|s| !self.draft.has(index, s.name));
        let first = open.clone().next();
        let is_value = |s: &&&Setting| s.value.read(word).is_some() && !(is_path(s) && foreign::is_link(word));
        if let Some(setting) = open.find(is_value) {
            self.draft.set(index, setting.name, word.to_owned(), at.clone(), at);
        } else if foreign::is_link(word) {
            self.foreign_link(word, at);
        } else if self.starts_chain(word) {
            let unknown = kind.is_none().then_some(index);
            self.begin(word, at, unknown);
        } else if let Some(setting) = first {
            self.draft.set(index, setting.name, word.to_owned(), at.clone(), at);
        } else {
            self.surplus(index, word, at);
        }
    }

    fn quoted(&mut self, text: Cow<'a, str>, at: Range<usize>) {
        match self.item {
            Some(ChainItem::Handler { index, .. }) => {
                let open = self.kinds.get(self.draft.kind(index)).map(|k| k.bare.as_slice()).unwrap_or_default();
                let open = || open.iter().filter(|s| !self.draft.has(index, s.name));
                let fitting = open().find(|s| s.value.read(&text).is_some()).or_else(|| open().next());
                match fitting {
                    Some(setting) => self.draft.set(index, setting.name, text.into_owned(), at.clone(), at),
                    None => self.surplus(index, &text, at),
                }
            }
            Some(ChainItem::Broken) => {}
            Some(ChainItem::Ref(_)) => self.no_settings(at),
            None => {
                self.draft.report(Mistake::new("text in quotes is a value, not a handler", ITEM).at(Some(at)));
                self.attach(ChainItem::Broken);
            }
        }
    }

    fn setting(
        &mut self,
        key: &'a str,
        key_at: Range<usize>,
        value: Option<(Cow<'a, str>, Range<usize>)>,
        reported: bool,
    ) {
        match (&self.item, value) {
            (Some(ChainItem::Handler { index, .. }), Some((value, at))) => match key {
                "" => {}
                "name" => self.draft.name(*index, &value, at),
                "on-error" => self.draft.on_error(*index, &value, at),
                _ => self.draft.set(*index, key, value.into_owned(), key_at, at),
            },
            (Some(ChainItem::Handler { .. } | ChainItem::Broken), _) => {}
            (Some(ChainItem::Ref(_)), _) => {
                if !reported {
                    self.no_settings(key_at);
                }
            }
            (None, _) => {
                if !reported {
                    let title = format!("`{}=` has no handler before it", clip(key));
                    self.draft.report(Mistake::new(title, ITEM).at(Some(key_at)).help(foreign::filter_syntax()));
                }
                self.attach(ChainItem::Broken);
            }
        }
    }

    fn link(&mut self, policy: Option<Policy>, depth: Option<u32>, at: Range<usize>) {
        if self.link.is_some() {
            self.draft.report(Mistake::new("two links in a row", ITEM).at(Some(at)));
            return;
        }
        let from = self.item.take();
        if from.is_none() {
            let mistake = Mistake::new("a link with nothing before it", "expected a handler before `!`");
            self.draft.report(mistake.at(Some(at.clone())).help("quote a `!` that is part of a text"));
        }
        self.link = Some(Pending { from, policy, depth, at });
    }

    /// Reports a link in another tool's notation and treats that link as `!`.
    fn foreign_link(&mut self, word: &str, at: Range<usize>) {
        let mistake = Mistake::new(format!("`{word}` is not a link"), "expected `!`").at(Some(at.clone()));
        self.draft.report(mistake.help("link handlers with `!`: `pattern ! blur ! null`"));
        self.link(None, None, at);
    }

    /// Begins a handler or a reference, after a link or at the start of a chain.
    fn begin(&mut self, word: &'a str, at: Range<usize>, otherwise: Option<usize>) {
        if self.item.is_some() {
            self.end_chain();
        }
        if let Some(reference) = Reference::read(word, at.clone()) {
            self.attach(ChainItem::Ref(Reference { otherwise, ..reference }));
        } else if let Some(index) = self.draft.add(word, at.clone()) {
            self.attach(ChainItem::Handler { index, at });
        }
    }

    fn attach(&mut self, item: ChainItem<'a>) {
        self.linked = self.link.is_some();
        if let Some(Pending { from: Some(from), policy, depth, at }) = self.link.take() {
            self.draft.link(from, item.clone(), policy, depth, at);
        }
        self.item = Some(item);
    }

    fn end_chain(&mut self) {
        if let Some(Pending { from: Some(_), at, .. }) = self.link.take() {
            let mistake = Mistake::new("a link with nothing after it", "expected a handler after `!`");
            self.draft.report(mistake.at(Some(at)).help("quote a `!` that is part of a text"));
        }
        if let (Some(ChainItem::Ref(reference)), false) = (self.item.take(), self.linked) {
            let shown = clip(reference.name);
            let mistake =
                Mistake::new(format!("`{shown}.` has no link"), "expected a link before or after a reference");
            self.draft.report(mistake.at(Some(reference.at)).help(format!("for example `{shown}. ! null`")));
        }
    }

    fn starts_chain(&self, word: &str) -> bool {
        let beside_link = matches!(self.ahead.lexeme, Lexeme::Link { .. });
        self.kinds.contains_key(word) || beside_link && Reference::read(word, 0..0).is_some()
    }

    fn no_settings(&mut self, at: Range<usize>) {
        let mistake = Mistake::new("a reference takes no settings", "expected a link or the end of the chain");
        self.draft.report(mistake.at(Some(at)).help("write the settings after the handler itself"));
    }

    /// Reports a value that the handler cannot take. Nothing is reported if the kind is unknown, since the
    /// checker reports the kind.
    fn surplus(&mut self, index: usize, value: &str, at: Range<usize>) {
        let name = self.draft.kind(index);
        let Some(kind) = self.kinds.get(name) else {
            return;
        };
        let title = match kind.bare.as_slice() {
            [] => format!("`{name}` takes no bare value"),
            [setting, ..] => format!("`{name}` already has a value for its bare setting `{}`", setting.name),
        };
        let expected = match kind.settings.as_slice() {
            [] => "expected `!`, `;` or another handler".to_owned(),
            keys => format!("expected `!`, or key=value with one of {}", keys.join(", ")),
        };
        let known = self.kinds.keys().chain(&kind.settings).copied();
        let mut mistake = Mistake::new(title, expected).at(Some(at)).nearest(nearest(value, known));
        if value.ends_with('\'') {
            // Users of shells write 'two words'.
            mistake = mistake.help("put text that contains spaces in double quotes: \"two words\"");
        }
        self.draft.report(mistake);
    }
}

fn is_path(setting: &Setting) -> bool {
    matches!(setting.value, ValueType::Path(_))
}
