//! `Tensor`: values that stay where they are computed until Python reads them.
//!
//! Tensors do not change: an op makes a new tensor. Inside `vramp.fuse`, ops are only written down, and computed together
//! when a result is read.

mod indexing;
mod make;
mod recording;

use std::ffi::c_int;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyBufferError, PyTypeError, PyValueError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use vramp::plan::DType;
use vramp::tensor::{Expr, HostValues, Operand, Reduction, Tensor, Unary};

use crate::buffer::{self, Layout};
use crate::dlpack::{self, Wish};
use crate::errors::{detached, of_tensor};

pub(crate) use make::{context_of, dtype_named, from_dlpack, tensor, tensor_of, zeroed, zeros};
pub(crate) use recording::{PyRecording, begin_fuse, end_fuse, is_recording};

#[pyclass(frozen, module = "vramp", name = "Tensor")]
pub(crate) struct PyTensor {
    state: Mutex<Values>,
    /// The place of the tensor in a function that is being recorded.
    place: Option<recording::Place>,
    /// The values on the host and their layout, once a view of them exists.
    shown: OnceLock<(HostValues, Layout)>,
}

enum Values {
    Ready(Tensor),
    /// Written down, not computed.
    Lazy(Expr),
}

impl PyTensor {
    pub(crate) fn ready(tensor: Tensor) -> PyTensor {
        PyTensor { state: Mutex::new(Values::Ready(tensor)), place: None, shown: OnceLock::new() }
    }

    fn state(&self) -> MutexGuard<'_, Values> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn expr(&self) -> Expr {
        match &*self.state() {
            Values::Ready(tensor) => tensor.lazy(),
            Values::Lazy(expr) => expr.clone(),
        }
    }

    /// The computed tensor.
    pub(crate) fn tensor(&self, py: Python<'_>) -> PyResult<Tensor> {
        if self.place.is_some() {
            let text =
                "a fused function is recorded once, so it cannot read values; return the tensor and read it after";
            return Err(PyValueError::new_err(text));
        }
        let expr = match &*self.state() {
            Values::Ready(tensor) => return Ok(tensor.clone()),
            Values::Lazy(expr) => expr.clone(),
        };
        let tensor = detached(py, || expr.run())?.map_err(|error| of_tensor(py, &error))?;
        *self.state() = Values::Ready(tensor.clone());
        Ok(tensor)
    }

    fn facts(&self, py: Python<'_>) -> PyResult<(Vec<usize>, DType)> {
        let facts = match &*self.state() {
            Values::Ready(tensor) => Ok((tensor.shape().lengths().to_vec(), tensor.dtype())),
            Values::Lazy(expr) => {
                expr.shape().map(|shape| shape.lengths().to_vec()).and_then(|shape| Ok((shape, expr.dtype()?)))
            }
        };
        facts.map_err(|error| of_tensor(py, &error))
    }

    /// The values on the host, kept for views.
    fn show(&self, py: Python<'_>) -> PyResult<&(HostValues, Layout)> {
        if let Some(shown) = self.shown.get() {
            return Ok(shown);
        }
        let tensor = self.tensor(py)?;
        let values = detached(py, || tensor.host_values())?.map_err(|error| of_tensor(py, &error))?;
        let layout = Layout::dense(tensor.dtype(), tensor.shape().lengths().iter().copied());
        Ok(self.shown.get_or_init(|| (values, layout)))
    }
}

/// An op on tensors: computed at once, or written down while a fuse is open.
pub(crate) fn apply(
    py: Python<'_>,
    inputs: &[&PyTensor],
    op: impl Fn(&[Expr]) -> Expr + Send + Sync + 'static,
) -> PyResult<PyTensor> {
    let exprs: Vec<Expr> = inputs.iter().map(|input| input.expr()).collect();
    let made = op(&exprs);
    // A mistake is reported by the op that has it.
    made.shape().map_err(|error| of_tensor(py, &error))?;
    let place = recording::note(inputs, Arc::new(op))?;
    if place.is_some() || recording::is_fusing() {
        return Ok(PyTensor { state: Mutex::new(Values::Lazy(made)), place, shown: OnceLock::new() });
    }
    let tensor = detached(py, || made.run())?.map_err(|error| of_tensor(py, &error))?;
    Ok(PyTensor::ready(tensor))
}

