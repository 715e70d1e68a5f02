//! The registry. It holds, for every kind of handler, the entry, the function that makes a handler of that kind, and
//! the functions that read such a handler's files for the planner ([`SourceProbe`]).
//!
//! Preparing a pipeline makes each handler of its graph once. There is no global registry; a registry is a value.
//!
//! Invariants: a kind's entry is in the catalogue. Handlers of a kind without a maker can be planned but cannot run,
//! except transfers, which the runtime makes itself.

use std::fmt;
use std::sync::Arc;

use vramp_gpu::Device;
use vramp_plan::catalog::{
    Catalog, DeclareError, DeclaredShader, Entry, EntryError, ProbeError, Probed, SettingValues, SourceProbe, Value,
};
use vramp_plan::{CheckError, Content, Format, Graph, GraphSpec, Rate, Size, Space, StreamTags};

use crate::failure::catch;
use crate::frame::pool::FramePool;
use crate::handler::{FrameHandler, HandlerError, PixelHandler};
use crate::handles::Handles;
use crate::observe::report::EndCounts;

/// A handler instance, of either family.
pub enum Worker {
    Frames(Box<dyn FrameHandler>),
    Pixels(Box<dyn PixelHandler>),
}

impl Worker {
    pub fn frames(handler: impl FrameHandler + 'static) -> Worker {
        Worker::Frames(Box::new(handler))
    }

    pub fn pixels(handler: impl PixelHandler + 'static) -> Worker {
        Worker::Pixels(Box::new(handler))
    }
}

/// What a maker may return: a [`FrameHandler`], a [`PixelHandler`], or a [`Worker`] if the maker may return either.
/// `Kind` is inferred.
pub trait IntoWorker<Kind> {
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

/// Everything a maker receives.
#[derive(Debug, Clone)]
pub struct Setup<'a> {
    pub name: &'a str,
    /// Checked, with defaults filled in.
    pub settings: &'a SettingValues,
    /// Content by input port; `None` for an unlinked port.
    pub inputs: &'a [Option<Content>],
    /// Content by output port; `None` for an unlinked port.
    pub outputs: &'a [Option<Content>],
    /// Tags of the stream at the lead input, or of the stream that a source produces.
    pub tags: Option<&'a StreamTags>,
    pub space: Space,
    /// Frames per second at the output, or at the lead input if there is no output.
    pub rate: Option<Rate>,
    /// Number of handlers that the user wrote, in the whole graph.
    pub handlers: usize,
    /// The declaration found in the user's shader text, if the handler is made from such a text.
    pub declared: Option<&'a DeclaredShader>,
    /// The pipeline's host memory.
    pub pool: FramePool,
    /// The device, if the handler runs there.
    pub device: Option<Device>,
    /// The handles that handlers have published; see [`Setup::publish`].
    pub handles: Handles,
}

/// A [`Setup`] that owns its parts, to make or change a handler later.
#[derive(Debug, Clone)]
pub(crate) struct OwnedSetup {
    pub(crate) name: String,
    pub(crate) settings: SettingValues,
    pub(crate) inputs: Vec<Option<Content>>,
    pub(crate) outputs: Vec<Option<Content>>,
    pub(crate) tags: Option<Arc<StreamTags>>,
    pub(crate) space: Space,
    pub(crate) rate: Option<Rate>,
    pub(crate) handlers: usize,
    pub(crate) declared: Option<DeclaredShader>,
    pub(crate) pool: FramePool,
    pub(crate) device: Option<Device>,
    pub(crate) handles: Handles,
}

impl OwnedSetup {
    pub(crate) fn setup(&self) -> Setup<'_> {
        Setup {
            name: &self.name,
            settings: &self.settings,
            inputs: &self.inputs,
            outputs: &self.outputs,
            tags: self.tags.as_deref(),
            space: self.space,
            rate: self.rate,
            handlers: self.handlers,
            declared: self.declared.as_ref(),
            pool: self.pool.clone(),
            device: self.device.clone(),
            handles: self.handles.clone(),
        }
    }
}

/// Getters for settings whose declaration guarantees a value. A missing value is an error, not a panic.
impl Setup<'_> {
    /// Publishes a handle under the handler's name, for the program that runs the pipeline.
    pub fn publish(&self, handle: impl std::any::Any + Send + Sync) {
        self.handles.publish(self.name, handle);
    }

    /// Adds the frames that the handler exchanges with the program to the report. `counts` is called at the end of the
    /// run.
    pub fn count_frames(&self, counts: impl Fn() -> EndCounts + Send + Sync + 'static) {
        self.handles.count_frames(self.name, counts);
    }

    /// An integer setting, converted to `T`.
    pub fn int<T: TryFrom<i64>>(&self, key: &str) -> Result<T, HandlerError> {
        let value = self.settings.int(key).ok_or_else(|| missing(key))?;
        T::try_from(value).map_err(|_| HandlerError::failed(format!("setting {key} cannot be {value}")))
    }

    pub fn number(&self, key: &str) -> Result<f64, HandlerError> {
        self.settings.number(key).ok_or_else(|| missing(key))
    }

    pub fn numbers(&self, key: &str) -> Result<&[f64], HandlerError> {
        self.settings.numbers(key).ok_or_else(|| missing(key))
    }

    /// The chosen word of a choice setting.
    pub fn word(&self, key: &str) -> Result<&str, HandlerError> {
        self.settings.word(key).ok_or_else(|| missing(key))
    }

    /// A text or path setting.
    pub fn text(&self, key: &str) -> Result<&str, HandlerError> {
        self.settings.text(key).ok_or_else(|| missing(key))
    }

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

    pub fn size(&self, key: &str) -> Result<Size, HandlerError> {
        self.settings.size(key).ok_or_else(|| missing(key))
    }

    pub fn rate(&self, key: &str) -> Result<Rate, HandlerError> {
        self.settings.rate(key).ok_or_else(|| missing(key))
    }

    pub fn format(&self, key: &str) -> Result<Format, HandlerError> {
        self.settings.format(key).ok_or_else(|| missing(key))
    }
}

