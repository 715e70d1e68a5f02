//! The files that a run reads and writes, and the check that a run does not overwrite its own files.
//!
//! Entries declare which settings name files that are read or written ([`PathUse`]). [`FileUse`] collects these files
//! for a graph, adds the files that the program itself uses, and refuses a run that would overwrite a file that the run
//! reads, or that would write to one file twice. Files are compared by what they are on the disk, not by name: links,
//! hard links, relative paths, `/dev/stdout` and numbered names are resolved. The check opens nothing and changes
//! nothing. `PipelineBuilder` runs the check before opening any file, and the program runs the check before sources are
//! probed.
//!
//! ```
//! # use vramp_handlers::{registry, files::FileUse};
//! # use vramp_plan::read_text;
//! let registry = registry();
//! let spec = read_text("pattern name=p ! raw path=a.raw; p. ! raw path=./a.raw", registry.catalog()).spec;
//! let graph = registry.check(&spec)?;
//! assert!(FileUse::of(&graph).writes("--trace", "run.trace").check().is_err());
//! # Ok::<(), vramp_plan::CheckError>(())
//! ```

mod identity;
mod listing;
mod names;

pub(crate) use listing::{ListError, matching};
pub(crate) use names::NumberedPath;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use vramp_plan::catalog::{Family, PathUse, ValueType};
use vramp_plan::{Graph, Handler};

use identity::{FileIdentity, FileKind, FoundFile};

/// Two uses of one file that conflict in a run.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}; {help}")]
pub struct Clash {
    /// The handler and the setting to change; `None` if neither use belongs to a handler.
    pub at: Option<(String, &'static str)>,
    /// The file and its two uses.
    pub problem: String,
    pub help: String,
}

vramp_plan::debug_as_display!(Clash);

/// The files that a run reads and writes. [`FileUse::check`] compares these files with each other.
#[derive(Debug, Clone, Default)]
pub struct FileUse {
    reads: Vec<FileReader>,
    writes: Vec<Write>,
}

/// The files that the sinks of a run have written, over all graphs of the run. Numbered files are not among them, because
/// their numbers go on.
#[derive(Debug, Clone, Default)]
pub struct WrittenFiles {
    /// Absolute paths.
    paths: Vec<PathBuf>,
}

impl WrittenFiles {
    /// Adds the files of a graph.
    pub fn add(&mut self, graph: &Graph) {
        for path in graph.handlers().iter().flat_map(written_by) {
            // A path that cannot be made absolute cannot be opened either.
            let Ok(path) = std::path::absolute(path) else { continue };
            if !self.paths.contains(&path) {
                self.paths.push(path);
            }
        }
    }

