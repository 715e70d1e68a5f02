//! Tensors that are stored in a model: weights, and tensors among the attributes of nodes.
//!
//! Invariants: the data of a weight match its type and dims. `raw_data`, `float_data` and `double_data` share the memory
//! of the file; numbers that a file stores as varints are converted once.

use std::borrow::Cow;

use bytes::Bytes;
use half::{bf16, f16};
use prost::Message as _;

use super::allowance::Allowance;
use super::error::{OnnxError, quoted};
use super::external::ExternalFiles;
use super::onnx_type::OnnxType;
use super::proto::TensorProto;
use super::scan::{Kind, scan};
use super::varints;

/// A tensor that is stored in a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Weight {
    pub name: String,
    pub dtype: OnnxType,
    pub dims: Vec<usize>,
    pub data: WeightData,
}

/// The values of a weight.
#[derive(Debug, Clone, PartialEq)]
pub enum WeightData {
    /// Little-endian, without gaps, possibly unaligned.
    Bytes(Bytes),
    /// Values of a type that cannot be computed with, such as text. They were not read.
    Unread,
}

impl Weight {
    /// Reads a tensor that is stored alone, as in the `.pb` files of ONNX's own tests.
    pub fn decode(bytes: Bytes) -> Result<Weight, OnnxError> {
        let mut allowance = Allowance::for_file(bytes.len());
        scan(Kind::Tensor, &bytes, &mut allowance)?;
        let tensor = TensorProto::decode(bytes).map_err(|error| OnnxError::malformed("the tensor", error))?;
        let at = if tensor.name.is_empty() { "the tensor".into() } else { format!("tensor {}", quoted(&tensor.name)) };
        WeightReader { external: &mut ExternalFiles::of(None), allowance: &mut allowance }.read(tensor, &at)
    }

    /// The number of values.
    pub fn count(&self) -> usize {
        // Only the dims of data that were not read may overflow.
        self.dims.iter().fold(1, |count, length| count.saturating_mul(*length))
    }

    /// The values, little-endian.
    pub fn bytes(&self) -> Result<&Bytes, OnnxError> {
        match &self.data {
            WeightData::Bytes(bytes) => Ok(bytes),
            WeightData::Unread => Err(self.wrong_type("numbers")),
        }
    }

    /// The values as f32, from any type of floats. Values that are f32 and aligned are not copied.
    pub fn floats(&self) -> Result<Cow<'_, [f32]>, OnnxError> {
        let bytes = self.bytes()?;
        Ok(match self.dtype {
            OnnxType::F32 => match bytemuck::try_cast_slice(bytes) {
                Ok(values) if cfg!(target_endian = "little") => Cow::Borrowed(values),
                _ => each(bytes, f32::from_le_bytes),
            },
            OnnxType::F16 => each(bytes, |value| f16::from_le_bytes(value).to_f32()),
            OnnxType::Bf16 => each(bytes, |value| bf16::from_le_bytes(value).to_f32()),
            OnnxType::F64 => each(bytes, |value| f64::from_le_bytes(value) as f32),
            _ => return Err(self.wrong_type("floats")),
        })
    }

    /// The values as i64, from any type of integers, or from bool as 0 and 1.
    pub fn longs(&self) -> Result<Vec<i64>, OnnxError> {
        let bytes = self.bytes()?;
        let values = match self.dtype {
            OnnxType::Bool => each(bytes, |[value]: [u8; 1]| i64::from(value != 0)),
            OnnxType::I8 => each(bytes, |value| i64::from(i8::from_le_bytes(value))),
            OnnxType::U8 => each(bytes, |value| i64::from(u8::from_le_bytes(value))),
            OnnxType::I16 => each(bytes, |value| i64::from(i16::from_le_bytes(value))),
            OnnxType::U16 => each(bytes, |value| i64::from(u16::from_le_bytes(value))),
            OnnxType::I32 => each(bytes, |value| i64::from(i32::from_le_bytes(value))),
            OnnxType::U32 => each(bytes, |value| i64::from(u32::from_le_bytes(value))),
            OnnxType::I64 => each(bytes, i64::from_le_bytes),
            OnnxType::U64 => {
                let values = each(bytes, u64::from_le_bytes);
                let large = |_| self.wrong_type("integers below 2^63");
                return values.iter().map(|value| i64::try_from(*value).map_err(large)).collect();
            }
            _ => return Err(self.wrong_type("integers")),
        };
        Ok(values.into_owned())
    }

    pub(super) fn of_longs(name: String, dims: Vec<usize>, values: &[i64]) -> Weight {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        Weight { name, dtype: OnnxType::I64, dims, data: WeightData::Bytes(bytes.into()) }
    }

    pub(super) fn of_floats(name: String, dims: Vec<usize>, values: &[f32]) -> Weight {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        Weight { name, dtype: OnnxType::F32, dims, data: WeightData::Bytes(bytes.into()) }
    }

    fn wrong_type(&self, wants: &'static str) -> OnnxError {
        let at = format!("weight {}", quoted(&self.name));
        OnnxError::WrongType { at, has: self.dtype.name().into_owned(), wants }
    }
}