fn missing(key: &str) -> HandlerError {
    HandlerError::failed(format!("setting {key} has no value; check settings with `Graph::check` first"))
}

/// The function that makes a handler.
pub type Make = Arc<dyn Fn(&Setup<'_>) -> Result<Worker, HandlerError> + Send + Sync>;

type LookAtSource = Arc<dyn Fn(&SettingValues) -> Result<Probed, ProbeError> + Send + Sync>;
type LookAtSmallData = Arc<dyn Fn(&SettingValues) -> Option<u64> + Send + Sync>;
type LookAtText = Arc<dyn Fn(&SettingValues) -> Result<DeclaredShader, DeclareError> + Send + Sync>;

/// A kind of handler: its entry, its maker, and the functions that read a handler's files before planning.
#[derive(Clone)]
pub struct Kind {
    entry: &'static Entry,
    make: Option<Make>,
    probe: Option<LookAtSource>,
    small_bytes: Option<LookAtSmallData>,
    declare: Option<LookAtText>,
}

impl Kind {
    /// A kind whose handlers are made by `make`.
    pub fn new<H: IntoWorker<K>, K>(
        entry: &'static Entry,
        make: impl Fn(&Setup<'_>) -> Result<H, HandlerError> + Send + Sync + 'static,
    ) -> Kind {
        let make: Make = Arc::new(move |setup| make(setup).map(IntoWorker::into_worker));
        Kind { make: Some(make), ..Kind::planned(entry) }
    }

    /// A kind without a maker: its handlers can be planned but cannot run.
    pub fn planned(entry: &'static Entry) -> Kind {
        Kind { entry, make: None, probe: None, small_bytes: None, declare: None }
    }

    /// Sets the function that reads a source's size, rate and format from the header of the source's file.
    #[must_use]
    pub fn probed(self, probe: impl Fn(&SettingValues) -> Result<Probed, ProbeError> + Send + Sync + 'static) -> Kind {
        Kind { probe: Some(Arc::new(probe)), ..self }
    }

    /// Sets the function that computes the size of the small data a handler makes from a file, such as a logo.
    #[must_use]
    pub fn small_bytes(self, bytes: impl Fn(&SettingValues) -> Option<u64> + Send + Sync + 'static) -> Kind {
        Kind { small_bytes: Some(Arc::new(bytes)), ..self }
    }

    /// Sets the function that reads the declaration in the shader text from which a handler is made.
    #[must_use]
    pub fn declared(
        self,
        declare: impl Fn(&SettingValues) -> Result<DeclaredShader, DeclareError> + Send + Sync + 'static,
    ) -> Kind {
        Kind { declare: Some(Arc::new(declare)), ..self }
    }
}

/// All kinds of handlers that a graph may use.
#[derive(Clone, Default)]
pub struct Registry {
    catalog: Catalog,
    kinds: Vec<Kind>,
}

impl Registry {
    pub fn of(kinds: impl IntoIterator<Item = Kind>) -> Result<Registry, EntryError> {
        let mut registry = Registry::default();
        kinds.into_iter().try_for_each(|kind| registry.add_kind(kind))?;
        Ok(registry)
    }

    /// Adds a custom handler: its entry and its maker.
    pub fn add<H: IntoWorker<K>, K>(
        &mut self,
        entry: &'static Entry,
        make: impl Fn(&Setup<'_>) -> Result<H, HandlerError> + Send + Sync + 'static,
    ) -> Result<(), EntryError> {
        self.add_kind(Kind::new(entry, make))
    }

    /// Adds a kind with its probes.
    pub fn add_kind(&mut self, kind: Kind) -> Result<(), EntryError> {
        self.catalog.add(kind.entry)?;
        self.kinds.push(kind);
        Ok(())
    }

    /// Selects the kind that the planner inserts to convert between formats.
    pub fn set_converter(&mut self, name: &str) -> Result<(), EntryError> {
        self.catalog.set_converter(name)
    }

    /// The same kinds with other makers: `make` receives each entry with its maker and returns the new maker.
    #[must_use]
    pub fn remade(&self, mut make: impl FnMut(&'static Entry, Option<&Make>) -> Option<Make>) -> Registry {
        let kinds = self.kinds.iter().map(|kind| Kind { make: make(kind.entry, kind.make.as_ref()), ..kind.clone() });
        Registry { catalog: self.catalog.clone(), kinds: kinds.collect() }
    }

    /// The same kinds, with this kind in the place of the kind that has the same entry.
    #[must_use]
    pub fn replaced(&self, kind: &Kind) -> Registry {
        let kinds = self.kinds.iter().map(|own| if own.entry == kind.entry { kind.clone() } else { own.clone() });
        Registry { catalog: self.catalog.clone(), kinds: kinds.collect() }
    }

    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The maker of a kind; `None` if the kind has no maker.
    pub fn maker(&self, entry: &Entry) -> Option<&Make> {
        self.kind(entry)?.make.as_ref()
    }

    /// Whether handlers of this kind can run: they have a maker, or they are transfers, which the runtime makes itself.
    pub fn runs(&self, entry: &Entry) -> bool {
        entry.transfer.is_some() || self.maker(entry).is_some()
    }

    /// Checks a graph as written against these kinds and probes the files of its sources.
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
