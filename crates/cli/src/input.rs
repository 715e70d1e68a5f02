//! Finds and reads the pipeline argument of a command: text, a file or standard input, in the text language or in TOML.
//!
//! Input is UTF-8 of bounded length. An argument that looks like a path is treated as a path, so that a missing file is
//! reported as missing and not parsed as a pipeline.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use vramp::handlers::files::{Clash, FileUse};
use vramp::plan::catalog::{Catalog, Entry, NoProbe, ProbeError, Probed, SettingValues, SourceProbe};
use vramp::plan::{
    CheckError, Format, Graph, GraphSpec, Mistake, Mistakes, ParsedGraph, Size, SourceText, TextSpan, read_text,
    read_toml,
};
use vramp::runtime::Registry;

use crate::failure::CliError;

/// Maximum length of a pipeline or profile.
const MAX_BYTES: u64 = 8 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    /// Handlers joined by `!`.
    Text,
    Toml,
}

/// A pipeline as given, not yet parsed.
pub(crate) struct PipelineSource {
    /// The text and its name in messages.
    pub(crate) source: SourceText,
    pub(crate) language: Language,
    from: ReadFrom,
}

enum ReadFrom {
    Argument,
    StandardInput,
    File(PathBuf),
}

impl PipelineSource {
    /// Finds and reads the pipeline argument of a command.
    pub(crate) fn find(pipeline: &OsStr) -> Result<PipelineSource, CliError> {
        if pipeline == "-" {
            let text = read_all("standard input", io::stdin().lock(), None)?;
            let language = if says_handlers(&text) { Language::Toml } else { Language::Text };
            return Ok(PipelineSource {
                source: SourceText::new("standard input", text),
                language,
                from: ReadFrom::StandardInput,
            });
        }
        let path = Path::new(pipeline);
        let shown = path.display().to_string();
        // A directory can have the same name as a pipeline, such as `pattern`. A word that names no file is therefore
        // treated as a path only if it looks like a path.
        let is_path = looks_like_a_path(&shown);
        match fs::metadata(path) {
            Ok(found) if !found.is_dir() => {
                let language = if has_extension(path, "toml") { Language::Toml } else { Language::Text };
                let source = SourceText::new(shown.as_str(), read_file(path)?);
                Ok(PipelineSource { source, language, from: ReadFrom::File(path.to_owned()) })
            }
            Ok(_) if is_path => Err(CliError::Wrong(anyhow!("{shown} is a directory; give a file in it"))),
            Err(error) if is_path => Err(CliError::Wrong(match error.kind() {
                ErrorKind::NotFound => anyhow!("{shown}: no such file"),
                _ => anyhow!("{shown}: {error}"),
            })),
            _ => match pipeline.to_str() {
                Some(text) => {
                    let source = SourceText::new("pipeline", text);
                    Ok(PipelineSource { source, language: Language::Text, from: ReadFrom::Argument })
                }
                None => Err(CliError::Wrong(anyhow!("the pipeline `{shown}` is neither a file nor UTF-8 text"))),
            },
        }
    }

    pub(crate) fn read(&self, catalog: &Catalog) -> ParsedGraph {
        match self.language {
            Language::Text => read_text(&self.source.text, catalog),
            Language::Toml => read_toml(&self.source.text),
        }
    }

    /// An error with these mistakes, in the order of the text.
    pub(crate) fn mistakes(&self, mut list: Vec<Mistake>) -> CliError {
        list.sort_by_key(|m| m.span.as_ref().map_or(usize::MAX, |s| s.start));
        CliError::Mistakes(Mistakes { source: Some(self.source.clone()), list })
    }
}

/// A parsed and checked graph, with its source text.
pub(crate) struct CheckedPipeline {
    source: SourceText,
    pub(crate) spec: GraphSpec,
    pub(crate) graph: Graph,
}

impl CheckedPipeline {
    pub(crate) fn read(pipeline: &OsStr, registry: &Registry) -> Result<CheckedPipeline, CliError> {
        CheckedPipeline::read_if(pipeline, registry, |_| Ok(()), |_, _| Ok(()))
    }

    /// The text that the pipeline was read from.
    pub(crate) fn text(&self) -> &str {
        &self.source.text
    }

    /// The file that a pipeline is read from; `None` if the pipeline is given as text or on standard input.
    pub(crate) fn file_of(pipeline: &OsStr) -> Option<PathBuf> {
        let path = Path::new(pipeline);
        let is_file = pipeline != "-" && fs::metadata(path).is_ok_and(|found| found.is_file());
        is_file.then(|| path.to_owned())
    }

