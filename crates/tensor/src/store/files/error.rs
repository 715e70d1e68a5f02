//! Errors of reading and writing files of tensors. A failed write keeps the old file and removes the unfinished new
//! file.

use std::io;
use std::path::{Path, PathBuf};

use super::header::HeaderError;
use crate::ops::dtype::DType;
use crate::ops::error::TensorError;
use crate::ops::shape::Shape;

/// An error of a file or folder of tensors.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum FileError {
    #[error("there is no file `{}`", path.display())]
    NotThere { path: PathBuf },
    /// A folder, a pipe or a device.
    #[error("`{}` is not a regular file", path.display())]
    NotAFile { path: PathBuf },
    /// The folder to write to does not exist.
    #[error("the folder of `{}` does not exist; create it first", path.display())]
    NoFolder { path: PathBuf },
    #[error("`{}` needs {needed_bytes} bytes, but the disk is full; the previous file is unchanged", path.display())]
    DiskFull { path: PathBuf, needed_bytes: u64 },
    /// Any other error of the system. `act` is `read`, `written` and so on.
    #[error("`{}` cannot be {act}: {problem}", path.display())]
    System { act: &'static str, path: PathBuf, kind: io::ErrorKind, problem: String },
    #[error("`{}` cannot be read as safetensors: {problem}", path.display())]
    Malformed { path: PathBuf, problem: Box<HeaderError> },
    /// The file was truncated after it was opened.
    #[error(
        "`{}` was truncated from {had} to {has} bytes while it was open, and bytes up to {end} are needed; write it \
         again",
        path.display()
    )]
    Shortened { path: PathBuf, end: u64, had: u64, has: u64 },
    #[error("`{}` has no tensor `{name}`; it has {has} others", path.display())]
    NoSuchTensor { path: PathBuf, name: String, has: usize },
    #[error("`{name}` in `{}` is {kind}, a type that tensors do not have; {way_out}", path.display())]
    ForeignType { path: PathBuf, name: String, kind: String, way_out: &'static str },
    #[error("`{name}` in `{}`: {problem}", path.display())]
    Shape { path: PathBuf, name: String, problem: Box<TensorError> },
    #[error("bytes {start} to {end} of `{name}` in `{}` are out of range; the tensor has {has} bytes", path.display())]
    OutOfRange { path: PathBuf, name: String, start: u64, end: u64, has: u64 },
    /// The values to write do not match the type and shape.
    #[error("`{name}` is {dtype} of {shape}, which needs {wants} bytes, not {has}")]
    WrongSize { name: String, dtype: DType, shape: Shape, wants: u64, has: u64 },
    #[error("`{name}` cannot be the name of a tensor in `{}`: {problem}", path.display())]
    Name { path: PathBuf, name: String, problem: &'static str },
    #[error(
        "the header of `{}` would have {has} bytes, more than the limit of {most}; write several files",
        path.display()
    )]
    HeaderTooLong { path: PathBuf, has: u64, most: u64 },
    /// The tensor alone exceeds the quota of the folder.
    #[error(
        "the file of `{name}` needs {needed_bytes} bytes, and the quota of the folder `{}` is {quota_bytes}; raise the \
         quota",
        path.display()
    )]
    OverQuota { path: PathBuf, name: String, needed_bytes: u64, quota_bytes: u64 },
    /// Files that should be removed to make room cannot be removed.
    #[error(
        "the file of `{name}` needs {needed_bytes} bytes; the folder `{}` has a quota of {quota_bytes}, and \
         {stuck_bytes} bytes in it cannot be removed; check which other programs use the folder",
        path.display()
    )]
    NoRoom { path: PathBuf, name: String, needed_bytes: u64, quota_bytes: u64, stuck_bytes: u64 },
    /// The file that belongs to a name does not hold exactly that tensor.
    #[error(
        "`{}` should hold `{wants}` and no other tensor, but does not ({has} tensors found); remove or replace it",
        path.display()
    )]
    OtherTensor { path: PathBuf, wants: String, has: usize },
    /// Two long names map to the same file.
    #[error("`{wants}` and `{has}` map to the same file `{}`; choose another name, or a shorter one", path.display())]
    SameFile { path: PathBuf, wants: String, has: String },
}

vramp_plan::debug_as_display!(FileError);

impl FileError {
    /// An error of the system in an operation on a file.
    pub(super) fn system(act: &'static str, path: &Path, error: &io::Error) -> FileError {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound => FileError::NotThere { path },
            kind => FileError::System { act, path, kind, problem: error.to_string() },
        }
    }

    /// An error of the system in writing a file.
    pub(super) fn writing(path: &Path, needed_bytes: u64, error: &io::Error) -> FileError {
        let path = path.to_owned();
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => FileError::NoFolder { path },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FileError::DiskFull { path, needed_bytes },
            kind => FileError::System { act: "written", path, kind, problem: error.to_string() },
        }
    }
}
