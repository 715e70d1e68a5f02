//! The types of values in ONNX files.

use std::borrow::Cow;

/// The type of the values of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OnnxType {
    F32,
    U8,
    I8,
    U16,
    I16,
    I32,
    I64,
    String,
    Bool,
    F16,
    F64,
    U32,
    U64,
    Bf16,
    /// The number of another type, such as complex numbers or floats of 8 bits; 0 if the type is not stated.
    Other(i32),
}

impl OnnxType {
    /// The type with a number of `TensorProto.DataType`.
    pub fn of(number: i32) -> OnnxType {
        match number {
            1 => OnnxType::F32,
            2 => OnnxType::U8,
            3 => OnnxType::I8,
            4 => OnnxType::U16,
            5 => OnnxType::I16,
            6 => OnnxType::I32,
            7 => OnnxType::I64,
            8 => OnnxType::String,
            9 => OnnxType::Bool,
            10 => OnnxType::F16,
            11 => OnnxType::F64,
            12 => OnnxType::U32,
            13 => OnnxType::U64,
            16 => OnnxType::Bf16,
            other => OnnxType::Other(other),
        }
    }

    pub fn name(self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            OnnxType::F32 => "f32",
            OnnxType::U8 => "u8",
            OnnxType::I8 => "i8",
            OnnxType::U16 => "u16",
            OnnxType::I16 => "i16",
            OnnxType::I32 => "i32",
            OnnxType::I64 => "i64",
            OnnxType::String => "string",
            OnnxType::Bool => "bool",
            OnnxType::F16 => "f16",
            OnnxType::F64 => "f64",
            OnnxType::U32 => "u32",
            OnnxType::U64 => "u64",
            OnnxType::Bf16 => "bf16",
            OnnxType::Other(number) => return Cow::Owned(format!("type {number} of ONNX")),
        })
    }

    /// The size of a value, if the type has values of whole bytes that can be computed with.
    pub fn bytes(self) -> Option<usize> {
        match self {
            OnnxType::U8 | OnnxType::I8 | OnnxType::Bool => Some(1),
            OnnxType::U16 | OnnxType::I16 | OnnxType::F16 | OnnxType::Bf16 => Some(2),
            OnnxType::F32 | OnnxType::I32 | OnnxType::U32 => Some(4),
            OnnxType::I64 | OnnxType::F64 | OnnxType::U64 => Some(8),
            OnnxType::String | OnnxType::Other(_) => None,
        }
    }
}
