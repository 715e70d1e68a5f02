//! The registry: every kind of handler with its entry, the function that makes one, and the looks at files that
//! planning needs.
//!
//! Owns the pairing of these, and answers the planner's questions ([`SourceProbe`]) from it.
//! Does not make handlers: preparing a pipeline does, once per handler of its graph.
//!
//! Invariants: a kind's entry is in the catalogue; a kind without a maker can only be planned.

use std::fmt;
use std::sync::Arc;

use vramp_plan::catalog::{
    Catalog, DeclareError, DeclaredShader, Entry, EntryError, ProbeError, Probed, SettingValues, SourceProbe, Value,
};
use vramp_plan::{CheckError, Content, Format, Graph, GraphSpec, Rate, Size, Space, StreamTags};

use crate::failure::catch;
use crate::handler::{FrameHandler, HandlerError, PixelHandler};

/// A handler that was made.
pub enum Worker {
    /// It works on whole frames.
    Frames(Box<dyn FrameHandler>),
    /// It is kernels and their parameters.
    Pixels(Box<dyn PixelHandler>),
}

impl Worker {
    /// A handler of whole frames.
    pub fn frames(handler: impl FrameHandler + 'static) -> Worker {
        Worker::Frames(Box::new(handler))
    }

    /// A handler of pixels.
    pub fn pixels(handler: impl PixelHandler + 'static) -> Worker {
        Worker::Pixels(Box::new(handler))
    }
}

/// What a maker may return: a [`FrameHandler`], a [`PixelHandler`], or a [`Worker`] if it may be either. `Kind` is
/// inferred.
pub trait IntoWorker<Kind> {
    /// The handler as the runtime keeps it.
    fn into_worker(self) -> Worker;
}

/// Marks [`FrameHandler`]s for [`IntoWorker`].
#[derive(Debug)]
pub enum OfFrames {}

/// Marks [`PixelHandler`]s for [`IntoWorker`].
#[derive(Debug)]
pub enum OfPixels {}

impl<H: FrameHandler + 'static> IntoWorker<OfFrames> for H {
    fn into_worker(self) -> Worker {
        Worker::frames(self)
    }
}

impl<H: PixelHandler + 'static> IntoWorker<OfPixels> for H {
    fn into_worker(self) -> Worker {
        Worker::pixels(self)
    }
}

impl IntoWorker<Worker> for Worker {
    fn into_worker(self) -> Worker {
        self
    }
}

/// What a handler is made from.
#[derive(Debug, Clone)]
pub struct Setup<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its settings, checked, defaults filled in.
    pub settings: &'a SettingValues,
    /// What comes in, by port; none if nothing is linked.
    pub inputs: &'a [Option<Content>],
    /// What goes out, by port; none if nothing is linked.
    pub outputs: &'a [Option<Content>],
    /// What is known of the stream at its lead input, or of the one that a source makes, besides its content.
    pub tags: Option<&'a StreamTags>,
    /// Where it runs.
    pub space: Space,
    /// Frames per second at its output, or at its lead input if it has none.
    pub rate: Option<Rate>,
    /// Handlers in the whole graph, as the user wrote it.
    pub handlers: usize,
    /// What the user's text that it is made from turned out to be.
    pub declared: Option<&'a DeclaredShader>,
    /// Whether it should follow changes of the file that it is made from.
    pub watch: bool,
}

