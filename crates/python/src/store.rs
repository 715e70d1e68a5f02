//! `Store`: named tensors that models share, and their files.

use std::path::PathBuf;

use pyo3::prelude::*;
use vramp::tensor::Store;

use crate::errors::{detached, of_store, of_tensor};
use crate::tensor::{PyTensor, context_of, tensor_of};

#[pyclass(frozen, module = "vramp", name = "Store")]
pub(crate) struct PyStore {
    store: Store,
}

impl PyStore {
    fn call<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Store) -> Result<T, vramp::tensor::StoreError> + Send,
    ) -> PyResult<T> {
        detached(py, || work(&self.store))?.map_err(|error| of_store(py, &error))
    }
}

#[pymethods]
impl PyStore {
    /// A store whose tensors belong to a device. Persisted tensors are kept in `folder`, with at most `quota` bytes.
    #[new]
    #[pyo3(signature = (*, folder = None, quota = 1_073_741_824, device = None))]
    fn new(py: Python<'_>, folder: Option<PathBuf>, quota: u64, device: Option<&str>) -> PyResult<PyStore> {
        let context = context_of(py, device)?;
        let builder = Store::builder().context(&context);
        let builder = if let Some(folder) = folder { builder.folder(folder, quota) } else { builder };
        let store = detached(py, || builder.build())?.map_err(|error| of_store(py, &error))?;
        Ok(PyStore { store })
    }

    /// Registers a tensor or an array under a name. `consumers` may use it too.
    #[pyo3(signature = (name, values, /, *, model, consumers = Vec::new()))]
    fn register(
        &self,
        py: Python<'_>,
        name: &str,
        values: &Bound<'_, PyAny>,
        model: &str,
        consumers: Vec<String>,
    ) -> PyResult<()> {
        let context = self.call(py, Store::context)?;
        let tensor = tensor_of(py, values, &context)?;
        let tensor = if tensor.context().is(&context) {
            tensor
        } else {
            let moved = detached(py, || {
                let values = tensor.host_values()?;
                context.tensor_from_bytes(&values, tensor.shape().lengths(), tensor.dtype())
            })?;
            moved.map_err(|error| of_tensor(py, &error))?
        };
        let consumers: Vec<&str> = consumers.iter().map(String::as_str).collect();
        self.call(py, |store| store.register_tensor(name, &tensor, model, &consumers))
    }

    /// The tensor of a name, for a model that may use it.
    #[pyo3(signature = (name, /, *, model))]
    fn tensor(&self, py: Python<'_>, name: &str, model: &str) -> PyResult<PyTensor> {
        self.call(py, |store| store.tensor(name, model)).map(PyTensor::ready)
    }

    /// Lets other models use a tensor. Returns how many of them could not use it before.
    #[pyo3(signature = (name, /, *, model, to))]
    fn share(&self, py: Python<'_>, name: &str, model: &str, to: Vec<String>) -> PyResult<usize> {
        let to: Vec<&str> = to.iter().map(String::as_str).collect();
        self.call(py, |store| store.share(name, model, &to))
    }

    /// Adds a hold. Returns the number of holds of the model.
    #[pyo3(signature = (name, /, *, model))]
    fn acquire(&self, py: Python<'_>, name: &str, model: &str) -> PyResult<u64> {
        self.call(py, |store| store.acquire(name, model))
    }

    /// Removes a hold. When no model holds the tensor any more, it is freed.
    #[pyo3(signature = (name, /, *, model))]
    fn release(&self, py: Python<'_>, name: &str, model: &str) -> PyResult<u64> {
        self.call(py, |store| store.release(name, model))
    }

    /// Removes a name.
    #[pyo3(signature = (name, /, *, model))]
    fn unregister(&self, py: Python<'_>, name: &str, model: &str) -> PyResult<()> {
        self.call(py, |store| store.unregister(name, model))
    }

    /// Writes a tensor to the folder.
    fn persist(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.call(py, |store| store.persist(name).map(drop))
    }

    /// Registers a persisted tensor, with `model` as its producer.
    #[pyo3(signature = (name, /, *, model))]
    fn load(&self, py: Python<'_>, name: &str, model: &str) -> PyResult<()> {
        self.call(py, |store| store.load(name, model))
    }

    /// Registers every tensor in the folder. Returns their names.
    #[pyo3(signature = (*, model))]
    fn restore(&self, py: Python<'_>, model: &str) -> PyResult<Vec<String>> {
        self.call(py, |store| store.restore(model).map(|restored| restored.tensors))
    }

    /// The registered names.
    #[getter]
    fn names(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        detached(py, || self.store.names())
    }

    fn __contains__(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        Ok(self.names(py)?.iter().any(|known| known == name))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.names(py)?.len())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("<vramp.Store of {} tensors>", self.names(py)?.len()))
    }
}
