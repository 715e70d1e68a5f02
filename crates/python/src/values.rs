//! Values of settings: from Python to the text of a pipeline, and back.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString, PyTuple};

/// The text of a value: a number, a flag, text, a path, a pair such as (640, 480), or a list of numbers.
pub(crate) fn text_of(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_instance_of::<PyBool>() {
        return Ok(value.extract::<bool>()?.to_string());
    }
    if value.is_instance_of::<PyString>() {
        return value.extract();
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(value.str()?.to_string());
    }
    if let Ok(float) = value.cast::<PyFloat>() {
        return Ok(float.extract::<f64>()?.to_string());
    }
    if let Ok(pair) = value.cast::<PyTuple>()
        && let Ok((width, height)) = pair.extract::<(u32, u32)>()
    {
        return Ok(format!("{width}x{height}"));
    }
    if let Ok(path) = value.call_method0("__fspath__") {
        return path.extract();
    }
    // Numbers of numpy, and lists of numbers.
    if let Ok(number) = value.extract::<f64>() {
        return Ok(number.to_string());
    }
    if let Ok(numbers) = value.extract::<Vec<f64>>() {
        return Ok(numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
    }
    let kind = value.get_type().name()?.to_string();
    Err(PyTypeError::new_err(format!("{kind} is not a value of a setting; expected text, a number, a flag or a size")))
}

/// The key of a setting: Python's `on_error` is `on-error`.
pub(crate) fn key_of(name: &str, is_known: impl Fn(&str) -> bool) -> String {
    let dashed = name.trim_end_matches('_').replace('_', "-");
    if !is_known(name) && (is_known(&dashed) || ["on-error"].contains(&dashed.as_str())) {
        dashed
    } else {
        name.to_owned()
    }
}

/// The value that a text stands for: a number, a flag, or the text itself.
pub(crate) fn value_of<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyAny>> {
    if let Ok(number) = text.parse::<i64>() {
        return Ok(number.into_pyobject(py)?.into_any());
    }
    if let Ok(flag) = text.parse::<bool>() {
        return Ok(flag.into_pyobject(py)?.to_owned().into_any());
    }
    let is_number = text.bytes().any(|byte| byte.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e' | b'E'));
    if let (true, Ok(number)) = (is_number, text.parse::<f64>()) {
        return Ok(number.into_pyobject(py)?.into_any());
    }
    Ok(text.into_pyobject(py)?.into_any())
}

/// A Python object from JSON.
pub(crate) fn from_json<'py>(py: Python<'py>, json: &str) -> PyResult<Bound<'py, PyAny>> {
    py.import("json")?.call_method1("loads", (json,))
}
