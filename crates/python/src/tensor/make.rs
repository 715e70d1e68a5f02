//! Tensors from arrays, frames, numbers and lists, and the contexts that they belong to.
//!
//! Two contexts live as long as the process: the best device, and the host.

use std::sync::OnceLock;

use half::f16;
use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyList, PyTuple};
use vramp::plan::DType;
use vramp::tensor::{Context, ErrorKind, Tensor};

use super::{PyTensor, Values};
use crate::buffer::{Given, words_of_item};
use crate::dlpack::{import, refused};
use crate::errors::{detached, of_tensor, tensor_error};
use crate::fork;

/// The context for a device: `None` for the best, `cpu`, or `gpu`, which fails without a device.
pub(crate) fn context_of(py: Python<'_>, device: Option<&str>) -> PyResult<Context> {
    static BEST: OnceLock<Context> = OnceLock::new();
    static HOST: OnceLock<Context> = OnceLock::new();
    fork::check(py)?;
    let best = || detached(py, || BEST.get_or_init(|| Context::open().0).clone());
    match device {
        None => best(),
        Some("cpu") => detached(py, || HOST.get_or_init(Context::on_host).clone()),
        Some("gpu") => {
            let context = best()?;
            if context.device().is_none() {
                return Err(crate::errors::raise(
                    py,
                    "DeviceError",
                    "there is no usable GPU; `vramp devices` says why",
                ));
            }
            Ok(context)
        }
        Some(other) => Err(PyValueError::new_err(format!("device: expected `cpu` or `gpu`, got `{other}`"))),
    }
}

/// The context of a tensor.
pub(super) fn context_like(py: Python<'_>, tensor: &PyTensor) -> PyResult<Context> {
    if let Values::Ready(tensor) = &*tensor.state() {
        return Ok(tensor.context().clone());
    }
    if tensor.place.is_some() {
        return context_of(py, None);
    }
    Ok(tensor.tensor(py)?.context().clone())
}

/// An element type by its name, as vramp or as numpy writes it.
pub(crate) fn dtype_named(py: Python<'_>, name: &str) -> PyResult<DType> {
    Ok(match name {
        "f32" | "float32" => DType::F32,
        "f16" | "float16" => DType::F16,
        "i32" | "int32" => DType::I32,
        "u32" | "uint32" => DType::U32,
        "u8" | "uint8" => DType::U8,
        "i8" | "int8" => DType::I8,
        other => return Err(refused(py, other)),
    })
}

fn dtype_of(py: Python<'_>, given: &Given) -> PyResult<DType> {
    let item = given.item();
    Ok(match (item, given.item_bytes()) {
        (Some("f"), _) => DType::F32,
        (Some("e"), _) => DType::F16,
        (Some("i" | "l"), 4) => DType::I32,
        (Some("I" | "L"), 4) => DType::U32,
        (Some("B"), _) => DType::U8,
        (Some("b"), _) => DType::I8,
        (Some(other), _) => return Err(refused(py, &words_of_item(other))),
        (None, _) => return Err(refused(py, "in another byte order")),
    })
}

/// A tensor of an array, a frame, a number, or nested lists of numbers. The values are copied once.
#[pyfunction]
#[pyo3(signature = (values, dtype = None, *, device = None))]
pub(crate) fn tensor(
    py: Python<'_>,
    values: &Bound<'_, PyAny>,
    dtype: Option<&str>,
    device: Option<&str>,
) -> PyResult<PyTensor> {
    let dtype = dtype.map(|name| dtype_named(py, name)).transpose()?;
    let context = context_of(py, device)?;
    Ok(PyTensor::ready(tensor_in(&context, values, dtype)?))
}

/// The tensor of an argument, which may also be an array.
pub(crate) fn tensor_of(py: Python<'_>, values: &Bound<'_, PyAny>, context: &Context) -> PyResult<Tensor> {
    match values.cast::<PyTensor>() {
        Ok(tensor) => tensor.get().tensor(py),
        Err(_) => tensor_in(context, values, None),
    }
}

pub(super) fn tensor_in(context: &Context, values: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    let py = values.py();
    let tensor = if let Ok(tensor) = values.cast::<PyTensor>() {
        let tensor = tensor.get().tensor(py)?;
        let bytes = detached(py, || tensor.host_values())?.map_err(|error| of_tensor(py, &error))?;
        let made = context.tensor_from_bytes(&bytes, tensor.shape().lengths(), tensor.dtype());
        made.map_err(|error| of_tensor(py, &error))?
    } else if is_nested(values) {
        of_lists(context, values, dtype)?
    } else if let Ok(given) = Given::of(values, "an array") {
        let own = dtype_of(py, &given)?;
        let shape = given.shape().to_vec();
        let mut bytes = zeroed(given.count(), given.item_bytes())?;
        detached(py, || given.copy_rows(&mut bytes, given.item_bytes(), given.item_bytes()))?;
        drop(given);
        context.tensor_from_bytes(&bytes, &shape, own).map_err(|error| of_tensor(py, &error))?
    } else if values.hasattr("__dlpack__")? {
        let imported = import(values)?;
        let made = context.tensor_from_bytes(&imported.bytes, &imported.shape, imported.dtype);
        made.map_err(|error| of_tensor(py, &error))?
    } else {
        let kind = values.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "expected an array, a frame, a number or lists of numbers, got {kind}"
        )));
    };
    match dtype {
        Some(dtype) if dtype != tensor.dtype() => {
            detached(py, || tensor.cast(dtype))?.map_err(|error| of_tensor(py, &error))
        }
        _ => Ok(tensor),
    }
}

