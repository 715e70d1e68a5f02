//! The outputs of a model as files.
//!
//! Invariants: names and directory are checked before the model runs. Files are written under temporary names, and get
//! their names when all of them are complete. A file that the program reads is never replaced.

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
        fs::create_dir_all(folder).map_err(impossible)?;
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
        Ok(OutputFiles { paths })
    }

    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    pub(super) fn write(&self, outputs: &[Port], tensors: &[Tensor], ending: &Ending) -> Result<(), CliError> {
        let failed = |path: &Path, error: io::Error| CliError::Failed(anyhow!("{}: {error}", path.display()));
        ending.while_writing(|| {
            let mut complete = Vec::new();
            for ((path, port), tensor) in self.paths.iter().zip(outputs).zip(tensors) {
                let values = values(tensor, port.dtype)
                    .map_err(|error| CliError::Failed(anyhow!("output `{}`: {error}", printable(&port.name))))?;
                let file = TemporaryFile::beside(path).map_err(|error| failed(path, error))?;
                let lengths = tensor.shape().lengths();
                fill(&file, |to| npy::write(to, values.dtype, lengths, &values.bytes), ending)
                    .map_err(|error| failed(path, error))?;
                complete.push((path, file));
            }
            for (path, file) in complete {
                file.persist(path).map_err(|error| failed(path, error.error))?;
            }
            Ok(())
        })
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

/// The values of an output, little-endian, with their type in the file.
struct OutputValues {
    dtype: OnnxType,
    bytes: Vec<u8>,
}

fn values(tensor: &Tensor, declared: OnnxType) -> Result<OutputValues, TensorError> {
    use vramp::plan::DType;
    fn bytes<T: Copy, const N: usize>(values: &[T], each: impl Fn(T) -> [u8; N]) -> Vec<u8> {
        values.iter().flat_map(|value| each(*value)).collect()
    }
    Ok(match (tensor.dtype(), declared) {
        (DType::F32, _) => {
            OutputValues { dtype: OnnxType::F32, bytes: bytes(&tensor.read::<f32>()?, f32::to_le_bytes) }
        }
        (DType::F16, _) => {
            OutputValues { dtype: OnnxType::F16, bytes: bytes(&tensor.read::<half::f16>()?, half::f16::to_le_bytes) }
        }
        (DType::I32, OnnxType::I64) => {
            let bytes = bytes(&tensor.read::<i32>()?, |value| i64::from(value).to_le_bytes());
            OutputValues { dtype: OnnxType::I64, bytes }
        }
        (DType::I32, _) => {
            OutputValues { dtype: OnnxType::I32, bytes: bytes(&tensor.read::<i32>()?, i32::to_le_bytes) }
        }
        (DType::U32, _) => {
            OutputValues { dtype: OnnxType::U32, bytes: bytes(&tensor.read::<u32>()?, u32::to_le_bytes) }
        }
        (DType::U8, OnnxType::Bool) => {
            OutputValues { dtype: OnnxType::Bool, bytes: bytes(&tensor.read::<u8>()?, |value| [u8::from(value != 0)]) }
        }
        (DType::U8, _) => OutputValues { dtype: OnnxType::U8, bytes: tensor.read()? },
        (DType::I8, _) => OutputValues { dtype: OnnxType::I8, bytes: bytes(&tensor.read::<i8>()?, i8::to_le_bytes) },
    })
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

    #[test]
    fn slashes_in_names_become_underscores_and_collisions_are_refused() {
        assert_eq!(names(&["scores", "head/boxes", ".."]).unwrap(), ["scores.npy", "head_boxes.npy", "...npy"]);
        let words = names(&["a/b", "c", "a_b"]).unwrap_err();
        assert!(words.contains("outputs `a/b` and `a_b` would both be written to `a_b.npy`"), "{words}");
        assert!(names(&["x".repeat(252).as_str()]).unwrap_err().contains("is too long for a file (256 bytes"));
    }
}
