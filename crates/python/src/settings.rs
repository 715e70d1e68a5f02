//! The settings of one handler of a pipeline: `p["blur0"].sigma = 4`.

use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use vramp::{Controls, SetError, SettingInput};

use crate::errors::{detached, raise};
use crate::values::{key_of, text_of, value_of};

#[pyclass(frozen, module = "vramp", name = "Settings")]
pub(crate) struct PySettings {
    controls: Controls,
    handler: String,
}

impl PySettings {
    pub(crate) fn new(controls: Controls, handler: &str) -> PySettings {
        PySettings { controls, handler: handler.to_owned() }
    }

    fn full(&self, key: &str) -> String {
        let own = self.controls.settings();
        let is_known = |key: &str| own.iter().any(|state| state.handler == self.handler && state.key == key);
        format!("{}.{}", self.handler, key_of(key, is_known))
    }

    #[expect(clippy::result_large_err, reason = "the error becomes an exception at once")]
    fn change(&self, py: Python<'_>, changes: Vec<(String, SettingInput)>) -> PyResult<()> {
        // A change may compile kernels and make handlers, also Python ones.
        let changed = detached(py, || self.controls.set_all(changes).map(drop))?;
        changed.map_err(|error| raise(py, "SettingError", &error.to_string()))
    }
}

#[pymethods]
impl PySettings {
    /// Changes several settings with the same frame. If one of them is refused, none changes.
    #[pyo3(signature = (**changes))]
    fn set(&self, py: Python<'_>, changes: Option<&Bound<'_, PyDict>>) -> PyResult<()> {
        let mut list = Vec::new();
        for (key, value) in changes.into_iter().flatten() {
            list.push((self.full(&key.extract::<String>()?), SettingInput::from(text_of(&value)?)));
        }
        if list.is_empty() { Ok(()) } else { self.change(py, list) }
    }

    /// The values of all settings; `None` for a setting without a value.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let values = PyDict::new(py);
        for state in self.controls.settings().into_iter().filter(|state| state.handler == self.handler) {
            match state.value {
                Some(text) => values.set_item(state.key, value_of(py, &text)?)?,
                None => values.set_item(state.key, py.None())?,
            }
        }
        Ok(values)
    }

    fn __getattr__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match self.controls.get(&self.full(name)) {
            Ok(text) => value_of(py, &text),
            Err(SetError::Unset { .. }) => Ok(py.None().into_bound(py)),
            Err(error) => Err(PyAttributeError::new_err(error.to_string())),
        }
    }

    fn __setattr__(&self, py: Python<'_>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.change(py, vec![(self.full(name), text_of(value)?.into())])
    }

    fn __delattr__(&self, name: &str) -> PyResult<()> {
        Err(PyTypeError::new_err(format!("the setting `{name}` cannot be deleted")))
    }

    fn __dir__(&self) -> Vec<String> {
        let own = self.controls.settings().into_iter().filter(|state| state.handler == self.handler);
        own.map(|state| state.key.replace('-', "_")).chain(["set".to_owned(), "to_dict".to_owned()]).collect()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<vramp.Settings of {}: {}>", self.handler, self.to_dict(py)?.repr()?))
    }
}
