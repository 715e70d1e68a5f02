//! Settings of handlers: types, ranges, defaults and liveness, and the typed values read from text.
//!
//! Entries say which handler has which setting.
//!
//! Invariant: a number in a [`Value`] is finite and within the range of its setting.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::RangeInclusive;

use crate::words::{Format, Rate, Size};

/// The declaration of one setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting {
    pub name: &'static str,
    pub value: ValueType,
    pub fallback: Fallback,
    pub liveness: Liveness,
    /// One line of help.
    pub about: &'static str,
}

/// Declares a setting in one line. A constructor gives the type of a required setting that is read at the start; the
/// methods change the other properties.
///
/// ```
/// use vramp_plan::catalog::Setting;
///
/// static SETTINGS: &[Setting] = &[
///     Setting::int("fade", 1..=255, "levels that a pixel loses from frame to frame").default("8"),
///     Setting::number("amount", 0.0..=1.0, "how much darker; 1 is black").default("0.5").live(),
///     Setting::choice("axis", &["h", "v"], "which way"),
/// ];
/// # assert_eq!(SETTINGS.len(), 3);
/// ```
impl Setting {
    /// A required setting that is read when the pipeline starts.
    pub const fn of(name: &'static str, value: ValueType, about: &'static str) -> Setting {
        Setting { name, value, fallback: Fallback::Required, liveness: Liveness::Fixed, about }
    }

    pub const fn int(name: &'static str, range: RangeInclusive<i64>, about: &'static str) -> Setting {
        Setting::of(name, ValueType::Int { min: *range.start(), max: *range.end() }, about)
    }

    pub const fn number(name: &'static str, range: RangeInclusive<f64>, about: &'static str) -> Setting {
        Setting::of(name, ValueType::Number { min: *range.start(), max: *range.end() }, about)
    }

    pub const fn bool(name: &'static str, about: &'static str) -> Setting {
        Setting::of(name, ValueType::Bool, about)
    }

    pub const fn text(name: &'static str, about: &'static str) -> Setting {
        Setting::of(name, ValueType::Text, about)
    }

    pub const fn choice(name: &'static str, words: &'static [&'static str], about: &'static str) -> Setting {
        Setting::of(name, ValueType::Choice(words), about)
    }

    pub const fn path(name: &'static str, used: PathUse, about: &'static str) -> Setting {
        Setting::of(name, ValueType::Path(used), about)
    }

    pub const fn size(name: &'static str, about: &'static str) -> Setting {
        Setting::of(name, ValueType::Size, about)
    }

    pub const fn rate(name: &'static str, about: &'static str) -> Setting {
        Setting::of(name, ValueType::Rate, about)
    }

    pub const fn color(name: &'static str, about: &'static str) -> Setting {
        Setting::of(name, ValueType::Color, about)
    }

    pub const fn format(name: &'static str, about: &'static str) -> Setting {
        Setting::of(name, ValueType::Format, about)
    }

    /// Sets the default value, in its text form.
    #[must_use]
    pub const fn default(self, text: &'static str) -> Setting {
        Setting { fallback: Fallback::Is(text), ..self }
    }

    /// Makes the setting optional: it has no value if it is not given.
    #[must_use]
    pub const fn optional(self) -> Setting {
        Setting { fallback: Fallback::Unset, ..self }
    }

    /// Changes take effect between two frames.
    #[must_use]
    pub const fn live(self) -> Setting {
        Setting { liveness: Liveness::Live, ..self }
    }

    /// Changes are compiled in the background and take effect between two frames.
    #[must_use]
    pub const fn rebuild(self) -> Setting {
        Setting { liveness: Liveness::Rebuild, ..self }
    }
}

/// The type and range of a setting.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueType {
    Int {
        min: i64,
        max: i64,
    },
    /// An odd whole number. If `zero` is true, 0 is also accepted and means automatic.
    Odd {
        max: i64,
        zero: bool,
    },
    Number {
        min: f64,
        max: f64,
    },
    /// Numbers separated by commas.
    Numbers {
        /// Valid counts of numbers.
        counts: &'static [usize],
    },
    Bool,
    Text,
    /// A file or a pattern of file names.
    Path(PathUse),
    /// `WIDTHxHEIGHT`.
    Size,
    /// Frames per second.
    Rate,
    /// `rrggbb` or `rrggbbaa`, hexadecimal.
    Color,
    Format,
    Choice(&'static [&'static str]),
}

