//! What one value of a tensor is.
//!
//! Owns the types, their names and their sizes, and which Rust type each is on the host.
//! Does not convert: `cast` does.
//!
//! Always: values lie without gaps, in memory order, on both sides alike; the last word is filled up with zeros.

use std::fmt;

use half::f16;

/// The type of a tensor's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DType {
    /// 32 bits of float.
    F32,
    /// 16 bits of float, two to a word. Computed with as f32, rounded to the nearest (even) after every op.
    F16,
    /// 32 bits with a sign.
    I32,
    /// 32 bits without one.
    U32,
    /// 8 bits without a sign, four to a word: what pixels are.
    U8,
    /// 8 bits with a sign, four to a word: what quantised values are.
    I8,
}

impl DType {
    /// Every type.
    pub const ALL: [DType; 6] = [DType::F32, DType::F16, DType::I32, DType::U32, DType::U8, DType::I8];

    /// Bytes of one value.
    pub const fn bytes(self) -> usize {
        match self {
            DType::F32 | DType::I32 | DType::U32 => 4,
            DType::F16 => 2,
            DType::U8 | DType::I8 => 1,
        }
    }

    /// Values in one word of the device, which has 4 bytes.
    pub const fn per_word(self) -> usize {
        4 / self.bytes()
    }

    /// Whether it has fractions.
    pub const fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F16)
    }

    /// Its name, as in Rust.
    pub const fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::I32 => "i32",
            DType::U32 => "u32",
            DType::U8 => "u8",
            DType::I8 => "i8",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A Rust type whose values a tensor can hold.
pub trait Element: bytemuck::Pod + Send + Sync {
    /// Which type that is.
    const DTYPE: DType;
}

macro_rules! element {
    ($($rust:ty => $dtype:ident),*) => {
        $(impl Element for $rust {
            const DTYPE: DType = DType::$dtype;
        })*
    };
}

element!(f32 => F32, f16 => F16, i32 => I32, u32 => U32, u8 => U8, i8 => I8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_four_bytes_of_any_type() {
        for dtype in DType::ALL {
            assert_eq!(dtype.bytes() * dtype.per_word(), 4, "{dtype}");
        }
        assert_eq!(size_of::<f16>(), DType::F16.bytes());
    }
}
