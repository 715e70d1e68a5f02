//! Writing of safetensors files, whole or not at all.
//!
//! Owns the order of tensors in a file, the checks before the first byte, and the streaming of values.
//! Does not collect values: each tensor is asked for when its turn has come, and written from where it lies.
//!
//! Always: under the name that is written to there is either what was there before or the whole new file; values start
//! at a multiple of their size.

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
    /// Its name.
    pub name: &'a str,
    /// Its type.
    pub dtype: DType,
    /// Its shape.
    pub shape: Shape,
}

impl TensorFile {
    /// Writes tensors into a file, in place of what was there. Returns its bytes.
    pub fn write(path: impl AsRef<Path>, tensors: &[TensorBytes<'_>]) -> Result<u64, FileError> {
        let headings: Vec<Heading<'_>> = tensors.iter().map(heading).collect();
        TensorFile::write_each(path, &headings, |at| Ok(Cow::Borrowed(tensors[at].bytes)))
    }

    /// Writes tensors into a file whose values are fetched one tensor after another, such as from a device: no more than
    /// one of them has to be in memory. `fetch` is told which of the headings is next; they are not asked for in order.
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

/// What a file will look like.
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
        // Wide values first: then all start at multiples of their size, since the header does at one of 8.
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
                return refused("files keep that one for themselves");
            }
            let shape = heading.shape.lengths().iter().map(|length| *length as u64).collect();
            let end = start + heading.bytes();
            let span = TensorSpan { kind: kind(heading.dtype).to_owned(), shape, start, end };
            if header.spans.insert(heading.name.to_owned(), span).is_some() {
                return refused("it is there twice");
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

    /// Writes all of it beside its target, under a name that starts like this.
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
        // Small tensors are gathered; larger ones than its buffer pass it by without a copy. A tensor of 512 MB raises
        // the peak of memory by 0.1 MB.
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
    fn a_full_disk_is_said_with_what_was_needed() {
        use super::*;

        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let headings = [Heading { name: "a", dtype: DType::U8, shape: Shape::new(&[3000]).unwrap() }];
        let path = Path::new("folder/a.safetensors");
        let plan = WritePlan::new(path, &headings, BTreeMap::new()).unwrap();
        let failed = plan.stream(path, &headings, |_| Ok::<_, FileError>(Cow::Owned(vec![0; 3000])), full).unwrap_err();
        assert_eq!(
            failed.to_string(),
            "`folder/a.safetensors` needs 3072 bytes, and the disk is full; what was there before still is"
        );
    }
}