/// What a handler does with the files that a path names. The paths of a run are checked before the start, so that the
/// run never overwrites a file that it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    /// Reads one file; in a source, `-` is standard input.
    Read,
    /// Reads every file that a pattern such as `shots/*.png` matches.
    ReadMatching,
    /// Writes one file; `-` is standard output.
    Write,
    /// Writes one file per frame, with the frame number in place of `%d` or `%04d`.
    WriteNumbered,
}

impl PathUse {
    pub const fn writes(self) -> bool {
        matches!(self, PathUse::Write | PathUse::WriteNumbered)
    }
}

/// The value of a setting that is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fallback {
    /// The setting must be given.
    Required,
    /// No value: the handler works without a value or determines a value itself.
    Unset,
    /// This value in its text form.
    Is(&'static str),
}

/// When a changed setting takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Liveness {
    /// Between two frames, as a parameter.
    Live,
    /// Compiled in the background, then swapped in between two frames.
    Rebuild,
    /// Only at the start of a pipeline.
    Fixed,
}

impl Liveness {
    /// The word used in text.
    pub const fn name(self) -> &'static str {
        match self {
            Liveness::Live => "live",
            Liveness::Rebuild => "rebuild",
            Liveness::Fixed => "fixed",
        }
    }
}

/// A value that was read and checked.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Int(i64),
    Number(f64),
    Numbers(Vec<f64>),
    Bool(bool),
    /// Text, a path or a word of a choice.
    Text(String),
    Size(Size),
    Rate(Rate),
    /// Red, green, blue, alpha.
    Color([u8; 4]),
    Format(Format),
}

/// The text form, which [`ValueType::read`] reads as the same value.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Int(n) => write!(f, "{n}"),
            Value::Number(n) => write!(f, "{n}"),
            Value::Numbers(numbers) => {
                let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
                f.write_str(&texts.join(","))
            }
            Value::Bool(flag) => write!(f, "{flag}"),
            Value::Text(text) => f.write_str(text),
            Value::Size(size) => write!(f, "{size}"),
            Value::Rate(rate) => write!(f, "{rate}"),
            Value::Color(rgba) => {
                let digits = if rgba[3] == 255 { &rgba[..3] } else { rgba };
                digits.iter().try_for_each(|channel| write!(f, "{channel:02x}"))
            }
            Value::Format(format) => write!(f, "{format}"),
        }
    }
}

impl ValueType {
    /// Reads a value; `None` if the text is not valid. [`ValueType::expects`] describes valid values.
    pub fn read(&self, text: &str) -> Option<Value> {
        match *self {
            ValueType::Int { min, max } => text.parse().ok().filter(|n| (min..=max).contains(n)).map(Value::Int),
            ValueType::Odd { max, zero } => text
                .parse()
                .ok()
                .filter(|n: &i64| (1..=max).contains(n) && n % 2 == 1 || zero && *n == 0)
                .map(Value::Int),
            ValueType::Number { min, max } => number(text).filter(|n| (min..=max).contains(n)).map(Value::Number),
            ValueType::Numbers { counts } => {
                let numbers: Option<Vec<f64>> = text.split(',').map(|n| number(n.trim())).collect();
                numbers.filter(|n| counts.contains(&n.len())).map(Value::Numbers)
            }
            ValueType::Bool => text.parse().ok().map(Value::Bool),
            ValueType::Text => Some(Value::Text(text.to_owned())),
            ValueType::Path(_) => (!text.is_empty() && !text.contains('\0')).then(|| Value::Text(text.to_owned())),
            ValueType::Size => text.parse().ok().map(Value::Size),
            ValueType::Rate => text.parse().ok().map(Value::Rate),
            ValueType::Color => color(text).map(Value::Color),
            ValueType::Format => text.parse().ok().map(Value::Format),
            ValueType::Choice(words) => words.contains(&text).then(|| Value::Text(text.to_owned())),
        }
    }

