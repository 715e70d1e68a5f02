//! The Rust types whose values a tensor can hold, and the [`DType`] of each. `cast` converts values from one type to
//! another.

use half::f16;

pub use vramp_plan::DType;

/// A Rust type whose values a tensor can hold.
pub trait Element: bytemuck::Pod + Send + Sync {
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
