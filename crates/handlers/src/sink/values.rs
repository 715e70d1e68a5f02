//! `values`: writes tensors and data, one line or entry per frame.
//!
//! The end of the path decides about the form: `.npy` is one array of all tensors, `.safetensors` has an entry per frame, and
//! anything else, also standard output, is lines of JSON. An array's length is known only at its end, so the first two are
//! collected in a file beside the target.
//!
//! A file has its final name only once the stream has ended; the file then holds whole frames.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write};
use std::path::Path;

use half::f16;
use serde_json::{Map, Value, json};
use vramp_files::TemporaryFile;
use vramp_plan::catalog::{Entry, Input, PathUse, PortMedia, Setting};
use vramp_plan::{Content, DType};
use vramp_runtime::{
    Call, DataRows, Flow, Frame, FrameHandler, HandlerError, PartialFile, Setup, StartContext, TensorShape, Worker,
};

use super::frame_writer::{PARTIAL, replaces};
use super::outlet::{self, Outlet};
use crate::model::LABELS_NOTE;
use crate::model::labels;

pub static ENTRY: Entry = Entry {
    name: "values",
    about: "writes tensors and data: lines of JSON, .npy or .safetensors",
    example: "image path=me.png ! model path=selfie.onnx name=m ! null; m.result ! values path=mask.npy",
    inputs: &[Input { name: "values", media: PortMedia::Every { formats: &[] }, ..Input::VIDEO }],
    settings: &[
        Setting::path("path", PathUse::Write, "file (.npy, .safetensors, or lines of JSON), or - for standard output"),
        PARTIAL,
    ],
    bare: Some("path"),
    ..Entry::SINK
};

#[derive(Debug, thiserror::Error)]
enum ValuesError {
    #[error(
        "`{path}`: frame {frame} is a tensor {got}, and earlier frames are {first}; an array needs equal tensors, so use \
         .safetensors or lines of JSON"
    )]
    Unlike { path: String, frame: u64, got: String, first: String },
    #[error("`{path}`: an array (.npy) takes tensors; use .safetensors or lines of JSON for classes and boxes")]
    NoTensor { path: String },
    #[error("`{path}`: {error}; {}", outlet::remedy(error))]
    Failed { path: String, error: io::Error },
    #[error("`{path}`: the reader has closed the stream; to write fewer frames, use `--frames N` or `--seconds S`")]
    Closed { path: String },
    #[error("{0}; the file was there when the run started")]
    Labels(String),
    #[error("values are written for tensors and data; this frame is a picture")]
    Picture,
}

struct ValuesSink {
    path: String,
    replaces: bool,
    writer: Option<Writer>,
    labels: Labels,
}

/// The labels of the file that frames name in a note, read once.
#[derive(Default)]
struct Labels {
    path: String,
    all: Vec<String>,
}

impl Labels {
    fn of(&mut self, frame: &Frame) -> Result<&[String], ValuesError> {
        let Some(path) = frame.notes().and_then(|notes| notes.text(LABELS_NOTE)) else { return Ok(&[]) };
        if path != self.path {
            // The handler that attached the note has read the file, so a failure means that it has changed since.
            self.all = labels::read(&path).map_err(ValuesError::Labels)?;
            self.path = path;
        }
        Ok(&self.all)
    }
}

/// What is written for frames, by the form of the file.
enum Writer {
    /// `bytes` are those of whole lines.
    Lines {
        to: Box<dyn Outlet>,
        line: Vec<u8>,
        bytes: u64,
    },
    Array(Collected),
    Entries {
        collected: Collected,
        entries: Vec<StoredValues>,
    },
}

/// An entry of a .safetensors file.
struct StoredValues {
    name: String,
    dtype: DType,
    dims: Vec<u32>,
    bytes: u64,
    about: String,
}

/// Bytes of values, beside the target.
struct Collected {
    file: TemporaryFile,
    to: Box<dyn Outlet>,
    first: Option<TensorShape>,
    /// Of whole frames.
    frames: u64,
    bytes: u64,
}