    /// A description of valid values, for messages.
    pub fn expects(&self) -> String {
        match *self {
            ValueType::Int { min, max } => format!("a whole number {}", range(min, max, i64::MIN, i64::MAX)),
            ValueType::Odd { max, zero } => {
                format!("an odd whole number from 1 to {max}{}", if zero { ", or 0 for automatic" } else { "" })
            }
            ValueType::Number { min, max } => format!("a number {}", range(min, max, f64::MIN, f64::MAX)),
            ValueType::Numbers { counts } => {
                let counts: Vec<_> = counts.iter().map(ToString::to_string).collect();
                format!("{} numbers separated by commas", counts.join(" or "))
            }
            ValueType::Bool => "true or false".to_owned(),
            ValueType::Text => "text".to_owned(),
            ValueType::Path(_) => "a path".to_owned(),
            ValueType::Size => {
                format!("a size WIDTHxHEIGHT such as 1280x720, each side from 1 to {}", Size::MAX_SIDE)
            }
            ValueType::Rate => "frames per second such as 30, 29.97 or 30000/1001".to_owned(),
            ValueType::Color => "a colour rrggbb or rrggbbaa, such as ff8800".to_owned(),
            ValueType::Format => {
                format!("one of {}", Format::RANKED.map(Format::name).join(", "))
            }
            ValueType::Choice(words) => format!("one of {}", words.join(", ")),
        }
    }

    /// The valid words of a choice, boolean or format; empty for other types. Messages suggest the nearest word.
    pub fn words(&self) -> Vec<&'static str> {
        match *self {
            ValueType::Choice(words) => words.to_vec(),
            ValueType::Bool => vec!["true", "false"],
            ValueType::Format => Format::RANKED.map(Format::name).to_vec(),
            _ => Vec::new(),
        }
    }
}

fn range<T: PartialEq + fmt::Display + Copy>(min: T, max: T, lowest: T, highest: T) -> String {
    match (min == lowest, max == highest) {
        (true, true) => "without limits".to_owned(),
        (false, true) => format!("from {min} up"),
        (true, false) => format!("up to {max}"),
        (false, false) => format!("from {min} to {max}"),
    }
}

fn number(text: &str) -> Option<f64> {
    // Rust also parses "inf", "nan" and "infinity". A number has only digits, signs, points and exponents.
    let plain = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    plain.then(|| text.parse().ok()).flatten().filter(|n: &f64| n.is_finite())
}

fn color(text: &str) -> Option<[u8; 4]> {
    if !matches!(text.len(), 6 | 8) || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
        return None;
    }
    let mut rgba = [255; 4];
    for (i, channel) in rgba.iter_mut().enumerate().take(text.len() / 2) {
        *channel = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(rgba)
}

/// The checked settings of one handler, including defaults.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SettingValues(BTreeMap<String, Value>);

impl SettingValues {
    pub fn set(&mut self, key: impl Into<String>, value: Value) {
        self.0.insert(key.into(), value);
    }

    pub fn get(&self, key: &str) -> Option<&Value> {
        self.0.get(key)
    }

    /// Every setting that has a value, by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }

    pub fn int(&self, key: &str) -> Option<i64> {
        match self.get(key)? {
            Value::Int(n) => Some(*n),
            _ => None,
        }
    }

