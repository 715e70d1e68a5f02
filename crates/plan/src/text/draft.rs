//! The draft of a graph: the handlers and links that a reader of either text form has found, before references are
//! resolved.
//!
//! The draft handles what both text forms have in common: names, `on-error`, duplicate settings, references and limits.
//!
//! Invariants: names are unique. References are resolved after all names are known, so a reference may stand before the
//! handler that it names.

use std::collections::BTreeMap;
use std::ops::Range;
use std::str::FromStr;

use crate::catalog::nearest;
use crate::graph::{GraphSpec, HandlerId, HandlerSpec, LinkEnd, SettingSpec, TextSpan, is_name, looks_like_name};
use crate::words::{OnError, Policy, UnknownWord};

use super::{MAX_DEPTH, MAX_LINKS, MAX_MISTAKES, MAX_TEXT_BYTES, Mistake, ParsedGraph};

/// One end of a link. `Broken` stands for an end at which a mistake was already reported.
#[derive(Debug, Clone)]
pub(super) enum ChainItem<'a> {
    Handler { index: usize, at: Range<usize> },
    Ref(Reference<'a>),
    Broken,
}

/// A handler by name, and one of its ports.
#[derive(Debug, Clone)]
pub(super) struct Reference<'a> {
    pub(super) name: &'a str,
    pub(super) port: Option<&'a str>,
    pub(super) at: Range<usize>,
    /// The handler before the reference, if the kind of that handler is unknown. If no handler has the name of the
    /// reference, the word is taken as a value of that handler.
    pub(super) otherwise: Option<usize>,
}

impl<'a> Reference<'a> {
    /// Reads `name.` or `name.port`. Default names can be longer than given names, so the length is not checked here.
    pub(super) fn read(word: &'a str, at: Range<usize>) -> Option<Reference<'a>> {
        let (name, port) = word.split_once('.')?;
        let port = (!port.is_empty()).then_some(port);
        let fits = looks_like_name(name) && port.is_none_or(looks_like_name);
        fits.then_some(Reference { name, port, at, otherwise: None })
    }

    /// Reads a plain name, which stands for the handler's main port.
    pub(super) fn whole(name: &'a str, at: Range<usize>) -> Option<Reference<'a>> {
        looks_like_name(name).then_some(Reference { name, port: None, at, otherwise: None })
    }
}

#[derive(Debug)]
struct DraftLink<'a> {
    from: ChainItem<'a>,
    to: ChainItem<'a>,
    policy: Option<Policy>,
    depth: Option<u32>,
    at: Range<usize>,
}

#[derive(Debug)]
pub(super) struct Draft<'a> {
    text: &'a str,
    handlers: Vec<HandlerSpec>,
    links: Vec<DraftLink<'a>>,
    named: BTreeMap<String, Range<usize>>,
    mistakes: Vec<Mistake>,
    stopped: bool,
}

