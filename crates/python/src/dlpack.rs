//! `DLPack`: memory exchanged with other array libraries without a copy, with the read-only flag of version 1.
//!
//! Invariants: exported memory stays in place until its consumer calls the deleter, which may happen on any thread. Memory
//! of another library is only read before its deleter is called.

#![expect(unsafe_code, reason = "DLPack exchanges pointers in capsules, which the C API defines")]

use std::ffi::{CStr, c_void};
use std::ptr::NonNull;

use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use vramp::plan::DType;
use vramp::tensor::ErrorKind;

use crate::errors::tensor_error;
use crate::tensor::zeroed;

/// The device types of the standard.
const CPU: i32 = 1;
const CUDA_HOST: i32 = 3;

const READ_ONLY: u64 = 1;
const IS_COPIED: u64 = 2;

#[repr(C)]
#[derive(Clone, Copy)]
struct DlDevice {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DlType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DlTensor {
    data: *mut c_void,
    device: DlDevice,
    rank: i32,
    dtype: DlType,
    shape: *mut i64,
    /// In values; null if there are no gaps.
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Versioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    // SAFETY: a consumer calls it once, when it has read the memory for the last time.
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DlTensor,
}

#[repr(C)]
struct Unversioned {
    tensor: DlTensor,
    context: *mut c_void,
    // SAFETY: as above.
    deleter: Option<unsafe extern "C" fn(*mut Unversioned)>,
}

const VERSIONED: &CStr = c"dltensor_versioned";
const UNVERSIONED: &CStr = c"dltensor";

/// What keeps exported memory in place.
#[expect(dead_code, reason = "it is only kept")]
enum Keeper {
    /// The object whose memory it is.
    Object(Py<PyAny>),
    /// A copy.
    Copy(Vec<u8>),
}

/// Exported memory: what keeps it, and its shape and strides, to which the exported structure points.
struct Export {
    #[expect(dead_code, reason = "it is only kept")]
    keeper: Keeper,
    shape: Vec<i64>,
    strides: Vec<i64>,
}

/// What `__dlpack__` was called with.
pub(crate) struct Wish {
    versioned: bool,
    pub(crate) copy: Option<bool>,
}

impl Wish {
    /// Reads the arguments; fails if the consumer wants the memory on a device.
    pub(crate) fn of(
        stream: Option<&Bound<'_, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Wish> {
        if stream.is_some_and(|stream| !stream.is_none()) {
            return Err(PyBufferError::new_err("memory on the host has no stream; leave `stream` out"));
        }
        if dl_device.is_some_and(|(kind, _)| kind != CPU) {
            return Err(PyBufferError::new_err("the memory is on the host; move the array after the exchange"));
        }
        Ok(Wish { versioned: max_version.is_some_and(|(major, _)| major >= 1), copy })
    }
}

/// A value's type in `DLPack`.
fn type_of(dtype: DType) -> DlType {
    let (code, bits) = match dtype {
        DType::F32 => (2, 32),
        DType::F16 => (2, 16),
        DType::I32 => (0, 32),
        DType::I8 => (0, 8),
        DType::U32 => (1, 32),
        DType::U8 => (1, 8),
    };
    DlType { code, bits, lanes: 1 }
}

/// Exports memory as a capsule. `strides` are in values.
///
/// # Safety
///
/// `data` stays readable as long as `keeper` lives; if `keeper` is a copy, `data` is the copy. If it is not a copy, the
/// memory does not change.
unsafe fn capsule<'py>(
    py: Python<'py>,
    keeper: Keeper,
    data: *const u8,
    dtype: DType,
    shape: &[i64],
    strides: &[i64],
    wish: &Wish,
) -> PyResult<Bound<'py, PyAny>> {
    let is_copy = matches!(keeper, Keeper::Copy(_));
    if !is_copy && !wish.versioned {
        let text = "the memory is read-only, which DLPack says since version 1.0; pass `copy=True`, or use a newer \
                    version of the other library";
        return Err(PyBufferError::new_err(text));
    }
    let mut export = Box::new(Export { keeper, shape: shape.to_vec(), strides: strides.to_vec() });
    let tensor = DlTensor {
        data: data.cast_mut().cast(),
        device: DlDevice { kind: CPU, id: 0 },
        rank: shape.len() as i32,
        dtype: type_of(dtype),
        shape: export.shape.as_mut_ptr(),
        strides: export.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let context = Box::into_raw(export).cast::<c_void>();
    if wish.versioned {
        let flags = if is_copy { IS_COPIED } else { READ_ONLY };
        let own = Versioned { major: 1, minor: 0, context, deleter: Some(delete_versioned), flags, tensor };
        let own = Box::into_raw(Box::new(own));
        // SAFETY: the capsule owns the structure until a consumer renames it.
        unsafe { owned(py, ffi::PyCapsule_New(own.cast(), VERSIONED.as_ptr(), Some(drop_versioned))) }
    } else {
        let own = Box::into_raw(Box::new(Unversioned { tensor, context, deleter: Some(delete_unversioned) }));
        // SAFETY: as above.
        unsafe { owned(py, ffi::PyCapsule_New(own.cast(), UNVERSIONED.as_ptr(), Some(drop_unversioned))) }
    }
}