/// SettingValues that have a value by their declaration. What is missing all the same is an error, not a panic.
impl Setup<'_> {
    /// A whole number, as the type that is asked for.
    pub fn int<T: TryFrom<i64>>(&self, key: &str) -> Result<T, HandlerError> {
        let value = self.settings.int(key).ok_or_else(|| missing(key))?;
        T::try_from(value).map_err(|_| HandlerError::failed(format!("its setting {key} cannot be {value}")))
    }

    /// A number.
    pub fn number(&self, key: &str) -> Result<f64, HandlerError> {
        self.settings.number(key).ok_or_else(|| missing(key))
    }

    /// Several numbers.
    pub fn numbers(&self, key: &str) -> Result<&[f64], HandlerError> {
        self.settings.numbers(key).ok_or_else(|| missing(key))
    }

    /// A word of a choice.
    pub fn word(&self, key: &str) -> Result<&str, HandlerError> {
        self.settings.word(key).ok_or_else(|| missing(key))
    }

    /// A text or a path.
    pub fn text(&self, key: &str) -> Result<&str, HandlerError> {
        self.settings.text(key).ok_or_else(|| missing(key))
    }

    /// True or false.
    pub fn flag(&self, key: &str) -> Result<bool, HandlerError> {
        match self.settings.get(key) {
            Some(Value::Bool(flag)) => Ok(*flag),
            _ => Err(missing(key)),
        }
    }

    /// Red, green, blue and alpha.
    pub fn color(&self, key: &str) -> Result<[u8; 4], HandlerError> {
        match self.settings.get(key) {
            Some(Value::Color(color)) => Ok(*color),
            _ => Err(missing(key)),
        }
    }

    /// Width and height.
    pub fn size(&self, key: &str) -> Result<Size, HandlerError> {
        self.settings.size(key).ok_or_else(|| missing(key))
    }

    /// Frames per second.
    pub fn rate(&self, key: &str) -> Result<Rate, HandlerError> {
        self.settings.rate(key).ok_or_else(|| missing(key))
    }

    /// A pixel format.
    pub fn format(&self, key: &str) -> Result<Format, HandlerError> {
        self.settings.format(key).ok_or_else(|| missing(key))
    }
}

fn missing(key: &str) -> HandlerError {
    HandlerError::failed(format!("its setting {key} has no value; settings are to be checked by a graph"))
}

