//! Windows of a run: the event loop that `window` sinks need on the main thread, and the sink that `--preview` adds.

use anyhow::anyhow;
use vramp::Pipeline;
use vramp::handlers::sink::{terminal, window};
use vramp::plan::catalog::{Catalog, Family};
use vramp::plan::{Graph, GraphSpec, HandlerSpec, Policy};
use vramp::runtime::Registry;

use crate::args::RunArgs;
use crate::failure::CliError;

/// The name of the sink that `--preview` adds.
const PREVIEW: &str = "preview";

/// The windows of a run.
pub(crate) struct Windows {
    #[cfg(feature = "window")]
    screen: Option<vramp::window::Screen>,
}

impl Windows {
    /// A run without windows.
    pub(crate) fn none() -> Windows {
        Windows {
            #[cfg(feature = "window")]
            screen: None,
        }
    }

    /// Lets a closed window end the run, and a window change its settings.
    pub(crate) fn attach(&self, pipeline: &Pipeline) {
        #[cfg(feature = "window")]
        if let Some(screen) = &self.screen {
            screen.attach(pipeline);
        }
        #[cfg(not(feature = "window"))]
        let _ = pipeline;
    }
}

/// Does `work` with a registry that has windows, if the graph has windows. The event loop then has this thread, and
/// `work` another one.
#[cfg(feature = "window")]
pub(crate) fn beside_windows<R: Send>(
    graph: &Graph,
    registry: &Registry,
    work: impl FnOnce(&Registry, &Windows) -> Result<R, CliError> + Send,
) -> Result<R, CliError> {
    let Some(first) = graph.handlers().iter().find(|handler| handler.entry.name == window::ENTRY.name) else {
        return work(registry, &Windows::none());
    };
    let registry = registry.clone();
    let worked = vramp::window::main(|screen| work(&screen.register(&registry), &Windows { screen: Some(screen) }));
    worked.map_err(|error| CliError::NoPlan(anyhow!("{}: {error}", first.name)).of(Some(&first.name)))?
}

#[cfg(not(feature = "window"))]
pub(crate) fn beside_windows<R: Send>(
    graph: &Graph,
    registry: &Registry,
    work: impl FnOnce(&Registry, &Windows) -> Result<R, CliError> + Send,
) -> Result<R, CliError> {
    match graph.handlers().iter().find(|handler| handler.entry.name == window::ENTRY.name) {
        None => work(registry, &Windows::none()),
        Some(first) => {
            let words =
                anyhow!("{}: this program was built without windows (feature `window`); use `terminal`", first.name);
            Err(CliError::NoPlan(words).of(Some(&first.name)))
        }
    }
}

/// Adds what `--preview` asks for: a window that shows the frames of the first sink, or a view in the terminal if there
/// is no display. A preview takes the newest frame and never slows the run.
pub(crate) fn add_preview(args: &RunArgs, spec: &mut GraphSpec, catalog: &Catalog) -> Result<(), CliError> {
    if !args.preview {
        return Ok(());
    }
    let is_sink =
        |handler: &HandlerSpec| catalog.find(&handler.kind, true).is_some_and(|entry| entry.family == Family::Sink);
    let links = spec.links();
    let shown = links.iter().filter(|link| spec.handlers().get(link.to.handler.0).is_some_and(is_sink));
    let Some(from) = shown.min_by_key(|link| link.to.handler.0).map(|link| link.from.clone()) else {
        return Err(CliError::Wrong(anyhow!(
            "--preview shows what a sink receives, and the pipeline has no sink; add one, such as `null`"
        )));
    };
    let taken = spec.names();
    let mut names = std::iter::once(PREVIEW.to_owned()).chain((1..).map(|number| format!("{PREVIEW}{number}")));
    let name = names.find(|name| !taken.contains(name)).unwrap_or_else(|| PREVIEW.to_owned());
    let preview = HandlerSpec::new(preview_kind()).named(name);
    let preview = if has_display() { preview.set("title", PREVIEW) } else { preview };
    let preview = spec.add(preview);
    spec.connect(from, preview).policy(Policy::Latest);
    Ok(())
}

/// The sink of a live view, and whether it can be seen: a window, the terminal, or nothing.
pub(crate) fn live_sink() -> (&'static str, bool) {
    if has_display() {
        (window::ENTRY.name, true)
    } else if std::io::IsTerminal::is_terminal(&std::io::stdout()) {
        (terminal::ENTRY.name, true)
    } else {
        ("null", false)
    }
}

fn preview_kind() -> &'static str {
    if has_display() { window::ENTRY.name } else { terminal::ENTRY.name }
}

#[cfg(feature = "window")]
fn has_display() -> bool {
    vramp::window::check_display().is_ok()
}

#[cfg(not(feature = "window"))]
fn has_display() -> bool {
    false
}