    pub fn number(&self, key: &str) -> Option<f64> {
        match self.get(key)? {
            Value::Number(n) => Some(*n),
            _ => None,
        }
    }

    pub fn numbers(&self, key: &str) -> Option<&[f64]> {
        match self.get(key)? {
            Value::Numbers(n) => Some(n),
            _ => None,
        }
    }

    /// Text, a path or a word of a choice.
    /// Whether a boolean setting is true.
    pub fn flag(&self, key: &str) -> bool {
        self.get(key) == Some(&Value::Bool(true))
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn size(&self, key: &str) -> Option<Size> {
        match self.get(key)? {
            Value::Size(size) => Some(*size),
            _ => None,
        }
    }

    pub fn rate(&self, key: &str) -> Option<Rate> {
        match self.get(key)? {
            Value::Rate(rate) => Some(*rate),
            _ => None,
        }
    }

    pub fn format(&self, key: &str) -> Option<Format> {
        match self.get(key)? {
            Value::Format(format) => Some(*format),
            _ => None,
        }
    }

    /// The word of a choice or format, as written.
    pub fn word(&self, key: &str) -> Option<&str> {
        match self.get(key)? {
            Value::Text(text) => Some(text),
            Value::Format(format) => Some(format.name()),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_must_be_finite_and_in_range() {
        let number = ValueType::Number { min: 0.0, max: 10.0 };
        assert_eq!(number.read("2.5"), Some(Value::Number(2.5)));
        for text in ["", "inf", "nan", "-1", "10.1", "1e999", "2,5", "0x10", "1_000"] {
            assert_eq!(number.read(text), None, "{text}");
        }
        let any = ValueType::Number { min: f64::MIN, max: f64::MAX };
        assert_eq!(any.read("infinity"), None);
    }

    #[test]
    fn the_text_of_a_value_reads_as_the_same_value() {
        for (kind, text) in [
            (ValueType::Int { min: -9, max: 9 }, "-7"),
            (ValueType::Number { min: 0.0, max: 1.0 }, "0.1"),
            (ValueType::Number { min: -1e300, max: 1e300 }, "1e-7"),
            (ValueType::Numbers { counts: &[3] }, "1, -2.5,0.001"),
            (ValueType::Bool, "true"),
            (ValueType::Text, "{fps} fps"),
            (ValueType::Size, "64x48"),
            (ValueType::Rate, "30000/1001"),
            (ValueType::Color, "ff8000"),
            (ValueType::Color, "ff800040"),
            (ValueType::Format, "i420"),
        ] {
            let value = kind.read(text).expect("a valid value");
            assert_eq!(kind.read(&value.to_string()), Some(value), "{text}");
        }
    }

    #[test]
    fn odd_sizes_refuse_even_ones() {
        let size = ValueType::Odd { max: 31, zero: true };
        assert_eq!(size.read("0"), Some(Value::Int(0)));
        assert_eq!(size.read("31"), Some(Value::Int(31)));
        for text in ["2", "33", "-1", "1.0"] {
            assert_eq!(size.read(text), None, "{text}");
        }
    }

    #[test]
    fn lists_have_one_of_the_declared_lengths() {
        let kernel = ValueType::Numbers { counts: &[2, 4] };
        assert_eq!(kernel.read("1, -2"), Some(Value::Numbers(vec![1.0, -2.0])));
        assert_eq!(kernel.read("1,2,3"), None);
        assert_eq!(kernel.read("1,,2,3"), None);
    }

    #[test]
    fn colours_are_six_or_eight_hex_digits() {
        assert_eq!(ValueType::Color.read("ff8000"), Some(Value::Color([255, 128, 0, 255])));
        assert_eq!(ValueType::Color.read("ff800040"), Some(Value::Color([255, 128, 0, 64])));
        for text in ["fff", "#ff8000", "ff800g", "ффф"] {
            assert_eq!(ValueType::Color.read(text), None, "{text}");
        }
    }
}