/// Makes a handler.
pub type Make = Arc<dyn Fn(&Setup<'_>) -> Result<Worker, HandlerError> + Send + Sync>;

type LookAtSource = Arc<dyn Fn(&SettingValues) -> Result<Probed, ProbeError> + Send + Sync>;
type LookAtSmallData = Arc<dyn Fn(&SettingValues) -> Option<u64> + Send + Sync>;
type LookAtText = Arc<dyn Fn(&SettingValues) -> Result<DeclaredShader, DeclareError> + Send + Sync>;

/// A kind of handler: its entry, how one is made, and how its files are looked at before.
#[derive(Clone)]
pub struct Kind {
    entry: &'static Entry,
    make: Option<Make>,
    probe: Option<LookAtSource>,
    small_bytes: Option<LookAtSmallData>,
    declare: Option<LookAtText>,
}

impl Kind {
    /// A kind of which handlers are made by this function.
    pub fn new<H: IntoWorker<K>, K>(
        entry: &'static Entry,
        make: impl Fn(&Setup<'_>) -> Result<H, HandlerError> + Send + Sync + 'static,
    ) -> Kind {
        let make: Make = Arc::new(move |setup| make(setup).map(IntoWorker::into_worker));
        Kind { make: Some(make), ..Kind::planned(entry) }
    }

    /// A kind that can only be planned.
    pub fn planned(entry: &'static Entry) -> Kind {
        Kind { entry, make: None, probe: None, small_bytes: None, declare: None }
    }

    /// Finds out what a source with these settings holds by this function: size, rate and format, from a header.
    #[must_use]
    pub fn probed(self, probe: impl Fn(&SettingValues) -> Result<Probed, ProbeError> + Send + Sync + 'static) -> Kind {
        Kind { probe: Some(Arc::new(probe)), ..self }
    }

    /// Finds out by this function how large the small data are that a handler makes from a file, such as a logo.
    #[must_use]
    pub fn small_bytes(self, bytes: impl Fn(&SettingValues) -> Option<u64> + Send + Sync + 'static) -> Kind {
        Kind { small_bytes: Some(Arc::new(bytes)), ..self }
    }

    /// Reads the text that a handler with open settings is made from by this function.
    #[must_use]
    pub fn declared(
        self,
        declare: impl Fn(&SettingValues) -> Result<DeclaredShader, DeclareError> + Send + Sync + 'static,
    ) -> Kind {
        Kind { declare: Some(Arc::new(declare)), ..self }
    }
}

/// Every kind of handler that a graph may use.
#[derive(Clone, Default)]
pub struct Registry {
    catalog: Catalog,
    kinds: Vec<Kind>,
}

impl Registry {
    /// The registry of these kinds.
    pub fn of(kinds: impl IntoIterator<Item = Kind>) -> Result<Registry, EntryError> {
        let mut registry = Registry::default();
        kinds.into_iter().try_for_each(|kind| registry.add_kind(kind))?;
        Ok(registry)
    }

    /// Adds a handler of one's own: its entry, and the function that makes one.
    pub fn add<H: IntoWorker<K>, K>(
        &mut self,
        entry: &'static Entry,
        make: impl Fn(&Setup<'_>) -> Result<H, HandlerError> + Send + Sync + 'static,
    ) -> Result<(), EntryError> {
        self.add_kind(Kind::new(entry, make))
    }

    /// Adds a kind, with everything that is known about it.
    pub fn add_kind(&mut self, kind: Kind) -> Result<(), EntryError> {
        self.catalog.add(kind.entry)?;
        self.kinds.push(kind);
        Ok(())
    }

    /// Makes this kind the one that the planner inserts between formats.
    pub fn set_converter(&mut self, name: &str) -> Result<(), EntryError> {
        self.catalog.set_converter(name)
    }

    /// The same kinds, made by other functions: each is given its maker and returns the new one.
    #[must_use]
    pub fn remade(&self, mut make: impl FnMut(&'static Entry, Option<&Make>) -> Option<Make>) -> Registry {
        let kinds = self.kinds.iter().map(|kind| Kind { make: make(kind.entry, kind.make.as_ref()), ..kind.clone() });
        Registry { catalog: self.catalog.clone(), kinds: kinds.collect() }
    }

    /// The entries of all kinds.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// How a kind is made; none if it can only be planned.
    pub fn maker(&self, entry: &Entry) -> Option<&Make> {
        self.kind(entry)?.make.as_ref()
    }

    /// Whether handlers of this kind run: they can be made, or are transfers, which the runtime does itself.
    pub fn runs(&self, entry: &Entry) -> bool {
        entry.transfer.is_some() || self.maker(entry).is_some()
    }

    /// Checks a graph as written against these kinds, and looks at the files of its sources.
    pub fn check(&self, spec: &GraphSpec) -> Result<Graph, CheckError> {
        Graph::check(spec, &self.catalog, self)
    }

    fn kind(&self, entry: &Entry) -> Option<&Kind> {
        self.kinds.iter().find(|kind| kind.entry == entry)
    }
}

impl SourceProbe for Registry {
    fn probe(&self, entry: &Entry, settings: &SettingValues) -> Result<Probed, ProbeError> {
        let Some(probe) = self.kind(entry).and_then(|kind| kind.probe.as_ref()) else { return Ok(Probed::default()) };
        catch(|| Ok(probe(settings))).unwrap_or_else(|panicked| {
            let help = "report this to the author of the handler".to_owned();
            Err(ProbeError { problem: panicked.to_string(), help })
        })
    }

    fn small_bytes(&self, entry: &Entry, settings: &SettingValues) -> Option<u64> {
        self.kind(entry)?.small_bytes.as_ref()?(settings)
    }

    fn declared(&self, entry: &Entry, settings: &SettingValues) -> Result<Option<DeclaredShader>, DeclareError> {
        let declare = self.kind(entry).and_then(|kind| kind.declare.as_ref());
        declare.map(|declare| declare(settings)).transpose()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.kinds.iter().map(|kind| kind.entry.name)).finish()
    }
}
