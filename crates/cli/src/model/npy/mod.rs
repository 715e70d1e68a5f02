//! Arrays in `NumPy`'s format `.npy`: one array per file, after a header that is a Python dictionary.
//!
//! Versions 1 to 3 of the format are read, and version 1 is written. The header is checked before the values are read,
//! so that a wrong type or shape costs no memory. Values are little-endian, in C order or in Fortran order.
//!
//! Invariants: a file of any bytes is read or refused with an error that says what is wrong. No more memory is requested
//! than the file has bytes.

mod header;
mod order;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use vramp::files::open_regular;
use vramp::model::onnx::OnnxType;

use header::Header;

pub(super) use order::place_of;

const MAGIC: &[u8; 6] = b"\x93NUMPY";
/// `NumPy` itself refuses to read longer headers than 10,000 bytes unless asked.
const MOST_HEADER_BYTES: usize = 1 << 16;

/// Why an array cannot be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum NpyError {
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("not a .npy file; save the array with `numpy.save`")]
    NotNpy,
    #[error("an archive of arrays (.npz); unpack it, and give one of its .npy files")]
    Archive,
    #[error("version {major}.{minor} of the .npy format; expected 1.0, 2.0 or 3.0")]
    Version { major: u8, minor: u8 },
    #[error("the file ends after {has} bytes, inside its header")]
    Truncated { has: u64 },
    #[error("the header has {has} bytes, the limit is {MOST_HEADER_BYTES}")]
    LongHeader { has: usize },
    #[error("the header is malformed at byte {at}: expected {expected}")]
    Header { at: usize, expected: &'static str },
    #[error("values of type `{descr}` are big-endian; save them with `x.astype(x.dtype.newbyteorder('<'))`")]
    BigEndian { descr: String },
    #[error("values of type `{descr}` are not plain numbers; save them as numbers, such as `x.astype('float32')`")]
    Type { descr: String },
    #[error("the shape {lengths:?} has more values than a computer can count")]
    TooManyValues { lengths: Vec<usize> },
    #[error("{lengths:?} of {dtype} takes {needs} bytes after the header, but the file has {has} there")]
    Length { lengths: Vec<usize>, dtype: String, needs: u64, has: u64 },
    #[error("no memory for {bytes} bytes of values")]
    OutOfMemory { bytes: usize },
}

/// An open file with an array. The values have not been read yet.
#[derive(Debug)]
pub(super) struct NpyFile {
    file: File,
    header: Header,
    value_bytes: usize,
}

impl NpyFile {
    /// Opens a file and reads its header.
    pub(super) fn open(path: &Path) -> Result<NpyFile, NpyError> {
        let mut file = open_regular(path)?;
        let bytes = file.metadata()?.len();
        let (header, header_bytes) = Header::read(&mut file, bytes)?;
        let has = bytes.saturating_sub(header_bytes);
        let Header { dtype, lengths, .. } = &header;
        let each = dtype.bytes().expect("every type of an array has a size");
        let count =
            if lengths.contains(&0) { Some(0) } else { lengths.iter().try_fold(each, |a, b| a.checked_mul(*b)) };
        let Some(needs) = count else { return Err(NpyError::TooManyValues { lengths: lengths.clone() }) };
        if needs as u64 != has {
            let (lengths, dtype) = (lengths.clone(), dtype.name().into_owned());
            return Err(NpyError::Length { lengths, dtype, needs: needs as u64, has });
        }
        Ok(NpyFile { file, header, value_bytes: needs })
    }

    pub(super) fn dtype(&self) -> OnnxType {
        self.header.dtype
    }

    pub(super) fn lengths(&self) -> &[usize] {
        &self.header.lengths
    }

    /// The values, little-endian and in C order: the last axis is contiguous.
    pub(super) fn values(mut self) -> Result<Vec<u8>, NpyError> {
        let mut values = Vec::new();
        let bytes = self.value_bytes;
        values.try_reserve_exact(bytes).map_err(|_| NpyError::OutOfMemory { bytes })?;
        values.resize(bytes, 0);
        self.file.read_exact(&mut values)?;
        if !self.header.is_fortran {
            return Ok(values);
        }
        let size = self.header.dtype.bytes().unwrap_or(1);
        order::from_fortran(&values, &self.header.lengths, size).ok_or(NpyError::OutOfMemory { bytes })
    }
}

/// Writes an array in C order. `values` are its values, little-endian.
pub(super) fn write(to: &mut dyn Write, dtype: OnnxType, lengths: &[usize], values: &[u8]) -> io::Result<()> {
    to.write_all(&header::written(dtype, lengths))?;
    to.write_all(values)
}

#[cfg(test)]
mod tests;
