//! Why a file of tensors cannot be read or written.
//!
//! Owns one case per cause, with the path, the numbers and the way out.
//! Does not log.
//!
//! Always: what could not be written has left what was there before, and no file of its own.

use std::io;
use std::path::{Path, PathBuf};

use super::header::HeaderError;
use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::shape::Shape;

/// Why a file of tensors cannot be read or written.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum FileError {
    /// There is no such file.
    #[error("there is no file `{}`", path.display())]
    NotThere {
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A folder, a pipe or a device.
    #[error("`{}` is not a file that tensors could be in", path.display())]
    NotAFile {
        /// What it is called.
        path: PathBuf,
    },
    /// The folder of a file is missing.
    #[error("the folder of `{}` is not there; make it first", path.display())]
    NoFolder {
        /// What was to be written.
        path: PathBuf,
    },
    /// The disk is full.
    #[error("`{}` needs {needed_bytes} bytes, and the disk is full; what was there before still is", path.display())]
    DiskFull {
        /// What was to be written.
        path: PathBuf,
        /// What it needs.
        needed_bytes: u64,
    },
    /// The system would not.
    #[error("`{}` cannot be {act}: {problem}", path.display())]
    System {
        /// What was to be done: `read`, `written` and so on.
        act: &'static str,
        /// With which file.
        path: PathBuf,
        /// The system's reason.
        kind: io::ErrorKind,
        /// In its words.
        problem: String,
    },
    /// Not a safetensors file, or a broken one.
    #[error("`{}` cannot be read as safetensors: {problem}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        problem: Box<HeaderError>,
    },
    /// It became shorter after it was opened.
    #[error(
        "`{}` had {had} bytes when it was opened and has {has} now, and byte {end} was to be read: somebody cut it \
         short; write it anew",
        path.display()
    )]
    Shortened {
        /// Which file.
        path: PathBuf,
        /// Up to where it was to be read.
        end: u64,
        /// Its bytes when it was opened.
        had: u64,
        /// Its bytes now.
        has: u64,
    },
    /// No tensor of that name.
    #[error("`{}` has no tensor `{name}`; it has {has}", path.display())]
    NoSuchTensor {
        /// Which file.
        path: PathBuf,
        /// What was asked for.
        name: String,
        /// How many there are.
        has: usize,
    },
    /// A type that tensors do not have.
    #[error("`{name}` in `{}` is {kind}, which tensors do not have; {way_out}", path.display())]
    ForeignType {
        /// Which file.
        path: PathBuf,
        /// Which tensor.
        name: String,
        /// As the file says.
        kind: String,
        /// What to do about it.
        way_out: &'static str,
    },
    /// A shape that tensors do not have.
    #[error("`{name}` in `{}`: {problem}", path.display())]
    Shape {
        /// Which file.
        path: PathBuf,
        /// Which tensor.
        name: String,
        /// What is wrong with it.
        problem: Box<TensorError>,
    },
    /// A part of a tensor that it does not have.
    #[error("bytes {start} to {end} of `{name}` in `{}`, which has {has}", path.display())]
    OutOfRange {
        /// Which file.
        path: PathBuf,
        /// Which tensor.
        name: String,
        /// The first.
        start: u64,
        /// Behind the last.
        end: u64,
        /// What there is.
        has: u64,
    },
    /// As many bytes as do not fit the shape.
    #[error("`{name}` is {dtype} of {shape}, which is {wants} bytes, and {has} are given")]
    WrongSize {
        /// Which tensor.
        name: String,
        /// Its type.
        dtype: DType,
        /// Its shape.
        shape: Shape,
        /// What it takes.
        wants: u64,
        /// What there is.
        has: u64,
    },
    /// A name that cannot be written.
    #[error("`{name}` cannot be the name of a tensor in `{}`: {problem}", path.display())]
    Name {
        /// What was to be written.
        path: PathBuf,
        /// The name.
        name: String,
        /// Why not.
        problem: &'static str,
    },
    /// So many tensors that their header is too long.
    #[error("`{}` would have a header of {has} bytes, {most} is the most; write several files", path.display())]
    HeaderTooLong {
        /// What was to be written.
        path: PathBuf,
        /// How long.
        has: u64,
        /// What is allowed.
        most: u64,
    },
    /// Larger than the whole folder may be.
    #[error("`{name}` takes {needed_bytes} bytes as a file, and the folder `{}` may have {quota_bytes}; raise its quota", path.display())]
    OverQuota {
        /// The folder.
        path: PathBuf,
        /// Which tensor.
        name: String,
        /// What its file takes.
        needed_bytes: u64,
        /// What is allowed altogether.
        quota_bytes: u64,
    },
    /// What should have made room cannot be removed.
    #[error(
        "`{name}` takes {needed_bytes} bytes as a file, and the folder `{}` may have {quota_bytes}, of which \
         {stuck_bytes} cannot be removed; see who else uses it",
        path.display()
    )]
    NoRoom {
        /// The folder.
        path: PathBuf,
        /// Which tensor.
        name: String,
        /// What its file takes.
        needed_bytes: u64,
        /// What is allowed altogether.
        quota_bytes: u64,
        /// What stays.
        stuck_bytes: u64,
    },
    /// The file that a name leads to holds something else.
    #[error(
        "`{}` should hold `{wants}` and nothing else, and holds {has} tensors that do not belong there; remove or \
         replace it",
        path.display()
    )]
    OtherTensor {
        /// Which file.
        path: PathBuf,
        /// What should be there.
        wants: String,
        /// How many are there.
        has: usize,
    },
    /// Two long names lead to one file.
    #[error("`{wants}` and `{has}` would both be in `{}`; choose another name, or a shorter one", path.display())]
    SameFile {
        /// Which file.
        path: PathBuf,
        /// What was asked for.
        wants: String,
        /// What is there.
        has: String,
    },
}

vramp_plan::debug_as_display!(FileError);

impl FileError {
    /// What the system said about doing something with a file.
    pub(super) fn system(act: &'static str, path: &Path, error: &io::Error) -> FileError {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => FileError::NotThere { path },
            kind => FileError::System { act, path, kind, problem: error.to_string() },
        }
    }

    /// What the system said about writing a file.
    pub(super) fn writing(path: &Path, needed_bytes: u64, error: &io::Error) -> FileError {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileError::NoFolder { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FileError::DiskFull { path, needed_bytes },
            kind => FileError::System { act: "written", path, kind, problem: error.to_string() },
        }
    }
}
