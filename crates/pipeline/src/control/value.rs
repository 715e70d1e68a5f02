//! Values for settings, from Rust types. Every value becomes text, so that all values are checked in one way.

use vramp_plan::catalog::Value;
use vramp_plan::{Format, Rate, Size};

/// A value for a setting: text as written in a pipeline, or a Rust value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingInput(pub(super) String);

impl From<&str> for SettingInput {
    fn from(text: &str) -> SettingInput {
        SettingInput(text.to_owned())
    }
}

impl From<String> for SettingInput {
    fn from(text: String) -> SettingInput {
        SettingInput(text)
    }
}

impl From<&String> for SettingInput {
    fn from(text: &String) -> SettingInput {
        SettingInput(text.clone())
    }
}

impl From<f32> for SettingInput {
    fn from(number: f32) -> SettingInput {
        SettingInput(number.to_string())
    }
}

impl From<f64> for SettingInput {
    fn from(number: f64) -> SettingInput {
        SettingInput(number.to_string())
    }
}

impl From<i32> for SettingInput {
    fn from(number: i32) -> SettingInput {
        SettingInput(number.to_string())
    }
}

impl From<u32> for SettingInput {
    fn from(number: u32) -> SettingInput {
        SettingInput(number.to_string())
    }
}

impl From<i64> for SettingInput {
    fn from(number: i64) -> SettingInput {
        SettingInput(number.to_string())
    }
}

impl From<bool> for SettingInput {
    fn from(flag: bool) -> SettingInput {
        SettingInput(flag.to_string())
    }
}

impl From<Size> for SettingInput {
    fn from(size: Size) -> SettingInput {
        SettingInput(size.to_string())
    }
}

impl From<Rate> for SettingInput {
    fn from(rate: Rate) -> SettingInput {
        SettingInput(rate.to_string())
    }
}

impl From<Format> for SettingInput {
    fn from(format: Format) -> SettingInput {
        SettingInput(format.to_string())
    }
}

/// A colour: red, green, blue, alpha.
impl From<[u8; 4]> for SettingInput {
    fn from(color: [u8; 4]) -> SettingInput {
        Value::Color(color).into()
    }
}

/// Several numbers, such as a matrix.
impl From<&[f64]> for SettingInput {
    fn from(numbers: &[f64]) -> SettingInput {
        Value::Numbers(numbers.to_vec()).into()
    }
}

impl From<Value> for SettingInput {
    fn from(value: Value) -> SettingInput {
        SettingInput(value.to_string())
    }
}
