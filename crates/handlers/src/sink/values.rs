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
use std::sync::Arc;

use half::f16;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};
use vramp_files::TemporaryFile;
use vramp_plan::DType;
use vramp_plan::catalog::{Entry, Input, PathUse, PortMedia, Setting, SettingValues};
use vramp_runtime::{
    Call, Classification, DataRows, Detection, Flow, Frame, FrameHandler, HandlerError, PartialFile, Setup,
    StartContext, TensorShape, Worker,
};

use super::frame_writer::{PARTIAL, replaces};
use super::outlet::{self, Outlet};
use crate::model::labels::{MODEL_NOTE, RunLabels};

pub static ENTRY: Entry = Entry {
    name: "values",
    about: "writes tensors and data: lines of JSON, .npy or .safetensors",
    example: "image path=me.png ! model path=selfie.onnx name=m ! null; m.result ! values path=mask.npy",
    inputs: &[Input {
        name: "values",
        media: PortMedia::Every { formats: &[] },
        media_by: Some(media),
        remedy: Some(
            "link a tensor, such as the `result` of a model; classes and boxes are written as lines of JSON or as \
             .safetensors, not as an array (.npy)",
        ),
        ..Input::VIDEO
    }],
    settings: &[
        Setting::path("path", PathUse::Write, "file (.npy, .safetensors, or lines of JSON), or - for standard output"),
        PARTIAL,
    ],
    bare: Some("path"),
    ..Entry::SINK
};

/// What can be written: an array has only tensors.
fn media(settings: &SettingValues) -> PortMedia {
    match settings.text("path") {
        Some(path) if has_end(path, "npy") => PortMedia::tensor(&DType::ALL),
        _ => PortMedia::Every { formats: &[] },
    }
}

/// Whether a path ends in this, in capitals or not.
fn has_end(path: &str, end: &str) -> bool {
    Path::new(path).extension().is_some_and(|own| own.eq_ignore_ascii_case(end))
}

#[derive(Debug, thiserror::Error)]
enum ValuesError {
    #[error(
        "`{path}`: frame {frame} is a tensor {got}, and earlier frames are {first}; an array needs equal tensors, so use \
         .safetensors or lines of JSON"
    )]
    Unlike { path: String, frame: u64, got: String, first: String },
    #[error("`{path}`: an array (.npy) takes tensors; this frame is none")]
    NoTensor { path: String },
    #[error("`{path}`: {error}; {}", outlet::remedy(error))]
    Failed { path: String, error: io::Error },
    #[error("`{path}`: the reader has closed the stream; to write fewer frames, use `--frames N` or `--seconds S`")]
    Closed { path: String },
    #[error("values are written for tensors and data; this frame is a picture")]
    Picture,
}