impl Collected {
    fn new(path: &str) -> Result<Collected, HandlerError> {
        let to = outlet::open(path).map_err(HandlerError::failed)?;
        let file = TemporaryFile::beside(Path::new(path));
        let file = file.map_err(|error| HandlerError::failed(ValuesError::Failed { path: path.to_owned(), error }))?;
        Ok(Collected { file, to, first: None, frames: 0, bytes: 0 })
    }

    /// Adds a frame.
    fn add(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.frames += 1;
        self.bytes += bytes.len() as u64;
        Ok(())
    }

    /// Writes a head and then all whole frames.
    fn finish(&mut self, head: &[u8]) -> io::Result<()> {
        self.to.write_all(head)?;
        let mut file = self.file.file();
        file.seek(SeekFrom::Start(0))?;
        let mut from = file.take(self.bytes);
        let mut part = vec![0; 1 << 20];
        loop {
            match from.read(&mut part)? {
                0 => return self.to.flush(),
                count => self.to.write_all(&part[..count])?,
            }
        }
    }
}

impl ValuesSink {
    fn write(&mut self, frame: &Frame) -> Result<(), ValuesError> {
        let path = self.path.clone();
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::BrokenPipe => ValuesError::Closed { path: path.clone() },
            _ => ValuesError::Failed { path: path.clone(), error },
        };
        let Some(writer) = &mut self.writer else { return Ok(()) };
        let meta = frame.meta();
        let seconds = meta.pts_ns as f64 / 1e9;
        match writer {
            Writer::Lines { to, line, bytes } => {
                let mut object = Map::new();
                object.insert("number".to_owned(), json!(meta.number));
                object.insert("pts".to_owned(), json!(seconds));
                match (meta.shape(), frame.data()) {
                    (Some(shape), _) => {
                        object.insert("type".to_owned(), json!(shape.dtype().name()));
                        object.insert("shape".to_owned(), json!(shape.dims()));
                        object.insert("values".to_owned(), Value::Array(numbers(shape, &frame.bytes())));
                    }
                    (None, Some(rows)) => rows_into(&mut object, &rows, self.labels.of(frame)?),
                    (None, None) => return Err(ValuesError::Picture),
                }
                line.clear();
                serde_json::to_writer(&mut *line, &object).map_err(|error| failed(error.into()))?;
                line.push(b'\n');
                if let Err(error) = to.write_all(line).and_then(|()| to.flush()) {
                    // Only whole lines remain. If the output cannot be cut, it ends in the middle of a line.
                    let _ = to.cut_to(*bytes);
                    return Err(failed(error));
                }
                *bytes += line.len() as u64;
            }
            Writer::Array(collected) => {
                let Some(shape) = meta.shape() else { return Err(ValuesError::NoTensor { path }) };
                let first = *collected.first.get_or_insert(*shape);
                if first != *shape {
                    let (frame, got, first) = (meta.number, shape.to_string(), first.to_string());
                    return Err(ValuesError::Unlike { path, frame, got, first });
                }
                collected.add(&frame.bytes()[..shape.element_bytes() as usize]).map_err(failed)?;
            }
            Writer::Entries { collected, entries } => {
                let (dtype, dims, bytes) = match (meta.shape(), frame.data()) {
                    (Some(shape), _) => {
                        let bytes = frame.bytes()[..shape.element_bytes() as usize].to_vec();
                        (shape.dtype(), shape.dims().to_vec(), bytes)
                    }
                    (None, Some(rows)) => {
                        let (columns, values) = table(&rows);
                        let dims = vec![(values.len() / columns) as u32, columns as u32];
                        (DType::F32, dims, values.iter().flat_map(|value| value.to_le_bytes()).collect())
                    }
                    (None, None) => return Err(ValuesError::Picture),
                };
                collected.add(&bytes).map_err(failed)?;
                let about = format!("{seconds}");
                entries.push(StoredValues {
                    name: format!("{:06}", meta.number),
                    dtype,
                    dims,
                    bytes: bytes.len() as u64,
                    about,
                });
            }
        }
        Ok(())
    }

    /// Completes the file. `None` if no frame has come; then no file is made.
    fn complete(&mut self) -> Result<Option<Box<dyn Outlet>>, HandlerError> {
        let failed = |error| HandlerError::failed(ValuesError::Failed { path: self.path.clone(), error });
        match self.writer.take() {
            None => Ok(None),
            Some(Writer::Lines { to, bytes, .. }) => Ok((bytes > 0).then_some(to)),
            Some(Writer::Array(mut collected)) => {
                let Some(shape) = collected.first else { return Ok(None) };
                let head = npy_head(&shape, collected.frames);
                collected.finish(&head).map_err(failed)?;
                Ok(Some(collected.to))
            }
            Some(Writer::Entries { mut collected, entries }) => {
                if entries.is_empty() {
                    return Ok(None);
                }
                collected.finish(&safetensors_head(&entries)).map_err(failed)?;
                Ok(Some(collected.to))
            }
        }
    }
}