impl<'a> Draft<'a> {
    pub(super) fn new(text: &'a str) -> Draft<'a> {
        let mut draft = Draft {
            text,
            handlers: Vec::new(),
            links: Vec::new(),
            named: BTreeMap::new(),
            mistakes: Vec::new(),
            stopped: false,
        };
        if text.len() > MAX_TEXT_BYTES {
            draft.report(Mistake::new(
                format!("the text has {} bytes", text.len()),
                format!("expected at most {MAX_TEXT_BYTES}"),
            ));
            draft.stopped = true;
        }
        draft
    }

    /// True if a limit was reached and reading must stop.
    pub(super) fn stopped(&self) -> bool {
        self.stopped
    }

    pub(super) fn report(&mut self, mistake: Mistake) {
        if self.mistakes.len() < MAX_MISTAKES {
            self.mistakes.push(mistake);
        } else {
            self.stopped = true;
        }
    }

    /// Adds a handler, or stops reading if there are too many handlers.
    pub(super) fn add(&mut self, kind: &str, at: Range<usize>) -> Option<usize> {
        let most = GraphSpec::MAX_HANDLERS;
        if self.handlers.len() == most {
            let mistake = Mistake::new("too many handlers", format!("expected at most {most}"));
            self.report(mistake.at(Some(at)));
            self.stopped = true;
            return None;
        }
        self.handlers.push(HandlerSpec { place: at.into(), ..HandlerSpec::new(kind) });
        Some(self.handlers.len() - 1)
    }

    pub(super) fn kind(&self, index: usize) -> &str {
        &self.handlers[index].kind
    }

    pub(super) fn has(&self, index: usize, key: &str) -> bool {
        self.handlers[index].settings.contains_key(key)
    }

    pub(super) fn name(&mut self, index: usize, name: &str, at: Range<usize>) {
        let expected = "expected a letter, then letters, digits, - and _, at most 64 characters";
        if !is_name(name) {
            self.report(Mistake::new(format!("`{}` cannot be a name", clip(name)), expected).at(Some(at)));
        } else if self.handlers[index].name.is_some() {
            let expected = "expected one name for one handler";
            self.report(Mistake::new("`name` is given twice", expected).at(Some(at)));
        } else if let Some(first) = self.named.get(name) {
            let place = line_and_column(self.text, first.start);
            let mistake = Mistake::new(format!("the name `{name}` is taken"), "expected a different name");
            self.report(mistake.at(Some(at)).help(format!("first given at {place}")));
        } else {
            self.handlers[index].name = Some(name.to_owned());
            self.named.insert(name.to_owned(), at);
        }
    }

    pub(super) fn on_error(&mut self, index: usize, word: &str, at: Range<usize>) {
        match read_word("reaction", word, OnError::ALL.map(OnError::name), at) {
            Ok(on_error) => self.handlers[index].on_error = on_error,
            Err(mistake) => self.report(mistake),
        }
    }

    pub(super) fn set(&mut self, index: usize, key: &str, value: String, key_at: Range<usize>, at: Range<usize>) {
        if !is_name(key) {
            let title = format!("`{}` cannot be a setting", clip(key));
            let expected = "expected a letter, then letters, digits, - and _, at most 64 characters";
            self.report(Mistake::new(title, expected).at(Some(key_at)));
            return;
        }
        let settings = &mut self.handlers[index].settings;
        if let Some(first) = settings.get(key) {
            let first = first.key_place.0.as_ref().map_or(0, |at| at.start);
            let place = line_and_column(self.text, first);
            let mistake = Mistake::new(format!("`{key}` is given twice"), "expected each setting once");
            self.report(mistake.at(Some(key_at)).help(format!("first given at {place}")));
            return;
        }
        settings.insert(key.to_owned(), SettingSpec { value, key_place: key_at.into(), place: at.into() });
    }

    pub(super) fn link(
        &mut self,
        from: ChainItem<'a>,
        to: ChainItem<'a>,
        policy: Option<Policy>,
        depth: Option<u32>,
        at: Range<usize>,
    ) {
        if self.links.len() == MAX_LINKS {
            let expected = format!("expected at most {MAX_LINKS}");
            self.report(Mistake::new("too many links", expected).at(Some(at)));
            self.stopped = true;
            return;
        }
        self.links.push(DraftLink { from, to, policy, depth, at });
    }

    /// Resolves the references and sorts the mistakes by their position in the text.
    pub(super) fn finish(mut self) -> ParsedGraph {
        if self.handlers.is_empty() && self.links.is_empty() && self.mistakes.is_empty() {
            let end = self.text.len();
            let mistake = Mistake::new("there is no handler in this pipeline", "expected a handler");
            self.report(mistake.at(Some(end..end)).help("a small pipeline is `pattern ! null`"));
        }
        let mut spec = GraphSpec::new();
        for handler in std::mem::take(&mut self.handlers) {
            spec.add(handler);
        }
        let names = spec.names();
        let mut book = NameBook::new(&names, &spec);
        let mut ends = Vec::with_capacity(self.links.len());
        for link in std::mem::take(&mut self.links) {
            let mut follow = |item| match book.follow(item) {
                Ok(end) => end,
                // If reading stopped early, the name may be in the part that was not read.
                Err(_) if self.stopped => None,
                Err(mistake) => {
                    self.report(mistake);
                    None
                }
            };
            if let (Some(from), Some(to)) = (follow(link.from), follow(link.to)) {
                ends.push((from, to, link.policy, link.depth, link.at));
            }
        }
        for (from, to, policy, depth, at) in ends {
            let link = spec.connect(from, to);
            (link.policy, link.depth, link.place) = (policy, depth, at.into());
        }
        self.mistakes.sort_by_key(|m| m.span.as_ref().map_or(0, |span| span.start));
        ParsedGraph { spec, mistakes: self.mistakes }
    }
}

/// Handlers by name and by kind.
struct NameBook<'s> {
    in_order: &'s [String],
    names: BTreeMap<&'s str, usize>,
    kinds: BTreeMap<&'s str, Vec<&'s str>>,
    suggestions_left: usize,
}

