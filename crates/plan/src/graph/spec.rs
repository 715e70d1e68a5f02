//! `GraphSpec`: what the user wrote, in text, TOML or with the builder.
//!
//! Owns handlers with their settings as written, links, and default names.
//! Does not know whether any of it exists or fits: that is checked on the way to a `Graph`.
//!
//! Always: two specs are equal when they say the same, wherever it was written; links are kept in one order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use crate::words::{OnError, Policy};

/// Where in a text something stands. Takes no part in comparing specs.
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

/// A handler by its position in the spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandlerId(pub usize);

impl HandlerId {
    /// One of its outputs, to connect from.
    pub fn output(self, name: impl Into<String>) -> FromEnd {
        FromEnd(self.port(name))
    }

    /// One of its inputs, to connect to.
    pub fn input(self, name: impl Into<String>) -> ToEnd {
        ToEnd(self.port(name))
    }

    /// One of its ports, as an end of a link.
    pub fn port(self, name: impl Into<String>) -> LinkEnd {
        LinkEnd { handler: self, port: Some(name.into()), place: TextSpan::default() }
    }
}

/// Where a link comes from: a handler's main output, or [`HandlerId::output`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FromEnd(LinkEnd);

/// Where a link goes: a handler's main input, or [`HandlerId::input`].
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

/// One end of a link: a handler and one of its ports, the main one where none is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkEnd {
    /// The handler.
    pub handler: HandlerId,
    /// The port; none for the first declared.
    pub port: Option<String>,
    /// Where it was written.
    pub place: TextSpan,
}

impl From<HandlerId> for LinkEnd {
    fn from(handler: HandlerId) -> Self {
        LinkEnd { handler, port: None, place: TextSpan::default() }
    }
}

/// A setting as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingSpec {
    /// Its text, before anyone knows its type.
    pub value: String,
    /// Where the key, or the bare value, stands.
    pub key_place: TextSpan,
    /// Where the value stands.
    pub place: TextSpan,
}

/// A handler as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandlerSpec {
    /// What kind of handler.
    pub kind: String,
    /// The name it was given, if any.
    pub name: Option<String>,
    /// Its settings by key.
    pub settings: BTreeMap<String, SettingSpec>,
    /// What happens when it fails on a frame.
    pub on_error: OnError,
    /// Where its kind stands.
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

    /// Gives it a name of its own.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> HandlerSpec {
        self.name = Some(name.into());
        self
    }

    /// Sets a setting, in its text form.
    #[must_use]
    #[expect(clippy::needless_pass_by_value, reason = "`set(\"sigma\", 2)` reads better than `set(\"sigma\", &2)`")]
    pub fn set(mut self, key: impl Into<String>, value: impl ToString) -> HandlerSpec {
        let setting =
            SettingSpec { value: value.to_string(), key_place: TextSpan::default(), place: TextSpan::default() };
        self.settings.insert(key.into(), setting);
        self
    }

    /// Says what happens when it fails on a frame.
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

/// A link as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSpec {
    /// Where frames come from.
    pub from: LinkEnd,
    /// Where they go.
    pub to: LinkEnd,
    /// How it delivers; none leaves it to the planner.
    pub policy: Option<Policy>,
    /// How many frames it can hold; none leaves it to the planner.
    pub depth: Option<u32>,
    /// Where it was written.
    pub place: TextSpan,
}

impl LinkSpec {
    /// The most frames a link may hold.
    pub const MAX_DEPTH: u32 = 65_536;

    /// Says how it delivers.
    pub fn policy(&mut self, policy: Policy) -> &mut LinkSpec {
        self.policy = Some(policy);
        self
    }

    /// Says how many frames it can hold.
    pub fn depth(&mut self, depth: u32) -> &mut LinkSpec {
        self.depth = Some(depth);
        self
    }

    fn key(&self) -> impl Ord + use<> {
        let end = |e: &LinkEnd| (e.handler, e.port.clone());
        (end(&self.from), end(&self.to), self.policy, self.depth)
    }
}

/// A whole graph as written; [`Graph::builder`](super::Graph::builder) begins one in Rust.
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
    /// The most handlers a graph may have.
    pub const MAX_HANDLERS: usize = 16_384;

    /// An empty graph.
    pub fn new() -> GraphSpec {
        GraphSpec::default()
    }

    /// Adds a handler: a [`HandlerSpec`], or just its kind.
    pub fn add(&mut self, handler: impl Into<HandlerSpec>) -> HandlerId {
        self.handlers.push(handler.into());
        HandlerId(self.handlers.len() - 1)
    }

    /// Links an output to an input. Plans made before do not know of it; plan again.
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

    /// The handlers in the order they were written.
    pub fn handlers(&self) -> &[HandlerSpec] {
        &self.handlers
    }

    /// The links, ordered by their ends.
    pub fn links(&self) -> Vec<&LinkSpec> {
        let mut links: Vec<&LinkSpec> = self.links.iter().collect();
        links.sort_by_cached_key(|l| l.key());
        links
    }

    /// The name of every handler: its own, or its kind and the first free counter from 0.
    pub fn names(&self) -> Vec<String> {
        // Default names are taken too: the eleventh `blur` and the first `blur1` would both be `blur10`.
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

/// Whether a word can be a handler's name: a letter, then letters, digits, `-` and `_`, at most 64.
pub fn is_name(word: &str) -> bool {
    word.len() <= 64 && looks_like_name(word)
}

/// Whether a word has the shape of a name, whatever its length: default names can be longer than given ones.
pub(crate) fn looks_like_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
}
