//! Reading a safetensors file.
//!
//! A [`TensorFile`] has the open file (or the bytes of the file) and the header. The header is checked when the file is
//! opened. An open file keeps no values in memory: callers read as much of a tensor as they have room for.
//!
//! Invariants: a file that opens is complete. If the file is truncated later, reading returns an error with the old and
//! the new size. Types and shapes that tensors do not support are refused only when such a tensor is requested, so the
//! other tensors in the file can be read.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::error::FileError;
use super::header::{Header, HeaderError, TensorSpan};
use super::kinds::way_out;
use super::positioned::read_from;
use crate::ops::dtype::DType;
use crate::ops::shape::Shape;

/// An open file of tensors.
#[derive(Debug)]
pub struct TensorFile {
    path: PathBuf,
    bytes: FileBytes,
    file_bytes: u64,
    header: Header,
}

/// A tensor to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorBytes<'a> {
    pub name: &'a str,
    pub dtype: DType,
    pub shape: Shape,
    /// Little-endian values, without gaps.
    pub bytes: &'a [u8],
}

#[derive(Debug, Clone)]
pub struct FileTensor<'a> {
    pub name: &'a str,
    pub dtype: DType,
    pub shape: Shape,
    file: &'a TensorFile,
    /// Start and end of the tensor's values in the file.
    range: (u64, u64),
}

#[derive(Debug)]
enum FileBytes {
    Opened(File),
    Mapped(Mmap),
    Copied(Vec<u8>),
}

/// The reason why a header cannot be read: an error in accessing the file, or an error in the content of the file.
enum HeaderReadError {
    File(FileError),
    Header(HeaderError),
}

impl From<HeaderError> for HeaderReadError {
    fn from(problem: HeaderError) -> HeaderReadError {
        HeaderReadError::Header(problem)
    }
}

impl TensorFile {
    /// Opens a file and checks its header. Values are read when requested: a file of 512 MB opens in 0.07 ms, and
    /// reading its values takes 1.6 s.
    ///
    /// Replacing the file by renaming, as [`write`](TensorFile::write) does, has no effect on an open file. If the file
    /// is changed in place, reads return the changed values; if the file is truncated, reads return an error.
    pub fn open(path: impl AsRef<Path>) -> Result<TensorFile, FileError> {
        let path = path.as_ref();
        let opened = open_file(path)?;
        let file_bytes = opened.metadata().map_err(|error| FileError::system("read", path, &error))?.len();
        TensorFile::check(path.to_owned(), FileBytes::Opened(opened), file_bytes)
    }

    /// Reads a whole file into memory and checks it.
    pub fn read(path: impl AsRef<Path>) -> Result<TensorFile, FileError> {
        let path = path.as_ref();
        let mut bytes = Vec::new();
        open_file(path)?.read_to_end(&mut bytes).map_err(|error| FileError::system("read", path, &error))?;
        TensorFile::from_bytes(path, bytes)
    }

    /// Checks a file that is already in memory. `name` is used in errors.
    pub fn from_bytes(name: impl Into<PathBuf>, bytes: Vec<u8>) -> Result<TensorFile, FileError> {
        let file_bytes = bytes.len() as u64;
        TensorFile::check(name.into(), FileBytes::Copied(bytes), file_bytes)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The names of all tensors in the file, sorted. Tensors of unsupported types are included.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.header.spans.keys().map(String::as_str)
    }