/// Maximum number of candidates shown for an unknown or ambiguous reference.
const CANDIDATES_SHOWN: usize = 5;
/// Maximum number of suggestions in one reading. The search for the nearest word is the only step of reading whose time
/// is not linear in the length of the text.
const SUGGESTIONS: usize = 20;
const COMPARISONS: usize = 1_000;

impl<'s> NameBook<'s> {
    fn new(names: &'s [String], spec: &'s GraphSpec) -> NameBook<'s> {
        let mut kinds: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (handler, name) in spec.handlers().iter().zip(names) {
            kinds.entry(&handler.kind).or_default().push(name);
        }
        let by_name = names.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect();
        NameBook { in_order: names, names: by_name, kinds, suggestions_left: SUGGESTIONS }
    }

    fn follow(&mut self, item: ChainItem<'_>) -> Result<Option<LinkEnd>, Mistake> {
        let (index, port, at) = match item {
            ChainItem::Handler { index, at } => (index, None, at),
            ChainItem::Ref(reference) => match (self.find(&reference), reference.otherwise) {
                (Ok(index), _) => (index, reference.port, reference.at),
                (Err(_), Some(index)) => (index, None, reference.at),
                (Err(mistake), None) => return Err(mistake),
            },
            ChainItem::Broken => return Ok(None),
        };
        Ok(Some(LinkEnd { handler: HandlerId(index), port: port.map(str::to_owned), place: TextSpan(Some(at)) }))
    }

    fn find(&mut self, reference: &Reference<'_>) -> Result<usize, Mistake> {
        let name = reference.name;
        if let Some(index) = self.names.get(name) {
            return Ok(*index);
        }
        let at = Some(reference.at.clone());
        match self.kinds.get(name).map(Vec::as_slice) {
            Some([only]) => Ok(self.names[only]),
            Some(several) => {
                let title = format!("`{}` could be any of {} handlers", clip(name), several.len());
                let mistake = Mistake::new(title, one_of(several));
                Err(mistake.at(at).help("use `name=` to name the handler that you mean"))
            }
            None => {
                let title = format!("no handler is called `{}`", clip(name));
                Err(Mistake::new(title, one_of(self.in_order)).at(at).nearest(self.suggest(name)))
            }
        }
    }

    fn suggest(&mut self, name: &str) -> Option<&'s str> {
        self.suggestions_left = self.suggestions_left.checked_sub(1)?;
        let close = |candidate: &&str| {
            candidate.len().abs_diff(name.len()) <= name.len() / 3 + 1 || candidate.starts_with(name)
        };
        nearest(name, self.names.keys().copied().filter(close).take(COMPARISONS))
    }
}

fn one_of(names: &[impl AsRef<str>]) -> String {
    let shown: Vec<String> = names.iter().take(CANDIDATES_SHOWN).map(|name| clip(name.as_ref())).collect();
    match names.len() - shown.len() {
        _ if shown.is_empty() => "expected a handler of that name".to_owned(),
        0 => format!("expected one of {}", shown.join(", ")),
        more => format!("expected one of {} and {more} more", shown.join(", ")),
    }
}

/// Parses a word of a small vocabulary.
pub(super) fn read_word<T: FromStr<Err = UnknownWord>>(
    what: &str,
    word: &str,
    all: impl IntoIterator<Item = &'static str>,
    at: Range<usize>,
) -> Result<T, Mistake> {
    word.parse().map_err(|unknown: UnknownWord| {
        let title = format!("unknown {what} `{}`", clip(word));
        Mistake::new(title, format!("expected {}", unknown.expected)).at(Some(at)).nearest(nearest(word, all))
    })
}

pub(super) fn depth_mistake(number: &str, at: Range<usize>) -> Mistake {
    let title = format!("`{}` cannot be a depth", clip(number));
    Mistake::new(title, format!("expected a whole number from 1 to {MAX_DEPTH}")).at(Some(at))
}

/// A word as shown in a message: one line, no control characters, limited length.
pub(crate) fn clip(word: &str) -> String {
    const MOST: usize = 80;
    let mut shown = String::new();
    for c in word.chars().take(MOST) {
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    if word.chars().nth(MOST).is_some() {
        shown.push_str("...");
    }
    shown
}

fn line_and_column(text: &str, at: usize) -> String {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    format!("line {line}, column {column}")
}