impl FrameHandler for ValuesSink {
    fn start(&mut self, start: &mut StartContext<'_>) -> Result<(), HandlerError> {
        let path = self.path.as_str();
        let is_data = start.inputs().first().and_then(Option::as_ref).is_some_and(Content::is_data);
        let is = |end: &str| Path::new(path).extension().is_some_and(|own| own.eq_ignore_ascii_case(end));
        if is_data && is("npy") {
            return Err(HandlerError::hopeless(ValuesError::NoTensor { path: path.to_owned() }));
        }
        self.writer = Some(if is("npy") {
            Writer::Array(Collected::new(path)?)
        } else if is("safetensors") {
            Writer::Entries { collected: Collected::new(path)?, entries: Vec::new() }
        } else {
            Writer::Lines { to: outlet::open_text(path).map_err(HandlerError::failed)?, line: Vec::new(), bytes: 0 }
        });
        Ok(())
    }

    fn process(&mut self, call: &mut Call<'_>) -> Result<Flow, HandlerError> {
        let Some(frame) = call.take(0) else { return Ok(Flow::Filtered) };
        self.write(&frame).map_err(HandlerError::failed)?;
        Ok(Flow::Produced)
    }

    fn stop(&mut self) -> Result<(), HandlerError> {
        match self.complete()? {
            Some(to) => to.finish().map_err(HandlerError::failed),
            None => Ok(()),
        }
    }

    fn stop_early(&mut self) -> Result<Option<PartialFile>, HandlerError> {
        if self.replaces {
            return self.stop().map(|()| None);
        }
        match self.complete()? {
            Some(to) => to.finish_early().map_err(HandlerError::failed),
            None => Ok(None),
        }
    }
}

/// The values of a tensor as JSON. Numbers that JSON does not have are null.
fn numbers(shape: &TensorShape, bytes: &[u8]) -> Vec<Value> {
    let bytes = &bytes[..shape.element_bytes() as usize];
    let (two, _) = bytes.as_chunks::<2>();
    let (four, _) = bytes.as_chunks::<4>();
    match shape.dtype() {
        DType::F32 => four.iter().map(|four| float(f32::from_le_bytes(*four))).collect(),
        DType::F16 => two.iter().map(|two| float(f16::from_le_bytes(*two).to_f32())).collect(),
        DType::I32 => four.iter().map(|four| json!(i32::from_le_bytes(*four))).collect(),
        DType::U32 => four.iter().map(|four| json!(u32::from_le_bytes(*four))).collect(),
        DType::U8 => bytes.iter().map(|byte| json!(byte)).collect(),
        DType::I8 => bytes.iter().map(|byte| json!(byte.cast_signed())).collect(),
    }
}

