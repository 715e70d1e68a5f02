//! `Frame`: what a pipeline hands to Python, as an array without a copy.
//!
//! An array over a frame holds the frame, and the frame holds its memory, so an array outlives its pipeline. Frames from
//! a pipeline are read-only. A frame that a handler has taken or that was lent is writable until it is sent.
//!
//! Invariant: memory that Python can still write to is never sent; a copy is sent instead.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyAttributeError, PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use vramp::handlers::app::{LentFrame, PulledFrame};
use vramp::plan::{DType, Format, Space};
use vramp::runtime::{DataRows, Frame, FrameContent, Meta, NoteValue};

use crate::buffer::{self, Layout};
use crate::dlpack::{self, Wish};
use crate::errors::raise;
use crate::handler::keeping::Kept;
use crate::picture;

/// x0, y0, x1, y1, score, class.
pub(crate) type DetectionRow = (f32, f32, f32, f32, f32, u32);

#[pyclass(frozen, module = "vramp", name = "Frame")]
pub(crate) struct PyFrame {
    meta: Meta,
    layout: Layout,
    space: Space,
    writable: bool,
    /// Views of the memory.
    exports: AtomicUsize,
    held: Mutex<Held>,
    /// Counts a frame of a handler in Python.
    _kept: Option<Kept>,
}

pub(crate) enum Held {
    Pulled(PulledFrame),
    Own(Frame),
    Lent(LentFrame),
    /// The frame was sent on.
    Sent,
}

impl Held {
    fn frame(&self) -> Option<&Frame> {
        match self {
            Held::Pulled(frame) => Some(frame),
            Held::Own(frame) => Some(frame),
            Held::Lent(_) | Held::Sent => None,
        }
    }
}

impl PyFrame {
    pub(crate) fn pulled(frame: PulledFrame) -> PyFrame {
        PyFrame::new(*frame.meta(), frame.space(), false, Held::Pulled(frame), None)
    }

    /// A frame that a handler looks at.
    pub(crate) fn read_only(frame: Frame, kept: Kept) -> PyFrame {
        PyFrame::new(*frame.meta(), frame.space(), false, Held::Own(frame), Some(kept))
    }

    /// A frame with a single holder, to be written to.
    pub(crate) fn writable(frame: Frame, kept: Kept) -> PyFrame {
        PyFrame::new(*frame.meta(), frame.space(), true, Held::Own(frame), Some(kept))
    }

    pub(crate) fn lent(frame: LentFrame, meta: Meta) -> PyFrame {
        PyFrame::new(meta, Space::Cpu, true, Held::Lent(frame), None)
    }

    fn new(meta: Meta, space: Space, writable: bool, held: Held, kept: Option<Kept>) -> PyFrame {
        let layout = Layout::of(&meta);
        PyFrame { meta, layout, space, writable, exports: AtomicUsize::new(0), held: Mutex::new(held), _kept: kept }
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn meta(&self) -> &Meta {
        &self.meta
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.writable
    }

    pub(crate) fn is_on_device(&self) -> bool {
        self.space == Space::Gpu
    }

    /// Whether Python has views of the memory.
    pub(crate) fn is_viewed(&self) -> bool {
        self.exports.load(Ordering::Acquire) > 0
    }

    /// A further reference to the frame; `None` after it was sent.
    pub(crate) fn shared(&self) -> Option<Frame> {
        self.held().frame().cloned()
    }

    /// Reads the bytes; `None` after the frame was sent.
    pub(crate) fn with_bytes<R>(&self, read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let mut held = self.held();
        match &mut *held {
            Held::Lent(lent) => Some(read(&lent.bytes_mut())),
            held => held.frame().map(|frame| read(&frame.bytes())),
        }
    }

    fn first(&self) -> Option<*const u8> {
        let mut held = self.held();
        match &mut *held {
            Held::Lent(lent) => Some(lent.bytes_mut().as_ptr()),
            held => held.frame().map(|frame| frame.bytes().as_ptr()),
        }
    }

    /// The first byte, for a view.
    fn exported(&self) -> PyResult<*const u8> {
        if self.space == Space::Gpu {
            let text =
                "the frame is on the GPU; leave out the setting `space` of `app`, so that frames come to the host";
            return Err(PyBufferError::new_err(text));
        }
        self.first().ok_or_else(|| PyBufferError::new_err("the frame was sent, so its memory belongs to the pipeline"))
    }

    fn array<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().exported()?;
        let numpy = slf.py().import("numpy")?;
        numpy.call_method1("asarray", (slf,))
    }

