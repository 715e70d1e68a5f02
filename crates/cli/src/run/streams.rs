//! Finds the handlers that use the program's standard streams, and refuses a stream that is used twice.
//!
//! Streams are checked before anything is opened or computed. The library checks files.

use std::io::{self, IsTerminal};

use anyhow::anyhow;
use vramp::plan::Graph;
use vramp::plan::catalog::Family;

use crate::failure::CliError;

pub(crate) struct Streams {
    readers: Vec<String>,
    writers: Vec<String>,
    drawers: Vec<String>,
}

impl Streams {
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

    /// The first handler that reads standard input.
    pub(crate) fn reader(&self) -> Option<&str> {
        self.readers.first().map(String::as_str)
    }

    /// The sinks that draw on the terminal.
    pub(crate) fn drawers(&self) -> impl Iterator<Item = &str> {
        self.drawers.iter().map(String::as_str)
    }

    pub(crate) fn draws(&self) -> bool {
        !self.drawers.is_empty()
    }

    /// Refuses `app`, whose frames only a program that links the library can push and pull.
    pub(crate) fn refuse_app(graph: &Graph) -> Result<(), CliError> {
        let app = vramp::handlers::source::app::ENTRY.name;
        match graph.handlers().iter().find(|handler| handler.entry.name == app) {
            None => Ok(()),
            Some(handler) if handler.entry.family == Family::Source => wrong(
                &handler.name,
                format!(
                    "{} has no frames here: only a program that uses the library can push them (`Pipeline::input` of the \
                     crate `vramp`); try `pattern` instead",
                    handler.name
                ),
            ),
            Some(handler) => wrong(
                &handler.name,
                format!(
                    "{} hands its frames to a program that uses the library (`Pipeline::output` of the crate `vramp`); \
                     try `null` or `png` instead",
                    handler.name
                ),
            ),
        }
    }

    /// Refuses two writers to standard output, including `--json`, and two readers of standard input.
    pub(crate) fn refuse_shared(&self, json: bool) -> Result<(), CliError> {
        match (&self.writers[..], &self.drawers[..], &self.readers[..]) {
            ([writer, ..], ..) if json => wrong(
                writer,
                format!(
                    "{writer} writes frames to standard output (path=-), where --json would add a line; give {writer} a \
                 file, or remove --json"
                ),
            ),
            (_, [drawer, ..], _) if json => wrong(
                drawer,
                format!("{drawer} draws on standard output, where --json would add a line; remove {drawer} or --json"),
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
                wrong(one, format!("{one} and {other} both draw on the terminal; keep one of them"))
            }
            (.., [one, other, ..]) => {
                wrong(one, format!("{one} and {other} both read from standard input (path=-); give one of them a file"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a sink that draws if standard output is not a terminal.
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

    /// Refuses sinks and sources that use the terminal while `command` owns it.
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

/// An error about this handler.
fn wrong(handler: &str, words: String) -> Result<(), CliError> {
    Err(CliError::Wrong(anyhow!(words)).of(Some(handler)))
}