fn each<const N: usize, T: Clone>(bytes: &[u8], read: impl Fn([u8; N]) -> T) -> Cow<'static, [T]> {
    Cow::Owned(bytes.as_chunks::<N>().0.iter().map(|value| read(*value)).collect())
}

/// Reads the tensors of one model.
pub(super) struct WeightReader<'a> {
    pub(super) external: &'a mut ExternalFiles,
    pub(super) allowance: &'a mut Allowance,
}

impl WeightReader<'_> {
    /// The weight that a tensor describes. `at` names the tensor in errors.
    pub(super) fn read(&mut self, tensor: TensorProto, at: &str) -> Result<Weight, OnnxError> {
        let dtype = OnnxType::of(tensor.data_type);
        let dims = dims_of(&tensor.dims, at)?;
        let data = match dtype.bytes() {
            None => WeightData::Unread,
            Some(size) => {
                let count = count_of(&dims, size).ok_or_else(|| {
                    let problem = format!("{} has too many values for any memory", shape(&tensor.dims));
                    OnnxError::malformed(at, problem)
                })?;
                WeightData::Bytes(self.values(&tensor, dtype, count, size, at)?)
            }
        };
        Ok(Weight { name: tensor.name, dtype, dims, data })
    }

    fn values(
        &mut self,
        tensor: &TensorProto,
        dtype: OnnxType,
        count: usize,
        size: usize,
        at: &str,
    ) -> Result<Bytes, OnnxError> {
        const EXTERNAL: i32 = 1;
        let needs = count * size;
        if tensor.data_location == EXTERNAL {
            return self.external.read(&tensor.external_data, needs as u64, at);
        }
        let stored = match dtype {
            _ if !tensor.raw_data.is_empty() => tensor.raw_data.clone(),
            OnnxType::F32 => self.joined(&tensor.float_data, at)?,
            OnnxType::F64 => self.joined(&tensor.double_data, at)?,
            OnnxType::I64 => self.converted(&tensor.int64_data, dtype, count, at)?,
            OnnxType::U32 | OnnxType::U64 => self.converted(&tensor.uint64_data, dtype, count, at)?,
            _ => self.converted(&tensor.int32_data, dtype, count, at)?,
        };
        if stored.len() != needs {
            let (has, name, dims) = (stored.len(), dtype.name(), shape(&tensor.dims));
            let problem = format!("{name} of {dims} needs {needs} bytes, but its data have {has}");
            return Err(OnnxError::malformed(at, problem));
        }
        Ok(stored)
    }

    /// Packed numbers in one piece. Nearly every file has one piece, which is shared.
    fn joined(&mut self, parts: &[Bytes], at: &str) -> Result<Bytes, OnnxError> {
        if let [] | [_] = parts {
            return Ok(parts.first().cloned().unwrap_or_default());
        }
        let needs = parts.iter().map(Bytes::len).sum::<usize>();
        self.allowance.claim(needs as u64, || at.to_owned())?;
        Ok(parts.concat().into())
    }

    fn converted(&mut self, parts: &[Bytes], dtype: OnnxType, count: usize, at: &str) -> Result<Bytes, OnnxError> {
        let has = parts.iter().map(|part| varints::count(part)).sum::<usize>();
        if has != count {
            let problem = format!("its shape has {count} values, but its data have {has}");
            return Err(OnnxError::malformed(at, problem));
        }
        self.allowance.claim((count * dtype.bytes().unwrap_or(0)) as u64, || at.to_owned())?;
        varints::convert(parts, dtype, count).map(Bytes::from).map_err(|problem| OnnxError::malformed(at, problem))
    }
}

fn dims_of(dims: &[i64], at: &str) -> Result<Vec<usize>, OnnxError> {
    let each = dims.iter().enumerate().map(|(axis, length)| {
        usize::try_from(*length).map_err(|_| OnnxError::malformed(at, format!("the length of axis {axis} is {length}")))
    });
    each.collect()
}

/// The number of values, if values of `size` bytes can be addressed.
fn count_of(dims: &[usize], size: usize) -> Option<usize> {
    if dims.contains(&0) {
        return Some(0);
    }
    let count = dims.iter().try_fold(1usize, |count, length| count.checked_mul(*length))?;
    count.checked_mul(size).filter(|bytes| isize::try_from(*bytes).is_ok()).map(|_| count)
}

/// Dims as errors show them; a hostile file may have millions.
fn shape(dims: &[i64]) -> String {
    const MOST: usize = 16;
    let shown: Vec<String> = dims.iter().take(MOST).map(i64::to_string).collect();
    let more = if dims.len() > MOST { ", ..." } else { "" };
    format!("[{}{more}]", shown.join(", "))
}
