//! `GraphSpec`: the graph as written in text, in TOML or with the builder. Nothing in the spec is checked yet.
//!
//! Invariants: two specs with the same content are equal, even if their handlers are at different positions in a text.
//! Links are always returned in the same order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::words::{OnError, Policy};

/// A byte range in the source text. Any two spans compare equal, so that equal specs may have different positions in a
/// text.
#[derive(Debug, Clone, Default)]
pub struct TextSpan(pub Option<Range<usize>>);

impl PartialEq for TextSpan {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for TextSpan {}

impl From<Range<usize>> for TextSpan {
    fn from(range: Range<usize>) -> Self {
        TextSpan(Some(range))
    }
}

/// Index of a handler in the spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandlerId(pub usize);

impl HandlerId {
    /// One of the handler's outputs, from which a link can start.
    pub fn output(self, name: impl Into<String>) -> FromEnd {
        FromEnd(self.port(name))
    }

    /// One of the handler's inputs, at which a link can end.
    pub fn input(self, name: impl Into<String>) -> ToEnd {
        ToEnd(self.port(name))
    }

    /// One of the handler's ports, as an end of a link.
    pub fn port(self, name: impl Into<String>) -> LinkEnd {
        LinkEnd { handler: self, port: Some(name.into()), place: TextSpan::default() }
    }
}

/// The producing end of a link: a handler's main output, or [`HandlerId::output`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromEnd(LinkEnd);

/// The consuming end of a link: a handler's main input, or [`HandlerId::input`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToEnd(LinkEnd);

impl<E: Into<LinkEnd>> From<E> for FromEnd {
    fn from(end: E) -> FromEnd {
        FromEnd(end.into())
    }
}

impl<E: Into<LinkEnd>> From<E> for ToEnd {
    fn from(end: E) -> ToEnd {
        ToEnd(end.into())
    }
}

/// One end of a link: a handler and one of its ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkEnd {
    pub handler: HandlerId,
    /// `None` means the first declared port.
    pub port: Option<String>,
    pub place: TextSpan,
}