    /// Like `read`, for a command that writes files. The function `edit` changes the graph that was read. The function
    /// `program` adds the files that vramp itself uses, or
    /// refuses the graph. A run that would overwrite a file that it reads, or write one file twice, is refused before
    /// any source is probed.
    pub(crate) fn read_to_run(
        pipeline: &OsStr,
        registry: &Registry,
        edit: impl FnOnce(&mut GraphSpec) -> Result<(), CliError>,
        program: impl FnOnce(&Graph, FileUse) -> Result<FileUse, CliError>,
    ) -> Result<CheckedPipeline, CliError> {
        CheckedPipeline::read_if(pipeline, registry, edit, |given, spec| {
            // `read_if` checks the graph again and reports the mistakes.
            let Ok(graph) = Graph::check(spec, registry.catalog(), &Unopened) else { return Ok(()) };
            let files = match &given.from {
                ReadFrom::Argument => FileUse::of(&graph),
                ReadFrom::StandardInput => FileUse::of(&graph).reads_standard_input("the pipeline"),
                ReadFrom::File(path) => FileUse::of(&graph).reads("the pipeline", path),
            };
            let files = program(&graph, files).map_err(|why| placed(why, &given.source, spec))?;
            files.check().map_err(|clash| clashing(clash, &given.source, spec))
        })
    }

    fn read_if(
        pipeline: &OsStr,
        registry: &Registry,
        edit: impl FnOnce(&mut GraphSpec) -> Result<(), CliError>,
        check: impl FnOnce(&PipelineSource, &GraphSpec) -> Result<(), CliError>,
    ) -> Result<CheckedPipeline, CliError> {
        let (given, catalog) = (PipelineSource::find(pipeline)?, registry.catalog());
        let ParsedGraph { mut spec, mut mistakes } = given.read(catalog);
        if !mistakes.is_empty() {
            mistakes.extend(certain_mistakes(&spec, catalog));
            return Err(given.mistakes(mistakes));
        }
        if let (true, Some(reader)) = (pipeline == "-", reads_standard_input(&spec)) {
            return Err(CliError::Wrong(anyhow!(
                "{reader} reads frames from standard input (path=-), and the pipeline itself came from there; give the \
                 pipeline as text or as a file"
            )));
        }
        edit(&mut spec)?;
        check(&given, &spec)?;
        match registry.check(&spec) {
            Ok(graph) => Ok(CheckedPipeline { source: given.source, spec, graph }),
            Err(CheckError::Mistakes(list)) => Err(given.mistakes(list)),
            Err(CheckError::Probe(failed)) => {
                let first = failed.first().map(|(handler, _)| handler.clone());
                let why = CliError::Failed(CheckError::Probe(failed).into()).of(first.as_deref());
                Err(placed(why, &given.source, &spec))
            }
        }
    }

    /// If a later error names a handler, adds the position of that handler to the error.
    pub(crate) fn place(&self, why: CliError) -> CliError {
        placed(why, &self.source, &self.spec)
    }
}

/// A probe that accepts every source without opening it, because paths are compared before any file is opened.
struct Unopened;

impl SourceProbe for Unopened {
    fn probe(&self, _: &Entry, _: &SettingValues) -> Result<Probed, ProbeError> {
        Ok(Probed { format: Some(Format::I420), size: Size::new(1, 1), ..Probed::default() })
    }
}

/// Adds a position to an error about a handler: the position of the setting whose value the message quotes, or else the
/// position of the handler's kind.
fn placed(why: CliError, source: &SourceText, spec: &GraphSpec) -> CliError {
    let (CliError::Of(_, named), Some(words)) = (&why, why.words()) else { return why };
    let Some(at) = spec.names().iter().position(|name| name == named) else { return why };
    let handler = &spec.handlers()[at];
    let quoted = handler.settings.values().find(|setting| words.contains(&format!("`{}`", setting.value)));
    match quoted.map_or(&handler.place, |setting| &setting.place) {
        TextSpan(Some(place)) => CliError::At(Box::new(why), source.clone(), place.clone()),
        TextSpan(None) => why,
    }
}

/// An error about two uses of one file, with the position of the setting to change.
fn clashing(clash: Clash, source: &SourceText, spec: &GraphSpec) -> CliError {
    let place = clash.at.as_ref().and_then(|(named, key)| {
        let at = spec.names().iter().position(|name| name == named)?;
        let handler = &spec.handlers()[at];
        let setting = handler.settings.get(*key).and_then(|setting| setting.place.0.clone());
        setting.or_else(|| handler.place.0.clone())
    });
    if place.is_none() {
        return clash.into();
    }
    let mistake = Mistake::new(clash.problem, "expected a file that is not used elsewhere in this run");
    let list = vec![mistake.at(place).help(clash.help)];
    CliError::Mistakes(Mistakes { source: Some(source.clone()), list })
}

