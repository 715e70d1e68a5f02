//! The buffer protocol: memory of frames and tensors as arrays, and arrays as bytes, without numpy.
//!
//! Invariant: exported memory stays in place as long as the exporting Python object lives, and every view holds that
//! object.

#![expect(unsafe_code, reason = "views of memory are pointers, which the C API defines")]

use std::ffi::{CStr, c_int, c_void};
use std::ptr;

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use smallvec::SmallVec;
use vramp::plan::{DType, Format};
use vramp::runtime::{FrameContent, Meta};

/// The shape of exported memory, and where each value is.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    shape: SmallVec<[isize; 4]>,
    strides: SmallVec<[isize; 4]>,
    item: &'static CStr,
    item_bytes: isize,
    /// Offset of the first value.
    start: usize,
    contiguous: bool,
}

impl Layout {
    /// Values of one type without gaps.
    pub(crate) fn dense(dtype: DType, lengths: impl IntoIterator<Item = usize>) -> Layout {
        let shape: SmallVec<[isize; 4]> = lengths.into_iter().map(|length| length as isize).collect();
        let item_bytes = dtype.bytes() as isize;
        let mut strides: SmallVec<[isize; 4]> = shape.iter().map(|_| item_bytes).collect();
        for at in (1..shape.len()).rev() {
            strides[at - 1] = strides[at] * shape[at].max(1);
        }
        Layout { shape, strides, item: item_of(dtype), item_bytes, start: 0, contiguous: true }
    }

    /// The same from this byte of the memory on.
    pub(crate) fn starting_at(self, start: usize) -> Layout {
        Layout { start, ..self }
    }

    /// Rows of bytes that are `stride` bytes apart; with `channels` bytes to a pixel, if there is more than one.
    pub(crate) fn rows(rows: u64, row_bytes: u64, stride: u64, channels: u64) -> Layout {
        let mut layout = Layout {
            shape: SmallVec::from_slice(&[rows as isize, (row_bytes / channels) as isize]),
            strides: SmallVec::from_slice(&[stride as isize, channels as isize]),
            item: c"B",
            item_bytes: 1,
            start: 0,
            contiguous: row_bytes == stride || rows <= 1,
        };
        if channels > 1 {
            layout.shape.push(channels as isize);
            layout.strides.push(1);
        }
        layout
    }

    /// The layout of a frame: pictures with one plane as rows, everything else without gaps.
    pub(crate) fn of(meta: &Meta) -> Layout {
        match &meta.content {
            FrameContent::Video(picture) => {
                let channels = match picture.format {
                    Format::Rgba8 => 4,
                    Format::Rgb8 => 3,
                    Format::Gray8 => 1,
                    _ => return Layout::dense(DType::U8, [meta.bytes() as usize]),
                };
                let plane = picture.format.planes(picture.size).next().expect("every format has a plane");
                Layout::rows(plane.rows, plane.row_bytes, plane.stride, channels)
            }
            FrameContent::Tensor(shape) => Layout::dense(shape.dtype(), shape.dims().iter().map(|dim| *dim as usize)),
            FrameContent::Data { bytes } => Layout::dense(DType::F32, [*bytes as usize / 4]),
        }
    }

    pub(crate) fn shape(&self) -> &[isize] {
        &self.shape
    }

    /// The bytes of the values, without gaps.
    pub(crate) fn dense_bytes(&self) -> usize {
        self.shape.iter().product::<isize>() as usize * self.item_bytes as usize
    }

    /// Bytes of a row without its padding, and bytes from one row to the next; `None` if there are no gaps.
    pub(crate) fn gaps(&self) -> Option<(usize, usize)> {
        let row = self.shape.get(1..)?.iter().product::<isize>() * self.item_bytes;
        (!self.contiguous).then_some((row as usize, self.strides[0] as usize))
    }
}

/// The code of the `struct` module.
fn item_of(dtype: DType) -> &'static CStr {
    match dtype {
        DType::F32 => c"f",
        DType::F16 => c"e",
        DType::I32 => c"i",
        DType::U32 => c"I",
        DType::U8 => c"B",
        DType::I8 => c"b",
    }
}

