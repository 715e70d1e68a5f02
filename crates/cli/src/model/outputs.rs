//! The outputs of a model as files.
//!
//! Invariants: names and directory are checked before the model runs. Files are written under temporary names, and get
//! their names when all of them are complete. A file that the program reads is never replaced. If nothing is written,
//! directories that were created are removed.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use vramp::files::TemporaryFile;
use vramp::model::Port;
use vramp::model::onnx::OnnxType;
use vramp::tensor::{Tensor, TensorError};

use super::ending::Ending;
use super::npy;
use super::ports::printable;
use crate::failure::CliError;

/// File systems limit names to this many bytes.
const LONGEST_NAME: usize = 255;

/// The checked paths of all outputs, in the order of the outputs.
pub(super) struct OutputFiles {
    paths: Vec<PathBuf>,
    created: CreatedFolders,
}

/// Directories that did not exist, the deepest first. They are removed unless something was written.
struct CreatedFolders(Vec<PathBuf>);

impl CreatedFolders {
    /// Creates a directory with those above it.
    fn create(folder: &Path) -> io::Result<CreatedFolders> {
        let missing = folder.ancestors().take_while(|path| !path.as_os_str().is_empty() && !path.exists());
        let created = CreatedFolders(missing.map(Path::to_owned).collect());
        fs::create_dir_all(folder)?;
        Ok(created)
    }
}

impl Drop for CreatedFolders {
    fn drop(&mut self) {
        for folder in &self.0 {
            // Another program has put files there, so the directories above stay too.
            if fs::remove_dir(folder).is_err() {
                return;
            }
        }
    }
}

impl OutputFiles {
    /// Creates the directory if it does not exist. `read` are the files that the program reads.
    pub(super) fn prepare<'a>(
        folder: &Path,
        outputs: &[Port],
        read: impl Iterator<Item = &'a Path>,
        ending: &Ending,
    ) -> Result<OutputFiles, CliError> {
        let refused = |problem: String| CliError::Wrong(anyhow!("--output {}: {problem}", folder.display()));
        let names = file_names(outputs).map_err(refused)?;
        let impossible = |error: io::Error| refused(format!("{error}; choose another directory"));
        let created = CreatedFolders::create(folder).map_err(impossible)?;
        let folder = folder.canonicalize().map_err(impossible)?;
        let read: Vec<PathBuf> = read.filter_map(|path| path.canonicalize().ok()).collect();
        let paths: Vec<PathBuf> = names.iter().map(|name| folder.join(name)).collect();
        for path in &paths {
            if read.contains(path) {
                return Err(refused(format!(
                    "would overwrite `{}`, which is read; choose another directory",
                    path.display()
                )));
            }
            if path.is_dir() {
                return Err(refused(format!("`{}` is a directory; choose another one", path.display())));
            }
        }
        // Writing fails now rather than after a long run.
        if let Some(path) = paths.first() {
            ending.while_writing(|| TemporaryFile::beside(path).map(drop).map_err(impossible))?;
        }
        Ok(OutputFiles { paths, created })
    }

    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Writes all outputs. `types` are their types in the file's terms.
    pub(super) fn write(
        &mut self,
        outputs: &[Port],
        types: &[OnnxType],
        tensors: &[Tensor],
        ending: &Ending,
    ) -> Result<(), CliError> {
        let failed = |path: &Path, error: io::Error| CliError::Failed(anyhow!("{}: {error}", path.display()));
        ending.while_writing(|| {
            let mut complete = Vec::new();
            for (((path, port), dtype), tensor) in self.paths.iter().zip(outputs).zip(types).zip(tensors) {
                let values = OutputValues::of(tensor, *dtype)
                    .map_err(|error| CliError::Failed(anyhow!("output `{}`: {error}", printable(&port.name))))?;
                let file = TemporaryFile::beside(path).map_err(|error| failed(path, error))?;
                let lengths = tensor.shape().lengths();
                let write = |to: &mut dyn Write| {
                    npy::write(to, values.dtype, lengths, &[])?;
                    values.write(to)
                };
                fill(&file, write, ending).map_err(|error| failed(path, error))?;
                complete.push((path, file));
            }
            // Either all files get their names or none: this takes only a moment.
            if ending.is_requested() {
                return Err(CliError::Interrupted);
            }
            for (path, file) in complete {
                file.persist(path).map_err(|error| failed(path, error.error))?;
            }
            Ok(())
        })?;
        self.created.0.clear();
        Ok(())
    }
}