    /// The `__metadata__` of the header.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.header.metadata
    }

    /// The size of the file when it was opened.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    pub fn tensor(&self, name: &str) -> Result<FileTensor<'_>, FileError> {
        let Some((name, span)) = self.header.spans.get_key_value(name) else {
            let (path, has) = (self.path.clone(), self.header.spans.len());
            return Err(FileError::NoSuchTensor { path, name: name.to_owned(), has });
        };
        self.found(name, span)
    }

    /// All tensors, sorted by name. Tensors of unsupported types are errors.
    pub fn tensors(&self) -> impl Iterator<Item = Result<FileTensor<'_>, FileError>> {
        self.header.spans.iter().map(|(name, span)| self.found(name, span))
    }

    /// Opens a file through a mapping made by `map`.
    pub(super) fn over_mapping(
        path: &Path,
        map: impl FnOnce(&File) -> io::Result<Mmap>,
    ) -> Result<TensorFile, FileError> {
        let opened = open_file(path)?;
        let file_bytes = opened.metadata().map_err(|error| FileError::system("read", path, &error))?.len();
        // Some systems cannot map an empty file. The header check refuses an empty file anyway.
        if file_bytes == 0 {
            return TensorFile::from_bytes(path, Vec::new());
        }
        let mapped = map(&opened).map_err(|error| FileError::system("mapped", path, &error))?;
        let file_bytes = mapped.len() as u64;
        TensorFile::check(path.to_owned(), FileBytes::Mapped(mapped), file_bytes)
    }

    fn found<'a>(&'a self, name: &'a str, span: &TensorSpan) -> Result<FileTensor<'a>, FileError> {
        let (path, owned) = (self.path.clone(), name.to_owned());
        let Some(dtype) = dtype(&span.kind) else {
            let (kind, way_out) = (span.kind.clone(), way_out(&span.kind));
            return Err(FileError::ForeignType { path, name: owned, kind, way_out });
        };
        let lengths: Vec<usize> =
            span.shape.iter().map(|length| usize::try_from(*length).unwrap_or(usize::MAX)).collect();
        let shape = Shape::new(&lengths).map_err(|problem| FileError::Shape {
            path,
            name: owned,
            problem: Box::new(problem),
        })?;
        let start = self.header.values_at;
        Ok(FileTensor { name, dtype, shape, file: self, range: (start + span.start, start + span.end) })
    }

    fn check(path: PathBuf, bytes: FileBytes, file_bytes: u64) -> Result<TensorFile, FileError> {
        let mut file = TensorFile { path, bytes, file_bytes, header: Header::default() };
        let read = Header::read(file_bytes, |start, into| file.read_at(start, into).map_err(HeaderReadError::File));
        file.header = read.map_err(|unread| match unread {
            HeaderReadError::File(error) => error,
            HeaderReadError::Header(problem) => {
                FileError::Malformed { path: file.path.clone(), problem: Box::new(problem) }
            }
        })?;
        Ok(file)
    }

    /// Fills `into` from an offset in the file, completely or with an error.
    fn read_at(&self, start: u64, into: &mut [u8]) -> Result<(), FileError> {
        let FileBytes::Opened(file) = &self.bytes else {
            // In range, because the header was checked against the size.
            let start = start as usize;
            into.copy_from_slice(&self.in_memory().unwrap_or_default()[start..start + into.len()]);
            return Ok(());
        };
        let failed = |error| FileError::system("read", &self.path, &error);
        if read_from(file, start, into).map_err(failed)? == into.len() {
            return Ok(());
        }
        let (path, end, had) = (self.path.clone(), start + into.len() as u64, self.file_bytes);
        Err(FileError::Shortened { path, end, had, has: file.metadata().map_err(failed)?.len() })
    }

    fn in_memory(&self) -> Option<&[u8]> {
        match &self.bytes {
            FileBytes::Opened(_) => None,
            FileBytes::Mapped(mapped) => Some(mapped),
            FileBytes::Copied(copied) => Some(copied),
        }
    }
}

impl<'a> FileTensor<'a> {
    pub fn bytes(&self) -> u64 {
        self.range.1 - self.range.0
    }

    /// The tensor's values, little-endian, without gaps.
    pub fn read(&self) -> Result<Vec<u8>, FileError> {
        let mut values = vec![0; self.bytes() as usize];
        self.read_at(0, &mut values)?;
        Ok(values)
    }

    /// Reads a part of the values, from a byte offset on. If the file was truncated, returns an error with the old and
    /// the new size.
    pub fn read_at(&self, start: u64, into: &mut [u8]) -> Result<(), FileError> {
        let (has, end) = (self.bytes(), start.saturating_add(into.len() as u64));
        if end > has {
            let (path, name) = (self.file.path.clone(), self.name.to_owned());
            return Err(FileError::OutOfRange { path, name, start, end, has });
        }
        self.file.read_at(self.range.0 + start, into)
    }

    /// The tensor's values in place, if the file is mapped or in memory. The values may be unaligned.
    pub fn shown(&self) -> Option<&'a [u8]> {
        Some(&self.file.in_memory()?[self.range.0 as usize..self.range.1 as usize])
    }
}

/// The name of a type in files.
pub(super) fn kind(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "F32",
        DType::F16 => "F16",
        DType::I32 => "I32",
        DType::U32 => "U32",
        DType::U8 => "U8",
        DType::I8 => "I8",
    }
}

fn dtype(name: &str) -> Option<DType> {
    DType::ALL.into_iter().find(|dtype| kind(*dtype) == name)
}

/// Opens regular files only. Opening a pipe would block until the pipe has a writer.
fn open_file(path: &Path) -> Result<File, FileError> {
    let found = fs::metadata(path).map_err(|error| FileError::system("read", path, &error))?;
    if !found.is_file() {
        return Err(FileError::NotAFile { path: path.to_owned() });
    }
    File::open(path).map_err(|error| FileError::system("read", path, &error))
}