/// Fills a view of memory that `owner` keeps.
///
/// # Safety
///
/// `view` comes from `__getbuffer__` of `owner`. `owner` keeps `layout` and the memory at `first` in place as long as it
/// lives, and nothing writes to the memory while it lives, or only through this view.
pub(crate) unsafe fn export(
    view: *mut ffi::Py_buffer,
    flags: c_int,
    owner: Bound<'_, PyAny>,
    first: *const u8,
    layout: &Layout,
    writable: bool,
) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("there is no view to fill"));
    }
    // SAFETY: the interpreter passes a view that it owns. A view without an object counts as not filled.
    unsafe { (*view).obj = ptr::null_mut() };
    if !writable && flags & ffi::PyBUF_WRITABLE == ffi::PyBUF_WRITABLE {
        return Err(PyBufferError::new_err("the frame is read-only; take it (`tick.take()`), or copy it"));
    }
    let wants = |flag: c_int| flags & flag == flag;
    if !layout.contiguous && !wants(ffi::PyBUF_STRIDES) {
        return Err(PyBufferError::new_err("rows of the frame are padded; use an array, which knows strides"));
    }
    // SAFETY: shape, strides and the code of the item are only read through the view, and live as long as the owner.
    unsafe {
        (*view).buf = first.add(layout.start).cast_mut().cast::<c_void>();
        (*view).len = layout.dense_bytes() as ffi::Py_ssize_t;
        (*view).readonly = c_int::from(!writable);
        (*view).itemsize = layout.item_bytes;
        (*view).format = if wants(ffi::PyBUF_FORMAT) { layout.item.as_ptr().cast_mut() } else { ptr::null_mut() };
        (*view).ndim = layout.shape.len() as c_int;
        (*view).shape = if wants(ffi::PyBUF_ND) { layout.shape.as_ptr().cast_mut() } else { ptr::null_mut() };
        (*view).strides = if wants(ffi::PyBUF_STRIDES) { layout.strides.as_ptr().cast_mut() } else { ptr::null_mut() };
        (*view).suboffsets = ptr::null_mut();
        (*view).internal = ptr::null_mut();
        (*view).obj = owner.into_ptr();
    }
    Ok(())
}

/// Values that Python lends: an array, or any other object with the buffer protocol.
pub(crate) struct Given {
    buffer: PyUntypedBuffer,
}

// SAFETY: a lent buffer stays in place until it is released, which needs the interpreter and is done by `PyBuffer`.
// Reading it elsewhere only reads memory.
unsafe impl Send for Given {}
// SAFETY: as above.
unsafe impl Sync for Given {}

