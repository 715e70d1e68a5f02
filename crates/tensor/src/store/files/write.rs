//! Writing safetensors files, completely or not at all.
//!
//! Names and header are checked before the first byte is written. Tensors are written one after another: the values of
//! a tensor are fetched, checked against the shape, and written without another copy.
//!
//! Invariants: the target name refers either to the old file or to the complete new one. The values of a tensor start
//! at a multiple of the size of one value.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use vramp_files::TemporaryFile;

use super::error::FileError;
use super::file::{TensorBytes, TensorFile, kind};
use super::header::{Header, LENGTH_BYTES, MAX_HEADER_BYTES, METADATA, TensorSpan};
use super::temporary::{OF_OTHERS, settle, sync_folder_of};
use crate::ops::dtype::DType;
use crate::ops::shape::Shape;

/// A tensor without its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heading<'a> {
    pub name: &'a str,
    pub dtype: DType,
    pub shape: Shape,
}

impl TensorFile {
    /// Writes tensors to a file. Replaces the file if it exists. Returns the size of the file.
    pub fn write(path: impl AsRef<Path>, tensors: &[TensorBytes<'_>]) -> Result<u64, FileError> {
        let headings: Vec<Heading<'_>> = tensors.iter().map(heading).collect();
        TensorFile::write_each(path, &headings, |at| Ok(Cow::Borrowed(tensors[at].bytes)))
    }

    /// Writes tensors whose values are fetched one after another, for example from a device, so that the values of only
    /// one tensor must be in memory at a time. `fetch` gets an index into `headings`; the indices are not always
    /// in ascending order.
    pub fn write_each<'a, E: From<FileError>>(
        path: impl AsRef<Path>,
        headings: &[Heading<'_>],
        fetch: impl FnMut(usize) -> Result<Cow<'a, [u8]>, E>,
    ) -> Result<u64, E> {
        let path = path.as_ref();
        let plan = WritePlan::new(path, headings, BTreeMap::new())?;
        let temporary = plan.fill(path, OF_OTHERS, headings, fetch)?;
        let settled =
            settle(&temporary, None).and_then(|()| Ok(temporary.persist(path)?)).and_then(|_| sync_folder_of(path));
        settled.map_err(|error| FileError::writing(path, plan.file_bytes, &error))?;
        Ok(plan.file_bytes)
    }
}

/// The layout of a file to be written.
pub(super) struct WritePlan {
    pub(super) file_bytes: u64,
    header: Vec<u8>,
    order: Vec<usize>,
}

impl WritePlan {
    pub(super) fn new(
        path: &Path,
        headings: &[Heading<'_>],
        metadata: BTreeMap<String, String>,
    ) -> Result<WritePlan, FileError> {
        let mut order: Vec<usize> = (0..headings.len()).collect();
        // Wide types first. The values start at a multiple of 8, so each tensor then starts at a multiple of the size
        // of its values.
        order.sort_by_key(|at| (usize::MAX - headings[*at].dtype.bytes(), headings[*at].name));
        let mut header = Header { metadata, ..Header::default() };
        let mut start = 0;
        for at in &order {
            let heading = &headings[*at];
            let refused = |problem| {
                let (path, name) = (path.to_owned(), heading.name.to_owned());
                Err(FileError::Name { path, name, problem })
            };
            if heading.name == METADATA {
                return refused("that name is reserved");
            }
            let shape = heading.shape.lengths().iter().map(|length| *length as u64).collect();
            let end = start + heading.bytes();
            let span = TensorSpan { kind: kind(heading.dtype).to_owned(), shape, start, end };
            if header.spans.insert(heading.name.to_owned(), span).is_some() {
                return refused("it occurs twice");
            }
            start = end;
        }
        let header = header.to_bytes();
        let has = (header.len() - LENGTH_BYTES) as u64;
        if has > MAX_HEADER_BYTES {
            return Err(FileError::HeaderTooLong { path: path.to_owned(), has, most: MAX_HEADER_BYTES });
        }
        Ok(WritePlan { file_bytes: header.len() as u64 + start, header, order })
    }

    /// Writes the whole file next to its target, under a name with this prefix.
    pub(super) fn fill<'a, E: From<FileError>>(
        &self,
        path: &Path,
        prefix: &str,
        headings: &[Heading<'_>],
        fetch: impl FnMut(usize) -> Result<Cow<'a, [u8]>, E>,
    ) -> Result<TemporaryFile, E> {
        let failed = |error: &io::Error| FileError::writing(path, self.file_bytes, error);
        let temporary = TemporaryFile::with_prefix(path, prefix).map_err(|error| failed(&error))?;
        self.stream(path, headings, fetch, temporary.file())?;
        Ok(temporary)
    }

    fn stream<'a, E: From<FileError>>(
        &self,
        path: &Path,
        headings: &[Heading<'_>],
        mut fetch: impl FnMut(usize) -> Result<Cow<'a, [u8]>, E>,
        into: impl Write,
    ) -> Result<(), E> {
        let failed = |error: io::Error| FileError::writing(path, self.file_bytes, &error);
        // Small tensors are gathered in the buffer; tensors larger than the buffer are written directly, without a
        // copy. Writing a tensor of 512 MB raises peak memory by 0.1 MB.
        let mut into = BufWriter::new(into);
        into.write_all(&self.header).map_err(failed)?;
        for at in &self.order {
            let (bytes, heading) = (fetch(*at)?, &headings[*at]);
            let (wants, has) = (heading.bytes(), bytes.len() as u64);
            if wants != has {
                let (name, dtype, shape) = (heading.name.to_owned(), heading.dtype, heading.shape.clone());
                return Err(FileError::WrongSize { name, dtype, shape, wants, has }.into());
            }
            into.write_all(&bytes).map_err(failed)?;
        }
        Ok(into.flush().map_err(failed)?)
    }
}

impl Heading<'_> {
    fn bytes(&self) -> u64 {
        self.shape.count() as u64 * self.dtype.bytes() as u64
    }
}

pub(super) fn heading<'a>(stored: &TensorBytes<'a>) -> Heading<'a> {
    Heading { name: stored.name, dtype: stored.dtype, shape: stored.shape.clone() }
}

#[cfg(test)]
mod tests {
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_reported_with_the_bytes_needed() {
        use super::*;

        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let headings = [Heading { name: "a", dtype: DType::U8, shape: Shape::new(&[3000]).unwrap() }];
        let path = Path::new("folder/a.safetensors");
        let plan = WritePlan::new(path, &headings, BTreeMap::new()).unwrap();
        let failed = plan.stream(path, &headings, |_| Ok::<_, FileError>(Cow::Owned(vec![0; 3000])), full).unwrap_err();
        assert_eq!(
            failed.to_string(),
            "`folder/a.safetensors` needs 3072 bytes, but the disk is full; the previous file is unchanged"
        );
    }
}