/// The name of a source that reads standard input. A handler with `path=-` to which no link leads is a source, not a
/// sink.
fn reads_standard_input(spec: &GraphSpec) -> Option<String> {
    let fed: BTreeSet<usize> = spec.links().iter().map(|link| link.to.handler.0).collect();
    let reads = |at: &usize| spec.handlers()[*at].settings.get("path").is_some_and(|path| path.value == "-");
    let found = (0..spec.handlers().len()).filter(|at| !fed.contains(at)).find(reads)?;
    spec.names().into_iter().nth(found)
}

/// The mistakes in kinds and settings of handlers. Such a mistake is certain even if the spec is incomplete. A wrong
/// link or a missing part, however, may be only the consequence of a mistake in the text.
pub(crate) fn certain_mistakes(spec: &GraphSpec, catalog: &Catalog) -> Vec<Mistake> {
    let Err(CheckError::Mistakes(mut mistakes)) = Graph::check(spec, catalog, &NoProbe) else {
        return Vec::new();
    };
    let mut places = BTreeSet::new();
    let mut add = |place: &TextSpan| places.extend(place.0.as_ref().map(|at| (at.start, at.end)));
    for handler in spec.handlers() {
        if catalog.named(&handler.kind).next().is_none() {
            add(&handler.place);
        }
        for setting in handler.settings.values() {
            add(&setting.key_place);
            add(&setting.place);
        }
    }
    mistakes.retain(|m| m.span.as_ref().is_some_and(|at| places.contains(&(at.start, at.end))));
    mistakes
}

pub(crate) fn read_file(path: &Path) -> Result<String, CliError> {
    let name = path.display().to_string();
    let opened = File::open(path).and_then(|file| Ok((file.metadata()?, file)));
    match opened {
        Ok((found, _)) if found.is_dir() => Err(CliError::Wrong(anyhow!("{name} is a directory; give a file in it"))),
        Ok((found, file)) => read_all(&name, file, Some(found.len())),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(CliError::Wrong(anyhow!("{name}: no such file"))),
        Err(error) => Err(CliError::Failed(anyhow::Error::new(error).context(name))),
    }
}

fn read_all(name: &str, from: impl Read, length: Option<u64>) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    from.take(MAX_BYTES + 1).read_to_end(&mut bytes).context(name.to_owned()).map_err(CliError::Failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        let has = length
            .filter(|n| *n > MAX_BYTES)
            .map_or("more bytes than can be read".to_owned(), |n| format!("{n} bytes"));
        return Err(CliError::Wrong(anyhow!("{name} has {has}; at most {MAX_BYTES} (8 MiB) are read")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].split(|b| *b == b'\n').count();
        CliError::Wrong(anyhow!("{name} is not UTF-8 text: invalid byte at offset {at}, in line {line}"))
    })
}

fn looks_like_a_path(word: &str) -> bool {
    let path = Path::new(word);
    let ends_like_a_file = ["toml", "vramp", "txt"].iter().any(|e| has_extension(path, e));
    let one_word = !word.contains(char::is_whitespace);
    // The name of a TOML file may contain a space. A pipeline that ends in `.toml` contains a setting or a link.
    one_word && (word.contains('/') || ends_like_a_file) || has_extension(path, "toml") && !word.contains(['!', '='])
}

fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case(extension))
}

/// Whether a text without a file name has a table of handlers and is therefore TOML.
fn says_handlers(text: &str) -> bool {
    text.lines().any(|line| {
        let tight: String = line.chars().filter(|c| !c.is_whitespace() && *c != '\u{feff}').take(12).collect();
        tight.starts_with("[[handlers]]") || tight.starts_with("handlers=[")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_look_like_files_are_not_pipelines() {
        for path in ["a.toml", "dir/a", "./a", "a.vramp", "a.txt", "my pipe.toml", "A.TOML"] {
            assert!(looks_like_a_path(path), "{path}");
        }
        for text in ["pattern", "pattern!null", "image path=a/b.png ! null", "pattern ! png path=x.txt", "a. ! b", ""] {
            assert!(!looks_like_a_path(text), "{text}");
        }
    }

    #[test]
    fn toml_is_known_by_its_table_of_handlers() {
        assert!(says_handlers("# a pipeline\n\n  [[handlers]]\nkind = \"null\"\n"));
        assert!(says_handlers("handlers = [{ kind = \"null\" }]"));
        assert!(!says_handlers("pattern ! null # [[handlers]]\n"));
    }
}