impl Given {
    /// Fails with a type error that says what was expected.
    pub(crate) fn of(object: &Bound<'_, PyAny>, expected: &str) -> PyResult<Given> {
        let buffer = PyUntypedBuffer::get(object).map_err(|error| {
            if error.is_instance_of::<PyBufferError>(object.py()) {
                return error;
            }
            let kind = object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string());
            PyTypeError::new_err(format!("expected {expected}, got {kind}"))
        })?;
        Ok(Given { buffer })
    }

    pub(crate) fn shape(&self) -> &[usize] {
        self.buffer.shape()
    }

    /// The code of the `struct` module without its byte order; `None` for types in another byte order than this
    /// machine's.
    pub(crate) fn item(&self) -> Option<&str> {
        let text = self.buffer.format().to_str().ok()?;
        match text.as_bytes().first()? {
            b'@' | b'=' => Some(&text[1..]),
            b'<' if cfg!(target_endian = "little") => Some(&text[1..]),
            b'>' | b'!' if cfg!(target_endian = "big") => Some(&text[1..]),
            b'<' | b'>' | b'!' => None,
            _ => Some(text),
        }
    }

    pub(crate) fn item_bytes(&self) -> usize {
        self.buffer.item_size()
    }

    pub(crate) fn count(&self) -> usize {
        self.buffer.item_count()
    }

    pub(crate) fn is_dense(&self) -> bool {
        self.buffer.is_c_contiguous()
    }

    /// Copies the values in C order into rows of `row` bytes that are `stride` bytes apart.
    ///
    /// # Panics
    ///
    /// If `into` has not exactly the room for the values.
    pub(crate) fn copy_rows(&self, into: &mut [u8], row: usize, stride: usize) {
        let row = row.max(1);
        assert_eq!(self.buffer.len_bytes() % row, 0, "values fill whole rows");
        let rows = self.buffer.len_bytes() / row;
        assert!(rows == 0 || into.len() >= (rows - 1) * stride + row, "there is room for all rows");
        if self.is_dense() {
            let from = self.buffer.buf_ptr().cast::<u8>().cast_const();
            if row == stride {
                // SAFETY: a dense buffer has `len_bytes` readable bytes, and `into` has room for them, as checked above.
                unsafe { ptr::copy_nonoverlapping(from, into.as_mut_ptr(), rows * row) };
                return;
            }
            for at in 0..rows {
                // SAFETY: as above, row by row.
                unsafe { ptr::copy_nonoverlapping(from.add(at * row), into.as_mut_ptr().add(at * stride), row) };
            }
            return;
        }
        self.copy_strided(into, row, stride);
    }

    fn copy_strided(&self, into: &mut [u8], row: usize, stride: usize) {
        let (shape, strides, item) = (self.buffer.shape(), self.buffer.strides(), self.item_bytes());
        let suboffsets = self.buffer.suboffsets().is_some();
        let mut index: SmallVec<[usize; 8]> = shape.iter().map(|_| 0).collect();
        // The values of the last axis that follow each other without a gap are copied together.
        let run = match (shape.last(), strides.last()) {
            (Some(length), Some(step)) if *step == item as isize && !suboffsets => *length,
            _ => 1,
        };
        let (total, mut done) = (self.count(), 0);
        while done < total {
            let from = self.buffer.get_ptr(&index).cast::<u8>().cast_const();
            let (mut left, mut at) = (run * item, done * item);
            let mut from_at = 0;
            while left > 0 {
                let part = left.min(row - at % row);
                let to = at / row * stride + at % row;
                let room = &mut into[to..to + part];
                // SAFETY: the buffer has `run` values from this index on, and `room` has `part` of their bytes.
                unsafe { ptr::copy_nonoverlapping(from.add(from_at), room.as_mut_ptr(), part) };
                (left, at, from_at) = (left - part, at + part, from_at + part);
            }
            done += run;
            let mut axis = index.len();
            let mut step = run;
            while axis > 0 {
                axis -= 1;
                index[axis] += step;
                if index[axis] < shape[axis] {
                    break;
                }
                index[axis] = 0;
                step = 1;
            }
        }
    }
}

/// Fills the bytes of a frame from values of the frame's own shape. Fails if type or shape differ.
pub(crate) fn fill_frame(into: &mut [u8], layout: &Layout, given: &Given, name: &str) -> PyResult<()> {
    let expected = layout.shape().iter().map(|length| *length as usize).collect::<Vec<_>>();
    let item = layout.item.to_str().unwrap_or("B");
    if given.item() != Some(item) || given.shape() != expected {
        let got = given.item().map_or_else(|| "another byte order".to_owned(), words_of_item);
        return Err(PyTypeError::new_err(format!(
            "{name}: expected an array of {} with the shape {expected:?}, got {got} with the shape {:?}",
            words_of_item(item),
            given.shape(),
        )));
    }
    let whole = given.count() * given.item_bytes();
    let (row, stride) = layout.gaps().unwrap_or((whole, whole));
    given.copy_rows(into, row, stride);
    Ok(())
}

/// The type that a code of the `struct` module stands for, as numpy names it.
pub(crate) fn words_of_item(item: &str) -> String {
    let word = match item {
        "B" => "uint8",
        "b" => "int8",
        "H" => "uint16",
        "h" => "int16",
        "I" => "uint32",
        "i" => "int32",
        "L" | "Q" => "uint64",
        "l" | "q" => "int64",
        "e" => "float16",
        "f" => "float32",
        "d" => "float64",
        "g" => "longdouble",
        "?" => "bool",
        "Zf" => "complex64",
        "Zd" => "complex128",
        other => return format!("`{other}`"),
    };
    word.to_owned()
}
