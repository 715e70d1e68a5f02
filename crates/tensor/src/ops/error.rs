//! Why something cannot be done with tensors.
//!
//! Owns one case per cause, each with its numbers and the way out.
//! Does not log: whoever is handed an error decides.
//!
//! Always: whatever failed has changed nothing, and what it had taken is given back; the next op works.

use vramp_gpu::{BufferError, CompileError, LendError, PlayError, ReadbackError, RecordError};

use crate::ops::dtype::DType;
use crate::ops::shape::Shape;

/// Why something cannot be done with tensors.
#[derive(Clone, PartialEq, thiserror::Error)]
pub enum TensorError {
    /// Two shapes that an op cannot join.
    #[error("{op}: dimension mismatch: {one} and {two} are neither equal nor 1 along each axis")]
    NotAlike {
        /// Which op.
        op: &'static str,
        /// The first.
        one: Shape,
        /// The second.
        two: Shape,
    },
    /// Shapes that an op cannot use, in its own words.
    #[error("{op}: dimension mismatch: {problem}")]
    Mismatch {
        /// Which op.
        op: &'static str,
        /// What was expected, with the numbers.
        problem: String,
    },
    /// An axis that is not there.
    #[error("{op}: {shape} has no axis {axis}; {}", axes_of(shape))]
    NoSuchAxis {
        /// Which op.
        op: &'static str,
        /// As it was given.
        axis: isize,
        /// Of what.
        shape: Shape,
    },
    /// More axes than tensors have.
    #[error("a shape of {has} axes; a tensor has at most {most}")]
    TooManyAxes {
        /// How many.
        has: usize,
        /// What is allowed.
        most: usize,
    },
    /// More values than can be counted.
    #[error("{shape:?} has more than {most} values, the most that one tensor has; split it")]
    TooManyValues {
        /// Its lengths.
        shape: Vec<usize>,
        /// What is allowed.
        most: u64,
    },
    /// A type that an op does not take.
    #[error("{op}: values of {has}, where {wants} is expected; `cast` them first")]
    WrongType {
        /// Which op.
        op: &'static str,
        /// What it was given.
        has: DType,
        /// What it takes.
        wants: &'static str,
    },
    /// As many values as do not fit the shape.
    #[error("{shape} has {wants} values, {has} are given")]
    WrongCount {
        /// The shape.
        shape: Shape,
        /// How many it has.
        wants: usize,
        /// How many there are.
        has: usize,
    },
    /// A part that is not there.
    #[error("{op}: values {start} to {end} of {shape}, which has {has}")]
    OutOfRange {
        /// Which op.
        op: &'static str,
        /// The first.
        start: usize,
        /// Behind the last.
        end: usize,
        /// Of what.
        shape: Shape,
        /// How many there are.
        has: usize,
    },
    /// A setting that means nothing.
    #[error("{op}: {problem}")]
    Setting {
        /// Which op.
        op: &'static str,
        /// What was expected.
        problem: String,
    },
    /// It was disposed of.
    #[error("{op}: the tensor {shape} of {dtype} was disposed of; keep it (`Scope::keep`), or make it again")]
    Disposed {
        /// Which op.
        op: &'static str,
        /// Its shape.
        shape: Shape,
        /// Its type.
        dtype: DType,
    },
    /// Two tensors of different contexts.
    #[error("{op}: the tensors belong to different contexts; read the one and make it anew in the other")]
    Foreign {
        /// Which op.
        op: &'static str,
    },
    /// Values that were on a device that is gone.
    #[error("{op}: the values of {shape} were on the device that was lost ({reason}), and nowhere else")]
    Gone {
        /// Which op.
        op: &'static str,
        /// Its shape.
        shape: Shape,
        /// What happened to the device.
        reason: String,
    },
    /// No memory.
    #[error(
        "{op}: {required_bytes} bytes are needed and {available_bytes} can be had on the {place}; dispose of tensors, \
         or raise the budget"
    )]
    OutOfMemory {
        /// Which op.
        op: &'static str,
        /// What it needs.
        required_bytes: u64,
        /// What there is.
        available_bytes: u64,
        /// `device` or `host`.
        place: &'static str,
    },
    /// No memory for what is to cross to the device or back.
    #[error("{op}: the device has no memory left for transfers; dispose of tensors, or move less at once")]
    NoTransferMemory {
        /// Which op.
        op: &'static str,
    },
    /// Larger than a kernel can see.
    #[error("{op}: a tensor of {bytes} bytes; one binding of this device has at most {most_bytes}; split it")]
    TooBig {
        /// Which op.
        op: &'static str,
        /// What it would take.
        bytes: u64,
        /// What can be bound.
        most_bytes: u64,
    },
    /// What only a device can do, where there is none.
    #[error("{op}: not supported without a device; open the context on one (`Context::on`)")]
    NoDevice {
        /// Which op.
        op: &'static str,
    },
    /// What this device cannot do.
    #[error("{op}: not supported: {problem}")]
    NotSupported {
        /// Which op.
        op: &'static str,
        /// Why.
        problem: String,
    },
    /// The device is gone.
    #[error("{op}: the device was lost: {reason}; move to another one, or to the host (`Context::move_to`)")]
    Lost {
        /// Which op.
        op: &'static str,
        /// As far as the driver says.
        reason: String,
    },
    /// The device would not.
    #[error("{op}: {problem}")]
    Device {
        /// Which op.
        op: &'static str,
        /// What it said.
        problem: String,
    },
}

vramp_plan::debug_as_display!(TensorError);

/// The axes that there are, in words.
fn axes_of(shape: &Shape) -> String {
    match shape.rank() {
        0 => "it is a single value, without axes".to_owned(),
        rank => format!("it has {rank}, from 0 or from -{rank}"),
    }
}

/// Errors by what can be done about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// Not on this device or without one: compute on the host.
    NotSupported,
    /// The shapes do not fit: reshape, or use others.
    DimensionMismatch,
    /// Not enough memory: dispose of something.
    OutOfMemory,
    /// The values are gone: make them again.
    Gone,
    /// The call was wrong.
    Other,
}

impl TensorError {
    /// What can be done about it.
    pub fn kind(&self) -> ErrorKind {
        match self {
            TensorError::NotAlike { .. } | TensorError::Mismatch { .. } | TensorError::WrongCount { .. } => {
                ErrorKind::DimensionMismatch
            }
            TensorError::NoDevice { .. } | TensorError::NotSupported { .. } | TensorError::TooBig { .. } => {
                ErrorKind::NotSupported
            }
            TensorError::OutOfMemory { .. } | TensorError::NoTransferMemory { .. } => ErrorKind::OutOfMemory,
            TensorError::Disposed { .. } | TensorError::Gone { .. } | TensorError::Lost { .. } => ErrorKind::Gone,
            _ => ErrorKind::Other,
        }
    }
}

/// Turns what the device says into what an op says.
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