/// The other operand of an op: a tensor, a number, or an array. `None` if it is something else.
enum Other {
    Tensor(Py<PyTensor>),
    Number(f64),
}

fn other_of(own: &PyTensor, other: &Bound<'_, PyAny>) -> PyResult<Option<Other>> {
    let py = other.py();
    if let Ok(tensor) = other.cast::<PyTensor>() {
        return Ok(Some(Other::Tensor(tensor.clone().unbind())));
    }
    if let Ok(number) = other.extract::<f64>() {
        return Ok(Some(Other::Number(number)));
    }
    if other.hasattr("__array_interface__")? || other.hasattr("__dlpack__")? {
        let context = make::context_like(py, own)?;
        let tensor = make::tensor_in(&context, other, None)?;
        return Ok(Some(Other::Tensor(Py::new(py, PyTensor::ready(tensor))?)));
    }
    Ok(None)
}

type Binary = fn(&Expr, Operand) -> Expr;

fn binary(slf: &Bound<'_, PyTensor>, other: &Bound<'_, PyAny>, op: Binary) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let own = slf.get();
    let made = match other_of(own, other)? {
        None => return Ok(py.NotImplemented()),
        Some(Other::Tensor(other)) => apply(py, &[own, other.get()], move |of| op(&of[0], (&of[1]).into()))?,
        Some(Other::Number(number)) => apply(py, &[own], move |of| op(&of[0], number.into()))?,
    };
    Ok(Py::new(py, made)?.into_any())
}

/// An op whose left operand is a number or an array.
fn reflected(slf: &Bound<'_, PyTensor>, other: &Bound<'_, PyAny>, op: Binary) -> PyResult<Py<PyAny>> {
    let py = slf.py();
    let own = slf.get();
    let made = match other_of(own, other)? {
        None => return Ok(py.NotImplemented()),
        Some(Other::Tensor(other)) => apply(py, &[other.get(), own], move |of| op(&of[0], (&of[1]).into()))?,
        // The number becomes a tensor of one value of the same type, which broadcasts.
        Some(Other::Number(number)) => apply(py, &[own], move |of| {
            let number = of[0].select(number, number);
            op(&number, (&of[0]).into())
        })?,
    };
    Ok(Py::new(py, made)?.into_any())
}

fn unary(py: Python<'_>, own: &PyTensor, op: Unary) -> PyResult<PyTensor> {
    apply(py, &[own], move |of| of[0].unary(op))
}

fn reduced(py: Python<'_>, own: &PyTensor, how: Reduction, axis: Option<isize>, keepdims: bool) -> PyResult<PyTensor> {
    apply(py, &[own], move |of| match axis {
        Some(axis) => of[0].reduce(how, axis, keepdims),
        None => of[0].reduce_all(how),
    })
}