    fn picture_size(&self) -> Option<(u32, u32)> {
        self.meta.as_picture().map(|picture| (picture.size.width, picture.size.height))
    }
}

#[pymethods]
impl PyFrame {
    /// The number of the frame, counted by its source.
    #[getter]
    fn number(&self) -> u64 {
        self.meta.number
    }

    /// The presentation time in seconds.
    #[getter]
    fn pts(&self) -> f64 {
        self.meta.pts_ns as f64 * 1e-9
    }

    /// The presentation time in nanoseconds.
    #[getter]
    fn pts_ns(&self) -> i64 {
        self.meta.pts_ns
    }

    /// The format of a picture, such as `rgba8`; `tensor` or `data` for other content.
    #[getter]
    fn format(&self) -> &'static str {
        match &self.meta.content {
            FrameContent::Video(picture) => picture.format.name(),
            FrameContent::Tensor(_) => "tensor",
            FrameContent::Data { .. } => "data",
        }
    }

    /// Width and height of a picture; `None` for other content.
    #[getter]
    fn size(&self) -> Option<(u32, u32)> {
        self.picture_size()
    }

    /// The shape of the array.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.layout.shape())
    }

    /// `cpu` or `gpu`.
    #[getter]
    fn space(&self) -> &'static str {
        self.space.name()
    }

    /// Whether the array may be written to.
    #[getter(writable)]
    fn get_writable(&self) -> bool {
        self.writable
    }

    /// The values that handlers have attached to the frame.
    #[getter]
    fn notes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let notes = PyDict::new(py);
        let list = self.held().frame().and_then(|frame| frame.notes().map(vramp::runtime::Notes::to_vec));
        for (key, value) in list.unwrap_or_default() {
            match value {
                NoteValue::Number(number) => notes.set_item(key, number)?,
                NoteValue::Text(text) => notes.set_item(key, text)?,
                NoteValue::List(list) => notes.set_item(key, list)?,
            }
        }
        Ok(notes)
    }

    /// Everything about the frame except its values.
    #[getter(meta)]
    fn get_meta<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let meta = PyDict::new(py);
        meta.set_item("number", self.number())?;
        meta.set_item("pts", self.pts())?;
        meta.set_item("pts_ns", self.pts_ns())?;
        meta.set_item("format", self.format())?;
        meta.set_item("size", self.size())?;
        meta.set_item("space", self.space())?;
        meta.set_item("notes", self.notes(py)?)?;
        Ok(meta)
    }

    /// The detections of a data frame: a list of (x0, y0, x1, y1, score, class).
    #[getter]
    fn detections(&self) -> PyResult<Vec<DetectionRow>> {
        match self.held().frame().and_then(Frame::data) {
            Some(DataRows::Detections(list)) => Ok(list
                .into_iter()
                .map(|found| {
                    let [x0, y0, x1, y1] = found.bounds;
                    (x0, y0, x1, y1, found.score, found.class)
                })
                .collect()),
            Some(_) => Ok(Vec::new()),
            None => Err(PyTypeError::new_err("only a data frame has detections")),
        }
    }

    /// The planes of a picture in i444, i422, i420 or nv12, as arrays without a copy; otherwise the picture itself.
    #[getter]
    fn planes<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyTuple>> {
        let own = slf.get();
        let Some(picture) = own.meta.as_picture() else {
            return Err(PyTypeError::new_err("only a picture has planes"));
        };
        if matches!(picture.format, Format::Rgba8 | Format::Rgb8 | Format::Gray8) {
            return PyTuple::new(slf.py(), [slf]);
        }
        let planes = picture.format.planes(picture.size).enumerate().map(|(at, plane)| {
            let channels = if picture.format == Format::Nv12 && at == 1 { 2 } else { 1 };
            let layout = Layout::rows(plane.rows, plane.row_bytes, plane.stride, channels);
            let layout = layout.starting_at(plane.start as usize);
            Py::new(slf.py(), PyPlane { frame: slf.clone().unbind(), layout })
        });
        PyTuple::new(slf.py(), planes.collect::<PyResult<Vec<_>>>()?)
    }

    /// The picture as the bytes of a PNG file.
    fn to_png<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let png = picture::png(self).map_err(|problem| raise(py, "Error", &problem))?;
        Ok(PyBytes::new(py, &png))
    }

    /// The picture, for notebooks.
    fn _repr_png_<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        picture::png(self).ok().map(|png| PyBytes::new(py, &png))
    }

    fn __getitem__<'py>(slf: &Bound<'py, Self>, key: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        Self::array(slf)?.get_item(key)
    }

    fn __setitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        Self::array(slf)?.set_item(key, value)
    }

    fn __len__(&self) -> usize {
        self.layout.shape().first().map_or(0, |length| *length as usize)
    }

    /// numpy asks for this after a refused view, and would otherwise make an array of objects.
    #[getter]
    fn __array_interface__(&self) -> PyResult<()> {
        self.exported()?;
        Err(PyAttributeError::new_err("a frame is an array by the buffer protocol"))
    }

    /// `DLPack`, for `torch.from_dlpack(frame)`: shared read-only, or a copy.
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
        own.exported()?;
        if own.writable {
            let text = "a frame that is being written cannot be shared; return it first, or use `copy=True` of numpy";
            return Err(PyBufferError::new_err(text));
        }
        if own.layout.gaps().is_some() {
            let text = "rows of the frame are padded, which the exchange does not support; use `numpy.asarray(frame)`";
            return Err(PyBufferError::new_err(text));
        }
        let shape: Vec<i64> = own.layout.shape().iter().map(|length| *length as i64).collect();
        let lengths: Vec<usize> = own.layout.shape().iter().map(|length| *length as usize).collect();
        let strides = dlpack::dense_strides(&lengths);
        let dtype = match &own.meta.content {
            FrameContent::Video(_) => DType::U8,
            FrameContent::Tensor(shape) => shape.dtype(),
            FrameContent::Data { .. } => DType::F32,
        };
        let whole = own.layout.dense_bytes();
        let share = |bytes: &[u8]| dlpack::shared(py, slf.as_any(), &bytes[..whole], dtype, &shape, &strides, &wish);
        own.with_bytes(share).ok_or_else(|| PyBufferError::new_err("the frame was sent"))?
    }

    /// Frames are handed out on the host.
    fn __dlpack_device__(&self) -> (i32, i32) {
        (1, 0)
    }

    fn __repr__(&self) -> String {
        let content = &self.meta.content;
        let sent = if matches!(*self.held(), Held::Sent) { ", sent" } else { "" };
        format!("<vramp.Frame {} {content} at {:.3} s on the {}{sent}>", self.meta.number, self.pts(), self.space)
    }

    #[expect(unsafe_code, reason = "the buffer protocol hands out a pointer")]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let first = slf.get().exported()?;
        let own = slf.clone();
        let own = own.get();
        // SAFETY: the frame keeps its memory and its layout while it lives. Nothing writes to the memory: the pipeline
        // writes only to frames with one holder, and a frame is sent only while no view exists.
        unsafe { buffer::export(view, flags, slf.into_any(), first, &own.layout, own.writable)? };
        own.exports.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    #[expect(unsafe_code, reason = "the buffer protocol passes a pointer")]
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.exports.fetch_sub(1, Ordering::AcqRel);
    }
}

/// One plane of a frame.
#[pyclass(frozen, module = "vramp", name = "Plane")]
pub(crate) struct PyPlane {
    frame: Py<PyFrame>,
    layout: Layout,
}

#[pymethods]
impl PyPlane {
    /// The shape of the array.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.layout.shape())
    }

    fn __repr__(&self) -> String {
        format!("<vramp.Plane {:?}>", self.layout.shape())
    }

    #[expect(unsafe_code, reason = "the buffer protocol hands out a pointer")]
    unsafe fn __getbuffer__(slf: Bound<'_, Self>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
        let own = slf.clone();
        let own = own.get();
        let frame = own.frame.get();
        let first = frame.exported()?;
        // SAFETY: the plane holds its frame, which keeps the memory as for a view of the whole frame.
        unsafe { buffer::export(view, flags, slf.into_any(), first, &own.layout, frame.writable)? };
        frame.exports.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    #[expect(unsafe_code, reason = "the buffer protocol passes a pointer")]
    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.frame.get().exports.fetch_sub(1, Ordering::AcqRel);
    }
}
