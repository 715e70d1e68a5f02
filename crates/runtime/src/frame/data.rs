//! Data: a few values that a handler computes from a frame, such as detections, for handlers on the host.
//!
//! The values are an array of f32, so that a kernel can write them as well as a handler on the host: the kind, the
//! number of rows, and then the rows. Every whole number up to 2^24 is exact. Text and other values are notes of the
//! frame ([`Frame::notes`]).
//!
//! | kind | value | a row |
//! |---|---|---|
//! | nothing | 0 | |
//! | detections | 1 | x0, y0, x1, y1 (pixels of the frame), score, class |
//! | classes | 2 | class, score |

use super::{Frame, FrameContent};

/// Values before the first row: the kind and the number of rows.
const HEADER: usize = 2;
const DETECTIONS: f32 = 1.0;
const CLASSES: f32 = 2.0;

/// An object that was found in a picture.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Detection {
    /// Left, top, right and bottom, in pixels of the frame.
    pub bounds: [f32; 4],
    pub score: f32,
    pub class: u32,
}

/// What a whole picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Classification {
    pub class: u32,
    pub score: f32,
}

/// The values of a data frame.
#[derive(Debug, Clone, PartialEq)]
pub enum DataRows {
    Nothing,
    Detections(Vec<Detection>),
    Classes(Vec<Classification>),
}

/// Why values are not stored in a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DataError {
    #[error("the frame carries {content}, not data")]
    NotData { content: String },
    #[error("the frame is on the device; data is written by a kernel there")]
    OnDevice,
    #[error("other holders share the frame")]
    Shared,
    #[error(
        "{rows} rows need {needed} bytes, but the port has room for {room}; send fewer rows, or declare more `bytes`"
    )]
    NoRoom { rows: usize, needed: usize, room: usize },
}

/// A row as f32 values.
trait Row<const N: usize>: Sized {
    const KIND: f32;
    fn write(&self) -> [f32; N];
    fn read(values: [f32; N]) -> Self;
}

impl Row<6> for Detection {
    const KIND: f32 = DETECTIONS;

    fn write(&self) -> [f32; 6] {
        let [x0, y0, x1, y1] = self.bounds;
        [x0, y0, x1, y1, self.score, self.class as f32]
    }

    fn read([x0, y0, x1, y1, score, class]: [f32; 6]) -> Detection {
        Detection { bounds: [x0, y0, x1, y1], score, class: class as u32 }
    }
}

impl Row<2> for Classification {
    const KIND: f32 = CLASSES;

    fn write(&self) -> [f32; 2] {
        [self.class as f32, self.score]
    }

    fn read([class, score]: [f32; 2]) -> Classification {
        Classification { class: class as u32, score }
    }
}

/// The row of a frame without values.
struct NoRow;

impl Row<0> for NoRow {
    const KIND: f32 = 0.0;

    fn write(&self) -> [f32; 0] {
        []
    }

    fn read(_: [f32; 0]) -> NoRow {
        NoRow
    }
}

impl Frame {
    /// The values of a data frame on the host; `None` for other frames. A count that exceeds the frame is cut.
    pub fn data(&self) -> Option<DataRows> {
        match self.data_kind()? {
            DETECTIONS => Some(DataRows::Detections(self.rows().collect())),
            CLASSES => Some(DataRows::Classes(self.rows().collect())),
            _ => Some(DataRows::Nothing),
        }
    }

    /// The detections of a data frame on the host, without an allocation; none if the frame carries anything else.
    pub fn detections(&self) -> impl Iterator<Item = Detection> + '_ {
        self.rows()
    }

    /// The classes of a data frame on the host, without an allocation; none if the frame carries anything else.
    pub fn classes(&self) -> impl Iterator<Item = Classification> + '_ {
        self.rows()
    }

    /// Stores detections in a data frame that was just lent.
    pub fn write_detections(&mut self, rows: &[Detection]) -> Result<(), DataError> {
        self.write_rows(rows)
    }

    /// Stores classes in a data frame that was just lent.
    pub fn write_classes(&mut self, rows: &[Classification]) -> Result<(), DataError> {
        self.write_rows(rows)
    }

    /// Marks a data frame that was just lent as empty.
    pub fn write_nothing(&mut self) -> Result<(), DataError> {
        self.write_rows::<0, NoRow>(&[])
    }

    fn data_kind(&self) -> Option<f32> {
        let on_host = self.buffer().is_none() && matches!(self.meta().content, FrameContent::Data { .. });
        on_host.then(|| self.value(0))
    }

    /// One f32 of a frame on the host; 0 after its end.
    fn value(&self, at: usize) -> f32 {
        let bytes = self.bytes();
        bytes.get(4 * at..4 * at + 4).and_then(|four| four.try_into().ok()).map_or(0.0, f32::from_le_bytes)
    }

    fn rows<const N: usize, R: Row<N>>(&self) -> impl Iterator<Item = R> + '_ {
        let is_kind = self.data_kind() == Some(R::KIND);
        let count = if is_kind { self.value(1) as usize } else { 0 };
        let fit = (self.meta().bytes() as usize / 4).saturating_sub(HEADER) / N;
        (0..count.min(fit)).map(|row| R::read(std::array::from_fn(|at| self.value(HEADER + row * N + at))))
    }

    fn write_rows<const N: usize, R: Row<N>>(&mut self, rows: &[R]) -> Result<(), DataError> {
        let content = self.meta().content;
        if !matches!(content, FrameContent::Data { .. }) {
            return Err(DataError::NotData { content: content.to_string() });
        }
        if self.buffer().is_some() {
            return Err(DataError::OnDevice);
        }
        let (needed, room) = (4 * (HEADER + N * rows.len()), self.meta().bytes() as usize);
        if needed > room {
            return Err(DataError::NoRoom { rows: rows.len(), needed, room });
        }
        let mut bytes = self.fill().ok_or(DataError::Shared)?;
        let values = [R::KIND, rows.len() as f32].into_iter().chain(rows.iter().flat_map(Row::write));
        let (head, rest) = bytes.split_at_mut(needed);
        head.chunks_exact_mut(4).zip(values).for_each(|(four, value)| four.copy_from_slice(&value.to_le_bytes()));
        // Cleared, so that equal values have equal bytes.
        rest.fill(0);
        Ok(())
    }
}