/// A number with the digits of its own precision.
fn float(value: f32) -> Value {
    value.to_string().parse::<f64>().ok().and_then(serde_json::Number::from_f64).map_or(Value::Null, Value::Number)
}

/// Adds the rows of a data frame to a line.
fn rows_into(object: &mut Map<String, Value>, rows: &DataRows, labels: &[String]) {
    // Null without a file of labels.
    let label = |class: u32| labels.get(class as usize);
    match rows {
        DataRows::Nothing => {}
        DataRows::Classes(rows) => {
            let rows = rows
                .iter()
                .map(|row| json!({"class": row.class, "label": label(row.class), "score": float(row.score)}));
            object.insert("classes".to_owned(), rows.collect());
        }
        DataRows::Detections(rows) => {
            let rows = rows.iter().map(|row| {
                let (bounds, score) = (row.bounds.map(float), float(row.score));
                json!({"box": bounds, "score": score, "class": row.class, "label": label(row.class)})
            });
            object.insert("boxes".to_owned(), rows.collect());
        }
    }
}

/// The columns of the rows of a data frame, and all values.
fn table(rows: &DataRows) -> (usize, Vec<f32>) {
    match rows {
        DataRows::Nothing => (1, Vec::new()),
        DataRows::Classes(rows) => (2, rows.iter().flat_map(|row| [row.class as f32, row.score]).collect()),
        DataRows::Detections(rows) => {
            let values = rows.iter().flat_map(|row| {
                let [x0, y0, x1, y1] = row.bounds;
                [x0, y0, x1, y1, row.score, row.class as f32]
            });
            (6, values.collect())
        }
    }
}

/// The head of a .npy file of version 1.0.
fn npy_head(shape: &TensorShape, frames: u64) -> Vec<u8> {
    let descr = match shape.dtype() {
        DType::F32 => "<f4",
        DType::F16 => "<f2",
        DType::I32 => "<i4",
        DType::U32 => "<u4",
        DType::U8 => "|u1",
        DType::I8 => "|i1",
    };
    let dims: Vec<String> =
        std::iter::once(frames.to_string()).chain(shape.dims().iter().map(u32::to_string)).collect();
    let mut text = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({},), }}", dims.join(", "));
    // The values begin at a multiple of 64 bytes, after 10 bytes and the text with its line end.
    let padded = (10 + text.len() + 1).next_multiple_of(64) - 10;
    text.extend(std::iter::repeat_n(' ', padded - 1 - text.len()));
    text.push('\n');
    let mut head = b"\x93NUMPY\x01\x00".to_vec();
    head.extend((text.len() as u16).to_le_bytes());
    head.extend(text.as_bytes());
    head
}

/// The head of a .safetensors file. The metadata has the time of each frame in seconds.
fn safetensors_head(entries: &[StoredValues]) -> Vec<u8> {
    let mut object = Map::new();
    let times: BTreeMap<String, String> =
        entries.iter().map(|entry| (format!("pts.{}", entry.name), entry.about.clone())).collect();
    object.insert("__metadata__".to_owned(), json!(times));
    let mut start = 0;
    for StoredValues { name, dtype, dims, bytes, .. } in entries {
        let end = start + bytes;
        let dtype = dtype.name().to_uppercase();
        object.insert(name.clone(), json!({"dtype": dtype, "shape": dims, "data_offsets": [start, end]}));
        start = end;
    }
    let mut text = Value::Object(object).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(8), b' ');
    let mut head = (text.len() as u64).to_le_bytes().to_vec();
    head.extend(text);
    head
}

pub(crate) fn make(setup: &Setup<'_>) -> Result<Worker, HandlerError> {
    let path = setup.settings.text("path").ok_or_else(|| HandlerError::failed("the setting `path` is missing"))?;
    let sink = ValuesSink {
        path: path.to_owned(),
        replaces: replaces(setup.settings),
        writer: None,
        labels: Labels::default(),
    };
    Ok(Worker::frames(sink))
}
