//! Numbers that a file stores as packed varints, converted to little-endian bytes of their type.

use bytes::{Buf as _, Bytes};
use prost::encoding::decode_varint;

use super::onnx_type::OnnxType;

/// The number of varints in packed data: each ends with a byte below 128.
pub(super) fn count(packed: &[u8]) -> usize {
    packed.iter().filter(|byte| **byte < 0x80).count()
}

/// The numbers as bytes of their type. `count` is their number.
pub(super) fn convert(parts: &[Bytes], dtype: OnnxType, count: usize) -> Result<Vec<u8>, String> {
    let size = dtype.bytes().unwrap_or(0);
    // Files store the bits of 16-bit floats, and some writers extend the sign of small types.
    let fits = |value: i64| match dtype {
        OnnxType::U8 | OnnxType::I8 => (-0x80..0x100).contains(&value),
        OnnxType::U16 | OnnxType::I16 | OnnxType::F16 | OnnxType::Bf16 => (-0x8000..0x1_0000).contains(&value),
        OnnxType::I32 => i32::try_from(value).is_ok(),
        OnnxType::U32 => u32::try_from(value).is_ok(),
        _ => true,
    };
    let mut bytes = Vec::with_capacity(count * size);
    for part in parts {
        let mut rest = &part[..];
        while rest.has_remaining() {
            let at = bytes.len() / size.max(1);
            let value = decode_varint(&mut rest).map_err(|_| format!("value {at} of its data is not a number"))?;
            let value = if dtype == OnnxType::Bool { i64::from(value != 0) } else { value.cast_signed() };
            if !fits(value) {
                return Err(format!("value {at} of its data is {value}, which is not {}", dtype.name()));
            }
            bytes.extend_from_slice(&value.to_le_bytes()[..size]);
        }
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use prost::encoding::encode_varint;

    use super::*;

    fn packed(values: &[i64]) -> Bytes {
        let mut bytes = Vec::new();
        for value in values {
            encode_varint(value.cast_unsigned(), &mut bytes);
        }
        bytes.into()
    }

    #[test]
    fn numbers_become_the_bytes_of_their_type() {
        let convert = |dtype, values: &[i64]| convert(&[packed(values)], dtype, values.len());
        assert_eq!(count(&packed(&[0, -1, 300, i64::MIN])), 4);
        assert_eq!(convert(OnnxType::I8, &[-1, 127, -128]).unwrap(), [255, 127, 128]);
        assert_eq!(convert(OnnxType::F16, &[0x3c00, -0x8000]).unwrap(), [0, 0x3c, 0, 0x80]);
        assert_eq!(convert(OnnxType::Bool, &[0, 7]).unwrap(), [0, 1]);
        assert_eq!(convert(OnnxType::I64, &[i64::MIN]).unwrap(), i64::MIN.to_le_bytes());
        assert_eq!(convert(OnnxType::U64, &[-1]).unwrap(), [255; 8]);
    }

    #[test]
    fn numbers_outside_of_their_type_are_refused() {
        let convert = |dtype, value| convert(&[packed(&[1, value])], dtype, 2).unwrap_err();
        assert_eq!(convert(OnnxType::U8, 256), "value 1 of its data is 256, which is not u8");
        assert_eq!(convert(OnnxType::I32, 1 << 31), "value 1 of its data is 2147483648, which is not i32");
        assert_eq!(convert(OnnxType::U32, -1), "value 1 of its data is -1, which is not u32");
    }

    #[test]
    fn numbers_in_several_parts_are_joined() {
        let parts = [packed(&[1, 2]), packed(&[]), packed(&[3])];
        assert_eq!(convert(&parts, OnnxType::U8, 3).unwrap(), [1, 2, 3]);
        let unended = [Bytes::from_static(&[0x80; 3])];
        assert_eq!(convert(&unended, OnnxType::I64, 0).unwrap_err(), "value 0 of its data is not a number");
    }
}
