//! Who reads and writes the program's own streams.
//!
//! Owns what is refused because two would share a stream. Files are checked by the library.
//! Does not open any of them: handlers do.
//!
//! Always: what is refused here is refused before anything is opened or computed.

use std::io::{self, IsTerminal};

use anyhow::anyhow;
use vramp::plan::Graph;
use vramp::plan::catalog::Family;

use crate::failure::CliError;

/// The handlers of a graph that use the program's own streams.
pub(crate) struct Streams {
    /// Sources that read standard input.
    readers: Vec<String>,
    /// Sinks that write frames to standard output.
    writers: Vec<String>,
    /// Sinks that draw there.
    drawers: Vec<String>,
}

impl Streams {
    /// Those of a graph.
    pub(crate) fn of(graph: &Graph) -> Streams {
        let mut all = Streams { readers: Vec::new(), writers: Vec::new(), drawers: Vec::new() };
        for handler in graph.handlers() {
            let name = handler.name.clone();
            match (handler.entry.family, handler.settings.text("path")) {
                (Family::Source, Some("-")) => all.readers.push(name),
                (Family::Sink, Some("-")) => all.writers.push(name),
                (Family::Sink, None) if handler.entry.name == vramp::handlers::sink::terminal::ENTRY.name => {
                    all.drawers.push(name);
                }
                _ => {}
            }
        }
        all
    }

    /// The sinks that draw into the terminal.
    pub(crate) fn drawers(&self) -> impl Iterator<Item = &str> {
        self.drawers.iter().map(String::as_str)
    }

    /// Whether a sink draws into the terminal.
    pub(crate) fn draws(&self) -> bool {
        !self.drawers.is_empty()
    }

    /// Two may not write to standard output, nor read from standard input.
    pub(crate) fn refuse_shared(&self, json: bool) -> Result<(), CliError> {
        match (&self.writers[..], &self.drawers[..], &self.readers[..]) {
            ([writer, ..], ..) if json => wrong(
                writer,
                format!(
                    "{writer} writes frames to standard output (path=-), where --json would add a line; give {writer} a \
                 file, or drop --json"
                ),
            ),
            (_, [drawer, ..], _) if json => wrong(
                drawer,
                format!("{drawer} draws on standard output, where --json would add a line; drop {drawer} or --json"),
            ),
            ([one, other, ..], ..) => {
                wrong(one, format!("{one} and {other} both write to standard output (path=-); give one of them a file"))
            }
            ([writer, ..], [drawer, ..], _) => wrong(
                writer,
                format!(
                    "{writer} writes frames to standard output (path=-), and {drawer} draws there; give {writer} a file"
                ),
            ),
            (_, [one, other, ..], _) => {
                wrong(one, format!("{one} and {other} both draw into the one terminal; keep one of them"))
            }
            (.., [one, other, ..]) => {
                wrong(one, format!("{one} and {other} both read from standard input (path=-); give one of them a file"))
            }
            _ => Ok(()),
        }
    }

    /// What draws needs a terminal.
    pub(crate) fn refuse_drawing_elsewhere(&self) -> Result<(), CliError> {
        match self.drawers.first() {
            Some(drawer) if !io::stdout().is_terminal() => wrong(
                drawer,
                format!(
                    "{drawer} draws in a terminal, and standard output is not a terminal; write frames into a pipe with \
                 `y4m path=-`, or into files with `png`"
                ),
            ),
            _ => Ok(()),
        }
    }

    /// Where something else owns the terminal, nothing may write to it or read from it.
    pub(crate) fn refuse_under(&self, command: &str) -> Result<(), CliError> {
        match (self.writers.first(), self.drawers.first(), self.readers.first()) {
            (Some(writer), ..) => wrong(
                writer,
                format!(
                    "{writer} writes frames to standard output (path=-), where `vramp {command}` shows its view; give \
                 {writer} a file, or use `vramp run`"
                ),
            ),
            (_, Some(drawer), _) => wrong(
                drawer,
                format!(
                    "{drawer} draws on standard output, where `vramp {command}` shows its view; use `vramp run`, or another \
                 sink such as null"
                ),
            ),
            (.., Some(reader)) if io::stdin().is_terminal() => wrong(
                reader,
                format!(
                    "{reader} reads frames from standard input (path=-), where `vramp {command}` reads keys; give {reader} a \
                 file, or pipe frames in"
                ),
            ),
            _ => Ok(()),
        }
    }
}

/// A refusal that is about this handler.
fn wrong(handler: &str, words: String) -> Result<(), CliError> {
    Err(CliError::Wrong(anyhow!(words)).of(Some(handler)))
}