/// The file name of each output.
fn file_names(outputs: &[Port]) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::with_capacity(outputs.len());
    for Port { name, .. } in outputs {
        let file: String =
            name.chars().map(|c| if std::path::is_separator(c) { '_' } else { c }).chain(".npy".chars()).collect();
        if let Some(same) = names.iter().position(|other| *other == file) {
            let [one, two] = [&outputs[same].name, name].map(|name| printable(name));
            let file = printable(&file);
            return Err(format!(
                "outputs `{one}` and `{two}` would both be written to `{file}`; rename one in the model"
            ));
        }
        if file.len() > LONGEST_NAME || file.contains('\0') {
            let bytes = file.len();
            let problem = if bytes > LONGEST_NAME { "is too long" } else { "cannot be" };
            return Err(format!(
                "the name of output `{}` {problem} for a file ({bytes} bytes of at most {LONGEST_NAME}); rename it in the model",
                printable(name)
            ));
        }
        names.push(file);
    }
    Ok(names)
}

/// The values of an output, with their type in the file.
struct OutputValues {
    dtype: OnnxType,
    values: Values,
}

enum Values {
    Floats(Vec<f32>),
    Halves(Vec<half::f16>),
    Integers(Vec<i32>),
    Unsigned(Vec<u32>),
    Bytes(Vec<u8>),
    Signed(Vec<i8>),
}

impl OutputValues {
    fn of(tensor: &Tensor, dtype: OnnxType) -> Result<OutputValues, TensorError> {
        use vramp::plan::DType;
        let (own, values) = match tensor.dtype() {
            DType::F32 => (OnnxType::F32, Values::Floats(tensor.read()?)),
            DType::F16 => (OnnxType::F16, Values::Halves(tensor.read()?)),
            DType::I32 => (OnnxType::I32, Values::Integers(tensor.read()?)),
            DType::U32 => (OnnxType::U32, Values::Unsigned(tensor.read()?)),
            DType::U8 => (OnnxType::U8, Values::Bytes(tensor.read()?)),
            DType::I8 => (OnnxType::I8, Values::Signed(tensor.read()?)),
        };
        let is_wider = matches!((own, dtype), (OnnxType::I32, OnnxType::I64) | (OnnxType::U8, OnnxType::Bool));
        Ok(OutputValues { dtype: if is_wider { dtype } else { own }, values })
    }

    /// Writes the values little-endian, in parts, so that a request to end is heard between them.
    fn write(&self, to: &mut dyn Write) -> io::Result<()> {
        match &self.values {
            Values::Floats(values) => converted(to, values, f32::to_le_bytes),
            Values::Halves(values) => converted(to, values, half::f16::to_le_bytes),
            Values::Integers(values) if self.dtype == OnnxType::I64 => {
                converted(to, values, |value| i64::from(value).to_le_bytes())
            }
            Values::Integers(values) => converted(to, values, i32::to_le_bytes),
            Values::Unsigned(values) => converted(to, values, u32::to_le_bytes),
            Values::Bytes(values) if self.dtype == OnnxType::Bool => {
                converted(to, values, |value| [u8::from(value != 0)])
            }
            Values::Bytes(values) => converted(to, values, |value| [value]),
            Values::Signed(values) => converted(to, values, i8::to_le_bytes),
        }
    }
}