    /// The path of a file that this handler would write anew, as written in its setting.
    pub fn would_lose(&self, handler: &Handler) -> Option<String> {
        let is_there = |path: &&str| {
            identity::at(Path::new(path)).is_some_and(|found| {
                found.kind == FileKind::File && self.paths.iter().any(|own| identity::at(own).as_ref() == Some(&found))
            })
        };
        written_by(handler).find(is_there).map(str::to_owned)
    }
}

/// The files that a handler writes under a name of their own.
fn written_by(handler: &Handler) -> impl Iterator<Item = &str> {
    let paths = handler.entry.settings.iter().filter(|own| own.value == ValueType::Path(PathUse::Write));
    paths.filter_map(|own| handler.settings.text(own.name)).filter(|path| *path != "-")
}

/// A handler with its setting, or a part of the program.
#[derive(Debug, Clone)]
struct User {
    name: String,
    setting: Option<&'static str>,
}

#[derive(Debug, Clone)]
struct FileReader {
    by: User,
    from: FileOrigin,
}

#[derive(Debug, Clone)]
enum FileOrigin {
    Path(PathBuf),
    Matching(String),
    StandardInput,
}

#[derive(Debug, Clone)]
struct Write {
    by: User,
    /// The path as written in the setting.
    spelled: String,
    to: Destination,
}

#[derive(Debug, Clone)]
enum Destination {
    Path(PathBuf),
    Numbered(NumberedPath),
    StandardOutput,
}

impl FileUse {
    /// Collects the files of a graph.
    pub fn of(graph: &Graph) -> FileUse {
        let mut all = FileUse::default();
        for handler in graph.handlers() {
            for setting in handler.entry.settings {
                let (ValueType::Path(path_use), Some(path)) = (setting.value, handler.settings.text(setting.name))
                else {
                    continue;
                };
                let by = User { name: handler.name.clone(), setting: Some(setting.name) };
                let read = |from| FileReader { by: by.clone(), from };
                let write = |to| Write { by: by.clone(), spelled: path.to_owned(), to };
                match path_use {
                    PathUse::Read if path == "-" && handler.entry.family == Family::Source => {
                        all.reads.push(read(FileOrigin::StandardInput));
                    }
                    PathUse::Read => {
                        let path = path.strip_prefix("file://").unwrap_or(path);
                        all.reads.push(read(FileOrigin::Path(path.into())));
                    }
                    PathUse::ReadMatching => all.reads.push(read(FileOrigin::Matching(path.to_owned()))),
                    PathUse::Write if path == "-" => all.writes.push(write(Destination::StandardOutput)),
                    PathUse::Write => all.writes.push(write(Destination::Path(path.into()))),
                    PathUse::WriteNumbered => {
                        // An invalid pattern is reported when the settings are checked.
                        let names = NumberedPath::read(path).unwrap_or_else(|_| NumberedPath::only(path));
                        all.writes.push(write(Destination::Numbered(names)));
                    }
                }
            }
        }
        all
    }

    /// Adds a file that the program reads; `what` names the content, such as "the pipeline".
    #[must_use]
    pub fn reads(mut self, what: &str, path: impl Into<PathBuf>) -> FileUse {
        self.reads.push(FileReader { by: User::program(what), from: FileOrigin::Path(path.into()) });
        self
    }

    /// Adds standard input, from which the program reads `what`.
    #[must_use]
    pub fn reads_standard_input(mut self, what: &str) -> FileUse {
        self.reads.push(FileReader { by: User::program(what), from: FileOrigin::StandardInput });
        self
    }

    /// Adds a file that the program writes for an option, such as `--trace`.
    #[must_use]
    pub fn writes(mut self, option: &str, path: impl Into<PathBuf>) -> FileUse {
        let path = path.into();
        let spelled = path.display().to_string();
        self.writes.push(Write { by: User::program(option), spelled, to: Destination::Path(path) });
        self
    }

    /// Adds standard output, to which the program writes for an option, such as `--json`.
    #[must_use]
    pub fn writes_standard_output(mut self, option: &str) -> FileUse {
        let by = User::program(option);
        self.writes.push(Write { by, spelled: "-".to_owned(), to: Destination::StandardOutput });
        self
    }

    /// Refuses a run that would overwrite a file that the run reads, or that would write to one file twice.
    pub fn check(&self) -> Result<(), Clash> {
        if self.writes.is_empty() {
            return Ok(());
        }
        let goals: Vec<Goal> = self.writes.iter().map(|write| Goal::of(&write.to)).collect();
        let read = self.files_read();
        for (write, goal) in self.writes.iter().zip(&goals) {
            let clash = goal.files().find_map(|found| {
                let (reader, file) = read.get(&found.identity)?;
                found.feeds(&file.found).then(|| write.over(&self.reads[*reader], file))
            });
            clash.map_or(Ok(()), Err)?;
        }
        for (at, (write, goal)) in self.writes.iter().zip(&goals).enumerate() {
            for (other, before) in self.writes.iter().zip(&goals).take(at) {
                if let Some(file) = goal.meets(before) {
                    return Err(write.beside(other, &file));
                }
            }
        }
        Ok(())
    }

