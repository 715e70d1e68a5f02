//! What `process` may return: a frame, an array, a dictionary of ports, detections for a data port, or nothing.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use smallvec::SmallVec;
use vramp::runtime::{Detection, Frame, FrameContent, Meta};

use super::tick::{Ports, PyTick};
use crate::buffer::{Given, Layout, fill_frame};
use crate::frame::{Held, PyFrame};

/// Frames by output port.
pub(crate) type Sent = SmallVec<[(usize, Frame); 2]>;

/// The frames of a result; empty if the handler has filtered the frame.
pub(crate) fn of(result: &Bound<'_, PyAny>, tick: &PyTick, ports: &Ports) -> PyResult<Sent> {
    let mut sent = Sent::new();
    if result.is_none() {
        return Ok(sent);
    }
    if ports.declaration.outputs.is_empty() {
        let kind = result.get_type().name()?;
        return Err(PyTypeError::new_err(format!(
            "process returned {kind}, but the handler is a sink; return nothing"
        )));
    }
    let Ok(dict) = result.cast::<PyDict>() else {
        sent.push((0, frame_of(result, tick, ports, 0)?));
        return Ok(sent);
    };
    for (name, value) in dict {
        let name: String =
            name.extract().map_err(|_| PyTypeError::new_err("the keys of a returned dict are names of outputs"))?;
        let port = ports.output(&name)?;
        if !value.is_none() && ports.outputs.get(port).is_some_and(Option::is_some) {
            sent.push((port, frame_of(&value, tick, ports, port)?));
        }
    }
    Ok(sent)
}

fn frame_of(value: &Bound<'_, PyAny>, tick: &PyTick, ports: &Ports, port: usize) -> PyResult<Frame> {
    let declared = &ports.declaration.outputs[port];
    if declared.is_data() && value.cast::<PyFrame>().is_err() {
        return detections(value, tick, port);
    }
    let meta = ports.meta(port, tick.lead_meta());
    let meta = meta.ok_or_else(|| PyTypeError::new_err(format!("the output `{}` is not linked", declared.name)))?;
    let Ok(frame) = value.cast::<PyFrame>() else {
        let expected = "a frame, an array, a dict of outputs, or None";
        let given = Given::of(value, expected)
            .map_err(|error| PyTypeError::new_err(format!("process returned nonsense: {}", error.value(value.py()))))?;
        return filled(tick, port, &given, &declared.name);
    };
    let own = frame.get();
    if own.is_writable() && own.is_viewed() {
        // The handler has kept an array of the frame, with which it could write to memory of the pipeline.
        let given = Given::of(value, "a frame")?;
        return filled(tick, port, &given, &declared.name);
    }
    let sent = if own.is_writable() {
        let mut held = own.held();
        match std::mem::replace(&mut *held, Held::Sent) {
            Held::Own(frame) => Some(frame),
            other => {
                *held = other;
                None
            }
        }
    } else {
        own.shared()
    };
    let sent = sent.ok_or_else(|| PyValueError::new_err("process returned a frame that was sent before"))?;
    fits(sent.meta(), &meta, &declared.name)?;
    Ok(sent)
}

/// Whether a frame is what the output carries. A picture may have another size than the stream had at its start.
fn fits(given: &Meta, planned: &Meta, name: &str) -> PyResult<()> {
    let same = match (&given.content, &planned.content) {
        (FrameContent::Video(given), FrameContent::Video(planned)) => {
            given.format == planned.format && given.size == planned.size
        }
        (given, planned) => given == planned,
    };
    if same {
        return Ok(());
    }
    let text = format!("process returned {}, but the output `{name}` carries {}", given.content, planned.content);
    Err(PyTypeError::new_err(text))
}

/// A frame of the pipeline's memory with the values of an array.
fn filled(tick: &PyTick, port: usize, given: &Given, name: &str) -> PyResult<Frame> {
    let mut frame = tick.lend(port)?;
    let layout = Layout::of(frame.meta());
    if let Some(mut bytes) = frame.fill() {
        fill_frame(&mut bytes, &layout, given, &format!("process returned an array for the output `{name}`"))?;
    }
    Ok(frame)
}

/// Detections: rows of x0, y0, x1, y1, score, class.
fn detections(value: &Bound<'_, PyAny>, tick: &PyTick, port: usize) -> PyResult<Frame> {
    let rows: Vec<(f32, f32, f32, f32, f32, u32)> = value
        .extract()
        .map_err(|_| PyTypeError::new_err("a data output takes a list of detections (x0, y0, x1, y1, score, class)"))?;
    let rows: Vec<Detection> = rows
        .into_iter()
        .map(|(x0, y0, x1, y1, score, class)| Detection { bounds: [x0, y0, x1, y1], score, class })
        .collect();
    let mut frame = tick.lend(port)?;
    frame.write_detections(&rows).map_err(|error| PyValueError::new_err(error.to_string()))?;
    Ok(frame)
}