/// Converts and writes values in parts.
fn converted<T: Copy, const N: usize>(to: &mut dyn Write, values: &[T], each: impl Fn(T) -> [u8; N]) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(PART_BYTES);
    for part in values.chunks(PART_BYTES / N) {
        bytes.clear();
        bytes.extend(part.iter().flat_map(|value| each(*value)));
        to.write_all(&bytes)?;
    }
    Ok(())
}

/// Writes a file, and stops if the program is asked to end.
fn fill(file: &TemporaryFile, write: impl FnOnce(&mut dyn Write) -> io::Result<()>, ending: &Ending) -> io::Result<()> {
    let mut to = BufWriter::new(Stoppable { to: file.file(), ending });
    write(&mut to)?;
    to.flush()?;
    file.file().sync_all()
}

/// A writer that fails once the program is asked to end.
struct Stoppable<'a, W> {
    to: W,
    ending: &'a Ending,
}

/// The most bytes that are written without asking whether the program is to end.
const PART_BYTES: usize = 1 << 20;

impl<W: Write> Write for Stoppable<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.ending.is_requested() {
            // Not the kind `Interrupted`, after which callers try again.
            return Err(io::Error::other("interrupted"));
        }
        self.to.write(&bytes[..bytes.len().min(PART_BYTES)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &[&str]) -> Result<Vec<String>, String> {
        let port = |name: &&str| Port { name: (*name).to_owned(), dtype: OnnxType::F32, dims: Vec::new() };
        file_names(&of.iter().map(port).collect::<Vec<_>>())
    }

    /// A new directory that does not exist yet, in one that does.
    fn new_folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("vramp-outputs-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        folder.join("deep/out")
    }

    #[test]
    fn a_request_to_end_while_outputs_are_converted_or_named_leaves_nothing_behind() {
        let folder = new_folder("ends");
        let ending = Ending::default();
        let port = Port { name: "y".to_owned(), dtype: OnnxType::I64, dims: Vec::new() };
        let ports = [port];
        let mut files =
            OutputFiles::prepare(&folder, &ports, std::iter::empty(), &ending).map_err(|error| error.words()).unwrap();
        let tensor = vramp::tensor::Context::on_host().tensor(&[1_i32, 2], &[2]).unwrap();
        let ended = ending.while_writing(|| {
            ending.request();
            files.write(&ports, &[OnnxType::I64], &[tensor], &ending)
        });
        assert!(matches!(ended, Err(CliError::Interrupted)));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 0);
        drop(files);
        assert!(!folder.parent().unwrap().exists(), "directories that were created are removed");
    }

    #[test]
    fn directories_stay_if_something_was_written_or_they_were_there() {
        let folder = new_folder("stays");
        let above = folder.parent().unwrap().to_owned();
        fs::create_dir_all(&above).unwrap();
        let ending = Ending::default();
        let ports = [Port { name: "y".to_owned(), dtype: OnnxType::F32, dims: Vec::new() }];
        let prepare = || {
            OutputFiles::prepare(&folder, &ports, std::iter::empty(), &ending).map_err(|error| error.words()).unwrap()
        };
        drop(prepare());
        assert!(above.exists() && !folder.exists());
        let mut files = prepare();
        let tensor = vramp::tensor::Context::on_host().tensor(&[1.0_f32], &[1]).unwrap();
        files.write(&ports, &[OnnxType::F32], &[tensor], &ending).map_err(|error| error.words()).unwrap();
        drop(files);
        assert!(folder.join("y.npy").exists());
        fs::remove_dir_all(above.parent().unwrap()).unwrap();
    }

    #[test]
    fn slashes_in_names_become_underscores_and_collisions_are_refused() {
        assert_eq!(names(&["scores", "head/boxes", ".."]).unwrap(), ["scores.npy", "head_boxes.npy", "...npy"]);
        let words = names(&["a/b", "c", "a_b"]).unwrap_err();
        assert!(words.contains("outputs `a/b` and `a_b` would both be written to `a_b.npy`"), "{words}");
        assert!(names(&["x".repeat(252).as_str()]).unwrap_err().contains("is too long for a file (256 bytes"));
    }
}
