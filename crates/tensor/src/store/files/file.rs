//! One safetensors file, to be read.
//!
//! Owns the open file (or its bytes) and the header that was checked when it was opened.
//! Does not keep values: who asks for a tensor is told where it lies, and reads as much of it as he has room for.
//!
//! Always: a file that opens is whole, and one that is cut short afterwards is an error with the numbers. Types and shapes
//! that tensors do not have are refused when such a tensor is asked for, and not before: the others in the file are none
//! the worse for it.

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

/// A file of tensors.
#[derive(Debug)]
pub struct TensorFile {
    path: PathBuf,
    bytes: FileBytes,
    file_bytes: u64,
    header: Header,
}

/// A tensor on its way into a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorBytes<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub dtype: DType,
    /// Its shape.
    pub shape: Shape,
    /// Its values, little-endian, without gaps.
    pub bytes: &'a [u8],
}

/// A tensor in a file.
#[derive(Debug, Clone)]
pub struct FileTensor<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub dtype: DType,
    /// Its shape.
    pub shape: Shape,
    file: &'a TensorFile,
    /// Its first and behind its last byte in the file.
    range: (u64, u64),
}

#[derive(Debug)]
enum FileBytes {
    Opened(File),
    Mapped(Mmap),
    Copied(Vec<u8>),
}

/// Why a header could not be read: the file, or what is in it.
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
    /// Opens a file and checks it. Values are read from the disk when they are asked for: a file of 512 MB opens in 0.07 ms,
    /// where reading it takes 1.6 s.
    ///
    /// Whoever replaces the file by renaming, as [`write`](TensorFile::write) does, changes nothing for this one. One that
    /// is changed in place meanwhile has whatever values are there when they are read, and one that is cut short is an
    /// error then.
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

    /// Checks a file that is in memory already. Errors call it by this name.
    pub fn from_bytes(name: impl Into<PathBuf>, bytes: Vec<u8>) -> Result<TensorFile, FileError> {
        let file_bytes = bytes.len() as u64;
        TensorFile::check(name.into(), FileBytes::Copied(bytes), file_bytes)
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names of its tensors, in order; those of foreign types too.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.header.spans.keys().map(String::as_str)
    }

    /// What else its header says.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.header.metadata
    }

    /// Bytes of the whole file, when it was opened.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// A tensor.
    pub fn tensor(&self, name: &str) -> Result<FileTensor<'_>, FileError> {
        let Some((name, span)) = self.header.spans.get_key_value(name) else {
            let (path, has) = (self.path.clone(), self.header.spans.len());
            return Err(FileError::NoSuchTensor { path, name: name.to_owned(), has });
        };
        self.found(name, span)
    }

    /// All tensors, in the order of their names; a foreign one as the reason why it is.
    pub fn tensors(&self) -> impl Iterator<Item = Result<FileTensor<'_>, FileError>> {
        self.header.spans.iter().map(|(name, span)| self.found(name, span))
    }

    /// A file over memory that a system makes of it.
    pub(super) fn over_mapping(
        path: &Path,
        map: impl FnOnce(&File) -> io::Result<Mmap>,
    ) -> Result<TensorFile, FileError> {
        let opened = open_file(path)?;
        let file_bytes = opened.metadata().map_err(|error| FileError::system("read", path, &error))?.len();
        // Nothing cannot be mapped everywhere, and is refused by the header anyway.
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

    /// Reads from a byte of the file on, all of it or an error.
    fn read_at(&self, start: u64, into: &mut [u8]) -> Result<(), FileError> {
        let FileBytes::Opened(file) = &self.bytes else {
            // Nothing is asked for that the header does not place inside.
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
    /// Bytes of its values.
    pub fn bytes(&self) -> u64 {
        self.range.1 - self.range.0
    }

    /// Its values, little-endian, without gaps.
    pub fn read(&self) -> Result<Vec<u8>, FileError> {
        let mut values = vec![0; self.bytes() as usize];
        self.read_at(0, &mut values)?;
        Ok(values)
    }

    /// A part of its values, from this byte of them on. Fails where the file is shorter by now, with the numbers.
    pub fn read_at(&self, start: u64, into: &mut [u8]) -> Result<(), FileError> {
        let (has, end) = (self.bytes(), start.saturating_add(into.len() as u64));
        if end > has {
            let (path, name) = (self.file.path.clone(), self.name.to_owned());
            return Err(FileError::OutOfRange { path, name, start, end, has });
        }
        self.file.read_at(self.range.0 + start, into)
    }

    /// Its values where they lie, of a file that is mapped or in memory. They may start at any address.
    pub fn shown(&self) -> Option<&'a [u8]> {
        Some(&self.file.in_memory()?[self.range.0 as usize..self.range.1 as usize])
    }
}

/// What a file calls a type.
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

/// Opens a file, and nothing else: to open a pipe would wait for whoever writes into it.
fn open_file(path: &Path) -> Result<File, FileError> {
    let found = fs::metadata(path).map_err(|error| FileError::system("read", path, &error))?;
    if !found.is_file() {
        return Err(FileError::NotAFile { path: path.to_owned() });
    }
    File::open(path).map_err(|error| FileError::system("read", path, &error))
}
