//! One safetensors file, to be read.
//!
//! Owns the bytes (mapped, or a copy of them) and the header that was checked when it was opened.
//! Does not copy values: who asks for a tensor is shown the place where it lies.
//!
//! Always: a file that opens is whole. Types and shapes that tensors do not have are refused when such a tensor is asked
//! for, and not before: the others in the file are none the worse for it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::error::FileError;
use super::header::{Header, Span};
use super::kinds::way_out;
use super::mapping::map;
use crate::dtype::DType;
use crate::shape::Shape;

/// A file of tensors.
#[derive(Debug)]
pub struct TensorFile {
    path: PathBuf,
    bytes: Bytes,
    header: Header,
}

/// A tensor in a file, or on its way into one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub dtype: DType,
    /// Its shape.
    pub shape: Shape,
    /// Its values, little-endian, without gaps. Of a file that others wrote they may start at any address.
    pub bytes: &'a [u8],
}

#[derive(Debug)]
enum Bytes {
    Mapped(Mmap),
    Copied(Vec<u8>),
}

impl TensorFile {
    /// Maps a file and checks it. Values are read from the disk when they are looked at: a file of 512 MB opens in 0.07 ms,
    /// where reading it takes 1.6 s.
    ///
    /// Nobody may change the file in place as long as it is open here; replacing it by renaming is fine, as
    /// [`write`](TensorFile::write) does. A file that may be changed or cut short is [`read`](TensorFile::read) instead.
    pub fn open(path: impl AsRef<Path>) -> Result<TensorFile, FileError> {
        let path = path.as_ref();
        let opened = open_file(path)?;
        let length = opened.metadata().map_err(|error| FileError::system("read", path, &error))?.len();
        // Nothing cannot be mapped everywhere, and is refused by the header anyway.
        let bytes = if length == 0 {
            Bytes::Copied(Vec::new())
        } else {
            Bytes::Mapped(map(&opened).map_err(|error| FileError::system("mapped", path, &error))?)
        };
        TensorFile::check(path.to_owned(), bytes)
    }

    /// Reads a whole file into memory and checks it.
    pub fn read(path: impl AsRef<Path>) -> Result<TensorFile, FileError> {
        let path = path.as_ref();
        let mut bytes = Vec::new();
        open_file(path)?.read_to_end(&mut bytes).map_err(|error| FileError::system("read", path, &error))?;
        TensorFile::check(path.to_owned(), Bytes::Copied(bytes))
    }

    /// Checks a file that is in memory already. Errors call it by this name.
    pub fn from_bytes(name: impl Into<PathBuf>, bytes: Vec<u8>) -> Result<TensorFile, FileError> {
        TensorFile::check(name.into(), Bytes::Copied(bytes))
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

    /// Bytes of the whole file.
    pub fn file_bytes(&self) -> u64 {
        self.bytes.get().len() as u64
    }

    /// A tensor.
    pub fn tensor(&self, name: &str) -> Result<Stored<'_>, FileError> {
        let Some((name, span)) = self.header.spans.get_key_value(name) else {
            let (path, has) = (self.path.clone(), self.header.spans.len());
            return Err(FileError::NoSuchTensor { path, name: name.to_owned(), has });
        };
        self.shown(name, span)
    }

    /// All tensors, in the order of their names; a foreign one as the reason why it is.
    pub fn tensors(&self) -> impl Iterator<Item = Result<Stored<'_>, FileError>> {
        self.header.spans.iter().map(|(name, span)| self.shown(name, span))
    }

    fn shown<'a>(&'a self, name: &'a str, span: &Span) -> Result<Stored<'a>, FileError> {
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
        let values = &self.bytes.get()[self.header.values_at..];
        Ok(Stored { name, dtype, shape, bytes: &values[span.start as usize..span.end as usize] })
    }

    fn check(path: PathBuf, bytes: Bytes) -> Result<TensorFile, FileError> {
        match Header::read(bytes.get()) {
            Ok(header) => Ok(TensorFile { path, bytes, header }),
            Err(problem) => Err(FileError::Malformed { path, problem: Box::new(problem) }),
        }
    }
}

impl Bytes {
    fn get(&self) -> &[u8] {
        match self {
            Bytes::Mapped(mapped) => mapped,
            Bytes::Copied(copied) => copied,
        }
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