impl From<HandlerId> for LinkEnd {
    fn from(handler: HandlerId) -> Self {
        LinkEnd { handler, port: None, place: TextSpan::default() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingSpec {
    /// Not parsed yet.
    pub value: String,
    /// Span of the key, or of the bare value.
    pub key_place: TextSpan,
    /// Span of the value.
    pub place: TextSpan,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerSpec {
    pub kind: String,
    pub name: Option<String>,
    pub settings: BTreeMap<String, SettingSpec>,
    pub on_error: OnError,
    pub place: TextSpan,
}

impl HandlerSpec {
    /// A handler of this kind with default settings.
    pub fn new(kind: impl Into<String>) -> HandlerSpec {
        HandlerSpec {
            kind: kind.into(),
            name: None,
            settings: BTreeMap::new(),
            on_error: OnError::default(),
            place: TextSpan::default(),
        }
    }

    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> HandlerSpec {
        self.name = Some(name.into());
        self
    }

    /// Sets a setting in its text form.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "`set(\"sigma\", 2)` reads better than `set(\"sigma\", &2)`")]
    pub fn set(mut self, key: impl Into<String>, value: impl ToString) -> HandlerSpec {
        let setting =
            SettingSpec { value: value.to_string(), key_place: TextSpan::default(), place: TextSpan::default() };
        self.settings.insert(key.into(), setting);
        self
    }

    #[must_use]
    pub fn on_error(mut self, on_error: OnError) -> HandlerSpec {
        self.on_error = on_error;
        self
    }
}

impl From<&str> for HandlerSpec {
    fn from(kind: &str) -> HandlerSpec {
        HandlerSpec::new(kind)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSpec {
    pub from: LinkEnd,
    pub to: LinkEnd,
    /// `None` leaves the policy to the planner.
    pub policy: Option<Policy>,
    /// In frames; `None` leaves the depth to the planner.
    pub depth: Option<u32>,
    pub place: TextSpan,
}

impl LinkSpec {
    /// The maximum depth of a link in frames.
    pub const MAX_DEPTH: u32 = 65_536;

    pub fn policy(&mut self, policy: Policy) -> &mut LinkSpec {
        self.policy = Some(policy);
        self
    }

    pub fn depth(&mut self, depth: u32) -> &mut LinkSpec {
        self.depth = Some(depth);
        self
    }

    fn key(&self) -> impl Ord + use<> {
        let end = |e: &LinkEnd| (e.handler, e.port.clone());
        (end(&self.from), end(&self.to), self.policy, self.depth)
    }
}

/// A graph as written; [`Graph::builder`](super::Graph::builder) starts a spec in Rust.
///
/// ```
/// use vramp_plan::{Graph, HandlerSpec};
///
/// let mut spec = Graph::builder();
/// let camera = spec.add(HandlerSpec::new("pattern").set("size", "1920x1080"));
/// let blur = spec.add(HandlerSpec::new("blur").set("sigma", 2));
/// let sink = spec.add("null");
/// spec.connect(camera.output("video"), blur.input("video"));
/// spec.connect(blur, sink); // the main port of each
/// assert_eq!(spec.names(), ["pattern0", "blur0", "null0"]);
/// ```
#[derive(Debug, Clone, Default)]
pub struct GraphSpec {
    handlers: Vec<HandlerSpec>,
    links: Vec<LinkSpec>,
}

impl PartialEq for GraphSpec {
    fn eq(&self, other: &Self) -> bool {
        self.handlers == other.handlers && self.links() == other.links()
    }
}

impl Eq for GraphSpec {}

impl GraphSpec {
    /// The maximum number of handlers.
    pub const MAX_HANDLERS: usize = 16_384;

    pub fn new() -> GraphSpec {
        GraphSpec::default()
    }

    /// Adds a handler, given as a [`HandlerSpec`] or just its kind.
    pub fn add(&mut self, handler: impl Into<HandlerSpec>) -> HandlerId {
        self.handlers.push(handler.into());
        HandlerId(self.handlers.len() - 1)
    }

    /// Links an output to an input. A plan that was made before does not include the new link.
    pub fn connect(&mut self, from: impl Into<FromEnd>, to: impl Into<ToEnd>) -> &mut LinkSpec {
        self.links.push(LinkSpec {
            from: from.into().0,
            to: to.into().0,
            policy: None,
            depth: None,
            place: TextSpan::default(),
        });
        self.links.last_mut().expect("a link was just added")
    }

    /// In the order in which the handlers were written.
    pub fn handlers(&self) -> &[HandlerSpec] {
        &self.handlers
    }

    /// Ordered by the ends of the links.
    pub fn links(&self) -> Vec<&LinkSpec> {
        let mut links: Vec<&LinkSpec> = self.links.iter().collect();
        links.sort_by_cached_key(|l| l.key());
        links
    }

    /// The name of every handler: the name that it was given, or its kind followed by the first free number from 0.
    pub fn names(&self) -> Vec<String> {
        // Default names count as taken too. Otherwise the eleventh handler of kind `blur` and the first handler of kind
        // `blur1` would both be called `blur10`.
        let mut taken: BTreeSet<String> = self.handlers.iter().filter_map(|h| h.name.clone()).collect();
        let mut counters: BTreeMap<&str, usize> = BTreeMap::new();
        let mut names = Vec::with_capacity(self.handlers.len());
        for handler in &self.handlers {
            let counter = counters.entry(handler.kind.as_str()).or_default();
            names.push(match &handler.name {
                Some(name) => name.clone(),
                None => loop {
                    let name = format!("{}{counter}", handler.kind);
                    *counter += 1;
                    if taken.insert(name.clone()) {
                        break name;
                    }
                },
            });
        }
        names
    }
}

/// True if a word can be a handler's name: a letter, then letters, digits, `-` and `_`, at most 64 characters.
pub fn is_name(word: &str) -> bool {
    word.len() <= 64 && looks_like_name(word)
}

/// True if a word has the form of a name. Any length is accepted, because default names can be longer than given names.
pub(crate) fn looks_like_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}