/// Exports values that `owner` keeps unchanged, or a copy of them, as the consumer wishes. `strides` are in values.
pub(crate) fn shared<'py>(
    py: Python<'py>,
    owner: &Bound<'py, PyAny>,
    values: &[u8],
    dtype: DType,
    shape: &[i64],
    strides: &[i64],
    wish: &Wish,
) -> PyResult<Bound<'py, PyAny>> {
    let copies = wish.copy == Some(true) || (wish.copy.is_none() && !wish.versioned);
    let (keeper, data) = if copies {
        let copy = values.to_vec();
        let data = copy.as_ptr();
        (Keeper::Copy(copy), data)
    } else {
        (Keeper::Object(owner.clone().unbind()), values.as_ptr())
    };
    // SAFETY: the copy is in the keeper, whose heap memory does not move; otherwise `owner` keeps the values in place and
    // unchanged.
    unsafe { capsule(py, keeper, data, dtype, shape, strides, wish) }
}

/// # Safety
///
/// `object` is a new reference, or null with an exception set.
unsafe fn owned(py: Python<'_>, object: *mut ffi::PyObject) -> PyResult<Bound<'_, PyAny>> {
    // SAFETY: promised by the caller.
    unsafe { Bound::from_owned_ptr_or_err(py, object) }
}

/// Frees what an export keeps. Python objects are released with the GIL.
///
/// # Safety
///
/// `context` comes from [`capsule`], and nothing reads the exported memory any more.
unsafe fn free(context: *mut c_void) {
    // SAFETY: made by `Box::into_raw` in `capsule`, and freed once.
    let export = unsafe { Box::from_raw(context.cast::<Export>()) };
    let mut export = Some(export);
    if Python::try_attach(|_| drop(export.take())).is_none() {
        // The interpreter is ending; its objects stay.
        std::mem::forget(export);
    }
}

// SAFETY: called with a structure of `capsule`, once.
unsafe extern "C" fn delete_versioned(own: *mut Versioned) {
    if !own.is_null() {
        // SAFETY: made by `Box::into_raw` in `capsule`; a consumer calls the deleter once.
        unsafe {
            let own = Box::from_raw(own);
            free(own.context);
        }
    }
}

// SAFETY: called with a structure of `capsule`, once.
unsafe extern "C" fn delete_unversioned(own: *mut Unversioned) {
    if !own.is_null() {
        // SAFETY: as above.
        unsafe {
            let own = Box::from_raw(own);
            free(own.context);
        }
    }
}

/// Frees a capsule that no consumer has taken. A consumer renames the capsule that it takes.
// SAFETY: called by the interpreter with the capsule that is being freed.
unsafe extern "C" fn drop_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: called by the interpreter with the capsule that is being freed.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

// SAFETY: as above.
unsafe extern "C" fn drop_unversioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as above.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, UNVERSIONED.as_ptr()) == 1 {
            delete_unversioned(ffi::PyCapsule_GetPointer(capsule, UNVERSIONED.as_ptr()).cast());
        }
    }
}

/// Values of another library, copied.
pub(crate) struct Imported {
    pub(crate) bytes: Vec<u8>,
    pub(crate) shape: Vec<usize>,
    pub(crate) dtype: DType,
}

/// Copies the values of an object with `__dlpack__`.
pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<Imported> {
    let py = object.py();
    if !object.hasattr("__dlpack__")? {
        let kind = object.get_type().name()?;
        return Err(PyTypeError::new_err(format!("{kind} has no `__dlpack__`; expected an array of another library")));
    }
    if let Ok((kind, _)) = object.call_method0("__dlpack_device__")?.extract::<(i32, i32)>()
        && kind != CPU
        && kind != CUDA_HOST
    {
        let text =
            format!("the array is on a device (DLPack type {kind}); copy it to the host first, such as `x.cpu()`");
        return Err(PyBufferError::new_err(text));
    }
    let options = PyDict::new(py);
    options.set_item("max_version", (1, 0))?;
    let capsule = match object.call_method("__dlpack__", (), Some(&options)) {
        Ok(capsule) => capsule,
        // Libraries from before version 1.0 of DLPack do not know the argument.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => object.call_method0("__dlpack__")?,
        Err(error) => return Err(error),
    };
    let named = |name: &CStr| {
        // SAFETY: only asks for the name of an object that lives.
        unsafe { ffi::PyCapsule_IsValid(capsule.as_ptr(), name.as_ptr()) == 1 }
    };
    let pointer = |name: &CStr| {
        // SAFETY: the capsule is valid under this name, as `named` has found.
        NonNull::new(unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), name.as_ptr()) })
    };
    // The capsule keeps its name, and so frees its memory itself when it is dropped.
    if named(VERSIONED) {
        let own = pointer(VERSIONED).ok_or_else(empty)?.cast::<Versioned>();
        // SAFETY: a valid capsule of this name holds this structure, as long as the capsule lives.
        let own = unsafe { own.as_ref() };
        if own.major != 1 {
            return Err(PyBufferError::new_err(format!("DLPack {}.{} is not known", own.major, own.minor)));
        }
        // SAFETY: as above.
        unsafe { copied(py, &own.tensor) }
    } else if named(UNVERSIONED) {
        let own = pointer(UNVERSIONED).ok_or_else(empty)?.cast::<Unversioned>();
        // SAFETY: as above.
        unsafe { copied(py, &own.as_ref().tensor) }
    } else {
        Err(PyBufferError::new_err("`__dlpack__` returned something else than a DLPack capsule"))
    }
}