#[pymethods]
impl PyTensor {
    /// The lengths of the axes, slowest first.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.facts(py)?.0)
    }

    /// `f32`, `f16`, `i32`, `u32`, `u8` or `i8`.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.facts(py)?.1.name())
    }

    #[getter]
    fn ndim(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.facts(py)?.0.len())
    }

    /// The number of values.
    #[getter]
    fn size(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.facts(py)?.0.iter().product())
    }

    /// Where ops on the tensor run: `cpu` or `gpu`.
    #[getter]
    fn device(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(if self.tensor(py)?.context().device().is_some() { "gpu" } else { "cpu" })
    }

    /// The values as an array of numpy, read-only. Values on the GPU are downloaded once.
    fn numpy<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("numpy")?.call_method1("asarray", (slf,))
    }

    /// The values as nested lists.
    fn tolist<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let own = slf.get();
        if own.facts(slf.py())?.1 == DType::F16 {
            let whole = Bound::new(slf.py(), own.cast(slf.py(), "f32")?)?;
            return PyTensor::tolist(&whole);
        }
        slf.py().get_type::<pyo3::types::PyMemoryView>().call1((slf,))?.call_method0("tolist")
    }

    /// The value of a tensor with one value.
    fn item<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let (shape, _) = slf.get().facts(py)?;
        if shape.iter().product::<usize>() != 1 {
            return Err(PyValueError::new_err(format!("{shape:?} has more or less than one value; use `tolist`")));
        }
        let flat = apply(py, &[slf.get()], |of| of[0].reshape(&[1]))?;
        PyTensor::tolist(&Bound::new(py, flat)?)?.get_item(0)
    }

    /// The bytes of the values.
    fn tobytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &self.show(py)?.0))
    }

    fn __float__(slf: &Bound<'_, Self>) -> PyResult<f64> {
        PyTensor::item(slf)?.extract()
    }

    fn __int__(slf: &Bound<'_, Self>) -> PyResult<i64> {
        Ok(PyTensor::item(slf)?.extract::<f64>()? as i64)
    }

    fn __bool__(slf: &Bound<'_, Self>) -> PyResult<bool> {
        Ok(PyTensor::item(slf)?.extract::<f64>()? != 0.0)
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        let (shape, _) = self.facts(py)?;
        shape.first().copied().ok_or_else(|| PyTypeError::new_err("a single value has no length"))
    }

    fn __add__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Expr::add)
    }

    fn __radd__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Expr::add)
    }

    fn __sub__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Expr::sub)
    }

    fn __rsub__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, other, Expr::sub)
    }

    fn __mul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Expr::mul)
    }

    fn __rmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Expr::mul)
    }

    fn __truediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Expr::div)
    }

    fn __rtruediv__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, other, Expr::div)
    }

    fn __pow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        if modulo.is_some() {
            return Err(PyTypeError::new_err("pow of tensors takes no modulus"));
        }
        binary(slf, other, Expr::pow)
    }

    fn __rpow__(
        slf: &Bound<'_, Self>,
        other: &Bound<'_, PyAny>,
        modulo: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        let _ = modulo;
        reflected(slf, other, Expr::pow)
    }

    fn __matmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Expr::matmul)
    }

    fn __rmatmul__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        reflected(slf, other, Expr::matmul)
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        unary(py, self, Unary::Neg)
    }

    fn __abs__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        unary(py, self, Unary::Abs)
    }

    /// `<` and `>` compare value by value: 1 or 0 in the type of the tensor. `==` is the identity of objects; use `equal`.
    fn __richcmp__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>, op: CompareOp) -> PyResult<Py<PyAny>> {
        match op {
            CompareOp::Lt => binary(slf, other, Expr::less),
            CompareOp::Gt => binary(slf, other, Expr::greater),
            _ => Ok(slf.py().NotImplemented()),
        }
    }

    fn __hash__(slf: &Bound<'_, Self>) -> isize {
        slf.as_ptr() as isize >> 4
    }

    /// 1 where the values are equal, otherwise 0.
    fn equal(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Expr::equal)
    }

    /// The smaller of two values.
    fn minimum(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Expr::minimum)
    }

    /// The larger of two values.
    fn maximum(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Expr::maximum)
    }

    /// The matrix product of [.., m, k] and [.., k, n].
    fn matmul(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        binary(slf, other, Expr::matmul)
    }

    /// The absolute value.
    fn abs(&self, py: Python<'_>) -> PyResult<PyTensor> {
        unary(py, self, Unary::Abs)
    }

    /// The larger of x and 0.
    fn relu(&self, py: Python<'_>) -> PyResult<PyTensor> {
        unary(py, self, Unary::Relu)
    }

    /// 1 / (1 + e^-x)
    fn sigmoid(&self, py: Python<'_>) -> PyResult<PyTensor> {
        unary(py, self, Unary::Sigmoid)
    }

    /// Hyperbolic tangent.
    fn tanh(&self, py: Python<'_>) -> PyResult<PyTensor> {
        unary(py, self, Unary::Tanh)
    }

    /// x times the normal cumulative distribution at x, in the exact form.
    fn gelu(&self, py: Python<'_>) -> PyResult<PyTensor> {
        unary(py, self, Unary::Gelu)
    }

    /// x * sigmoid(x)
    fn silu(&self, py: Python<'_>) -> PyResult<PyTensor> {
        unary(py, self, Unary::Silu)
    }

    /// The error function.
    fn erf(&self, py: Python<'_>) -> PyResult<PyTensor> {
        unary(py, self, Unary::Erf)
    }

    /// e^x
    fn exp(&self, py: Python<'_>) -> PyResult<PyTensor> {
        unary(py, self, Unary::Exp)
    }

    /// Natural logarithm.
    fn log(&self, py: Python<'_>) -> PyResult<PyTensor> {
        unary(py, self, Unary::Log)
    }

    /// Square root.
    fn sqrt(&self, py: Python<'_>) -> PyResult<PyTensor> {
        unary(py, self, Unary::Sqrt)
    }

    /// x * x
    fn square(&self, py: Python<'_>) -> PyResult<PyTensor> {
        unary(py, self, Unary::Square)
    }

    /// 1 / x
    fn reciprocal(&self, py: Python<'_>) -> PyResult<PyTensor> {
        unary(py, self, Unary::Reciprocal)
    }

    /// The largest integer that is not above x.
    fn floor(&self, py: Python<'_>) -> PyResult<PyTensor> {
        unary(py, self, Unary::Floor)
    }

    /// The nearest integer; halves round to even.
    fn round(&self, py: Python<'_>) -> PyResult<PyTensor> {
        unary(py, self, Unary::Round)
    }

    /// The sum along an axis, or of all values.
    #[pyo3(signature = (axis = None, *, keepdims = false))]
    fn sum(&self, py: Python<'_>, axis: Option<isize>, keepdims: bool) -> PyResult<PyTensor> {
        reduced(py, self, Reduction::Sum, axis, keepdims)
    }

    /// The mean along an axis, or of all values.
    #[pyo3(signature = (axis = None, *, keepdims = false))]
    fn mean(&self, py: Python<'_>, axis: Option<isize>, keepdims: bool) -> PyResult<PyTensor> {
        reduced(py, self, Reduction::Mean, axis, keepdims)
    }

    /// The largest value along an axis, or of all values; NaN if any is NaN.
    #[pyo3(signature = (axis = None, *, keepdims = false))]
    fn max(&self, py: Python<'_>, axis: Option<isize>, keepdims: bool) -> PyResult<PyTensor> {
        reduced(py, self, Reduction::Max, axis, keepdims)
    }

    /// The smallest value along an axis, or of all values; NaN if any is NaN.
    #[pyo3(signature = (axis = None, *, keepdims = false))]
    fn min(&self, py: Python<'_>, axis: Option<isize>, keepdims: bool) -> PyResult<PyTensor> {
        reduced(py, self, Reduction::Min, axis, keepdims)
    }

    /// The index of the largest value along an axis, or of all values.
    #[pyo3(signature = (axis = None, *, keepdims = false))]
    fn argmax(&self, py: Python<'_>, axis: Option<isize>, keepdims: bool) -> PyResult<PyTensor> {
        reduced(py, self, Reduction::ArgMax, axis, keepdims)
    }

    /// The index of the smallest value along an axis, or of all values.
    #[pyo3(signature = (axis = None, *, keepdims = false))]
    fn argmin(&self, py: Python<'_>, axis: Option<isize>, keepdims: bool) -> PyResult<PyTensor> {
        reduced(py, self, Reduction::ArgMin, axis, keepdims)
    }

    /// Exponentials along an axis, scaled to a sum of 1.
    #[pyo3(signature = (axis = -1), text_signature = "($self, axis=-1)")]
    fn softmax(&self, py: Python<'_>, axis: isize) -> PyResult<PyTensor> {
        apply(py, &[self], move |of| of[0].softmax(axis))
    }

    /// The logarithm of `softmax`.
    #[pyo3(signature = (axis = -1), text_signature = "($self, axis=-1)")]
    fn log_softmax(&self, py: Python<'_>, axis: isize) -> PyResult<PyTensor> {
        apply(py, &[self], move |of| of[0].log_softmax(axis))
    }

    /// Normalises the last axis to mean 0 and variance 1.
    #[pyo3(signature = (*, epsilon = 1e-5))]
    fn layer_norm(&self, py: Python<'_>, epsilon: f32) -> PyResult<PyTensor> {
        apply(py, &[self], move |of| of[0].layer_norm(None, None, epsilon))
    }

    /// Limits values to a range.
    fn clamp(&self, py: Python<'_>, low: f32, high: f32) -> PyResult<PyTensor> {
        apply(py, &[self], move |of| of[0].clamp(low, high))
    }

    /// The values of `yes` where this tensor is not 0, and the values of `no` elsewhere.
    fn select(&self, py: Python<'_>, yes: &PyTensor, no: &PyTensor) -> PyResult<PyTensor> {
        apply(py, &[self, yes, no], |of| of[0].select(&of[1], &of[2]))
    }

    /// Picks entries along an axis by index.
    #[pyo3(signature = (indices, axis = 0))]
    fn gather(&self, py: Python<'_>, indices: &PyTensor, axis: isize) -> PyResult<PyTensor> {
        apply(py, &[self, indices], move |of| of[0].gather(&of[1], axis))
    }

    /// The same values in another type.
    fn cast(&self, py: Python<'_>, dtype: &str) -> PyResult<PyTensor> {
        let dtype = dtype_named(py, dtype)?;
        apply(py, &[self], move |of| of[0].cast(dtype))
    }

    /// The same values in another shape; one length may be -1.
    #[pyo3(signature = (*shape))]
    fn reshape(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let count = self.facts(py)?.0.iter().product();
        let lengths = indexing::lengths_of(shape, count)?;
        apply(py, &[self], move |of| of[0].reshape(&lengths))
    }

    /// Repeats values to a larger shape.
    #[pyo3(signature = (*shape))]
    fn broadcast_to(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let lengths = indexing::lengths_of(shape, 0)?;
        apply(py, &[self], move |of| of[0].broadcast_to(&lengths))
    }

    /// Reorders the axes.
    #[pyo3(signature = (*axes))]
    fn permute(&self, py: Python<'_>, axes: &Bound<'_, PyTuple>) -> PyResult<PyTensor> {
        let axes = indexing::lengths_of(axes, 0)?;
        apply(py, &[self], move |of| of[0].permute(&axes))
    }

    /// Swaps the last two axes.
    #[getter(T)]
    fn transposed(&self, py: Python<'_>) -> PyResult<PyTensor> {
        apply(py, &[self], |of| of[0].transpose())
    }

    /// Entries and ranges: `x[0]`, `x[:, 2:5]`, `x[..., -1]`. Steps other than 1 are not known.
    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        let (shape, _) = self.facts(py)?;
        let cuts = indexing::cuts_of(key, &shape)?;
        apply(py, &[self], move |of| cuts.of(&of[0]))
    }

    /// `DLPack`, for `torch.from_dlpack(tensor)`. Values on the GPU are downloaded, which `copy=False` refuses.
    #[pyo3(signature = (*, stream = None, max_version = None, dl_device = None, copy = None))]
    fn __dlpack__<'py>(
        slf: &Bound<'py, Self>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(i32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, own) = (slf.py(), slf.get());
        let wish = Wish::of(stream, max_version, dl_device, copy)?;
        let tensor = own.tensor(py)?;
        if wish.copy == Some(false) && own.shown.get().is_none() && !tensor.location().host {
            let text = "the values are on the GPU, and sharing them needs a download; leave out `copy=False`";
            return Err(PyBufferError::new_err(text));
        }
        let (values, layout) = own.show(py)?;
        let shape: Vec<i64> = layout.shape().iter().map(|length| *length as i64).collect();
        let strides = dlpack::dense_strides(tensor.shape().lengths());
        dlpack::shared(py, slf.as_any(), values, tensor.dtype(), &shape, &strides, &wish)
    }

    /// The values are handed out on the host.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        let (py, own) = (slf.py(), slf.get());
        let (shape, dtype) = own.facts(py)?;
        let count: usize = shape.iter().product();
        if own.place.is_some() || matches!(*own.state(), Values::Lazy(_)) || count > 64 {
            return Ok(format!("<vramp.Tensor {shape:?} of {dtype}>"));
        }
        Ok(format!("vramp.tensor({}, {dtype:?})", PyTensor::tolist(slf)?.repr()?, dtype = dtype.name()))
    }

    #[expect(unsafe_code, reason = "the buffer protocol hands out a pointer")]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let py = slf.py();
        let own = slf.clone();
        let (values, layout) = own.get().show(py)?;
        // SAFETY: the tensor keeps the values and their layout while it lives, and they never change.
        unsafe { buffer::export(view, flags, slf.into_any(), values.as_ptr(), layout, false) }
    }
}
