//! Errors of tensor ops: one variant per cause, with numbers and a remedy. Nothing is logged.
//!
//! Invariant: a failed call has changed nothing and has released everything it took, so that the next op works.

use vramp_gpu::{BufferError, CompileError, LendError, PlayError, ReadbackError, RecordError};

use crate::ops::dtype::DType;
use crate::ops::shape::Shape;

/// Why a tensor op failed.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum TensorError {
    /// Two shapes that do not broadcast.
    #[error("{op}: dimension mismatch: {one} and {two} do not broadcast: two lengths differ, and neither is 1")]
    NotAlike { op: &'static str, one: Shape, two: Shape },
    /// Shapes that an op does not accept.
    #[error("{op}: dimension mismatch: {problem}")]
    Mismatch { op: &'static str, problem: String },
    #[error("{op}: {shape} has no axis {axis}; {}", axes_of(shape))]
    NoSuchAxis { op: &'static str, axis: isize, shape: Shape },
    #[error("the shape has {has} axes; a tensor has at most {most}")]
    TooManyAxes { has: usize, most: usize },
    #[error("{shape:?} has more than {most} values, the limit of one tensor; split it")]
    TooManyValues { shape: Vec<usize>, most: u64 },
    /// A type that an op does not accept.
    #[error("{op}: values are {has}, expected {wants}; `cast` them first")]
    WrongType { op: &'static str, has: DType, wants: &'static str },
    /// A number of values that does not match the shape.
    #[error("{shape} needs {wants} values, got {has}")]
    WrongCount { shape: Shape, wants: usize, has: usize },
    #[error("{op}: values {start} to {end} are out of range for {shape}; there are {has} values")]
    OutOfRange {
        op: &'static str,
        start: usize,
        end: usize,
        shape: Shape,
        /// The number of values in the shape, or in the buffer from which the values are read.
        has: usize,
    },
    /// An invalid setting of an op.
    #[error("{op}: {problem}")]
    Setting { op: &'static str, problem: String },
    #[error("{op}: the tensor {shape} of {dtype} was disposed; keep it (`TensorScope::keep`), or create it again")]
    Disposed { op: &'static str, shape: Shape, dtype: DType },
    #[error("{op}: the tensors belong to different contexts; read one and create it again in the other context")]
    Foreign { op: &'static str },
    /// The values were only on a device that was lost.
    #[error(
        "{op}: the values of {shape} were lost with the device ({reason}); the host had no copy; create them again"
    )]
    Gone { op: &'static str, shape: Shape, reason: String },
    #[error(
        "{op}: needs {required_bytes} bytes, {available_bytes} are available on the {place}; dispose of tensors, \
         or raise the budget"
    )]
    OutOfMemory {
        op: &'static str,
        required_bytes: u64,
        available_bytes: u64,
        /// `device` or `host`.
        place: &'static str,
    },
    /// More values that are the same in every run of a network than may be computed while it is built.
    #[error(
        "{op}: values that are the same in every run need {required_bytes} bytes more, and {available_bytes} are left \
         for such values; compute them once, and store them as weights"
    )]
    TooMuchKnown { op: &'static str, required_bytes: u64, available_bytes: u64 },
    /// No staging memory for an upload or a download.
    #[error("{op}: the device has no memory left for transfers; dispose of tensors, or move less at once")]
    NoTransferMemory { op: &'static str },
    #[error("{op}: a tensor of {bytes} bytes exceeds the binding limit of this device, {most_bytes} bytes; split it")]
    TooBig { op: &'static str, bytes: u64, most_bytes: u64 },
    /// An op that needs a device, in a context without a device.
    #[error("{op}: not supported without a device; open the context on a device (`Context::on`)")]
    NoDevice { op: &'static str },
    #[error("{op}: not supported: {problem}")]
    NotSupported { op: &'static str, problem: String },
    #[error("{op}: the device was lost: {reason}; move to another device, or to the host (`Context::move_to`)")]
    Lost {
        op: &'static str,
        /// The reason that the driver reports.
        reason: String,
    },
    /// Any other failure of the device.
    #[error("{op}: {problem}")]
    Device { op: &'static str, problem: String },
}

vramp_plan::debug_as_display!(TensorError);

/// The valid axes, for messages.
fn axes_of(shape: &Shape) -> String {
    match shape.rank() {
        0 => "it is a single value, without axes".to_owned(),
        rank => format!("the axes are 0 to {}, or -{rank} to -1", rank - 1),
    }
}

/// Errors grouped by remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// The device cannot run the op, or there is no device: compute on the host.
    NotSupported,
    /// The shapes do not match: reshape, or use other tensors.
    DimensionMismatch,
    /// Not enough memory: dispose of tensors.
    OutOfMemory,
    /// The values are lost: create them again.
    Gone,
    /// The call was wrong.
    Other,
}

impl TensorError {
    pub fn kind(&self) -> ErrorKind {
        match self {
            TensorError::NotAlike { .. } | TensorError::Mismatch { .. } | TensorError::WrongCount { .. } => {
                ErrorKind::DimensionMismatch
            }
            TensorError::NoDevice { .. } | TensorError::NotSupported { .. } | TensorError::TooBig { .. } => {
                ErrorKind::NotSupported
            }
            TensorError::OutOfMemory { .. }
            | TensorError::TooMuchKnown { .. }
            | TensorError::NoTransferMemory { .. } => ErrorKind::OutOfMemory,
            TensorError::Disposed { .. } | TensorError::Gone { .. } | TensorError::Lost { .. } => ErrorKind::Gone,
            _ => ErrorKind::Other,
        }
    }
}

/// Converts an error of the device to a [`TensorError`] of an op.
pub(crate) trait DeviceResult<T> {
    fn of(self, op: &'static str) -> Result<T, TensorError>;
}

impl<T> DeviceResult<T> for Result<T, LendError<BufferError>> {
    fn of(self, op: &'static str) -> Result<T, TensorError> {
        self.map_err(|error| match error {
            LendError::NotMade { needed_bytes, problem: BufferError::TooBig { most_bytes }, .. } => {
                TensorError::TooBig { op, bytes: needed_bytes, most_bytes }
            }
            LendError::NotMade { needed_bytes, problem: BufferError::OutOfMemory, .. } => {
                TensorError::OutOfMemory { op, required_bytes: needed_bytes, available_bytes: 0, place: "device" }
            }
            LendError::NotMade { problem: BufferError::Lost(lost), .. } => {
                TensorError::Lost { op, reason: lost.reason }
            }
            LendError::OutOfBudget { needed_bytes, available_bytes, .. } => {
                TensorError::OutOfMemory { op, required_bytes: needed_bytes, available_bytes, place: "device" }
            }
            other => TensorError::Device { op, problem: other.to_string() },
        })
    }
}

impl<T> DeviceResult<T> for Result<T, PlayError> {
    fn of(self, op: &'static str) -> Result<T, TensorError> {
        self.map_err(|error| match error {
            PlayError::Lost(lost) => TensorError::Lost { op, reason: lost.reason },
            PlayError::OutOfMemory => TensorError::NoTransferMemory { op },
            PlayError::Overdue { .. } => TensorError::Lost { op, reason: error.to_string() },
            other => TensorError::Device { op, problem: other.to_string() },
        })
    }
}

impl<T> DeviceResult<T> for Result<T, CompileError> {
    fn of(self, op: &'static str) -> Result<T, TensorError> {
        self.map_err(|error| match error {
            CompileError::Lost(lost) => TensorError::Lost { op, reason: lost.reason },
            CompileError::TooManyBuffers { .. } => TensorError::NotSupported { op, problem: error.to_string() },
            other => TensorError::Device { op, problem: other.to_string() },
        })
    }
}

impl<T> DeviceResult<T> for Result<T, ReadbackError> {
    fn of(self, op: &'static str) -> Result<T, TensorError> {
        self.map_err(|error| match error {
            ReadbackError::Lost(lost) => TensorError::Lost { op, reason: lost.reason },
            ReadbackError::NotMapped { .. } => TensorError::Device { op, problem: error.to_string() },
        })
    }
}

impl<T> DeviceResult<T> for Result<T, RecordError> {
    fn of(self, op: &'static str) -> Result<T, TensorError> {
        self.map_err(|error| TensorError::Device { op, problem: error.to_string() })
    }
}