    /// Every file that is read, with its first reader.
    fn files_read(&self) -> BTreeMap<FileIdentity, (usize, FileRead)> {
        let mut all = BTreeMap::new();
        for (reader, read) in self.reads.iter().enumerate() {
            // If the files of a pattern cannot be listed, the handler that reads them reports the error.
            let paths = match &read.from {
                FileOrigin::Path(path) => vec![path.clone()],
                FileOrigin::Matching(pattern) => matching(pattern).unwrap_or_default(),
                FileOrigin::StandardInput => Vec::new(),
            };
            let named = paths.into_iter().filter_map(|path| {
                Some(FileRead { found: identity::at(&path)?, shown: format!("`{}`", path.display()) })
            });
            let standard = matches!(read.from, FileOrigin::StandardInput).then(identity::standard_input).flatten();
            let standard = standard.map(|found| FileRead { found, shown: "the file of standard input".to_owned() });
            for file in named.chain(standard) {
                all.entry(file.found.identity.clone()).or_insert((reader, file));
            }
        }
        all
    }
}

/// A file that is read, and its name in messages.
struct FileRead {
    found: FoundFile,
    shown: String,
}

/// The resolved target of a write.
enum Goal {
    Standard(Option<FoundFile>),
    One(Option<FoundFile>, String),
    Many(Numbered),
}

/// Files whose names differ in a number.
struct Numbered {
    /// The directory as written, for messages.
    written: String,
    /// The canonical directory; `None` if the directory does not exist.
    folder: Option<PathBuf>,
    names: NumberedPath,
    /// Existing files that match one of the names. Such a file may be a link to another place.
    there: Vec<(FoundFile, String)>,
}

impl Goal {
    fn of(to: &Destination) -> Goal {
        match to {
            Destination::StandardOutput => Goal::Standard(identity::standard_output()),
            Destination::Path(path) => Goal::One(identity::at(path), path.display().to_string()),
            Destination::Numbered(names) if names.is_numbered() => Goal::Many(Numbered::look(names)),
            Destination::Numbered(names) => {
                let mut path = String::new();
                names.name(0, &mut path);
                Goal::One(identity::at(Path::new(&path)), path)
            }
        }
    }

    /// The files to which this goal leads, whether they exist yet or not. Of numbered files, only existing files are
    /// included.
    fn files(&self) -> Box<dyn Iterator<Item = &FoundFile> + '_> {
        match self {
            Goal::Standard(found) | Goal::One(found, _) => Box::new(found.iter()),
            Goal::Many(many) => Box::new(many.there.iter().map(|(found, _)| found)),
        }
    }

    /// The name of a file that both goals would write, if there is such a file.
    fn meets(&self, other: &Goal) -> Option<String> {
        match (self, other) {
            (Goal::Standard(_), Goal::Standard(_)) => Some("standard output".to_owned()),
            (Goal::Many(ours), Goal::Many(theirs)) => ours.meets(theirs),
            (Goal::Many(many), one) | (one, Goal::Many(many)) => one.files().find_map(|found| many.gives(found)),
            (one, other) => {
                let meet = one.files().any(|found| other.files().any(|before| found.disturbs(before)));
                meet.then(|| match (one, other) {
                    (Goal::One(_, path), _) | (_, Goal::One(_, path)) => format!("`{path}`"),
                    _ => "standard output".to_owned(),
                })
            }
        }
    }
}

