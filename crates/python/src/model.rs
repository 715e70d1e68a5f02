//! `Model`: a neural network from an ONNX file, called with tensors or arrays.

use std::path::PathBuf;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use vramp::model::{Model, Port};
use vramp::plan::DType;
use vramp::tensor::{Context, Tensor};

use crate::errors::{detached, of_model, of_tensor};
use crate::tensor::{PyTensor, context_of, tensor_of};

#[pyclass(frozen, module = "vramp", name = "Model")]
pub(crate) struct PyModel {
    model: Model,
    context: Context,
    path: PathBuf,
}

/// The element type that a port takes; i64 is passed as i32, and bool as u8. `None` for types that tensors do not have.
fn type_of(port: &Port) -> Option<DType> {
    use vramp::model::onnx::OnnxType;
    Some(match port.dtype {
        OnnxType::F32 => DType::F32,
        OnnxType::F16 => DType::F16,
        OnnxType::I32 | OnnxType::I64 => DType::I32,
        OnnxType::U32 => DType::U32,
        OnnxType::U8 | OnnxType::Bool => DType::U8,
        OnnxType::I8 => DType::I8,
        _ => return None,
    })
}

fn described(ports: &[Port]) -> Vec<(String, String, Vec<Option<usize>>)> {
    use vramp::model::onnx::Dim;
    let length = |dim: &Dim| match dim {
        Dim::Fixed(length) => Some(*length),
        _ => None,
    };
    let port = |port: &Port| {
        let dtype = type_of(port).map_or_else(|| format!("{:?}", port.dtype), |dtype| dtype.name().to_owned());
        (port.name.clone(), dtype, port.dims.iter().map(length).collect())
    };
    ports.iter().map(port).collect()
}

impl PyModel {
    /// A tensor for an input. An array of another type that holds the same numbers is converted.
    fn given(&self, py: Python<'_>, port: &Port, value: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        let tensor = tensor_of(py, value, &self.context)?;
        let is_array = value.cast::<PyTensor>().is_err();
        match type_of(port) {
            Some(wanted) if is_array && wanted != tensor.dtype() => {
                detached(py, || tensor.cast(wanted))?.map_err(|error| of_tensor(py, &error))
            }
            _ => Ok(tensor),
        }
    }
}

#[pymethods]
impl PyModel {
    /// Reads an ONNX file.
    #[new]
    #[pyo3(signature = (path, /, *, device = None))]
    fn new(py: Python<'_>, path: PathBuf, device: Option<&str>) -> PyResult<PyModel> {
        let context = context_of(py, device)?;
        let model = detached(py, || Model::open(&path))?.map_err(|error| of_model(py, &error))?;
        Ok(PyModel { model, context, path })
    }

    /// The inputs: name, element type, and the shape, in which `None` is any length.
    #[getter]
    fn inputs(&self) -> Vec<(String, String, Vec<Option<usize>>)> {
        described(self.model.inputs())
    }

    #[getter]
    fn outputs(&self) -> Vec<(String, String, Vec<Option<usize>>)> {
        described(self.model.outputs())
    }

    /// Runs the model on tensors or arrays, in the order of its inputs or by name. Returns a tensor, or a tuple of tensors
    /// if the model has several outputs.
    #[pyo3(signature = (*inputs, **named))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyTuple>,
        named: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let ports = self.model.inputs();
        if inputs.len() > ports.len() {
            let text = format!("the model has {} inputs, got {}", ports.len(), inputs.len());
            return Err(PyTypeError::new_err(text));
        }
        let mut given = Vec::new();
        for (port, value) in ports.iter().zip(inputs.iter()) {
            given.push((port.name.clone(), self.given(py, port, &value)?));
        }
        for (name, value) in named.into_iter().flatten() {
            let name: String = name.extract()?;
            let port = ports.iter().find(|port| port.name == name);
            let tensor = match port {
                Some(port) => self.given(py, port, &value)?,
                None => tensor_of(py, &value, &self.context)?,
            };
            given.push((name, tensor));
        }
        let outputs = detached(py, || {
            let given: Vec<(&str, Tensor)> =
                given.iter().map(|(name, tensor)| (name.as_str(), tensor.clone())).collect();
            if given.is_empty() { self.model.run_in(&self.context, &[]) } else { self.model.run_named(&given) }
        })?;
        let outputs = outputs.map_err(|error| of_model(py, &error))?;
        let mut made = Vec::new();
        for tensor in outputs {
            made.push(Bound::new(py, PyTensor::ready(tensor))?.into_any());
        }
        if made.len() == 1 {
            return made.pop().ok_or_else(|| PyTypeError::new_err("the model has no output"));
        }
        Ok(PyTuple::new(py, made)?.into_any())
    }

    fn __repr__(&self) -> String {
        format!("<vramp.Model {}>", self.path.display())
    }
}