fn empty() -> PyErr {
    PyBufferError::new_err("the DLPack capsule is empty")
}

fn dtype_of(py: Python<'_>, dtype: DlType) -> PyResult<DType> {
    let known = DType::ALL.into_iter().find(|known| {
        let own = type_of(*known);
        (own.code, own.bits, own.lanes) == (dtype.code, dtype.bits, dtype.lanes)
    });
    known.ok_or_else(|| {
        let family = match dtype.code {
            0 => "int",
            1 => "uint",
            2 => "float",
            4 => "bfloat",
            5 => "complex",
            6 => "bool",
            _ => "type ",
        };
        refused(py, &format!("{family}{}", dtype.bits))
    })
}

/// The error for an element type that vramp does not have.
pub(crate) fn refused(py: Python<'_>, name: &str) -> PyErr {
    let text = format!(
        "vramp has no element type {name}; it has float32, float16, int32, uint32, uint8 and int8: convert first, such \
         as `array.astype(\"float32\")`"
    );
    tensor_error(py, "DTypeError", &text, ErrorKind::NotSupported)
}

/// # Safety
///
/// `tensor` describes readable memory.
unsafe fn copied(py: Python<'_>, tensor: &DlTensor) -> PyResult<Imported> {
    if tensor.device.kind != CPU && tensor.device.kind != CUDA_HOST {
        return Err(PyBufferError::new_err("the array is on a device; copy it to the host first, such as `x.cpu()`"));
    }
    let dtype = dtype_of(py, tensor.dtype)?;
    let rank = usize::try_from(tensor.rank).map_err(|_| empty())?;
    // SAFETY: shape and strides have `rank` entries; strides may be missing.
    let (shape, strides) = unsafe {
        let shape: &[i64] = if rank == 0 { &[] } else { std::slice::from_raw_parts(tensor.shape, rank) };
        let given = (!tensor.strides.is_null() && rank > 0)
            .then(|| std::slice::from_raw_parts(tensor.strides.cast_const(), rank));
        (shape, given)
    };
    let lengths: Vec<usize> = shape
        .iter()
        .map(|length| usize::try_from(*length).map_err(|_| PyBufferError::new_err("an axis has a negative length")))
        .collect::<PyResult<_>>()?;
    let count = lengths.iter().try_fold(1_usize, |count, length| count.checked_mul(*length)).ok_or_else(empty)?;
    let dense = dense_strides(&lengths);
    let strides = strides.unwrap_or(&dense);
    let item = dtype.bytes();
    let mut bytes = zeroed(count, item)?;
    if count > 0 {
        // SAFETY: the offset is within the memory that the structure describes.
        let first = unsafe { tensor.data.cast::<u8>().cast_const().add(tensor.byte_offset as usize) };
        if strides == dense.as_slice() {
            // SAFETY: dense memory has all values after each other.
            unsafe { std::ptr::copy_nonoverlapping(first, bytes.as_mut_ptr(), bytes.len()) };
        } else {
            let mut index = vec![0_usize; rank];
            for to in bytes.chunks_exact_mut(item) {
                let at: i64 = index.iter().zip(strides).map(|(at, stride)| *at as i64 * stride).sum();
                // SAFETY: the index is within the shape, so the value is within the memory.
                unsafe {
                    let from = first.offset(at as isize * item as isize);
                    std::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), item);
                }
                for axis in (0..rank).rev() {
                    index[axis] += 1;
                    if index[axis] < lengths[axis] {
                        break;
                    }
                    index[axis] = 0;
                }
            }
        }
    }
    Ok(Imported { bytes, shape: lengths, dtype })
}

/// The strides of values without gaps, in values.
pub(crate) fn dense_strides(lengths: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; lengths.len()];
    for at in (1..lengths.len()).rev() {
        strides[at - 1] = strides[at] * lengths[at].max(1) as i64;
    }
    strides
}
