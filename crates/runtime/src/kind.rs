//! Kinds: the handlers that can be made, by entry.
//!
//! Owns the pairing of an entry with the function that makes a handler from checked settings.
//! Does not make them: preparing a pipeline does, once per handler of its graph.
//!
//! Always: a kind's entry is in the catalogue; a kind that can only be planned has no maker.

use std::fmt;
use std::sync::Arc;

use vramp_plan::catalog::{Catalog, Declared, Entry, EntryError, Settings};
use vramp_plan::{Content, Rate, Space, StreamTags};

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

/// What a handler is made from.
#[derive(Debug, Clone)]
pub struct Setup<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its settings, checked, defaults filled in.
    pub settings: &'a Settings,
    /// What comes in, by port; none where nothing is linked.
    pub inputs: &'a [Option<Content>],
    /// What goes out, by port; none where nothing is linked.
    pub outputs: &'a [Option<Content>],
    /// What is known of the stream at its lead input, or of the one that a source makes, besides its content.
    pub tags: Option<&'a StreamTags>,
    /// Where it runs.
    pub space: Space,
    /// Frames per second at its output, or at its lead input where it has none.
    pub rate: Option<Rate>,
    /// Handlers in the whole graph, as the user wrote it.
    pub handlers: usize,
    /// What the user's text that it is made from turned out to be.
    pub declared: Option<&'a Declared>,
    /// Whether it should follow changes of the file that it is made from.
    pub watch: bool,
}

/// Makes a handler.
pub type Make = Arc<dyn Fn(&Setup<'_>) -> Result<Worker, HandlerError> + Send + Sync>;

/// Every kind of handler that a graph may use, and how the ones that run are made.
#[derive(Clone, Default)]
pub struct Kinds {
    catalog: Catalog,
    makers: Vec<(&'static Entry, Make)>,
}

impl Kinds {
    /// Kinds that can be planned; none can be made yet.
    pub fn of(catalog: Catalog) -> Kinds {
        Kinds { catalog, makers: Vec::new() }
    }

    /// Adds a kind of one's own.
    pub fn add(
        &mut self,
        entry: &'static Entry,
        make: impl Fn(&Setup<'_>) -> Result<Worker, HandlerError> + Send + Sync + 'static,
    ) -> Result<(), EntryError> {
        self.catalog.add(entry)?;
        self.makes(entry, make);
        Ok(())
    }

    /// Says how a kind of the catalogue is made.
    pub fn makes(
        &mut self,
        entry: &'static Entry,
        make: impl Fn(&Setup<'_>) -> Result<Worker, HandlerError> + Send + Sync + 'static,
    ) {
        self.makers.push((entry, Arc::new(make)));
    }

    /// The entries of all kinds.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// How a kind is made; none where it can only be planned.
    pub fn maker(&self, entry: &Entry) -> Option<&Make> {
        self.makers.iter().find(|(own, _)| std::ptr::eq(*own, entry)).map(|(_, make)| make)
    }
}

impl fmt::Debug for Kinds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.makers.iter().map(|(entry, _)| entry.name)).finish()
    }
}