impl Numbered {
    fn look(names: &NumberedPath) -> Numbered {
        let (written, names) = names.in_folder();
        let folder = fs::canonicalize(if written.is_empty() { "." } else { written }).ok();
        let entries = folder.as_ref().and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten();
        let named = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let there = named.filter(|name| names.give(name)).filter_map(|name| {
            let found = identity::at(&folder.as_ref()?.join(&name))?;
            Some((found, name))
        });
        let mut there: Vec<(FoundFile, String)> = there.collect();
        // The entries of a directory have no order, and messages should name the lowest number.
        there.sort_by(|(_, a), (_, b)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
        Numbered { written: written.to_owned(), folder, names, there }
    }

    /// The name of the numbered file that is the same file as `one`.
    fn gives(&self, one: &FoundFile) -> Option<String> {
        let there = self.there.iter().find(|(found, _)| found.disturbs(one)).map(|(_, name)| name.as_str());
        let to_be = || match &one.identity {
            FileIdentity::Path(path) if path.parent() == self.folder.as_deref() => {
                path.file_name()?.to_str().filter(|name| self.names.give(name))
            }
            _ => None,
        };
        Some(self.shown(there.or_else(to_be)?))
    }

    fn meets(&self, other: &Numbered) -> Option<String> {
        if self.folder.is_some()
            && self.folder == other.folder
            && let Some(name) = self.names.common(&other.names)
        {
            return Some(self.shown(&name));
        }
        let theirs: BTreeMap<&FileIdentity, &FoundFile> =
            other.there.iter().map(|(found, _)| (&found.identity, found)).collect();
        let both =
            |(found, _): &&(FoundFile, String)| theirs.get(&found.identity).is_some_and(|other| found.disturbs(other));
        self.there.iter().find(both).map(|(_, name)| self.shown(name))
    }

    fn shown(&self, name: &str) -> String {
        format!("`{}{name}`", self.written)
    }
}

impl User {
    fn program(what: &str) -> User {
        User { name: what.to_owned(), setting: None }
    }

    fn at(&self) -> Option<(String, &'static str)> {
        Some((self.name.clone(), self.setting?))
    }
}

impl Write {
    /// The error for overwriting a file that is read.
    fn over(&self, read: &FileReader, file: &FileRead) -> Clash {
        let (by, shown) = (&self.by.name, &file.shown);
        let would = if file.found.kind == FileKind::Pipe { "write into" } else { "overwrite" };
        let used = match read.by.setting {
            None => format!("which holds {}", read.by.name),
            Some(_) => format!("which {} reads", read.by.name),
        };
        let same = match &self.to {
            _ if *shown == format!("`{}`", self.spelled) => String::new(),
            Destination::StandardOutput => ": standard output leads there".to_owned(),
            _ => format!(": `{}` leads there", self.spelled),
        };
        let problem = format!("{by} would {would} {shown}, {used}{same}");
        Clash { at: self.by.at(), problem, help: self.elsewhere() }
    }

    /// The error for two writers of one file.
    fn beside(&self, other: &Write, file: &str) -> Clash {
        let (one, two) = (&other.by.name, &self.by.name);
        let same = match (&other.to, &self.to) {
            _ if other.spelled == self.spelled => String::new(),
            (Destination::StandardOutput, _) => format!(": `{}` and standard output are the same", self.spelled),
            (_, Destination::StandardOutput) => format!(": `{}` and standard output are the same", other.spelled),
            _ => format!(": `{}` and `{}` both lead there", other.spelled, self.spelled),
        };
        let problem = format!("{one} and {two} would both write to {file}{same}");
        let help = match (other.by.setting, self.by.setting) {
            (None, None) => "choose another file for one of the two".to_owned(),
            (Some(_), None) => format!("give {one} another file, or leave {two} out"),
            (None, Some(_)) => format!("give {two} another file, or leave {one} out"),
            (Some(_), Some(_)) => format!("give {two} another file"),
        };
        Clash { at: self.by.at().or_else(|| other.by.at()), problem, help }
    }

    /// A suggestion for another place.
    fn elsewhere(&self) -> String {
        let path = Path::new(&self.spelled);
        match &self.to {
            Destination::StandardOutput => "send standard output to another file".to_owned(),
            Destination::Numbered(names) if names.is_numbered() => {
                let name = path.file_name().unwrap_or_default();
                let other = path.with_file_name("out").join(name);
                format!("write to another directory, such as `{}`", other.display())
            }
            _ => {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy();
                let end = path.extension().map_or(String::new(), |end| format!(".{}", end.to_string_lossy()));
                let other = path.with_file_name(format!("{stem}-out{end}"));
                format!("write to another file, such as `{}`", other.display())
            }
        }
    }
}