/// Memory for this many values, or a `MemoryError`.
pub(crate) fn zeroed(count: usize, item_bytes: usize) -> PyResult<Vec<u8>> {
    let failed = || PyMemoryError::new_err(format!("{count} values of {item_bytes} bytes do not fit into memory"));
    let bytes = count.checked_mul(item_bytes).filter(|_| u32::try_from(count).is_ok()).ok_or_else(failed)?;
    let mut zeros = Vec::new();
    zeros.try_reserve_exact(bytes).map_err(|_| failed())?;
    zeros.resize(bytes, 0);
    Ok(zeros)
}

fn is_nested(values: &Bound<'_, PyAny>) -> bool {
    values.is_instance_of::<PyList>()
        || values.is_instance_of::<PyTuple>()
        || values.is_instance_of::<PyFloat>()
        || values.is_instance_of::<PyInt>()
}

/// Whole numbers make i32, other numbers f32, unless a type is asked for.
fn of_lists(context: &Context, values: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<Tensor> {
    let py = values.py();
    let (mut shape, mut flat, mut whole) = (Vec::new(), Vec::new(), true);
    flatten(values, 0, &mut shape, &mut flat, &mut whole)?;
    let dtype = dtype.unwrap_or(if whole && !flat.is_empty() { DType::I32 } else { DType::F32 });
    let range = match dtype {
        DType::I32 => Some((f64::from(i32::MIN), f64::from(i32::MAX))),
        DType::U32 => Some((0.0, f64::from(u32::MAX))),
        DType::U8 => Some((0.0, 255.0)),
        DType::I8 => Some((-128.0, 127.0)),
        DType::F32 | DType::F16 => None,
    };
    if let Some((least, most)) = range
        && let Some(wrong) = flat.iter().find(|number| !(least..=most).contains(*number))
    {
        let text = format!("{wrong} does not fit {dtype}, which has values from {least} to {most}");
        return Err(tensor_error(py, "TensorError", &text, ErrorKind::Other));
    }
    let made = match dtype {
        DType::F32 => context.tensor(&flat.iter().map(|number| *number as f32).collect::<Vec<_>>(), &shape),
        DType::F16 => context.tensor(&flat.iter().map(|number| f16::from_f64(*number)).collect::<Vec<_>>(), &shape),
        DType::I32 => context.tensor(&flat.iter().map(|number| *number as i32).collect::<Vec<_>>(), &shape),
        DType::U32 => context.tensor(&flat.iter().map(|number| *number as u32).collect::<Vec<_>>(), &shape),
        DType::U8 => context.tensor(&flat.iter().map(|number| *number as u8).collect::<Vec<_>>(), &shape),
        DType::I8 => context.tensor(&flat.iter().map(|number| *number as i8).collect::<Vec<_>>(), &shape),
    };
    made.map_err(|error| of_tensor(py, &error))
}

fn flatten(
    values: &Bound<'_, PyAny>,
    depth: usize,
    shape: &mut Vec<usize>,
    flat: &mut Vec<f64>,
    whole: &mut bool,
) -> PyResult<()> {
    /// Deeper lists are a mistake, or a list that contains itself.
    const DEEPEST: usize = 16;
    let uneven = || PyValueError::new_err("the lists have different lengths, so they are not the rows of a tensor");
    if values.is_instance_of::<PyList>() || values.is_instance_of::<PyTuple>() {
        let length = values.len()?;
        if depth >= DEEPEST {
            return Err(PyValueError::new_err(format!("the lists are nested deeper than {DEEPEST}")));
        }
        match shape.get(depth) {
            None if flat.is_empty() => shape.push(length),
            Some(known) if *known == length => {}
            _ => return Err(uneven()),
        }
        for value in values.try_iter()? {
            flatten(&value?, depth + 1, shape, flat, whole)?;
        }
        return Ok(());
    }
    if depth != shape.len() {
        return Err(uneven());
    }
    *whole &= values.is_instance_of::<PyInt>() || values.is_instance_of::<PyBool>();
    flat.push(values.extract()?);
    Ok(())
}

/// A tensor of zeros.
#[pyfunction]
#[pyo3(signature = (shape, dtype = "f32", *, device = None))]
pub(crate) fn zeros(py: Python<'_>, shape: Vec<usize>, dtype: &str, device: Option<&str>) -> PyResult<PyTensor> {
    let (context, dtype) = (context_of(py, device)?, dtype_named(py, dtype)?);
    let made = detached(py, || context.zeros(&shape, dtype))?;
    made.map(PyTensor::ready).map_err(|error| of_tensor(py, &error))
}

/// A tensor of the values of another library's array, copied once.
#[pyfunction]
#[pyo3(signature = (array, /, *, device = None))]
pub(crate) fn from_dlpack(py: Python<'_>, array: &Bound<'_, PyAny>, device: Option<&str>) -> PyResult<PyTensor> {
    let context = context_of(py, device)?;
    let imported = import(array)?;
    let made = context.tensor_from_bytes(&imported.bytes, &imported.shape, imported.dtype);
    made.map(PyTensor::ready).map_err(|error| of_tensor(py, &error))
}