struct ValuesSink {
    path: String,
    replaces: bool,
    writer: Option<Writer>,
    /// The labels of the models of the run, after the start.
    labels: Option<Arc<RunLabels>>,
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
            Writer::Lines { to, line, bytes: written } => {
                let labels = labels_of(self.labels.as_deref(), frame);
                let mut object = Line { number: meta.number, pts: seconds, ..Line::default() };
                let (bytes, rows) = (frame.bytes(), frame.data());
                match (meta.shape(), &rows) {
                    (Some(shape), _) => {
                        (object.dtype, object.shape) = (Some(shape.dtype().name()), Some(shape.dims()));
                        object.values = Some(Numbers { dtype: shape.dtype(), bytes: elements(shape, &bytes) });
                    }
                    (None, Some(rows)) => object.rows(rows, labels.as_deref().unwrap_or_default()),
                    (None, None) => return Err(ValuesError::Picture),
                }
                line.clear();
                serde_json::to_writer(&mut *line, &object).map_err(|error| failed(error.into()))?;
                line.push(b'\n');
                if let Err(error) = to.write_all(line).and_then(|()| to.flush()) {
                    // Only whole lines remain. If the output cannot be cut, it ends in the middle of a line.
                    let _ = to.cut_to(*written);
                    return Err(failed(error));
                }
                *written += line.len() as u64;
            }
            Writer::Array(collected) => {
                let Some(shape) = meta.shape() else { return Err(ValuesError::NoTensor { path }) };
                let first = *collected.first.get_or_insert(*shape);
                if first != *shape {
                    let (frame, got, first) = (meta.number, shape.to_string(), first.to_string());
                    return Err(ValuesError::Unlike { path, frame, got, first });
                }
                collected.add(elements(shape, &frame.bytes())).map_err(failed)?;
            }
            Writer::Entries { collected, entries } => {
                let (dtype, dims, bytes) = match (meta.shape(), frame.data()) {
                    (Some(shape), _) => {
                        let bytes = elements(shape, &frame.bytes()).to_vec();
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
        self.labels = Some(RunLabels::of(start)?);
        self.writer = Some(if has_end(path, "npy") {
            Writer::Array(Collected::new(path)?)
        } else if has_end(path, "safetensors") {
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

/// A line of JSON: a tensor, classes or boxes.
#[derive(Default, Serialize)]
struct Line<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    boxes: Option<Vec<BoxLine<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<Vec<ClassLine<'a>>>,
    number: u64,
    pts: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    shape: Option<&'a [u32]>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    dtype: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Numbers<'a>>,
}

#[derive(Serialize)]
struct BoxLine<'a> {
    #[serde(rename = "box")]
    bounds: [f32; 4],
    class: u32,
    /// Null without a file of labels.
    label: Option<&'a String>,
    score: f32,
}

#[derive(Serialize)]
struct ClassLine<'a> {
    class: u32,
    label: Option<&'a String>,
    score: f32,
}

/// The elements of a tensor. Numbers that JSON does not have are null.
struct Numbers<'a> {
    dtype: DType,
    bytes: &'a [u8],
}

impl Serialize for Numbers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (two, _) = self.bytes.as_chunks::<2>();
        let (four, _) = self.bytes.as_chunks::<4>();
        match self.dtype {
            DType::F32 => serializer.collect_seq(four.iter().map(|four| f32::from_le_bytes(*four))),
            DType::F16 => serializer.collect_seq(two.iter().map(|two| f16::from_le_bytes(*two).to_f32())),
            DType::I32 => serializer.collect_seq(four.iter().map(|four| i32::from_le_bytes(*four))),
            DType::U32 => serializer.collect_seq(four.iter().map(|four| u32::from_le_bytes(*four))),
            DType::U8 => serializer.collect_seq(self.bytes),
            DType::I8 => serializer.collect_seq(self.bytes.iter().map(|byte| byte.cast_signed())),
        }
    }
}

/// The bytes of a tensor without what follows its elements.
fn elements<'a>(shape: &TensorShape, bytes: &'a [u8]) -> &'a [u8] {
    &bytes[..shape.element_bytes() as usize]
}

/// The labels of the model that a data frame comes from.
fn labels_of(labels: Option<&RunLabels>, frame: &Frame) -> Option<Arc<[String]>> {
    let model = frame.notes()?.text(MODEL_NOTE)?;
    labels?.labels(&model)
}

impl<'a> Line<'a> {
    /// Takes the rows of a data frame.
    fn rows(&mut self, rows: &DataRows, labels: &'a [String]) {
        let label = |class: u32| labels.get(class as usize);
        match rows {
            DataRows::Nothing => {}
            DataRows::Classes(rows) => {
                let line =
                    |&Classification { class, score }: &Classification| ClassLine { class, label: label(class), score };
                self.classes = Some(rows.iter().map(line).collect());
            }
            DataRows::Detections(rows) => {
                let line = |&Detection { bounds, score, class }: &Detection| BoxLine {
                    bounds,
                    class,
                    label: label(class),
                    score,
                };
                self.boxes = Some(rows.iter().map(line).collect());
            }
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
    let sink = ValuesSink { path: path.to_owned(), replaces: replaces(setup.settings), writer: None, labels: None };
    Ok(Worker::frames(sink))
}
